"""Assemble the parts: one function for each thing that commands need."""

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from clients.client_properties import read_client_properties
from clients.connection import OPEN, Connection
from control.cli.console import operator
from control.loop import questions
from control.loop.decision_log import CapacityNotes
from control.loop.dependencies import UNWATCHED, LoopParts, LoopSettings, LoopWatcher, PlanExecutor
from control.loop.loop import Loop
from control.loop.view import Mode
from control.planning.planner import planner
from control.settings.auto_limits import EAGER, AutoLimits, unattended
from control.settings.capacity_table import capacities_of
from control.settings.history_tables import history_settings
from control.settings.policy_file import PolicyFile
from control.settings.prometheus_settings import poller_of
from control.settings.retention_table import retention_of
from control.settings.service_table import StandbyLease
from control.settings.settings import S3Bucket, Settings
from control.settings.solve_table import task_limits
from control.tasks.broker_marks import MarkedBrokers
from control.tasks.task_files import TaskFiles
from control.tasks.task_retention import needed_runs
from executor.journal.lease import Lease, LeaseSettings, LeaseStore, Sightings, this_process
from executor.timing import Timing, steady_s
from model.errors import ClusterUnreachable, ConfigError, RightsMissing
from model.log_events import LogEvent, named
from model.plan.signatures import RequiredSignature
from model.snapshot.capacities import Capacities
from model.units import AUTO

if TYPE_CHECKING:
    from clients.s3 import Bucket
    from collector.collector import Collector
    from collector.history.past_loads import PastLoads
    from collector.recorded_state import Recorder, Recording
    from collector.spark.deployment import SparkSite
    from collector.spark.shared import SharedSpark
    from collector.state_replay import Replayed
    from control.planning.effort_stages import Duration
    from control.service.auto_watch import AutoWatch
    from control.service.leadership import Leadership
    from control.service.operator_actions import OperatorActions
    from control.simulation.trials import Passed, TryAll
    from control.tasks.continued_tasks import ContinuedTasks
    from control.tasks.operator_tasks import OperatorTasks
    from control.tasks.task_rollback import TaskAwareExecutor
    from executor.executor import Executor
    from executor.timing import RunLimits
    from model.goals.goals import Goals
    from model.plan.plan import Plan
    from model.snapshot.pseudonyms import Pseudonyms
    from model.snapshot.snapshot import Snapshot
    from solver.report.result import Result
    from solver.studies.solve_tasks import SolveAll

_SEEN: Final = Sightings()
"""Since when leases of others have not changed, for all leases of this process."""
IDLE_LEASE_S: Final = 20.0
"""Seconds for which the lease of a run is valid between its requests, where a service stands by."""
SPARE_LEASE_S: Final = 9.0
"""Seconds by which it outlasts a request then; so it lasts 20 s with the default `timeout_s`, too.
The bucket may be unreachable for half of that before requests must stop."""
_log = logging.getLogger("plimsoll.control")


def bootstrap_of(settings: Settings) -> str:
    """Bootstrap servers as `HOST:PORT`, separated by commas; errors as `connection`."""
    return connection(settings).bootstrap


def connection(settings: Settings) -> Connection:
    """Connection to the cluster from the settings and their `client.properties`.

    Raises
    ------
    ConfigError
        No servers are configured, or the file is not valid.
    """
    path = settings.client_properties
    client = read_client_properties(path) if path else OPEN
    bootstrap = settings.bootstrap_server or client.bootstrap
    if bootstrap is None:
        raise ConfigError(
            "no cluster is configured; give --bootstrap-server HOST:PORT, or set "
            "bootstrap_server in plimsoll.toml"
        )
    return Connection(bootstrap, timeout_s=settings.timeout_s, client=client)


def _connection_for_use(settings: Settings) -> Connection:
    found = connection(settings)
    if found.client.unused:
        _log.warning(
            "%s: plimsoll does not use: %s",
            settings.client_properties,
            ", ".join(found.client.unused),
            extra=named(LogEvent.SETTINGS_UNUSED),
        )
    return found


def journal_dir(settings: Settings) -> Path:
    """Folder of the journals of runs."""
    return settings.state_dir / "journal"


