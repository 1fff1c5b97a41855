"""Others that move partitions on their own, known by what the cluster shows of them.

Two balancers on one cluster undo each other's moves. What is not Kafka's own is taken
from its makers' documentation; AutoMQ's balancer is looked for in `automq`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from executor.client import batches
from executor.client.cluster_admin import Admin
from executor.client.responses import Answer, ClusterView, Verdict
from model.errors import GuardrailRefused, RightsMissing
from model.ids import BrokerId, PartitionId, TopicName

_CONFLUENT: Final = "confluent.balancer.enable"
_CONFLUENT_TOPICS: Final = ("_confluent_balancer_",)
_REDPANDA: Final = "partition_autobalancing_mode"
_REDPANDA_ID: Final = "redpanda."
"""How the cluster id of every Redpanda begins."""
_CRUISE_TOPICS: Final = (
    "__CruiseControlMetrics",
    "__KafkaCruiseControl",
    "strimzi.cruisecontrol.",
)
_MSK_TOPICS: Final = ("__amazon_msk_",)
_PLANS_ONLY: Final = "until then plimsoll makes plans and carries out none"


def check(admin: Admin, cluster: ClusterView) -> tuple[str, ...]:
    """Warnings, in words, of others that may move partitions of this cluster.

    Raises GuardrailRefused where one does so by itself.
    """
    # Either is set alike on all brokers.
    told = admin.broker_configs(min(cluster.alive), [_CONFLUENT, _REDPANDA])
    _refuse_confluent(told.get(_CONFLUENT))
    _refuse_redpanda(told.get(_REDPANDA), cluster)
    topics = admin.topics()
    warnings = []
    hidden = told.get(_CONFLUENT) != "false"
    if hidden and (name := _first(topics, _CONFLUENT_TOPICS)):
        warnings.append(
            f"The topic {name} is of Confluent's Self-Balancing, and the brokers do "
            f"not tell whether that is on. Make sure that {_CONFLUENT} is false, else "
            "it undoes these moves."
        )
    if name := _first(topics, _CRUISE_TOPICS):
        warnings.append(
            f"The topic {name} is of Cruise Control. Let it start no rebalance and "
            "heal nothing by itself meanwhile: its moves stop a run, and undo it later."
        )
    return tuple(warnings)


def _refuse_confluent(enabled: str | None) -> None:
    if enabled == "true":
        raise GuardrailRefused(
            f"Confluent's Self-Balancing is on ({_CONFLUENT}=true) and would undo "
            f"these moves. Set it to false on brokers and controllers; {_PLANS_ONLY}."
        )


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
            f"{cluster.cluster_id} is a Redpanda, and does not tell over Kafka's "
            f"protocol whether it moves partitions by itself ({_REDPANDA}). Make sure "
            "that this is off, write the plan with plan --reassignment-json and "
            "give it to kafka-reassign-partitions; plimsoll carries out none there."
        )


def reassign(
    admin: Admin, targets: Mapping[PartitionId, Sequence[BrokerId] | None]
) -> dict[PartitionId, Answer]:
    """As `Admin.reassign`; what Amazon MSK refuses is answered with what to do.

    Its Express brokers refuse every reassignment while they balance themselves, which
    nothing shows before.
    """
    try:
        answers = batches.reassign(admin, targets)
    except RightsMissing as exc:
        if words := _on_msk(admin):
            raise RightsMissing(f"{exc} {words}.") from exc
        raise
    if any(answer.verdict is not Verdict.REFUSED for answer in answers.values()):
        return answers
    words = _on_msk(admin)
    if not words:
        return answers
    return {
        pid: replace(answer, reason=f"{answer.reason}; {words}")
        for pid, answer in answers.items()
    }


def _on_msk(admin: Admin) -> str:
    """What to do about a refusal on Amazon MSK; empty elsewhere."""
    if not _first(admin.topics(), _MSK_TOPICS):
        return ""
    return (
        "Amazon MSK's Express brokers refuse reassignments while intelligent "
        "rebalancing is ACTIVE: pause it (UpdateRebalancing), then plan again"
    )


def _first(topics: Collection[TopicName], beginnings: tuple[str, ...]) -> str:
    """The first topic that begins so; empty where none does."""
    return min((name for name in topics if name.startswith(beginnings)), default="")
