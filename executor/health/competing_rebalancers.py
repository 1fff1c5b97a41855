"""Detect other rebalancers of the cluster by the traces they leave in it.

Two rebalancers on one cluster undo each other's moves. The traces of products other than Kafka
are taken from their documentation; `executor.platforms.automq` detects AutoMQ's own rebalancer.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from executor.client.cluster_admin import ClusterAdmin, ClusterReads, reassign_in_batches
from executor.client.responses import ClusterView, PartitionResponse, ResponseStatus
from model.errors import GuardrailRefused, RightsMissing
from model.ids import BrokerId, PartitionId, TopicName

_CONFLUENT: Final = "confluent.balancer.enable"
_CONFLUENT_TOPICS: Final = ("_confluent_balancer_",)
_REDPANDA: Final = "partition_autobalancing_mode"
_REDPANDA_ID: Final = "redpanda."
"""Prefix of the cluster id of every Redpanda."""
_CRUISE_TOPICS: Final = ("__CruiseControlMetrics", "__KafkaCruiseControl", "strimzi.cruisecontrol.")
_MSK_TOPICS: Final = ("__amazon_msk_",)
_PLANS_ONLY: Final = "until then plimsoll makes plans but executes none"


def check(admin: ClusterReads, cluster: ClusterView) -> tuple[str, ...]:
    """Return warnings about other products that may move partitions of this cluster.

    Raises GuardrailRefused where one is known to do so by itself.
    """
    # Both settings are the same on all brokers.
    settings = admin.broker_configs(cluster.any_alive, [_CONFLUENT, _REDPANDA])
    if settings.get(_CONFLUENT) == "true":
        raise GuardrailRefused(
            f"Confluent's Self-Balancing is on ({_CONFLUENT}=true) and would undo these moves. "
            f"Set it to false on brokers and controllers; {_PLANS_ONLY}."
        )
    _refuse_redpanda(settings.get(_REDPANDA), cluster)
    topics = admin.topics()
    warnings = []
    hidden = settings.get(_CONFLUENT) != "false"
    if hidden and (name := _first(topics, _CONFLUENT_TOPICS)):
        warnings.append(
            f"The topic {name} belongs to Confluent's Self-Balancing, and the brokers "
            f"do not report whether that is on. Make sure that {_CONFLUENT} is false, "
            "or it will undo these moves."
        )
    if name := _first(topics, _CRUISE_TOPICS):
        warnings.append(
            f"The topic {name} belongs to Cruise Control. Let it start no rebalance and no "
            "self-healing during the run: its moves stop a run, and may undo it later."
        )
    return tuple(warnings)


def _refuse_redpanda(mode: str | None, cluster: ClusterView) -> None:
    if mode == "off":
        return
    if mode is not None:
        raise GuardrailRefused(
            f"Redpanda moves partitions by itself ({_REDPANDA}={mode}) and would work "
            f"against these moves. Set it to off; {_PLANS_ONLY}."
        )
    if cluster.cluster_id.startswith(_REDPANDA_ID):
        raise GuardrailRefused(
            f"{cluster.cluster_id} is a Redpanda cluster, which does not report over Kafka's "
            f"protocol whether it moves partitions by itself ({_REDPANDA}). Make sure that this is "
            "off, write the plan with plan --reassignment-json and execute it with "
            "kafka-reassign-partitions; plimsoll executes none there."
        )


def reassign(
    admin: ClusterAdmin,
    targets: Mapping[PartitionId, Sequence[BrokerId] | None],
    *,
    resizes: bool = False,
) -> dict[PartitionId, PartitionResponse]:
    """Reassign in batches; explain refusals by Amazon MSK.

    resizes: as in `ClusterAdmin.reassign`.

    MSK's Express brokers refuse every reassignment while they balance themselves, and
    nothing shows that beforehand.
    """
    try:
        answers = reassign_in_batches(admin, targets, resizes=resizes)
    except RightsMissing as exc:
        if remedy := _on_msk(admin):
            raise RightsMissing(f"{exc} {remedy}.") from exc
        raise
    if any(answer.status is not ResponseStatus.REFUSED for answer in answers.values()):
        return answers
    remedy = _on_msk(admin)
    if not remedy:
        return answers
    return {
        pid: replace(answer, reason=f"{answer.reason}; {remedy}") for pid, answer in answers.items()
    }


def _on_msk(admin: ClusterReads) -> str:
    """The remedy for a refusal on Amazon MSK; empty elsewhere."""
    if not _first(admin.topics(), _MSK_TOPICS):
        return ""
    return (
        "Amazon MSK's Express brokers refuse reassignments while intelligent "
        "rebalancing is ACTIVE: pause it (UpdateRebalancing), then plan again"
    )


def _first(topics: Collection[TopicName], prefixes: tuple[str, ...]) -> str:
    """The first topic with one of these prefixes; empty where there is none."""
    return min((name for name in topics if name.startswith(prefixes)), default="")
