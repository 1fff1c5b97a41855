"""Exponential backoff by a clock that is never set."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Wait before the next attempt: doubles with each attempt, up to `most_s`."""

    first_s: float
    most_s: float
    attempts: int = 0
    since_s: float = 0.0
    """Time of the last attempt."""

    @property
    def wait_s(self) -> float:
        """Seconds to wait after the last attempt."""
        if not self.attempts:
            return 0.0
        # Larger exponents would overflow; 2^64 first waits exceed any cap.
        return min(self.most_s, self.first_s * 2.0 ** min(self.attempts - 1, 64))

    def again(self, now_s: float) -> "Backoff":
        """After another attempt; one long after the last counts as the first."""
        late = now_s - self.since_s > 2 * self.wait_s + self.most_s
        return replace(self, attempts=1 if late else self.attempts + 1, since_s=now_s)

    def at_most(self, now_s: float) -> "Backoff":
        """After a failure that only an operator can fix: wait the longest time."""
        return replace(self, attempts=100, since_s=now_s)

    def reset(self) -> "Backoff":
        """After success."""
        return replace(self, attempts=0)

    def left_s(self, now_s: float) -> float:
        """Seconds until the next attempt is due."""
        if not self.attempts:
            return 0.0
        return max(0.0, self.since_s + self.wait_s - now_s)
