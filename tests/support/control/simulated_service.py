"""`plimsoll` in a process of its own, on a simulated cluster instead of a real one.

Run as a module, with the arguments of the command. The cluster is new in each process, and always
the same one.
"""

import os
import time
from functools import partial
from pathlib import Path

from clients.s3 import S3Settings
from control import compose
from control.cli.main import main
from control.loop.dependencies import LoopParts
from control.settings.settings import Settings
from executor.executor import Executor
from executor.journal.archive import Archive, archive_of
from executor.timing import RunLimits
from lab.simulated_cluster.demo_cluster import DemoClusterOptions
from lab.simulated_cluster.live_cluster import LiveCluster, LiveObserver

SPEED = float(os.environ.get("SIMULATED_SPEED", "1"))
"""Seconds of the cluster in one of the clock."""
BROKERS = 4
POLL_S = 0.5
CALL_S = 30.0
"""As long as a change takes with a time-out of some seconds."""


def executor_of(live: LiveCluster, settings: Settings, plan_file: Path | None = None) -> Executor:
    """The executor of a simulated cluster."""
    throttle = settings.throttle
    per_s = throttle if isinstance(throttle, int) else None
    limits = RunLimits(throttle_bytes_per_s=per_s, poll_s=POLL_S)
    archive = _archive(live, settings)
    required = compose.required_signature(settings, plan_file)
    return Executor(
        live.admin(), timing=live.timing, limits=limits, archive=archive, required=required
    )


def _archive(live: LiveCluster, settings: Settings) -> Archive | None:
    if settings.archive is None:
        return None
    bucket = S3Settings(**settings.archive.model_dump())
    leases = compose.lease_settings(settings)
    return archive_of(
        bucket, live.timing, call_s=CALL_S, slowest_s=CALL_S, late_s=CALL_S, leases=leases
    )


def begin() -> None:
    """Replace the parts that reach a cluster, and run the command."""
    world = DemoClusterOptions(brokers=BROKERS, seed=1, now_s=time.time())
    with LiveCluster(world, speed=SPEED) as live:
        compose.observer = lambda *_args, **_named: LiveObserver(live)  # type: ignore[assignment]
        compose.executor = partial(executor_of, live)
        vars(compose)["LoopParts"] = partial(LoopParts, clock=live.now_s, steady=live.now_s)
        main()


if __name__ == "__main__":
    begin()
