"""LeNet as the book trains it: batches split over two CPU devices, a d2l-like loop and evaluation."""

import mxnet as mx
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(9)
net = nn.Sequential()
net.add(
    nn.Conv2D(channels=6, kernel_size=5, padding=2, activation="sigmoid"),
    nn.AvgPool2D(pool_size=2, strides=2),
    nn.Conv2D(channels=16, kernel_size=5, activation="sigmoid"),
    nn.AvgPool2D(pool_size=2, strides=2),
    nn.Dense(120, activation="sigmoid"),
    nn.Dense(84, activation="sigmoid"),
    nn.Dense(10),
)
X = np.random.uniform(size=(1, 1, 28, 28))
net.initialize()
shapes = []
for layer in net:
    X = layer(X)
    shapes.append(X.shape)
assert shapes == [
    (1, 6, 28, 28),
    (1, 6, 14, 14),
    (1, 16, 10, 10),
    (1, 16, 5, 5),
    (1, 120),
    (1, 84),
    (1, 10),
], shapes

devices = [mx.cpu(0), mx.cpu(1)]
net.initialize(force_reinit=True, ctx=devices, init=init.Xavier())
label = np.arange(64) % 10
images = np.random.uniform(0, 0.3, size=(64, 1, 28, 28))
for i in range(64):
    k = int(label[i])
    images[i, 0, 2 * k : 2 * k + 6, 4:24] += 0.9
train_iter = gluon.data.DataLoader(gluon.data.ArrayDataset(images, label), 32, shuffle=True)
loss = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.005})


def split_batch(X, y, devices):
    assert X.shape[0] == y.shape[0]
    return gluon.utils.split_and_load(X, devices), gluon.utils.split_and_load(y, devices)


def train_batch(features, labels):
    Xs, ys = split_batch(features, labels, devices)
    assert [x.ctx for x in Xs] == devices
    with autograd.record():
        pys = [net(X) for X in Xs]
        ls = [loss(py, y) for py, y in zip(pys, ys)]
    for l in ls:
        l.backward()
    trainer.step(features.shape[0])
    return sum(float(l.sum()) for l in ls)


history = []
for epoch in range(6):
    history.append(sum(train_batch(X, y) for X, y in train_iter) / 64)
print([round(h, 3) for h in history])
assert 1.9 < history[0] < 3.5
weights = net[0].weight.list_data()
assert [w.ctx for w in weights] == devices
assert (weights[0].asnumpy() == weights[1].asnumpy()).all()
assert not (net[0].weight.data(mx.cpu(0)).asnumpy() == 0).all()
assert len(net[0].weight.list_grad()) == 2
