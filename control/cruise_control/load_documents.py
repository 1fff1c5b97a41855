"""Loads of brokers and partitions in Cruise Control's form and units.

Sizes are in MiB, rates in KiB/s, CPU in percent of the broker's cores. An unknown capacity is 0.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from control.cruise_control.requests import BadRequest, Request, matching
from model.goals.goals import Goal, Goals
from model.ids import NO_BROKER, BrokerId
from model.plan.plan import Move
from model.plan.proposal import Proposal
from model.plan.replication_change import ReplicationChange
from model.snapshot.snapshot import (
    LEADERLESS,
    Bools,
    Broker,
    BrokerState,
    Count,
    Floats,
    Resource,
    Snapshot,
)

MIB: Final = float(2**20)
KIB: Final = 1024.0
PERCENT: Final = 100.0
VERSION: Final = 1
"""Of all documents."""
_COUNTED: Final = (Count.REPLICAS, Count.LEADERS, Count.LEADER_NET_IN, Count.POTENTIAL_NET_OUT)
_MEASURED: Final = Goals(balance=tuple(Goal(resource=count) for count in _COUNTED))
"""Goals whose dimensions are all that a broker's load names."""
_SORTED_BY: Final = {
    "cpu": Resource.CPU,
    "networkinbound": Resource.NET_IN,
    "networkoutbound": Resource.NET_OUT,
    "disk": Resource.DISK,
}

Loads = Mapping[str, float]


def loads_of(
    snapshot: Snapshot, moves: Iterable[Move] = (), replication: tuple[ReplicationChange, ...] = ()
) -> dict[BrokerId, dict[str, float]]:
    """Loads by broker and measure after some moves, in plimsoll's own units."""
    return Proposal.of_moves(snapshot, _MEASURED, moves, replication).loads_after


def broker_stats(
    snapshot: Snapshot, loads: Mapping[BrokerId, Loads], *, capacity_only: bool = False
) -> dict[str, Any]:
    """`brokers` and `hosts`: every broker of the snapshot, each on a host of its own."""
    rows = [
        _broker_row(broker, {} if capacity_only else loads.get(broker.id, {}))
        for broker in snapshot.header.brokers
    ]
    hosts = [
        {key: value for key, value in row.items() if key not in ("Broker", "BrokerState")}
        for row in rows
    ]
    return {"hosts": hosts, "brokers": rows}


def load(snapshot: Snapshot, request: Request) -> dict[str, Any]:
    """The answer to `load`: the newest loads, since plimsoll's window is one."""
    stats = broker_stats(
        snapshot, loads_of(snapshot), capacity_only=request.flag("capacity_only", False)
    )
    return {"version": VERSION, **stats}


def state_word(broker: Broker) -> str:
    """The state of a broker in Cruise Control's words."""
    if broker.state is BrokerState.DEAD:
        return "DEAD"
    if any(entry.failed for entry in broker.log_dirs):
        return "BAD_DISKS"
    if broker.state in LEADERLESS:
        return "DEMOTED"
    return "NEW" if broker.state is BrokerState.NEW else "ALIVE"


def host_of(broker: BrokerId) -> str:
    """A name for a broker's host, which snapshots do not have."""
    return f"broker-{broker}"


def cpu_percent(broker: Broker, loads: Loads) -> float:
    """The CPU load of a broker in percent of its cores; of one core where they are unknown."""
    return PERCENT * loads.get(Resource.CPU, 0.0) / _cores(broker)


def _cores(broker: Broker) -> float:
    return broker.capacity.get(Resource.CPU, 0.0) or 1.0


def _broker_row(broker: Broker, loads: Loads) -> dict[str, Any]:
    capacity = broker.capacity
    cores, disk = capacity.get(Resource.CPU, 0.0), capacity.get(Resource.DISK, 0.0)
    net_in = loads.get(Resource.NET_IN, 0.0)
    led_in = loads.get(Count.LEADER_NET_IN, 0.0)
    used = loads.get(Resource.DISK, 0.0)
    return {
        "Host": host_of(broker.id),
        "Broker": int(broker.id),
        "Rack": broker.rack or "",
        "BrokerState": state_word(broker),
        "DiskMB": used / MIB,
        "DiskPct": PERCENT * used / disk if disk else 0.0,
        "CpuPct": cpu_percent(broker, loads),
        "LeaderNwInRate": led_in / KIB,
        "FollowerNwInRate": max(0.0, net_in - led_in) / KIB,
        "NwOutRate": loads.get(Resource.NET_OUT, 0.0) / KIB,
        "PnwOutRate": loads.get(Count.POTENTIAL_NET_OUT, 0.0) / KIB,
        "Leaders": round(loads.get(Count.LEADERS, 0.0)),
        "Replicas": round(loads.get(Count.REPLICAS, 0.0)),
        "DiskCapacityMB": disk / MIB,
        "NetworkInCapacity": capacity.get(Resource.NET_IN, 0.0) / KIB,
        "NetworkOutCapacity": capacity.get(Resource.NET_OUT, 0.0) / KIB,
        "NumCore": cores,
    }


