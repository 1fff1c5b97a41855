"""Solves on Spark's executors instead of in this process."""

import pickle
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from collector.spark.deployment import SparkSite
from collector.spark.executor_calls import ExecutorCalls
from model.snapshot.snapshot import Snapshot
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.studies.solve_tasks import SolveAll, SolveTask

FUNCTION: Final = "solver.studies.solve_tasks:solve_pickled"
PACKAGES: Final = ("model", "solver")
"""What the executors need of plimsoll."""


@contextmanager
def solving_on(site: SparkSite, log_file: Path) -> Iterator[SolveAll]:
    """Give what solves tasks on a Spark, which starts with the first task and ends with the block.

    log_file: where its Java writes. Errors: see `ExecutorCalls`.
    """
    calls = ExecutorCalls(site, PACKAGES, log_file)

    def solve_all(
        shared: Snapshot, tasks: Sequence[SolveTask], observer: SolveObserver
    ) -> Iterator[Result]:
        arguments = [pickle.dumps(task) for task in tasks]
        for answer in calls(FUNCTION, pickle.dumps(shared), arguments, observer.stops):
            result: Result = pickle.loads(answer)  # noqa: S301 - of our own code
            yield result

    with closing(calls):
        yield solve_all
