"""Which calls change a cluster, and who cannot reach them."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from executor.client import read_only_admin
from executor.client.changing_calls import CHANGING_CALLS
from executor.client.cluster_admin import ClusterAdmin, ClusterReads
from executor.client.kafka_admin import KafkaAdmin
from executor.client.read_only_admin import ReadOnlyAdmin
from executor.executor import Executor
from executor.timing import RunLimits
from lab.simulated_cluster import simulated_admin
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.ids import BrokerId
from model.snapshot.snapshot import StorageKind
from tests.support.executor.simulated_runs import MB, TOPIC, SimulatedRun

BROKER = BrokerId(1)
FILE = simulated_admin.__file__


def calls(of: type) -> set[str]:
    """The public methods of a class, inherited ones included."""
    return {name for name in dir(of) if not name.startswith("_") and callable(getattr(of, name))}


def test_the_list_has_every_call_that_is_not_a_read() -> None:
    assert calls(ClusterAdmin) - calls(ClusterReads) == {*CHANGING_CALLS}


@pytest.mark.parametrize("kind", [KafkaAdmin, SimulatedAdmin])
def test_clients_have_no_calls_beside_these(kind: type) -> None:
    assert calls(kind) == calls(ClusterAdmin)


def test_a_read_only_client_has_the_reads_and_nothing_else(tmp_path: Path) -> None:
    assert calls(ReadOnlyAdmin) == calls(ClusterReads)
    at = site(tmp_path, StorageKind.REPLICATED)
    reads = ReadOnlyAdmin(SimulatedAdmin(at.cluster, at.faults))
    for name in CHANGING_CALLS:
        with pytest.raises(AttributeError):
            getattr(reads, name)
    with pytest.raises(AttributeError):
        # The type checker finds none either: it would report an unused comment here.
        reads.elect_preferred([])  # type: ignore[attr-defined]


def test_no_read_takes_a_client_that_changes() -> None:
    """The type checker would report an unused comment if a reader could change anything."""

    def change(reads: ClusterReads) -> None:
        reads.elect_preferred([])  # type: ignore[attr-defined]

    assert callable(change)


class Changing(SimulatedAdmin):
    """A client that notes calls which change, and makes none."""

    def __getattribute__(self, name: str) -> object:
        if name in CHANGING_CALLS:
            raise AssertionError(f"{name} was reached")
        return super().__getattribute__(name)


def site(folder: Path, storage: StorageKind) -> SimulatedRun:
    return SimulatedRun(
        folder=folder,
        before={0: (1,), 1: (2,)},
        after={0: (3,), 1: (3,)},
        brokers=3,
        storage=storage,
        limits=RunLimits(throttle_bytes_per_s=50 * MB, lower_segments=True, suspend_balancer=True),
    )


READS: dict[str, Callable[[Executor, SimulatedRun], object]] = {
    "cluster": lambda executor, _at: executor.cluster(),
    "dry_run": lambda executor, at: executor.dry_run(at.plan, at.folder),
    "elections": lambda executor, _at: executor.elections(),
    "forecast": lambda executor, at: executor.forecast(at.plan, at.folder),
    "knows_cordons": lambda executor, _at: executor.knows_cordons(BROKER),
    "left": lambda executor, at: executor.left(at.folder),
    "log_dirs": lambda executor, _at: executor.log_dirs(BROKER),
    "metadata_dir": lambda executor, _at: executor.metadata_dir(BROKER),
    "min_in_sync": lambda executor, _at: executor.min_in_sync([TOPIC]),
    "plan_rollback": lambda executor, at: executor.plan_rollback(at.folder, None),
    "rebalancers": lambda executor, _at: executor.rebalancers(shared=True),
    "replica_lists": lambda executor, _at: executor.replica_lists(),
    "replicas_in": lambda executor, _at: executor.replicas_in(BROKER, ["/data"]),
    "replicas_on": lambda executor, _at: executor.replicas_on([BROKER]),
    "views_on": lambda executor, _at: executor.views_on([BROKER]),
}
"""By the names of the executor's methods that change nothing."""
CHANGES = {
    *("execute", "resume", "clean_up", "elect", "creating_topic"),
    *("cordon", "uncordon", "cordon_dirs", "uncordon_dirs"),
}
NO_CALLS = {"signature_of", "watch_lease", "runs", "runs_of", "close"}
"""These ask the cluster nothing."""


def test_the_list_has_every_method_that_reads() -> None:
    assert calls(Executor) == {*READS} | CHANGES | NO_CALLS


@pytest.mark.parametrize("storage", StorageKind)
@pytest.mark.parametrize("name", READS)
def test_readers_reach_no_changing_call(tmp_path: Path, storage: StorageKind, name: str) -> None:
    at = site(tmp_path, storage)
    if name == "plan_rollback":
        at.run()
        at.cluster.timing.pause(120.0)
    executor = Executor(Changing(at.cluster, at.faults), timing=at.cluster.timing, limits=at.limits)
    assert READS[name](executor, at) is not None


class Unwrapped(SimulatedAdmin):
    """A client that answers the read-only client, and nobody else."""

    def __getattribute__(self, name: str) -> object:
        asker = sys._getframe(1).f_code.co_filename
        if not name.startswith("_") and asker not in (read_only_admin.__file__, FILE):
            raise AssertionError(f"{name} was called by {asker}")
        return super().__getattribute__(name)


@pytest.mark.parametrize("name", READS)
def test_readers_ask_through_the_read_only_client(tmp_path: Path, name: str) -> None:
    at = site(tmp_path, StorageKind.REPLICATED)
    if name == "plan_rollback":
        at.run()
    admin = Unwrapped(at.cluster, at.faults)
    executor = Executor(admin, timing=at.cluster.timing, limits=at.limits)
    assert READS[name](executor, at) is not None


def test_the_same_client_notices_a_run(tmp_path: Path) -> None:
    """Otherwise the test above could not fail."""
    at = site(tmp_path, StorageKind.REPLICATED)
    executor = Executor(Changing(at.cluster, at.faults), timing=at.cluster.timing, limits=at.limits)
    with pytest.raises(AssertionError, match="was reached"):
        executor.execute(
            at.plan, journal_dir=tmp_path, observe=lambda _run: None, steering=at.steering
        )
