"""Initializers: exact values, distributions, rules by name, the registry, and refused arguments."""

import json
import logging
import pickle

import numpy as onp
import pytest

from mxnp import initializer as init
from mxnp import np
from mxnp.error import MXNetError
from mxnp.initializer import InitDesc


def filled(initializer, shape, name="weight", **kwargs):
    arr = np.full(shape, 7.0, **kwargs)
    alias = arr
    initializer(InitDesc(name), arr)
    assert alias is arr
    return arr.asnumpy()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("weight", 5.0),
        ("0.weight", 5.0),
        ("dense0_weight", 5.0),
        ("bias", 0.0),
        ("gamma", 1.0),
        ("beta", 0.0),
        ("bn_running_mean", 0.0),
        ("bn_moving_mean", 0.0),
        ("1.running_var", 1.0),
        ("bn_moving_var", 1.0),
        ("moving_inv_var", 0.0),
        ("moving_avg", 0.0),
        ("x_min", 0.0),
        ("x_max", 1.0),
    ],
)
def test_rules_by_name(name, expected):
    for key in (name, InitDesc(name)):
        arr = np.full((2, 3), 7.0)
        init.Constant(5.0)(key, arr)
        assert arr.tolist() == [[expected] * 3] * 2


def test_other_names_have_no_rule():
    with pytest.raises(ValueError, match="Xavier: no rule says how a parameter called 'alpha' starts"):
        filled(init.Xavier(), (2, 3), "alpha")

    class WithDefault(init.Initializer):
        def _init_default(self, name, arr):
            arr[:] = len(name)

    assert filled(WithDefault(), (2,), "alpha").tolist() == [5.0, 5.0]


@pytest.mark.parametrize("own", ["ones", '["one", {}]', init.One(), '["constant", {"value": 1}]'])
def test_a_parameters_own_initializer_wins(own):
    arr = np.zeros((2, 3))
    init.Xavier()(InitDesc("bias", {"__init__": own}), arr)
    assert arr.tolist() == [[1.0] * 3] * 2


def test_no_own_initializer_leaves_the_rules():
    for own in (None, ""):
        arr = np.ones((2, 3))
        init.Xavier()(InitDesc("bias", {"__init__": own}), arr)
        assert arr.tolist() == [[0.0] * 3] * 2


def test_a_custom_initializer_fills_in_place():
    seen = []

    class Custom(init.Initializer):
        def _init_weight(self, name, data):
            seen.append((str(name), name.attrs, data.shape))
            data[:] = np.random.uniform(1, 2, data.shape)
            data *= data > 1.5

    values = filled(Custom(), (50, 4), "0.weight")
    assert seen == [("0.weight", {}, (50, 4))]
    assert ((values == 0) | (values > 1.5)).all()
    assert 0 < (values == 0).sum() < values.size


def test_init_desc_is_a_str_with_attributes():
    desc = InitDesc("weight", {"a": 1}, global_init=init.Zero())
    assert desc == "weight"
    assert isinstance(desc, str)
    assert (desc.attrs, desc.global_init) == ({"a": 1}, init.Zero())
    assert InitDesc("x").attrs == {}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(
    ("initializer", "shape", "low", "high", "std"),
    [
        (init.Uniform(0.5), (200, 100), -0.5, 0.5, 0.5 / 3**0.5),
        (init.Normal(0.02), (200, 100), None, None, 0.02),
        (init.Xavier(), (64, 32, 3, 3), -((3 / 432) ** 0.5), (3 / 432) ** 0.5, (1 / 432) ** 0.5),
        (init.Xavier("uniform", "in", 6), (64, 50), -((6 / 50) ** 0.5), (6 / 50) ** 0.5, (2 / 50) ** 0.5),
        (init.Xavier("gaussian", "out", 2), (64, 50), None, None, (2 / 64) ** 0.5),
        (init.MSRAPrelu("in", 0.5), (64, 50), None, None, (1.6 / 50) ** 0.5),
    ],
    ids=repr,
)
def test_distributions(initializer, shape, low, high, std, dtype):
    np.random.seed(11)
    values = filled(initializer, shape, dtype=dtype).astype("float64")
    assert values.mean() == pytest.approx(0, abs=5 * std / values.size**0.5)
    assert values.std() == pytest.approx(std, rel=0.05)
    if low is not None:
        assert low * 1.001 <= values.min() < 0.99 * low
        assert 0.99 * high < values.max() <= high * 1.001
    else:
        assert onp.abs(values).max() > 2.5 * std


