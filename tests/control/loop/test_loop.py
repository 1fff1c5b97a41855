"""The loop over parts in process: who may approve what, and with which effect."""

import contextlib
import dataclasses
import logging
import math
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from control import compose
from control.loop.decision_file import clock_text, read_decisions
from control.loop.dependencies import LoopWatcher
from control.loop.loop import RELOADED, RETRY_S, Loop
from control.loop.policy import Decision
from control.loop.questions import FOLDER, approve, plan_file
from control.loop.view import LoopView, Mode, Phase, Retry
from control.planning.background_call import AtOnce
from control.planning.planner import Planner
from control.service.service_state import ServiceState
from control.settings.auto_limits import CONSERVATIVE, EAGER, AutoLimits, refusals, spent_of
from control.settings.auto_policy import AutoPolicy
from control.settings.schedule_table import MaintenanceWindow, ScheduleTable
from control.settings.settings import Settings
from control.settings.solve_table import SolveTable
from control.settings.trigger_table import Response, TriggerTable
from executor.journal.run_history import RunUsage
from executor.journal.run_journal import RunJournal
from executor.timing import Timing
from model.errors import (
    ClusterUnreachable,
    GuardrailRefused,
    PlanOutdated,
    PlimsollError,
    RightsMissing,
)
from model.exchange.offline_snapshot import ClusterFiles, read_cluster
from model.goals.effort import Effort
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId, TopicName
from model.plan.plan import Plan
from model.plan.signatures import RequiredSignature, sign, signature_file
from model.run import JournalEvent, MoveProgress, RunProgress, RunReport, RunState
from model.snapshot.consumer_lag import ConsumerLag
from model.snapshot.replication import Replication
from model.snapshot.snapshot import (
    BrokerState,
    PartitionRow,
    RecentMove,
    Snapshot,
    StorageKind,
    partitions_from_rows,
)
from model.snapshot.steadiness import Steadiness
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.solve import solve
from tests.support.control.loop_parts import (
    EASY,
    MB,
    ORDERS,
    START_MS,
    WORK,
    CannedObserver,
    RecordingExecutor,
    cluster,
    constrained,
    loop_parts,
    loop_settings,
    one_of_twelve_dead,
    with_header,
    with_state,
)
from tests.support.model import clusters
from tests.support.model.signing_keys import key_pair
from tests.support.paths import CASES
from tests.support.tui.terminals import LONG_S


def replicated(loads: list[tuple[float, float]]) -> Snapshot:
    """Two brokers with a replica of each partition, all led by the first."""
    state = clusters.snapshot(clusters.brokers(2), [(1, 2)] * len(loads), loads)
    return with_header(state, cluster_id="cluster-one", taken_at_ms=START_MS)


UNEVEN = cluster([2] * 8, [MB] * 8)
LEVEL = cluster([1, 2, 3], [MB] * 3)
BY_DEFAULT = TriggerTable()
ALWAYS = ScheduleTable()
ACT_ON_RULES = TriggerTable(rule_violated=Response.ACT)


class Clock:
    """A clock set by tests."""

    def __init__(self) -> None:
        self.now_s = START_MS / 1000
        self.set_by_s = 0.0
        """Seconds by which the clock was adjusted."""

    def __call__(self) -> float:
        return self.now_s + self.set_by_s

    def steady(self) -> float:
        """The monotonic clock, which cannot be set."""
        return self.now_s


@dataclasses.dataclass
class Bench:
    """A loop with its parts at hand."""

    observer: CannedObserver
    executor: RecordingExecutor
    clock: Clock
    loop: Loop


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "plimsoll")