def task_files(settings: Settings) -> TaskFiles:
    """The tasks on brokers in the state folder, and in the archive if it is configured."""
    if settings.archive is None:
        return TaskFiles(settings.state_dir, most_over=settings.retention.tasks)
    from clients.s3 import S3Settings
    from control.tasks.task_archive import task_archive_of

    archive = S3Settings(**settings.archive.model_dump())
    return TaskFiles(
        settings.state_dir, task_archive_of(archive, lease_settings(settings).sightings)
    )


def lease_settings(settings: Settings) -> LeaseSettings:
    """How runs hold the cluster's lease."""
    if not settings.service.standby:
        return LeaseSettings()
    return LeaseSettings(IDLE_LEASE_S, SPARE_LEASE_S, _SEEN)


def shared_archive(settings: Settings) -> S3Bucket:
    """The archive that services on one cluster share. Raises ConfigError without one."""
    if settings.archive is None:
        raise ConfigError(
            "standby in [service] needs [archive], where runs, tasks and the leases on them are "
            "kept for the services of all hosts, whatever standby_lease is"
        )
    return settings.archive


def shared_bucket(settings: Settings) -> "Bucket | None":
    """Where user tasks are kept for the services that stand by; None without those.

    Raises ConfigError as `shared_archive`.
    """
    if not settings.service.standby:
        return None
    from clients.s3 import Bucket, S3Settings

    return Bucket(S3Settings(**shared_archive(settings).model_dump()))


def lease_store(settings: Settings) -> LeaseStore:
    """Where the lease on leading is kept; not connected yet.

    Raises ConfigError without an archive, for a lease of Kubernetes outside of a pod, and as
    `connection`.
    """
    archive, service = shared_archive(settings), settings.service
    match service.standby_lease:
        case StandbyLease.KAFKA:
            from clients.lease_topic import LeaseTopic

            return LeaseTopic(connection(settings), service.standby_topic)
        case StandbyLease.KUBERNETES:
            from clients.kubernetes_leases import KubernetesLeases, KubernetesSettings

            account, namespace = service.standby_service_account, service.standby_namespace
            return KubernetesLeases(KubernetesSettings.of_pod(os.environ, account, namespace))
        case StandbyLease.S3:
            from clients.s3 import Bucket, S3Settings

            return Bucket(S3Settings(**archive.model_dump()))


def leadership(
    settings: Settings, store: LeaseStore, actions: "OperatorActions", policy: Callable[[], str]
) -> "Leadership":
    """Contend for leading the services on the cluster; not started yet.

    store: keeps the lease. policy: hash of the policy that this service acts by.
    """
    from control.service.leadership import CALL_S, LEADING, SPARE_S, Leadership, LeadershipParts

    lease = Lease(
        store,
        Timing(),
        call_s=CALL_S,
        spare_s=SPARE_S,
        holder=this_process(),
        use=LEADING,
        sightings=_SEEN,
    )
    return Leadership(
        LeadershipParts(
            lease=lease,
            connect=lambda: executor(settings),
            files=task_files(settings),
            journal_dir=journal_dir(settings),
            policy=policy,
            pause=lambda: actions.pause,
            adopt=actions.adopt,
        )
    )


def _continued_tasks(
    settings: Settings, solved: "Callable[[Result], None] | None" = None
) -> "ContinuedTasks":
    """The tasks that `--auto` continues; solved: hears of the plans found for them."""
    from control.tasks.continued_tasks import ContinuedTasks
    from control.tasks.task_request import UNSIGNED

    def find(snapshot: "Snapshot", goals: "Goals") -> "Result":
        # The solver takes long to import, and the screen has this before its first picture.
        from solver.solve import solve

        limits = task_limits(settings.solve, len(snapshot), len(snapshot.header.brokers))
        result = solve(snapshot, goals, limits)
        if solved is not None:
            solved(result)
        return result

    return ContinuedTasks(
        barred="" if settings.require_signature is None else UNSIGNED,
        files=task_files(settings),
        connect=lambda: contextlib.closing(executor(settings)),
        journal_dir=journal_dir(settings),
        solve=find,
        goals=settings.goals,
        clock=time.time,
        steady=steady_s,
    )


