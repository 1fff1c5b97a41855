"""A screen beside a `run --auto` of the same state folder: decisions, and plans that wait."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.widgets import Input, Static

from control.loop.decision_file import DecisionFile, DecisionRecord
from control.loop.policy import Decision
from control.loop.questions import FOLDER, Questions, answered_by, approve_words, plan_file
from control.loop.view import Mode
from control.service.audit_log import AuditOutcome, AuditVia, read_audit
from control.service.auto_watch import AutoWatch
from model.errors import ConfigError
from model.log_events import LogEvent
from model.plan.plan import plan_hash
from tests.support.tui.app_harness import USER, Stage, stage
from tests.support.tui.loop_views import AT_MS, CLUSTER_ID, NAME, plan, plan_ready
from tests.tui.test_pictures import picture, picture_of
from tui.screens.approve import ESTIMATING
from tui.screens.waiting_plan import WaitingPlanScreen

__all__ = ["picture"]

REASON = "uneven_load is set to act, and 4 moves are more than replica_moves = 2"


def refuse(words: str, _event: LogEvent | None = None) -> None:
    raise AssertionError(words)


def decided(decision: Decision, cluster_id: str = CLUSTER_ID) -> DecisionRecord:
    return DecisionRecord(
        at_ms=AT_MS - 60_000,
        cluster_id=cluster_id,
        decision=decision,
        trigger="broker 1 is 200 % above the average in net_in",
        reason=REASON,
        until_ms=None,
        plan_hash="",
    )


@pytest.fixture
def auto(tmp_path: Path) -> Iterator[DecisionFile]:
    """A `run --auto` that decides about the cluster until the test ends it."""
    found = DecisionFile(tmp_path)
    found.note(decided(Decision.REFUSE))
    yield found
    found.end("the test is over", AT_MS)


@pytest.fixture
def waiting(auto: DecisionFile, tmp_path: Path) -> Questions:
    """It asks a person about its plan."""
    del auto
    found = Questions(tmp_path, refuse)
    made = plan()
    sealed = made.model_copy(update={"hash": plan_hash(made.model_dump(mode="json"))})
    reason = f"{REASON}{approve_words(sealed.hash)}"
    assert found.ask(sealed, "uneven_load", reason, AT_MS - 60_000)
    return found


async def beside(on: Stage, folder: Path) -> None:
    """Let the screen look at the state folder."""
    on.loop.auto_watch = AutoWatch(folder)
    on.app._look_for_auto()
    await on.settle()
    on.app._tick()
    await on.settle()


async def shown_plan(on: Stage) -> WaitingPlanScreen:
    """Open the dialog, and wait until it takes keys and shows its estimate."""
    await on.press("W")
    while not isinstance(on.app.screen, WaitingPlanScreen) or not isinstance(on.app.focused, Input):
        await on.pilot.pause(0.01)
    takes = on.app.screen.query_one("#takes", Static)
    while str(takes.render()) == ESTIMATING:
        await on.pilot.pause(0.01)
    on.app.screen.query_one(Input).cursor_blink = False
    return on.app.screen


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_decision_and_a_plan_that_waits(
    size: tuple[int, int], waiting: Questions, tmp_path: Path, picture: SnapshotAssertion
) -> None:
    async with stage(plan_ready(), size=size) as on:
        await beside(on, tmp_path)
        assert await picture_of(on) == picture(name="waits")
        await shown_plan(on)
        assert await picture_of(on) == picture(name="asked")
        await on.press("escape")
        waiting.withdraw("the cluster has changed")
        await beside(on, tmp_path)
        assert await picture_of(on) == picture(name="decided")


async def test_the_plan_is_approved_once_and_audited(waiting: Questions, tmp_path: Path) -> None:
    question = waiting.waiting
    assert question is not None
    async with stage(plan_ready()) as on:
        await beside(on, tmp_path)
        await shown_plan(on)
        await on.press(*NAME, "enter")
        assert not isinstance(on.app.screen, WaitingPlanScreen)
        answer = answered_by(tmp_path, question)
        assert answer is not None
        assert answer.by == USER
        assert on.loop.approved == []
        assert on.loop.actions == [f"approve plan {question.plan_hash[:12]}"]
        await beside(on, tmp_path)
        assert on.app.moment.auto is not None
        assert on.app.moment.auto.waiting is None
        await on.press("W")
        assert not isinstance(on.app.screen, WaitingPlanScreen)
    records = read_audit(tmp_path, refuse)
    assert [(r.via, r.by, r.plan_hash) for r in records] == [
        (AuditVia.SCREEN, USER, question.plan_hash)
    ] * 2
    assert [r.outcome for r in records] == [AuditOutcome.REQUESTED, AuditOutcome.DONE]


async def test_a_plan_withdrawn_meanwhile_is_not_approved(
    waiting: Questions, tmp_path: Path
) -> None:
    question = waiting.waiting
    assert question is not None
    async with stage(plan_ready()) as on:
        await beside(on, tmp_path)
        await shown_plan(on)
        waiting.withdraw("the cluster has changed")
        await on.press(*NAME, "enter")
        assert isinstance(on.app.screen, WaitingPlanScreen)
        said = str(on.app.screen.query_one("#refused", Static).render())
        assert "no longer waits: the cluster has changed" in said
    assert answered_by(tmp_path, question) is None


async def test_a_read_only_screen_names_the_command(waiting: Questions, tmp_path: Path) -> None:
    assert waiting.waiting is not None
    async with stage(plan_ready(Mode.READ_ONLY), size=(160, 50)) as on:
        await beside(on, tmp_path)
        assert f"plimsoll approve {waiting.waiting.plan_hash[:12]}" in on.header
        await on.press("W")
        assert not isinstance(on.app.screen, WaitingPlanScreen)


def test_decisions_that_no_process_takes_any_more_are_not_shown(
    auto: DecisionFile, tmp_path: Path
) -> None:
    watch = AutoWatch(tmp_path)
    assert watch.seen("another cluster", AT_MS) is None
    seen = watch.seen(CLUSTER_ID, AT_MS)
    assert seen is not None
    assert seen.why == f"broker 1 is 200 % above the average in net_in; {REASON}"
    assert seen.reconsidered.startswith("when someone approves the plan")
    auto.end("the limits are reached", AT_MS)
    assert watch.seen(CLUSTER_ID, AT_MS) is None
    assert AutoWatch(tmp_path / "nothing").seen(CLUSTER_ID, AT_MS) is None


def test_a_plan_that_waits_for_the_next_run_auto_is_shown(
    auto: DecisionFile, waiting: Questions, tmp_path: Path
) -> None:
    """As `run --auto --once` leaves it."""
    auto.end("--once", AT_MS)
    seen = AutoWatch(tmp_path).seen(CLUSTER_ID, AT_MS)
    assert seen is not None
    assert seen.waiting == waiting.waiting


def test_an_altered_plan_is_not_shown(waiting: Questions, tmp_path: Path) -> None:
    question = waiting.waiting
    assert question is not None
    file = plan_file(tmp_path / FOLDER, question.plan_hash)
    document = json.loads(file.read_text())
    assert AutoWatch(tmp_path).plan(question.plan_hash).hash == question.plan_hash
    document["moves"].pop()
    file.write_text(json.dumps(document))
    with pytest.raises(ConfigError, match="was altered after it was made"):
        AutoWatch(tmp_path).plan(question.plan_hash)
