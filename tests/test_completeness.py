"""The tables agree: every core op has its Python face, its spec row, its CUDA row and its gradient, or a reason.

Each reason below is checked too: one that no longer applies fails.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

import numpy as onp
import pytest

import mxnp
from mxnp import _core, _cuda, _ops, np, npx
from specs import FAMILIES, ROWS
from specs.random import NO_VALUES
from specs.row import public

OPS = sorted(_core.op_names())
TABLES = [importlib.import_module(f"mxnp._ops.{m.name}") for m in pkgutil.iter_modules(_ops.__path__)]
STUB = Path(mxnp.__file__).with_name("_core.pyi")

# Core ops that no public function calls by name, and why.
PRIVATE = {
    "index_get_last": "the gradient of index_assign",
    "index_assign": "the recorded form of index_put",
    "slice_assign": "the recorded form of a basic assignment, and a gradient",
    "slice_zero": "the gradient of slice",
    "scatter_along": "the gradient of take_along_axis, sort and topk",
    "slice": "basic indexing is native: x[...]",
    "index_put": "assignment by index arrays is native: x[i] = v",
    "mask_get": "reading by one mask is native: x[mask]",
    "mask_put": "assignment by one mask is native: x[mask] = v",
    "mask_spread": "the gradient of mask_get",
    "scatter_add": "the gradient of take and index_get",
    "_recurrence": "the gradient of cumprod and prod",
    "integer_power": "np.power of integers to exponents that only the data shows",
    "_scale": "what gradients multiply with",
    "_unscale": "what gradients divide with",
    "batch_norm_grad": "the gradient of batch_norm",
    "layer_norm_grad": "the gradient of layer_norm",
    "softmax_grad": "the gradient of softmax",
    "log_softmax_grad": "the gradient of log_softmax",
    "conv_data_grad": "a gradient of convolution",
    "conv_weight_grad": "a gradient of convolution",
    "pool_spread": "the gradient of pooling by means and sums",
    "ctc_grad": "the gradient of ctc_loss",
    "sgd_update": "mxnp.optimizer's",
    "sgd_mom_update": "mxnp.optimizer's",
    "adam_update": "mxnp.optimizer's",
    "normalize": "what group_norm and instance_norm are written with",
    "_squares": "what var and std are written with",
}

# Core ops whose values no row of tests/specs checks, and where they are checked.
NO_ROW = {
    **NO_VALUES,
    "index_get": "x[i]: test_views",
    "index_put": "x[i] = v: test_views",
    "index_assign": "the gradient of x[i] = v: test_views, test_cuda_rows and test_programs",
    "index_get_last": "the gradient of x[i] = v: test_programs",
    "slice": "x[i:j]: test_views",
    "slice_assign": "x[i:j] = v: test_views",
    "slice_zero": "the gradient of x[i:j]: test_views",
    "mask_get": "x[mask]: tests/np/test_masks.py",
    "mask_put": "x[mask] = v: tests/np/test_masks.py",
    "mask_spread": "the gradient of x[mask]: tests/np/test_masks.py",
    "scatter_add": "the gradient of take: test_grad, and test_cuda_rows",
    "scatter_along": "the gradient of take_along_axis: test_grad, and test_cuda_rows",
    "batch_norm_grad": "the gradient of batch_norm: tests/npx",
    "layer_norm_grad": "the gradient of layer_norm: test_grad",
    "softmax_grad": "the gradient of softmax: test_grad",
    "log_softmax_grad": "the gradient of log_softmax: test_grad",
    "ctc_grad": "the gradient of ctc_loss: test_grad, tests/npx",
    "conv_data_grad": "a gradient of convolution: test_grad",
    "conv_weight_grad": "a gradient of convolution: test_grad",
    "pool_spread": "the gradient of pooling: test_grad",
    "normalize": "group_norm, instance_norm: test_ops",
    "_squares": "var, std: test_ops",
}


def ops_of(*modules: ModuleType) -> set[str]:
    """The core's names of the ops that modules hold."""
    found = set()
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, _core.Ufunc):
                found.add(value.op.name)
            elif isinstance(value, _core.Op):
                found.add(value.name)
    return found