def test_seeding_repeats_initialization():
    first, second = [], []
    for results in (first, second):
        np.random.seed(5)
        results += [filled(init.Xavier(), (4, 3)).tolist(), filled(init.Normal(), (4, 3)).tolist()]
    assert first == second
    assert first[0] != filled(init.Xavier(), (4, 3)).tolist()


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (5, 5), (3, 2, 2, 2)])
@pytest.mark.parametrize("rand_type", ["uniform", "normal"])
def test_orthogonal(shape, rand_type):
    values = filled(init.Orthogonal(2.0, rand_type), shape).reshape(shape[0], -1)
    gram = values @ values.T if values.shape[0] <= values.shape[1] else values.T @ values
    onp.testing.assert_allclose(gram, 4.0 * onp.eye(len(gram)), atol=1e-5)


def test_bilinear_matches_mxnet():
    side = [0.25, 0.75, 0.75, 0.25]
    expected = onp.outer(side, side)
    onp.testing.assert_allclose(
        filled(init.Bilinear(), (2, 1, 4, 4)), onp.broadcast_to(expected, (2, 1, 4, 4))
    )
    row = onp.array([1, 2, 3, 2, 1]) / 3
    onp.testing.assert_allclose(
        filled(init.Bilinear(), (1, 1, 3, 5))[0, 0], onp.outer(row[:3], row), rtol=1e-6
    )


