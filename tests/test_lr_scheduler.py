"""Schedules against MXNet 2.0.0b1's answers, and their argument checks."""

import pickle

import pytest

from mxnp import lr_scheduler
from mxnp.error import MXNetError
from mxnp.lr_scheduler import (
    CosineScheduler,
    FactorScheduler,
    LRScheduler,
    MultiFactorScheduler,
    PolyScheduler,
)

# fmt: off
RECORDED = [  # what MXNet answers for updates 0, 1, 2, ...
    (FactorScheduler(3, 0.5, base_lr=1.0),
     [1, 1, 1, 1, .5, .5, .5, .25, .25, .25, .125, .125, .125, .0625]),
    (FactorScheduler(2, 0.1, stop_factor_lr=0.02, base_lr=1.0),
     [1, 1, 1, .1, .1, .02, .02, .02, .02, .02]),
    (FactorScheduler(3, 0.5, base_lr=1.0, warmup_steps=4, warmup_begin_lr=0.2),
     [.2, .4, .6, .8, .5, .5, .5, .25, .25, .25, .125, .125, .125, .0625]),
    (MultiFactorScheduler([3, 7], 0.5, base_lr=1.0),
     [1, 1, 1, 1, .5, .5, .5, .5, .25, .25, .25, .25]),
    (MultiFactorScheduler([3, 7], 0.5, 1.0, warmup_steps=2, warmup_mode="constant", warmup_begin_lr=.1),
     [.1, .1, 1, 1, .5, .5, .5, .5, .25, .25, .25, .25]),
    (PolyScheduler(8, base_lr=1.0, pwr=2, final_lr=.1),
     [1, .7890625, .60625, .4515625, .325, .2265625, .15625, .1140625, .1, .1, .1, .1]),
    (PolyScheduler(8, base_lr=1.0, pwr=1, final_lr=.1, warmup_steps=3, warmup_begin_lr=.4),
     [.4, .6, .8, 1, .82, .64, .46, .28, .1, .1, .1, .1]),
    (CosineScheduler(8, base_lr=1.0, final_lr=.1),
     [1, .96574579, .86819805, .72220754, .55, .37779246, .23180195, .13425421, .1, .1, .1, .1]),
    (CosineScheduler(10, base_lr=1.0, final_lr=.1, warmup_steps=4, warmup_begin_lr=.2),
     [.2, .4, .6, .8, 1, .93971143, .775, .55, .325, .16028857, .1, .1, .1, .1]),
]
# fmt: on


@pytest.mark.parametrize(("schedule", "expected"), RECORDED, ids=lambda x: type(x).__name__)
def test_values_match_mxnet(schedule, expected):
    assert [schedule(n) for n in range(len(expected))] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(("schedule", "expected"), RECORDED, ids=lambda x: type(x).__name__)
def test_a_schedule_has_no_memory(schedule, expected):
    backwards = [schedule(n) for n in reversed(range(len(expected)))][::-1]
    assert backwards == [schedule(n) for n in range(len(expected))]
    assert schedule.base_lr == 1.0


def test_base_lr_may_be_assigned_later():
    schedule = CosineScheduler(10, base_lr=1.0, final_lr=0.1, warmup_steps=4, warmup_begin_lr=0.2)
    schedule.base_lr = 2.0
    assert schedule(2) == pytest.approx(1.1)
    assert schedule(4) == pytest.approx(2.0)
    assert schedule(7) == pytest.approx(1.05)
    assert schedule.warmup_final_lr == 2.0


def test_a_warm_up_as_long_as_the_schedule_ends_at_base_lr():
    schedule = CosineScheduler(5, base_lr=1.0, warmup_steps=5)
    assert [schedule(n) for n in (0, 4, 5)] == pytest.approx([0, 0.8, 1.0])


def test_pickles():
    schedule = pickle.loads(pickle.dumps(PolyScheduler(8, base_lr=1.0)))
    assert schedule(4) == 0.25


def test_a_subclass_defines_call():
    class Halving(LRScheduler):
        def __call__(self, num_update):
            return self.base_lr / 2**num_update

    assert Halving(base_lr=8.0)(2) == 2.0
    with pytest.raises(NotImplementedError, match="LRScheduler does not define __call__"):
        LRScheduler()(1)


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: FactorScheduler(0), ValueError, "FactorScheduler: step must be at least 1, got 0"),
        (lambda: FactorScheduler(1.5), TypeError, "step must be an integer, got 1.5"),
        (lambda: FactorScheduler(1, 2.0), ValueError, "factor must be at most 1, got 2.0"),
        (lambda: MultiFactorScheduler([3, 2]), ValueError, "must increase, got"),
        (lambda: MultiFactorScheduler([3, 3]), ValueError, "must increase, got"),
        (lambda: FactorScheduler(1, "x"), TypeError, "factor must be a number, got 'x'"),
        (lambda: MultiFactorScheduler([]), TypeError, "must list at least one update"),
        (lambda: MultiFactorScheduler([0, 1]), ValueError, "step must be at least 1, got 0"),
        (lambda: PolyScheduler(0), ValueError, "max_update must be at least 1, got 0"),
        (lambda: PolyScheduler(2.5), TypeError, "max_update must be an integer, got 2.5"),
        (lambda: CosineScheduler(0), ValueError, "max_update must be at least 1, got 0"),
        (lambda: LRScheduler(warmup_steps=-1), ValueError, "warmup_steps must be at least 0, got -1"),
        (lambda: LRScheduler(warmup_begin_lr=1), ValueError, "warmup_begin_lr 1 is above base_lr 0.01"),
        (lambda: LRScheduler(warmup_mode="x"), ValueError, "'linear' or 'constant', got 'x'"),
        (lambda: LRScheduler(warmup_steps=1.5), TypeError, "warmup_steps must be an integer, got 1.5"),
        (lambda: LRScheduler(base_lr="1"), TypeError, "base_lr must be a number, got '1'"),
        (lambda: LRScheduler(warmup_steps=3).get_warmup_lr(3), ValueError, "update 3 is not in the warm-up"),
    ],
)
def test_bad_arguments_are_named(make, kind, text):
    with pytest.raises(kind, match=text) as raised:
        make()
    assert isinstance(raised.value, MXNetError)


def test_public_names_are_sorted():
    assert lr_scheduler.__all__ == sorted(lr_scheduler.__all__)
