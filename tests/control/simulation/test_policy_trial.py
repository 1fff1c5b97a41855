"""The loop's own code on a simulated cluster: what it does, when, and the same every time."""

import pickle
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from control.planning.planner import planner
from control.settings.auto_limits import EAGER, AutoLimits, unattended
from control.settings.trigger_table import Response, TriggerTable
from control.simulation.outcome import PolicyOutcome
from control.simulation.policy_trial import Trial, TrialPolicy, try_policy
from control.simulation.trials import try_pickled
from lab.synthetic.shape import ClusterShape
from lab.time_lapse.broker_faults import BrokerFault
from lab.time_lapse.load_shapes import shapes_of
from lab.time_lapse.time_lapse_cluster import Course, TimeLapseCluster
from lab.time_lapse.varying_loads import SteadyLoads, synthetic_start
from model.goals.goals import Goals, SolveLimits
from model.snapshot.snapshot import Snapshot, StorageKind
from model.stop_rules import Reaction, StopRules
from solver.report.result import Result

DAY_S = 86_400.0
HOUR_S = 3600.0
MIDNIGHT_MS = 1_767_571_200_000
EVERY_TRIGGER_OFF = TriggerTable(
    dead_broker=Response.OFF,
    over_capacity=Response.OFF,
    rule_violated=Response.OFF,
    empty_broker=Response.OFF,
    uneven_load=Response.OFF,
)


def start() -> Snapshot:
    return synthetic_start(ClusterShape(brokers=6, partitions=60, racks=3, rf=3), MIDNIGHT_MS, 1)


def skewed() -> Snapshot:
    """The same with a tenth of the load on all partitions that some brokers lead."""
    found = start()
    loads = found.partitions.loads.copy()
    loads[found.partitions.leader < 3] *= 0.1
    return Snapshot(found.header, replace(found.partitions, loads=loads))


def trial(snapshot: Snapshot, hours: float, faults: str = "", *shapes: str) -> Trial:
    length_s = hours * HOUR_S
    course = Course(
        start=snapshot,
        loads=SteadyLoads(snapshot.partitions.loads),
        shapes=shapes_of(shapes, snapshot, seed=1, length_s=length_s),
        faults=tuple(BrokerFault.parse(text) for text in faults.split()),
        step_s=600.0,
    )
    return Trial(course=course, length_s=length_s, solve=SolveLimits(work=0.05))


def policy(limits: AutoLimits = EAGER, **others: Any) -> TrialPolicy:
    fast = {"copy_rate": 1e12} | others
    return TrialPolicy(name="tested", limits=limits, goals=Goals(), **fast)


def test_a_skewed_cluster_is_balanced_and_then_left_alone() -> None:
    outcome = try_policy(policy(), trial(skewed(), 6))
    untouched = try_policy(policy(triggers=EVERY_TRIGGER_OFF), trial(skewed(), 1))
    assert outcome.runs == 1
    assert outcome.moves > 0
    assert outcome.hours[-1].imbalance < 0.01 * untouched.imbalance
    assert [hour.outside for hour in outcome.hours[1:]] == [0.0] * 5
    assert outcome.worst.at_ms == MIDNIGHT_MS
    assert outcome.hours[-1].at_ms == MIDNIGHT_MS + 5 * 3_600_000
    assert len(outcome.hours) == 6


def test_a_cluster_without_a_live_broker_is_outside_its_tolerance() -> None:
    every = " ".join(f"dead:{broker}@1h" for broker in range(6))
    outcome = try_policy(policy(triggers=EVERY_TRIGGER_OFF), trial(start(), 3, every))
    assert [hour.outside for hour in outcome.hours[1:]] == [1.0, 1.0]


def test_triggers_that_are_off_hold_back_all_the_time() -> None:
    outcome = try_policy(policy(triggers=EVERY_TRIGGER_OFF), trial(skewed(), 3))
    assert (outcome.runs, outcome.moves, outcome.outside) == (0, 0, 1.0)
    assert set(outcome.held) <= {"uneven_load = off", "over_capacity = off"}
    assert sum(held.seconds for held in outcome.held.values()) == pytest.approx(3 * HOUR_S)


@pytest.mark.parametrize("response", [Response.OFF, Response.ASK])
def test_a_slow_broker_is_treated_as_any_other_where_its_trigger_is_off(response: Response) -> None:
    """It took nothing, and the trigger that is off held the loop back."""
    given = policy(triggers=TriggerTable(slow_broker=response))
    outcome = try_policy(given, trial(skewed(), 2, "slow:4@0s+2h"))
    assert ("slow_broker = ask" in outcome.held) is (response is Response.ASK)
    assert "slow_broker = off" not in outcome.held


