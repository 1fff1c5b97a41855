"""Answers as columns: encoded by the driver's classes and decoded here."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.brokers.response_layout import (
    COMMITTED,
    ERROR,
    FUTURE,
    OFFSET,
    PARTITION,
    SIZE,
    Figure,
    MalformedResponse,
    RawResponse,
    ResponseLayout,
    commits,
    list_offsets,
    log_dirs,
)
from tests.support.collector import admin_responses
from tests.support.collector.admin_responses import Place

NAMES = ("orders", "a.b", "a_b", "größe", "x" * 249)
PLACES = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 2**31 - 1)),
    st.integers(-1, 2**63 - 1),
    max_size=6,
).map(lambda found: dict(sorted(found.items())))


def figures(layout: ResponseLayout, figure: Figure) -> list[tuple[Place, int]]:
    names = [layout.names[at] for at in layout.topic.tolist()]
    places = zip(names, layout.read(PARTITION).tolist(), strict=True)
    return list(zip(places, layout.read(figure).tolist(), strict=True))


@given(values=PLACES, version=st.integers(1, 11))
@settings(max_examples=30)
def test_offsets_of_every_version_are_read(values: Any, version: int) -> None:
    errors = dict.fromkeys(list(values)[::2], 6)
    result = list_offsets(admin_responses.offsets(values, errors, version))
    assert figures(result, OFFSET) == list(values.items())
    assert figures(result, ERROR) == [(place, errors.get(place, 0)) for place in values]


@given(first=PLACES, second=PLACES, version=st.integers(1, 5))
@settings(max_examples=30)
def test_log_directories_of_every_version_are_read(first: Any, second: Any, version: int) -> None:
    future = list(second)[::2]
    answer = admin_responses.log_dirs(
        [
            {"path": "/a", "sizes": first, "total_bytes": 7, "usable_bytes": 5},
            {"path": "/b", "sizes": second, "future": future, "is_cordoned": True},
        ],
        version,
    )
    result = log_dirs(answer)
    assert figures(result, SIZE) == [*first.items(), *second.items()]
    assert result.folder.tolist() == [0] * len(first) + [1] * len(second)
    assert figures(result, FUTURE)[len(first) :] == [(p, p in future) for p in second]
    assert [f.path for f in result.folders] == ["/a", "/b"]
    disk_bytes = [(7, 5), (-1, -1)] if version >= 4 else [(-1, -1)] * 2
    assert [result.room(f) for f in result.folders] == disk_bytes
    assert [f.cordoned for f in result.folders] == [False, version >= 5]


@given(
    values=PLACES,
    version=st.integers(2, 8),
    metadata=st.sampled_from([None, "", "mine", "m" * 200]),
)
@settings(max_examples=30)
def test_commits_of_every_version_are_read(values: Any, version: int, metadata: str | None) -> None:
    result = commits(admin_responses.commits({"g": values}, None, metadata, version))
    assert figures(result, COMMITTED) == list(values.items())
    assert result.errors == ()


def test_commits_of_several_groups_follow_one_another() -> None:
    groups = {"g": {("a", 0): 5}, "h": {("a", 0): 7, ("b", 1): 9}, "none": {}}
    result = commits(admin_responses.commits(groups))
    assert figures(result, COMMITTED) == [(("a", 0), 5), (("a", 0), 7), (("b", 1), 9)]


def test_the_error_of_a_group_is_reported() -> None:
    answer = admin_responses.commits({"g": {}, "h": {("a", 0): 1}}, {"g": 16})
    assert commits(answer).errors == (16,)


def test_a_layout_fits_the_next_answer_if_only_figures_differ() -> None:
    known = list_offsets(admin_responses.offsets({("a", 0): 5, ("a", 1): 6}))
    result = known.of(admin_responses.offsets({("a", 0): 50, ("a", 1): 60}))
    assert result is not None
    assert figures(result, OFFSET) == [(("a", 0), 50), (("a", 1), 60)]
    assert figures(known, OFFSET) == [(("a", 0), 5), (("a", 1), 6)]


@pytest.mark.parametrize(
    "other",
    [
        admin_responses.offsets({("a", 0): 5, ("b", 1): 6}),
        admin_responses.offsets({("a", 0): 5, ("a", 2): 6}),
        admin_responses.offsets({("a", 0): 5, ("a", 1): 6}, {("a", 1): 3}),
        admin_responses.offsets({("a", 0): 5}),
    ],
    ids=["topic", "partition", "error", "length"],
)
def test_a_layout_does_not_fit_an_answer_about_other_partitions(other: RawResponse) -> None:
    assert list_offsets(admin_responses.offsets({("a", 0): 5, ("a", 1): 6})).of(other) is None


def test_the_free_space_of_a_directory_may_change_within_a_layout() -> None:
    def answer(usable_bytes: int) -> RawResponse:
        return admin_responses.log_dirs(
            [{"path": "/a", "sizes": {("a", 0): usable_bytes}, "usable_bytes": usable_bytes}]
        )

    result = log_dirs(answer(5)).of(answer(9))
    assert result is not None
    assert result.room(result.folders[0]) == (-1, 9)


WHOLE = [
    (list_offsets, admin_responses.offsets({("a", 0): 5, ("größe", 1): 6})),
    (log_dirs, admin_responses.log_dirs([{"path": "/a", "sizes": {("a", 0): 5}}])),
    (commits, admin_responses.commits({"g": {("a", 0): 5}}, None, "mine")),
    (list_offsets, admin_responses.offsets({("a", 0): 5}, version=1)),
    (commits, admin_responses.commits({"g": {("a", 0): 5}}, version=2)),
]


@given(
    which=st.sampled_from(WHOLE),
    cut=st.integers(0, 90),
    at=st.integers(0, 90),
    byte=st.integers(0, 255),
)
@settings(max_examples=200)
def test_a_damaged_answer_is_either_read_or_reported_as_garbled(
    which: Any, cut: int, at: int, byte: int
) -> None:
    parse, answer = which
    body = bytearray(answer.body[: max(0, len(answer.body) - cut)])
    if at < len(body):
        body[at] = byte
    with suppress(MalformedResponse):
        parse(RawResponse(bytes(body), answer.version, answer.flexible))


@pytest.mark.parametrize(("parse", "answer"), WHOLE)
def test_a_truncated_answer_is_garbled(parse: Any, answer: RawResponse) -> None:
    for size in range(len(answer.body)):
        with pytest.raises(MalformedResponse):
            parse(RawResponse(answer.body[:size], answer.version, answer.flexible))
