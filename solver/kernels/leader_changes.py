"""Descent over leader changes alone, the most profitable first."""

from solver.kernels.compiled import compiled
from solver.kernels.move_deltas import (
    State,
    change_leader,
    fits,
    lead_delta,
    may_lead,
    within_budgets,
)
from solver.kernels.problem_arrays import Columns


@compiled
def best_leader(c: Columns, s: State, p: int) -> tuple[int, float]:
    """Return the slot of row p that should lead, and the change of F, at most 0.

    (0, 0.0) where the present leader is best or the row may not change; of equal slots the
    first. Limits and budgets are not considered.
    """
    best, least = 0, 0.0
    if not c.free[p] or not c.led[p]:
        return best, least
    for k in range(1, c.rf[p]):
        if may_lead(c, p, s.at[p, k]):
            change = lead_delta(c, s, p, k)
            if change < least:
                best, least = k, change
    return best, least


@compiled
def largest_gain(c: Columns, s: State) -> float:
    """Return by how much the best single leader change would lower F; 0 where none does.

    Limits and budgets are not considered.
    """
    gain = 0.0
    for p in range(len(s.at)):
        gain = max(gain, -best_leader(c, s, p)[1])
    return gain


@compiled
def sweep_leaders(c: Columns, s: State, threshold: float) -> int:
    """Change the leader of each row where F falls by more than `threshold`.

    Visits the rows in order. Changes that would exceed a limit or a budget are not made;
    `threshold` is in units of F. Returns the number of changed rows.
    """
    changed = 0
    for p in range(len(s.at)):
        k, change = best_leader(c, s, p)
        if change >= -threshold:
            continue
        before, after = s.at[p, 0], s.at[p, k]
        change_leader(c, s, p, k)
        if fits(c, s, after) and within_budgets(c, s, p, before, after):
            changed += 1
        else:
            change_leader(c, s, p, k)
    return changed
