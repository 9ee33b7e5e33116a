"""Update rules against MXNet 2.0.0b1's weights, and what all optimizers share."""

import copy
import json
import pickle
from pathlib import Path

import numpy as onp
import pytest

from mxnp import autograd, lr_scheduler, np, optimizer
from mxnp.error import MXNetError

WEIGHT = [1.0, -2.0, 0.5, 0.0]
GRADS = [[0.5, -1.5, 0.1, 3.0], [0.2, 0.4, -0.3, -1.0], [-0.7, 0.1, 0.9, 0.05]]
RECORDED = json.loads((Path(__file__).parent / "mxnet_updates.json").read_text())


def run(opt, dtype="float32", batched=True):
    weight = np.array(WEIGHT, dtype=dtype)
    state = opt.create_state_multi_precision(0, weight)
    seen = []
    for values in GRADS:
        grad = np.array(values, dtype=dtype)
        if batched:
            opt.update_multi_precision([0], [weight], [grad], [state])
        else:
            opt.update_multi_precision(0, weight, grad, state)
        assert grad.tolist() == np.array(values, dtype=dtype).tolist()
        seen.append(weight.asnumpy())
    return onp.stack(seen)


def case_id(row):
    return f"{row['optimizer']}-" + "-".join(f"{k}={v}" for k, v in row["arguments"].items())


@pytest.mark.parametrize("row", RECORDED, ids=case_id)
def test_weights_match_mxnet(row):
    got = run(optimizer.create(row["optimizer"], **row["arguments"]))
    onp.testing.assert_allclose(got, row["weights"], rtol=2e-6, atol=5e-7)


@pytest.mark.parametrize("row", RECORDED, ids=case_id)
def test_half_precision_with_master_weights_follows_float32(row):
    opt = optimizer.create(row["optimizer"], multi_precision=True, **row["arguments"])
    onp.testing.assert_allclose(run(opt, "float16"), row["weights"], rtol=2e-3, atol=2e-3)


def test_master_weights_keep_updates_that_float16_loses():
    weight = np.ones(1, dtype="float16")
    opt = optimizer.SGD(learning_rate=1e-4, multi_precision=True)
    state = opt.create_state_multi_precision(0, weight)
    for _ in range(20):
        opt.update_multi_precision(0, weight, np.ones(1, dtype="float16"), state)
    assert weight.dtype == onp.float16
    assert float(state[0][0]) == pytest.approx(0.998, abs=1e-6)
    assert float(weight[0]) == float(onp.float16(0.998))


def test_float16_without_master_weights_warns():
    with pytest.warns(UserWarning, match="multi_precision=True keeps float32 copies"):
        optimizer.SGD(momentum=0.9).create_state_multi_precision(0, np.ones(1, dtype="float16"))


@pytest.mark.parametrize("name", sorted({row["optimizer"] for row in RECORDED}))
def test_one_weight_or_lists_of_them(name):
    onp.testing.assert_array_equal(
        run(optimizer.create(name), batched=True), run(optimizer.create(name), batched=False)
    )


@pytest.mark.parametrize("name", sorted(optimizer.Optimizer.opt_registry))
def test_updates_are_in_place_and_unrecorded(name):
    opt = optimizer.create(name, learning_rate=0.1)
    weight = np.array(WEIGHT)
    weight.attach_grad()
    alias = weight
    state = opt.create_state(0, weight)
    with autograd.record():
        opt.update(0, weight, np.array(GRADS[0]), state)
    assert alias is weight
    assert weight.tolist() != WEIGHT
    with autograd.record():
        y = (weight * weight).sum()
    y.backward()
    onp.testing.assert_allclose(weight.grad.asnumpy(), 2 * weight.asnumpy(), rtol=1e-6)


def test_sgld_adds_noise_of_the_variance_of_the_rate():
    np.random.seed(3)
    opt = optimizer.SGLD(learning_rate=0.25)
    weight = np.zeros((200, 200))
    opt.update(0, weight, np.ones((200, 200)), None)
    values = weight.asnumpy()
    assert values.mean() == pytest.approx(-0.125, abs=0.02)
    assert values.std() == pytest.approx(0.5, abs=0.01)


def test_lars_leaves_biases_alone():
    opt = optimizer.LARS(learning_rate=1.0, param_idx2name={0: "dense0_bias", 1: "dense0_weight"})
    for index, expected in ((0, [-1.0, 0.0]), (1, [1.0 - 0.001, 1.0])):
        weight = np.array([0.0, 1.0] if index == 0 else [1.0, 1.0])
        grad = np.array([1.0, 1.0])
        opt.update(index, weight, grad, opt.create_state(index, weight))
        if index == 0:
            assert weight.tolist() == expected
        else:
            assert weight.asnumpy() == pytest.approx(0.999, abs=1e-6)