def test_internal_errors_of_the_planner_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    solves = list[Result]()

    def failing(*given: Any) -> Result:
        if len(solves) < 2:
            solves.append(planner(*given))
            raise ValueError("a defect")
        return planner(*given)

    outcome = try_policy(policy(), trial(skewed(), 3), plan=failing)
    assert (len(solves), outcome.runs > 0) == (2, True)
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert errors == ["tested: a solve failed: internal error: ValueError('a defect')"]


def test_a_pause_holds_back_the_second_run() -> None:
    slow = EAGER.model_copy(update={"replica_moves": 3, "leader_changes": 1, "pause": HOUR_S})
    outcome = try_policy(policy(slow), trial(skewed(), 3))
    assert 2 <= outcome.runs <= 3
    assert outcome.held["pause"].seconds > HOUR_S


def test_runs_per_day_are_counted_without_journals() -> None:
    once = EAGER.model_copy(update={"replica_moves": 3, "leader_changes": 1, "runs_per_day": 1})
    outcome = try_policy(policy(once), trial(skewed(), 26))
    assert outcome.runs == 2
    assert outcome.held["runs_per_day"].seconds > 20 * HOUR_S
    assert [day.runs for day in outcome.days] == [1, 1]


def test_a_dead_broker_is_emptied_after_its_threshold() -> None:
    healed = try_policy(policy(), trial(start(), 6, "dead:2@1h"))
    patient = try_policy(policy(dead_broker_after_s=5 * HOUR_S), trial(start(), 5.5, "dead:2@1h"))
    held = sum(start().partitions.replica_broker == 2)
    assert healed.moves >= held
    assert patient.held["dead_broker_after"].seconds > 4 * HOUR_S
    assert healed.stopped_runs == 0


def test_a_flapping_broker_causes_no_runs_of_its_own() -> None:
    calm = try_policy(policy(), trial(start(), 3))
    flapping = try_policy(policy(), trial(start(), 3, "flapping:2@1h+20m"))
    assert flapping.runs <= calm.runs + 2
    assert flapping.turns > calm.turns


@pytest.mark.slow
def test_equal_simulations_are_equal_here_and_pickled() -> None:
    wanted, given = trial(skewed(), 4, "slow:1@1h+1h", "follow", "crush", "sawtooth"), policy()
    first, second = try_policy(given, wanted), try_policy(given, wanted)
    shipped = pickle.loads(try_pickled(pickle.dumps(wanted), pickle.dumps(given)))  # noqa: S301
    assert first == second == shipped


def test_regret_is_what_a_plan_for_the_day_would_have_gained() -> None:
    idle = try_policy(policy(triggers=EVERY_TRIGGER_OFF), trial(skewed(), 24))
    (day,) = idle.days
    assert 0.5 * day.imbalance < day.regret <= day.imbalance


def test_a_policy_that_acts_at_once_regrets_no_more_than_its_imbalance() -> None:
    outcome = try_policy(policy(), trial(skewed(), 48))
    assert outcome.runs >= 1
    for day in outcome.days:
        assert day.regret <= day.imbalance


@pytest.mark.parametrize("shape", ["swap", "sawtooth"])
def test_loads_that_are_hard_to_balance_undo_no_moves(shape: str) -> None:
    """Neither replicas nor leaders return within the return window."""
    outcome = try_policy(policy(), trial(skewed(), 24, "", shape))
    assert outcome.leader_changes > 0
    assert outcome.undone == 0


def test_on_shared_storage_moves_return_within_a_day_only_where_that_is_configured() -> None:
    found = start()
    shared = [
        topic.model_copy(update={"storage": StorageKind.SHARED}) for topic in found.header.topics
    ]
    header = found.header.model_copy(update={"topics": tuple(shared)})
    swapping = trial(Snapshot(header, found.partitions), 24, "", "swap")
    hourly, daily = (
        try_policy(replace(policy(), goals=goals), swapping)
        for goals in (Goals(), unattended(Goals()))
    )
    assert hourly.undone > 0.01 * hourly.moves
    assert daily.moves > 0
    assert daily.undone == 0


def test_memory_holds_no_more_than_a_day_of_moves() -> None:
    """Turns and runs leave nothing behind but figures of hours and days."""
    outcome = try_policy(policy(), trial(start(), 24 * 3, "", "sawtooth"))
    assert (len(outcome.days), len(outcome.hours)) == (3, 72)
    assert np.isclose(sum(d.outside for d in outcome.days) / 3, outcome.outside)


