"""Attention: masked softmax, additive and dot-product scores, several heads, positions, a Transformer's block."""

import math

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(25)


def masked_softmax(X, valid_lens):
    if valid_lens is None:
        return npx.softmax(X)
    shape = X.shape
    if valid_lens.ndim == 1:
        valid_lens = valid_lens.repeat(shape[1])
    else:
        valid_lens = valid_lens.reshape(-1)
    X = npx.sequence_mask(X.reshape(-1, shape[-1]), valid_lens, True, value=-1e6, axis=1)
    return npx.softmax(X).reshape(shape)


w = masked_softmax(np.random.uniform(size=(2, 2, 4)), np.array([2, 3]))
assert (w[0, :, 2:] == 0).all() and (w[1, :, 3:] == 0).all() and np.abs(w.sum(-1) - 1).max() < 1e-6
w = masked_softmax(np.random.uniform(size=(2, 2, 4)), np.array([[1, 3], [2, 4]]))
assert w[0, 0].tolist() == [1.0, 0.0, 0.0, 0.0]


class AdditiveAttention(nn.Block):
    def __init__(self, num_hiddens, dropout, **kwargs):
        super().__init__(**kwargs)
        self.W_k = nn.Dense(num_hiddens, use_bias=False, flatten=False)
        self.W_q = nn.Dense(num_hiddens, use_bias=False, flatten=False)
        self.w_v = nn.Dense(1, use_bias=False, flatten=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens):
        queries, keys = self.W_q(queries), self.W_k(keys)
        features = np.expand_dims(queries, axis=2) + np.expand_dims(keys, axis=1)
        scores = np.squeeze(self.w_v(np.tanh(features)), axis=-1)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return npx.batch_dot(self.dropout(self.attention_weights), values)


class DotProductAttention(nn.Block):
    def __init__(self, dropout, **kwargs):
        super().__init__(**kwargs)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        d = queries.shape[-1]
        scores = npx.batch_dot(queries, keys, transpose_b=True) / math.sqrt(d)
        self.attention_weights = masked_softmax(scores, valid_lens)
        return npx.batch_dot(self.dropout(self.attention_weights), values)


keys, values = np.ones((2, 10, 2)), np.arange(40).reshape(1, 10, 4).repeat(2, axis=0)
valid_lens = np.array([2, 6])
expected = [[[2, 3, 4, 5]], [[10, 11, 12, 13]]]
for attention, size in (
    (AdditiveAttention(num_hiddens=8, dropout=0.1), 20),
    (DotProductAttention(dropout=0.5), 2),
):
    attention.initialize()
    out = attention(np.random.normal(size=(2, 1, size)), keys, values, valid_lens)
    assert np.abs(out - np.array(expected)).max() < 1e-4, out


def transpose_qkv(X, num_heads):
    X = X.reshape(X.shape[0], X.shape[1], num_heads, -1)
    X = X.transpose(0, 2, 1, 3)
    return X.reshape(-1, X.shape[2], X.shape[3])


def transpose_output(X, num_heads):
    X = X.reshape(-1, num_heads, X.shape[1], X.shape[2])
    X = X.transpose(0, 2, 1, 3)
    return X.reshape(X.shape[0], X.shape[1], -1)


class MultiHeadAttention(nn.Block):
    def __init__(self, num_hiddens, num_heads, dropout, use_bias=False, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.attention = DotProductAttention(dropout)
        for name in ("W_q", "W_k", "W_v", "W_o"):
            setattr(self, name, nn.Dense(num_hiddens, use_bias=use_bias, flatten=False))

    def forward(self, queries, keys, values, valid_lens):
        queries = transpose_qkv(self.W_q(queries), self.num_heads)
        keys = transpose_qkv(self.W_k(keys), self.num_heads)
        values = transpose_qkv(self.W_v(values), self.num_heads)
        if valid_lens is not None:
            valid_lens = valid_lens.repeat(self.num_heads, axis=0)
        output = self.attention(queries, keys, values, valid_lens)
        return self.W_o(transpose_output(output, self.num_heads))


class PositionalEncoding(nn.Block):
    def __init__(self, num_hiddens, dropout, max_len=1000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.P = np.zeros((1, max_len, num_hiddens))
        X = np.arange(max_len).reshape(-1, 1) / np.power(10000, np.arange(0, num_hiddens, 2) / num_hiddens)
        self.P[:, :, 0::2] = np.sin(X)
        self.P[:, :, 1::2] = np.cos(X)

    def forward(self, X):
        X = X + self.P[:, : X.shape[1], :].as_in_ctx(X.ctx)
        return self.dropout(X)


class AddNorm(nn.Block):
    def __init__(self, dropout, **kwargs):
        super().__init__(**kwargs)
        self.dropout = nn.Dropout(dropout)
        self.ln = nn.LayerNorm()

    def forward(self, X, Y):
        return self.ln(self.dropout(Y) + X)


class EncoderBlock(nn.Block):
    def __init__(self, num_hiddens, ffn, num_heads, dropout, **kwargs):
        super().__init__(**kwargs)
        self.attention = MultiHeadAttention(num_hiddens, num_heads, dropout)
        self.addnorm1, self.addnorm2 = AddNorm(dropout), AddNorm(dropout)
        self.dense1, self.dense2 = (
            nn.Dense(ffn, flatten=False, activation="relu"),
            nn.Dense(num_hiddens, flatten=False),
        )

    def forward(self, X, valid_lens):
        Y = self.addnorm1(X, self.attention(X, X, X, valid_lens))
        return self.addnorm2(Y, self.dense2(self.dense1(Y)))


class Encoder(nn.Block):
    def __init__(self, vocab, num_hiddens, layers):
        super().__init__()
        self.num_hiddens = num_hiddens
        self.embedding = nn.Embedding(vocab, num_hiddens)
        self.pos = PositionalEncoding(num_hiddens, 0.1)
        self.blks = nn.Sequential()
        for _ in range(layers):
            self.blks.add(EncoderBlock(num_hiddens, 32, 4, 0.1))
        self.out = nn.Dense(vocab, flatten=False)

    def forward(self, X, valid_lens):
        X = self.pos(self.embedding(X) * math.sqrt(self.num_hiddens))
        for blk in self.blks:
            X = blk(X, valid_lens)
        return self.out(X)


pos = PositionalEncoding(20, 0)
pos.initialize()
P = pos(np.zeros((1, 100, 20)))
assert abs(float(P[0, 3, 0]) - math.sin(3)) < 1e-5 and abs(float(P[0, 3, 1]) - math.cos(3)) < 1e-5
net = Encoder(12, 16, 2)
net.initialize(mx.init.Xavier())
tokens, lens = np.random.randint(0, 12, size=(8, 6)), np.array([6] * 7 + [4])
loss = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.02})
losses = []
for _ in range(25):
    with autograd.record():
        l = loss(net(tokens, lens), tokens)
    l.backward()
    trainer.step(8)
    losses.append(float(l.mean()))
print(round(losses[0], 3), round(losses[-1], 3))
assert 2 < losses[0] < 5 and losses[-1] < 0.5
assert "blks.0.attention.W_q.weight" in net.collect_params()
