"""A loop of `--auto` that continues tasks on brokers, one at a time and before plans of its own."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from control.loop.dependencies import OpenTask, TaskSite
from control.loop.loop import Loop
from control.loop.task_watch import EVERY_S
from control.loop.view import LoopView, Mode
from control.planning.background_call import AtOnce
from control.settings.auto_limits import EAGER
from model.errors import ArchiveUnreachable, ExecutionStopped, GuardrailRefused, PlimsollError
from model.log_events import LogEvent
from tests.support.control.loop_parts import (
    CannedObserver,
    LoopBench,
    RecordingExecutor,
    loop_bench,
    loop_parts,
    loop_settings,
)


@dataclass
class Task:
    """A task whose work is a function."""

    do: Callable[[TaskSite], str] = lambda _site: "task a is done"
    title: str = "task a (remove broker 4)"
    by: str = "ada"

    def work(self, site: TaskSite) -> str:
        return self.do(site)


@dataclass
class Tasks:
    """Tasks that are continued in turn, or errors."""

    found: list[Task | PlimsollError] = field(default_factory=list)
    looks: int = 0

    def next(self, cluster_id: str) -> OpenTask | None:
        assert cluster_id == "cluster-one"
        self.looks += 1
        newest = self.found.pop(0) if self.found else None
        if isinstance(newest, PlimsollError):
            raise newest
        return newest


def bench(folder: Path, tasks: Tasks, **parts: Any) -> LoopBench[RecordingExecutor]:
    return loop_bench(folder, RecordingExecutor(), tasks=tasks, **parts)


def test_a_task_is_continued_before_a_plan_of_the_loop(tmp_path: Path) -> None:
    seen: list[TaskSite] = []

    def do(site: TaskSite) -> str:
        seen.append(site)
        assert found.executor.plans == []
        assert found.loop.moving
        site.say("planned: 3 replicas")
        return "task a is done: broker 4 can be stopped"

    found = bench(tmp_path, Tasks([Task(do)]))
    found.turns(1, 20.0)
    (site,) = seen
    assert site.steering.by == "ada"
    assert site.moves_in_flight == EAGER.moves_in_flight
    assert "task a (remove broker 4): planned: 3 replicas" in found.log
    assert "the work on a task ended: task a is done: broker 4 can be stopped" in found.log
    # Loads from before its end decide nothing; then the loop plans again.
    found.turns(12, 20.0)
    assert len(found.executor.plans) >= 1


def test_an_operator_who_approves_plans_keeps_tasks_too(tmp_path: Path) -> None:
    tasks = Tasks([Task()])
    settings = {"mode": Mode.APPROVE}
    found = loop_bench(tmp_path, RecordingExecutor(), settings=settings, tasks=tasks)
    found.turns(6, 20.0)
    assert tasks.looks == 0


def test_a_person_has_a_task_worked_on(tmp_path: Path) -> None:
    found = loop_bench(tmp_path, RecordingExecutor(), settings={"mode": Mode.APPROVE})
    seen: list[TaskSite] = []

    def do(site: TaskSite) -> str:
        seen.append(site)
        with pytest.raises(GuardrailRefused, match="a run is in progress"):
            found.loop.work_on(Task())
        return "task a is done"

    with pytest.raises(GuardrailRefused, match="no loads have been measured yet"):
        found.loop.work_on(Task(do))
    found.turns(1, 20.0)
    found.loop.work_on(Task(do))
    (site,) = seen
    assert (site.steering.by, site.moves_in_flight) == ("ada", EAGER.moves_in_flight)
    assert found.log.count("is continued") == 1
    assert "the work on a task ended: task a is done" in found.log


def test_lines_of_a_task_have_the_hash_of_its_own_plan(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "plimsoll.control")
    found = loop_bench(tmp_path, RecordingExecutor(), settings={"mode": Mode.APPROVE})
    found.turns(12, 20.0)
    proposed = found.loop.view.plan
    assert proposed is not None

    def do(site: TaskSite) -> str:
        site.say("it has no plan yet")
        site.planned("ab" * 32)
        site.say("planned: 3 replicas")
        return "task a is done"

    caplog.clear()
    found.loop.work_on(Task(do))
    lines = [
        (record.getMessage().removeprefix("task a (remove broker 4)"), vars(record)["plan_hash"])
        for record in caplog.records
        if "plan_hash" in vars(record)
    ]
    mine = "ab" * 6
    assert lines[:6] == [
        (" is continued", None),
        ("running: working on task a (remove broker 4)", None),
        (": it has no plan yet", None),
        (": planned: 3 replicas", mine),
        ("the work on a task ended: task a is done", mine),
        ("settling: the work on a task ended: task a is done", mine),
    ]
    found.loop.note("something else", LogEvent.LOOP_PHASE)
    assert vars(caplog.records[-1])["plan_hash"] != mine


def test_lines_of_a_run_have_the_hash_of_its_own_plan(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "plimsoll.control")
    found = loop_bench(tmp_path, RecordingExecutor(), settings={"mode": Mode.APPROVE})
    found.turns(12, 20.0)
    proposed = found.loop.view.plan
    assert proposed is not None
    ordered = proposed.model_copy(update={"hash": "cd" * 32})
    caplog.clear()
    found.loop.order(ordered, "eve")
    lines = {
        record.getMessage().split(" ")[0]: vars(record)["plan_hash"]
        for record in caplog.records
        if "plan_hash" in vars(record)
    }
    assert {"plan", "running:", "settling:"} <= set(lines)
    assert set(lines.values()) == {"cd" * 6}


def test_no_task_is_worked_on_read_only(tmp_path: Path) -> None:
    settings = loop_settings(tmp_path, mode=Mode.READ_ONLY)
    found = Loop(settings, loop_parts(CannedObserver([]), None))
    with pytest.raises(GuardrailRefused, match="read-only"):
        found.work_on(Task())


def test_a_pause_holds_tasks_back(tmp_path: Path) -> None:
    tasks = Tasks([Task()])
    found = bench(tmp_path, tasks)
    found.loop.pause("paused by eve")
    found.turns(4, 20.0)
    assert "is continued" not in found.log
    tasks.found.append(Task())
    found.loop.unpause()
    found.turns(2, 20.0)
    assert found.log.count("is continued") == 1


def test_the_loop_balances_after_a_task_has_failed(tmp_path: Path) -> None:
    def fail(_site: TaskSite) -> str:
        raise ExecutionStopped("2 replicas are left")

    found = bench(tmp_path, Tasks([Task(fail)]))
    found.turns(10, 20.0)
    assert "the work on a task ended: 2 replicas are left" in found.log
    assert len(found.executor.plans) >= 1


def test_a_bucket_that_is_away_is_named_once_and_the_loop_balances(tmp_path: Path) -> None:
    away = ArchiveUnreachable("the archive is away")
    tasks = Tasks([away, away, away])
    found = bench(tmp_path, tasks)
    found.turns(10, EVERY_S)
    assert tasks.looks > 3
    assert found.log.count("the archive is away") == 1
    assert len(found.executor.plans) >= 1


@pytest.mark.parametrize("stops", [False, True], ids=["loads", "stopped"])
def test_further_plans_of_a_task_wait_for_loads_since_its_run(tmp_path: Path, stops: bool) -> None:
    """In a thread, since the loop observes meanwhile."""
    taken: list[int] = []
    waiting = threading.Event()

    def do(site: TaskSite) -> str:
        waiting.set()
        taken.append(site.observe().header.taken_at_ms)
        return "task a is done"

    def threaded(work: Callable[[], None], name: str) -> Any:
        return threading.Thread(target=work, name=name) if name == "task" else AtOnce(work, name)

    found = bench(tmp_path, Tasks([Task(do)]), background=threaded)
    found.turns(1, 20.0)
    assert waiting.wait(60)
    begun_ms = int(1000 * found.clock.now_s)
    if stops:
        found.loop.steering.stop()
    else:
        while found.loop.moving:
            found.turns(1, 1.0)
    found.loop.close()
    if stops:
        assert taken == []
        return
    # A window of 15 s that began after the call.
    assert taken[0] - begun_ms >= 15_000


def test_the_view_names_the_task(tmp_path: Path) -> None:
    views: list[LoopView] = []
    found = bench(tmp_path, Tasks([Task()]))
    found.loop.subscribe(views.append)
    found.turns(1, 20.0)
    assert any("working on task a (remove broker 4)" in view.message for view in views)
