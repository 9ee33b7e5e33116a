"""benches/table.py: its rows are workloads, and its verdicts follow from the times. No speed is asserted anywhere."""

import roofline
import table
import workloads  # noqa: F401 - registers the workloads
from library import WORKLOADS


def test_every_row_is_a_workload():
    names = {name for row in table.ROWS for name in row.names} | {row.name for row in roofline.ROWS}
    assert sorted(names - WORKLOADS.keys()) == []


def stored(rows):
    return {
        "date": "2000-01-01",
        "machine": {"processor": "a processor", "cores": 2},
        "command": "python benches/table.py",
        "versions": {"mxnp": "0.1"},
        "rows": rows,
    }


def test_verdicts():
    times = {
        "mxnp": [10.0] * 15,
        "numpy": [30.0] * 14 + [900.0],
        "torch": [9.3] * 15,
        "mxnet": "no such thing",
    }
    shown = table.show(stored({"chain 1e7": times}))
    assert "| numpy | chain 1e7 | 10.0 us | 3.00 (3.00-3.00) | 3.0 | met |" in shown
    assert "| torch | chain 1e7 | 10.0 us | 0.93 (0.93-0.93) | 0.95 | met |" in shown, "97% of a bar counts"
    assert "| mxnet | chain 1e7 | | | | no such thing |" in shown
    assert "| torch | geometric mean of 1 | | 0.93 | 1.7 | missed |" in shown
