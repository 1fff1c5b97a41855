"""AutoMQ: one replica per partition, in object storage; a move copies nothing.

Checked against AutoMQ 1.7.3. A move hands the partition over: metadata show the target
as the only replica at once, and as the leader when it has opened the partition.
ListPartitionReassignments is always empty, so metadata alone tell the progress.
"""

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from typing import Final

from executor import placement
from executor.admin import Admin
from executor.answers import Answer
from executor.dialect import Prepared, Progress, Stage
from executor.timing import Timing
from model.errors import GuardrailRefused
from model.ids import PartitionId
from model.plan import Move

_ENABLE: Final = "autobalancer.controller.enable"
_THRESHOLDS: Final = (
    "autobalancer.controller.network.in.usage.distribution.detect.threshold",
    "autobalancer.controller.network.out.usage.distribution.detect.threshold",
)
_NEVER: Final = 10**15
"""A threshold in bytes per second that no broker reaches, so nothing is moved."""
_BALANCER_LOOK_S: Final = 10.0


class AutoMQ:
    """Single-replica moves while AutoMQ's own balancer stands down."""

    def __init__(self, admin: Admin, timing: Timing) -> None:
        self._admin = admin
        self._timing = timing
        self._balancer_seen_at_s = float("-inf")

    def check(self, moves: Sequence[Move]) -> None:
        """One replica each, and no second balancer."""
        for move in moves:
            if len(move.replicas_after) != 1:
                raise GuardrailRefused(
                    f"The plan puts {move.id} on "
                    f"{placement.text(move.replicas_after)}, and AutoMQ keeps one "
                    "replica of a partition. Plan again from this cluster."
                )
        if reason := self._balancer():
            raise GuardrailRefused(
                f"{reason} and would work against the plan. Set "
                f"{' and '.join(_THRESHOLDS)} to {_NEVER} for the whole cluster "
                "(dynamic, in force at once), and on each broker that has a value of "
                "its own."
            )

    def requests(self, move: Move) -> tuple[str, ...]:
        """One reassignment."""
        return (
            f"AlterPartitionReassignments {move.id}: "
            f"{placement.text(move.replicas_before)} -> "
            f"{placement.text(move.replicas_after)}",
        )

    def prepare(
        self, moves: Sequence[Move], stop: threading.Event
    ) -> Mapping[PartitionId, Prepared]:
        """Nothing to do: the move itself uploads what the source still holds."""
        del stop
        return {move.id: Prepared() for move in moves}

    def start(self, moves: Sequence[Move]) -> Mapping[PartitionId, Answer]:
        """Answered when the change is committed, not when the target has opened it."""
        return self._admin.reassign({m.id: m.replicas_after for m in moves})

    def progress(self, moves: Sequence[Move]) -> Mapping[PartitionId, Progress]:
        """By metadata: no leader while moving, the target as leader when done."""
        views = self._admin.partitions([m.id for m in moves])
        return {
            m.id: _opening(placement.progress_of(m, views.get(m.id), None))
            for m in moves
        }

    def finish(self, moves: Sequence[Move]) -> None:
        """Nothing: AutoMQ elects the leader itself."""

    def health(self, moves: Sequence[Move]) -> str | None:
        """Targets serve, what is not being moved is led, the balancer stands down."""
        views = self._admin.partitions([m.id for m in moves])
        resting = [
            m
            for m in moves
            if m.id in views and views[m.id].replicas == m.replicas_before
        ]
        return (
            placement.dead_target(moves, self._admin.cluster().alive)
            or placement.offline(resting, views)
            or self._balancer_now_and_then()
        )

    def _balancer_now_and_then(self) -> str | None:
        now_s = self._timing.now_s()
        if now_s - self._balancer_seen_at_s < _BALANCER_LOOK_S:
            return None
        return self._balancer()

    def _balancer(self) -> str | None:
        """The first broker whose settings let AutoMQ's balancer act, in a sentence.

        A value set on the broker itself goes before the cluster's; what is asked for
        here is what is in force on each.
        """
        self._balancer_seen_at_s = self._timing.now_s()
        for broker in sorted(self._admin.cluster().alive):
            configs = self._admin.broker_configs(broker, (_ENABLE, *_THRESHOLDS))
            if not _stands_down(configs):
                return f"AutoMQ's own balancer is on at broker {broker}"
        return None


def _stands_down(configs: Mapping[str, str]) -> bool:
    if configs.get(_ENABLE) == "false":
        return True
    return all(int(configs.get(key, 0)) >= _NEVER for key in _THRESHOLDS)


def _opening(found: Progress) -> Progress:
    """In sync from the first moment means nothing here; only the leader does."""
    match found.stage:
        case Stage.ARRIVED:
            return dataclasses.replace(found, stage=Stage.MOVING)
        case Stage.DONE:
            return dataclasses.replace(found, bytes_copied=0)
    return found
