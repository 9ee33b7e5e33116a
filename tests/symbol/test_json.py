"""-symbol.json: both dialects and older forms, round trips, damage and hostility."""

import json

import numpy as onp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mxnp as mx
from mxnp import np
from mxnp._files import FormatError
from mxnp._files.symbol_json import MAX_BYTES, read_graph
from specs.drive import examples
from symbol.dialects import residual_net

DATA = onp.random.default_rng(1).normal(size=(2, 3, 4, 4)).astype("float32")


def run(graph, model):
    given = {name.partition(":")[2]: np.array(array) for name, array in model.arrays.items()}
    return graph.eval(data=np.array(DATA), **given)[0].asnumpy()


@pytest.mark.parametrize("dialect", [1, 2])
def test_dialects_and_round_trips(dialect, tmp_path):
    model, head, reference = residual_net(dialect)
    graph = mx.sym.load_json(model.text(head))
    onp.testing.assert_allclose(run(graph, model), reference(DATA), rtol=1e-4, atol=1e-4)
    graph.save(tmp_path / "g.json")
    again = mx.sym.load(tmp_path / "g.json")
    assert again.tojson() == graph.tojson()
    onp.testing.assert_array_equal(run(again, model), run(graph, model))
    flags = json.loads(graph.tojson())["attrs"]
    assert ("is_np_shape" in flags) == (dialect == 2)


def text(*nodes, heads=None, **rest):
    return json.dumps({"nodes": list(nodes), "heads": heads or [[len(nodes) - 1, 0, 0]], **rest})


X = {"op": "null", "name": "x", "inputs": []}
# A graph that a node holds, and the attributes of a loop over it.
HELD = {"nodes": [X], "heads": [[0, 0, 0]]}
FOREACH = {
    "num_outputs": "1",
    "num_out_data": "1",
    "in_data_locs": "[0]",
    "in_state_locs": "[]",
    "remain_locs": "[]",
}


def deep(levels):
    """A graph within graphs."""
    graph = HELD
    for _ in range(levels):
        graph = {"nodes": [X, node("_foreach", attrs=FOREACH, subgraphs=[graph])], "heads": [[1, 0, 0]]}
    return graph


def node(op="relu", name="n", inputs=((0, 0, 0),), **rest):
    return {"op": op, "name": name, "inputs": [list(i) for i in inputs], **rest}


@pytest.mark.parametrize("key", ["attrs", "attr", "param"])
def test_attributes_under_the_keys_of_all_ages(key):
    x = mx.sym.load_json(text(X, node("clip", **{key: {"a_min": "-1", "a_max": "1e0"}})))
    assert x.eval(x=np.array([-3, 3]))[0].tolist() == [-1, 1]


def test_a_file_of_0_8():
    old = {
        "nodes": [
            {"op": "null", "param": {}, "name": "data", "inputs": [], "backward_source_id": -1},
            {"op": "null", "param": {}, "name": "bn_gamma", "inputs": [], "backward_source_id": -1},
            {"op": "null", "param": {}, "name": "bn_beta", "inputs": [], "backward_source_id": -1},
            {
                "op": "BatchNorm",
                "param": {
                    "eps": "0.001",
                    "fix_gamma": "True",
                    "momentum": "0.9",
                    "use_global_stats": "False",
                },
                "name": "bn",
                "inputs": [[0, 0], [1, 0], [2, 0]],
                "backward_source_id": -1,
                "attr": {"lr_mult": "2", "weight_lr_mult": "1.2"},
            },
            {
                "op": "Reshape",
                "param": {"target_shape": "(0, 0)", "shape": "(0L, -1L)"},
                "name": "r",
                "inputs": [[3, 0]],
            },
        ],
        "arg_nodes": [0, 1, 2],
        "heads": [[4, 0]],
    }
    graph = mx.sym.load_json(json.dumps(old))
    assert graph.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert graph.infer_shape(data=(2, 3, 4))[1:] == ([(2, 12)], [(3,), (3,)])


