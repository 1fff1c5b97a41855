"""The answer to a what-if question as text."""

from control.render.plan_text import plan_text
from control.render.text import table
from model.snapshot.what_if import FewestBrokers, WhatIf
from model.snapshot.what_if_grid import GridCell, WhatIfGrid
from model.units import bytes_text, count_text, percent_text


def what_if_text(answer: WhatIf) -> str:
    """The scenario, what it would lose, and the plan for it."""
    lines = [f"what if: {answer.words}; hypothetical, so this plan cannot be applied"]
    if answer.lost:
        gone = count_text(answer.lost, "partition")
        lines.append(f"{gone} would have no replica left and stay offline")
    if answer.fewest_brokers is not None:
        lines += _fewest_lines(answer.fewest_brokers)
    reasons = "; ".join(answer.reasons)
    if answer.plan is None:
        lines.append(f"{answer.status}: {reasons or 'no reason given'}")
        return "\n".join(lines) + "\n"
    summary = f"{answer.status}: {count_text(len(answer.plan.moves), 'move')}"
    if reasons:
        summary += f"; {reasons}"
    return "\n".join(lines) + "\n" + plan_text(answer.plan, summary)


def _fewest_lines(found: FewestBrokers) -> list[str]:
    count = count_text(found.fewest, "broker")
    enough = f"{count} can carry it; there are {found.present}"
    if found.fewest == found.bound:
        proof = f"fewer cannot: {found.binding}"
    else:
        proof = f"fewer than {found.bound} cannot: {found.binding}"
    lines = [f"{enough}; {proof}"]
    if found.removed:
        lines.append(f"drained: {', '.join(map(str, found.removed))}")
    if found.added:
        lines.append(f"added: {', '.join(map(str, found.added))}")
    return lines


def grid_text(grid: WhatIfGrid) -> str:
    """A row for each scenario, and the reasons where there is no plan."""
    shown = ("moves", "to copy", "worst broker", "imbalance", "proved bound", "over limits")
    rows = [[cell.words, str(cell.status), *_figures(cell)] for cell in grid.cells]
    count = count_text(len(grid.cells), "scenario")
    lines = [f"{count}, each with the whole search budget; hypothetical", ""]
    lines.append(table(["what if", "status", *shown], rows))
    for cell in grid.cells:
        if cell.lost:
            gone = count_text(cell.lost, "partition")
            lines.append(f"{cell.words}: {gone} would have no replica left and stay offline")
        if cell.moves is None:
            lines.append(f"{cell.words}: {'; '.join(cell.reasons) or 'no reason given'}")
    return "\n".join(lines).rstrip("\n") + "\n"


def _figures(cell: GridCell) -> list[str]:
    if cell.moves is None or cell.worst_deviation is None:
        return ["-"] * 6
    return [
        str(cell.moves),
        bytes_text(cell.bytes_to_copy),
        percent_text(cell.worst_deviation),
        f"{cell.objective:.4g}",
        f"{cell.bound:.4g}",
        str(cell.over_limit),
    ]