Build = Callable[..., Bench]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Makes a loop over canned snapshots."""

    def make(
        *snapshots: Snapshot | PlimsollError,
        mode: Mode = Mode.APPROVE,
        on_execute: Callable[[Plan], None] = lambda _plan: None,
        patient: bool = False,
        confirm_s: float = 0.0,
        limits: AutoLimits = EAGER,
        planner: Planner = solve,
        dead_broker_after_s: float = 3600.0,
        triggers: TriggerTable = BY_DEFAULT,
        schedule: ScheduleTable = ALWAYS,
        effort: Effort = Effort.GOOD,
        signed: Callable[[str], object] | None = None,
    ) -> Bench:
        observer = CannedObserver(list(snapshots))
        executor = RecordingExecutor(on_execute)
        clock = Clock()
        settings = loop_settings(
            tmp_path,
            mode=mode,
            limits=limits.model_copy(update={"confirm": confirm_s, "pause": 0.0}),
            patient=patient,
            dead_broker_after_s=dead_broker_after_s,
            triggers=triggers,
            schedule=schedule,
            effort=effort,
            decisions_dir=tmp_path,
        )
        parts = loop_parts(
            observer,
            None if mode is Mode.READ_ONLY else executor,
            planner=planner,
            clock=clock,
            steady=clock.steady,
            signed=signed,
        )
        return Bench(observer, executor, clock, Loop(settings, parts))

    return make


def in_phase(phase: Phase) -> Callable[[LoopView], bool]:
    return lambda view: view.phase is phase


def offered(loop: Loop) -> Plan:
    """The plan, once it is ready."""
    assert loop.wait(in_phase(Phase.PLAN_READY), LONG_S)
    plan = loop.view.plan
    assert plan is not None
    return plan


def test_a_balanced_cluster_is_left_alone(build: Build) -> None:
    bench = build(LEVEL, mode=Mode.AUTO)
    with bench.loop as loop:
        assert loop.wait(in_phase(Phase.BALANCED), LONG_S)
    assert bench.executor.plans == []
    assert bench.observer.closed


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.APPROVE])
def test_a_balanced_cluster_with_unknown_loads_is_not_simply_called_balanced(
    build: Build, mode: Mode
) -> None:
    unknown = cluster([1, 2, 1], [MB, MB, math.nan])
    with build(unknown, mode=mode).loop as loop:
        assert loop.wait(in_phase(Phase.BALANCED), LONG_S)
        message = "the load of 1 partition is unknown and counts as 0"
        assert message in loop.view.message


def test_auto_records_its_decisions_and_others_do_not(build: Build, tmp_path: Path) -> None:
    nine = cluster([2] * 9, [MB] * 9)
    with build(nine).loop as loop:
        offered(loop)
    assert read_decisions(tmp_path, 9) == []
    with build(nine, mode=Mode.AUTO).loop as loop:
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
    plan, approval, *_ = read_decisions(tmp_path, 9)
    assert (plan.decision, approval.decision) == (Decision.PLAN, Decision.APPROVE)
    assert (plan.trigger_name, plan.trigger) == ("empty_broker", "brokers 1, 3 hold almost nothing")
    assert (plan.cluster_id, approval.plan_hash) == ("cluster-one", loop.reports[0].plan_hash[:12])


def test_header_and_log_say_when_a_decision_is_reconsidered(build: Build, tmp_path: Path) -> None:
    """Also where another rule decides within a phase."""
    nine, now_s = cluster([2] * 9, [MB] * 9), START_MS / 1000
    opens = datetime.fromtimestamp(now_s + 100, UTC)
    window = MaintenanceWindow(start=f"{opens:%M %H} * * *", duration=3600)
    bench = build(
        nine, mode=Mode.AUTO, confirm_s=200.0, schedule=ScheduleTable(windows=(window,), exempt=())
    )
    loop, shown = bench.loop, []
    for at_s in (0, 0, 101, 101):
        bench.clock.now_s = now_s + at_s
        loop.turn(bench.observer)
        shown.append(loop.view)
    closed, *_, confirming = shown
    (record,) = read_decisions(tmp_path, 1)
    opens_ms = int(1000 * opens.replace(second=0).timestamp())
    confirmed_ms = START_MS + 200_000
    assert closed.reconsidered == f"not before {clock_text(max(opens_ms, confirmed_ms), START_MS)}"
    assert confirming.reconsidered == f"not before {clock_text(confirmed_ms, START_MS)}"
    assert record.until_ms == confirmed_ms
    assert [line.text for line in confirming.log] == [
        f"{view.phase}: {view.message}; reconsidered {view.reconsidered}"
        for view in (closed, confirming)
    ]


def test_auto_plans_by_no_loads_measured_while_others_move_partitions(build: Build) -> None:
    bench, phases = build(mode=Mode.AUTO), []
    for at_s, moving in ((0, 2), (5, 2), (6, 0), (60, 0)):
        bench.clock.now_s = START_MS / 1000 + at_s
        newest = cluster([2] * 9, [MB] * 9, taken_at_ms=START_MS + 1000 * at_s)
        bench.observer.snapshots[:] = [newest]
        bench.observer.lacking = Replication(under_replicated=0, offline=0, moving=moving)
        bench.loop.turn(bench.observer)
        phases.append(bench.loop.view.phase)
    assert phases == [Phase.SETTLING, Phase.SETTLING, Phase.SETTLING, Phase.SOLVING]
    bench.loop.close()


def test_auto_executes_one_plan_and_then_pauses(build: Build) -> None:
    """The run balances the cluster; later loads are judged, not the earlier ones."""
    nine = cluster([2] * 9, [MB] * 9)
    bench = build(nine, mode=Mode.AUTO)

    with bench.loop as loop:
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
        (plan,) = bench.executor.plans
        homes = [m.replicas_after[0] for m in plan.moves] + [2] * 3
        bench.clock.now_s += 60
        taken = int(1000 * bench.clock.now_s)
        bench.observer.snapshots[:] = [cluster(homes, [MB] * 9, taken_at_ms=taken)]
        assert loop.wait(in_phase(Phase.BALANCED), LONG_S)
        assert len(loop.reports) == 1
    assert len(bench.executor.plans) == 1


@pytest.mark.parametrize("set_by_s", [3600.0, -3600.0])
def test_auto_acts_on_elapsed_time_however_the_clock_is_set(build: Build, set_by_s: float) -> None:
    bench = build(UNEVEN, mode=Mode.AUTO, confirm_s=60.0)
    with bench.loop as loop:
        assert loop.wait(lambda view: "out of tolerance for 0 s" in view.message, LONG_S)
        bench.clock.set_by_s = set_by_s
        bench.clock.now_s += 30
        assert loop.wait(lambda view: "out of tolerance for 30 s" in view.message, LONG_S)
        bench.clock.now_s += 31
        assert loop.wait(lambda _: bool(bench.executor.plans), LONG_S)


@pytest.mark.parametrize("set_by_s", [3600.0, -3600.0])
def test_loads_from_before_a_run_confirm_nothing_however_the_clock_is_set(
    build: Build, set_by_s: float
) -> None:
    bench = build(UNEVEN)
    with bench.loop as loop:
        loop.approve(offered(loop).hash, by="an operator")
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
        bench.clock.set_by_s = set_by_s
        bench.clock.now_s += 1
        assert loop.wait(in_phase(Phase.SETTLING), LONG_S)
        taken = int(1000 * bench.clock())
        bench.observer.snapshots[:] = [cluster([2] * 8, [MB] * 8, taken_at_ms=taken)]
        assert loop.wait(lambda view: "waiting 14 s for loads" in view.message, LONG_S)


def paced(folder: Path, observer: CannedObserver, clock: Clock) -> tuple[Loop, RecordingExecutor]:
    """A loop under `--auto` without a thread, whose turns a test takes."""
    executor = RecordingExecutor()
    limits = EAGER.model_copy(update={"confirm": 0.0, "pause": 0.0})
    parts = loop_parts(observer, executor, clock=clock, steady=clock.steady, background=AtOnce)
    return Loop(loop_settings(folder, mode=Mode.AUTO, limits=limits), parts), executor


def turns(loop: Loop, observer: CannedObserver, clock: Clock, count: int = 6) -> None:
    for _ in range(count):
        clock.now_s += 1
        loop.turn(observer)


def test_auto_does_not_act_on_loads_from_the_future(tmp_path: Path) -> None:
    """It waits while the newest loads are ahead of the clock, and acts on those that are not."""
    clock, observer = Clock(), CannedObserver([UNEVEN])
    loop, executor = paced(tmp_path, observer, clock)
    for _ in range(20):
        taken = int(1000 * clock.now_s) + 21_000
        observer.snapshots[:] = [cluster([2] * 8, [MB] * 8, taken_at_ms=taken)]
        turns(loop, observer, clock, 1)
    assert executor.plans == []
    assert loop.view.phase is Phase.SETTLING
    assert "the newest samples are 20.0 s ahead of this machine's clock" in loop.view.message
    taken = int(1000 * clock.now_s)
    observer.snapshots[:] = [cluster([2] * 8, [MB] * 8, taken_at_ms=taken)]
    turns(loop, observer, clock)
    assert len(executor.plans) == 1


def test_a_clock_set_back_holds_auto_only_until_it_has_caught_up(tmp_path: Path) -> None:
    """No newer loads come meanwhile; those at hand grow older all the same."""
    clock, observer = Clock(), CannedObserver([UNEVEN])
    loop, executor = paced(tmp_path, observer, clock)
    clock.set_by_s = -20.0
    turns(loop, observer, clock, 14)
    assert executor.plans == []
    turns(loop, observer, clock)
    assert len(executor.plans) == 1


def test_samples_that_are_all_left_out_are_the_reason_for_missing_loads(tmp_path: Path) -> None:
    clock, observer = Clock(), CannedObserver([UNEVEN], measured=False, ahead=75.0)
    loop, executor = paced(tmp_path, observer, clock)
    turns(loop, observer, clock)
    assert loop.view.phase is Phase.MEASURING
    assert "75.0 s ahead of this machine's clock" in loop.view.message
    observer.measured, observer.ahead = True, 0.0
    turns(loop, observer, clock)
    assert len(executor.plans) == 1
    observer.snapshots[:], observer.ahead = [cluster([1, 2, 3], [MB] * 3)], 80.0
    turns(loop, observer, clock, 9)
    assert "ahead" not in loop.view.message, "batches of another host alone do not count"
    turns(loop, observer, clock)
    assert "80.0 s ahead of this machine's clock" in loop.view.message
    turns(loop, observer, clock, 600)
    assert "80.0 s ahead of this machine's clock" in loop.view.message
    assert len(executor.plans) == 1


def test_auto_moves_the_replicas_of_a_dead_broker_only_after_the_threshold(build: Build) -> None:
    """Losing it leaves the others within tolerance, so loads alone need no plan."""
    bench = build(one_of_twelve_dead(), mode=Mode.AUTO, dead_broker_after_s=3600.0)
    with bench.loop as loop:
        assert loop.wait(lambda view: "replicas are moved in 1 h" in view.message, LONG_S)
        for passed_s in (1800, 1790):
            bench.clock.now_s += passed_s
            taken = int(1000 * bench.clock.now_s)
            bench.observer.snapshots[:] = [one_of_twelve_dead(taken_at_ms=taken)]
            assert loop.wait(lambda view: view.snapshot is bench.observer.snapshots[0], 9)
        assert bench.executor.plans == []
        bench.clock.now_s += 11
        taken = int(1000 * bench.clock.now_s)
        bench.observer.snapshots[:] = [one_of_twelve_dead(taken_at_ms=taken)]
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
    (plan,) = bench.executor.plans
    assert sum(11 in move.replicas_before for move in plan.moves) == 22
    assert not any(11 in move.replicas_after for move in plan.moves)


def test_a_broker_that_returns_in_time_keeps_its_replicas(build: Build) -> None:
    bench = build(one_of_twelve_dead(), mode=Mode.AUTO, dead_broker_after_s=60.0)
    with bench.loop as loop:
        assert loop.wait(lambda view: "unless it returns" in view.message, LONG_S)
        bench.clock.now_s += 59
        bench.observer.snapshots[:] = [one_of_twelve_dead(BrokerState.ALIVE)]
        assert loop.wait(in_phase(Phase.BALANCED), LONG_S)
        bench.clock.now_s += 3600
        bench.observer.snapshots[:] = [one_of_twelve_dead()]
        assert loop.wait(lambda view: "unless it returns" in view.message, LONG_S)
    assert bench.executor.plans == []


def test_new_placement_constraints_make_auto_move_replicas_they_forbid(build: Build) -> None:
    """The cluster is balanced, so its loads alone need no plan."""
    bench = build(LEVEL, mode=Mode.AUTO, confirm_s=3600.0, triggers=ACT_ON_RULES)
    with bench.loop as loop:
        assert loop.wait(in_phase(Phase.BALANCED), LONG_S)
        bench.observer.snapshots[:] = [constrained(LEVEL, a=1)]
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
        reason = "pins or placement constraints are violated by 2 partitions"
        assert any(reason in line.text for line in loop.view.log)
    (plan,) = bench.executor.plans
    assert {m.partition: m.replicas_after for m in plan.moves} == {1: (1,), 2: (1,)}


def waiting(loop: Loop) -> Plan:
    """The plan, once it waits for a person."""
    assert loop.wait(lambda _: loop.question is not None, LONG_S)
    plan = loop.view.plan
    assert plan is not None
    return plan


def test_a_plan_that_asks_is_executed_once_approved_from_another_shell(
    build: Build, tmp_path: Path
) -> None:
    bench = build(constrained(LEVEL, a=1), mode=Mode.AUTO)
    with bench.loop as loop:
        plan = waiting(loop)
        assert loop.wait(lambda view: "rule_violated is set to ask" in view.message, LONG_S)
        assert bench.executor.plans == []
        approve(tmp_path, plan.hash[:12], "eve", START_MS)
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
        assert any(f"plan {plan.hash[:12]} approved by eve" in x.text for x in loop.view.log)
    assert bench.executor.plans == [plan]


def test_where_signatures_are_required_auto_asks_for_what_it_would_have_done(
    build: Build, tmp_path: Path
) -> None:
    key, keys = key_pair(tmp_path, "eve")
    required = RequiredSignature(keys, tmp_path / FOLDER)
    bench = build(UNEVEN, mode=Mode.AUTO, signed=required.of)
    with bench.loop as loop:
        plan = waiting(loop)
        assert loop.wait(lambda view: "it needs a signature" in view.message, LONG_S)
        with pytest.raises(GuardrailRefused, match="is not signed"):
            approve(tmp_path, plan.hash, "eve", START_MS, loop.signed)
        with pytest.raises(GuardrailRefused, match="is not signed"):
            loop.approve(plan.hash, "eve")
        assert bench.executor.plans == []
        path = signature_file(plan_file(tmp_path / FOLDER, plan.hash))
        path.write_text(sign(plan.hash, key).text)
        approve(tmp_path, plan.hash, "eve", START_MS, loop.signed)
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
    assert bench.executor.plans == [plan]


def test_a_question_is_withdrawn_once_nothing_needs_its_plan(build: Build, tmp_path: Path) -> None:
    bench = build(constrained(LEVEL, a=1), mode=Mode.AUTO)
    with bench.loop as loop:
        plan = waiting(loop)
        bench.observer.snapshots[:] = [LEVEL]
        assert loop.wait(in_phase(Phase.BALANCED), LONG_S)
        with pytest.raises(PlanOutdated, match="no plan is needed any more"):
            approve(tmp_path, plan.hash, "eve", START_MS)
    assert bench.executor.plans == []


def test_the_end_of_the_loop_withdraws_its_question(build: Build, tmp_path: Path) -> None:
    with build(constrained(LEVEL, a=1), mode=Mode.AUTO).loop as loop:
        plan = waiting(loop)
    with pytest.raises(PlanOutdated, match="run --auto has ended"):
        approve(tmp_path, plan.hash, "eve", START_MS)


def test_a_plan_approved_after_the_end_is_executed_by_the_next_loop(
    build: Build, tmp_path: Path
) -> None:
    with build(constrained(LEVEL, a=1), mode=Mode.AUTO).loop as loop:
        plan = waiting(loop)
        loop.leave_question = True
    approve(tmp_path, plan.hash, "eve", START_MS)
    bench = build(constrained(LEVEL, a=1), mode=Mode.AUTO)
    with bench.loop as loop:
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
    assert bench.executor.plans == [plan]


def _reloaded(build: Build, first: dict[str, Any], second: dict[str, Any]) -> tuple[Plan, Bench]:
    """A loop that has a plan waiting, as it has ended, and the loop that follows it."""
    bench = build(*first.pop("snapshots"), mode=Mode.AUTO, **first)
    with bench.loop as loop:
        plan = waiting(loop)
        loop.leave_question = True
    after = build(*second.pop("snapshots"), mode=Mode.AUTO, **second)
    after.clock.now_s += 5.0
    after.loop.continue_from(loop)
    return plan, after


DECIDED = (Phase.PLAN_READY, Phase.NO_PLAN, Phase.SOLVING, Phase.BALANCED)
MUCH = EAGER.model_copy(update={"min_gain": 1.0})


@pytest.mark.parametrize(
    ("snapshot", "options"),
    [
        pytest.param(constrained(LEVEL, a=1), {}, id="asked for"),
        pytest.param(UNEVEN, {"limits": MUCH}, id="refused"),
    ],
)
def test_a_waiting_plan_outlasts_a_loop_with_the_same_settings(
    build: Build, tmp_path: Path, snapshot: Snapshot, options: dict[str, Any]
) -> None:
    first, second = ({"snapshots": [snapshot], **options} for _ in range(2))
    plan, bench = _reloaded(build, first, second)
    with bench.loop as loop:
        assert loop.question is not None
        # Its first decision, by the first snapshot.
        assert loop.wait(lambda view: view.phase in DECIDED, LONG_S)
        question = loop.question
        assert question is not None
        assert question.plan_hash == plan.hash
        approve(tmp_path, plan.hash, "eve", START_MS)
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
    assert bench.executor.plans == [plan]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"effort": Effort.QUICK}, RELOADED),
        ({"limits": EAGER.model_copy(update={"replica_moves": 1})}, RELOADED),
        ({"triggers": TriggerTable(rule_violated=Response.OFF)}, "its trigger no longer fires"),
    ],
)
def test_a_reload_withdraws_the_plan_of_other_settings(
    build: Build, tmp_path: Path, options: dict[str, Any], why: str
) -> None:
    snapshots = [constrained(LEVEL, a=1)]
    plan, bench = _reloaded(build, {"snapshots": snapshots}, {"snapshots": snapshots, **options})
    words = f"the waiting plan is withdrawn: {why}"
    with bench.loop as loop:
        assert loop.wait(lambda view: any(x.text == words for x in view.log), LONG_S)
        with pytest.raises(PlanOutdated, match=why):
            approve(tmp_path, plan.hash, "eve", START_MS)


def test_a_plan_that_waits_is_withdrawn_where_the_cluster_changed_during_a_reload(
    build: Build, tmp_path: Path
) -> None:
    plan, bench = _reloaded(build, {"snapshots": [constrained(LEVEL, a=1)]}, {"snapshots": [LEVEL]})
    with bench.loop as loop:
        assert loop.wait(in_phase(Phase.BALANCED), LONG_S)
        with pytest.raises(PlanOutdated, match="no plan is needed any more"):
            approve(tmp_path, plan.hash, "eve", START_MS)


def test_a_plan_that_gains_too_little_waits_for_a_person(build: Build, tmp_path: Path) -> None:
    much = EAGER.model_copy(update={"min_gain": 1.0})
    bench = build(UNEVEN, mode=Mode.AUTO, limits=much)
    with bench.loop as loop:
        plan = waiting(loop)
        assert bench.executor.plans == []
        approve(tmp_path, plan.hash, "eve", START_MS)
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
    assert bench.executor.plans == [plan]


def test_runs_of_the_day_are_counted_in_the_journals(build: Build, tmp_path: Path) -> None:
    plan = solve(UNEVEN, EASY, WORK).best
    assert plan is not None
    an_hour_ago = Timing(now_s=lambda: START_MS / 1000 - 3600)
    with contextlib.closing(RunJournal(tmp_path, plan, "run-1", an_hour_ago)) as journal:
        journal.write(JournalEvent.STARTED, planned=len(plan.moves))
    bench = build(UNEVEN, mode=Mode.AUTO, limits=EAGER.model_copy(update={"runs_per_day": 1}))
    with bench.loop as loop:
        assert loop.wait(lambda view: "the next run may start in 23 h" in view.message, LONG_S)
        later(bench, 23 * 3600 + 1, partial(cluster, [2] * 8, [MB] * 8))
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)


def test_runs_of_other_machines_count_once_their_journals_are_here(
    build: Build, tmp_path: Path
) -> None:
    """They are fetched from the archive when a run is about to begin."""
    bench = build(UNEVEN, mode=Mode.AUTO, limits=EAGER.model_copy(update={"runs_per_day": 1}))

    def fetch(plan: Plan) -> None:
        an_hour_ago = Timing(now_s=lambda: START_MS / 1000 - 3600)
        with contextlib.closing(RunJournal(tmp_path, plan, "run-1", an_hour_ago)) as journal:
            journal.write(JournalEvent.STARTED, planned=len(plan.moves))

    bench.executor.on_execute = fetch
    with bench.loop as loop:
        words = "runs of other machines have reached a limit per day; the next run may start in 23"
        assert loop.wait(lambda view: words in view.message, LONG_S)
    assert loop.reports == ()


def test_a_partition_that_another_machine_has_moved_is_not_moved_by_an_older_plan(
    build: Build, tmp_path: Path
) -> None:
    bench = build(UNEVEN, mode=Mode.AUTO)

    def fetch(plan: Plan) -> None:
        just_now = Timing(now_s=lambda: START_MS / 1000)
        with contextlib.closing(RunJournal(tmp_path, plan, "run-1", just_now)) as journal:
            journal.write(JournalEvent.ISSUING, plan.moves[:1])

    bench.executor.on_execute = fetch
    with bench.loop as loop:
        words = "another machine has moved"
        assert loop.wait(lambda view: words in view.message, LONG_S)
    assert loop.reports == ()


def test_auto_waits_until_a_maintenance_window_opens(build: Build) -> None:
    start = datetime.fromtimestamp(Clock().now_s + 7200.0, UTC)
    window = MaintenanceWindow(start=f"{start:%M %H} * * *", duration=3600.0)
    bench = build(UNEVEN, mode=Mode.AUTO, schedule=ScheduleTable(windows=(window,)))
    with bench.loop as loop:
        words = f"outside the maintenance windows; the next run may start {start:%a %Y-%m-%d %H:%M}"
        assert loop.wait(lambda view: words in view.message, LONG_S)
        assert bench.executor.plans == []
        later(bench, 7260.0, partial(cluster, [2] * 8, [MB] * 8))
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)


def test_triggers_that_are_off_leave_the_cluster_alone(build: Build) -> None:
    off = TriggerTable(mode="empty-broker", empty_broker=Response.OFF)
    bench = build(UNEVEN, mode=Mode.AUTO, triggers=off)
    with bench.loop as loop:
        assert loop.wait(lambda view: "but uneven_load is off" in view.message, LONG_S)
        assert loop.view.phase is Phase.NO_PLAN
        assert "brokers 1, 3 hold almost nothing, but empty_broker is off" in loop.view.message
    assert bench.executor.plans == []


def test_a_dead_broker_that_is_asked_about_is_not_emptied_by_other_plans(build: Build) -> None:
    asks = TriggerTable(dead_broker=Response.ASK)
    bench = build(one_of_twelve_dead(), mode=Mode.AUTO, triggers=asks, dead_broker_after_s=0.0)
    with bench.loop as loop:
        assert loop.wait(lambda view: "dead_broker is set to ask" in view.message, LONG_S)
        plan = loop.view.plan
        assert plan is not None
        assert sum(11 in move.replicas_before for move in plan.moves) == 22
    assert bench.executor.plans == []


def test_auto_with_quick_effort_changes_leaders_only(build: Build) -> None:
    led_by_one = replicated([(MB, 9 * MB)] * 6)
    bench = build(led_by_one, mode=Mode.AUTO, effort=Effort.QUICK)
    with bench.loop as loop:
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
    (plan,) = bench.executor.plans
    assert plan.leader_changes == 3
    assert not any(move.added for move in plan.moves)


def test_auto_with_quick_effort_says_what_it_does_not_repair(build: Build) -> None:
    bench = build(
        one_of_twelve_dead(), mode=Mode.AUTO, effort=Effort.QUICK, dead_broker_after_s=0.0
    )
    with bench.loop as loop:
        assert loop.wait(in_phase(Phase.NO_PLAN), LONG_S)
        words = "22 partitions that would have to leave broker 11 (dead) stay"
        assert any(words in line.text for line in loop.view.log)
    assert bench.executor.plans == []


@pytest.mark.parametrize(
    ("mode", "limits", "expected"),
    [
        (Mode.AUTO, EAGER, Effort.BEST),
        (Mode.AUTO, EAGER.model_copy(update={"effort": Effort.QUICK}), Effort.QUICK),
        (Mode.APPROVE, EAGER.model_copy(update={"effort": Effort.QUICK}), Effort.BEST),
    ],
)
def test_the_effort_of_a_policy_takes_precedence_in_auto(
    tmp_path: Path, mode: Mode, limits: AutoLimits, expected: Effort
) -> None:
    settings = Settings(
        bootstrap_server="127.0.0.1:1", state_dir=tmp_path, solve=SolveTable(effort=Effort.BEST)
    )
    loop = compose.loop(settings, mode=mode, limits=limits)
    assert loop.settings.effort is expected


@pytest.mark.parametrize(("mode", "window_s"), [(Mode.AUTO, 86_400), (Mode.APPROVE, 3600)])
def test_only_auto_lets_nothing_return_within_a_day_on_any_storage(
    tmp_path: Path, mode: Mode, window_s: float
) -> None:
    loop = compose.loop(Settings(bootstrap_server="127.0.0.1:1", state_dir=tmp_path), mode=mode)
    assert loop.settings.goals.cooldown[StorageKind.SHARED].return_window_s == window_s


def test_plans_for_tasks_on_brokers_are_counted(tmp_path: Path) -> None:
    settings, state = Settings(bootstrap_server="127.0.0.1:1", state_dir=tmp_path), ServiceState()
    loop = compose.loop(settings, mode=Mode.AUTO, watcher=LoopWatcher(solved=state.solved))
    assert loop.tasks is not None
    result = loop.tasks.continued.solve(UNEVEN, Goals())
    assert state.tallies.solves == {result.status.value: 1}
    assert [*state.tallies.solve_times] == [result.seconds]


def test_a_plan_for_a_dead_broker_is_offered_to_a_person_at_once(build: Build) -> None:
    bench = build(one_of_twelve_dead())
    with bench.loop as loop:
        assert loop.wait(in_phase(Phase.PLAN_READY), LONG_S)
        reason = "broker 11 is dead and holds 22 replicas"
        assert any(reason in line.text for line in loop.view.log)


def test_a_person_must_approve(build: Build) -> None:
    bench = build(UNEVEN)
    with bench.loop as loop:
        assert loop.wait(in_phase(Phase.PLAN_READY), LONG_S)
        assert bench.executor.plans == []
        plan = loop.view.plan
        assert plan is not None
        loop.approve(plan.hash, by="an operator")
        assert loop.wait(lambda _view: bool(loop.reports), LONG_S)
    assert [p.hash for p in bench.executor.plans] == [plan.hash]


def test_a_plan_other_than_the_newest_is_refused(build: Build) -> None:
    bench = build(UNEVEN)
    with bench.loop as loop:
        assert loop.wait(in_phase(Phase.PLAN_READY), LONG_S)
        with pytest.raises(GuardrailRefused, match="a newer plan has replaced this one"):
            loop.approve("0" * 64, by="an operator")
    assert bench.executor.plans == []


def test_read_only_has_no_executor_to_approve_for(build: Build) -> None:
    bench = build(UNEVEN, mode=Mode.READ_ONLY)
    with bench.loop as loop:
        plan = offered(loop)
        with pytest.raises(GuardrailRefused, match="--allow-changes"):
            loop.approve(plan.hash, by="an operator")


def test_a_run_refused_by_the_executor_is_reported_and_replanned(build: Build) -> None:
    def drifted(_plan: Plan) -> None:
        raise PlanOutdated("orders-7 is on [3], the plan expects [2]")

    bench = build(UNEVEN, on_execute=drifted)
    with bench.loop as loop:
        plan = offered(loop)
        loop.approve(plan.hash, by="an operator")
        message = "orders-7 is on [3]"
        assert loop.wait(lambda view: any(message in line.text for line in view.log), LONG_S)
        assert loop.reports == ()


def run_of(plan: Plan, state: RunState) -> RunProgress:
    return RunProgress(
        run_id="run-1",
        plan_hash=plan.hash,
        state=state,
        moves=tuple(MoveProgress(move=m) for m in plan.moves),
        started_at_ms=START_MS,
    )


def test_a_run_that_did_not_start_keeps_its_reason(build: Build) -> None:
    """The phase shows it for a moment only, and does not show it while balanced."""
    bench = build(UNEVEN)

    def refuse(plan: Plan) -> None:
        bench.loop._run_progressed(run_of(plan, RunState.CHECKING))
        raise GuardrailRefused("Confluent's Self-Balancing is on")

    bench.executor.on_execute = refuse
    with bench.loop as loop:
        plan = offered(loop)
        loop.approve(plan.hash, by="an operator")
        assert loop.wait(in_phase(Phase.SETTLING), LONG_S)
        run = loop.view.run
        assert run is not None
        assert run.state is RunState.REFUSED
        assert run.reason == "Confluent's Self-Balancing is on"


def test_the_lag_of_the_moved_topics_is_followed_during_a_run(build: Build) -> None:
    bench = build(UNEVEN)
    bench.observer.lag = ConsumerLag(records=70, seconds=0.5, topic=TopicName("t"))
    seen = threading.Event()

    def wait_for_lag(plan: Plan) -> None:
        bench.loop._run_progressed(run_of(plan, RunState.RUNNING))
        assert seen.wait(LONG_S)

    bench.executor.on_execute = wait_for_lag
    with bench.loop as loop:
        plan = offered(loop)
        loop.approve(plan.hash, by="an operator")
        assert loop.wait(lambda view: view.lag is not None, LONG_S)
        seen.set()
        lag = loop.view.lag
        assert lag is not None
        assert (lag.run_id, lag.first_records, lag.now.records) == ("run-1", 70, 70)
        assert bench.observer.asked_lag == {move.topic for move in plan.moves}


def test_an_unreachable_cluster_ends_an_impatient_loop(build: Build) -> None:
    bench = build(ClusterUnreachable("127.0.0.1:1 does not answer"))
    with bench.loop as loop:
        assert not loop.wait(in_phase(Phase.BALANCED), LONG_S)
        assert isinstance(loop.error, ClusterUnreachable)
        assert loop.view.phase is Phase.FAILED


def test_a_screen_keeps_trying(build: Build) -> None:
    bench = build(ClusterUnreachable("127.0.0.1:1 does not answer"), patient=True)
    with bench.loop as loop:
        assert loop.wait(in_phase(Phase.UNREACHABLE), LONG_S)
        assert loop.view.retry == Retry(attempt=2, since_ms=START_MS, wait_s=RETRY_S)
        assert loop.error is None


def test_attempts_to_reach_a_cluster_are_counted(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control.loop.loop.RETRY_S", 0.01)
    bench = build(ClusterUnreachable("127.0.0.1:1 does not answer"), patient=True)
    with bench.loop as loop:
        assert loop.wait(lambda view: "attempt 4 " in view.sentence(START_MS), LONG_S)
        bench.observer.snapshots[:] = [LEVEL]
        assert loop.wait(lambda view: view.retry is None, LONG_S)


def interrupted(bench: Bench) -> None:
    """The cluster does not answer for a while; then loads must be measured again."""
    bench.observer.measured = False
    bench.observer.snapshots[:] = [ClusterUnreachable("no answer")]
    assert bench.loop.wait(in_phase(Phase.UNREACHABLE), LONG_S)
    bench.observer.snapshots[:] = [UNEVEN]


@pytest.mark.parametrize("mode", [Mode.APPROVE, Mode.AUTO])
def test_after_an_interruption_earlier_loads_decide_nothing(
    build: Build, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    monkeypatch.setattr("control.loop.loop.RETRY_S", 0.01)
    planner = CountingPlanner()
    bench = build(LEVEL, mode=mode, planner=planner)
    ticks = 0

    def count(_view: LoopView) -> None:
        nonlocal ticks
        ticks += 1

    with bench.loop as loop:
        assert loop.wait(in_phase(Phase.BALANCED), LONG_S)
        interrupted(bench)
        assert loop.wait(in_phase(Phase.MEASURING), LONG_S)
        logged = len(loop.view.log)
        loop.subscribe(count)
        assert loop.wait(lambda view: ticks > 20, LONG_S)
        assert len(loop.view.log) == logged
        assert loop.view.phase is Phase.MEASURING
        assert not planner.solves
        bench.observer.measured = True
        for _ in range(2):
            later(bench, 600, partial(cluster, [2] * 8, [MB] * 8))
        assert loop.wait(lambda _: planner.solves == 1, LONG_S)


def test_a_run_is_reported_as_continuing_after_an_interruption(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control.loop.loop.RETRY_S", 0.01)
    finish = threading.Event()
    bench = build(UNEVEN, mode=Mode.AUTO, on_execute=lambda _plan: assert_in_time(finish))
    with bench.loop as loop:
        assert loop.wait(in_phase(Phase.RUNNING), LONG_S)
        interrupted(bench)
        assert loop.wait(in_phase(Phase.RUNNING), LONG_S)
        bench.observer.measured = True
        finish.set()
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
        later(bench, 600, partial(cluster, [1, 2, 3], [MB] * 3))
        assert loop.wait(in_phase(Phase.BALANCED), LONG_S)


def assert_in_time(event: threading.Event) -> None:
    assert event.wait(LONG_S)


def test_a_view_counts_degraded_partitions(build: Build) -> None:
    bench = build(LEVEL)
    bench.observer.lacking = Replication(under_replicated=3, offline=1)
    with bench.loop as loop:
        assert loop.wait(lambda view: view.replication == bench.observer.lacking, LONG_S)


def test_a_plan_that_breaks_a_rule_is_not_published(build: Build) -> None:
    """The independent evaluator stands between the solver and its users."""
    bench = build(UNEVEN)

    def broken(
        snapshot: Snapshot,
        goals: Goals,
        limits: SolveLimits,
        observer: SolveObserver,
        earlier: Plan | None,
    ) -> Result:
        result = solve(snapshot, goals, limits, observer, earlier)
        assert result.best is not None
        better = result.best.model_copy(update={"objective": 0.0})
        return dataclasses.replace(result, best=better)

    parts = dataclasses.replace(bench.loop._parts, planner=broken)
    loop = Loop(bench.loop.settings, parts)
    with loop:
        assert not loop.wait(in_phase(Phase.PLAN_READY), LONG_S)
        assert loop.error is not None
        assert "the plan is invalid" in str(loop.error)


@dataclasses.dataclass
class CountingPlanner:
    """The solver, and the number of its calls."""

    solves: int = 0

    def __call__(
        self,
        snapshot: Snapshot,
        goals: Goals,
        limits: SolveLimits,
        observer: SolveObserver,
        earlier: Plan | None,
    ) -> Result:
        self.solves += 1
        return solve(snapshot, goals, limits, observer, earlier)


def later(bench: Bench, passed_s: float, snapshot: Callable[..., Snapshot]) -> Snapshot:
    """Let time pass, and show the loop a newer snapshot."""
    bench.clock.now_s += passed_s
    result = snapshot(taken_at_ms=int(1000 * bench.clock.now_s))
    bench.observer.snapshots[:] = [result]
    assert bench.loop.wait(lambda view: view.snapshot is result, LONG_S)
    return result


def test_auto_executes_the_best_plan_within_its_limits(build: Build) -> None:
    """Six moves balance the cluster; two may be made at once, so three runs do it."""
    two = EAGER.model_copy(update={"replica_moves": 2})
    nine = cluster([2] * 9, [MB] * 9)
    bench, homes = build(nine, mode=Mode.AUTO, limits=two), [2] * 9

    def at_homes(*, taken_at_ms: int) -> Snapshot:
        return cluster(homes, [MB] * 9, taken_at_ms=taken_at_ms)

    with bench.loop as loop:
        for run in range(1, 4):
            assert loop.wait(lambda _, run=run: len(loop.reports) == run, LONG_S)  # type: ignore[misc]  # a default binds it
            for move in bench.executor.plans[-1].moves:
                homes[move.partition] = move.replicas_after[0]
            later(bench, 60, at_homes)
        assert loop.wait(in_phase(Phase.BALANCED), LONG_S)
    assert [len(plan.moves) for plan in bench.executor.plans] == [2, 2, 2]


def test_auto_does_not_plan_for_equal_inputs_twice(build: Build) -> None:
    planner = CountingPlanner()
    tight = EAGER.model_copy(update={"replica_moves": 1, "min_gain": 0.99})
    bench = build(UNEVEN, mode=Mode.AUTO, limits=tight, planner=planner)
    noise = iter(range(100))

    def again(*, taken_at_ms: int) -> Snapshot:
        loads = [MB * (1 + 0.001 * next(noise))] * 8
        return cluster([2] * 8, loads, taken_at_ms=taken_at_ms)

    with bench.loop as loop:
        assert loop.wait(lambda view: "less than min_gain" in view.message, LONG_S)
        assert "replica_moves (1 of 1)" in loop.view.message
        for _ in range(20):
            later(bench, 3600, again)
        assert planner.solves == 1
        assert len(loop.view.log) < 10
        shifted = [3 * MB, *[MB] * 7]
        later(bench, 3600, lambda taken_at_ms: cluster([2] * 8, shifted, taken_at_ms=taken_at_ms))
        assert loop.wait(lambda _: planner.solves == 2, LONG_S)
    assert bench.executor.plans == []


def test_auto_replans_a_shifted_load_but_not_a_fluctuating_one(build: Build) -> None:
    planner = CountingPlanner()
    tight = EAGER.model_copy(update={"replica_moves": 1, "min_gain": 0.99})
    # One move brings this cluster nowhere near its tolerance.
    homes, noise = [1] * 3 + [2] * 3 + [3] * 12, np.random.default_rng(7)

    def seen(*first: float) -> Callable[..., Snapshot]:
        """With these loads of the first partitions, and all of them 10 % noisy."""

        def at(*, taken_at_ms: int) -> Snapshot:
            loads = np.array([*first, *[1.0] * (len(homes) - len(first))])
            noisy = MB * loads * noise.normal(1.0, 0.1, len(homes))
            return cluster(homes, noisy.tolist(), taken_at_ms=taken_at_ms)

        return at

    first = seen()(taken_at_ms=START_MS)
    bench = build(first, mode=Mode.AUTO, limits=tight, planner=planner)
    with bench.loop as loop:
        assert loop.wait(lambda view: "less than min_gain" in view.message, LONG_S)
        for _ in range(100):
            later(bench, 15, seen())
        assert planner.solves == 1
        for _ in range(60):
            later(bench, 15, seen(2.0, 2.0))
        assert loop.wait(lambda view: "less than min_gain" in view.message, LONG_S)
        assert planner.solves == 2


@pytest.mark.parametrize(
    "error",
    [
        PlanOutdated("orders-7 is on [3], the plan expects [2]"),
        GuardrailRefused("someone else moves partitions: orders-1"),
        RightsMissing("ALTER on the cluster"),
    ],
)
def test_a_failed_run_does_not_end_auto_and_is_retried_with_growing_delays(
    build: Build, error: PlimsollError
) -> None:
    def fails(_plan: Plan) -> None:
        raise error

    def still(*, taken_at_ms: int) -> Snapshot:
        return cluster([2] * 8, [MB] * 8, taken_at_ms=taken_at_ms)

    bench = build(UNEVEN, mode=Mode.AUTO, on_execute=fails)
    plans, waits = bench.executor.plans, []
    with bench.loop as loop:
        for attempt in range(1, 5):
            assert loop.wait(
                lambda view, n=attempt: len(plans) == n and "retrying" in view.message,  # type: ignore[misc]  # a default binds it
                LONG_S,
            )
            assert str(error) in loop.view.message
            wait_s = loop._state.failures.wait_s
            waits.append(wait_s)
            later(bench, wait_s - 1, still)
            assert loop.wait(lambda view: "retrying in 1.00 s" in view.message, LONG_S)
            assert len(plans) == attempt
            later(bench, 600 + 2, still)
        assert loop.error is None
        bench.executor.on_execute = lambda _plan: None
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
        assert loop.failure is None
    assert waits == sorted(waits)


def test_auto_plans_again_after_a_failed_solve(build: Build) -> None:
    faults = [PlimsollError("the model is wrong")]

    def planner(
        snapshot: Snapshot,
        goals: Goals,
        limits: SolveLimits,
        observer: SolveObserver,
        earlier: Plan | None,
    ) -> Result:
        if faults:
            raise faults.pop()
        return solve(snapshot, goals, limits, observer, earlier)

    bench = build(UNEVEN, mode=Mode.AUTO, planner=planner)
    with bench.loop as loop:
        assert loop.wait(lambda view: "is wrong; retrying in 10" in view.message, LONG_S)
        bench.clock.now_s += 60
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
        assert loop.failure is None


def test_a_flapping_broker_makes_one_plan_and_few_log_lines(build: Build) -> None:
    planner = CountingPlanner()
    bench = build(UNEVEN, planner=planner)

    def flapped(*, taken_at_ms: int) -> Snapshot:
        seen = cluster([2] * 8, [MB] * 8, taken_at_ms=taken_at_ms)
        flaps = int(taken_at_ms / 1000) % 2 == 1
        return with_state(seen, 3, BrokerState.DEAD if flaps else BrokerState.ALIVE)

    with bench.loop as loop:
        assert loop.wait(in_phase(Phase.PLAN_READY), LONG_S)
        for _ in range(120):
            later(bench, 1, flapped)
        assert planner.solves == 1
        assert len(loop.view.log) < 10
        bench.clock.now_s += 600
        # It is as it was when the plan was made, so the plan can be approved.
        assert loop.wait(in_phase(Phase.PLAN_READY), LONG_S)
        later(bench, 1, flapped)
        bench.clock.now_s += 600
        assert loop.wait(lambda _: planner.solves == 2, LONG_S)


def test_a_repair_larger_than_the_limits_takes_several_runs(build: Build) -> None:
    ten = EAGER.model_copy(update={"replica_moves": 10})
    bench = build(one_of_twelve_dead(), mode=Mode.AUTO, limits=ten, dead_broker_after_s=0.0)
    placed = {r.id: r.replicas for r in map(bench_row, range(132))}

    def repaired(*, taken_at_ms: int) -> Snapshot:
        seen = one_of_twelve_dead(taken_at_ms=taken_at_ms)
        rows = [
            dataclasses.replace(seen.row(i), replicas=placed[seen.id(i)]) for i in range(len(seen))
        ]
        rows = [
            r if r.leader in r.replicas else dataclasses.replace(r, leader=r.replicas[0])
            for r in rows
        ]
        return with_rows(seen, rows)

    with bench.loop as loop:
        for run in range(1, 4):
            assert loop.wait(lambda _, run=run: len(loop.reports) == run, LONG_S)  # type: ignore[misc]  # a default binds it
            for move in bench.executor.plans[-1].moves:
                placed[move.id] = move.replicas_after
            later(bench, 60, repaired)
        assert loop.wait(in_phase(Phase.BALANCED), LONG_S)
    assert [spent_of(p)["replica_moves"] for p in bench.executor.plans] == [10, 10, 2]
    assert not any(11 in replicas for replicas in placed.values())


def test_conservative_limits_balance_an_uneven_cluster_in_several_runs(build: Build) -> None:
    """Leaders of most partitions are on one of six brokers; 38 changes fix that."""
    placed = {row.id: row for row in m6().rows()}

    def moved(*, taken_at_ms: int) -> Snapshot:
        seen = with_header(m6(), taken_at_ms=taken_at_ms)
        return with_rows(seen, [placed[seen.id(i)] for i in range(len(seen))])

    bench = build(m6(), mode=Mode.AUTO, limits=CONSERVATIVE)
    plans = bench.executor.plans
    with bench.loop as loop:
        for run in range(1, MOST_RUNS):
            assert loop.wait(
                lambda view, n=run: (  # type: ignore[misc]  # a default binds it
                    len(loop.reports) == n or view.phase in (Phase.BALANCED, Phase.NO_PLAN)
                ),
                120,
            )
            if len(loop.reports) < run:
                break
            for move in plans[-1].moves:
                placed[move.id] = dataclasses.replace(
                    placed[move.id], replicas=move.replicas_after, leader=move.leader_after
                )
            later(bench, 60, moved)
        assert loop.view.phase is Phase.BALANCED, loop.view.message
    assert len(plans) >= 2
    for plan in plans:
        assert not refusals(plan, CONSERVATIVE)
        assert 0 < spent_of(plan)["leader_changes"] <= CONSERVATIVE.leader_changes


def test_replicas_that_fit_no_live_broker_do_not_prevent_balancing_the_others(build: Build) -> None:
    """Three brokers, one of them dead: partitions of RF 3 cannot leave it."""
    planner = CountingPlanner()
    bench = build(
        one_of_three_dead([2] * 8), mode=Mode.AUTO, dead_broker_after_s=0.0, planner=planner
    )
    with bench.loop as loop:
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
        (plan,) = bench.executor.plans
        assert {move.partition for move in plan.moves} < set(range(8))
        message = "3 partitions cannot be moved, because too few brokers may hold their "
        assert any(message in line.text for line in loop.view.log)
        homes = [2] * 8
        for move in plan.moves:
            homes[move.partition] = move.replicas_after[0]

        def balanced(*, taken_at_ms: int) -> Snapshot:
            return one_of_three_dead(homes, taken_at_ms=taken_at_ms)

        later(bench, 60, balanced)
        assert loop.wait(in_phase(Phase.NO_PLAN), LONG_S)
        for _ in range(5):
            later(bench, 3600, balanced)
        assert planner.solves == 2
    assert len(bench.executor.plans) == 1


def one_of_three_dead(homes: list[int], *, taken_at_ms: int = START_MS) -> Snapshot:
    """Partitions of RF 1, then three of RF 3; broker 3 is dead."""
    seen = cluster([*homes, 1, 1, 2], [MB] * (len(homes) + 3), taken_at_ms=taken_at_ms)
    three = tuple(b.id for b in seen.header.brokers)
    rows = [
        row if number < len(homes) else dataclasses.replace(row, replicas=three)
        for number, row in enumerate(seen.rows())
    ]
    return with_rows(with_state(seen, 3, BrokerState.DEAD), rows)


def with_rows(snapshot: Snapshot, rows: list[PartitionRow]) -> Snapshot:
    """The same loads of partitions that are placed otherwise."""
    columns = partitions_from_rows(snapshot.header.topics, rows, snapshot.partitions.loads)
    return Snapshot(snapshot.header, columns)


MOST_RUNS = 8


def m6() -> Snapshot:
    files = ClusterFiles(
        describe=CASES / "m6.txt",
        loads=CASES / "m6-loads.csv",
        brokers=CASES / "m6-brokers.csv",
        storage=None,
    )
    return read_cluster(files)


def bench_row(row: int) -> PartitionRow:
    return one_of_twelve_dead().row(row)


def test_a_competing_rebalancer_is_reported_once_when_the_plan_is_ready(build: Build) -> None:
    bench, message = build(UNEVEN), "The topic x belongs to Cruise Control."
    bench.executor.rivals = (message,)
    with bench.loop as loop:
        assert loop.wait(lambda view: view.proposed.rivals == (message,), LONG_S)
        assert loop.view.plan is not None
        loop.preview(loop.view.plan)
        # Warnings of the run's checks arrive here too.
        loop.warn(message)
        bench.clock.now_s += 61.0
        bench.executor.rivals = (message, "Another one.")
        assert loop.wait(lambda view: len(view.proposed.rivals) == 2, LONG_S)
        messages = [line.text for line in loop.view.log if line.level == "warning"]
    assert messages == [message, "Another one."]


def test_a_loop_without_threads_takes_a_step_per_turn(tmp_path: Path) -> None:
    """Its caller owns the clock: work in the background is done before `turn` returns."""
    nine, decisions = cluster([2] * 9, [MB] * 9), list[Decision]()
    observer, executor, clock = CannedObserver([nine]), RecordingExecutor(), Clock()
    parts = loop_parts(
        observer,
        executor,
        clock=clock,
        steady=clock.steady,
        background=AtOnce,
        decided=lambda _facts, step, _reason: decisions.append(step),
    )
    limits = EAGER.model_copy(update={"confirm": 0.0})
    threads = threading.active_count()
    loop = Loop(loop_settings(tmp_path, mode=Mode.AUTO, limits=limits), parts)
    loop.turn(observer)
    assert (decisions, executor.plans) == ([Decision.PLAN], [])
    loop.turn(observer)
    loop.turn(observer)
    assert (decisions, len(executor.plans)) == ([Decision.PLAN, Decision.APPROVE], 1)
    assert not loop.running
    assert threading.active_count() == threads


def test_partitions_below_min_isr_do_not_wait_for_the_dead_broker(tmp_path: Path) -> None:
    """Two of 22 that hold replicas on it block their producers; only these two are moved."""
    clock, executor, whys = Clock(), RecordingExecutor(), list[str]()
    observer = CannedObserver([one_of_twelve_dead()])
    dead = one_of_twelve_dead()
    rows = [row for row in range(len(dead)) if 11 in dead.replicas(row)][:2]
    ids = tuple(map(dead.id, rows))
    observer.lacking = Replication(under_replicated=22, offline=0, below_min_isr=2, below_ids=ids)
    parts = loop_parts(
        observer,
        executor,
        clock=clock,
        steady=clock.steady,
        background=AtOnce,
        decided=lambda _facts, _step, reason: whys.append(reason),
    )
    loop = Loop(loop_settings(tmp_path, mode=Mode.AUTO), parts)
    for _ in range(130):
        clock.now_s += 1
        taken = int(1000 * clock.now_s)
        observer.snapshots[:] = [one_of_twelve_dead(taken_at_ms=taken)]
        loop.turn(observer)
        if executor.plans:
            break
    assert 120 <= clock.now_s - START_MS / 1000 <= 125
    (plan,) = executor.plans
    assert {move.id for move in plan.moves} == set(ids)
    assert "broker 11 is dead; its replicas are moved in" in whys[0]
    assert "2 partitions on dead brokers or failed disks below min.insync.replicas" in "".join(whys)


@pytest.mark.parametrize("response", list(Response))
def test_a_slow_broker_is_relieved_as_its_trigger_says(tmp_path: Path, response: Response) -> None:
    """Unless the trigger is off, it takes no new load either, and the times are in the log."""
    clock, executor = Clock(), RecordingExecutor()
    seen = clusters.snapshot(
        clusters.brokers(3), [(1, 2), (2, 3), (3, 1)], storage=StorageKind.REPLICATED
    )
    observer = CannedObserver([seen])
    observer.late = {BrokerId(2): "it answers in 2.00 s, the others in 5 ms"}
    parts = loop_parts(observer, executor, clock=clock, steady=clock.steady, background=AtOnce)
    triggers = TriggerTable(slow_broker=response, uneven_load=Response.OFF)
    loop = Loop(loop_settings(tmp_path, mode=Mode.AUTO, triggers=triggers), parts)
    for _ in range(20):
        clock.now_s += 1
        header = seen.header.model_copy(update={"taken_at_ms": int(1000 * clock.now_s)})
        observer.snapshots[:] = [Snapshot(header, seen.partitions)]
        loop.turn(observer)
    log = "".join(line.text for line in loop.view.log)
    off, asks = response is Response.OFF, response is Response.ASK
    assert ("broker 2 is slow: it answers in 2.00 s" in log) is not off
    # What the screen, the metrics and the table of a fleet show of brokers.
    states = {b.id: b.state for b in loop.view.brokers}
    assert (states[BrokerId(2)] is BrokerState.SLOW) is not off
    assert loop.view.snapshot is not None
    state = loop.view.snapshot.broker[BrokerId(2)].state
    assert state is (BrokerState.ALIVE if off else BrokerState.SLOW)
    assert bool(executor.plans) is (response is Response.ACT)
    plan = loop.view.plan if asks else next(iter(executor.plans), None)
    assert off or (plan is not None and [m.partition for m in plan.moves] == [1])
    assert ("slow_broker is set to ask" in loop.view.message) is asks


def test_a_plan_for_a_slow_broker_outlasts_a_reload_until_it_can_be_found_again(
    tmp_path: Path,
) -> None:
    clock = Clock()
    seen = clusters.snapshot(
        clusters.brokers(3), [(1, 2), (2, 3), (3, 1)], storage=StorageKind.REPLICATED
    )
    observer = CannedObserver([seen])
    observer.late = {BrokerId(2): "it answers in 2.00 s, the others in 5 ms"}
    triggers = TriggerTable(slow_broker=Response.ASK, uneven_load=Response.OFF)
    settings = loop_settings(tmp_path, mode=Mode.AUTO, triggers=triggers, decisions_dir=tmp_path)
    parts = loop_parts(
        observer, RecordingExecutor(), clock=clock, steady=clock.steady, background=AtOnce
    )

    def turns(loop: Loop, count: int, seconds: float) -> None:
        for _ in range(count):
            clock.now_s += seconds
            header = seen.header.model_copy(update={"taken_at_ms": int(1000 * clock.now_s)})
            observer.snapshots[:] = [Snapshot(header, seen.partitions)]
            loop.turn(observer)

    before, after = Loop(settings, parts), Loop(settings, parts)
    turns(before, 20, 1.0)
    asked = before.question
    assert asked is not None
    # The next observer needs minutes to find it.
    observer.late = {}
    after.continue_from(before)
    turns(after, 10, 20.0)
    assert after.question == asked
    turns(after, 10, 20.0)
    assert after.question is None


@dataclasses.dataclass
class Edits:
    """A settings file: the policies that it is changed to, one after the other."""

    coming: list[AutoPolicy] = dataclasses.field(default_factory=list)

    def __call__(self, _current: AutoPolicy, _warn: Callable[[str], None]) -> AutoPolicy | None:
        return self.coming.pop() if self.coming else None


@dataclasses.dataclass
class Edited:
    """A loop under `--auto` over one cluster, whose policy changes between the turns of a test."""

    folder: Path
    changes: dict[str, Any]
    """Settings of the loop that differ from the usual ones."""
    snapshot: Snapshot = dataclasses.field(default_factory=lambda: UNEVEN)
    records: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Parts of the loop that differ from the usual ones."""

    def __post_init__(self) -> None:
        self.clock, self.executor, self.edits = Clock(), RecordingExecutor(), Edits()
        self.observer = CannedObserver([self.snapshot])
        parts = loop_parts(
            self.observer,
            self.executor,
            clock=self.clock,
            steady=self.clock.steady,
            background=AtOnce,
            new_policy=self.edits,
            **self.records,
        )
        usual = {"mode": Mode.AUTO, "limits": AT_ONCE}
        self.loop = Loop(loop_settings(self.folder, **usual | self.changes), parts)

    def turns(self, count: int = 6) -> None:
        """Let time pass; loads are measured each second."""
        for _ in range(count):
            self.clock.now_s += 1
            taken = int(1000 * self.clock.now_s)
            self.observer.snapshots[:] = [with_header(self.snapshot, taken_at_ms=taken)]
            self.loop.turn(self.observer)

    def edit(self, **changes: Any) -> None:
        """Change the policy in force; `limits` are changes, too."""
        policy = self.loop.policy
        limits = policy.limits.model_copy(update=changes.pop("limits", {}))
        self.edits.coming.append(dataclasses.replace(policy, limits=limits, **changes))

    @property
    def noted(self) -> list[str]:
        lines = (line.text for line in self.loop.view.log)
        return [text for text in lines if text.startswith("policy changed")]


