"""Free space of targets' disks."""

from dataclasses import replace
from pathlib import Path

from executor.schedule.disk_headroom import DiskHeadroom
from executor.timing import RunLimits
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.ids import BrokerId
from tests.support.executor.simulated_runs import MB, SimulatedRun

TARGET = BrokerId(2)


def site(folder: Path) -> SimulatedRun:
    return SimulatedRun(
        folder=folder,
        before={0: (1,), 1: (1,)},
        after={0: (2,), 1: (2,)},
        log_bytes=600.0 * MB,
        disk_bytes=2000.0 * MB,
        limits=RunLimits(disk_reserve_bytes=50 * MB, disk_look_s=10.0),
    )


def headroom_of(of: SimulatedRun) -> DiskHeadroom:
    admin = SimulatedAdmin(of.cluster, of.faults)
    return DiskHeadroom(admin, of.limits, of.cluster.timing)


def test_data_copied_since_the_last_poll_is_subtracted(tmp_path: Path) -> None:
    """Otherwise a disk could fill up between two polls."""
    at = site(tmp_path)
    free, (first, second) = headroom_of(at), at.plan.moves
    assert free.of(at.plan.moves, [first, second])[TARGET] == 1950 * MB
    assert free.of(at.plan.moves, [second])[TARGET] == 1350 * MB
    at.cluster.advance(10.0)
    assert free.of(at.plan.moves, [second])[TARGET] == 1950 * MB


def test_disks_are_polled_once_nothing_is_in_flight(tmp_path: Path) -> None:
    """Polled before a move is reported never to fit."""
    at = site(tmp_path)
    free, (first, _) = headroom_of(at), at.plan.moves
    assert free.of(at.plan.moves, [first])[TARGET] == 1950 * MB
    at.cluster.brokers[TARGET].disk_bytes = 1000.0 * MB
    assert free.of(at.plan.moves, [])[TARGET] == 950 * MB


def test_brokers_that_do_not_report_space_have_no_limit(tmp_path: Path) -> None:
    at = replace(site(tmp_path), disk_bytes=float("inf"))
    assert TARGET not in headroom_of(at).of(at.plan.moves)
