"""The loss of sequences, summed over alignments as its definition says."""

from __future__ import annotations

import itertools

import numpy as onp

from specs.row import FLOATS, Bad, Case, Domain, Row, public


def ctc(logs, labels, steps, lengths, blank=0, padding=None):
    """All paths of all classes, one by one."""
    _, samples, classes = logs.shape
    found = onp.zeros(samples)
    for n in range(samples):
        label = labels[n, : int(lengths[n])].tolist()
        if padding in label:
            label = label[: label.index(padding)]
        total = -onp.inf
        for path in itertools.product(range(classes), repeat=int(steps[n])):
            if [k for k, _ in itertools.groupby(path) if k != blank] == label:
                total = onp.logaddexp(total, sum(logs[t, n, k] for t, k in enumerate(path)))
        found[n] = 0.0 if total == -onp.inf else -total
    return found


def _bad(error, match, *, labels=(1, 2), shape=(3, 1, 3), steps=(3,), lengths=(2,), **attrs) -> Bad:
    return Bad(
        lambda np, npx: public(np, npx, "core.ctc")(
            np.zeros(shape),
            *(np.array(onp.array(each)) for each in ([labels], steps, lengths)),
            **attrs,
        ).wait_to_read(),
        error,
        match,
    )


ROWS = (
    Row(
        "core.ctc",
        ctc,
        FLOATS,
        (
            Case(((5, 3, 4), (3, 2), (3,), (3,))),
            Case(((5, 3, 4), (3, 3), (3,), (3,)), {"blank": 0, "padding": 1}),
            Case(((5, 0, 4), (0, 2), (0,), (0,))),
        ),
        result=lambda dtype: "float64" if dtype == "float64" else "float32",
        domain=(
            Domain(),
            Domain(1, 3, dtype="int64"),
            Domain(4, 5, dtype="int64"),
            Domain(0, 2, dtype="int64"),
        ),
        grad=1,
        loose=4,
        bad=(
            _bad(IndexError, "ctc: label 3 of sample 0 is out of bounds", labels=(1, 3)),
            _bad(IndexError, "ctc: label 0 of sample 0 is out of bounds.*the blank", labels=(0, 1)),
            _bad(IndexError, "ctc: data length 4 of sample 0 is out of bounds for 3 steps", steps=(4,)),
            _bad(IndexError, "ctc: label length -1 of sample 0 is out of bounds", lengths=(-1,)),
            _bad(ValueError, r"ctc: data lengths must have shape \(1,\), got \(2,\)", steps=(3, 3)),
            _bad(ValueError, "ctc: the blank must be one of 3 classes, got 3", blank=3),
            _bad(ValueError, "ctc: data needs a step, a class and the blank", shape=(3, 1, 1)),
            _bad(ValueError, "ctc: labels of length 2 cannot fit into 1 steps", shape=(1, 1, 3)),
            _bad(ValueError, r"ctc: expected data \(T, N, C\)", shape=(3, 3)),
        ),
    ),
)
