"""The audit log: appended by several processes, bounded, and readable after crashes."""

import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from control.service.audit_log import (
    FILE,
    KEPT,
    MOST_BYTES,
    MOST_TEXT,
    AuditLog,
    AuditOutcome,
    AuditRecord,
    AuditVia,
    aside,
    read_audit,
    recorded,
)
from model.errors import ConfigError, GuardrailRefused

AT_MS = 1_700_000_000_000


def record(number: int = 1, **changes: object) -> AuditRecord:
    usual: dict[str, object] = {
        "at_ms": AT_MS + number,
        "id": f"{number:016x}",
        "action": "pause",
        "by": "eve",
        "user": "eve",
        "uid": 1000,
        "pid": 77,
        "via": AuditVia.SOCKET,
        "plan_hash": "",
        "detail": "",
        "outcome": AuditOutcome.REQUESTED,
        "message": "",
    }
    return AuditRecord.model_validate(usual | changes)


def numbers(folder: Path) -> list[int]:
    return [found.at_ms - AT_MS for found in read_audit(folder)]


def test_records_are_read_in_their_order_and_belong_to_the_user_alone(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "state")
    for number in (1, 2, 3):
        log.append(record(number))
    assert numbers(tmp_path / "state") == [1, 2, 3]
    assert read_audit(tmp_path / "state")[0] == record(1)
    assert log.path.stat().st_mode & 0o777 == 0o600


def test_a_record_is_synced_before_append_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def fsync(handle: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))

    monkeypatch.setattr(os, "fsync", fsync)
    log = AuditLog(tmp_path)
    log.append(record(1))
    # The folder, too, names a new file, and its parent the folder.
    assert synced == [str(tmp_path.parent), str(log.path), str(tmp_path)]
    log.append(record(2))
    assert synced[3:] == [str(log.path)]


def test_a_full_file_is_set_aside_and_the_oldest_removed(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, most_bytes=1000)
    for number in range(100):
        log.append(record(number))
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == sorted([FILE, *(aside(tmp_path, n).name for n in range(1, KEPT + 1))])
    assert all(path.stat().st_size <= 1000 for path in tmp_path.iterdir())
    left = numbers(tmp_path)
    assert left == list(range(100 - len(left), 100))
    assert len(left) > KEPT


def test_processes_and_threads_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    # Each log opens the file for itself, as processes do.
    logs = [AuditLog(tmp_path, most_bytes=100_000) for _ in range(4)]

    def append(which: int) -> None:
        for number in range(20):
            logs[which].append(record(100 * which + number))

    threads = [threading.Thread(target=append, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers(tmp_path)) == [100 * w + n for w in range(4) for n in range(20)]


def test_a_line_that_a_crash_cut_off_swallows_no_other(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.append(record(1))
    with log.path.open("ab") as file:
        file.write(b'{"action": "abo')
    log.append(record(2))
    assert numbers(tmp_path) == [1, 2]


def test_a_full_disk_leaves_no_part_of_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog(tmp_path)
    log.append(record(1))
    before = log.path.read_bytes()
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:10]))
    with pytest.raises(OSError, match="no space is left"):
        log.append(record(2))
    assert log.path.read_bytes() == before


def test_long_and_strange_texts_stay_one_bounded_line(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.append(record(1, by="x\n" * 10_000, detail="\x1b[2J\udc80"))
    (found,) = read_audit(tmp_path)
    assert len(found.by) == MOST_TEXT
    assert len(log.path.read_bytes().splitlines()) == 1


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / FILE).symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="not a regular file"):
        AuditLog(tmp_path).append(record())
    assert (tmp_path / "precious").read_text() == "precious"


def test_fields_of_later_versions_are_ignored_and_garbage_is_left_out(tmp_path: Path) -> None:
    AuditLog(tmp_path).append(record(1))
    path = tmp_path / FILE
    later = path.read_bytes().replace(b'{"action"', b'{"colour": "red", "action"')
    path.write_bytes(b"\x00\xff\n" + later + b"[]\n{}\n")
    assert numbers(tmp_path) == [1]


def test_damaged_lines_are_counted_and_named(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    for number in (1, 2, 3):
        log.append(record(number))
    whole = log.path.read_bytes().splitlines(keepends=True)
    late = whole[0].replace(str(AT_MS + 1).encode(), b"9" * 18)
    garbage = b"\x00\xff\xfe\n" + b'{"action": "abo\n' + late
    log.path.write_bytes(whole[0] + garbage + whole[1] + b"\xed\xa0\x80\n" + whole[2])
    aside(tmp_path, 1).write_bytes(bytes(range(256)))
    warnings: list[str] = []
    assert [r.at_ms - AT_MS for r in read_audit(tmp_path, warnings.append)] == [1, 2, 3]
    assert warnings == [
        f"{aside(tmp_path, 1)}: 2 lines left out as damaged: 1-2",
        f"{log.path}: 4 lines left out as damaged: 2-4, 6",
    ]


def test_of_a_file_that_is_too_long_the_end_is_read(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.append(record(1))
    line = log.path.read_bytes()
    log.path.write_bytes(b"x" * (2 * MOST_BYTES) + b"\n" + line + b"?\n")
    warnings: list[str] = []
    assert [r.at_ms - AT_MS for r in read_audit(tmp_path, warnings.append)] == [1]
    place = len(line) + 3
    assert warnings == [
        f"{log.path} is too long: what comes before byte {place} is not read",
        f"{log.path}: 1 line left out as damaged: 2, counted from byte {place}",
    ]


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda p: p.symlink_to("/dev/zero")])
def test_a_pipe_folder_or_link_is_named_and_not_waited_for(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    log = AuditLog(tmp_path)
    log.check()
    make(log.path)
    for call in (log.check, lambda: read_audit(tmp_path)):
        with pytest.raises(ConfigError, match=r"audit\.jsonl is not a regular file; move it away"):
            call()
    with pytest.raises(OSError, match="is not a regular file"):
        log.append(record())


def test_a_process_that_keeps_the_lock_is_waited_for_only_so_long(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, wait_s=0.1)
    log.append(record(1))
    with log.path.open("rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(OSError, match=r"another process has had its lock for 0\.10 s"):
            log.append(record(2))
    log.append(record(3))
    assert numbers(tmp_path) == [1, 3]


def test_a_command_records_both_ends_of_its_action(tmp_path: Path) -> None:
    with recorded(tmp_path, record(1), "approved"):
        assert [r.outcome for r in read_audit(tmp_path)] == [AuditOutcome.REQUESTED]
    with pytest.raises(GuardrailRefused), recorded(tmp_path, record(2), "approved"):
        raise GuardrailRefused("it waits no longer")
    found = [(r.outcome.value, r.message) for r in read_audit(tmp_path)]
    expected = [("requested", ""), ("done", "approved"), ("requested", "")]
    assert found == [*expected, ("refused", "it waits no longer")]


def test_a_command_that_cannot_be_recorded_does_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    ran = False
    with pytest.raises(ConfigError, match="nothing was done"), recorded(tmp_path, record(), ""):
        ran = True
    assert not ran
