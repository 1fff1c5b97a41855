"""The screen alone: `python -P -m benchmarks.screen_shown PLAN BROKERS PARTITIONS`.

Shows a run of the plan, with a new view each second; nothing else is in the process.
"""

import itertools
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, cast

from benchmarks.canned import CannedLoop, ready, running, seconds, snapshots
from model.plan.plan import read_plan
from tui.app import run

if TYPE_CHECKING:
    from control.loop.loop import Loop


def main() -> None:
    """Show it until q is typed or the process is ended."""
    plan = read_plan(Path(sys.argv[1]))
    states = snapshots(int(sys.argv[2]), int(sys.argv[3]))
    first = running(ready(states[0], plan))
    loop, ended = CannedLoop(first, running=True), threading.Event()
    views = itertools.islice(seconds(first, states), 1, None)

    def go_on() -> None:
        while not ended.wait(1.0):
            loop.show(next(views))

    threading.Thread(target=go_on, daemon=True).start()
    try:
        run(cast("Loop", loop))
    finally:
        ended.set()


if __name__ == "__main__":
    main()
