"""`plimsoll` on a large cluster in memory, for `benchmarks.service`: loads that change, no Kafka.

Run as a module, with the arguments of the command.
"""

from functools import partial
from typing import Any

from benchmarks.canned import AT_MS, STATES, snapshots
from benchmarks.loop import BROKERS, PARTITIONS, Remembered
from control import compose
from control.cli.main import main
from control.loop.dependencies import LoopParts


def begin() -> None:
    """Replace the part that observes a cluster, and run the command."""
    states = snapshots(BROKERS, PARTITIONS)

    def observer(*_args: Any, **_named: Any) -> Remembered:
        return Remembered(states)

    compose.observer = observer  # type: ignore[assignment]
    vars(compose)["LoopParts"] = partial(LoopParts, clock=lambda: AT_MS / 1000 + STATES)
    main()


if __name__ == "__main__":
    begin()
