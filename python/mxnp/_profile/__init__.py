"""The parts of `mxnp.profiler`: settings (`config`), what a program marks (`marks`), what is noted (`recorder`),
the file (`trace`) and the table (`table`).
"""
