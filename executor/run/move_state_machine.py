"""The state machine of one in-flight move: requests, observations, and next steps."""

from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Final

from executor.client.responses import PartitionView, ResponseStatus
from executor.platforms.move_progress import steps
from executor.platforms.platform import MoveStage, ObservedMove
from executor.run.leader_outage import LeaderOutage
from model.ids import BrokerId
from model.plan.plan import Move

ATTEMPTS: Final = 3
"""Unanswered requests after which a move is given up."""
_AGAIN_S: Final = 2.0
"""Seconds after which a lost request would have shown an effect, so it is repeated."""
SETTLE_S: Final = 5.0
"""Seconds for which metadata may still show the old placement."""
_LAGS_S: Final = 30.0
"""Seconds without catching up after which a copy falls behind."""
_ELECT_S: Final = 1.0
"""Seconds between two elections, or two requests for the old order, of one move."""
_BACK: Final = (MoveStage.NOT_BEGUN, MoveStage.HALFWAY, MoveStage.REVERTED)


class MoveStep(Enum):
    """What to do next with a move."""

    WAIT = "wait"
    SEND_NEXT = "send next"
    """One replica has been exchanged; request the next."""
    SEND_AGAIN = "send again"
    HURRY = "hurry"
    """It falls behind its producers."""
    FINISH = "finish"
    DONE = "done"
    CANCEL = "cancel"
    """Complete a cancel."""
    CANCELLED = "cancelled"
    GIVE_UP = "give up"
    """It has not started, and will not."""
    LOST = "lost"
    """Someone else interfered."""
    STUCK = "stuck"


