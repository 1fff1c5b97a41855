"""The executor as the rest of plimsoll sees it: one object per cluster."""

import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from clients.connection import OPEN, ClientProperties
from clients.s3 import S3Settings
from executor.client.cluster_admin import ClusterAdmin, ClusterReads
from executor.client.kafka_admin import (
    KafkaAdmin,
    latest_effect_s,
    longest_request_s,
    slowest_change_s,
)
from executor.client.leased_admin import leased
from executor.client.read_only_admin import ReadOnlyAdmin
from executor.client.responses import ClusterView, PartitionView
from executor.health import competing_rebalancers
from executor.health.monitor import ClusterMonitor
from executor.journal.archive import Archive, archive_of
from executor.journal.journal_access import JournalAccess
from executor.journal.journal_index import new_run_id
from executor.journal.lease import LeaseSettings
from executor.journal.left_settings import remains, suspects, with_left
from executor.journal.retention import Retention, prune
from executor.journal.run_history import (
    PastRun,
    left_set,
    past_run,
    past_runs,
    runs_of,
    undone_run,
    unfinished,
)
from executor.journal.run_journal import CORDON, HASH_DIGITS, Action, RunJournal
from executor.platforms.automq_balancer import BalancerReads
from executor.platforms.automq_wal import AutoMQWal
from executor.platforms.cordons import (
    CORDONED,
    Change,
    CordonChange,
    Cordons,
    OwnCordon,
    as_if_opened,
    cordoned_by_us,
    not_whole,
    opened_for,
    whole,
    with_dirs,
    without_dirs,
)
from executor.platforms.detect import platform_reads, platforms
from executor.platforms.move_progress import dead_when_planned
from executor.platforms.platform import Platform
from executor.platforms.remote_tier import RemoteTier
from executor.run.elections import LeaderElection, LeaderElections, find_elections, hold_elections
from executor.run.execution import Execution
from executor.run.log_dir_checks import inside_bytes
from executor.run.move_state_machine import SETTLE_S
from executor.run.operator_control import Steering
from executor.run.overrides import ClusterOverrides, override_requests
from executor.run.plan_evaluation import judge, refuse_overfilled
from executor.run.preflight import MIN_IN_SYNC
from executor.run.rollback_plan import (
    observed,
    plan_rollback,
    refuse_undoing_rollback,
    restores,
    rolled_back,
    rolls_back,
)
from executor.run.run_context import RunContext
from executor.run.run_outcome import with_balance, with_remaining
from executor.schedule.admission import in_order
from executor.schedule.disk_headroom import DiskHeadroom
from executor.schedule.estimate import EtaEstimator, Forecast, forecast
from executor.schedule.throughput import Pace
from executor.throttle.rates import RunRates, consumed_of
from executor.timing import RunLimits, Timing
from model.closing import Closing
from model.errors import ConfigError, GuardrailRefused
from model.ids import BrokerId, PartitionId, TopicName
from model.log_events import LogEvent, named
from model.plan.plan import Move, Plan
from model.plan.signatures import RequiredSignature, Signature
from model.run import JournalEvent, RunProgress, RunReport, RunState
from model.snapshot.snapshot import StorageKind

_DEFAULT_LIMITS: Final = RunLimits()
_REAL_TIME: Final = Timing()
_LEASES: Final = LeaseSettings()
_log = logging.getLogger("plimsoll.executor")


