"""`plimsoll verify` confirms true claims and finds each kind of false claim."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from control.cli.commands.plan import plan as make_plan
from control.cli.commands.verify import verify as verify_plan
from control.cli.exit_codes import Exit
from control.cli.invocation import Origin
from control.cli.output import Form
from control.settings.settings import Settings
from control.settings.solve_table import SolveTable
from model.errors import ConfigError
from model.evaluate import evaluate
from model.exchange.reassignment import write_reassignment_json
from model.files import write_document
from model.plan.plan import Plan, read_plan, write_plan
from model.snapshot.file import write_snapshot
from model.snapshot.snapshot import BrokerState, Snapshot
from tests.support.control.loop_parts import MB, WORK, cluster
from tests.support.solver.exact_oracle import Row, broker, goals
from tests.support.solver.exact_oracle import cluster as small

Answer = dict[str, Any]


@pytest.fixture
def verify(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Answer]]:
    def run(
        name: str | None = "plan.json",
        *,
        snapshot: str = "uneven.json",
        reassignment: str | None = None,
        election: str | None = None,
        prove: bool = False,
        work: float | None = None,
    ) -> tuple[int, Answer]:
        code = verify_plan(
            folder / name if name else None,
            settings=Settings(solve=SolveTable(work=WORK.work)),
            origin=Origin(snapshot=folder / snapshot),
            reassignment=folder / reassignment if reassignment else None,
            election=folder / election if election else None,
            prove=prove,
            search_budget=work,
            output=Form.JSON,
        )
        return code, json.loads(capsys.readouterr().out)

    return run


Verify = Callable[..., tuple[int, Answer]]


def judged(answer: Answer) -> dict[str, bool | None]:
    return {c["name"]: c["holds"] for c in answer["claims"]}


def forged(folder: Path, plan: Plan, **changes: object) -> None:
    """A plan with other claims under a valid hash."""
    write_plan(folder / "forged.json", plan.model_copy(update=changes).seal())


def test_a_new_plan_is_verified(verify: Verify) -> None:
    code, answer = verify()
    assert code == Exit.DONE
    assert answer["holds"]
    assert False not in judged(answer).values()
    names = ["hash", "snapshot", "moves", "rules", "objective", "brokers", "gains"]
    assert list(judged(answer))[:7] == names


def test_the_bound_of_an_exact_search_can_be_proved_again(verify: Verify) -> None:
    code, answer = verify(prove=True)
    assert code == Exit.DONE
    assert judged(answer)["bound"] is True


def test_an_altered_file_is_found_by_its_hash(verify: Verify, folder: Path, plan: Plan) -> None:
    document = plan.model_dump(mode="json") | {"bound": 0.0}
    write_document(folder / "altered.json", document)
    code, answer = verify("altered.json")
    assert code == Exit.REFUSED
    assert judged(answer)["hash"] is False


def test_another_placement_is_found_by_its_fingerprint(verify: Verify, folder: Path) -> None:
    write_snapshot(folder / "other.json", cluster([3] * 8, [MB] * 8))
    code, answer = verify(snapshot="other.json")
    assert code == Exit.REFUSED
    assert judged(answer) == {"hash": True, "snapshot": False}


def test_other_loads_of_the_same_placement_are_found_by_the_objective(
    verify: Verify, folder: Path
) -> None:
    """The fingerprint does not include loads."""
    write_snapshot(folder / "later.json", cluster([2] * 8, [9 * MB] + [MB] * 7))
    code, answer = verify(snapshot="later.json")
    assert code == Exit.REFUSED
    assert judged(answer)["snapshot"] is True
    assert judged(answer)["objective"] is False


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"objective": 0.0}, "objective"),
        ({"objective_before": 9.0}, "objective"),
        ({"price_bound": 0.9}, "price bound"),
        ({"bound": 5.0}, "bound"),
        ({"levels": {"net_in": 1.0, "net_out": 1.0}}, "brokers"),
        ({"brokers": ()}, "brokers"),
    ],
)
def test_a_false_figure_is_found(
    verify: Verify, folder: Path, plan: Plan, changes: Answer, claim: str
) -> None:
    forged(folder, plan, **changes)
    code, answer = verify("forged.json")
    assert code == Exit.REFUSED
    assert judged(answer)["hash"] is True
    assert judged(answer)[claim] is False


def test_a_false_gain_is_found_with_its_move(verify: Verify, folder: Path, plan: Plan) -> None:
    first, *others = plan.moves
    boast = first.model_copy(update={"gain": 2 * first.gain})
    forged(folder, plan, moves=(boast, *others))
    _, answer = verify("forged.json")
    (messages,) = [c["words"] for c in answer["claims"] if c["name"] == "gains"]
    assert messages == f"the gains of {first.id} are not the increase of F without them"


def test_the_gain_of_a_move_that_makes_balance_worse_is_confirmed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pin forces a move out of the band: F is 0 without it, and large with it."""
    snapshot = small(
        [broker(1), broker(2), broker(3)],
        [Row(replicas=(n,), load=(2.9 + 0.07 * n, 0.1)) for n in (1, 2, 3)],
    )
    origin, plan = Origin(snapshot=tmp_path / "s.json"), tmp_path / "plan.json"
    pinned = {"topics": {"regex": (".*",)}, "partitions": (0, 1), "brokers": (2,)}
    settings = Settings(
        goals=goals(objective="band", pins=(pinned,)), solve=SolveTable(work=WORK.work)
    )
    write_snapshot(tmp_path / "s.json", snapshot)
    make_plan(settings=settings, origin=origin, out=plan)
    (move,) = read_plan(plan).moves
    assert move.gain < -1000
    capsys.readouterr()
    code = verify_plan(plan, settings=settings, origin=origin, output=Form.JSON)
    assert code == Exit.DONE, capsys.readouterr().out