@dataclass(slots=True)
class MoveStateMachine:
    """A requested move; times are seconds of the steady clock."""

    move: Move
    stuck_s: float
    outage: LeaderOutage | None = None
    """None if it was not watched from its first request."""
    attempts: int = 0
    finished_at_s: float = float("-inf")
    """When its last election was requested."""
    _status: ResponseStatus = ResponseStatus.UNKNOWN
    _alive_at_s: float = 0.0
    """When it was last requested or seen in progress."""
    _forward_at_s: float = 0.0
    """When metadata last showed it as far as it has come."""
    _reached: int = 0
    """Position in its lists of the furthest one seen."""
    _progressed_at_s: float = 0.0
    _hurried_at_s: float = 0.0
    _last: tuple[MoveStage, float | None, int] | None = None
    _least_left: float = inf
    """Fewest bytes that the replica being added lacked."""
    _at: tuple[BrokerId, ...] = ()
    """The replica list seen last."""
    _sent_from: tuple[BrokerId, ...] = ()
    """The replica list at the last request."""
    _cancel: ResponseStatus | None = None
    """The answer to the last cancel; None without one."""
    _cancel_sent_at_s: float | None = None
    _cancel_first_at_s: float = 0.0

    def __post_init__(self) -> None:
        self._at = self._sent_from = self.move.replicas_before

    def sent(self, at_s: float, status: ResponseStatus) -> None:
        """Record a request and its answer."""
        if self._sent_from != self._at:
            self.attempts, self._sent_from = 0, self._at
        self.attempts += 1
        self._status = status
        self._alive_at_s = self._forward_at_s = at_s
        self._progressed_at_s = self._hurried_at_s = at_s
        self._least_left = inf

    def cancel_sent(self, at_s: float, status: ResponseStatus | None) -> None:
        """Record a cancel and its answer; None if the answer was lost."""
        if self._cancel_sent_at_s is None:
            self._cancel_first_at_s = at_s
        if self._cancel is not ResponseStatus.ACCEPTED:
            self._cancel = status
        self._cancel_sent_at_s = at_s

    def may_cancel(self, now_s: float) -> bool:
        """Whether to cancel it, or to cancel it again."""
        if self._cancel_sent_at_s is None:
            return True
        return self._cancel is None and now_s - self._cancel_sent_at_s >= _AGAIN_S

    def watch(self, view: PartitionView | None, asked_s: float, answered_s: float) -> None:
        """Record the leader between request and answer, by the steady clock."""
        if self.outage is not None and view is not None:
            self.outage.observe(view, asked_s, answered_s)

    def see(self, now: ObservedMove, now_s: float) -> MoveStep:
        """Return the next step after one poll of the cluster."""
        self._note_progress(now, now_s)
        if self._has_regressed(now):
            # A lagging broker shows an old state; if it persists, someone undid it.
            is_undone = now_s - self._forward_at_s >= SETTLE_S
            return MoveStep.LOST if is_undone else MoveStep.WAIT
        self._forward_at_s = now_s
        if now.view is not None:
            self._at = now.view.replicas
        if now.stage in (MoveStage.MOVING, MoveStage.ARRIVED):
            self._status, self._alive_at_s = ResponseStatus.ACCEPTED, now_s
        return self._next(now, now_s)

    def _next(self, now: ObservedMove, now_s: float) -> MoveStep:
        match now.stage:
            case MoveStage.DONE:
                return MoveStep.DONE
            case stage if self._is_cancelling and stage in _BACK:
                return self._cancelled(stage, now_s)
            case MoveStage.LOST | MoveStage.REVERTED:
                return MoveStep.LOST
            case MoveStage.NOT_BEGUN:
                return self._not_begun(now_s)
            case MoveStage.HALFWAY:
                return self._halfway(now_s)
            case _ if now_s - self._progressed_at_s >= self.stuck_s:
                return MoveStep.STUCK
            case MoveStage.MOVING if self._falls_behind(now, now_s):
                self._hurried_at_s = now_s
                return MoveStep.HURRY
            case MoveStage.ARRIVED if now_s - self.finished_at_s >= _ELECT_S:
                return MoveStep.FINISH
        return MoveStep.WAIT

    def _has_regressed(self, now: ObservedMove) -> bool:
        lists = (self.move.replicas_before, *steps(self.move))
        if now.view is None or now.view.replicas not in lists:
            return False
        at = lists.index(now.view.replicas)
        self._reached = max(self._reached, at)
        settled = (MoveStage.NOT_BEGUN, MoveStage.HALFWAY)
        return now.stage in settled and at < self._reached

    def _note_progress(self, now: ObservedMove, now_s: float) -> None:
        counted: float | None = None
        inside = 0
        if now.stage is MoveStage.MOVING:
            inside = now.bytes_inside_brokers
            counted = None if now.is_settled else now.bytes_copied
        if now.bytes_left is not None:
            # Bytes may arrive while the end of the log moves away even faster.
            counted = self._least_left = min(self._least_left, now.bytes_left)
        mark = (now.stage, counted, inside)
        if mark != self._last:
            self._last, self._progressed_at_s = mark, now_s

    def _falls_behind(self, now: ObservedMove, now_s: float) -> bool:
        since_s = now_s - max(self._progressed_at_s, self._hurried_at_s)
        return now.bytes_left is not None and since_s >= _LAGS_S

    @property
    def _is_cancelling(self) -> bool:
        return bool(self._cancel_sent_at_s) and self._cancel is not ResponseStatus.REFUSED

    def _cancelled(self, stage: MoveStage, now_s: float) -> MoveStep:
        """Wait for a cancel to show, if no answer confirms it."""
        since_s = now_s - self._cancel_first_at_s
        if stage is MoveStage.REVERTED:
            again_s = now_s - (self._cancel_sent_at_s or 0.0)
            return MoveStep.CANCEL if again_s >= _ELECT_S else MoveStep.WAIT
        if self._cancel is ResponseStatus.ACCEPTED or since_s >= SETTLE_S:
            return MoveStep.CANCELLED
        return MoveStep.WAIT

    def _not_begun(self, now_s: float) -> MoveStep:
        since_s = now_s - self._alive_at_s
        if self._status is ResponseStatus.ACCEPTED:
            return MoveStep.LOST if since_s >= SETTLE_S else MoveStep.WAIT
        if since_s < _AGAIN_S:
            return MoveStep.WAIT
        return MoveStep.SEND_AGAIN if self.attempts < ATTEMPTS else MoveStep.GIVE_UP

    def _halfway(self, now_s: float) -> MoveStep:
        if self._sent_from != self._at:
            return MoveStep.SEND_NEXT
        wait_s = SETTLE_S if self._status is ResponseStatus.ACCEPTED else _AGAIN_S
        if now_s - self._alive_at_s < wait_s:
            return MoveStep.WAIT
        return MoveStep.SEND_AGAIN if self.attempts < ATTEMPTS else MoveStep.STUCK
