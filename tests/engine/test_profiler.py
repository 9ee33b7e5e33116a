"""`mxnp.profiler`: MXNet's API, the trace's form, totals, and that nothing is left behind when it stops.

What MXNet answers was found by running 2.0.0b1. Nothing here depends on how long something takes.
"""

import inspect
import json
import os
import subprocess
import sys
import threading
from collections import defaultdict

import numpy as onp
import pytest

import mxnp as mx
from mxnp import _core, autograd, gluon, np, npx, profiler
from mxnp._profile import recorder, trace
from mxnp._profile.recorder import RECORDER
from mxnp.error import MXNetError
from mxnp.gluon import Block


@pytest.fixture(autouse=True)
def fresh(tmp_path):
    """A profiler that has never run, writing to `trace.json` in the test's folder; the engine that fuses."""
    engine = _core.set_engine("threaded")
    profiler._profiler.forget_parent()
    RECORDER.clear()
    RECORDER.clear_totals()
    profiler._profiler.config = profiler.Config()
    profiler.set_config(filename=tmp_path / "trace.json")
    yield
    profiler.set_state("stop")
    RECORDER.clear()
    RECORDER.clear_totals()
    profiler._profiler.forget_parent()
    _core.set_engine(engine)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.json"


def read(path):
    """A file's events, checked for their form."""
    document = json.loads(path.read_text())
    check(document["traceEvents"])
    return document["traceEvents"]


PHASES = {"M", "X", "b", "e", "C", "i"}


def check(events):
    """Times in order and not negative, spans of a thread nested, pairs complete, rows named."""
    assert {event["ph"] for event in events} <= PHASES
    timed = [event for event in events if event["ph"] != "M"]
    assert [event["ts"] for event in timed] == sorted(event["ts"] for event in timed)
    assert all(event["ts"] >= 0 for event in timed)
    rows, pairs = defaultdict(list), {}
    for event in timed:
        assert isinstance(event["name"], str)
        assert isinstance(event["cat"], str)
        if event["ph"] == "X":
            assert event["dur"] >= 0
            rows[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["name"]))
        elif event["ph"] == "b":
            assert (event["cat"], event["id"]) not in pairs
            pairs[event["cat"], event["id"]] = event
        elif event["ph"] == "e":
            begun = pairs.pop((event["cat"], event["id"]))
            assert begun["name"] == event["name"]
            assert begun["ts"] <= event["ts"]
        elif event["ph"] == "C":
            assert event["args"]
            assert all(isinstance(value, (int, float)) for value in event["args"].values())
        else:
            assert event["s"] in ("g", "p", "t")
    assert not pairs
    for spans in rows.values():
        open_until = []
        for start, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_until and open_until[-1] <= start + 1e-3:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-3, name
            open_until.append(end)
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert named >= {(event["pid"], event["tid"]) for event in timed}


def names(events, category, phase="X"):
    return [event["name"] for event in events if event.get("cat") == category and event["ph"] == phase]


def work():
    return (np.exp(np.ones((30, 20)) * 2) + 1).sum(axis=1).asnumpy()


def small_net():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(8, activation="relu", in_units=4), gluon.nn.Dense(2, in_units=8))
    net.initialize()
    return net


# The file ----------------------------------------------------------------------------------------------------


def test_a_trace_has_every_level(path):
    profiler.set_state("run")
    work()
    profiler.set_state("stop")
    profiler.dump()
    events = read(path)
    levels = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert levels == {"Python", "segments", "engine", "kernels"}
    assert names(events, "task") == names(events, "operator") == ["full+multiply+exp+add+sum"]
    (kernel,) = [event for event in events if event.get("cat") == "operator"]
    assert kernel["args"]["ops"] == ["full", "multiply", "exp", "add", "sum"]
    assert kernel["args"]["shape"] == [30, 20]
    assert kernel["args"]["writes"] == ["float32[30]"]
    assert kernel["args"]["bytes"] == 120
    (flush,) = [event for event in events if event.get("cat") == "segment"]
    assert flush["args"]["calls"] == kernel["args"]["ops"]
    assert (flush["args"]["passes"], flush["args"]["kernels"]) == (1, 0)
    (task,) = [event for event in events if event.get("cat") == "task"]
    assert task["args"]["queued_us"] >= 0
    assert task["args"]["outcome"] == "done"
    counters = {event["name"] for event in events if event["ph"] == "C"}
    assert counters == {"queue", "memory"}
    assert names(events, "api") == ["wait_to_read"]


