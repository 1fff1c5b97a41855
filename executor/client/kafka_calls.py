"""kafka-python requests, and its answers as values of `executor.client.responses`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from clients.admin_connection import send_request
from executor.client.responses import LogDirView, PartitionResponse, PartitionView
from model.ids import BrokerId, PartitionId, TopicName

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

_UNKNOWN: Final = -1


def reassignment(
    targets: Mapping[PartitionId, Sequence[BrokerId] | None],
    timeout_ms: int,
    *,
    resizes: bool = False,
) -> object:
    """An AlterPartitionReassignments request; None cancels a reassignment.

    resizes: whether it may change the replication factor (KIP-860).
    """
    from kafka.protocol.admin import AlterPartitionReassignmentsRequest as Request

    topic_class = Request.ReassignableTopic
    part_class = topic_class.ReassignablePartition
    return Request(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=resizes,
        topics=[
            topic_class(
                name=name,
                partitions=[
                    part_class(partition_index=p, replicas=targets[PartitionId(name, p)])
                    for p in numbers
                ],
            )
            for name, numbers in by_topic(targets).items()
        ],
    )


def offsets_request(ids: Iterable[PartitionId], kind: int) -> object:
    """A ListOffsets request for one kind of offset, in the lowest version that has it."""
    from kafka.protocol.consumer import ListOffsetsRequest as Request

    topic_class = Request.ListOffsetsTopic
    part_class = topic_class.ListOffsetsPartition
    return Request(
        isolation_level=0,
        topics=[
            topic_class(
                name=name,
                partitions=[part_class(partition_index=p, timestamp=kind) for p in numbers],
            )
            for name, numbers in by_topic(ids).items()
        ],
        min_version=Request.min_version_for_timestamp(kind),
    )


def known_offsets(client: "KafkaAdminClient", request: object, leader: BrokerId) -> Any:
    """A broker's response to a ListOffsets request; None where it has no such kind of offset."""
    from kafka.errors import IncompatibleBrokerVersion

    try:
        return send_request(client, request, leader)
    except IncompatibleBrokerVersion:
        return None


def described_configs(
    client: "KafkaAdminClient", resources: Sequence[object], which: str, broker: BrokerId | None
) -> Any:
    """Settings as `broker` knows them, or any broker if None, in the driver's form."""
    if broker is None:
        return client.describe_configs(resources, config_filter=which)
    # The public call sends a topic's request to any broker.
    request = client._describe_configs_request(resources, False)  # noqa: SLF001 - as above
    response = send_request(client, request, broker)
    return client._describe_configs_process_responses([response], which)  # noqa: SLF001 - as above


def to_controller(client: "KafkaAdminClient", request: object) -> Any:
    """Send a request that the driver has no full call for.

    Raises the driver's AuthorizationError where the right is missing.
    """
    from kafka.errors import AuthorizationError, for_code

    def errors(response: Any) -> list[type[Exception]]:
        return [for_code(response.error_code)]

    manager = client._manager  # noqa: SLF001 - the public call lacks a field
    send = client._send_request_to_controller  # noqa: SLF001 - as above
    response = manager.run(send, request, errors, False)
    (error,) = errors(response)
    if issubclass(error, AuthorizationError):
        raise error(response.error_message)
    return response


def controller_epoch(client: "KafkaAdminClient") -> int | None:
    """The epoch of the KRaft quorum, which grows with each election; None without one.

    The driver's own call reads messages that brokers before Kafka 3.9 do not send (KIP-853).
    """
    from kafka.errors import IncompatibleBrokerVersion, NoError, UnsupportedVersionError, for_code
    from kafka.protocol.admin import DescribeQuorumRequest as Request

    topic = Request.TopicData(
        topic_name="__cluster_metadata",
        partitions=[Request.TopicData.PartitionData(partition_index=0)],
    )
    manager = client._manager  # noqa: SLF001 - the public call fails on older brokers
    try:
        response = manager.run(manager.send, Request(topics=[topic]))
        error = for_code(response.error_code)
        if error is not NoError:
            raise error("the description of the controller quorum was refused")
    except (IncompatibleBrokerVersion, UnsupportedVersionError):
        return None
    epoch: int = response.topics[0].partitions[0].leader_epoch
    return epoch


