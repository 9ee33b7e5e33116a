"""Running MXNet programs unchanged: `import mxnet` means mxnp.

`python -m mxnp.compat script.py args` runs a script that way; `install_as_mxnet()` does it inside a program.
"""

from .finder import install_as_mxnet, uninstall
from .missing import NotArrivedError, missing_module

__all__ = ["NotArrivedError", "install_as_mxnet", "missing_module", "uninstall"]
