"""Loads of all partitions at any time: constant, by curves, or from a table of rates."""

from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np

from lab.synthetic.load_curves import LoadCurves
from lab.synthetic.shape import ClusterShape
from lab.synthetic.synthetic_snapshot import ClusterName, cluster
from model.snapshot.snapshot import Floats, Ints, Resource, Snapshot, StorageKind

CONSTANT: Final = (Resource.DISK,)
"""Resources that do not follow the rate of a partition."""


class VaryingLoads(Protocol):
    """Loads of the partitions of one snapshot, in the order of its rows and resources."""

    def at(self, time_ms: int) -> Floats:
        """(n, resources) at a time, milliseconds since the epoch; may be a shared array."""
        ...


@dataclass(frozen=True, slots=True)
class SteadyLoads:
    """The loads of a snapshot, for ever."""

    loads: Floats

    def at(self, time_ms: int) -> Floats:
        """As `VaryingLoads` has it."""
        del time_ms
        return self.loads


@dataclass(frozen=True, slots=True)
class CurvedLoads:
    """The loads of a snapshot as means of curves over days and weeks, with bursts."""

    loads: Floats
    rates: Ints
    """Columns that follow the curves."""
    curves: LoadCurves

    def at(self, time_ms: int) -> Floats:
        """As `VaryingLoads` has it."""
        found = self.loads.copy()
        found[:, self.rates] *= self.curves.rates(time_ms)[:, None]
        return found


@dataclass(frozen=True, slots=True)
class TabledLoads:
    """Loads by the rates of topics; each holds until the next time of its topic."""

    loads: Floats
    rates: Ints
    """Columns in proportion to the rate of the topic."""
    topic: Ints
    """(n,) topic of each row."""
    times_ms: Ints
    """(times,) ascending."""
    factors: Floats
    """(times, topics) rate of each topic as a multiple of that in `loads`."""

    def at(self, time_ms: int) -> Floats:
        """As `VaryingLoads` has it."""
        row = max(0, int(np.searchsorted(self.times_ms, time_ms, side="right")) - 1)
        found = self.loads.copy()
        found[:, self.rates] *= self.factors[row][self.topic][:, None]
        return found


def rate_columns(snapshot: Snapshot) -> Ints:
    """Columns of the loads that follow the rate of a partition."""
    resources = snapshot.header.resources
    return np.array([i for i, r in enumerate(resources) if r not in CONSTANT], np.int64)


def synthetic_start(shape: ClusterShape, at_ms: int, seed: int) -> Snapshot:
    """A synthetic cluster without new brokers, as at this time (ms since the epoch)."""
    settled = replace(shape, young=False)
    name = f"synthetic-{shape.brokers}x{shape.partitions}-{seed}"
    rng = np.random.default_rng([seed, shape.brokers, shape.partitions, shape.rf])
    return cluster(
        settled, StorageKind.REPLICATED, ClusterName(cluster_id=name, taken_at_ms=at_ms), rng
    )
