"""MXNet 1.x's unique names of blocks (`dense0`, `net0_dense0_`): counters, scopes, prefixes. Knows no Block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class BlockNames:
    """A block's `prefix` and `name`, and the counters that name what is created inside its `name_scope()`."""

    __slots__ = ("_counts", "name", "prefix")

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.name = prefix.removesuffix("_")
        self._counts: dict[str, int] = {}

    @classmethod
    def create(cls, prefix: str | None, hint: str) -> BlockNames:
        """Names for a new block of the current scope: of the given `prefix`, or of a fresh `<hint><n>_`."""
        scope = _current.get()
        return cls(scope.prefix + (scope._fresh(hint) if prefix is None else prefix))

    def _fresh(self, hint: str) -> str:
        count = self._counts.get(hint, 0)
        self._counts[hint] = count + 1
        return f"{hint}{count}_"

    @contextmanager
    def scope(self) -> Iterator[None]:
        """While entered, new blocks get this prefix and these counters; an empty prefix keeps the outer scope."""
        if not self.prefix:
            yield
            return
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


_current: ContextVar[BlockNames] = ContextVar("mxnp_block_names", default=BlockNames(""))  # noqa: B039 (the root scope is shared)