class Executor(Closing):
    """Executes plans on one cluster. One thread uses it.

    With an `archive`, runs are archived in its bucket before they act, the cluster's
    lease is held while they do, and runs begun on other hosts are found there.
    """

    def __init__(
        self,
        admin: ClusterAdmin,
        *,
        tier: RemoteTier | None = None,
        wal: AutoMQWal | None = None,
        limits: RunLimits = _DEFAULT_LIMITS,
        timing: Timing = _REAL_TIME,
        archive: Archive | None = None,
        retention: Retention | None = None,
        required: RequiredSignature | None = None,
    ) -> None:
        """required: plans without such a signature are refused."""
        self._required = required
        self._admin = leased(admin, archive.lease) if archive else admin
        self._reads = ReadOnlyAdmin(self._admin)
        self._archive = archive
        self._tier = tier
        self._wal = wal
        self._limits = limits
        self._timing = timing
        self._retention = retention
        self._journals = JournalAccess(timing, archive)
        self._overrides = ClusterOverrides(self._admin, limits, timing)
        self._warned: set[str] = set()
        """Warnings already given: before approval and by the run they are the same."""

    def execute(
        self,
        plan: Plan,
        *,
        journal_dir: Path,
        observe: Callable[[RunProgress], None],
        steering: Steering,
        moves_in_flight: int | None = None,
        check: Callable[[], None] | None = None,
    ) -> RunReport:
        """Execute exactly this plan; `steering` may end it early.

        `observe` receives the run after each change. `moves_in_flight` overrides that
        of the limits. `check` is called once no other process can begin a run and the journals of
        other machines are here, and may raise. Settings that earlier runs have left in force are
        restored first.

        Raises PlanOutdated or GuardrailRefused where the plan does not fit the cluster
        (nothing else was changed then), and ClusterUnreachable, RightsMissing,
        ConfigError or ExecutionStopped where it cannot be executed.
        """
        undoes = rolls_back(plan, journal_dir)
        if not undoes:
            refuse_overfilled(plan)
        limits = _with(self._limits, moves_in_flight)
        signature = self.signature_of(plan, journal_dir)
        options = _RunOptions(journal_dir, limits, observe, steering, signature)
        with self._journals.sole_writer(journal_dir, plan.cluster_id, steering.stopping):
            if check is not None:
                check()
            self._restore_first(plan, journal_dir, undoes=undoes)
            if undoes:
                self._lift_cordons(plan, journal_dir)
            run_id = new_run_id(journal_dir, self._timing.now_ms(), plan.hash[:HASH_DIGITS])
            report = self._run(plan, run_id, options)
            return self._finished(report, plan, journal_dir, undoes=undoes)

    def resume(
        self,
        *,
        journal_dir: Path,
        observe: Callable[[RunProgress], None],
        steering: Steering,
        moves_in_flight: int | None = None,
    ) -> RunReport:
        """Resume the most recent run, which was interrupted, stopped or failed.

        The state of its moves is read from the cluster; moves that have not started
        must still fit it. Raises as `execute` does, and ConfigError where there is no
        run or nothing is left to resume.
        """
        limits = _with(self._limits, moves_in_flight)
        cluster_id = self._admin.cluster().cluster_id
        with self._journals.sole_writer(journal_dir, cluster_id, steering.stopping):
            past = past_run(journal_dir, cluster_id)
            if not past.is_unfinished:
                raise ConfigError(
                    f"The newest run {past.run_id} has ended; nothing is left to resume."
                )
            signature = self._signed_before(past, journal_dir)
            options = _RunOptions(journal_dir, limits, observe, steering, signature)
            for warning in past.warnings:
                _log.warning("%s", warning, extra=named(LogEvent.RUN_WARNING))
            self._let_settle(past)
            if undoes := rolls_back(past.plan, journal_dir):
                self._lift_cordons(past.plan, journal_dir)
            report = self._run(past.plan, past.run_id, options, past)
            return self._finished(report, past.plan, journal_dir, undoes=undoes)

    def _finished(
        self, report: RunReport, plan: Plan, journal_dir: Path, *, undoes: bool
    ) -> RunReport:
        """Restore what earlier runs have left and could not be restored before this one.

        The run has taken such settings for someone else's, and has restored them.
        """
        if any(p.run_id != report.run_id for p in left_set(journal_dir, plan.cluster_id)):
            self._warn(self._overrides.clean_up(self._journals, journal_dir, plan.cluster_id))
        if undoes:
            report = with_left(report, journal_dir, plan.cluster_id)
        self._prune(journal_dir)
        return report

    def signature_of(self, plan: Plan, journal_dir: Path) -> Signature | None:
        """The signature that lets a plan be executed; None where none is required.

        The rollback of a run restores what the plan of that run names, so that it needs no
        signature but that one. Raises GuardrailRefused without a valid signature, and ConfigError
        where the keys cannot be used.
        """
        if self._required is None:
            return None
        if rolls_back(plan, journal_dir):
            undone = past_run(journal_dir, plan.cluster_id, undone_run(plan))
            return self._signed_before(undone, journal_dir)
        return self._required.of(plan.hash)

    def _signed_before(self, past: PastRun, journal_dir: Path) -> Signature | None:
        """The signature of an earlier run's plan, verified again; as `signature_of`."""
        if self._required is None:
            return None
        if restores(past.plan):
            return self.signature_of(past.plan, journal_dir)
        return self._required.again(past.plan.hash, past.signature)

    def _prune(self, journal_dir: Path) -> None:
        """Delete journals that nothing needs; precondition: lock and lease are held."""
        if self._retention is not None:
            prune(journal_dir, self._retention, self._timing.now_ms())

    def plan_rollback(self, journal_dir: Path, run_id: str | None) -> tuple[Plan, list[str]]:
        """Plan the rollback of a run, by default the most recent one.

        Returns the plan, and why moves are left alone, in words. The present placement
        is read from the cluster. Raises as `past_run` does, and GuardrailRefused where
        a move is still in progress or ended too recently, or where the most recent run
        is itself an unfinished rollback.
        """
        cluster_id = self._reads.cluster().cluster_id
        if self._archive is not None:
            self._archive.fetch(journal_dir, cluster_id, run_id)
        past = past_run(journal_dir, cluster_id, run_id)
        if run_id is None:
            refuse_undoing_rollback(past)
        return self._plan_rollback(past)

    def _plan_rollback(self, past: PastRun) -> tuple[Plan, list[str]]:
        self._let_settle(past)
        by_kind = platform_reads(self._reads, timing=self._timing, limits=self._limits)
        found = observed(past, by_kind)
        alive = self._reads.cluster().alive
        plan, left = plan_rollback(past, found, alive, self._timing.now_ms())
        return plan, [*past.warnings, *left]

    def _let_settle(self, past: PastRun) -> None:
        """Wait until lagging brokers show what a run requested last."""
        since_s = (self._timing.now_ms() - past.last_at_ms) / 1000
        self._timing.pause(min(SETTLE_S, max(0.0, SETTLE_S - since_s)))

    def _run(
        self, plan: Plan, run_id: str, options: "_RunOptions", past: PastRun | None = None
    ) -> RunReport:
        """One run, and its rollback where a stop rule demands that."""
        opened = self._journals.opened(options.journal_dir, plan, run_id, resumed=past is not None)
        with opened as journal:
            execution = Execution(self._context(plan, journal, options, past))
            report = execution.run()
        report = with_remaining(with_balance(report, plan, self._admin), plan)
        return self._roll_back(report, plan, options) if execution.rolls_back else report

    def _context(
        self, plan: Plan, journal: RunJournal, options: "_RunOptions", past: PastRun | None
    ) -> RunContext:
        admin, timing = self._admin, self._timing
        limits, steering = options.limits, options.steering
        rates = self._overrides.rates(plan, limits)
        by_kind = self._platforms()
        undoes = rolls_back(plan, options.journal_dir)

        def check(moves: Sequence[Move]) -> None:
            ours = unfinished(options.journal_dir, plan.cluster_id)
            in_progress = {m.id for m in plan.moves} - {m.id for m in moves}
            if past is not None and not undoes:
                refuse_overfilled(past.remaining_plan)
            rest = plan.model_copy(update={"moves": tuple(moves)})
            self._warn(judge(admin, rest, by_kind, ours, in_progress, undoes=undoes))
            rates.check(moves)

        pace = self._pace(options.journal_dir, plan.cluster_id)
        monitor = ClusterMonitor(
            admin, plan.moves, limits, timing, DiskHeadroom(admin, limits, timing).of
        )
        return RunContext(
            plan=plan,
            limits=limits,
            timing=timing,
            journal=journal,
            steering=steering,
            observe=options.observe,
            platforms=by_kind,
            check=check,
            signature=options.signature,
            overrides=self._overrides.of_run(journal, rates, steering, past),
            headroom=DiskHeadroom(admin, limits, timing).of,
            monitor=monitor,
            reading=lambda: monitor.reading,
            eta=EtaEstimator(plan, limits, pace, timing, partial(inside_bytes, admin)),
            past=past,
            # A rollback restores what was, wherever brokers have died or returned since.
            dead=frozenset() if undoes else dead_when_planned(plan),
        )

    def _roll_back(self, report: RunReport, plan: Plan, options: "_RunOptions") -> RunReport:
        rules = options.limits.stop_rules.for_rollback()
        back_options = replace(options, limits=replace(options.limits, stop_rules=rules))
        journal_dir = options.journal_dir

        def plan_rollback() -> tuple[Plan, list[str]]:
            return self._plan_rollback(past_run(journal_dir, plan.cluster_id, report.run_id))

        def run_rollback(back: Plan) -> RunReport:
            self._lift_cordons(back, journal_dir)
            back_id = new_run_id(journal_dir, self._timing.now_ms(), back.hash[:HASH_DIGITS])
            return self._run(back, back_id, back_options)

        return rolled_back(
            report,
            plan_rollback=plan_rollback,
            execute=run_rollback,
            steering=options.steering,
            timing=self._timing,
        )

    def _restore_first(self, plan: Plan, journal_dir: Path, *, undoes: bool) -> None:
        """Restore what earlier runs have left, before a plan for this cluster runs.

        Otherwise the run would take it for someone else's setting and restore it at
        its end. What remains is named in warnings.
        """
        cluster_id = self._admin.cluster().cluster_id
        if cluster_id != plan.cluster_id:
            return
        # A throttle may be in force for moves in progress; the checks refuse the plan.
        if undoes or not self._admin.reassignments():
            self._warn(self._overrides.clean_up(self._journals, journal_dir, cluster_id))
        if not undoes:
            self._warn(remains(journal_dir, cluster_id))

    def clean_up(self, journal_dir: Path, *, idle: bool = False) -> list[str]:
        """Restore the settings that interrupted runs have left; say what was done.

        `idle`: only while no partition is being moved, since a throttle may be in force
        for that move. `left` names what remains. Raises GuardrailRefused while a run is
        in progress, and otherwise as the cluster's calls do.
        """
        cluster_id = self._admin.cluster().cluster_id
        with self._journals.sole_writer(journal_dir, cluster_id):
            if idle and (moving := self._admin.reassignments()):
                raise GuardrailRefused(f"{min(moving)} is still being moved")
            return self._overrides.clean_up(self._journals, journal_dir, cluster_id)

    def left(self, journal_dir: Path) -> list[str]:
        """Settings in force that ended runs have set or may have set, in words."""
        cluster_id = self._reads.cluster().cluster_id
        return [*remains(journal_dir, cluster_id), *suspects(self._reads, journal_dir, cluster_id)]

    def _warn(self, warnings: Iterable[str]) -> None:
        """Log each warning once."""
        for warning in warnings:
            if warning not in self._warned:
                _log.warning("%s", warning, extra=named(LogEvent.RUN_WARNING))
            self._warned.add(warning)

    def forecast(
        self, plan: Plan, journal_dir: Path, moves_in_flight: int | None = None
    ) -> Forecast:
        """Estimate the time, bytes and peaks of a plan from earlier runs.

        Raises ClusterUnreachable.
        """
        self._reads.cluster()
        limits = _with(self._limits, moves_in_flight)
        pace = self._pace(journal_dir, plan.cluster_id)
        headroom = DiskHeadroom(self._reads, limits, self._timing).of(plan.moves)
        return forecast(plan, limits, pace, headroom, inside_bytes(self._reads, plan.moves))

    def _pace(self, journal_dir: Path, cluster_id: str) -> Pace:
        runs = past_runs(journal_dir, cluster_id)
        return Pace.of([list(past.moves.values()) for past in runs])

    def elections(
        self, topics: Collection[str] | None = None, ids: Collection[PartitionId] | None = None
    ) -> LeaderElections:
        """Partitions not led by their preferred replica; as `find_elections`."""
        return find_elections(self._reads, topics, ids)

    def elect(
        self, requested: LeaderElections, journal_dir: Path, by: str = ""
    ) -> tuple[LeaderElection, ...]:
        """Elect the preferred leaders that can be; return the failed elections.

        Each request is journalled before it is sent. Raises GuardrailRefused while a
        run is in progress, and otherwise as the cluster's calls and the journal do.
        """
        ids = [election.id for election in requested.possible]
        with self._journals.action("elect", journal_dir, requested.cluster_id, by) as journal:
            return hold_elections(self._admin, self._timing, ids, journal)

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
        """Journal the creation of a topic of plimsoll's own, under lock and lease.

        Raises GuardrailRefused while a run is in progress, and as the journal does.
        """
        with self._journals.action("topic", journal_dir, cluster_id, by) as journal:
            journal.write(JournalEvent.CREATING, topic=topic, how=dict(how))
            if self._archive is not None:
                self._archive.lease.need()
            yield

    def cordon(
        self, brokers: Collection[BrokerId], *, journal_dir: Path, cluster_id: str, by: str = ""
    ) -> tuple[CordonChange, ...]:
        """Cordon brokers, so that Kafka gives them no new replicas (4.3, KIP-1066).

        A value that someone else has set stays, and a broker that knows no cordons is left as it
        is. Raises GuardrailRefused while a run is in progress, and as the calls and the journal do.
        """
        return self._cordon(brokers, whole, journal_dir, cluster_id, by)

    def uncordon(
        self, brokers: Collection[BrokerId], *, journal_dir: Path, cluster_id: str, by: str = ""
    ) -> tuple[CordonChange, ...]:
        """Remove the cordons that `cordon` has set; those of directories stay. Raises as that."""
        return self._cordon(brokers, not_whole, journal_dir, cluster_id, by)

    def cordon_dirs(
        self, broker: BrokerId, paths: Collection[str], *, journal_dir: Path, by: str = ""
    ) -> CordonChange:
        """Cordon log directories of a broker, and keep those cordoned before; as `cordon`."""
        return self._cordon_of(broker, with_dirs(paths), journal_dir, by)

    def uncordon_dirs(
        self, broker: BrokerId, paths: Collection[str], *, journal_dir: Path, by: str = ""
    ) -> CordonChange:
        """Remove what `cordon_dirs` has set for these directories; raises as that does."""
        return self._cordon_of(broker, without_dirs(paths), journal_dir, by)

    def log_dirs(self, broker: BrokerId) -> tuple[str, ...]:
        """Paths of a live broker's log directories, sorted; raises as the call does.

        Empty where the rights do not show them.
        """
        return tuple(sorted(view.path for view in self._reads.log_dirs(broker, ())))

    def knows_cordons(self, broker: BrokerId) -> bool:
        """Whether a live broker has `cordoned.log.dirs` (4.3); raises as the call does."""
        return CORDONED in self._reads.broker_configs(broker, [CORDONED])

    def _cordon_of(
        self, broker: BrokerId, change: Change, journal_dir: Path, by: str
    ) -> CordonChange:
        cluster_id = self._admin.cluster().cluster_id
        (found,) = self._cordon([broker], change, journal_dir, cluster_id, by)
        return found

    def _cordon(
        self,
        brokers: Collection[BrokerId],
        change: Change,
        journal_dir: Path,
        cluster_id: str,
        by: str,
    ) -> tuple[CordonChange, ...]:
        if self._archive is not None:
            # The journals of other machines have their cordons.
            self._archive.fetch(journal_dir, cluster_id)
        cordons = self._cordons(journal_dir, cluster_id)
        if (found := cordons.unchanged(brokers, change)) is not None:
            return found
        with self._journals.action(CORDON, journal_dir, cluster_id, by) as journal:
            # Someone may have changed them until the lock was free.
            return self._cordons(journal_dir, cluster_id).make(brokers, change, journal)

    def _cordons(self, journal_dir: Path, cluster_id: str) -> Cordons:
        return Cordons(self._admin, self._timing, cordoned_by_us(journal_dir, cluster_id))

    def _lift_cordons(self, plan: Plan, journal_dir: Path) -> None:
        """Remove own cordons that would keep a rollback from moving replicas back.

        Precondition: the lock and the lease of the cluster are held.
        """
        opened = opened_for(cordoned_by_us(journal_dir, plan.cluster_id), plan.moves)
        if not opened:
            return
        run_id = new_run_id(journal_dir, self._timing.now_ms(), CORDON)
        about = Action(plan.cluster_id)
        with self._journals.opened(journal_dir, about, run_id, resumed=False) as journal:
            journal.write(JournalEvent.STARTED, by="")
            for broker, remaining in opened.items():
                cordons = self._cordons(journal_dir, plan.cluster_id)
                cordons.make([broker], partial(_kept, remaining), journal)
            journal.write(JournalEvent.ENDED, state=RunState.DONE, reason="")

    def cluster(self) -> ClusterView:
        """The cluster's id, its live brokers and their racks; raises as the call does."""
        return self._reads.cluster()

    def replicas_on(self, brokers: Collection[BrokerId]) -> dict[PartitionId, tuple[BrokerId, ...]]:
        """Replica lists of the partitions that any of these brokers holds or is to hold.

        A reassignment in progress shows its old and new replicas. Raises as the cluster's calls do.
        """
        wanted = {*brokers}
        return {pid: held for pid, held in self.replica_lists().items() if wanted & {*held}}

    def replica_lists(self) -> dict[PartitionId, tuple[BrokerId, ...]]:
        """Replica lists of all partitions, sorted; old and new ones as for `replicas_on`."""
        found = {pid: view.replicas for pid, view in self._reads.partitions().items()}
        for pid, target in self._reads.reassignments().items():
            found[pid] = tuple(dict.fromkeys((*target, *found.get(pid, ()))))
        return dict(sorted(found.items()))

    def replicas_in(self, broker: BrokerId, paths: Collection[str]) -> list[PartitionId]:
        """Partitions whose replica on this broker is in one of these log directories, sorted.

        Also those that are being copied into one. Raises as the cluster's calls do.
        """
        ids = self.replicas_on([broker])
        found = [d for d in self._reads.log_dirs(broker, ids) if d.path in paths]
        return sorted({pid for entry in found for pid in (*entry.sizes, *entry.coming)})

    def metadata_dir(self, broker: BrokerId) -> str:
        """The log directory in which a broker keeps the cluster's metadata; empty if unknown.

        That is `metadata.log.dir`, else the first of `log.dirs`. Raises as the call does.
        """
        keys = ("metadata.log.dir", "log.dirs", "log.dir")
        found = self._reads.broker_configs(broker, keys)
        named = (found.get(key, "").split(",")[0].strip() for key in keys)
        return next(filter(None, named), "")

    def views_on(self, brokers: Collection[BrokerId]) -> dict[PartitionId, PartitionView]:
        """The partitions that any of these brokers holds; raises as the cluster's calls do."""
        wanted = {*brokers}
        found = sorted(self._reads.partitions().items())
        return {pid: view for pid, view in found if wanted & {*view.replicas}}

    def min_in_sync(self, topics: Collection[TopicName]) -> dict[TopicName, int]:
        """`min.insync.replicas` by topic; raises as the call does."""
        if not topics:
            return {}
        found = self._reads.topic_configs(sorted(topics), [MIN_IN_SYNC])
        return {topic: int(values.get(MIN_IN_SYNC, 1)) for topic, values in found.items()}

    def watch_lease(self, cluster_id: str) -> None:
        """Note the lease of a cluster, so that a later run waits less for one that has expired.

        Raises as the archive does.
        """
        if self._archive is not None:
            self._archive.lease.watch(cluster_id)

    def runs(self, journal_dir: Path, cluster_id: str) -> list[PastRun]:
        """The newest readable runs on a cluster, oldest first; those of the archive, too."""
        if self._archive is not None:
            self._archive.fetch(journal_dir, cluster_id)
        return past_runs(journal_dir, cluster_id)

    def runs_of(self, journal_dir: Path, cluster_id: str, plans: Collection[str]) -> list[PastRun]:
        """As `runs`, those of the plans with these hashes alone, of any age."""
        if self._archive is not None:
            self._archive.fetch(journal_dir, cluster_id, plans=plans)
        return runs_of(journal_dir, cluster_id, plans)

    def rebalancers(self, *, shared: bool) -> tuple[str, ...]:
        """Competing rebalancers of this cluster, each in a sentence.

        `shared`: whether some partitions are in shared storage, which AutoMQ's own
        balancer moves. Changes nothing. Raises ClusterUnreachable or RightsMissing.
        """
        try:
            found = list(competing_rebalancers.check(self._reads, self._reads.cluster()))
        except GuardrailRefused as exc:
            found = [str(exc)]
        if shared and not self._limits.suspend_balancer:
            acts = BalancerReads(self._reads).acts()
            found += [f"{acts} and would work against a plan."] if acts else []
        return tuple(found)

    def dry_run(self, plan: Plan, journal_dir: Path | None = None) -> list[str]:
        """The requests that `execute` would send, as text, after the same checks.

        `journal_dir`: where the run is that the plan undoes, if it is a rollback.
        """
        by_kind = platform_reads(self._reads, timing=self._timing, limits=self._limits)
        undoes = journal_dir is not None and rolls_back(plan, journal_dir)
        if not undoes:
            refuse_overfilled(plan)
        reads: ClusterReads = self._reads
        if undoes and journal_dir is not None:
            # The run itself lifts these cordons first.
            ours = cordoned_by_us(journal_dir, plan.cluster_id)
            reads = as_if_opened(reads, opened_for(ours, plan.moves))
        self._warn(judge(reads, plan, by_kind, {}, (), undoes=undoes))
        RunRates(self._reads, self._timing, self._limits, consumed_of(plan)).check(plan.moves)
        moves = in_order(plan.moves)
        return [
            *override_requests(self._reads, self._limits, moves),
            *(request for m in moves for request in by_kind[m.storage].requests(m)),
        ]

    def close(self) -> None:
        """Close the connection."""
        self._admin.close()

    def _platforms(self) -> Mapping[StorageKind, Platform]:
        return platforms(
            self._admin, timing=self._timing, limits=self._limits, tier=self._tier, wal=self._wal
        )