def _operator_tasks(
    settings: Settings, solved: "Callable[[Result], None] | None" = None
) -> "OperatorTasks":
    """The tasks on brokers for a person at a screen."""
    from control.tasks.operator_tasks import OperatorTasks

    return OperatorTasks(_continued_tasks(settings, solved))


def _auto_watch(settings: Settings) -> "AutoWatch":
    from control.service.auto_watch import AutoWatch

    return AutoWatch(settings.state_dir, signed(settings))


def _marked_brokers(settings: Settings) -> MarkedBrokers:
    files = task_files(settings)
    refresh = None if files.archive is None else files.mirror_marks
    return MarkedBrokers(settings.state_dir, refresh)


def observer(
    settings: Settings,
    *,
    allow_changes: bool = False,
    capacities: Capacities | None = None,
    recorder: "Recorder | None" = None,
    spark: "SharedSpark | None" = None,
    early: bool = False,
) -> "Collector":
    """Create a collector with the agentless probe and Spark, not started yet.

    capacities: configured capacities; by default read as the settings say.
    recorder: receives all measurements, of a collector without any history.
    spark: what the clusters of this process share; None for a Spark of its own.
    early: as of `CollectorSettings`.
    """
    from collector.collector import Collector
    from collector.collector_settings import CollectorSettings
    from collector.reports.metric_topics import metric_topics

    # A replay has only samples, and must give the same loads.
    reported = recorder is None
    return Collector(
        _connection_for_use(settings),
        CollectorSettings(
            state_dir=settings.state_dir,
            cache_dir=settings.cache_dir,
            spark=_spark_site(settings),
            spark_maker=spark,
            interval_s=settings.interval_s,
            window_s=settings.window_s,
            samples_topic=settings.samples_topic if allow_changes else None,
            creating=partial(_creating, settings),
            metric_topics=metric_topics(settings.cruise_control_topic) if reported else (),
            polled=(poller_of(settings.prometheus),) if reported and settings.prometheus else (),
            capacities=capacities or capacities_of(settings.capacities, settings.capacity_file),
            states=_marked_brokers(settings),
            history=history_settings(settings.history, settings.forecast),
            early=early,
            apart=not reported,
        ),
        on_batch=recorder.add if recorder is not None else None,
    )


@contextlib.contextmanager
def _creating(
    settings: Settings, cluster_id: str, topic: str, how: Mapping[str, object]
) -> Iterator[None]:
    """Create a topic like any other change: with lock, lease and journal."""
    folder = journal_dir(settings)
    with (
        contextlib.closing(executor(settings)) as changing,
        changing.creating_topic(
            topic, how, journal_dir=folder, cluster_id=cluster_id, by=operator()
        ),
    ):
        yield


def _spark_site(settings: Settings) -> "SparkSite":
    from collector.spark.deployment import SparkSite, is_submitted, protected

    properties: Mapping[str, str] = settings.spark
    if not is_submitted():  # then master and properties are those of `spark-submit`
        properties = protected(settings.spark_master, properties, settings.spark_secret_file)
    return SparkSite(
        master=settings.spark_master,
        properties=properties,
        shared_state=settings.spark_shared_state,
    )


def pseudonyms(settings: Settings, key_file: Path | None) -> "Pseudonyms":
    """Pseudonyms with the key of a file, by default one in the state folder.

    Raises
    ------
    ConfigError
        The key cannot be read or created.
    """
    from model.snapshot.pseudonyms import Pseudonyms, own_key, read_key

    usual = settings.state_dir / "anonymise.key"
    return Pseudonyms(own_key(usual) if key_file is None else read_key(key_file))


def replayed(settings: Settings, recording: "Recording") -> "Replayed":
    """Compute the loads of a recorded state with the configured Spark."""
    from collector.state_replay import ReplaySettings, replay

    return replay(
        recording, ReplaySettings(state_dir=settings.state_dir, spark=_spark_site(settings))
    )


