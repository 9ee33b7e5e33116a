"""Einstein's summation, written with transposes, products of matrices and sums."""

from __future__ import annotations

from typing import Any

from mxnp._core import ndarray
from mxnp.error import MXNetValueError

from ._table import as_array, deliver, op

_MATMUL = op("matmul")
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def einsum(*operands: Any, out: ndarray | None = None, optimize: Any = False, **kwargs: Any) -> ndarray:
    """Sums of products over the axes that share a letter: `np.einsum('ij,jk->ik', a, b)`.

    Without `->` the letters that occur once remain, in alphabetical order. `...` stands for further axes, which
    broadcast. Operands are contracted from left to right; `optimize` is accepted.

    >>> np.einsum('ij,ij->i', np.ones((2, 3)), np.ones((2, 3)))
    array([3., 3.])
    """
    text, arrays = _parsed(operands)
    inputs, result = _letters(text, arrays)
    sizes: dict[str, int] = {}
    for letters, x in zip(inputs, arrays, strict=True):
        for letter, n in zip(letters, x.shape, strict=True):
            if sizes.setdefault(letter, n) != n:
                if 1 not in (n, sizes[letter]):
                    raise MXNetValueError(
                        f"einsum: axes called {letter!r} have sizes {sizes[letter]} and {n} "
                        "and cannot be broadcast together"
                    )
                sizes[letter] = max(n, sizes[letter])
    current, letters = _single(arrays[0], inputs[0])
    for i, (x, names) in enumerate(zip(arrays[1:], inputs[1:], strict=True), 1):
        later = set(result).union(*inputs[i + 1 :])
        current, letters = _contract(current, letters, *_single(x, names), later)
    current, letters = _summed(current, letters, set(result))
    ordered = current.transpose([letters.index(letter) for letter in result])
    wanted = tuple(sizes[letter] for letter in result)
    return deliver(ordered if ordered.shape == wanted else ordered.broadcast_to(wanted), out)


def _parsed(operands: tuple) -> tuple[str, list[ndarray]]:
    """The subscripts as text, and the arrays."""
    if not operands:
        raise MXNetValueError(
            "einsum: must specify the einstein sum subscripts string and at least one operand"
        )
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), [as_array(x) for x in operands[1:]]
    pairs = [operands[i : i + 2] for i in range(0, len(operands), 2)]
    named = [
        "".join("..." if i is Ellipsis else _LETTERS[i] for i in pair[1]) for pair in pairs if len(pair) == 2
    ]
    text = ",".join(named)
    if len(pairs[-1]) == 1:
        text += "->" + "".join("..." if i is Ellipsis else _LETTERS[i] for i in pairs[-1][0])
    return text, [as_array(pair[0]) for pair in pairs if len(pair) == 2]


def _letters(text: str, arrays: list[ndarray]) -> tuple[list[str], str]:
    """One letter for each axis of each operand and of the result; `...` becomes letters of its own."""
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise MXNetValueError(f"einsum: {text!r} names {len(terms)} operands, but {len(arrays)} were given")
    spare = [letter for letter in _LETTERS if letter not in text]
    widest = 0
    for term, x in zip(terms, arrays, strict=True):
        named = len(term.replace("...", ""))
        if not all(c in _LETTERS for c in term.replace("...", "")) or term.count("...") > 1:
            raise MXNetValueError(
                f"einsum: invalid subscript {term!r}, only letters and one '...' are allowed"
            )
        if named > x.ndim or (named < x.ndim and "..." not in term):
            raise MXNetValueError(f"einsum: {term!r} does not name the {x.ndim} axes of operand {x.shape}")
        widest = max(widest, x.ndim - named)
    dots = "".join(spare[:widest])
    inputs = []
    for term, x in zip(terms, arrays, strict=True):
        missing = x.ndim - len(term.replace("...", ""))
        inputs.append(term.replace("...", dots[len(dots) - missing :]))
    if arrow:
        result = right.replace("...", dots)
    else:
        every = "".join(terms).replace("...", "")
        result = dots + "".join(sorted(c for c in set(every) if every.count(c) == 1))
    if len(set(result)) != len(result) or not set(result) <= set("".join(inputs)):
        raise MXNetValueError(
            f"einsum: the result {right!r} of {text!r} repeats a letter or has one no operand has"
        )
    return inputs, result


def _single(x: ndarray, letters: str) -> tuple[ndarray, str]:
    """`x` with repeated letters reduced to their diagonal."""
    from .index import diagonal

    while len(set(letters)) != len(letters):
        letter = next(c for c in letters if letters.count(c) > 1)
        i = letters.index(letter)
        j = letters.index(letter, i + 1)
        x = diagonal(x, 0, i, j)
        letters = letters[:i] + letters[i + 1 : j] + letters[j + 1 :] + letter
    return x, letters


def _summed(x: ndarray, letters: str, keep: set[str]) -> tuple[ndarray, str]:
    """`x` summed over the letters nobody needs any more."""
    gone = tuple(i for i, letter in enumerate(letters) if letter not in keep)
    return (x.sum(gone, x.dtype), "".join(c for c in letters if c in keep)) if gone else (x, letters)


def _contract(x: ndarray, a: str, y: ndarray, b: str, later: set[str]) -> tuple[ndarray, str]:
    """The product of two operands, summed over the letters that only they have: one batched product of matrices."""
    x, a = _summed(x, a, later | set(b))
    y, b = _summed(y, b, later | set(a))
    batch = [c for c in a if c in b and c in later]
    inner = [c for c in a if c in b and c not in later]
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]
    # A size of 1 that broadcasts against the other operand's is stretched first.
    sizes = {c: max(x.shape[a.index(c)], y.shape[b.index(c)]) for c in batch + inner}
    x = x.broadcast_to(tuple(sizes.get(c, n) for c, n in zip(a, x.shape, strict=True)))
    y = y.broadcast_to(tuple(sizes.get(c, n) for c, n in zip(b, y.shape, strict=True)))
    shape = dict(zip(a + b, x.shape + y.shape, strict=True))

    def count(group: list[str]) -> int:
        total = 1
        for c in group:
            total *= shape[c]
        return total

    p = x.transpose([a.index(c) for c in batch + rows + inner]).reshape(
        (count(batch), count(rows), count(inner))
    )
    q = y.transpose([b.index(c) for c in batch + inner + columns]).reshape(
        (count(batch), count(inner), count(columns))
    )
    letters = batch + rows + columns
    return _MATMUL(p, q).reshape(tuple(shape[c] for c in letters)), "".join(letters)