def test_amp_casts_are_left_out_on_request():
    x = mx.sym.amp_cast(mx.sym.var("x"), dtype="float16", name="c")
    y = mx.sym.relu(x, name="r")
    assert "amp_cast" in y.tojson(remove_amp_cast=False)
    assert "amp_cast" not in y.tojson()
    assert mx.sym.load_json(y.tojson()).eval(x=np.array([-1, 2]))[0].tolist() == [0, 2]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "line 1, column 1"),
        ("{", "line 1, column 2"),
        ('{"nodes": [}', "line 1, column 12"),
        (b"\xff\xfe\xfa", "the text: "),
        ("[]", "expected an object with 'nodes'"),
        ('{"nodes": 3}', "'nodes' must be a list, got int"),
        ('{"nodes": []}', "heads: expected a list"),
        ('{"nodes": [], "heads": []}', "'heads' names no output"),
        ("[" * 100_000, "nested too deep"),
        ('{"nodes": ' + "[" * 100_000, "nested too deep"),
        ('{"nodes": [NaN]}', "NaN is no value here"),
        ('{"nodes": [' + "9" * 5000 + "]}", "not a value of JSON"),
        (text(3), "node 0 must be an object, got int"),
        (text({"name": "x"}), "node 0 must have texts 'op' and 'name'"),
        (text({**X, "name": "x" * 5000}), "has more than 4096 characters"),
        (text({**X, "attrs": []}), r"node 0 \('x'\): attributes must be an object, got list"),
        (text({**X, "attrs": {"a": 3}}), "attribute 'a' must be a text, got int"),
        (text(X, node(inputs=[])), r"node 'n': relu takes the inputs data, got 0"),
        (text(X, node(inputs=[(0, 0), (0, 0)])), "relu takes 1 inputs, got 2"),
        (text(X, node(inputs=[(1, 0)])), "input 1 is not a node before it"),
        (text(X, node(inputs=[(5, 0)]), X), "input 5 is not a node before it"),
        (text(X, node(inputs=[(-1, 0)])), "there is no output 0 of node -1"),
        (text(X, node(inputs=[(0, 1)])), r"node 'x' \(null\) has 1 outputs, there is no output 1"),
        (text(X, node(inputs=[(0,)])), r"expected \[node, output\], got \[0\]"),
        (text(X, node(inputs=[(0, True)])), r"expected \[node, output\], got \[0, True\]"),
        (text(X, {**node(), "inputs": "x"}), "expected a list"),
        (text({**X, "inputs": [[0, 0]]}), "input 0 is not a node before it"),
        (text(X, {**X, "inputs": [[0, 0]]}), "variable 'x' has inputs"),
        (text(X, heads=[[1, 0]]), "heads: there is no output 0 of node 1"),
        (text(X, heads=[[0, 3]]), "heads: node 'x' .* there is no output 3"),
        (text(X, node("NoSuchOp")), "node 1: node 'n': mxnp has no operator 'NoSuchOp'"),
        (text(X, node("Convolutoin")), "hint: similar operators: Convolution"),
        (text(X, node("clip", attrs={"a_min": "1"})), "clip needs the attribute a_max"),
        (
            text(X, node("clip", attrs={"a_min": "one", "a_max": "2"})),
            "attribute a_min: expected a number, got 'one'",
        ),
        (text(X, node("clip", attrs={"b": "2"})), "clip has no attribute 'b'"),
        (text(X, node("Reshape", attrs={"shape": "(1, 2"})), "expected a closed bracket"),
        (text(X, node("Reshape", attrs={"shape": "(" + "9" * 30 + ")"})), "expected an integer"),
        (text(X, node("Reshape", attrs={"shape": "(1," * 100_000})), "expected at most 65536 characters"),
        (
            text(X, node("split", attrs={"num_outputs": "1000000000"})),
            r"\(split\): expected 1 to 16384 outputs",
        ),
        (text(X, node("split", attrs={"num_outputs": "-1"})), "expected 1 to 16384 outputs, got -1"),
        (
            text(X, node("_split_v2", attrs={"indices": "()", "sections": "99999"})),
            "expected 1 to 16384 outputs",
        ),
        (text(X, node("_foreach", subgraphs=[{}])), "'subgraphs' must be a list of objects with 'nodes'"),
        (text(X, node("exp", subgraphs=[HELD])), "exp holds 0 graphs of its own, got 1"),
        (text(X, node("_foreach", attrs=FOREACH)), "_foreach holds 1 graphs of its own, got 0"),
        (text(X, node("_npx_foreach", subgraphs=[HELD])), "needs the attribute num_outputs"),
        (
            text(X, node("_foreach", attrs=FOREACH, subgraphs=[deep(20)])),
            "more than 16 graphs within each other",
        ),
        (
            text(X, attrs={"is_np_shape": ["int", "yes"]}),
            "attribute 'is_np_shape' of the graph must be an integer",
        ),
    ],
)
def test_damage_is_named(data, message):
    with pytest.raises(FormatError, match=message) as caught:
        mx.sym.load_json(data)
    assert str(caught.value).startswith("the text: ")


