"""Every example of the documentation runs: docstrings of the public names, and the programs in Markdown files."""

import ast
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


def modules():
    """The names of mxnp's modules, private ones too: what they define is public under another name."""
    found = pkgutil.walk_packages(mxnp.__path__, "mxnp.")
    return ["mxnp", *(module.name for module in found if not module.name.endswith("__main__"))]


def examples(name):
    """The examples of everything that the module called `name` defines: what is written in Python, what is made from
    the op tables (universal functions), and the native classes with the methods attached to them.
    """
    module, finder = importlib.import_module(name), doctest.DocTestFinder()
    globs = {
        **vars(module),
        "mx": mxnp,
        "np": mxnp.np,
        "npx": mxnp.npx,
        "autograd": mxnp.autograd,
        "gluon": mxnp.gluon,
        "nn": mxnp.gluon.nn,
    }
    if name == "mxnp._core":
        native = [value for value in vars(module).values() if not inspect.ismodule(value)]
    else:
        yield from finder.find(module, name, globs=globs)
        native = [value for value in vars(module).values() if isinstance(value, mxnp._core.Ufunc)]
    for value in native:
        label = f"{name}.{getattr(value, '__name__', type(value).__name__)}"
        yield from finder.find(value, label, module=False, globs=globs)


@pytest.mark.parametrize("name", modules())
def test_docstrings(name):
    runner, failures = doctest.DocTestRunner(verbose=False, optionflags=FLAGS), []
    for test in examples(name):
        mxnp.np.random.seed(0)
        runner.run(test, out=failures.append)
    assert not failures, "".join(failures)


def test_no_example_is_left_out():
    """Every docstring with an example in the sources is among those that test_docstrings runs."""
    root = Path(mxnp.__file__).parent
    run = {test.docstring for name in modules() for test in examples(name) if test.examples}
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                text = ast.get_docstring(node, clean=False) or ""
                assert ">>>" not in text or text in run, f"{path.relative_to(root)}: {node.name}"


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