@contextlib.contextmanager
def solves(settings: Settings) -> Iterator["SolveAll"]:
    """Give what solves several tasks: on the Spark that `spark_master` names, or one by one.

    `local[*]`, the default, stands for this process: starting Spark takes longer than most
    sweeps. Any other master, `local[2]` included, starts Spark with the first task.
    """
    from collector.spark.deployment import LOCAL
    from control.planning.solves_elsewhere import solving_on
    from solver.studies.solve_tasks import solve_in_turn

    if settings.spark_master == LOCAL:
        yield solve_in_turn
        return
    with solving_on(_spark_site(settings), settings.state_dir / "sweep" / "spark.log") as found:
        yield found


@contextlib.contextmanager
def trials(settings: Settings, passed: "Passed") -> Iterator["TryAll"]:
    """Give what simulates policies: on the Spark that `spark_master` names, or one by one.

    As for `solves`, `local[*]` stands for this process. passed: hears how far simulations in
    this process are.
    """
    from collector.spark.deployment import LOCAL
    from control.simulation.trials import trying_in_turn, trying_on

    if settings.spark_master == LOCAL:
        yield trying_in_turn(passed)
        return
    log_file = settings.state_dir / "simulate" / "spark.log"
    with trying_on(_spark_site(settings), log_file) as found:
        yield found


def past_loads(settings: Settings, cluster_id: str, days: int | None) -> "PastLoads":
    """Read a cluster's newest days from its history, with the configured Spark.

    days: None for all without a gap. Errors: see `read_past_loads`.
    """
    from collector.history.past_loads import read_past_loads

    return read_past_loads(
        _spark_site(settings),
        history_settings(settings.history, settings.forecast),
        state_dir=settings.state_dir,
        cluster_id=cluster_id,
        days=days,
        log_file=settings.state_dir / "simulate" / "spark.log",
    )


def rebalancers(settings: Settings, *, shared: bool) -> list[str]:
    """Search the cluster for competing rebalancers; return one sentence each."""
    with contextlib.closing(executor(settings)) as found:
        try:
            return list(found.rebalancers(shared=shared))
        except (ClusterUnreachable, RightsMissing) as exc:
            return [f"Cannot search for competing rebalancers: {exc}"]


def durations(settings: Settings) -> "Duration":
    """Estimate the duration of runs by the pace of earlier ones, without asking the cluster."""
    from executor.journal.run_history import past_runs
    from executor.schedule.estimate import expected_seconds

    # The throttle follows brokers' bandwidth, which is known once a run asks for it.
    limits = _run_limits(settings, None)

    def seconds(plan: "Plan") -> float:
        past = past_runs(journal_dir(settings), plan.cluster_id)
        return expected_seconds(plan, limits, [list(run.moves.values()) for run in past])

    return seconds


def _run_limits(settings: Settings, given: Capacities | None) -> "RunLimits":
    """Limits of runs; given: the configured capacities, for a throttle that adapts."""
    from control.settings.throttle_settings import auto_throttle
    from executor.timing import RunLimits

    throttle = settings.throttle
    return RunLimits(
        throttle_bytes_per_s=throttle if isinstance(throttle, int) else None,
        throttle_follows=throttle == AUTO,
        auto_throttle=auto_throttle(settings.auto_throttle, given),
        suspend_balancer=settings.stand_down_balancer,
        lower_segments=settings.shorten_segments,
        stop_rules=settings.stop_rules,
    )


def required_signature(
    settings: Settings, plan_file: Path | None = None
) -> RequiredSignature | None:
    """The signature that plans need; None where none is required.

    plan_file: the plan that a command was given, beside which its signature is.
    """
    if settings.require_signature is None:
        return None
    return RequiredSignature(
        settings.require_signature, settings.state_dir / questions.FOLDER, plan_file
    )


def signed(settings: Settings) -> Callable[[str], object] | None:
    """Raises where the waiting plan with a hash lacks its signature; None if none is required."""
    required = required_signature(settings)
    return None if required is None else required.of


