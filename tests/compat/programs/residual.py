"""A small residual network, and the book's blocks of modern networks: VGG, NiN, Inception, DenseNet, hybridized."""

import mxnet as mx
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(27)


class Residual(nn.Block):
    def __init__(self, num_channels, use_1x1conv=False, strides=1, **kwargs):
        super().__init__(**kwargs)
        self.conv1 = nn.Conv2D(num_channels, kernel_size=3, padding=1, strides=strides)
        self.conv2 = nn.Conv2D(num_channels, kernel_size=3, padding=1)
        if use_1x1conv:
            self.conv3 = nn.Conv2D(num_channels, kernel_size=1, strides=strides)
        else:
            self.conv3 = None
        self.bn1 = nn.BatchNorm()
        self.bn2 = nn.BatchNorm()

    def forward(self, X):
        Y = npx.relu(self.bn1(self.conv1(X)))
        Y = self.bn2(self.conv2(Y))
        if self.conv3:
            X = self.conv3(X)
        return npx.relu(Y + X)


class Inception(nn.Block):
    def __init__(self, c1, c2, c4, **kwargs):
        super().__init__(**kwargs)
        self.p1_1 = nn.Conv2D(c1, kernel_size=1, activation="relu")
        self.p2_1 = nn.Conv2D(c2[0], kernel_size=1, activation="relu")
        self.p2_2 = nn.Conv2D(c2[1], kernel_size=3, padding=1, activation="relu")
        self.p4_1 = nn.MaxPool2D(pool_size=3, strides=1, padding=1)
        self.p4_2 = nn.Conv2D(c4, kernel_size=1, activation="relu")

    def forward(self, x):
        p1, p2, p4 = self.p1_1(x), self.p2_2(self.p2_1(x)), self.p4_2(self.p4_1(x))
        return np.concatenate((p1, p2, p4), axis=1)


class DenseBlock(nn.Block):
    def __init__(self, num_convs, num_channels, **kwargs):
        super().__init__(**kwargs)
        self.net = nn.Sequential()
        for _ in range(num_convs):
            blk = nn.Sequential()
            blk.add(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(num_channels, kernel_size=3, padding=1))
            self.net.add(blk)

    def forward(self, X):
        for blk in self.net:
            Y = blk(X)
            X = np.concatenate((X, Y), axis=1)
        return X


def vgg_block(num_convs, num_channels):
    blk = nn.HybridSequential()
    for _ in range(num_convs):
        blk.add(nn.Conv2D(num_channels, kernel_size=3, padding=1, activation="relu"))
    blk.add(nn.MaxPool2D(pool_size=2, strides=2))
    return blk


x = np.random.uniform(size=(4, 3, 6, 6))
for block, shape in (
    (Residual(3), (4, 3, 6, 6)),
    (Residual(6, use_1x1conv=True, strides=2), (4, 6, 3, 3)),
    (Inception(2, (3, 4), 5), (4, 11, 6, 6)),
    (DenseBlock(2, 10), (4, 23, 6, 6)),
    (vgg_block(2, 5), (4, 5, 3, 3)),
):
    block.initialize()
    assert block(x).shape == shape
vgg = vgg_block(1, 2)
vgg.initialize()
before = vgg(x)
vgg.hybridize()
assert np.abs(vgg(x) - before).max() < 1e-6 and np.abs(vgg(x) - before).max() < 1e-6

net = nn.Sequential()
net.add(nn.Conv2D(8, kernel_size=3, padding=1), nn.BatchNorm(), nn.Activation("relu"))
for i in range(2):
    stage = nn.Sequential()
    stage.add(Residual(8 * (i + 1), use_1x1conv=True, strides=2), Residual(8 * (i + 1)))
    net.add(stage)
net.add(nn.GlobalAvgPool2D(), nn.Dense(4))
net.initialize(init=init.Xavier())
images, labels = np.random.normal(size=(16, 1, 12, 12)), np.arange(16) % 4
loss = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 1e-4})
losses = []
for _ in range(10):
    with autograd.record():
        l = loss(net(images), labels)
    l.backward()
    trainer.step(16)
    losses.append(float(l.mean()))
print(round(losses[0], 3), round(losses[-1], 3))
assert 0.8 < losses[0] < 3 and losses[-1] < 0.3 * losses[0]
assert net[3][0].conv3.weight.shape == (8, 8, 1, 1) and net[3][1].conv3 is None
