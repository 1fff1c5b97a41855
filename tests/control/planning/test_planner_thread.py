"""Requests of the screen about plans, over the real loop and solver."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from control.loop.loop import Loop
from control.loop.view import LoopView, Phase
from control.planning.frontier_points import point_of
from control.planning.plan_overrides import PlanOverrides
from control.planning.plan_view import TracedFrontier, WhatIfView
from control.planning.snapshot_changes import changes
from control.session_recording.recorder import ScreenRecorder
from control.settings.solve_table import limits_at
from model.errors import ConfigError, GuardrailRefused, PlanOutdated, PlimsollError
from model.goals.effort import Effort
from model.goals.goals import Goals, Pin, SolveLimits
from model.ids import BrokerId, PartitionId, TopicName
from model.names import Names
from model.plan.plan import Plan, PlanStatus
from model.snapshot.snapshot import BrokerState, Count, Snapshot
from model.snapshot.what_if import AddedBrokers, Scenario
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.solve import solve
from tests.support.control.loop_parts import (
    EASY,
    MB,
    ORDERS,
    WORK,
    CannedObserver,
    RecordingExecutor,
    cluster,
    constrained,
    loop_parts,
    loop_settings,
    placed_by,
    with_state,
)
from tests.support.solver.exact_oracle import Row, broker
from tests.support.solver.exact_oracle import cluster as small
from tests.support.solver.zipf_clusters import synthetic

UNEVEN = cluster([2] * 8, [MB] * 8)
MANY_S = 300.0
"""Longer than any test here takes."""


def of_orders(number: int) -> PartitionId:
    return PartitionId(ORDERS, number)


def pin(partition: int, broker: int) -> Pin:
    """A partition of the topic pinned to a broker."""
    return Pin(topics=Names(exact=(ORDERS,)), partitions=(partition,), brokers=(BrokerId(broker),))


@dataclass
class HeldPlanner:
    """The solver; with `held` it waits, as a long solve does, until it is stopped."""

    held: bool = False
    fault: PlimsollError | None = None
    asked: list[tuple[Snapshot, Goals]] = field(default_factory=list)
    limits: list[SolveLimits] = field(default_factory=list)
    waits: threading.Event = field(default_factory=threading.Event)
    never: threading.Event = field(default_factory=threading.Event)

    def __call__(
        self,
        snapshot: Snapshot,
        goals: Goals,
        limits: SolveLimits,
        observer: SolveObserver,
        earlier: Plan | None,
    ) -> Result:
        self.limits.append(limits)
        self.asked.append((snapshot, goals))
        if self.fault is not None:
            raise self.fault
        result = solve(snapshot, goals, limits, observer, earlier)
        self.waits.set()
        while self.held and not observer.stops():
            self.never.wait(0.01)
        return result


@dataclass
class Bench:
    loop: Loop
    observer: CannedObserver
    executor: RecordingExecutor
    planner: HeldPlanner

    def ready(self, asks: PlanOverrides | None = None) -> Plan:
        """The plan, once there is one made with these `asks`."""

        def is_ready(view: LoopView) -> bool:
            asked = view.proposed.asks if asks is None else asks
            done = view.phase is Phase.PLAN_READY and not view.proposed.solving
            return done and view.proposed.asks == asked and not self._is_pending

        assert self.loop.wait(is_ready, MANY_S)
        plan = self.loop.view.plan
        assert plan is not None
        return plan

    @property
    def _is_pending(self) -> bool:
        return self.loop.proposals.wanted or self.loop.proposals.solving

    def trace(self) -> TracedFrontier:
        """The frontier, once it is traced."""
        self.loop.proposals.trace()
        assert self.loop.wait(lambda view: view.proposed.traced is not None, MANY_S)
        traced = self.loop.view.proposed.traced
        assert traced is not None
        return traced

    def what_if(self) -> WhatIfView:
        """The what-if in progress, once it has an answer."""

        def is_answered(view: LoopView) -> bool:
            supposed = view.proposed.supposed
            return supposed is not None and supposed.answer is not None

        assert self.loop.wait(is_answered, MANY_S)
        supposed = self.loop.view.proposed.supposed
        assert supposed is not None
        return supposed

    def ask(self, asks: PlanOverrides) -> Plan:
        self.loop.proposals.ask(asks)
        return self.ready(asks)


@contextlib.contextmanager
def looping(snapshot: Snapshot, folder: Path, solve: SolveLimits = WORK) -> Iterator[Bench]:
    observer, executor = CannedObserver([snapshot]), RecordingExecutor()
    planner = HeldPlanner()
    settings = loop_settings(folder, solve=solve)
    with Loop(settings, loop_parts(observer, executor, planner=planner)) as loop:
        yield Bench(loop, observer, executor, planner)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with looping(UNEVEN, tmp_path) as made:
        yield made


def test_a_removed_move_is_not_in_the_next_plan_which_is_marked(bench: Bench) -> None:
    dropped = bench.ready().moves[0].id
    asks = PlanOverrides().dropping(dropped)
    plan = bench.ask(asks)
    assert plan.moves
    assert dropped not in [m.id for m in plan.moves]
    assert bench.loop.view.proposed.asks.words() == (f"{dropped} stays",)
    bench.loop.approve(plan.hash, by="ann")
    assert bench.loop.wait(lambda _: bool(bench.executor.plans), MANY_S)
    assert bench.executor.plans == [plan]


def test_while_another_plan_is_awaited_the_previous_one_cannot_be_approved(bench: Bench) -> None:
    before = bench.ready()
    bench.planner.held = True
    bench.loop.proposals.ask(PlanOverrides().pinning(pin(3, 3)))
    assert [bench.loop.view.proposed.awaited] == [True]
    with pytest.raises(GuardrailRefused, match="another plan has been requested"):
        bench.loop.approve(before.hash, by="ann")
    bench.loop.proposals.ask(PlanOverrides())
    assert [bench.loop.view.proposed.awaited] == [False]
    bench.loop.approve(before.hash, by="ann")
    assert bench.loop.wait(lambda _: bench.executor.plans == [before], MANY_S)


def test_equal_requests_give_equal_plans(bench: Bench) -> None:
    asks = PlanOverrides().dropping(bench.ready().moves[0].id)
    first = bench.ask(asks)
    bench.ask(PlanOverrides())
    assert bench.ask(asks).hash == first.hash


def test_removing_a_move_keeps_the_others_as_they_are(bench: Bench) -> None:
    before = bench.ready()
    removed = before.moves[0].id
    plan = bench.ask(PlanOverrides().dropping(removed))
    remaining = [m.replicas_after for m in before.moves if m.id != removed]
    assert [m.replicas_after for m in plan.moves] == remaining
    assert len(bench.planner.asked) == 1
    assert before.hash[:12] in plan.limited_by


def test_an_edited_plan_can_be_recomputed_from_scratch(bench: Bench) -> None:
    plan = bench.ask(PlanOverrides().dropping(bench.ready().moves[0].id))
    bench.loop.plan_again()
    again = bench.ready(bench.loop.view.proposed.asks)
    assert len(bench.planner.asked) == 2
    assert again.goals == plan.goals


def test_undo_restores_exactly_the_previous_plan(bench: Bench) -> None:
    plans = [bench.ready()]
    asks = PlanOverrides()
    for _ in range(3):
        asks = asks.dropping(plans[-1].moves[0].id)
        plans.append(bench.ask(asks))
    solves = len(bench.planner.asked)
    for plan in reversed(plans[:-1]):
        bench.loop.proposals.undo()
        assert bench.loop.view.plan is plan
        assert not bench.loop.view.proposed.awaited
    assert bench.loop.view.proposed.asks == PlanOverrides()
    assert len(bench.planner.asked) == solves
    bench.loop.approve(plans[0].hash, by="ann")
    assert bench.loop.wait(lambda _: bench.executor.plans == [plans[0]], MANY_S)


def test_an_effort_has_goals_and_limits_of_its_own_and_undo_ends_it(bench: Bench) -> None:
    before = bench.ready()
    for effort in (Effort.QUICK, Effort.BEST):
        number = len(bench.planner.asked)
        bench.loop.proposals.ask(PlanOverrides().at_effort(effort))
        assert bench.loop.wait(
            lambda _, n=number: len(bench.planner.asked) > n,  # type: ignore[misc]  # a default binds it
            MANY_S,
        )
        _, goals = bench.planner.asked[-1]
        assert (goals.budgets.replica_moves == 0) == (effort is Effort.QUICK)
        assert bench.planner.limits[-1] == limits_at(bench.planner.limits[0], effort)
        bench.loop.proposals.undo()
        assert bench.loop.view.plan is before
        assert bench.loop.view.proposed.asks == PlanOverrides()


def test_undo_restores_the_plan_from_before_a_request_that_was_not_answered(bench: Bench) -> None:
    before = bench.ready()
    bench.planner.held = True
    first = PlanOverrides().pinning(pin(3, 3))
    bench.loop.proposals.ask(first)
    bench.loop.proposals.ask(first.pinning(pin(4, 3)))
    bench.loop.proposals.undo()
    assert bench.loop.view.proposed.asks == first
    bench.loop.proposals.undo()
    assert bench.loop.view.plan is before
    assert not bench.loop.view.proposed.awaited


def test_undo_keeps_the_frontier_whose_point_was_picked_and_no_other(bench: Bench) -> None:
    before = bench.ready()
    bench.trace()
    bench.loop.proposals.choose(1)
    bench.loop.proposals.undo()
    view = bench.loop.view
    assert view.plan is before
    assert view.proposed.traced is not None
    assert point_of(view.proposed.traced, before) is not None
    bench.ask(PlanOverrides().dropping(before.moves[0].id))
    bench.trace()
    bench.loop.proposals.undo()
    assert bench.loop.view.proposed.traced is None


def test_undo_replans_where_the_cluster_has_changed(bench: Bench) -> None:
    before = bench.ready()
    bench.ask(PlanOverrides().dropping(before.moves[0].id))
    bench.observer.snapshots[:] = [cluster([2] * 7 + [1], [MB] * 8)]
    assert bench.loop.wait(
        lambda view: (
            view.plan is not None
            and view.snapshot is not None
            and view.plan.snapshot_fingerprint == view.snapshot.fingerprint
            and view.snapshot.replicas(7) == (1,)
        ),
        MANY_S,
    )
    bench.loop.proposals.undo()
    plan = bench.ready(PlanOverrides())
    assert plan.snapshot_fingerprint != before.snapshot_fingerprint


def test_the_log_names_who_requested_each_edit(bench: Bench) -> None:
    first = bench.ready()
    pid = first.moves[0].id
    bench.ask(bench.loop.view.proposed.asks.dropping(pid))
    bench.loop.proposals.undo()
    bench.ready()
    bench.ask(bench.loop.view.proposed.asks.pinning(pin(0, 1)))
    bench.ask(bench.loop.view.proposed.asks.with_goals(Goals(move_price=1e-9)))
    bench.loop.plan_again()
    bench.loop.proposals.suppose(Scenario(remove=(BrokerId(3),)))
    bench.loop.proposals.suppose(None)
    bench.ready()
    bench.trace()
    bench.loop.proposals.choose(1)
    who = bench.loop.settings.operator
    messages = [x.text for x in bench.loop.view.log if x.text.startswith(f"{who}: ")]
    assert messages[:-1] == [
        f"{who}: {message}"
        for message in (
            f"remove the move of {pid}",
            f"undo: remove the move of {pid}",
            "pin orders-0 on broker 1",
            "edit the goals",
            "replan",
            "what-if: broker 3 removed",
            "end the what-if",
            "trace the frontier",
        )
    ]
    assert messages[-1].startswith(f"{who}: choose the point of the frontier with ")


def test_a_pinned_partition_goes_where_it_is_pinned(bench: Bench) -> None:
    bench.ready()
    plan = bench.ask(PlanOverrides().pinning(pin(3, 3)))
    (move,) = (m for m in plan.moves if m.id == of_orders(3))
    assert move.replicas_after == (3,)
    assert bench.loop.view.proposed.asks.words() == ("orders-3 on broker 3",)


def test_a_topics_own_placement_binds_plans_and_their_warnings(tmp_path: Path) -> None:
    value = '{"version": 1, "replicas": [{"count": 1, "constraints": {"rack": "c"}}]}'
    with looping(placed_by(UNEVEN, value), tmp_path) as bench:
        plan = bench.ready()
        assert {m.replicas_after for m in plan.moves} == {(3,)}
        assert len(plan.moves) == 8
        (rule,) = plan.goals.placements
        assert rule.topics.exact == (ORDERS,)
        bench.loop.proposals.suppose(Scenario(add=(AddedBrokers(count=1, rack="c"),)))
        assert bench.loop.wait(lambda v: v.proposed.supposed is not None, MANY_S)
        assert bench.loop.wait(lambda _: len(bench.planner.asked) > 1, MANY_S)
        assert all(goals.placements == (rule,) for _, goals in bench.planner.asked)
    with looping(placed_by(UNEVEN, "no JSON"), tmp_path) as bench:
        plan = bench.ready()
        assert not plan.goals.placements
        assert any("of topic orders is ignored" in message for message in plan.warnings)


def test_a_second_pin_of_a_partition_replaces_the_first() -> None:
    assert PlanOverrides().pinning(pin(3, 1)).pinning(pin(3, 3)).pins == (pin(3, 3),)


def test_edited_goals_are_those_of_the_plan(bench: Bench) -> None:
    bench.ready()
    goals = EASY.model_copy(update={"move_price": 0.7})
    assert bench.ask(PlanOverrides(goals=goals)).goals.move_price == 0.7


def test_a_plan_for_one_topic_balances_its_counts(bench: Bench) -> None:
    bench.ready()
    plan = bench.ask(PlanOverrides(topics=(ORDERS,)))
    balanced = {goal.resource for goal in plan.goals.balance}
    assert {Count.TOPIC_REPLICAS, Count.TOPIC_LEADERS} <= balanced


@pytest.mark.parametrize(
    ("asks", "message"),
    [
        (PlanOverrides(topics=(TopicName("oders"),)), "no topic 'oders'; did you mean 'orders'"),
        (
            PlanOverrides().pinning(Pin(topics=Names(exact=(ORDERS,)), brokers=(BrokerId(9),))),
            "no broker 9; the cluster has: 1, 2, 3",
        ),
        (
            PlanOverrides().dropping(of_orders(0)),
            "the move of orders-0 cannot be removed: a draining",
        ),
    ],
)
def test_an_impossible_request_is_refused_with_a_reason(
    tmp_path: Path, asks: PlanOverrides, message: str
) -> None:
    with looping(with_state(UNEVEN, 2, BrokerState.DRAINING), tmp_path) as bench:
        plan = bench.ready()
        with pytest.raises(ConfigError, match=message):
            bench.loop.proposals.ask(asks)
        assert bench.loop.view.plan == plan
        assert bench.loop.view.proposed.asks == PlanOverrides()


def test_the_cluster_is_watched_while_the_solver_works(bench: Bench) -> None:
    bench.planner.held = True
    assert bench.loop.wait(lambda view: view.phase is Phase.SOLVING, MANY_S)
    later = cluster([2] * 8, [MB] * 8, taken_at_ms=UNEVEN.header.taken_at_ms + 1000)
    bench.observer.snapshots[:] = [later]

    def seen(view: LoopView) -> bool:
        return view.snapshot is not None and view.snapshot.header == later.header

    assert bench.loop.wait(seen, MANY_S)
    assert bench.loop.view.phase is Phase.SOLVING


def test_the_best_so_far_is_shown_and_can_be_used(bench: Bench) -> None:
    bench.planner.held = True

    def has_one(view: LoopView) -> bool:
        solving = view.proposed.solving
        return solving is not None and solving.bound is not None and solving.moves > 0

    assert bench.loop.wait(has_one, MANY_S)
    bench.loop.proposals.use_best()
    plan = bench.ready()
    assert plan.moves
    assert len(bench.planner.asked) == 1


def test_a_request_during_a_solve_restarts_it_and_the_first_result_is_not_shown(
    bench: Bench,
) -> None:
    bench.planner.held = True
    assert bench.planner.waits.wait(MANY_S)
    bench.planner.held = False
    asks = PlanOverrides().dropping(of_orders(0))
    plan = bench.ask(asks)
    assert of_orders(0) not in [m.id for m in plan.moves]


def test_a_plan_of_another_placement_is_refused_with_what_changed(bench: Bench) -> None:
    plan = bench.ready()
    moved = plan.moves[0].id
    bench.planner.held = True
    homes = [2] * 8
    homes[moved.partition] = 3
    bench.observer.snapshots[:] = [cluster(homes, [MB] * 8)]
    assert bench.loop.wait(lambda view: bool(view.proposed.changes), MANY_S)
    message = f"{moved} is on 3, it was on 2"
    assert bench.loop.view.proposed.changes == (message,)
    with pytest.raises(PlanOutdated, match=message):
        bench.loop.approve(plan.hash, by="ann")
    assert bench.executor.plans == []


@pytest.mark.parametrize(
    "state", [BrokerState.CORDONED, BrokerState.EXCLUDED, BrokerState.DRAINING]
)
def test_a_broker_taken_out_of_service_outdates_a_plan(bench: Bench, state: BrokerState) -> None:
    """Placement and fingerprint are unchanged."""
    plan = bench.ready()
    bench.planner.held = True
    changed = with_state(UNEVEN, 3, state)
    assert changed.fingerprint == UNEVEN.fingerprint
    bench.observer.snapshots[:] = [changed]
    message = f"broker 3 is {state}, it was in service"
    assert bench.loop.wait(lambda view: view.proposed.changes == (message,), MANY_S)
    with pytest.raises(PlanOutdated, match=message):
        bench.loop.approve(plan.hash, by="ann")
    bench.planner.held = False
    bench.planner.never.set()
    assert bench.loop.wait(
        lambda view: view.plan is not None and view.plan.hash != plan.hash, MANY_S
    )
    after = bench.ready()
    assert not any(3 in m.added for m in after.moves)


def test_a_broker_that_is_cordoned_while_the_solver_works_outdates_the_plan(bench: Bench) -> None:
    bench.ready()
    bench.planner.held = True
    bench.planner.waits.clear()
    bench.loop.proposals.want()
    assert bench.planner.waits.wait(MANY_S)
    changed = with_state(UNEVEN, 3, BrokerState.CORDONED)
    bench.observer.snapshots[:] = [changed]
    assert bench.loop.wait(lambda view: view.snapshot is changed, MANY_S)
    bench.planner.held = False
    bench.planner.waits.clear()
    assert bench.planner.waits.wait(MANY_S)
    assert bench.planner.asked[-1][0] is changed


def test_a_broker_that_is_no_longer_new_does_not_outdate_a_plan() -> None:
    plan = solve(UNEVEN, EASY, WORK).best
    assert plan is not None
    assert changes(UNEVEN, with_state(UNEVEN, 3, BrokerState.NEW), plan) == ()


def test_other_placement_constraints_outdate_a_plan(bench: Bench) -> None:
    plan = bench.ready()
    now = constrained(UNEVEN, a=1)
    message = ("the placement constraints of topic orders changed",)
    assert changes(UNEVEN, now, plan) == message
    assert changes(now, UNEVEN, plan) == message
    assert changes(now, constrained(UNEVEN, a=1), plan) == ()
    bench.observer.snapshots[:] = [now]
    assert bench.loop.wait(
        lambda view: view.plan is not None and bool(view.plan.goals.placements), MANY_S
    )


def test_a_point_of_the_frontier_becomes_the_plan_by_its_own_hash(bench: Bench) -> None:
    asked = bench.ready()
    answers = bench.trace().answers
    point, fewer = next((i, r.best) for i, r in enumerate(answers) if r is not None)
    assert fewer is not None
    assert fewer.hash != asked.hash
    bench.loop.proposals.choose(point)
    assert bench.ready().hash == fewer.hash
    assert bench.loop.view.proposed.asks.words()[0].startswith("frontier point with ")
    with pytest.raises(GuardrailRefused, match="replaced"):
        bench.loop.approve(asked.hash, by="ann")
    bench.loop.approve(fewer.hash, by="ann")
    assert bench.loop.wait(lambda view: view.phase is Phase.SETTLING, MANY_S)
    assert bench.executor.plans == [fewer]
    assert bench.loop.view.proposed.asks == PlanOverrides()


def test_tracing_a_frontier_can_be_stopped_with_its_points_so_far(tmp_path: Path) -> None:
    snapshot = synthetic(10, 500, rf=3, seed=1)
    hours = SolveLimits(work=100_000.0)
    with looping(snapshot, tmp_path, hours) as bench:
        bench.planner.held = True
        assert bench.loop.wait(lambda view: view.snapshot is not None, MANY_S)
        bench.loop.proposals.trace()

        def has_a_point(view: LoopView) -> bool:
            tracing = view.proposed.tracing
            return tracing is not None and tracing.moves > 0

        assert bench.loop.wait(has_a_point, MANY_S)
        bench.loop.proposals.use_best()
        assert bench.loop.wait(lambda view: view.proposed.traced is not None, MANY_S)
        result = bench.loop.view.proposed.traced
        assert result is not None
        assert result.frontier.limited_by == "stopped"
        assert len(result.frontier.points) > 1


def test_the_cluster_as_it_is_and_an_outdated_point_cannot_be_chosen(bench: Bench) -> None:
    bench.ready()
    assert bench.trace().answers[0] is None
    with pytest.raises(ConfigError, match="the current placement"):
        bench.loop.proposals.choose(0)
    bench.observer.snapshots[:] = [cluster([2] * 7 + [1], [MB] * 8)]
    assert bench.loop.wait(lambda view: bool(view.proposed.changes), MANY_S)
    with pytest.raises(ConfigError, match="trace it again"):
        bench.loop.proposals.choose(1)


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "more brokers": lambda: Scenario(add=(AddedBrokers(count=1),)),
    "a broker drained": lambda: Scenario(remove=(BrokerId(2),)),
}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_a_what_if_is_planned_and_can_never_be_approved(
    bench: Bench, scenario: Callable[[], Scenario]
) -> None:
    real = bench.ready()
    bench.loop.proposals.suppose(scenario())
    supposed = bench.what_if()
    assert supposed.answer is not None
    assert supposed.answer.plan is not None
    assert supposed.words == scenario().words()
    with pytest.raises(GuardrailRefused):
        bench.loop.approve(supposed.answer.plan.hash, by="ann")
    assert bench.loop.view.plan == real
    bench.loop.proposals.suppose(None)
    assert bench.loop.view.proposed.supposed is None


def test_the_best_what_if_so_far_can_be_used_while_the_real_solve_continues(bench: Bench) -> None:
    bench.ready()
    bench.planner.held = True
    bench.loop.proposals.want()
    bench.loop.proposals.suppose(SCENARIOS["a broker drained"]())

    def both_solve(view: LoopView) -> bool:
        supposed = view.proposed.supposed
        thought = supposed.solving if supposed is not None else None
        return bool(thought and thought.moves and view.proposed.solving)

    assert bench.loop.wait(both_solve, MANY_S)
    bench.loop.proposals.use_best()
    bench.what_if()
    solving = bench.loop.view.proposed.solving
    assert solving is not None
    assert not solving.stopping
    assert bench.executor.plans == []


def test_a_failed_what_if_is_reported_and_the_loop_continues(bench: Bench) -> None:
    real = bench.ready()
    bench.planner.fault = PlimsollError("the model is wrong")
    bench.loop.proposals.suppose(SCENARIOS["more brokers"]())
    message = "the what-if could not be planned: the model is wrong"
    assert bench.loop.wait(lambda view: view.log[-1].text == message, MANY_S)
    view = bench.loop.view
    assert view.proposed.supposed is None
    assert (view.phase, view.plan) == (Phase.PLAN_READY, real)


def test_a_recorder_does_not_block_the_publisher_of_a_view(bench: Bench, tmp_path: Path) -> None:
    """Otherwise they could wait for each other, and a run could not be stopped."""
    writes, released = threading.Event(), threading.Event()

    def clock() -> float:
        writes.set()
        assert released.wait(MANY_S)
        return 0.0

    loop = bench.loop
    released.set()
    recorder = ScreenRecorder(loop, tmp_path / "screen.jsonl", clock=clock)
    loop._subscribers.remove(recorder._see)
    released.clear()
    writes.clear()
    view = replace(loop.view, phase=Phase.FAILED)
    writer = threading.Thread(target=recorder._see, args=(view,))
    writer.start()
    assert writes.wait(MANY_S)
    with loop._changed:
        released.set()
        writer.join(MANY_S)
        assert not writer.is_alive()
    recorder.close()


def test_an_impossible_scenario_is_refused_with_a_reason(bench: Bench) -> None:
    bench.ready()
    with pytest.raises(ConfigError, match="no broker 9 to remove; known: 1, 2, 3"):
        bench.loop.proposals.suppose(Scenario(remove=(BrokerId(9),)))


def test_an_answer_without_moves_has_its_reasons(bench: Bench) -> None:
    bench.ready()
    expensive = EASY.model_copy(update={"move_price": 100.0, "tolerance_first": False})
    bench.loop.proposals.ask(PlanOverrides(goals=expensive))

    def is_answered(view: LoopView) -> bool:
        result = view.proposed.result
        return result is not None and result.status is PlanStatus.NO_IMPROVEMENT

    assert bench.loop.wait(is_answered, MANY_S)
    result = bench.loop.view.proposed.result
    assert result is not None
    assert "gains more than its cost" in " ".join(result.reasons)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_one_point_of_the_frontier_is_always_the_plan(tmp_path: Path, seed: int) -> None:
    """Also after a move was removed; points keep their order along the curve."""
    loads = np.random.default_rng(seed).pareto(1.5, 9) + 0.2
    with looping(cluster([2] * 9, [MB * x for x in loads]), tmp_path) as bench:
        plan = bench.ready()
        for asks in (PlanOverrides(), PlanOverrides().dropping(plan.moves[0].id)):
            plan = bench.ask(asks)
            result = bench.trace()
            at = point_of(result, plan)
            assert at is not None
            points = result.frontier.points
            assert len(points) == len(result.answers)
            assert points[at].moves == sum(len(m.added) for m in plan.moves)
            assert [p.cost for p in points] == sorted(p.cost for p in points)
            for named in (result.frontier.knee, result.frontier.chosen):
                assert named is None or result.answers[named] is not None


def test_partitions_that_cannot_leave_a_dead_broker_do_not_prevent_a_plan(tmp_path: Path) -> None:
    dead = broker(3, state=BrokerState.DEAD)
    rows = [Row(replicas=(1,), load=(MB, MB))] * 6
    rows.append(Row(replicas=(1, 2, 3), load=(MB, MB)))
    snapshot = small([broker(1), broker(2), dead], rows)
    with looping(snapshot, tmp_path) as bench:
        plan = bench.ready()
        assert plan.moves
        assert "orders-6" in " ".join(plan.warnings)
