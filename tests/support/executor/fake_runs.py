"""Runs on a fake platform that can be killed at any record and resumed."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from executor.client.cluster_admin import ClusterAdmin
from executor.journal.run_history import PastRun, past_run, read_journal
from executor.journal.run_journal import RunJournal
from executor.run.execution import Execution
from executor.run.operator_control import Steering
from executor.run.overrides import ClusterOverrides
from executor.run.run_context import RunContext
from executor.schedule.estimate import EtaEstimator
from executor.schedule.throughput import Pace
from executor.throttle.rates import RunRates
from executor.timing import RunLimits
from model.ids import PartitionId
from model.plan.plan import Move, Plan
from model.run import JournalEvent, RunProgress, RunReport
from model.snapshot.snapshot import StorageKind
from tests.support.executor.fake_platform import FakeConfigs, FakePlatform, FakeTime, Fault
from tests.support.executor.plan_builders import CLUSTER_ID, move, plan
from tests.support.executor.simulated_runs import Killed

FOUR = plan([move(i) for i in range(4)])
FIRST = FOUR.moves[0].id
_numbers = itertools.count()


@dataclass
class FakeRun:
    """One run with all its parts, for inspection afterwards."""

    folder: Path
    plan: Plan = FOUR
    faults: dict[PartitionId, Fault] = field(default_factory=dict)
    limits: RunLimits = field(default_factory=lambda: RunLimits(moves_in_flight=2))
    throttle: int | None = None
    suspend: bool = False

    def __post_init__(self) -> None:
        self.time = FakeTime()
        self.steering = Steering()
        self.shown: list[RunProgress] = []
        self.configs = FakeConfigs()
        self.platform = FakePlatform(self.faults, self.check_journal)
        name = f"run-{next(_numbers)}"
        self.journal = RunJournal(self.folder, self.plan, name, self.time.timing)

    def run(self, check_error: Exception | None = None, past: PastRun | None = None) -> RunReport:
        def check(_moves: Sequence[Move]) -> None:
            if check_error is not None:
                raise check_error

        with closing(self.journal):
            return Execution(self.context(check, past)).run()

    def context(self, check: Callable[[Sequence[Move]], None], past: PastRun | None) -> RunContext:
        timing = self.time.timing
        overrides = ClusterOverrides(
            cast("ClusterAdmin", self.configs),
            RunLimits(throttle_bytes_per_s=self.throttle, suspend_balancer=self.suspend),
            timing,
        )
        rates = RunRates(overrides.admin, timing, overrides.limits, {})
        return RunContext(
            plan=self.plan,
            limits=self.limits,
            timing=timing,
            journal=self.journal,
            steering=self.steering,
            observe=self.shown.append,
            platforms={StorageKind.REPLICATED: self.platform, StorageKind.SHARED: self.platform},
            check=check,
            overrides=overrides.of_run(self.journal, rates, self.steering, past),
            headroom=lambda _moves, _running: {},
            monitor=lambda _hurry: (),
            eta=EtaEstimator(self.plan, self.limits, Pace(), timing, lambda _moves: {}),
            past=past,
        )

    def resume(self) -> RunReport:
        """Resume in another process, which knows only what is on disk."""
        past = past_run(self.folder, CLUSTER_ID, self.journal.run_id)
        self.shown.clear()
        self.configs.unreachable = False
        self.journal = RunJournal(
            self.folder, past.plan, past.run_id, self.time.timing, resumed=True
        )
        return self.run(past=past)

    def after(self, seconds: float, **changes: object) -> None:
        """Change the platform at some time during the run."""
        for name, value in changes.items():
            at_s = self.time.now_s + seconds
            action = partial(setattr, self.platform, name, value)
            self.time.after.append((at_s, action))

    def check_journal(self, sent: Move) -> None:
        """Assert that the newest record about a sent move announces the request."""
        about = [r.event for r in read_journal(self.journal.path) if r.id == sent.id]
        assert about[-1] is JournalEvent.ISSUING

    def events(self) -> Counter[tuple[PartitionId | None, JournalEvent]]:
        return Counter((r.id, r.event) for r in read_journal(self.journal.path))


def kill_at(bench: FakeRun, record: int, *, written: bool) -> None:
    """Die before or after the n-th record is on disk."""
    write, count = bench.journal.write, itertools.count()

    def dying(event: JournalEvent, moves: Sequence[Move | None] = (None,), **more: Any) -> None:
        at = next(count)
        if at < record or (at == record and written):
            write(event, moves, **more)
        if at >= record:
            bench.configs.unreachable = True
            raise Killed

    bench.journal.write = dying  # type: ignore[method-assign]


def interrupted_runs(
    folder: Path, make: Callable[[Path], FakeRun], *, written: bool
) -> Iterator[FakeRun]:
    """A run killed at its first record, at its second, ...; before or after it."""
    for record in itertools.count():
        bench = make(folder / f"{record}")
        kill_at(bench, record, written=written)
        try:
            bench.run()
        except Killed:
            yield bench
        else:
            break
    whole = {(r.at_ms, r.event) for r in read_journal(bench.journal.path)}
    assert record >= len(whole) > 8
