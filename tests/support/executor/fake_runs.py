"""A run on a fake platform, which may be killed at any record and gone on with."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from executor.client.cluster_admin import Admin
from executor.journal.run_history import PastRun, past_run, read_journal
from executor.journal.run_journal import RunJournal
from executor.platforms.automq_balancer import AutoMQBalancer, RunBalancer
from executor.platforms.tiered_segments import RunSegments, SegmentSettings
from executor.run.execution import Execution
from executor.run.operator_control import Steering
from executor.schedule.eta import WeeklyForecast
from executor.schedule.throughput import Pace
from executor.throttle.quota import Throttle
from executor.throttle.rates import RunRates
from executor.throttle.run_throttle import RunThrottle
from executor.timing import RunLimits
from model.ids import PartitionId
from model.plan.plan import Move, Plan
from model.run import JournalEvent, RunProgress, RunReport
from model.snapshot.snapshot import StorageKind
from tests.support.executor.fake_platform import (
    FakeConfigs,
    FakePlatform,
    FakeTime,
    Fault,
)
from tests.support.executor.plan_builders import CLUSTER_ID, move, plan
from tests.support.executor.simulated_runs import Killed

FOUR = plan([move(i) for i in range(4)])
FIRST = FOUR.moves[0].id
_numbers = itertools.count()


@dataclass
class Bench:
    """One run put together, to be looked at afterwards."""

    folder: Path
    plan: Plan = FOUR
    faults: dict[PartitionId, Fault] = field(default_factory=dict)
    limits: RunLimits = field(default_factory=lambda: RunLimits(moves_in_flight=2))
    throttle: int | None = None
    stand_down: bool = False

    def __post_init__(self) -> None:
        self.time = FakeTime()
        self.steering = Steering()
        self.told: list[RunProgress] = []
        self.configs = FakeConfigs()
        self.platform = FakePlatform(self.faults, self.check_journal)
        name = f"run-{next(_numbers)}"
        self.journal = RunJournal(self.folder, self.plan, name, self.time.timing)

    def run(
        self, check_error: Exception | None = None, past: PastRun | None = None
    ) -> RunReport:
        def check(_moves: Sequence[Move]) -> None:
            if check_error is not None:
                raise check_error

        with closing(self.journal):
            return Execution(
                self.plan,
                {
                    StorageKind.REPLICATED: self.platform,
                    StorageKind.SHARED: self.platform,
                },
                self.journal,
                check=check,
                limits=self.limits,
                timing=self.time.timing,
                observe=self.told.append,
                steering=self.steering,
                throttle=self.run_throttle(past),
                room=lambda _moves, _running: {},
                outlook=WeeklyForecast(
                    self.plan, self.limits, Pace(), self.time.timing, lambda _moves: {}
                ),
                watch=lambda _hurry: (),
                balancer=RunBalancer(
                    AutoMQBalancer(cast("Admin", self.configs), self.time.timing),
                    self.journal,
                    consent=self.stand_down,
                    held=past.stood_down if past else None,
                ),
                segments=RunSegments(
                    SegmentSettings(cast("Admin", self.configs), self.time.timing),
                    self.journal,
                    consent=False,
                ),
                past=past,
            ).run()

    def run_throttle(self, past: PastRun | None) -> RunThrottle:
        admin, timing = cast("Admin", self.configs), self.time.timing
        return RunThrottle(
            Throttle(admin, timing),
            self.journal,
            RunRates(admin, timing, RunLimits(throttle_bytes_per_s=self.throttle), {}),
            timing,
            self.steering,
            past.throttled if past else None,
        )

    def resume(self) -> RunReport:
        """Go on in another process, which knows what is on disk alone."""
        past = past_run(self.folder, CLUSTER_ID, self.journal.run_id)
        self.told.clear()
        self.configs.cut_off = False
        self.journal = RunJournal(
            self.folder, past.plan, past.run_id, self.time.timing, resumed=True
        )
        return self.run(past=past)

    def after(self, seconds: float, **changes: object) -> None:
        """Change the platform at some time of the run."""
        for name, value in changes.items():
            at_s = self.time.now_s + seconds
            action = partial(setattr, self.platform, name, value)
            self.time.after.append((at_s, action))

    def check_journal(self, sent: Move) -> None:
        """The last thing on disk about what is being sent is that it will be."""
        about = [r.event for r in read_journal(self.journal.path) if r.id == sent.id]
        assert about[-1] is JournalEvent.ISSUING

    def events(self) -> Counter[tuple[PartitionId | None, JournalEvent]]:
        return Counter((r.id, r.event) for r in read_journal(self.journal.path))


def kill_at(bench: Bench, record: int, *, written: bool) -> None:
    """Die before or after the n-th record is on disk."""
    write, count = bench.journal.write, itertools.count()

    def dying(
        event: JournalEvent, moves: Sequence[Move | None] = (None,), **more: Any
    ) -> None:
        at = next(count)
        if at < record or (at == record and written):
            write(event, moves, **more)
        if at >= record:
            bench.configs.cut_off = True
            raise Killed

    bench.journal.write = dying  # type: ignore[method-assign]


def cut_off(
    folder: Path, make: Callable[[Path], Bench], *, written: bool
) -> Iterator[Bench]:
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
