"""Compiled blocks do what they do in Python: values, gradients, state, random draws, writes, errors."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as onp
import pytest

from gluon.compiled import Pair, block, mlp, same_bits, x_of
from mxnp import _core, autograd, gluon, np, npx
from mxnp.gluon import nn


def test_a_replay_runs_no_python():
    net = block(lambda x: np.tanh(x) * 2 + 1)
    for i in range(4):
        x = x_of(3, 4, seed=i)
        same_bits(net(x), np.tanh(x) * 2 + 1)
    assert net.runs == [1]
    net(x_of(2, 4))
    assert net.runs == [2]
    assert len(net._compiled.graphs()) == 2


@pytest.mark.parametrize("seed", range(3))
def test_training_equals_eager_bit_for_bit(seed):
    """Forward, running statistics, dropout's draws, gradients and updates."""
    nets = []
    for active in (False, True):
        np.random.seed(seed)
        net = mlp()
        net.initialize(init="xavier")
        if active:
            net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
        loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
        losses = []
        for step in range(6):
            x, y = x_of(8, 5, seed=step), np.array(onp.arange(8) % 4)
            with autograd.record():
                loss = loss_of(net(x), y)
            loss.backward()
            trainer.step(8)
            losses.append(loss.asnumpy())
            losses.append(net(x).asnumpy())
        nets.append((net, losses))
    (eager, a), (compiled, b) = nets
    for one, other in zip(a, b, strict=True):
        assert one.tobytes() == other.tobytes()
    for name, parameter in eager.collect_params().items():
        same_bits(parameter.data(), compiled.collect_params()[name].data())
    assert len(compiled._compiled.graphs()) == 2


def test_parameters_are_read_at_the_replay():
    net = nn.Dense(3, in_units=2)
    net.initialize()
    net.hybridize()
    x = x_of(4, 2)
    net(x)
    net.weight.set_data(np.ones((3, 2)))
    same_bits(net(x), npx.fully_connected(x, np.ones((3, 2)), np.zeros(3), num_hidden=3, no_bias=False))
    assert len(net._compiled.graphs()) == 1


def test_modes_and_kinds_of_arguments_make_graphs_of_their_own():
    net = block(lambda x, scale=1, flag=None: npx.dropout(x, p=0.5) * scale if flag is None else x)
    x = np.ones((4, 4))
    same_bits(net(x), x)
    with autograd.train_mode():
        assert set(net(x).asnumpy().ravel()) <= {0.0, 2.0}
    same_bits(net(x, 2), x * 2)
    same_bits(net(x, 2.0), x * 2)
    same_bits(net(x, scale=3), x * 3)
    same_bits(net(x, flag="a"), x)
    same_bits(net(x.astype("float64")), x.astype("float64"))
    same_bits(net(x), x)
    assert net.runs == [7]


def test_at_most_64_graphs_are_kept():
    net = block(lambda x, k: x * k)
    x = np.ones(2)
    for k in range(80):
        same_bits(net(x, k), x * k)
    assert len(net._compiled.graphs()) == 64
    same_bits(net(x, 79), x * 79)
    assert net.runs == [80]


def test_nested_values_come_and_go():
    def fn(x, rest):
        (a, b), named = rest["pair"], rest["named"]
        return {"sum": x + a, "list": [b, (x, None, "text", 1.5)], "pair": Pair(a * 2, named.left)}

    net = block(fn)
    for i in range(3):
        x, a, b, c = (x_of(2, 2, seed=10 * i + k) for k in range(4))
        got = net(x, {"pair": (a, b), "named": Pair(c, 3)})
        same_bits(got["sum"], x + a)
        assert got["list"][0] is b
        assert got["list"][1][0] is x
        assert got["list"][1][1:] == (None, "text", 1.5)
        assert isinstance(got["pair"], Pair)
        assert got["pair"].right is c
        same_bits(got["pair"].left, a * 2)
    assert net.runs == [1]


def test_outputs_that_are_arguments_views_or_constants():
    net = block(lambda x: (x, x.T, x[0], np.ones(2), np.array([1.0, 2.0])))
    for _ in range(3):
        x = x_of(2, 3)
        same, turned, row, ones, numbers = net(x)
        assert same is x
        turned[...] = 5
        row[0] = 7
        assert x[0, 0] == 7
        assert x[1, 1] == 5
        ones[0] = 3
        numbers[0] = 4
        assert ones.tolist() == [3, 1]
        assert numbers.tolist() == [4, 2]
    assert net.runs == [1]


