"""Parts of Gluon that have not arrived are named as such where a program asks for them."""

import importlib

import pytest

from mxnp import gluon
from mxnp.error import MXNetError


@pytest.mark.parametrize(
    "path",
    ["nn.GroupNorm", "nn.SymbolBlock", "loss.CTCLoss", "data.RecordFileDataset", "data.vision.CIFAR10"]
    + ["data.vision.datasets.CIFAR100", "data.vision.transforms.Resize"],
)
def test_missing_names_say_so(path):
    module, _, name = f"mxnp.gluon.{path}".rpartition(".")
    owner = importlib.import_module(module)
    with pytest.raises(AttributeError, match=rf"{module}\.{name} has not arrived in mxnp yet") as caught:
        getattr(owner, name)
    assert isinstance(caught.value, MXNetError)
    assert not hasattr(owner, name)


def test_names_that_nobody_knows():
    with pytest.raises(AttributeError, match=r"module 'mxnp\.gluon\.nn' has no attribute 'Dens'"):
        _ = gluon.nn.Dens
