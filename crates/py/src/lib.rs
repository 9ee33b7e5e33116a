//! The Python extension module `mxnp._core`: converts between Python and the graph, holds no formula.

mod array;
mod attrs;
mod autograd;
mod buffer;
mod cell;
mod control;
mod convert;
mod device;
mod dlpack;
mod dtype;
mod error;
mod export;
mod graph;
mod index;
mod lists;
mod once;
mod operand;
mod operators;
mod ops;
mod print;
mod protocol;
mod record;
mod signature;
mod subscript;
mod tree;
mod ufunc;
mod wait;

use pyo3::prelude::*;

#[global_allocator]
static BLOCKS: mxnp_core::blocks::Blocks = mxnp_core::blocks::Blocks;

/// The native part of mxnp; programs use the packages above it.
#[pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    use crate::array::NDArray;
    #[pymodule_export]
    use crate::autograd::{
        backward, constant_in, forget_grad, grad, grad_req, has_history, is_fresh_grad, is_recording,
        is_training, mark_variables, record_custom, set_fresh_grad, set_outline, set_recording, set_training,
    };
    #[pymodule_export]
    use crate::control::{
        InitStream, engine_name, engine_stats, flush, init_stream, is_numpy_dtype, memory_stats, num_threads,
        random_state, release_memory, seed, set_cache_limit, set_engine, set_folding, set_fusion,
        set_num_threads, set_numpy_dtype, set_queue_limits, set_random_state, waitall,
    };
    #[pymodule_export]
    use crate::convert::{_rebuild, asarray, from_buffer, py_array};
    #[pymodule_export]
    use crate::device::{Device, current_device};
    #[pymodule_export]
    use crate::dlpack::from_dlpack;
    #[pymodule_export]
    use crate::dtype::{
        default_float, dtype_name, float_of, promote_types, py_can_cast, py_dtype, result_type,
    };
    #[pymodule_export]
    use crate::export::{Flags, numpy_view};
    #[pymodule_export]
    use crate::graph::{
        Compiled, PyGraph, Tracing, decide, drop_graphs, end_trace, history, is_tracing, note_held,
        set_trace_paused,
    };
    #[pymodule_export]
    use crate::ops::{PyOp, call, op, op_names};
    #[pymodule_export]
    use crate::print::set_repr;
    #[pymodule_export]
    use crate::protocol::register_array_functions;
    #[pymodule_export]
    use crate::record::{Log, record_now, record_thread, record_threads, settle};
    #[pymodule_export]
    use crate::ufunc::{_ufunc, Ufunc, ufunc_names};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // PyO3 lists everything there, private names too; nobody star-imports this module.
        module.delattr("__all__")?;
        crate::control::install(module)
    }
}
