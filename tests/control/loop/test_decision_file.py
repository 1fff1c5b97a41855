"""Decisions of `run --auto` in a bounded file."""

import dataclasses
from pathlib import Path

import pytest

from control.loop.decision_file import (
    FILE,
    MOST_LINES,
    MOST_TEXT,
    DecisionFile,
    DecisionRecord,
    earliest_change_s,
    read_decisions,
    record_of,
)
from control.loop.load_shift import LoadShift
from control.loop.policy import Decision, DecisionInputs
from control.loop.view import Mode
from control.planning.plan_needs import PlanNeed, Reason
from control.settings.auto_limits import EAGER
from model.errors import ConfigError

NOW = 1000.0
NEED = PlanNeed(reason=Reason.OUT_OF_TOLERANCE, message="the cluster is out of tolerance")
FACTS = DecisionInputs(
    now_s=NOW,
    mode=Mode.AUTO,
    limits=EAGER.model_copy(update={"confirm": 60.0, "pause": 100.0}),
    loads_from_s=NOW - 15,
    needs=(NEED,),
    needed_since_s=NOW - 20,
    awaited="",
    was_balanced=False,
    ended_at_s=None,
    plan=None,
    outdated=False,
    answered=False,
    solve_in_s=0.0,
    quiet_in_s=0.0,
    retry="",
    plan_wanted=False,
)


def record(
    step: Decision = Decision.CONFIRM,
    reason: str = "out of tolerance for 20 s",
    at_ms: int = 5_000,
    **changes: object,
) -> DecisionRecord:
    facts = dataclasses.replace(FACTS, **changes)  # type: ignore[arg-type]
    return record_of(facts, step, reason, cluster_id="one", at_ms=at_ms, retry_in_s=0.0)


def test_a_decision_that_differs_in_figures_alone_is_kept_once(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path)
    for second in range(20, 60):
        file.note(record(reason=f"out of tolerance for {second} s", at_ms=second))
    file.note(record(Decision.PLAN, "out of tolerance"))
    found = read_decisions(tmp_path, 10)
    assert [(r.decision, r.reason) for r in found] == [
        (Decision.CONFIRM, "out of tolerance for 20 s"),
        (Decision.PLAN, "out of tolerance"),
    ]
    assert found[0].trigger == NEED.message


@pytest.mark.parametrize(
    ("step", "changes", "expected"),
    [
        (Decision.CONFIRM, {}, 40.0),
        (Decision.CONFIRM, {"ended_at_s": NOW - 30}, 70.0),
        (Decision.CONFIRM, {"was_balanced": True, "loads_from_s": NOW - 75}, 55.0),
        (
            Decision.CONFIRM,
            {"was_balanced": True, "needed_since_s": NOW - 60, "shift": LoadShift(level_s=2.5)},
            8.0,
        ),
        (Decision.SETTLE, {"ended_at_s": NOW, "loads_from_s": NOW - 15}, 15.0),
        (Decision.SETTLE, {"quiet_in_s": 7.0, "solve_in_s": 3.0}, 7.0),
        (Decision.RETRY, {}, 9.0),
        (Decision.REST, {"needs": (), "needed_since_s": None}, 0.0),
        (Decision.REFUSE, {}, 0.0),
    ],
)
def test_the_earliest_change_is_that_of_the_longest_wait(
    step: Decision, changes: dict[str, object], expected: float
) -> None:
    facts = dataclasses.replace(FACTS, **changes)  # type: ignore[arg-type]
    assert earliest_change_s(facts, step, 9.0) == pytest.approx(expected)
    made = record_of(facts, step, "", cluster_id="one", at_ms=5_000, retry_in_s=9.0)
    assert made.until_ms == (5_000 + int(1000 * expected) if expected else None)


def test_only_the_newest_decisions_are_kept(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path)
    steps = (Decision.REST, Decision.CONFIRM)
    for at_ms in range(MOST_LINES + 1):
        file.note(record(steps[at_ms % 2], "", at_ms))
    lines = (tmp_path / FILE).read_bytes().splitlines()
    assert len(lines) == MOST_LINES // 2 + 1
    (last,) = read_decisions(tmp_path, 1)
    assert last.at_ms == MOST_LINES
    # The next process counts on from what is there.
    again = DecisionFile(tmp_path)
    again.note(record(at_ms=1))
    assert len((tmp_path / FILE).read_bytes().splitlines()) == len(lines) + 1


def test_lines_that_are_cut_off_or_damaged_are_left_out(tmp_path: Path) -> None:
    DecisionFile(tmp_path).note(record(at_ms=1))
    path = tmp_path / FILE
    path.write_bytes(b"\xff\x00 no decision\n" + path.read_bytes() + b'{"at_ms": 2, "clus')
    DecisionFile(tmp_path).note(record(at_ms=3))
    assert [r.at_ms for r in read_decisions(tmp_path, 10)] == [1, 3]


def test_long_reasons_are_cut(tmp_path: Path) -> None:
    DecisionFile(tmp_path).note(record(reason="\U0001f600" * 5_000))
    (found,) = read_decisions(tmp_path, 1)
    assert found.reason == "\U0001f600" * MOST_TEXT


def test_a_file_that_cannot_be_written_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "state"
    folder.write_text("a file, not a folder")
    file = DecisionFile(folder)
    for step in (Decision.REST, Decision.CONFIRM):
        file.note(record(step))
    assert len(caplog.records) == 1
    assert f"cannot write {folder / FILE}" in caplog.text


def test_without_a_file_there_are_no_decisions(tmp_path: Path) -> None:
    assert read_decisions(tmp_path, 1) == []


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(ConfigError, match=f"cannot read .*{FILE}"):
        read_decisions(tmp_path, 1)
