"""Metrics: values that MXNet 2.0.0b1 gives, weights of unequal batches, kinds of input, refused misuse."""

import math

import numpy as onp
import pytest

from mxnp import np
from mxnp.error import MXNetError
from mxnp.gluon import metric

# fmt: off
PROBS = onp.array([[.3, .5, .2], [.1, .1, .8], [.6, .3, .1], [.2, .4, .4]], "float32")
CLASSES = onp.array([1, 2, 1, 2], "float32")
YES = onp.array([1, 0, 1, 1], "float32")
CHANCE = onp.array([.9, .4, .3, .8], "float32")
SCORES = onp.array([[.1, .9], [.6, .4], [.7, .3], [.2, .8]], "float32")
MULTI, MULTI_CHANCE = onp.array([[1, 0], [1, 1]], "float32"), onp.array([[.9, .6], [.1, .8]], "float32")

RECORDED = [  # metric, updates, name, value
    (metric.Accuracy(), [(CLASSES, PROBS)], "accuracy", .5),
    (metric.Accuracy(), [(CLASSES, CLASSES)], "accuracy", 1),
    (metric.Accuracy(), [(CLASSES, onp.array([1, 2, 0, 2]))], "accuracy", .75),
    (metric.TopKAccuracy(top_k=2), [(CLASSES, PROBS)], "top_k_accuracy_2", 1),
    (metric.BinaryAccuracy(), [(YES, CHANCE)], "binary_accuracy", .75),
    (metric.CrossEntropy(), [(CLASSES, PROBS)], "cross-entropy", .7591385841369629),
    (metric.CrossEntropy(ignore_label=2), [(CLASSES, PROBS)], "cross-entropy", .9485599994659424),
    (metric.CrossEntropy(from_logits=True), [(CLASSES, PROBS)], "cross-entropy", .9547827243804932),
    (metric.NegativeLogLikelihood(), [(CLASSES, PROBS)], "nll-loss", .7591385841369629),
    (metric.Perplexity(), [(CLASSES, PROBS)], "perplexity", 2.136435068553523),
    (metric.Perplexity(ignore_label=1), [(CLASSES, PROBS)], "perplexity", 1.7677668957069066),
    (metric.Loss(), [(None, PROBS)], "loss", 1 / 3),
    (metric.Loss(), [(0, PROBS), (0, [PROBS, PROBS[:2]])], "loss", 1 / 3),
    (metric.MAE(), [(YES, CHANCE)], "mae", .35),
    (metric.MAE(), [(YES, CHANCE), (YES[:2], CHANCE[:2])], "mae", 1.9 / 6),
    (metric.MAE(), [(PROBS, PROBS * 2)], "mae", 1 / 3),
    (metric.MSE(), [(YES, CHANCE), (YES[:2], CHANCE[:2])], "mse", .145),
    (metric.RMSE(), [(YES, CHANCE), (YES[:2], CHANCE[:2])], "rmse", .3807886498146641),
    (metric.RMSE(), [(PROBS, PROBS * 2)], "rmse", .39370039521455),
    (metric.F1(), [(YES, SCORES)], "f1", .8),
    (metric.F1(), [(YES, SCORES), (YES[:2], SCORES[:2])], "f1", .8571428571428571),
    (metric.F1(average="macro"), [(YES, SCORES), (YES[:2], SCORES[:2])], "f1", .8571428571428571),
    (metric.F1(threshold=.35), [(YES, CHANCE)], "f1", 2 / 3),
    (metric.F1(class_type="multiclass"), [(CLASSES, PROBS)], "f1", .5),
    (metric.F1(class_type="multiclass", average="macro"), [(CLASSES, PROBS)], "f1", .3888888657093048),
    (metric.F1(class_type="multiclass", average=None), [(CLASSES, PROBS)], "f1", [0, .5, 2 / 3]),
    (metric.F1(class_type="multilabel"), [(MULTI, MULTI_CHANCE)], "f1", 2 / 3),
    (metric.Fbeta(beta=2), [(YES, SCORES)], "fbeta", .7142857142857142),
    (metric.MCC(), [(YES, SCORES)], "mcc", .5773502691896258),
    (metric.MCC(), [(YES, SCORES), (YES[:2], SCORES[:2])], "mcc", .7071067811865476),
    (metric.PCC(), [(CLASSES, PROBS)], "pcc", .22360679774997896),
    (metric.PearsonCorrelation(), [(YES, CHANCE)], "pearsonr", .45291082014716216),
    (metric.PearsonCorrelation(), [(YES, CHANCE), (YES[:3], CHANCE[:3])], "pearsonr", .4165260850625282),
    (metric.MeanCosineSimilarity(), [(PROBS, PROBS[::-1].copy())], "cos_sim", .6138925552368164),
    (metric.MeanPairwiseDistance(), [(PROBS, PROBS[::-1].copy())], "mpd", .5640624761581421),
    (metric.CustomMetric(lambda label, pred: ((label - pred) ** 2).sum()), [(YES, CHANCE)],
     "custom(<lambda>)", .7),
    (metric.CustomMetric(lambda label, pred: (3.0, 2), name="mine"), [(YES, CHANCE)], "mine", 1.5),
    (metric.np(lambda label, pred: (label - pred).sum()), [(YES, CHANCE)], "custom(<lambda>)", .6),
]
# fmt: on