def test_one_array_twice_and_two_arrays():
    net = block(lambda x, y: x * y + y)
    a, b = x_of(3), x_of(3, seed=1)
    same_bits(net(a, a), a * a + a)
    same_bits(net(a, b), a * b + b)
    same_bits(net(b, b), b * b + b)
    same_bits(net(b, a), b * a + a)


def test_views_of_one_array():
    net = block(lambda x, y: x * 2 + y)
    data = x_of(4, 6)
    for rows in (data[:2], data[2:]):
        same_bits(net(rows[:, :-1], rows[:, 1:]), rows[:, :-1] * 2 + rows[:, 1:])
    other = x_of(2, 6, seed=3)
    same_bits(net(other[:, 1:], other[:, :-1]), other[:, 1:] * 2 + other[:, :-1])
    same_bits(net(data[:2, :-1], other[:, 1:]), data[:2, :-1] * 2 + other[:, 1:])


def test_strides_and_offsets():
    net = block(lambda x: np.exp(x.reshape(-1)[1:]) + x.sum())
    data = x_of(6, 6)
    for x in (data, data.T, data[::2], data[1::2], data[:, ::-1], data[2:5, 1:4]):
        want = np.exp(x.reshape(-1)[1:]) + x.sum()
        same_bits(net(x), want)
        same_bits(net(x), want)


def test_writes_to_arguments():
    def fn(x, y):
        x += y
        x[0] = 5
        return x * 2

    net = block(fn)
    for i in range(4):
        x, y = x_of(3, 2, seed=i), x_of(3, 2, seed=i + 9)
        keep = x if i % 2 else None  # whether another array shares the memory
        view = keep[:] if keep is not None else None
        want = (x + y).asnumpy()
        want[0] = 5
        got = net(x, y)
        same_bits(x, want)
        same_bits(got, want * 2)
        if view is not None:
            same_bits(view, want)


def test_writes_where_arguments_share_memory():
    def fn(x, y):
        x *= 2
        return x + y

    net = block(fn)
    for _ in range(2):
        a, b = np.ones(3), np.ones(3)
        assert net(a, b).tolist() == [3, 3, 3]
        assert net(a, a).tolist() == [8, 8, 8]
        c = np.ones(4)
        assert net(c[:3], c[1:]).tolist() == [4, 4, 3]


def test_a_stateful_block_writes_to_its_array():
    class Counter(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.count = gluon.Constant(np.zeros(1))
            self.seen = np.zeros(2)

        def forward(self, x):
            with autograd.pause():
                self.count.data()[...] += 1
                self.seen += x
            return x * self.count.data()

    net = Counter()
    net.initialize()
    net.hybridize()
    for i in range(1, 4):
        x = np.ones(2)
        with autograd.record():
            y = net(x)
        assert y.tolist() == [i, i]
    assert net.seen.tolist() == [3, 3]


def test_captured_arrays_are_read_at_the_replay():
    table = np.ones(3)
    net = block(lambda x: x + table)
    assert net(np.zeros(3)).tolist() == [1, 1, 1]
    table[...] = 4
    assert net(np.zeros(3)).tolist() == [4, 4, 4]
    assert net.runs == [1]


def test_a_child_with_hooks_runs_eagerly():
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=2), nn.Dense(2, in_units=3))
    net.initialize()
    net.hybridize()
    x, seen = np.ones((1, 2)), []
    want = net(x)
    handle = net[0].register_forward_hook(lambda b, i, o: seen.append(o.asnumpy()))
    for i in range(3):
        same_bits(net(x), want)
        assert len(seen) == i + 1
    handle.detach()
    net(x)
    net(x)
    assert len(seen) == 3
    assert len(net._compiled.graphs()) == 1


def test_hooks_of_the_block_itself():
    net = block(lambda x: x + 1)
    seen: list = []
    net.register_forward_pre_hook(lambda b, i: seen.append("before"))
    net.register_forward_hook(lambda b, i, o: seen.append(float(o[0])))
    net(np.zeros(1))
    net(np.ones(1))
    assert seen == ["before", 1.0, "before", 2.0]
    assert net.runs == [1]


