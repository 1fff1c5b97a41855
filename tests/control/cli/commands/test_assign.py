"""`plimsoll assign` as a function: replica lists in the forms of Kafka's tools."""

import json
from pathlib import Path

import pytest

from control.cli.commands.assign import assign
from control.cli.exit_codes import Exit
from control.cli.invocation import Origin
from control.cli.output import Form
from control.settings.settings import Settings
from model.exchange.reassignment import read_reassignment
from tests.support.paths import FIXTURES

SIX = Origin(snapshot=FIXTURES / "replicated.json.gz")


def ask(
    partitions: int,
    rf: int,
    output: Form = Form.TABLE,
    out: Path | None = None,
    net_in: float | None = None,
) -> int:
    return assign(
        "new",
        partitions=partitions,
        replication_factor=rf,
        net_in=net_in,
        settings=Settings(),
        origin=SIX,
        out=out,
        output=output,
    )


def test_the_table_shows_counts_lists_and_the_proof(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(4, 3) == Exit.DONE
    output = capsys.readouterr().out
    assert output.startswith("new: 4 partitions with 3 replicas each\n")
    assert "replicas per broker: 2; proved optimal" in output
    assert "leaders per broker: 0 to 1; proved optimal" in output


def test_the_option_for_kafka_topics_lists_partitions_in_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ask(4, 3, Form.JSON)
    document = json.loads(capsys.readouterr().out)
    lists = [":".join(map(str, p["replicas"])) for p in document["assignment"]["partitions"]]
    assert document["replica_assignment"] == ",".join(lists)


def test_the_file_is_kafka_reassignment_json(tmp_path: Path) -> None:
    out = tmp_path / "assignment.json"
    ask(4, 3, out=out)
    result = read_reassignment(out)
    assert [(a.topic, a.partition) for a in result.partitions] == [("new", p) for p in range(4)]


def test_an_expected_load_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    ask(7, 2, Form.JSON, net_in=1e6)
    load = json.loads(capsys.readouterr().out)["load"]
    assert load["cost"] >= load["bound"] > 0


def test_an_impossible_assignment_is_reported_and_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "assignment.json"
    assert ask(1, 7, out=out) == Exit.INFEASIBLE
    assert "cannot be assigned: 7 replicas need" in capsys.readouterr().out
    assert not out.exists()
