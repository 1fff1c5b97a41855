"""The forms of the plan screen: their fields, and the values of typed text."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic import ValidationError

from control.planning.scenario_flags import added_brokers, traffic_times
from model.errors import ConfigError
from model.goals.goals import Budgets, Goal, Goals, ObjectiveKind, Pin
from model.ids import BrokerId
from model.names import Names
from model.plan.plan import Move
from model.snapshot.snapshot import Count, Measure, Resource, Snapshot, dimension_words
from model.snapshot.what_if import Scenario
from model.units import bytes_of


class FormLine(NamedTuple):
    """One input field."""

    label: str
    key: str
    text: str = ""
    """The initial text."""
    hint: str = ""
    """What may be entered."""


Typed = Mapping[str, str]
"""The text of each field by key."""


# ---- goals


def goals_lines(goals: Goals, snapshot: Snapshot) -> tuple[FormLine, ...]:
    """Weight and tolerance of each known measure, then costs and limits."""
    present = {g.resource: g for g in goals.balance}
    known = [*snapshot.header.resources, *Count]
    measures = [*known, *(m for m in present if m not in known)]
    budgets = goals.budgets
    return (
        FormLine("objective", "objective", goals.objective, _OBJECTIVES),
        *(_goal_line(measure, present.get(measure)) for measure in measures),
        _number_line("cost of a move", "move_price", goals.move_price),
        _number_line("capacity limit %", "capacity_limit", 100 * goals.capacity_limit, "0-100"),
        _number_line("max moves", "moves", budgets.replica_moves),
        _number_line("max bytes", "bytes", budgets.bytes, "500GB"),
        _number_line("max leader changes", "leader_changes", budgets.leader_changes),
        FormLine(
            "excluded topics",
            "excluded",
            " ".join(goals.excluded_topics.regex),
            "regular expressions, separated by blanks",
        ),
    )


_OBJECTIVES = " or ".join(ObjectiveKind)


def _goal_line(measure: Measure, goal: Goal | None) -> FormLine:
    text = f"{goal.weight:g} {100 * goal.tolerance:g}%" if goal is not None else ""
    return FormLine(
        dimension_words(measure), f"goal {measure}", text, "off; weight, tolerance: 1 10%"
    )


def _number_line(label: str, key: str, value: float | None, hint: str = "empty: none") -> FormLine:
    text = "" if value is None else f"{value:.10g}"
    return FormLine(label, key, text, hint)


def goals_of(before: Goals, typed: Typed) -> Goals:
    """Return the goals entered in a form; fields it does not show are unchanged.

    Raises
    ------
    ConfigError
        A field is invalid; the message names it and what may be entered.
    """
    objective = typed["objective"].strip()
    if objective not in list(ObjectiveKind):
        raise ConfigError(f"objective: {objective!r} is not {_OBJECTIVES}")
    budgets = before.budgets.model_copy(
        update={
            "replica_moves": _count("max moves", typed["moves"]),
            "bytes": _bytes("max bytes", typed["bytes"]),
            "leader_changes": _count("max leader changes", typed["leader_changes"]),
        }
    )
    excluded = before.excluded_topics.model_dump()
    update = {
        "objective": ObjectiveKind(objective),
        "balance": tuple(_balance(before, typed)),
        "move_price": _number("cost of a move", typed["move_price"]),
        "capacity_limit": _share("capacity limit %", typed["capacity_limit"]) or 0.85,
        "budgets": Budgets.model_validate(budgets.model_dump()),
        "excluded_topics": excluded | {"regex": tuple(typed["excluded"].split())},
    }
    shown = {name: getattr(before, name) for name in Goals.model_fields}
    try:
        return Goals.model_validate(shown | update)
    except ValidationError as exc:
        fault = exc.errors()[0]
        where = " ".join(map(str, fault["loc"])).replace("_", " ")
        raise ConfigError(f"{where}: {fault['msg']}") from exc


def _balance(before: Goals, typed: Typed) -> Iterator[Goal]:
    floors = {g.resource: g.floor for g in before.balance}
    for key, text in typed.items():
        kind, _, name = key.partition(" ")
        if kind != "goal" or not text.strip():
            continue
        words, figures = dimension_words(name), text.replace("%", " ").split()
        if not 1 <= len(figures) <= 2:
            raise ConfigError(f"{words}: enter a weight and a tolerance, for example 1 10%")
        measure = Resource(name) if name in list(Resource) else Count(name)
        yield Goal(
            resource=measure,
            weight=_number(f"weight of {words}", figures[0]) or 0.0,
            floor=floors.get(measure, 0.0),
            tolerance=_share(f"tolerance of {words}", "".join(figures[1:])) or 0.10,
        )


def _number(label: str, text: str) -> float | None:
    """Parse a number from 0; None if the field is empty."""
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1e9:
        raise ConfigError(f"{label}: {text.strip()!r} is not a number from 0 to 1e9")
    return value


def _share(label: str, text: str) -> float | None:
    value = _number(label, text.replace("%", ""))
    if value is not None and not 0 < value <= 100:
        raise ConfigError(f"{label}: enter a percentage above 0, at most 100")
    return None if value is None else value / 100


def _count(label: str, text: str) -> int | None:
    value = _number(label, text)
    if value is not None and value != int(value):
        raise ConfigError(f"{label}: {text.strip()!r} is not a whole number")
    return None if value is None else int(value)


def _bytes(label: str, text: str) -> int | None:
    if not text.strip():
        return None
    try:
        return bytes_of(text)
    except ValueError as exc:
        raise ConfigError(f"{label}: {exc}") from exc


# ---- a pin


def pin_lines(move: Move) -> tuple[FormLine, ...]:
    """The brokers of a partition; initially those of the plan."""
    brokers = " ".join(map(str, move.replicas_after))
    return (FormLine("brokers", "brokers", brokers, "ids, for example 1 4 7"),)


def pin_of(move: Move, typed: Typed) -> Pin:
    """Return the pin entered in a form; raises ConfigError as `goals_of` does."""
    brokers = _ids("brokers", typed["brokers"])
    replicas = len(move.replicas_after)
    if len(brokers) < replicas:
        raise ConfigError(f"{move.id} has {replicas} replicas; enter at least {replicas} brokers")
    topics = Names(exact=(move.topic,))
    return Pin(topics=topics, partitions=(move.partition,), brokers=brokers)


def _ids(label: str, text: str) -> tuple[BrokerId, ...]:
    parts = text.replace(",", " ").split()
    for part in parts:
        if not (part.isascii() and part.isdigit()) or len(part) > 10:
            raise ConfigError(f"{label}: {part!r} is not a broker id")
    return tuple(sorted({BrokerId(int(part)) for part in parts}))


# ---- what-if

WHAT_IF_LINES = (
    FormLine("add brokers", "add", "", "2, or 2:RACK for a rack"),
    FormLine("drain brokers", "remove", "", "ids, for example 1 4 7"),
    FormLine("traffic factor", "traffic", "", "1.5 for all topics, 1.5:orders.* for some"),
    FormLine("lose racks", "lose", "", "names, separated by blanks"),
)


def scenario_of(typed: Typed) -> Scenario:
    """Return the scenario entered in a form; raises ConfigError as `goals_of` does."""
    scenario = Scenario(
        add=tuple(added_brokers(t, "add brokers:") for t in typed["add"].split()),
        remove=_ids("drain brokers", typed["remove"]),
        traffic=tuple(traffic_times(t, "traffic factor:") for t in typed["traffic"].split()),
        lose_racks=tuple(sorted(set(typed["lose"].split()))),
    )
    if scenario == Scenario():
        raise ConfigError("enter at least one change")
    return scenario
