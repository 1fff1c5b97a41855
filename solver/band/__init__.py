"""The cheapest plan that brings every broker into its band, beyond the exact size.

A linear program over placements of rows, grown by its own prices, gives a bound for
the whole problem and says which choices can matter; CP-SAT decides among those. Choices
dearer than the gap can be left out without harm, so a small model proves a large one.
"""

from solver.band.tolerance_band import solve_band

__all__ = ["solve_band"]
