"""Parts of Gluon that have not arrived are named as such where a program asks for them."""

import importlib

import numpy as onp
import pytest

from mxnp import gluon, np
from mxnp._missing import NOT_ARRIVED
from mxnp.error import MXNetError


@pytest.mark.parametrize("module", NOT_ARRIVED)
def test_a_name_is_missing_or_there(module):
    """Every name of the table says so where it is asked for, and is taken out of the table once it arrives."""
    owner = importlib.import_module(module)
    names = NOT_ARRIVED[module].split()
    assert names == sorted(set(names))
    assert [name for name in names if name in vars(owner)] == [], "arrived: take them out of mxnp._missing"
    for name in names:
        with pytest.raises(AttributeError, match=rf"^{module}\.{name} has not arrived in mxnp yet") as caught:
            getattr(owner, name)
        assert isinstance(caught.value, MXNetError)


@pytest.mark.parametrize(("ours", "theirs"), [(np, onp), (np.linalg, onp.linalg), (np.random, onp.random)])
def test_names_that_numpy_has(ours, theirs):
    missing = [name for name in dir(theirs) if not name.startswith("_") and name not in vars(ours)]
    for name in missing:
        text = rf"{ours.__name__}\.{name} has not arrived in mxnp yet\nhint: {theirs.__name__}\.{name} itself may"
        with pytest.raises(NotImplementedError, match=text):
            getattr(ours, name)
        assert not hasattr(ours, name)


def test_names_that_nobody_knows():
    for module, name in ((gluon.nn, "Dens"), (np, "arrray"), (np, "_nothing")):
        with pytest.raises(AttributeError, match=rf"module '{module.__name__}' has no attribute '{name}'"):
            getattr(module, name)
