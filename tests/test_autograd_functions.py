"""autograd.grad, backward and mark_variables as MXNet programs call them, and Functions with their own gradient."""

import weakref

import numpy as onp
import pytest

from mxnp import autograd, gluon, np, npx
from mxnp.error import MXNetError


def leaf(values):
    x = np.array(values)
    x.attach_grad()
    return x


def test_backward_takes_one_head_or_several():
    x = leaf([1.0, 2.0])
    with autograd.record():
        y, z = x * 2, x * x
    autograd.backward([y, z], head_grads=[np.array([1.0, 10.0]), None])
    assert x.grad.tolist() == [4, 24]
    with autograd.record():
        y = x * 5
    autograd.backward(y)
    assert x.grad.tolist() == [5, 5]


def test_head_gradients_must_match_the_heads():
    x = leaf([1.0, 2.0])
    with autograd.record():
        y = x * 2
    with pytest.raises(ValueError, match="1 heads, but 2 head gradients"):
        autograd.backward([y], [None, None])
    with pytest.raises(ValueError, match="shape"):
        y.backward(np.ones((3,)))


def test_heads_must_be_recorded_arrays():
    with pytest.raises(TypeError, match="expected arrays, got int"):
        autograd.backward([3])
    with pytest.raises(MXNetError):
        np.ones(2).backward()


def test_a_second_backward_needs_retain_graph():
    x = leaf([2.0])
    with autograd.record():
        y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 4
    with pytest.raises(MXNetError, match="retain_graph"):
        y.backward()


def test_grad_always_gives_a_list_and_changes_nothing():
    x = leaf([1.0, 2.0])
    with autograd.record():
        y = (x * x).sum()
    found = autograd.grad(y, x)
    assert isinstance(found, list)
    assert found[0].tolist() == [2, 4]
    assert x.grad.tolist() == [0, 0]


def test_grad_of_no_variables():
    x = leaf([1.0])
    with autograd.record():
        y = x * x
    with pytest.raises(ValueError, match="empty list"):
        autograd.grad(y, [])


def test_grad_req_add_and_null():
    x = np.array([1.0])
    x.attach_grad("add")
    for _ in range(3):
        with autograd.record():
            y = x * 2
        y.backward()
    assert x.grad.item() == 6
    with pytest.raises(ValueError, match=r"grad_req|write"):
        x.attach_grad("often")


def test_attach_grad_again_zeroes():
    x = leaf([1.0])
    with autograd.record():
        y = x * 2
    y.backward()
    x.attach_grad()
    assert x.grad.item() == 0


def test_the_gradient_is_one_array():
    x = leaf([1.0])
    before = x.grad
    with autograd.record():
        y = x * 3
    y.backward()
    assert x.grad is before
    assert before.item() == 3


def test_mark_variables_fills_the_arrays_given():
    xs, gs = [np.array([1.0]), np.array([2.0])], [np.zeros(1), np.ones(1)]
    autograd.mark_variables(xs, gs, ["write", "add"])
    with autograd.record():
        y = xs[0] * xs[1]
    y.backward()
    assert [g.item() for g in gs] == [2, 2]


def test_gradients_of_gradients():
    x = leaf([2.0])
    with autograd.record():
        y = np.exp(x) * x
        (first,) = autograd.grad(y, x, create_graph=True)
        (second,) = autograd.grad(first, x, create_graph=True)
    second.backward()
    assert x.grad.item() == pytest.approx((3 + 2) * onp.exp(2), rel=1e-6)


def test_second_order_through_layers():
    """The gradient penalty of a network: the derivative of a squared gradient, against differences."""
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(5, activation="tanh"), gluon.nn.Dense(1))
    net.initialize()
    x = np.random.normal(size=(3, 4))
    net(x)
    weight = net[0].weight

    def penalty():
        inputs = x.copy()
        inputs.attach_grad()
        with autograd.record():
            out = net(inputs).sum()
            (slope,) = autograd.grad(out, inputs, create_graph=True)
            return (slope * slope).sum()

    penalty().backward()
    found = weight.grad().asnumpy().copy()
    direction = onp.random.RandomState(0).normal(size=found.shape).astype("float32")
    kept, values = weight.data().copy(), []
    for sign in (1, -1):
        weight.set_data(kept + sign * 1e-2 * np.array(direction))
        values.append(penalty().item())
    assert (found * direction).sum() == pytest.approx((values[0] - values[1]) / 2e-2, rel=2e-2, abs=1e-3)


class Clipped(autograd.Function):
    """Identity whose gradient is clipped to [-1, 1]."""

    def forward(self, x):
        return x

    def backward(self, dy):
        return np.clip(dy, -1, 1)


class Split(autograd.Function):
    """Two results of two inputs."""

    def forward(self, x, y):
        self.save_for_backward(x, y)
        return x * y, x + y

    def backward(self, dp, ds):
        x, y = self.saved_tensors
        return dp * y + ds, dp * x + ds


def test_a_function_may_return_its_input():
    x = leaf([1.0, 2.0])
    with autograd.record():
        y = (Clipped()(x) * np.array([5.0, 0.5])).sum()
    y.backward()
    assert x.grad.tolist() == [1, 0.5]


def test_a_function_of_two_inputs_and_two_results():
    x, y = leaf([2.0]), leaf([5.0])
    with autograd.record():
        product, total = Split()(x, y)
        z = product * 10 + total
    z.backward()
    assert (x.grad.item(), y.grad.item()) == (51, 21)


