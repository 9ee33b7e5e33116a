"""Comparing arrays (mxnp's, NumPy's, numbers) and saying where they differ most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as onp

from .tolerance import get_etol, get_tols


def _host(x: Any) -> onp.ndarray:
    array = x.asnumpy() if hasattr(x, "asnumpy") else onp.asarray(x)
    return array.astype(onp.float32) if array.dtype.name == "bfloat16" else array


def _wide(x: onp.ndarray) -> onp.ndarray:
    """In a dtype where differences of narrow floats and of unsigned integers are exact enough."""
    if x.dtype.kind == "c":
        return x.astype(onp.complex128)
    return x if x.dtype.kind in "iu" and x.dtype.itemsize == 8 else x.astype(onp.float64)


def same(a: Any, b: Any) -> bool:
    """Whether two arrays have equal shapes and elements (NaN is not equal to NaN).

    >>> same(np.ones(2), onp.ones(2)), same(np.ones(2), np.ones(3))
    (True, False)
    """
    return bool(onp.array_equal(_host(a), _host(b)))


def same_array(array1: Any, array2: Any) -> bool:
    """Whether two mxnp arrays share their memory: a write to one is seen in the other.

    >>> x = np.ones((2, 2))
    >>> same_array(x, x[0]), same_array(x, x.copy())
    (False, False)
    """
    before = _host(array1).copy()
    array1[:] = array1 + 1
    shared = same(array1, array2)
    array1[:] = before
    return shared


def checkShapes(a: Any, b: Any) -> None:  # noqa: N802 - MXNet's name
    """Raise AssertionError unless the shapes are equal.

    >>> checkShapes(np.ones((2, 3)), onp.ones((2, 3)))
    """
    shapes = _host(a).shape, _host(b).shape
    if shapes[0] != shapes[1]:
        raise AssertionError(
            f"\nItems are not equal: a.shape = {shapes[0]} and b.shape = {shapes[1]} are not equal"
        )


def almost_equal(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    use_broadcast: bool = True,
) -> bool:
    """Whether |a - b| <= atol + rtol * |b| everywhere; tolerances by dtype where None.

    >>> almost_equal(onp.ones(2), onp.ones(2) + 1e-9)
    True
    """
    rtol, atol = get_tols(a, b, rtol, atol)
    if not use_broadcast:
        checkShapes(a, b)
    return bool(onp.allclose(_wide(_host(a)), _wide(_host(b)), rtol=rtol, atol=atol, equal_nan=equal_nan))


def _violations(a: onp.ndarray, b: onp.ndarray, rtol: float, atol: float, equal_nan: bool) -> onp.ndarray:
    """How many times its tolerance each element is off: above 1 is too far, inf for NaN against a number."""
    a, b = onp.broadcast_arrays(_wide(a), _wide(b))
    with onp.errstate(all="ignore"):
        tolerance = atol + rtol * onp.abs(b)
        off = onp.where(onp.equal(a, b), 0.0, onp.abs(a - b) / (tolerance + onp.finfo(float).tiny))
        off = onp.where(onp.isfinite(off), off, onp.inf)
    if equal_nan:
        off = onp.where(onp.isnan(a) & onp.isnan(b), 0.0, off)
    return off


def find_max_violation(
    a: Any, b: Any, rtol: float | None = None, atol: float | None = None
) -> tuple[tuple[int, ...], float]:
    """The index of the element that is off by most of its tolerance, and by how many times it.

    >>> find_max_violation(onp.array([1.0, 2.0]), onp.array([1.0, 2.5]), rtol=0.1, atol=0)
    ((1,), 2.0)
    """
    rtol, atol = get_tols(a, b, rtol, atol)
    off = _violations(_host(a), _host(b), rtol, atol, equal_nan=True)
    where = onp.unravel_index(int(onp.argmax(off)), off.shape) if off.size else ()
    return tuple(int(i) for i in where), float(off[where]) if off.size else 0.0


def locationError(  # noqa: N802 - MXNet's name
    a: Any,
    b: Any,
    index: tuple,
    names: tuple[str, str],
    maxError: bool = False,
) -> str:
    """Text about the elements of a and b at `index`.

    >>> print(locationError(onp.array([1.0, 2.0]), onp.array([1.0, 2.5]), (1,), ("a", "b")))
    Location of error: (1,), a=2.00000000, b=2.50000000
    """
    a, b = onp.broadcast_arrays(_host(a), _host(b))
    what = "maximum error" if maxError else "error"
    return f"Location of {what}: {index}, {names[0]}={a[index]:.8f}, {names[1]}={b[index]:.8f}"


def assert_almost_equal(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    use_broadcast: bool = True,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Raise AssertionError unless |a - b| <= atol + rtol * |b| everywhere.

    Tolerances are the dtypes' where None. The text gives the share of elements that differ, the worst one, and the
    first `mismatches[0]`.

    >>> try:
    ...     assert_almost_equal(np.array([1.0, 2.0]), np.array([1.0, 2.5]))
    ... except AssertionError:
    ...     print("not equal")
    not equal
    """
    assert_almost_equal_with_err(a, b, rtol, atol, 0, names, equal_nan, mismatches, use_broadcast)


