"""Access to parameters, initialisers built in and custom, sharing, deferred initialisation."""

import mxnet as mx
from mxnet import gluon, init, np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(15)
net = nn.Sequential()
net.add(nn.Dense(8, activation="relu"))
net.add(nn.Dense(1))
print(net.collect_params())
assert net[0].weight.shape == (8, -1)
try:
    net[0].weight.data()
except RuntimeError as e:
    assert "weight" in str(e) and "initialize" in str(e)
else:
    raise AssertionError
net.initialize()
try:
    net[0].weight.data()
except gluon.parameter.DeferredInitializationError as e:
    assert isinstance(e, mx.MXNetError)
else:
    raise AssertionError
X = np.random.uniform(size=(2, 4))
net(X)
assert net[0].weight.shape == (8, 4)
assert str(net[1].params).count("Parameter") == 2, str(net[1].params)
assert type(net[1].bias).__name__ == "Parameter"
assert net[1].bias.data().tolist() == [0.0]
assert net[1].weight.grad().shape == (1, 8) and float(np.abs(net[1].weight.grad()).sum()) == 0
assert net.collect_params()["1.bias"].data().shape == (1,)
assert list(net.collect_params(".*weight")) == ["0.weight", "1.weight"]
assert list(net.collect_params("weight")) == []
assert list(net[0].collect_params()) == ["weight", "bias"]


def block1():
    net = nn.Sequential()
    net.add(nn.Dense(32, activation="relu"))
    net.add(nn.Dense(16, activation="relu"))
    return net


def block2():
    net = nn.Sequential()
    for _ in range(4):
        net.add(block1())
    return net


rgnet = nn.Sequential()
rgnet.add(block2())
rgnet.add(nn.Dense(10))
rgnet.initialize()
rgnet(X)
print(rgnet)
assert rgnet[0][1][0].bias.name == "bias" and len(rgnet[0][1][0].bias.data()) == 32
assert "0.1.0.bias" in rgnet.collect_params()
assert len(rgnet.collect_params()) == 18

net.initialize(init=init.Normal(sigma=0.01), force_reinit=True)
assert float(np.abs(net[0].weight.data()).max()) < 0.1
net.initialize(init=init.Constant(1), force_reinit=True)
assert (net[0].weight.data() == 1).all()
net[0].weight.initialize(init=init.Xavier(), force_reinit=True)
net[1].initialize(init=init.Constant(42), force_reinit=True)
assert float(net[1].weight.data()[0, 0]) == 42 and float(net[1].bias.data()[0]) == 0


class MyInit(init.Initializer):
    def _init_weight(self, name, data):
        assert isinstance(name, str) and name.endswith("weight")
        data[:] = np.random.uniform(-10, 10, data.shape)
        data *= np.abs(data) >= 5


net.initialize(MyInit(), force_reinit=True)
w = net[0].weight.data()
assert ((w == 0) | (np.abs(w) >= 5)).all()
before = w[0].asnumpy()
net[0].weight.data()[:] += 1
net[0].weight.data()[0, 0] = 42
assert net[0].weight.data()[0].tolist() == [42.0, *(before[1:] + 1).tolist()]

shared = nn.Dense(8, activation="relu")
net = nn.Sequential()
second = nn.Dense(8, activation="relu")
net.add(nn.Dense(8, activation="relu"), shared, second, nn.Dense(10))
net.initialize()
X = np.random.uniform(size=(2, 20))
net(X)
second.share_parameters(shared.collect_params())
assert (net[1].weight.data() == net[2].weight.data()).all()
net[1].weight.data()[0, 0] = 100
assert float(net[2].weight.data()[0, 0]) == 100
with mx.autograd.record():
    l = net(X).sum()
l.backward()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
trainer.step(1)
assert (net[1].weight.data() == net[2].weight.data()).all()
