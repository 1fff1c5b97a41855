"""`plimsoll topic set-replicas` on a simulated cluster."""

import pytest

from model.ids import BrokerId, PartitionId
from model.snapshot.snapshot import StorageKind
from tests.support.control.command_cluster import PLACES, answer, plimsoll
from tests.support.control.simulated_tasks import TOPIC, SimulatedTask

CHANGING = ("--allow-changes", "--yes")
SET = ("topic", "set-replicas")


def counts(at: SimulatedTask, topic: str = TOPIC) -> list[int]:
    found = sorted(p for p in at.cluster.partitions if p.topic == topic)
    return [len(at.cluster.partitions[p].replicas) for p in found]


def words(result: str) -> str:
    return " ".join(result.split())


def test_replicas_are_added_and_removed(at: SimulatedTask) -> None:
    done = answer(*SET, TOPIC, "3", *CHANGING)
    assert (done["phase"], done["topics"], done["replicas"]) == ("done", [TOPIC], 3)
    assert counts(at) == [3] * len(PLACES)
    assert answer(*SET, TOPIC, "1", *CHANGING)["phase"] == "done"
    assert counts(at) == [1] * len(PLACES)
    leaders = [int(p.leader) for _, p in sorted(at.cluster.partitions.items())]
    assert leaders == [place[0] for place in PLACES]
    already = plimsoll(*SET, TOPIC, "1", *CHANGING)
    assert "every partition of the topic has 1 replica; nothing to do" in words(already.stderr)
    assert len(answer("task", "list", "--all")["tasks"]) == 2


def test_a_rollback_restores_the_replication_factor(at: SimulatedTask) -> None:
    plimsoll(*SET, TOPIC, "3", *CHANGING)
    plimsoll("rollback", *CHANGING)
    lists = [tuple(map(int, p.replicas)) for _, p in sorted(at.cluster.partitions.items())]
    assert lists == PLACES


def test_a_dry_run_shows_plan_waves_and_peaks_and_changes_nothing(at: SimulatedTask) -> None:
    found = answer(*SET, TOPIC, "3", "--dry-run")
    assert found["topics"] == [{"topic": TOPIC, "before": 2, "after": 3}]
    assert (found["added"], found["removed"], found["waves"]) == (5, 0, 1)
    assert found["bytes_to_copy"] == found["least_bytes"] == 5 * at.log_bytes
    assert sum(p["more_bytes"] for p in found["peaks"]) > 0
    assert len(found["requests"]) >= 5
    assert counts(at) == [2] * len(PLACES)
    text = plimsoll(*SET, TOPIC, "3", "--dry-run").stdout
    assert f"{TOPIC}: 3 replicas instead of 2, in 5 partitions" in text
    assert "5 moves in 1 wave of at most 50" in text
    assert "disk at most" in text
    fewer = plimsoll(*SET, TOPIC, "1", "--dry-run").stdout
    assert "no broker needs more disk meanwhile" in fewer
    assert "no plan does so with fewer bytes" in text


def test_a_cluster_without_topics_says_so(at: SimulatedTask) -> None:
    """The list of known topics was empty."""
    at.cluster.partitions.clear()
    missing = plimsoll(*SET, TOPIC, "3", *CHANGING, code=2)
    assert "there is no topic 'orders'; there are none" in words(missing.stderr)


def test_more_replicas_than_racks_are_pointed_out(at: SimulatedTask) -> None:
    """They were placed without a word; the four brokers lie in three racks."""
    crowded = "4 replicas in 3 racks: racks hold more than one replica of a partition"
    assert crowded in plimsoll(*SET, TOPIC, "4", "--dry-run").stdout
    assert "racks:" not in plimsoll(*SET, TOPIC, "3", "--dry-run").stdout
    four, three = (answer(*SET, TOPIC, count, "--dry-run") for count in "43")
    assert (four["racks"], four["beyond_racks"]) == (3, 1)
    assert (three["racks"], three["beyond_racks"]) == (3, 0)
    assert crowded in words(plimsoll(*SET, TOPIC, "4", *CHANGING).stdout)
    for broker in at.cluster.brokers.values():
        broker.rack = None
    assert "racks:" not in plimsoll(*SET, TOPIC, "2", "--dry-run").stdout
    unknown = answer(*SET, TOPIC, "3", "--dry-run")
    assert (unknown["racks"], unknown["beyond_racks"]) == (None, 0)


