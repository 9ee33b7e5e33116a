"""Install a wheel where there is nothing but Python, without a compiler, and see that it works.

The new environment holds the wheel and what it requires. Checked there: `import mxnp` without a warning and
without cupy, one small training step, and that the wheel puts nothing but `mxnp` into site-packages.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LIMIT = 15 * 2**20
PROGRAM = """
import sys
import mxnp
from mxnp import np, autograd, gluon
heavy = {"cupy", "scipy", "matplotlib", "sklearn", "ml_dtypes"} & set(sys.modules)
assert not heavy, f"import mxnp also imported {heavy}"
net = gluon.nn.Dense(2)
net.initialize()
with autograd.record():
    loss = (net(np.ones((3, 4))) ** 2).mean()
loss.backward()
gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}).step(1)
assert float((net(np.ones((3, 4))) ** 2).mean()) < float(loss)
print("mxnp", mxnp.__version__, "from", mxnp.__file__)
"""


def top_level(wheel: Path) -> set[str]:
    """The names that the wheel adds to site-packages, its metadata left out."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name.split("/")[0] for name in archive.namelist()}
    return {name for name in names if not name.endswith(".dist-info")}


def main() -> int:
    """Check the wheel named on the command line; 1 when it does not hold."""
    wheel = Path(sys.argv[1]).resolve()
    if top_level(wheel) - {"mxnp.libs"} != {"mxnp"}:
        print(f"error: {wheel.name} adds {sorted(top_level(wheel))} to site-packages, expected mxnp only")
        return 1
    if wheel.stat().st_size > LIMIT:
        print(f"error: {wheel.name} has {wheel.stat().st_size} bytes, allowed are {LIMIT}")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = str(Path(folder) / "bin" / "python")
        # PATH without a compiler: nothing may be built here.
        install = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", str(wheel)]
        subprocess.run(
            install, check=True, cwd=folder, env={"PATH": str(Path(python).parent), **pip_settings()}
        )
        return subprocess.run([python, "-W", "error", "-c", PROGRAM], check=False, cwd=folder).returncode


def pip_settings() -> dict[str, str]:
    """Where this machine's pip finds packages."""
    return {
        key: value for key, value in os.environ.items() if key.startswith("PIP_") or key.endswith("_proxy")
    }


if __name__ == "__main__":
    sys.exit(main())
