"""Random programs in compiled blocks: outputs, writes to arguments and gradients are those of eager code."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gluon.compiled import block, same_bits
from mxnp import MXNetError, autograd, np
from specs.drive import engine, examples, threads
from specs.programs import SMOOTH, Machine, Step, initial, programs


class Given(Machine):
    """A machine whose new arrays are arguments."""

    def __init__(self, dtype, arrays):
        super().__init__(np, dtype)
        self.arrays = iter(arrays)

    def step(self, step):
        if step.kind == "new":
            self.values.append(next(self.arrays))
        elif step.kind != "read":  # looks at data
            super().step(step)


def arguments(program, dtype, seed):
    """Arrays for a program's new ones; every third is a view of a larger one."""
    found = []
    for i, step in enumerate(s for s in program if s.kind == "new"):
        shape, base = step.extra
        values = initial(shape, base + 1000 * seed, dtype)
        if i % 3 == 2 and shape and shape[0] and seed % 2:
            whole = np.array(initial((shape[0] + 2, *shape[1:]), base, dtype))
            whole[1:-1] = np.array(values)
            found.append(whole[1:-1])
        else:
            found.append(np.array(values))
    return found


def compare(program, dtype):
    def follow(*arrays):
        machine = Given(dtype, arrays)
        for step in program:
            machine.step(step)
        return machine.values

    net = block(follow)
    for seed in range(4):
        mine, theirs = (arguments(program, dtype, seed) for _ in range(2))
        got, want = net(*mine), follow(*theirs)
        assert len(got) == len(want)
        for i, (a, b) in enumerate(zip([*got, *mine], [*want, *theirs], strict=True)):
            assert a.asnumpy().tobytes() == b.asnumpy().tobytes(), (i, seed, program)
            assert a.dtype == b.dtype, (i, seed, program)
            assert a.shape == b.shape, (i, seed, program)
    return net


@given(programs("float32", size=25))
@examples(60)
def test_programs_of_floats(program):
    net = compare(program, "float32")
    assert net._compiled.reasons() == []
    assert len(net._compiled.graphs()) == 1


@given(programs("int32", size=25), st.sampled_from([1, 2, 64]))
@examples(30)
def test_programs_of_integers(program, count):
    with threads(count):
        compare(program, "int32")


@given(programs("float32", size=20))
@examples(15)
def test_programs_in_the_naive_engine(program):
    with engine("naive"):
        compare(program, "float32")


@st.composite
def recorded(draw):
    """Programs whose steps have gradients, with writes to what they made."""
    steps = [Step("new", "", (), (shape, seed)) for seed, shape in enumerate([(4, 5), (5, 4), (5,)])]
    for _ in range(draw(st.integers(2, 14))):
        kind = draw(
            st.sampled_from(["unary", "binary", "view", "fold", "matmul", "scalar", "copy", "drop", "write"])
        )
        args = (draw(st.integers(0, 20)), draw(st.integers(0, 20)), 0)
        name, extra = "", None
        if kind == "unary":
            name = draw(st.sampled_from(SMOOTH))
        elif kind == "binary":
            name = draw(st.sampled_from(["multiply", "mean_of", "half_difference", "maximum"]))
        elif kind == "scalar":
            name, extra = "multiply", (0.5, True)
        elif kind == "view":
            name, extra = draw(st.sampled_from(["slice", "reverse", "transpose", "reshape", "row"])), (1, 1)
        elif kind == "fold":
            name, extra = (
                draw(st.sampled_from(["mean", "max"])),
                (draw(st.sampled_from([None, 0, -1])), False),
            )
        elif kind == "write":
            name = draw(st.sampled_from(["all", "head", "tail"]))
        step = Step(kind, name, args, extra)
        steps.append(step if kind not in {"view", "fold", "scalar"} else replace(step, args=args[:1]))
    return steps


class Recorded(Given):
    def write(self, step, x, y, *rest):
        """A functional update of a copy that nothing else sees."""
        made = x * 0.5
        super().write(step, made, y)
        return made


@given(recorded(), st.sampled_from(["write", "add"]), st.booleans())
@examples(60)
def test_recorded_programs(program, req, retain):
    def follow(*arrays):
        machine = Recorded("float32", arrays)
        for step in program:
            machine.step(step)
        return machine.values[3:] or [arrays[0] * 2]

    net = block(follow)
    for seed in range(3):
        found = []
        for run in (net, follow):
            leaves = arguments(program, "float32", 2 * seed)
            for leaf in leaves:
                leaf.attach_grad(req)
            with autograd.record():
                outs = run(*leaves)
                z = sum((o * 0.5).sum() for o in outs) + (leaves[0] * leaves[0]).sum()
            z.backward(retain_graph=retain)
            if retain:
                z.backward()
            found.append([z, *outs, *(leaf.grad for leaf in leaves)])
        for got, want in zip(*found, strict=True):
            same_bits(got, want)
    assert net.runs == [1]


@given(recorded())
@examples(20)
def test_second_order_of_recorded_programs(program):
    def follow(*arrays):
        machine = Recorded("float32", arrays)
        for step in program:
            machine.step(step)
        return sum((v * v).sum() for v in machine.values)

    net = block(follow)
    for seed in range(2):
        found = []
        for run in (net, follow):
            leaves = arguments(program, "float32", 2 * seed)
            for leaf in leaves:
                leaf.attach_grad()
            try:
                with autograd.record():
                    firsts = autograd.grad(run(*leaves), leaves, create_graph=True)
                    z = sum((g * g).sum() for g in firsts)
                z.backward()
            except MXNetError as error:  # an op without a second gradient
                found.append([str(error)])
                continue
            found.append([*firsts, *(leaf.grad for leaf in leaves)])
        assert len(found[0]) == len(found[1])
        for got, want in zip(*found, strict=True):
            if isinstance(want, str):
                assert got == want
            else:
                same_bits(got, want)


def test_a_program_with_every_kind_of_step_is_one_graph():
    program = [Step("new", "", (), ((4, 5), 0)), Step("new", "", (), ((4, 5), 1))]
    program += [
        Step("unary", "tanh", (0, 0, 0)),
        Step("view", "transpose", (2,), (0, 1)),
        Step("matmul", "", (2, 3, 0)),
        Step("write", "head", (0, 1), 0),
        Step("fold", "mean", (4,), (0, True)),
        Step("kernel", "sort", (2, 2), 1),
        Step("index", "", (1, 0), 2),
        Step("write index", "", (1, 0), 3),
    ]
    net = compare(program, "float32")
    assert len(net._compiled.graphs()) == 1
