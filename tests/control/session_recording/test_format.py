"""A screen is recorded and replayed: the same views, in files of modest size."""

import gzip
import json
import resource
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from control.loop.view import LoopView, Mode, Phase
from control.session_recording.format import RecordingHeader, RecordingWriter
from control.session_recording.playback import Playback
from control.session_recording.reader import RecordedView, read_recording
from control.session_recording.recorder import ScreenRecorder
from control.settings.settings import Settings
from model.errors import ConfigError, GuardrailRefused
from model.run import RunState
from model.snapshot.snapshot import Snapshot
from model.stop_rules import StopRules
from tests.support.tui.loop_views import (
    CONNECTING,
    GOALS,
    NAME,
    balanced_after_run,
    measuring,
    plan_ready,
    progress,
    running,
    skewed,
    solving,
)


def _louder(view: LoopView, times: float) -> LoopView:
    """The same placement a second later under other loads."""
    assert view.snapshot is not None
    columns = replace(view.snapshot.partitions, loads=times * skewed().partitions.loads)
    header = view.snapshot.header
    later = header.model_copy(update={"taken_at_ms": header.taken_at_ms + 1000})
    return replace(view, snapshot=Snapshot(later, columns), at_ms=view.at_ms + 1000)


SHOW = (
    CONNECTING,
    measuring(),
    solving(),
    _louder(solving(), 2.0),
    plan_ready(),
    running(),
    replace(running(), run=progress(RunState.PAUSED)),
    balanced_after_run(),
)


def _header() -> RecordingHeader:
    return RecordingHeader(
        bootstrap="127.0.0.1:9092",
        name=NAME,
        goals=GOALS,
        throttle=40_000_000,
        stop_rules=StopRules(),
    )


def _write_recording(path: Path, views: tuple[LoopView, ...] = SHOW) -> Path:
    recording = RecordingWriter(path, _header())
    for number, view in enumerate(views):
        recording.add(view, after_s=0.1 * number, running=False, report=None)
    recording.close()
    return path


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write_recording(tmp_path_factory.mktemp("film") / "screen.jsonl")


def _recorded_views(path: Path) -> list[RecordedView]:
    return list(read_recording(path)[1])


def _assert_same(result: LoopView, expected: LoopView) -> None:
    bare = [replace(v, snapshot=None, evaluation=None) for v in (result, expected)]
    assert bare[0] == bare[1]
    if expected.snapshot is None:
        assert result.snapshot is None
        return
    assert result.snapshot is not None
    assert result.snapshot.fingerprint == expected.snapshot.fingerprint
    loads = expected.snapshot.partitions.loads
    np.testing.assert_allclose(result.snapshot.partitions.loads, loads, rtol=1e-3)
    assert result.snapshot.header.taken_at_ms == expected.snapshot.header.taken_at_ms


def test_recorded_views_are_shown_again(recording: Path) -> None:
    scenes = _recorded_views(recording)
    assert len(scenes) == len(SHOW)
    for scene, view in zip(scenes, SHOW, strict=True):
        _assert_same(scene.view, view)


def test_the_loads_are_evaluated_again(recording: Path) -> None:
    scenes = _recorded_views(recording)
    judged = scenes[2].view.evaluation
    assert judged is not None
    assert judged.objective == pytest.approx(solving().evaluation.objective)  # type: ignore[union-attr]


def test_a_line_has_only_the_differences(recording: Path) -> None:
    lines = [json.loads(line) for line in recording.read_text().splitlines()]
    louder, paused = lines[4], lines[7]
    assert set(louder) == {"after_s", "at_ms", "running", "loads", "taken_at_ms"}
    assert set(paused["run_changes"]) == {"state"}


def test_a_compressed_recording_is_the_same(tmp_path: Path, recording: Path) -> None:
    packed = _write_recording(tmp_path / "screen.jsonl.gz")
    assert gzip.decompress(packed.read_bytes()) == recording.read_bytes()
    assert len(_recorded_views(packed)) == len(SHOW)


