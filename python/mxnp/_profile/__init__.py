"""The parts of `mxnp.profiler`: what is noted (`recorder`), the file (`trace`) and the table (`table`)."""
