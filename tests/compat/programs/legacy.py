"""Gluon code as 1.x programs write it: prefixes, name scopes, params.get, hybrid_forward, ctx, mx.metric."""

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(33)
ctx = mx.cpu()


class Scaled(gluon.HybridBlock):
    def __init__(self, units, in_units=0, weight_initializer=None, **kwargs):
        super(Scaled, self).__init__(**kwargs)
        with self.name_scope():
            self.weight = self.params.get(
                "weight", shape=(units, in_units), init=weight_initializer, allow_deferred_init=True
            )
            self.scale = self.params.get_constant("scale", [[2.0]])

    def infer_shape(self, x):
        self.weight.shape = (self.weight.shape[0], x.shape[1])

    def hybrid_forward(self, F, x, weight, scale):
        assert F.np is np and F.npx is npx
        return F.np.dot(x, weight.T) * scale


class Net(gluon.HybridBlock):
    def __init__(self, **kwargs):
        super(Net, self).__init__(**kwargs)
        with self.name_scope():
            self.fc1 = nn.Dense(16, activation="tanh", prefix="first_")
            self.fc2 = Scaled(3, weight_initializer=mx.init.Xavier(magnitude=2.24))

    def hybrid_forward(self, F, x):
        return self.fc2(self.fc1(x))


class HalfL1(gluon.loss.Loss):
    def __init__(self, weight=0.5, batch_axis=0, **kwargs):
        super(HalfL1, self).__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        return self._weight * F.np.mean(F.np.abs(pred - label), axis=1)


net = Net(prefix="net_")
assert (net.prefix, net.name, net.fc1.prefix, net.fc1.name) == ("net_", "net", "net_first_", "net_first")
net.collect_params().initialize(mx.init.Uniform(0.1), ctx=ctx)
net.hybridize(static_alloc=True, static_shape=True)
params = net.collect_params()
assert params["fc2.weight"].shape in ((3, 0), (3, -1))
data = np.random.normal(size=(64, 5), ctx=ctx)
label = (data[:, :3]).argmax(axis=1)
net(data)
assert params["fc2.weight"].shape == (3, 16) and params["fc2.scale"].grad_req == "null"
assert sorted(params.keys()) == ["fc1.bias", "fc1.weight", "fc2.scale", "fc2.weight"]
trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.5, "momentum": 0.9}, kvstore=None)
loss = gluon.loss.SoftmaxCrossEntropyLoss()
metric = mx.metric.CompositeEvalMetric()
for child in (mx.metric.Accuracy(), mx.metric.create("ce"), mx.metric.TopKAccuracy(top_k=2)):
    metric.add(child)
for epoch in range(20):
    metric.reset()
    for batch in gluon.data.DataLoader(gluon.data.ArrayDataset(data, label), 16, shuffle=True, num_workers=0):
        x = gluon.utils.split_and_load(batch[0], ctx_list=[ctx], batch_axis=0)
        y = gluon.utils.split_and_load(batch[1], ctx_list=[ctx], batch_axis=0)
        outputs = []
        with autograd.record():
            for a, b in zip(x, y):
                z = net(a)
                l = loss(z, b)
                l.backward()
                outputs.append(npx.softmax(z))
        metric.update(y, outputs)
        trainer.step(batch[0].shape[0])
names, values = metric.get()
print(dict(zip(names, values)))
assert names == ["accuracy", "cross-entropy", "top_k_accuracy_2"]
assert values[0] > 0.9 and values[2] >= values[0]
assert HalfL1()(data, data + 1).asnumpy().round(4).tolist() == [0.5] * 64
params.setattr("grad_req", "add")
assert params["fc1.weight"].grad_req == "add"
params.zero_grad()
params.reset_ctx([mx.cpu(0), mx.cpu(1)])
assert params["fc1.weight"].list_ctx() == [mx.cpu(0), mx.cpu(1)]
total = sum(p.data().asnumpy().sum() for p in params.values())
assert abs(total - sum(float(p.data(mx.cpu(1)).sum()) for p in params.values())) < 1e-3
assert np.array([7]).asscalar() == 7 and data.as_in_context(ctx) is data and data.context == ctx
assert net.params.get("fresh", shape=(1,)).name
try:
    Net().collect_params()["fc1.weight"].data()
except RuntimeError as e:
    assert "initialized" in str(e)
else:
    raise AssertionError
