"""A recurrent network from scratch: one-hot inputs, a loop over steps, clipped gradients, detached state."""

import math

import mxnet as mx
from mxnet import autograd, gluon, np, npx

npx.set_np()
mx.random.seed(23)
vocab_size, num_hiddens = 8, 32
text = [0, 1, 2, 3, 4, 5, 6, 7] * 40


def get_params(device):
    def normal(shape):
        return np.random.normal(scale=0.1, size=shape, ctx=device)

    params = [
        normal((vocab_size, num_hiddens)),
        normal((num_hiddens, num_hiddens)),
        np.zeros(num_hiddens, ctx=device),
    ]
    params += [normal((num_hiddens, vocab_size)), np.zeros(vocab_size, ctx=device)]
    for param in params:
        param.attach_grad()
    return params


def rnn(inputs, state, params):
    W_xh, W_hh, b_h, W_hq, b_q = params
    (H,) = state
    outputs = []
    for X in inputs:
        H = np.tanh(np.dot(X, W_xh) + np.dot(H, W_hh) + b_h)
        outputs.append(np.dot(H, W_hq) + b_q)
    return np.concatenate(outputs, axis=0), (H,)


def grad_clipping(params, theta):
    norm = math.sqrt(sum((p.grad**2).sum() for p in params))
    if norm > theta:
        for param in params:
            param.grad[:] *= theta / norm


device = mx.cpu()
params = get_params(device)
loss = gluon.loss.SoftmaxCrossEntropyLoss()
corpus = np.array(text)
X = corpus[:64].reshape(2, 32)
Y = corpus[1:65].reshape(2, 32)
state = (np.zeros((2, num_hiddens), ctx=device),)
perplexity = []
for step in range(60):
    for s in state:
        s.detach()
    part = slice(8 * (step % 4), 8 * (step % 4) + 8)
    with autograd.record():
        y_hat, state = rnn(npx.one_hot(X[:, part].T, vocab_size), [s.detach() for s in state], params)
        l = loss(y_hat, Y[:, part].T.reshape(-1)).mean()
    l.backward()
    grad_clipping(params, 1)
    for p in params:
        p[:] = p - 1.0 * p.grad
    perplexity.append(math.exp(float(l)))
print(round(perplexity[0], 2), round(perplexity[-1], 2))
assert 7 < perplexity[0] < 9
assert perplexity[-1] < 1.5
outputs, state = [3], (np.zeros((1, num_hiddens)),)
for _ in range(8):
    y, state = rnn(npx.one_hot(np.array([[outputs[-1]]]), vocab_size), state, params)
    outputs.append(int(y.argmax(axis=1).reshape(1)))
print(outputs)
assert outputs == [3, 4, 5, 6, 7, 0, 1, 2, 3]
