"""A simulated year of `--auto`: what it holds on to, at the end of each month.

Loop, questions, decisions, executor, journals, retention, tasks, log file and metrics are the
shipped code, in one process and with real files; cluster, loads and clock are simulated. Files of
runs get the simulated time as their time of change, since retention goes by that.
"""

import contextlib
import gc
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import psutil

from benchmarks.sections import table
from control.cli import logs
from control.loop import questions
from control.loop.dependencies import LoopParts, LoopSettings
from control.loop.loop import Loop
from control.loop.policy import Decision, DecisionInputs, earliest_change_s
from control.loop.view import Mode
from control.planning.background_call import AtOnce
from control.planning.planner import planner
from control.service.scrape import exposition, registry_of
from control.service.service_state import ServiceState
from control.settings.auto_limits import EAGER, unattended
from control.settings.auto_policy import AutoPolicy
from control.settings.retention_table import RetentionTable, retention_of
from control.settings.trigger_table import Response, TriggerTable
from control.tasks.broker_marks import MarkedBrokers, read_marks
from control.tasks.broker_task import Operation
from control.tasks.task_files import TaskFiles
from control.tasks.task_parts import TaskParts
from control.tasks.task_retention import needed_runs
from control.tasks.task_runner import TaskRunner
from executor.executor import Executor
from executor.run.operator_control import Steering
from executor.timing import RunLimits, Timing
from lab.simulated_cluster.cluster import SimulatedCluster
from lab.simulated_cluster.demo_cluster import DemoClusterOptions, initial_snapshot, simulated
from lab.simulated_cluster.faults import Faults
from lab.simulated_cluster.quiet_observer import QuietObserver
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.errors import PlimsollError
from model.goals.goals import Goals, SolveLimits
from model.run import RunReport
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Broker, Floats, Snapshot, Source
from solver.report.result import Result
from solver.solve import solve

MONTHS: Final = 12
MONTH_S: Final = 365 * 86_400 / MONTHS
DAY_S: Final = 86_400.0
BROKERS: Final = 4
BLOCK_S: Final = 6 * 3600.0
"""Rates are constant for so long."""
SPREAD: Final = 0.5
"""Standard deviation of the logarithm of a partition's rate from one block to the next."""
STEP_S: Final = 1800.0
"""Longest simulated time between two turns of the loop."""
TURN_S: Final = 1.0
"""The same while it is about to do something."""
RUN_TURN_S: Final = 30.0
"""The same while a run moves partitions."""
TASK_S: Final = 3 * DAY_S
"""Time between two tasks on brokers."""
PERSON_S: Final = 300.0
"""Time in which a person approves a plan."""
WINDOW_S: Final = 15.0
WORK: Final = 0.05
"""Search budget of a plan."""
POLL_S: Final = 10.0
MIB: Final = 2**20
LOG_BYTES: Final = 2**20
RETENTION: Final = RetentionTable(journal_days=60, tasks=20)
LIMITS: Final = EAGER.model_copy(update={"pause": 5 * 3600.0})
NAME: Final = "year"
PERSON: Final = "ada"
HEADERS: Final = (
    *("month", "runs", "tasks", "turns", "resident MiB", "Python objects", "descriptors"),
    *("files", "MiB", "of journals", "of logs", "bytes of a scrape", "CPU s"),
)
WORDS: Final = (
    "`python -P -m benchmarks.longevity --only year`: one process of `--auto`, as it was at the "
    "end of each month of a simulated year. {brokers} brokers, {partitions} partitions of three "
    "replicas, whose rates change every {block:.0f} h; half of the weeks, a person approves the "
    "plans; a broker is demoted, or that ended, every {task:.0f} days. The loop turns every "
    "{step:.0f} min, and each second when it is about to act: {turns:,} turns, where `--auto` "
    "turns twice a second; [loop.md](loop.md) has what turns at that rate leave behind. Journals "
    "are kept for {days:.0f} days, {kept} tasks that are over, and five log files of {log} MiB, so "
    "that every bound is reached within the year."
)


