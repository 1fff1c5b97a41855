"""The throttle of one run: set before it, adjusted during it, removed after it."""

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from executor.journal.run_journal import RunJournal
from executor.run.operator_control import Steering
from executor.throttle.quota import (
    FOLLOWER_RATE,
    LEADER_RATE,
    ClusterThrottle,
    Rates,
    ThrottleSettings,
)
from executor.throttle.rates import RunRates, copying
from executor.timing import Timing
from model.errors import ExecutionStopped, PlimsollError, WriterBarred
from model.ids import BrokerId, PartitionId
from model.log_events import LogEvent, named
from model.plan.plan import Move
from model.run import JournalEvent
from model.units import rate_text

_EVERY_S: Final = 60.0
"""Seconds between two measurements of what clients leave free."""
_WORTH: Final = 0.1
"""Smallest relative change that is made."""
_AGAIN_S: Final = 30.0
"""Seconds within which several copies that fall behind raise a rate once."""
_log = logging.getLogger("plimsoll.executor")


class RunThrottle:
    """The throttle of one run, journalled before it is set. The run's thread uses it.

    `held`: the throttle already set by the run being resumed.
    """

    def __init__(
        self,
        throttle: ClusterThrottle,
        journal: RunJournal,
        rates: RunRates,
        timing: Timing,
        steering: Steering,
        held: ThrottleSettings | None = None,
    ) -> None:
        self._throttle = throttle
        self._journal = journal
        self._rates = rates
        self._timing = timing
        self._steering = steering
        self.held = held
        """What is set and not removed, by this run or the one being resumed."""
        self._open: dict[PartitionId, Move] = {}
        """Copying moves that have not ended."""
        self._begun: set[PartitionId] = set()
        """Those of them that are in the topics' lists."""
        self._looked_at_s = float("-inf")
        self._raised_at_s: dict[tuple[BrokerId, str], float] = {}
        if held is not None and not rates.is_requested:
            rates.keep(held)

    def begin(self, waiting: Sequence[Move], in_flight: Sequence[Move]) -> None:
        """Set the throttle for these moves, if one is requested.

        Raises ExecutionStopped where a broker does not accept it.
        """
        self._open = {move.id: move for move in copying([*in_flight, *waiting])}
        self._begun = {move.id for move in in_flight}
        planned = self._open and self._rates.is_requested
        if planned and (failed := self._impose()):
            raise ExecutionStopped(f"{'; '.join(failed)}; no further move was started")

    def limit(self, moves: Sequence[Move]) -> None:
        """Add moves that are about to start to the topics' lists."""
        new = [m for m in moves if m.id in self._open and m.id not in self._begun]
        if self.held is not None and new:
            self._throttle.limit(new, self.held)
        self._begun.update(move.id for move in new)

    def release(self, move: Move) -> None:
        """Remove a completed move from the topics' lists."""
        if self.held is not None:
            self._throttle.release(move, self.held)
        self._open.pop(move.id, None)

    def adjust(self) -> None:
        """Apply the operator's rate, and once a minute what clients leave free.

        Brokers that were unreachable are set once a minute, too.
        """
        for rate in self._steering.asked_rates()[-1:]:
            with _keeping_rates() as failed:
                self.set_rate(rate)
            self._steering.answer("; ".join(failed))
        now_s = self._timing.steady_s()
        if self.held is None or now_s - self._looked_at_s < _EVERY_S:
            return
        self._looked_at_s = now_s
        with _keeping_rates():
            if self._rates.follows:
                self._rates.measure(list(self._open.values()))
            reason = "following what clients leave free"
            self._apply(self._found(self.held.rates), reason)

    def raise_rate(self, move: Move) -> int | None:
        """Double the rates that a move copies under; return the highest, in bytes per second.

        None where there is no throttle, or it was raised less than 30 s ago.
        """
        if self.held is None:
            return None
        now_s = self._timing.steady_s()
        out = [(broker, LEADER_RATE) for broker in move.replicas_before]
        into = [(broker, FOLLOWER_RATE) for broker in move.added]
        for broker, key in (*out, *into):
            since_s = now_s - self._raised_at_s.get((broker, key), float("-inf"))
            if key in self.held.ours.get(broker, {}) and since_s >= _AGAIN_S:
                self._raised_at_s[broker, key] = now_s
                least = 2 * self.held.newest(broker, key)
                self._rates.raise_to((broker, key), least)
        rates = self._found({*move.replicas_before, *move.added})
        return self._apply(rates, f"since {move.id} falls behind")

    def set_rate(self, bytes_per_s: int | None) -> None:
        """Use another rate from now on; None follows clients.

        Raises GuardrailRefused where it is too low for the remaining moves (nothing is
        changed then), and otherwise as the cluster's calls do.
        """
        if not self._open:
            return
        self._rates.choose(bytes_per_s, list(self._open.values()))
        if self.held is not None:
            self._apply(self._found(self.held.rates), "as asked")
            return
        for failure in self._impose():
            _log.warning("%s", failure, extra=named(LogEvent.THROTTLE_FAILED))

    def end(self) -> str:
        """Remove the throttle; return what is left or not ours, in words, or ""."""
        if self.held is None:
            return ""
        left, theirs = self._lift(self.held)
        if left:
            left, theirs = self._lift(self.held)
        if left:
            return f"{'; '.join([*left, *theirs])}; plimsoll cleanup removes it"
        self._journal.write(JournalEvent.UNTHROTTLED)
        self.held = None
        return "; ".join(theirs)

    def _lift(self, held: ThrottleSettings) -> tuple[list[str], list[str]]:
        """As `ClusterThrottle.lift`, with errors as words; may be repeated."""
        try:
            return self._throttle.lift(held)
        except PlimsollError as exc:
            return [f"the throttle is still set: {exc}"], []

    def _impose(self) -> list[str]:
        """Set the first throttle of this process; return failures in words."""
        moves = list(self._open.values())
        self._rates.measure_first(moves)
        rates = self._found(self._throttle.brokers(moves))
        self._write(planned := self._throttle.plan(moves, rates, self.held))
        self._looked_at_s = self._timing.steady_s()
        failed = self._throttle.set_rates(planned, rates)
        in_flight = [move for move in moves if move.id in self._begun]
        self._throttle.limit(in_flight, planned)
        self._steering.record(f"throttle set: {_rates_text(rates)}")
        return failed

    def _found(self, brokers: Collection[BrokerId]) -> Rates:
        return self._rates.find(brokers, list(self._open.values()))

    def _apply(self, rates: Rates, reason: str) -> int | None:
        """Set the rates that differ enough and are still ours; return the highest set."""
        done: list[int] = []
        with _keeping_rates():
            done += self._change(rates, reason)
        return max(done, default=None)

    def _change(self, rates: Rates, reason: str) -> list[int]:
        if self.held is None:
            return []
        changes = self._throttle.changeable(self.held, self._different(rates))
        if not changes:
            return []
        self._write(self.held.with_rates(changes))
        for failure in self._throttle.set_rates(self.held, changes):
            _log.warning("%s", failure, extra=named(LogEvent.THROTTLE_FAILED))
        self._steering.record(f"throttle changed {reason}: {_rates_text(changes)}")
        for broker, of in changes.items():
            _log.info(
                "throttle of broker %s: %s",
                broker,
                ", ".join(f"{key} {rate_text(rate)}" for key, rate in of.items()),
                extra=named(LogEvent.THROTTLE_CHANGED),
            )
        ours = self.held.ours
        return [
            rate
            for broker, of in changes.items()
            for key, rate in of.items()
            if ours[broker][key] == [rate]
        ]

    def _different(self, rates: Rates) -> Rates:
        """Rates that change (by more than 10 % if they follow clients) or may not be set yet."""
        worth = _WORTH if self._rates.follows else 0.0
        found: dict[BrokerId, dict[str, int]] = {}
        for broker, of in rates.items():
            for key, rate in of.items():
                known = self.held.ours.get(broker, {}).get(key) if self.held else None
                if known and (len(known) > 1 or abs(rate - known[-1]) > worth * known[-1]):
                    found.setdefault(broker, {})[key] = rate
        return found

    def _write(self, planned: ThrottleSettings) -> None:
        self._journal.write(JournalEvent.THROTTLED, **planned.document())
        self.held = planned


def _rates_text(rates: Rates) -> str:
    """The brokers, and the lowest and highest of their rates."""
    found = [rate for of in rates.values() for rate in of.values()]
    low, high = rate_text(min(found)), rate_text(max(found))
    span = low if low == high else f"{low} to {high}"
    ids = sorted(rates)
    one = f"broker {ids[0]}"
    return f"{one if len(ids) == 1 else f'{len(ids)} brokers'}, {span}"


@contextmanager
def _keeping_rates() -> Iterator[list[str]]:
    """Keep in-flight moves at their present rates where others cannot be set.

    Yields a list that receives the failure, in words.
    """
    failed: list[str] = []
    try:
        yield failed
    except WriterBarred:
        raise
    except PlimsollError as exc:
        _log.warning("the throttle stays unchanged: %s", exc, extra=named(LogEvent.THROTTLE_FAILED))
        failed.append(str(exc))
