"""Rows of convolution, against sums written out over the kernel."""

from __future__ import annotations

import itertools

import numpy as onp

from specs.row import Bad, Case, Domain, Row

SMALL = Domain(-2, 2)


def windows(size: int, kernel: int, stride: int, pad: int, dilate: int) -> int:
    """How many places a kernel has along an axis."""
    return (size + 2 * pad - dilate * (kernel - 1) - 1) // stride + 1


def convolution(
    x, w, bias=None, kernel=(), stride=None, dilate=None, pad=None, num_group=1, no_bias=False, **_
):
    """Cross-correlation of `x` (N, C, *space) with `w` (F, C / groups, *kernel)."""
    n = len(kernel)
    stride, dilate, pad = stride or (1,) * n, dilate or (1,) * n, pad or (0,) * n
    space = [windows(*each) for each in zip(x.shape[2:], kernel, stride, pad, dilate, strict=True)]
    padded = onp.pad(x, [(0, 0), (0, 0), *((p, p) for p in pad)])
    out = onp.zeros((x.shape[0], w.shape[0], *space))
    per_in, per_out = x.shape[1] // num_group, w.shape[0] // num_group
    for group in range(num_group):
        ins = slice(group * per_in, (group + 1) * per_in)
        outs = slice(group * per_out, (group + 1) * per_out)
        for at in itertools.product(*map(range, kernel)):
            cut = [
                slice(k * d, k * d + s * size, s)
                for k, d, s, size in zip(at, dilate, stride, space, strict=True)
            ]
            seen = padded[(slice(None), ins, *cut)]
            out[:, outs] += onp.einsum("nc...,fc->nf...", seen, w[(outs, slice(None), *at)])
    return out if no_bias or bias is None else out + bias.reshape(1, -1, *[1] * n)


def case(x, w, *, bias=True, smooth=True, **attrs) -> Case:
    """A case with the keywords that every call names."""
    named = {"kernel": tuple(w[2:]), "num_filter": w[0], "no_bias": not bias, **attrs}
    return Case((x, w, (w[0],)) if bias else (x, w), named, smooth=smooth)


def turned(x, w, **attrs) -> Case:
    """A case of a transposed convolution: the weight is (C, F / groups, *kernel)."""
    filters = w[1] * attrs.get("num_group", 1)
    return Case((x, w), {"kernel": tuple(w[2:]), "num_filter": filters, "no_bias": True, **attrs})


def deconvolution(x, w, kernel=(), stride=None, dilate=None, pad=None, adj=None, num_group=1, **_):
    """The transpose of `convolution`: each element spreads its multiple of the kernel."""
    n = len(kernel)
    stride, dilate, pad, adj = stride or (1,) * n, dilate or (1,) * n, pad or (0,) * n, adj or (0,) * n
    full = [
        (size - 1) * s + d * (k - 1) + 1 + a
        for size, s, d, k, a in zip(x.shape[2:], stride, dilate, kernel, adj, strict=True)
    ]
    per_in, per_out = x.shape[1] // num_group, w.shape[1]
    out = onp.zeros((x.shape[0], per_out * num_group, *full))
    for group in range(num_group):
        ins = slice(group * per_in, (group + 1) * per_in)
        outs = slice(group * per_out, (group + 1) * per_out)
        for at in itertools.product(*map(range, kernel)):
            cut = [
                slice(k * d, k * d + s * (size - 1) + 1, s)
                for k, d, s, size in zip(at, dilate, stride, x.shape[2:], strict=True)
            ]
            out[(slice(None), outs, *cut)] += onp.einsum(
                "nc...,cf->nf...", x[:, ins], w[(ins, slice(None), *at)]
            )
    inside = tuple(slice(p, size - p) for p, size in zip(pad, full, strict=True))
    return out[(slice(None), slice(None), *inside)]


ROWS = (
    Row(
        "npx.convolution",
        convolution,
        ("float32", "float64"),
        (
            case((2, 3, 5, 5), (4, 3, 3, 3)),
            case((2, 3, 5, 6), (4, 3, 3, 2), pad=(1, 1), stride=(2, 1)),
            case((1, 2, 7, 7), (3, 2, 3, 3), dilate=(2, 2), bias=False),
            case((2, 4, 5, 5), (6, 2, 3, 3), num_group=2, pad=(1, 1)),
            case((2, 3, 9), (4, 3, 3), pad=(1,)),
            case((1, 2, 4, 4, 4), (3, 2, 2, 2, 2)),
            case((0, 3, 5, 5), (4, 3, 3, 3), smooth=False),
            case((2, 8, 19, 23), (16, 8, 5, 5), pad=(2, 2), smooth=False),
        ),
        domain=(SMALL,),
        loose=64,
        bad=(
            Bad(
                lambda np, npx: npx.convolution(
                    np.ones((1, 3, 5, 5)), np.ones((4, 2, 3, 3)), kernel=(3, 3), num_filter=4, no_bias=True
                ),
                ValueError,
                "convolution",
            ),
            Bad(
                lambda np, npx: npx.convolution(
                    np.ones((1, 3, 2, 2)), np.ones((4, 3, 3, 3)), kernel=(3, 3), num_filter=4, no_bias=True
                ),
                ValueError,
                "convolution",
            ),
        ),
    ),
    Row(
        "npx.deconvolution",
        deconvolution,
        ("float32", "float64"),
        (
            turned((1, 3, 4, 4), (3, 2, 3, 3)),
            turned((2, 3, 3, 4), (3, 4, 2, 3), stride=(2, 1), pad=(1, 1)),
            turned((1, 4, 3, 3), (4, 2, 3, 3), num_group=2, stride=(2, 2)),
            turned((1, 2, 3, 3), (2, 3, 3, 3), stride=(2, 2), pad=(1, 1), adj=(1, 1)),
            turned((2, 2, 5), (2, 3, 3)),
        ),
        domain=(SMALL,),
        loose=64,
    ),
)
