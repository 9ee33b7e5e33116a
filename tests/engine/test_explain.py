"""What `explain` says ran: groups, bytes, dropped calls, reused memory. Nothing here depends on how long it took."""

import json
import multiprocessing
import threading

import pytest

import mxnp as mx
from mxnp import _core, autograd, gluon, np, npx
from mxnp.engine import explain
from mxnp.error import MXNetError

N = 1000  # elements; float32


@pytest.fixture
def x():
    array = np.arange(N) / N
    array.wait_to_read()
    return array


@pytest.fixture(autouse=True)
def lazy():
    """What is fused is fused in the threaded engine, whichever the other tests run in."""
    before = _core.set_engine("threaded")
    yield
    _core.set_engine(before)


@pytest.fixture
def naive(lazy):
    _core.set_engine("naive")


def groups(shown):
    return [group["ops"] for group in shown.groups]


def test_a_chain_is_one_group(x):
    shown = explain(lambda: npx.relu(np.exp(x * 2 + 1) - x))
    assert groups(shown) == [["multiply", "add", "exp", "subtract", "relu"]]
    group = shown.groups[0]
    assert group["kind"] == "pass"
    assert group["shape"] == (N,)
    assert group["elements"] == N
    assert (group["bytes_read"], group["bytes_written"]) == (4 * N, 4 * N)
    totals = shown.totals
    assert (totals["calls"], totals["passes"], totals["kernels"], totals["flushes"]) == (5, 1, 0, 1)
    # Each of three calls on one array moves two arrays, the subtraction three, and relu two.
    assert totals["bytes_unfused"] == (3 * 2 + 3 + 2) * 4 * N
    assert shown.result.shape == (N,)


def test_bytes_count_what_is_repeated_once():
    column, row = np.ones((50, 1)), np.ones((1, 20))
    npx.waitall()
    (record,) = explain(lambda: column + row).records
    assert record["reads"] == [("float32", (50,), 200), ("float32", (20,), 80)]
    assert (record["bytes_read"], record["bytes_written"]) == (280, 4 * 50 * 20)


@pytest.mark.parametrize(("axis", "left"), [(0, 20), (1, 50), (None, 1)])
def test_bytes_of_a_reduction(axis, left):
    a = np.ones((50, 20))
    npx.waitall()
    (record,) = explain(lambda: (a * 2).sum(axis=axis)).records
    assert record["ops"] == ["multiply", "sum"]
    assert (record["bytes_read"], record["bytes_written"]) == (4 * 1000, 4 * left)


def test_dtypes_and_strides():
    a, b = np.ones((40, 30), dtype="float64"), np.ones((40, 30), dtype="int32")
    npx.waitall()
    (record,) = explain(lambda: a[::2, 1:] + b[::2, 1:]).records
    assert record["reads"] == [("float64", (20, 29), 8 * 580), ("int32", (20, 29), 4 * 580)]
    assert record["writes"] == [("float64", (20, 29), 8 * 580)]


def test_calls_nobody_sees_are_named(x):
    def fn():
        np.exp(x + 1)
        return x * 3

    shown = explain(fn)
    assert groups(shown) == [["multiply"]]
    assert shown.flushes[0]["dead"] == ["add", "exp"]
    assert shown.totals["dead"] == 2
    assert "not run: add, exp (nobody could see the result)" in str(shown)


def test_results_take_the_place_of_operands(x):
    y = x * 2
    y.wait_to_read()

    def fn():
        nonlocal y
        y = y + 1

    shown = explain(fn)
    assert shown.totals["bytes_reused"] == 4 * N
    assert shown.totals["buffers"] == 0
    assert explain(lambda: x + 1).totals["bytes_reused"] == 0


def test_a_copy_into_its_place_is_merged():
    w = np.ones((30, 20))
    w.attach_grad()
    x = np.ones((10, 30))

    def fn():
        with autograd.record():
            y = np.dot(x, w)
        y.backward()

    fn()
    shown = explain(fn)
    assert shown.totals["merged"] == 1
    products = [record for record in shown.records if record["ops"] == ["matmul"]]
    # One of the two is for w's gradient; the forward's result is not needed.
    assert [record["flops"] for record in products] == [2 * 10 * 30 * 20]


def test_a_layer_is_one_product_with_its_tail(x):
    layer = gluon.nn.Dense(8, activation="relu", in_units=16)
    layer.initialize()
    data = np.ones((4, 16))
    npx.waitall()
    shown = layer.explain(data)
    assert groups(shown) == [["matmul", "add", "relu"]]
    assert shown.records[0]["calls"] == ["fully_connected", "fully_connected", "relu"]
    assert shown.records[0]["flops"] == 2 * 4 * 16 * 8
    # The product itself is overwritten where it lies: data, weight and bias are read, one result is written.
    assert [read[1] for read in shown.records[0]["reads"]] == [(4, 16), (16, 8), (8,)]
    assert [written[1] for written in shown.records[0]["writes"]] == [(4, 8)]
    assert (shown.totals["calls"], shown.totals["passes"], shown.totals["kernels"]) == (2, 0, 1)