def test_an_unused_result_gets_a_gradient_of_zeros():
    x, y = leaf([2.0]), leaf([5.0])
    with autograd.record():
        product, _ = Split()(x, y)
    product.backward()
    assert (x.grad.item(), y.grad.item()) == (5, 2)


def test_a_function_runs_once():
    function = Clipped()
    function(np.ones(1))
    with pytest.raises(MXNetError, match="only be called once"):
        function(np.ones(1))


def test_a_function_outside_record_is_its_forward():
    assert not autograd.is_recording()
    assert Split()(np.array([2.0]), np.array([3.0]))[0].item() == 6


def test_forward_is_not_recorded():
    seen = []

    class Watch(autograd.Function):
        def forward(self, x):
            seen.append(autograd.is_recording())
            return x * 2

        def backward(self, dy):
            return dy * 2

    x = leaf([1.0])
    with autograd.record():
        Watch()(x).backward()
    assert seen == [False]
    assert x.grad.item() == 2


def test_a_failing_forward_puts_recording_back():
    class Failing(autograd.Function):
        def forward(self, x):
            raise KeyError("no")

    with autograd.record():
        with pytest.raises(KeyError):
            Failing()(np.ones(1))
        assert autograd.is_recording()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda g: (g, g), "must return 1 gradients, one for each input, got 2"),
        (lambda g: np.ones(3), r"Wrong\.backward: gradient 0 has shape \(3,\), the input has \(1,\)"),
        (lambda g: 2.5, r"Wrong\.backward: gradient 0 must be an array or None, got float"),
        (lambda g: [g.asnumpy()], r"Wrong\.backward: gradient 0 must be an array or None, got ndarray"),
        (lambda g: [], "Wrong.backward must return 1 gradients, one for each input, got 0"),
    ],
)
def test_a_wrong_backward_says_so(answer, message):
    class Wrong(autograd.Function):
        def forward(self, x):
            return x * 2

        def backward(self, dy):
            return answer(dy)

    x = leaf([1.0])
    with autograd.record():
        y = Wrong()(x)
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        y.backward()
    assert isinstance(caught.value, MXNetError)


def test_the_second_gradient_is_named():
    class Wrong(autograd.Function):
        def forward(self, x, y):
            return x * y

        def backward(self, dy):
            return dy, "dy"

    x, y = leaf([1.0]), leaf([2.0])
    with autograd.record():
        z = Wrong()(x, y)
    with pytest.raises(TypeError, match=r"Wrong\.backward: gradient 1 must be an array or None, got str"):
        z.backward()


def test_a_gradient_of_another_dtype_becomes_the_inputs():
    class Double(autograd.Function):
        def forward(self, x):
            return x.astype("float64")

        def backward(self, dy):
            return dy * 2

    x = leaf([1.0])
    with autograd.record():
        y = Double()(x * 3)
    y.backward()
    assert x.grad.dtype == "float32"
    assert x.grad.item() == 6


@pytest.mark.parametrize("uses_it", [False, True])
def test_a_function_that_holds_its_result_is_freed(uses_it):
    class Holding(autograd.Function):
        def forward(self, x):
            self.save_for_backward(x)
            return x * 2

        def backward(self, dy):
            return dy * 2 * self.saved_tensors[0]

    x = leaf([3.0])
    function = Holding()
    with autograd.record():
        function.result = function(x)
        function.more = function.result * 2
    if uses_it:
        function.more.backward()
        assert x.grad.item() == 12
    gone = weakref.ref(function)
    del function
    assert gone() is None


def test_backward_runs_on_the_instance_while_the_program_has_it():
    class Counting(autograd.Function):
        calls = 0

        def forward(self, x):
            self.factor = 2
            return x * 2

        def backward(self, dy):
            self.calls += 1
            return dy * self.factor

    x, function = leaf([3.0]), Counting()
    with autograd.record():
        y = function(x)
    y.backward()
    assert function.calls == 1
    with autograd.record():
        y = Counting()(x)
    y.backward()
    assert x.grad.item() == 2


def test_functions_inside_a_network():
    class Layer(gluon.HybridBlock):
        def forward(self, x):
            return Clipped()(x)

    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(2), Layer())
    net.initialize()
    x = leaf([[1.0, 2.0]])
    with autograd.record():
        loss = (net(x) * 100).sum()
    loss.backward()
    assert x.grad.tolist() == net[0].weight.data().sum(0, keepdims=True).tolist()


@pytest.mark.parametrize(
    ("function", "at", "slope"),
    [
        (np.abs, 0.0, 0.0),
        (npx.relu, 0.0, 0.0),
        (lambda x: np.maximum(x, 0), 0.0, 1.0),
        (lambda x: np.clip(x, 0, 1), 0.0, 1.0),
        (lambda x: np.clip(x, 0, 1), 1.0, 1.0),
        (np.linalg.norm, 0.0, 0.0),
    ],
)
def test_subgradients(function, at, slope):
    x = leaf([at])
    with autograd.record():
        y = function(x)
    y.backward()
    assert x.grad.item() == slope


def test_ties_of_max_get_one_each():
    x = leaf([2.0, 2.0, 1.0])
    with autograd.record():
        y = x.max()
    y.backward()
    assert x.grad.tolist() == [1, 1, 0]
