"""Softmax regression from scratch, with an accumulator and accuracy as the book writes them."""

import mxnet as mx
from mxnet import autograd, gluon, np, npx

npx.set_np()
mx.random.seed(5)
centres = np.random.normal(0, 3, (4, 8))
label = np.random.randint(0, 4, (400,))
data = centres[label] + np.random.normal(0, 0.5, (400, 8))


class Accumulator:
    def __init__(self, n):
        self.data = [0.0] * n

    def add(self, *args):
        self.data = [a + float(b) for a, b in zip(self.data, args)]

    def __getitem__(self, idx):
        return self.data[idx]


def softmax(X):
    X_exp = np.exp(X)
    partition = X_exp.sum(1, keepdims=True)
    return X_exp / partition


def net(X):
    return softmax(np.dot(X.reshape((-1, W.shape[0])), W) + b)


def cross_entropy(y_hat, y):
    return -np.log(y_hat[range(len(y_hat)), y])


def accuracy(y_hat, y):
    if len(y_hat.shape) > 1 and y_hat.shape[1] > 1:
        y_hat = y_hat.argmax(axis=1)
    cmp = y_hat.astype(y.dtype) == y
    return float(cmp.astype(y.dtype).sum())


y = np.array([0, 2])
y_hat = np.array([[0.1, 0.3, 0.6], [0.3, 0.2, 0.5]])
assert np.allclose(y_hat[[0, 1], y], np.array([0.1, 0.5]))
assert accuracy(y_hat, y) / len(y) == 0.5
assert np.allclose(cross_entropy(y_hat, y), np.array([2.3025851, 0.6931472]))
p = softmax(np.random.normal(size=(2, 5)))
assert np.allclose(p.sum(axis=1), np.ones(2), atol=1e-5)

W = np.random.normal(0, 0.01, (8, 4))
b = np.zeros(4)
W.attach_grad()
b.attach_grad()
train_iter = gluon.data.DataLoader(gluon.data.ArrayDataset(data, label), 32, shuffle=True)
for epoch in range(3):
    metric = Accumulator(3)
    for X, y in train_iter:
        with autograd.record():
            l = cross_entropy(net(X), y)
        l.backward()
        for param in (W, b):
            param[:] = param - 0.1 * param.grad / X.shape[0]
        metric.add(l.sum(), accuracy(net(X), y), y.size)
    print(f"loss {metric[0] / metric[2]:.3f}, acc {metric[1] / metric[2]:.3f}")
assert metric[0] / metric[2] < 0.2
assert metric[1] / metric[2] > 0.95
