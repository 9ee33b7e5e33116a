"""Draws: distributions by the Kolmogorov-Smirnov test on fixed seeds, reproducibility, orders, choices, bad input."""

from hashlib import sha256

import numpy as onp
import pytest
from scipy import stats

import mxnp as mx
from mxnp import _core, npx
from mxnp import np as mnp

COUNT = 20_000

DISTRIBUTIONS = {
    "uniform": (lambda r: r.uniform(-2, 3, size=COUNT), stats.uniform(-2, 5)),
    "normal": (lambda r: r.normal(1, 2, size=COUNT), stats.norm(1, 2)),
    "randn": (lambda r: r.randn(COUNT), stats.norm()),
    "rand": (lambda r: r.rand(COUNT), stats.uniform()),
    "random": (lambda r: r.random(COUNT), stats.uniform()),
    "exponential": (lambda r: r.exponential(2.0, size=COUNT), stats.expon(scale=2)),
    "gumbel": (lambda r: r.gumbel(1, 2, size=COUNT), stats.gumbel_r(1, 2)),
    "logistic": (lambda r: r.logistic(1, 2, size=COUNT), stats.logistic(1, 2)),
    "laplace": (lambda r: r.laplace(1, 2, size=COUNT), stats.laplace(1, 2)),
    "lognormal": (lambda r: r.lognormal(0.5, 0.75, size=COUNT), stats.lognorm(0.75, scale=onp.exp(0.5))),
    "rayleigh": (lambda r: r.rayleigh(2.0, size=COUNT), stats.rayleigh(scale=2)),
    "weibull": (lambda r: r.weibull(1.5, size=COUNT), stats.weibull_min(1.5)),
    "pareto": (lambda r: r.pareto(3.0, size=COUNT), stats.lomax(3)),
    "power": (lambda r: r.power(2.5, size=COUNT), stats.powerlaw(2.5)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions(name, dtype):
    draw, wanted = DISTRIBUTIONS[name]
    npx.set_np(dtype=dtype == "float64")
    mnp.random.seed(11)
    x = draw(mnp.random)
    assert x.dtype == dtype
    values = x.asnumpy().astype("float64")
    assert onp.isfinite(values).all()
    assert stats.kstest(values, wanted.cdf).pvalue > 1e-3


def test_integers_are_equally_likely():
    x = mnp.random.randint(-3, 7, size=COUNT)
    assert x.dtype == "int64"
    counts = onp.bincount(x.asnumpy() + 3, minlength=10)
    assert len(counts) == 10
    assert stats.chisquare(counts).pvalue > 1e-3
    assert mnp.random.randint(4, size=(2,), dtype="int8").dtype == "int8"
    assert set(mnp.random.randint(2, size=100).tolist()) == {0, 1}


@pytest.mark.parametrize("prob", [0.0, 0.25, 1.0])
def test_bernoulli(prob):
    x = npx.random.bernoulli(prob, size=COUNT)
    assert x.dtype == "float32"
    ones = int(x.asnumpy().sum())
    assert abs(ones - COUNT * prob) <= 4 * (COUNT * prob * (1 - prob)) ** 0.5
    y = npx.random.bernoulli(logit=mnp.array([-100.0, 100.0]))
    assert y.tolist() == [0, 1]
    with pytest.raises(ValueError, match="one of prob and logit"):
        npx.random.bernoulli()


@pytest.mark.parametrize("draw", [mnp.random.seed, mx.random.seed, npx.seed, npx.random.seed])
def test_a_seed_fixes_everything(draw):
    def everything():
        draw(42)
        return [
            mnp.random.uniform(size=3),
            mnp.random.normal(size=(2, 2)),
            mnp.random.permutation(10),
            mnp.random.choice(5, 4, p=[0.1, 0.2, 0.3, 0.2, 0.2]),
            npx.dropout(mnp.ones(10), mode="always"),
        ]

    first, second = everything(), everything()
    for a, b in zip(first, second, strict=True):
        assert a.tolist() == b.tolist()
    assert mnp.random.uniform(size=3).tolist() != first[0].tolist()


def test_initialisers_draw_from_their_own_stream():
    mnp.random.seed(1)
    plain = mnp.random.uniform(size=3).tolist()
    mnp.random.seed(1)
    with _core.init_stream():
        mnp.random.uniform(size=100)
    assert mnp.random.uniform(size=3).tolist() == plain


def test_unseeded_programs_differ():
    mnp.random.seed()
    first = mnp.random.uniform(size=4).tolist()
    mnp.random.seed()
    assert mnp.random.uniform(size=4).tolist() != first


def test_parameters_broadcast():
    x = mnp.random.normal(mnp.array([0.0, 100.0]), 1.0, size=(3, 2)).asnumpy()
    assert (abs(x - [0, 100]) < 50).all()
    assert mnp.random.uniform(mnp.zeros((2, 1)), mnp.ones(3)).shape == (2, 3)
    assert npx.random.normal_n(mnp.zeros(3), 1.0, batch_shape=(4,)).shape == (4, 3)
    assert mnp.random.uniform().shape == ()


def test_gradients_of_parameters():
    """A draw moves with its parameters."""
    scale = mnp.array([2.0])
    scale.attach_grad()
    with mx.autograd.record():
        x = mnp.random.normal(5.0, scale, size=(4,))
    x.backward()
    assert scale.grad.item() == pytest.approx(((x - 5) / 2).sum().item(), rel=1e-5)


def test_permutation_and_shuffle():
    p = mnp.random.permutation(100)
    assert p.dtype == "int64"
    assert sorted(p.tolist()) == list(range(100))
    assert p.tolist() != list(range(100))
    rows = mnp.arange(20).reshape(10, 2)
    assert sorted(mnp.random.permutation(rows).tolist()) == rows.tolist()
    kept = rows.tolist()
    assert mnp.random.shuffle(rows) is None
    assert sorted(rows.tolist()) == kept
    assert rows.tolist() != kept
    cards = list(range(50))
    mnp.random.shuffle(cards)
    assert sorted(cards) == list(range(50)) != cards
    assert mx.random.shuffle(mnp.arange(5)).shape == (5,)
    with pytest.raises(TypeError, match="shuffle"):
        mnp.random.shuffle(mnp.array(1.0))


def test_every_order_is_equally_likely():
    seen: dict[tuple, int] = {}
    for _ in range(1200):
        order = tuple(mnp.random.permutation(3).tolist())
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 6
    assert stats.chisquare(list(seen.values())).pvalue > 1e-3


@pytest.mark.parametrize("replace", [True, False])
def test_choice(replace):
    letters = mnp.array([10.0, 20.0, 30.0, 40.0])
    x = mnp.random.choice(letters, size=(2, 2), replace=replace)
    assert x.shape == (2, 2)
    assert set(x.asnumpy().ravel().tolist()) <= {10, 20, 30, 40}
    if not replace:
        assert len(set(x.asnumpy().ravel().tolist())) == 4
    assert mnp.random.choice(3).shape == ()


def test_choice_by_weight():
    p = [0.1, 0.0, 0.6, 0.3]
    x = mnp.random.choice(4, size=COUNT, p=p).asnumpy()
    counts = onp.bincount(x, minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], onp.array([0.1, 0.6, 0.3]) * COUNT).pvalue > 1e-3
    firsts = [mnp.random.choice(4, 2, replace=False, p=p).tolist() for _ in range(200)]
    assert all(len(set(pair)) == 2 and 1 not in pair for pair in firsts)
    with pytest.raises(ValueError, match="Fewer non-zero entries"):
        mnp.random.choice(4, 4, replace=False, p=p)


def test_multinomial_and_categorical():
    counts = mnp.random.multinomial(100, [0.2, 0.3, 0.5], size=(50,))
    assert counts.shape == (50, 3)
    assert (counts.sum(-1) == 100).all()
    total = counts.sum(0).asnumpy()
    assert stats.chisquare(total, onp.array([0.2, 0.3, 0.5]) * 5000).pvalue > 1e-3
    x = mx.random.categorical(mnp.array([[0.0, 1.0], [1.0, 0.0]]), 5)
    assert x.tolist() == [[1] * 5, [0] * 5]
    found, logs = mx.random.categorical(mnp.array([[0.0, 1.0]]), 2, get_prob=True)
    assert found.shape == logs.shape
    assert logs.tolist() == [[0, 0]]


def test_signatures_of_1x():
    assert mx.random.uniform(0, 1, shape=(2, 3)).shape == (2, 3)
    assert mx.random.normal(0, 1, (4,)).shape == (4,)
    assert mx.random.randn(2, 3).shape == (2, 3)
    assert mx.random.randint(0, 5, shape=(3,)).dtype == "int32"
    assert mx.random.exponential(1.0, (2,)).shape == (2,)
    assert mx.rnd is mx.random
    with pytest.raises(NotImplementedError, match="has not arrived"):
        mx.random.poisson(1)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda r: r.uniform(size=(-1,)), ValueError, "negative dimensions"),
        (lambda r: r.normal(0, -1, size=2), ValueError, "scale"),
        (lambda r: r.exponential(-1.0, size=2), ValueError, "scale"),
        (lambda r: r.randint(5, 5), ValueError, "low >= high"),
        (lambda r: r.randint(0, 300, dtype="uint8"), ValueError, "out of bounds for uint8"),
        (lambda r: r.randint(0, 3, dtype="float32"), TypeError, "integer"),
        (lambda r: r.normal(mnp.ones(3), 1, size=(2,)), ValueError, "broadcast"),
        (lambda r: r.choice(0, 2), ValueError, "cannot be empty"),
        (lambda r: r.choice(3, 4, replace=False), ValueError, "larger sample"),
        (lambda r: r.choice(3, 1, p=[0.5, 0.5]), ValueError, "same size"),
        (lambda r: r.choice(2, 1, p=[0.5, 0.6]), ValueError, "sum to 1"),
        (lambda r: r.choice(2, 1, p=[-0.5, 1.5]), ValueError, "non-negative"),
        (lambda r: r.choice(mnp.ones((2, 2))), ValueError, "1-dimensional"),
        (lambda r: r.permutation(-1), ValueError, "at least 0"),
        (lambda r: r.seed("one"), ValueError, "expected an integer"),
        (lambda r: r.multinomial(3, [0.9, 0.9, 0.1]), ValueError, "sum"),
    ],
)
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call(mnp.random)


