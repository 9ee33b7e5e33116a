"""ctc_loss against the sum over all alignments, and against MXNet 2.0.0b1's figures."""

import itertools
import math

import numpy as onp
import pytest

from mxnp import autograd, gluon, np, npx
from mxnp.error import MXNetError
from mxnp.test_utils import check_numeric_gradient


def reading(path, blank):
    """What a path reads as: repeats are one, blanks are none."""
    return [symbol for symbol, _ in itertools.groupby(path) if symbol != blank]


def by_hand(scores, label, blank):
    """-log of the summed probability of all paths that read as the label; scores (T, C)."""
    p = onp.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    paths = itertools.product(range(scores.shape[1]), repeat=len(scores))
    total = sum(
        math.prod(p[t, s] for t, s in enumerate(path)) for path in paths if reading(path, blank) == label
    )
    return -math.log(total) if total else 0.0


def scores(steps=5, samples=3, classes=4):
    return onp.random.RandomState(1).normal(size=(steps, samples, classes))


@pytest.mark.parametrize(
    ("blank_label", "labels", "blank"),
    [
        ("first", [[1, 2, 3], [2, 2, 0], [0, 0, 0]], 0),
        ("last", [[0, 1, 2], [1, 1, -1], [-1, -1, -1]], 3),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_alignments_are_summed(blank_label, labels, blank, dtype):
    x = scores()
    padding = 0 if blank_label == "first" else -1
    wanted = [by_hand(x[:, n], [k for k in row if k != padding], blank) for n, row in enumerate(labels)]
    loss = npx.ctc_loss(np.array(x, dtype=dtype), np.array(labels), blank_label=blank_label)
    assert loss.dtype == dtype
    onp.testing.assert_allclose(loss.asnumpy(), wanted, rtol=1e-5 if dtype == "float32" else 1e-12)


def test_lengths_cut_steps_and_labels():
    x = scores()
    labels, steps, counts = [[1, 2, 3], [2, 2, 1], [3, 1, 1]], [3, 5, 4], [1, 2, 0]
    wanted = [by_hand(x[:t, n], labels[n][:k], 0) for n, (t, k) in enumerate(zip(steps, counts, strict=True))]
    loss = npx.ctc_loss(
        np.array(x),
        np.array(labels),
        np.array(steps),
        np.array(counts),
        use_data_lengths=True,
        use_label_lengths=True,
    )
    onp.testing.assert_allclose(loss.asnumpy(), wanted, rtol=1e-10)


def test_gradients():
    labels = np.array([[1, 2, 0], [2, 2, 0], [0, 0, 0]])
    check_numeric_gradient(lambda x: npx.ctc_loss(x, labels), [np.array(scores())])
    ends = np.array([4, 5, 2])
    check_numeric_gradient(lambda x: npx.ctc_loss(x, labels, ends), [np.array(scores())])


def test_the_figures_of_mxnet():
    x = onp.random.RandomState(0).normal(size=(2, 6, 5)).astype("float32")
    label = np.array([[0, 1, 1, -1], [2, 3, -1, -1]])
    loss, pred = gluon.loss.CTCLoss(), np.array(x)
    pred.attach_grad()
    with autograd.record():
        value = loss(pred, label)
    value.backward()
    figures = [-0.67639387, 0.05769002, 0.10289047, 0.36351478, 0.15229893]
    onp.testing.assert_allclose(value.asnumpy(), [5.0834146, 6.740621], rtol=1e-6)
    onp.testing.assert_allclose(pred.grad[0, 0].asnumpy(), figures, rtol=1e-5)
    turned = gluon.loss.CTCLoss(layout="TNC", label_layout="TN", weight=2.0)
    onp.testing.assert_allclose(
        turned(pred.swapaxes(0, 1), label.T).asnumpy(), [10.166829, 13.481242], rtol=1e-6
    )
    both = loss(pred, label, np.array([5, 6]), np.array([2, 1]))
    onp.testing.assert_allclose(both.asnumpy(), [3.1210427, 8.175308], rtol=1e-6)
    weighted = loss(pred, label, None, None, np.array([2.0, 0.5]))
    onp.testing.assert_allclose(weighted.asnumpy(), [10.166829, 3.3703105], rtol=1e-6)
    assert repr(turned) == "CTCLoss(batch_axis=1, w=2.0)"


def test_a_label_that_cannot_fit_gives_nothing():
    x = np.array(scores(steps=3))
    x.attach_grad()
    with autograd.record():
        loss = npx.ctc_loss(x, np.array([[1, 1, 1], [1, 2, 3], [1, 1, 0]]))
    loss.backward()
    assert loss[0] == 0
    assert loss[1] > 0
    assert float(np.abs(x.grad[:, 0]).sum()) == 0
    assert np.isfinite(x.grad).all()
    assert float(np.abs(x.grad[:, 2]).sum()) > 0


def test_half_precision_sums_in_float32():
    x, label = scores(), np.array([[1, 2, 3], [2, 2, 0], [0, 0, 0]])
    half = npx.ctc_loss(np.array(x, dtype="float16"), label)
    assert half.dtype == "float16"
    onp.testing.assert_allclose(half.asnumpy(), npx.ctc_loss(np.array(x), label).asnumpy(), rtol=5e-3)


def test_labels_without_length():
    x = np.array(scores())
    none, padding = npx.ctc_loss(x, np.zeros((3, 0))), npx.ctc_loss(x, np.zeros((3, 2)))
    onp.testing.assert_allclose(none.asnumpy(), padding.asnumpy(), rtol=1e-12)


@pytest.mark.parametrize(
    ("labels", "blank"),
    [([[4, 0]], "first"), ([[-1, 0]], "first"), ([[3, -1]], "last"), ([[-2, -1]], "last")],
)
def test_a_label_that_is_no_class_raises(labels, blank):
    with pytest.raises(IndexError, match="out of bounds"):
        npx.ctc_loss(np.array(scores(samples=1)), np.array(labels), blank_label=blank).wait_to_read()


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (
            lambda x: npx.ctc_loss(x, np.ones((2, 2))),
            r"expected data \(T, N, C\) and labels \(N, L\), got shapes",
        ),
        (lambda x: npx.ctc_loss(x[0], np.ones((3, 2))), "expected data"),
        (lambda x: npx.ctc_loss(x, np.ones((3, 6))), "labels of length 6 cannot fit into 5 steps"),
        (
            lambda x: npx.ctc_loss(x, np.ones((3, 2)), blank_label="middle"),
            "blank_label must be 'first' or 'last'",
        ),
        (lambda x: npx.ctc_loss(x[:0], np.ones((3, 0))), "data needs a step"),
        (lambda x: gluon.loss.CTCLoss(layout="NCT"), "CTCLoss: layout must be"),
        (lambda x: gluon.loss.CTCLoss(label_layout="T"), "CTCLoss: label_layout must be"),
    ],
)
def test_misuse_is_named(wrong, text):
    with pytest.raises(ValueError, match=text) as caught:
        wrong(np.array(scores()))
    assert isinstance(caught.value, MXNetError)


