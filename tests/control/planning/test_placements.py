"""Placement constraints on the command line, and those of topics' own configs."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from control.cli.exit_codes import Exit
from control.cli.main import app
from model.plan.plan import Plan, read_plan
from tests.support import cli_offline

RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
FROM = ("--from", "describe.txt", "--brokers", "brokers.csv", "--loads", "loads.csv")
PLACES = ((1, 3), (2, 5), (3, 6), (4, 1))


def constraints(racks: dict[str, int]) -> str:
    counts = [{"count": n, "constraints": {"rack": r}} for r, n in racks.items()]
    return json.dumps({"version": 1, "replicas": counts}, separators=(",", ":"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six brokers in three racks, and one topic, as files of the current folder."""
    cli_offline.enter(monkeypatch, tmp_path)
    describe(tmp_path, "")
    brokers = "".join(f"{b},{rack}\n" for b, rack in RACKS.items())
    (tmp_path / "brokers.csv").write_text("id,rack\n" + brokers)
    loads = "".join(f"orders,{i},1000000\n" for i in range(len(PLACES)))
    (tmp_path / "loads.csv").write_text("topic,partition,net_in\n" + loads)
    (tmp_path / "ab.json").write_text(constraints({"a": 1, "b": 1}))
    return tmp_path


def describe(folder: Path, placement: str, places: Sequence[tuple[int, ...]] = PLACES) -> None:
    """Write the topic with these placement constraints among its configs."""
    configs = "min.insync.replicas=1"
    if placement:
        configs += f",confluent.placement.constraints={placement},segment.bytes=9"
    lines = [
        f"Topic: orders\tPartitionCount: {len(places)}\t"
        f"ReplicationFactor: {len(places[0])}\t"
        f"Configs: {configs}\n"
    ]
    for i, place in enumerate(places):
        ids = ",".join(map(str, place))
        lines.append(
            f"\tTopic: orders\tPartition: {i}\tLeader: {place[0]}\tReplicas: {ids}\tIsr: {ids}\n"
        )
    (folder / "describe.txt").write_text("".join(lines))


