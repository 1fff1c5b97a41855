"""The calls that change a cluster: the one list that rights, leases and tests go by."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangingCall:
    """One call of `ClusterAdmin` that changes the cluster."""

    request: str
    """Kafka's request."""
    right: str
    """The operation that an ACL has to allow."""
    resource: str
    """What the right is on."""
    purpose: str
    """What plimsoll does with it; for people."""


_CLUSTER: Final = "the cluster"
_TOPICS: Final = "the topics"

CHANGING_CALLS: Final[Mapping[str, ChangingCall]] = {
    "reassign": ChangingCall(
        request="AlterPartitionReassignments",
        right="ALTER",
        resource=_CLUSTER,
        purpose="move replicas, cancel and undo that, change the replication factor",
    ),
    "elect_preferred": ChangingCall(
        request="ElectLeaders", right="ALTER", resource=_CLUSTER, purpose="elect preferred leaders"
    ),
    "alter_log_dirs": ChangingCall(
        request="AlterReplicaLogDirs",
        right="ALTER",
        resource=_CLUSTER,
        purpose="choose log directories of replicas",
    ),
    "alter_broker_configs": ChangingCall(
        request="IncrementalAlterConfigs",
        right="ALTER_CONFIGS",
        resource=_CLUSTER,
        purpose="throttle, cordon brokers, suspend AutoMQ's balancer, and undo that",
    ),
    "alter_topic_configs": ChangingCall(
        request="IncrementalAlterConfigs",
        right="ALTER_CONFIGS",
        resource=_TOPICS,
        purpose="lower segment settings, and undo that",
    ),
    "append_topic_configs": ChangingCall(
        request="IncrementalAlterConfigs",
        right="ALTER_CONFIGS",
        resource=_TOPICS,
        purpose="throttle the replicas that are copied",
    ),
    "subtract_topic_configs": ChangingCall(
        request="IncrementalAlterConfigs",
        right="ALTER_CONFIGS",
        resource=_TOPICS,
        purpose="end the throttle of replicas",
    ),
}
"""By their names in `ClusterAdmin`; everything else there only reads."""
