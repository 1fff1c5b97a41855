"""Log directories in kafka-python's words."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from executor.client.responses import Answer, LogDirView
from model.ids import BrokerId, PartitionId, TopicName

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

_UNKNOWN: Final = -1


def log_dir_view(told: Mapping[str, Any]) -> LogDirView:
    """One directory out of an answer to describe_log_dirs."""
    usable = told.get("usable_bytes", _UNKNOWN)
    return LogDirView(
        path=told["log_dir"],
        sizes=_sizes(told, coming=False),
        coming=_sizes(told, coming=True),
        usable_bytes=None if usable == _UNKNOWN else usable,
        offline=bool(told["error_code"]),
        cordoned=told.get("is_cordoned", False),
    )


def _sizes(told: Mapping[str, Any], *, coming: bool) -> dict[PartitionId, int]:
    return {
        PartitionId(TopicName(topic["name"]), part["partition_index"]): part[
            "partition_size"
        ]
        for topic in told["topics"]
        for part in topic["partitions"]
        if part["is_future_key"] is coming
    }


def alter_log_dirs(
    client: "KafkaAdminClient", broker: BrokerId, targets: Mapping[PartitionId, str]
) -> dict[PartitionId, Answer]:
    """One broker's answers; raises the driver's error where it may not be asked.

    REPLICA_NOT_AVAILABLE says that the broker has no such replica yet and has noted
    the directory (class `ReplicaManager`).
    """
    from kafka.errors import AuthorizationError, NoError, ReplicaNotAvailableError

    told = client.alter_replica_log_dirs(
        {(p.topic, p.partition, int(broker)): path for p, path in targets.items()}
    )
    answers = dict.fromkeys(targets, Answer.unknown())
    for replica, error in told.items():
        pid = PartitionId(TopicName(replica.topic), replica.partition)
        if issubclass(error, AuthorizationError):
            raise error
        accepted = issubclass(error, NoError | ReplicaNotAvailableError)
        answers[pid] = (
            Answer.accepted() if accepted else Answer.refused(_words(error, broker))
        )
    return answers


def _words(error: Any, broker: BrokerId) -> str:
    name = error.__name__.removesuffix("Error")
    return f"broker {broker} answers {name} ({error.errno})"