def test_plain_blocks_are_traced_through():
    class Plain(gluon.Block):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(2, in_units=2)

        def forward(self, x):
            return self.dense(x) * 2

    net = nn.HybridSequential()
    net.add(Plain(), nn.Dense(1, in_units=2))
    net.initialize()
    x = x_of(3, 2)
    want = net(x)
    net.hybridize()
    same_bits(net(x), want)
    same_bits(net(x), want)
    assert len(net._compiled.graphs()) == 1


def test_deferred_initialisation_in_the_traced_call():
    np.random.seed(3)
    eager, net = nn.Dense(4), nn.Dense(4)
    eager.initialize(init="xavier")
    x = x_of(2, 3)
    want = eager(x)
    np.random.seed(3)
    net.initialize(init="xavier")
    net.hybridize()
    same_bits(net(x), want)
    net.weight.set_data(np.zeros((4, 3)))
    assert net(x).asnumpy().any() == 0
    assert len(net._compiled.graphs()) == 1


def test_what_drops_the_graphs():
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=3), nn.Dense(3, in_units=3))
    net.initialize()
    net.hybridize()
    x = x_of(2, 3)

    def check():
        want = net(x)
        net.hybridize(active=False)
        same_bits(net(x), want)
        net.hybridize(active=True, clear=False)

    net(x)
    net.cast("float64")
    x = x.astype("float64")
    check()
    net.cast("float32")
    x = x.astype("float32")
    check()
    net(x)
    net.add(nn.Activation("tanh"))
    check()
    net(x)
    net[0]._flatten = False
    check()
    net(x)
    net.initialize(force_reinit=True)
    check()
    net(x)
    other = nn.HybridSequential()
    other.add(nn.Dense(3, in_units=3), nn.Dense(3, in_units=3))
    other.initialize()
    net.share_parameters(other.collect_params())
    check()
    same_bits(net[1].weight.data(), other[1].weight.data())


def test_random_draws_are_new_at_each_call():
    def fn(x):
        unused = np.random.normal(size=(2,))
        del unused
        return x + np.random.uniform(size=(3,)), np.random.randint(0, 1000, (3,))

    found = []
    for active in (False, True):
        np.random.seed(5)
        net = block(fn, active)
        found.append([a.asnumpy() for _ in range(4) for a in net(np.zeros(3))])
    for a, b in zip(*found, strict=True):
        assert a.tobytes() == b.tobytes()
    assert len({a.tobytes() for a in found[1]}) == 8
    assert net.runs == [1]


def test_seeding_in_the_block():
    def fn(x):
        np.random.seed(7)
        return x + np.random.uniform(size=(3,))

    net = block(fn)
    first = net(np.zeros(3)).asnumpy()
    for _ in range(3):
        same_bits(net(np.zeros(3)), first)
    assert net._compiled.reasons() == ["seeds random numbers"]


def test_train_and_predict_mode_in_the_block():
    def fn(x):
        with autograd.predict_mode():
            a = npx.dropout(x, p=0.5)
        with autograd.train_mode():
            b = npx.dropout(x, p=0.5)
        return a, b

    net = block(fn)
    for _ in range(2):
        a, b = net(np.ones(100))
        assert a.asnumpy().all()
        assert set(b.tolist()) == {0.0, 2.0}


def test_threads_that_call_one_block():
    net = mlp()
    net.initialize()
    net(np.ones((8, 5)))
    net.hybridize()
    inputs = [x_of(8, 5, seed=i) for i in range(4)]
    wanted = [net._run_here((x,), {}).asnumpy() for x in inputs]
    found: list = [None] * 4
    start = threading.Barrier(4)

    def work(i):
        start.wait()
        try:
            found[i] = [net(inputs[i]).asnumpy() for _ in range(20)]
        except BaseException as error:  # noqa: BLE001 - looked at below
            found[i] = [error]

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for results, want in zip(found, wanted, strict=True):
        for got in results:
            same_bits(got, want)


def in_a_thread(run):
    """What `run()` gives on a thread of its own."""
    found = []
    thread = threading.Thread(target=lambda: found.append(run()))
    thread.start()
    thread.join()
    return found[0]


def test_what_another_thread_computes_is_no_constant():
    doubled = block(lambda x: x * 2)

    def add_there(x):
        y = x * 1
        in_a_thread(lambda: y.__iadd__(x))
        return y + 1

    def add_between(x):
        y = x * 1
        in_a_thread(lambda: y.__iadd__(x))
        y += x
        return y * 1

    for forward in (
        lambda x: in_a_thread(lambda: np.tanh(x)) + 1,
        lambda x: in_a_thread(lambda: doubled(x)) + 1,
        lambda x: in_a_thread(lambda: np.exp(x)),
        add_there,
        add_between,
    ):
        net = block(forward)
        for i in range(3):
            x = x_of(3, 4, seed=i)
            same_bits(net(x), forward(x))
        assert net._compiled.reasons() == ["uses what another thread computed meanwhile"]


