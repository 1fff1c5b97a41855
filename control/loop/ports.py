"""What the loop needs of its parts; the real ones and the simulated ones fit."""

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
    """Watches one cluster in the background."""

    def start(self) -> None:
        """Begin to watch; returns at once."""

    def brokers(self) -> tuple[Broker, ...]:
        """Brokers as the metadata show them; empty before the first answer."""
        ...

    def replication(self) -> Replication | None:
        """Partitions that are not whole; None before the first answer."""
        ...

    def snapshot(self) -> Snapshot | None:
        """The newest snapshot; None before loads are known."""
        ...

    @property
    def failure(self) -> PlimsollError | None:
        """Why the watching ended, if it did."""
        ...

    def close(self) -> None:
        """Stop watching and leave nothing behind."""


class PlanExecutor(Protocol):
    """Carries out a plan on the cluster."""

    def execute(
        self,
        plan: Plan,
        *,
        journal_dir: Path,
        moves_in_flight: int,
        observe: Callable[[RunProgress], None],
        steering: Steering,
    ) -> RunReport:
        """Carry out exactly this plan; `steering` may end it early."""
        ...

    def resume(
        self,
        *,
        journal_dir: Path,
        moves_in_flight: int,
        observe: Callable[[RunProgress], None],
        steering: Steering,
    ) -> RunReport:
        """Go on with the newest run on the cluster."""
        ...

    def plan_rollback(
        self, journal_dir: Path, run_id: str | None
    ) -> tuple[Plan, list[str]]:
        """The plan that undoes a run, and what it leaves alone, in words."""
        ...

    def clean_up(self, journal_dir: Path, *, idle: bool = False) -> list[str]:
        """Take away what runs have left set; what it did, in words.

        idle: only where no partition is being moved.
        """
        ...

    def forecast(
        self, plan: Plan, journal_dir: Path, moves_in_flight: int | None = None
    ) -> "Forecast":
        """What a plan will take."""
        ...

    def rebalancers(self, *, shared: bool) -> tuple[str, ...]:
        """Others that move or may move partitions of the cluster, in words."""
        ...

    def dry_run(self, plan: Plan, journal_dir: Path | None = None) -> Sequence[str]:
        """The requests that would be sent."""
        ...

    def close(self) -> None:
        """Close the connection."""
