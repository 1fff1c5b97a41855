"""The answer to `kafka_cluster_state`: brokers, and partitions that are not whole."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from control.cruise_control.load_documents import VERSION, leaders_of
from control.cruise_control.requests import Request, matching
from model.ids import NO_BROKER, PartitionId
from model.names import Names
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Bools, BrokerState, Snapshot


def cluster_state(
    snapshot: Snapshot, replication: Replication | None, request: Request
) -> dict[str, Any]:
    """The document; `topic` filters the partitions, and `verbose` adds those that are whole."""
    rows = _Rows(snapshot, replication, request)
    found = {
        "offline": rows.of(rows.offline),
        "with-offline-replicas": rows.of(rows.lacking),
        "urp": rows.of(rows.behind),
        "under-min-isr": rows.of(rows.below),
    }
    if request.flag("verbose", False):
        whole = ~(rows.offline | rows.lacking | rows.behind | rows.below)
        found["other"] = rows.of(whole)
    return {
        "version": VERSION,
        "KafkaBrokerState": _brokers(snapshot, rows),
        "KafkaPartitionState": found,
    }


class _Rows:
    """The partitions by what they lack."""

    def __init__(
        self, snapshot: Snapshot, replication: Replication | None, request: Request
    ) -> None:
        columns = snapshot.partitions
        self._snapshot = snapshot
        names = request.values.get("topic", Names(prefix=("",)))
        shown = matching(names, [t.name for t in snapshot.header.topics])
        self._shown: Bools = shown[columns.topic]
        dead = snapshot.in_state({BrokerState.DEAD})[snapshot.replica_position]
        self.gone: Bools = dead | snapshot.in_failed_dir
        """(replicas,) True for those that no live broker can use."""
        self.offline: Bools = columns.leader == NO_BROKER
        self.lacking: Bools = self._counted(self.gone) > 0
        known = replication or Replication(under_replicated=0, offline=0)
        self.behind: Bools = self._named(known.behind_ids) | (self.lacking & ~self.offline)
        self.below: Bools = self._named(known.below_ids)

    def _counted(self, replicas: Bools) -> Any:
        rows = self._snapshot.replica_row[replicas]
        return np.bincount(rows, minlength=len(self._snapshot))

    def _named(self, ids: Iterable[PartitionId]) -> Bools:
        found = np.zeros(len(self._snapshot), np.bool_)
        rows = (self._snapshot.find(pid) for pid in ids)
        found[[row for row in rows if row is not None]] = True
        return found

    def of(self, chosen: Bools) -> list[dict[str, Any]]:
        """One record for each chosen partition that the request asks for."""
        return [self._record(row) for row in np.flatnonzero(chosen & self._shown).tolist()]

    def _record(self, row: int) -> dict[str, Any]:
        snapshot, columns = self._snapshot, self._snapshot.partitions
        pid, replicas = snapshot.id(row), snapshot.replicas(row)
        start, end = columns.replica_start[row : row + 2].tolist()
        gone = [int(b) for b, out in zip(replicas, self.gone[start:end], strict=True) if out]
        return {
            "topic": pid.topic,
            "partition": pid.partition,
            "leader": int(columns.leader[row]),
            "replicas": [int(b) for b in replicas],
            # Which live replica lags is not known: the probe counts those in sync.
            "in-sync": [int(b) for b in replicas if b not in gone],
            "out-of-sync": gone,
            "offline": gone,
            "min-isr": 1,
        }


def _brokers(snapshot: Snapshot, rows: _Rows) -> dict[str, Any]:
    brokers = snapshot.header.brokers
    positions, size = snapshot.replica_position, len(brokers)
    replicas = np.bincount(positions, minlength=size).tolist()
    gone = np.bincount(positions[rows.gone], minlength=size).tolist()
    leaders = leaders_of(snapshot)
    led = list(leaders.values())

    def by_id(values: Iterable[Any]) -> dict[str, Any]:
        return {str(b.id): value for b, value in zip(brokers, values, strict=True)}

    total, partitions = len(snapshot.replica_row), len(snapshot)
    return {
        "LeaderCountByBrokerId": by_id(led),
        "OutOfSyncCountByBrokerId": by_id(gone),
        "ReplicaCountByBrokerId": by_id(replicas),
        "OfflineReplicaCountByBrokerId": by_id(gone),
        # The controller is not part of a snapshot.
        "IsController": by_id([False] * size),
        "OnlineLogDirsByBrokerId": by_id(
            [[d.path for d in b.log_dirs if not d.failed] for b in brokers]
        ),
        "OfflineLogDirsByBrokerId": by_id(
            [[d.path for d in b.log_dirs if d.failed] for b in brokers]
        ),
        "BrokerSetByBrokerId": {},
        "Summary": {
            "Brokers": size,
            "Topics": len(snapshot.header.topics),
            "Replicas": total,
            "Leaders": sum(led),
            "AvgReplicationFactor": total / partitions if partitions else 0.0,
            "AvgReplicasPerBroker": total / size if size else 0.0,
            "AvgLeadersPerBroker": sum(led) / size if size else 0.0,
            "MaxReplicasPerBroker": max(replicas, default=0),
            "MaxLeadersPerBroker": max(led, default=0),
            "StdReplicasPerBroker": round(float(np.std(replicas))) if size else 0,
            "StdLeadersPerBroker": round(float(np.std(led))) if size else 0,
        },
    }
