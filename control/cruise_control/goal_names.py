"""Names of Cruise Control's goals, and what of plimsoll they stand for.

Its hard goals are rules that every plan keeps, whatever a request names. Its distribution goals
choose the measures that a plan balances.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from model.goals.goals import MIB, Goal, Goals
from model.snapshot.snapshot import Count, Measure, Resource

RULES: Final = (
    "RackAwareGoal",
    "RackAwareDistributionGoal",
    "MinTopicLeadersPerBrokerGoal",
    "ReplicaCapacityGoal",
    "DiskCapacityGoal",
    "NetworkInboundCapacityGoal",
    "NetworkOutboundCapacityGoal",
    "CpuCapacityGoal",
    "IntraBrokerDiskCapacityGoal",
)
"""Goals that are rules here."""

BALANCED: Final[dict[str, Measure]] = {
    "ReplicaDistributionGoal": Count.REPLICAS,
    "PotentialNwOutGoal": Count.POTENTIAL_NET_OUT,
    "DiskUsageDistributionGoal": Resource.DISK,
    "NetworkInboundUsageDistributionGoal": Resource.NET_IN,
    "NetworkOutboundUsageDistributionGoal": Resource.NET_OUT,
    "CpuUsageDistributionGoal": Resource.CPU,
    "TopicReplicaDistributionGoal": Count.TOPIC_REPLICAS,
    "LeaderReplicaDistributionGoal": Count.LEADERS,
    "LeaderBytesInDistributionGoal": Count.LEADER_NET_IN,
    "TopicLeaderReplicaDistributionGoal": Count.TOPIC_LEADERS,
}
"""Goals that balance a measure."""

DIRECTORIES: Final = "IntraBrokerDiskUsageDistributionGoal"
"""The goal that balances log directories inside brokers."""
ALL: Final = (*RULES, *BALANCED, DIRECTORIES)
_MEASURED: Final = {measure: name for name, measure in BALANCED.items()}
_CAPACITY: Final = {
    Resource.DISK: "DiskCapacityGoal",
    Resource.NET_IN: "NetworkInboundCapacityGoal",
    Resource.NET_OUT: "NetworkOutboundCapacityGoal",
    Resource.CPU: "CpuCapacityGoal",
    Count.REPLICAS: "ReplicaCapacityGoal",
}
_RATES: Final = (Resource.NET_IN, Resource.NET_OUT, Count.LEADER_NET_IN, Count.POTENTIAL_NET_OUT)


class UnknownGoal(Exception):
    """A goal that has no counterpart; the message is Cruise Control's."""


def short_name(name: str) -> str:
    """A goal's name without its package."""
    return name.rpartition(".")[2]


def names_of(goals: Goals) -> tuple[str, ...]:
    """The names of the rules and of what these goals balance, in the order of priority."""
    measures = {goal.resource for goal in goals.balance}
    balanced = [name for name, measure in BALANCED.items() if measure in measures]
    directories = [DIRECTORIES] if goals.level_directories else []
    return (*RULES, *balanced, *directories)


def with_named(goals: Goals, named: Sequence[str], supported: Sequence[str] = ALL) -> Goals:
    """These goals, balancing only what the named ones balance; unchanged without names.

    Rules hold in any case. Weights and tolerances are those of `goals` where it balances the same
    measure. Raises UnknownGoal for names that are not among the supported ones.
    """
    if not named:
        return goals
    short = [short_name(name) for name in named]
    unknown = [name for name, bare in zip(named, short, strict=True) if bare not in supported]
    if unknown:
        raise UnknownGoal(
            f"Goals [{', '.join(unknown)}] are not supported. Supported: [{', '.join(supported)}]"
        )
    known = {goal.resource: goal for goal in goals.balance}
    measures = dict.fromkeys(BALANCED[name] for name in short if name in BALANCED)
    balance = tuple(known.get(measure) or _goal(measure) for measure in measures)
    update = {"balance": balance, "level_directories": DIRECTORIES in short}
    return goals.model_copy(update=update)


def _goal(measure: Measure) -> Goal:
    return Goal(resource=measure, floor=float(MIB) if measure in _RATES else 0.0)


def balance_goal(dimension: str) -> str:
    """The goal of a plan's dimension, such as `net_in@SLOT`; itself where there is none."""
    bare = dimension.partition("@")[0]
    return next((name for measure, name in _MEASURED.items() if measure == bare), bare)


def capacity_goal(dimension: str) -> str:
    """The goal that limits a dimension of `over_limit`; itself where there is none."""
    bare = dimension.partition("@")[0]
    return next((name for measure, name in _CAPACITY.items() if measure == bare), bare)


def in_order(names: Iterable[str]) -> list[str]:
    """Names once each, in the order of priority; unknown ones last."""
    found = {*names}
    return [*(name for name in ALL if name in found), *sorted(found - {*ALL})]
