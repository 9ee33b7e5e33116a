"""Trigonometric and hyperbolic functions; angles are in radians."""

from ._table import ufunc

sin = ufunc("sin", "The sine.", ">>> np.sin(np.array([0]))\narray([0.])")
cos = ufunc("cos", "The cosine.", ">>> np.cos(np.array([0]))\narray([1.])")
tan = ufunc("tan", "The tangent.", ">>> np.tan(np.array([0]))\narray([0.])")
arcsin = ufunc("arcsin", "The inverse sine.", ">>> np.arcsin(np.array([0]))\narray([0.])")
arccos = ufunc("arccos", "The inverse cosine.", ">>> np.arccos(np.array([1]))\narray([0.])")
arctan = ufunc("arctan", "The inverse tangent.", ">>> np.arctan(np.array([0]))\narray([0.])")
arctan2 = ufunc(
    "arctan2", "The angle of the point (x2, x1).", ">>> np.arctan2(np.array([0]), 1)\narray([0.])"
)
sinh = ufunc("sinh", "The hyperbolic sine.", ">>> np.sinh(np.array([0]))\narray([0.])")
cosh = ufunc("cosh", "The hyperbolic cosine.", ">>> np.cosh(np.array([0]))\narray([1.])")
tanh = ufunc("tanh", "The hyperbolic tangent.", ">>> np.tanh(np.array([0]))\narray([0.])")
arcsinh = ufunc("arcsinh", "The inverse hyperbolic sine.", ">>> np.arcsinh(np.array([0]))\narray([0.])")
arccosh = ufunc("arccosh", "The inverse hyperbolic cosine.", ">>> np.arccosh(np.array([1]))\narray([0.])")
arctanh = ufunc("arctanh", "The inverse hyperbolic tangent.", ">>> np.arctanh(np.array([0]))\narray([0.])")
deg2rad = ufunc(
    "deg2rad", "Degrees as radians.", ">>> np.deg2rad(np.array([180]))\narray([3.1415927])", op="radians"
)
rad2deg = ufunc("rad2deg", "Radians as degrees.", ">>> np.rad2deg(np.array([0]))\narray([0.])", op="degrees")
degrees = ufunc("degrees", "Radians as degrees.", ">>> np.degrees(np.array([0]))\narray([0.])")
radians = ufunc("radians", "Degrees as radians.", ">>> np.radians(np.array([180]))\narray([3.1415927])")
