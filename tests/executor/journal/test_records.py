"""Any damage to the bytes of a journal is noticed and affects no other record."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.journal.records import JournalContent, checksum_of, scan
from executor.journal.run_journal import RunJournal
from executor.timing import Timing
from model.run import JournalEvent, JournalRecord
from tests.support.executor.plan_builders import move, plan

PLAN = plan([move(0, (1,), (2,)), move(1, (1, 2), (3, 2))])
RUN = "r00000001-20270115T080000000-1a2b3c4d"
AT_S = 1_800_000_000.0


def written(folder: Path, run_id: str = RUN, topic: str = "orders") -> bytes:
    """A journal as a run writes it."""
    of = plan([m.model_copy(update={"topic": topic}) for m in PLAN.moves])
    journal = RunJournal(folder, of, run_id, Timing(now_s=lambda: AT_S))
    journal.write(JournalEvent.STARTED, planned=2, by="Jörg")
    journal.write(
        JournalEvent.SEGMENTS_LOWERED,
        before={topic: {"segment.bytes": None}},
        now={topic: {"segment.bytes": "1048576"}},
    )
    journal.write(JournalEvent.ISSUING, of.moves, again=False)
    journal.write(JournalEvent.MOVED, of.moves[:1], bytes=7, seconds=1.25)
    journal.write(JournalEvent.SEGMENTS_RESTORED, theirs=[])
    journal.write(JournalEvent.ENDED, state="done", reason="")
    journal.close()
    return journal.path.read_bytes()


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    return written(tmp_path)


def flips(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Every single-bit flip, with the line that it is in."""
    line, flipped = 1, bytearray(data)
    for place in range(len(data)):
        for bit in range(8):
            flipped[place] ^= 1 << bit
            yield line, bytes(flipped)
            flipped[place] ^= 1 << bit
        line += data[place : place + 1] == b"\n"


def all_in(content: JournalContent, of: bytes) -> bool:
    """Whether the journal contains each intact record unchanged."""
    known = {i.raw: i.record for i in scan(of, RUN).intact}
    return all(known.get(i.raw) == i.record for i in content.intact)


def test_an_unchanged_journal_is_intact(whole: bytes) -> None:
    content = scan(whole, RUN)
    assert not content.damage
    assert not content.losses
    assert [r.sequence for r in content.records] == [1, 2, 3, 4, 5, 6, 7]
    assert content.keep_bytes == len(whole)


@pytest.mark.slow
def test_every_flipped_bit_is_noticed_in_its_line(whole: bytes) -> None:
    """And no value of the line is used; in schema 1 about half went unnoticed."""
    flipped = 0
    for line, data in flips(whole):
        content = scan(data, RUN)
        assert content.damage, data
        assert content.damage[0].line == line
        assert all_in(content, whole)
        # A newline that is gone joins two lines.
        assert len(content.intact) >= 5
        flipped += 1
    assert flipped == 8 * len(whole)


def test_a_journal_truncated_anywhere_is_not_damaged(whole: bytes) -> None:
    for end in range(len(whole)):
        for tail in (b"", b"\0" * 512):
            content = scan(whole[:end] + tail, RUN)
            assert not content.damage
            lines = whole[:end].count(b"\n") + (whole[end : end + 1] == b"\n")
            assert [r.sequence for r in content.records] == [*range(1, lines + 1)]


@pytest.mark.parametrize("lost", range(6))
def test_a_deleted_line_is_noticed_unless_it_is_the_last(whole: bytes, lost: int) -> None:
    lines = whole.splitlines(keepends=True)
    content = scan(b"".join(lines[:lost] + lines[lost + 1 :]), RUN)
    (damage,) = content.damage
    assert damage.line == lost + 1
    assert damage.problem == f"follows a gap: record {lost + 1} is missing"
    assert damage.loses
    assert len(content.intact) == 6


def test_swapped_lines_are_read_in_order_and_noticed(whole: bytes) -> None:
    lines = whole.splitlines(keepends=True)
    lines[2], lines[5] = lines[5], lines[2]
    content = scan(b"".join(lines), RUN)
    assert content.records == scan(whole, RUN).records
    assert not content.losses
    assert "out of place" in str(content.damage[0])


def test_a_repeated_line_counts_once_and_is_noticed(whole: bytes) -> None:
    lines = whole.splitlines(keepends=True)
    content = scan(b"".join([*lines, lines[1]]), RUN)
    assert content.records == scan(whole, RUN).records
    assert list(map(str, content.damage)) == ["line 8 repeats line 2"]
    assert not content.losses


def test_a_line_of_another_run_is_not_used(whole: bytes, tmp_path: Path) -> None:
    other = written(tmp_path, "r00000002-20270115T080000000-1a2b3c4d")
    lines = whole.splitlines(keepends=True)
    lines.insert(3, other.splitlines(keepends=True)[1])
    content = scan(b"".join(lines), RUN)
    assert content.records == scan(whole, RUN).records
    assert "belongs to the run r00000002" in str(content.damage[0])


def test_a_replaced_line_with_a_valid_checksum_is_noticed(whole: bytes, tmp_path: Path) -> None:
    """From a run of the same name, say from another folder."""
    other = written(tmp_path / "other", topic="others")
    lines = whole.splitlines(keepends=True)
    lines[1] = other.splitlines(keepends=True)[1]
    content = scan(b"".join(lines), RUN)
    assert "does not follow" in str(content.damage[0])
    assert content.losses


def test_windows_line_ends_are_noticed_and_lose_nothing(whole: bytes) -> None:
    content = scan(whole.replace(b"\n", b"\r\n"), RUN)
    assert content.records == scan(whole, RUN).records
    assert [d.line for d in content.damage] == [1, 2, 3, 4, 5, 6, 7]
    assert not content.losses


