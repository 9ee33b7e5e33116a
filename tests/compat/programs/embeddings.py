"""Word embeddings by negative sampling, and matrix factorisation: Embedding, batch_dot, masked losses."""

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(29)


def skip_gram(center, contexts_and_negatives, embed_v, embed_u):
    v = embed_v(center)
    u = embed_u(contexts_and_negatives)
    return npx.batch_dot(v, u.swapaxes(1, 2))


embed = nn.Embedding(input_dim=20, output_dim=4)
embed.initialize()
assert embed.weight.shape == (20, 4)
assert embed(np.array([[1, 2, 3], [4, 5, 6]])).shape == (2, 3, 4)
assert skip_gram(np.ones((2, 1)), np.ones((2, 4)), embed, embed).shape == (2, 1, 4)
loss = gluon.loss.SigmoidBCELoss()
pred = np.array([[1.1, -2.2, 3.3, -4.4]] * 2)
label = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
masked = (loss(pred, label, mask) * mask.shape[1] / mask.sum(axis=1)).asnumpy().round(4).tolist()
print(masked)
assert [round(v, 3) for v in masked] == [0.935, 1.846]
net = nn.Sequential()
net.add(nn.Embedding(20, 8), nn.Embedding(20, 8))
net.initialize(mx.init.Uniform(0.5))
trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
center = np.arange(16).reshape(16, 1)
contexts = np.concatenate([(center + 1) % 20, (center + 7) % 20, (center + 3) % 20], axis=1)
target = np.array([[1, 0, 0]] * 16)
losses = []
for _ in range(30):
    with autograd.record():
        p = skip_gram(center, contexts, net[0], net[1])
        l = loss(p.reshape(target.shape), target).sum()
    l.backward()
    trainer.step(16)
    losses.append(float(l))
print(round(losses[0], 2), round(losses[-1], 2))
assert losses[-1] < losses[0] / 3


class MF(nn.Block):
    def __init__(self, num_factors, num_users, num_items, **kwargs):
        super().__init__(**kwargs)
        self.P = nn.Embedding(num_users, num_factors)
        self.Q = nn.Embedding(num_items, num_factors)
        self.user_bias = nn.Embedding(num_users, 1)
        self.item_bias = nn.Embedding(num_items, 1)

    def forward(self, user_id, item_id):
        outputs = (self.P(user_id) * self.Q(item_id)).sum(axis=1)
        outputs = outputs + np.squeeze(self.user_bias(user_id)) + np.squeeze(self.item_bias(item_id))
        return outputs.flatten()


mf = MF(4, 6, 5)
mf.initialize(mx.init.Normal(0.1))
users, items = np.arange(30) % 6, np.arange(30) % 5
ratings = (users + items) / 4
data = gluon.data.DataLoader(
    gluon.data.ArrayDataset(users, items, ratings), 10, shuffle=True, last_batch="rollover"
)
trainer = gluon.Trainer(mf.collect_params(), "adam", {"learning_rate": 0.05, "wd": 1e-5})
l2 = gluon.loss.L2Loss()
for epoch in range(25):
    total = 0.0
    for u, i, r in data:
        with autograd.record():
            l = l2(mf(u, i), r)
        l.backward()
        trainer.step(len(u))
        total += float(l.mean())
print(round(total, 4))
assert total < 0.1
