"""Brokers' answers, encoded by the driver's own classes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from kafka.protocol.admin import DescribeLogDirsResponse
from kafka.protocol.consumer import ListOffsetsResponse, OffsetFetchResponse

from collector.brokers.response_layout import RawResponse

Place = tuple[str, int]


def offsets(
    values: Mapping[Place, int], errors: Mapping[Place, int] | None = None, version: int = 11
) -> RawResponse:
    """Offsets as a leader reports them."""
    return _answer(offsets_response(values, errors), version)


def offsets_response(
    values: Mapping[Place, int], errors: Mapping[Place, int] | None = None
) -> ListOffsetsResponse:
    """The same, not encoded."""
    topic_class = ListOffsetsResponse.ListOffsetsTopicResponse
    part_class = topic_class.ListOffsetsPartitionResponse

    def reported(place: Place) -> Any:
        return part_class(
            partition_index=place[1],
            error_code=(errors or {}).get(place, 0),
            timestamp=-1,
            offset=values[place],
            leader_epoch=7,
        )

    topics = _by_topic(topic_class, values, reported)
    return ListOffsetsResponse(throttle_time_ms=0, topics=topics)


def log_dirs(folders: Sequence[Mapping[str, Any]], version: int = 5) -> RawResponse:
    """Of folders with the keys `path`, `sizes` (by place), `future` (places), and the
    answer's own fields."""
    return _answer(log_dirs_response(folders), version)


def log_dirs_response(folders: Sequence[Mapping[str, Any]]) -> DescribeLogDirsResponse:
    """The same, not encoded."""
    result = DescribeLogDirsResponse.DescribeLogDirsResult
    return DescribeLogDirsResponse(
        throttle_time_ms=0,
        error_code=0,
        results=[
            result(
                error_code=folder.get("error_code", 0),
                log_dir=folder["path"],
                topics=_stored(folder.get("sizes", {}), folder.get("future", ())),
                total_bytes=folder.get("total_bytes", -1),
                usable_bytes=folder.get("usable_bytes", -1),
                is_cordoned=folder.get("is_cordoned", False),
            )
            for folder in folders
        ],
    )


def _stored(sizes: Mapping[Place, int], future: Sequence[Place]) -> list[Any]:
    topic_class = DescribeLogDirsResponse.DescribeLogDirsResult.DescribeLogDirsTopic
    part_class = topic_class.DescribeLogDirsPartition

    def stored(place: Place) -> Any:
        return part_class(
            partition_index=place[1],
            partition_size=sizes[place],
            offset_lag=3,
            is_future_key=place in future,
        )

    return _by_topic(topic_class, sizes, stored)


def _by_topic(topic_class: Any, places: Iterable[Place], part: Callable[[Place], Any]) -> list[Any]:
    return [
        topic_class(name=name, partitions=list(map(part, of_topic)))
        for name, of_topic in groupby(places, key=itemgetter(0))
    ]


def commits(
    groups: Mapping[str, Mapping[Place, int]],
    errors: Mapping[str, int] | None = None,
    metadata: str | None = "",
    version: int = 8,
) -> RawResponse:
    """Commits as a coordinator reports them; before version 8 of one group."""
    return _answer(commits_response(groups, errors, metadata, version), version)


def commits_response(
    groups: Mapping[str, Mapping[Place, int]],
    errors: Mapping[str, int] | None = None,
    metadata: str | None = "",
    version: int = 8,
) -> OffsetFetchResponse:
    """The same, not encoded."""
    group_class = OffsetFetchResponse.OffsetFetchResponseGroup
    made = OffsetFetchResponse(
        throttle_time_ms=0,
        groups=[
            group_class(
                group_id=group,
                topics=_committed(group_class.OffsetFetchResponseTopics, of, metadata),
                error_code=(errors or {}).get(group, 0),
            )
            for group, of in groups.items()
        ],
    )
    if version < 8:
        ((group, of),) = groups.items()
        made = OffsetFetchResponse(
            throttle_time_ms=0,
            topics=_committed(OffsetFetchResponse.OffsetFetchResponseTopic, of, metadata),
            error_code=(errors or {}).get(group, 0),
        )
    return made


def _committed(topic_class: Any, offsets: Mapping[Place, int], metadata: str | None) -> list[Any]:
    (part_class,) = (
        getattr(topic_class, name)
        for name in dir(topic_class)
        if name.startswith("OffsetFetchResponsePartition")
    )

    def committed(place: Place) -> Any:
        return part_class(
            partition_index=place[1],
            committed_offset=offsets[place],
            committed_leader_epoch=7,
            metadata=metadata,
            error_code=0,
        )

    return _by_topic(topic_class, offsets, committed)


def _answer(made: Any, version: int) -> RawResponse:
    flexible = made.flexible_version_q(version)
    return RawResponse(bytes(made.encode(version=version)), version, flexible)
