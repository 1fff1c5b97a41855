"""Runs whose journal or plan was damaged are resumed, rolled back and cleaned up.

Each ends in a correct state, or says what it cannot know; a value of a damaged record
is never acted upon.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from executor.journal.journal_repair import check_journals, repaired
from executor.journal.lost_settings import lost_settings
from executor.journal.run_history import left_set, past_run, read_content
from executor.journal.run_journal import plan_path, run_paths
from executor.platforms.tiered_segments import LOCAL, SEGMENT
from executor.timing import RunLimits
from model.bounded import MOST_BYTES
from model.errors import ConfigError
from model.run import JournalEvent, RunState
from model.snapshot.snapshot import StorageKind
from tests.support.executor.plan_builders import CLUSTER_ID
from tests.support.executor.simulated_runs import MB, Killed, SimulatedRun

Spoil = Callable[[list[bytes]], bytes]
"""Damage to the lines of a journal."""


def site(folder: Path) -> SimulatedRun:
    return SimulatedRun(
        folder=folder,
        before={0: (1, 2), 1: (2, 1), 2: (1, 2)},
        after={0: (3, 2), 1: (3, 1), 2: (4, 2)},
        log_bytes=200.0 * MB,
        limits=RunLimits(moves_in_flight=1, throttle_bytes_per_s=50 * MB),
    )


def interrupted(folder: Path, change: int = 9) -> tuple[SimulatedRun, Path]:
    """A run that was killed while its second move copies."""
    at = site(folder)
    at.kill_at(change, made=True)
    with pytest.raises(Killed):
        at.run()
    at.stop_killing()
    (path,) = run_paths(folder)
    return at, path


def flip(number: int) -> Spoil:
    """A bit in the middle of a line, from the beginning or the end."""

    def spoil(lines: list[bytes]) -> bytes:
        line = bytearray(lines[number])
        line[len(line) // 2] ^= 1
        lines[number] = bytes(line)
        return b"".join(lines)

    return spoil


def delete(number: int) -> Spoil:
    return lambda lines: b"".join(line for line in lines if line is not lines[number])


def swap(lines: list[bytes]) -> bytes:
    lines[1], lines[2] = lines[2], lines[1]
    return b"".join(lines)


def last_first(lines: list[bytes]) -> bytes:
    """A corrupt line, with later records on both sides."""
    flip(2)(lines)
    return b"".join([lines[-1], *lines[:-1]])


SPOILS: dict[str, Spoil] = {
    "last first": last_first,
    "first line": flip(0),
    "throttle": flip(1),
    "request": flip(2),
    "fourth line": flip(3),
    "last line": flip(-1),
    "every line": lambda lines: b"".join(flip(0)([line]) for line in lines),
    "throttle deleted": delete(1),
    "request deleted": delete(2),
    "swapped": swap,
    "repeated": lambda lines: b"".join([*lines, lines[1]]),
    "windows": lambda lines: b"".join(lines).replace(b"\n", b"\r\n"),
    "zeros": lambda lines: b"".join(lines) + b"\0" * 4096,
    "torn": lambda lines: b"".join(lines)[:-7],
}


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS.keys())
def test_a_run_is_resumed(tmp_path: Path, spoil: Spoil, caplog: pytest.LogCaptureFixture) -> None:
    at, path = interrupted(tmp_path)
    path.write_bytes(spoil(path.read_bytes().splitlines(keepends=True)))
    content = read_content(path)
    report = at.resume()
    assert (report.state, report.reason) == (RunState.DONE, "")
    planned = {n: (tuple(to), to[0]) for n, to in at.after.items()}
    assert at.placement == planned
    assert at.is_clean or "It may still be set: check the brokers 1, 2, 3, 4 and " in (caplog.text)
    for damage in content.damage[:3]:
        assert str(damage) in caplog.text
    assert read_content(path).damage == content.damage


@pytest.mark.parametrize("change", [6, 9])
@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS.keys())
def test_settings_unknown_to_a_resumed_run_are_named_afterwards(
    tmp_path: Path, spoil: Spoil, change: int
) -> None:
    """Its end says that it has left nothing, and not that nothing is left."""
    at, path = interrupted(tmp_path, change)
    path.write_bytes(spoil(path.read_bytes().splitlines(keepends=True)))
    assert at.resume().state is RunState.DONE
    left = at.executor().left(tmp_path)
    assert at.is_clean or any("which the run" in message for message in left)
    with suppress(ConfigError):
        repaired(tmp_path, path.stem, at.cluster.timing)
    assert at.executor().left(tmp_path) == left
    # A rollback finds the values, and takes its own back to them.
    at.cluster.advance(200.0)
    back, _ = at.executor().plan_rollback(tmp_path, path.stem)
    at.run(back)
    assert at.executor().left(tmp_path) == left


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS.keys())
def test_a_run_is_rolled_back(tmp_path: Path, spoil: Spoil) -> None:
    at, path = interrupted(tmp_path)
    path.write_bytes(spoil(path.read_bytes().splitlines(keepends=True)))
    at.cluster.advance(200.0)
    back, left = at.executor().plan_rollback(at.folder, None)
    damage = read_content(path).damage
    assert bool(damage) == bool(left)
    assert at.run(back).state is RunState.DONE
    before = {n: (tuple(of), of[0]) for n, of in at.before.items()}
    assert at.placement == before
    reported = [*left, *at.executor().clean_up(at.folder)]
    assert at.is_clean or any("may still be set" in message for message in reported)


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS.keys())
def test_settings_left_by_a_run_are_removed_or_named(tmp_path: Path, spoil: Spoil) -> None:
    at, path = interrupted(tmp_path)
    path.write_bytes(spoil(path.read_bytes().splitlines(keepends=True)))
    lost = lost_settings(read_content(path), at.plan)
    did = at.executor().clean_up(at.folder)
    assert at.is_clean or any("may still be set" in message for message in did)
    assert all(any(message in reported for reported in did) for message in lost)


def test_a_run_is_cleaned_up_even_if_its_plan_is_unreadable(tmp_path: Path) -> None:
    at, path = interrupted(tmp_path)
    assert not at.is_clean
    plan = plan_path(tmp_path, path.stem)
    plan.write_bytes(plan.read_bytes().replace(b"orders", b"ordars"))
    with pytest.raises(ConfigError, match=r"plan\.json was altered"):
        at.resume()
    with pytest.raises(ConfigError, match=r"plan\.json was altered"):
        at.executor().plan_rollback(at.folder, None)
    (done,) = [w for w in at.executor().clean_up(at.folder) if "throttle" in w]
    assert "its throttle is gone" in done
    assert at.is_clean


def test_an_unreadable_run_is_not_ignored(tmp_path: Path) -> None:
    """The one before it is not the newest."""
    at = site(tmp_path)
    at.run()
    at.cluster.advance(200.0)
    newer = tmp_path / "r00000002-20270115T080000000-1a2b3c4d.jsonl"
    newer.write_bytes(b"#" * 100 + b"\n")
    for command in (at.resume, lambda: at.executor().plan_rollback(at.folder, None)):
        with pytest.raises(ConfigError, match="may be the newest run on this cluster"):
            command()
    assert newer.read_bytes() == b"#" * 100 + b"\n"


@pytest.mark.parametrize("what", ["locked", "too large"])
def test_an_unreadable_journal_is_named(tmp_path: Path, what: str) -> None:
    at, path = interrupted(tmp_path)
    before = path.read_bytes()
    if what == "locked":
        path.unlink()
        path.mkdir()
    else:
        with path.open("ab") as file:
            file.truncate(MOST_BYTES + 1)
    with pytest.raises(ConfigError, match=str(path)):
        at.resume()
    assert what == "locked" or path.stat().st_size == MOST_BYTES + 1
    assert what == "locked" or path.read_bytes()[: len(before)] == before


def test_no_flipped_bit_of_a_retention_is_ever_set(tmp_path: Path) -> None:
    """One flipped bit once made cleanup set 907374182400 instead of 107374182400 bytes."""
    topic, value = "orders", "107374182400"
    at = SimulatedRun(
        folder=tmp_path / "made",
        before={0: (1, 2)},
        after={0: (3, 2)},
        storage=StorageKind.TIERED,
        log_bytes=3000.0 * MB,
        limits=RunLimits(lower_segments=True),
    )
    configs = at.cluster.topic_configs.setdefault(at.plan.moves[0].topic, {})
    configs |= {LOCAL: value, SEGMENT: "1073741824"}
    at.kill_at(0, made=True)
    with pytest.raises(Killed):
        at.run()
    at.stop_killing()
    (path,) = run_paths(at.folder)
    whole = path.read_bytes()
    (line,) = [
        number for number, of in enumerate(whole.splitlines()) if b'"segments shortened"' in of
    ]
    start = whole.index(value.encode())
    for place in range(start, start + len(value)):
        for bit in range(8):
            spoilt = bytearray(whole)
            spoilt[place] ^= 1 << bit
            path.write_bytes(spoilt)
            (past,) = left_set(at.folder, CLUSTER_ID)
            assert past.lowered_segments is None
            assert f"line {line + 1} does not match its checksum" in past.warnings[0]
            assert any(f"check the topics {topic}" in w for w in past.warnings)


def test_every_flipped_bit_of_a_plan_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    _, path = interrupted(tmp_path)
    plan = plan_path(tmp_path, path.stem)
    whole, known = plan.read_bytes(), past_run(tmp_path, CLUSTER_ID).plan
    noticed = 0
    for place in range(0, len(whole), 3):
        spoilt = bytearray(whole)
        spoilt[place] ^= 1 << (place % 8)
        plan.write_bytes(spoilt)
        with suppress(ConfigError):
            assert past_run(tmp_path, CLUSTER_ID).plan == known
            continue
        noticed += 1
    assert noticed > 0.99 * len(whole) / 3


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS.keys())
def test_a_journal_is_repaired_and_the_original_kept(tmp_path: Path, spoil: Spoil) -> None:
    at, path = interrupted(tmp_path)
    path.write_bytes(spoilt := spoil(path.read_bytes().splitlines(keepends=True)))
    before = read_content(path)
    if not before.damage:
        with pytest.raises(ConfigError, match="is not damaged; nothing to repair"):
            repaired(tmp_path, path.stem, at.cluster.timing)
        assert path.read_bytes() == spoilt
        return
    result, original = repaired(tmp_path, path.stem, at.cluster.timing)
    assert original.read_bytes() == spoilt
    assert result.content == before
    after = read_content(path)
    assert not after.damage
    assert bool(after.losses) == bool(before.losses)
    assert after.records[:-1] == before.records
    assert after.records[-1].event is JournalEvent.REPAIRED
    (verdict,) = check_journals(tmp_path)
    assert not verdict.is_damaged
    assert at.resume().state is RunState.DONE
    assert not read_content(path).damage
