"""Automatic differentiation: reverse mode, vector heads, detaching, control flow, functions, modes."""

import mxnet as mx
from mxnet import autograd, np, npx

npx.set_np()
mx.random.seed(2)
x = np.arange(4)
x.attach_grad()
assert x.grad.tolist() == [0.0] * 4
with autograd.record():
    y = 2 * np.dot(x, x)
y.backward()
assert (x.grad == 4 * x).all()
with autograd.record():
    y = x.sum()
y.backward()
assert x.grad.tolist() == [1.0] * 4
with autograd.record():
    y = x * x
y.backward()
assert (x.grad == 2 * x).all()
with autograd.record():
    y = x * x
    u = y.detach()
    z = u * x
z.backward()
assert (x.grad == u).all()
y.backward()
assert (x.grad == 2 * x).all()


def f(a):
    b = a * 2
    while np.linalg.norm(b) < 1000:
        b = b * 2
    if b.sum() > 0:
        c = b
    else:
        c = 100 * b
    return c


a = np.random.normal()
a.attach_grad()
with autograd.record():
    d = f(a)
d.backward()
assert abs(float(a.grad) - float(d / a)) <= 1e-3 * abs(float(a.grad))


class Sigmoid(autograd.Function):
    def forward(self, x):
        y = 1 / (1 + np.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


x = np.linspace(-2, 2, 5)
x.attach_grad()
with autograd.record():
    y = Sigmoid()(x)
y.backward()
own = x.grad.copy()
with autograd.record():
    y = npx.sigmoid(x)
y.backward()
assert np.abs(own - x.grad).max() < 1e-6

x = np.ones(2)
x.attach_grad(grad_req="add")
for _ in range(3):
    with autograd.record():
        y = (2 * x).sum()
    y.backward()
assert x.grad.tolist() == [6.0, 6.0]
x.grad[:] = 0
with autograd.record():
    y = 3 * x
y.backward(np.array([1, 10]))
assert x.grad.tolist() == [3.0, 30.0]


def state():
    return autograd.is_recording(), autograd.is_training()


assert state() == (False, False)
with autograd.record():
    assert state() == (True, True)
    with autograd.pause():
        assert state() == (False, False)
    with autograd.predict_mode():
        assert state() == (True, False)
with autograd.record(train_mode=False):
    assert state() == (True, False)
with autograd.train_mode():
    assert state() == (False, True)
a, b = np.ones(2), np.full(2, 3.0)
ga, gb = np.zeros(2), np.zeros(2)
autograd.mark_variables([a, b], [ga, gb])
with autograd.record():
    c = a * b
autograd.backward([c])
assert ga.tolist() == [3.0, 3.0] and gb.tolist() == [1.0, 1.0]
for bad in (lambda: c.backward(), lambda: np.ones(2).backward()):
    try:
        bad()
    except mx.MXNetError:
        pass
    else:
        raise AssertionError
