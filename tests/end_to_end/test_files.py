"""Planning from files alone: no cluster, no JVM."""

import json
from pathlib import Path

import pytest

from model.plan.plan import read_plan
from tests.support.cli_offline import plimsoll
from tests.support.cluster_files import write_cluster_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_cluster_files(tmp_path)
    return tmp_path


FROM = ("plan", "--from", "describe.txt", "--loads", "loads.csv", "--no-racks")


def test_a_cluster_is_planned_without_connecting(folder: Path) -> None:
    run = plimsoll(folder, *FROM, "--out", "plan.json", "--detailed-exitcode")
    assert run.returncode == 10, run.stderr
    assert run.stderr == ""
    plan = read_plan(folder / "plan.json")
    assert plan.objective < 0.1 * plan.objective_before


def test_equal_files_give_equal_plan_bytes(folder: Path) -> None:
    """Also if a file is touched in between or is elsewhere."""
    plimsoll(folder, *FROM, "--out", "a.json")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    for name in ("describe.txt", "loads.csv"):
        (elsewhere / name).write_bytes((folder / name).read_bytes())
    plimsoll(elsewhere, *FROM, "--out", "b.json")
    assert (folder / "a.json").read_bytes() == (elsewhere / "b.json").read_bytes()


@pytest.mark.slow
def test_the_kafka_reassignment_json_leads_to_the_plans_placement(folder: Path) -> None:
    """Judged by the evaluator: the same objective and no violated rule."""
    run = plimsoll(folder, *FROM, "--out", "plan.json", "--stock", "stock")
    assert run.returncode == 0, run.stderr
    moves = ("--reassignment", "stock/reassignment.json")
    election = ("--election", "stock/election.json")
    judge = ("verify", "plan.json", *FROM[1:], "-o", "json", *moves)
    document = json.loads(plimsoll(folder, *judge, *election).stdout)
    assert document["violations"] == []
    assert document["objective"] == read_plan(folder / "plan.json").objective
    without = json.loads(plimsoll(folder, *judge).stdout)
    assert document["objective"] < without["objective"] < document["objective_before"]


def test_only_the_named_topic_moves_and_its_skew_is_shown(folder: Path) -> None:
    run = plimsoll(folder, *FROM, "--topic", "orders", "-o", "json")
    document = json.loads(run.stdout)
    assert {m["topic"] for m in document["plan"]["moves"]} == {"orders"}
    skew = document["skew"]["orders"]
    assert skew["before"]["brokers_skewed"] == pytest.approx(2 / 3, rel=1e-8)
    assert skew["after"]["brokers_skewed"] == 0
    assert [b["replicas"] for b in skew["after"]["brokers"]] == [4, 4, 4]
    assert [b["leaders"] for b in skew["after"]["brokers"]] == [2, 2, 2]


def test_a_topic_is_spread_without_knowing_any_load(folder: Path) -> None:
    run = plimsoll(folder, "plan", "--from", "describe.txt", "--topic", "orders")
    assert run.returncode == 0, run.stderr
    assert "the optimum is 4 replicas and 2 leaders per broker" in run.stdout
    assert "brokers skewed 66.7 % -> 0.0 %" in run.stdout


def test_without_loads_the_message_names_the_remedy(folder: Path) -> None:
    run = plimsoll(folder, "plan", "--from", "describe.txt")
    assert run.returncode == 0
    assert "give them with --loads FILE" in run.stderr


def test_a_broker_without_replicas_gets_some_once_it_is_listed(folder: Path) -> None:
    (folder / "brokers.csv").write_text("id,rack\n1,a\n2,b\n3,c\n4,a\n")
    run = plimsoll(folder, *FROM, "--brokers", "brokers.csv", "-o", "json")
    moves = json.loads(run.stdout)["plan"]["moves"]
    assert any(4 in m["replicas_after"] for m in moves)


def test_a_capacity_file_makes_brokers_unequal(folder: Path) -> None:
    capacity = {"CPU": "100", "DISK": "90000", "NW_IN": "30000", "NW_OUT": "30000"}
    large = capacity | {"NW_IN": "90000", "NW_OUT": "90000"}
    entries = [{"brokerId": "-1", "capacity": capacity}, {"brokerId": "3", "capacity": large}]
    (folder / "capacity.json").write_text(json.dumps({"brokerCapacities": entries}))
    run = plimsoll(folder, *FROM, "--capacity", "capacity.json", "-o", "json")
    after = {b["id"]: b["after"] for b in json.loads(run.stdout)["plan"]["brokers"]}
    assert after[3]["net_out"] > 1.5 * max(after[1]["net_out"], after[2]["net_out"])


UNEQUAL = """
[capacities.default]
net_in = "30MB/s"
net_out = "30MB/s"
[capacities.brokers.3]
net_in = "90MB/s"
net_out = "90MB/s"
"""


def test_a_table_of_the_settings_makes_brokers_unequal(folder: Path) -> None:
    (folder / "plimsoll.toml").write_text(UNEQUAL)
    run = plimsoll(folder, *FROM, "-o", "json", PLIMSOLL_CONFIG="plimsoll.toml")
    after = {b["id"]: b["after"] for b in json.loads(run.stdout)["plan"]["brokers"]}
    assert after[3]["net_out"] > 1.5 * max(after[1]["net_out"], after[2]["net_out"])
    assert run.stderr == ""


def test_capacities_of_some_brokers_only_limit_them_and_do_not_affect_balance(folder: Path) -> None:
    """Each still limits its own broker; an unknown broker id is named too."""
    plain = json.loads(plimsoll(folder, *FROM, "-o", "json").stdout)["plan"]
    only = UNEQUAL.replace("default", "brokers.17") + "cpu = 8\n"
    (folder / "plimsoll.toml").write_text(only)
    run = plimsoll(folder, *FROM, "-o", "json", PLIMSOLL_CONFIG="plimsoll.toml")
    assert run.returncode == 0
    assert json.loads(run.stdout)["plan"]["objective"] == plain["objective"]
    lines = [line.removeprefix("plimsoll: ") for line in run.stderr.splitlines()]
    assert [line.split(", ")[0] for line in lines] == [
        "[capacities]: a capacity is given of broker 17",
        "net_in: no capacity is known of brokers 1",
        "net_out: no capacity is known of brokers 1",
        "cpu: a capacity is known",
    ]


def test_a_given_capacity_limits_its_own_broker(folder: Path) -> None:
    """Broker 3 would get a third of the load and can take almost none of it."""
    (folder / "plimsoll.toml").write_text('[capacities.brokers.3]\nnet_in = "1kB/s"\n')
    plan = json.loads(plimsoll(folder, *FROM, "-o", "json").stdout)["plan"]
    (third,) = [b for b in plan["brokers"] if b["id"] == 3]
    assert third["after"]["net_in"] <= max(third["before"]["net_in"], 850)


def test_goals_of_a_file_decide(folder: Path) -> None:
    (folder / "goals.toml").write_text('excluded_topics = ["orders", "audit"]\n')
    run = plimsoll(folder, *FROM, "--goals", "goals.toml", "-o", "json")
    document = json.loads(run.stdout)
    assert document["plan"]["moves"] == []
    assert document["plan"]["goals"]["excluded_topics"]["regex"] == ["orders", "audit"]