def test_lstm_bias():
    arr = np.full((8,), 7.0)
    init.Xavier()(InitDesc("lstm_i2h_bias", {"__init__": init.LSTMBias(2.0)}), arr)
    assert arr.tolist() == [0, 0, 2, 2, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "value", [[1.0, 2.0, 3.0], onp.array([1, 2, 3]), np.array([1.0, 2.0, 3.0])], ids=type
)
def test_constant_arrays(value):
    assert filled(init.Constant(value), (2, 3)).tolist() == [[1.0, 2.0, 3.0]] * 2
    assert filled(init.Constant(value), (3,), dtype="float16").tolist() == [1.0, 2.0, 3.0]
    name, kwargs = json.loads(init.Constant(value).dumps())
    assert (name, kwargs) == ("constant", {"value": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"a value of shape \(3,\) does not fit 'weight' of shape \(2, 2\)"):
        filled(init.Constant(value), (2, 2))


def test_zero_dimensions_and_no_elements():
    assert filled(init.Uniform(), ()).shape == ()
    assert filled(init.Constant(3), ()) == 3
    assert filled(init.Xavier(), (0, 4)).shape == (0, 4)


def test_mixed():
    mixed = init.Mixed(["bias", ".*"], [init.Constant(3), "ones"])
    assert filled(mixed, (2,), "bias_weight").tolist() == [3, 3]
    assert filled(mixed, (2,), "x_weight").tolist() == [1, 1]
    arr = np.zeros(2)
    mixed(InitDesc("x_weight", {"__init__": mixed}), arr)
    assert arr.tolist() == [1, 1]
    mixed(InitDesc("x_weight", {"__init__": "zeros"}), arr)
    assert arr.tolist() == [0, 0]
    with pytest.raises(ValueError, match="no pattern matches 'weight'\nhint:"):
        filled(init.Mixed(["x"], [init.Zero()]), (2,))


def test_load(tmp_path):
    onp.savez(tmp_path / "saved.npz", **{"arg:x_weight": onp.array([5.0, 6.0], "float32")})
    for saved in ({"arg:x_weight": np.array([5.0, 6.0])}, tmp_path / "saved.npz"):
        load = init.Load(saved, default_init="zeros")
        assert filled(load, (2,), "x_weight").tolist() == [5, 6]
        assert filled(load, (2,), "y_weight").tolist() == [0, 0]
    arr = np.ones(2)
    load(InitDesc("y_weight", {"__init__": load}), arr)
    assert arr.tolist() == [0, 0]
    with pytest.raises(AssertionError, match=r"'x_weight' has shape \(3,\), but \(2,\) was saved"):
        filled(load, (3,), "x_weight")
    with pytest.raises(AssertionError, match="there is no 'z', and no default_init"):
        filled(init.Load({}), (3,), "z")


def test_dumps_is_what_mxnet_writes():
    assert (
        init.Xavier().dumps() == '["xavier", {"rnd_type": "uniform", "factor_type": "avg", "magnitude": 3}]'
    )
    assert init.MSRAPrelu().dumps() == '["msraprelu", {"factor_type": "avg", "slope": 0.25}]'
    assert init.Normal().dumps() == '["normal", {"sigma": 0.01}]'
    assert init.Zero().dumps() == '["zero", {}]'
    assert init.LSTMBias().dumps() == '["lstmbias", {"forget_bias": 1.0}]'
    assert init.Orthogonal().dumps() == '["orthogonal", {"scale": 1.414, "rand_type": "uniform"}]'


def test_create():
    assert init.create("xavier", magnitude=2) == init.Xavier(magnitude=2)
    assert init.create(init.Xavier(magnitude=2).dumps()) == init.Xavier(magnitude=2)
    assert init.create("Zeros") == init.Zeros() == init.Zero()
    assert init.create() == init.Uniform()
    own = init.One()
    assert init.create(own) is own


def test_equality_and_pickling():
    assert init.Xavier() != init.Xavier(magnitude=2)
    assert init.Zero() != init.One()
    assert len({init.Zero(), init.Zero(), init.One()}) == 2
    assert pickle.loads(pickle.dumps(init.Xavier(magnitude=2))) == init.Xavier(magnitude=2)
    assert repr(init.Uniform(0.5)) == "Uniform(scale=0.5)"


def test_registered_names():
    @init.alias("mine", "OURS")
    @init.register
    class MyInit(init.Initializer):
        def _init_weight(self, name, arr):
            arr[:] = 4

    for name in ("myinit", "MyInit", "mine", "ours"):
        assert filled(init.create(name), (1,)).tolist() == [4]


def test_verbosity(caplog):
    with caplog.at_level(logging.INFO, logger="mxnp"):
        filled(init.Constant(3).set_verbosity(True), (2, 2))
        filled(init.Constant(3).set_verbosity(True, lambda arr: arr.shape), (2, 2))
        filled(init.Constant(3), (2, 2))
    assert [record.getMessage() for record in caplog.records] == [
        "Initialized weight as Constant: 3.0",
        "Initialized weight as Constant: (2, 2)",
    ]


@pytest.mark.parametrize(
    ("misuse", "kind", "text"),
    [
        (
            lambda: init.create("nope"),
            ValueError,
            "no initializer is called 'nope'\nhint: there are bilinear",
        ),
        (lambda: init.create(3), TypeError, "expected a name or an Initializer, got 3"),
        (lambda: init.create(init.Xavier), TypeError, "pass an instance, with parentheses"),
        (lambda: init.create("[1, 2]"), ValueError, 'expected \'\\["name"'),
        (lambda: init.create(init.Zero(), 3), ValueError, "cannot be applied to a finished Initializer"),
        (lambda: init.Xavier("foo"), ValueError, "rnd_type must be 'uniform' or 'gaussian', got 'foo'"),
        (lambda: init.Xavier(factor_type="foo"), ValueError, "factor_type must be 'avg', 'in' or 'out'"),
        (lambda: init.Orthogonal(rand_type="foo"), ValueError, "rand_type must be 'uniform' or 'normal'"),
        (
            lambda: filled(init.Xavier(), (3,)),
            ValueError,
            r"at least 2 dimensions, 'weight' has shape \(3,\)",
        ),
        (lambda: filled(init.MSRAPrelu(), (3,)), ValueError, "MSRAPrelu: a weight needs at least 2"),
        (lambda: filled(init.Orthogonal(), (3,)), ValueError, "Orthogonal: a weight needs at least 2"),
        (lambda: filled(init.Bilinear(), (3, 3)), ValueError, "Bilinear: a weight needs 4 dimensions"),
        (lambda: init.Mixed(["a"], []), ValueError, "1 patterns for 0 initializers"),
        (lambda: filled(init.Initializer(), (3,)), NotImplementedError, "does not define _init_weight"),
        (lambda: init.Zero()(3, np.zeros(3)), TypeError, "expected a parameter's name, got 3"),
        (lambda: init.register(3), TypeError, "expected a subclass of Initializer, got 3"),
    ],
)
def test_misuse_is_named(misuse, kind, text):
    with pytest.raises(kind, match=text) as raised:
        misuse()
    assert isinstance(raised.value, MXNetError)


def test_init_is_initializer():
    import mxnp.init

    assert mxnp.init.Xavier is init.Xavier