def test_training_step_with_blocks_and_data(path):
    net = small_net()
    trainer, loss = gluon.Trainer(net.collect_params(), "sgd"), gluon.loss.L2Loss()
    data = gluon.data.DataLoader(gluon.data.ArrayDataset(onp.ones((6, 4)), onp.zeros((6, 2))), 3)
    profiler.set_state("run")
    for x, y in data:
        with autograd.record():
            error = loss(net(x.astype("float32")), y)
        error.backward()
        trainer.step(3)
    profiler.set_state("stop")
    profiler.dump()
    events = read(path)
    blocks = names(events, "block")
    assert blocks.count(net.name) == 2
    assert blocks.count(net[0].name) == 2
    spans = {e["name"]: e for e in events if e.get("cat") == "block"}
    assert spans[net.name]["args"]["class"] == "HybridSequential"
    api = names(events, "api")
    assert api.count("backward") == api.count("Trainer.step") == api.count("DataLoader.next") == 2


def test_a_block_that_cannot_say_its_name(path):
    class Nameless(Block):
        @property
        def name(self):
            raise ValueError("not yet")

        def forward(self, x):
            return x + 1

    profiler.start()
    assert Nameless()(np.ones(1)) == 2
    profiler.stop()
    profiler.dump()
    assert "Nameless" in {event["name"] for event in read(path)}


def test_a_replay_is_one_span(path):
    net = small_net()
    net.hybridize()
    x = np.ones((3, 4))
    net(x).wait_to_read()
    profiler.set_state("run")
    net(x).wait_to_read()
    profiler.dump()
    assert names(read(path), "block") == [net.name]


def test_several_threads_have_rows_of_their_own(path):
    def many():
        for i in range(10):
            with profiler.scope(f"part {i}"):
                work()

    threads = [threading.Thread(target=many, name=f"row {i}") for i in range(3)]
    profiler.set_state("run")
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    profiler.dump()
    events = read(path)
    rows = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert rows >= {"row 0", "row 1", "row 2"}
    assert len(names(events, "scope")) == 30


def test_large_work_shows_who_took_part(path):
    before = mx.set_num_threads(2)
    try:
        a = np.ones((700, 700))
        a.wait_to_read()
        profiler.set_state("run")
        for _ in range(3):
            np.dot(np.exp(a), a).wait_to_read()
        profiler.dump()
    finally:
        mx.set_num_threads(before)
    events = read(path)
    products = [
        e for e in events if e.get("cat") == "operator" and e["name"] == "matmul" and "ops" in e["args"]
    ]
    assert len(products) == 3
    assert all(event["args"]["GFLOP/s"] > 0 for event in products)


def test_errors_are_in_the_trace(path):
    profiler.set_state("run")
    bad = np.ones(3)[np.array([7], dtype="int64")]
    later = np.sort(bad)
    with pytest.raises(MXNetError):
        later.wait_to_read()
    profiler.dump()
    events = read(path)
    (failed,) = [event for event in events if event.get("args", {}).get("outcome") == "failed"]
    assert "out of" in failed["args"]["error"]
    assert names(events, "skipped", "i") == ["sort"]


def test_options_leave_parts_out(path):
    profiler.set_config(profile_symbolic=False, profile_imperative="0", profile_memory=0, profile_api="false")
    profiler.set_state("run")
    with profiler.Event("mine"):
        work()
    profiler.dump()
    events = read(path)
    assert {event["cat"] for event in events if event["ph"] != "M"} == {"event", "counter"}
    assert {event["name"] for event in events if event["ph"] == "C"} == {"queue"}
    assert profiler.dumps().count("=================\n") == 1
    profiler.set_config(profile_all=True)
    profiler.dump()
    assert {"operator", "api", "segment"} <= {event.get("cat") for event in read(path)}


