"""A frontier as a table of plans in order of cost."""

from control.render.frontier_svg import marks
from control.render.text import table
from model.plan.frontier import Frontier, FrontierPoint, undominated
from model.units import bytes_text, count_text


def frontier_text(frontier: Frontier) -> str:
    """The frontier's points, the best trade-off among them, and what limited it."""
    if not frontier.points:
        return f"no frontier: {'; '.join(frontier.reasons) or 'no plan was found'}\n"
    what = {
        "deviation": "imbalance is the weighted sum of squared deviations",
        "excess": "imbalance is the excess over the tolerance bands, relative to the average",
    }
    count = count_text(len(frontier.points), "plan")
    lines = [f"{count} in order of cost; {what[frontier.measure]}"]
    if len(undominated(frontier.points)) < len(frontier.points):
        lines.append("another point is cheaper and more balanced than the plan, within its gap")
    if frontier.limited_by:
        lines.append(f"limited by: {frontier.limited_by}; solve.work allows more")
    if frontier.knee is not None:
        point = frontier.points[frontier.knee]
        lines.append(
            f"the best trade-off is at {count_text(point.moves, 'move')}: further "
            "moves improve the balance much less"
        )
    return "\n".join(lines) + "\n\n" + _table(frontier)


def _table(frontier: Frontier) -> str:
    rows = [
        [str(at + 1), *_cells(point), f"({', '.join(names)})" if names else ""]
        for at, point in enumerate(frontier.points)
        for names in [marks(frontier, at)]
    ]
    shown = ("moves", "leaders", "to copy", "cost", "imbalance", "proved bound", "cost of a move")
    return table(["point", *shown, ""], rows)


def _cells(point: FrontierPoint) -> list[str]:
    return [
        str(point.moves),
        str(point.leader_changes),
        bytes_text(point.bytes_to_copy),
        f"{point.cost:.4g}",
        f"{point.balance:.4g}",
        f"{point.bound:.4g}",
        f"{point.move_price:.3g}",
    ]
