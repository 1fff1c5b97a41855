"""The brokers' loads in the last minutes."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from model.evaluate import Evaluation
from model.ids import BrokerId

DRAWN = 12
"""Samples in the sparkline of a row."""
KEPT = 300
"""Samples: five minutes at one per second."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sample:
    at_ms: int
    brokers: tuple[BrokerId, ...]
    resources: tuple[str, ...]
    loads: NDArray[np.float32]
    """(brokers, resources)."""


@dataclass(frozen=True, slots=True, eq=False)
class Recent:
    """A few samples over the whole span, indexed by broker."""

    samples: tuple[dict[BrokerId, dict[str, float]], ...] = ()
    most: dict[str, float] = field(default_factory=dict)
    """The largest load of any broker in them, by resource."""

    def of(self, broker: BrokerId, resource: str) -> list[float | None]:
        """One broker's loads, oldest first; None where it is missing."""
        return [sample.get(broker, {}).get(resource) for sample in self.samples]


NO_HISTORY: Final = Recent()


@dataclass(frozen=True, slots=True, eq=False)
class Trail:
    """The loads of each broker in order of arrival, oldest first.

    If the clock jumps, the reported span changes, but not the order.
    """

    samples: tuple[_Sample, ...] = ()

    def with_sample(self, at_ms: int, evaluation: Evaluation) -> "Trail":
        """Append a sample; the oldest is dropped beyond the limit."""
        loads = evaluation.loads
        resources = tuple(next(iter(loads.values()), {}))
        table = [[load.get(r, 0.0) for r in resources] for load in loads.values()]
        sample = _Sample(
            at_ms=at_ms,
            brokers=tuple(loads),
            resources=resources,
            loads=np.array(table, np.float32).reshape(len(loads), len(resources)),
        )
        return Trail((*self.samples[1 - KEPT :], sample))

    @property
    def recent(self) -> Recent:
        """Evenly spaced samples, the newest included, as many as a row draws."""
        last = len(self.samples) - 1
        count = min(DRAWN, last + 1)
        at = sorted({round(last * i / max(1, count - 1)) for i in range(count)})
        samples = [self.samples[i] for i in at]
        most: dict[str, float] = {}
        for sample in samples:
            largest = sample.loads.max(axis=0, initial=0.0).tolist()
            for resource, load in zip(sample.resources, largest, strict=True):
                most[resource] = max(load, most.get(resource, 0.0))
        return Recent(tuple(map(_by_broker, samples)), most)

    @property
    def span_s(self) -> float:
        """Seconds from the oldest sample to the latest."""
        if not self.samples:
            return 0.0
        return max(0.0, (self.samples[-1].at_ms - self.samples[0].at_ms) / 1000)

    def of(self, broker: BrokerId, resource: str) -> list[float | None]:
        """One broker's loads; None where it is missing."""
        return [_load(sample, broker, resource) for sample in self.samples]


def _load(sample: _Sample, broker: BrokerId, resource: str) -> float | None:
    if broker not in sample.brokers or resource not in sample.resources:
        return None
    row = sample.brokers.index(broker)
    return float(sample.loads[row, sample.resources.index(resource)])


def _by_broker(sample: _Sample) -> dict[BrokerId, dict[str, float]]:
    rows = sample.loads.tolist()
    return {
        broker: dict(zip(sample.resources, row, strict=True))
        for broker, row in zip(sample.brokers, rows, strict=True)
    }
