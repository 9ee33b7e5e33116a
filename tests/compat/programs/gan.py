"""A generative adversarial network: two Trainers, detached fakes, labels of ones and zeros, sigmoid losses."""

import mxnet as mx
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(31)
A, b = np.array([[1, 2], [-0.1, 0.5]]), np.array([1, 2])
data = np.dot(np.random.normal(0.0, 1, (256, 2)), A) + b
net_G = nn.Sequential()
net_G.add(nn.Dense(2))
net_D = nn.Sequential()
net_D.add(nn.Dense(5, activation="tanh"), nn.Dense(3, activation="tanh"), nn.Dense(1))
loss = gluon.loss.SigmoidBCELoss()


def update_D(X, Z):
    ones, zeros = np.ones((X.shape[0],), ctx=X.ctx), np.zeros((X.shape[0],), ctx=X.ctx)
    with autograd.record():
        real_Y = net_D(X)
        fake_X = net_G(Z)
        fake_Y = net_D(fake_X.detach())
        loss_D = (loss(real_Y, ones) + loss(fake_Y, zeros)) / 2
    loss_D.backward()
    trainer_D.step(X.shape[0])
    return float(loss_D.sum())


def update_G(Z):
    ones = np.ones((Z.shape[0],), ctx=Z.ctx)
    with autograd.record():
        fake_X = net_G(Z)
        fake_Y = net_D(fake_X)
        loss_G = loss(fake_Y, ones)
    loss_G.backward()
    trainer_G.step(Z.shape[0])
    return float(loss_G.sum())


net_D.initialize(init=init.Normal(0.02), force_reinit=True)
net_G.initialize(init=init.Normal(0.02), force_reinit=True)
trainer_D = gluon.Trainer(net_D.collect_params(), "adam", {"learning_rate": 0.05})
trainer_G = gluon.Trainer(net_G.collect_params(), "adam", {"learning_rate": 0.005})
for epoch in range(12):
    d = g = 0.0
    for X in (data[i : i + 32] for i in range(0, 256, 32)):
        Z = np.random.normal(0, 1, size=(32, 2))
        d, g = d + update_D(X, Z), g + update_G(Z)
    if epoch == 0:
        first = d / 256
print(round(first, 3), round(d / 256, 3), round(g / 256, 3))
assert 0.5 < first < 0.75
assert 0.2 < d / 256 < 0.75
fake = net_G(np.random.normal(0, 1, (100, 2)))
assert fake.shape == (100, 2)
