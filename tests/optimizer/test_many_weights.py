"""One call that updates many weights: the same bits as one call for each, whatever their shapes, dtypes and memory."""

import pytest

import mxnp as mx
from mxnp import _core, np
from mxnp.optimizer import adam

OPTIMIZERS = {
    "sgd": {"learning_rate": 0.1, "wd": 0.01},
    "sgd with momentum": {"learning_rate": 0.1, "momentum": 0.9, "clip_gradient": 0.5},
    "adam": {"learning_rate": 0.1, "wd": 0.01},
}
SHAPES = [(3, 4), (), (0, 2), (70_000,), (33, 1), (40_000,), (1,), (200, 200)]


def make(name):
    """An optimizer whose rate and decay differ from weight to weight."""
    optimizer = mx.optimizer.create(name.split()[0], **OPTIMIZERS[name])
    optimizer.set_lr_mult({1: 0.5, 3: 2.0})
    optimizer.set_wd_mult({2: 0.0})
    return optimizer


def weights_of(dtypes):
    mx.random.seed(3)
    return [np.random.normal(size=shape).astype(dtypes[i % len(dtypes)]) for i, shape in enumerate(SHAPES)]


@pytest.mark.filterwarnings("ignore:.*float16 weights lose small updates")
@pytest.mark.parametrize("dtypes", [("float32",), ("float16", "float64", "float32")])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_many_weights_at_once_are_updated_as_one_by_one(name, dtypes):
    together, alone = weights_of(dtypes), weights_of(dtypes)
    at_once, one_by_one = mx.optimizer.get_updater(make(name)), mx.optimizer.get_updater(make(name))
    indices = list(range(len(SHAPES)))
    for _ in range(3):
        grads = [np.random.normal(size=w.shape).astype("float32") for w in together]
        at_once(indices, grads, together)
        for i in indices:
            one_by_one(i, grads[i], alone[i])
    for a, b in zip(together, alone, strict=True):
        assert a.dtype == b.dtype
        assert a.asnumpy().tobytes() == b.asnumpy().tobytes()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_weights_that_share_memory_are_updated_in_their_order(name):
    def run(indices_of_calls):
        mx.random.seed(4)
        updater = mx.optimizer.get_updater(make(name))
        base = np.random.normal(size=(600, 400))
        views = [base[:300], base[1:301], base[:, ::2], base.T[3:, ::-1], base]
        for _ in range(2):
            grads = [np.random.normal(size=v.shape) for v in views]
            for indices in indices_of_calls:
                updater(indices, [grads[i] for i in indices], [views[i] for i in indices])
        return base.asnumpy().tobytes()

    assert run([[0, 1, 2, 3, 4]]) == run([[0], [1], [2], [3], [4]])


def test_a_step_is_one_call_for_each_dtype(monkeypatch):
    calls = []
    update = adam.adam_update
    monkeypatch.setattr(
        adam, "adam_update", lambda *columns: (calls.append(len(columns[0])), update(*columns))
    )
    weights = weights_of(("float32", "float64"))
    mx.optimizer.get_updater(make("adam"))(list(range(8)), weights, weights)
    assert calls == [4, 4]


def test_bad_weights_change_nothing():
    update = _core.op("sgd_update")
    w, g = [np.ones((2,)), np.ones((3,))], [np.ones((2,)), np.ones((4,))]
    with pytest.raises(ValueError, match=r"\(3,\).*\(4,\)"):
        update(*w, *g, 0.1, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"one a weight, got shape \(3,\)"):
        update(*w, *w, np.ones(3), 0.0, 1.0)
    with pytest.raises(TypeError, match="2 arrays for each weight"):
        update(*w, w[0], 0.1, 0.0, 1.0)
    with pytest.raises(TypeError, match="one dtype"):
        update(w[0], w[1].astype("float64"), *w, 0.1, 0.0, 1.0)
    assert [x.tolist() for x in w] == [[1, 1], [1, 1, 1]]
