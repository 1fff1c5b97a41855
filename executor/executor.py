"""The executor as the rest of plimsoll sees it: one object per cluster."""

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Final

from clients.connection import OPEN, ClientProperties
from clients.s3 import S3Settings
from executor.client.cluster_admin import Admin
from executor.client.kafka_admin import KafkaAdmin, slowest_change_s
from executor.client.leased_admin import LeasedAdmin
from executor.health import competing_rebalancers as authorities
from executor.health.monitor import Watch
from executor.journal.archive import Archive, archive_of
from executor.journal.left_settings import remains, suspects, with_left
from executor.journal.lock import sole_writer
from executor.journal.run_history import (
    PastRun,
    left_set,
    past_run,
    past_runs,
    unfinished,
)
from executor.journal.run_journal import Action, RunJournal, new_run_id
from executor.platforms.automq_balancer import AutoMQBalancer
from executor.platforms.automq_wal import AutoMQWal
from executor.platforms.detect import dialects
from executor.platforms.platform import Platform, Progress
from executor.platforms.remote_tier import RemoteTier
from executor.run import preflight
from executor.run.auto_rollback import rolled_back
from executor.run.elections import (
    Election,
    Elections,
    find_elections,
    hold_elections,
)
from executor.run.execution import Execution
from executor.run.log_dir_checks import inside_bytes
from executor.run.move_state_machine import SETTLE_S
from executor.run.operator_control import Steering
from executor.run.overrides import RunSettings
from executor.run.plan_evaluation import (
    refuse_broken,
    refuse_overfilled,
    unjudged,
)
from executor.run.remaining import with_remaining
from executor.run.rollback_plan import (
    plan_rollback,
    refuse_undoing_rollback,
    rolls_back,
)
from executor.run.run_outcome import with_balance
from executor.schedule.admission import in_order
from executor.schedule.disk_headroom import Room
from executor.schedule.estimate import Forecast, forecast
from executor.schedule.eta import WeeklyForecast
from executor.schedule.task import Sizes
from executor.schedule.throughput import Pace
from executor.throttle.quota import Throttled
from executor.timing import RunLimits, Timing
from model.closing import Closing
from model.errors import ConfigError, GuardrailRefused, PlimsollError
from model.ids import PartitionId
from model.plan.plan import Move, Plan
from model.run import JournalEvent, RunProgress, RunReport, RunState
from model.snapshot.snapshot import StorageKind

_DEFAULT_LIMITS: Final = RunLimits()
_REAL_TIME: Final = Timing()
_log = logging.getLogger("plimsoll.executor")


