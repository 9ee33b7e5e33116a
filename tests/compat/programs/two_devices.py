"""Training on several devices from scratch: parameters copied, gradients summed by hand, batches split."""

import mxnet as mx
from mxnet import autograd, gluon, np, npx

npx.set_np()
mx.random.seed(21)
devices = [mx.cpu(0), mx.cpu(1)]


def try_gpu(i=0):
    return npx.gpu(i) if npx.num_gpus() >= i + 1 else npx.cpu()


assert try_gpu() in (npx.cpu(), npx.gpu(0))
W1 = np.random.normal(scale=0.1, size=(20, 4, 3, 3))[:, :1]
b1 = np.zeros(20)
W2 = np.random.normal(scale=0.1, size=(20 * 3 * 3, 10))
b2 = np.zeros(10)
params = [W1, b1, W2, b2]


def lenet(X, params):
    h = npx.convolution(data=X, weight=params[0], bias=params[1], kernel=(3, 3), num_filter=20)
    h = npx.relu(h)
    h = npx.pooling(data=h, pool_type="avg", kernel=(2, 2), stride=(2, 2))
    h = h.reshape(h.shape[0], -1)
    return np.dot(h, params[2]) + params[3]


loss = gluon.loss.SoftmaxCrossEntropyLoss()


def get_params(params, device):
    new_params = [p.copyto(device) for p in params]
    for p in new_params:
        p.attach_grad()
    return new_params


def allreduce(data):
    for i in range(1, len(data)):
        data[0][:] += data[i].copyto(data[0].ctx)
    for i in range(1, len(data)):
        data[0].copyto(data[i])


new = get_params(params, devices[1])
assert new[1].ctx == devices[1] and new[1].grad.ctx == devices[1]
data = [np.ones((1, 2), ctx=devices[i]) * (i + 1) for i in range(2)]
allreduce(data)
assert data[0].tolist() == data[1].tolist() == [[3.0, 3.0]]
assert [d.ctx for d in data] == devices

X, y = np.random.normal(size=(32, 1, 8, 8)), np.arange(32) % 10


def train_batch(X, y, device_params, devices, lr):
    X_shards = gluon.utils.split_and_load(X, devices)
    y_shards = gluon.utils.split_and_load(y, devices)
    with autograd.record():
        losses = [loss(lenet(Xs, W), ys) for Xs, ys, W in zip(X_shards, y_shards, device_params)]
    for l in losses:
        l.backward()
    for i in range(len(device_params[0])):
        allreduce([device_params[c][i].grad for c in range(len(devices))])
    for param in device_params:
        for p in param:
            p[:] = p - lr * p.grad / X.shape[0]
    return sum(float(l.sum()) for l in losses) / X.shape[0]


single = [get_params(params, mx.cpu(0))]
both = [get_params(params, d) for d in devices]
one = [train_batch(X, y, single, [mx.cpu(0)], 0.2) for _ in range(4)]
two = [train_batch(X, y, both, devices, 0.2) for _ in range(4)]
print(one, two)
assert one[-1] < one[0]
assert max(abs(a - b) for a, b in zip(one, two)) < 1e-4
assert np.abs(both[0][0].as_in_ctx(mx.cpu(1)) - both[1][0]).max() == 0
moved = both[0][0].as_in_ctx(devices[0])
assert moved is both[0][0]