def test_a_dump_replaces_the_file_as_a_whole(path, monkeypatch):
    profiler.set_state("run")
    work()
    profiler.dump()
    before = path.read_bytes()
    monkeypatch.setattr(trace, "_names", lambda rows: (1 / 0 for _ in rows))
    with pytest.raises(ZeroDivisionError):
        profiler.dump()
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["trace.json"]


def test_a_folder_that_is_not_there():
    profiler.set_config(filename="nowhere/at/all.json")
    profiler.set_state("run")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        profiler.dump()


def test_runs_and_dumps(path):
    profiler.set_state("run")
    profiler.set_state("run")  # nothing
    work()
    profiler.dump(finished=False)
    assert profiler.state() == "run"
    assert len(names(read(path), "task")) == 1
    work()
    profiler.set_state("stop")
    work()  # not in it
    profiler.set_state("run")  # goes on
    work()
    profiler.dump()
    assert profiler.state() == "stop"
    assert len(names(read(path), "task")) == 3
    profiler.dump()
    assert len(names(read(path), "task")) == 3
    profiler.set_state("run")  # begins anew
    work()
    profiler.dump()
    assert len(names(read(path), "task")) == 1


def test_pause_and_resume(path):
    profiler.pause()  # nothing where it does not run
    profiler.resume()
    assert profiler.state() == "stop"
    profiler.set_state("run")
    work()
    profiler.pause()
    assert profiler.state() == "run"
    work()
    with profiler.Event("in the pause"):
        pass
    profiler.resume()
    with profiler.Event("after"):
        work()
    profiler.dump()
    events = read(path)
    assert len(names(events, "task")) == 2
    assert names(events, "event", "b") == ["after"]


def test_continuous_dumps(path, monkeypatch):
    written = threading.Event()
    write = trace.write
    monkeypatch.setattr(trace, "write", lambda *args: (write(*args), written.set()))
    profiler.set_config(continuous_dump=True, dump_period=1e-3)
    profiler.set_state("run")
    work()
    assert written.wait(60)
    profiler.set_state("stop")
    assert len(names(read(path), "task")) == 1  # the last one is written at the stop
    assert not [thread for thread in threading.enumerate() if thread.name == "mxnp-profiler"]


def test_what_does_not_fit_is_counted(path, monkeypatch):
    monkeypatch.setattr(recorder, "CAPACITY", 5)
    small = recorder.Recorder()
    small.open()
    small._marks = type(small._marks)(maxlen=5)
    for i in range(8):
        small.note("span", "mine", f"n{i}", i, i + 1)
    small.close()
    marks, dropped = small.marks()
    assert [mark.name for mark in marks] == ["n3", "n4", "n5", "n6", "n7"]
    assert dropped == 3
    trace.write(small, path, trace.Shown())
    document = json.loads(path.read_text())
    assert document["otherData"]["dropped"] == 3
    assert len(small.totals()) == 8


# The program's own marks -------------------------------------------------------------------------------------


def test_tasks_frames_and_events(path):
    domain = profiler.Domain("mine")
    task, frame, event = domain.new_task("task"), domain.new_frame("frame"), profiler.Event("event")
    assert [str(each) for each in (domain, task, frame, event)] == ["mine", "task", "frame", "event"]
    task.stop()  # before it begins: nothing, as in MXNet
    profiler.set_state("run")
    task.stop()
    task.start()
    frame.start()
    event.start()
    task.stop()  # overlaps the frame without nesting in it
    task.stop()
    event.stop()
    frame.stop()
    with task:
        pass
    profiler.dump()
    events = read(path)
    assert names(events, "mine", "b") == ["task", "task"]
    assert names(events, "mine,frame", "b") == ["frame"]
    assert names(events, "event", "b") == ["event"]


