"""A cluster whose time jumps: loads by steps, failing brokers, moves, and tables of rates."""

import math
from pathlib import Path

import numpy as np
import pytest

from lab.synthetic.shape import ClusterShape
from lab.time_lapse.broker_faults import FLAP_S, BrokerFault, FaultKind, events_of
from lab.time_lapse.load_shapes import MAKERS, Surroundings, shapes_of
from lab.time_lapse.load_table import read_load_table
from lab.time_lapse.time_lapse_cluster import WINDOW_S, Course, TimeLapseCluster
from lab.time_lapse.varying_loads import SteadyLoads, synthetic_start
from model.errors import ConfigError
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState, Floats, Snapshot

BEGIN_S = 1_767_571_200.0


@pytest.fixture(scope="module")
def start() -> Snapshot:
    shape = ClusterShape(brokers=6, partitions=60, racks=3, rf=3)
    return synthetic_start(shape, int(1000 * BEGIN_S), 1)


class Doubling:
    """Loads that double with every minute."""

    def __init__(self, loads: Floats) -> None:
        self._loads = loads

    def at(self, time_ms: int) -> Floats:
        found: Floats = self._loads * 2.0 ** ((time_ms / 1000 - BEGIN_S) // 60)
        return found


def test_loads_of_a_step_are_seen_once_the_window_covers_them(start: Snapshot) -> None:
    loads = start.partitions.loads
    cluster = TimeLapseCluster(Course(start=start, loads=Doubling(loads)))
    assert cluster.next_change_s == BEGIN_S + WINDOW_S
    cluster.advance(BEGIN_S + 60 + WINDOW_S / 3)
    seen = cluster.snapshot().partitions.loads
    assert np.allclose(seen, 2 / 3 * loads + 1 / 3 * 2 * loads)
    cluster.advance(cluster.next_change_s)
    assert np.array_equal(cluster.snapshot().partitions.loads, 2 * loads)
    assert cluster.next_change_s == BEGIN_S + 120 + WINDOW_S


def test_a_dead_broker_leads_nothing_until_it_returns(start: Snapshot) -> None:
    fault = BrokerFault.parse("dead:2@1m+1m")
    steady = SteadyLoads(start.partitions.loads)
    cluster = TimeLapseCluster(Course(start=start, loads=steady, faults=(fault,)))
    before = cluster.snapshot()
    cluster.advance(BEGIN_S + 60)
    dead = cluster.snapshot()
    assert cluster.dead == {2}
    assert dead.broker[BrokerId(2)].state is BrokerState.DEAD
    assert 2 in before.partitions.leader
    assert 2 not in dead.partitions.leader
    cluster.advance(BEGIN_S + 120)
    assert np.array_equal(cluster.snapshot().partitions.leader, before.partitions.leader)


@pytest.mark.parametrize(
    ("text", "kind", "length_s"),
    [
        ("dead:3@2d+6h", FaultKind.DEAD, 6 * 3600),
        ("dead:3@2d", FaultKind.DEAD, math.inf),
        ("slow:3@2d", FaultKind.SLOW, 3600),
    ],
)
def test_faults_are_read(text: str, kind: FaultKind, length_s: float) -> None:
    found = BrokerFault.parse(text)
    assert (found.kind, found.broker, found.at_s) == (kind, 3, 2 * 86_400)
    assert found.length_s == length_s


@pytest.mark.parametrize("text", ["dead", "gone:3@2d", "dead:x@2d", "dead:3@2d+0s"])
def test_other_faults_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--fault"):
        BrokerFault.parse(text)


def test_a_flapping_broker_ends_alive() -> None:
    events = list(events_of([BrokerFault.parse("flapping:1@1m+90s")]))
    assert [event.begins for event in events] == [True, False, True, False]
    assert events[-1].at_s == 60 + 3 * FLAP_S


@pytest.mark.slow
def test_a_fault_may_be_longer_than_the_simulation_and_begin_with_it() -> None:
    (fault,) = [BrokerFault.parse("flapping:1@0s+11000d")]
    first = next(events_of([fault]))
    assert (first.at_s, first.begins) == (0, True)


@pytest.mark.parametrize("other", ["dead:2@2m+1m", "flapping:2@90s+90s"])
def test_a_broker_stays_dead_until_the_last_of_its_faults_ends(start: Snapshot, other: str) -> None:
    faults = (BrokerFault.parse("dead:2@1m+10m"), BrokerFault.parse(other))
    steady = SteadyLoads(start.partitions.loads)
    cluster = TimeLapseCluster(Course(start=start, loads=steady, faults=faults))
    for at_s in range(60, 660, 15):
        cluster.advance(BEGIN_S + at_s)
        assert cluster.dead == {2}, at_s
        assert 2 not in cluster.snapshot().partitions.leader
    cluster.advance(BEGIN_S + 660)
    assert cluster.dead == set()
    assert cluster.snapshot().broker[BrokerId(2)].state is BrokerState.ALIVE


def test_unknown_brokers_of_faults_are_named(start: Snapshot) -> None:
    steady = SteadyLoads(start.partitions.loads)
    with pytest.raises(ConfigError, match="no broker 9; brokers are 0, 1, 2, 3, 4, 5"):
        Course(start=start, loads=steady, faults=(BrokerFault.parse("dead:9@1h"),))


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_every_shape_changes_loads_and_only_by_its_seed(start: Snapshot, name: str) -> None:
    def drawn(seed: int) -> Floats:
        (shape,) = shapes_of([name], start, seed=seed, length_s=86_400.0)
        moved = np.where(np.arange(len(start)) == 7, 0.0, -math.inf)
        around = Surroundings(leader=start.partitions.leader, moved_at_s=moved)
        return np.array([shape.factors(at_s, around) for at_s in range(0, 86_400, 600)])

    found = drawn(1)
    assert np.array_equal(found, drawn(1))
    assert found.max() > 1
    assert found.min() > 0


def test_unknown_shapes_are_refused(start: Snapshot) -> None:
    with pytest.raises(ConfigError, match="--shape wave: there are step, ramp"):
        shapes_of(["wave"], start, seed=1, length_s=60.0)


def table(folder: Path, *rows: str) -> Path:
    path = folder / "rates.csv"
    path.write_text("\n".join(["time,topic,rate", *rows]))
    return path


def test_rates_of_a_table_hold_until_the_next(start: Snapshot, tmp_path: Path) -> None:
    first = f"{BEGIN_S:.0f},topic-000000,0"
    found = read_load_table(table(tmp_path, first, "2026-01-05T01:00:00Z,topic-000001,1000"), start)
    rows = start.partitions.topic
    early = found.at(int(1000 * BEGIN_S) + 1000)
    assert not early[rows == 0][:, :2].any()
    assert np.array_equal(early[rows != 0], start.partitions.loads[rows != 0])
    late = found.at(int(1000 * BEGIN_S) + 3_600_000)
    assert late[rows == 1][:, 0].sum() == pytest.approx(1000)
    assert np.array_equal(late[:, 2], start.partitions.loads[:, 2])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ((), "no rows below its header"),
        (("1767571200,topic-000000,-5",), "line 2: rate is '-5'"),
        (("1767571200,topic-000000,nan",), "line 2: rate is 'nan'"),
        (("1767571200,topic-000000,",), "line 2: rate is empty"),
        (("1767571200,topic-0000o0,5",), "line 2: the cluster has no topic 'topic-0000o0'"),
        (("yesterday,topic-000000,5",), "line 2: time is 'yesterday'"),
        (("1767571200,topic-000000",), "line 2: 2 cells under 3 columns"),
        (
            ("1767571200,topic-000000,5", "1767571199,topic-000000,5"),
            "line 3: the time 1767571199 is before the one above",
        ),
    ],
)
def test_tables_that_are_not_valid_are_refused(
    start: Snapshot, tmp_path: Path, rows: tuple[str, ...], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        read_load_table(table(tmp_path, *rows), start)
