"""Limits under which plimsoll approves a plan by itself."""

from typing import Annotated

from pydantic import Field

from model.errors import ConfigError
from model.files import FileModel
from model.plan import Plan


class AutoLimits(FileModel):
    """Every limit of `--auto`; none has a default, so that none is assumed."""

    moves_per_run: Annotated[int, Field(gt=0)]
    bytes_per_run: Annotated[int, Field(gt=0)]
    """Bytes that the moves of one run may copy."""
    partitions_per_topic: Annotated[int, Field(gt=0)]
    """Partitions of one topic that one run may move."""
    moves_in_flight: Annotated[int, Field(gt=0)]
    least_gain_share: Annotated[float, Field(ge=0, le=1)]
    """Smallest improvement worth a run, as a share of the objective before."""
    pause_s: Annotated[float, Field(ge=0)]
    """Least time between the end of a run and the start of the next."""
    confirm_s: Annotated[float, Field(ge=0)]
    """How long a cluster must have been uneven before a run."""


CONSERVATIVE = AutoLimits(
    moves_per_run=20,
    bytes_per_run=50 * 10**9,
    partitions_per_topic=10,
    moves_in_flight=2,
    least_gain_share=0.2,
    pause_s=1800,
    confirm_s=300,
)
"""For a cluster in production: few moves, rarely, for a clear gain."""

EAGER = AutoLimits(
    moves_per_run=500,
    bytes_per_run=10**12,
    partitions_per_topic=100,
    moves_in_flight=50,
    least_gain_share=0.05,
    pause_s=10,
    confirm_s=5,
)
"""For the local cluster, and for shared storage where a move takes a second."""

NAMED = {"conservative": CONSERVATIVE, "eager": EAGER}


def limits_named(name: str, configured: dict[str, AutoLimits]) -> AutoLimits:
    """The limits of this name, those of the configuration first.

    Raises
    ------
    ConfigError
        There are none of this name.
    """
    known = NAMED | configured
    if name not in known:
        raise ConfigError(
            f"there are no limits named {name!r}; known are "
            f"{', '.join(sorted(known))}, "
            "and further ones come from [limits.NAME] in the configuration"
        )
    return known[name]


def refusals(plan: Plan, limits: AutoLimits) -> tuple[str, ...]:
    """Why the plan may not be approved without a person; empty if it may."""
    per_topic: dict[str, int] = {}
    for move in plan.moves:
        per_topic[move.topic] = per_topic.get(move.topic, 0) + 1
    gain = 1 - plan.objective / plan.objective_before if plan.objective_before else 0.0
    checks = [
        ("moves", len(plan.moves), limits.moves_per_run),
        ("bytes to copy", plan.bytes_to_copy, limits.bytes_per_run),
        *(
            (f"partitions of {topic}", count, limits.partitions_per_topic)
            for topic, count in sorted(per_topic.items())
        ),
    ]
    words = [
        f"the plan has {value} {what}, the limit is {limit}"
        for what, value, limit in checks
        if value > limit
    ]
    if gain < limits.least_gain_share:
        words.append(
            f"the plan improves the objective by {100 * gain:.1f} %, under the limit "
            f"of {100 * limits.least_gain_share:.1f} %"
        )
    return tuple(words)
