"""Which calls change a cluster, and who cannot reach them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from executor.client.changing_calls import CHANGING_CALLS
from executor.client.cluster_admin import ClusterAdmin, ClusterReads
from executor.client.kafka_admin import KafkaAdmin
from executor.client.read_only_admin import ReadOnlyAdmin
from executor.executor import Executor
from executor.timing import RunLimits
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.snapshot.snapshot import StorageKind
from tests.support.executor.simulated_runs import MB, SimulatedRun


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
    "dry run": lambda executor, at: executor.dry_run(at.plan, at.folder),
    "forecast": lambda executor, at: executor.forecast(at.plan, at.folder),
    "rebalancers": lambda executor, _at: executor.rebalancers(shared=True),
    "elections": lambda executor, _at: executor.elections(),
    "replicas": lambda executor, _at: executor.replica_lists(),
}


@pytest.mark.parametrize("storage", StorageKind)
@pytest.mark.parametrize("name", READS)
def test_readers_reach_no_changing_call(tmp_path: Path, storage: StorageKind, name: str) -> None:
    at = site(tmp_path, storage)
    executor = Executor(Changing(at.cluster, at.faults), timing=at.cluster.timing, limits=at.limits)
    assert READS[name](executor, at) is not None


def test_the_same_client_notices_a_run(tmp_path: Path) -> None:
    """Otherwise the test above could not fail."""
    at = site(tmp_path, StorageKind.REPLICATED)
    executor = Executor(Changing(at.cluster, at.faults), timing=at.cluster.timing, limits=at.limits)
    with pytest.raises(AssertionError, match="was reached"):
        executor.execute(
            at.plan, journal_dir=tmp_path, observe=lambda _run: None, steering=at.steering
        )
