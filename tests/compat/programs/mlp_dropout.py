"""An MLP with dropout, from scratch and with layers; weight decay by wd_mult and setattr."""

import mxnet as mx
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(7)


def dropout_layer(X, dropout):
    assert 0 <= dropout <= 1
    if dropout == 1:
        return np.zeros_like(X)
    if dropout == 0:
        return X
    mask = np.random.uniform(0, 1, X.shape) > dropout
    return mask.astype(np.float32) * X / (1.0 - dropout)


X = np.arange(16).reshape(2, 8)
assert (dropout_layer(X, 0) == X).all() and (dropout_layer(X, 1) == 0).all()
half = dropout_layer(X, 0.5)
assert ((half == 0) | (half == 2 * X)).all()

net = nn.Sequential()
net.add(
    nn.Dense(64, activation="relu"),
    nn.Dropout(0.2),
    nn.Dense(32, activation="relu"),
    nn.Dropout(0.5),
    nn.Dense(3),
)
net.initialize(init.Normal(sigma=0.1))
data = np.random.normal(size=(300, 10))
label = (data[:, :3]).argmax(axis=1)
same = net(data[:4])
assert (net(data[:4]) == same).all(), "no dropout outside record"
with autograd.record():
    a, b = net(data), net(data)
assert not (a == b).all()
with autograd.record(train_mode=False):
    a, b = net(data), net(data)
assert (a == b).all()
with autograd.train_mode():
    assert not (net(data) == net(data)).all()

for param in net.collect_params(".*bias").values():
    param.wd_mult = 0
assert net[0].bias.wd_mult == 0 and net[0].weight.wd_mult == 1
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5, "wd": 1e-4})
loss = gluon.loss.SoftmaxCrossEntropyLoss()
history = []
for epoch in range(60):
    with autograd.record():
        l = loss(net(data), label)
    l.backward()
    trainer.step(len(data))
    history.append(float(l.mean()))
print("loss", round(history[0], 3), "->", round(history[-1], 3))
assert abs(history[0] - 1.0986) < 0.3
acc = float((net(data).argmax(axis=1) == label).astype("float32").mean())
assert acc > 0.8, acc
