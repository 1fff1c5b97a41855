"""Interfaces of the observer and the executor; the simulated ones fit, too."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from executor.run.operator_control import Steering
from model.errors import PlimsollError
from model.plan.plan import Plan
from model.run import RunProgress, RunReport
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Broker, Snapshot

if TYPE_CHECKING:
    from executor.schedule.estimate import Forecast


class Observer(Protocol):
    """Observe one cluster in the background."""

    def start(self) -> None:
        """Start observing; return at once."""

    def brokers(self) -> tuple[Broker, ...]:
        """Brokers in the metadata; empty before the first response."""
        ...

    def replication(self) -> Replication | None:
        """Under-replicated and offline partitions; None before the first response."""
        ...

    def snapshot(self) -> Snapshot | None:
        """Newest snapshot; None before loads are known."""
        ...

    @property
    def failure(self) -> PlimsollError | None:
        """Error that ended the observation; None while it continues."""
        ...

    def close(self) -> None:
        """Stop observing and release all resources."""


class PlanExecutor(Protocol):
    """Execute plans on the cluster; every method may raise PlimsollError."""

    def execute(
        self,
        plan: Plan,
        *,
        journal_dir: Path,
        moves_in_flight: int,
        observe: Callable[[RunProgress], None],
        steering: Steering,
    ) -> RunReport:
        """Execute exactly this plan; `steering` may end it early."""
        ...

    def resume(
        self,
        *,
        journal_dir: Path,
        moves_in_flight: int,
        observe: Callable[[RunProgress], None],
        steering: Steering,
    ) -> RunReport:
        """Resume the most recent run on the cluster."""
        ...

    def plan_rollback(self, journal_dir: Path, run_id: str | None) -> tuple[Plan, list[str]]:
        """Return the plan that undoes a run, and what it cannot undo, in words."""
        ...

    def clean_up(self, journal_dir: Path, *, idle: bool = False) -> list[str]:
        """Restore settings that runs left on the cluster; return one line for each.

        idle: only while no partition is being moved.
        """
        ...

    def forecast(
        self, plan: Plan, journal_dir: Path, moves_in_flight: int | None = None
    ) -> "Forecast":
        """Estimate duration and traffic of a plan."""
        ...

    def rebalancers(self, *, shared: bool) -> tuple[str, ...]:
        """Competing rebalancers, one sentence each.

        shared: whether the plan moves partitions on shared storage.
        """
        ...

    def dry_run(self, plan: Plan, journal_dir: Path | None = None) -> Sequence[str]:
        """Check the plan as before a run, and list the requests it would send."""
        ...

    def close(self) -> None:
        """Close the connection."""
