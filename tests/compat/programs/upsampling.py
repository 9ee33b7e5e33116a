"""Transposed convolutions: by hand, as layers, as a bilinear interpolation, and in a small autoencoder."""

import mxnet as mx
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(31)


def trans_conv(X, K):
    h, w = K.shape
    Y = np.zeros((X.shape[0] + h - 1, X.shape[1] + w - 1))
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            Y[i : i + h, j : j + w] += X[i, j] * K
    return Y


X = np.array([[0.0, 1.0], [2.0, 3.0]])
K = np.array([[0.0, 1.0], [2.0, 3.0]])
Y = trans_conv(X, K)
assert Y.tolist() == [[0, 0, 1], [0, 4, 6], [4, 12, 9]]
layer = nn.Conv2DTranspose(1, kernel_size=2, use_bias=False)
layer.initialize(init.Constant(K))
assert np.allclose(layer(X.reshape(1, 1, 2, 2))[0, 0], Y)
strided = nn.Conv2DTranspose(1, kernel_size=2, strides=2, use_bias=False)
strided.initialize(init.Constant(K))
assert strided(X.reshape(1, 1, 2, 2)).shape == (1, 1, 4, 4)
padded = nn.Conv2DTranspose(1, kernel_size=2, padding=1, use_bias=False)
padded.initialize(init.Constant(K))
assert padded(X.reshape(1, 1, 2, 2)).tolist() == [[[[4]]]]

# The shapes of a convolution and of its transpose undo each other.
X = np.random.uniform(size=(1, 10, 16, 16))
conv = nn.Conv2D(20, kernel_size=5, padding=2, strides=3)
tconv = nn.Conv2DTranspose(10, kernel_size=5, padding=2, strides=3)
conv.initialize()
tconv.initialize()
assert tconv(conv(X)).shape == X.shape

bilinear = nn.Conv2DTranspose(1, kernel_size=4, padding=1, strides=2, use_bias=False)
bilinear.initialize(init.Bilinear())
ramp = np.arange(6).reshape(1, 1, 1, 6) * np.ones((1, 1, 6, 1))
finer = bilinear(ramp)
assert finer.shape == (1, 1, 12, 12)
inside = finer[0, 0, 4, 2:10]
assert np.allclose(inside[1:] - inside[:-1], np.full(7, 0.5), atol=1e-5)

net = nn.HybridSequential()
net.add(
    nn.Conv2D(8, 3, strides=2, padding=1),
    nn.GroupNorm(2),
    nn.Activation("relu"),
    nn.Conv2DTranspose(4, 4, strides=2, padding=1),
    nn.InstanceNorm(scale=True),
    nn.Conv2D(4, 3, padding=1),
    nn.PixelShuffle2D(2),
    nn.AvgPool2D(2),
    nn.Conv2D(1, 1),
)
net.initialize(init.Xavier())
net.hybridize()
images = np.random.uniform(size=(16, 1, 8, 8))
trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
loss_fn = gluon.loss.L2Loss()
losses = []
for step in range(60):
    with autograd.record():
        out = net(images)
        loss = loss_fn(out, images)
    loss.backward()
    trainer.step(len(images))
    losses.append(float(loss.mean()))
assert out.shape == images.shape
assert losses[-1] < 0.6 * losses[0], losses
names = sorted(net.collect_params())
assert names[:4] == ["0.bias", "0.weight", "1.beta", "1.gamma"], names
print("losses of the autoencoder:", round(losses[0], 4), round(losses[-1], 4))
