"""The health of the cluster during a run, in the figures that stop rules watch."""

from dataclasses import dataclass

from model.ids import BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeDisk:
    """The free space of the target broker that has least."""

    broker: BrokerId
    free_bytes: int
    """Beyond the reserve; negative below it."""
    first_bytes: int
    """The same at the first check of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHealth:
    """What the last check of the whole cluster found; counts compare with the first one."""

    at_ms: int
    """Milliseconds since the epoch."""
    answer_s: float
    """Median of the last response times to a small request."""
    first_answer_s: float
    """The same when the run began."""
    offline: int
    """Partitions outside the plan that lost their leader."""
    under_replicated: int
    """Partitions outside the plan that were in sync and no longer are."""
    under_min_isr: int
    """Partitions that fell below their `min.insync.replicas`."""
    disk: FreeDisk | None = None
    """None where moves copy nothing, or brokers do not report their free space."""
