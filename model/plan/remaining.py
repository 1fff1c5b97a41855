"""Exceeded limits and rack violations: those a plan repairs and those that remain."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from pydantic import ValidationInfo, field_serializer, field_validator

from model.cpu import from_file, is_cpu, to_file
from model.files import FileModel, unless_none
from model.goals.goals import Stay
from model.ids import BrokerId, PartitionId, TopicName
from model.snapshot.snapshot import dimension_words
from model.units import bytes_text, cores_text, count_text, listed, rate_text, share_text

MOST_NAMED: Final = 5
"""Partitions of one kind that are named in a sentence."""

MOST_LIMITS: Final = 30
"""Exceeded limits that are named with their figures, a sentence each."""


class OverLimit(FileModel):
    """One broker over one of its limits, before the plan or after it."""

    broker: BrokerId
    dimension: str
    """A resource now, `net_in`, or in a slot, `net_in@SLOT`; or `replicas`."""
    before: float
    """Load in the units of the resource, as the snapshot has it."""
    after: float
    """Load after all moves."""
    limit: float
    """The highest load allowed: the goals' share of the capacity."""
    capacity: Annotated[float | None, unless_none] = None
    """None for `replicas`, which have a limit and no capacity."""

    @property
    def remains(self) -> bool:
        """Whether the broker is over its limit after the plan."""
        return exceeds(self.after, self.limit)

    @field_validator("before", "after", "limit", "capacity")
    @classmethod
    def _read(cls, value: float | None, info: ValidationInfo) -> float | None:
        if info.mode == "python" or value is None:
            return value
        return from_file(info.data.get("dimension", ""), value)

    @field_serializer("before", "after", "limit", "capacity", when_used="json")
    def _written(self, value: float | None) -> float | None:
        return None if value is None else to_file(self.dimension, value)


class RackViolation(FileModel):
    """A partition whose replicas share racks although more racks are usable."""

    topic: TopicName
    partition: int
    repaired: bool
    """Whether its replicas are spread over racks as the goals say after the plan."""
    reason: str = ""
    """Why it remains; empty where it is repaired."""

    @property
    def id(self) -> PartitionId:
        """The topic and number of the partition."""
        return PartitionId(self.topic, self.partition)


def exceeds(load: float, limit: float) -> bool:
    """Whether a load is over a limit by more than rounding, a share of 1e-9."""
    return load > limit * (1 + 1e-9)


def remaining_text(
    over: Sequence[OverLimit], racks: Sequence[RackViolation], most: int = MOST_LIMITS
) -> Iterator[str]:
    """Clauses on limits that stay exceeded and rack violations not repaired.

    At most `most` limits are named with their figures, the rest counted.
    """
    left = [_sentence(o, "stays over", o.after) for o in over if o.remains]
    yield from _first(left, ("limit stays exceeded", "limits stay exceeded"), most)
    by_reason: dict[str, list[RackViolation]] = defaultdict(list)
    for violation in racks:
        if not violation.repaired:
            by_reason[violation.reason].append(violation)
    for reason, found in sorted(by_reason.items()):
        yield (
            f"rack violations not repaired: {count_text(len(found), 'partition')} "
            f"({_names(found)}): {reason}"
        )


def _sentence(over: OverLimit, verb: str, *loads: float) -> str:
    shown = " -> ".join(load_text(over.dimension, load) for load in loads)
    limit = load_text(over.dimension, over.limit)
    if over.capacity is not None:
        whole = load_text(over.dimension, over.capacity)
        limit += f" ({share_text(over.limit / over.capacity)} of {whole})"
    head = f"broker {over.broker} {verb} its limit of {dimension_words(over.dimension)}"
    return f"{head}: {shown}, the limit is {limit}"


def _first(
    sentences: Sequence[str], rest: tuple[str, str], most: int = MOST_LIMITS
) -> Iterator[str]:
    """At most so many sentences; rest: the words after `more` about one further, and several."""
    yield from sentences[:most]
    if (left := len(sentences) - most) > 0:
        yield f"{left} more {rest[left > 1]}"


def deferred_text(deferred: Sequence[Stay]) -> Iterator[str]:
    """Clause on partitions that must move and are left for a later plan.

    Nothing where there are none.
    """
    found = [PartitionId(s.topic, n) for s in deferred for n in s.partitions]
    if found:
        yield (
            f"{count_text(len(found), 'partition')} that must move left for a later "
            f"plan: {named_ids(found)}"
        )


def named_ids(partitions: Sequence[PartitionId]) -> str:
    """Name the first `MOST_NAMED` partitions, and count the rest."""
    return listed(partitions, MOST_NAMED)


def repaired_text(over: Sequence[OverLimit], racks: Sequence[RackViolation]) -> Iterator[str]:
    """Yield clauses on the exceeded limits and rack violations that a plan repairs.

    Those that remain are left to `remaining_text`. At most `MOST_LIMITS` limits are named, with
    the load before and after, and the rest counted.
    """
    left = [_sentence(o, "is brought below", o.before, o.after) for o in over if not o.remains]
    yield from _first(left, ("exceeded limit is repaired", "exceeded limits are repaired"))
    count = sum(v.repaired for v in racks)
    if count:
        whole = f" of {len(racks)}" if count < len(racks) else ""
        yield f"rack violations repaired: {count}{whole}"


def present_text(over: Sequence[OverLimit], racks: Sequence[RackViolation]) -> Iterator[str]:
    """Clauses on limits exceeded and racks shared now, before any plan.

    At most `MOST_LIMITS` limits are named, the rest counted.
    """
    yield from _first(
        [_sentence(o, "is over", o.before) for o in over],
        ("limit is exceeded", "limits are exceeded"),
    )
    if racks:
        movable = sum(not v.reason for v in racks)
        yield (
            f"rack violations: {count_text(len(racks), 'partition')} "
            f"({_names(racks)}), {movable} of which may be moved"
        )


def _names(racks: Sequence[RackViolation]) -> str:
    return named_ids([v.id for v in racks])


def load_text(dimension: str, load: float) -> str:
    """A load with its unit, such as `309 MB/s` for `net_in`.

    A dimension that is neither bytes nor CPU has no unit.
    """
    measure = dimension.partition("@")[0]
    if measure == "disk":
        return bytes_text(load)
    if measure in ("net_in", "net_out", "leader_net_in", "potential_net_out"):
        return rate_text(load)
    if is_cpu(dimension):
        return cores_text(load)
    return f"{load:.4g}" if load < 9999.5 else f"{load:,.0f}"


def over_limit_text(broker: BrokerId, dimension: str, load: float, limit: float) -> str:
    """A broker over a limit: `broker 3 would carry 309 MB/s of bytes in, ...`."""
    over, its_limit = (load_text(dimension, x) for x in (load - limit, limit))
    return (
        f"broker {broker} would carry {load_text(dimension, load)} of "
        f"{dimension_words(dimension)}, {over} over its limit of {its_limit}"
    )
