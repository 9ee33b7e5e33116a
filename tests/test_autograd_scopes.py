"""The flags of recording and training in every nesting of MXNet's scopes, per thread, and put back after errors."""

import threading

import numpy as onp
import pytest

from mxnp import autograd, np, npx


def flags():
    return autograd.is_recording(), autograd.is_training()


def test_outside_everything():
    assert flags() == (False, False)


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        (autograd.record, None, (True, True)),
        (lambda: autograd.record(train_mode=False), None, (True, False)),
        (autograd.pause, None, (False, False)),
        (lambda: autograd.pause(train_mode=True), None, (False, True)),
        (autograd.train_mode, None, (False, True)),
        (autograd.predict_mode, None, (False, False)),
        (autograd.record, autograd.pause, (False, False)),
        (autograd.record, lambda: autograd.pause(train_mode=True), (False, True)),
        (autograd.record, autograd.predict_mode, (True, False)),
        (autograd.record, autograd.train_mode, (True, True)),
        (lambda: autograd.record(train_mode=False), autograd.train_mode, (True, True)),
        (autograd.pause, autograd.record, (True, True)),
        (autograd.train_mode, autograd.record, (True, True)),
        (autograd.train_mode, autograd.predict_mode, (False, False)),
        (autograd.record, lambda: autograd.record(train_mode=False), (True, False)),
    ],
)
def test_the_flags_in_a_scope(outer, inner, expected):
    with outer():
        before = flags()
        if inner is None:
            assert before == expected
        else:
            with inner():
                assert flags() == expected
            assert flags() == before
    assert flags() == (False, False)


def test_an_error_puts_the_flags_back():
    with pytest.raises(KeyError), autograd.record(), autograd.predict_mode():
        raise KeyError
    assert flags() == (False, False)


def test_one_scope_object_may_be_entered_again():
    scope = autograd.record()
    for _ in range(2):
        with scope:
            assert flags() == (True, True)
            with scope:
                assert flags() == (True, True)
            assert flags() == (True, True)
        assert flags() == (False, False)


def test_setters_give_the_former_value():
    assert autograd.set_recording(True) is False
    assert autograd.set_recording(False) is True
    assert autograd.set_training(True) is False
    assert autograd.set_training(False) is True


def test_new_threads_start_outside():
    seen = []
    with autograd.record():
        thread = threading.Thread(target=lambda: seen.append(flags()))
        thread.start()
        thread.join()
        assert flags() == (True, True)
    assert seen == [(False, False)]


def test_dropout_obeys_the_training_flag():
    x = np.ones((1000,))
    assert (npx.dropout(x) == 1).all()
    with autograd.train_mode():
        dropped = npx.dropout(x)
    assert set(onp.unique(dropped.asnumpy()).tolist()) == {0.0, 2.0}
    with autograd.record(train_mode=False):
        assert (npx.dropout(x) == 1).all()
    assert (npx.dropout(x, mode="always") == 0).any()


def test_nothing_is_recorded_in_pause():
    x = np.array([3.0])
    x.attach_grad()
    with autograd.record():
        with autograd.pause():
            constant = x * 2
        y = x * constant
    y.backward()
    assert x.grad.item() == 6
