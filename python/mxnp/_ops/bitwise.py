"""Bits of integers and bools."""

from ._table import ufunc

bitwise_and = ufunc(
    "bitwise_and",
    "The bits in both x1 and x2.",
    ">>> np.bitwise_and(np.array([6], dtype='int32'), 3)\narray([2], dtype=int32)",
)
bitwise_or = ufunc(
    "bitwise_or",
    "The bits in x1 or x2.",
    ">>> np.bitwise_or(np.array([6], dtype='int32'), 3)\narray([7], dtype=int32)",
)
bitwise_xor = ufunc(
    "bitwise_xor",
    "The bits in exactly one of x1 and x2.",
    ">>> np.bitwise_xor(np.array([6], dtype='int32'), 3)\narray([5], dtype=int32)",
)
invert = ufunc(
    "invert",
    "Every bit turned over.",
    ">>> np.invert(np.array([1], dtype='int32'))\narray([-2], dtype=int32)",
    op="bitwise_not",
)
left_shift = ufunc(
    "left_shift",
    "x1 moved left by x2 bits.",
    ">>> np.left_shift(np.array([1], dtype='int32'), 3)\narray([8], dtype=int32)",
)
right_shift = ufunc(
    "right_shift",
    "x1 moved right by x2 bits.",
    ">>> np.right_shift(np.array([8], dtype='int32'), 3)\narray([1], dtype=int32)",
)
