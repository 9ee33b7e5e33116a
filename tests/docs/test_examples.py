"""Every example of the documentation runs: docstrings of the public names, and the programs in Markdown files."""

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mxnp

ROOT = Path(__file__).parent.parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def public_modules():
    """Names of mxnp's modules without a leading underscore anywhere."""
    found = pkgutil.walk_packages(mxnp.__path__, "mxnp.")
    names = [module.name for module in found]
    return ["mxnp", *(name for name in names if "._" not in name and not name.endswith("__main__"))]


def documented(module):
    """Each public name of `module` with its object, as a user reaches it."""
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    for name in names:
        value = getattr(module, name)
        if not inspect.ismodule(value) and (getattr(value, "__module__", None) or "mxnp").startswith("mxnp"):
            yield name, value


@pytest.mark.parametrize("name", public_modules())
def test_docstrings(name):
    module = importlib.import_module(name)
    runner, failures = doctest.DocTestRunner(verbose=False, optionflags=FLAGS), []
    globs = {
        "mx": mxnp,
        "np": mxnp.np,
        "npx": mxnp.npx,
        "autograd": mxnp.autograd,
        "gluon": mxnp.gluon,
        "nn": mxnp.gluon.nn,
    }
    tests = doctest.DocTestFinder(recurse=False).find(module, name, globs=globs)
    for label, value in documented(module):
        # An example may use what stands in the file it is written in.
        own = vars(sys.modules.get(getattr(value, "__module__", None) or "", module))
        tests += doctest.DocTestFinder().find(value, f"{name}.{label}", globs={**own, **globs})
    for test in tests:
        mxnp.np.random.seed(0)
        runner.run(test, out=failures.append)
    assert not failures, "".join(failures)


def programs():
    """Each ```python block of the Markdown files that users read."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for number, match in enumerate(PROGRAM.finditer(path.read_text(encoding="utf-8")), 1):
            yield pytest.param(match[1], id=f"{path.relative_to(ROOT)}-{number}")


@pytest.mark.parametrize("program", list(programs()))
def test_programs_in_the_documentation(program, tmp_path):
    command = [sys.executable, "-W", "error", "-c", program]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""


def test_programs_elsewhere_run_on_this_mxnp(tmp_path):
    command = [sys.executable, "-c", "import mxnp; print(mxnp.__file__)"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stdout.strip() == mxnp.__file__, run.stderr


def test_every_environment_variable_is_documented():
    """The variables that the sources read stand in the reference."""
    sources = [*(ROOT / "crates").rglob("*.rs"), *(ROOT / "python").rglob("*.py")]
    read = re.compile(r"""(?:env::var|environ\.get|getenv|get)\(\s*["'](MXN(?:P|ET)_[A-Z_]+)["']""")
    found = {name for path in sources for name in read.findall(path.read_text(encoding="utf-8"))}
    text = (ROOT / "docs/reference/environment.md").read_text(encoding="utf-8")
    assert found - {"MXNP_EXAMPLE"} <= set(re.findall(r"MXN(?:P|ET)_[A-Z_]+", text))
    assert "MXNP_ISA" in found
