"""Blocks: registration, collection, sharing, calling, hooks, errors."""

import copy
import pickle
import warnings

import numpy as onp
import pytest

from mxnp import autograd, gluon, np
from mxnp.error import MXNetError
from mxnp.gluon import nn


class Net(gluon.Block):
    """Two layers and a parameter of its own."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.hidden = nn.Dense(4, activation="relu", in_units=3)
        self.output = nn.Dense(2, in_units=4)
        self.scale = gluon.Parameter("scale", shape=(1,), init="ones")

    def forward(self, x):
        return self.output(self.hidden(x)) * self.scale.data()


NET_NAMES = ["scale", "hidden.weight", "hidden.bias", "output.weight", "output.bias"]


def ready(block, *shape):
    """The block, initialised, after a forward on ones of `shape` where one is given."""
    block.initialize()
    if shape:
        block(np.ones(shape))
    return block


# Registration and collection ----------------------------------------------------------------------------------


def test_collect_params_gives_structural_names_in_order():
    params = Net().collect_params()
    assert list(params) == NET_NAMES
    assert isinstance(params, dict)
    assert isinstance(params, gluon.ParameterDict)


@pytest.mark.parametrize(
    ("select", "names"),
    [
        (".*weight", ["hidden.weight", "output.weight"]),
        ("weight", []),
        ("hidden", ["hidden.weight", "hidden.bias"]),
        (".*bias|scale", ["scale", "hidden.bias", "output.bias"]),
    ],
)
def test_select_matches_from_the_start_of_the_name(select, names):
    assert list(Net().collect_params(select)) == names


def test_none_then_a_block_registers():
    net = gluon.Block()
    net.layer = None
    net.layer = nn.Dense(2, in_units=3)
    assert list(net.collect_params()) == ["layer.weight", "layer.bias"]


def test_child_replacement_takes_the_place_of_the_old_child():
    net, other = Net(), Net()
    net.hidden = other.hidden
    assert net.hidden is other.hidden
    assert list(net.collect_params()) == NET_NAMES
    assert net.collect_params()["hidden.weight"] is other.hidden.weight
    net.output = nn.Conv2D(2, 3)
    assert isinstance(net._children["output"], nn.Conv2D)


def test_none_and_del_unregister():
    net = Net()
    net.hidden = None
    del net.output
    net.scale = None
    assert list(net.collect_params()) == []
    assert net.hidden is None
    assert not hasattr(net, "output")


@pytest.mark.parametrize(("name", "value"), [("hidden", 3), ("scale", "x"), ("scale", nn.Dense(1))])
def test_a_registered_attribute_cannot_become_something_else(name, value):
    net = Net()
    with pytest.raises(TypeError, match=f"Net.{name}"):
        setattr(net, name, value)
    assert list(net.collect_params()) == NET_NAMES


def test_blocks_in_lists_are_not_collected_and_a_warning_says_so():
    net = gluon.Block()
    net.layers = [nn.Dense(1)]
    with pytest.warns(UserWarning, match=r"Block.layers is a list"):
        assert list(net.collect_params()) == []
    net.register_child(net.layers[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(net.collect_params()) == ["0.weight", "0.bias"]


def test_attributes_before_super_init_are_refused():
    class Early(gluon.Block):
        def __init__(self):
            self.layer = nn.Dense(1)
            super().__init__()

    with pytest.raises(AttributeError, match=r"super\(\).__init__"):
        Early()


def test_unknown_keyword_names_the_layer():
    with pytest.raises(TypeError, match=r"Dense\(\) got an unexpected keyword argument 'unit'"):
        nn.Dense(3, unit=4)


@pytest.mark.parametrize("block", [gluon.Block(), gluon.HybridBlock(), nn.Sequential()])
def test_a_child_must_be_a_block(block):
    with pytest.raises(ValueError, match="must be a Block, got int"):
        block.register_child(4)
    with pytest.raises(ValueError, match="its own child"):
        block.itself = block


def test_children_answer_as_the_child_and_as_a_reference():
    net = ready(Net())
    child = net._children["hidden"]
    assert child() is net.hidden
    assert isinstance(child, nn.Dense)
    assert child.weight is net.hidden.weight
    assert child == net.hidden
    x = np.ones((2, 3))
    onp.testing.assert_array_equal(child(x).asnumpy(), net.hidden(x).asnumpy())
    net.copy_of_hidden = child
    assert net.copy_of_hidden is net.hidden


def test_no_property_raises_when_read():
    for block in (Net(), nn.HybridSequential(), nn.Conv2D(2, 3), gluon.HybridBlock()):
        for name in dir(block):
            getattr(block, name)


def test_a_shared_parameter_is_listed_under_each_name():
    net = gluon.Block()
    net.a = gluon.Parameter("w", shape=(2,))
    net.b = net.a
    assert list(net.collect_params()) == ["a", "b"]
    assert net.a is net.b


def test_apply_visits_children_first():
    seen = []
    net = Net()
    assert net.apply(lambda block: seen.append(type(block).__name__)) is net
    assert seen == ["Activation", "Dense", "Dense", "Net"]


def test_repr_nests():
    assert repr(Net()) == (
        "Net(\n  (hidden): Dense(3 -> 4, Activation(relu))\n  (output): Dense(4 -> 2, linear)\n)"
    )
    outer = nn.Sequential()
    outer.add(nn.Sequential(), Net())
    assert repr(outer) == (
        "Sequential(\n  (0): Sequential()\n  (1): Net(\n    (hidden): Dense(3 -> 4, Activation(relu))\n"
        "    (output): Dense(4 -> 2, linear)\n  )\n)"
    )


# Calling ------------------------------------------------------------------------------------------------------


def test_forward_before_initialize_names_the_parameter_from_the_outermost_block():
    net = nn.Sequential()
    net.add(Net())
    with pytest.raises(
        RuntimeError, match=r"'0.hidden.weight' has not been initialized\nhint: call initialize"
    ):
        net(np.ones((2, 3)))


def test_a_layer_added_after_initialize_is_uninitialised():
    net = nn.HybridSequential()
    net.add(nn.Dense(2, in_units=3))
    net.initialize()
    net.add(nn.Dense(1))
    with pytest.raises(RuntimeError, match=r"'1.weight'"):
        net(np.ones((1, 3)))


def test_forward_takes_none_keywords_and_nested_arguments():
    class Flexible(gluon.HybridBlock):
        def forward(self, x=None, *rest, scale=1.0):
            return "nothing" if x is None else (x * scale, rest)

    net = Flexible()
    assert net() == "nothing"
    y, rest = net(np.ones(2), [1, 2], scale=3.0)
    onp.testing.assert_array_equal(y.asnumpy(), [3, 3])
    assert rest == ([1, 2],)
    onp.testing.assert_array_equal(net(x=np.ones(2))[0].asnumpy(), [1, 1])


@pytest.mark.parametrize("block", [gluon.Block(), gluon.HybridBlock()])
def test_a_block_without_forward_says_so(block):
    with pytest.raises(NotImplementedError, match="Block defines n"):
        block(np.ones(1))


def test_own_infer_shape_fills_deferred_dimensions_once():
    calls = []

    class Scale(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = gluon.Parameter("weight", shape=(-1,), init="ones", allow_deferred_init=True)

        def infer_shape(self, x, *args):
            calls.append(x.shape)
            self.weight.shape = (x.shape[-1],)

        def forward(self, x, shift=0.0):
            return x * self.weight.data() + shift

    net = ready(Scale(), 2, 5)
    net(np.ones((3, 5)), shift=1.0)
    assert calls == [(2, 5)]
    assert net.weight.shape == (5,)


def test_missing_infer_shape_is_explained():
    class Scale(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = gluon.Parameter("weight", shape=(-1,), allow_deferred_init=True)

        def forward(self, x):
            return x * self.weight.data()

    with pytest.raises(RuntimeError, match=r"unknown shape.*\nhint:.*Scale.infer_shape"):
        ready(Scale(), 2, 5)


def test_hybrid_forward_gets_operators_and_parameters():
    class Old(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.gain = self.params.get("weight", shape=(3,), init="ones")
            self.params.get("loose", shape=(1,))  # no attribute: not an argument of hybrid_forward

        def hybrid_forward(self, F, x, y=None, gain=None):
            assert F.np.ones is np.ones
            with pytest.raises(AttributeError, match="no operator 'nonesuch'"):
                F.nonesuch  # noqa: B018
            x = F.relu(F.npx.relu(x) * gain)
            return x if y is None else x + F.exp(y)

    net = ready(Old())
    onp.testing.assert_array_equal(net(np.array([-1.0, 0.0, 2.0])).asnumpy(), [0, 0, 2])
    onp.testing.assert_allclose(net(np.zeros(3), np.zeros(3)).asnumpy(), [1, 1, 1])
    net.hybridize()
    onp.testing.assert_allclose(net(np.zeros(3), y=np.zeros(3)).asnumpy(), [1, 1, 1])


def test_hybridize_takes_both_versions_options_and_keeps_results():
    net = ready(nn.HybridSequential())
    net.add(Net(), nn.Dense(1, in_units=2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.initialize()
    x = np.ones((2, 3))
    eager = net(x).asnumpy()
    net.hybridize(
        static_alloc=True, static_shape=True, inline_limit=2, forward_bulk_size=4, backward_bulk_size=4
    )
    net.hybridize(partition_if_dynamic=False)
    onp.testing.assert_array_equal(net(x).asnumpy(), eager)
    net.hybridize(active=False)
    with pytest.raises(TypeError, match="static_aloc"):
        net.hybridize(static_aloc=True)
    with pytest.raises(ValueError, match="no backend 'MKLDNN'"):
        net.hybridize(backend="MKLDNN")


def test_gradients_reach_parameters_through_blocks():
    net = ready(Net())
    with autograd.record():
        loss = net(np.ones((2, 3))).sum()
    loss.backward()
    onp.testing.assert_array_equal(net.output.bias.grad().asnumpy(), [2, 2])
    net.zero_grad()
    onp.testing.assert_array_equal(net.output.bias.grad().asnumpy(), [0, 0])


# Hooks and summary --------------------------------------------------------------------------------------------


def test_hooks_see_inputs_and_outputs_and_detach():
    net = ready(Net())
    log = []
    before = net.register_forward_pre_hook(lambda block, inputs: log.append(("before", block, inputs)))
    after = net.register_forward_hook(lambda block, inputs, outputs: log.append(("after", inputs, outputs)))
    x = np.ones((1, 3))
    y = net(x)
    assert log[0][:2] == ("before", net)
    assert log[0][2][0] is x
    assert log[1][0] == "after"
    assert log[1][1][0] is x
    assert log[1][2] is y
    before.detach()
    before.detach()
    with after:
        net(x)
    net(x)
    assert [entry[0] for entry in log] == ["before", "after", "after"]


def test_a_hook_may_detach_itself_and_cannot_replace_the_output():
    net = ready(Net())
    calls = []

    def once(block, inputs, outputs):
        calls.append(block)
        handle.detach()
        return "ignored"

    handle = net.register_forward_hook(once)
    assert net(np.ones((1, 3))).shape == (1, 2)
    net(np.ones((1, 3)))
    assert calls == [net]
    with pytest.raises(TypeError, match="callable"):
        net.register_forward_hook(3)


def test_summary_counts_parameters(capsys):
    net = nn.HybridSequential()
    net.add(nn.Dense(3, activation="relu"), nn.BatchNorm(), nn.Dense(2, in_units=3))
    net.initialize()
    assert net.summary(np.ones((4, 5))) is None
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines[3:8]]
    assert rows == [
        ["Input", "(4,", "5)", "0"],
        ["Activation-1", "(4,", "3)", "0"],
        ["Dense-2", "(4,", "3)", "18"],
        ["BatchNorm-3", "(4,", "3)", "12"],
        ["Dense-4", "(4,", "2)", "8"],
    ]
    assert "   Total params: 38" in lines
    assert "   Trainable params: 32" in lines
    assert "   Non-trainable params: 6" in lines
    assert not net[0]._forward_hooks


def test_summary_counts_shared_parameters(capsys):
    class Twice(gluon.Block):
        def __init__(self):
            super().__init__()
            self.a = nn.Dense(3, in_units=3)
            self.b = nn.Dense(3, params=self.a.params)

        def forward(self, x):
            return self.b(self.a(x)), [x, x]

    ready(Twice()).summary(np.ones((1, 3)))
    out = capsys.readouterr().out
    assert "(1, 3), [(1, 3), (1, 3)]" in out
    assert "   Total params: 24" in out
    assert "Shared params in forward computation graph: 12" in out
    assert "Unique parameters in model: 12" in out


# The block as a whole -----------------------------------------------------------------------------------------


def test_cast_changes_parameters_but_batch_norm_stays_float32():
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=2), nn.BatchNorm(in_channels=3))
    net.initialize()
    net.cast("float16")
    assert {name: str(p.dtype) for name, p in net.collect_params().items()} == {
        "0.weight": "float16",
        "0.bias": "float16",
        "1.gamma": "float32",
        "1.beta": "float32",
        "1.running_mean": "float32",
        "1.running_var": "float32",
    }
    assert net[0].weight.data().dtype == onp.float16
    assert net[0].weight.grad().dtype == onp.float16
    net.cast("float64")
    assert net[1].gamma.data().dtype == onp.float64


def test_initialize_again_warns_and_force_reinit_makes_new_arrays():
    net = ready(nn.Dense(3, in_units=2))
    before = net.weight.data()
    with pytest.warns(UserWarning, match="is already initialized") as caught:
        net.initialize()
    assert len(caught) == 2
    assert net.weight.data() is before
    net.initialize(init="zeros", force_reinit=True)
    assert net.weight.data() is not before
    onp.testing.assert_array_equal(net.weight.data().asnumpy(), onp.zeros((3, 2)))


def test_setattr_reaches_all_parameters():
    net = ready(Net())
    net.setattr("grad_req", "null")
    net.collect_params().setattr("lr_mult", 0.5)
    assert {p.grad_req for p in net.collect_params().values()} == {"null"}
    assert net.scale.lr_mult == 0.5
    with pytest.raises(RuntimeError, match=r"'hidden.weight' has no gradient because grad_req='null'"):
        net.hidden.weight.grad()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_are_independent_and_train(duplicate):
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=3), nn.Dense(3))
    net.add(nn.Dense(3, params=net[0].params))
    ready(net, 1, 3)
    other = duplicate(net)
    x = np.ones((2, 3))
    onp.testing.assert_array_equal(other(x).asnumpy(), net(x).asnumpy())
    assert other[2].weight is other[0].weight
    assert other[0].weight is not net[0].weight
    assert isinstance(other._children["0"](), nn.Dense)
    assert other._children["0"]() is other[0]
    other[0].weight.set_data(np.zeros((3, 3)))
    assert net[0].weight.data().asnumpy().any()
    with autograd.record():
        loss = other(x).sum()
    loss.backward()
    assert other[2].bias.grad().asnumpy().any()


def test_errors_are_mxnet_errors_too():
    with pytest.raises(MXNetError):
        gluon.Block().register_child(3)
    with pytest.raises(MXNetError):
        Net()(np.ones((1, 3)))