AT_ONCE = EAGER.model_copy(update={"confirm": 0.0, "pause": 0.0})
SATURDAYS = ScheduleTable(windows=(MaintenanceWindow(start="0 2 * * SAT", duration=3600.0),))
"""Closed on the Tuesday on which tests begin."""


@dataclasses.dataclass(frozen=True)
class Used:
    """Runs of the last 24 hours, in place of journals."""

    usage: tuple[RunUsage, ...]

    def moves_since(self, _cluster_id: str, _since_ms: int) -> tuple[RecentMove, ...]:
        return ()

    def usage_since(self, _cluster_id: str, _since_ms: int) -> tuple[RunUsage, ...]:
        return self.usage


def test_the_end_of_the_loop_is_recorded(tmp_path: Path) -> None:
    """With the plan that waits on for the next process, and only with that."""
    hashes, ask = [], TriggerTable(empty_broker=Response.ASK, uneven_load=Response.ASK)
    for leave in (False, True):
        edited = Edited(tmp_path, {"decisions_dir": tmp_path, "triggers": ask})
        edited.turns(8)
        question = edited.loop.question
        assert question is not None
        edited.loop.leave_question, edited.loop.ending = leave, "it is left"
        edited.loop.close()
        edited.loop.close()
        asked, ended = read_decisions(tmp_path, 2)
        assert (asked.decision, ended.decision) == (Decision.ASK, Decision.ENDED)
        assert ended.reason.startswith("run --auto has ended: it is left")
        hashes.append((question.plan_hash[:12] in ended.reason, bool(ended.plan_hash)))
    assert hashes == [(False, False), (True, True)]


