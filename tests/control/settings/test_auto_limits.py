"""Limits of `--auto`."""

import pytest

from control.settings.auto_limits import (
    CONSERVATIVE,
    EAGER,
    AutoLimits,
    limits_named,
    refusals,
    unattended,
)
from model.errors import ConfigError
from model.goals.goals import Cooldown, Goals
from model.plan.plan import Plan
from model.snapshot.snapshot import StorageKind
from solver.solve import solve
from tests.support.control.loop_parts import EASY, MB, WORK, cluster


@pytest.fixture(scope="module")
def five_moves() -> Plan:
    """Eight equal partitions on one broker: five moves balance them."""
    plan = solve(cluster([2] * 8, [MB] * 8), EASY, WORK).best
    assert plan is not None
    assert len(plan.moves) == 5
    return plan


def test_a_plan_inside_every_limit_is_not_refused(five_moves: Plan) -> None:
    assert refusals(five_moves, EAGER) == ()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"replica_moves": 4}, "the plan has replica_moves = 5, the limit is 4"),
        ({"partitions_per_topic": 3}, "partitions_per_topic = 5, the limit is 3"),
        ({"min_gain": 0.999}, "less than min_gain (99.9 %)"),
    ],
)
def test_a_plan_outside_a_limit_is_refused_with_its_figure(
    five_moves: Plan, changed: dict[str, float], message: str
) -> None:
    limits = EAGER.model_copy(update=changed)
    (reason,) = refusals(five_moves, limits)
    assert message in reason


def test_bytes_count_against_their_limit(five_moves: Plan) -> None:
    copies = five_moves.model_copy(
        update={
            "moves": tuple(m.model_copy(update={"bytes_to_copy": 10}) for m in five_moves.moves)
        }
    )
    limits = EAGER.model_copy(update={"bytes": 49})
    assert refusals(copies, limits) == ("the plan has bytes = 50, the limit is 49",)


def test_nothing_returns_within_a_day_unless_cooldowns_are_set() -> None:
    goals = Goals()
    before, after = goals.cooldown, unattended(goals).cooldown
    assert {kind: rest.return_window_s for kind, rest in after.items()} == dict.fromkeys(
        StorageKind, 86_400
    )
    assert [rest.rest_s for rest in after.values()] == [rest.rest_s for rest in before.values()]
    own = Goals(cooldown={StorageKind.SHARED: Cooldown(rest_s=0, return_window_s=60)})
    assert unattended(own) is own


def test_configured_limits_override_the_built_in_ones() -> None:
    mine = CONSERVATIVE.model_copy(update={"replica_moves": 3})
    assert limits_named("conservative", {"conservative": mine}) is mine


def test_unknown_limits_are_named_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="'brave'; known: conservative, eager"):
        limits_named("brave", {})


def test_no_limit_of_a_run_has_a_default() -> None:
    optional = {n for n, f in AutoLimits.model_fields.items() if not f.is_required()}
    assert optional == {"partitions", "runs_per_day", "bytes_per_day", "effort"}


def test_a_day_allows_at_least_one_run() -> None:
    day = {"bytes_per_day": 10**12 - 1}
    with pytest.raises(ValueError, match="is less than bytes"):
        AutoLimits(**(EAGER.model_dump() | day))
    assert AutoLimits(**(EAGER.model_dump() | {"bytes_per_day": "1TB"})).bytes_per_day == 10**12