def test_a_task_may_end_in_another_thread(path):
    profiler.set_state("run")
    task = profiler.Domain("mine").new_task("across")
    task.start()
    thread = threading.Thread(target=task.stop)
    thread.start()
    thread.join()
    profiler.dump()
    assert names(read(path), "mine", "b") == ["across"]


def test_counters(path):
    domain = profiler.Domain("mine")
    counter = domain.new_counter("count", 5)
    profiler.set_state("run")
    counter += 3
    counter -= 1
    counter.increment(2)
    counter.decrement()
    counter.set_value(0.5)
    with pytest.raises((TypeError, ValueError)):
        counter.set_value("many")
    profiler.dump()
    found = [event["args"]["count"] for event in read(path) if event.get("cat") == "mine"]
    assert found == [8, 7, 9, 8, 0.5]
    assert (str(counter), repr(counter)) == ("count", "Counter(Domain('mine'), 'count', 0.5)")
    row = json.loads(profiler.dumps(format="json"))["Time"]["mine"]["count"]
    assert row == {"Count": 5, "Total": 32.5, "Min": 0.5, "Max": 9.0, "Avg": 6.5}


def test_names_are_shown_as_text_and_values_as_json(path):
    profiler.set_state("run")
    domain = profiler.Domain(3)
    with profiler.scope(1), profiler.Task(domain, b"x"), profiler.Event(None):
        profiler.Counter(domain, 7, float("inf")).set_value(float("nan"))
        profiler.Marker(domain, 8).mark()
    profiler.dump()
    events = json.loads(path.read_text(), parse_constant=pytest.fail)["traceEvents"]
    names = {event["name"] for event in events}
    assert {"1:", "b'x'", "None", "7", "8"} <= names
    assert "b'x'" in profiler.dumps()
    totals = json.loads(profiler.dumps(format="json"), parse_constant=pytest.fail)
    assert totals["Time"]["3"]["7"]["Total"] == "nan"