def test_file_names_stand_in_errors(tmp_path):
    path = tmp_path / "bad-symbol.json"
    path.write_text(text(X, node("NoSuchOp")))
    with pytest.raises(FormatError, match=r"bad-symbol\.json: node 1: node 'n'"):
        mx.sym.load(path)
    with pytest.raises(FileNotFoundError):
        mx.sym.load(tmp_path / "none.json")
    with pytest.raises(TypeError, match="fname need to be string"):
        mx.sym.load(3)


def test_huge_files_are_refused(tmp_path):
    path = tmp_path / "huge.json"
    with open(path, "wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    with pytest.raises(FormatError, match="no graph of MXNet is so large"):
        mx.sym.load(path)


def test_saving_replaces_the_whole_file(tmp_path):
    path = tmp_path / "g.json"
    mx.sym.var("first").save(path)
    with pytest.raises(AttributeError):
        mx.sym.Symbol([(None, 0)]).save(path)
    assert mx.sym.load(path).list_arguments() == ["first"]


GOOD = residual_net(1)[0].text([13, 0, 0])


@examples(300)
@given(data=st.data())
def test_mutated_files_give_a_graph_or_the_error(data):
    whole = json.loads(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        at, key = whole, None
        for _ in range(data.draw(st.integers(1, 6))):
            if not isinstance(at, (dict, list)) or not at:
                break
            owner, key = (
                at,
                data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at)))),
            )
            at = at[key]
        if key is not None:
            owner[key] = data.draw(
                st.one_of(
                    st.none(),
                    st.integers(-3, 40),
                    st.integers(2**62, 2**70),
                    st.text(max_size=8),
                    st.sampled_from(["(3,3)", "[3,3", "None", "True", "null", "Convolution", [0, 0], {}, []]),
                )
            )
    outcome(json.dumps(whole))


@examples(300)
@given(data=st.data())
def test_damaged_texts_give_a_graph_or_the_error(data):
    blob = bytearray(GOOD.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(blob) - 1))
        how = data.draw(st.sampled_from(["flip", "cut", "insert"]))
        if how == "flip":
            blob[at] ^= 1 << data.draw(st.integers(0, 7))
        elif how == "cut":
            del blob[at : at + data.draw(st.integers(1, 30))]
        else:
            blob[at:at] = data.draw(st.binary(min_size=1, max_size=8))
    outcome(bytes(blob))


def outcome(blob):
    try:
        graph = mx.sym.load_json(blob)
    except FormatError:
        return
    graph.list_arguments()
    assert read_graph(graph.tojson(), "again").nodes


@pytest.mark.parametrize(
    ("text", "least"), [("-inf", -9), ("-Infinity", -9), ("-2f", -2), ("-2.5F", -2.5), ("-1e0", -1)]
)
def test_numbers_as_cpp_reads_them(text, least):
    made = json.loads(mx.sym.clip(mx.sym.var("x"), a_min=-3, a_max=1).tojson())
    made["nodes"][-1]["attrs"]["a_min"] = text
    (y,) = mx.sym.fromjson(json.dumps(made)).eval(x=np.array([-9, 0, 5]))
    assert y.tolist() == [least, 0, 1]


@pytest.mark.parametrize("text", ["", "f", "1.5ff", "infx", "one"])
def test_texts_that_are_no_numbers(text):
    made = json.loads(mx.sym.clip(mx.sym.var("x"), a_min=-3, a_max=1).tojson())
    made["nodes"][-1]["attrs"]["a_min"] = text
    with pytest.raises(ValueError, match="a_min: expected a number"):
        mx.sym.fromjson(json.dumps(made))
