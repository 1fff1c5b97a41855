"""Execute plans on real clusters."""

from collections.abc import Callable
from pathlib import Path

from clients.s3 import S3Settings
from executor.executor import Executor, connect
from executor.run.operator_control import Steering
from executor.timing import RunLimits
from lab.local_cluster.local_cluster import LocalCluster
from model.plan.plan import Plan
from model.run import MoveState, RunProgress, RunReport, RunState

TIMEOUT_S = 10.0
"""Timeout of a request to live brokers."""
DEFAULT_LIMITS = RunLimits()


def ignore(_: RunProgress) -> None:
    """Ignore the progress of a run."""


def execute(
    executor: Executor,
    plan: Plan,
    folder: Path,
    observe: Callable[[RunProgress], None] = ignore,
    in_flight: int = 4,
) -> RunReport:
    """Execute a plan to its end."""
    return executor.execute(
        plan, journal_dir=folder, moves_in_flight=in_flight, observe=observe, steering=Steering()
    )


def executor_with_tier(cluster: LocalCluster, limits: RunLimits = DEFAULT_LIMITS) -> Executor:
    """An executor that reads the tier of the cluster."""
    s3 = S3Settings(
        endpoint_url=cluster.s3.endpoint,
        bucket=cluster.s3.bucket,
        access_key=cluster.s3.access_key,
        secret_key=cluster.s3.secret_key,
    )
    return connect(cluster.bootstrap, timeout_s=TIMEOUT_S, s3=s3, limits=limits)


def assert_done(report: RunReport) -> None:
    """Assert that every move was made, and show the report otherwise."""
    left = [m for m in report.moves if m.state is not MoveState.DONE]
    messages = [f"{m.topic}-{m.partition} {m.state.value}: {m.note}" for m in left]
    assert report.state is RunState.DONE, "; ".join([report.reason, *messages])
    assert (report.reason, messages) == ("", [])
