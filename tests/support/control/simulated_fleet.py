"""`plimsoll` in a process of its own, on simulated clusters, some of which are in trouble.

Run as a module, with the arguments of the command. The bootstrap servers of a cluster's settings
say which one it is: `HOST:PORT`, where `HOST` is a key of `CLUSTERS`, `hangs` or `raises`.
"""

import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import Any, NoReturn

from control import compose
from control.cli.main import main
from control.loop.dependencies import LoopParts
from control.settings.settings import Settings
from lab.simulated_cluster import demo_cluster
from lab.simulated_cluster.demo_cluster import DemoClusterOptions
from lab.simulated_cluster.live_cluster import LiveCluster, LiveObserver
from tests.support.control.simulated_service import BROKERS, SPEED, executor_of

CLUSTERS = ("east", "west")
"""They have their names as ids."""


class HangingObserver(LiveObserver):
    """Of a cluster whose calls never return."""

    def start(self) -> None:
        """Wait for ever."""
        threading.Event().wait()


class RaisingObserver(LiveObserver):
    """Of a cluster that plimsoll has an error with."""

    def start(self) -> NoReturn:
        """Raise."""
        raise RuntimeError("boom")


def begin() -> None:
    """Replace the parts that reach a cluster, and run the command."""
    with ExitStack() as opened:
        lives: dict[str, LiveCluster] = {}
        for seed, name in enumerate(CLUSTERS):
            vars(demo_cluster)["CLUSTER_ID"] = name
            world = DemoClusterOptions(brokers=BROKERS, seed=seed, now_s=time.time())
            lives[name] = opened.enter_context(LiveCluster(world, speed=SPEED))
        kinds = {"hangs": HangingObserver, "raises": RaisingObserver}

        def host(settings: Settings) -> str:
            return str(settings.bootstrap_server).partition(":")[0]

        def observer(settings: Settings, **_named: Any) -> LiveObserver:
            kind = kinds.get(host(settings), LiveObserver)
            return kind(lives.get(host(settings), lives["east"]))

        compose.observer = observer  # type: ignore[assignment]
        compose.executor = lambda settings, plan_file=None: executor_of(
            lives[host(settings)], settings, plan_file
        )
        clock = lives["east"].now_s
        vars(compose)["LoopParts"] = partial(LoopParts, clock=clock, steady=clock)
        main()


if __name__ == "__main__":
    begin()
