"""what-if, assign and frontier on the command line, without a cluster."""

import json
from pathlib import Path

import pytest

from tests.support.cli_offline import plimsoll
from tests.support.paths import FIXTURES

pytestmark = pytest.mark.search

TUTORIAL = ("--snapshot", str(FIXTURES / "tutorial.json"))
SIX = ("--snapshot", str(FIXTURES / "replicated.json.gz"))


def test_a_scenario_is_planned_and_cannot_be_applied(tmp_path: Path) -> None:
    ask = ("--add-broker", "1", "--traffic", "1.5:orders", "--out", "w.json")
    run = plimsoll(tmp_path, "what-if", *TUTORIAL, *ask)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("what if: 1 broker added, traffic of topics orders")
    apply = ("apply", "w.json", "-b", "127.0.0.1:1", "--allow-changes", "--yes")
    refused = plimsoll(tmp_path, *apply)
    assert refused.returncode == 2
    assert "w.json is not a plimsoll.plan file" in refused.stderr


def test_the_fewest_brokers_are_found(tmp_path: Path) -> None:
    run = plimsoll(tmp_path, "what-if", *SIX, "--fewest-brokers", "-o", "json")
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)["fewest_brokers"]
    assert (result["present"], result["fewest"], result["bound"]) == (6, 3, 3)


def test_a_new_topic_is_placed(tmp_path: Path) -> None:
    ask = ("-p", "12", "-r", "3", "--out", "a.json")
    run = plimsoll(tmp_path, "assign", "new", *SIX, *ask)
    assert run.returncode == 0, run.stderr
    assert "replicas per broker: 6; proved optimal" in run.stdout
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["version"] == 1
    assert len(document["partitions"]) == 12


def test_the_frontier_is_drawn_identically_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        ask = ("--out", f"{name}.json", "--svg", f"{name}.svg")
        run = plimsoll(tmp_path, "frontier", *TUTORIAL, *ask)
        assert run.returncode == 0, run.stderr
    for suffix in (".json", ".svg"):
        one, two = ((tmp_path / f"{n}{suffix}").read_bytes() for n in "ab")
        assert one == two


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("what-if", *TUTORIAL), "no what-if scenario is given"),
        (("what-if", *TUTORIAL, "--remove-broker", "9"), "no broker 9 to remove"),
        (("assign", "orders", *TUTORIAL, "-p", "1", "-r", "1"), "orders exists"),
        (("assign", "a b", *TUTORIAL, "-p", "1", "-r", "1"), "'a b' is not a valid topic name"),
        (("frontier",), "no cluster is configured"),
    ],
)
@pytest.mark.slow
def test_a_mistake_is_reported_in_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    run = plimsoll(tmp_path, *arguments)
    assert run.returncode == 2
    assert message in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert run.stdout == ""
