"""Grids of what-if scenarios as typed, and their answers."""

import itertools
from collections.abc import Iterable
from typing import Any, Final

from control.planning.scenario_flags import added_brokers, traffic_times
from control.planning.validate import refuse_broken
from model.errors import ConfigError
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId
from model.plan.unplaceable import placeless_warnings, with_placeless_deferred
from model.snapshot.snapshot import Snapshot
from model.snapshot.what_if import Scenario, lost_partitions, suppose
from model.snapshot.what_if_grid import GridCell, WhatIfGrid, cell_of
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.studies.solve_tasks import SolveAll, SolveTask

MOST_CELLS: Final = 1_000
"""Scenarios of one grid at most."""

NOTHING: Final = "none"
"""The value of an axis that changes nothing."""

FIELDS: Final = {
    "add-broker": "add",
    "remove-broker": "remove",
    "traffic": "traffic",
    "lose-rack": "lose_racks",
}
"""Fields of a scenario by the name of an axis, which is that of the option for one scenario."""

_EXAMPLES: Final = {
    "add-broker": "none,1,2",
    "remove-broker": "none,3,4",
    "traffic": "none,1.5,2",
    "lose-rack": "none,az-a,az-b",
}


def grid_of(axes: Iterable[str], always: Scenario) -> tuple[Scenario, ...]:
    """Parse the axes of a grid; return every combination, the last axis changing fastest.

    axes: `NAME=VALUE,VALUE...` each, with names of `FIELDS` and values as the options of that
    name take them, or `NOTHING`. always: what every scenario has besides.

    Raises
    ------
    ConfigError
        An axis is not valid, is given twice, or there are more than `MOST_CELLS` combinations.
    """
    values: dict[str, list[tuple[Any, ...]]] = {}
    for text in axes:
        name, equals, listed = text.partition("=")
        if name not in FIELDS:
            raise ConfigError(
                f"--grid {text!r} is not valid: there is no axis {name!r}; "
                f"axes are {', '.join(FIELDS)}"
            )
        if not equals or not all(listed.split(",")):
            raise ConfigError(
                f"--grid {text!r} is not valid; give {name}=VALUE,VALUE..., such as "
                f"{name}={_EXAMPLES[name]}"
            )
        if name in values:
            raise ConfigError(f"--grid {name} is given twice; list all its values in one")
        values[name] = [_parsed(name, value) for value in listed.split(",")]
    count = 1
    for axis in values.values():
        count *= len(axis)
    if count > MOST_CELLS:
        raise ConfigError(f"the grid has {count:,} scenarios; at most {MOST_CELLS:,} are solved")
    return tuple(
        _with(always, dict(zip(values, cell, strict=True)))
        for cell in itertools.product(*values.values())
    )


def _parsed(name: str, value: str) -> tuple[Any, ...]:
    """One value of an axis, as what it adds to a field of the scenario."""
    if value == NOTHING:
        return ()
    if name == "traffic":
        return (traffic_times(value, "--grid traffic"),)
    if name == "add-broker":
        return (added_brokers(value, "--grid add-broker"),)
    if name == "lose-rack":
        return (value,)
    if not (value.isascii() and value.isdigit()):
        raise ConfigError(f"--grid remove-broker {value!r} is not a broker id")
    return (BrokerId(int(value)),)


def _with(always: Scenario, more: dict[str, tuple[Any, ...]]) -> Scenario:
    """The scenario `always` with what one cell of the grid adds."""
    update = {}
    for name, added in more.items():
        field = FIELDS[name]
        both = (*getattr(always, field), *added)
        update[field] = both if field in ("add", "traffic") else tuple(sorted(set(both)))
    return always.model_copy(update=update)


def solve_grid(
    snapshot: Snapshot,
    scenarios: tuple[Scenario, ...],
    goals: Goals,
    limits: SolveLimits,
    observer: SolveObserver,
    solve_all: SolveAll,
) -> WhatIfGrid:
    """Solve every scenario with the whole search budget; the cells have their order.

    goals: those of the command, with the placements of topics. When `observer` stops, the grid
    ends with the cells so far. Raises ConfigError for a broker, rack or topic that the cluster
    lacks, and PlimsollError if a plan breaks a rule.
    """
    changed = [suppose(snapshot, scenario) for scenario in scenarios]
    wanted = [with_placeless_deferred(goals, each) for each in changed]
    tasks = [
        SolveTask(goals=g, limits=limits, snapshot=s) for g, s in zip(wanted, changed, strict=True)
    ]
    cells: list[GridCell] = []
    results = solve_all(snapshot, tasks, observer)
    for scenario, task, after, result in zip(scenarios, tasks, changed, results, strict=False):
        cells.append(_cell(snapshot, scenario, task.goals, after, result))
        if observer.stops():
            break
    return WhatIfGrid(limits=limits, cells=tuple(cells))


def _cell(
    before: Snapshot, scenario: Scenario, goals: Goals, after: Snapshot, result: Result
) -> GridCell:
    refuse_broken(after, result.best)
    reasons = (*placeless_warnings(after, goals), *result.reasons)
    lost = len(lost_partitions(before, after))
    return cell_of(scenario, lost, result.status, reasons, result.best)
