"""Linear regression with Gluon: ArrayDataset, DataLoader, Dense, L2Loss, Trainer, parameter access."""

import mxnet as mx
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import loss as gloss
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(3)
true_w, true_b = np.array([2, -3.4]), 4.2
X = np.random.normal(0, 1, (500, 2))
Y = (np.dot(X, true_w) + true_b).reshape(-1, 1)


def load_array(data_arrays, batch_size, is_train=True):
    dataset = gluon.data.ArrayDataset(*data_arrays)
    return gluon.data.DataLoader(dataset, batch_size, shuffle=is_train)


data_iter = load_array((X, Y), 10)
first = next(iter(data_iter))
assert [a.shape for a in first] == [(10, 2), (10, 1)]
net = nn.Sequential()
net.add(nn.Dense(1))
net.initialize(init.Normal(sigma=0.01))
loss = gloss.L2Loss()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.03})
for epoch in range(8):
    for x, y in data_iter:
        with autograd.record():
            l = loss(net(x), y)
        l.backward()
        trainer.step(10)
    l = loss(net(X), Y)
    print("epoch %d, loss: %f" % (epoch + 1, float(l.mean())))
assert l.shape == (500,)
assert float(l.mean()) < 1e-3
w = net[0].weight.data()
assert np.abs(true_w.reshape(w.shape) - w).max() < 0.02
assert abs(float(net[0].bias.data()) - true_b) < 0.02
assert net[0].weight.grad().shape == (1, 2)