class Executor(Closing):
    """Carries out plans on one cluster. One thread uses it.

    With an `archive`, runs are archived there before they act, and its lease is held
    while they do; what other hosts have begun is found there.
    """

    def __init__(
        self,
        admin: Admin,
        *,
        tier: RemoteTier | None = None,
        wal: AutoMQWal | None = None,
        limits: RunLimits = _DEFAULT_LIMITS,
        timing: Timing = _REAL_TIME,
        archive: Archive | None = None,
    ) -> None:
        self._admin = LeasedAdmin(admin, archive.lease) if archive else admin
        self._archive = archive
        self._tier = tier
        self._wal = wal
        self._limits = limits
        self._timing = timing
        self._settings = RunSettings(self._admin, limits, timing)
        self._warned: set[str] = set()
        """Warnings that were given; checks before approval and the run's are one."""

    def execute(
        self,
        plan: Plan,
        *,
        journal_dir: Path,
        observe: Callable[[RunProgress], None],
        steering: Steering,
        moves_in_flight: int | None = None,
    ) -> RunReport:
        """Carry out exactly this plan; `steering` may end it early.

        Settings that earlier runs have left in force are restored first. Raises
        PlanOutdated or GuardrailRefused where the plan does not fit the cluster, and
        nothing else was changed; ClusterUnreachable, RightsMissing, ConfigError or
        ExecutionStopped where it cannot be carried out.
        """
        undoes = rolls_back(plan, journal_dir)
        if not undoes:
            refuse_overfilled(plan)
        run = _Run(journal_dir, moves_in_flight, observe, steering)
        with self._sole_writer(journal_dir, plan.cluster_id, steering.stopping):
            self._restore_first(plan, journal_dir, undoes=undoes)
            run_id = self._new_run_id(journal_dir, plan)
            report = self._carry_out(plan, run_id, run, past=None)
            if undoes:
                report = with_left(report, journal_dir, plan.cluster_id)
            return report

    def resume(
        self,
        *,
        journal_dir: Path,
        observe: Callable[[RunProgress], None],
        steering: Steering,
        moves_in_flight: int | None = None,
    ) -> RunReport:
        """Go on with the newest run, which was cut off, stopped or failed.

        What became of its moves is read from the cluster; what has not begun must
        still fit it, as in `execute`. Raises as that does, ConfigError also where
        there is no run or nothing is left of it.
        """
        run = _Run(journal_dir, moves_in_flight, observe, steering)
        cluster_id = self._admin.cluster().cluster_id
        with self._sole_writer(journal_dir, cluster_id, steering.stopping):
            past = past_run(journal_dir, cluster_id)
            if not past.is_unfinished:
                raise ConfigError(
                    f"The newest run {past.run_id} has ended; nothing is left to "
                    "resume."
                )
            for words in past.warnings:
                _log.warning("%s", words)
            self._let_settle(past)
            return self._carry_out(past.plan, past.run_id, run, past=past)

    def plan_rollback(
        self, journal_dir: Path, run_id: str | None
    ) -> tuple[Plan, list[str]]:
        """The plan that undoes a run, the newest by default; and what it leaves alone.

        What is to be moved back is read from the cluster. Raises as `past_run` does,
        and GuardrailRefused where something still moves, or moved too short ago, or
        where the newest run is a rollback that has not finished.
        """
        cluster_id = self._admin.cluster().cluster_id
        if self._archive is not None:
            self._archive.fetch(journal_dir, cluster_id, run_id)
        past = past_run(journal_dir, cluster_id, run_id)
        if run_id is None:
            refuse_undoing_rollback(past)
        return self._plan_rollback(past)

    def _plan_rollback(self, past: PastRun) -> tuple[Plan, list[str]]:
        self._let_settle(past)
        sent = [
            move
            for move in past.plan.moves
            if past.has_losses or past.moves[move.id].issued_at_ms
        ]
        found: dict[PartitionId, Progress] = {}
        for kind, dialect in self._platforms().items():
            found |= dialect.progress([m for m in sent if m.storage is kind])
        alive = self._admin.cluster().alive
        plan, left = plan_rollback(past, found, alive, self._timing.now_ms())
        return plan, [*past.warnings, *left]

    def _let_settle(self, past: PastRun) -> None:
        """Wait until brokers that lag show what a run has asked for last."""
        since_s = (self._timing.now_ms() - past.last_at_ms) / 1000
        self._timing.pause(min(SETTLE_S, max(0.0, SETTLE_S - since_s)))

    def _carry_out(
        self, plan: Plan, run_id: str, run: "_Run", past: PastRun | None
    ) -> RunReport:
        report, rolls_back = self._run(plan, run_id, run, past, self._limits)
        if not rolls_back:
            return report
        rules = self._limits.stop_rules.for_rollback()
        limits = replace(self._limits, stop_rules=rules)

        def plan_it() -> tuple[Plan, list[str]]:
            return self._plan_rollback(
                past_run(run.journal_dir, plan.cluster_id, run_id)
            )

        def attempt(back: Plan) -> RunReport:
            back_id = self._new_run_id(run.journal_dir, back)
            return self._run(back, back_id, run, None, limits)[0]

        return rolled_back(
            report,
            plan_rollback=plan_it,
            attempt=attempt,
            steering=run.steering,
            timing=self._timing,
        )

    def _run(
        self,
        plan: Plan,
        run_id: str,
        run: "_Run",
        past: PastRun | None,
        limits: RunLimits,
    ) -> tuple[RunReport, bool]:
        """One run, and whether what it has finished is to be moved back."""
        limits = _with(limits, run.moves_in_flight)
        ways = self._platforms()
        rates = self._settings.rates(plan, limits)
        undoes = rolls_back(plan, run.journal_dir)

        def check(moves: Sequence[Move]) -> None:
            ours = unfinished(run.journal_dir, plan.cluster_id)
            going_on = {m.id for m in plan.moves} - {m.id for m in moves}
            if past is not None and not undoes:
                refuse_overfilled(past.foreseen)
            left = plan.model_copy(update={"moves": tuple(moves)})
            self._check(left, ways, ours, going_on, undoes=undoes)
            rates.check(moves)

        pace = self._pace(run.journal_dir, plan.cluster_id)
        journal = self._journal(run.journal_dir, plan, run_id, resumed=past is not None)
        with contextlib.closing(journal):
            execution = Execution(
                plan,
                ways,
                journal,
                check=check,
                limits=limits,
                timing=self._timing,
                observe=run.observe,
                steering=run.steering,
                throttle=self._settings.throttle(journal, rates, run.steering, past),
                room=Room(self._admin, limits, self._timing).of,
                watch=Watch(
                    self._admin,
                    plan.moves,
                    limits,
                    self._timing,
                    Room(self._admin, limits, self._timing).of,
                ),
                balancer=self._settings.balancer(journal, past),
                segments=self._settings.segments(journal, past),
                outlook=WeeklyForecast(
                    plan, limits, pace, self._timing, self._inside_bytes
                ),
                past=past,
            )
            report = execution.run()
        report = with_balance(report, plan, self._admin)
        return with_remaining(report, plan), execution.rolls_back

    def _restore_first(self, plan: Plan, journal_dir: Path, *, undoes: bool) -> None:
        """Restore what earlier runs have left, before a plan for this cluster runs.

        Otherwise the run would take it for a setting of someone else and restore it at
        its end. What remains is named.
        """
        cluster_id = self._admin.cluster().cluster_id
        if cluster_id != plan.cluster_id:
            return
        # A throttle may be in force for moves in progress; the checks refuse the plan.
        if undoes or not self._admin.reassignments():
            self._warn_of(self._clean_up(journal_dir, cluster_id))
        if not undoes:
            self._warn_of(remains(journal_dir, cluster_id))

    def clean_up(self, journal_dir: Path, *, idle: bool = False) -> list[str]:
        """Take away what interrupted runs have left set; what it did, in words.

        idle: only where no partition is being moved, which may be what a throttle is
        for. `left` names what is in force after all. Raises GuardrailRefused while a
        run is in progress, else as the cluster does.
        """
        cluster = self._admin.cluster().cluster_id
        with self._sole_writer(journal_dir, cluster, threading.Event()):
            if idle and (moving := self._admin.reassignments()):
                raise GuardrailRefused(f"{min(moving)} is still being moved")
            return self._clean_up(journal_dir, cluster)

    def left(self, journal_dir: Path) -> list[str]:
        """What is in force of runs that have ended, or may be theirs, in words."""
        cluster_id = self._admin.cluster().cluster_id
        return [
            *remains(journal_dir, cluster_id),
            *suspects(self._admin, journal_dir, cluster_id),
        ]

    def _clean_up(self, journal_dir: Path, cluster: str) -> list[str]:
        """The newest run first: what it found set may be what an older one has left."""
        did = []
        newer: list[Throttled] = []
        """Of these some may be in force still, in place of what older ones have set."""
        for past in reversed(left_set(journal_dir, cluster)):
            if past.throttled is not None:
                held = reduce(Throttled.with_newer, reversed(newer), past.throttled)
                newer.append(past.throttled)
                past = replace(past, throttled=held)
            words = "; ".join(self._undone(journal_dir, past))
            did += [f"run {past.run_id}: {words}"] if words else []
            did += [f"run {past.run_id}: {warning}" for warning in past.warnings]
        return did

    def _undone(self, journal_dir: Path, past: PastRun) -> Iterator[str]:
        """What was done about one run, in words; others follow whatever comes of it."""
        try:
            journal = self._journal(journal_dir, past.plan, past.run_id, resumed=True)
            with contextlib.closing(journal):
                yield from self._settings.undo(journal, past)
            if journal.problem:
                yield (
                    f"its journal cannot record that ({journal.problem}); make "
                    f"{journal.path} writable and repeat plimsoll cleanup"
                )
        except PlimsollError as exc:
            yield str(exc)

    def _warn_of(self, sentences: Iterable[str]) -> None:
        """Give warnings, each once."""
        for words in sentences:
            if words not in self._warned:
                _log.warning("%s", words)
            self._warned.add(words)

    def forecast(
        self, plan: Plan, journal_dir: Path, moves_in_flight: int | None = None
    ) -> Forecast:
        """What a plan will take, judged by earlier runs on this cluster.

        Raises ClusterUnreachable.
        """
        self._admin.cluster()
        limits = _with(self._limits, moves_in_flight)
        pace = self._pace(journal_dir, plan.cluster_id)
        room = Room(self._admin, limits, self._timing).of(plan.moves)
        return forecast(plan, limits, pace, room, self._inside_bytes(plan.moves))

    def _pace(self, journal_dir: Path, cluster_id: str) -> Pace:
        runs = past_runs(journal_dir, cluster_id)
        return Pace.of([list(past.moves.values()) for past in runs])

    def _inside_bytes(self, moves: Sequence[Move]) -> Sizes:
        return inside_bytes(self._admin, moves)

    def elections(
        self,
        topics: Collection[str] | None = None,
        ids: Collection[PartitionId] | None = None,
    ) -> Elections:
        """Where another than the preferred replica leads; as `find_elections`."""
        return find_elections(self._admin, topics, ids)

    def elect(
        self, wanted: Elections, journal_dir: Path, by: str = ""
    ) -> tuple[Election, ...]:
        """Hold the elections that are possible; those without success, and why.

        Each request is in the journal before it is sent. Raises GuardrailRefused while
        a run is in progress, else as the cluster and the journal do.
        """
        with self._action("elect", journal_dir, wanted.cluster_id, by) as journal:

            def announce(elections: Sequence[Election]) -> None:
                documents = [election.document() for election in elections]
                journal.write(JournalEvent.ELECTING, elections=documents)

            ids = [election.id for election in wanted.possible]
            failed = hold_elections(self._admin, self._timing, ids, announce)
            documents = [election.document() for election in failed]
            words = f"{len(ids) - len(failed)} of {len(ids)} elected"
            journal.write(JournalEvent.NOTED, note=words, not_elected=documents)
            return failed

    @contextlib.contextmanager
    def creating_topic(
        self,
        topic: str,
        how: Mapping[str, object],
        *,
        journal_dir: Path,
        cluster_id: str,
        by: str = "",
    ) -> Iterator[None]:
        """Under lock, lease and journal, for whoever creates a topic of plimsoll's own.

        Raises GuardrailRefused while a run is in progress, and as the journal does.
        """
        with self._action("topic", journal_dir, cluster_id, by) as journal:
            journal.write(JournalEvent.CREATING, topic=topic, how=dict(how))
            if self._archive is not None:
                self._archive.lease.need()
            yield

    @contextlib.contextmanager
    def _action(
        self, kind: str, journal_dir: Path, cluster_id: str, by: str
    ) -> Iterator[RunJournal]:
        """A change without a plan, under lock and lease, and the journal of it."""
        with self._sole_writer(journal_dir, cluster_id, threading.Event()):
            run_id = new_run_id(journal_dir, self._timing.now_ms(), kind)
            about = Action(cluster_id)
            journal = self._journal(journal_dir, about, run_id, resumed=False)
            with contextlib.closing(journal):
                journal.write(JournalEvent.STARTED, by=by)
                try:
                    yield journal
                except Exception as exc:
                    state, reason = RunState.FAILED, str(exc)
                    journal.write(JournalEvent.ENDED, state=state, reason=reason)
                    raise
                journal.write(JournalEvent.ENDED, state=RunState.DONE, reason="")

    def rebalancers(self, *, shared: bool) -> tuple[str, ...]:
        """Others that move or may move partitions of this cluster, in words.

        shared: whether some are in shared storage, which AutoMQ's own balancer moves.
        Changes nothing. Raises ClusterUnreachable or RightsMissing.
        """
        try:
            found = list(authorities.check(self._admin, self._admin.cluster()))
        except GuardrailRefused as exc:
            found = [str(exc)]
        if shared and not self._limits.stand_down_balancer:
            acts = AutoMQBalancer(self._admin, self._timing).acts()
            found += [f"{acts} and would work against a plan."] if acts else []
        return tuple(found)

    def dry_run(self, plan: Plan, journal_dir: Path | None = None) -> list[str]:
        """The requests that would be sent, after the same checks.

        journal_dir: where the run is that the plan undoes, if it does.
        """
        ways = self._platforms()
        undoes = journal_dir is not None and rolls_back(plan, journal_dir)
        if not undoes:
            refuse_overfilled(plan)
        self._check(plan, ways, {}, frozenset(), undoes=undoes)
        self._settings.rates(plan, self._limits).check(plan.moves)
        moves = in_order(plan.moves)
        return [
            *self._settings.requests(moves),
            *(request for m in moves for request in ways[m.storage].requests(m)),
        ]

    def close(self) -> None:
        """Close the connection."""
        self._admin.close()

    @contextlib.contextmanager
    def _sole_writer(
        self, journal_dir: Path, cluster_id: str, stop: threading.Event
    ) -> Iterator[None]:
        with contextlib.ExitStack() as held:
            held.enter_context(sole_writer(journal_dir, cluster_id))
            if self._archive is not None:
                held.enter_context(
                    self._archive.sole_writer(journal_dir, cluster_id, stop)
                )
            yield

    def _new_run_id(self, journal_dir: Path, plan: Plan) -> str:
        return new_run_id(journal_dir, self._timing.now_ms(), plan.hash[:8])

    def _journal(
        self, journal_dir: Path, plan: Plan | Action, run_id: str, *, resumed: bool
    ) -> RunJournal:
        sink = (
            self._archive.sink(journal_dir, plan, run_id)
            if self._archive is not None
            else None
        )
        return RunJournal(
            journal_dir, plan, run_id, self._timing, resumed=resumed, sink=sink
        )

    def _platforms(self) -> Mapping[StorageKind, Platform]:
        return dialects(
            self._admin,
            timing=self._timing,
            limits=self._limits,
            tier=self._tier,
            wal=self._wal,
        )

    def _check(
        self,
        plan: Plan,
        ways: Mapping[StorageKind, Platform],
        ours: Mapping[PartitionId, str],
        going_on: Collection[PartitionId],
        *,
        undoes: bool,
    ) -> None:
        seen = preflight.observe(self._admin, plan)
        listed = {p: r for p, r in seen.reassignments.items() if p not in going_on}
        preflight.check(plan, replace(seen, reassignments=listed), ours)
        if not undoes:
            refuse_broken(plan, seen)
            self._warn_of(unjudged(plan))
        self._warn_of(authorities.check(self._admin, seen.cluster))
        for kind in {move.storage for move in plan.moves}:
            ways[kind].check([m for m in plan.moves if m.storage is kind])


