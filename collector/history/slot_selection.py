"""Select the coming hours that a plan must balance: few, and different ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from collector.history.slots import Floats
from model.snapshot.checks import MOST_SLOTS
from model.units import percent_text

MORE: Final = 1.1
"""A peak that is not so many times what flows now changes no plan."""
LEAST_APART: Final = 0.1
"""Hours that differ by less of their load are alike: a plan for one suits both."""


@dataclass(frozen=True, slots=True)
class SelectedHour:
    """A selected forecast hour, and the reason for it."""

    at: int
    why: str
    topic: str | None
    """In which most of the difference lies, where that is why."""


def choose(
    loads: Mapping[str, Floats], topics: Sequence[str], names: Sequence[str]
) -> tuple[SelectedHour, ...]:
    """Select at most seven hours besides now, in the order of time.

    First the peak of each resource, where it stands out; then, one after the other,
    the hour that is farthest from now and from all that were chosen.

    Parameters
    ----------
    loads
        By resource, (topics, 1 + a): now, and each of the a forecast hours.
    topics, names
        Of the rows, and of the columns after the first.
    """
    resources = {r: v for r, v in loads.items() if v.sum() > 0}
    if not resources:
        return ()
    hours = _Hours(resources, topics, ("now", *names))
    found: dict[int, tuple[str, str | None]] = {**hours.peaks()}
    while len(found) < MOST_SLOTS:
        at, apart = hours.farthest([0, *found])
        if apart < LEAST_APART:
            break
        found[at] = hours.difference(at, [0, *found])
    return tuple(SelectedHour(at - 1, *found[at]) for at in sorted(found))


class _Hours:
    """How far hours lie apart: the share of their load that is in other topics.

    An hour in which little flows counts less: by its load over that of the peak. All
    loads times two is no difference, since a balanced cluster stays balanced; the
    peak is chosen for the sake of capacities.
    """

    def __init__(
        self, loads: Mapping[str, Floats], topics: Sequence[str], names: Sequence[str]
    ) -> None:
        self._loads, self._topics, self._names = loads, topics, names
        self._totals = {r: v.sum(axis=0) for r, v in loads.items()}
        self._weight = {r: t / t.max() for r, t in self._totals.items()}
        self._mix = {
            r: v / np.where(self._totals[r] > 0, self._totals[r], 1.0) for r, v in loads.items()
        }

    def peaks(self) -> dict[int, tuple[str, None]]:
        """Why, by column."""
        found: dict[int, list[str]] = {}
        for resource, totals in self._totals.items():
            at = int(np.argmax(totals))
            if totals[at] > MORE * totals[0]:
                times = f", {totals[at] / totals[0]:.1f} x now's" if totals[0] > 0 else ""
                found.setdefault(at, []).append(f"the most {resource}{times}")
        return {at: ("; ".join(words), None) for at, words in found.items()}

    def farthest(self, chosen: Sequence[int]) -> tuple[int, float]:
        """The column whose nearest among those chosen is farthest, and how far."""
        apart = np.min([self._apart(at) for at in chosen], axis=0)
        # Rounded, so that the last bits of sums choose nothing; then the earliest.
        at = int(np.argmax(np.round(apart, 9)))
        return at, float(apart[at])

    def difference(self, at: int, chosen: Sequence[int]) -> tuple[str, str]:
        """In words, from the nearest of those chosen, and by which topic most."""
        nearest = min(chosen, key=lambda c: (round(float(self._apart(c)[at]), 9), c))
        moved = sum(mix[:, at] - mix[:, nearest] for mix in self._mix.values())
        topic = self._topics[int(np.argmax(moved))]
        share = percent_text(float(self._apart(nearest)[at]))
        where = self._names[nearest]
        return f"{share} of the load in other topics than at {where}", topic

    def _apart(self, chosen: int) -> Floats:
        """(1 + a,) each hour's distance from one of them, 0 to 1."""
        found = [
            self._weight[r] * np.abs(mix - mix[:, [chosen]]).sum(axis=0) / 2
            for r, mix in self._mix.items()
        ]
        apart: Floats = np.mean(found, axis=0)
        return apart