@dataclass(slots=True, kw_only=True)
class YearObserver(QuietObserver):
    """What a collector would know: placement as it is, and the rates of this block of time."""

    mean: Snapshot
    cluster: SimulatedCluster
    rates: list[float]
    """Of the cluster; set with each block."""
    marked: MarkedBrokers
    seed: int
    _block: int = -1
    _loads: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    _seen: Snapshot | None = None

    def brokers(self) -> tuple[Broker, ...]:
        """All of them, with their marks."""
        return self.snapshot().header.brokers

    def replication(self) -> Replication:
        """Everything is in sync but what moves."""
        moving = sum(p.is_moving for p in self.cluster.partitions.values())
        return Replication(
            under_replicated=0, offline=0, behind_ids=(), offline_ids=(), moving=moving
        )

    def snapshot(self) -> Snapshot:
        """The state of this moment; the same object until time passes."""
        now_ms = int(1000 * self.cluster.now_s)
        if self._seen is None or self._seen.header.taken_at_ms != now_ms:
            self._seen = self._taken(now_ms)
        return self._seen

    def _taken(self, now_ms: int) -> Snapshot:
        self._draw()
        mean, partitions = self.mean, self.cluster.partitions.values()
        replicas = [list(p.replicas) for p in partitions]
        flat = [broker for of in replicas for broker in of]
        source = Source(
            name="simulation",
            newest_sample_ms=now_ms,
            window_s=WINDOW_S,
            samples=round(WINDOW_S) * len(mean),
            measured_share=1.0,
        )
        header = mean.header
        brokers = self.marked(header.cluster_id, header.brokers)
        update = {"taken_at_ms": now_ms, "sources": (source,), "brokers": brokers}
        return Snapshot(
            header.model_copy(update=update),
            replace(
                mean.partitions,
                loads=self._loads,
                leader=np.asarray([p.leader for p in partitions], np.int64),
                replica_start=np.concatenate([[0], np.cumsum([len(of) for of in replicas])]),
                replica_broker=np.asarray(flat, np.int64),
            ),
        )

    def _draw(self) -> None:
        """Draw the rates of a new block."""
        block = int(self.cluster.now_s // BLOCK_S)
        if block != self._block:
            self._block = block
            rng = np.random.default_rng([self.seed, block])
            factors = np.exp(rng.normal(0.0, SPREAD, len(self.mean)))
            self._loads = self.mean.partitions.loads.copy()
            self._loads[:, (0, 1, 3)] *= factors[:, None]
            self.rates[:] = self._loads[:, 0].tolist()


class StampingExecutor:
    """The shipped executor; files that it leaves get the simulated time."""

    def __init__(self, executor: Executor, ended: Callable[[], None]) -> None:
        self._executor, self._ended = executor, ended

    def execute(self, *plan: Any, **how: Any) -> RunReport:
        """As of the executor."""
        try:
            return self._executor.execute(*plan, **how)
        finally:
            self._ended()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)


