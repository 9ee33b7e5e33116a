"""Losses: values that MXNet 2.0.0b1 gives, gradients, weights, and what must be refused."""

import math
import re

import numpy as onp
import pytest

from mxnp import autograd, gluon, np, npx
from mxnp.error import MXNetError
from mxnp.gluon import loss as gloss

# fmt: off
PRED = onp.array([[.2, .86, .41, .18], [-.31, .58, -.25, 1.57], [1.85, -.47, 1.17, .12]], "float32")
REAL = onp.array([[.27, 1.7, -1.72, -1.65], [-1.92, 1.33, 1.11, 1.48], [1.91, 1.2, -.15, 1.12]], "float32")
BINARY = onp.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 0]], "float32")
SIGNED = onp.array([[1, -1, 1, -1], [1, 1, 1, -1], [-1, 1, 1, -1]], "float32")
CLASSES = onp.array([0, 3, 1], "float32")
WEIGHTS = onp.array([[.5], [2], [0]], "float32")
POSITIVE = onp.array([1, 2, 3, 4], "float32")
SOFTMAX = onp.exp(REAL) / onp.exp(REAL).sum(axis=1, keepdims=True)
LOG_SOFTMAX = PRED - onp.log(onp.exp(PRED).sum(axis=1, keepdims=True))
SIGMOID = 1 / (1 + onp.exp(-PRED))
DEEP = onp.arange(24, dtype="float32").reshape(2, 3, 4) / 10
DEEP_CLASSES = onp.array([[0, 1, 2, 0], [1, 1, 0, 2]], "float32")

RECORDED = [  # loss, inputs, what MXNet answers
    (gloss.L2Loss(), (PRED, REAL), [1.0745375, .6265375, .6918625]),
    (gloss.L2Loss(weight=3.0), (PRED, REAL, WEIGHTS), [1.6118063, 3.7592249, 0]),
    (gloss.L2Loss(), (PRED, REAL.reshape(12)), [1.0745375, .6265375, .6918625]),
    (gloss.L2Loss(), (PRED, onp.ones((3, 4), "int32")), [.2100125, .4724875, .4608375]),
    (gloss.L1Loss(), (PRED, REAL), [1.2175, .9525, 1.0125]),
    (gloss.L1Loss(weight=2.0), (PRED, REAL, WEIGHTS), [1.2175, 3.81, 0]),
    (gloss.L1Loss(batch_axis=1), (PRED, REAL), [.58, 1.0866667, 1.6033333, .9733333]),
    (gloss.HuberLoss(rho=.7), (PRED, REAL), [.938375, .6689464, .7356429]),
    (gloss.SigmoidBCELoss(), (PRED, BINARY), [.7768065, .8949189, .8241996]),
    (gloss.SigmoidBCELoss(from_sigmoid=True), (SIGMOID, BINARY), [.7768065, .8949189, .8241994]),
    (gloss.SigmoidBCELoss(), (PRED, BINARY, None, POSITIVE), [1.0313135, 1.4190438, 1.0630769]),
    (gloss.SigmoidBCELoss(from_sigmoid=True), (SIGMOID, BINARY, None, POSITIVE),
     [1.0313135, 1.4190438, 1.0630767]),
    (gloss.SoftmaxCELoss(), (PRED, CLASSES), [1.6387383, .5224730, 2.8978345]),
    (gloss.SoftmaxCELoss(), (PRED, CLASSES.astype("int32")), [1.6387383, .5224730, 2.8978345]),
    (gloss.SoftmaxCELoss(), (PRED, CLASSES.reshape(3, 1)), [1.6387383, .5224730, 2.8978345]),
    (gloss.SoftmaxCELoss(from_logits=True), (LOG_SOFTMAX, CLASSES), [1.6387383, .5224730, 2.8978345]),
    (gloss.SoftmaxCELoss(sparse_label=False), (PRED, BINARY), [3.0674727, 3.8549395, 3.475667]),
    (gloss.SoftmaxCELoss(weight=2.0), (PRED, CLASSES, WEIGHTS), [1.6387383, 2.0898790, 0]),
    (gloss.SoftmaxCELoss(axis=0), (PRED, onp.array([0, 1, 2, 1])), [.95797026]),
    (gloss.SoftmaxCELoss(axis=1), (DEEP, DEEP_CLASSES), [1.2512505, 1.1512505]),
    (gloss.KLDivLoss(), (LOG_SOFTMAX, SOFTMAX), [.1059879, .0550948, .0879159]),
    (gloss.KLDivLoss(from_logits=False), (PRED, SOFTMAX), [.1059879, .0550948, .0879159]),
    (gloss.HingeLoss(), (PRED, SIGNED), [1.1075, 1.3875, 1.36]),
    (gloss.SquaredHingeLoss(margin=.5), (PRED, SIGNED), [.6025251, 1.3758752, 1.7119498]),
    (gloss.LogisticLoss(), (PRED, SIGNED), [.7768065, .9724189, .9941995]),
    (gloss.LogisticLoss(label_format="binary"), (PRED, BINARY), [.7768065, .8949189, .8241996]),
    (gloss.TripletLoss(), (PRED, REAL, PRED * .5), [9.3512754, 5.2723250, 5.2782249]),
    (gloss.TripletLoss(margin=9), (PRED, REAL, PRED * .5), [17.3512764, 13.2723255, 13.2782249]),
    (gloss.PoissonNLLLoss(), (PRED, BINARY), [1.4196497, 1.9437336, 2.4885778]),
    (gloss.PoissonNLLLoss(from_logits=False), (abs(PRED), BINARY * 3), [2.2882769, 2.1257660, 1.0073777]),
    (gloss.PoissonNLLLoss(from_logits=False), (abs(PRED), BINARY, None, 1e-2),
     [1.0195371, 1.1461767, .9308481]),
    (gloss.CosineEmbeddingLoss(margin=.1), (PRED, REAL, onp.array([1, -1, 1])), [.8234749, .5657434, .4822863]),
    (gloss.CosineEmbeddingLoss(), (PRED, REAL, onp.array([-1, -1, -1])), [.1765251, .6657434, .5177137]),
    (gloss.SDMLLoss(), (PRED, REAL), [.9037073, .3645225, 1.0733943]),
]
# fmt: on


