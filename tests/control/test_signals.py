"""What Ctrl-C does to a run, the first, second and third time."""

import os
import signal

import pytest

from control.commands.apply import steered_by_signals


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
    assert first.startswith("plimsoll: stopping; moves that run are let finish")
    assert second == "plimsoll: aborting; moves that run are cancelled"


def test_afterwards_signals_do_what_they_did_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with steered_by_signals():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
