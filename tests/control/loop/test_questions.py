"""Plans that wait in the state folder, and their approval from another process."""

import json
from pathlib import Path

import pytest

from control.loop.questions import (
    FOLDER,
    MOST_KEPT,
    VALID_S,
    Questions,
    QuestionState,
    answered_by,
    approve,
    plan_file,
    questions,
    reject,
)
from model.errors import ConfigError, GuardrailRefused, PlanOutdated
from model.log_events import LogEvent
from model.plan.plan import Plan, read_plan
from solver.solve import solve
from tests.support.control.loop_parts import EASY, MB, WORK, cluster

AT_MS = 1_700_000_000_000
DAY_MS = int(1000 * VALID_S)


def plan_for(homes: list[int]) -> Plan:
    plan = solve(cluster(homes, [MB] * len(homes)), EASY, WORK).best
    assert plan is not None
    return plan


PLAN = plan_for([2] * 8)
OTHER = plan_for([2] * 7)


def silent(_text: str, _event: LogEvent) -> None:
    raise AssertionError("no warning is expected")


class Told:
    """The texts of warnings."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str, _event: LogEvent) -> None:
        self.texts.append(text)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def asked(tmp_path: Path, told: Told) -> Questions:
    found = Questions(tmp_path, told)
    assert found.ask(PLAN, "rule_violated", "rule_violated is set to ask", AT_MS)
    return found


def test_an_approval_releases_its_plan_once(asked: Questions, tmp_path: Path) -> None:
    assert asked.approval() is None
    approve(tmp_path, PLAN.hash[:12], "eve", AT_MS + 5)
    with pytest.raises(GuardrailRefused, match="approved already"):
        approve(tmp_path, PLAN.hash, "bob", AT_MS + 6)
    found = asked.approval()
    assert found is not None
    assert found.by == "eve"
    assert asked.approval() is None
    with pytest.raises(GuardrailRefused, match="was approved by eve already"):
        approve(tmp_path, PLAN.hash, "bob", AT_MS + 7)


def test_the_sealed_plan_is_the_plan(asked: Questions, tmp_path: Path) -> None:
    assert read_plan(plan_file(tmp_path / FOLDER, PLAN.hash)) == PLAN


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("", "give 8 to 64 hex digits"),
        (PLAN.hash[:7], "give 8 to 64 hex digits"),
        ("../../etc", "give 8 to 64 hex digits"),
        ("0" * 64, f"waiting: {PLAN.hash[:12]}"),
    ],
)
def test_unknown_hashes_are_refused(
    asked: Questions, tmp_path: Path, prefix: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        approve(tmp_path, prefix, "eve", AT_MS)
    assert asked.approval() is None


@pytest.mark.parametrize("by", ["", " ", "a\nb", "\x1b[2J", "x" * 101])
def test_names_that_cannot_be_printed_are_refused(
    asked: Questions, tmp_path: Path, by: str
) -> None:
    with pytest.raises(ConfigError, match="printable"):
        approve(tmp_path, PLAN.hash, by, AT_MS)
    assert asked.approval() is None


def test_a_withdrawn_plan_is_refused_with_the_reason(asked: Questions, tmp_path: Path) -> None:
    asked.withdraw("the cluster changed")
    with pytest.raises(PlanOutdated, match="no longer waits: the cluster changed"):
        approve(tmp_path, PLAN.hash, "eve", AT_MS)


def test_a_newer_plan_replaces_the_waiting_one(asked: Questions, tmp_path: Path) -> None:
    assert not asked.ask(PLAN, "rule_violated", "", AT_MS + 1)
    assert asked.ask(OTHER, "rule_violated", "", AT_MS + 2)
    with pytest.raises(PlanOutdated, match="a newer plan replaced it"):
        approve(tmp_path, PLAN.hash, "eve", AT_MS + 3)
    approve(tmp_path, OTHER.hash, "eve", AT_MS + 3)
    assert asked.approval() is not None


def test_an_approval_is_not_valid_for_a_later_question_about_the_plan(
    asked: Questions, tmp_path: Path, told: Told
) -> None:
    approve(tmp_path, PLAN.hash, "eve", AT_MS + 1)
    path = next((tmp_path / FOLDER).glob("*.approval.json"))
    left = path.read_bytes()
    asked.withdraw("the cluster changed")
    words = f"plan {PLAN.hash[:12]} is not executed, though eve approved it: the cluster changed"
    assert told.texts == [words]
    asked.ask(PLAN, "rule_violated", "", AT_MS + 2)
    # As if the approval had been written while the question was withdrawn.
    path.write_bytes(left)
    assert asked.approval() is None
    approve(tmp_path, PLAN.hash, "eve", AT_MS + 3)
    assert asked.approval() is not None


def test_the_next_process_continues_the_question(asked: Questions, tmp_path: Path) -> None:
    again = Questions(tmp_path, silent)
    assert again.restore("another cluster", AT_MS) is None
    assert again.waiting is None
    assert again.restore(PLAN.cluster_id, AT_MS + 10) is None
    assert not again.ask(PLAN, "rule_violated", "", AT_MS + 20)
    approve(tmp_path, PLAN.hash, "eve", AT_MS + 30)
    assert again.approval() is not None


def test_a_plan_approved_between_two_processes_is_executed(
    asked: Questions, tmp_path: Path
) -> None:
    approve(tmp_path, PLAN.hash, "eve", AT_MS + 30)
    found = Questions(tmp_path, silent).restore(PLAN.cluster_id, AT_MS + 40)
    assert found is not None
    assert (found[0], found[1].by) == (PLAN, "eve")
    assert Questions(tmp_path, silent).restore(PLAN.cluster_id, AT_MS + 50) is None


def test_an_altered_plan_is_not_executed(asked: Questions, tmp_path: Path, told: Told) -> None:
    approve(tmp_path, PLAN.hash, "eve", AT_MS + 30)
    path = plan_file(tmp_path / FOLDER, PLAN.hash)
    path.write_text(path.read_text().replace('"partition":0', '"partition":7', 1))
    assert Questions(tmp_path, told).restore(PLAN.cluster_id, AT_MS + 40) is None
    (question,) = questions(tmp_path)
    assert "was altered after it was made" in question.closed
    (warning,) = told.texts
    assert "is not executed, though eve approved it" in warning
    # Nor is another plan with a hash of its own.
    path.write_text(json.dumps(OTHER.model_dump(mode="json")))
    assert Questions(tmp_path, silent).restore(PLAN.cluster_id, AT_MS + 40) is None


def test_old_questions_are_not_answered(asked: Questions, tmp_path: Path, told: Told) -> None:
    with pytest.raises(PlanOutdated, match="asked for more than"):
        approve(tmp_path, PLAN.hash, "eve", AT_MS + DAY_MS)
    approve(tmp_path, PLAN.hash, "eve", AT_MS - DAY_MS)
    assert Questions(tmp_path, told).restore(PLAN.cluster_id, AT_MS + DAY_MS) is None
    (warning,) = told.texts
    assert warning.endswith("though eve approved it: it was too old")
    assert [q.state for q in questions(tmp_path)] == [QuestionState.WITHDRAWN]


def test_damaged_files_are_left_out(asked: Questions, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    (folder / f"{'0' * 64}.question.json").write_bytes(b"\xff{")
    (folder / f"{'1' * 64}.question.json").write_text('{"kind": "plimsoll.question"}')
    hostile = json.loads(next(folder.glob(f"{PLAN.hash}.question.json")).read_text())
    (folder / f"{'2' * 64}.question.json").write_text(
        json.dumps(hostile | {"plan_hash": "../../../etc/passwd"})
    )
    (folder / f"{PLAN.hash}.approval.json").write_text("[]")
    assert [q.plan_hash for q in questions(tmp_path)] == [PLAN.hash]
    assert asked.approval() is None
    approve(tmp_path, PLAN.hash, "eve", AT_MS)
    assert answered_by(tmp_path, questions(tmp_path)[0]) is not None


def test_only_the_newest_questions_are_kept(tmp_path: Path) -> None:
    asked = Questions(tmp_path, silent)
    for number in range(MOST_KEPT + 5):
        named = PLAN.model_copy(update={"hash": f"{number:064x}"})
        asked.ask(named, "rule_violated", "", AT_MS + number)
    assert len(questions(tmp_path)) == MOST_KEPT
    assert len([*(tmp_path / FOLDER).iterdir()]) == 2 * MOST_KEPT


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path, told: Told) -> None:
    (tmp_path / FOLDER).write_text("a file, not a folder")
    asked = Questions(tmp_path, told)
    asked.ask(PLAN, "rule_violated", "", AT_MS)
    assert "cannot be approved from another shell" in told.texts[0]
    asked.withdraw("the end")


def test_a_rejected_plan_is_not_asked_for_again_and_cannot_be_approved(
    asked: Questions, tmp_path: Path
) -> None:
    assert asked.rejection() == ""
    reject(tmp_path, None, "eve", AT_MS + 5)
    with pytest.raises(GuardrailRefused, match="was rejected by eve already"):
        approve(tmp_path, PLAN.hash, "bob", AT_MS + 6)
    assert asked.approval() is None
    assert asked.rejection() == "eve"
    assert asked.waiting is None
    assert not asked.ask(PLAN, "rule_violated", "", AT_MS + 7)
    # Nor by a later process; another plan is.
    later = Questions(tmp_path, silent)
    assert not later.ask(PLAN, "rule_violated", "", AT_MS + 8)
    assert later.rejected_by == "eve"
    assert later.ask(OTHER, "rule_violated", "", AT_MS + 9)
    assert later.rejected_by == ""


def test_an_approved_plan_cannot_be_rejected(asked: Questions, tmp_path: Path) -> None:
    approve(tmp_path, PLAN.hash, "eve", AT_MS)
    with pytest.raises(GuardrailRefused, match="is approved already"):
        reject(tmp_path, PLAN.hash[:8], "bob", AT_MS)
    assert asked.rejection() == ""
    assert asked.approval() is not None


def test_a_rejection_between_two_processes_holds(asked: Questions, tmp_path: Path) -> None:
    reject(tmp_path, PLAN.hash, "eve", AT_MS)
    later = Questions(tmp_path, silent)
    assert later.restore(PLAN.cluster_id, AT_MS + 1) is None
    assert (later.waiting, later.rejected_by) == (None, "eve")
    assert not later.ask(PLAN, "rule_violated", "", AT_MS + 2)


def test_a_rejection_without_a_hash_needs_exactly_one_plan(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no plan waits"):
        reject(tmp_path, None, "eve", AT_MS)


def test_a_restored_question_may_leave_its_approval_for_later(
    asked: Questions, tmp_path: Path
) -> None:
    approve(tmp_path, PLAN.hash, "eve", AT_MS)
    later = Questions(tmp_path, silent)
    assert later.restore(PLAN.cluster_id, AT_MS + 1, answers=False) is None
    assert later.waiting is not None
    assert later.approval() is not None
