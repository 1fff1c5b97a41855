"""The demo on the real local cluster by its keys, and pictures of it for docs/.

python -P -m benchmarks.walk
"""

import re
import sys
from pathlib import Path
from typing import Final

from benchmarks.tmux import Tmux

OUT: Final = Path(__file__).parents[1] / "docs" / "pictures" / "real"
PLIMSOLL: Final = Path(sys.executable).with_name("plimsoll")
COLUMNS, LINES = 120, 36
SCRIPT: Final = '"$0" demo --plain --throttle 8MB/s; read -r end'
"""The report stays on the screen until Enter is pressed."""
FASTER: Final = "12MB/s"
CLUSTER: Final = "demo"
PERCENT: Final = re.compile(r" RUNNING (\d+)% ")
TO_COPY: Final = re.compile(r"([\d.]+) MB to copy")
TYPED: Final = re.compile(rf"│  {CLUSTER} +│")
"""The field of a dialog, alone on its line."""
ENOUGH_MB: Final = 120.0
"""The run has to last long enough to be steered."""


class Walk:
    """Keys to press, screens to wait for and pictures to take, in order."""

    def __init__(self, tmux: Tmux) -> None:
        self._tmux = tmux
        self._taken = 0

    def inspect(self) -> None:
        self._tmux.until("PLAN READY")
        self._take("overview")
        self._tmux.press("2")
        self._tmux.until("imbalance score", "Brokers now")
        while not _enough(self._tmux.seen()):
            self._tmux.press("r")
            self._tmux.until("replanning")
            self._tmux.until("PLAN READY", gone=["SOLVING", "replanning"])
        self._take("plan")

    def edit(self) -> None:
        """Remove the first move and see the plan without it."""
        self._tmux.press("d")
        self._tmux.until("requested: ", "PLAN READY", gone=["SOLVING"])
        self._take("removed")

    def approve(self) -> None:
        self._tmux.press("A")
        self._name("approve")
        self._tmux.until("Approve plan", gone=["being estimated", "being checked"])
        self._take("approve")
        self._tmux.press("Enter")
        self._tmux.until(" RUNNING ", gone=["Approve plan"])
        self._tmux.press("3")

    def steer(self) -> None:
        """Change the throttle, pause, resume."""
        self._tmux.wait(_some_done, "some of the run is done")
        self._take("run")
        self._tmux.press("T")
        self._tmux.until_field("50MB/s")
        self._tmux.type(FASTER)
        self._tmux.press("Enter")
        self._tmux.until("throttle 12.0 MB/s", gone=["another rate", "requested"])
        self._take("throttled")
        self._tmux.press("P")
        self._tmux.until(" PAUSED ", "waiting", gone=["moving"])
        self._take("paused")
        self._tmux.press("R")
        self._tmux.until(" RUNNING ", "in flight")
        self._take("resumed")

    def finish(self) -> None:
        self._tmux.until(" DONE ", "deviation in", gone=[" RUNNING "])
        self._take("done")
        self._tmux.press("1")
        self._tmux.until("tolerance", gone=[" SETTLING ", " RUNNING "])
        self._take("after-run")

    def roll_back(self) -> None:
        self._tmux.press("5")
        self._tmux.until("started UTC", "done")
        self._tmux.press("B")
        self._name("roll back")
        self._tmux.until("Roll back run", gone=["being estimated", "being checked"])
        self._take("roll-back")
        self._tmux.press("Enter")
        self._tmux.until(" RUNNING ", gone=["Roll back run"])
        self._tmux.press("3")
        self._tmux.until(" RUNNING ", "in flight", "what run")
        self._tmux.until(" DONE ", "deviation in", gone=[" RUNNING "])
        self._tmux.press("1")
        self._tmux.until("Overview > broker", "worst: broker 1", gone=[" SETTLING "])
        self._take("rolled-back")
        self._tmux.press("5")
        self._tmux.until("started UTC", "rolled back")
        self._take("history")

    def leave(self) -> None:
        self._tmux.press("q")
        self._tmux.until("records:")
        self._take("report")
        self._tmux.press("Enter")

    def _name(self, aim: str) -> None:
        self._tmux.until(f"Type the cluster's name to {aim}")
        self._tmux.until_field("the cluster's name")
        self._tmux.type(CLUSTER)
        self._tmux.wait(lambda seen: TYPED.search(seen) is not None, "the name in its field")

    def _take(self, name: str) -> None:
        self._taken += 1
        file = OUT / f"{self._taken:02}-{name}.svg"
        self._tmux.take(file, f"plimsoll: {name}")


def _enough(seen: str) -> bool:
    found = TO_COPY.search(seen)
    return found is not None and float(found[1]) >= ENOUGH_MB


def _some_done(seen: str) -> bool:
    found = PERCENT.search(seen)
    return found is not None and int(found[1]) >= 10


def main() -> None:
    with Tmux(["sh", "-c", SCRIPT, str(PLIMSOLL)], COLUMNS, LINES) as tmux:
        walk = Walk(tmux)
        walk.inspect()
        walk.edit()
        walk.approve()
        walk.steer()
        walk.finish()
        walk.roll_back()
        walk.leave()


if __name__ == "__main__":
    main()
