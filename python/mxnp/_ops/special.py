"""Special functions: the error function and its inverse."""

from ._table import ufunc

erf = ufunc("erf", "The error function.", ">>> npx.erf(np.array([0]))\narray([0.])")
erfinv = ufunc("erfinv", "The inverse of the error function.", ">>> npx.erfinv(np.array([0]))\narray([0.])")
