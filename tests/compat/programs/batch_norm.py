"""Batch normalisation from scratch against the layer, and a network with it."""

import mxnet as mx
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(11)


def batch_norm(X, gamma, beta, moving_mean, moving_var, eps, momentum):
    if not autograd.is_training():
        X_hat = (X - moving_mean) / np.sqrt(moving_var + eps)
    else:
        assert len(X.shape) in (2, 4)
        if len(X.shape) == 2:
            mean = X.mean(axis=0)
            var = ((X - mean) ** 2).mean(axis=0)
        else:
            mean = X.mean(axis=(0, 2, 3), keepdims=True)
            var = ((X - mean) ** 2).mean(axis=(0, 2, 3), keepdims=True)
        X_hat = (X - mean) / np.sqrt(var + eps)
        moving_mean = momentum * moving_mean + (1.0 - momentum) * mean
        moving_var = momentum * moving_var + (1.0 - momentum) * var
    return gamma * X_hat + beta, moving_mean, moving_var


class BatchNorm(nn.Block):
    def __init__(self, num_features, num_dims, **kwargs):
        super().__init__(**kwargs)
        shape = (1, num_features) if num_dims == 2 else (1, num_features, 1, 1)
        self.gamma = mx.gluon.Parameter("gamma", shape=shape, init=init.One())
        self.beta = mx.gluon.Parameter("beta", shape=shape, init=init.Zero())
        self.moving_mean = np.zeros(shape)
        self.moving_var = np.ones(shape)

    def forward(self, X):
        if self.moving_mean.ctx != X.ctx:
            self.moving_mean = self.moving_mean.copyto(X.ctx)
            self.moving_var = self.moving_var.copyto(X.ctx)
        Y, self.moving_mean, self.moving_var = batch_norm(
            X, self.gamma.data(), self.beta.data(), self.moving_mean, self.moving_var, eps=1e-5, momentum=0.9
        )
        return Y


def make(own):
    net = nn.Sequential()
    net.add(
        nn.Conv2D(4, kernel_size=3, in_channels=1),
        BatchNorm(4, 4) if own else nn.BatchNorm(),
        nn.Activation("relu"),
        nn.MaxPool2D(pool_size=2, strides=2),
        nn.Flatten(),
        nn.Dense(5),
    )
    return net


x, y = np.random.normal(size=(20, 1, 10, 10)), np.arange(20) % 5
own, layer = make(True), make(False)
for net in (own, layer):
    net.initialize(init.Xavier())
    net(x)
for a, b in ((0, 0), (5, 5)):
    layer[b].weight.set_data(own[a].weight.data())
loss = gluon.loss.SoftmaxCrossEntropyLoss()
results = []
for net in (own, layer):
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    losses = []
    for _ in range(8):
        with autograd.record():
            l = loss(net(x), y).mean()
        l.backward()
        trainer.step(1)
        losses.append(float(l))
    results.append(losses)
print([round(l, 4) for l in results[0]])
assert max(abs(a - b) for a, b in zip(*results)) < 1e-3, results
assert results[0][-1] < results[0][0] / 2
assert own[1].gamma.data().reshape((-1,)).shape == (4,)
gap = np.abs(own[1].moving_mean.reshape(-1) - layer[1].running_mean.data()).max()
assert gap < 1e-3, gap
gap = np.abs(own[1].moving_var.reshape(-1) - layer[1].running_var.data()).max()
assert gap < 1e-2, gap
assert np.abs(own(x) - layer(x)).max() < 1e-2
