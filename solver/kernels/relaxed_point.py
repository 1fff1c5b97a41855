"""Rows of one replica on brokers, some of them decided, and a point of the relaxation.

    least over masses m of  sum_pb m_pb c_pb + sum_bd w_d v_bd^2

where the masses of a row sum to one.
"""

from typing import Any, NamedTuple

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.compiled import compiled, linked, reference_to


class Relaxed(NamedTuple):
    """R rows on B brokers, K counted dimensions, and the point reached."""

    cost: Floats
    """(R, B) price of each row on each broker; infinite where it shall not go."""
    load: Floats
    """(R, K) in levels."""
    scale: Floats
    """(B, K) deviation by a load of one level."""
    fixed: Floats
    """(B, K) deviation by all other rows."""
    weight: Floats
    """(K,)"""
    decided: Ints
    """(R,) the only broker that a row may be on; -1 where it may be on several."""
    mass: Floats
    """(R, B)"""
    v: Floats
    """(B, K) deviations."""
    q: Floats
    """(B, K) prices of a level's load at these deviations."""
    prices: Floats
    """(B, K) of deviation, the best ones found."""
    active: Ints
    """(R,) rows that are cheaper on a broker that has none of them."""
    size: Floats
    """(R,) length of each load; 1 where there is none."""


RelaxedStruct, RelaxedReference = reference_to(Relaxed)


@compiled
def _link_relaxed(parts: Any) -> Any:
    return RelaxedReference(*parts)


def new_relaxed(
    cost: Floats, load: Floats, scale: Floats, fixed: Floats, weight: Floats
) -> Relaxed:
    """Nothing decided, nothing placed yet."""
    size = np.sqrt(sum(w * x * x for w, x in zip(weight, load.T, strict=True)))
    return linked(
        _link_relaxed,
        Relaxed(
            cost=cost,
            load=load,
            scale=scale,
            fixed=fixed,
            weight=weight,
            decided=np.full(len(cost), -1),
            mass=np.zeros(cost.shape),
            v=fixed.copy(),
            q=np.zeros(fixed.shape),
            prices=np.zeros(fixed.shape),
            active=np.zeros(len(cost), np.int64),
            size=np.where(size > 0.0, size, 1.0),
        ),
    )


@compiled
def may(x: Relaxed, p: int, b: int) -> bool:
    """Whether row p may be on broker b."""
    return x.cost[p, b] < np.inf and (x.decided[p] < 0 or x.decided[p] == b)


@compiled
def price_of(x: Relaxed, p: int, b: int) -> float:
    """What row p costs on broker b at the prices `q`."""
    found = x.cost[p, b]
    for d in range(len(x.weight)):
        found += x.q[b, d] * x.load[p, d]
    return found


@compiled
def quote(x: Relaxed, b: int) -> None:
    """Work out what broker b asks for a level's load at its deviations."""
    for d in range(len(x.weight)):
        x.q[b, d] = 2.0 * x.weight[d] * x.v[b, d] * x.scale[b, d]