def array(x):
    return np.array(x, dtype=x.dtype) if isinstance(x, onp.ndarray) else x


def evaluate(loss, *inputs):
    return loss(*(array(x) for x in inputs))


def ids(value):
    return type(value).__name__ if isinstance(value, gloss.Loss) else ""


@pytest.mark.parametrize(("loss", "inputs", "expected"), RECORDED, ids=ids)
def test_values_match_mxnet(loss, inputs, expected):
    got = evaluate(loss, *inputs)
    tolerance = {"rtol": 5e-6, "atol": 5e-6}  # MXNet's log_softmax is off by 3e-6
    onp.testing.assert_allclose(got.asnumpy(), expected, **tolerance)
    loss.hybridize()
    onp.testing.assert_allclose(evaluate(loss, *inputs).asnumpy(), expected, **tolerance)


@pytest.mark.parametrize(("loss", "inputs", "expected"), RECORDED, ids=ids)
def test_gradients_match_finite_differences(loss, inputs, expected):
    pred = array(inputs[0])
    rest = [array(x) for x in inputs[1:]]
    pred.attach_grad()
    with autograd.record():
        total = loss(pred, *rest).sum()
    total.backward()
    direction = onp.cos(onp.arange(inputs[0].size)).reshape(inputs[0].shape).astype("float32")
    h = 1e-2
    ends = [float(loss(array(inputs[0] + s * h * direction), *rest).sum()) for s in (1, -1)]
    slope = float((pred.grad.asnumpy() * direction).sum())
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=2e-2, abs=2e-3)


# Weights


def test_axes_of_length_1_may_be_left_out_of_sample_weights():
    expected = [0.5 * 1.6387383, 2 * 0.5224730, 0]
    for shape in ((3,), (3, 1)):
        got = evaluate(gloss.SoftmaxCELoss(), PRED, CLASSES, WEIGHTS.reshape(shape))
        onp.testing.assert_allclose(got.asnumpy(), expected, rtol=2e-6)
        got = evaluate(gloss.CosineEmbeddingLoss(), PRED, REAL, onp.ones(3), WEIGHTS.reshape(shape))
        onp.testing.assert_allclose(got.asnumpy(), [0.5 * 0.8234749, 2 * 0.3342566, 0], rtol=1e-5)


