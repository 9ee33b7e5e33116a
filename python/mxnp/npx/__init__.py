"""`mxnp.npx`: MXNet's extensions of NumPy: layers, modes, devices and files. A list; see mxnp._ops."""

from .._core import waitall
from .._files.api import load
from .._files.api import npx_save as save
from .._files.api import npx_savez as savez
from .._missing import refuse as _refuse
from .._ops.arith import add_n
from .._ops.cast import cast
from .._ops.exp_log import rsqrt
from .._ops.index import gather_nd, index_add, index_update, one_hot, pick
from .._ops.linalg import batch_dot
from .._ops.loss import ctc_loss
from .._ops.nn_act import (
    activation,
    gelu,
    hard_sigmoid,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    masked_log_softmax,
    masked_softmax,
    mish,
    relu,
    sigmoid,
    silu,
    smooth_l1,
    softmax,
    softmin,
    softrelu,
    softsign,
)
from .._ops.nn_conv import convolution, deconvolution
from .._ops.nn_dense import batch_flatten, dropout, fully_connected
from .._ops.nn_embed import embedding
from .._ops.nn_norm import batch_norm, group_norm, instance_norm, l2_normalization, layer_norm
from .._ops.nn_pool import pooling
from .._ops.nn_seq import sequence_last, sequence_mask, sequence_reverse
from .._ops.npx_shape import (
    arange_like,
    broadcast_like,
    from_numpy,
    nonzero,
    norm,
    pad,
    reshape,
    reshape_like,
    shape_array,
    slice,
    slice_channel,
    slice_like,
    stop_gradient,
    to_dlpack_for_read,
    to_dlpack_for_write,
)
from .._ops.sort import topk
from .._ops.special import erf, erfinv
from ..device import Device, cpu, cpu_pinned, current_device, gpu, gpu_memory_info, num_gpus
from ..np import from_dlpack
from ..random import seed
from ..util import (
    is_np_array,
    is_np_default_dtype,
    is_np_shape,
    reset_np,
    set_np,
    set_np_default_dtype,
    set_np_shape,
    use_np,
    use_np_array,
    use_np_default_dtype,
    use_np_shape,
)
from . import random
from ._control import cond, foreach, while_loop

__getattr__ = _refuse(__name__)
__all__ = [name for name in dir() if not name.startswith("_")]
