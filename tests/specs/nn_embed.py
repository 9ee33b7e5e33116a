"""Rows of embeddings: rows of a table by number."""

from __future__ import annotations

from specs.row import FLOATS, Bad, Case, Domain, Row

ROWS = (
    Row(
        "npx.embedding",
        lambda i, w, **_: w[i.astype("int64")],
        FLOATS,
        (
            Case(((2, 3), (4, 5)), {"input_dim": 4, "output_dim": 5}),
            Case(((), (4, 5)), {"input_dim": 4, "output_dim": 5}),
            Case(((0,), (4, 5)), {"input_dim": 4, "output_dim": 5}),
        ),
        domain=(Domain(0, 3, dtype="int64"), Domain()),
        bad=(
            Bad(
                lambda np, npx: npx.embedding(
                    np.array([7], dtype="int64"), np.ones((4, 5)), input_dim=4, output_dim=5
                ).wait_to_read(),
                IndexError,
                "index 7 is out of bounds for axis 0 with size 4",
            ),
            Bad(
                lambda np, npx: npx.embedding(
                    np.array([0, -1], dtype="int64"), np.ones((4, 5)), input_dim=4, output_dim=5
                ).wait_to_read(),
                IndexError,
                "index -1 is out of bounds for axis 0 with size 4",
            ),
            Bad(
                lambda np, npx: npx.embedding(np.array([0]), np.ones((4, 5)), input_dim=3, output_dim=5),
                ValueError,
                r"embedding.*\(4, 5\)",
            ),
        ),
    ),
)
