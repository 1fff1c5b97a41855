"""Files in `fixtures/` match their README and can be used."""

import runpy
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from collector.recorded_state import read_recording
from model.snapshot.file import read_snapshot, write_snapshot
from model.snapshot.snapshot import StorageKind
from tests.support import cli_offline
from tests.support.cli_offline import in_process
from tests.support.paths import FIXTURES

SNAPSHOTS = ("tutorial.json", "demo.json", "replicated.json.gz")


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fixtures")
    runpy.run_path(str(FIXTURES / "generate.py"))["main"](folder)
    return folder


def rewritten(path: Path, folder: Path) -> bytes:
    """A snapshot in today's schema; those here may be older."""
    write_snapshot(folder / "again.json", read_snapshot(path))
    return (folder / "again.json").read_bytes()


@pytest.mark.parametrize("name", [*SNAPSHOTS, "synthetic/snapshot.json"])
def test_each_snapshot_fixture_matches_its_generator(
    generated: Path, tmp_path: Path, name: str
) -> None:
    result, again = (rewritten(f / name, tmp_path) for f in (FIXTURES, generated))
    assert result == again


def test_the_synthetic_history_matches_its_generator(generated: Path) -> None:
    paths = sorted(generated.glob("synthetic/history/*/*.parquet"))
    assert len(paths) == 15
    for path in paths:
        result = pq.ParquetFile(FIXTURES / path.relative_to(generated)).read()
        again = pq.ParquetFile(path).read()
        assert again.select(result.column_names).equals(result)


def test_the_recorded_cluster_covers_groups_storages_and_replication_factors() -> None:
    state = read_recording(FIXTURES / "recorded")
    assert state.state.anonymised
    users = [r for r in state.snapshot.rows() if not r.internal]
    assert {(r.storage, len(r.replicas)) for r in users} == {
        (StorageKind.TIERED, 1),
        (StorageKind.REPLICATED, 2),
        (StorageKind.REPLICATED, 3),
    }
    newest = state.samples(state.batches[-1]).to_pylist()
    assert {row["groups"] for row in newest} == {0, 1}
    assert any(0 == row["earliest"] < row["earliest_local"] for row in newest)


@pytest.mark.parametrize("name", ["recorded", "synthetic"])
def test_a_state_is_planned_from_its_snapshot(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli_offline.enter(monkeypatch, tmp_path)
    path = FIXTURES / name / "snapshot.json"
    run = in_process("plan", "--snapshot", str(path), "--detailed-exitcode")
    assert run.returncode == 10, run.stderr
    assert run.stdout.startswith("optimal: ")
