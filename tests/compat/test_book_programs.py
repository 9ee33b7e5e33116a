"""Whole programs as MXNet's users write them, run by `python -m mxnp.compat`. Each asserts what it promises.

All but `legacy` and `imports` (1.x's habits) end the same way under MXNet 2.0.0b1 itself, where `python
programs/lenet.py` runs them.
"""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_program(program, tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "error", "-m", "mxnp.compat", str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""