def as_mxnp(x):
    if isinstance(x, list):
        return [as_mxnp(each) for each in x]
    return np.array(x, dtype=x.dtype) if isinstance(x, onp.ndarray) else x


def ids(value):
    return type(value).__name__ if isinstance(value, metric.EvalMetric) else ""


@pytest.mark.parametrize("convert", [as_mxnp, lambda x: x], ids=["mxnp", "numpy"])
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: x if x is None or isinstance(x, list) else [x]])
@pytest.mark.parametrize(("m", "updates", "name", "value"), RECORDED, ids=ids)
def test_values_match_mxnet(m, updates, name, value, wrap, convert):
    m.reset()
    got_name, before = m.get()
    assert got_name == name
    assert math.isnan(before)
    for label, pred in updates:
        m.update(wrap(convert(label)), wrap(convert(pred)))
    got_name, got = m.get()
    assert got_name == name
    assert got == pytest.approx(value, rel=1e-6)
    ((pair_name, pair_value),) = m.get_name_value()
    assert (pair_name, pair_value) == (name, pytest.approx(value, rel=1e-6))
    m.reset()
    assert math.isnan(m.get()[1])


def test_unequal_batches_count_by_their_samples():
    m = metric.Accuracy()
    m.update([np.array([0, 0, 0])], [np.array([0, 0, 1])])
    m.update([np.array([1])], [np.array([1])])
    assert m.get() == ("accuracy", 0.75)
    assert (m.sum_metric, m.num_inst) == (3, 4)


def test_several_devices_or_outputs():
    m = metric.Accuracy()
    m.update([np.array([0, 0]), np.array([1])], [np.array([0, 1]), np.array([1])])
    assert m.get()[1] == pytest.approx(2 / 3)
    m.reset()
    m.update([], [])
    assert math.isnan(m.get()[1])


def test_plain_lists_of_numbers():
    m = metric.Accuracy()
    m.update([1, 2, 0], [1, 2, 2])
    assert m.get()[1] == pytest.approx(2 / 3)


def test_columns_of_one_are_aligned_not_broadcast():
    for m in (metric.MAE(), metric.MSE()):
        m.update(as_mxnp(YES), as_mxnp(CHANCE.reshape(4, 1)))
        assert m.get()[1] == pytest.approx({"mae": 0.35, "mse": 0.175}[m.name])


def test_accuracy_along_other_axes():
    m = metric.Accuracy(axis=0)
    m.update(as_mxnp(CLASSES), as_mxnp(onp.ascontiguousarray(PROBS.T)))
    assert m.get()[1] == 0.5
    m = metric.Accuracy(axis=1)
    images = onp.zeros((2, 3, 2, 2), "float32")
    images[:, 1] = 1
    m.update(np.ones((2, 2, 2)), as_mxnp(images))
    assert m.get()[1] == 1.0


def test_top_k_takes_the_first_of_equals():
    scores = np.array([[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]])
    m = metric.TopKAccuracy(top_k=2)
    m.update(np.array([1, 2]), scores)
    assert m.get()[1] == 0.5
    m.update(np.array([-1, 3]), scores)
    assert m.get()[1] == 0.25
    assert metric.TopKAccuracy(5).get()[0] == "top_k_accuracy_5"


