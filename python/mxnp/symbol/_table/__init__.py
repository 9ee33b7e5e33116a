"""The rows: MXNet's operators by family, each with the function of mxnp that computes it. A list."""


def load() -> None:
    """Adds every row to the table; called once, when the first operator is looked up."""
    from . import contrib, control, create, elementwise, index, layers, linalg, losses, random, reduce, shape

    for family in (
        contrib,
        control,
        create,
        elementwise,
        index,
        layers,
        linalg,
        losses,
        random,
        reduce,
        shape,
    ):
        family.add_rows()
