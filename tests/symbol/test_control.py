"""Loops and branches in symbols and model files: made, run, inferred, written and read."""

import json

import numpy as onp
import pytest

import mxnp as mx
from mxnp import autograd, gluon, np
from mxnp._files import FormatError, save_arrays
from mxnp.error import MXNetError

RNG = onp.random.default_rng(3)
W, X, S = (RNG.normal(size=shape).astype("float32") for shape in ((4, 3), (5, 2, 3), (2, 4)))


def variable(name, **attrs):
    return {"op": "null", "name": name, "inputs": [], **({"attrs": attrs} if attrs else {})}


def node(op, name, inputs, graphs=(), **attrs):
    made = {"op": op, "name": name, "inputs": [[i, 0, 0] for i in inputs], "attrs": attrs}
    return {**made, "subgraphs": list(graphs)} if graphs else made


def graph(nodes, *heads, dialect=None):
    whole = {"nodes": nodes, "heads": [[i, output, 0] for i, output in heads]}
    flags = {
        1: {"mxnet_version": ["int", 10901]},
        2: {"mxnet_version": ["int", 20000], "is_np_shape": ["int", 1]},
    }
    return whole if dialect is None else json.dumps({**whole, "attrs": flags[dialect]})


def recurrent(dialect):
    """`s = tanh(x w + s)` over slices of x: the nodes as MXNet 1.9.1 and 2's `mx.sym` write them."""
    body = graph(
        [
            variable("data0-0", __subgraph_name__="foreach0"),
            variable("w", __shape__="(4, 3)"),
            node("FullyConnected", "fc", [0, 1], no_bias="True", num_hidden="4"),
            variable("data1-0", __subgraph_name__="foreach0"),
            node("elemwise_add", "plus", [2, 3]),
            node("tanh", "tanh", [4]),
            node("_copy", "identity", [5]),
        ],
        (5, 0),
        (6, 0),
    )
    places = {"in_data_locs": "[0]", "in_state_locs": "[2]", "remain_locs": "[1]"}
    outer = [
        variable("data0"),
        variable("data1"),
        variable("w", __shape__="(4, 3)"),
        node(
            "_foreach", "loop", [0, 1, 2], [body], num_args="4", num_out_data="1", num_outputs="2", **places
        ),
    ]
    return graph(outer, (3, 0), (3, 1), dialect=dialect)


def recurrent_in_numpy():
    state, steps = S, []
    for x in X:
        state = onp.tanh(x @ W.T + state)
        steps.append(state)
    return onp.stack(steps), state


@pytest.mark.parametrize("dialect", [1, 2])
def test_a_loop_of_a_file_runs_and_learns(dialect, tmp_path):
    (tmp_path / "net-symbol.json").write_text(recurrent(dialect))
    save_arrays(tmp_path / "net.params", {"arg:w": np.array(W)})
    net = gluon.SymbolBlock.imports(tmp_path / "net-symbol.json", ["data0", "data1"], tmp_path / "net.params")
    for _ in range(3):
        for result, expected in zip(net(np.array(X), np.array(S)), recurrent_in_numpy(), strict=True):
            onp.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-5)
        net.hybridize()
    with autograd.record():
        loss = net(np.array(X), np.array(S))[1].sum()
    loss.backward()
    assert (net.collect_params()["w"].grad() != 0).all()


def test_files_are_written_as_they_were_read():
    for dialect in (1, 2):
        read = mx.sym.load_json(recurrent(dialect))
        written = json.loads(read.tojson())
        original = json.loads(recurrent(dialect))
        assert written["nodes"][3]["subgraphs"][0]["nodes"] == [
            {
                "op": n["op"],
                "name": n["name"],
                **({"attrs": n["attrs"]} if n.get("attrs") else {}),
                "inputs": n["inputs"],
            }
            for n in original["nodes"][3]["subgraphs"][0]["nodes"]
        ]
        assert written["nodes"][3]["attrs"] == original["nodes"][3]["attrs"]
        assert written["node_row_ptr"] == [0, 1, 2, 3, 5]
        assert mx.sym.load_json(read.tojson()).tojson() == read.tojson()


def test_shapes_of_a_loop():
    read = mx.sym.load_json(recurrent(2))
    assert read.list_arguments() == ["data0", "data1", "w"]
    assert read.list_outputs() == ["loop_output0", "loop_output1"]
    assert read.infer_shape(data0=(5, 2, 3), data1=(2, 4))[1] == [(5, 2, 4), (2, 4)]


