"""Blocks with foreach, while_loop and cond in files: their nodes, and imports that compute what the block does."""

import json
from pathlib import Path

import numpy as onp
import pytest

from mxnp import autograd, gluon, np, npx
from mxnp._files import load_arrays
from mxnp.error import MXNetError
from mxnp.gluon import nn

RNG = onp.random.default_rng(5)


def normal(*shape, scale=1.0):
    return np.array(RNG.normal(scale=scale, size=shape), dtype="float32")


def block(function, **layers):
    """A block whose forward is `function(self, *inputs)`, initialised."""

    class Made(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            for name, layer in layers.items():
                setattr(self, name, layer)

        def forward(self, *inputs):
            return function(self, *inputs)

    net = Made()
    net.initialize()
    return net


def dense(units=4):
    return nn.Dense(units, in_units=4, flatten=False)


def exported(net, folder, *inputs):
    net.hybridize()
    net(*inputs)
    graph, params = net.export(folder / "net")
    names = ["data"] if len(inputs) == 1 else [f"data{i}" for i in range(len(inputs))]
    return gluon.SymbolBlock.imports(graph, names, params)


def operators(folder):
    """The operators of the file, those of the graphs that a node holds in brackets behind it."""

    def listed(graph):
        found = []
        for node in graph["nodes"]:
            if node["op"] != "null":
                inside = [listed(each) for each in node.get("subgraphs", ())]
                found.append((node["op"], *inside) if inside else node["op"])
        return found

    return listed(json.loads((folder / "net-symbol.json").read_text()))


def flat(outputs):
    if isinstance(outputs, (list, tuple)):
        return [array for each in outputs for array in flat(each)]
    return [outputs]


def run(net, inputs):
    """Outputs, and gradients of inputs and of parameters that learn (a file's constants do not)."""
    np.random.seed(3)
    leaves = [x.copy() for x in inputs]
    for leaf in leaves:
        leaf.attach_grad()
    with autograd.record(train_mode=False):
        outputs = flat(net(*leaves))
        loss = sum((y * y).sum() for y in outputs)
    loss.backward()
    params = sorted(net.collect_params().items())
    learned = {name: p.grad() for name, p in params if p.grad_req != "null" and p.lr_mult}
    return [*outputs, *(leaf.grad for leaf in leaves), *learned.values()]


def check(net, again, calls):
    """The import has the bits of the block, eager and compiled."""
    for inputs in calls:
        wanted = run(net, inputs)
        for active in (False, True):
            again.hybridize(active)
            found = run(again, inputs)
            assert len(found) == len(wanted)
            for a, b in zip(found, wanted, strict=True):
                assert a.dtype == b.dtype
                onp.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def looping(self, x):
    h = np.tanh(x)

    def step(i, s):
        return [s * 2, i], [i + 1, np.tanh(self.layer(s)) + x * h]

    (first, _), (i, s) = npx.while_loop(lambda i, s: i < np.abs(x).sum(), step, [np.zeros(1), h], 5)
    return first, i, s


def branching(self, x):
    h = np.tanh(x)
    return npx.cond(lambda h: h.sum() > 0, lambda h: self.yes(h), lambda h: self.no(h) + x, [h])


def recurrent(self, x):
    def step(row, state):
        new = np.tanh(self.layer(state[0]) + row)
        return new * state[1], [new, state[1] + row.mean()]

    out, (last, total) = npx.foreach(step, x * 2, [np.ones(4), np.zeros(())])
    return out, last, total


def test_a_loop_steps_as_often_as_its_data_say(tmp_path):
    net = block(looping, layer=dense())
    again = exported(net, tmp_path, normal(2, 4))
    sizes = (0.01, 0.1, 0.2, 0.4, 3)
    check(net, again, [[normal(rows, 4, scale=scale)] for rows in (1, 3) for scale in sizes])
    steps = {again(normal(2, 4, scale=scale))[1].item() for scale in (0.0, 0.1, 0.2, 0.4, 9)}
    assert {0, 5} < steps
    assert len(steps) > 3
    assert "_while_loop" in [op[0] for op in operators(tmp_path)]


def test_a_branch_goes_both_ways(tmp_path):
    net = block(branching, yes=dense(), no=dense())
    again = exported(net, tmp_path, normal(2, 4))
    check(net, again, [[normal(2, 4) + shift] for shift in (-2, 2, -1, 1)])
    held = operators(tmp_path)[-1]
    assert held[0] == "_cond"
    assert held[2:] == (["FullyConnected"], ["FullyConnected", "_npi_add"])


def test_foreach_takes_any_number_of_slices(tmp_path):
    net = block(recurrent, layer=dense())
    again = exported(net, tmp_path, normal(3, 4))
    check(net, again, [[normal(steps, 4)] for steps in (1, 3, 7, 3)])
    assert [op if isinstance(op, str) else op[0] for op in operators(tmp_path)][-1] == "_foreach"


def nested(self, x, start):
    def row(r, states):
        chosen = npx.cond(
            lambda r: r.sum() > states[0].sum(),
            lambda r: [self.layer(r) * start.mean(), states[0]],
            lambda r: [
                npx.while_loop(
                    lambda t: np.abs(t).sum() < 6, lambda t: (t, t * 1.5 + self.layer(r)), r, max_iterations=4
                )[0].sum(axis=0),
                states[0] - r,
            ],
            [r],
        )
        return chosen[0], [states[0] + chosen[1] * 0.5]

    out, (last,) = npx.foreach(row, x, [start])
    return out, last


def test_control_flow_within_control_flow(tmp_path):
    net = block(nested, layer=dense())
    again = exported(net, tmp_path, normal(3, 4), normal(4))
    check(net, again, [[normal(steps, 4), normal(4)] for steps in (1, 2, 5, 4)])
    (outer,) = operators(tmp_path)
    inner = next(op for op in outer[1] if op[0] == "_cond")
    assert "_while_loop" in [op[0] for op in inner[3]]


def test_an_import_with_loops_is_exported_again(tmp_path):
    net = block(nested, layer=dense())
    again = exported(net, tmp_path, normal(3, 4), normal(4))
    text = (tmp_path / "net-symbol.json").read_text()
    again.export(tmp_path / "net")
    assert (tmp_path / "net-symbol.json").read_text() == text

    outer = block(lambda self, x, y: self.child(x, y)[0] * 2)
    outer.child = again
    third = exported(outer, tmp_path, normal(3, 4), normal(4))
    check(outer, third, [[normal(2, 4), normal(4)]])


def test_running_statistics_inside_a_loop(tmp_path):
    def forward(self, x):
        return npx.foreach(lambda r, s: (self.norm(r) + s, s * 2), x, np.ones(()))[0]

    net = block(forward, norm=nn.BatchNorm(in_channels=3))
    net.norm.running_mean.set_data(np.array([1.0, 2, 3]))
    again = exported(net, tmp_path, normal(2, 4, 3))
    assert {name for name in load_arrays(tmp_path / "net-0000.params") if name.startswith("aux:")} == {
        "aux:norm.running_mean",
        "aux:norm.running_var",
    }
    assert set(again._symbol.list_auxiliary_states()) == {"norm.running_mean", "norm.running_var"}
    assert again.collect_params()["norm.running_mean"].grad_req == "null"
    check(net, again, [[normal(steps, 4, 3)] for steps in (1, 3)])


def test_draws_inside_a_loop_are_those_of_the_block(tmp_path):
    def forward(self, x):
        out, last = npx.while_loop(
            lambda s: s.sum() < 3, lambda s: (s, s + np.random.uniform(size=(2,))), x, max_iterations=9
        )
        return out, last + np.random.normal(size=(2,))

    net = block(forward)
    again = exported(net, tmp_path, normal(2))
    check(net, again, [[normal(2)] for _ in range(4)])


def test_what_functions_pass_on_and_leave_unused(tmp_path):
    def forward(self, x, y):
        a = npx.cond(x.sum() > 0, lambda x, y: [x, y], lambda x, y: [y, y], [x, y])
        b = npx.cond(lambda: y.sum() > 0, lambda: x, lambda: np.zeros((2,)) + 3, [])
        # The new s is made of x, t is read by the condition alone, and u is what it was.
        _, (s, t, u) = npx.while_loop(
            lambda s, t, u: t < 2, lambda s, t, u: (None, [x * t, t + 1, u]), [x, np.zeros(1), y], 4
        )
        out, last = npx.foreach(lambda row, state: (state[1], [row, state[1]]), np.stack([x, y]), [x, y])
        return [*a, b, s, t, u, out, *last]

    net = block(forward)
    again = exported(net, tmp_path, normal(2), normal(2))
    check(net, again, [[normal(2) + a, normal(2) + b] for a in (-2, 2) for b in (-2, 2)])


def test_one_array_given_twice(tmp_path):
    def forward(self, x):
        def step(row, state):
            new = row * state[0]
            return [new, new], [new]

        return npx.foreach(step, x, [np.ones(3)])

    net = block(forward)
    again = exported(net, tmp_path, normal(2, 3))
    check(net, again, [[normal(4, 3)]])


def test_what_only_an_unused_argument_is_made_of(tmp_path):
    def forward(self, x):
        given = [x, self.layer(x) * np.arange(4)]
        return npx.cond(lambda x, y: x.sum() > 0, lambda x, y: x * 2, lambda x, y: -x, given)

    net = block(forward, layer=dense())
    again = exported(net, tmp_path, normal(2, 4))
    assert again.collect_params() == {}
    x = normal(2, 4)
    onp.testing.assert_array_equal(again(x).asnumpy(), net(x).asnumpy())


def test_constants_and_arrays_from_outside(tmp_path):
    outside = normal(3)

    def forward(self, x):
        def step(row, state):
            return row * np.array([1.0, 2.0, 3.0]) + np.arange(3) + outside, state + outside[:2].sum()

        return npx.foreach(step, x, np.zeros(()))

    net = block(forward)
    again = exported(net, tmp_path, normal(2, 3))
    check(net, again, [[normal(4, 3)]])
    assert [p.lr_mult for p in again.collect_params().values()] == [0, 0, 0]


def test_a_loop_whose_state_grows_is_written_step_by_step(tmp_path):
    net = block(lambda self, x: npx.foreach(lambda row, s: (row, s + row), x, np.zeros(())))
    again = exported(net, tmp_path, normal(2, 3))
    check(net, again, [[normal(2, 3)]])
    assert "_foreach" not in str(operators(tmp_path))


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (
            lambda self, x: npx.while_loop(
                lambda s: s.sum() < 3, lambda s: (s, s.astype("float64")), x, max_iterations=2
            ),
            r"keeps its shape and dtype, but float32\[2\] becomes float64\[2\] in the first step\nhint:",
        ),
        (
            lambda self, x: npx.cond(x.sum() > 0, lambda x: x, lambda x: x[:1], [x]),
            r"then_func gives float32\[2\] and else_func float32\[1\]",
        ),
        (
            lambda self, x: npx.while_loop(
                lambda s: s.sum() < 9, lambda s: (s, s + float(s[0])), x, max_iterations=2
            ),
            r"the data of an array of shape \(\) and dtype float32 was asked for",
        ),
    ],
)
def test_what_a_file_cannot_hold(forward, message, tmp_path):
    net = block(forward)
    net.hybridize()
    try:
        net(np.ones(2))
    except MXNetError:
        net._called_with = (gluon._export.template(np.ones(2)),), {}
    with pytest.raises(MXNetError, match=message):
        net.export(tmp_path / "net")
    assert not list(Path(tmp_path).iterdir())


def test_a_condition_of_several_elements_is_refused(tmp_path):
    net = block(lambda self, x: npx.cond(x > 0, lambda x: x, lambda x: -x, [x]))
    net._called_with = (gluon._export.template(np.ones(2)),), {}
    with pytest.raises(ValueError, match=r"cond: the condition must be one element, got shape \(2,\)"):
        net.export(tmp_path / "net")


def test_a_block_called_with_a_symbol_holds_its_loops():
    import mxnp as mx

    net = block(looping, layer=dense())
    net.hybridize()
    net(normal(2, 4))
    steps, i, last = net(mx.sym.var("x"))
    x = normal(2, 4, scale=0.2)
    arrays = {name: p.data() for name, p in net.collect_params().items()}
    for made, wanted in zip((steps, i, last), net(x), strict=True):
        onp.testing.assert_array_equal(made.eval(x=x, **arrays)[0].asnumpy(), wanted.asnumpy())
