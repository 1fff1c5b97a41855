"""Runs that change the replication factor, interrupted at every call."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from executor.timing import RunLimits
from lab.simulated_cluster.faults import Faults
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.errors import GuardrailRefused
from model.ids import BrokerId, PartitionId
from model.plan.replication_change import ReplicationChange
from model.run import RunState
from tests.support.executor.plan_builders import ids
from tests.support.executor.simulated_runs import MB, TOPIC, SimulatedRun, interrupted_runs

MORE = {0: (1,), 1: (2,), 2: (3, 4)}, {0: (1, 2, 3), 1: (2, 5, 4), 2: (3, 4, 1)}
"""From 1 to 3; one partition is on its way already."""
FEWER = {0: (1, 2, 3), 1: (2, 3, 4), 2: (5, 1, 2)}, {0: (1,), 1: (3,), 2: (2,)}
"""From 3 to 1; some leaders go."""


def growing(folder: Path, throttle: int | None = None) -> SimulatedRun:
    return SimulatedRun(
        folder=folder,
        before=MORE[0],
        after=MORE[1],
        limits=RunLimits(moves_in_flight=2, throttle_bytes_per_s=throttle),
        replication=(ReplicationChange(topic=TOPIC, before=1, after=3),),
    )


def shrinking(folder: Path) -> SimulatedRun:
    return SimulatedRun(
        folder=folder,
        before=FEWER[0],
        after=FEWER[1],
        replication=(ReplicationChange(topic=TOPIC, before=3, after=1),),
    )


CASES = pytest.mark.parametrize(
    "site", [growing, partial(growing, throttle=50 * MB), shrinking], ids=["up", "slow", "down"]
)
MADE = pytest.mark.parametrize("made", [False, True], ids=["before", "after"])


@CASES
@MADE
def test_killed_at_any_call_a_run_is_resumed_to_its_end(
    tmp_path: Path, site: partial[SimulatedRun], *, made: bool
) -> None:
    cuts = 0
    for cut in interrupted_runs(tmp_path, site, made=made):
        cuts += 1
        report = cut.resume()
        assert (report.state, report.reason) == (RunState.DONE, "")
        assert cut.placement == {n: (to, to[0]) for n, to in cut.after.items()}
        assert cut.is_clean
    assert cuts > 3


@CASES
@MADE
def test_killed_at_any_call_a_run_is_rolled_back_completely(
    tmp_path: Path, site: partial[SimulatedRun], *, made: bool
) -> None:
    for cut in interrupted_runs(tmp_path, site, made=made):
        cut.cluster.advance(100.0)
        cut.executor().clean_up(cut.folder)
        assert cut.roll_back().state is RunState.DONE
        assert cut.placement == {n: (to, to[0]) for n, to in cut.before.items()}
        assert cut.is_clean


def test_replicas_are_added_one_at_a_time_and_none_leaves(tmp_path: Path) -> None:
    run = growing(tmp_path)
    lists = [
        request.rpartition(" -> ")[0].rpartition(": ")[2] + " -> " + request.rpartition(" -> ")[2]
        for request in run.executor().dry_run(run.plan)
        if f"{TOPIC}-0" in request
    ]
    assert lists == ["[1] -> [1, 2]", "[1, 2] -> [1, 2, 3]"]


def test_the_cluster_refuses_another_replication_factor_unless_asked(tmp_path: Path) -> None:
    run = growing(tmp_path)
    admin = SimulatedAdmin(run.cluster, Faults())
    target = {PartitionId(TOPIC, 0): ids([1, 2])}
    assert "replication factor" in admin.reassign(target)[PartitionId(TOPIC, 0)].reason
    assert not admin.reassign(target, resizes=True)[PartitionId(TOPIC, 0)].reason


def test_a_plan_that_does_not_say_so_changes_no_replication_factor(tmp_path: Path) -> None:
    run = growing(tmp_path)
    silent = run.plan.model_copy(update={"replication": ()}).seal()
    with pytest.raises(GuardrailRefused, match="replication factor of orders-0 from 1 to 3"):
        run.run(silent)
    assert run.placement == {n: (of, of[0]) for n, of in run.before.items()}


def test_a_stopped_run_is_resumed(tmp_path: Path) -> None:
    run = replace(growing(tmp_path), limits=RunLimits(moves_in_flight=1))
    run.cluster.after(1.0, run.steering.stop)
    assert run.run().state is not RunState.DONE
    run.reset_steering()
    assert run.resume().state is RunState.DONE
    assert {replicas for replicas, _ in run.placement.values()} == {*run.after.values()}


def test_a_replica_is_not_removed_while_one_that_stays_has_fallen_behind(tmp_path: Path) -> None:
    run = shrinking(tmp_path)
    run.cluster.partitions[PartitionId(TOPIC, 0)].in_sync.discard(BrokerId(1))
    run.cluster.kill(BrokerId(1))
    with pytest.raises(Exception, match="broker 1"):
        run.run()
    assert run.placement[0][0] == (1, 2, 3)