def loop(**changed):
    """`while i < 5: output s * 2; i, s = i + 1, s + x`, its arguments in another order than its inputs."""
    attrs = {
        "cond_input_locs": "[0]",
        "func_input_locs": "[1, 0, 2]",
        "func_var_locs": "[1, 0]",
        "max_iterations": "8",
        "num_args": "5",
        "num_out_data": "1",
        "num_outputs": "3",
        **changed,
    }
    holds = graph([variable("i-0"), node("_lesser_scalar", "less", [0], scalar="5")], (1, 0))
    step = graph(
        [
            variable("s-0"),
            node("_mul_scalar", "mul", [0], scalar="2"),
            variable("i-0"),
            node("_plus_scalar", "next", [2], scalar="1"),
            variable("x"),
            node("elemwise_add", "plus", [0, 4]),
        ],
        (1, 0),
        (3, 0),
        (5, 0),
    )
    outer = [
        variable("i"),
        variable("s"),
        variable("x"),
        node("_while_loop", "loop", [0, 1, 2], [holds, step], **attrs),
    ]
    return graph(outer, (3, 0), (3, 1), (3, 2), dialect=1)


def test_a_loop_with_a_condition():
    steps, i, s = mx.sym.load_json(loop()).eval(i=np.array([2]), s=np.zeros(2), x=np.array([1, 2]))
    assert steps.shape == (8, 2)
    assert steps[:3].tolist() == [[0, 0], [2, 4], [4, 8]]
    assert (i.tolist(), s.tolist()) == ([5], [3, 6])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cond_input_locs": "[9]"}, r"the places \(9, 1, 0, 2\) must be of the 3 inputs"),
        ({"func_var_locs": "[1, 7]"}, r"the places \(1, 7\) must be of the 3 arguments"),
        ({"func_input_locs": "[1, -1, 2]"}, "must be of the 3 inputs"),
    ],
)
def test_places_that_are_none(change, message):
    read = mx.sym.load_json(loop(**change))
    with pytest.raises(MXNetError, match=message):
        read.eval(i=np.array([2]), s=np.zeros(2), x=np.array([1, 2]))


@pytest.mark.parametrize("count", ["-1", "0", "2", "4000000000"])
def test_outputs_that_are_not_as_many_as_the_graph_gives(count):
    read = mx.sym.load_json(loop(num_out_data=count))
    with pytest.raises(MXNetError, match=rf"the body gives 3 arrays.*num_out_data={count}.*2 are states"):
        read.eval(i=np.array([2]), s=np.zeros(2), x=np.array([1, 2]))


@pytest.mark.parametrize("count", ["-1", "0", "1000000000"])
def test_numbers_of_outputs_are_bounded(count):
    with pytest.raises(FormatError, match=f"node 'loop'.*expected 1 to 16384 outputs, got {count}"):
        mx.sym.load_json(loop(num_outputs=count))


def test_a_graph_gets_as_many_arrays_as_it_takes():
    with pytest.raises(MXNetError, match=r"the graph that it holds takes \d arrays, got 0"):
        read = mx.sym.load_json(loop(cond_input_locs="[]"))
        read.eval(i=np.array([2]), s=np.zeros(2), x=np.array([1, 2]))


def test_attributes_that_mxnet_leaves_out_are_named():
    text = loop().replace("_while_loop", "_npx_while_loop").replace('"num_args": "5", ', "")
    attrs = text[text.index('"cond_input_locs"') : text.index('"num_out_data"')]
    with pytest.raises(FormatError, match=r"node 'loop'.*needs the attribute"):
        mx.sym.load_json(text.replace(attrs, ""))


# ---- Made in Python


def test_foreach_takes_what_it_needs_from_outside():
    x, s, w = mx.sym.var("x"), mx.sym.var("s"), mx.sym.var("w")
    twice = w * 2

    def body(slice_, states):
        y = mx.sym.tanh(mx.sym.FullyConnected(slice_, twice, num_hidden=4, no_bias=True) + states[0])
        return [y, y * 2], [y]

    (first, second), (last,) = mx.sym.contrib.foreach(body, x, [s])
    made = mx.sym.Group([first, second, last])
    for each in (made, mx.sym.load_json(made.tojson())):
        assert set(each.list_arguments()) == {"x", "s", "w"}
        found = each.eval(x=np.array(X), s=np.array(S), w=np.array(W / 2))
        steps, state = recurrent_in_numpy()
        for result, expected in zip(found, (steps, steps * 2, state), strict=True):
            onp.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-5)