def test_zero_norms_do_not_make_nan():
    for name in ("lamb", "lans", "lars"):
        opt = optimizer.create(name)
        weight = np.zeros(3)
        opt.update(0, weight, np.zeros(3), opt.create_state(0, weight))
        assert weight.tolist() == [0.0, 0.0, 0.0]


def test_multipliers_by_index_name_and_parameter():
    class Param:
        lr_mult, wd_mult = 0.5, 3.0

    opt = optimizer.SGD(learning_rate=1.0, wd=0.1, param_idx2name={0: "a_bias", 1: "b_weight"})
    assert [opt._get_lr(i) for i in range(3)] == [1.0, 1.0, 1.0]
    assert [opt._get_wd(i) for i in range(3)] == [0.1, 0.1, 0.1]
    opt.set_lr_mult({"a_bias": 0.25, 2: 4.0})
    opt.set_wd_mult({"b_weight": 0.0})
    opt.param_dict = {3: Param()}
    assert opt._get_lrs([0, 1, 2, 3]) == [0.25, 1.0, 4.0, 0.5]
    assert opt._get_wds([0, 1, 2, 3]) == pytest.approx([0.1, 0.0, 0.1, 0.3])


def test_update_counts():
    opt = optimizer.SGD(begin_num_update=5)
    assert opt.num_update == 5
    opt._update_count([0, 1])
    opt._update_count(0)
    assert (opt.num_update, opt._index_update_count) == (7, {0: 7, 1: 6})
    opt._set_current_device(1)
    opt._update_count(0)
    assert (opt.num_update, opt._index_update_count) == (7, {0: 6})
    opt._set_current_context(0)
    assert opt._index_update_count == {0: 7, 1: 6}


def test_scheduler_is_called_with_1_2_3():
    seen = []

    def schedule(num_update):
        seen.append(num_update)
        return 1.0

    opt = optimizer.SGD(lr_scheduler=schedule)
    for _ in range(3):
        opt.update([0, 1], [np.ones(1), np.ones(1)], [np.ones(1), np.ones(1)], [None, None])
    assert seen == [1, 2, 3]


@pytest.mark.parametrize("rate", [onp.float64(0.5), onp.float32(0.5), onp.array(0.5)], ids=type)
def test_numpy_rates_do_not_widen_the_arithmetic(rate):
    opt = optimizer.SGD(lr_scheduler=lambda n: rate, wd=onp.float64(0.5))
    assert [type(each) for each in opt._get_lrs([0]) + opt._get_wds([0])] == [float, float]
    weight = np.array([1.0])
    opt.update(0, weight, np.array([1.5]), None)
    assert (weight.tolist(), weight.dtype) == ([0.0], onp.float32)


def test_base_lr_stands_unless_a_rate_is_given():
    schedule = lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0)
    assert optimizer.SGD(lr_scheduler=schedule).learning_rate == 1.0
    assert schedule.base_lr == 1.0
    assert optimizer.SGD(learning_rate=0.3, lr_scheduler=schedule).learning_rate == 0.3
    assert schedule.base_lr == 0.3
    assert optimizer.SGD().learning_rate == 0.1
    assert optimizer.Adam().learning_rate == 0.001


def test_a_rate_under_a_scheduler_cannot_be_set():
    opt = optimizer.SGD(lr_scheduler=lambda n: 1.0 / n)
    with pytest.raises(UserWarning, match="has an lr_scheduler"):
        opt.set_learning_rate(1.0)
    opt = optimizer.SGD()
    opt.set_learning_rate(0.7)
    assert opt.learning_rate == 0.7


def test_negative_clip_is_no_clip():
    weight = np.zeros(1)
    optimizer.SGD(learning_rate=1.0, clip_gradient=-1).update(0, weight, np.full(1, 5.0), None)
    assert weight.tolist() == [-5.0]


def test_old_argument_names():
    opt = optimizer.create("RMSProp", gamma1=0.5, gamma2=0.25)
    assert (opt.rho, opt.momentum) == (0.5, 0.25)
    assert optimizer.create("FTML", clip_grad=2.0).clip_gradient == 2.0
    assert optimizer.AdaGrad(eps=1e-3).epsilon == 1e-3
    assert optimizer.LARS(eps=1e-3).epsilon == 1e-3
    assert type(optimizer.create("ccSGD")) is optimizer.SGD


