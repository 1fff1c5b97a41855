"""Policies tried on Spark's executors: the same, byte for byte, as in this process."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from control.cli.main import app
from lab.synthetic.shape import ClusterShape
from lab.time_lapse.varying_loads import synthetic_start
from model.snapshot.file import write_snapshot
from tests.support.collector.seasonal_loads import FIRST_HOUR, MONDAY, daily, hours_of

pytestmark = pytest.mark.spark

DAYS = ("2026-03-02", "2026-03-03")


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster in a file, with two days of history in the state folder."""
    monkeypatch.setenv("PLIMSOLL_STATE_DIR", str(tmp_path / "state"))
    shape = ClusterShape(brokers=4, partitions=24, racks=2, rf=2, young=False)
    start = synthetic_start(shape, int(1000 * MONDAY.timestamp()), 1)
    ids = [(str(topic), number) for topic, number in start.ids]
    heavy = np.where(start.partitions.leader == start.partitions.leader[0], 5e7, 5e6)
    cycles = [heavy[at] * daily(48, peak=at % 24) for at in range(len(ids))]
    hours = hours_of(ids, np.stack(cycles))
    home = tmp_path / "state" / "clusters" / start.header.cluster_id / "hours"
    for at, day in enumerate(DAYS):
        folder = home / f"date={day}"
        folder.mkdir(parents=True)
        first = FIRST_HOUR + 24 * at
        inside = np.asarray(hours["hour"]) // 24 == first // 24
        pq.write_table(hours.filter(inside), folder / "part.parquet")
        (folder / "_SUCCESS").touch()
    path = tmp_path / "cluster.json"
    write_snapshot(path, start)
    return path


def simulated(*arguments: str) -> str:
    """The output of a simulation of two policies."""
    order = ["simulate", "--step", "1h", "-o", "json", "--search-budget", "0.02", *arguments]
    result = CliRunner().invoke(app, order)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.slow
def test_policies_do_the_same_on_executors_as_in_this_process(snapshot: Path) -> None:
    """Loads of the history travel to the executors, too."""
    order = ("--snapshot", str(snapshot), "--history", "--days", "1")
    here = simulated(*order)
    assert simulated(*order, "--spark-master", "local[2]") == here
    answer = json.loads(here)
    assert answer["days"] == 1
    assert answer["begin_ms"] == int(1000 * MONDAY.timestamp()) + 86_400_000
    policies = {policy["policy"]: policy for policy in answer["policies"]}
    assert list(policies) == ["conservative", "eager"]
    assert policies["eager"]["runs"] > 0
    assert policies["eager"] != policies["conservative"] | {"policy": "eager"}
