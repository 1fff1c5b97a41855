"""Instances of Cruise Control's offline format become snapshots with the same loads."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.cruise import instances
from benchmarks.cruise_format import UNITS, home, proposals, read, score, snapshot_of
from model.goals.goals import Goals, SolveLimits
from model.plan.proposal import Proposal
from model.snapshot.snapshot import BrokerState, Resource, StorageKind
from solver.solve import solve

HOME = home()
CAPACITY = {"cpu": 100, "disk": 4000, "nw_in": 1000, "nw_out": 2000}


def entry(number: int, replicas: list[int], rate: float) -> dict[str, Any]:
    """A partition whose consumers read what its producers send."""
    out = rate * len(replicas)
    load = {"cpu": rate / 10, "disk": 5 * rate, "nw_in": rate, "nw_out": out}
    return {"topic": "t", "partition": number, "replicas": replicas, "load": load}


DOCUMENT: dict[str, Any] = {
    "format": "cc-offline/1",
    "name": "three",
    "brokers": [
        {"id": i, "rack": f"r{i}", "state": "alive", "capacity": CAPACITY} for i in range(3)
    ],
    "partitions": [entry(i, [0, 1], 10.0 * (i + 1)) for i in range(6)],
}


def test_the_consumer_rate_is_the_leader_rate_minus_what_followers_fetch() -> None:
    snapshot = snapshot_of(DOCUMENT)
    out = snapshot.header.resources.index(Resource.NET_OUT)
    assert snapshot.partitions.loads[0, out] == 10 * 1024


def test_kilobytes_and_megabytes_become_bytes() -> None:
    snapshot = snapshot_of(DOCUMENT)
    capacity = snapshot.header.brokers[0].capacity
    assert capacity[Resource.NET_IN] == 1000 * 1024
    assert capacity[Resource.DISK] == 4000 * 2**20


def test_a_dead_broker_is_dead_and_a_new_one_alive() -> None:
    states = ["dead", "new", "alive"]
    brokers = [b | {"state": s} for b, s in zip(DOCUMENT["brokers"], states, strict=True)]
    result = snapshot_of(DOCUMENT | {"brokers": brokers}).header.brokers
    assert [b.state for b in result] == [BrokerState.DEAD, BrokerState.ALIVE, BrokerState.ALIVE]


def test_a_cluster_without_disks_has_no_disk_to_balance() -> None:
    dry = [p | {"load": p["load"] | {"disk": 0}} for p in DOCUMENT["partitions"]]
    snapshot = snapshot_of(DOCUMENT | {"partitions": dry})
    assert Resource.DISK not in snapshot.header.resources
    assert snapshot.header.topics[0].storage is StorageKind.SHARED


def test_proposals_name_the_leader_first() -> None:
    plan = solve(snapshot_of(DOCUMENT), Goals(), SolveLimits(work=1.0)).best
    assert plan is not None
    assert all(
        p["new"][0] == move.leader_after
        for p, move in zip(proposals(plan.moves), plan.moves, strict=True)
    )


@pytest.mark.skipif(HOME is None, reason="Cruise Control's goals are not there")
def test_both_programs_see_the_same_loads_per_broker(tmp_path: Path) -> None:
    # The format rounds followers' CPU to five digits.
    assert HOME is not None
    (made,) = instances(HOME, tmp_path, ["s1-6x300-rf3"])
    for given in (DOCUMENT, read(made)):
        snapshot = snapshot_of(given)
        ours = Proposal(snapshot, Goals(), ()).loads_before
        theirs = score(HOME, given, [])["loads"]
        for broker in ours:
            for resource in snapshot.header.resources:
                name, unit = UNITS[resource]
                assert ours[broker][resource] == pytest.approx(
                    theirs[broker][name] * unit, rel=1e-4
                )