def test_create_by_name_or_instance():
    opt = optimizer.create("SgD", momentum=0.5)
    assert isinstance(opt, optimizer.SGD)
    assert optimizer.create(opt) is opt


def test_registered_subclasses_of_both_styles():
    @optimizer.register
    class PlainStyle2(optimizer.Optimizer):
        def step(self, indices, weights, grads, states):
            self._update_count(indices)
            for i, weight, grad in zip(indices, weights, grads, strict=True):
                weight[:] -= self._get_lr(i) * grad

    @optimizer.Optimizer.register
    class PlainStyle1(optimizer.Optimizer):
        def create_state(self, index, weight):
            return np.zeros(weight.shape)

        def update(self, index, weight, grad, state):
            self._update_count(index)
            state[:] += grad
            weight[:] -= self._get_lr(index) * state

    for name, expected in (("plainstyle2", [0.0, 1.0]), ("plainstyle1", [0.0, 1.0])):
        updater = optimizer.get_updater(optimizer.create(name, learning_rate=0.5))
        weights = [np.array([1.0]), np.array([2.0])]
        updater([0, 1], [np.array([2.0]), np.array([2.0])], weights)
        assert [float(w[0]) for w in weights] == expected
        del optimizer.Optimizer.opt_registry[name]


def test_replacing_a_registered_name_warns():
    class Adam(optimizer.Optimizer):
        pass

    try:
        with pytest.warns(UserWarning, match="optimizer 'adam': .* replaces"):
            optimizer.register(Adam)
        assert type(optimizer.create("adam")) is Adam
    finally:
        optimizer.Optimizer.opt_registry["adam"] = optimizer.Adam
    optimizer.register(optimizer.Adam)


def test_norms_of_half_precision_do_not_overflow():
    weight, grad = np.full((4,), 300.0, dtype="float16"), np.ones(4, dtype="float16")
    opt = optimizer.LARS(learning_rate=1.0, eta=0.5, multi_precision=False)
    opt.update(0, weight, grad, None)
    assert weight.tolist() == pytest.approx([150.0] * 4, rel=2e-3)


def test_pickle_and_deepcopy_leave_parameters_behind():
    opt = optimizer.SGD(learning_rate=0.5, momentum=0.9, param_dict={0: object()})
    opt._update_count([0])
    for clone in (pickle.loads(pickle.dumps(opt)), copy.deepcopy(opt)):
        assert (clone.lr, clone.momentum, clone.num_update, clone.param_dict) == (0.5, 0.9, 1, {})


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: optimizer.SGD(foo=1, bar=2), TypeError, "SGD: unknown argument 'bar', 'foo'"),
        (
            lambda: optimizer.create("foo"),
            ValueError,
            "no optimizer is called 'foo'\nhint: there are adabelief",
        ),
        (lambda: optimizer.create(3), TypeError, "expected a name or an Optimizer, got 3"),
        (
            lambda: optimizer.create(optimizer.SGD(), momentum=1),
            ValueError,
            r"\['momentum'\] cannot be applied",
        ),
        (lambda: optimizer.SGD(lr_scheduler=3), TypeError, "lr_scheduler must be callable, got 3"),
        (lambda: optimizer.SGD(param_idx2name=["a"]), TypeError, "param_idx2name must be a dict"),
        (lambda: optimizer.Adam(beta1=1.0), ValueError, r"Adam: beta1 must be in \[0, 1\), got 1.0"),
        (lambda: optimizer.FTML(clip_grad=1, clip_gradient=1), TypeError, "mean the same"),
        (
            lambda: optimizer.Optimizer().update(0, np.ones(1), np.ones(1), None),
            NotImplementedError,
            "Optimizer defines neither",
        ),
    ],
)
def test_bad_arguments_are_named(make, kind, text):
    with pytest.raises(kind, match=text) as raised:
        make()
    assert isinstance(raised.value, MXNetError)


def test_the_test_optimizer():
    """The figures are MXNet 2.0.0b1's."""
    halved = optimizer.create("test", learning_rate=0.5, rescale_grad=0.5)
    decayed = optimizer.Test(learning_rate=0.1, wd=0.5, clip_gradient=0.1)
    for opt, result in ((halved, [0.75, 2.25]), (decayed, [0.85, 2.0])):
        w, state = np.array([1.0, 2.0]), np.zeros(2)
        opt.update(0, w, np.array([1.0, -1.0]), state)
        assert np.allclose(w, np.array(result))
        assert state.tolist() == [0, 0]