def test_cross_entropy_of_sequences_and_channels():
    probs = onp.array([[[0.2, 0.8], [0.5, 0.5]], [[0.9, 0.1], [0.25, 0.75]]], "float32")
    labels = onp.array([[1, 0], [0, 1]])
    expected = -onp.log([0.8, 0.5, 0.9, 0.75]).mean()
    for axis, given in ((-1, probs), (1, onp.ascontiguousarray(probs.transpose(0, 2, 1)))):
        m = metric.CrossEntropy(axis=axis)
        m.update(as_mxnp(labels), as_mxnp(given))
        assert m.get()[1] == pytest.approx(expected, rel=1e-6)


def test_impossible_predictions_are_finite():
    m = metric.CrossEntropy()
    m.update(np.array([0]), np.array([[0.0, 1.0]]))
    assert m.get()[1] == pytest.approx(-math.log(1e-12))
    m = metric.CrossEntropy(from_logits=True)
    m.update(np.array([0]), np.array([[-1000.0, 1000.0]]))
    assert m.get()[1] == pytest.approx(2000)


def test_scores_without_positives_are_zero():
    m = metric.F1()
    m.update(np.zeros(3), np.zeros(3))
    assert m.get() == ("f1", 0.0)
    m = metric.MCC()
    m.update(np.zeros(3), np.zeros(3))
    assert m.get() == ("mcc", 0.0)


def test_pearson_over_batches_is_pearson_over_all():
    values = onp.sin(onp.arange(40)) + 1000
    labels = values + onp.cos(3 * onp.arange(40))
    m = metric.PearsonCorrelation()
    for part in (slice(0, 7), slice(7, 8), slice(8, 40)):
        m.update(labels[part], values[part])
    assert m.get()[1] == pytest.approx(onp.corrcoef(labels, values)[0, 1], rel=1e-9)


# Made of others


def test_composites():
    m = metric.CompositeEvalMetric(["acc", metric.MAE()])
    m.add("ce")
    assert m.get()[0] == ["accuracy", "mae", "cross-entropy"]
    assert all(math.isnan(v) for v in m.get()[1])
    both = metric.create(["acc", "top_k_acc"])
    both.update([as_mxnp(CLASSES)], [as_mxnp(PROBS)])
    assert both.get_name_value() == [("accuracy", 0.5), ("top_k_accuracy_1", 0.5)]
    assert both.get_metric(0).get() == ("accuracy", 0.5)
    with pytest.raises(IndexError, match="index 5 of 2 metrics"):
        both.get_metric(5)
    both.reset()
    assert all(math.isnan(v) for v in both.get()[1])
    nested = metric.CompositeEvalMetric([both, "mse"])
    assert nested.get()[0] == ["accuracy", "top_k_accuracy_1", "mse"]
    assert str(metric.Accuracy()) == "EvalMetric: {'accuracy': nan}"


def test_dicts_of_arrays():
    m = metric.Accuracy(output_names=["out"], label_names=["label"])
    m.update_dict({"label": CLASSES, "x": YES}, {"x": YES, "out": PROBS})
    assert m.get()[1] == 0.5
    m = metric.CompositeEvalMetric([m, metric.Loss(output_names=["loss"])])
    m.reset()
    m.update_dict({"label": CLASSES}, {"out": PROBS, "loss": YES})
    assert m.get()[1] == [0.5, 0.75]
    with pytest.raises(ValueError, match=r"there is no 'label' among \['x'\]"):
        m.update_dict({"x": CLASSES}, {"out": PROBS})


def test_functions():
    def error(label, pred):
        assert type(label) is onp.ndarray
        assert type(pred) is onp.ndarray
        return float((label != pred).sum()), label.size

    m = metric.create(error)
    assert m.name == "error"
    m.update(as_mxnp(YES), as_mxnp(onp.ones(4, "float32")))
    assert m.get() == ("error", 0.25)
    extra = metric.np(error, allow_extra_outputs=True)
    extra.update([YES], [YES, CHANCE])
    assert extra.get()[1] == 0.0
    with pytest.raises(ValueError, match="shape of labels 1 does not match shape of predictions 2"):
        m.update([YES], [YES, CHANCE])


