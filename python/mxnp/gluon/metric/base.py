"""What all metrics share: running sums, names, the registry, composites, and metrics made from functions.

Metrics work on NumPy arrays: an update waits for its inputs and copies them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as onp

from mxnp._repr import call_of
from mxnp.error import MXNetIndexError, MXNetNotImplementedError, MXNetTypeError, MXNetValueError

__all__ = [
    "CompositeEvalMetric",
    "CustomMetric",
    "EvalMetric",
    "alias",
    "check_label_shapes",
    "create",
    "np",
    "pairs",
    "register",
    "to_numpy",
]

_registry: dict[str, type[EvalMetric]] = {}


class EvalMetric:
    """Base of the metrics: `sum_metric` over `num_inst` samples.

    A subclass defines `update(labels, preds)` and adds to `sum_metric` and `num_inst`.

    >>> class Largest(gluon.metric.EvalMetric):
    ...     def update(self, labels, preds):
    ...         self.sum_metric, self.num_inst = max(self.sum_metric, float(preds.max())), 1
    >>> metric = Largest("largest")
    >>> metric.update(None, np.array([1.0, 4.0]))
    >>> metric.get()
    ('largest', 4.0)
    """

    def __init__(
        self,
        name: str,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Parameters
        ----------
        name : what `get` calls the metric.
        output_names, label_names : the entries that `update_dict` takes, all by default.
        """
        self.name = str(name)
        self.output_names = output_names
        self.label_names = label_names
        self._kwargs = kwargs
        self.reset()

    def __repr__(self) -> str:
        return call_of(self)

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def reset(self) -> None:
        """Forget all updates."""
        self.num_inst: Any = 0
        self.sum_metric: Any = 0.0

    def update(self, labels: Any, preds: Any) -> None:
        """Take labels and predictions of a batch: arrays, or lists of them, one for each device or output."""
        raise MXNetNotImplementedError(f"{type(self).__name__} does not define update(labels, preds)")

    def update_dict(self, label: dict[str, Any], pred: dict[str, Any]) -> None:
        """`update` with the arrays of two dicts that `label_names` and `output_names` select."""
        self.update(_selected(label, self.label_names), _selected(pred, self.output_names))

    def get(self) -> tuple[Any, Any]:
        """(name, value); the value is nan before any update."""
        return self.name, self.sum_metric / self.num_inst if self.num_inst else float("nan")

    def get_name_value(self) -> list[tuple[str, Any]]:
        """`get` as a list of pairs."""
        name, value = self.get()
        if isinstance(name, list):
            return list(zip(name, value, strict=True))
        return [(name, value)]

    def get_config(self) -> dict[str, Any]:
        """The class and its arguments."""
        return {
            **self._kwargs,
            "metric": type(self).__name__,
            "name": self.name,
            "output_names": self.output_names,
            "label_names": self.label_names,
        }


def _selected(arrays: dict[str, Any], names: Sequence[str] | None) -> list[Any]:
    if names is None:
        return list(arrays.values())
    missing = [name for name in names if name not in arrays]
    if missing:
        raise MXNetValueError(f"metric: there is no {missing[0]!r} among {sorted(arrays)}")
    return [arrays[name] for name in names]


# Inputs


def to_numpy(x: Any) -> onp.ndarray:
    """An array, NumPy array, list or number as a NumPy array."""
    return x.asnumpy() if hasattr(x, "asnumpy") else onp.asarray(x)


def as_arrays(x: Any) -> list[Any]:
    """One array, or a list of numbers, as a list of one; a list of arrays as it is."""
    if not isinstance(x, (list, tuple)):
        return [x]
    return [x] if x and onp.isscalar(x[0]) else list(x)


def pairs(labels: Any, preds: Any) -> Iterator[tuple[onp.ndarray, onp.ndarray]]:
    """Each label array with its predictions, as NumPy arrays."""
    labels, preds = as_arrays(labels), as_arrays(preds)
    check_label_shapes(labels, preds)
    for label, pred in zip(labels, preds, strict=True):
        yield to_numpy(label), to_numpy(pred)


def check_label_shapes(labels: Any, preds: Any, wrap: bool = False, shape: bool = False) -> tuple[Any, Any]:
    """Refuse labels and predictions of different number, or with `shape` of different shape.

    Returns both, single arrays in lists where `wrap` is True.

    >>> check_label_shapes([1, 2], [3, 4])
    ([1, 2], [3, 4])
    """
    mine, its = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if mine != its:
        raise MXNetValueError(f"metric: shape of labels {mine} does not match shape of predictions {its}")
    if wrap:
        labels, preds = as_arrays(labels), as_arrays(preds)
    return labels, preds


# Registry


def register(klass: type[EvalMetric], name: str | None = None) -> type[EvalMetric]:
    """Class decorator: make `create` find the class under its lower-cased name.

    >>> @gluon.metric.register
    ... class Nothing(gluon.metric.EvalMetric):
    ...     def update(self, labels, preds):
    ...         self.num_inst += len(preds)
    >>> gluon.metric.create("nothing", name="zero").get()
    ('zero', nan)
    """
    _registry[(name or klass.__name__).lower()] = klass
    return klass


