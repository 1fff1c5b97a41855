"""Nonsensical input leads to a message or a valid plan, never to a traceback."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from control.cli.main import app
from tests.support.cli_offline import enter
from tests.support.cluster_files import described
from tests.support.paths import FIXTURES

PLACES = ((1, 2), (2, 1), (1, 2), (2, 3), (1, 3))
LONG = "a" * 249
Document = dict[str, Any]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a cluster as files."""
    enter(monkeypatch, tmp_path)
    write_topic("orders")
    Path("brokers.csv").write_text(brokers("alive", "alive", "alive"))
    return tmp_path


def write_topic(topic: str, places: tuple[tuple[int, ...], ...] = PLACES) -> None:
    Path("describe.txt").write_text(described(topic, places))
    Path("loads.csv").write_text(loads(topic, ["3e6"] * len(places)))


def loads(topic: str, rates: list[str]) -> str:
    lines = [f"{topic},{i},{rate},2e6,1e9\n" for i, rate in enumerate(rates)]
    return "".join(["topic,partition,net_in,net_out,disk\n", *lines])


def brokers(*states: str, racks: str = "abc") -> str:
    lines = [f"{i},{racks[i - 1]},{state}\n" for i, state in enumerate(states, 1)]
    return "".join(["id,rack,state\n", *lines])


def capacity(net_in: object) -> str:
    known = {"DISK": "100000", "CPU": "100", "NW_IN": net_in, "NW_OUT": "100000"}
    return json.dumps({"brokerCapacities": [{"brokerId": "-1", "capacity": known}]})


def run(*arguments: str) -> tuple[int, str]:
    """The exit code and all output; asserts no traceback and no internal error."""
    result = CliRunner().invoke(app, arguments)
    output = result.stdout + result.stderr
    assert "Traceback" not in output
    assert "internal error" not in output
    return result.exit_code, output


def plan(*options: str) -> tuple[int, str]:
    """Plan from the files; a resulting plan is verified at once."""
    cluster = ("--from", "describe.txt", "--loads", "loads.csv")
    source = (*cluster, "--brokers", "brokers.csv", *options)
    code, output = run("plan", *source, "--out", "plan.json")
    if code == 0:
        judged, claims = run("verify", "plan.json", *source)
        assert judged == 0, claims
    else:
        assert not Path("plan.json").exists()
    return code, output


def goals(text: str) -> tuple[int, str]:
    Path("goals.toml").write_text(text)
    return plan("--goals", "goals.toml")


def weights(first: str) -> str:
    second = '[[balance]]\nresource = "net_out"\n'
    return f'[[balance]]\nresource = "net_in"\nweight = {first}\n{second}'


@pytest.mark.parametrize("rate", ["NaN", "-1", "inf", "1e400", "1e19"])
def test_an_invalid_load_is_named_with_its_line(rate: str) -> None:
    Path("loads.csv").write_text(loads("orders", [rate, "1", "1", "1", "1"]))
    code, output = plan()
    assert code == 2
    assert "loads.csv, line 2: net_in is" in output


@pytest.mark.parametrize("rate", ["0", "1e-300", "1e15", "1e18"])
def test_any_other_load_gives_a_plan(rate: str) -> None:
    """A single partition may have more than all others together."""
    Path("loads.csv").write_text(loads("orders", [rate, "3e6", "2e6", "1e6", "1"]))
    assert plan()[0] == 0


def test_loads_of_zero_are_balanced() -> None:
    Path("loads.csv").write_text("topic,partition,net_in\norders,0,0\n")
    assert "already balanced" in plan()[1]


@pytest.mark.parametrize("state", ["draining", "dead"])
def test_removing_all_brokers_is_infeasible(state: str) -> None:
    Path("brokers.csv").write_text(brokers(state, state, state))
    code, output = plan()
    assert code == 4
    assert "must be emptied, but no alive broker is left" in output


@pytest.mark.parametrize("size", [0, "0", "-1", "NaN", "1e400", None, []])
def test_an_invalid_capacity_is_named(size: object) -> None:
    Path("capacity.json").write_text(capacity(size))
    code, output = plan("--capacity", "capacity.json")
    assert code == 2
    assert "capacity.json: brokerId -1 (the default): NW_IN is" in output


def test_a_partition_larger_than_any_broker_is_not_moved() -> None:
    Path("capacity.json").write_text(capacity("100"))
    assert plan("--capacity", "capacity.json")[0] == 0


def test_a_partition_too_large_for_any_broker_that_must_move_is_reported() -> None:
    Path("capacity.json").write_text(capacity("100"))
    Path("brokers.csv").write_text(brokers("draining", "alive", "alive"))
    code, output = plan("--capacity", "capacity.json")
    assert code == 4
    assert "no placement keeps every rule" in output


