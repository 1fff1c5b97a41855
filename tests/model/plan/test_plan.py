"""Plans: the hash that is approved, their files, and Kafka reassignment JSON."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from model.errors import ConfigError
from model.exchange.reassignment import reassignment, rollback
from model.files import read_document, write_document
from model.goals.goals import Budgets
from model.ids import BrokerId
from model.plan.plan import KIND, BrokerChange, Plan, PlanStatus, plan_hash, read_plan, write_plan
from model.snapshot.snapshot import BrokerState, Resource
from tests.support.model import clusters
from tests.support.model.clusters import ids, move

MOVES = (
    move(3, (1, 2), (3, 2), bytes_to_copy=70),
    move(1, (1, 2), (2, 1), bytes_to_copy=0),
    move(2, (1, 2), (1, 3), bytes_to_copy=30),
)


def plan(**others: object) -> Plan:
    change = BrokerChange(
        id=BrokerId(1),
        rack="a",
        state=BrokerState.ALIVE,
        before={Resource.NET_IN: 6.0},
        after={Resource.NET_IN: 1.0},
        deviation_before={Resource.NET_IN: 1.0},
        deviation_after={Resource.NET_IN: -0.25},
        replicas_before=3,
        replicas_after=1,
    )
    fields = {"levels": {Resource.NET_IN: 2.0}, "brokers": (change,), "moves": MOVES}
    return clusters.plan(**(fields | others))


def test_a_plan_reads_back(tmp_path: Path) -> None:
    """Equal, and written again the same bytes."""
    path = tmp_path / "p.json"
    write_plan(path, plan())
    first = path.read_bytes()
    assert read_plan(path) == plan()
    write_plan(path, read_plan(path))
    assert path.read_bytes() == first


def test_a_plan_of_an_older_schema_keeps_its_hash_and_names(tmp_path: Path) -> None:
    """Budgets had other names before 1.4."""
    document = plan(schema_version="1.3").model_dump(mode="json")
    document["goals"]["budgets"] = {
        "moves": 20,
        "bytes": None,
        "leader_changes": 3,
        "moves_per_topic": None,
        "moves_in_per_broker": 4,
        "moves_out_per_broker": None,
    }
    document["hash"] = plan_hash(document)
    path = tmp_path / "old.json"
    write_document(path, document)
    read = read_plan(path)
    assert read.goals.budgets == Budgets(
        replica_moves=20, leader_changes=3, replica_moves_in_per_broker=4
    )
    assert read.model_dump(mode="json") == document
    assert read.seal() == read


def test_sealing_twice_changes_nothing() -> None:
    assert plan().seal() == plan()
    assert len(plan().hash) == 64


@pytest.mark.parametrize(
    "others",
    [
        {"cluster_id": "d"},
        {"bound": 1.0000001},
        {"moves": MOVES[:2]},
        {"moves": MOVES[::-1]},
        {"status": PlanStatus.IMPROVED},
    ],
)
def test_any_other_plan_has_another_hash(others: dict[str, object]) -> None:
    assert plan(**others).hash != plan().hash


@given(data=st.data())
def test_a_plan_altered_by_a_byte_is_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("p") / "p.json"
    write_plan(path, plan())
    raw = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(raw) - 2))
    raw[at] = data.draw(st.integers(33, 126).filter(lambda b: b != raw[at]))
    with contextlib.suppress(ValueError):
        # 0e0 is the same number as 0.0.
        assume(json.loads(raw) != json.loads(path.read_bytes()))
    path.write_bytes(bytes(raw))
    with pytest.raises(ConfigError):
        read_plan(path)


def test_an_altered_figure_is_reported_as_such(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    write_plan(path, plan())
    write_document(path, read_document(path, KIND, major=1) | {"bound": 1.5})
    with pytest.raises(ConfigError, match="altered after it was made"):
        read_plan(path)


def test_a_field_of_a_newer_minor_is_ignored(tmp_path: Path) -> None:
    """The hash covers it all the same."""
    path = tmp_path / "p.json"
    newer = plan().model_dump(mode="json") | {"schema_version": "1.9", "waves": [1]}
    write_document(path, newer | {"hash": plan_hash(newer)})
    assert read_plan(path).moves == plan().moves
    write_document(path, newer | {"hash": plan_hash(newer), "waves": [2]})
    with pytest.raises(ConfigError, match="altered"):
        read_plan(path)


def test_sums_over_moves() -> None:
    assert plan().bytes_to_copy == 100
    assert plan().leader_changes == 2
    assert plan().gap == 1.0
    assert plan().gap_share == pytest.approx(0.25)


def test_a_gap_is_never_negative() -> None:
    assert plan(objective=0.5).gap == 0.0
    assert plan(objective_before=1.0).gap_share == 0.0


def test_a_gap_from_rounding_is_not_a_share_of_the_possible_gain() -> None:
    """Nothing can be gained, and the bound was rounded down."""
    proved = plan(objective_before=12.0, objective=12.0, bound=11.9999999)
    assert proved.gap_share == 0.0


def test_the_spread_is_the_largest_deviation() -> None:
    assert plan().spread(Resource.NET_IN, after=False) == 1.0
    assert plan().spread(Resource.NET_IN, after=True) == 0.25
    assert plan().spread(Resource.DISK, after=True) == 0.0


def test_a_move_lists_the_brokers_that_gain_and_lose() -> None:
    assert MOVES[0].added == (3,)
    assert MOVES[0].removed == (1,)
    assert MOVES[1].added == MOVES[1].removed == ()
    assert str(MOVES[0].id) == "orders-3"


def test_kafkas_tool_gets_sorted_replicas_and_a_rollback() -> None:
    """The input of `kafka-reassign-partitions`, and its rollback."""
    document = reassignment(plan())
    assert document == {
        "version": 1,
        "partitions": [
            {"topic": "orders", "partition": 1, "replicas": [2, 1]},
            {"topic": "orders", "partition": 2, "replicas": [1, 3]},
            {"topic": "orders", "partition": 3, "replicas": [3, 2]},
        ],
    }
    back = rollback(plan())["partitions"]
    assert [p["replicas"] for p in back] == [[1, 2]] * 3
    assert [p["partition"] for p in back] == [1, 2, 3]
    assert json.loads(json.dumps(document)) == document


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"replicas_after": ()}, "replicas_after is empty"),
        ({"replicas_before": ()}, "replicas_before is empty"),
        ({"replicas_after": ids(2, 2)}, r"names a broker twice: \[2, 2\]"),
        ({"replicas_after": ids(2, -7)}, "names the broker -7"),
        ({"leader_after": BrokerId(9)}, "leader_after, 9, is not in replicas_after"),
        ({"partition": -1}, "its number is not from 0"),
        ({"partition": 3}, "another move names the same partition"),
    ],
)
def test_an_impossible_move_is_named_although_the_hash_fits(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    moves = (MOVES[0], MOVES[1].model_copy(update=changes), MOVES[2])
    write_plan(tmp_path / "p.json", plan(moves=moves).seal())
    with pytest.raises(ConfigError, match=f"cannot be used: move [23], of .*{message}"):
        read_plan(tmp_path / "p.json")
