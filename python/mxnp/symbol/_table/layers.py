"""Layers: dense, convolution, pooling, normalisation, activation, softmax, dropout, embedding, sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnp import np, npx
from mxnp.error import MXNetValueError

from .._spec import Attrs, Shape, row

_CONVOLUTION = (
    "kernel:shape stride:shape=() dilate:shape=() pad:shape=() num_filter:int num_group:int=1 workspace:int=1024 "
    "no_bias:bool={bias} cudnn_tune:str?=None cudnn_off:bool=0 layout:str?=None"
)
_DECONVOLUTION = (
    "kernel:shape stride:shape=() dilate:shape=() pad:shape=() adj:shape=() target_shape:shape=() num_filter:int "
    "num_group:int=1 workspace:int=512 no_bias:bool=1 cudnn_tune:str?=None cudnn_off:bool=0 layout:str?=None"
)
_BATCH_NORM = (
    "eps:float=1e-3 momentum:float=0.9 fix_gamma:bool=1 use_global_stats:bool=0 output_mean_var:bool=0 axis:int=1 "
    "cudnn_off:bool=0 min_calib_range:float?=None max_calib_range:float?=None"
)
_POOLING = (
    "kernel:shape=() pool_type:str=max global_pool:bool=0 cudnn_off:bool=0 pooling_convention:str=valid "
    "stride:shape=() pad:shape=() p_value:int?=None count_include_pad:bool?=None layout:str?=None "
    "output_size:shape?=None"
)
_STATES = {"moving_mean": "zero", "moving_var": "one"}


def _with_bias(attrs: Attrs) -> tuple[str, ...]:
    return ("data", "weight") if attrs["no_bias"] else ("data", "weight", "bias")


def _set(shapes: list[Shape], index: int, shape: tuple[int, ...]) -> None:
    if index < len(shapes) and shapes[index] is None:
        shapes[index] = shape


def _fill_dense(shapes: list[Shape], attrs: Attrs) -> None:
    data, hidden = shapes[0], attrs["num_hidden"]
    if data is not None:
        sizes = data[1:] if attrs["flatten"] else data[-1:]
        width = 1
        for size in sizes:
            width = -1 if size < 0 or width < 0 else width * size
        _set(shapes, 1, (hidden, width))
    _set(shapes, 2, (hidden,))


def _channels_last(layout: str | None) -> bool:
    return layout is not None and layout.endswith("C")


def _fill_convolution(shapes: list[Shape], attrs: Attrs) -> None:
    data, filters, groups = shapes[0], attrs["num_filter"], attrs["num_group"]
    if data is not None and len(data) > 2:
        last = _channels_last(attrs["layout"])
        channels = data[-1] if last else data[1]
        channels = channels // groups if channels > 0 else channels
        kernel = attrs["kernel"]
        _set(shapes, 1, (filters, *kernel, channels) if last else (filters, channels, *kernel))
    _set(shapes, 2, (filters,))


def _fill_deconvolution(shapes: list[Shape], attrs: Attrs) -> None:
    data, filters, groups = shapes[0], attrs["num_filter"], attrs["num_group"]
    if data is not None and len(data) > 2:
        _set(shapes, 1, (data[1], filters // groups, *attrs["kernel"]))
    _set(shapes, 2, (filters,))


def _fill_along(axis_of: Callable[[Attrs], int]) -> Callable[[list[Shape], Attrs], None]:
    """Parameters with one entry for each position of an axis."""

    def fill(shapes: list[Shape], attrs: Attrs) -> None:
        axis = axis_of(attrs)
        data = shapes[0]
        if data is not None and -len(data) <= axis < len(data):
            for i in range(1, len(shapes)):
                _set(shapes, i, (data[axis],))

    return fill


def _float_parameters(ins: list, outs: list, attrs: Attrs) -> None:
    """Data of float16 has float32 parameters and statistics."""
    for i in range(1, len(ins)):
        ins[i] = ins[i] or ("float32" if ins[0] in (None, "float16") else ins[0])
    outs[:] = [ins[0]] * max(len(outs), 1)


def _convolution(*inputs: Any, **attrs: Any) -> Any:
    return npx.convolution(*inputs, **attrs)


def _deconvolution(*inputs: Any, **attrs: Any) -> Any:
    return npx.deconvolution(*inputs, **attrs)


def _dense(*inputs: Any, num_hidden: int, no_bias: bool, flatten: bool) -> Any:
    bias = inputs[2] if len(inputs) > 2 else None
    return npx.fully_connected(inputs[0], inputs[1], bias, num_hidden, no_bias, flatten)


def _batch_norm(*inputs: Any, **attrs: Any) -> Any:
    result = npx.batch_norm(*inputs, **attrs)
    return tuple(result) if isinstance(result, list) else result


def _relu_batch_norm(*inputs: Any, **attrs: Any) -> Any:
    result = _batch_norm(*inputs, **attrs)
    return (npx.relu(result[0]), *result[1:]) if isinstance(result, tuple) else npx.relu(result)


def _several(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(*inputs: Any, **attrs: Any) -> Any:
        result = fn(*inputs, **attrs)
        return tuple(result) if isinstance(result, list) else result

    return run


def _group_norm(data: Any, gamma: Any, beta: Any, num_groups: int, eps: float, output_mean_var: bool) -> Any:
    """1.x has one gamma and beta for each group, 2 for each channel."""
    channels = data.shape[1]
    if gamma.shape == (num_groups,) and num_groups != channels:
        times = channels // num_groups
        gamma, beta = np.repeat(gamma, times), np.repeat(beta, times)
    result = npx.group_norm(data, gamma, beta, num_groups, eps, output_mean_var)
    return tuple(result) if isinstance(result, list) else result


def _with_statistics(second: str) -> Callable[[Attrs, int], tuple[str, ...]]:
    return lambda attrs, inputs: ("output", "mean", second) if attrs["output_mean_var"] else ("output",)


def _pooling(data: Any, output_size: Any, **attrs: Any) -> Any:
    if output_size:
        raise MXNetValueError("Pooling: output_size is not supported; _contrib_AdaptiveAvgPooling2D is")
    return npx.pooling(data, **attrs)


def _dropout(data: Any, p: float, mode: str, axes: Any, cudnn_off: bool) -> Any:
    return npx.dropout(data, p=p, mode=mode, axes=axes)


def _softmax_with(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(data: Any, *length: Any, axis: int, temperature: Any, dtype: Any, use_length: bool) -> Any:
        options = {"length": length[0], "use_length": True} if length else {}
        return fn(data, axis=axis, temperature=temperature, dtype=dtype, **options)

    return run


def _softmax_types(ins: list, outs: list, attrs: Attrs) -> None:
    outs[:] = [attrs["dtype"] or ins[0]]
    if len(ins) > 1:
        ins[1] = ins[1] or "int32"


def _softmax_activation(data: Any, mode: str) -> Any:
    if mode == "channel":
        return npx.softmax(data, axis=1)
    return npx.softmax(npx.batch_flatten(data), axis=-1).reshape(data.shape)


def _embedding(data: Any, weight: Any, **attrs: Any) -> Any:
    return npx.embedding(data, weight, input_dim=attrs["input_dim"], output_dim=attrs["output_dim"])


def _embedding_types(ins: list, outs: list, attrs: Attrs) -> None:
    ins[0] = ins[0] or "float32"
    ins[1] = ins[1] or attrs["dtype"]
    outs[:] = [ins[1]]


def _fill_embedding(shapes: list[Shape], attrs: Attrs) -> None:
    _set(shapes, 1, (attrs["input_dim"], attrs["output_dim"]))


def _local_response_norm(data: Any, alpha: float, beta: float, knorm: float, nsize: int) -> Any:
    """Each value over a power of the sum of squares of `nsize` neighbouring channels."""
    if not 1 <= nsize <= 2 * data.shape[1] + 1:
        raise MXNetValueError(f"LRN: nsize must be 1 to {2 * data.shape[1] + 1} here, got {nsize}")
    half = nsize // 2
    squares = np.pad(np.square(data), ((0, 0), (half, half)) + ((0, 0),) * (data.ndim - 2))
    channels = data.shape[1]
    total = squares[:, 0:channels]
    for i in range(1, nsize):
        total = total + squares[:, i : i + channels]
    return data * (knorm + alpha / nsize * total) ** -beta


def _with_length(attrs: Attrs) -> tuple[str, ...]:
    return ("data", "sequence_length") if attrs["use_sequence_length"] else ("data",)


def _upsampling(
    *data: Any, scale: int, num_filter: int, sample_type: str, multi_input_mode: str, workspace: int
) -> Any:
    if sample_type == "bilinear":
        kernel = 2 * scale - scale % 2
        pad = scale // 2 if scale % 2 == 0 else (scale - 1) // 2
        channels = data[0].shape[1]
        return npx.deconvolution(
            data[0],
            data[1],
            kernel=(kernel, kernel),
            stride=(scale, scale),
            pad=(pad, pad),
            num_filter=channels,
            num_group=channels,
            no_bias=True,
        )
    height = data[0].shape[2] * scale
    grown = [_repeated(x, height // x.shape[2]) for x in data]
    return npx.add_n(*grown) if multi_input_mode == "sum" else np.concatenate(grown, 1)


def _repeated(x: Any, times: int) -> Any:
    return np.repeat(np.repeat(x, times, 2), times, 3) if times > 1 else x


def _prelu_inputs(attrs: Attrs) -> tuple[str, ...]:
    return ("data", "gamma") if attrs["act_type"] == "prelu" else ("data",)


def _fill_prelu(shapes: list[Shape], attrs: Attrs) -> None:
    if shapes[0] is not None and len(shapes[0]) > 1:
        _set(shapes, 1, (shapes[0][1],))


def _leaky_relu(*inputs: Any, **attrs: Any) -> Any:
    return npx.leaky_relu(*inputs, **attrs)


def _weight_rows() -> None:
    dense = {"wanted": _with_bias, "fill": _fill_dense}
    row(
        "FullyConnected _npx_fully_connected",
        "data weight bias",
        "num_hidden:int no_bias:bool=0 flatten:bool=1",
        _dense,
        **dense,
    )
    row(
        "Convolution _npx_convolution Convolution_v1",
        "data weight bias",
        _CONVOLUTION.format(bias=0),
        _convolution,
        wanted=_with_bias,
        fill=_fill_convolution,
    )
    row(
        "Deconvolution _npx_deconvolution",
        "data weight bias",
        _DECONVOLUTION,
        _deconvolution,
        wanted=_with_bias,
        fill=_fill_deconvolution,
    )
    row(
        "Embedding _npx_embedding _contrib_SparseEmbedding",
        "data weight",
        "input_dim:int output_dim:int dtype:dtype=float32 sparse_grad:bool=0",
        _embedding,
        fill=_fill_embedding,
        types=_embedding_types,
    )


def _norm_rows() -> None:
    batch: dict[str, Any] = {
        "states": _STATES,
        "outputs": _with_statistics("var"),
        "hidden": 2,
        "fill": _fill_along(lambda attrs: attrs["axis"]),
        "types": _float_parameters,
    }
    inputs = "data gamma beta moving_mean moving_var"
    row("BatchNorm _npx_batch_norm CuDNNBatchNorm", inputs, _BATCH_NORM, _batch_norm, **batch)
    row(
        "_contrib_BatchNormWithReLU _npx_batch_norm_with_relu", inputs, _BATCH_NORM, _relu_batch_norm, **batch
    )
    short = (
        "eps:float=1e-3 momentum:float=0.9 fix_gamma:bool=1 use_global_stats:bool=0 output_mean_var:bool=0"
    )
    batch["fill"] = _fill_along(lambda attrs: 1)
    row("BatchNorm_v1", inputs, short, _batch_norm, **batch)
    row(
        "_contrib_SyncBatchNorm _npx_sync_batch_norm",
        inputs,
        short + " ndev:int=1 key:str=",
        lambda *xs, ndev, key, **attrs: _batch_norm(*xs, **attrs),
        **batch,
    )
    row(
        "LayerNorm _npx_layer_norm",
        "data gamma beta",
        "axis:int=-1 eps:float=1e-5 output_mean_var:bool=0",
        _several(npx.layer_norm),
        outputs=_with_statistics("std"),
        hidden=2,
        fill=_fill_along(lambda attrs: attrs["axis"]),
    )
    row(
        "GroupNorm _npx_group_norm",
        "data gamma beta",
        "num_groups:int=1 eps:float=1e-5 output_mean_var:bool=0",
        _group_norm,
        outputs=_with_statistics("std"),
        hidden=2,
        fill=_fill_along(lambda attrs: 1),
    )
    row(
        "InstanceNorm _npx_instance_norm",
        "data gamma beta",
        "eps:float=1e-3",
        npx.instance_norm,
        fill=_fill_along(lambda attrs: 1),
    )
    row(
        "L2Normalization _npx_l2_normalization",
        "data",
        "eps:float=1e-10 mode:str=instance",
        npx.l2_normalization,
        same=True,
    )
    row(
        "LRN",
        "data",
        "alpha:float=1e-4 beta:float=0.75 knorm:float=2 nsize:int",
        _local_response_norm,
        same=True,
        hidden=1,
    )


def _activation_rows() -> None:
    row("Activation _npx_activation", "data", "act_type:str", npx.activation, same=True)
    row(
        "LeakyReLU _npx_leaky_relu",
        "data gamma",
        "act_type:str=leaky slope:float=0.25 lower_bound:float=0.125 upper_bound:float=0.334",
        _leaky_relu,
        wanted=_prelu_inputs,
        fill=_fill_prelu,
        hidden=1,
    )
    lengths: dict[str, Any] = {
        "wanted": lambda attrs: ("data", "length") if attrs["use_length"] else ("data",),
        "types": _softmax_types,
    }
    attributes = "axis:int=-1 temperature:float?=None dtype:dtype?=None use_length:bool?=0"
    row("softmax _npx_softmax", "data length", attributes, _softmax_with(npx.softmax), **lengths)
    row("log_softmax _npx_log_softmax", "data length", attributes, _softmax_with(npx.log_softmax), **lengths)
    row("softmin _npx_softmin", "data", attributes, _softmax_with(npx.softmin), types=_softmax_types)
    masked = "axis:int=-1 temperature:float?=None normalize:bool?=1"
    row("masked_softmax _npx_masked_softmax", "data mask", masked, npx.masked_softmax, types=_mask_types)
    row(
        "masked_log_softmax _npx_masked_log_softmax",
        "data mask",
        masked,
        npx.masked_log_softmax,
        types=_mask_types,
    )
    row("SoftmaxActivation", "data", "mode:str=instance", _softmax_activation, same=True)


def _mask_types(ins: list, outs: list, attrs: Attrs) -> None:
    ins[1] = ins[1] or "bool"
    outs[:] = [ins[0]]


def add_rows() -> None:
    """Adds the family's rows."""
    _weight_rows()
    _norm_rows()
    _activation_rows()
    row("Pooling _npx_pooling Pooling_v1", "data", _POOLING, _pooling)
    row(
        "Dropout _npx_dropout",
        "data",
        "p:float=0.5 mode:str=training axes:shape=() cudnn_off:bool?=0",
        _dropout,
        same=True,
        hidden=1,
    )
    length = "use_sequence_length:bool=0 axis:int=0"
    row(
        "SequenceLast _npx_sequence_last",
        "data sequence_length",
        length,
        npx.sequence_last,
        wanted=_with_length,
    )
    row(
        "SequenceReverse _npx_sequence_reverse",
        "data sequence_length",
        length,
        npx.sequence_reverse,
        wanted=_with_length,
    )
    row(
        "SequenceMask _npx_sequence_mask",
        "data sequence_length",
        "use_sequence_length:bool=0 value:float=0 axis:int=0",
        npx.sequence_mask,
        wanted=_with_length,
    )
    row(
        "UpSampling",
        "*arg",
        "scale:int num_filter:int=0 sample_type:str multi_input_mode:str=concat workspace:int=512",
        _upsampling,
    )
