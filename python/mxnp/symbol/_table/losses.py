"""1.x's output layers: what they give in forward, and the gradient of a loss that they put in place of the head's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnp import autograd, np, npx
from mxnp.error import MXNetValueError

from .._spec import Attrs, Shape, row


class _Output(autograd.Function):
    """`value(data)` forward; backward `slope(data, label, value)`, whatever gradient arrives."""

    def __init__(self, value: Callable[..., Any], slope: Callable[..., Any]) -> None:
        super().__init__()
        self._value, self._slope = value, slope

    def forward(self, data: Any, *label: Any) -> Any:
        result = self._value(data)
        self.save_for_backward(data, *label, result)
        return result

    def backward(self, *head: Any) -> Any:
        data, *label, result = self.saved_tensors
        slope = self._slope(data, *label, result).astype(data.dtype)
        return (slope, *(np.zeros_like(each) for each in label))


def _output(value: Callable[..., Any], slope: Callable[..., Any], data: Any, label: Any) -> Any:
    """The layer's value, with the loss's gradient behind it where there is a label."""
    return value(data) if label is None else _Output(value, slope)(data, label)


def _softmax_axis(data: Any, multi_output: bool, preserve_shape: bool) -> Any:
    if multi_output:
        return npx.softmax(data, axis=1)
    if preserve_shape or data.ndim <= 2:
        return npx.softmax(data, axis=-1)
    return npx.softmax(npx.batch_flatten(data), axis=-1).reshape(data.shape)


def _softmax_output(data: Any, label: Any, **attrs: Any) -> Any:
    multi = attrs["multi_output"]
    whole = not multi and not attrs["preserve_shape"] and data.ndim > 2  # one softmax over all of a sample

    def slope(_data: Any, label: Any, p: Any) -> Any:
        if tuple(label.shape) == tuple(p.shape):  # probabilities
            return (p - label) * attrs["grad_scale"]
        rows = p.reshape((p.shape[0], -1)) if whole else p
        return _softmax_slope(rows, label, 1 if multi else rows.ndim - 1, attrs).reshape(p.shape)

    return _output(lambda x: _softmax_axis(x, multi, attrs["preserve_shape"]), slope, data, label)


def _softmax_slope(p: Any, label: Any, axis: int, attrs: Attrs) -> Any:
    """The gradient of the cross entropy of probabilities along `axis`, weighted as 1.x does."""
    classes = p.shape[axis]
    shape = tuple(n for i, n in enumerate(p.shape) if i != axis)
    if label.size != p.size // max(classes, 1):
        raise MXNetValueError(f"SoftmaxOutput: expected a label of shape {shape}, got {label.shape}")
    target = label.reshape(shape)
    wanted = np.moveaxis(npx.one_hot(target, classes, dtype=p.dtype), -1, axis)
    smooth = attrs["smooth_alpha"]
    if smooth:
        wanted = wanted * (1 - smooth) + (1 - wanted) * (smooth / (classes - 1))
    found = p - wanted
    kept = np.expand_dims(target != attrs["ignore_label"], axis)
    if attrs["use_ignore"]:
        found = found * kept
    scale, kind = attrs["grad_scale"], attrs["normalization"]
    if attrs["multi_output"] and kind != "valid":
        scale = scale * target.shape[0] / target.size  # each position counts as its part of the sample
    if kind == "batch":
        scale = scale / (target.shape[0] if attrs["multi_output"] else target.size)
    elif kind == "valid":
        scale = scale / np.maximum(kept.sum() if attrs["use_ignore"] else target.size, 1)
    return found * scale


def _fill_softmax_label(shapes: list[Shape], attrs: Attrs) -> None:
    data = shapes[0]
    if data is None or shapes[1] is not None:
        return
    if attrs["multi_output"]:
        shapes[1] = (data[0], *data[2:])
    elif attrs["preserve_shape"]:
        shapes[1] = data[:-1]
    else:
        shapes[1] = data[:1]


def _fill_equal_label(shapes: list[Shape], attrs: Attrs) -> None:
    data = shapes[0]
    if data is not None and shapes[1] is None:
        shapes[1] = data[:1] if len(data) == 2 and data[1] == 1 else data


def _regression(value: Callable[..., Any], difference: Callable[..., Any]) -> Callable[..., Any]:
    """An output layer whose gradient is `difference(output, label)`, over the outputs of a sample."""

    def run(data: Any, label: Any, grad_scale: float) -> Any:
        count = max(data.size // max(data.shape[0], 1), 1) if data.ndim else 1

        def slope(_data: Any, label: Any, y: Any) -> Any:
            return difference(y, label.reshape(y.shape)) * (grad_scale / count)

        return _output(value, slope, data, label)

    return run


def _copied(x: Any) -> Any:
    return x.copy()


def _make_loss(data: Any, grad_scale: float, valid_thresh: float, normalization: str) -> Any:
    def slope(x: Any, y: Any) -> Any:
        scale = np.full(x.shape, grad_scale, dtype=x.dtype)
        if normalization == "batch":
            return scale / x.shape[0]
        if normalization == "valid":
            return scale / np.maximum((x > valid_thresh).sum(), 1)
        return scale

    return _Output(_copied, slope)(data)


def _svm_output(
    data: Any, label: Any, margin: float, regularization_coefficient: float, use_linear: bool
) -> Any:
    def slope(x: Any, label: Any, y: Any) -> Any:
        own = npx.one_hot(label, x.shape[1], dtype="bool")
        # The hinge of the class itself is at margin, that of the others at -margin.
        signed = np.where(own, x, -x)
        missing = np.maximum(margin - signed, 0)
        size = (missing > 0).astype(x.dtype) if use_linear else 2 * missing
        return regularization_coefficient * np.where(own, -size, size)

    if data.ndim != 2:
        raise MXNetValueError(f"SVMOutput: expected data of two axes, got {data.shape}")
    return _output(_copied, slope, data, label)


def _softmax_cross_entropy(data: Any, label: Any) -> Any:
    chosen = npx.pick(npx.log_softmax(data, axis=-1), label)
    return -chosen.sum().reshape((1,))


def _ctc_inputs(attrs: Attrs) -> tuple[str, ...]:
    kinds = ("data_lengths", "label_lengths")
    return ("data", "label", *(kind for kind in kinds if attrs[f"use_{kind}"]))


def _ctc_loss(*inputs: Any, use_data_lengths: bool, use_label_lengths: bool, blank_label: str) -> Any:
    data, label, *lengths = inputs
    data_lengths = lengths.pop(0) if use_data_lengths else None
    label_lengths = lengths.pop(0) if use_label_lengths else None
    return npx.ctc_loss(
        data, label, data_lengths, label_lengths, use_data_lengths, use_label_lengths, blank_label
    )


def _fill_rows(shapes: list[Shape], attrs: Attrs) -> None:
    if shapes[0] is not None and shapes[1] is None:
        shapes[1] = shapes[0][:1]


def add_rows() -> None:
    """Adds the family's rows."""
    row(
        "SoftmaxOutput Softmax",
        "data label",
        "grad_scale:float=1 ignore_label:float=-1 multi_output:bool=0 use_ignore:bool=0 preserve_shape:bool=0 "
        "normalization:str=null out_grad:bool=0 smooth_alpha:float=0",
        _softmax_output,
        fill=_fill_softmax_label,
        labels=("label",),
    )
    scale = "grad_scale:float=1"
    for name, value, difference in (
        ("Linear", _copied, lambda y, label: y - label),
        ("Logistic", npx.sigmoid, lambda y, label: y - label),
        ("MAE", _copied, lambda y, label: np.sign(y - label)),
    ):
        row(
            f"{name}RegressionOutput",
            "data label",
            scale,
            _regression(value, difference),
            fill=_fill_equal_label,
            labels=("label",),
        )
    row(
        "MakeLoss",
        "data",
        "grad_scale:float=1 valid_thresh:float=0 normalization:str=null",
        _make_loss,
        same=True,
    )
    row("make_loss", "data", "", lambda x: _make_loss(x, 1.0, 0.0, "null"), same=True)
    row(
        "SVMOutput",
        "data label",
        "margin:float=1 regularization_coefficient:float=1 use_linear:bool=0",
        _svm_output,
        fill=_fill_rows,
        labels=("label",),
    )
    row(
        "CTCLoss ctc_loss _npx_ctc_loss _contrib_ctc_loss _contrib_CTCLoss",
        "data label data_lengths label_lengths",
        "use_data_lengths:bool=0 use_label_lengths:bool=0 blank_label:str=first",
        _ctc_loss,
        wanted=_ctc_inputs,
        hidden=1,
    )
    row("softmax_cross_entropy", "data label", "", _softmax_cross_entropy, fill=_fill_rows)
