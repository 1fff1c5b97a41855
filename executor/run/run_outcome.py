"""What a run has achieved: the balance of brokers, and the violations that remain."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from executor.client.cluster_admin import ClusterReads
from executor.client.responses import PartitionView
from model.errors import ClusterUnreachable, RightsMissing
from model.files import rounded
from model.ids import BrokerId, PartitionId
from model.log_events import LogEvent, named
from model.plan.plan import BrokerChange, Move, Plan
from model.plan.remaining import OverLimit, RackViolation
from model.run import BrokerBalance, MoveProgress, MoveState, RunReport

Loads = dict[str, float]
"""By dimension, in its unit."""
NOT_MADE: Final = "its move was not completed"
_log = logging.getLogger("plimsoll.executor")


def with_balance(report: RunReport, plan: Plan, admin: ClusterReads) -> RunReport:
    """Add the achieved balance of brokers to the report of a run.

    Left out where the cluster does not answer.
    """
    if not plan.brokers:
        return report
    try:
        views = admin.partitions([move.id for move in plan.moves])
    except (ClusterUnreachable, RightsMissing) as exc:
        _log.debug("the final placement is unknown: %s", exc, extra=named(LogEvent.RUN_UNANSWERED))
        return report
    return report.model_copy(update={"brokers": balance(plan, views)})


def recounted(plan: Plan, moves: Mapping[PartitionId, MoveProgress]) -> tuple[BrokerBalance, ...]:
    """The balance according to a journal: only moves that are DONE count as made."""
    views = {pid: view_of(of.move, made=of.state is MoveState.DONE) for pid, of in moves.items()}
    return balance(plan, views)


def view_of(move: Move, *, made: bool) -> PartitionView:
    """The partition's metadata as planned after its move, or as before it."""
    replicas = move.replicas_after if made else move.replicas_before
    return PartitionView(
        id=move.id,
        topic_id=move.topic_id,
        replicas=replicas,
        in_sync=frozenset(replicas),
        offline=frozenset(),
        leader=move.leader_after if made else move.leader_before,
    )


def balance(plan: Plan, views: Mapping[PartitionId, PartitionView]) -> tuple[BrokerBalance, ...]:
    """Return each broker's load and deviation with the placement of these views.

    Partitions outside the plan are assumed unchanged; one without a view has been deleted. Empty
    where the plan has no loads of its partitions and the placement is not as planned.
    """
    if all(_is_as_planned(move, views.get(move.id)) for move in plan.moves):
        loads = {broker.id: broker.after for broker in plan.brokers}
    elif all(move.leader_load for move in plan.moves):
        loads = _loads(plan, views)
    else:
        return ()
    return tuple(_of_broker(broker, loads[broker.id]) for broker in plan.brokers)


def _is_as_planned(move: Move, view: PartitionView | None) -> bool:
    return view is not None and (view.topic_id, view.replicas, view.leader) == (
        move.topic_id,
        move.replicas_after,
        move.leader_after,
    )


def _loads(plan: Plan, views: Mapping[PartitionId, PartitionView]) -> dict[BrokerId, Loads]:
    loads = defaultdict(dict, {b.id: dict(b.before) for b in plan.brokers})
    for move in plan.moves:
        _add(loads, move, move.replicas_before, move.leader_before, -1)
        view = views.get(move.id)
        if view is not None and view.topic_id == move.topic_id:
            _add(loads, move, view.replicas, view.leader, 1)
    return loads


def _add(
    loads: dict[BrokerId, Loads],
    move: Move,
    replicas: Iterable[BrokerId],
    leader: BrokerId,
    times: int,
) -> None:
    for broker in replicas:
        weight = move.leader_load if broker == leader else move.follower_load
        for dimension, load in weight.items():
            held = loads[broker].get(dimension, 0.0)
            loads[broker][dimension] = rounded(held + times * load)


def _of_broker(broker: BrokerChange, achieved: Loads) -> BrokerBalance:
    return BrokerBalance(
        id=broker.id,
        before=broker.before,
        planned=broker.after,
        achieved=achieved,
        deviation_before=_known(broker.deviation_before, achieved),
        deviation_planned=_known(broker.deviation_after, achieved),
        deviation_achieved={
            dimension: deviation
            for dimension in broker.deviation_after
            if dimension in achieved
            and (deviation := _deviation(broker, dimension, achieved)) is not None
        },
    )


def _known(deviations: Loads, loads: Loads) -> Loads:
    """Deviations of dimensions with a known load, without those at other hours."""
    return {key: value for key, value in deviations.items() if key in loads}


def _deviation(broker: BrokerChange, dimension: str, achieved: Loads) -> float | None:
    """Scale the larger planned deviation to the achieved load: utilisation is linear in it.

    A dimension may count only after a plan that changes the replication factor.
    """
    planned = ((broker.before, broker.deviation_before), (broker.after, broker.deviation_after))
    load, there = max((at[dimension], by[dimension]) for at, by in planned if dimension in by)
    if load <= 0:
        return None
    return rounded((there + 1) * achieved[dimension] / load - 1)


def with_remaining(report: RunReport, plan: Plan) -> RunReport:
    """Add the remaining violations of those that the plan names to a report.

    Where achieved loads are unknown, a run that completed all moves leaves what the
    plan estimates, and any other run what it found.
    """
    return report.model_copy(
        update={
            "over_limit": tuple(_over_limit(report, plan)),
            "rack_violations": tuple(_rack_violations(report, plan)),
            "deferred": plan.goals.deferred,
        }
    )


def _over_limit(report: RunReport, plan: Plan) -> Iterator[OverLimit]:
    achieved = {b.id: b.achieved for b in report.brokers}
    complete = all(m.state is MoveState.DONE for m in report.moves)
    for one in plan.over_limit:
        estimated = one.after if complete else one.before
        load = achieved.get(one.broker, {}).get(one.dimension, estimated)
        if (left := one.model_copy(update={"after": load})).remains:
            yield left


def _rack_violations(report: RunReport, plan: Plan) -> Iterator[RackViolation]:
    done = {(m.topic, m.partition) for m in report.moves if m.state is MoveState.DONE}
    for one in plan.rack_violations:
        if not one.repaired:
            yield one
        elif (one.topic, one.partition) not in done:
            yield one.model_copy(update={"repaired": False, "reason": NOT_MADE})