@pytest.mark.parametrize("op", OPS)
def test_a_python_face(op):
    if op in PRIVATE:
        assert op not in ops_of(np, npx), "public after all"
    else:
        assert op in ops_of(np, npx, *TABLES), (
            f"{op}: no function in mxnp._ops holds it, and no reason stands in PRIVATE"
        )


@pytest.mark.parametrize("op", OPS)
def test_a_spec_row(op):
    rows = [row for row in ROWS if row.core_op == op]
    assert bool(rows) != (op in NO_ROW), f"{op}: {len(rows)} rows, and a reason for none: {op in NO_ROW}"


@pytest.mark.parametrize("op", OPS)
def test_a_cuda_row(op):
    assert op in _cuda.ROWS, f"{op}: mxnp._cuda has neither a row nor cpu_only('why')"


@pytest.mark.parametrize("op", OPS)
def test_a_gradient_or_a_reason(op):
    """Rows check exactly what the core states; of an update in place no gradient is asked."""
    gradient = _core.op(op).gradient
    assert gradient != "no gradient rule is written yet", op
    for row in ROWS:
        if row.core_op == op and isinstance(row.grad, int):
            assert gradient == ("vjp" if row.grad else "zero"), (
                f"{row}: the row says {row.grad}, the core {gradient}"
            )


def test_nothing_is_left_over():
    """No row, reason or CUDA form of an op that is not there."""
    listed = {
        "a spec row": {row.core_op for row in ROWS if row.core_op},
        "a CUDA row": set(_cuda.ROWS),
        "PRIVATE": set(PRIVATE),
        "NO_ROW": set(NO_ROW),
    }
    assert {where: sorted(names - set(OPS)) for where, names in listed.items() if names - set(OPS)} == {}


def test_every_row_names_a_public_function():
    missing = [
        row.name for row in ROWS if not row.name.startswith(("ndarray.", "core.")) and not exists(row.name)
    ]
    assert missing == []


def exists(name: str) -> bool:
    try:
        return callable(public(np, npx, name))
    except AttributeError:
        return False


def test_families_have_the_same_names_everywhere():
    core = {p.stem for p in (STUB.parents[2] / "crates/core/src/ops").glob("*.rs")} - {"mod"}
    if not core:
        pytest.skip("no sources beside the package")
    assert core <= set(FAMILIES), "tests/specs"
    assert core <= set(_cuda.FAMILIES), "mxnp._cuda"
    core -= {"optim"}  # all of it is mxnp.optimizer's
    assert core <= {table.__name__.rsplit(".", 1)[1] for table in TABLES}, "mxnp._ops"


def test_methods_are_attached():
    """What a family lists as a method is one: mxnp.np._methods leaves no family out."""
    methods = {f.__name__: f for family in TABLES for f in getattr(family, "METHODS", ())}
    for family in TABLES:
        methods.update(getattr(family, "SPECIAL_METHODS", {}))
    assert [name for name, f in methods.items() if getattr(np.ndarray, name, None) is not f] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_an_op_is_in_one_family(family):
    """An op's row, CUDA form and definition stand in files of the same name."""
    ops = {row.core_op for row in FAMILIES[family] if row.core_op}
    assert ops - set(_cuda.FAMILIES[family]) == set(), "mxnp._cuda has them elsewhere"
    core = STUB.parents[2] / "crates/core/src/ops"
    if not core.is_dir():
        pytest.skip("no sources beside the package")
    files = [core / f"{family}.rs", *(core / family).glob("*.rs")]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    assert [op for op in _cuda.FAMILIES[family] if f'"{op}"' not in text] == []


# ---- The stub


def stub_names() -> dict[str, ast.AST]:
    """What the stub declares at the top, by name."""
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_the_stub_lists_the_module():
    there = {n for n, v in vars(_core).items() if not n.startswith("__") and not inspect.ismodule(v)}
    assert there == set(stub_names())


