"""`plimsoll explain`: a plan, a move, and a move that is not made."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from control.cli.commands.explain import explain as explain_command
from control.cli.exit_codes import Exit
from control.cli.invocation import Origin
from control.cli.output import Form
from control.settings.settings import Settings
from model.errors import ConfigError, PlanOutdated
from model.goals.goals import SolveLimits
from model.plan.plan import Plan, write_plan
from model.snapshot.file import write_snapshot
from solver.solve import solve
from tests.solver.search.test_leaders_only import mostly_led_by_one
from tests.support.control.loop_parts import MB, cluster
from tests.support.solver.exact_oracle import goals

Explain = Callable[..., str]


@pytest.fixture
def explain(folder: Path, capsys: pytest.CaptureFixture[str]) -> Explain:
    def run(
        move: str | None = None,
        *,
        to: int | None = None,
        snapshot: str = "uneven.json",
        output: Form = Form.TABLE,
    ) -> str:
        code = explain_command(
            folder / "plan.json",
            move,
            settings=Settings(),
            origin=Origin(snapshot=folder / snapshot),
            to=to,
            output=output,
        )
        assert code == Exit.DONE
        return capsys.readouterr().out

    return run


def document(text: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(text)
    return result


def test_the_whole_plan_has_one_line_per_move(explain: Explain, plan: Plan) -> None:
    lines = explain().splitlines()
    assert lines[0].startswith("optimal: 4 moves; imbalance 12 -> 0.0")
    for number, move in enumerate(plan.moves, 1):
        line = next(x for x in lines if str(move.id) in x)
        assert line.split()[:2] == [str(number), str(move.id)]
        assert line.endswith(move.reason_text)


def test_the_remaining_imbalance_is_split_among_its_causes(explain: Explain) -> None:
    """The parts sum to the whole."""
    result = document(explain(output=Form.JSON))
    parts = sum(part["deviation"] for part in result["left"])
    assert parts == pytest.approx(result["imbalance_after"], abs=1e-8)
    assert len(result["moves"]) == 4


def test_a_move_is_found_by_number_and_by_partition(explain: Explain, plan: Plan) -> None:
    first = plan.moves[0]
    assert explain("1") == explain(str(first.id))
    result = document(explain("1", output=Form.JSON))
    assert result["gain"] == first.gain
    assert result["relieved"] == 2
    assert {e["broker"] for e in result["effects"]} == {2, first.added[0]}


def test_a_move_shows_what_is_lost_without_it(explain: Explain) -> None:
    text = explain("1")
    assert "without it the imbalance score would rise by" in text
    (row,) = [r for r in text.splitlines() if r.split()[:3] == ["2", "bytes", "in"]]
    now, after, without = (float(row.split()[i]) for i in (3, 5, 7))
    assert now == 200.0
    assert abs(after) < without < now


def test_a_move_that_is_not_made_is_shown_with_its_cost(explain: Explain, plan: Plan) -> None:
    stays = next(i for i in range(8) if f"orders-{i}" not in _moved(plan))
    text = explain(f"orders-{stays}", to=1)
    assert text.startswith(
        f"why not orders-{stays} to broker 1?\n  allowed, and the imbalance score would"
    )
    result = document(explain(f"orders-{stays}", to=1, output=Form.JSON))
    assert result["not_made"][0]["cost"] > 0


def _moved(plan: Plan) -> set[str]:
    return {str(m.id) for m in plan.moves}


def test_an_unmoved_partition_is_compared_with_its_best_other_broker(
    explain: Explain, plan: Plan
) -> None:
    stays = next(i for i in range(8) if f"orders-{i}" not in _moved(plan))
    text = explain(f"orders-{stays}")
    assert text.startswith(f"orders-{stays} is not moved; the best of the other brokers:")
    costs = [
        document(explain(f"orders-{stays}", to=b, output=Form.JSON))["not_made"][0] for b in (1, 3)
    ]
    result = document(explain(f"orders-{stays}", output=Form.JSON))["not_made"][0]
    assert result["cost"] == min(c["cost"] for c in costs)


@pytest.mark.parametrize(
    ("move", "to", "message"),
    [
        ("9", None, "the plan has 4 moves; there is no number 9"),
        ("0", None, "there is no number 0"),
        ("ordes-1", None, "orders"),
        ("orders-99", None, "orders has no such partition; its partitions are 0 to 7"),
        ("order-1", None, "nor a partition like orders-7; did you mean 'orders'?"),
        ("orders", None, "orders is a topic; name one of its partitions: 0 to 7"),
        ("orders-1", 9, "there is no broker 9; there are 1, 2, 3"),
        (None, 1, "--to needs a partition"),
    ],
)
def test_an_unknown_move_is_a_usage_error(
    explain: Explain, move: str | None, to: int | None, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        explain(move, to=to)


def test_another_cluster_state_is_refused(explain: Explain, folder: Path) -> None:
    write_snapshot(folder / "other.json", cluster([3] * 8, [MB] * 8))
    with pytest.raises(PlanOutdated, match="brokers or assignment differ"):
        explain(snapshot="other.json")


def test_leader_changes_alone_and_remaining_limit_violations_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = mostly_led_by_one(random.Random(0), 4.0)
    plan = solve(snapshot, goals(0.001), SolveLimits(work=1.0)).best
    assert plan is not None
    write_plan(tmp_path / "plan.json", plan)
    write_snapshot(tmp_path / "state.json", snapshot)
    explain_command(
        tmp_path / "plan.json", settings=Settings(), origin=Origin(snapshot=tmp_path / "state.json")
    )
    output = capsys.readouterr().out
    assert plan.leaders_only_text
    assert plan.leaders_only_text in output
    assert "broker 1 stays over its limit of bytes out" in output
