"""The lag of consumer groups on the topics that a run moves."""

from dataclasses import dataclass

from model.snapshot.consumer_lag import ConsumerLag


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLag:
    """The lag now, and what it was during the run."""

    run_id: str
    now: ConsumerLag
    first_records: int
    """When the run began."""
    most_seconds: float | None
    """The largest lag so far; None while no record arrives."""


def followed(before: RunLag | None, run_id: str, now: ConsumerLag | None) -> RunLag | None:
    """The lag of a run after another sample; None if no group has committed."""
    if before is not None and before.run_id != run_id:
        before = None
    if now is None:
        return before
    known = [s for s in (now.seconds, before.most_seconds if before else None) if s is not None]
    return RunLag(
        run_id=run_id,
        now=now,
        first_records=before.first_records if before else now.records,
        most_seconds=max(known, default=None),
    )