def test_a_broken_rule_is_named(verify: Verify, folder: Path, plan: Plan) -> None:
    goals = plan.goals.model_copy(update={"replicas_per_broker": 1})
    forged(folder, plan, goals=goals)
    code, answer = verify("forged.json")
    (messages,) = [c["words"] for c in answer["claims"] if c["name"] == "rules"]
    assert code == Exit.REFUSED
    assert messages.startswith("replicas per broker: broker 1 would hold")


def test_a_bound_above_the_optimum_is_refuted_by_a_better_plan(
    verify: Verify, folder: Path, uneven: Snapshot, plan: Plan
) -> None:
    """Half a plan that claims to be optimal: another solve refutes it."""
    half = plan.moves[1:]
    value = evaluate(uneven, plan.goals, half).objective
    forged(folder, plan, moves=half, objective=value, bound=value)
    code, answer = verify("forged.json", prove=True)
    assert code == Exit.REFUSED
    (messages,) = [c["words"] for c in answer["claims"] if c["name"] == "bound"]
    assert "exists, under the claimed" in messages


def test_a_plan_of_kafkas_tools_is_judged_by_our_bound(
    verify: Verify, folder: Path, plan: Plan
) -> None:
    write_reassignment_json(folder / "stock", plan)
    code, answer = verify(reassignment="stock/reassignment.json")
    assert code == Exit.DONE
    assert answer["objective"] == plan.objective
    assert answer["bound"] >= plan.bound
    assert answer["violations"] == []


def test_a_reassignment_can_be_judged_without_a_plan(verify: Verify, folder: Path) -> None:
    """The bound then comes from a separate solve."""
    entry = {"topic": "orders", "partition": 0, "replicas": [1]}
    document = {"version": 1, "partitions": [entry]}
    write_document(folder / "theirs.json", document)
    code, answer = verify(None, reassignment="theirs.json")
    assert code == Exit.DONE
    assert answer["changes"] == 1
    assert answer["plimsoll_objective"] < answer["objective"] < answer["objective_before"]


def test_the_rules_that_a_reassignment_breaks_are_listed(verify: Verify, folder: Path) -> None:
    entry = {"topic": "orders", "partition": 0, "replicas": [1, 3]}
    write_document(folder / "t.json", {"version": 1, "partitions": [entry]})
    code, answer = verify(reassignment="t.json")
    assert code == Exit.REFUSED
    assert answer["violations"][0]["words"] == ("orders-0 would have 2 replicas, it has 1")


def test_an_election_without_a_reassignment_is_a_usage_error(verify: Verify) -> None:
    with pytest.raises(ConfigError, match="--election needs --reassignment"):
        verify(election="election.json")


def test_nothing_to_verify_is_a_usage_error(verify: Verify) -> None:
    with pytest.raises(ConfigError, match="name a plan file"):
        verify(None)


def test_the_table_lists_unchecked_claims(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = verify_plan(
        folder / "plan.json",
        settings=Settings(solve=SolveTable(work=WORK.work)),
        origin=Origin(snapshot=folder / "uneven.json"),
    )
    text = capsys.readouterr().out
    assert code == Exit.DONE
    assert "all checked claims hold" in text
    assert "no rule is broken" in text


def test_a_plan_with_a_dead_broker_names_deferred_partitions_and_is_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also with given goals, which defer nothing themselves."""
    dead = broker(3, state=BrokerState.DEAD)
    rows = [Row(replicas=(1,))] * 6
    snapshot = small([broker(1), broker(2), dead], [*rows, Row(replicas=(1, 2, 3))])
    origin, plan = Origin(snapshot=tmp_path / "s.json"), tmp_path / "plan.json"
    settings = Settings(goals=goals(), solve=SolveTable(work=WORK.work))
    write_snapshot(tmp_path / "s.json", snapshot)
    code = make_plan(settings=settings, origin=origin, out=plan, detailed_exitcode=True)
    assert code == Exit.MOVES_PROPOSED
    message = (
        "warning: 1 partition cannot be moved, because too few brokers may hold their "
        "replicas: orders-6"
    )
    printed = capsys.readouterr()
    assert message in printed.out
    assert message in printed.err
    code = verify_plan(plan, settings=settings, origin=origin, output=Form.JSON)
    assert code == Exit.DONE, capsys.readouterr().out
