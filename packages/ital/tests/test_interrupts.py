"""Ctrl-C always ends a command, also where a library swallows exceptions."""

import signal
import time

import pytest

from ital.tools import interrupts


@pytest.fixture
def handled(monkeypatch):
    monkeypatch.setattr(interrupts, "_received", set())
    before = {number: signal.getsignal(number) for number in interrupts.SIGNALS}
    interrupts.raise_and_note()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", interrupts.SIGNALS)
@pytest.mark.usefixtures("handled")
def test_it_raises_where_it_arrives(number):
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    assert interrupts.terminated() == (number == signal.SIGTERM)


@pytest.mark.usefixtures("handled")
def test_each_signal_is_deferred_once_and_the_second_of_a_kind_stops_at_once():
    for first, other in (interrupts.SIGNALS, reversed(interrupts.SIGNALS)):
        interrupts.raise_and_note()
        with interrupts.deferred() as interrupted:
            assert not interrupted()
            signal.raise_signal(first)
            assert interrupted()
            signal.raise_signal(other)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(first)
        with interrupts.deferred() as interrupted:  # it was swallowed by something in between
            assert interrupted()


@pytest.mark.usefixtures("handled")
def test_a_program_that_uses_ital_keeps_its_own_way_with_sigterm():
    own = []
    interrupts.raise_and_note()
    signal.signal(signal.SIGTERM, lambda number, frame: own.append(number))
    with interrupts.deferred() as interrupted:
        signal.raise_signal(signal.SIGTERM)
        assert not interrupted()
    assert own == [signal.SIGTERM]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with interrupts.deferred():
        signal.raise_signal(signal.SIGINT)
    with interrupts.deferred() as interrupted:  # the next run is not ended by it
        assert not interrupted()


@pytest.mark.usefixtures("handled")
def test_in_a_callback_that_swallows_exceptions_it_raises_a_moment_later():
    def _xla_gc_callback():
        signal.raise_signal(signal.SIGINT)
        return "not raised here"

    assert _xla_gc_callback() == "not raised here"
    with pytest.raises(KeyboardInterrupt):
        time.sleep(5)


def test_a_signal_of_an_earlier_command_does_not_count_for_the_next_run(monkeypatch):
    monkeypatch.setattr(interrupts, "_received", {signal.SIGINT})
    with interrupts.deferred() as interrupted:
        assert not interrupted()