def test_products_of_a_convolution_and_its_gradients():
    layer = gluon.nn.Conv2D(6, kernel_size=3, in_channels=4, groups=2, use_bias=False)
    layer.initialize()
    data = np.ones((2, 4, 9, 8))
    data.attach_grad()

    def fn():
        with autograd.record():
            loss = (layer(data) * 2).sum()
        loss.backward()
        return loss

    fn()
    flops = {record["ops"][0]: record["flops"] for record in explain(fn).records if record["flops"]}
    each = 2 * (2 * 6 * 7 * 6) * (2 * 3 * 3)
    assert flops == {"convolution": each, "conv_data_grad": each, "conv_weight_grad": each}


@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
def test_softmax(op):
    a = np.ones((10, 7))
    npx.waitall()
    shown = explain(lambda: getattr(npx, op)(a))
    assert {name for record in shown.records for name in record["calls"]} == {op}
    assert shown.totals["bytes_read"] >= 280
    assert shown.totals["bytes_written"] >= 280


def test_without_fusion_each_call_is_a_group(x):
    before = mx.engine.set_fusion(False)
    try:
        shown = explain(lambda: x * 2 + 1)
    finally:
        mx.engine.set_fusion(before)
    assert groups(shown) == [["multiply"], ["add"]]


def test_the_naive_engine(naive, x):
    shown = explain(lambda: x * 2 + 1)
    assert groups(shown) == [["multiply"], ["add"]]
    assert {record["ran"] for record in shown.records} == {"inline"}
    assert shown.totals["flushes"] == 2


def test_small_work_runs_inline_from_a_cached_plan(x):
    def fn():
        return x * 2 + 1

    for _ in range(3):
        shown = explain(fn)
    assert [record["ran"] for record in shown.records] == ["inline"]
    assert shown.flushes[0]["cached"]
    assert shown.records[0]["cached"]
    assert shown.totals["buffers_from_pool"] <= shown.totals["buffers"] == 1


def test_a_compiled_block_shows_its_graph():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(8, activation="relu"), gluon.nn.Dense(3))
    net.initialize()
    net.hybridize()
    data = np.ones((4, 5))
    shown = net.explain(data)  # makes the graph, and shows the next call
    assert groups(shown) == [["matmul", "add", "relu"], ["matmul", "add"]]
    again = net.explain(data)
    assert groups(again) == groups(shown)
    (graph,) = net._compiled.graphs()
    assert again.totals["calls"] == graph.num_calls
    outer = gluon.nn.Sequential()
    outer.add(net)
    other = np.ones((3, 5))
    assert groups(outer.explain(other)) == groups(shown)


def test_gradients_in_the_function(x):
    x.attach_grad()

    def fn():
        with autograd.record():
            y = (x * x).sum()
        y.backward()

    fn()
    shown = explain(fn)
    # y is not kept, and its gradient does not need it.
    assert shown.totals["dead"] == 2
    assert "_scale" in {op for ops in groups(shown) for op in ops}
    assert (x.grad == 2 * x).all()


def test_equal_groups_are_one_row(x):
    def fn():
        y = x
        for _ in range(5):
            y = y + 1
            y.wait_to_read()
        return y

    shown = explain(fn)
    assert len(shown.records) == 5 == shown.totals["flushes"]
    (group,) = shown.groups
    assert group["count"] == 5
    assert group["bytes_written"] == 5 * 4 * N


def test_what_was_pending_before_is_not_in_it(x):
    y = np.exp(x)
    shown = explain(lambda: y + 1)
    assert groups(shown) == [["add"]]


def test_a_result_may_contain_itself(x):
    def fn():
        rows = [x + 1]
        rows.append({"rows": rows})
        return rows

    assert groups(explain(fn)) == [["add"]]


def test_an_error_of_the_function_ends_the_record(x):
    def fn():
        (x + 1).wait_to_read()
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        explain(fn)
    assert groups(explain(lambda: x * 2)) == [["multiply"]]


def test_an_error_of_the_data_is_raised_and_others_stay(x):
    bad = np.array([5], dtype="int64")
    with pytest.raises(MXNetError, match="out of"):
        explain(lambda: np.ones(3)[bad])
    lost = np.ones(3)[bad]  # not given to the function: its error is for its own wait
    assert groups(explain(lambda: x * 2)) == [["multiply"]]
    with pytest.raises(MXNetError):
        lost.wait_to_read()


def test_failed_and_skipped_units_are_marked(x):
    bad = np.array([5], dtype="int64")
    kept = []

    def fn():
        kept.append(np.sort(np.ones(3)[bad]))

    shown = explain(fn)
    assert {"failed", "skipped"} == {record["outcome"] for record in shown.records} - {"done"}
    assert shown.totals["failed"] == 1
    assert "failed: 1" in str(shown)
    assert any("out of" in (record["error"] or "") for record in shown.records)
    with pytest.raises(MXNetError):
        kept[0].wait_to_read()


