"""Layers as operators: MXNet's defaults and arguments, training against prediction, running statistics, bad input."""

import numpy as onp
import pytest
import scipy.special

import mxnp as mx
from mxnp import autograd, np, npx

X = onp.random.RandomState(3).normal(size=(4, 3, 5)).astype("float32")


def norm_parameters(n=3):
    return np.full((n,), 2.0), np.full((n,), 0.5), np.zeros(n), np.ones(n)


def test_batch_norm_defaults_are_mxnets():
    """eps 1e-3, and gamma counts as 1."""
    gamma, beta, mean, var = norm_parameters()
    y = npx.batch_norm(np.array(X), gamma, beta, mean, var)
    onp.testing.assert_allclose(y.asnumpy(), X / onp.sqrt(1.001) + 0.5, rtol=1e-5, atol=1e-6)
    y = npx.batch_norm(np.array(X), gamma, beta, mean, var, fix_gamma=False)
    onp.testing.assert_allclose(y.asnumpy(), 2 * X / onp.sqrt(1.001) + 0.5, rtol=1e-5, atol=1e-6)
    assert (mean.tolist(), var.tolist()) == ([0, 0, 0], [1, 1, 1])


def test_batch_norm_in_training():
    gamma, beta, mean, var = norm_parameters()
    kept = mean
    with autograd.record():
        y = npx.batch_norm(np.array(X), gamma, beta, mean, var, fix_gamma=False, momentum=0.75, eps=1e-5)
    m, v = X.mean((0, 2)), X.var((0, 2))
    want = 2 * (X - m[:, None]) / onp.sqrt(v[:, None] + 1e-5) + 0.5
    onp.testing.assert_allclose(y.asnumpy(), want, rtol=1e-4, atol=1e-5)
    assert kept is mean
    onp.testing.assert_allclose(mean.asnumpy(), 0.25 * m, rtol=1e-4, atol=1e-6)
    onp.testing.assert_allclose(var.asnumpy(), 0.75 + 0.25 * v, rtol=1e-4)


def test_batch_norm_with_global_statistics():
    gamma, beta, mean, var = norm_parameters()
    with autograd.train_mode():
        y = npx.batch_norm(np.array(X), gamma, beta, mean, var, use_global_stats=True)
    onp.testing.assert_allclose(y.asnumpy(), X / onp.sqrt(1.001) + 0.5, rtol=1e-5, atol=1e-6)
    assert mean.tolist() == [0, 0, 0]


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_mean_and_deviation(training):
    gamma, beta, mean, var = norm_parameters()
    with autograd.train_mode() if training else autograd.predict_mode():
        _, m, s = npx.batch_norm(np.array(X), gamma, beta, mean, var, output_mean_var=True)
    wanted = (X.mean((0, 2)), X.var((0, 2))) if training else (onp.zeros(3), onp.ones(3))
    onp.testing.assert_allclose(m.asnumpy(), wanted[0], rtol=1e-4, atol=1e-6)
    onp.testing.assert_allclose(s.asnumpy(), (wanted[1] + 1e-3) ** -0.5, rtol=1e-4)


def test_batch_norm_second_order():
    x = np.array(X[:, :, 0])
    x.attach_grad()
    gamma, beta, mean, var = norm_parameters()
    with autograd.record():
        y = (npx.batch_norm(x, gamma, beta, mean, var, fix_gamma=False) ** 3).sum()
        (g,) = autograd.grad(y, x, create_graph=True)
        z = (g * g).sum()
    z.backward()
    assert onp.isfinite(x.grad.asnumpy()).all()
    assert (x.grad != 0).any()


def test_layer_norm_mean_and_deviation():
    x = np.array(X)
    y, m, s = npx.layer_norm(x, np.ones(5), np.zeros(5), output_mean_var=True)
    onp.testing.assert_allclose(m.asnumpy(), X.mean(-1, keepdims=True), rtol=1e-4, atol=1e-6)
    onp.testing.assert_allclose(s.asnumpy(), onp.sqrt(X.var(-1, keepdims=True) + 1e-5), rtol=1e-5)
    onp.testing.assert_allclose(y.asnumpy(), (X - m.asnumpy()) / s.asnumpy(), rtol=1e-4, atol=1e-5)