def test_weights_of_each_element():
    weights = onp.zeros((3, 4), "float32")
    weights[1, 2] = 2.0
    got = evaluate(gloss.L1Loss(), PRED, REAL, weights)
    onp.testing.assert_allclose(got.asnumpy(), [0, 2 * 1.36 / 4, 0], rtol=1e-6)


def test_a_number_as_sample_weight():
    got = evaluate(gloss.L1Loss(), PRED, REAL, 2.0)
    onp.testing.assert_allclose(got.asnumpy(), [2.435, 1.905, 2.025], rtol=1e-6)


@pytest.mark.parametrize(
    ("loss", "inputs", "text"),
    [
        (gloss.L2Loss(), (PRED, REAL, onp.ones((4, 1))), r"\(4, 1\) does not fit a loss of shape \(3, 4\)"),
        (gloss.L2Loss(), (PRED, REAL, onp.ones(3)), r"hint: .* give shape \(3, 1\)"),
        (gloss.L1Loss(), (PRED, REAL, onp.ones((2, 3, 4))), r"\(2, 3, 4\) does not fit"),
        (gloss.L2Loss(), (PRED, REAL[:, :3]), r"labels of shape \(3, 3\) do not fit, expected \(3, 4\)"),
        (gloss.L2Loss(), (PRED, REAL.T), r"labels of shape \(4, 3\) do not fit, expected \(3, 4\)"),
        (gloss.SoftmaxCELoss(), (PRED, onp.ones(4)), r"labels of shape \(4,\) do not fit, expected \(3, 1\)"),
        (gloss.SoftmaxCELoss(axis=1), (DEEP, onp.ones((4, 2))), r"expected \(2, 1, 4\)"),
        (gloss.SoftmaxCELoss(sparse_label=False), (PRED, CLASSES), r"labels of shape \(3,\) do not fit"),
        (gloss.SDMLLoss(), (PRED[:1], PRED[:1]), "at least 2 rows"),
    ],
)
def test_shapes_that_do_not_fit(loss, inputs, text):
    with pytest.raises(ValueError, match=text) as raised:
        evaluate(loss, *inputs)
    assert isinstance(raised.value, MXNetError)


# Cross-entropy of classes


