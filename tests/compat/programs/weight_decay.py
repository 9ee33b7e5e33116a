"""Weight decay on a regression with more inputs than samples: by a penalty, and by the optimizer's `wd`."""

import mxnet as mx
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(29)
n_train, n_test, num_inputs, batch_size = 20, 100, 200, 5
true_w, true_b = np.ones((num_inputs, 1)) * 0.01, 0.05
X = np.random.normal(0, 1, (n_train + n_test, num_inputs))
y = np.dot(X, true_w) + true_b
y += np.random.normal(0, 0.01, y.shape)
train = gluon.data.DataLoader(gluon.data.ArrayDataset(X[:n_train], y[:n_train]), batch_size, shuffle=True)
X_test, y_test = X[n_train:], y[n_train:]


def l2_penalty(w):
    return (w**2).sum() / 2


def scratch(lambd):
    w, b = np.random.normal(scale=1, size=(num_inputs, 1)), np.zeros(1)
    w.attach_grad()
    b.attach_grad()
    for _ in range(60):
        for features, labels in train:
            with autograd.record():
                squared = (np.dot(features, w) + b - labels.reshape(-1, 1)) ** 2 / 2
                loss = squared + lambd * l2_penalty(w)
            loss.backward()
            for param in (w, b):
                param[:] -= 0.003 * param.grad / batch_size
    return float(np.sqrt((w**2).sum()))


def concise(wd):
    net = nn.Sequential()
    net.add(nn.Dense(1))
    net.initialize(init.Normal(sigma=1))
    loss_fn = gluon.loss.L2Loss()
    for param in net.collect_params(".*bias").values():
        param.wd_mult = 0
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.003, "wd": wd})
    for _ in range(60):
        for features, labels in train:
            with autograd.record():
                loss = loss_fn(net(features), labels)
            loss.backward()
            trainer.step(batch_size)
    assert net[0].bias.wd_mult == 0
    return float(np.linalg.norm(net[0].weight.data())), float(loss_fn(net(X_test), y_test).mean())


free, decayed = scratch(0), scratch(3)
assert decayed < 0.5 * free, (free, decayed)
(free, test_free), (decayed, test_decayed) = concise(0), concise(3)
assert decayed < 0.5 * free and test_decayed < test_free, (free, decayed, test_free, test_decayed)
print("norms without and with weight decay:", round(free, 2), round(decayed, 2))