def test_an_unknown_broker_in_a_replica_list_is_named() -> None:
    Path("brokers.csv").write_text(brokers("alive", "alive"))
    code, output = plan()
    assert code == 2
    assert "orders-3 lies on broker 3, which is not in brokers.csv" in output


def test_a_broker_twice_in_a_replica_list_is_named() -> None:
    write_topic("orders", ((1, 1), (1, 2)))
    code, output = plan()
    assert code == 2
    assert "orders-0 has the replicas '1,1'" in output


@pytest.mark.parametrize("rule", ["spread", "even", "off"])
def test_more_replicas_than_racks_are_planned(rule: str) -> None:
    Path("brokers.csv").write_text(brokers("alive", "alive", "alive", racks="aaa"))
    assert goals(f'rack_rule = "{rule}"\n')[0] == 0


@pytest.mark.parametrize("weight", ["-1.0", "nan", "inf", "1e10"])
def test_an_invalid_weight_is_rejected(weight: str) -> None:
    code, output = goals(weights(weight))
    assert code == 2
    assert "goals.toml" in output
    assert "balance.0.weight" in output


@pytest.mark.parametrize("weight", ["0.0", "1e-300", "1e9"])
def test_weights_may_be_far_apart(weight: str) -> None:
    assert goals(weights(weight))[0] == 0


@pytest.mark.parametrize("price", ["1e-300", "1e9"])
def test_the_cost_of_a_move_may_have_any_value(price: str) -> None:
    assert goals(f"move_price = {price}\n")[0] == 0


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('[[pins]]\ntopics = { exact = ["orders"] }\nbrokers = [77]\n', "orders"),
        (
            '[[pins]]\ntopics = { exact = ["orders"] }\nbrokers = [1, 2]\n'
            '[[pins]]\ntopics = { prefix = ["o"] }\nbrokers = [3]\n',
            "orders",
        ),
        (
            '[[placements]]\ntopics = { prefix = [""] }\n'
            "placement = { version = 1, replicas = [{ count = 2, "
            'constraints = { rack = "z" } }] }\n',
            "no broker is in rack 'z' (racks: a, b and c)",
        ),
        (
            '[[placements]]\ntopics = { prefix = [""] }\n'
            "placement = { version = 1, replicas = [{ count = 2, "
            'constraints = { rack = "a" } }, { count = 1, '
            'constraints = { rack = "z" } }] }\n',
            "orders",
        ),
    ],
    ids=["an unknown broker", "two pins", "an unknown rack", "too many"],
)
def test_contradictory_rules_are_named(text: str, name: str) -> None:
    code, output = goals(text)
    assert code == 4
    assert name in output


def test_a_regular_expression_cannot_exhaust_the_processor() -> None:
    write_topic(LONG)
    assert goals('excluded_topics = ["(a+)+$b", "(.*a){30}b"]\n')[0] == 0


@pytest.mark.parametrize("expression", ["(", "(a{1000}){1000}", "(?=a)", "\\\\1"])
def test_an_invalid_regular_expression_is_named(expression: str) -> None:
    code, output = goals(f'excluded_topics = ["{expression}"]\n')
    assert code == 2
    assert "is not a valid regular expression" in output


@pytest.mark.parametrize("objective", ["variance", "band"])
def test_two_partitions_on_a_thousand_brokers_are_planned(objective: str) -> None:
    write_topic("orders", ((1, 2), (1, 2)))
    lines = "".join(f"{i},r{i % 7},\n" for i in range(1, 1001))
    Path("brokers.csv").write_text(f"id,rack,state\n{lines}")
    code, output = goals(f'objective = "{objective}"\n')
    assert code == 0
    assert "nothing is balanced" in output


# ---- snapshots


def snapshot(change: Callable[[Document, Document], object]) -> tuple[int, str]:
    """Plan a snapshot of eight partitions on broker 2 of three, altered."""
    fixture = FIXTURES / "tutorial.json"
    document = json.loads(fixture.read_text())
    change(document["header"], document["partitions"])
    Path("s.json").write_text(json.dumps(document))
    code, output = run("plan", "--snapshot", "s.json", "--out", "plan.json")
    if code == 0:
        assert run("verify", "plan.json", "--snapshot", "s.json")[0] == 0
    return code, output


@pytest.mark.parametrize("load", [-1.0, 1e31, "x", True])
def test_an_invalid_load_of_a_snapshot_is_named(load: object) -> None:
    code, output = snapshot(lambda _, rows: rows["loads"][0].__setitem__(0, load))
    assert code == 2
    assert "orders-0" in output or "partitions.loads.0.0" in output


@pytest.mark.parametrize("load", [float("nan"), float("inf")])
def test_a_number_outside_json_is_rejected(load: float) -> None:
    code, message = snapshot(lambda _, rows: rows["loads"][0].__setitem__(0, load))
    assert code == 2
    assert "NaN and Infinity are not JSON" in message