def _kept(remaining: OwnCordon, _before: OwnCordon) -> OwnCordon:
    return remaining


def _with(limits: RunLimits, moves_in_flight: int | None) -> RunLimits:
    if moves_in_flight is None:
        return limits
    return replace(limits, moves_in_flight=moves_in_flight)


@dataclass(frozen=True, slots=True)
class _RunOptions:
    """How a run is executed, whatever its plan."""

    journal_dir: Path
    limits: RunLimits
    observe: Callable[[RunProgress], None]
    steering: Steering
    signature: Signature | None


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
    leases: LeaseSettings = _LEASES,
    retention: Retention | None = None,
    required: RequiredSignature | None = None,
) -> Executor:
    """Make an executor for the cluster at `bootstrap` (`host:port`, comma-separated).

    Nothing is connected before the first call; `timeout_s` limits each request. With
    `s3`, each partition's segments in the remote tier are listed before its move; with
    `wal`, the upload of AutoMQ nodes' write-ahead logs is verified after it; with
    `archive`, runs are archived there. `retention`: which journals are deleted after a
    run; None for none. `required`: as of `Executor`. Raises ConfigError.
    """
    shared = None
    if archive is not None:
        shared = archive_of(
            archive,
            timing,
            call_s=longest_request_s(timeout_s),
            slowest_s=slowest_change_s(timeout_s),
            late_s=latest_effect_s(timeout_s),
            leases=leases,
        )
    return Executor(
        KafkaAdmin(bootstrap, timeout_s, properties, shared.lease.need if shared else None),
        tier=RemoteTier(s3) if s3 is not None else None,
        wal=AutoMQWal(wal) if wal is not None else None,
        limits=limits,
        timing=timing,
        archive=shared,
        retention=retention,
        required=required,
    )
