"""Plans that clients of Cruise Control ask for: one function for each endpoint that plans."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from control.cruise_control.answers import ILLEGAL, Failed
from control.cruise_control.goal_names import UnknownGoal, with_named
from control.cruise_control.goal_properties import NO_PROPERTIES, GoalProperties
from control.cruise_control.requests import BadRequest, Request
from control.planning.disk_request import broker_of, paths_of, plan_disk_removal
from control.planning.repair_request import plan_repair
from control.planning.replication_request import BadExpression, plan_replication, topics_of
from control.planning.validate import refuse_broken
from control.tasks.broker_task import BrokerTask, Operation, TaskPlan
from control.tasks.filling import NO_REST, barred
from control.tasks.operations import OPERATIONS
from control.tasks.task_parts import NoPlan, Solve, TaskExecutor, TaskParts
from executor.client.responses import PartitionView
from model.goals.goals import Goals, SolveLimits
from model.goals.topic_placement import with_topic_placements
from model.ids import BrokerId, PartitionId, TopicName
from model.names import Names
from model.plan.plan import Plan
from model.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from control.tasks.task_files import TaskFiles

OPERATION_OF: Final = {
    "add_broker": Operation.ADD,
    "remove_broker": Operation.REMOVE,
    "demote_broker": Operation.DEMOTE,
}
"""The task on brokers that executes an endpoint's plan."""
BY_DEFAULT: Final = frozenset({"proposals", "rebalance", "add_broker", "remove_broker"})
"""Endpoints whose plans balance, and so what `default.goals` name unless a request names goals."""
UNSUPPORTED: Final = {
    "kafka_assigner": "plimsoll has no other assigner",
    "rebalance_disk": (
        "plimsoll balances log directories with all else; set level_directories in [goals]"
    ),
    "replication_throttle": "set throttle in the settings of plimsoll",
}
"""Parameters that would change what is done, and why they are refused."""
UNPLANNED: Final = "com.linkedin.kafka.cruisecontrol.exception.OptimizationFailureException"
MOST_NAMED: Final = 10
MOST_FACTORS: Final = 100
"""Replication factors in one body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The plan for a request."""

    snapshot: Snapshot
    """That it was made for."""
    goals: Goals
    """That decide how good it is; those of the plan where there is one."""
    plan: Plan | None
    """None where nothing has to move."""
    entry: TaskPlan | None = None
    """As the task on brokers notes it; None where no task executes it."""
    empty: Plan | None = None
    """The plan of a task on brokers that moves nothing, and may still end marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningParts:
    """What plans are made with."""

    goals: Goals
    limits: SolveLimits
    solve: Solve
    named: GoalProperties = NO_PROPERTIES
    """The goals that requests may name, and those of requests that name none."""


def planned(request: Request, snapshot: Snapshot, parts: PlanningParts) -> Planned:
    """The plan for a request.

    Raises BadRequest for values that make no sense together, Failed for what does not exist or
    has no plan, and GuardrailRefused where rules forbid it.
    """
    refuse_impossible(request, snapshot, parts.goals, parts.named)
    name, goals = request.endpoint.name, _goals(request, parts.goals, parts.named)
    try:
        if name in OPERATION_OF:
            return _on_brokers(request, snapshot, goals, parts.solve)
        if name == "topic_configuration":
            return _replication(request, snapshot, goals, parts.limits)
        if name == "remove_disks":
            return _without_disks(request, snapshot, goals, parts.solve)
        if name == "fix_offline_replicas":
            found = plan_repair(snapshot, goals, parts.solve)
            plan = None if found is None else found.plan
            return _of(snapshot, goals, plan)
        return _balanced(request, snapshot, goals, parts.solve)
    except NoPlan as exc:
        raise Failed(str(exc), UNPLANNED) from exc


def refuse_impossible(
    request: Request, snapshot: Snapshot, goals: Goals, named: GoalProperties = NO_PROPERTIES
) -> None:
    """Refuse what no plan is needed for to know that there is none.

    Raises BadRequest for parameters that make no sense, Failed for what does not exist,
    ConfigError for topics or directories that do not, and GuardrailRefused for an operation that
    the cluster rules out.
    """
    _refuse_unsupported(request)
    _refuse_unknown(request, snapshot)
    _goals(request, goals, named)
    name = request.endpoint.name
    if name in OPERATION_OF:
        if request.values.get("destination_broker_ids"):
            raise BadRequest("destination_broker_ids is not supported for this endpoint")
        task = _task(request, snapshot)
        OPERATIONS[task.operation].refuse(task, snapshot, goals)
    if name == "topic_configuration":
        replication_of(request, snapshot)
    if name == "remove_disks":
        _paths(request, snapshot)


def _of(snapshot: Snapshot, goals: Goals, plan: Plan | None) -> Planned:
    found = None if plan is None or not plan.moves else plan
    return Planned(snapshot=snapshot, goals=goals if plan is None else plan.goals, plan=found)


def _refuse_unsupported(request: Request) -> None:
    for name, why in UNSUPPORTED.items():
        if request.values.get(name):
            raise BadRequest(f"{name} is not supported: {why}")


def _refuse_unknown(request: Request, snapshot: Snapshot) -> None:
    """Raise Failed where a named broker does not exist, in the words that Strimzi looks for."""
    named = (*request.brokers(), *request.values.get("destination_broker_ids", ()))
    _refuse_missing(snapshot, named)
    if request.endpoint.name == "demote_broker" and "brokerid_and_logdirs" in request.values:
        raise BadRequest("brokerid_and_logdirs is not supported: plimsoll demotes whole brokers")
    if request.endpoint.name in OPERATION_OF and not request.brokers():
        raise BadRequest("brokerid is missing")


def _refuse_missing(snapshot: Snapshot, brokers: Collection[BrokerId]) -> None:
    unknown = sorted({*brokers} - {*snapshot.broker})
    if unknown:
        listed = ", ".join(map(str, unknown[:MOST_NAMED]))
        raise Failed(f"Broker [{listed}] does not exist.", ILLEGAL)


def _goals(request: Request, goals: Goals, named: GoalProperties) -> Goals:
    names = request.values.get("goals", ())
    if not names and request.endpoint.name in BY_DEFAULT:
        names = named.defaults
    try:
        found = with_named(goals, names, named.supported)
    except UnknownGoal as exc:
        raise Failed(str(exc), ILLEGAL) from exc
    if "excluded_topics" in request.values:
        more: Names = request.values["excluded_topics"]
        before = found.excluded_topics
        names = before.model_copy(update={"regex": (*before.regex, *more.regex)})
        found = found.model_copy(update={"excluded_topics": names})
    return found


def _balanced(request: Request, snapshot: Snapshot, goals: Goals, solve: Solve) -> Planned:
    onto = request.values.get("destination_broker_ids", ())
    found = with_topic_placements(goals, snapshot)
    if onto:
        # As brokers are filled: new replicas lie on these alone.
        snapshot = barred(snapshot, onto)
        found = found.model_copy(update={"cooldown": NO_REST})
    result = solve(snapshot, found)
    if result.best is None:
        raise Failed(result.summary(), UNPLANNED)
    refuse_broken(snapshot, result.best)
    return _of(snapshot, found, result.best)


# ---- replication factors


def _replication(
    request: Request, snapshot: Snapshot, goals: Goals, limits: SolveLimits
) -> Planned:
    wanted = replication_of(request, snapshot)
    return _of(snapshot, goals, plan_replication(snapshot, goals, limits, wanted))


def replication_of(request: Request, snapshot: Snapshot) -> dict[TopicName, int]:
    """The topics that a request names, and the replicas that each is to have.

    From the parameters, or from a body such as
    `{"replication_factor": {"topic_by_replication_factor": {"3": "t1|t2", "2": "t3"}}}`. Raises
    BadRequest, also where two factors name a topic, and ConfigError for topics that do not exist.
    """
    wanted: dict[TopicName, int] = {}
    for pattern, replicas in _factors(request):
        try:
            topics = topics_of(snapshot, [pattern])
        except BadExpression as exc:
            raise BadRequest(str(exc)) from None
        for topic in topics:
            if wanted.setdefault(topic, replicas) != replicas:
                raise BadRequest(
                    f"topic {topic} is named with {wanted[topic]} replicas and with {replicas}"
                )
    return wanted


def _factors(request: Request) -> list[tuple[str, int]]:
    """Names or regular expressions of topics, with their replication factors."""
    if request.body:
        return _in_body(request.body)
    names, replicas = request.values.get("topic"), request.values.get("replication_factor")
    if names is None or replicas is None:
        raise BadRequest("topic and replication_factor are missing")
    return [(pattern, _factor(replicas)) for pattern in names.regex]


def _in_body(body: str) -> list[tuple[str, int]]:
    try:
        document = json.loads(body, object_pairs_hook=_without_repetition)
        by_factor = document["replication_factor"]["topic_by_replication_factor"]
        found = [(pattern, _factor(_digits(factor))) for factor, pattern in by_factor.items()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        found = []
    if not found:
        raise BadRequest(
            'the body is not {"replication_factor": {"topic_by_replication_factor": '
            '{"N": "TOPICS", ...}}}, with each N once'
        )
    if len(found) > MOST_FACTORS:
        raise BadRequest(f"the body has more than {MOST_FACTORS} replication factors")
    if not all(isinstance(pattern, str) for pattern, _ in found):
        raise BadRequest("the topics in the body are not a regular expression")
    return found


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is repeated")
    return found


def _digits(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError("not a number")
    return int(text)


def _factor(replicas: int) -> int:
    if not 1 <= replicas < 2**15:
        raise BadRequest(f"a replication factor is at least 1, not {replicas}")
    return replicas


# ---- log directories


def _without_disks(request: Request, snapshot: Snapshot, goals: Goals, solve: Solve) -> Planned:
    broker, named = _paths(request, snapshot)
    found = plan_disk_removal(snapshot, goals, solve, broker, named)
    return _of(snapshot, goals, None if found is None else found.plan)


def _paths(request: Request, snapshot: Snapshot) -> tuple[BrokerId, tuple[str, ...]]:
    """The broker and its directories, which exist."""
    broker, paths = _disks(request)
    _refuse_missing(snapshot, [broker])
    return broker, paths_of(broker_of(snapshot, broker), paths)


def _disks(request: Request) -> tuple[BrokerId, tuple[str, ...]]:
    """The broker and its directories of `0-/kafka/logs-1,0-/kafka/logs-2`. Raises BadRequest."""
    named: dict[str, list[str]] = {}
    for item in request.values.get("brokerid_and_logdirs", ()):
        broker, _, path = item.partition("-")
        named.setdefault(broker, []).append(path)
    if len(named) != 1:
        raise BadRequest("brokerid_and_logdirs names the log directories of one broker")
    ((text, paths),) = named.items()
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_NAMED and all(paths)):
        raise BadRequest("brokerid_and_logdirs is BROKER-PATH, such as 0-/kafka/logs-1")
    return BrokerId(int(text)), tuple(paths)


# ---- tasks on brokers


@dataclass(frozen=True)
class _SnapshotViews:
    """Partitions as the snapshot has them; the run checks those in sync before it begins."""

    snapshot: Snapshot

    def views_on(self, brokers: Collection[BrokerId]) -> Mapping[PartitionId, PartitionView]:
        found = {}
        for row in self.snapshot.rows():
            if not {*brokers} & {*row.replicas}:
                continue
            found[row.id] = PartitionView(
                id=row.id,
                topic_id=row.topic_id,
                replicas=row.replicas,
                in_sync=frozenset(row.replicas),
                offline=frozenset(),
                leader=row.leader,
            )
        return found

    def min_in_sync(self, topics: Collection[TopicName]) -> Mapping[TopicName, int]:
        """Not known here; what a snapshot shows as in sync suffices for any topic."""
        del topics
        return {}


def _on_brokers(request: Request, snapshot: Snapshot, goals: Goals, solve: Solve) -> Planned:
    task = _task(request, snapshot)
    found = OPERATIONS[task.operation].find(task, snapshot, _task_parts(snapshot, goals, solve))
    kept = _of(snapshot, goals, found.plan)
    empty = None if found.plan.moves else found.plan
    return Planned(
        snapshot=snapshot, goals=kept.goals, plan=kept.plan, entry=found.entry, empty=empty
    )


def _task(request: Request, snapshot: Snapshot) -> BrokerTask:
    """The task that would execute a plan; it is kept nowhere."""
    return BrokerTask.requested(
        "dry-run",
        snapshot.header.cluster_id,
        OPERATION_OF[request.endpoint.name],
        request.brokers(),
        by="dry run",
        ms=snapshot.header.taken_at_ms,
    )


def _task_parts(snapshot: Snapshot, goals: Goals, solve: Solve) -> TaskParts:
    """Parts for finding a plan alone: nothing is written, and the cluster is not asked."""
    unused: Any = _unused
    return TaskParts(
        files=cast("TaskFiles", None),
        executor=cast("TaskExecutor", _SnapshotViews(snapshot)),
        journal_dir=cast("Any", None),
        observe=unused,
        solve=solve,
        goals=goals,
        approve=unused,
        say=unused,
        watch=unused,
        steered=unused,
        moves_in_flight=1,
        now_ms=lambda: snapshot.header.taken_at_ms,
    )


def _unused(*_: object) -> Any:
    raise RuntimeError("a dry run does nothing")
