"""Parts of Gluon that have not arrived are named as such where a program asks for them."""

import importlib

import pytest

from mxnp import gluon
from mxnp.error import MXNetError


@pytest.mark.parametrize(
    "path",
    ["nn.GroupNorm", "nn.SymbolBlock", "loss.CTCLoss", "data.RecordFileDataset", "data.vision.CIFAR10"]
    + ["data.vision.datasets.CIFAR100", "data.vision.transforms.Resize", "SymbolBlock", "block.SymbolBlock"],
)
def test_missing_names_say_so(path):
    check_missing(f"mxnp.gluon.{path}")


@pytest.mark.parametrize("path", ["mxnp.AttrScope", "mxnp.test_utils.check_consistency"])
def test_missing_names_elsewhere(path):
    check_missing(path)


def check_missing(path):
    module, _, name = path.rpartition(".")
    owner = importlib.import_module(module)
    with pytest.raises(AttributeError, match=rf"{module}\.{name} has not arrived in mxnp yet") as caught:
        getattr(owner, name)
    assert isinstance(caught.value, MXNetError)
    assert not hasattr(owner, name)


def test_names_that_nobody_knows():
    with pytest.raises(AttributeError, match=r"module 'mxnp\.gluon\.nn' has no attribute 'Dens'"):
        _ = gluon.nn.Dens


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("export", ("net",)),
        ("optimize_for", (None,)),
        ("infer_type", (None,)),
        ("register_op_hook", (print, True)),
    ],
)
def test_methods_that_need_graphs(method, arguments):
    with pytest.raises(MXNetError, match=rf"Dense\.{method} has not arrived in mxnp yet\nhint: ") as caught:
        getattr(gluon.nn.Dense(1), method)(*arguments)
    assert isinstance(caught.value, NotImplementedError)