def assert_almost_equal_with_err(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    etol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    mismatches: tuple[int, int] = (10, 10),
    use_broadcast: bool = True,
) -> None:
    """As assert_almost_equal, but a share of up to `etol` of the elements may differ.

    >>> assert_almost_equal_with_err(np.array([1.0, 2.0]), np.array([1.0, 2.5]), etol=0.5)
    """
    rtol, atol = get_tols(a, b, rtol, atol)
    if not use_broadcast:
        checkShapes(a, b)
    left, right = onp.broadcast_arrays(_host(a), _host(b))
    off = _violations(left, right, rtol, atol, equal_nan)
    bad = off > 1
    share = float(bad.mean()) if bad.size else 0.0
    if share <= get_etol(etol):
        return
    worst = onp.unravel_index(int(onp.argmax(off)), off.shape)
    lines = [
        (
            f"\nItems are not equal: {100 * share:.6g}% of {off.size} elements differ by more than "
            f"rtol={rtol:e}, atol={atol:e}"
        ),
        f"worst: {off[worst]:.6g} times its tolerance. "
        + locationError(left, right, tuple(int(i) for i in worst), names, maxError=True),
    ]
    for index in onp.argwhere(bad)[: mismatches[0]]:
        where = tuple(int(i) for i in index)
        lines.append(f"  {where}: {names[0]}={left[where]!r}, {names[1]}={right[where]!r}")
    raise AssertionError("\n".join(lines))


def assert_almost_equal_ignore_nan(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
) -> None:
    """As assert_almost_equal, leaving out elements that are NaN in either array.

    >>> assert_almost_equal_ignore_nan(np.array([1.0, np.nan]), np.array([1.0, 2.0]))
    """
    a, b = _host(a).copy(), _host(b).copy()
    skip = onp.isnan(a) | onp.isnan(b)
    a[skip] = b[skip] = 0
    assert_almost_equal(a, b, rtol, atol, names)


def assert_allclose(a: Any, b: Any, rtol: float = 1e-07, atol: float = 0, equal_nan: bool = True) -> None:
    """NumPy's assert_allclose on arrays of either kind.

    >>> assert_allclose(np.ones(2), onp.ones(2))
    """
    onp.testing.assert_allclose(_host(a), _host(b), rtol=rtol, atol=atol, equal_nan=equal_nan)


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: float | None = None, atol: float | None = None) -> None:
    """assert_almost_equal through nested tuples and lists; None matches None.

    >>> compare_ndarray_tuple((np.ones(2), None), (np.ones(2), None))
    """
    if t1 is None and t2 is None:
        return
    if isinstance(t1, (tuple, list)):
        if not isinstance(t2, (tuple, list)) or len(t1) != len(t2):
            raise AssertionError(f"expected {len(t1)} parts, got {t2!r:.100}")
        for first, second in zip(t1, t2, strict=True):
            compare_ndarray_tuple(first, second, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol=rtol, atol=atol)


def assert_exception(f: Callable, exception_type: type[BaseException], *args: Any, **kwargs: Any) -> None:
    """Raise AssertionError unless `f(*args, **kwargs)` raises `exception_type`.

    >>> assert_exception(np.ones, ValueError, (-1,))
    """
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{getattr(f, '__name__', f)} did not raise {exception_type.__name__}")