def test_metrics_of_the_users_own():
    @metric.alias("counts")
    @metric.register
    class Count(metric.EvalMetric):
        def __init__(self, name="count", **kwargs):
            super().__init__(name, **kwargs)

        def update(self, labels, preds):
            self.sum_metric += len(preds)
            self.num_inst += 1

    for name in ("count", "COUNT", "counts"):
        m = metric.create(name, label_names=["a"])
        m.update([], [1, 2])
        assert m.get() == ("count", 2.0)
    assert m.get_config() == {"metric": "Count", "name": "count", "output_names": None, "label_names": ["a"]}


@pytest.mark.parametrize(
    "name",
    [
        "acc",
        "accuracy",
        "ce",
        "cross-entropy",
        "composite",
        "f1",
        "fbeta",
        "loss",
        "mae",
        "mcc",
        "mse",
        "nll-loss",
        "nll_loss",
        "pcc",
        "pearsonr",
        "perplexity",
        "rmse",
        "top_k_acc",
        "top_k_accuracy",
        "torch",
    ],
)
def test_names(name):
    assert isinstance(metric.create(name), metric.EvalMetric)


def test_configuration():
    assert metric.TopKAccuracy(3).get_config() == {
        "top_k": 3,
        "metric": "TopKAccuracy",
        "name": "top_k_accuracy_3",
        "output_names": None,
        "label_names": None,
    }


@pytest.mark.parametrize(
    ("misuse", "kind", "text"),
    [
        (lambda: metric.create("nope"), ValueError, "no metric is called 'nope'\nhint: there are acc,"),
        (lambda: metric.create(3), TypeError, "expected a name, function, metric or list of them, got 3"),
        (lambda: metric.Accuracy().update([YES, YES], [YES]), ValueError, "labels 2 does not match"),
        (lambda: metric.Accuracy().update(CLASSES[:3], PROBS), ValueError, r"labels \(3,\) does not match"),
        (lambda: metric.Accuracy(axis=2).update(CLASSES, PROBS), ValueError, "axis 2 is out of range"),
        (lambda: metric.Accuracy().update(YES, CHANCE.reshape(4, 1)), ValueError, "use BinaryAccuracy"),
        (lambda: metric.TopKAccuracy(2).update(CLASSES, CLASSES), ValueError, r"need predictions of shape"),
        (lambda: metric.TopKAccuracy(2).update(CLASSES[:3], PROBS), ValueError, "need predictions of shape"),
        (lambda: metric.TopKAccuracy(0), ValueError, "top_k must be at least 1, got 0"),
        (
            lambda: metric.BinaryAccuracy().update(YES, CHANCE[:2]),
            ValueError,
            r"labels \(4,\) does not match",
        ),
        (lambda: metric.CrossEntropy().update(CLASSES + 1, PROBS), IndexError, r"in \[0, 3\), got 2 to 3"),
        (lambda: metric.CrossEntropy().update(CLASSES - 2, PROBS), IndexError, r"in \[0, 3\), got -1 to 0"),
        (lambda: metric.CrossEntropy().update(CLASSES[:3], PROBS), ValueError, "do not fit predictions"),
        (lambda: metric.MAE().update(CLASSES, PROBS), ValueError, "does not match"),
        (lambda: metric.F1(class_type="x"), ValueError, "class_type must be"),
        (lambda: metric.F1(average="x"), ValueError, "average must be 'micro', 'macro' or None, got 'x'"),
        (
            lambda: metric.F1(class_type="multiclass").update(CLASSES + 5, PROBS),
            ValueError,
            r"labels must be in \[0, 3\)",
        ),
        (
            lambda: metric.MCC().update(CLASSES, PROBS),
            ValueError,
            "expected classes 0 and 1, got 2\nhint: PCC",
        ),
        (lambda: metric.PCC().update(CLASSES - 5, PROBS), ValueError, "must not be negative"),
        (lambda: metric.EvalMetric("x").update([], []), NotImplementedError, "does not define update"),
        (lambda: metric.CustomMetric(max).get_config(), TypeError, "cannot be written"),
    ],
)
def test_misuse_is_named(misuse, kind, text):
    with pytest.raises(kind, match=text) as raised:
        misuse()
    assert isinstance(raised.value, MXNetError)
