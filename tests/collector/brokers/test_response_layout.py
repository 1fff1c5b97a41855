"""Answers as columns: what the driver's own classes wrote comes out again."""

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
    Answer,
    Figure,
    Layout,
    MalformedResponse,
    commits,
    list_offsets,
    log_dirs,
)
from tests.support.collector import admin_responses as answers
from tests.support.collector.admin_responses import Place

NAMES = ("orders", "a.b", "a_b", "größe", "x" * 249)
PLACES = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 2**31 - 1)),
    st.integers(-1, 2**63 - 1),
    max_size=6,
).map(lambda found: dict(sorted(found.items())))


def told(layout: Layout, figure: Figure) -> list[tuple[Place, int]]:
    names = [layout.names[at] for at in layout.topic.tolist()]
    places = zip(names, layout.read(PARTITION).tolist(), strict=True)
    return list(zip(places, layout.read(figure).tolist(), strict=True))


@given(values=PLACES, version=st.integers(1, 11))
@settings(max_examples=30)
def test_offsets_of_every_version_are_read(values: Any, version: int) -> None:
    errors = dict.fromkeys(list(values)[::2], 6)
    found = list_offsets(answers.offsets(values, errors, version))
    assert told(found, OFFSET) == list(values.items())
    assert told(found, ERROR) == [(place, errors.get(place, 0)) for place in values]


@given(first=PLACES, second=PLACES, version=st.integers(1, 5))
@settings(max_examples=30)
def test_log_directories_of_every_version_are_read(
    first: Any, second: Any, version: int
) -> None:
    future = list(second)[::2]
    answer = answers.log_dirs(
        [
            {"path": "/a", "sizes": first, "total_bytes": 7, "usable_bytes": 5},
            {"path": "/b", "sizes": second, "future": future, "is_cordoned": True},
        ],
        version,
    )
    found = log_dirs(answer)
    assert told(found, SIZE) == [*first.items(), *second.items()]
    assert found.folder.tolist() == [0] * len(first) + [1] * len(second)
    assert told(found, FUTURE)[len(first) :] == [(p, p in future) for p in second]
    assert [f.path for f in found.folders] == ["/a", "/b"]
    rooms = [(7, 5), (-1, -1)] if version >= 4 else [(-1, -1)] * 2
    assert [found.room(f) for f in found.folders] == rooms
    assert [f.cordoned for f in found.folders] == [False, version >= 5]


@given(
    values=PLACES,
    version=st.integers(2, 8),
    metadata=st.sampled_from([None, "", "mine", "m" * 200]),
)
@settings(max_examples=30)
def test_commits_of_every_version_are_read(
    values: Any, version: int, metadata: str | None
) -> None:
    found = commits(answers.commits({"g": values}, None, metadata, version))
    assert told(found, COMMITTED) == list(values.items())
    assert found.errors == ()


def test_commits_of_several_groups_come_one_after_the_other() -> None:
    groups = {"g": {("a", 0): 5}, "h": {("a", 0): 7, ("b", 1): 9}, "none": {}}
    found = commits(answers.commits(groups))
    assert told(found, COMMITTED) == [(("a", 0), 5), (("a", 0), 7), (("b", 1), 9)]


def test_the_error_of_a_group_is_told() -> None:
    answer = answers.commits({"g": {}, "h": {("a", 0): 1}}, {"g": 16})
    assert commits(answer).errors == (16,)


def test_a_layout_is_that_of_the_next_answer_if_only_figures_differ() -> None:
    known = list_offsets(answers.offsets({("a", 0): 5, ("a", 1): 6}))
    found = known.of(answers.offsets({("a", 0): 50, ("a", 1): 60}))
    assert found is not None
    assert told(found, OFFSET) == [(("a", 0), 50), (("a", 1), 60)]
    assert told(known, OFFSET) == [(("a", 0), 5), (("a", 1), 6)]


@pytest.mark.parametrize(
    "other",
    [
        answers.offsets({("a", 0): 5, ("b", 1): 6}),
        answers.offsets({("a", 0): 5, ("a", 2): 6}),
        answers.offsets({("a", 0): 5, ("a", 1): 6}, {("a", 1): 3}),
        answers.offsets({("a", 0): 5}),
    ],
    ids=["topic", "partition", "error", "length"],
)
def test_a_layout_is_not_that_of_an_answer_about_something_else(other: Answer) -> None:
    assert list_offsets(answers.offsets({("a", 0): 5, ("a", 1): 6})).of(other) is None


def test_the_room_of_a_directory_may_change_in_the_same_layout() -> None:
    def answer(room: int) -> Answer:
        return answers.log_dirs(
            [{"path": "/a", "sizes": {("a", 0): room}, "usable_bytes": room}]
        )

    found = log_dirs(answer(5)).of(answer(9))
    assert found is not None
    assert found.room(found.folders[0]) == (-1, 9)


WHOLE = [
    (list_offsets, answers.offsets({("a", 0): 5, ("größe", 1): 6})),
    (log_dirs, answers.log_dirs([{"path": "/a", "sizes": {("a", 0): 5}}])),
    (commits, answers.commits({"g": {("a", 0): 5}}, None, "mine")),
    (list_offsets, answers.offsets({("a", 0): 5}, version=1)),
    (commits, answers.commits({"g": {("a", 0): 5}}, version=2)),
]


@given(
    which=st.sampled_from(WHOLE),
    cut=st.integers(0, 90),
    at=st.integers(0, 90),
    byte=st.integers(0, 255),
)
@settings(max_examples=200)
def test_a_damaged_answer_is_read_or_garbled_and_nothing_else(
    which: Any, cut: int, at: int, byte: int
) -> None:
    parse, answer = which
    body = bytearray(answer.body[: max(0, len(answer.body) - cut)])
    if at < len(body):
        body[at] = byte
    with suppress(MalformedResponse):
        parse(Answer(bytes(body), answer.version, answer.flexible))


@pytest.mark.parametrize(("parse", "answer"), WHOLE)
def test_an_answer_that_is_cut_off_is_garbled(parse: Any, answer: Answer) -> None:
    for size in range(len(answer.body)):
        with pytest.raises(MalformedResponse):
            parse(Answer(answer.body[:size], answer.version, answer.flexible))
