"""What help(), dir() and tab completion show: every public name documented, and nothing that is not MXNet's."""

import inspect

import pytest

import mxnp
from mxnp import autograd, gluon, np, npx

NAMESPACES = [mxnp, np, npx, np.random, np.linalg, autograd, gluon, gluon.nn, gluon.data, gluon.data.vision]
NAMESPACES += [gluon.loss, gluon.metric, gluon.utils, mxnp.random, mxnp.test_utils, mxnp.initializer]
NAMESPACES += [mxnp.lr_scheduler, mxnp.optimizer, mxnp.device]


@pytest.mark.parametrize("module", NAMESPACES, ids=lambda module: module.__name__)
def test_public_names_are_documented(module):
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    bare = [
        name
        for name in names
        if (callable(getattr(module, name)) or inspect.ismodule(getattr(module, name)))
        and not inspect.getdoc(getattr(module, name))
    ]
    assert bare == []


@pytest.mark.parametrize("module", [mxnp, np, npx, gluon, gluon.nn, gluon.data], ids=lambda m: m.__name__)
def test_completion_offers_no_helpers(module):
    assert {"Any", "annotations", "importlib", "refuse", "sys", "os"}.isdisjoint(dir(module))


@pytest.mark.parametrize("name", [name for name in dir(np.ndarray) if not name.startswith("_")])
def test_attributes_of_arrays_are_documented(name):
    attribute = inspect.getattr_static(np.ndarray, name)
    assert isinstance(attribute, str) or inspect.getdoc(getattr(np.ndarray, name))


def test_no_attribute_raises_when_read():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(2))
    for thing in (net, net[0], np.ones((2, 2)), mxnp.cpu()):
        for name in dir(thing):
            getattr(thing, name)
