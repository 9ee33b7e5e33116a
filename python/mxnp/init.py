"""Another name of mxnp.initializer, as in MXNet."""

import sys

from mxnp import initializer

sys.modules[__name__] = initializer