def test_group_and_instance_norm():
    x = onp.random.RandomState(0).normal(size=(2, 4, 6)).astype("float32")
    gamma, beta = onp.arange(1.0, 5, dtype="float32"), onp.arange(4.0, dtype="float32")
    y, m, s = npx.group_norm(np.array(x), np.array(gamma), np.array(beta), 2, 1e-5, output_mean_var=True)
    g = x.reshape(2, 2, 12)
    normal = ((g - g.mean(2, keepdims=True)) / onp.sqrt(g.var(2, keepdims=True) + 1e-5)).reshape(x.shape)
    onp.testing.assert_allclose(y.asnumpy(), normal * gamma[:, None] + beta[:, None], rtol=1e-4, atol=1e-5)
    onp.testing.assert_allclose(m.asnumpy(), g.mean(2), rtol=1e-4, atol=1e-6)
    onp.testing.assert_allclose(s.asnumpy(), onp.sqrt(g.var(2) + 1e-5), rtol=1e-4)
    y = npx.instance_norm(np.array(x), np.array(gamma), np.array(beta))
    normal = (x - x.mean(2, keepdims=True)) / onp.sqrt(x.var(2, keepdims=True) + 1e-3)
    onp.testing.assert_allclose(y.asnumpy(), normal * gamma[:, None] + beta[:, None], rtol=1e-4, atol=1e-5)