def executor(settings: Settings, plan_file: Path | None = None) -> "Executor":
    """Connect a client that can change the cluster; only with --allow-changes.

    plan_file: as of `required_signature`.
    """
    from clients.s3 import S3Settings
    from executor.executor import connect

    tier, wal, archive = (
        S3Settings(**bucket.model_dump()) if bucket else None
        for bucket in (settings.tier, settings.wal, settings.archive)
    )
    adapts = settings.throttle == AUTO
    given = capacities_of(settings.capacities, settings.capacity_file) if adapts else None
    found = _connection_for_use(settings)
    return connect(
        found.bootstrap,
        timeout_s=found.timeout_s,
        properties=found.client,
        s3=tier,
        wal=wal,
        archive=archive,
        limits=_run_limits(settings, given),
        leases=lease_settings(settings),
        retention=retention_of(
            settings.retention,
            settings.goals,
            lambda: needed_runs(TaskFiles(settings.state_dir), journal_dir(settings)),
        ),
        required=required_signature(settings, plan_file),
    )


def task_aware(
    settings: Settings, found: "Executor", say: Callable[[str], None]
) -> "TaskAwareExecutor":
    """The executor, whose rollbacks end what tasks have set; say: as of `TaskAwareExecutor`."""
    from control.tasks.task_rollback import TaskAwareExecutor

    return TaskAwareExecutor(
        found,
        task_files(settings),
        journal_dir(settings),
        now_ms=lambda: int(1000 * time.time()),
        say=say,
    )


def _executor_of_loop(settings: Settings) -> "PlanExecutor":
    def say(sentence: str) -> None:
        _log.info("%s", sentence, extra=named(LogEvent.RUN_SETTINGS))

    return cast("PlanExecutor", task_aware(settings, executor(settings), say))


def loop(
    settings: Settings,
    *,
    mode: Mode,
    limits: AutoLimits = EAGER,
    patient: bool = False,
    policy_file: PolicyFile | None = None,
    resume: bool = False,
    watcher: LoopWatcher = UNWATCHED,
    spark: "SharedSpark | None" = None,
) -> Loop:
    """Create the loop with its real parts, not started yet.

    policy_file: where the policy may be changed while the loop runs.
    resume: resume the run that was interrupted last, if there is one.
    watcher: hears what views do not show, for metrics and watchdogs.
    spark: what the clusters of this process share; None for a Spark of its own.
    """
    allowed = mode is not Mode.READ_ONLY
    # Read once: a file deleted later must not end a service that reconnects.
    given = capacities_of(settings.capacities, settings.capacity_file)
    own = limits.effort if mode is Mode.AUTO else None
    effort = settings.solve.effort if own is None else own
    found = Loop(
        LoopSettings(
            bootstrap=bootstrap_of(settings),
            name=settings.name,
            mode=mode,
            goals=unattended(settings.goals) if mode is Mode.AUTO else settings.goals,
            solve=settings.solve,
            effort=effort,
            limits=limits,
            triggers=settings.triggers,
            schedule=settings.schedule,
            dead_broker_after_s=settings.dead_broker_after,
            journal_dir=journal_dir(settings),
            decisions_dir=settings.state_dir,
            resume=resume,
            patient=patient,
            throttle=settings.throttle,
            screen=settings.screen,
            keys=settings.keys,
            stop_rules=settings.stop_rules,
        ),
        LoopParts(
            observer=lambda: observer(
                settings, allow_changes=allowed, capacities=given, spark=spark
            ),
            planner=planner,
            executor=(lambda: _executor_of_loop(settings)) if allowed else None,
            new_policy=None if policy_file is None else policy_file.poll,
            tasks=_continued_tasks(settings, watcher.solved) if mode is Mode.AUTO else None,
            operator_tasks=_operator_tasks(settings, watcher.solved),
            auto_watch=None if mode is Mode.AUTO else _auto_watch(settings),
            decided=watcher.decided,
            beat=watcher.beat,
            failed=watcher.failed,
            modelled=watcher.modelled,
            stands_by=watcher.stands_by,
            signed=signed(settings),
        ),
    )
    found.subscribe(CapacityNotes(partial(found.warn, event=LogEvent.CLUSTER_WARNING), given))
    return found


def front_end() -> Callable[[Loop], None]:
    """Load the screen by its entry point, so that control does not import it.

    Returns a function that shows a loop until the user leaves.
    """
    from importlib.metadata import entry_points

    (found,) = entry_points(group="plimsoll.front_ends", name="tui")
    return cast("Callable[[Loop], None]", found.load())
