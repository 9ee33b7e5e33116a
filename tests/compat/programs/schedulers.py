"""Optimizers and learning-rate schedules as the book's optimisation chapter uses them."""

import math

import mxnet as mx
from mxnet import autograd, gluon, init, lr_scheduler, np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(19)


class SquareRootScheduler:
    def __init__(self, lr=0.1):
        self.lr = self.base_lr = lr

    def __call__(self, num_update):
        return self.lr * pow(num_update + 1.0, -0.5)


def train(optimizer, args, steps=5):
    net = nn.Dense(1, in_units=2, use_bias=False)
    net.initialize(init.Constant(1))
    trainer = gluon.Trainer(net.collect_params(), optimizer, args)
    x = np.array([[1, 2], [3, -1]])
    rates, values = [], []
    for _ in range(steps):
        with autograd.record():
            l = ((net(x) - np.array([[1], [2]])) ** 2).sum()
        l.backward()
        trainer.step(2)
        rates.append(trainer.learning_rate)
        values.append(net.weight.data().asnumpy().ravel().tolist())
    return rates, values


def close(a, b, tol=1e-5):
    return all(abs(x - y) <= tol * max(1, abs(y)) for x, y in zip(a, b, strict=True))


rates, _ = train(
    "sgd",
    {"lr_scheduler": lr_scheduler.FactorScheduler(step=2, factor=0.5, base_lr=0.1), "learning_rate": 0.1},
)
print(rates)
assert close(rates, [0.1, 0.1, 0.05, 0.05, 0.025])
rates, _ = train(
    "sgd",
    {
        "lr_scheduler": lr_scheduler.MultiFactorScheduler(step=[2, 3], factor=0.5, base_lr=0.5),
        "learning_rate": 0.5,
    },
)
print(rates)
assert close(rates, [0.5, 0.5, 0.25, 0.125, 0.125])
cosine = lr_scheduler.CosineScheduler(4, warmup_steps=2, base_lr=0.3, final_lr=0.01)
rates = [cosine(t) for t in range(6)]
print(rates)
assert close(rates, [0.0, 0.15, 0.3, 0.155, 0.01, 0.01])
poly = lr_scheduler.PolyScheduler(max_update=4, base_lr=0.4, pwr=2)
rates = [poly(t) for t in range(5)]
assert close(rates, [0.4, 0.225, 0.1, 0.025, 0.0]), rates
rates, _ = train(mx.optimizer.SGD(learning_rate=1.0, lr_scheduler=SquareRootScheduler(lr=1.0)), None)
assert close(rates, [1.0 / math.sqrt(t + 1) for t in range(1, 6)]), rates
net = nn.Dense(1)
net.initialize()
trainer = gluon.Trainer(
    net.collect_params(), "sgd", {"learning_rate": 0.1, "lr_scheduler": SquareRootScheduler()}
)
try:
    trainer.set_learning_rate(0.1)
except UserWarning:
    pass
else:
    raise AssertionError
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
trainer.set_learning_rate(trainer.learning_rate * 0.1)
assert abs(trainer.learning_rate - 0.01) < 1e-9

_, values = train("sgd", {"learning_rate": 0.1}, 1)
print(values)
assert close(values[0], [0.8, 0.6]), values
_, values = train("sgd", {"learning_rate": 0.1, "clip_gradient": 0.5}, 1)
assert close(values[0], [0.95, 0.95]), values
_, values = train("sgd", {"learning_rate": 0.1, "wd": 0.5}, 1)
assert close(values[0], [0.75, 0.55]), values
_, values = train("adam", {"learning_rate": 0.1}, 3)
print(values)
assert close(values[0], [0.9, 0.9], 1e-4), values
