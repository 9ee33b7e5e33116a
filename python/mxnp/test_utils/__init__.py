"""Helpers for tests, under MXNet's names: comparing arrays, random data, numeric gradients, environment variables."""

from mxnp._missing import refuse as _refuse

from .compare import (
    almost_equal,
    assert_allclose,
    assert_almost_equal,
    assert_almost_equal_ignore_nan,
    assert_almost_equal_with_err,
    assert_exception,
    checkShapes,
    compare_ndarray_tuple,
    find_max_violation,
    locationError,
    same,
    same_array,
)
from .gradient import check_gluon_hybridize_consistency, check_numeric_gradient
from .randomized import (
    assign_each,
    assign_each2,
    collapse_sum_like,
    create_2d_np_tensor,
    create_vector,
    np_reduce,
    rand_coord_2d,
    rand_ndarray,
    rand_shape_2d,
    rand_shape_3d,
    rand_shape_nd,
    random_arrays,
    random_sample,
    random_uniform_arrays,
)
from .settings import (
    default_context,
    default_device,
    default_dtype,
    environment,
    getenv,
    list_gpus,
    retry,
    set_default_context,
    set_default_device,
    setenv,
    use_np,
)
from .tolerance import (
    default_atols,
    default_numeric_eps,
    default_rtols,
    effective_dtype,
    get_atol,
    get_etol,
    get_rtol,
    get_tolerance,
    get_tols,
)

__all__ = [
    "almost_equal",
    "assert_allclose",
    "assert_almost_equal",
    "assert_almost_equal_ignore_nan",
    "assert_almost_equal_with_err",
    "assert_exception",
    "assign_each",
    "assign_each2",
    "checkShapes",
    "check_gluon_hybridize_consistency",
    "check_numeric_gradient",
    "collapse_sum_like",
    "compare_ndarray_tuple",
    "create_2d_np_tensor",
    "create_vector",
    "default_atols",
    "default_context",
    "default_device",
    "default_dtype",
    "default_numeric_eps",
    "default_rtols",
    "effective_dtype",
    "environment",
    "find_max_violation",
    "get_atol",
    "get_etol",
    "get_rtol",
    "get_tolerance",
    "get_tols",
    "getenv",
    "list_gpus",
    "locationError",
    "np_reduce",
    "rand_coord_2d",
    "rand_ndarray",
    "rand_shape_2d",
    "rand_shape_3d",
    "rand_shape_nd",
    "random_arrays",
    "random_sample",
    "random_uniform_arrays",
    "retry",
    "same",
    "same_array",
    "set_default_context",
    "set_default_device",
    "setenv",
    "use_np",
]

__getattr__ = _refuse(
    __name__,
    "DummyIter check_consistency check_speed check_symbolic_backward check_symbolic_forward chi_square_check "
    "compare_optimizer compare_optimizer_noise_seeded create_2d_tensor create_sparse_array create_sparse_array_zd "
    "discard_stderr download gen_buckets_probs_with_ppf get_bz2_data get_cifar10 get_im2rec_path get_mnist "
    "get_mnist_iterator get_mnist_pkl get_mnist_ubyte get_zip_data has_tvm_ops is_cd_run is_op_runnable mean_check "
    "new_matrix_with_real_eigvals_2d new_matrix_with_real_eigvals_nd new_orthonormal_matrix_2d "
    "new_sym_matrix_with_real_eigvals_2d new_sym_matrix_with_real_eigvals_nd np_symbol numeric_grad "
    "rand_sparse_ndarray same_symbol_structure shuffle_csr_column_indices simple_forward var_check verify_generator",
)