class Year:
    """One process for a year."""

    def __init__(self, folder: Path, seed: int, begin_s: float) -> None:
        """begin_s: a year ago or more, in seconds since the epoch: files must not be newer."""
        self.begun_s = time.time()
        """Files that were changed since have not been given a simulated time."""
        order = DemoClusterOptions(brokers=BROKERS, seed=seed, now_s=begin_s)
        self.folder, self.journals = folder, folder / "journal"
        mean = initial_snapshot(order)
        rates: list[float] = mean.partitions.loads[:, 0].tolist()
        self.cluster = simulated(mean, rates)
        self.begin_s = self.cluster.now_s
        self.files = TaskFiles(folder, most_over=RETENTION.tasks)
        self.observer = YearObserver(
            mean=mean,
            cluster=self.cluster,
            rates=rates,
            marked=MarkedBrokers(folder, self.files.mirror_marks),
            seed=seed,
        )
        self.timing = Timing(
            now_s=lambda: self.cluster.now_s, pause=self._pause, steady_s=lambda: self.cluster.now_s
        )
        self.goals = unattended(Goals())
        self.state = ServiceState(clock=self._now_s, steady=self._now_s)
        self.registry = registry_of(self.state)
        self.turns = self.runs = self.tasks = self.failed = 0
        self._decision: tuple[DecisionInputs, Decision] | None = None
        self._next_turn_s = 0.0
        self.next_task_s = self.begin_s + TASK_S
        """When a task is requested next."""
        self._is_turning = False
        self.loop = self._loop()
        self.loop.subscribe(self.state.see)
        self.state.begin(self.goals, self.loop.settings.tick_s, decisions_dir=folder)

    def months(self) -> Iterator[tuple[str, ...]]:
        """Let the year pass; a line of the table for each month."""
        for month in range(1, MONTHS + 1):
            cpu_s = time.process_time()
            self.live_until(self.begin_s + month * MONTH_S)
            yield self.figures(month, time.process_time() - cpu_s)

    def live_until(self, end_s: float) -> None:
        """Let time pass, to `end_s` seconds since the epoch."""
        while self.cluster.now_s < end_s:
            self._turn()
            self._answer()
            if self.cluster.now_s >= self.next_task_s:
                self._work_on_task()
            self.cluster.advance(min(self._wait_s(), max(1e-3, end_s - self.cluster.now_s)))

    def close(self) -> None:
        """End the loop."""
        self.loop.close()

    def figures(self, month: int, cpu_s: float) -> tuple[str, ...]:
        """What the process holds now, as a line of the table; cpu_s: of this month."""
        scrape, _ = exposition(self.registry, "")
        gc.collect()
        process = psutil.Process()
        sizes = {p: p.stat().st_size for p in self.folder.rglob("*") if p.is_file()}
        journals = sum(size for p, size in sizes.items() if self.journals in p.parents)
        logged = sum(size for p, size in sizes.items() if p.name.startswith("log."))
        return (
            *(f"{month}", f"{self.runs:,}", f"{self.tasks:,}", f"{self.turns:,}"),
            f"{process.memory_info().rss / MIB:.0f}",
            f"{len(gc.get_objects()):,}",
            f"{process.num_fds()}",
            f"{len(sizes):,}",
            *(f"{n / MIB:.1f}" for n in (sum(sizes.values()), journals, logged)),
            *(f"{len(scrape):,}", f"{cpu_s:.0f}"),
        )

    # ---- the loop

    def _now_s(self) -> float:
        return self.cluster.now_s

    def _loop(self) -> Loop:
        settings = LoopSettings(
            bootstrap="simulated",
            operator="operator",
            name=NAME,
            mode=Mode.AUTO,
            goals=self.goals,
            solve=SolveLimits(work=WORK),
            limits=LIMITS,
            triggers=TriggerTable(),
            journal_dir=self.journals,
            decisions_dir=self.folder,
        )
        parts = LoopParts(
            observer=lambda: self.observer,
            planner=planner,
            executor=lambda: StampingExecutor(self._executor(), self._run_ended),
            clock=self._now_s,
            steady=self._now_s,
            background=AtOnce,
            new_policy=self._new_policy,
            decided=self._decided,
            beat=self.state.beat,
            failed=self.state.failed,
            modelled=self.state.modelled,
        )
        return Loop(settings, parts)

    def _executor(self) -> Executor:
        return Executor(
            SimulatedAdmin(self.cluster, Faults()),
            timing=self.timing,
            limits=RunLimits(poll_s=POLL_S),
            retention=retention_of(
                RETENTION, self.goals, partial(needed_runs, self.files, self.journals)
            ),
        )

    def _turn(self) -> None:
        self.turns += 1
        self._decision = None
        self._is_turning = True
        try:
            self.loop.turn(self.observer)
        finally:
            self._is_turning = False
        if self.loop.error is not None:
            raise self.loop.error

    def _pause(self, seconds: float) -> None:
        """Let time pass in a run, while the loop looks on now and then."""
        self.cluster.advance(seconds)
        if self.loop.running and self.cluster.now_s >= self._next_turn_s:
            self._next_turn_s = self.cluster.now_s + RUN_TURN_S
            self.turns += 1
            self.loop.turn(self.observer)

    def _decided(self, facts: DecisionInputs, step: Decision, reason: str) -> None:
        self._decision = facts, step
        self.state.decided(facts, step, reason)

    def _wait_s(self) -> float:
        """Time until the loop could decide something else; it looks sooner for new loads."""
        now_s = self.cluster.now_s
        if self._decision is None or self._decision[1] in (Decision.PLAN, Decision.APPROVE):
            return TURN_S
        wait_s = earliest_change_s(*self._decision) or STEP_S
        return max(TURN_S, min(wait_s, STEP_S, BLOCK_S - now_s % BLOCK_S + TURN_S))

    def _new_policy(self, policy: AutoPolicy, warn: Callable[[str], None]) -> AutoPolicy | None:
        """Let a person approve plans every other week."""
        del warn
        asks = int(self.cluster.now_s // (7 * DAY_S)) % 2
        response = Response.ASK if asks else Response.ACT
        if policy.triggers.uneven_load is response:
            return None
        triggers = policy.triggers.model_copy(update={"uneven_load": response})
        return replace(policy, triggers=triggers)

    def _run_ended(self) -> None:
        self.runs += 1
        self._stamp()

    def _stamp(self) -> None:
        """Give files that were changed just now the simulated time."""
        now_s = self.cluster.now_s
        with os.scandir(self.journals) as entries:
            for entry in entries:
                if entry.stat().st_mtime >= self.begun_s:
                    os.utime(entry, (now_s, now_s))

    # ---- people

    def _answer(self) -> None:
        """Approve the plan that waits."""
        question = self.loop.question
        if question is None:
            return
        now_ms = int(1000 * self.cluster.now_s)
        if now_ms - question.asked_at_ms >= 1000 * PERSON_S:
            with contextlib.suppress(PlimsollError):
                questions.approve(self.folder, question.plan_hash, PERSON, now_ms)

    def _work_on_task(self) -> None:
        """Demote a broker, or end its demotion; what is impossible fails and is kept, too."""
        self.next_task_s += TASK_S
        demoted = [mark.broker for mark in read_marks(self.folder)]
        brokers = self.observer.mean.header.brokers
        broker = demoted[0] if demoted else brokers[self.tasks % len(brokers)].id
        operation = Operation.UNDEMOTE if demoted else Operation.DEMOTE
        self.tasks += 1
        now_ms = int(1000 * self.cluster.now_s)
        task = self.files.add(self.cluster.cluster_id, operation, (broker,), PERSON, now_ms)
        parts = TaskParts(
            files=self.files,
            executor=self._executor(),
            journal_dir=self.journals,
            observe=self.observer.snapshot,
            solve=_solved,
            goals=self.goals,
            approve=lambda _task, _plan: PERSON,
            say=lambda _: None,
            watch=lambda _: None,
            steered=lambda: contextlib.nullcontext(Steering()),
            moves_in_flight=LIMITS.moves_in_flight,
            now_ms=lambda: int(1000 * self.cluster.now_s),
            operator=PERSON,
        )
        try:
            TaskRunner(task, parts).run()
        except PlimsollError:
            self.failed += 1
        self._stamp()


def _solved(snapshot: Snapshot, goals: Goals) -> Result:
    return solve(snapshot, goals, SolveLimits(work=WORK))


def measured(seed: int = 1, say: Callable[[str], None] = print) -> str:
    """The section of the table; say: receives each line as it is measured."""
    with (
        tempfile.TemporaryDirectory(prefix="plimsoll-year-") as name,
        patch.object(logs, "MOST_BYTES", LOG_BYTES),
    ):
        folder = Path(name)
        logs.configure(verbose=False, file=folder / "log.jsonl")
        begin_s = time.time() - MONTHS * MONTH_S - DAY_S
        with contextlib.closing(Year(folder, seed, begin_s)) as year:
            rows = []
            for row in year.months():
                say(" | ".join(row))
                rows.append(row)
            turns, partitions = year.turns, len(year.observer.mean)
        # The file of the log is about to vanish.
        logs.configure(verbose=False, file=None)
    words = WORDS.format(
        brokers=BROKERS,
        partitions=partitions,
        block=BLOCK_S / 3600,
        task=TASK_S / DAY_S,
        step=STEP_S / 60,
        turns=turns,
        days=RETENTION.journal_days or 0.0,
        kept=RETENTION.tasks,
        log=LOG_BYTES // MIB,
    )
    return f"{words}\n\n{table(HEADERS, rows)}"


if __name__ == "__main__":
    print(measured())
