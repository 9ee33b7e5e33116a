"""What several of Gluon's tests share: a one-layer network, its trainer and backward pass, the shapes of a block."""

import mxnp as mx
from mxnp import autograd, gluon, np

DEVICES = [mx.cpu(0), mx.cpu(1)]


def dense(units=2, in_units=3, device=None):
    net = gluon.nn.Dense(units, in_units=in_units)
    net.initialize(mx.init.One(), device=device)
    return net


def trainer_of(net, name="sgd", arguments=None, **kwargs):
    return gluon.Trainer(net.collect_params(), name, arguments or {"learning_rate": 0.5}, **kwargs)


def backward(net, value=1.0, rows=4, in_units=3):
    with autograd.record():
        loss = net(np.full((rows, in_units), value)).sum()
    loss.backward()


def backward_on(net, devices=DEVICES, values=(1.0, 2.0)):
    with autograd.record():
        losses = [net(np.full((2, 3), v, device=d)).sum() for d, v in zip(devices, values, strict=True)]
    autograd.backward(losses)


def shapes(layer):
    """The shapes of all parameters."""
    return {name: p.shape for name, p in layer.collect_params().items()}