def test_layers_inside_a_loop_bring_their_parameters():
    def body(slice_, state):
        y = mx.sym.FullyConnected(slice_, num_hidden=2, name="fc") + state
        return y, state

    steps, _ = mx.sym.contrib.foreach(body, mx.sym.var("x"), mx.sym.var("s"))
    assert set(steps.list_arguments()) == {"x", "s", "fc_weight", "fc_bias"}
    found = steps.eval(
        x=np.ones((2, 1, 3)), s=np.ones((1, 2)), fc_weight=np.ones((2, 3)), fc_bias=np.zeros(2)
    )
    assert found[0].tolist() == [[[4, 4]], [[4, 4]]]


def test_while_loop_and_cond():
    i, s, x = mx.sym.var("i"), mx.sym.var("s"), mx.sym.var("x")
    steps, (last, total) = mx.sym.contrib.while_loop(
        lambda i, s: i < 3, lambda i, s: (s * 2, (i + 1, s + x)), (i, s), max_iterations=4
    )
    made = mx.sym.Group([steps, last, total])
    for each in (made, mx.sym.load_json(made.tojson())):
        found = each.eval(i=np.array([0]), s=np.zeros(1), x=np.array([5]))
        assert [f.tolist() for f in found] == [[[0], [10], [20], [0]], [3], [15]]
    y = mx.sym.contrib.cond(mx.sym.sum(x) > 0, lambda: [x * 2, s * 1], lambda: [-x, s + x])
    made = mx.sym.Group(y)
    for each in (made, mx.sym.load_json(made.tojson())):
        assert [f.tolist() for f in each.eval(x=np.array([3]), s=np.array([1]))] == [[6], [1]]
        assert [f.tolist() for f in each.eval(x=np.array([-3]), s=np.array([1]))] == [[3], [-2]]


def test_loops_within_loops():
    def rows(row, total):
        def cells(cell, inner):
            return cell + inner, cell + inner

        steps, last = mx.sym.contrib.foreach(cells, row, total)
        return steps, last

    x, s = mx.sym.var("x"), mx.sym.var("s")
    made, _ = mx.sym.contrib.foreach(rows, x, s)
    numbers = onp.arange(6.0).reshape(2, 3)
    for each in (made, mx.sym.load_json(made.tojson())):
        found = each.eval(x=np.array(numbers), s=np.zeros(()))[0]
        assert found.tolist() == onp.cumsum(numbers).reshape(2, 3).tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda s: mx.sym.contrib.foreach(lambda x, s: (s, s), mx.sym.var("x"), s),
            "must use each of the data",
        ),
        (
            lambda s: mx.sym.contrib.foreach(lambda x, s: (x, [s, s]), mx.sym.var("x"), s),
            "gives 2 states for 1",
        ),
        (lambda s: mx.sym.contrib.foreach(lambda x, s: (x, s), 3, s), "foreach: data must be a symbol"),
        (lambda s: mx.sym.contrib.while_loop(lambda s: s, lambda s: (s, s), s), "max_iterations should be"),
        (lambda s: mx.sym.contrib.cond(s, lambda: s, lambda: [s, s]), "the sides give 1 and 2 results"),
    ],
)
def test_functions_that_are_no_loops(make, message):
    with pytest.raises((ValueError, TypeError, MXNetError), match=message):
        make(mx.sym.var("s"))


def test_a_loop_that_also_uses_what_a_variable_started_from():
    x = mx.sym.var("x")
    h = x * 2
    _, (last,) = mx.sym.contrib.while_loop(
        lambda s: mx.sym.sum(s) < 20, lambda s: ([], [s + h]), [h], max_iterations=9
    )
    assert last.eval(x=np.array([3]))[0].tolist() == [24]


def test_the_condition_may_be_a_function():
    x = mx.sym.var("x")
    y = mx.sym.contrib.cond(lambda: mx.sym.sum(x) > 0, lambda: x * 2, lambda: -x)
    assert [op["op"] for op in json.loads(y.tojson())["nodes"]] == ["null", "_cond"]
    assert [y.eval(x=np.array([k]))[0].tolist() for k in (3, -3)] == [[6], [3]]
