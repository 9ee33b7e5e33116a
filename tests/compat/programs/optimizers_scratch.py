"""Update rules written out by hand, against the Trainer's: the same path from the same start."""

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(23)
features = np.random.normal(size=(200, 5)) * np.array([1, 0.1, 2, 0.5, 1])
labels = np.dot(features, np.array([1, -2, 0.5, 3, -1])).reshape(-1, 1) + 0.7


def batches(size):
    for i in range(0, len(features), size):
        yield features[i : i + size], labels[i : i + size]


def sgd(params, states, t, lr=0.1, momentum=0.9):
    for p, v in zip(params, states["v"]):
        v[:] = momentum * v - lr * p.grad
        p[:] += v


def adagrad(params, states, t, lr=0.1, eps=1e-6):
    for p, s in zip(params, states["s"]):
        s[:] += p.grad**2
        p[:] -= lr * p.grad / (np.sqrt(s) + eps)


def rmsprop(params, states, t, lr=0.01, gamma=0.9, eps=1e-8):
    for p, s in zip(params, states["s"]):
        s[:] = gamma * s + (1 - gamma) * np.square(p.grad)
        p[:] -= lr * p.grad / (np.sqrt(s) + eps)


def adadelta(params, states, t, rho=0.9, eps=1e-5):
    for p, s, delta in zip(params, states["s"], states["v"]):
        s[:] = rho * s + (1 - rho) * np.square(p.grad)
        g = np.sqrt(delta + eps) / np.sqrt(s + eps) * p.grad
        p[:] -= g
        delta[:] = rho * delta + (1 - rho) * g * g


def adam(params, states, t, lr=0.05, beta1=0.9, beta2=0.999, eps=1e-8):
    for p, v, s in zip(params, states["v"], states["s"]):
        v[:] = beta1 * v + (1 - beta1) * p.grad
        s[:] = beta2 * s + (1 - beta2) * np.square(p.grad)
        rate = lr * (1 - beta2**t) ** 0.5 / (1 - beta1**t)
        p[:] -= rate * v / (np.sqrt(s) + eps)


def by_hand(update, steps):
    w, b = np.zeros((5, 1)), np.zeros(1)
    params = [w, b]
    for p in params:
        p.attach_grad()
    states = {name: [np.zeros(p.shape) for p in params] for name in "vs"}
    t = 0
    while True:
        for X, y in batches(20):
            with autograd.record():
                loss = ((np.dot(X, w) + b - y) ** 2 / 2).mean()
            loss.backward()
            t += 1
            update(params, states, t)
            if t == steps:
                return w, b, float(loss)


def by_trainer(name, options, steps):
    net = nn.Dense(1, in_units=5)
    net.initialize(mx.init.Zero())
    trainer = gluon.Trainer(net.collect_params(), name, options)
    loss_fn = gluon.loss.L2Loss()
    t = 0
    while True:
        for X, y in batches(20):
            with autograd.record():
                loss = loss_fn(net(X), y)
            loss.backward()
            trainer.step(len(X))
            t += 1
            if t == steps:
                return net.weight.data().T, net.bias.data(), float(loss.mean())


RULES = [
    (sgd, "sgd", {"learning_rate": 0.1, "momentum": 0.9}),
    (adagrad, "adagrad", {"learning_rate": 0.1}),
    (rmsprop, "rmsprop", {"learning_rate": 0.01, "rho": 0.9}),
    (adadelta, "adadelta", {"rho": 0.9, "epsilon": 1e-5, "learning_rate": 1.0}),
    (adam, "adam", {"learning_rate": 0.05}),
]
start = float((labels**2 / 2).mean())
for update, name, options in RULES:
    w, b, loss = by_hand(update, 60)
    w2, b2, loss2 = by_trainer(name, options, 60)
    assert np.allclose(w, w2, rtol=1e-3, atol=1e-4), (name, w, w2)
    assert np.allclose(b, b2, rtol=1e-3, atol=1e-4), (name, b, b2)
    assert abs(loss - loss2) < 1e-3 * start and loss < start, (name, loss, loss2, start)
print("every rule agrees with the Trainer's")
