"""Copies between arrays of equal shape, element by element.

Loops, as `to[:] = values` costs a second to compile for each shape: numba compiles the message of
an error with it.
"""

from solver.kernels.compiled import Array, compiled


@compiled
def copy_to(to: Array, values: Array) -> None:
    """Fill `to`, (m,), with `values`, (m,) or longer."""
    for i in range(len(to)):
        to[i] = values[i]


@compiled
def copy_rows_to(to: Array, values: Array) -> None:
    """Fill `to`, (m, n), with `values`, of the same shape."""
    for i in range(to.shape[0]):
        for j in range(to.shape[1]):
            to[i, j] = values[i, j]
