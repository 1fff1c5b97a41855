"""Brokers of any version, as far as the probe needs them.

They speak Kafka's protocol through the driver's own classes. A broker that `hangs`
still reads, and answers once it no longer hangs.
"""

import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeLogDirsRequest,
    ListGroupsRequest,
    ListGroupsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)

from tests.support.collector import admin_responses
from tests.support.collector.admin_responses import Place

HOST: Final = "127.0.0.1"
NOT_LEADER: Final = 6
_DONE: Final = {
    cls.API_KEY: cls
    for cls in (
        ApiVersionsRequest,
        DescribeClusterRequest,
        DescribeConfigsRequest,
        DescribeLogDirsRequest,
        ListGroupsRequest,
        ListOffsetsRequest,
        ListPartitionReassignmentsRequest,
        MetadataRequest,
        OffsetFetchRequest,
    )
}


@dataclass
class Brokers:
    """Several brokers and their state, which may be changed while they run."""

    leaders: dict[Place, int]
    """Broker of each partition, which has no other replica."""
    offsets: dict[int, dict[Place, int]]
    """By kind: -1 latest, -2 earliest, -4 earliest local."""
    sizes: dict[Place, int]
    groups: dict[int, dict[str, dict[Place, int]]] = field(default_factory=dict)
    """Commits by coordinator and group."""
    newest: Mapping[type, int] = field(default_factory=dict)
    """The highest version that they support, if not the driver's own; -1 for none."""
    ids: tuple[int, ...] = (1, 2, 3)
    hangs: set[int] = field(default_factory=set)
    asked: list[tuple[int, str]] = field(default_factory=list)
    """Broker and name of each request."""
    topic_ids: dict[str, uuid.UUID] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    """By topic and key; other configs are unknown."""
    ports: dict[int, int] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self.ports.values())

    @contextmanager
    def running(self) -> Iterator["Brokers"]:
        doors = {broker: socket.create_server((HOST, 0)) for broker in self.ids}
        self.ports = {broker: door.getsockname()[1] for broker, door in doors.items()}
        for broker, door in doors.items():
            threading.Thread(target=self._admit, args=(broker, door), daemon=True).start()
        try:
            yield self
        finally:
            self.hangs.clear()
            for door in doors.values():
                door.shutdown(socket.SHUT_RDWR)
                door.close()

    def _admit(self, broker: int, door: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = door.accept()
                threading.Thread(target=self._serve, args=(broker, client), daemon=True).start()

    def _serve(self, broker: int, client: socket.socket) -> None:
        with client, suppress(OSError):
            while size := client.recv(4, socket.MSG_WAITALL):
                frame = client.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)
                key, version, number = struct.unpack_from(">hhi", frame)
                request = _DONE.get(key)
                if request is None:
                    return
                self.asked.append((broker, request.__name__))
                while broker in self.hangs:
                    time.sleep(0.01)
                result = request.decode(frame, version=version, header=True)
                answer = self._answer(broker, result, version)
                answer.API_VERSION = version
                answer.with_header(correlation_id=number)
                client.sendall(answer.encode(header=True, framed=True))

    def _answer(self, broker: int, request: Any, version: int) -> Any:
        ways: dict[type, Callable[[], Any]] = {
            ApiVersionsRequest: self._versions,
            MetadataRequest: lambda: self._metadata(broker),
            DescribeClusterRequest: self._cluster,
            ListPartitionReassignmentsRequest: lambda: ListPartitionReassignmentsResponse(
                error_code=0, topics=[]
            ),
            DescribeConfigsRequest: lambda: _configs(request, self.configs),
            DescribeLogDirsRequest: lambda: admin_responses.log_dirs_response(
                [{"path": "/a", "sizes": self._here(broker, self.sizes)}]
            ),
            ListOffsetsRequest: lambda: self._list_offsets(broker, request),
            ListGroupsRequest: lambda: self._list_groups(broker),
            OffsetFetchRequest: lambda: self._commits(broker, request, version),
        }
        return ways[type(request)]()

    def _versions(self) -> ApiVersionsResponse:
        known = {cls: self.newest.get(cls, cls.max_version) for cls in _DONE.values()}
        keys = [
            ApiVersionsResponse.ApiVersion(api_key=cls.API_KEY, min_version=0, max_version=newest)
            for cls, newest in known.items()
            if newest >= 0
        ]
        return ApiVersionsResponse(error_code=0, api_keys=keys)

    def _metadata(self, broker: int) -> MetadataResponse:
        """Each broker returns another order."""
        topic_class = MetadataResponse.MetadataResponseTopic
        part_class = topic_class.MetadataResponsePartition
        broker_class = MetadataResponse.MetadataResponseBroker
        by_topic: dict[str, list[Any]] = {}
        for (name, number), leader in sorted(self.leaders.items()):
            part = part_class(
                error_code=0,
                partition_index=number,
                leader_id=leader,
                replica_nodes=[leader],
                isr_nodes=[leader],
                offline_replicas=[],
            )
            by_topic.setdefault(name, []).append(part)
        topics = [
            topic_class(
                error_code=0,
                name=name,
                topic_id=self.topic_ids.setdefault(name, uuid.uuid4()),
                is_internal=False,
                partitions=parts[:: 1 if broker == 1 else -1],
            )
            for name, parts in by_topic.items()
        ][:: 1 if broker == 2 else -1]
        brokers = [
            broker_class(node_id=b, host=HOST, port=port, rack=None)
            for b, port in self.ports.items()
        ]
        return MetadataResponse(brokers=brokers, cluster_id="made", controller_id=1, topics=topics)

    def _cluster(self) -> DescribeClusterResponse:
        broker_class = DescribeClusterResponse.DescribeClusterBroker
        brokers = [
            broker_class(broker_id=b, host=HOST, port=port, rack=None, is_fenced=False)
            for b, port in self.ports.items()
        ]
        return DescribeClusterResponse(
            error_code=0,
            error_message=None,
            cluster_id="made",
            controller_id=1,
            brokers=brokers,
            authorized_operations={8},
        )

    def _here(self, broker: int, values: Mapping[Place, int]) -> dict[Place, int]:
        return {
            place: value
            for place, value in sorted(values.items())
            if self.leaders.get(place) == broker
        }

    def _list_offsets(self, broker: int, request: Any) -> Any:
        values, errors = {}, {}
        for topic in request.topics:
            for part in topic.partitions:
                place = topic.name, part.partition_index
                led = self.leaders.get(place) == broker
                errors[place] = 0 if led else NOT_LEADER
                values[place] = self.offsets[part.timestamp][place] if led else -1
        return admin_responses.offsets_response(values, errors)

    def _list_groups(self, broker: int) -> ListGroupsResponse:
        group_class = ListGroupsResponse.ListedGroup
        groups = [
            group_class(
                group_id=group, protocol_type="consumer", group_state="Stable", group_type="classic"
            )
            for group in self.groups.get(broker, {})
        ]
        return ListGroupsResponse(error_code=0, groups=groups)

    def _commits(self, broker: int, request: Any, version: int) -> Any:
        requested = [g.group_id for g in request.groups] if version >= 8 else [request.group_id]
        known = self.groups.get(broker, {})
        result = {group: known.get(group, {}) for group in requested}
        gone = {group: 16 for group in requested if group not in known}
        return admin_responses.commits_response(result, gone, version=version)


def _configs(request: Any, known: Mapping[str, Mapping[str, str]]) -> DescribeConfigsResponse:
    """The requested ones that exist, as brokers answer."""
    result_class = DescribeConfigsResponse.DescribeConfigsResult
    config_class = result_class.DescribeConfigsResourceResult
    results = [
        result_class(
            error_code=0,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=[
                config_class(
                    name=key,
                    value=value,
                    read_only=False,
                    is_default=False,
                    config_source=1,
                    is_sensitive=False,
                    synonyms=[],
                    config_type=2,
                    documentation=None,
                )
                for key, value in known.get(resource.resource_name, {}).items()
                if key in resource.configuration_keys
            ],
        )
        for resource in request.resources
    ]
    return DescribeConfigsResponse(results=results)
