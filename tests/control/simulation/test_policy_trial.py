"""The loop's own code on a simulated cluster: what it does, when, and the same every time."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from control.settings.auto_limits import EAGER, AutoLimits
from control.settings.trigger_table import Response, TriggerTable
from control.simulation.policy_trial import Trial, TrialPolicy, try_policy
from control.simulation.trials import try_pickled
from lab.synthetic.shape import ClusterShape
from lab.time_lapse.broker_faults import BrokerFault
from lab.time_lapse.load_shapes import shapes_of
from lab.time_lapse.time_lapse_cluster import Course
from lab.time_lapse.varying_loads import SteadyLoads, synthetic_start
from model.goals.goals import Goals, SolveLimits
from model.snapshot.snapshot import Snapshot

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
    assert outcome.runs >= 1
    assert outcome.moves > 0
    assert outcome.hours[-1].imbalance < 0.5 * outcome.worst.imbalance
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


def test_equal_simulations_are_equal_here_and_pickled() -> None:
    wanted, given = trial(skewed(), 4, "slow:1@1h+1h", "follow", "crush", "sawtooth"), policy()
    first, second = try_policy(given, wanted), try_policy(given, wanted)
    shipped = pickle.loads(try_pickled(pickle.dumps(wanted), pickle.dumps(given)))  # noqa: S301
    assert first == second == shipped


def test_regret_is_what_a_plan_for_the_day_would_have_gained() -> None:
    idle = try_policy(policy(triggers=EVERY_TRIGGER_OFF), trial(skewed(), 24))
    (day,) = idle.days
    assert 0.5 * day.imbalance < day.regret <= day.imbalance


@pytest.mark.parametrize("shape", ["swap", "sawtooth"])
def test_loads_that_are_hard_to_balance_undo_no_moves(shape: str) -> None:
    """Neither replicas nor leaders return within the return window."""
    outcome = try_policy(policy(), trial(skewed(), 24, "", shape))
    assert outcome.leader_changes > 0
    assert outcome.undone == 0


def test_memory_holds_no_more_than_a_day_of_moves() -> None:
    """Turns and runs leave nothing behind but figures of hours and days."""
    outcome = try_policy(policy(), trial(start(), 24 * 3, "", "sawtooth"))
    assert (len(outcome.days), len(outcome.hours)) == (3, 72)
    assert np.isclose(sum(d.outside for d in outcome.days) / 3, outcome.outside)
