"""A screen is recorded and played: the same views, no faster file than needed."""

import gzip
import json
import resource
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from control.loop.view import LoopView, Mode, Phase
from control.session_recording.format import Film, RecordingHeader
from control.session_recording.playback import Playback
from control.session_recording.reader import Scene, read_recording
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
    film = Film(path, _header())
    for number, view in enumerate(views):
        film.add(view, after_s=0.1 * number, running=False, report=None)
    film.close()
    return path


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write_recording(tmp_path_factory.mktemp("film") / "screen.jsonl")


def _scenes(path: Path) -> list[Scene]:
    return list(read_recording(path)[1])


def _assert_same(found: LoopView, expected: LoopView) -> None:
    bare = [replace(v, snapshot=None, evaluation=None) for v in (found, expected)]
    assert bare[0] == bare[1]
    if expected.snapshot is None:
        assert found.snapshot is None
        return
    assert found.snapshot is not None
    assert found.snapshot.fingerprint == expected.snapshot.fingerprint
    loads = expected.snapshot.partitions.loads
    np.testing.assert_allclose(found.snapshot.partitions.loads, loads, rtol=1e-3)
    assert found.snapshot.header.taken_at_ms == expected.snapshot.header.taken_at_ms


def test_what_was_shown_is_shown_again(film: Path) -> None:
    scenes = _scenes(film)
    assert len(scenes) == len(SHOW)
    for scene, view in zip(scenes, SHOW, strict=True):
        _assert_same(scene.view, view)


def test_the_loads_are_judged_anew(film: Path) -> None:
    scenes = _scenes(film)
    judged = scenes[2].view.evaluation
    assert judged is not None
    assert judged.objective == pytest.approx(solving().evaluation.objective)  # type: ignore[union-attr]


def test_a_line_has_no_more_than_what_differs(film: Path) -> None:
    lines = [json.loads(line) for line in film.read_text().splitlines()]
    louder, paused = lines[4], lines[7]
    assert set(louder) == {"after_s", "at_ms", "running", "loads", "taken_at_ms"}
    assert set(paused["run_changes"]) == {"state"}


def test_a_packed_film_is_the_same(tmp_path: Path, film: Path) -> None:
    packed = _write_recording(tmp_path / "screen.jsonl.gz")
    assert gzip.decompress(packed.read_bytes()) == film.read_bytes()
    assert len(_scenes(packed)) == len(SHOW)


# ---- what is no recording


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: ["", *lines], "line 1, is not the start of a recording"),
        (lambda lines: lines[1:], "line 1, is not the start of a recording"),
        (
            lambda lines: [lines[0], "{}", *lines[1:]],
            "line 2, .*after_s: Field",
        ),
        (lambda lines: [lines[0], lines[4]], "line 2, .*lacks a part of the view"),
        (
            lambda lines: [*lines[:4], "half a li", *lines[4:]],
            "line 5, .*not valid JSON",
        ),
        (lambda lines: [lines[0], *lines[1:3], lines[4]], "loads come before"),
        (lambda lines: [*lines[:3], lines[7]], "a run changes before it begins"),
        (lambda lines: [lines[0].replace('"1.0"', '"2.0"', 1)], "use a newer plimsoll"),
    ],
)
def test_a_bad_line_is_named(
    tmp_path: Path, film: Path, change: object, words: str
) -> None:
    bad = tmp_path / "bad.jsonl"
    assert callable(change)
    lines = change(film.read_text().splitlines())
    bad.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(ConfigError, match=words):
        _scenes(bad)


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path, film: Path) -> None:
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(film.read_bytes()[:-20])
    assert len(_scenes(torn)) == len(SHOW) - 1


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{}\n", b"[]\n", b"7\n"])
def test_other_files_are_refused_before_anything_is_shown(
    tmp_path: Path, content: bytes
) -> None:
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


# ---- playing


def _ends(playback: Playback) -> None:
    deadline = time.monotonic() + 300
    while playback.view.message != "the recording ends here" and not playback.error:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_played_it_shows_each_view_as_a_recording_and_stays_at_the_end(
    film: Path,
) -> None:
    shown: list[LoopView] = []
    playback = Playback(film, Settings(), speed=100.0)
    playback.subscribe(shown.append)
    with playback:
        _ends(playback)
    assert {view.mode for view in shown} == {Mode.RECORDING}
    assert [v.phase for v in shown][-1] is Phase.LEVEL
    assert len(shown) == len(SHOW)
    assert playback.view.log[-1].text == "the recording ends here"


def test_a_recording_can_be_asked_for_nothing(film: Path) -> None:
    playback = Playback(film, Settings(), speed=1.0)
    with pytest.raises(GuardrailRefused):
        playback.approve("0" * 64, by="ann")
    with pytest.raises(GuardrailRefused):
        playback.past.resume("ann")
    assert playback.past.runs() == ()


def test_a_bad_line_further_down_ends_the_playing_and_is_told(
    tmp_path: Path, film: Path
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(film.read_bytes() + b"{}\n")
    with Playback(bad, Settings(), speed=100.0) as playback:
        _ends(playback)
    assert f"line {len(SHOW) + 2}" in str(playback.error)
    assert playback.view.log[-1].level == "error"


# ---- recording


def test_a_loop_is_recorded_while_it_goes_on(tmp_path: Path, film: Path) -> None:
    again = tmp_path / "again.jsonl"
    playback = Playback(film, Settings(), speed=100.0)
    with ScreenRecorder(playback, again), playback:
        _ends(playback)
    phases = [scene.view.phase for scene in _scenes(again)]
    assert phases[0] is Phase.CONNECTING
    assert {*phases} == {view.phase for view in SHOW}
    _assert_same(_scenes(again)[-1].view, playback.view)


def test_a_file_that_cannot_be_written_is_refused_at_once(film: Path) -> None:
    playback = Playback(film, Settings(), speed=100.0)
    with pytest.raises(ConfigError, match="No space left"):
        ScreenRecorder(playback, Path("/dev/full"))


def test_a_disk_that_fills_ends_the_recording_and_not_the_loop(
    tmp_path: Path, film: Path
) -> None:
    """The largest file that this process may write stands for the disk."""
    playback = Playback(film, Settings(), speed=100.0)
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
    assert len(_scenes(written)) == 1