@settings(deadline=None, max_examples=300)
@given(
    place=st.floats(0, 1, exclude_max=True), cut=st.integers(0, 700), put=st.binary(max_size=700)
)
def test_no_record_is_read_that_was_not_written(
    tmp_path_factory: pytest.TempPathFactory, place: float, cut: int, put: bytes
) -> None:
    whole = written(tmp_path_factory.mktemp("run"))
    at = int(place * len(whole))
    data = whole[:at] + put + whole[at + cut :]
    content = scan(data, RUN)
    assert all_in(content, whole)
    missing = 7 - len(content.intact)
    is_truncated = data == whole[: len(data)]
    assert (
        content.damage
        or not missing
        or is_truncated
        or whole.startswith(data[: content.keep_bytes])
    )


def old(data: bytes) -> bytes:
    """The same journal in schema 1.1."""
    lines = []
    for record in scan(data, RUN).records:
        document = record.model_dump(mode="json") | {"schema_version": "1.1"}
        for key in ("checksum", "previous", "sequence"):
            del document[key]
        lines.append(json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n")
    return "".join(lines).encode()


def continued(folder: Path, data: bytes) -> bytes:
    """A journal with the records added by a resuming run."""
    folder.mkdir()
    (folder / f"{RUN}.jsonl").write_bytes(data)
    journal = RunJournal(folder, PLAN, RUN, Timing(now_s=lambda: AT_S), resumed=True)
    journal.write(JournalEvent.RESUMED, planned=2, by="Jörg")
    journal.write(JournalEvent.ENDED, state="done", reason="")
    journal.close()
    return journal.path.read_bytes()


def events(content: JournalContent) -> list[JournalEvent]:
    return [record.event for record in content.records]


def test_a_journal_of_schema_1_is_read_and_continued(whole: bytes, tmp_path: Path) -> None:
    begun = old(whole)
    assert not scan(begun, RUN).damage
    longer = continued(tmp_path / "again", begun)
    assert longer.startswith(begun)
    content = scan(longer, RUN)
    assert not content.damage
    assert events(content)[-2:] == [JournalEvent.RESUMED, JournalEvent.ENDED]
    assert [r.sequence for r in content.records] == [*[None] * 7, 8, 9]


def test_a_long_journal_of_schema_1_is_read_in_linear_time(whole: bytes) -> None:
    """21,000 lines took 15 s of CPU, and now less than one."""
    begun_s = time.process_time()
    assert len(scan(3000 * old(whole), RUN).intact) == 21_000
    assert time.process_time() - begun_s < 6.0


@pytest.mark.slow
def test_every_flipped_bit_of_a_continued_journal_of_schema_1_is_noticed(
    whole: bytes, tmp_path: Path
) -> None:
    longer = continued(tmp_path / "again", old(whole))
    for _, data in flips(longer):
        assert scan(data, RUN).damage, data


@pytest.mark.parametrize("cut", [0, 1, 30])
@pytest.mark.parametrize("is_old", [False, True])
def test_a_truncated_journal_is_continued_without_damage(
    whole: bytes, tmp_path: Path, cut: int, is_old: bool
) -> None:
    begun = old(whole) if is_old else whole
    longer = continued(tmp_path / "again", begun[: len(begun) - cut] + b"\0" * cut)
    assert not scan(longer, RUN).damage
    assert events(scan(longer, RUN))[-1] is JournalEvent.ENDED


def test_damage_stays_visible_when_a_journal_is_continued(whole: bytes, tmp_path: Path) -> None:
    for count, data in enumerate(
        (whole[:-5] + b"#" + whole[-4:], whole[:900] + b"#" + whole[901:])
    ):
        before = scan(data, RUN)
        longer = continued(tmp_path / f"{count}", data)
        after = scan(longer, RUN)
        assert longer.startswith(data)
        assert after.damage == before.damage
        assert len(after.intact) == len(before.intact) + 2


def test_a_line_that_merely_resembles_schema_1_is_not_used(whole: bytes) -> None:
    line = json.loads(whole.splitlines()[1])
    for change in (
        {"schema_version": "1.0"},
        {"checksum": ""},
        {"schema_version": "1.0", "checksum": "", "sequence": None},
    ):
        data = json.dumps(line | change).encode() + b"\n"
        if len(change) < 3:
            assert scan(data, RUN).damage
        assert scan(whole + data, RUN).damage


NONSENSE = {
    "at the end of time": {"at_ms": 9 * 10**18},
    "more digits than a double": {"detail": {"bytes": 10**400}},
    "not a number": {"detail": {"bytes": float("nan")}},
    "deep": {"detail": {"a": json.loads("[" * 500 + "]" * 500)}},
}


@pytest.mark.parametrize("change", NONSENSE.values(), ids=NONSENSE.keys())
@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_record_without_meaning_is_damage(
    whole: bytes, change: dict[str, object], is_sealed: bool
) -> None:
    data = whole if is_sealed else old(whole)
    line = json.loads(data.splitlines()[1]) | change
    text = json.dumps(line, sort_keys=True, separators=(",", ":"))
    if is_sealed:
        digits = f'"checksum":"{line["checksum"]}"'
        body = text.replace(digits, '"checksum":""')
        sealed = f'"checksum":"{checksum_of(body.encode())}"'
        text = body.replace('"checksum":""', sealed)
    result = scan(text.encode() + b"\n" + data, RUN)
    assert str(result.damage[0]) == "line 1 is not a journal record"
    assert len(result.intact) == len(scan(data, RUN).intact)


def test_records_are_canonical(whole: bytes) -> None:
    for line in whole.splitlines():
        again = JournalRecord.model_validate_json(line).model_dump(mode="json")
        text = json.dumps(again, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert text.encode() == line
