"""Effects of the first, second and third Ctrl-C on a run, and of a hang-up."""

import os
import signal

import pytest

from control.cli.plan_execution import steered_by_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_then_aborts_then_interrupts(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    aborted: list[bool] = []
    with steered_by_signals(lambda: aborted.append(True)) as steering:
        os.kill(os.getpid(), number)
        assert steering.stopping.is_set()
        assert (steering.aborting, aborted) == (False, [])
        os.kill(os.getpid(), number)
        assert (steering.aborting, aborted) == (True, [True])
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("plimsoll: stopping; waiting for in-flight moves")
    assert second == "plimsoll: aborting; cancelling in-flight moves"


def test_without_a_run_in_progress_there_is_nothing_to_wait_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with steered_by_signals(moving=lambda: False) as steering:
        os.kill(os.getpid(), signal.SIGTERM)
        assert steering.stopping.is_set()
    assert capsys.readouterr().err == "plimsoll: stopping\n"


def test_a_terminal_that_vanishes_stops_a_run_and_never_aborts_it() -> None:
    with steered_by_signals() as steering:
        for _ in range(3):
            # The kernel and a shell may each send one.
            os.kill(os.getpid(), signal.SIGHUP)
        assert steering.stopping.is_set()
        assert not steering.aborting


def test_under_nohup_a_run_outlives_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with steered_by_signals() as steering:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not steering.stopping.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_afterwards_signals_behave_as_before(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with steered_by_signals():
        assert signal.getsignal(number) is not before
    assert signal.getsignal(number) is before