def test_another_limit_is_recorded_and_logged(tmp_path: Path) -> None:
    """`why` and the log had the old one until its time had passed."""
    limits = EAGER.model_copy(update={"confirm": 3000.0})
    edited = Edited(tmp_path, {"limits": limits, "decisions_dir": tmp_path})
    edited.turns(2)
    edited.edit(limits={"confirm": 9000.0})
    edited.turns(3)
    before, after = read_decisions(tmp_path, 9)
    assert before.reason.endswith("--auto acts after 3000 s")
    assert after.reason.endswith("--auto acts after 9000 s")
    assert (before.until_ms, after.until_ms) == (START_MS + 3_001_000, START_MS + 9_001_000)
    assert sum("acts after 9000 s" in line.text for line in edited.loop.view.log) == 1


def test_triggers_may_be_changed_while_the_loop_runs(tmp_path: Path) -> None:
    """Off, then act: the loop rests, names the trigger, and then balances."""
    off = TriggerTable(uneven_load=Response.OFF, empty_broker=Response.OFF)
    edited = Edited(tmp_path, {"triggers": off})
    edited.turns()
    assert edited.executor.plans == []
    assert "but uneven_load is off" in edited.loop.view.message
    edited.edit(triggers=TriggerTable(empty_broker=Response.OFF))
    edited.turns()
    assert len(edited.executor.plans) == 1
    assert edited.noted == ["policy changed: uneven_load is act, it was off"]


