"""kafka-python's requests, sent again and again, with answers that stay bytes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from collector.brokers.response_layout import RawResponse

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

LATEST: Final = -1
EARLIEST: Final = -2
EARLIEST_LOCAL: Final = -4
"""Kinds of offsets (KIP-405)."""


class EncodedRequest:
    """Stands for a request of the driver; the answer is a `RawResponse`.

    The body is encoded once. One connection at a time may wait for the answer.
    """

    def __init__(self, request: Any) -> None:
        self._request = request
        self._body = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._request, name)

    @property
    def API_VERSION(self) -> int | None:
        """Version of the request; None until the driver has negotiated it."""
        version: int | None = self._request.API_VERSION
        return version

    @API_VERSION.setter
    def API_VERSION(self, version: int) -> None:
        self._request.API_VERSION = version
        self._body = bytes(self._request.encode())

    @property
    def header(self) -> "_Header":
        """Header of the last request sent; it makes the driver return a RawResponse."""
        return _Header(self._request.header)

    def encode(self, **_as_always: bool) -> bytes:
        """Return the request as bytes: size, header and the body encoded before."""
        flexible = self._request.flexible_version_q(self.API_VERSION)
        head = bytes(self._request.encode_header(flexible=flexible))
        return b"".join(((len(head) + len(self._body)).to_bytes(4, "big"), head, self._body))


class _Header:
    """A request's header, which is also the class of its response: that stays undecoded."""

    def __init__(self, header: Any) -> None:
        self._header = header

    def __getattr__(self, name: str) -> Any:
        return getattr(self._header, name)

    def get_response_class(self) -> "_Header":
        self._response = self._header.get_response_class()
        self.parse_header = self._response.parse_header
        return self

    def decode(self, data: Any) -> RawResponse:
        version = self._response._class_version  # noqa: SLF001 - it has no other name
        flexible = self._response.flexible_version_q(version)
        return RawResponse(data.read(), version, flexible)


def about_offsets(partitions: Mapping[str, Sequence[int]], kind: int) -> EncodedRequest:
    """Build a ListOffsets request for one kind of offset, for one leader.

    partitions: numbers by topic, all led by that broker. kind: `LATEST`, `EARLIEST` or
    `EARLIEST_LOCAL`.
    The driver's own call asks for all metadata first and fails as a whole for one partition.
    """
    from kafka.protocol.consumer import ListOffsetsRequest

    topic_class = ListOffsetsRequest.ListOffsetsTopic
    part_class = topic_class.ListOffsetsPartition
    topics = [
        topic_class(
            name=name, partitions=[part_class(partition_index=p, timestamp=kind) for p in numbers]
        )
        for name, numbers in partitions.items()
    ]
    least = ListOffsetsRequest.min_version_for_timestamp(kind)
    return EncodedRequest(ListOffsetsRequest(isolation_level=0, topics=topics, min_version=least))


def about_log_dirs() -> EncodedRequest:
    """Build a DescribeLogDirs request (KIP-113) for all partitions of a broker."""
    from kafka.protocol.admin import DescribeLogDirsRequest

    return EncodedRequest(DescribeLogDirsRequest(topics=None))


def about_groups() -> Any:
    """Build the driver's own ListGroups request; its responses are small."""
    from kafka.protocol.admin import ListGroupsRequest

    return ListGroupsRequest()


def about_commits(admin: "KafkaAdminClient", groups: Sequence[str]) -> list[EncodedRequest]:
    """Build OffsetFetch requests for all offsets committed by these groups.

    One request for all groups, or one per group before Kafka 3.0 (KIP-709); none without
    groups. The groups must share a coordinator, which is the broker to send them to.
    """
    from kafka.protocol.consumer import OffsetFetchRequest

    if not groups:
        return []
    versions = admin._manager.broker_version_data  # noqa: SLF001 - as in `client.send`
    if versions.api_version(OffsetFetchRequest) < 8:  # before Kafka 3.0 (KIP-709)
        return [
            EncodedRequest(OffsetFetchRequest(group_id=g, topics=None, min_version=2))
            for g in groups
        ]
    group_class = OffsetFetchRequest.OffsetFetchRequestGroup
    every = [group_class(group_id=group, topics=None) for group in groups]
    request = OffsetFetchRequest(groups=every, min_version=8, max_version=8)
    return [EncodedRequest(request)]