def test_work_of_other_threads_does_not_keep_a_block_from_being_compiled():
    kept, outside = [], np.ones((3, 4))

    def forward(x):
        in_a_thread(lambda: kept.append(np.exp(outside) * 2))
        return x * 2 + outside

    net = block(forward)
    for i in range(3):
        x = x_of(3, 4, seed=i)
        same_bits(net(x), x * 2 + outside)
    assert (len(net._compiled.graphs()), len(kept)) == (1, 1)


def test_an_error_while_tracing_leaves_nothing_behind():
    fails = [True]

    def fn(x):
        return x @ x if fails[0] else x * 2

    net = block(fn)
    with pytest.raises(ValueError, match="matmul"):
        net(np.ones((2, 3)))
    assert not _core.is_tracing()
    fails[0] = False
    assert net(np.ones((2, 3))).shape == (2, 3)


def test_copies_and_pickles_have_graphs_of_their_own():
    net = nn.Dense(2, in_units=2)
    net.initialize()
    net.hybridize()
    x = x_of(1, 2)
    want = net(x).asnumpy()
    other = copy.deepcopy(net)
    other.weight.set_data(np.zeros((2, 2)))
    assert not other(x).asnumpy().any()
    same_bits(net(x), want)
    same_bits(pickle.loads(pickle.dumps(net))(x), want)


def test_hybrid_forward_of_1_x():
    class Old(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = self.params.get("weight", shape=(3,), init="ones")

        def hybrid_forward(self, F, x, weight):
            return F.npx.relu(x) * weight

    net = Old()
    net.initialize()
    net.hybridize(static_alloc=True)
    for i in range(2):
        x = x_of(3, seed=i)
        same_bits(net(x), npx.relu(x))
    net.weight.set_data(np.full(3, 2))
    same_bits(net(x), npx.relu(x) * 2)


def test_a_recurrent_loop_is_unrolled():
    cell = nn.Dense(4, in_units=7)
    cell.initialize()

    def fn(xs, state):
        outs = []
        for t in range(xs.shape[0]):
            state = np.tanh(cell(np.concatenate([xs[t], state], axis=1)))
            outs.append(state)
        return np.stack(outs), [state]

    net = block(fn)
    for i in range(3):
        xs, state = x_of(5, 2, 3, seed=i), np.zeros((2, 4))
        got, want = net(xs, state), fn(xs, state)
        same_bits(got[0], want[0])
        same_bits(got[1][0], want[1][0])
    assert net.runs == [1]


def test_a_thousand_replays_leave_memory_flat():
    net = mlp()
    net.initialize()
    net.hybridize()
    x = x_of(8, 5)

    def step():
        with autograd.record():
            y = net(x)
        y.backward()

    for _ in range(20):
        step()
    _core.waitall()
    before = _core.memory_stats()
    for _ in range(1000):
        step()
    _core.waitall()
    after = _core.memory_stats()
    assert after["live"] == before["live"]
    assert after["cached"] <= before["cached"] * 2 + (1 << 20)


def test_nodes_as_plain_data():
    net = nn.HybridSequential()
    net.add(nn.Dense(3, activation="relu", in_units=4), nn.Dense(2, in_units=3, use_bias=False))
    net.initialize()
    net.hybridize()
    net(np.ones((2, 2, 2)))
    (graph,) = net._compiled.graphs()
    nodes, heads = graph.nodes()
    assert [(n["kind"], n["name"]) for n in nodes if n["kind"] != "call"] == [
        ("argument", "data0"),
        ("parameter", "0.weight"),
        ("parameter", "0.bias"),
        ("parameter", "1.weight"),
    ]
    calls = [n for n in nodes if n["kind"] == "call"]
    assert [n["name"] for n in calls] == ["fully_connected", "relu", "fully_connected"]
    assert calls[0]["inputs"][0] == (0, 0)
    assert calls[0]["outputs"] == [((2, 3), onp.dtype("float32"))]
    assert heads == [(len(nodes) - 1, 0)]