def alias(*aliases: str) -> Callable[[type[EvalMetric]], type[EvalMetric]]:
    """Class decorator: make `create` find the class under these names too.

    >>> @gluon.metric.alias("none-at-all")
    ... class Zero(gluon.metric.EvalMetric):
    ...     def update(self, labels, preds):
    ...         self.num_inst += len(preds)
    >>> gluon.metric.create("none-at-all", name="zero").get()
    ('zero', nan)
    """

    def decorate(klass: type[EvalMetric]) -> type[EvalMetric]:
        for name in aliases:
            register(klass, name)
        return klass

    return decorate


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """A metric from a name and arguments, from a function (labels, predictions) -> value, or a list of these.

    >>> from mxnp.gluon import metric
    >>> metric.create("acc").get()
    ('accuracy', nan)
    """
    if isinstance(metric, EvalMetric):
        return metric
    if isinstance(metric, (list, tuple)):
        composite = CompositeEvalMetric()
        for each in metric:
            composite.add(create(each, *args, **kwargs))
        return composite
    if isinstance(metric, str):
        klass = _registry.get(metric.lower().replace("-", "").replace(" ", ""), _registry.get(metric.lower()))
        if klass is None:
            raise MXNetValueError(
                f"metric.create: no metric is called {metric!r}\nhint: there are {', '.join(sorted(_registry))}"
            )
        return klass(*args, **kwargs)
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    raise MXNetTypeError(f"metric.create: expected a name, function, metric or list of them, got {metric!r}")


# Made of other metrics and of functions


@alias("composite")
@register
class CompositeEvalMetric(EvalMetric):
    """Several metrics updated together; `get` gives a list of names and a list of values.

    >>> metric = gluon.metric.CompositeEvalMetric(["mae", "mse"])
    >>> metric.update(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    >>> metric.get()
    (['mae', 'mse'], [1.0, 2.0])
    """

    def __init__(
        self,
        metrics: Sequence[Any] | None = None,
        name: str = "composite",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        self.metrics = [create(each) for each in metrics or []]
        super().__init__(name, output_names, label_names)

    def add(self, metric: Any) -> None:
        """Add a metric, or one by name."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """The metric added as number `index`."""
        try:
            return self.metrics[index]
        except IndexError:
            raise MXNetIndexError(
                f"CompositeEvalMetric: index {index} of {len(self.metrics)} metrics"
            ) from None

    def reset(self) -> None:
        """Reset every metric."""
        for metric in self.metrics:
            metric.reset()

    def update(self, labels: Any, preds: Any) -> None:
        """Update every metric."""
        for metric in self.metrics:
            metric.update(labels, preds)

    def update_dict(self, label: dict[str, Any], pred: dict[str, Any]) -> None:
        """Update every metric with the entries it names, among those that this one names."""
        if self.label_names is not None:
            label = dict(zip(self.label_names, _selected(label, self.label_names), strict=True))
        if self.output_names is not None:
            pred = dict(zip(self.output_names, _selected(pred, self.output_names), strict=True))
        for metric in self.metrics:
            metric.update_dict(label, pred)

    def get(self) -> tuple[list[str], list[Any]]:
        """(names, values), those of nested composites in their place."""
        rows = [row for metric in self.metrics for row in metric.get_name_value()]
        return [name for name, _ in rows], [value for _, value in rows]

    def get_config(self) -> dict[str, Any]:
        """The class, its arguments and the metrics' configurations."""
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}


@register
class CustomMetric(EvalMetric):
    """A metric from `feval(label, pred)`, which gets NumPy arrays and returns a value, or (sum, count).

    allow_extra_outputs: there may be more predictions than labels; the surplus is left out.

    >>> metric = gluon.metric.CustomMetric(lambda label, pred: abs(label - pred).max(), name="worst")
    >>> metric.update(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    >>> metric.get()[0], float(metric.get()[1])
    ('worst', 2.0)
    """

    def __init__(
        self,
        feval: Callable[[onp.ndarray, onp.ndarray], Any],
        name: str | None = None,
        allow_extra_outputs: bool = False,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        if name is None:
            own = getattr(feval, "__name__", type(feval).__name__)
            name = f"custom({own})" if "<" in own else own
        super().__init__(name, output_names, label_names, allow_extra_outputs=allow_extra_outputs)
        self._feval = feval
        self._allow_extra_outputs = allow_extra_outputs

    def update(self, labels: Any, preds: Any) -> None:
        """Add what the function returns for each label and prediction."""
        labels, preds = as_arrays(labels), as_arrays(preds)
        if self._allow_extra_outputs:
            preds = preds[: len(labels)]
        for label, pred in pairs(labels, preds):
            value = self._feval(label, pred)
            total, count = value if isinstance(value, tuple) else (value, 1)
            self.sum_metric += total
            self.num_inst += count

    def get_config(self) -> dict[str, Any]:
        """Refused: a function has no plain form."""
        raise MXNetTypeError("CustomMetric: a function cannot be written into a configuration")


def np(
    numpy_feval: Callable[[onp.ndarray, onp.ndarray], Any],
    name: str | None = None,
    allow_extra_outputs: bool = False,
) -> CustomMetric:
    """A CustomMetric from a function of NumPy arrays.

    >>> metric = gluon.metric.np(lambda label, pred: float((label == pred).all()), name="exact")
    >>> metric.update(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    >>> metric.get()
    ('exact', 1.0)
    """
    return CustomMetric(numpy_feval, name, allow_extra_outputs)
