"""What a namespace says of names that MXNet or NumPy has and mxnp does not have yet.

The names stand here and nowhere else; of NumPy's namespaces NumPy itself says what there is. A test holds the table to
what is still missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from .error import MXNetNotImplementedError

_VISION = "CIFAR10 CIFAR100 ImageListDataset ImageRecordDataset"

# Module: names of MXNet 1.9 and 2.0 that have not arrived in it.
NOT_ARRIVED: dict[str, str] = {
    "mxnp.gluon.data": "RecordFileDataset",
    "mxnp.gluon.data.vision": _VISION,
    "mxnp.gluon.data.vision.datasets": _VISION,
    "mxnp.gluon.data.vision.transforms": (
        "CenterCrop CropResize HybridRandomApply RandomApply RandomBrightness RandomColorJitter RandomContrast "
        "RandomCrop RandomFlipLeftRight RandomFlipTopBottom RandomGray RandomHue RandomLighting RandomResizedCrop "
        "RandomRotation RandomSaturation Resize Rotate"
    ),
    "mxnp.gluon.metric": "Caffe",
    "mxnp.gluon.nn": ("DeformableConvolution ModulatedDeformableConvolution"),
    "mxnp.gluon.utils": "split_rnn_params",
    "mxnp.initializer": "FusedRNN RNNFused",
    "mxnp.kvstore": "BytePS Horovod KVStoreServer",
    "mxnp.np": "mirr msort npv pmt ppmt pv rate",  # NumPy once had them
    "mxnp.npx": (
        "batch_norm_with_relu bipartite_matching box_decode box_encode box_iou box_nms broadcast_greater "
        "deformable_convolution digamma gamma gammaln image interleaved_matmul_encdec_qk "
        "interleaved_matmul_encdec_valatt interleaved_matmul_selfatt_qk interleaved_matmul_selfatt_valatt "
        "intgemm_fully_connected intgemm_maxabsolute intgemm_prepare_data intgemm_prepare_weight "
        "intgemm_take_weight modulated_deformable_convolution multibox_detection multibox_prior multibox_target "
        "quantized_act quantized_conv quantized_elemwise_add quantized_elemwise_mul quantized_embedding "
        "quantized_flatten quantized_fully_connected quantized_pooling quantized_reshape quantized_transpose "
        "requantize rnn roi_pooling round_ste sign_ste sldwin_atten_context sldwin_atten_mask_like "
        "sldwin_atten_score sync_batch_norm"
    ),
    "mxnp.npx.random": "multinomial",
    "mxnp.optimizer": "LBSGD",
    "mxnp.random": "binomial gamma generalized_negative_binomial multinomial negative_binomial poisson",
    "mxnp.test_utils": (
        "DummyIter check_consistency check_speed check_symbolic_backward check_symbolic_forward chi_square_check "
        "compare_optimizer compare_optimizer_noise_seeded create_2d_tensor create_sparse_array create_sparse_array_zd "
        "discard_stderr download download_model gen_buckets_probs_with_ppf get_bz2_data get_cifar10 get_identity_mat "
        "get_identity_mat_batch get_im2rec_path get_mnist get_mnist_iterator get_mnist_pkl get_mnist_ubyte "
        "get_zip_data has_tvm_ops is_aarch64_run is_cd_run is_op_runnable mean_check "
        "new_matrix_with_real_eigvals_2d new_matrix_with_real_eigvals_nd new_orthonormal_matrix_2d "
        "new_sym_matrix_with_real_eigvals_2d new_sym_matrix_with_real_eigvals_nd np_symbol numeric_grad "
        "rand_sparse_ndarray same_symbol_structure shuffle_csr_column_indices simple_forward var_check "
        "verify_generator"
    ),
    "mxnp.util": (
        "get_cuda_compute_capability get_gpu_memory get_max_supported_compute_capability get_rtc_compile_opts "
        "np_ufunc_legal_option numpy_fallback set_flush_denorms"
    ),
}
# Module: the namespace of NumPy's that it answers like.
_LIKE = {"mxnp.np": "numpy", "mxnp.np.linalg": "numpy.linalg", "mxnp.np.random": "numpy.random"}


class NotArrivedAttributeError(MXNetNotImplementedError, AttributeError):
    """A name that has not arrived was asked for; an AttributeError, so `hasattr` answers False."""


def _is_numpys(module: str, name: str) -> bool:
    path = _LIKE.get(module)
    if path is None or name.startswith("_"):
        return False
    return name in dir(numpy if path == "numpy" else getattr(numpy, path.removeprefix("numpy.")))


def refuse(module: str) -> Callable[[str], Any]:
    """A module's `__getattr__`, which says of names that are MXNet's or NumPy's that they have not arrived."""
    known = frozenset(NOT_ARRIVED.get(module, "").split())

    def __getattr__(name: str) -> Any:  # noqa: N807 it becomes a module's
        if name in known:
            hint = "the migration page of the documentation lists what has"
        elif _is_numpys(module, name):
            hint = f"{_LIKE[module]}.{name} itself may take mxnp's arrays, as NumPy's functions do"
        else:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise NotArrivedAttributeError(f"{module}.{name} has not arrived in mxnp yet\nhint: {hint}")

    return __getattr__
