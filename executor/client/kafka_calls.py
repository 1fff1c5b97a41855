"""Requests to the driver, and its answers as values of `executor.client.responses`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from executor.client.responses import Answer, PartitionView
from model.ids import BrokerId, PartitionId, TopicName

if TYPE_CHECKING:
    from kafka import KafkaAdminClient


def reassignment(
    targets: Mapping[PartitionId, Sequence[BrokerId] | None], timeout_ms: int
) -> object:
    """A request for replica lists that keeps the replication factor (KIP-860).

    None cancels.
    """
    from kafka.protocol.admin import AlterPartitionReassignmentsRequest as Request

    topic_class = Request.ReassignableTopic
    part_class = topic_class.ReassignablePartition
    return Request(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=False,
        topics=[
            topic_class(
                name=name,
                partitions=[
                    part_class(
                        partition_index=p,
                        replicas=_listed(targets[PartitionId(name, p)]),
                    )
                    for p in numbers
                ],
            )
            for name, numbers in by_topic(targets).items()
        ],
    )


def _listed(brokers: Sequence[BrokerId] | None) -> list[BrokerId] | None:
    return None if brokers is None else list(brokers)


def offsets_request(ids: Iterable[PartitionId], kind: int) -> object:
    """A request for offsets of one kind, in the least version that knows it."""
    from kafka.protocol.consumer import ListOffsetsRequest as Request

    topic_class = Request.ListOffsetsTopic
    part_class = topic_class.ListOffsetsPartition
    return Request(
        isolation_level=0,
        topics=[
            topic_class(
                name=name,
                partitions=[
                    part_class(partition_index=p, timestamp=kind) for p in numbers
                ],
            )
            for name, numbers in by_topic(ids).items()
        ],
        min_version=Request.min_version_for_timestamp(kind),
    )


def to_controller(client: "KafkaAdminClient", request: object) -> Any:
    """Send one request the driver has no full call for; raises where it may not be."""
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


def to_broker(client: "KafkaAdminClient", request: object, broker: int) -> Any:
    """Send one request to one broker."""
    manager = client._manager  # noqa: SLF001 - there is no public way to one broker

    async def send() -> Any:
        return await manager.send(request, node_id=broker)

    return manager.run(send)


def controller_epoch(client: "KafkaAdminClient") -> int | None:
    """The epoch of the controllers' quorum, one more with each election."""
    from kafka.errors import IncompatibleBrokerVersion, UnsupportedVersionError

    try:
        result = client.describe_metadata_quorum()
    except (IncompatibleBrokerVersion, UnsupportedVersionError):
        return None
    epoch: int = result["topics"][0]["partitions"][0]["leader_epoch"]
    return epoch


def answers_of(response: Any) -> dict[PartitionId, Answer]:
    """Of the partitions that an answer mentions."""
    return {
        PartitionId(topic.name, part.partition_index): (
            _refusal(part) if part.error_code else Answer.accepted()
        )
        for topic in response.responses
        for part in topic.partitions
    }


def unmentioned(response: Any) -> Answer:
    """For a partition that is not mentioned: refused with the whole, or unknown."""
    return _refusal(response) if response.error_code else Answer.unknown()


def _refusal(faulty: Any) -> Answer:
    from kafka.errors import PolicyViolationError, for_code

    name = for_code(faulty.error_code).__name__.removesuffix("Error")
    return Answer.refused(
        faulty.error_message or f"{name} ({faulty.error_code})",
        by_policy=faulty.error_code == PolicyViolationError.errno,
    )


def views_of(topic: Mapping[str, Any]) -> Iterator[PartitionView]:
    """The partitions of a topic as the driver describes it."""
    for part in topic["partitions"]:
        yield PartitionView(
            id=PartitionId(TopicName(topic["name"]), part["partition_index"]),
            topic_id=str(topic["topic_id"]),
            replicas=tuple(map(BrokerId, part["replica_nodes"])),
            in_sync=frozenset(map(BrokerId, part["isr_nodes"])),
            offline=frozenset(map(BrokerId, part["offline_replicas"] or ())),
            leader=BrokerId(part["leader_id"]),
        )


def set_or_delete(
    values: Mapping[str, str | None],
) -> dict[str, tuple[str, str | None]]:
    """Operations on settings; None takes one away."""
    return {
        key: ("DELETE" if value is None else "SET", value)
        for key, value in values.items()
    }


def joined(
    operation: str, lists: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, str | None]]:
    """One operation on settings that are lists; empty ones are left out."""
    return {key: (operation, ",".join(e)) for key, e in lists.items() if e}


def by_topic(ids: Iterable[PartitionId]) -> dict[TopicName, list[int]]:
    """Partition numbers of each topic, in order."""
    grouped: dict[TopicName, list[int]] = {}
    for pid in sorted(ids):
        grouped.setdefault(pid.topic, []).append(pid.partition)
    return grouped