def test_limits_may_be_changed_while_the_loop_runs(tmp_path: Path) -> None:
    """A plan that gained too little is replaced and executed, with the other limits as well."""
    edited = Edited(tmp_path, {"limits": AT_ONCE.model_copy(update={"min_gain": 1.0})})
    edited.turns()
    assert edited.executor.plans == []
    assert "less than min_gain (100 %)" in edited.loop.view.message
    edited.edit(limits={"min_gain": 0.05, "replica_moves": 2, "moves_in_flight": 3})
    edited.turns()
    plan = edited.executor.plans[0]
    assert spent_of(plan)["replica_moves"] <= 2
    assert edited.executor.in_flight[0] == 3
    assert sorted(edited.noted) == [
        "policy changed: min_gain is 0.05, it was 1.0",
        "policy changed: moves_in_flight is 3, it was 50",
        "policy changed: replica_moves is 2, it was 500",
    ]


def test_a_plan_within_former_limits_is_not_executed(tmp_path: Path) -> None:
    """The limits become tighter while the plan waits for `confirm`, prepared already."""
    edited = Edited(tmp_path, {"schedule": SATURDAYS, "limits": AT_ONCE})
    edited.turns()
    edited.loop.plan_again()
    edited.turns()
    plan = edited.loop.view.plan
    assert plan is not None
    assert spent_of(plan)["replica_moves"] > 1
    edited.edit(limits={"replica_moves": 1}, schedule=ALWAYS)
    edited.turns(9)
    assert edited.executor.plans
    assert all(spent_of(found)["replica_moves"] <= 1 for found in edited.executor.plans)