def answers_of(response: Any) -> dict[PartitionId, PartitionResponse]:
    """The response for each partition that the answer mentions."""
    return {
        PartitionId(topic.name, part.partition_index): (
            _refusal(part) if part.error_code else PartitionResponse.accepted()
        )
        for topic in response.responses
        for part in topic.partitions
    }


def unmentioned(response: Any) -> PartitionResponse:
    """The response for a partition not mentioned: refused with the request, or unknown."""
    return _refusal(response) if response.error_code else PartitionResponse.unknown()


def _refusal(faulty: Any) -> PartitionResponse:
    from kafka.errors import PolicyViolationError, for_code

    name = for_code(faulty.error_code).__name__.removesuffix("Error")
    return PartitionResponse.refused(
        faulty.error_message or f"{name} ({faulty.error_code})",
        by_policy=faulty.error_code == PolicyViolationError.errno,
    )


def views_of(topic: Mapping[str, Any]) -> Iterator[PartitionView]:
    """The partitions of a described topic."""
    for part in topic["partitions"]:
        yield PartitionView(
            id=PartitionId(TopicName(topic["name"]), part["partition_index"]),
            topic_id=str(topic["topic_id"]),
            replicas=tuple(map(BrokerId, part["replica_nodes"])),
            in_sync=frozenset(map(BrokerId, part["isr_nodes"])),
            offline=frozenset(map(BrokerId, part["offline_replicas"] or ())),
            leader=BrokerId(part["leader_id"]),
        )


def set_or_delete(values: Mapping[str, str | None]) -> dict[str, tuple[str, str | None]]:
    """IncrementalAlterConfigs operations; None deletes."""
    return {key: ("DELETE" if value is None else "SET", value) for key, value in values.items()}


def joined(operation: str, lists: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, str | None]]:
    """One operation on list settings; empty lists are omitted."""
    return {key: (operation, ",".join(e)) for key, e in lists.items() if e}


def by_topic(ids: Iterable[PartitionId]) -> dict[TopicName, list[int]]:
    """Partition numbers of each topic, in order."""
    grouped: dict[TopicName, list[int]] = {}
    for pid in sorted(ids):
        grouped.setdefault(pid.topic, []).append(pid.partition)
    return grouped


def log_dir_view(result: Mapping[str, Any]) -> LogDirView:
    """One directory of a DescribeLogDirs answer."""
    usable = result.get("usable_bytes", _UNKNOWN)
    return LogDirView(
        path=result["log_dir"],
        sizes=_sizes(result, coming=False),
        coming=_sizes(result, coming=True),
        usable_bytes=None if usable == _UNKNOWN else usable,
        offline=bool(result["error_code"]),
        cordoned=result.get("is_cordoned", False),
    )


def _sizes(result: Mapping[str, Any], *, coming: bool) -> dict[PartitionId, int]:
    return {
        PartitionId(TopicName(topic["name"]), part["partition_index"]): part["partition_size"]
        for topic in result["topics"]
        for part in topic["partitions"]
        if part["is_future_key"] is coming
    }


def alter_log_dirs(
    client: "KafkaAdminClient", broker: BrokerId, targets: Mapping[PartitionId, str]
) -> dict[PartitionId, PartitionResponse]:
    """Send AlterReplicaLogDirs to one broker; one response per partition.

    REPLICA_NOT_AVAILABLE means that the broker has no such replica yet and remembers the
    directory (Kafka class `ReplicaManager`). Raises the driver's AuthorizationError.
    """
    from kafka.errors import AuthorizationError, NoError, ReplicaNotAvailableError

    result = client.alter_replica_log_dirs(
        {(p.topic, p.partition, int(broker)): path for p, path in targets.items()}
    )
    answers = dict.fromkeys(targets, PartitionResponse.unknown())
    for replica, error in result.items():
        pid = PartitionId(TopicName(replica.topic), replica.partition)
        if issubclass(error, AuthorizationError):
            raise error
        if issubclass(error, NoError | ReplicaNotAvailableError):
            answers[pid] = PartitionResponse.accepted()
            continue
        name = error.__name__.removesuffix("Error")
        reason = f"broker {broker} answers {name} ({error.errno})"
        answers[pid] = PartitionResponse.refused(reason)
    return answers