def test_a_network_learns_to_read():
    np.random.seed(0)
    net = gluon.nn.Dense(4, flatten=False)
    net.initialize()
    x = np.random.normal(size=(8, 10, 6))
    label = np.random.randint(0, 3, (8, 3))
    loss_fn = gluon.loss.CTCLoss()
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
    losses = []
    for _ in range(30):
        with autograd.record():
            loss = loss_fn(net(x), label)
        loss.backward()
        trainer.step(8)
        losses.append(float(loss.mean()))
    assert losses[-1] < 0.5 * losses[0]


def test_lengths_that_are_none_raise():
    x = np.array(scores())
    with pytest.raises(IndexError, match="data length 6 of sample 2 is out of bounds for 5 steps"):
        npx.ctc_loss(x, np.ones((3, 1)), np.array([5, 5, 6])).wait_to_read()
    with pytest.raises(IndexError, match="label length 2 of sample 0 is out of bounds for 1 labels"):
        npx.ctc_loss(x, np.ones((3, 1)), None, np.array([2, 1, 1])).wait_to_read()


def test_no_steps_read_as_nothing():
    x = np.array(scores())
    x.attach_grad()
    with autograd.record():
        loss = npx.ctc_loss(x, np.array([[1, 2], [0, 0], [0, 0]]), np.array([0, 0, 1]))
    loss.backward()
    first = npx.log_softmax(x)[0, 2, 0]
    assert loss.tolist() == [0, 0, -first.item()]
    assert float(np.abs(x.grad[:, :2]).sum()) == 0


def test_unlikely_alignments_are_not_lost():
    """Logarithms reach where probabilities are far below what a double holds."""
    x = onp.full((6, 1, 3), 0.0)
    x[:, :, 2] = 900.0  # every step all but surely says 2, and the label is 1 1
    data = np.array(x)
    data.attach_grad()
    with autograd.record():
        loss = npx.ctc_loss(data, np.array([[1, 1]]))
    loss.backward()
    paths = sum(reading(p, 0) == [1, 1] for p in itertools.product(range(2), repeat=6))
    onp.testing.assert_allclose(loss.asnumpy(), [6 * 900 - math.log(paths)], rtol=1e-12)
    onp.testing.assert_allclose(data.grad[:, 0, 2].asnumpy(), onp.ones(6))
    onp.testing.assert_allclose(data.grad.sum(axis=2).asnumpy(), onp.zeros((6, 1)), atol=1e-12)


def test_long_sequences_in_single_precision():
    rng = onp.random.RandomState(3)
    x, label = rng.normal(size=(400, 2, 9)), np.array(rng.randint(1, 9, (2, 60)))
    found = []
    for dtype in ("float32", "float64"):
        data = np.array(x, dtype=dtype)
        data.attach_grad()
        with autograd.record():
            loss = npx.ctc_loss(data, label)
        loss.backward()
        found.append((loss.asnumpy(), data.grad.asnumpy()))
    onp.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
    onp.testing.assert_allclose(found[0][1], found[1][1], atol=2e-6)


def test_a_gradient_of_the_gradient_is_refused():
    x = np.array(scores())
    x.attach_grad()
    with autograd.record():
        (g,) = autograd.grad(npx.ctc_loss(x, np.array([[1], [2], [3]])).sum(), [x], create_graph=True)
        total = (g * g).sum()
    with pytest.raises(MXNetError, match=r"ctc_grad.*no rule of its own"):
        total.backward()