def test_runs_of_the_day_count_as_soon_as_they_are_limited(tmp_path: Path) -> None:
    """Runs before the change do, too, before any further loads are measured."""
    usage = RunUsage(started_at_ms=START_MS - 1000, bytes_copied=0)
    edited = Edited(tmp_path, {"schedule": SATURDAYS}, records={"records": Used((usage,))})
    edited.turns()
    edited.loop.plan_again()
    edited.turns()
    assert edited.loop.view.plan is not None
    edited.edit(limits={"runs_per_day": 1}, schedule=ALWAYS)
    edited.turns()
    assert edited.executor.plans == []
    assert "runs_per_day is reached" in edited.loop.view.message
    edited.edit(limits={"runs_per_day": 2})
    edited.turns()
    assert len(edited.executor.plans) == 1


def test_the_schedule_may_be_changed_while_the_loop_runs(tmp_path: Path) -> None:
    edited = Edited(tmp_path, {"schedule": SATURDAYS})
    edited.turns()
    assert edited.executor.plans == []
    edited.edit(schedule=ALWAYS)
    edited.turns()
    assert len(edited.executor.plans) == 1
    assert edited.noted == ["policy changed: schedule.windows is another one"]


def test_the_wait_for_dead_brokers_may_be_changed_while_the_loop_runs(tmp_path: Path) -> None:
    edited = Edited(tmp_path, {"dead_broker_after_s": 3600.0}, one_of_twelve_dead())
    edited.turns()
    assert "replicas are moved in" in edited.loop.view.message
    edited.edit(dead_broker_after_s=60.0)
    edited.turns(40)
    assert "replicas are moved in" in edited.loop.view.message
    assert edited.executor.plans == []
    edited.turns(40)
    assert edited.executor.plans
    assert edited.noted == ["policy changed: dead_broker_after is 60.0 s, it was 1 h 00 min"]


