"""Which operator a function of `np` or `npx` is in a graph, and how its arguments become inputs and attributes.

A rule is `operator | inputs | attributes`: inputs and attributes by the function's argument names, `argument:attribute`
where the operator calls it differently, `*argument` for a list of symbols. Functions of one array, and of two that
broadcast, need no rule: they are `_npi_NAME`.
"""

# sorted table: ^    "(\w+)":

from __future__ import annotations

NUMPY = {
    "all": "_npi_all | a | axis keepdims",
    "amax": "_npi_max | a | axis keepdims",
    "amin": "_npi_min | a | axis keepdims",
    "any": "_npi_any | a | axis keepdims",
    "argmax": "_npi_argmax | a | axis keepdims",
    "argmin": "_npi_argmin | a | axis keepdims",
    "around": "_npi_around | a | decimals",
    "broadcast_to": "_npi_broadcast_to | array | shape",
    "clip": "clip | a | a_min a_max",
    "column_stack": "_npi_column_stack | *tup |",
    "concatenate": "_npi_concatenate | *arrays | axis:dim",
    "copy": "_copy | a |",
    "cross": "_npi_cross | a b | axisa axisb axisc",
    "cumsum": "_npi_cumsum | a | axis dtype",
    "diag": "_npi_diag | v | k",
    "diagflat": "_npi_diagflat | v | k",
    "diagonal": "_npi_diagonal | a | offset axis1 axis2",
    "diff": "_npi_diff | a | n axis",
    "dot": "_npi_dot | a b |",
    "dstack": "_npi_dstack | *tup |",
    "expand_dims": "expand_dims | a | axis",
    "eye": "_npi_eye | | N M k dtype",
    "flip": "_npi_flip | m | axis",
    "full_like": "_npi_full_like | a | fill_value dtype",
    "hstack": "_npi_hstack | *tup |",
    "identity": "_npi_eye | | n:N dtype",
    "kron": "_npi_kron | a b |",
    "matmul": "_npi_matmul | x1 x2 |",
    "max": "_npi_max | a | axis keepdims",
    "mean": "_npi_mean | a | axis dtype keepdims",
    "min": "_npi_min | a | axis keepdims",
    "moveaxis": "_npi_moveaxis | a | source destination",
    "nan_to_num": "_npi_nan_to_num | x | nan posinf neginf",
    "ones": "_npi_ones | | shape dtype",
    "pad": "_npi_pad | x | pad_width mode constant_values",
    "prod": "_npi_prod | a | axis dtype keepdims",
    "repeat": "_npi_repeats | a | repeats axis",
    "reshape": "_np_reshape | a | shape:newshape order",
    "roll": "_npi_roll | a | shift axis",
    "rollaxis": "_npi_rollaxis | a | axis start",
    "rot90": "_npi_rot90 | m | k axes",
    "round": "_npi_around | a | decimals",
    "squeeze": "_npi_squeeze | a | axis",
    "stack": "_npi_stack | *arrays | axis",
    "std": "_npi_std | a | axis dtype ddof keepdims",
    "sum": "_npi_sum | a | axis dtype keepdims",
    "swapaxes": "SwapAxis | a | axis1:dim1 axis2:dim2",
    "tile": "tile | A | reps",
    "trace": "_npi_trace | a | offset axis1 axis2",
    "transpose": "_npi_transpose | a | axes",
    "tri": "_npi_tri | | N M k dtype",
    "tril": "_npi_tril | m | k",
    "triu": "_npi_triu | m | k",
    "var": "_npi_var | a | axis dtype ddof keepdims",
    "vstack": "_npi_vstack | *tup |",
    "zeros": "_npi_zeros | | shape dtype",
}
