"""A real cluster is recorded and replayed from the recording alone."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lab.load.load_generator import Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster
from model.snapshot.file import read_snapshot
from tests.support.cli_on_cluster import Shell

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
TOPIC = "record-acme.orders"
RATES = (400_000, 200_000, 100_000, 50_000)
AS_RECORDED = "replayed; the loads equal the recorded ones, byte for byte"


@pytest.fixture(scope="module")
def loaded(local_cluster: LocalCluster) -> Iterator[LocalCluster]:
    local_cluster.create_topic(TOPIC, [[1, 2], [1, 3], [2, 3], [1, 2]])
    load = Load(
        local_cluster.processes,
        local_cluster.bootstrap,
        LoadOrder(topic=TOPIC, bytes_per_s=sum(RATES), weights=RATES),
        name=TOPIC,
    )
    load.start()
    yield local_cluster
    load.kill()


@pytest.mark.slow
def test_a_recording_is_replayed_to_the_same_loads_and_planned(
    loaded: LocalCluster, tmp_path: Path
) -> None:
    shell = Shell(tmp_path, loaded.bootstrap)
    process = shell.plimsoll("record", "--for", "10s", "--out", "found")
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("found: ")
    again = shell.plimsoll("record", "--out", "found")
    assert (again.returncode, again.stdout) == (2, "")
    assert {p.name for p in tmp_path.iterdir()} == {"found", "state"}
    (cluster,) = (tmp_path / "state" / "clusters").iterdir()
    assert [p.name for p in cluster.iterdir()] == ["lock"]

    away = Shell(tmp_path / "away", "127.0.0.1:1")
    away.folder.mkdir()
    shutil.move(tmp_path / "found", away.folder / "found")
    printed = away.plimsoll("replay", "found", "-o", "json")
    assert printed.returncode == 0, printed.stderr
    assert AS_RECORDED in printed.stderr
    loads = {
        p["partition"]: p["load"]["net_in"]
        for p in json.loads(printed.stdout)["partitions"]
        if p["topic"] == TOPIC
    }
    assert [loads[i] / loads[0] for i in range(4)] == pytest.approx(
        [rate / RATES[0] for rate in RATES], rel=0.2
    )

    written = away.plimsoll("replay", "found", "--out", "again.json")
    assert (written.returncode, written.stdout) == (0, "")
    recorded = away.folder / "found" / "snapshot.json"
    assert (away.folder / "again.json").read_bytes() == recorded.read_bytes()
    planned = away.plimsoll("plan", "--snapshot", "again.json", "--out", "plan.json")
    assert planned.returncode == 0, planned.stderr


def test_an_anonymised_recording_contains_no_name_of_the_cluster(
    loaded: LocalCluster, tmp_path: Path
) -> None:
    shell = Shell(tmp_path, loaded.bootstrap)
    process = shell.plimsoll("record", "--for", "5s", "--anonymise", "--out", "found")
    assert process.returncode == 0, process.stderr
    (cluster,) = (tmp_path / "state" / "clusters").iterdir()
    folder = tmp_path / "found"
    tables = [pq.ParquetFile(p).read() for p in sorted(folder.glob("*.parquet"))]
    replicas = repr([(t.to_pylist(), t.schema.metadata) for t in tables]).encode()
    replicas += b"".join(p.read_bytes() for p in folder.iterdir())
    key = (tmp_path / "state" / "anonymise.key").read_bytes().strip()
    names = [TOPIC.encode(), b"acme", cluster.name.encode(), b"127.0.0.1", key]
    names += [loaded.bootstrap.encode(), str(tmp_path).encode(), b"localhost", b"/tmp"]
    assert [name for name in names if name in replicas] == []
    assert b"__consumer_offsets" in replicas
    snapshot = read_snapshot(folder / "snapshot.json")
    assert {(b.rack or "")[:5] for b in snapshot.header.brokers} == {"rack-"}