def plimsoll(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def planned(*more: str) -> tuple[Plan, Result]:
    run = plimsoll("plan", *FROM, *more, "--out", "plan.json")
    assert run.exit_code == 0, run.stderr
    return read_plan(Path("plan.json")), run


def racks_after(plan: Plan) -> list[set[str]]:
    """Of each partition."""
    places: dict[int, Any] = dict(enumerate(PLACES))
    places |= {m.partition: m.replicas_after for m in plan.moves}
    return [{RACKS[b] for b in place} for place in places.values()]


def verified(*more: str) -> Result:
    return plimsoll("verify", "plan.json", *FROM, *more)


@pytest.mark.slow
def test_a_plan_honours_the_placement_file() -> None:
    plan, _ = planned("--placement", "ab.json")
    assert racks_after(plan) == [{"a", "b"}] * 4
    assert verified("--placement", "ab.json").exit_code == 0
    plan, _ = planned("--placement", "payments=ab.json")
    assert racks_after(plan) != [{"a", "b"}] * 4


def test_a_new_topic_honours_the_placement_file() -> None:
    new = ("assign", "new", "-p", "6", "-r", "2", *FROM, "-o", "json")
    for extra, honoured in ((("--placement", "ab.json"), True), ((), False)):
        run = plimsoll(*new, *extra)
        assert run.exit_code == 0, run.stderr
        rows = json.loads(run.stdout)["assignment"]["partitions"]
        racks = [{RACKS[b] for b in row["replicas"]} for row in rows]
        assert (racks == [{"a", "b"}] * 6) is honoured


@pytest.mark.parametrize(("topics", "warned"), [("payments", True), ("ord.*", False)])
@pytest.mark.slow
def test_a_placement_that_matches_no_topic_is_a_warning(topics: str, warned: bool) -> None:
    _, run = planned("--placement", f"{topics}=ab.json")
    message = f"warning: the placement of /{topics}/ matches no topic"
    assert (message in run.stderr) == warned


@pytest.mark.parametrize(("topics", "warned"), [("other", True), ("orders", True), ("n.*", False)])
def test_a_placement_that_does_not_match_the_new_topic_is_a_warning(
    topics: str, warned: bool
) -> None:
    new = ("assign", "new", "-p", "6", "-r", "2", *FROM)
    run = plimsoll(*new, "--placement", f"{topics}=ab.json")
    assert run.exit_code == 0, run.stderr
    message = f"warning: the placement of /{topics}/ does not match topic new\n"
    assert (message in run.stderr) == warned


def test_a_new_topic_is_placed_with_a_warning_of_ignored_goals() -> None:
    """As for plans: the loads do not include net_out."""
    message = "warning: the goal net_out is ignored: no partition's net_out is known"
    run = plimsoll("assign", "new", "-p", "6", "-r", "2", *FROM)
    assert run.exit_code == 0, run.stderr
    assert message in run.stderr
    assert "the goal net_in is ignored" not in run.stderr


@pytest.mark.parametrize(
    ("racks", "fault"),
    [
        ({"a": 1}, "the counts sum to 1, but orders has 2 replicas"),
        ({"a": 1, "x": 1}, "no broker is in rack 'x' (racks: a, b and c)"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "frontier", "what-if --add-broker 1:c"])
def test_a_placement_that_fits_no_replica_list_is_named(
    folder: Path, racks: dict[str, int], fault: str, command: str
) -> None:
    (folder / "wrong.json").write_text(constraints(racks))
    run = plimsoll(*command.split(), *FROM, "--placement", "wrong.json")
    assert run.exit_code == Exit.INFEASIBLE
    assert "the placement of all topics asks for 1 in rack a" in run.stdout
    assert fault in run.stdout
    assert "partition" not in run.stdout.partition(fault)[0]


def test_a_new_topic_names_the_rack_that_no_broker_is_in(folder: Path) -> None:
    (folder / "wrong.json").write_text(constraints({"a": 1, "x": 1}))
    new = ("assign", "new", "-p", "6", "-r", "2", *FROM, "--placement", "wrong.json")
    run = plimsoll(*new)
    assert run.exit_code == Exit.INFEASIBLE
    assert "no broker is in rack 'x' (racks: a, b and c)" in run.stdout


def test_a_plan_honours_a_topics_own_config(folder: Path) -> None:
    describe(folder, constraints({"b": 1, "c": 1}))
    plan, run = planned()
    assert racks_after(plan) == [{"b", "c"}] * 4
    assert run.stderr == ""
    assert [rule.topics.exact for rule in plan.goals.placements] == [("orders",)]
    assert verified().exit_code == 0
    # The goals of the plan, given again, repeat nothing.
    (folder / "goals.json").write_text(plan.goals.model_dump_json())
    assert verified("--goals", "goals.json").exit_code == 0
    assert planned("--goals", "goals.json")[0].hash == plan.hash
    (folder / "empty.toml").write_text("")
    assert verified("--goals", "empty.toml").exit_code == 0


def test_the_file_overrides_a_topics_own_config(folder: Path) -> None:
    describe(folder, constraints({"b": 1, "c": 1}))
    plan, _ = planned("--placement", "ab.json")
    assert racks_after(plan) == [{"a", "b"}] * 4
    assert verified("--placement", "ab.json").exit_code == 0


@pytest.mark.parametrize("value", ['{"version":1,', constraints({"x": 2})])
@pytest.mark.slow
def test_an_unusable_config_causes_a_warning(folder: Path, value: str) -> None:
    describe(folder, value)
    plan, run = planned()
    message = "config confluent.placement.constraints of topic orders is ignored: "
    assert f"plimsoll: warning: the {message}" in run.stderr
    assert any(message in reported for reported in plan.warnings)
    assert not plan.goals.placements
    assert verified().exit_code == 0


@pytest.mark.parametrize(
    "command", [("what-if", "--add-broker", "1:c"), ("frontier",)], ids=" ".join
)
@pytest.mark.slow
def test_other_planning_commands_honour_it_too(folder: Path, command: tuple[str, ...]) -> None:
    describe(folder, constraints({"b": 1, "c": 1}))
    run = plimsoll(*command, *FROM, "-o", "json")
    assert run.exit_code == 0, run.stderr
    document = json.loads(run.stdout)
    goals = (document.get("plan") or document)["goals"]
    assert goals["placements"][0]["topics"]["exact"] == ["orders"]
    describe(folder, "{")
    assert "of topic orders is ignored" in plimsoll(*command, *FROM).stderr


def test_a_plan_with_observers_is_verified(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that may only have observers does not lead at any price."""
    monkeypatch.setenv("PLIMSOLL_SOLVE__WORK", "1")
    dice = random.Random(2)
    racks = {broker: "abc"[broker % 3] for broker in range(1, 13)}
    replicas = {rack: [b for b in racks if racks[b] == rack] for rack in "ab"}
    places = [(*dice.sample(replicas["a"], 2), dice.choice(replicas["b"])) for _ in range(30)]
    describe(folder, "", places)
    brokers = "".join(f"{b},{rack}\n" for b, rack in racks.items())
    (folder / "brokers.csv").write_text("id,rack\n" + brokers)
    rates = [round(1e6 * dice.paretovariate(1.5)) for _ in places]
    loads = "".join(f"orders,{i},{rate},{rate}\n" for i, rate in enumerate(rates))
    (folder / "loads.csv").write_text("topic,partition,net_in,net_out\n" + loads)
    observers = [{"count": 1, "constraints": {"rack": "b"}}]
    document = json.loads(constraints({"a": 2})) | {"version": 2, "observers": observers}
    (folder / "observers.json").write_text(json.dumps(document))
    plan, _ = planned("--placement", "observers.json")
    assert plan.price_bound > 0
    result = verified("--placement", "observers.json", "-o", "json")
    assert result.exit_code == 0, result.stdout
