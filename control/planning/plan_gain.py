"""What a plan gains, and what the bytes that it copies buy."""

from collections.abc import Sequence
from dataclasses import dataclass

from model.plan.plan import Plan
from model.plan.remaining import OverLimit
from model.units import bytes_text, percent_text

GB = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGain:
    """The gain of a plan: how much of F it removes, and at which expense.

    F is the imbalance score with the cost of the moves. A gain may be negative: moves that a rule
    forces, or that bring brokers inside their tolerance, may raise F.
    """

    gain: float
    """F before the plan less F after it."""
    share: float
    """The same as a share of F before; 0 where that is 0."""
    free: float
    """The part that leader changes alone would gain, as far as known; all of it where the plan
    copies nothing."""
    bytes_to_copy: int | None
    """None where the size of any moved partition is unknown."""
    before: float
    """F before the plan."""
    raises: bool = False
    """Whether F rises, so that no share of it is gained: see `Plan.raises_objective`."""
    excess_removed: float | None = None
    """Share of the excess over limits that the plan removes; None without any before it."""

    @classmethod
    def of(cls, plan: Plan) -> "PlanGain":
        """The gain of a plan, from its own figures."""
        gain, before, size = (
            plan.objective_before - plan.objective,
            plan.objective_before,
            plan.bytes_to_copy,
        )
        leaders = plan.leaders_only
        free = 0.0 if leaders is None else max(0.0, before - leaders.objective)
        return cls(
            gain=gain,
            share=gain / before if before > 0 else 0.0,
            free=gain if size == 0 else free,
            bytes_to_copy=size,
            before=before,
            raises=plan.raises_objective,
            excess_removed=_excess_removed(plan.over_limit),
        )

    @property
    def per_byte(self) -> float | None:
        """F gained per byte copied, beyond what is free; None where no byte or an unknown number
        is copied."""
        return (self.gain - self.free) / self.bytes_to_copy if self.bytes_to_copy else None

    @property
    def per_byte_text(self) -> str:
        """`2.6 % per GB`, `free` where nothing is copied, `-` where sizes are unknown.

        In shares of F before, which people can compare. Copies of less than a gigabyte have their
        share, not an extrapolation: `1.2 % for 3.00 MB`.
        """
        if self.bytes_to_copy == 0:
            return "free"
        if self.bytes_to_copy is None or self.before <= 0 or self.raises:
            return "-"
        share = (self.gain - self.free) / self.before
        if self.bytes_to_copy < GB:
            return f"{percent_text(share)} for {bytes_text(self.bytes_to_copy)}"
        return f"{percent_text(share * GB / self.bytes_to_copy)} per GB"

    @property
    def share_text(self) -> str:
        """`94.7 %`, or, where F rises and a share means nothing, `-0.237 of F`."""
        return percent_text(self.share) if not self.raises else f"{self.gain:.3g} of F"

    @property
    def words(self) -> str:
        """`gain 94.7 % of the imbalance: 71.2 % by leader changes alone, 2.6 % per GB`.

        Where F rises: `raises F by 0.237, since limits come first: removes 100 % of the excess
        over them`.
        """
        if self.raises:
            return f"raises F by {-self.gain:.3g}, since {self._what_comes_first}"
        text = f"gain {percent_text(self.share)} of the imbalance"
        if self.bytes_to_copy == 0:
            return f"{text}, free: nothing is copied"
        if self.free > 0 and self.before > 0:
            text += f": {percent_text(self.free / self.before)} free, by leader changes alone"
        if self.bytes_to_copy is None:
            return f"{text}; bytes unknown"
        return f"{text}; the copies gain {self.per_byte_text}"

    @property
    def _what_comes_first(self) -> str:
        removed = self.excess_removed
        if removed is None or removed <= 0:
            return "forced moves, repairs and the tolerance come first"
        return f"limits come first: removes {percent_text(removed)} of the excess over them"


def _excess_removed(over: Sequence[OverLimit]) -> float | None:
    """Share of the excess, each as a share of its limit, that is gone; None without any before."""
    limited = [o for o in over if o.limit > 0]
    before = sum(max(0.0, o.before / o.limit - 1.0) for o in limited)
    after = sum(max(0.0, o.after / o.limit - 1.0) for o in limited)
    return 1.0 - after / before if before > 0 else None