def test_dropout():
    x = np.ones((200, 200))
    with autograd.train_mode():
        y = npx.dropout(x, p=0.25).asnumpy()
    assert set(onp.unique(y).tolist()) <= {0.0, onp.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02
    with autograd.train_mode():
        rows = npx.dropout(x, p=0.5, axes=(1,)).asnumpy()
    assert (rows == rows[:, :1]).all()
    with pytest.raises(ValueError, match="p is the fraction"):
        npx.dropout(x, p=1.5)
    with pytest.raises(ValueError, match="mode"):
        npx.dropout(x, mode="sometimes")


def test_dropouts_gradient_is_its_mask():
    x = np.ones((100,))
    x.attach_grad()
    with autograd.record():
        y = npx.dropout(x)
    y.backward()
    assert x.grad.tolist() == y.tolist()


def test_fully_connected_takes_no_bias_by_default():
    x, w, b = np.ones((2, 3)), np.ones((4, 3)), np.ones(4)
    assert npx.fully_connected(x, w, b, num_hidden=4).tolist() == [[3] * 4] * 2
    assert npx.fully_connected(x, w, b, num_hidden=4, no_bias=False).tolist() == [[4] * 4] * 2
    with pytest.raises(TypeError, match="needs a bias"):
        npx.fully_connected(x, w, num_hidden=4, no_bias=False)


def test_convolution_wants_a_bias_or_no_bias():
    x, w = np.ones((1, 1, 3, 3)), np.ones((2, 1, 2, 2))
    with pytest.raises(TypeError, match="no_bias=True"):
        npx.convolution(x, w, kernel=(2, 2), num_filter=2)
    y = npx.convolution(x, w, np.array([0.0, 1.0]), kernel=(2, 2), num_filter=2)
    assert y.asnumpy()[0, :, 0, 0].tolist() == [4, 5]


def test_deconvolution_is_the_transpose():
    rng = onp.random.RandomState(0)
    x, y = rng.normal(size=(1, 2, 5, 5)), rng.normal(size=(1, 3, 3, 3))
    w = rng.normal(size=(3, 2, 3, 3))
    arguments = {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "no_bias": True}
    down = npx.convolution(np.array(x), np.array(w), num_filter=3, **arguments)
    up = npx.deconvolution(np.array(y), np.array(w), num_filter=2, **arguments)
    assert up.shape == x.shape
    assert (down.asnumpy() * y).sum() == pytest.approx((x * up.asnumpy()).sum(), rel=1e-10)


@pytest.mark.parametrize(("convention", "size"), [("valid", 2), ("full", 3)])
def test_pooling_conventions(convention, size):
    y = npx.pooling(np.ones((1, 1, 6)), kernel=(3,), stride=(2,), pooling_convention=convention)
    assert y.shape == (1, 1, size)


def test_pooling_of_all():
    x = np.array(X)
    assert npx.pooling(x, kernel=(1,), global_pool=True).asnumpy()[..., 0].tolist() == X.max(-1).tolist()
    mean = npx.pooling(x, kernel=(1,), global_pool=True, pool_type="avg").asnumpy()[..., 0]
    onp.testing.assert_allclose(mean, X.mean(-1), rtol=1e-5, atol=1e-6)


ACTIVATIONS = {
    "relu": lambda x: onp.maximum(x, 0),
    "sigmoid": scipy.special.expit,
    "log_sigmoid": scipy.special.log_expit,
    "tanh": onp.tanh,
    "softrelu": lambda x: onp.logaddexp(x, 0),
    "softsign": lambda x: x / (1 + abs(x)),
    "mish": lambda x: x * onp.tanh(onp.logaddexp(x, 0)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    want = ACTIVATIONS[name](X.astype("float64"))
    onp.testing.assert_allclose(
        npx.activation(np.array(X), act_type=name).asnumpy(), want, rtol=2e-5, atol=2e-6
    )


def test_activation_by_a_wrong_name():
    for name in ("swish2", None, ["relu"]):
        with pytest.raises(ValueError, match="act_type must be one of"):
            npx.activation(np.ones(1), act_type=name)


def test_prelu_and_rrelu():
    x = np.array([[-1.0, 2.0], [-3.0, -4.0]])
    assert npx.leaky_relu(x, np.array([0.5]), act_type="prelu").tolist() == [[-0.5, 2], [-1.5, -2]]
    assert npx.leaky_relu(x, np.array([0.5, 0.25]), act_type="prelu").tolist() == [[-0.5, 2], [-1.5, -1]]
    still = npx.leaky_relu(x, act_type="rrelu", lower_bound=0.1, upper_bound=0.3)
    onp.testing.assert_allclose(still.asnumpy(), [[-0.2, 2], [-0.6, -0.8]], rtol=1e-6)
    with autograd.train_mode():
        drawn = npx.leaky_relu(np.full((1000,), -1.0), act_type="rrelu", lower_bound=0.1, upper_bound=0.3)
    assert ((drawn <= -0.1) & (drawn >= -0.3)).all()
    assert len(set(drawn.tolist())) > 900
    with pytest.raises(TypeError, match="needs gamma"):
        npx.leaky_relu(x, act_type="prelu")


def test_softmax_arguments():
    x = np.array(X)
    by_axis = scipy.special.softmax(X, 1)
    onp.testing.assert_allclose(npx.softmax(x, axis=1).asnumpy(), by_axis, rtol=1e-5)
    onp.testing.assert_allclose(npx.softmax(x, 1).asnumpy(), by_axis, rtol=1e-5)
    onp.testing.assert_allclose(npx.softmin(x).asnumpy(), scipy.special.softmax(-X, -1), rtol=1e-5)
    assert npx.softmax(x, dtype="float64").dtype == "float64"
    assert npx.softmax(np.array([1, 2], dtype="int32")).dtype == "float32"


def test_softmax_of_lengths():
    x = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    y = npx.softmax(x, np.array([2, 3], dtype="int32"), use_length=True).asnumpy()
    onp.testing.assert_allclose(y[0], [*scipy.special.softmax([1.0, 2.0]), 0], rtol=1e-6)
    onp.testing.assert_allclose(y[1], scipy.special.softmax([1.0, 2.0, 3.0]), rtol=1e-6)
    assert npx.softmax(x, np.array([1, 1]), use_length=False).asnumpy()[0, 2] > 0.5


def test_masked_softmax():
    x = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    mask = np.array([[True, False, True], [False, False, False]])
    y = npx.masked_softmax(x, mask).asnumpy()
    onp.testing.assert_allclose(y[0, [0, 2]], scipy.special.softmax([1.0, 3.0]), rtol=1e-6)
    assert y[0, 1] == 0
    assert y[1].tolist() == [0, 0, 0]
    logs = npx.masked_log_softmax(x, mask).asnumpy()
    assert logs[0, 1] == -onp.inf
    assert logs[0, 2] == pytest.approx(scipy.special.log_softmax([1.0, 3.0])[1], rel=1e-6)


def test_smooth_l1():
    x = np.array([-2.0, -0.1, 0.5])
    onp.testing.assert_allclose(npx.smooth_l1(x).asnumpy(), [1.5, 0.005, 0.125], rtol=1e-6)
    onp.testing.assert_allclose(npx.smooth_l1(x, scalar=2.0).asnumpy(), [1.875, 0.02, 0.375], rtol=1e-6)


def test_topk_forms():
    x = np.array([[3.0, 1.0, 2.0]])
    assert npx.topk(x, k=2).tolist() == [[0, 2]]
    assert npx.topk(x, k=2, ret_typ="value").tolist() == [[3, 2]]
    both = npx.topk(x, k=2, ret_typ="both")
    assert isinstance(both, list)
    assert [b.tolist() for b in both] == [[[3, 2]], [[0, 2]]]
    assert npx.topk(x, k=2, ret_typ="mask").tolist() == [[1, 0, 1]]
    assert npx.topk(x, k=1, dtype="int64").dtype == "int64"


def test_pick_one_hot_and_labels_as_floats():
    x, labels = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 0.0])
    assert npx.pick(x, labels).tolist() == [2, 3]
    assert npx.pick(x, np.array([5.0, -5.0])).tolist() == [2, 3]
    assert npx.pick(x, labels, keepdims=True).shape == (2, 1)
    assert npx.one_hot(np.array([1.0, 7.0, -1.0]), 2).tolist() == [[0, 1], [0, 0], [0, 0]]
    assert x[np.array([0.0, 1.0]), labels].tolist() == [2, 3]
    assert npx.embedding(labels, x, 2, 2).tolist() == [[3, 4], [1, 2]]
    with pytest.raises(IndexError, match="out of bounds"):
        npx.embedding(np.array([2.0]), x, 2, 2).wait_to_read()


def test_sequences():
    x = np.arange(12).reshape(3, 2, 2)
    lengths = np.array([1, 3])
    masked = npx.sequence_mask(x, lengths, use_sequence_length=True, value=-1)
    assert masked.asnumpy()[:, 0].tolist() == [[0, 1], [-1, -1], [-1, -1]]
    assert masked.asnumpy()[:, 1].tolist() == [[2, 3], [6, 7], [10, 11]]
    assert npx.sequence_mask(x).tolist() == x.tolist()
    assert npx.sequence_last(x, lengths, use_sequence_length=True).tolist() == [[0, 1], [10, 11]]
    assert npx.sequence_last(x).tolist() == [[8, 9], [10, 11]]
    turned = npx.sequence_reverse(x, lengths, use_sequence_length=True)
    assert turned.asnumpy()[:, 1].tolist() == [[10, 11], [6, 7], [2, 3]]
    assert turned.asnumpy()[:, 0].tolist() == x.asnumpy()[:, 0].tolist()
    by_rows = npx.sequence_mask(np.ones((2, 3)), np.array([1, 2]), use_sequence_length=True, axis=1)
    assert by_rows.tolist() == [[1, 0, 0], [1, 1, 0]]
    with pytest.raises(ValueError, match="sequence_length must have shape"):
        npx.sequence_mask(x, np.ones(3), use_sequence_length=True)
    with pytest.raises(TypeError, match="needs sequence_length"):
        npx.sequence_mask(x, use_sequence_length=True)


def test_shapes():
    x = np.zeros((8, 3, 3, 3, 4, 4))
    for codes, reverse, shape in [
        ((-6, 2, -1, -4), False, (2, 4, 3, 3, 3, 4, 4)),
        ((-5, -4), False, (24, 3, 3, 4, 4)),
        ((-4, -5), True, (8, 3, 3, 3, 16)),
        ((-2, -1), False, (8, 432)),
    ]:
        assert npx.reshape(x, codes, reverse=reverse).shape == shape
    assert npx.reshape(np.zeros((8, 3, 2, 4, 8)), (-4, -1, 2, -6), reverse=True).shape == (8, 3, 2, 4, 4, 2)
    assert npx.reshape(np.zeros((8, 1, 1, 3)), (-2, -3, -3, -2)).shape == (8, 3)
    for codes in [(-3, -4), (-6, 3, 3, -4), (-7,), (-2, -2, -2, -2, -2, -2, -2)]:
        with pytest.raises(ValueError, match="cannot reshape"):
            npx.reshape(x, codes)
    assert npx.arange_like(np.zeros((2, 3))).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert npx.arange_like(np.zeros((3,)), repeat=2, axis=0).tolist() == [0, 0, 1]
    assert npx.batch_flatten(x).shape == (8, 432)
    assert npx.shape_array(x).tolist() == [8, 3, 3, 3, 4, 4]
    assert npx.slice(np.arange(5), begin=(1,), end=(None,), step=(2,)).tolist() == [1, 3]
    assert npx.slice_like(np.zeros((3, 4)), np.zeros((2, 2)), axes=(1,)).shape == (3, 2)
    assert npx.broadcast_like(np.zeros((1, 2)), np.zeros((5, 7)), (0,), (1,)).shape == (7, 2)
    assert npx.reshape_like(np.zeros(6), np.zeros((2, 3))).shape == (2, 3)


def test_products_and_indices():
    a, b = np.ones((2, 3, 4)), np.ones((2, 5, 4))
    assert npx.batch_dot(a, b, transpose_b=True).tolist() == [[[4] * 5] * 3] * 2
    with pytest.raises(ValueError, match="batch_dot"):
        npx.batch_dot(np.ones((2, 3)), b)
    x = np.arange(6).reshape(2, 3)
    assert npx.gather_nd(x, np.array([[0, 1], [2, 0]])).tolist() == [2, 3]
    assert npx.index_update(np.zeros((2, 2)), np.array([[0], [1]]), np.array([5.0])).tolist() == [
        [0, 5],
        [0, 0],
    ]
    assert npx.index_add(np.ones(3), np.array([[0, 0]]), np.array([1.0, 2.0])).tolist() == [4, 1, 1]
    assert npx.add_n(x, x, x).tolist() == (3 * x).tolist()
    assert npx.norm(np.array([[3.0, 4.0]])).tolist() == [5]


def test_loops_and_branches_have_gradients():
    x = np.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        outputs, last = npx.foreach(lambda a, s: (a * s, s + a), x, np.array(1.0))
        total = outputs.sum() + last
    total.backward()
    assert outputs.tolist() == [1, 4, 12]
    assert last.item() == 7
    assert x.grad.tolist() == [1 + 2 + 3 + 1, 2 + 3 + 1, 4 + 1]
    outputs, state = npx.while_loop(
        lambda i, s: i < 4, lambda i, s: (s, (i + 1, s + i)), (np.array(0), np.array(0)), 6
    )
    assert outputs.tolist() == [0, 0, 1, 3, 0, 0]
    assert [v.item() for v in state] == [4, 6]
    assert npx.cond(np.array(0), lambda a: a, lambda a: -a, np.array(3)).item() == -3
    with pytest.raises(ValueError, match="max_iterations"):
        npx.while_loop(lambda i: i < 4, lambda i: (i, i + 1), np.array(0))


def test_what_has_not_arrived_says_so():
    with pytest.raises(NotImplementedError, match="roi_pooling has not arrived"):
        npx.roi_pooling(1)
    with pytest.raises(NotImplementedError, match="has not arrived"):
        mx.nd.array([1])
    assert not hasattr(npx, "no_such_name")
