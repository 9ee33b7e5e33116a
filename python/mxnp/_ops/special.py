"""Special functions: erf, gamma and the like."""

from ._table import ufunc

erf = ufunc("erf", "The error function.", ">>> npx.erf(np.array([0]))\narray([0.])")
erfinv = ufunc("erfinv", "The inverse of the error function.", ">>> npx.erfinv(np.array([0]))\narray([0.])")
gamma = ufunc("gamma", "The gamma function.", ">>> npx.gamma(np.array([1]))\narray([1.])")
gammaln = ufunc(
    "gammaln",
    "The logarithm of the gamma function's absolute value.",
    ">>> npx.gammaln(np.array([1]))\narray([0.])",
)
digamma = ufunc("digamma", "The derivative of gammaln.", "")