def test_a_longer_wait_for_dead_brokers_replaces_their_plan(tmp_path: Path) -> None:
    """The schedule holds back a plan that moves all replicas of a dead broker; only partitions
    below `min.insync.replicas` may leave it once the wait is longer."""
    held = SATURDAYS.model_copy(update={"exempt": ()})
    changes = {"dead_broker_after_s": 0.0, "schedule": held}
    edited = Edited(tmp_path, changes, one_of_twelve_dead())
    dead = edited.snapshot
    rows = [row for row in range(len(dead)) if 11 in dead.replicas(row)][:2]
    below = tuple(map(dead.id, rows))
    edited.observer.lacking = Replication(
        under_replicated=22, offline=0, below_min_isr=2, below_ids=below
    )
    edited.turns(130)
    edited.loop.plan_again()
    edited.turns()
    plan = edited.loop.view.plan
    assert plan is not None
    assert len(plan.moves) >= 22
    edited.edit(dead_broker_after_s=3600.0, schedule=ALWAYS)
    edited.turns(12)
    executed = edited.executor.plans[0]
    assert {move.id for move in executed.moves} == set(below)


def test_looser_limits_replace_a_plan_that_gains_too_little(tmp_path: Path) -> None:
    """Without the change, its result would be kept until the cluster changes."""
    tight = AT_ONCE.model_copy(update={"min_gain": 0.9, "replica_moves": 1})
    edited = Edited(tmp_path, {"limits": tight})
    edited.turns()
    assert "less than min_gain (90 %)" in edited.loop.view.message
    edited.edit(limits={"replica_moves": 50})
    edited.turns(12)
    assert len(edited.executor.plans) == 1


@pytest.mark.slow
def test_a_broker_that_flaps_for_an_hour_makes_few_plans(tmp_path: Path) -> None:
    """Each second it leaves or joins; the loop takes a turn each time, under `--auto`."""
    clock, executor, decisions = Clock(), RecordingExecutor(), list[Decision]()
    observer = CannedObserver([UNEVEN])
    parts = loop_parts(
        observer,
        executor,
        clock=clock,
        steady=clock.steady,
        background=AtOnce,
        decided=lambda _facts, step, _reason: decisions.append(step),
    )
    limits = EAGER.model_copy(update={"confirm": 0.0})
    loop = Loop(loop_settings(tmp_path, mode=Mode.AUTO, limits=limits), parts)
    for second in range(3600):
        clock.now_s += 1
        seen = cluster([2] * 8, [MB] * 8, taken_at_ms=int(1000 * clock.now_s))
        state = BrokerState.DEAD if second % 2 else BrokerState.ALIVE
        observer.snapshots[:] = [with_state(seen, 3, state)]
        loop.turn(observer)
    assert decisions.count(Decision.PLAN) <= 1
    assert len(executor.plans) <= 1
    assert len(loop.view.log) < 20


def test_a_more_urgent_trigger_interrupts_a_run_and_is_planned_for_at_once(tmp_path: Path) -> None:
    """Constraints are violated while the load is balanced; the pause does not hold that back."""
    clock, begun = Clock(), threading.Event()

    class Interruptible(RecordingExecutor):
        """The first run goes on until it is stopped."""

        def execute(self, plan: Plan, **order: Any) -> RunReport:
            report = super().execute(plan, **order)
            if len(self.plans) > 1:
                return report
            begun.set()
            assert order["steering"].stopping.wait(LONG_S)
            return report.model_copy(update={"state": RunState.STOPPED, "reason": "stopped"})

    def seen(*, violated: bool) -> Snapshot:
        clock.now_s += 1
        found = cluster([2] * 9, [MB] * 9, taken_at_ms=int(1000 * clock.now_s))
        return constrained(found, a=1) if violated else found

    observer, executor = CannedObserver([seen(violated=False)]), Interruptible()
    limits = EAGER.model_copy(update={"confirm": 0.0, "pause": 3600.0})
    settings = loop_settings(tmp_path, mode=Mode.AUTO, limits=limits, triggers=ACT_ON_RULES)
    parts = loop_parts(observer, executor, clock=clock, steady=clock.steady)
    with Loop(settings, parts) as loop:
        assert begun.wait(LONG_S)
        newest = seen(violated=True)
        observer.snapshots[:] = [newest]
        assert loop.wait(lambda view: view.snapshot is newest, LONG_S)
        assert loop.running
        clock.now_s += 31
        observer.snapshots[:] = [seen(violated=True)]
        assert loop.wait(lambda _: len(loop.reports) == 1, LONG_S)
        assert loop.failure is None
        clock.now_s += 60
        observer.snapshots[:] = [seen(violated=True)]
        assert loop.wait(lambda _: len(loop.reports) == 2, LONG_S)
        texts = [line.text for line in loop.view.log]
    assert any(text.startswith("run overridden by rule_violated: ") for text in texts)
    assert any("; overridden by rule_violated" in text for text in texts)
    assert {m.replicas_after for m in executor.plans[1].moves} == {(1,)}