@pytest.mark.parametrize("bad", [4, -1, -4, 100, 1e9, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("from_logits", [False, True])
def test_labels_out_of_range_raise(bad, from_logits):
    loss = gloss.SoftmaxCELoss(from_logits=from_logits)
    with pytest.raises(IndexError) as raised:
        evaluate(loss, PRED, onp.array([0, bad, 1], "float32")).wait_to_read()
    assert isinstance(raised.value, MXNetError)
    named = {math.nan: "-1"}.get(bad, str(int(bad)) if math.isfinite(bad) else "")
    assert re.search(rf"pick: index {named}.* is out of bounds for axis 1 with size 4", str(raised.value))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float16", "float64"])
def test_labels_of_any_dtype(dtype):
    pred = onp.zeros((3, 300), "float32")
    pred[:, 5] = 1
    got = evaluate(gloss.SoftmaxCELoss(), pred, onp.array([5, 6, 5], dtype))
    low = math.log(299 + math.e)
    onp.testing.assert_allclose(got.asnumpy(), [low - 1, low, low - 1], rtol=1e-6)
    if not dtype.startswith("u"):
        with pytest.raises(IndexError):
            evaluate(gloss.SoftmaxCELoss(), pred, onp.array([5, -1, 5], dtype)).wait_to_read()


def test_labels_without_weight_may_be_anything():
    for bad in (-1, 4):
        labels = onp.array([0, 3, bad], "float32")
        got = evaluate(gloss.SoftmaxCELoss(), PRED, labels, WEIGHTS)
        onp.testing.assert_allclose(got.asnumpy(), [0.5 * 1.6387383, 2 * 0.5224730, 0], rtol=2e-6)
    labels, weights = DEEP_CLASSES.copy(), onp.ones((2, 4), "float32")
    labels[:, 3], weights[:, 3] = -1, 0
    log_softmax = DEEP - onp.log(onp.exp(DEEP).sum(axis=1, keepdims=True))
    picked = onp.take_along_axis(log_softmax, DEEP_CLASSES[:, None].astype(int), axis=1)[:, 0, :3]
    got = evaluate(gloss.SoftmaxCELoss(axis=1), DEEP, labels, weights)
    onp.testing.assert_allclose(got.asnumpy(), -picked.sum(axis=1) / 4, rtol=1e-5)


def test_unweighted_bad_labels_raise_beside_weighted_ones():
    with pytest.raises(IndexError):
        evaluate(gloss.SoftmaxCELoss(), PRED, onp.array([9, 3, -1], "float32"), WEIGHTS).wait_to_read()


def test_gradient_of_softmax_cross_entropy():
    pred = array(PRED)
    pred.attach_grad()
    with autograd.record():
        total = gloss.SoftmaxCELoss()(pred, array(CLASSES)).sum()
    total.backward()
    expected = onp.exp(LOG_SOFTMAX) - onp.eye(4)[CLASSES.astype(int)]
    onp.testing.assert_allclose(pred.grad.asnumpy(), expected, rtol=1e-5, atol=1e-6)


def test_large_logits_are_exact():
    pred = onp.array([[1000.0, 0.0], [-1000.0, 0.0]], "float32")
    assert evaluate(gloss.SoftmaxCELoss(), pred, onp.zeros(2)).tolist() == [0.0, 1000.0]
    logits = onp.array([[1000.0], [-1000.0], [100.0], [-100.0]], "float32")
    got = evaluate(gloss.SigmoidBCELoss(), logits, onp.array([1.0, 1.0, 0.0, 0.0]))
    assert got.tolist() == [0.0, 1000.0, 100.0, 0.0]


# Slopes at corners


@pytest.mark.parametrize("label", [0.0, 1.0, 0.25])
def test_sigmoid_cross_entropy_has_its_true_slope_at_zero(label):
    pred = np.zeros((1, 1))
    pred.attach_grad()
    with autograd.record():
        loss = gloss.SigmoidBCELoss()(pred, np.full((1, 1), label))
    loss.backward()
    assert pred.grad.tolist() == [[0.5 - label]]


def test_cosine_of_zero_vectors_is_finite():
    pred = np.zeros((2, 3))
    pred.attach_grad()
    with autograd.record():
        loss = gloss.CosineEmbeddingLoss()(pred, np.ones((2, 3)), np.ones(2))
    loss.backward()
    assert loss.tolist() == [1.0, 1.0]
    assert onp.isfinite(pred.grad.asnumpy()).all()


def test_divergence_of_zero_probabilities_is_finite():
    label = onp.array([[0.0, 1.0]], "float32")
    assert evaluate(
        gloss.KLDivLoss(), onp.log(onp.array([[0.5, 0.5]], "float32")), label
    ).tolist() == pytest.approx([math.log(2) / 2])


def test_full_poisson_loss_is_finite_for_zero_counts():
    target = onp.array([[0.0, 1.0, 3.0]], "float32")
    pred = onp.zeros((1, 3), "float32")
    stirling = 3 * math.log(3) - 3 + 0.5 * math.log(6 * math.pi)
    got = evaluate(gloss.PoissonNLLLoss(compute_full=True), pred, target)
    assert got.tolist() == pytest.approx([1 + stirling / 3], rel=1e-6)


# Shapes and dtypes


@pytest.mark.parametrize("loss", [gloss.L1Loss(), gloss.L2Loss(), gloss.HuberLoss(), gloss.SigmoidBCELoss()])
def test_empty_batches(loss):
    assert evaluate(loss, onp.zeros((0, 4), "float32"), onp.zeros((0, 4), "float32")).shape == (0,)


def test_one_value_for_each_sample():
    assert evaluate(gloss.L2Loss(), DEEP, DEEP).shape == (2,)
    assert evaluate(gloss.L2Loss(batch_axis=2), DEEP, DEEP).shape == (4,)
    assert evaluate(gloss.L2Loss(batch_axis=-1), DEEP, DEEP).shape == (4,)
    assert evaluate(gloss.L2Loss(), PRED[:, 0], REAL[:, 0]).shape == (3,)
    assert evaluate(gloss.L2Loss(), PRED[:, :1], REAL[:, 0]).shape == (3,)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_the_dtype_of_predictions_is_kept(dtype):
    for loss, label in ((gloss.L2Loss(weight=3.0), REAL), (gloss.SigmoidBCELoss(), BINARY)):
        assert evaluate(loss, PRED.astype(dtype), label.astype(dtype)).dtype == dtype
    got = evaluate(gloss.SoftmaxCELoss(), PRED.astype(dtype), CLASSES.astype("int64"))
    assert got.dtype == dtype
    onp.testing.assert_allclose(got.asnumpy(), [1.6387383, 0.5224730, 2.8978345], rtol=3e-3)


# Losses of the user's own


def test_both_styles_of_custom_losses():
    class New(gluon.loss.Loss):
        def __init__(self, weight=None, batch_axis=0, **kwargs):
            super().__init__(weight, batch_axis, **kwargs)

        def forward(self, pred, label, sample_weight=None):
            loss = np.abs(gloss._reshape_like(label, pred) - pred)
            loss = gloss._apply_weighting(loss, self._weight, sample_weight)
            return gloss._batch_mean(loss, self._batch_axis)

    class Old(gluon.loss.Loss):
        def __init__(self, weight=None, batch_axis=0, **kwargs):
            super().__init__(weight, batch_axis, **kwargs)

        def hybrid_forward(self, F, pred, label, sample_weight=None):
            loss = F.np.abs(gloss._reshape_like(F, label, pred) - pred)
            loss = gloss._apply_weighting(F, loss, self._weight, sample_weight)
            return F.np.mean(loss, axis=tuple(range(1, loss.ndim)))

    for kind in (New, Old):
        loss = kind(weight=2.0)
        onp.testing.assert_allclose(
            evaluate(loss, PRED, REAL, WEIGHTS).asnumpy(), [1.2175, 3.81, 0], rtol=1e-6
        )
        loss.hybridize()
        onp.testing.assert_allclose(evaluate(loss, PRED, REAL).asnumpy(), [2.435, 1.905, 2.025], rtol=1e-6)


def test_repr_and_aliases():
    assert repr(gloss.L2Loss()) == "L2Loss(batch_axis=0, w=1.0)"
    assert repr(gloss.SoftmaxCELoss(weight=2)) == "SoftmaxCrossEntropyLoss(batch_axis=0, w=2)"
    assert gloss.SigmoidBCELoss is gloss.SigmoidBinaryCrossEntropyLoss


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: gloss.L2Loss(weight="a"), TypeError, "L2Loss: weight must be a number or None, got 'a'"),
        (lambda: gloss.HuberLoss(rho=0), ValueError, "rho must be positive, got 0"),
        (lambda: gloss.LogisticLoss(label_format="x"), ValueError, "'signed' or 'binary', got 'x'"),
    ],
)
def test_bad_arguments(make, kind, text):
    with pytest.raises(kind, match=text) as raised:
        make()
    assert isinstance(raised.value, MXNetError)


def test_losses_train_a_network():
    net = gluon.nn.Dense(1, in_units=2)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
    x = array(onp.stack([onp.sin(onp.arange(32)), onp.cos(3 * onp.arange(32))], axis=1).astype("float32"))
    y = (x[:, 0] * 2 - x[:, 1]) > 0
    first = None
    for _ in range(60):
        with autograd.record():
            loss = gloss.SigmoidBCELoss()(net(x), y.astype("float32"))
        loss.backward()
        trainer.step(32)
        first = float(loss.mean()) if first is None else first
    assert float(loss.mean()) < 0.35 * first
    assert float(((npx.sigmoid(net(x))[:, 0] > 0.5) == y).mean()) > 0.9
