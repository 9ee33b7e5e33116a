"""The store of one process: sums over devices, updates inside the store, refused misuse."""

import numpy as onp
import pytest

import mxnp as mx
from mxnp import kvstore, np, optimizer
from mxnp.error import MXNetError

DEVICES = [mx.cpu(0), mx.cpu(1)]


def on_each(*values, size=3):
    return [np.full((size,), float(v), device=d) for v, d in zip(values, DEVICES, strict=True)]


def values(arrays):
    return [a.tolist() for a in arrays]


@pytest.fixture(params=["local", "device", "nccl"])
def kv(request):
    return kvstore.create(request.param)


def test_init_and_pull(kv):
    first = np.ones(3)
    kv.init("a", first)
    first[:] = 9
    out = on_each(0, 0)
    kv.pull("a", out=out)
    assert values(out) == [[1.0] * 3] * 2
    assert [a.device for a in out] == DEVICES


def test_push_replaces_by_the_sum(kv):
    kv.init("a", np.ones(3))
    pushed, out = on_each(2, 3), on_each(0, 0)
    kv.push("a", pushed)
    kv.pull("a", out=out)
    assert values(out) == [[5.0] * 3] * 2
    assert values(pushed) == [[2.0] * 3, [3.0] * 3]


def test_pushpull(kv):
    kv.init(3, np.ones(3))
    pushed, out = on_each(2, 3), on_each(0, 0)
    kv.pushpull(3, pushed, out=out)
    assert values(out) == [[5.0] * 3] * 2
    assert values(pushed) == [[2.0] * 3, [3.0] * 3]
    kv.pushpull(3, pushed)
    assert values(pushed) == [[5.0] * 3] * 2
    kv.pushpull(3, np.full((3,), 7.0), out=out[0])
    assert values(out) == [[7.0] * 3, [5.0] * 3]


def test_a_pushed_array_and_the_stored_value_stay_apart(kv):
    kv.init("a", np.ones(3))
    pushed, out = np.full((3,), 2.0), np.zeros(3)
    kv.push("a", pushed)
    pushed[:] = 9
    kv.pull("a", out=out)
    assert out.tolist() == [2.0] * 3


def test_broadcast(kv):
    out = on_each(0, 0)
    kv.broadcast("b", np.full((3,), 4.0), out=out)
    assert values(out) == [[4.0] * 3] * 2


def test_lists_of_keys(kv):
    kv.init([3, 4], [np.ones(2), np.full((2,), 2.0)])
    kv.push([3, 4], [[np.ones(2), np.ones(2)], np.ones(2)])
    out = [np.zeros(2), np.zeros(2)]
    kv.pull([3, 4], out=out)
    assert values(out) == [[2.0, 2.0], [1.0, 1.0]]


def test_an_optimizer_inside(kv):
    kv.init(3, np.full((3,), 2.0))
    kv.set_optimizer(optimizer.SGD(learning_rate=0.5))
    out = on_each(0, 0)
    kv.pushpull(3, on_each(1, 2), out=out)
    assert values(out) == [[0.5] * 3] * 2


def test_a_function_as_updater(kv):
    kv.init("a", np.ones(3))

    def subtract(key, total, stored):
        assert key == "a"
        stored -= total

    kv._set_updater(subtract)
    out = np.zeros(3)
    kv.pushpull("a", on_each(1, 2), out=out)
    assert out.tolist() == [-2.0] * 3


def test_optimizer_states(kv, tmp_path):
    def push(store, times):
        out = np.zeros(3)
        for _ in range(times):
            store.pushpull(0, np.ones(3), out=out)
        return out.tolist()

    kv.init(0, np.zeros(3))
    kv.set_optimizer(optimizer.SGD(learning_rate=0.5, momentum=0.5))
    push(kv, 2)
    kv.save_optimizer_states(tmp_path / "states", dump_optimizer=True)
    other = kvstore.create(kv.type)
    out = np.zeros(3)
    kv.pull(0, out=out)
    other.init(0, out)
    other.set_optimizer(optimizer.SGD(learning_rate=9.0, momentum=0.5))
    other.load_optimizer_states(tmp_path / "states")
    assert push(other, 2) == push(kv, 2)


def test_facts(kv):
    assert (kv.rank, kv.num_workers) == (0, 1)
    assert kv.type in ("local", "device", "nccl")
    assert kv.is_capable("optimizer")
    assert not kv.is_capable("teleport")


def test_registered_stores_are_created_by_name():
    @kvstore.KVStoreBase.register
    class MyStore(kvstore.KVStoreBase):
        pass

    try:
        assert type(kvstore.create("mystore")) is MyStore
        with pytest.raises(NotImplementedError, match="MyStore does not define pushpull"):
            kvstore.create("MyStore").pushpull(0, np.ones(1))
    finally:
        del kvstore.KVStoreBase.kv_registry["mystore"]


@pytest.mark.parametrize(
    ("misuse", "kind", "text"),
    [
        (lambda kv: kv.init("a", np.ones(3)), ValueError, "key 'a' is already there"),
        (lambda kv: kv.push("z", np.ones(3)), ValueError, "no key 'z'\nhint: call init"),
        (lambda kv: kv.pull(0, out=np.ones(3)), ValueError, "no key 0"),
        (lambda kv: kv.push("a", np.ones(4)), ValueError, r"key 'a' has shape \(3,\), got \(4,\)"),
        (lambda kv: kv.pull("a", out=np.ones((1, 3))), ValueError, r"has shape \(3,\), got \(1, 3\)"),
        (lambda kv: kv.pull("a"), TypeError, "key 'a' needs an array"),
        (lambda kv: kv.push("a", []), TypeError, "key 'a' needs an array"),
        (lambda kv: kv.push(["a"], np.ones(3)), ValueError, "1 keys need a list of 1 values"),
        (lambda kv: kv.push(1.5, np.ones(3)), TypeError, "keys are ints or strings, got 1.5"),
        (lambda kv: kv.set_optimizer("sgd"), TypeError, "expected an Optimizer, got 'sgd'"),
        (lambda kv: kv.save_optimizer_states("x"), ValueError, "hint: call set_optimizer first"),
        (lambda kv: kv.set_gradient_compression({}), NotImplementedError, "not compressed"),
        (lambda kv: kv.row_sparse_pull("a"), NotImplementedError, "no sparse arrays"),
        (lambda kv: kvstore.create("foo"), ValueError, "no store is called 'foo'"),
        (lambda kv: kvstore.create(3), TypeError, "expected a name, got 3"),
        (lambda kv: kvstore.create("dist_sync"), NotImplementedError, "'dist_sync' spans processes"),
    ],
)
def test_misuse_is_refused(kv, misuse, kind, text):
    kv.init("a", np.ones(3))
    with pytest.raises(kind, match=text) as raised:
        misuse(kv)
    assert isinstance(raised.value, MXNetError)
    out = np.zeros(3)
    kv.pull("a", out=out)
    onp.testing.assert_array_equal(out.asnumpy(), onp.ones(3))
