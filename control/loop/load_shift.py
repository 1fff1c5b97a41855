"""Whether a shift of load is there to stay, as pure functions of what the newest samples say."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from model.evaluate import Evaluation
from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.snapshot import Count, Resource, dimension_words
from model.snapshot.steadiness import Steadiness
from model.units import seconds_text, share_text

BURST_S: Final = 10.5
"""A burst of less than 10 s moves nothing; half a second more, since samples are a second
apart."""
PREPARE_S: Final = 4.0
"""A plan is made so long before it may be executed."""
PATIENCE_S: Final = 60.0
"""After so long out of tolerance, `--auto` acts on loads that are neither steady nor
certain: they may stay like this."""
CONSUMERS_PATIENCE_S: Final = 600.0
"""The same where only consumers that stopped or catch up bring brokers out of tolerance."""
FIRST_S: Final = 10.0
"""Commits of consumers are watched for so long at first contact, unless they are regular."""
CONFIDENCE: Final = 2.0
"""Standard errors of a load that an interval reaches to both sides: about 95 %."""
_MOST_AGE_S: Final = 5.0
_OUT: Final = frozenset({Resource.NET_OUT, Count.POTENTIAL_NET_OUT})
_RATES: Final = frozenset({Resource.NET_IN, Resource.NET_OUT, Count.LEADER_NET_IN})
"""Measures that are rates, so that their noise is that of the samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadShift:
    """The newest change of load, as the loop's decision needs it."""

    level_s: float | None = None
    """Seconds that loads have been at their new level, by the samples; None where no change
    was found."""
    agrees: bool = True
    """Whether the newest sample is at that level, too."""
    measured: bool = True
    """Whether all loads have been measured since they changed."""
    uncertain: str = ""
    """Why no broker is out of tolerance for certain; empty where one is."""
    unread: str = ""
    """Which consumers alone bring brokers out of tolerance, while they do not keep up."""
    early: str = ""
    """Why the first loads of a cluster are not reliable yet; empty where they are."""

    @classmethod
    def of(cls, steadiness: Steadiness | None, evaluation: Evaluation, goals: Goals) -> "LoadShift":
        """Collect what the samples behind a snapshot say; without them nothing holds back."""
        if steadiness is None:
            return cls()
        return cls(
            level_s=None if steadiness.changed_ms is None else steadiness.level_s,
            agrees=steadiness.agrees,
            measured=steadiness.measured,
            uncertain=uncertain_text(evaluation, goals, steadiness.noise),
            unread=unread_text(evaluation, goals, steadiness.unread),
            early=early_text(steadiness),
        )

    def doubt(self, needed_s: float) -> str:
        """Why a shift may still be a burst or noise; empty if it is neither.

        needed_s: how long the cluster has been out of tolerance.
        """
        if self.unread and needed_s < CONSUMERS_PATIENCE_S:
            return self.unread
        if needed_s >= PATIENCE_S:
            return ""
        level_s = needed_s if self.level_s is None else min(needed_s, self.level_s)
        if level_s < BURST_S:
            return f"the load shifted {level_s:.0f} s ago; a burst may end within {BURST_S:.0f} s"
        if not self.measured:
            return "not every partition has been measured since the load shifted"
        if not self.agrees:
            return "the newest sample shows another load; waiting for the next one"
        return self.uncertain

    @property
    def hopeful(self) -> "LoadShift":
        """The same where the next samples leave no doubt but that of a burst."""
        return replace(self, agrees=True, measured=True, uncertain="", unread="", early="")

    @property
    def left_s(self) -> float:
        """Seconds until a change that was found is no burst any more."""
        return 0.0 if self.level_s is None else max(0.0, BURST_S - self.level_s)


def early_text(steadiness: Steadiness) -> str:
    """Why the first loads are not reliable yet: groups seem to read more or less than arrives.

    Commits come in bursts, so that it takes several of them to tell how much is read.
    """
    seen_s = (steadiness.newest_ms - steadiness.since_ms) / 1000
    if not steadiness.unread or seen_s >= FIRST_S:
        return ""
    return f"consumers have been watched for {seen_s:.0f} s; measuring for {FIRST_S:.0f} s"


def confidence_text(steadiness: Steadiness | None) -> str:
    """How long loads were measured, and how exactly; empty where that is not known."""
    if steadiness is None or not steadiness.noise:
        return ""
    span = f"loads of {seconds_text(max(0.0, steadiness.level_s))}"
    error = CONFIDENCE * max(steadiness.noise.values())
    if not math.isfinite(error):
        return f"{span}, too short to tell their noise"
    return f"{span}, those of brokers within ± {share_text(error)}"


def noise_of_objective(
    steadiness: Steadiness | None, evaluation: Evaluation, goals: Goals
) -> float:
    """What the noise of measured rates adds to F on average; 0 where it is not known.

    F is a sum of squared deviations, to each of which a load with a relative standard error s
    adds s squared.
    """
    if steadiness is None:
        return 0.0
    squared = sum(error * error for error in steadiness.noise.values())
    counted = {key.partition("@")[0] for key in evaluation.levels}
    weight = sum(
        goal.weight
        for goal in goals.balance
        if goal.resource in _RATES and goal.resource.value in counted
    )
    return float(f"{weight * squared:.3g}") if math.isfinite(squared) else 0.0


def level_age_s(steadiness: Steadiness | None, now_ms: int, *, was_balanced: bool) -> float:
    """Seconds for which loads have been as they are now; 0 where that is not known.

    A balanced cluster has been so only since a change that was found; at first contact,
    every sample counts. now_ms: by the observer's clock, which may have been set.
    """
    if steadiness is None or (was_balanced and steadiness.changed_ms is None):
        return 0.0
    age_s = (now_ms - steadiness.newest_ms) / 1000
    return steadiness.level_s + min(max(age_s, 0.0), _MOST_AGE_S)


def uncertain_text(evaluation: Evaluation, goals: Goals, noise: Mapping[BrokerId, float]) -> str:
    """State the deviation that is nearest to certain, if noise may explain all of them.

    noise: standard errors as shares of the loads. Empty where a broker is out of tolerance
    for certain, or in a dimension that is not a rate of now, or where none is.
    """
    found = list(evaluation.outside(goals))
    errors = [CONFIDENCE * noise.get(one.broker, 0.0) * (1 + one.deviation) for one in found]
    if not found or any(
        one.dimension not in _RATES or one.excess > error
        for one, error in zip(found, errors, strict=True)
    ):
        return ""
    error, surest = max(
        zip(errors, found, strict=True), key=lambda pair: abs(pair[1].deviation) - pair[0]
    )
    return (
        f"{dimension_words(surest.dimension)} of broker {surest.broker} deviates by "
        f"{share_text(surest.deviation)} ± {share_text(error)}, the tolerance is "
        f"{share_text(surest.tolerance)}; measuring further"
    )


def unread_text(evaluation: Evaluation, goals: Goals, unread: Collection[BrokerId]) -> str:
    """Name the brokers whose consumers do not keep up; empty where more is out of tolerance.

    unread: brokers whose groups read less or more than arrives.
    """
    keys = {one.dimension for one in evaluation.outside(goals)}
    if not unread or not keys or not keys <= _OUT:
        return ""
    ids = ", ".join(map(str, sorted(unread)))
    names = f"broker {ids}" if len(unread) == 1 else f"brokers {ids}"
    return (
        f"consumers on {names} do not read as fast as records arrive, or catch up; "
        f"--auto waits up to {seconds_text(CONSUMERS_PATIENCE_S)} for them"
    )
