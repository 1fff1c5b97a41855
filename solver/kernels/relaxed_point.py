"""Rows with one replica on brokers, some of them decided, and a point of the relaxation.

minimise over masses m: sum_pb m_pb c_pb + sum_bd w_d v_bd^2

where the masses of a row sum to one.
"""

from typing import Any, NamedTuple

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.compiled import compiled, linked, reference_to


class Relaxed(NamedTuple):
    """R rows on B brokers, K balanced dimensions, and the point reached."""

    cost: Floats
    """(R, B) cost of each row on each broker; infinite where it is ruled out."""
    load: Floats
    """(R, K) load as a share of the mean."""
    scale: Floats
    """(B, K) deviation per unit of load."""
    fixed: Floats
    """(B, K) deviation from all other rows."""
    weight: Floats
    """(K,) weight in F."""
    decided: Ints
    """(R,) the only broker that a row may be on; -1 where it may be on several."""
    mass: Floats
    """(R, B) share of each row on each broker."""
    v: Floats
    """(B, K) deviations."""
    q: Floats
    """(B, K) prices per unit of load at these deviations."""
    prices: Floats
    """(B, K) best prices of deviation found."""
    active: Ints
    """(R,) rows that are cheaper on a broker that holds none of them."""
    size: Floats
    """(R,) length of each load vector; 1 where it is 0."""


RelaxedStruct, RelaxedReference = reference_to(Relaxed)


@compiled
def _link_relaxed(parts: Any) -> Any:
    return RelaxedReference(*parts)


def new_relaxed(
    cost: Floats, load: Floats, scale: Floats, fixed: Floats, weight: Floats
) -> Relaxed:
    """Create a relaxation with nothing decided and no mass placed.

    `cost` is (R, B), `load` (R, K), `scale` and `fixed` (B, K), `weight` (K,).
    """
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
    """Return whether row p may be on broker b: neither ruled out nor decided otherwise."""
    return x.cost[p, b] < np.inf and (x.decided[p] < 0 or x.decided[p] == b)


@compiled
def price_of(x: Relaxed, p: int, b: int) -> float:
    """Compute the cost of row p on broker b, its load priced at `x.q`, in units of F."""
    found = x.cost[p, b]
    for d in range(len(x.weight)):
        found += x.q[b, d] * x.load[p, d]
    return found


@compiled
def quote(x: Relaxed, b: int) -> None:
    """Set `q` of broker b to the marginal cost per unit of load at its deviations."""
    for d in range(len(x.weight)):
        x.q[b, d] = 2.0 * x.weight[d] * x.v[b, d] * x.scale[b, d]
