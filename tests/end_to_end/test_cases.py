"""The small clusters of tests/cases, through the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.offline import plimsoll

CASES = Path(__file__).parents[1] / "cases"


def files(case: str, *more: str) -> list[str]:
    tables = {"--loads": f"{case}-loads.csv", "--brokers": f"{case}-brokers.csv"}
    options = [word for o, name in tables.items() for word in (o, str(CASES / name))]
    return ["--from", str(CASES / f"{case}.txt"), *options, *more]


def planned(folder: Path, case: str, *more: str) -> dict[str, Any]:
    run = plimsoll(folder, "plan", *files(case, *more), "-o", "json")
    assert run.returncode == 0, run.stderr
    document: dict[str, Any] = json.loads(run.stdout)
    return document


def test_u5_says_what_leader_changes_alone_would_do(tmp_path: Path) -> None:
    run = plimsoll(tmp_path, "plan", *files("u5"))
    assert "20 leader changes alone, 0 bytes: 71.1 % of the imbalance" in run.stdout
    plan = planned(tmp_path, "u5", "--leaders-only")["plan"]
    assert plan["moves"]
    for move in plan["moves"]:
        assert sorted(move["replicas_before"]) == sorted(move["replicas_after"])
    share = 1 - plan["objective"] / plan["objective_before"]
    assert share == pytest.approx(0.71, abs=0.01)
