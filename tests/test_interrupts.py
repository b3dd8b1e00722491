"""Ctrl-C always ends a command, also where a library swallows exceptions."""

import signal
import time

import pytest

from ital import _interrupts


@pytest.fixture
def handled(monkeypatch):
    monkeypatch.setattr(_interrupts, "_pending", False)
    before = signal.getsignal(signal.SIGINT)
    _interrupts.raise_and_note()
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("handled")
def test_it_raises_where_it_arrives():
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("handled")
def test_in_a_callback_that_swallows_exceptions_it_raises_a_moment_later():
    def _xla_gc_callback():
        signal.raise_signal(signal.SIGINT)
        return "not raised here"

    assert _xla_gc_callback() == "not raised here"
    with pytest.raises(KeyboardInterrupt):
        time.sleep(5)
