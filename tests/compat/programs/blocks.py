"""The book's chapter on layers and blocks: custom blocks, nesting, constants, control flow in forward."""

import mxnet as mx
from mxnet import gluon, init, np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(13)


class MLP(nn.Block):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.hidden = nn.Dense(256, activation="relu")
        self.out = nn.Dense(10)

    def forward(self, X):
        return self.out(self.hidden(X))


class OwnSequential(nn.Block):
    def __init__(self, *blocks):
        super().__init__()
        self.blocks = blocks
        for i, block in enumerate(blocks):
            self.register_child(block, str(i))

    def forward(self, X):
        for block in self._children.values():
            X = block()(X)
        return X


class FixedHiddenMLP(nn.Block):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.rand_weight = gluon.Constant(np.random.uniform(size=(20, 20)))
        self.dense = nn.Dense(20, activation="relu")

    def forward(self, X):
        X = self.dense(X)
        X = npx.relu(np.dot(X, self.rand_weight.data()) + 1)
        X = self.dense(X)
        while np.abs(X).sum() > 1:
            X /= 2
        return X.sum()


class NestMLP(nn.Block):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.net = nn.Sequential()
        self.net.add(nn.Dense(64, activation="relu"), nn.Dense(32, activation="relu"))
        self.dense = nn.Dense(16, activation="relu")

    def forward(self, X):
        return self.dense(self.net(X))


class CenteredLayer(nn.Block):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)

    def forward(self, X):
        return X - X.mean()


class MyDense(nn.Block):
    def __init__(self, units, in_units, **kwargs):
        super().__init__(**kwargs)
        self.weight = gluon.Parameter("weight", shape=(in_units, units))
        self.bias = gluon.Parameter("bias", shape=(units,))

    def forward(self, x):
        linear = np.dot(x, self.weight.data(ctx=x.ctx)) + self.bias.data(ctx=x.ctx)
        return npx.relu(linear)


X = np.random.uniform(size=(2, 20))
net = MLP()
net.initialize()
assert net(X).shape == (2, 10)
assert sorted(net.collect_params()) == ["hidden.bias", "hidden.weight", "out.bias", "out.weight"]
net = OwnSequential(nn.Dense(256, activation="relu"), nn.Dense(10))
net.initialize()
assert net(X).shape == (2, 10)
net = FixedHiddenMLP()
net.initialize()
value = net(X)
assert value.shape == () and abs(float(value)) <= 1
chimera = nn.Sequential()
chimera.add(NestMLP(), nn.Dense(20), FixedHiddenMLP())
chimera.initialize()
assert chimera(X).shape == ()
layer = CenteredLayer()
assert layer(np.array([1, 2, 3, 4, 5])).tolist() == [-2.0, -1.0, 0.0, 1.0, 2.0]
net = nn.Sequential()
net.add(nn.Dense(128), CenteredLayer())
net.initialize()
assert abs(float(net(np.random.uniform(size=(4, 8))).mean())) < 1e-6
dense = MyDense(units=3, in_units=5)
assert list(dense.params) == ["weight", "bias"]
dense.initialize()
assert dense(np.random.uniform(size=(2, 5))).shape == (2, 3)
net = nn.Sequential()
net.add(MyDense(8, in_units=64), MyDense(1, in_units=8))
net.initialize()
assert net(np.random.uniform(size=(2, 64))).shape == (2, 1)
print(net)
assert repr(net).splitlines()[0] == "Sequential("