@pytest.mark.parametrize("load", [None, 1e30])
def test_any_other_load_of_a_snapshot_gives_a_plan(load: object) -> None:
    assert snapshot(lambda _, rows: rows["loads"][0].__setitem__(0, load))[0] == 0


@pytest.mark.parametrize("replicas", [[2, 2], [], [2, 9]])
def test_an_invalid_replica_list_is_named(replicas: list[int]) -> None:
    code, output = snapshot(lambda _, rows: rows["replicas"].__setitem__(0, replicas))
    assert code == 2
    assert "orders-0" in output or "[9]" in output


def test_very_large_byte_counts_are_summed() -> None:
    def large(header: Document, rows: Document) -> None:
        header["topics"][0]["storage"] = "replicated"
        rows["local_bytes"] = rows["size_bytes"] = [10**18] * 8

    assert snapshot(large)[0] == 0


def test_capacities_in_different_units_are_reported() -> None:
    def apart(header: Document, _: Document) -> None:
        for broker, size in zip(header["brokers"], (1e-5, 1e15, 1e7), strict=True):
            broker["capacity"] = {"net_in": size}

    code, output = snapshot(apart)
    assert code == 2
    assert "broker 1 has 1e+20 times the net_in capacity of broker 0" in output


def test_a_cluster_without_partitions_is_balanced() -> None:
    code, output = snapshot(lambda _, rows: rows.update({k: [] for k in rows}))
    assert code == 0
    assert "the cluster has no partitions" in output


def test_a_cluster_of_one_broker_is_balanced() -> None:
    def alone(header: Document, _: Document) -> None:
        header["brokers"] = header["brokers"][2:]

    assert "already balanced" in snapshot(alone)[1]


@pytest.mark.parametrize("seed", [2**31, 2**63 - 1])
@pytest.mark.parametrize("objective", ["variance", "band"])
def test_any_seed_gives_a_plan(seed: int, objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_SOLVE__SEED", str(seed))
    monkeypatch.setenv("PLIMSOLL_SOLVE__WORK", "2")
    code, output = goals(f'objective = "{objective}"\n')
    assert code == 0, output


@pytest.mark.parametrize("seed", ["-1", str(2**63), str(10**30), "1.5"])
def test_an_impossible_seed_is_named(seed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_SOLVE__SEED", seed)
    code, output = plan()
    assert code == 2
    assert output.startswith("plimsoll: PLIMSOLL_SOLVE__SEED: solve.seed: ")


@pytest.mark.parametrize("work", ["0", "-1", "nan", "inf", "1e400", "1e10", "abc"])
def test_an_impossible_search_budget_is_named(work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_SOLVE__WORK", work)
    code, output = plan()
    assert code == 2
    assert output.startswith("plimsoll: PLIMSOLL_SOLVE__WORK: solve.work: ")
    assert len(output.splitlines()) == 1


def test_a_search_budget_of_almost_nothing_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_SOLVE__WORK", "1e-300")
    for options in ((), ("--stages",)):
        code, output = run("plan", "--from", "describe.txt", "--loads", "loads.csv", *options)
        assert code == 6, output
        assert "raise the search budget" in output


@pytest.mark.parametrize("budget", ["replica_moves = 0", "replica_moves = 1", "bytes = 1"])
def test_budgets_below_what_must_move_are_infeasible(budget: str) -> None:
    Path("brokers.csv").write_text(brokers("alive", "alive", "draining"))
    code, output = goals(f"[budgets]\n{budget}\n")
    assert code == 4
    assert "no placement keeps every rule: orders-3" in output
    assert "broker 3 is draining" in output


def test_as_many_replicas_as_brokers_only_change_leaders() -> None:
    write_topic("orders", ((1, 2, 3),) * 6)
    code, output = plan("-o", "json")
    assert code == 0, output
    moves = json.loads(output[output.index("{") :])["plan"]["moves"]
    assert moves
    assert all(sorted(m["replicas_after"]) == [1, 2, 3] for m in moves)


def test_loads_of_any_size_are_planned_together() -> None:
    Path("loads.csv").write_text(loads("orders", ["1", "1e15", "1e3", "1e9", "1e12"]))
    code, output = plan()
    assert code == 0, output


def test_a_cluster_pinned_in_place_stays() -> None:
    pins = [
        f'[[pins]]\ntopics = {{ exact = ["orders"] }}\npartitions = [{i}]\nbrokers = {list(on)}\n'
        for i, on in enumerate(PLACES)
    ]
    code, output = goals("[budgets]\nleader_changes = 0\n" + "".join(pins))
    assert code == 0, output
    assert "no improvement worth its cost" in output
