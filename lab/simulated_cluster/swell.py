"""How the loads of a simulated cluster that lives go up and down."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints

DEPTH: Final = (0.05, 0.3)
"""Range of the amplitude of a topic's rate, against its mean."""
PERIOD_S: Final = (240.0, 900.0)
"""Range of the time from one peak of a topic to its next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swell:
    """A sine for each topic, at its own pace; equal times give equal factors."""

    topic: Ints
    """(n,) position of each partition's topic."""
    depth: Floats
    """(topics,) amplitude against the mean."""
    period_s: Floats
    """(topics,)"""
    phase: Floats
    """(topics,) radians."""

    @classmethod
    def of(cls, topic: Ints, rng: np.random.Generator) -> "Swell":
        """The swell of a cluster with these topics."""
        topics = int(topic[-1]) + 1
        return cls(
            topic=topic,
            depth=rng.uniform(*DEPTH, topics),
            period_s=rng.uniform(*PERIOD_S, topics),
            phase=rng.uniform(0.0, 2 * np.pi, topics),
        )

    def factors(self, now_s: float) -> Floats:
        """(n,) what each partition carries at a time, against its mean."""
        turn = 2 * np.pi * now_s / self.period_s + self.phase
        of_topic: Floats = 1 + self.depth * np.sin(turn)
        return of_topic[self.topic]