def test_auto_waits_longer_where_the_load_follows_its_moves(tmp_path: Path) -> None:
    """After each run all load is on one broker again, another one each time."""
    clock, executor = Clock(), RecordingExecutor()
    observer = CannedObserver([cluster([2] * 9, [MB] * 9)])
    limits = EAGER.model_copy(update={"confirm": 0.0, "pause": 10.0})
    settings = loop_settings(tmp_path, mode=Mode.AUTO, limits=limits)
    parts = loop_parts(observer, executor, clock=clock, steady=clock.steady)

    def follows(broker: int) -> None:
        clock.now_s += 16
        taken = int(1000 * clock.now_s)
        observer.snapshots[:] = [cluster([broker] * 9, [MB] * 9, taken_at_ms=taken)]

    with Loop(settings, parts) as loop:
        assert loop.wait(lambda _: len(loop.reports) == 1, LONG_S)
        follows(1)
        assert loop.wait(lambda _: len(loop.reports) == 2, LONG_S)
        follows(2)
        why = "the last run ended 16 s ago; the pause between runs is 20 s instead of 10 s"
        assert loop.wait(lambda view: why in view.message, LONG_S)
        assert len(executor.plans) == 2
        clock.now_s += 4
        assert loop.wait(lambda _: len(loop.reports) == 3, LONG_S)


def test_moves_of_other_records_than_journals_are_in_cooldown(tmp_path: Path) -> None:
    class Records:
        def moves_since(self, _cluster_id: str, _since_ms: int) -> tuple[RecentMove, ...]:
            return (RecentMove(topic=ORDERS, partition=0, left=(BrokerId(1),), at_ms=START_MS),)

        def usage_since(self, _cluster_id: str, _since_ms: int) -> tuple[RunUsage, ...]:
            return ()

    observer = CannedObserver([cluster([2] * 9, [MB] * 9)])
    parts = loop_parts(observer, RecordingExecutor(), background=AtOnce, records=Records())
    loop = Loop(loop_settings(tmp_path, mode=Mode.AUTO), parts)
    loop.turn(observer)
    assert loop.view.snapshot is not None
    assert [move.partition for move in loop.view.snapshot.header.recent_moves] == [0]


def test_auto_acts_on_a_shift_once_it_is_no_burst(build: Build) -> None:
    """Earlier than the window of the loads would allow, which still reaches back before it."""
    bench = build(LEVEL, mode=Mode.AUTO)

    def shifted(*, taken_at_ms: int) -> Snapshot:
        changed_ms = START_MS + 1000
        bench.observer.steady = Steadiness(
            newest_ms=taken_at_ms,
            since_ms=START_MS - 15_000,
            changed_ms=changed_ms,
            agrees=True,
            noise={BrokerId(number): 0.001 for number in (1, 2, 3)},
        )
        return cluster([2] * 8, [MB] * 8, taken_at_ms=taken_at_ms)

    with bench.loop as loop:
        assert loop.wait(in_phase(Phase.BALANCED), LONG_S)
        later(bench, 10, shifted)
        assert loop.wait(lambda view: "burst" in view.message, LONG_S)
        assert bench.executor.plans == []
        later(bench, 2, shifted)
        assert loop.wait(lambda _: bool(loop.reports), LONG_S)
    (plan,) = bench.executor.plans
    assert plan.limits.noise == pytest.approx(2 * 3 * 0.001**2)


@dataclasses.dataclass
class Asking(Edited):
    """The same with a plan that waits for a person."""

    def __post_init__(self) -> None:
        self.changes |= {"decisions_dir": self.folder}
        super().__post_init__()

    def wait(self, seconds: float) -> None:
        """Let time pass, and look twice."""
        self.clock.now_s += seconds
        self.turns(2)

    def waiting(self) -> Plan:
        self.turns(20)
        plan, question = self.loop.view.plan, self.loop.question
        assert plan is not None
        assert question is not None
        assert question.plan_hash == plan.hash
        return plan

    def approve(self, plan: Plan) -> None:
        approve(self.folder, plan.hash, "eve", int(1000 * self.clock.now_s))

    @property
    def log(self) -> list[str]:
        return [line.text for line in self.loop.view.log]


MUCH_AT_ONCE = AT_ONCE.model_copy(update={"min_gain": 1.0})


def _open_now(duration_s: float) -> ScheduleTable:
    """Open as tests begin, for a while."""
    now = datetime.fromtimestamp(START_MS / 1000, UTC)
    window = MaintenanceWindow(start=f"{now:%M %H} * * *", duration=duration_s)
    return ScheduleTable(windows=(window,), exempt=())


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"limits": MUCH_AT_ONCE, "schedule": _open_now(600.0)}, "outside the maintenance windows"),
        (
            {
                "limits": MUCH_AT_ONCE.model_copy(update={"runs_per_day": 1}),
                "used": (RunUsage(started_at_ms=START_MS + 60_000, bytes_copied=0),),
            },
            "runs_per_day is reached",
        ),
        (
            {"signed": lambda _hash: None, "schedule": _open_now(600.0)},
            "outside the maintenance windows",
        ),
    ],
    ids=["schedule", "runs_per_day", "signature"],
)
def test_an_approved_plan_waits_for_no_rule(
    tmp_path: Path, changes: dict[str, Any], rule: str
) -> None:
    """Where the rule came into force after the question."""
    used = Used(())
    asking = Asking(
        tmp_path,
        {k: v for k, v in changes.items() if k in ("limits", "schedule")},
        records={"records": used} | {k: v for k, v in changes.items() if k == "signed"},
    )
    plan = asking.waiting()
    object.__setattr__(used, "usage", changes.get("used", ()))
    asking.wait(1200.0)
    assert rule in asking.loop.view.message
    assert asking.executor.plans == []
    asking.approve(plan)
    asking.turns(1)
    assert asking.executor.plans == [plan]


def test_a_waiting_plan_is_withdrawn_as_soon_as_it_is_outdated(tmp_path: Path) -> None:
    """Not once the dead broker is given up."""
    asking = Asking(tmp_path, {}, snapshot=constrained(LEVEL, a=1))
    plan = asking.waiting()
    asking.snapshot = with_state(asking.snapshot, 2, BrokerState.DEAD)
    asking.turns(2)
    assert "broker 2 is dead" in asking.loop.view.message
    assert asking.loop.question is None
    assert "the waiting plan is withdrawn: the cluster changed: broker 2 is gone" in asking.log
    with pytest.raises(PlanOutdated, match="broker 2 is gone"):
        asking.approve(plan)


def test_a_waiting_plan_is_withdrawn_while_its_successor_is_not_due_yet(tmp_path: Path) -> None:
    """An approval in that time would have no effect."""
    asking = Asking(tmp_path, {}, snapshot=constrained(LEVEL, a=1))
    asking.turns(3)
    assert asking.loop.question is not None
    asking.edit(triggers=ACT_ON_RULES)
    asking.turns(1)
    assert "planning again in" in asking.loop.view.message
    assert asking.loop.question is None


def test_an_approval_that_comes_too_late_is_logged(tmp_path: Path) -> None:
    asking = Asking(tmp_path, {}, snapshot=constrained(LEVEL, a=1))
    plan = asking.waiting()
    asking.approve(plan)
    asking.snapshot = with_state(asking.snapshot, 2, BrokerState.DEAD)
    asking.turns(2)
    assert asking.executor.plans == []
    words = f"plan {plan.hash[:12]} is not executed, though eve approved it: the cluster changed"
    assert f"{words}: broker 2 is gone" in asking.log


def _left(folder: Path) -> Plan:
    """A plan that an earlier process has left to a person."""
    earlier = Asking(folder, {"limits": MUCH_AT_ONCE})
    plan = earlier.waiting()
    earlier.loop.leave_question = True
    earlier.loop.close()
    return plan


def test_a_plan_of_an_earlier_process_is_executed_whenever_it_is_approved(tmp_path: Path) -> None:
    """Also after the first decision, while this process has no plan of its own yet."""
    plan, patient = _left(tmp_path), EAGER.model_copy(update={"confirm": 3000.0})
    later = Asking(tmp_path, {"limits": patient})
    later.turns(5)
    assert later.loop.question is not None
    later.approve(plan)
    later.turns(1)
    assert later.executor.plans == [plan]


def test_a_plan_that_was_approved_before_a_pause_is_executed_after_it(tmp_path: Path) -> None:
    """A process that begins during the pause made a plan of its own, and withdrew this one."""
    plan = _left(tmp_path)
    later = Asking(tmp_path, {"limits": MUCH_AT_ONCE})
    later.approve(plan)
    later.loop.pause("paused by eve")
    later.turns(20)
    assert later.executor.plans == []
    assert later.loop.question is not None
    later.loop.unpause()
    later.turns(1)
    assert later.executor.plans == [plan]


def test_a_plan_of_an_earlier_process_without_an_approval_is_replaced(tmp_path: Path) -> None:
    plan = _left(tmp_path)
    later = Asking(tmp_path, {"limits": MUCH_AT_ONCE})
    later.turns(1)
    with pytest.raises(PlanOutdated, match="run --auto has begun again and makes a new plan"):
        later.approve(plan)