def test_nested(x):
    inner = []

    def fn():
        y = x + 1
        inner.append(explain(lambda: np.exp(x)))
        return y * 2

    outer = explain(fn)
    assert groups(inner[0]) == [["exp"]]
    assert sorted(op for ops in groups(outer) for op in ops) == ["add", "exp", "multiply"]


def test_work_of_other_threads_is_in_it(x):
    def fn():
        thread = threading.Thread(target=lambda: (x * 2).wait_to_read(), name="helper")
        thread.start()
        thread.join()
        return x + 1

    shown = explain(fn)
    assert sorted(groups(shown)) == [["add"], ["multiply"]]
    assert len({flush["thread"] for flush in shown.flushes}) == 2


def test_threads_that_explain_at_once(x):
    found, start = {}, threading.Barrier(4)

    def work(i):
        start.wait()
        for _ in range(20):
            found[i] = explain(lambda: (x + i) * 2).result

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(4):
        assert (found[i] == (x + i) * 2).all()


def test_times_add_up(x):
    shown = explain(lambda: (x * 2 + 1).sum().item())
    times = shown.times
    parts = [times[key] for key in ("python", "planning", "running", "waiting")]
    assert all(part >= 0 for part in parts)
    assert sum(parts) == pytest.approx(times["total"])
    assert 0 < times["busy"] <= times["total"]
    for record in shown.records:
        assert 0 <= record["queued"] <= record["start"] <= record["end"] <= times["total"]
        assert record["seconds"] == pytest.approx(record["end"] - record["start"])
    for flush in shown.flushes:
        assert 0 <= flush["start"] <= flush["end"]


def test_large_work_is_shared():
    a = np.ones((1000, 1000))
    npx.waitall()
    before = mx.set_num_threads(2)
    try:
        shown = explain(lambda: np.exp(a))
    finally:
        mx.set_num_threads(before)
    (record,) = shown.records
    assert record["threads"] in (1, 2)
    assert record["bytes_read"] == 4_000_000


def test_as_data_and_as_pages(x):
    shown = explain(lambda: np.exp(x) + 1)
    data = json.loads(json.dumps(shown.to_dict()))
    assert data["totals"]["calls"] == 2
    assert data["groups"][0]["ops"] == ["exp", "add"]
    assert "exp + add" in str(shown)
    assert repr(shown) == str(shown)
    page = shown._repr_html_()
    assert "<td>exp + add</td>" in page
    assert "&lt;lambda&gt;" in page


def test_as_a_picture(x):
    figure = pytest.importorskip("matplotlib.figure")

    def fn():
        y = x + 1
        y.wait_to_read()
        return np.exp(y)

    shown = explain(fn)
    axes = shown.plot(figure.Figure().subplots())
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["add", "exp"]
    assert len(axes.get_yticks()) == len({record["thread"] for record in shown.records})
    assert explain(lambda: None).plot(figure.Figure().subplots()).get_legend() is None


def test_a_thread_that_ends_leaves_its_work_in_the_record(x):
    kept = []

    def fn():
        thread = threading.Thread(target=lambda: kept.append(x * 3))
        thread.start()
        thread.join()

    shown = explain(fn)
    assert groups(shown) == [["multiply"]]
    assert (kept[0] == x * 3).all()


def test_in_a_trace_it_shows_what_runs_beside(x):
    class Net(gluon.HybridBlock):
        def forward(self, data):
            self.shown = explain(lambda: x * 2)
            return data + 1

    net = Net()
    net.hybridize()
    assert (net(x) == x + 1).all()
    assert ["multiply"] in groups(net.shown)


def test_arguments_reach_the_function(x):
    assert (explain(lambda a, b=0: a + b, x, b=2).result == x + 2).all()


def test_nothing_is_kept_while_no_log_is_open(x):
    log = _core.Log(100)
    (x + 1).wait_to_read()
    assert log.events() == ([], 0)
    assert log.totals() == []
    log.open()
    (x + 2).wait_to_read()
    log.close()
    kept = log.events()[0]
    (x + 3).wait_to_read()
    assert len(log.events()[0]) == len(kept) > 0


def test_a_full_log_keeps_the_newest_and_counts(x):
    log = _core.Log(10)
    log.open()
    for i in range(20):
        (x + i).wait_to_read()
    log.close()
    events, dropped = log.events()
    assert len(events) == 10
    assert dropped > 0
    assert events[-1]["end"] == max(event["end"] for event in events)
    (count,) = [count for kind, name, count, *_ in log.totals() if (kind, name) == ("operator", "add")]
    assert count == 20  # totals are of all


def _child(queue):
    try:
        queue.put(groups(explain(lambda: np.exp(np.ones(5)) + 1)))
    except Exception as error:  # noqa: BLE001 - the parent shows it
        queue.put(repr(error))


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="forks")
def test_a_child_of_a_fork_has_its_own_record(x):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()

    def fn():
        child = context.Process(target=_child, args=(queue,))
        child.start()
        found = queue.get(timeout=60)
        child.join()
        return found, x + 1

    shown = explain(fn)
    assert shown.result[0] == [["full", "exp", "add"]]
    assert groups(shown) == [["add"]]
