"""Solves on a standalone Spark cluster whose workers lack plimsoll."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy
import psutil
import pytest

from clients.jvm.java import find_java
from collector.spark.deployment import SparkSite, protected
from control.planning.solves_elsewhere import solving_on
from lab.local_cluster.processes import Processes
from model.errors import ClusterUnreachable, ConfigError
from model.goals.goals import SolveLimits
from model.snapshot.snapshot import Snapshot
from solver.search.observer import SolveObserver
from solver.studies.solve_tasks import SolveTask, solve_in_turn
from tests.support.lab.local_spark import LocalSpark
from tests.support.solver.exact_oracle import Row, broker, cluster, goals

pytestmark = pytest.mark.spark

PACKAGES = Path(numpy.__file__).parent.parent
PYTHON: str = sys._base_executable  # type: ignore[attr-defined]  # outside of its venv
ENVIRON = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGES)}
"""Of the workers: editable installs on this path are not followed."""

LIMITS = SolveLimits(work=1.0)
SECRET = "known-to-master-workers-and-driver"


def small() -> Snapshot:
    # Small enough for the exact model alone, which needs no compiled loop.
    brokers = [broker(b) for b in range(3)]
    return cluster(brokers, [Row(replicas=(b % 2,), load=(1.0 + b, 2.0)) for b in range(6)])


def command_lines() -> Iterator[str]:
    """The command line of each process, as everyone on this machine can read it."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            yield " ".join(process.cmdline())


def tasks(count: int) -> list[SolveTask]:
    limits = [LIMITS.model_copy(update={"seed": seed}) for seed in range(count)]
    return [SolveTask(goals=goals(0.001 * (1 + i)), limits=each) for i, each in enumerate(limits)]


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    result = Processes(tmp_path_factory.mktemp("spark") / "lab")
    try:
        yield result
    finally:
        result.close()


@pytest.fixture
def spark(processes: Processes, tmp_path: Path) -> LocalSpark:
    environ = {**ENVIRON, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    result = LocalSpark(processes, find_java(), environ=environ, secret=SECRET)
    result.launch()
    result.wait_ready()
    return result


def test_results_are_those_of_this_process_though_an_executor_is_lost(
    spark: LocalSpark, processes: Processes, tmp_path: Path
) -> None:
    secret_file = tmp_path / "secret"
    secret_file.write_text(SECRET)
    secret_file.chmod(0o600)
    properties = protected(spark.master, {"spark.pyspark.python": PYTHON}, secret_file)
    site = SparkSite(master=spark.master, properties=properties)
    here = [r.best for r in solve_in_turn(small(), tasks(12), SolveObserver())]
    with solving_on(site, tmp_path / "sweep" / "spark.log") as solve_all:
        results = solve_all(small(), tasks(12), SolveObserver())
        there = [next(results).best]
        assert not [line for line in command_lines() if SECRET in line]
        processes.kill(spark.workers[0])
        there += [result.best for result in results]
        assert there == here
        # The same session serves a second sweep.
        again = solve_all(small(), tasks(2), SolveObserver())
        assert [result.best for result in again] == here[:2]
    assert [path.name for path in (tmp_path / "sweep").iterdir()] == ["spark.log"]
    written = [tmp_path / "sweep" / "spark.log", *processes.logs.iterdir()]
    assert not [path for path in written if SECRET in path.read_text()]


def test_a_missing_python_of_an_executor_is_named(tmp_path: Path) -> None:
    site = SparkSite(master="local[1]", properties={"spark.pyspark.python": "/nowhere/python"})
    with (
        solving_on(site, tmp_path / "sweep" / "spark.log") as solve_all,
        pytest.raises(ConfigError, match="A Spark worker has no /nowhere/python"),
    ):
        list(solve_all(small(), tasks(1), SolveObserver()))


class Stopped(SolveObserver):
    def stops(self) -> bool:
        return True


def test_a_stop_ends_the_results(tmp_path: Path) -> None:
    with solving_on(SparkSite(master="local[1]"), tmp_path / "sweep" / "spark.log") as solve_all:
        assert len(list(solve_all(small(), tasks(3), Stopped()))) < 3


def test_a_master_that_does_not_answer_is_named(tmp_path: Path) -> None:
    site = SparkSite(master="spark://127.0.0.1:1")
    with (
        solving_on(site, tmp_path / "sweep" / "spark.log") as solve_all,
        pytest.raises(ClusterUnreachable, match=r"127\.0\.0\.1:1"),
    ):
        list(solve_all(small(), tasks(1), SolveObserver()))
