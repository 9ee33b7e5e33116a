"""Every workload of benches/ runs, and the table's arithmetic is right; nothing here is timed."""

import pytest

import run
import workloads


@pytest.mark.parametrize("name", workloads.WORKLOADS)
@pytest.mark.parametrize("library", ["numpy", "mxnp"])
def test_workload_runs(library, name):
    lib = workloads.Library(library)
    call = workloads.WORKLOADS[name](lib)
    if call is None:
        assert library == "numpy"
    else:
        lib.wait(call())


def test_ratios_are_peer_over_own_and_absent_where_a_peer_has_none():
    best = run.merge([{"add": 4.0, "exp": 1.0}, {"add": 2.0, "exp": 3.0}])
    assert best == {"add": 2.0, "exp": 1.0}
    lines = run.table({"mxnp": best, "numpy": {"add": 5.0}}).splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["2.50", "-"]
