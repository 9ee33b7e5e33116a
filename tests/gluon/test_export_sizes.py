"""What an export makes of sizes that follow the batch: files that hold for any number of rows."""

import json

import numpy as onp
import pytest

from mxnp import gluon, np, npx
from mxnp.gluon import nn

RNG = onp.random.default_rng(2)


class Function(nn.HybridBlock):
    """A block of a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def written(function, shape, folder):
    """The import of a function's export, made with an input of this shape."""
    net = Function(function)
    net.hybridize()
    net(np.zeros(shape))
    graph, params = net.export(folder / "net")
    return gluon.SymbolBlock.imports(graph, ["data"], params)


def assign(x, key, value):
    x[key] = value
    return x


CASES = {
    "zeros": lambda x: x + np.zeros((x.shape[0], 1)),
    "likes": lambda x: np.ones_like(x) + np.zeros(x.shape) - np.full_like(x, 2.0) * x,
    "joined": lambda x: np.concatenate([x, np.zeros((x.shape[0], 2))], axis=1),
    "leading": lambda x: np.zeros((2, x.shape[0], 1)) + x,
    "range": lambda x: x * np.arange(x.shape[0]).reshape(-1, 1),
    "integers": lambda x: x * (np.arange(3, 3 + 2 * x.shape[0], 2, dtype="int64") + 1)[:, None],
    "mask": lambda x: np.where(
        np.arange(x.shape[0])[:, None] >= np.arange(x.shape[0])[None], x @ x.T, -np.ones((1, 1))
    ),
    "broadcast": lambda x: np.broadcast_to(x.mean(axis=0, keepdims=True), x.shape),
    "more axes": lambda x: np.broadcast_to(x[None, :, None], (2, x.shape[0], 3, x.shape[1])),
    "a number": lambda x: assign(x * 2, slice(None), 3.0) + x,
    "a row": lambda x: assign(x * 2, slice(None), x[0]) + x,
    "last": lambda x: x[-1] * 2,
    "without the first": lambda x: x[1:] - x[:-1],
    "turned": lambda x: x[::-1],
    "every second, turned": lambda x: x[::-2],
    "every second": lambda x: x[::2],
    "every third from the second": lambda x: x[1::3],
    "every second, turned, without the first": lambda x: x[:0:-2],
    "from the last but one": lambda x: x[-2::-1],
    "the inner rows": lambda x: x[1:-1, None],
    "two before the last": lambda x: x[-3:-1],
    "the first two": lambda x: x[:2],
    "none of them": lambda x: x[10:],
    "inside a loop": lambda x: npx.foreach(
        lambda row, s: (row * s, s + np.zeros_like(s)), x.T, np.ones((x.shape[0],))
    )[0],
    "of the graph around": lambda x: npx.foreach(
        lambda row, s: (np.full((x.shape[0],), 2.0) * row, s), np.arange(3), np.ones(())
    )[0],
}


@pytest.mark.parametrize("name", CASES)
def test_files_hold_for_any_number_of_rows(name, tmp_path):
    again = written(CASES[name], (4, 5), tmp_path)
    for rows in (4, 3, 7, 4):
        x = np.array(RNG.normal(size=(rows, 5)), dtype="float32")
        found, wanted = again(x), CASES[name](x)
        assert found.dtype == wanted.dtype
        onp.testing.assert_array_equal(found.asnumpy(), wanted.asnumpy())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + np.random.normal(size=x.shape),
        lambda x: x + np.random.uniform(x.min(axis=1, keepdims=True), 5.0, size=x.shape),
    ],
)
def test_draws_follow_the_batch(function, tmp_path):
    again = written(function, (4, 5), tmp_path)
    for rows in (4, 2, 7):
        x = np.array(RNG.normal(size=(rows, 5)), dtype="float32")
        np.random.seed(1)
        wanted = function(x)
        np.random.seed(1)
        onp.testing.assert_array_equal(again(x).asnumpy(), wanted.asnumpy())


def test_constants_of_one_size_stay_constants(tmp_path):
    again = written(lambda x: x * (np.arange(5) + 1) + np.zeros(5), (4, 5), tmp_path)
    ops = [node["op"] for node in json.loads((tmp_path / "net-symbol.json").read_text())["nodes"]]
    assert ops == ["null", "null", "_npi_multiply", "_full", "_npi_add"]
    assert [p.data().tolist() for p in again.collect_params().values()] == [[1, 2, 3, 4, 5]]


def test_a_size_that_no_array_has_is_that_of_the_call(tmp_path):
    again = written(lambda x: x.sum() + np.zeros((2 * x.shape[0],)), (4, 5), tmp_path)
    assert again(np.ones((6, 5))).shape == (8,)