def test_the_seed_takes_a_device_or_context():
    import mxnp

    draws = []
    for arguments in ({}, {"ctx": "all"}, {"ctx": mxnp.cpu()}, {"device": mxnp.cpu(1)}):
        mxnp.random.seed(7, **arguments)
        draws.append(mnp.random.uniform(size=3).tolist())
    assert draws == [draws[0]] * 4


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "name", ["exponential", "gumbel", "laplace", "logistic", "normal", "rayleigh", "uniform"]
)
def test_draws_have_the_dtype_asked_for(name, dtype):
    draws = getattr(mnp.random, name)(size=(COUNT,), dtype=dtype)
    assert draws.dtype == dtype
    assert onp.isfinite(draws.asnumpy()).all()


def test_permutations_stay_what_they_are():
    """A function of the seed, the draw and n: the same on every machine and for any number of threads."""
    mnp.random.seed(5)
    found = [
        sha256(mnp.random.permutation(n).asnumpy().tobytes()).hexdigest()[:16] for n in (10, 1000, 300_000)
    ]
    assert found == ["a04893271f05e866", "463d9232eec3e5b8", "0a49877e00a1e8d5"]


@pytest.mark.parametrize("n", [4096, 4097, 100_000])
def test_items_of_a_long_permutation_are_equally_likely_everywhere(n):
    """Kendall's and Spearman's measures of order, runs up, and fixed points, of twenty draws with one seed."""
    mnp.random.seed(11)
    fixed, rises, correlations = [], [], []
    for _ in range(20):
        p = mnp.random.permutation(n).asnumpy()
        fixed.append((p == onp.arange(n)).sum())
        rises.append((p[1:] > p[:-1]).sum())
        correlations.append(onp.corrcoef(p, onp.arange(n))[0, 1])
    # Poisson with mean 1; the mean (n - 1) / 2 and the variance (n + 1) / 12; the variance 1 / (n - 1).
    assert abs(onp.sum(fixed) - 20) < 4 * 20**0.5
    assert abs(onp.mean(rises) - (n - 1) / 2) < 4 * ((n + 1) / 12 / 20) ** 0.5
    assert abs(onp.mean(correlations)) < 4 / (20 * (n - 1)) ** 0.5
