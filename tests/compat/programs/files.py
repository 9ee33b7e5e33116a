"""Reading and writing arrays and parameters."""

import os
import tempfile

import mxnet as mx
from mxnet import np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(17)
os.chdir(tempfile.mkdtemp())
x = np.arange(4)
npx.save("x-file", x)
x2 = npx.load("x-file")
x2 = x2[0] if isinstance(x2, list) else x2
assert x2.tolist() == [0.0, 1.0, 2.0, 3.0]
y = np.zeros(4)
npx.savez("x-files", x, y)
x2, y2 = npx.load("x-files").values()
assert (x2 == x).all() and (y2 == y).all()
mydict = {"x": x, "y": y}
npx.savez("mydict", **mydict)
mydict2 = npx.load("mydict")
assert sorted(mydict2) == ["x", "y"] and (mydict2["x"] == x).all()


class MLP(nn.Block):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.hidden = nn.Dense(256, activation="relu")
        self.output = nn.Dense(10)

    def forward(self, x):
        return self.output(self.hidden(x))


net = MLP()
net.initialize()
X = np.random.uniform(size=(2, 20))
Y = net(X)
net.save_parameters("mlp.params")
clone = MLP()
clone.load_parameters("mlp.params")
assert (clone(X) == Y).all()
clone2 = MLP()
clone2.load_parameters("mlp.params", ctx=mx.cpu())
assert (clone2(X) == Y).all()
other = nn.Sequential()
other.add(nn.Dense(3))
for options, error in (
    ({}, AssertionError),
    ({"allow_missing": True}, ValueError),
):
    try:
        other.load_parameters("mlp.params", **options)
    except error:
        pass
    else:
        raise AssertionError(options)
other.load_parameters("mlp.params", allow_missing=True, ignore_extra=True)
try:
    clone.load_parameters("no-such-file")
except Exception as e:
    assert "no-such-file" in str(e), e
else:
    raise AssertionError
