"""The small clusters of tests/cases, through the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_offline import plimsoll
from tests.support.paths import CASES


def files(case: str, *more: str) -> list[str]:
    tables = {"--loads": f"{case}-loads.csv", "--brokers": f"{case}-brokers.csv"}
    options = [word for o, name in tables.items() for word in (o, str(CASES / name))]
    return ["--from", str(CASES / f"{case}.txt"), *options, *more]


def planned(folder: Path, case: str, *more: str, work: str = "2") -> dict[str, Any]:
    command = ("plan", *files(case, *more), "-o", "json")
    run = plimsoll(folder, *command, PLIMSOLL_SOLVE__WORK=work)
    assert run.returncode == 0, run.stderr
    document: dict[str, Any] = json.loads(run.stdout)
    return document


@pytest.mark.slow
def test_u5_reports_the_effect_of_leader_changes_alone(tmp_path: Path) -> None:
    run = plimsoll(tmp_path, "plan", *files("u5"))
    assert "20 leader changes alone, 0 bytes: 71.1 % of the imbalance" in run.stdout
    plan = planned(tmp_path, "u5", "--leaders-only")["plan"]
    assert plan["moves"]
    for move in plan["moves"]:
        assert sorted(move["replicas_before"]) == sorted(move["replicas_after"])
    share = 1 - plan["objective"] / plan["objective_before"]
    assert share == pytest.approx(0.71, abs=0.01)


def capacity(name: str) -> tuple[str, str]:
    return "--capacity", str(CASES / name)


@pytest.mark.slow
def test_m6_ends_although_its_limits_are_out_of_reach(tmp_path: Path) -> None:
    plan = planned(tmp_path, "m6", *capacity("cap.json"))["plan"]
    assert plan["moves"]
    assert plan["over_limit"]
    assert plan["limited_by"].startswith("search budget exhausted (2 units of work")
    costly = [move["reason"] for move in plan["moves"] if move["gain"] < 0]
    assert any("within its limit" in reason for reason in costly)
    assert all("limit of " in reason for reason in costly)


def test_m3_relieves_its_full_broker_and_names_what_remains(tmp_path: Path) -> None:
    """The limit is 8.7 MB/s: each of the others can take one partition of 5 MB/s."""
    run = plimsoll(tmp_path, "plan", *files("m3", *capacity("cap3.json")))
    assert run.returncode == 0
    assert "broker 1 stays over its limit of bytes in: 20.0 MB/s" in run.stdout
    assert "broker 1 stays over its limit of bytes in: 20.0 MB/s" in run.stderr


def test_m3_reports_that_capacity_forbids_its_moves(tmp_path: Path) -> None:
    """With partitions of 10 MB/s no broker has room for one."""
    loads = tmp_path / "loads.csv"
    text = (CASES / "m3-loads.csv").read_text()
    loads.write_text(text.replace(",5000000", ",10000000"))
    described = ("--from", str(CASES / "m3.txt"), "--loads", str(loads))
    brokers = ("--brokers", str(CASES / "m3-brokers.csv"))
    run = plimsoll(tmp_path, "plan", *described, *brokers, *capacity("cap3.json"))
    assert run.returncode == 0
    assert "60.0 MB/s" in run.stdout
    assert "limit" in run.stdout.splitlines()[0]
    assert "no allowed move gains more" not in run.stdout


def test_rv_repairs_every_rack_violation(tmp_path: Path) -> None:
    plan = planned(tmp_path, "rv")["plan"]
    assert {v["repaired"] for v in plan["rack_violations"]} == {True}
    racks = {b["id"]: b["rack"] for b in plan["brokers"]}
    for move in plan["moves"]:
        assert len({racks[b] for b in move["replicas_after"]}) == 2


@pytest.mark.slow
def test_d12_empties_its_dead_broker(tmp_path: Path) -> None:
    run = plimsoll(tmp_path, "plan", *files("d12"), PLIMSOLL_SOLVE__WORK="2")
    assert "Broker 11 is dead and holds 4 replicas" in run.stdout
    plan = planned(tmp_path, "d12")["plan"]
    (dead,) = (b for b in plan["brokers"] if b["id"] == 11)
    assert dead["replicas_after"] == 0