def _with(limits: RunLimits, moves_in_flight: int | None) -> RunLimits:
    if moves_in_flight is None:
        return limits
    return replace(limits, moves_in_flight=moves_in_flight)


@dataclass(frozen=True, slots=True)
class _Run:
    """How a run is carried out, whatever it does."""

    journal_dir: Path
    moves_in_flight: int | None
    observe: Callable[[RunProgress], None]
    steering: Steering


def connect(
    bootstrap: str,
    *,
    timeout_s: float,
    properties: ClientProperties = OPEN,
    s3: S3Settings | None = None,
    wal: S3Settings | None = None,
    archive: S3Settings | None = None,
    limits: RunLimits = _DEFAULT_LIMITS,
    timing: Timing = _REAL_TIME,
) -> Executor:
    """An executor for the cluster at `bootstrap` (`host:port`, parted by commas).

    Nothing is connected before the first call. With `s3`, what the remote tier holds
    of each partition is looked up before its move; with `wal`, whether AutoMQ's nodes
    have uploaded their logs after it; with `archive`, runs are archived there. Raises
    ConfigError.
    """
    return Executor(
        KafkaAdmin(bootstrap, timeout_s, properties),
        tier=RemoteTier(s3) if s3 is not None else None,
        wal=AutoMQWal(wal) if wal is not None else None,
        limits=limits,
        timing=timing,
        archive=archive_of(archive, timing, call_s=slowest_change_s(timeout_s))
        if archive is not None
        else None,
    )
