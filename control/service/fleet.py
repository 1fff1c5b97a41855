"""The clusters of a fleet as their process sees them, and the table of them.

The threads of the clusters write, and the HTTP server reads; nothing here waits for a cluster.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from control.cli.output_types import (
    FleetAnswer,
    FleetClusterAnswer,
    FleetRunAnswer,
    WorstBrokerAnswer,
)
from control.loop.view import Phase
from control.service.member_state import MemberState
from control.service.service_state import ENDED_RUNS, ServiceState
from model import __version__
from model.printable import printable
from model.run import MoveState
from model.snapshot.broker_troubles import rank_of, trouble_of
from model.snapshot.snapshot import BrokerState

if TYPE_CHECKING:
    from control.loop.view import LoopView
    from control.service.control_api import ControlApi
    from model.goals.goals import Goals


class FleetMember:
    """One cluster of a fleet, whether its service runs or not."""

    def __init__(self, name: str, state: ServiceState | None = None) -> None:
        self.name = name
        self.state = ServiceState() if state is None else state
        """It outlasts the service's restarts, so that counts continue."""
        self.trouble = ""
        """Why its service does not run, and waits to start again; empty otherwise."""
        self.stopping = False
        """Whether it ends with the whole process, or has."""
        self.state_dir: Path | None = None
        """Its state folder; None before its settings could be read."""
        self.control: ControlApi | None = None
        """What people may do to it; None while its service does not run."""

    @property
    def service(self) -> MemberState:
        """How its service fares."""
        if self.trouble:
            return MemberState.FAILED
        if self.stopping:
            return MemberState.STOPPING
        if self.state.hanging():
            return MemberState.HANGING
        view = self.state.view
        if view is not None and view.phase in (Phase.UNREACHABLE, Phase.FAILED):
            return MemberState.NOT_READY
        if self.state.data_age_s is None:
            return MemberState.STARTING
        return MemberState.NOT_READY if self.state.not_ready() else MemberState.RUNNING

    def answer(self) -> FleetClusterAnswer:
        """Its row of the table."""
        state, service = self.state, self.service
        view, decided = state.view, state.decision
        header = None if view is None or view.snapshot is None else view.snapshot.header
        decision, rule = (None, "") if decided is None else decided
        return FleetClusterAnswer.of(
            name=self.name,
            service=service,
            message=printable(self._message(service)),
            cluster_id="" if header is None else header.cluster_id,
            state_dir="" if self.state_dir is None else str(self.state_dir),
            phase=None if view is None else view.phase,
            mode=None if view is None else view.mode,
            decision=decision,
            rule=rule,
            reason=printable(state.decision_reason),
            paused=state.paused,
            worst_broker=None if view is None else _worst_broker(view, state.goals),
            run=None if view is None else _run(view, active=state.run_active),
            data_age_s=state.data_age_s,
        )

    def _message(self, service: MemberState) -> str:
        if service is MemberState.FAILED:
            return self.trouble
        if service is MemberState.HANGING:
            return self.state.hanging()
        view, reason = self.state.view, self.state.not_ready()
        if view is None or (service is MemberState.NOT_READY and reason):
            return reason
        return f"{view.phase}: {view.sentence(self.state.now_ms())}"


def fleet_answer(members: Sequence[FleetMember]) -> FleetAnswer:
    """The table of a fleet."""
    rows = tuple(member.answer() for member in members)
    return FleetAnswer.of(version=__version__, pid=os.getpid(), clusters=rows)


def _worst_broker(view: "LoopView", goals: "Goals") -> WorstBrokerAnswer | None:
    """A dead broker, one with a failed disk or a slow one, else the greatest deviation.

    That is one of a balanced resource. Of several, one outside its tolerance band goes first.
    """
    worst = min(view.brokers, key=rank_of, default=None)
    if worst is not None and trouble_of(worst) is not None:
        return WorstBrokerAnswer.of(
            broker=worst.id,
            state=worst.state,
            resource=None,
            deviation=None,
            disk_failed=worst.disk_failed,
        )
    if view.evaluation is None:
        return None
    found = [
        (abs(deviation) > tolerance, abs(deviation), resource, broker, deviation)
        for resource, by_broker in view.evaluation.deviations.items()
        # A forecast hour is not the state of a broker now.
        if "@" not in resource and (tolerance := goals.tolerance_of(resource)) is not None
        for broker, deviation in by_broker.items()
    ]
    if not found:
        return None
    outside, _, resource, broker, deviation = max(found)
    state = next((b.state for b in view.brokers if b.id == broker), BrokerState.ALIVE)
    return WorstBrokerAnswer.of(
        broker=broker, state=state, resource=resource, deviation=deviation, outside=outside
    )


def _run(view: "LoopView", *, active: bool) -> FleetRunAnswer | None:
    run = view.run
    if run is None or not active or run.state in ENDED_RUNS:
        return None
    return FleetRunAnswer.of(run, moves=len(run.moves), done=run.count(MoveState.DONE))
