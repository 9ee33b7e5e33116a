"""Operators by MXNet's names: what they take, what they give, and the function of mxnp that computes them.

Knows no operator itself: the rows are in `_table/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mxnp.error import MXNetError

from ._values import Attribute, ValueTextError

Shape = tuple[int, ...] | None
Attrs = dict[str, Any]
# What a node of any operator may carry beside the operator's own attributes, as 1.x's files write them.
HIDDEN = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage", "profiler_scope", "init")


def _one_output(attrs: Attrs, count: int) -> tuple[str, ...]:
    return ("output",)


@dataclass(frozen=True)
class Spec:
    """One operator.

    Parameters
    ----------
    name : MXNet's name, as files write it; `aliases` are read as well.
    inputs : names of the inputs; a single name that starts with `*` takes any number.
    attributes : by name, in the order in which MXNet's functions take them.
    run : computes the outputs from the input arrays and, as keywords, the attributes; one array or a tuple.
    wanted : which inputs the operator takes, given the attributes.
    outputs : names of the visible outputs, given the attributes and the number of inputs.
    hidden : how many outputs follow that no program sees (MXNet's files count them).
    states : the inputs that are auxiliary states, with their initial value.
    labels : the inputs that only the gradient reads; their arrays may be None where there is no training.
    fill : completes the list of input shapes from those that are known and from the attributes.
    types : completes (input dtypes, output dtypes), see `_infer`; all equal by default.
    same : all inputs and outputs have one shape, so any of them tells the others.
    graphs : how many graphs its node holds (control flow); `run` gets them, as functions, as `graphs=`.
    legacy : `run` is told, as `legacy=`, whether 1.x's shapes hold (a full reduction gives one axis).
    """

    name: str
    inputs: tuple[str, ...]
    attributes: dict[str, Attribute]
    run: Callable[..., Any]
    aliases: tuple[str, ...] = ()
    wanted: Callable[[Attrs], Sequence[str]] | None = None
    outputs: Callable[[Attrs, int], Sequence[str]] = _one_output
    hidden: int = 0
    states: dict[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    fill: Callable[[list[Shape], Attrs], None] | None = None
    types: Callable[[list, list, Attrs], None] | None = None
    same: bool = False
    graphs: int = 0
    legacy: bool = False

    @property
    def variadic(self) -> bool:
        """Whether the operator takes any number of inputs."""
        return self.inputs[:1] != () and self.inputs[0].startswith("*")

    def input_names(self, attrs: Attrs, count: int = 0) -> tuple[str, ...]:
        """The names of the inputs for these attributes; for `count` inputs where any number may come."""
        if self.variadic:
            return tuple(f"{self.inputs[0][1:]}{i}" for i in range(count))
        return self.inputs if self.wanted is None else tuple(self.wanted(attrs))

    def read(self, texts: dict[str, str], where: str) -> Attrs:
        """The attributes from a node's strings; absent ones take the operator's defaults. Raises MXNetError.

        `where` names the node in messages.
        """
        found: Attrs = {}
        for key, text in texts.items():
            attribute = self.attributes.get(key)
            if attribute is None:
                if key not in COUNTS and not is_hidden(key):
                    known = ", ".join(self.attributes) or "none"
                    raise MXNetError(f"{where}: {self.name} has no attribute '{key}'; it has {known}")
                continue
            try:
                found[key] = attribute.read(text)
            except ValueTextError as error:
                raise MXNetError(f"{where}: attribute {key}: {error}, got {text[:60]!r}") from None
        for name, attribute in self.attributes.items():
            if name not in found:
                if attribute.required:
                    raise MXNetError(
                        f"{where}: {self.name} needs the attribute {name} ({attribute.kind}), which is not given"
                    )
                found[name] = attribute.default
        return found


COUNTS = frozenset({"num_args", "num_weights"})
_specs: dict[str, Spec] = {}


def is_hidden(key: str) -> bool:
    """Whether an attribute belongs to the node, not to its operator: `__lr_mult__`, 1.x's `weight_lr_mult`."""
    return (key.startswith("__") and key.endswith("__")) or any(
        key == hidden or key.endswith("_" + hidden) for hidden in HIDDEN
    )


def row(names: str, inputs: str, attributes: str, run: Callable[..., Any], **facts: Any) -> None:
    """Adds an operator: `names` separated by spaces, the first as files write it; `attributes` as `name:kind=default`.

    Blanks inside defaults are not written: `(0,0)`.
    """
    name, *aliases = names.split()
    parsed = [Attribute.parse(text) for text in attributes.split()]
    spec = Spec(name, tuple(inputs.split()), {a.name: a for a in parsed}, run, tuple(aliases), **facts)
    for each in (name, *aliases):
        if each in _specs:
            raise ValueError(f"operator {each} has two rows")
        _specs[each] = spec


def find(name: str) -> Spec | None:
    """The operator MXNet calls `name`, or None where mxnp has none."""
    _load()
    return _specs.get(name)


def names() -> Iterable[str]:
    """Every name under which an operator is found."""
    _load()
    return _specs.keys()


def _load() -> None:
    if not _specs:
        from ._table import load

        load()


def suggestions(name: str, limit: int = 3) -> list[str]:
    """Names like `name`, for messages."""
    import difflib

    return difflib.get_close_matches(name, list(names()), limit, 0.75)