def at(hours: float) -> datetime:
    """A time of the simulation, in local time."""
    return datetime.fromtimestamp(MIDNIGHT_MS / 1000 + hours * HOUR_S, UTC).astimezone()


def test_copies_that_outlast_the_simulation_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A very small throttle let it go on for years."""
    reached, advance = [], TimeLapseCluster.advance

    def recorded(cluster: TimeLapseCluster, to_s: float) -> None:
        reached.append(to_s)
        advance(cluster, to_s)

    monkeypatch.setattr(TimeLapseCluster, "advance", recorded)
    slow = policy(copy_rate=1e5, dead_broker_after_s=60.0)
    outcome = try_policy(slow, trial(start(), 1, "dead:3@60s+1h"))
    assert max(reached) == MIDNIGHT_MS / 1000 + HOUR_S
    assert (outcome.runs, outcome.stopped_runs) == (0, 0)


def test_moves_wait_for_the_hours_of_the_stop_rules() -> None:
    hours = f"{at(4):%H:%M}-{at(6):%H:%M}"
    outcome = try_policy(policy(stop_rules=StopRules(window_hours=hours)), trial(skewed(), 7))
    assert (outcome.runs, outcome.stopped_runs) == (1, 0)
    assert outcome.moves > 0
    assert [hour.outside for hour in outcome.hours[:4]] == [1.0] * 4
    assert outcome.hours[4].imbalance < outcome.hours[3].imbalance
    held = outcome.held["stop_rules.window"]
    assert held.times == 1
    assert held.seconds == pytest.approx(4 * HOUR_S, abs=120)


def test_after_the_end_of_the_window_no_move_begins() -> None:
    over = StopRules(window_end=at(0))
    paused = try_policy(policy(stop_rules=over), trial(skewed(), 3))
    assert (paused.moves, paused.outside) == (0, 1.0)
    assert paused.held["stop_rules.window"].seconds > 2.9 * HOUR_S
    ended = over.model_copy(update={"window": Reaction.STOP})
    stopped = try_policy(policy(stop_rules=ended), trial(skewed(), 3))
    assert (stopped.moves, stopped.stopped_runs) == (0, stopped.runs)
    assert stopped.runs > 1
    ignored = over.model_copy(update={"window": Reaction.OFF})
    assert try_policy(policy(stop_rules=ignored), trial(skewed(), 3)).moves > 0


def test_a_window_may_roll_a_run_back() -> None:
    one = EAGER.model_copy(update={"moves_in_flight": 1})
    slow = policy(one, copy_rate=1e7)
    whole = try_policy(slow, trial(skewed(), 3))
    back = StopRules(window_end=at(0.2), window=Reaction.ROLL_BACK)
    outcome = try_policy(replace(slow, stop_rules=back), trial(skewed(), 3))
    assert whole.undone == 0
    assert outcome.undone > 0
    assert outcome.hours[-1].outside == 1.0
    assert outcome.hours[-1].imbalance > whole.hours[-1].imbalance


def test_a_lost_broker_stops_or_pauses_a_run_as_the_rules_say() -> None:
    rules = "broker_lost", "offline", "under_replicated", "isr_shrink"
    few = EAGER.model_copy(update={"moves_in_flight": 1})

    def outcome(reaction: Reaction, broker: int) -> PolicyOutcome:
        stop_rules = StopRules.model_validate(dict.fromkeys(rules, reaction))
        given = policy(few, copy_rate=2e7, stop_rules=stop_rules)
        return try_policy(given, trial(skewed(), 3, f"dead:{broker}@3m+5m"))

    stopped, paused = outcome(Reaction.STOP, 5), outcome(Reaction.PAUSE, 5)
    assert (stopped.stopped_runs, paused.stopped_runs) == (1, 0)
    # Until it is back, and has been for `calm_s`.
    assert paused.held["stop_rules.broker_lost"].seconds == pytest.approx(330, abs=5)
    # A move in flight copies to this one.
    assert outcome(Reaction.PAUSE, 0).stopped_runs == 1


def test_an_urgent_trigger_overrides_a_run_that_waits_for_its_window() -> None:
    hours = f"{at(5):%H:%M}-{at(6):%H:%M}"
    rules = StopRules(window_hours=hours, broker_lost=Reaction.OFF, under_replicated=Reaction.OFF)
    outcome = try_policy(policy(stop_rules=rules), trial(skewed(), 5.5, "dead:2@1h"))
    assert outcome.stopped_runs == 1
    assert outcome.runs >= 2