# ---- invalid recordings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: ["", *lines], "line 1, is not the header of a recording"),
        (lambda lines: lines[1:], "line 1, is not the header of a recording"),
        (lambda lines: [lines[0], "{}", *lines[1:]], "line 2, .*after_s: Field"),
        (lambda lines: [lines[0], lines[4]], "line 2, .*lacks a field"),
        (lambda lines: [*lines[:4], "half a li", *lines[4:]], "line 5, .*not valid JSON"),
        (lambda lines: [lines[0], *lines[1:3], lines[4]], "there are loads before"),
        (lambda lines: [*lines[:3], lines[7]], "a run changes before it starts"),
        (lambda lines: [lines[0].replace('"1.1"', '"2.0"', 1)], "use a newer plimsoll"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, recording: Path, change: object, message: str) -> None:
    bad = tmp_path / "bad.jsonl"
    assert callable(change)
    lines = change(recording.read_text().splitlines())
    bad.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(ConfigError, match=message):
        _recorded_views(bad)


def test_a_truncated_last_line_is_ignored(tmp_path: Path, recording: Path) -> None:
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(recording.read_bytes()[:-20])
    assert len(_recorded_views(torn)) == len(SHOW) - 1


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{}\n", b"[]\n", b"7\n"])
def test_other_files_are_refused_before_anything_is_shown(tmp_path: Path, content: bytes) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(content)
    with pytest.raises(ConfigError):
        Playback(other, Settings(), speed=1.0)


def test_a_missing_or_uncompressed_file_is_named(tmp_path: Path) -> None:
    plain = tmp_path / "plain.jsonl.gz"
    plain.write_bytes(b"{}\n")
    for path in (tmp_path / "missing.jsonl", plain):
        with pytest.raises(ConfigError, match=str(path)):
            Playback(path, Settings(), speed=1.0)


# ---- replays


def _ends(playback: Playback) -> None:
    deadline = time.monotonic() + 300
    while playback.view.message != "the recording ends here" and not playback.error:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_replay_marks_each_view_as_a_recording_and_stays_at_the_end(recording: Path) -> None:
    shown: list[LoopView] = []
    playback = Playback(recording, Settings(), speed=100.0)
    playback.subscribe(shown.append)
    with playback:
        _ends(playback)
    assert {view.mode for view in shown} == {Mode.RECORDING}
    assert [v.phase for v in shown][-1] is Phase.BALANCED
    assert len(shown) == len(SHOW)
    assert playback.view.log[-1].text == "the recording ends here"


def test_a_recording_refuses_every_request(recording: Path) -> None:
    playback = Playback(recording, Settings(), speed=1.0)
    with pytest.raises(GuardrailRefused):
        playback.approve("0" * 64, by="ann")
    with pytest.raises(GuardrailRefused):
        playback.previous_runs.resume("ann")
    assert playback.previous_runs.runs() == ()


def test_a_bad_line_further_down_ends_the_replay_and_is_reported(
    tmp_path: Path, recording: Path
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(recording.read_bytes() + b"{}\n")
    with Playback(bad, Settings(), speed=100.0) as playback:
        _ends(playback)
    assert f"line {len(SHOW) + 2}" in str(playback.error)
    assert playback.view.log[-1].level == "error"


# ---- recording


def test_a_loop_is_recorded_while_it_runs(tmp_path: Path, recording: Path) -> None:
    again = tmp_path / "again.jsonl"
    playback = Playback(recording, Settings(), speed=100.0)
    with ScreenRecorder(playback, again), playback:
        _ends(playback)
    phases = [scene.view.phase for scene in _recorded_views(again)]
    assert phases[0] is Phase.CONNECTING
    assert {*phases} == {view.phase for view in SHOW}
    _assert_same(_recorded_views(again)[-1].view, playback.view)


def test_a_file_that_cannot_be_written_is_refused_at_once(recording: Path) -> None:
    playback = Playback(recording, Settings(), speed=100.0)
    with pytest.raises(ConfigError, match="No space left"):
        ScreenRecorder(playback, Path("/dev/full"))


def test_a_full_disk_ends_the_recording_and_not_the_loop(tmp_path: Path, recording: Path) -> None:
    """A limit on the size of files takes the place of a full disk."""
    playback = Playback(recording, Settings(), speed=100.0)
    written = tmp_path / "screen.jsonl"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    recorder = ScreenRecorder(playback, written)
    try:
        most = written.stat().st_size + 100
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        with playback:
            _ends(playback)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        recorder.close()
    assert playback.error is None
    assert len(_recorded_views(written)) == 1
