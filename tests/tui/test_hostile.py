"""No screen draws terminal control sequences, whatever their origin."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from control.loop.view import LogLine, LoopView
from control.tasks.broker_task import TaskPhase
from control.tasks.task_listing import ListedTask, TaskListing, UnreadableTask
from model.goals.goals import Goals
from model.plan.plan import Plan
from model.run import RunProgress
from model.snapshot.snapshot import Snapshot
from tests.support.hostile_names import HOSTILE, unprintable
from tests.support.tui.app_harness import Stage, stage
from tests.support.tui.listed_tasks import stopped
from tests.support.tui.loop_views import AT_MS, disconnected, failed, judged, plan_ready, running
from tests.support.tui.plan_views import with_frontier
from tui.app import PlimsollApp

GOALS = Goals()
ALL = "".join(HOSTILE.values())
MODES = tuple(PlimsollApp.MODES)


def _snapshot(of: Snapshot, name: str) -> Snapshot:
    """Racks, log directories and topics have this name."""
    header = of.header
    brokers = tuple(b.model_copy(update={"rack": name}) for b in header.brokers)
    topics = tuple(t.model_copy(update={"name": f"{name}{i}"}) for i, t in enumerate(header.topics))
    update = {"brokers": brokers, "topics": topics, "cluster_id": name}
    return Snapshot(header.model_copy(update=update), of.partitions)


def _plan(of: Plan, name: str) -> Plan:
    moves = tuple(m.model_copy(update={"reason": name}) for m in of.moves)
    return of.model_copy(update={"moves": moves, "cluster_id": name})


def _run(of: RunProgress, name: str) -> RunProgress:
    moves = tuple(replace(m, note=name) for m in of.moves)
    return replace(of, moves=moves, reason=name)


def _named(view: LoopView, name: str) -> LoopView:
    """The view with this name in all text of external origin."""
    snapshot = view.snapshot and _snapshot(view.snapshot, name)
    return replace(
        view,
        cluster_name=name,
        bootstrap=name,
        message=name,
        snapshot=snapshot,
        brokers=snapshot.header.brokers if snapshot else view.brokers,
        evaluation=judged(snapshot) if snapshot else None,
        plan=view.plan and _plan(view.plan, name),
        run=view.run and _run(view.run, name),
        log=(
            LogLine(at_ms=AT_MS, level="error", text=name),
            LogLine(at_ms=AT_MS, level="info", text=name),
        ),
    )


def _drawn(on: Stage) -> str:
    """Every line of the screen as sent to the terminal."""
    strips = on.app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)


def _evil_tasks() -> TaskListing:
    """A task and a damaged file whose texts are hostile."""
    task = stopped().entered(TaskPhase.MOVING, AT_MS, f"evil{ALL}")
    damaged = UnreadableTask(name=f"evil{ALL}", reason=f"evil{ALL}")
    listed = ListedTask(task=task.model_copy(update={"by": ALL, "stopped_by": ALL}), worker=ALL)
    return TaskListing(tasks=(listed,), unreadable=(damaged,))


VIEWS = {
    "plan ready": plan_ready(),
    "running": running(),
    "failed": failed(),
    "disconnected": disconnected(),
    "frontier": with_frontier(),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
@pytest.mark.slow
async def test_no_screen_draws_control_sequences(view: LoopView) -> None:
    named = _named(view, f"evil{ALL}")
    seen = ""
    async with stage(named, size=(200, 50)) as on:
        assert on.loop.tasks is not None
        on.loop.tasks.listed = _evil_tasks()
        for mode in MODES:
            on.app.action_show_mode(mode)
            await on.settle()
            for keys in ((), ("enter",), ("escape",), ("A",), ("escape",)):
                await on.press(*keys)
                drawn = _drawn(on)
                assert not unprintable(drawn), mode
                seen += drawn
        on.app.notify(ALL, markup=False)
        on.app.copy_to_clipboard(ALL)
        await on.settle()
        seen += _drawn(on)
        assert not unprintable(seen)
        assert not unprintable(on.app.clipboard)
        picture = on.app.export_screenshot()
        ElementTree.fromstring(picture)  # noqa: S314 - our own, and no XML if it fails
        assert not unprintable(picture)
    assert "evil" in seen
    assert "[bold red]" in seen, "markup is shown as it is"