# ---- partitions


def partition_load(snapshot: Snapshot, request: Request) -> dict[str, Any]:
    """The answer to `partition_load`: leaders' loads, the largest in the resource first.

    Raises BadRequest for a resource or a range of partitions that does not exist.
    """
    columns, resource = snapshot.partitions, _resource(request)
    rows = np.flatnonzero(_chosen(snapshot, request))
    loads = {each: _column(snapshot, each) for each in Resource}
    # Before they are sorted: brokers may differ.
    cores = {int(b.id): _cores(b) for b in snapshot.header.brokers}
    loads[Resource.CPU] *= PERCENT / np.array([cores.get(b, 1.0) for b in columns.leader.tolist()])
    order = rows[np.argsort(-loads[resource][rows], kind="stable")]
    most = request.values.get("entries")
    if most is not None and most < 1:
        raise BadRequest("entries is at least 1")
    records = []
    for row in order[:most].tolist():
        pid, leader = snapshot.id(row), int(columns.leader[row])
        records.append(
            {
                "topic": pid.topic,
                "partition": pid.partition,
                "leader": leader,
                "followers": [int(b) for b in snapshot.replicas(row) if b != leader],
                "cpu": float(loads[Resource.CPU][row]),
                "networkInbound": float(loads[Resource.NET_IN][row]) / KIB,
                "networkOutbound": float(loads[Resource.NET_OUT][row]) / KIB,
                "disk": float(loads[Resource.DISK][row]) / MIB,
                # Messages are not counted.
                "msg_in": 0.0,
            }
        )
    return {"version": VERSION, "records": records}


def _resource(request: Request) -> Resource:
    text = request.values.get("resource", "disk")
    found = _SORTED_BY.get(text.replace("_", "").lower())
    if found is None:
        known = "cpu, networkInbound, networkOutbound, disk"
        raise BadRequest(f"resource is one of {known}, not {text!r}")
    return found


def _chosen(snapshot: Snapshot, request: Request) -> Bools:
    """(n,) True for the partitions that a request asks for."""
    columns = snapshot.partitions
    found = np.ones(len(snapshot), np.bool_)
    if "topic" in request.values:
        topics = [t.name for t in snapshot.header.topics]
        found &= matching(request.values["topic"], topics)[columns.topic]
    if "partition" in request.values:
        first, last = _range(request.values["partition"])
        found &= (columns.partition >= first) & (columns.partition <= last)
    if "brokerid" in request.values:
        on = np.isin(columns.replica_broker, np.array(request.brokers(), np.int64))
        found &= np.bincount(snapshot.replica_row[on], minlength=len(snapshot)) > 0
    return found


def _range(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    ends = (first, last if dash else first)
    if not all(end.isascii() and end.isdigit() and len(end) <= 10 for end in ends):
        raise BadRequest(f"partition is a number or a range such as 0-9, not {text!r}")
    if int(ends[0]) > int(ends[1]):
        raise BadRequest(f"partition is a range such as 0-9, lower end first, not {text!r}")
    return int(ends[0]), int(ends[1])


def _column(snapshot: Snapshot, resource: Resource) -> Floats:
    """(n,) the loads of leaders in one resource; 0 where unknown."""
    header, columns = snapshot.header, snapshot.partitions
    if resource not in header.resources:
        if resource is Resource.DISK:
            return np.maximum(columns.local_bytes, 0).astype(np.float64)
        return np.zeros(len(snapshot), np.float64)
    return np.nan_to_num(columns.loads[:, header.resources.index(resource)])


def leaders_of(snapshot: Snapshot) -> dict[BrokerId, int]:
    """Partitions that each broker leads."""
    found = dict.fromkeys((b.id for b in snapshot.header.brokers), 0)
    led = snapshot.partitions.leader[snapshot.partitions.leader != NO_BROKER]
    ids, counts = np.unique(led, return_counts=True)
    found.update((BrokerId(b), n) for b, n in zip(ids.tolist(), counts.tolist(), strict=True))
    return found
