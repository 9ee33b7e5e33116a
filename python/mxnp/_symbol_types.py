"""The classes of symbols, for blocks to tell them from arrays; empty until `mx.sym` is imported. Knows nothing else."""

SYMBOLS: set[type] = set()