@pytest.mark.parametrize("name", [n for n, node in stub_names().items() if isinstance(node, ast.FunctionDef)])
def test_the_stubs_functions(name):
    node = stub_names()[name]
    args = node.args
    want = [a.arg for a in args.posonlyargs + args.args + args.kwonlyargs]
    try:
        got = inspect.signature(getattr(_core, name))
    except ValueError:
        pytest.skip("no signature to read")
    names = [p.name for p in got.parameters.values() if p.kind not in {p.VAR_KEYWORD, p.VAR_POSITIONAL}]
    assert names == want
    assert sum(p.default is not p.empty for p in got.parameters.values()) == len(args.defaults) + sum(
        d is not None for d in args.kw_defaults
    )


def aliases(body: list[ast.stmt]) -> dict[str, str]:
    """The methods of a class in the stub that are functions of an op table: `sum = _reduce.sum`."""
    assigned = [n for n in body if isinstance(n, ast.Assign)]
    return {n.targets[0].id: ast.unparse(n.value) for n in assigned}


@pytest.mark.parametrize("name", ["ndarray", "Ufunc"])
def test_the_stubs_methods_are_the_functions_that_are_attached(name):
    named = aliases(stub_names()[name].body)
    assert len(named) >= 5
    for method, text in named.items():
        family, function = text.removeprefix("_").split(".")
        assert getattr(importlib.import_module(f"mxnp._ops.{family}"), function) is getattr(
            getattr(_core, name), method
        )


@pytest.mark.parametrize("name", [n for n, node in stub_names().items() if isinstance(node, ast.ClassDef)])
def test_the_stubs_classes(name):
    body = stub_names()[name].body
    declared = {n.name for n in body if isinstance(n, ast.FunctionDef)}
    declared |= {n.target.id for n in body if isinstance(n, ast.AnnAssign)} | set(aliases(body))
    cls = getattr(_core, name)
    missing = [m for m in declared if not hasattr(cls, m)]
    assert missing == []
    if name != "ndarray":  # methods that are ops are attached to ndarray from Python
        extra = {m for m in vars(cls) if not m.startswith("__")} - declared
        assert extra == set()


# ---- NumPy's signatures

# Functions whose parameters are MXNet's, where the two disagree.
MXNETS = {
    "pad": "MXNet calls the array x",
}


def numpys_functions() -> list[str]:
    """Public functions of np that NumPy has by the same name."""
    out = []
    for name, mine in sorted(vars(np).items()):
        theirs = getattr(onp, name, None)
        if (
            not name.startswith("_")
            and inspect.isfunction(mine)
            and callable(theirs)
            and not isinstance(theirs, type)
        ):
            out.append(name)
    return out


@pytest.mark.parametrize("name", numpys_functions())
def test_parameters_are_numpys(name):
    """What can be given by position comes in NumPy's order under NumPy's names, as far as mxnp has it; none of
    NumPy's parameters without a default is missing. Names of NumPy's that only positions reach do not count.
    """
    try:
        theirs = inspect.signature(getattr(onp, name)).parameters
    except ValueError:
        pytest.skip("NumPy does not say")
    mine = inspect.signature(getattr(np, name)).parameters
    if any(p.kind is p.VAR_POSITIONAL for p in theirs.values()):
        pytest.skip("takes any number")
    theirs = {n: p for n, p in theirs.items() if p.kind is p.POSITIONAL_OR_KEYWORD}
    shared = [n for n, p in mine.items() if n in theirs and p.kind is p.POSITIONAL_OR_KEYWORD]
    in_order = shared == [n for n in theirs if n in shared]
    missing = [n for n, p in theirs.items() if p.default is p.empty and n not in mine]
    assert (in_order and not missing) != (name in MXNETS), f"{name}: {list(mine)} for NumPy's {list(theirs)}"


@pytest.mark.parametrize("space", ["np", "npx"])
def test_everything_public_is_documented(space):
    module = {"np": np, "npx": npx}[space]
    bare = [
        name
        for name in getattr(module, "__all__", dir(module))
        if callable(getattr(module, name))
        and getattr(getattr(module, name), "__module__", "").startswith("mxnp")
        and not (getattr(module, name).__doc__ or "").strip()
    ]
    assert bare == []


@pytest.mark.parametrize("space", ["np", "npx"])
def test_nothing_public_is_missing_from_the_core(space):
    """No name stands for an op that this build lacks."""
    module = {"np": np, "npx": npx}[space]
    assert [name for name, value in vars(module).items() if type(value).__name__ == "_Missing"] == []
