"""The streaming job on a standalone Spark cluster whose workers lack plimsoll."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import control
from clients.jvm.java import find_java
from collector.history.vector_files import VectorFiles
from collector.spark.session import spark_home
from collector.spark.vectors import load_vectors
from collector.spool import Spool
from lab.local_cluster.processes import Processes
from model.snapshot.file import read_snapshot
from tests.support.collector.sample_rows import START_MS, WINDOW, figures, rows, written
from tests.support.collector.spool_watcher import SMALL
from tests.support.collector.waiting import PATIENCE_S, eventually
from tests.support.lab.local_spark import LocalSpark, java_home

pytestmark = pytest.mark.spark
PACKAGES = Path(numpy.__file__).parent.parent
PYTHON: str = sys._base_executable  # type: ignore[attr-defined]  # outside of its venv
ENVIRON = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGES)}
"""Of the workers: editable installs on this path are not followed."""
SOURCE = Path(control.__file__).parent.parent


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    result = Processes(tmp_path_factory.mktemp("spark") / "lab")
    try:
        yield result
    finally:
        result.close()


@pytest.fixture(scope="module")
def spark(processes: Processes) -> LocalSpark:
    result = LocalSpark(processes, find_java(), environ=ENVIRON)
    result.launch()
    result.wait_ready()
    return result


def watching(processes: Processes, spark: LocalSpark, folder: Path, *, hold: int, last: int) -> str:
    """Start a driver; return the name of its process."""
    name = f"driver-{hold}"
    module = ("-P", "-m", "tests.support.collector.spool_watcher")
    arguments = (spark.master, PYTHON, str(folder), str(hold), str(last))
    environ = {**os.environ, "PYTHONPATH": str(SOURCE)}
    processes.spawn(name, [sys.executable, *module, *arguments], environ=environ)
    return name


def vectors_of(folder: Path) -> Mapping[int, pa.Table]:
    """Published vectors by the second that they end with."""
    return {int(p.stem): pq.read_table(p) for p in (folder / "out").iterdir()}


def test_workers_cannot_import_plimsoll_by_themselves() -> None:
    run = subprocess.run(
        [PYTHON, "-P", "-c", "import numpy, pyarrow, collector"],
        env=ENVIRON,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'collector'" in run.stderr


def test_a_job_survives_the_death_of_its_driver_and_worker_with_the_same_result(
    spark: LocalSpark, processes: Processes, tmp_path: Path
) -> None:
    spool, result = Spool(tmp_path / "spool"), tmp_path / "watched"
    spool.write(rows(0, 6))
    driver = watching(processes, spark, tmp_path, hold=8, last=23)
    eventually((result / "out" / "5.parquet").exists)
    spool.write(rows(6, 9))
    eventually((result / "out" / "8.parquet").exists)
    # Published and not yet committed: the batch has to be repeated.
    processes.kill(driver)
    processes.kill(spark.workers[0])
    before = vectors_of(result)
    spool.write(rows(9, 12))
    watching(processes, spark, tmp_path, hold=-1, last=23)
    eventually((result / "out" / "11.parquet").exists)
    spark.launch_worker(spark.workers[0])
    spool.write(rows(12, 24))
    eventually((tmp_path / "undisturbed" / "out" / "23.parquet").exists)

    after = vectors_of(result)
    assert {5, 8, 11, 23} <= set(after)
    for second, vectors in after.items():
        expected = load_vectors(rows(0, second + 1), WINDOW)
        assert figures(vectors) == figures(expected)
    assert figures(after[8]) == figures(before[8])
    undisturbed = vectors_of(tmp_path / "undisturbed")
    assert figures(after[23]) == figures(undisturbed[23])
    remaining = VectorFiles(result / "history", every_ms=1).read(0, START_MS + 60_000)
    assert remaining.num_rows == 4 * len(after)


def test_spark_submit_runs_a_command_on_the_given_master(spark: LocalSpark, tmp_path: Path) -> None:
    written(tmp_path / "recorded")
    java = java_home(find_java(), tmp_path / "java")
    properties = {**SMALL, "spark.pyspark.python": PYTHON, "spark.cores.max": "1"}
    options = [f"--conf={key}={value}" for key, value in properties.items()]
    run = subprocess.run(
        [
            *(spark_home() / "bin" / "spark-submit", "--master", spark.master),
            *("--conf", "spark.driver.host=127.0.0.1", *options),
            *("--conf", f"spark.pyspark.driver.python={sys.executable}"),
            *(SOURCE / "control" / "cli" / "spark_submit.py", "replay", tmp_path / "recorded"),
            *("--out", tmp_path / "snapshot.json"),
        ],
        env={
            **os.environ,
            "JAVA_HOME": str(java),
            "PYTHONPATH": str(SOURCE),
            "PLIMSOLL_STATE_DIR": str(tmp_path / "state"),
            "PLIMSOLL_SPARK_SHARED_STATE": "true",
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    # Spark shows what a job writes to either on stdout.
    assert "the loads equal the recorded ones, byte for byte" in run.stdout, run.stderr
    assert run.returncode == 0
    assert f"Connecting to master {spark.master}" in run.stderr
    again = read_snapshot(tmp_path / "snapshot.json")
    assert len(again) == 2
