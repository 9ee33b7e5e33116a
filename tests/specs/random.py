"""Random draws have no reference values: tests/np/test_random.py checks distributions, seeds and streams."""

ROWS = ()

# Core op: why no row of values stands here.
NO_VALUES = dict.fromkeys(
    ("uniform", "normal", "exponential", "bernoulli", "randint", "permutation", "dropout"),
    "drawn at random: distributions and streams are checked in tests/np",
)