def test_counters_of_several_threads():
    counter = profiler.Counter(profiler.Domain("mine"), "count")
    threads = [threading.Thread(target=lambda: [counter.increment() for _ in range(1000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert repr(counter).endswith(" 4000)")


def test_markers(path):
    marker = profiler.Domain("mine").new_marker("moment")
    profiler.set_state("run")
    for scope in ("global", "process", "thread", "task", "marker"):
        marker.mark(scope)
    with pytest.raises(
        MXNetError, match="mark: scope is one of global, process, thread, task, marker, got 'line'"
    ):
        marker.mark("line")
    profiler.dump()
    events = [event for event in read(path) if event["ph"] == "i"]
    assert [event["s"] for event in events] == ["g", "p", "t", "t", "t"]
    assert {(event["cat"], event["name"]) for event in events} == {("mine,instant_marker", "moment")}


def test_scopes(path):
    profiler.set_state("run")
    with profiler.scope("outer"), profiler.scope("inner:"), profiler.scope("alone", append_mode=False):
        pass
    with pytest.raises(KeyError), profiler.scope("failed"):
        raise KeyError
    with profiler.scope():
        pass
    profiler.dump()
    spans = sorted(names(read(path), "scope"))
    assert spans == ["<unk>:", "alone:", "failed:", "outer:", "outer:inner:"]


# Totals ------------------------------------------------------------------------------------------------------


def test_the_table():
    assert profiler.dumps() == ""
    profiler.set_state("run")
    work()
    work()
    table = profiler.dumps()
    profiler.set_state("stop")
    lines = table.splitlines()
    at = lines.index("operator")
    assert lines[at + 2].split()[:3] == ["Name", "Total", "Count"]
    row = lines[at + 4].split()
    assert row[:2] == ["full+multiply+exp+add+sum", "2"]
    total, least, most, mean = map(float, row[2:])
    assert least <= mean <= most <= total
    assert "Memory: cpu/0" in table
    json.loads(profiler.dumps(reset=True, format="json"))
    assert profiler.dumps() == ""


@pytest.mark.parametrize("sort_by", ["total", "avg", "min", "max", "count"])
@pytest.mark.parametrize("ascending", [False, True])
def test_rows_are_sorted(sort_by, ascending):
    RECORDER.is_on = True
    for name, times in {"a": (6, 1), "b": (4,), "c": (3, 3, 5)}.items():
        for time in times:
            RECORDER.note("span", "mine", name, 0, time)
    RECORDER.is_on = False
    rows = json.loads(profiler.dumps(format="json", sort_by=sort_by, ascending=ascending))["Time"]["mine"]
    order = {"total": "cab", "avg": "bca", "min": "bca", "max": "acb", "count": "cab"}[sort_by]
    assert "".join(rows) == (order[::-1] if ascending else order)


def test_json_totals_have_mxnets_form():
    profiler.set_state("run")
    work()
    profiler.set_state("stop")
    found = json.loads(profiler.dumps(format="json"))
    assert set(found) == {"Time", "Memory", "Unit"}
    assert found["Unit"] == {"Time": "ms", "Memory": "kB"}
    assert set(found["Time"]["operator"]["full+multiply+exp+add+sum"]) == {
        "Count",
        "Total",
        "Min",
        "Max",
        "Avg",
    }
    assert set(found["Memory"]["Device Storage"]["Memory: cpu/0"]) == {"Count", "Min", "Max", "Avg"}


# Settings and errors, as MXNet's -----------------------------------------------------------------------------


def test_signatures_are_mxnets():
    wanted = {
        "set_config": "(**kwargs)",
        "set_state": "(state='stop', profile_process='worker')",
        "dump": "(finished=True, profile_process='worker')",
        "dumps": "(reset=False, format='table', sort_by='total', ascending=False)",
        "pause": "(profile_process='worker')",
        "resume": "(profile_process='worker')",
        "scope": "(name='<unk>:', append_mode=True)",
        "set_kvstore_handle": "(handle)",
        "profiler_set_config": "(mode='symbolic', filename='profile.json')",
        "profiler_set_state": "(state='stop')",
        "dump_profile": "()",
        "Domain": "(name)",
        "Task": "(domain, name)",
        "Frame": "(domain, name)",
        "Event": "(name)",
        "Counter": "(domain, name, value=None)",
        "Marker": "(domain, name)",
    }
    for name, text in wanted.items():
        signature = inspect.signature(getattr(profiler, name))
        plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
        assert str(inspect.Signature(plain)) == text, name


def test_errors():
    with pytest.raises(
        MXNetError, match="set_config: there is no option 'bogus'\nhint: the options are filename,"
    ):
        profiler.set_config(bogus=1)
    with pytest.raises(MXNetError, match="set_config: profile_all is True or False, got 'maybe'"):
        profiler.set_config(profile_all="maybe")
    for period in (0, "soon", None):
        with pytest.raises(MXNetError, match=f"dump_period is a number of seconds above 0, got {period!r}"):
            profiler.set_config(dump_period=period)
    with pytest.raises(MXNetError, match="set_config: filename is a path, got 3") as caught:
        profiler.set_config(filename=3)
    assert isinstance(caught.value, TypeError)
    with pytest.raises(KeyError):
        profiler.set_state("walk")
    with pytest.raises(AssertionError, match="format is 'table' or 'json', got 'text'"):
        profiler.dumps(format="text")
    with pytest.raises(AssertionError, match="sort_by is one of total, avg, min, max, count, got 'name'"):
        profiler.dumps(sort_by="name")
    with pytest.raises(MXNetError, match="dump: the profiler has not run\nhint: "):
        profiler.dump()


@pytest.mark.parametrize("function", [profiler.set_state, profiler.pause, profiler.resume, profiler.dump])
def test_processes(function):
    with pytest.raises(MXNetError, match="there is no server process to profile"):
        function(profile_process="server")
    with pytest.raises(KeyError):
        function(profile_process="x")
    with pytest.raises(MXNetError, match="set_config: there is no server process"):
        profiler.set_config(profile_process="server")
    profiler.set_config(profile_process="worker")
    profiler.set_kvstore_handle(None)


def test_older_names(path):
    with pytest.warns(UserWarning, match="use profiler.set_config"):
        profiler.profiler_set_config(mode="all", filename=str(path))
    with pytest.warns(UserWarning, match="use profiler.set_state"):
        profiler.profiler_set_state("run")
    work()
    with pytest.warns(UserWarning, match="use profiler.dump"):
        profiler.dump_profile()
    assert names(read(path), "task")
    with (
        pytest.warns(UserWarning, match="older name"),
        pytest.raises(MXNetError, match="no option 'profile_nothing'"),
    ):
        profiler.profiler_set_config(mode="nothing")


# What it leaves behind ---------------------------------------------------------------------------------------


def test_methods_are_put_back():
    methods = [(Block, "__call__"), (gluon.Trainer, "step"), (gluon.data.DataLoader, "__iter__")]
    before = [owner.__dict__[name] for owner, name in methods]
    profiler.set_state("run")
    assert all(owner.__dict__[name] is not was for (owner, name), was in zip(methods, before, strict=True))
    assert Block.__call__.__doc__ == before[0].__doc__
    profiler.set_state("stop")
    assert [owner.__dict__[name] for owner, name in methods] == before


def test_nothing_is_recorded_while_it_does_not_run():
    work()
    small_net()(np.ones((1, 4)))
    with profiler.scope("outside"), profiler.Event("outside"):
        profiler.Counter(profiler.Domain("outside"), "count", 1)
    assert RECORDER.log.events() == ([], 0)
    assert RECORDER.marks() == ([], 0)
    assert RECORDER.totals() == {}


def test_explain_under_the_profiler(path):
    profiler.set_state("run")
    shown = mx.engine.explain(work)
    profiler.dump()
    assert shown.totals["passes"] == 1
    assert len(names(read(path), "task")) == 1


def test_results_are_the_same_bits():
    net, x = small_net(), np.random.normal(size=(50, 4))
    x.attach_grad()

    def step():
        with autograd.record():
            y = npx.softmax(net(x)).sum() + (x * x).mean()
        y.backward()
        return y.asnumpy().tobytes(), x.grad.asnumpy().tobytes()

    plain = step()
    profiler.set_state("run")
    assert step() == plain


def test_a_fork_does_not_record():
    if not hasattr(os, "fork"):
        pytest.skip("forks")
    profiler.set_state("run")
    work()
    data = gluon.data.DataLoader(gluon.data.ArrayDataset(onp.arange(8.0)), 4, num_workers=1)
    assert sum(batch.sum().item() for batch in data) == 28
    data.close()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        found = (profiler.state(), RECORDER.log.events()[0], len(RECORDER.marks()[0]), RECORDER.is_on)
        os.write(writer, repr(found).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1000) == b"('stop', [], 0, False)"
    os.close(reader)
    os.close(writer)
    assert profiler.state() == "run"


def test_from_import_to_exit(tmp_path):
    program = """
import multiprocessing
from mxnp import np, profiler

def work(queue):
    queue.put(profiler.state())

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=work, args=(queue,))
    child.start()
    print(queue.get(), profiler.state(), (np.ones(3) + 1).tolist())
    child.join()
"""
    (tmp_path / "program.py").write_text(program)
    environment = {
        **os.environ,
        "MXNET_PROFILER_AUTOSTART": "1",
        "MXNET_PROFILER_MODE": "1",
        "MXNP_ENGINE": "threaded",
    }
    command = [sys.executable, "-W", "error", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("stop run [2.0, 2.0, 2.0]\n", "")
    assert names(read(tmp_path / "profile.json"), "task") == ["full+add"]


def test_an_interrupted_stop_can_be_repeated(monkeypatch):
    profiler.set_state("run")

    def interrupted():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_core, "settle", interrupted)
        with pytest.raises(KeyboardInterrupt):
            profiler.set_state("stop")
    assert profiler.state() == "run"
    profiler.set_state("stop")
    assert profiler.state() == "stop"