def test_patterns_name_topics_and_internal_ones_only_by_name(at: SimulatedTask) -> None:
    for topic in ("orders.eu", "orders.us", "returns"):
        new = at.partition(0, (1, 2), topic)
        at.cluster.partitions[PartitionId(new.id.topic, 0)] = new
    plimsoll(*SET, r"orders\..*", "returns", "3", *CHANGING)
    assert [counts(at, t)[0] for t in ("orders.eu", "orders.us", "returns")] == [3, 3, 3]
    assert counts(at) == [2] * len(PLACES)
    missing = plimsoll(*SET, "order", "3", *CHANGING, code=2)
    assert "there is no topic 'order'; did you mean 'orders'?" in words(missing.stderr)
    broken = plimsoll(*SET, "or(", "3", *CHANGING, code=2)
    assert "not a valid regular expression" in words(broken.stderr)


@pytest.mark.parametrize(
    ("count", "reason"),
    [
        ("5", "orders-0 has 2, and only 4 brokers may take replicas of a partition, one each"),
        ("0", "0 is less than 1"),
    ],
)
def test_an_impossible_number_is_refused(at: SimulatedTask, count: str, reason: str) -> None:
    refused = plimsoll(*SET, TOPIC, count, *CHANGING, code=2 if count == "0" else 5)
    assert reason in words(refused.stderr)
    assert counts(at) == [2] * len(PLACES)


def test_fewer_replicas_than_have_to_be_in_sync_are_refused(at: SimulatedTask) -> None:
    at.cluster.topic_configs[TOPIC] = {"min.insync.replicas": "2"}
    refused = plimsoll(*SET, TOPIC, "1", *CHANGING, code=5)
    assert "min.insync.replicas of orders is 2" in words(refused.stderr)
    assert counts(at) == [2] * len(PLACES)
    # It was recorded, as a task that had failed.
    assert answer("task", "list", "--all")["tasks"] == []


def test_a_topic_whose_partitions_differ_is_changed_in_one_direction(at: SimulatedTask) -> None:
    first, second, *_ = sorted(at.cluster.partitions)
    del at.cluster.partitions[first].replicas[1]
    at.cluster.partitions[first].in_sync.discard(BrokerId(1))
    at.cluster.partitions[second].replicas.append(BrokerId(2))
    at.cluster.partitions[second].in_sync.add(BrokerId(2))
    refused = plimsoll(*SET, TOPIC, "2", *CHANGING, code=5)
    assert "partitions with 1 and with 3 replicas; set 3 first" in words(refused.stderr)
    plimsoll(*SET, TOPIC, "3", *CHANGING)
    assert counts(at) == [3] * len(PLACES)


def test_automq_has_one_replica_of_each_partition(at: SimulatedTask) -> None:
    at.storage = StorageKind.SHARED
    for at_once in at.cluster.partitions.values():
        at_once.storage = StorageKind.SHARED
        del at_once.replicas[1]
    refused = plimsoll(*SET, TOPIC, "2", *CHANGING, code=5)
    assert "orders lies on shared storage, which keeps the copies" in words(refused.stderr)


def test_nothing_is_changed_unasked(at: SimulatedTask) -> None:
    refused = plimsoll(*SET, TOPIC, "3", code=5)
    assert "add --allow-changes to change replication factors" in words(refused.stderr)
    unasked = plimsoll(*SET, TOPIC, "3", "--allow-changes", code=5)
    assert "there is no terminal to confirm on" in words(unasked.stderr)
    assert counts(at) == [2] * len(PLACES)
