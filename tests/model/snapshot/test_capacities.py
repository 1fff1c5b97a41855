"""Given capacities over reported ones, and warnings about missing ones."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import ConfigError, InvalidCluster
from model.evaluate import evaluate
from model.ids import BrokerId
from model.snapshot.capacities import DEFAULT, Capacities, Entry, capacity_notes, with_capacities
from model.snapshot.snapshot import Broker, BrokerState, CapacitySource, LogDir, Resource, Snapshot
from tests.support.model.clusters import NO_FLOOR, brokers, snapshot

KNOWN = st.dictionaries(st.sampled_from(Resource), st.floats(1, 1e6))
TWO = (LogDir(path="/a", capacity_bytes=5.0), LogDir(path="/b"))


def capacities(**entries: dict[Resource, float]) -> Capacities:
    """By broker: `b3`; `rest` for all others."""
    return Capacities(
        source=CapacitySource.SETTINGS,
        place="[capacities]",
        by_broker={
            DEFAULT if name == "rest" else int(name[1:]): Entry(capacity=capacity)
            for name, capacity in entries.items()
        },
    )


def of_dirs(*dirs: LogDir) -> Capacities:
    entry = Entry(capacity={Resource.DISK: 30.0}, log_dirs=dirs)
    return Capacities(source=CapacitySource.FILE, place="c.json", by_broker={1: entry})


def broker(**other: Any) -> Broker:
    return Broker(id=BrokerId(1), **other)


def state(*capacity: dict[Resource, float], **other: Any) -> Snapshot:
    members = tuple(Broker(id=BrokerId(i), capacity=known) for i, known in enumerate(capacity, 1))
    return snapshot(members, [(b.id,) for b in members], **other)


@given(reported=KNOWN, default=KNOWN, own=st.none() | KNOWN)
def test_each_capacity_has_the_value_and_name_of_its_first_source(
    reported: dict[Resource, float],
    default: dict[Resource, float],
    own: dict[Resource, float] | None,
) -> None:
    """A broker's own entry, else that for all others; else the previous value."""
    sources = dict.fromkeys(reported, CapacitySource.LOG_DIRS)
    entries = {"rest": default} if own is None else {"rest": default, "b1": own}
    expected = default if own is None else own
    result = capacities(**entries).of(broker(capacity=reported, capacity_from=sources))
    assert result.capacity == reported | expected
    for resource, source in result.capacity_from.items():
        assert (source is CapacitySource.SETTINGS) == (resource in expected)
    assert result.capacity_from.keys() == result.capacity.keys()


def test_a_directory_keeps_its_position_and_fields_that_are_not_given() -> None:
    listed = (*TWO, LogDir(path="/c", capacity_bytes=7.0, cordoned=True))
    given = of_dirs(LogDir(path="/b", capacity_bytes=9.0))
    assert given.of(broker(log_dirs=listed)).log_dirs == (
        LogDir(path="/a", capacity_bytes=5.0),
        LogDir(path="/b", capacity_bytes=9.0),
        LogDir(path="/c", capacity_bytes=7.0, cordoned=True),
    )


def test_without_reported_directories_the_given_ones_are_used() -> None:
    assert of_dirs(*TWO).of(broker()).log_dirs == TWO
    assert of_dirs(TWO[0]).of(broker()).log_dirs == ()


@pytest.mark.parametrize(("listed", "paths"), [(TWO, ()), (TWO, ("/a", "/b")), ((), ("/a",))])
def test_a_directory_that_the_broker_lacks_is_named(
    listed: tuple[LogDir, ...], paths: tuple[str, ...]
) -> None:
    given = of_dirs(TWO[0], LogDir(path="/x", capacity_bytes=1.0))
    with pytest.raises(ConfigError, match=r"c\.json: broker 1 has no log directory /x; it has /a"):
        given.of(broker(log_dirs=listed), paths)


def test_capacities_that_cannot_be_of_one_unit_are_refused() -> None:
    reported = state({Resource.DISK: 1e12}, {Resource.DISK: 1e12})
    with pytest.raises(InvalidCluster, match=r"broker 1 has 1e\+09 times the disk"):
        with_capacities(reported, capacities(b2={Resource.DISK: 1000.0}))


def test_unequal_brokers_are_balanced_at_equal_utilisation() -> None:
    loads = [(30.0, 3.0), (10.0, 1.0)]
    known = {Resource.NET_IN: 3.0, Resource.NET_OUT: 3.0}
    half = dict.fromkeys(known, 1.0)
    result = with_capacities(state({}, {}, loads=loads), capacities(rest=half, b1=known))
    deviations = evaluate(result, NO_FLOOR, ()).deviations
    assert [v for by in deviations.values() for v in by.values()] == [0.0] * 4


def test_no_warning_without_a_missing_capacity() -> None:
    known = {Resource.NET_IN: 1.0, Resource.NET_OUT: 1.0}
    assert capacity_notes(state({}, {}), None) == ()
    assert capacity_notes(state(known, known), capacities(rest=known)) == ()


def test_brokers_without_a_capacity_that_others_have_are_named() -> None:
    (message,) = capacity_notes(state({Resource.NET_IN: 1.0}, {}, {}), None)
    assert message.startswith("net_in: no capacity is known of brokers 2, 3, so all")


def test_a_broker_that_must_leave_needs_no_capacity() -> None:
    dead = {2: BrokerState.DEAD}
    members = brokers(2, states=dead, capacity={1: 5.0})
    assert capacity_notes(snapshot(members, [(1,)]), None) == ()


def test_a_warning_does_not_name_a_thousand_brokers() -> None:
    result = state({Resource.NET_IN: 1.0}, *({} for _ in range(1000)))
    (message,) = capacity_notes(result, None)
    assert "brokers 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 990 more, so" in message


def test_a_broker_that_the_cluster_lacks_is_named() -> None:
    (message,) = capacity_notes(state({}, {}), capacities(b7={}, b1={}))
    assert message.startswith("[capacities]: a capacity is given of broker 7, but the ")
    assert "shows only brokers 1, 2;" in message


def test_a_capacity_of_an_unmeasured_resource_is_reported() -> None:
    (message,) = capacity_notes(state({Resource.CPU: 400.0}), None)
    assert message.startswith("cpu: a capacity is known, but no load, so nothing is")
