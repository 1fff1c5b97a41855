"""What-if scenarios as typed, and their results; nothing changes the cluster."""

from collections.abc import Iterable

from control.planning.validate import refuse_broken
from model.errors import ConfigError
from model.ids import BrokerId
from model.names import Names
from model.snapshot.snapshot import Snapshot
from model.snapshot.what_if import MOST_ADDED, AddedBrokers, Scenario, Traffic, WhatIf
from solver.report.result import Result


def scenario_of(
    *,
    add_broker: Iterable[str],
    remove_broker: Iterable[int],
    traffic: Iterable[str],
    lose_rack: Iterable[str],
    fewest_brokers: bool,
    grid: bool = False,
) -> Scenario:
    """Parse the what-if options as typed.

    add_broker: `COUNT[:RACK]` each; traffic: `FACTOR[:PATTERN]` each. With `fewest_brokers` or
    `grid`, nothing else need be given.

    Raises
    ------
    ConfigError
        An option is not valid, or there is none.
    """
    scenario = Scenario(
        add=tuple(map(added_brokers, add_broker)),
        remove=tuple(sorted({BrokerId(b) for b in remove_broker})),
        traffic=tuple(map(traffic_times, traffic)),
        lose_racks=tuple(sorted(set(lose_rack))),
    )
    if scenario == Scenario() and not (fewest_brokers or grid):
        raise ConfigError(
            "no what-if scenario is given; add --add-broker, --remove-broker, "
            "--traffic, --lose-rack, --fewest-brokers or --grid"
        )
    return scenario


def judged(supposed: Snapshot, scenario: Scenario, result: Result, lost: int) -> WhatIf:
    """Check the result of a solve for a scenario.

    supposed: the cluster after the scenario; lost: partitions left without a replica.
    Raises PlimsollError if the plan is invalid.
    """
    refuse_broken(supposed, result.best)
    return WhatIf(
        scenario=scenario,
        words=scenario.words(),
        lost=lost,
        status=result.status,
        reasons=result.reasons,
        plan=result.best,
    )


def added_brokers(text: str, named: str = "--add-broker") -> AddedBrokers:
    """Parse brokers to add from `COUNT[:RACK]`.

    named: the option or field, for the message.

    Raises
    ------
    ConfigError
        The text is not valid.
    """
    count, colon, rack = text.partition(":")
    wrong = ConfigError(
        f"{named} {text!r} is not valid; give COUNT or COUNT:RACK with a count of 1 "
        f"to {MOST_ADDED:,}, such as 2:RACK"
    )
    if not (count.isascii() and count.isdigit()) or (colon and not rack):
        raise wrong
    try:
        return AddedBrokers(count=int(count), rack=rack or None)
    except ValueError as exc:
        raise wrong from exc


def traffic_times(text: str, named: str = "--traffic") -> Traffic:
    """Parse traffic from `FACTOR[:PATTERN]`; otherwise as `added_brokers`."""
    factor, colon, pattern = text.partition(":")
    try:
        topics = Names(regex=(pattern,)) if colon else None
        return Traffic(factor=float(factor), topics=topics)
    except ValueError as exc:
        raise ConfigError(
            f"{named} {text!r} is not valid; give FACTOR or FACTOR:PATTERN with a "
            "factor of at least 0 and a regular expression of topics, such as "
            "1.5:orders.*"
        ) from exc
