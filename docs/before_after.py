"""Draw docs/pictures/before-after.svg: `make pictures`.

The figures are those of a plan that plimsoll makes for a synthetic cluster of twelve
brokers, two of which are nearly empty.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

PICTURE: Final = Path(__file__).parent / "pictures" / "before-after.svg"
CLUSTER: Final = ("--brokers", "12", "--partitions", "600", "--days", "0")
RESOURCE: Final = "net_out"
TOLERANCE: Final = 0.1
WIDTH, HEIGHT = 880, 300
PANEL, GAP, LEFT, TOP, BASE = 380, 30, 70, 88, 262
"""Pixels: width of a panel, between panels, and the edges of the bars' area."""
STYLE: Final = """
text { font-family: Helvetica, Arial, sans-serif; font-size: 12px }
.title { fill: #1b1b1b; font-size: 16px; font-weight: bold }
.label { fill: #555555 }
.axis { fill: #555555; text-anchor: end }
.broker { fill: #555555; text-anchor: middle }
.within { fill: #1b5e9e }
.outside { fill: #c2571a }
.band { fill: #dfe8f2 }
.average { stroke: #1b1b1b; stroke-dasharray: 4 3 }
"""

Plan = Mapping[str, Any]


def main() -> None:
    """Make the cluster and its plan, and write the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _plimsoll(folder, "generate", *CLUSTER, "--out", "cluster")
        _plimsoll(folder, "plan", "--snapshot", "cluster/snapshot.json", "--out", "p.json")
        plan = json.loads((folder / "p.json").read_text("utf-8"))
    PICTURE.write_text("\n".join(_picture(plan)) + "\n", "utf-8")


def _plimsoll(folder: Path, *arguments: str) -> None:
    program = Path(sys.executable).with_name("plimsoll")
    subprocess.run([program, *arguments], cwd=folder, check=True, capture_output=True)


def _picture(plan: Plan) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">'
    )
    yield f"<style>{STYLE}</style>"
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    yield _text("title", LEFT, 26, "Bytes per second sent by each of 12 brokers")
    yield _text("label", LEFT, 46, _summary(plan))
    worst = max(abs(b["deviation_after"][RESOURCE]) for b in plan["brokers"])
    yield from _panel(plan, "before", "Before: brokers 10 and 11 are new", LEFT)
    after = f"After: every broker within {worst:.1%} of the average"
    yield from _panel(plan, "after", after, LEFT + PANEL + GAP)
    yield "</svg>"


def _summary(plan: Plan) -> str:
    leaders = sum(m["leader_before"] != m["leader_after"] for m in plan["moves"])
    return (
        f"{len(plan['moves'])} moves, of which {leaders} change the leader. "
        f"Imbalance score {plan['objective_before']:.2f} before, "
        f"{plan['objective']:.3f} after; proved: no plan is below {plan['bound']:.3f}."
    )


def _panel(plan: Plan, key: str, title: str, left: int) -> Iterator[str]:
    loads = [broker[key][RESOURCE] for broker in plan["brokers"]]
    average, top = sum(loads) / len(loads), _top(plan)
    low, middle, high = (_y(average * (1 + d), top) for d in (-TOLERANCE, 0, TOLERANCE))
    yield _text("label", left, TOP - 8, title)
    yield _rect("band", left, high, PANEL, low - high)
    for number, load in enumerate(loads):
        kind = "within" if abs(load / average - 1) <= TOLERANCE else "outside"
        step = PANEL / len(loads)
        x, y = left + number * step, _y(load, top)
        yield _rect(kind, x + 4, y, step - 8, BASE - y)
        yield _text("broker", x + step / 2, BASE + 16, str(number))
    yield (
        f'<line class="average" x1="{left}" x2="{left + PANEL}" '
        f'y1="{middle:.1f}" y2="{middle:.1f}"/>'
    )
    if left == LEFT:
        yield _text("axis", left - 6, middle + 4, f"{average / 1e6:.0f} MB/s")


def _top(plan: Plan) -> float:
    loads: Sequence[float] = [
        broker[key][RESOURCE] for broker in plan["brokers"] for key in ("before", "after")
    ]
    return max(loads)


def _y(load: float, top: float) -> float:
    return BASE - load / top * (BASE - TOP)


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
    )


def _text(kind: str, x: float, y: float, words: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{words}</text>'


if __name__ == "__main__":
    main()
