"""The cheapest plan that brings every broker into its tolerance band, beyond exact sizes.

A linear program over placements of rows, extended by column generation, gives a bound for the
whole problem and shows which choices can matter; CP-SAT decides among those. Choices whose
reduced cost exceeds the gap can be left out, so a small model proves a large one.
"""

from solver.band.tolerance_band import solve_band

__all__ = ["solve_band"]
