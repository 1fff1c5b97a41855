"""Grids of what-if scenarios: how they are typed, and what they answer."""

import pytest

from control.planning.scenario_grid import grid_of, solve_grid
from model.errors import ConfigError
from model.goals.goals import SolveLimits
from model.ids import BrokerId
from model.plan.plan import PlanStatus
from model.snapshot.snapshot import Snapshot
from model.snapshot.what_if import Scenario, suppose
from solver.search.observer import SolveObserver
from solver.solve import solve
from solver.studies.solve_tasks import solve_in_turn
from tests.support.solver.exact_oracle import Row, broker, cluster, goals

WORK = SolveLimits(work=1.0)


def uneven() -> Snapshot:
    brokers = [broker(b, capacity=20.0) for b in range(3)]
    return cluster(brokers, [Row(replicas=(b % 2,), load=(1.0 + b, 2.0)) for b in range(6)])


def test_every_combination_is_a_scenario_and_the_last_axis_changes_fastest() -> None:
    grid = grid_of(
        ["add-broker=none,2:r", "traffic=none,1.5:orders"], Scenario(remove=(BrokerId(3),))
    )
    assert [scenario.words() for scenario in grid] == [
        "broker 3 removed",
        "broker 3 removed, traffic of topics orders x 1.5",
        "2 brokers added in rack r, broker 3 removed",
        "2 brokers added in rack r, broker 3 removed, traffic of topics orders x 1.5",
    ]


def test_values_add_to_what_every_scenario_has() -> None:
    always = Scenario(remove=(BrokerId(0),), lose_racks=("b",))
    grid = grid_of(["remove-broker=0,2", "lose-rack=a"], always)
    assert [(s.remove, s.lose_racks) for s in grid] == [((0,), ("a", "b")), ((0, 2), ("a", "b"))]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (["brokers=1"], "no axis 'brokers'; axes are add-broker, remove-broker, traffic"),
        (["traffic"], "give traffic=VALUE,VALUE..., such as traffic=none,1.5,2"),
        (["traffic="], "give traffic=VALUE"),
        (["traffic=1,,2"], "give traffic=VALUE"),
        (["traffic=x"], "--grid traffic 'x' is not valid"),
        (["add-broker=0"], "--grid add-broker '0' is not valid"),
        (["add-broker=10001"], "a count of 1 to 10,000"),
        (["remove-broker=x"], "--grid remove-broker 'x' is not a broker id"),
        (["traffic=1", "traffic=2"], "--grid traffic is given twice"),
        (["traffic=" + ",".join(["1"] * 1001)], "the grid has 1,001 scenarios; at most 1,000"),
    ],
)
def test_an_invalid_axis_is_refused(axes: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        grid_of(axes, Scenario())
    assert message in str(caught.value)


def test_each_cell_has_the_plan_of_its_scenario() -> None:
    scenarios = grid_of(["add-broker=none,1", "traffic=none,100"], Scenario())
    grid = solve_grid(uneven(), scenarios, goals(), WORK, SolveObserver(), solve_in_turn)
    assert [cell.scenario for cell in grid.cells] == list(scenarios)
    for cell in grid.cells:
        plan = solve(suppose(uneven(), cell.scenario), goals(), WORK).best
        assert plan is not None
        assert (cell.objective, cell.bound) == (plan.objective, plan.bound)
        assert cell.moves == len(plan.moves)
        spread = max(plan.spread(r, after=True) for r in ("net_in", "net_out"))
        assert cell.worst_deviation == pytest.approx(spread)
    # No plan brings a hundred times the traffic below the capacities of the two that hold it.
    assert [cell.over_limit for cell in grid.cells] == [0, 2, 0, 2]


def test_a_scenario_without_a_plan_has_its_reason() -> None:
    brokers = [broker(b, rack=r, capacity=20.0) for b, r in enumerate("ab")]
    rows = [Row(replicas=(0, 1), load=(15.0, 15.0)), Row(replicas=(1, 0), load=(1.0, 1.0))]
    scenarios = grid_of(["remove-broker=none,0"], Scenario())
    grid = solve_grid(
        cluster(brokers, rows), scenarios, goals(), WORK, SolveObserver(), solve_in_turn
    )
    assert [cell.status for cell in grid.cells][1] is PlanStatus.INFEASIBLE
    assert grid.cells[1].reasons
    assert grid.cells[1].moves is None


def test_an_unknown_broker_is_refused_before_anything_is_solved() -> None:
    with pytest.raises(ConfigError, match="no broker 9"):
        solve_grid(
            uneven(),
            grid_of(["remove-broker=9"], Scenario()),
            goals(),
            WORK,
            SolveObserver(),
            solve_in_turn,
        )
