"""The loss of sequences on CUDA, in float64 as on the CPU, all samples abreast. The device does not check that labels
are classes: one that is none counts as some class here."""

from __future__ import annotations

from typing import Any

from ._row import Row


class _Batch:
    """Labels with blanks before, between and after (N, S), and where a symbol may be reached from two before it."""

    def __init__(
        self, xp: Any, logs: Any, labels: Any, steps: Any, lengths: Any, blank: int, padding: int | None
    ) -> None:
        samples, width = labels.shape
        inside = xp.arange(width)[None] < lengths[:, None]
        if padding is not None:
            inside = inside & (xp.cumprod(labels != padding, axis=1) != 0)
        wanted = xp.where(inside, labels, blank) % logs.shape[2]
        self.xp, self.logs, self.steps, self.ends = xp, logs.astype("float64"), steps, 2 * inside.sum(axis=1)
        self.symbols = xp.full((samples, 2 * width + 1), blank, dtype="int64")
        self.symbols[:, 1::2] = wanted
        self.jumps = xp.full(self.symbols.shape, -xp.inf)
        if width > 1:
            free = inside[:, 1:] & (wanted[:, 1:] != wanted[:, :-1])
            self.jumps[:, 3::2] = xp.where(free, 0.0, -xp.inf)
        self.rows: list[Any] = []
        self.total = self._forward()

    def emitted(self, step: int) -> Any:
        """What each symbol costs at a step."""
        return self.xp.take_along_axis(self.logs[step], self.symbols, 1)

    def _forward(self) -> Any:
        """Fills `rows` with the forward variables of each step; the logarithm of each label's probability."""
        xp, never = self.xp, -self.xp.inf
        state = xp.full(self.symbols.shape, never)
        state[:, :2] = self.emitted(0)[:, :2]
        self.rows.append(state)
        for step in range(1, self.logs.shape[0]):
            padded = xp.pad(state, ((0, 0), (2, 0)), constant_values=never)
            moved = xp.logaddexp(xp.logaddexp(state, padded[:, 1:-1]), padded[:, :-2] + self.jumps)
            state = xp.where((step < self.steps)[:, None], moved + self.emitted(step), state)
            self.rows.append(state)
        last, before = (
            xp.take_along_axis(state, xp.maximum(self.ends - back, 0)[:, None], 1)[:, 0] for back in (0, 1)
        )
        total = xp.where(self.ends > 0, xp.logaddexp(last, before), last)
        return xp.where(self.steps > 0, total, xp.where(self.ends == 0, 0.0, never))

    def shares(self, step: int, after: Any) -> Any:
        """Which share of the alignments stands at each symbol; `after` are the backward variables."""
        xp = self.xp
        counts = (step < self.steps) & (self.total != -xp.inf)
        share = xp.exp(self.rows[step] + after - xp.where(counts, self.total, 0.0)[:, None])
        return xp.where(counts[:, None], share, 0.0)

    def before(self, step: int, after: Any) -> Any:
        """The backward variables of the step before."""
        xp, never = self.xp, -self.xp.inf
        padded = xp.pad(after + self.emitted(step), ((0, 0), (0, 2)), constant_values=never)
        jumps = xp.pad(self.jumps, ((0, 0), (0, 2)), constant_values=never)[:, 2:]
        return xp.logaddexp(xp.logaddexp(padded[:, :-2], padded[:, 1:-1]), padded[:, 2:] + jumps)


def ctc(
    xp: Any, logs: Any, labels: Any, steps: Any, lengths: Any, *, blank: int = 0, padding: int | None = None
) -> Any:
    """-log of the probability that the logs read as the labels; 0 where it is 0."""
    total = _Batch(xp, logs, labels, steps, lengths, blank, padding).total
    return xp.where(total == -xp.inf, 0.0, -total)


def ctc_grad(
    xp: Any,
    g: Any,
    logs: Any,
    labels: Any,
    steps: Any,
    lengths: Any,
    *,
    blank: int = 0,
    padding: int | None = None,
) -> Any:
    """The gradient of `ctc` in its logs."""
    batch = _Batch(xp, logs, labels, steps, lengths, blank, padding)
    gradient = xp.zeros(logs.shape, "float64")
    places = (xp.arange(labels.shape[0])[:, None], batch.symbols)
    numbers = xp.arange(batch.symbols.shape[1])[None]
    ends = batch.ends[:, None]
    last = xp.where((numbers == ends) | (numbers == ends - 1), 0.0, -xp.inf)
    after = xp.full(batch.symbols.shape, -xp.inf)
    for step in reversed(range(logs.shape[0])):
        after = xp.where((step == steps - 1)[:, None], last, after)
        share = xp.where(g[:, None] != 0, batch.shares(step, after) * g[:, None], 0.0)
        xp.add.at(gradient[step], places, -share)
        after = batch.before(step, after)
    return gradient


ROWS: dict[str, Row] = {"ctc": ctc, "ctc_grad": ctc_grad}
