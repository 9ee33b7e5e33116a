"""Linear regression from scratch: data, minibatches, model, loss and SGD written by hand."""

import random

import mxnet as mx
from mxnet import autograd, np, npx

npx.set_np()
mx.random.seed(1)
random.seed(1)


def synthetic_data(w, b, num_examples):
    X = np.random.normal(0, 1, (num_examples, len(w)))
    y = np.dot(X, w) + b
    y += np.random.normal(0, 0.01, y.shape)
    return X, y.reshape((-1, 1))


def data_iter(batch_size, features, labels):
    num_examples = len(features)
    indices = list(range(num_examples))
    random.shuffle(indices)
    for i in range(0, num_examples, batch_size):
        batch_indices = np.array(indices[i : min(i + batch_size, num_examples)])
        yield features[batch_indices], labels[batch_indices]


def linreg(X, w, b):
    return np.dot(X, w) + b


def squared_loss(y_hat, y):
    return (y_hat - y.reshape(y_hat.shape)) ** 2 / 2


def sgd(params, lr, batch_size):
    for param in params:
        param[:] = param - lr * param.grad / batch_size


true_w, true_b = np.array([2, -3.4]), 4.2
features, labels = synthetic_data(true_w, true_b, 1000)
assert features.shape == (1000, 2) and labels.shape == (1000, 1)
w = np.random.normal(0, 0.01, (2, 1))
b = np.zeros(1)
w.attach_grad()
b.attach_grad()
losses = []
for epoch in range(3):
    for X, y in data_iter(10, features, labels):
        with autograd.record():
            l = squared_loss(linreg(X, w, b), y)
        l.backward()
        sgd([w, b], 0.03, 10)
    train_l = squared_loss(linreg(features, w, b), labels)
    losses.append(float(train_l.mean()))
    print(f"epoch {epoch + 1}, loss {float(train_l.mean()):f}")
assert losses[0] > 5 * losses[1] > losses[2], losses
assert losses[2] < 1e-3
assert np.abs(true_w - w.reshape(true_w.shape)).max() < 0.02
assert abs(true_b - float(b)) < 0.02
