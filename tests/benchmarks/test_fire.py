"""Worlds in which everything fails: they repeat, hold every invariant, and find bugs."""

import errno
import logging
import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.fire.actors import Actor, Actors
from benchmarks.fire.auto_invariants import AutoInvariants
from benchmarks.fire.fire_world import outcome_of
from benchmarks.fire.invariants import Invariants
from benchmarks.fire.mutants import MUTANTS, found, mutated
from benchmarks.fire.scenarios import FaultKind, LoopPolicy, scenario_of
from benchmarks.fire.shrinking import shrunk
from benchmarks.fire.task_invariants import TaskInvariants
from benchmarks.fire.world_files import Disk, simulated
from control.settings.trigger_table import Response, TriggerTable
from control.tasks.broker_task import BrokerTask, Operation, TaskPhase
from control.tasks.task_files import TaskFiles
from executor.platforms import move_progress
from lab.simulated_cluster.cluster import SimulatedCluster
from model.files import canonical, replace_file
from model.ids import BrokerId

QUICK = (
    "records are not synced",
    "moves are requested without a record",
    "cancels have no record",
    "throttles have no record",
    "the plan is not stored",
    "the lease is not checked",
    "records are archived after the request",
    "the throttle is not restored",
    "lists of the throttle stay",
    "rates of the throttle stay",
    "a resumed run forgets the throttle",
    "replicas go to another broker",
    "a replica is left out",
    "a requested move counts as done",
    "files are replaced without a sync",
    "folders of replaced files are not synced",
    "nobody is asked about the plan of a task",
    "a cancelled task goes on",
    "the lease of a task is not checked",
    "a task is done without a check of the cluster",
    "the mark ends with the task",
    "phases replace one another",
)
"""Deliberate bugs that a few seeds find."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_every_invariant_holds(first: int) -> None:
    outcomes = [outcome_of(scenario_of(seed)) for seed in range(first, first + 20)]
    assert [str(o.violation) for o in outcomes if o.violation] == []
    assert sum(o.crashes for o in outcomes) > 0
    assert sum(o.checks for o in outcomes) > 500


def test_tasks_are_requested_continued_and_ended() -> None:
    """Each of these worlds ends with a task that is over."""
    worlds = [scenario_of(seed) for seed in range(30)]
    outcomes = [outcome_of(world) for world in worlds if world.task is not None]
    assert {o.ended.partition(":")[0] for o in outcomes} >= {"task done", "task cancelled"}
    assert sum(o.tasks for o in outcomes) >= len(outcomes)
    assert sum(o.continued for o in outcomes) > 0


def test_loops_decide_and_execute_within_their_limits() -> None:
    """Among them are plans that a person approves, and hosts whose runs count for one another."""
    worlds = [scenario_of(seed) for seed in range(60)]
    outcomes = [outcome_of(world) for world in worlds if world.auto is not None]
    assert sum(o.loop_runs for o in outcomes) >= 5
    assert max(o.loop_runs for o in outcomes) > 1


def test_a_run_of_auto_beyond_its_limits_or_triggers_is_found() -> None:
    world = next(w for w in map(scenario_of, range(60)) if w.auto is not None)
    assert world.auto is not None
    limits = world.auto.limits.model_copy(update={"replica_moves": 9, "leader_changes": 9})
    limits = limits.model_copy(update={"bytes": 10**12, "partitions_per_topic": 9, "pause": 5.0})
    allowed = replace(world.auto, limits=limits, triggers=TriggerTable())

    def violated(policy: LoopPolicy, *, approved: bool = True, again: bool = False) -> str:
        cluster = SimulatedCluster("fire", [], [], now_s=0.0)
        of = Invariants(world, cluster)
        auto = AutoInvariants(invariants=of, cluster=cluster, policy=policy)
        if approved:
            auto.approved(world.plan)
        auto.begins(world.plan, "host 0", 0.0)
        if again:
            auto.changes("host 0", "r1")
            auto.ends("host 0", 10.0)
            auto.begins(world.plan, "host 0", 12.0)
        return "" if of.violation is None else of.violation.invariant

    fewer = replace(allowed, limits=limits.model_copy(update={"bytes": 1}))
    off = TriggerTable(
        dead_broker=Response.OFF, empty_broker=Response.OFF, uneven_load=Response.OFF
    )
    assert violated(allowed) == ""
    assert violated(allowed, again=True) == violated(fewer) == "the limits of --auto hold"
    assert violated(allowed, approved=False) == "only approved triggers act"
    assert violated(replace(allowed, triggers=off)) == "only approved triggers act"


def test_a_task_that_loses_a_phase_is_found() -> None:
    """A state that does not continue the one before breaks an invariant, as does a torn one."""
    cluster = SimulatedCluster("fire", [], [], now_s=0.0)
    task = BrokerTask.requested("remove-4", "fire", Operation.REMOVE, (BrokerId(4),), by="a", ms=1)
    later = task.entered(TaskPhase.CANCELLED, 2, "by b").sealed()
    states = [canonical(t.model_dump(mode="json")) for t in (task.sealed(), later)]

    def violated(before: bytes | None, after: bytes) -> str:
        of = Invariants(scenario_of(0), cluster)
        tasks = TaskInvariants(invariants=of, place=lambda _: None, empties=BrokerId(4))
        tasks.written(before, after)
        return "" if of.violation is None else of.violation.invariant

    assert violated(None, states[0]) == violated(states[0], states[1]) == ""
    assert violated(states[1], states[0]) == "task phases only advance or are cancelled"
    assert violated(states[0], states[1][:-9]) == "a task is readable after any crash"


def test_equal_seeds_give_equal_worlds() -> None:
    first, again = ([outcome_of(scenario_of(seed)) for seed in range(4)] for _ in range(2))
    assert first == again
    assert len({o.trace for o in first}) == len(first)


def test_all_faults_are_drawn() -> None:
    drawn = Counter(f.kind for seed in range(300) for f in scenario_of(seed).faults)
    assert drawn.keys() == {*FaultKind}


@pytest.mark.parametrize("name", QUICK)
def test_a_deliberate_bug_is_found(name: str) -> None:
    assert found(name, range(30)) is not None


def test_a_deliberate_bug_ends_with_its_context() -> None:
    before = move_progress.steps
    for name in MUTANTS:
        with suppress(ZeroDivisionError), mutated(name):
            raise ZeroDivisionError
    assert move_progress.steps is before
    assert outcome_of(scenario_of(0)).violation is None


def test_a_failing_seed_is_shrunk_to_the_faults_that_it_needs() -> None:
    """A throttle can only be forgotten by a run that is resumed."""
    with mutated("a resumed run forgets the throttle"):
        failing = found("a resumed run forgets the throttle", range(30))
        assert failing is not None
        seed, _ = failing
        kept, outcome = shrunk(seed)
        scenario = scenario_of(seed).keeping(kept)
        assert 0 < len(kept) < len(scenario_of(seed).faults)
        assert outcome_of(scenario) == outcome
        assert outcome.violation is not None
    assert outcome_of(scenario).violation is None


def test_a_seed_that_does_not_fail_is_not_shrunk() -> None:
    with pytest.raises(ValueError, match="seed 0 does not fail"):
        shrunk(0)


# ---- disks


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    of = Disk(tmp_path, random.Random(1), step=lambda: None)
    with simulated(lambda path: of if path.startswith(str(tmp_path)) else None):
        yield of


def written(path: Path, *parts: bytes, synced: int) -> None:
    """Write a journal, of which the first parts are synced."""
    with path.open("x+b", buffering=0) as file:
        for number, part in enumerate(parts):
            file.write(part)
            if number < synced:
                os.fsync(file.fileno())


def test_a_power_loss_keeps_what_was_synced_and_a_beginning_of_the_rest(
    disk: Disk, tmp_path: Path
) -> None:
    left = set()
    for seed in range(40):
        disk.rng = random.Random(seed)
        path = tmp_path / f"{seed}.jsonl"
        written(path, b"synced\n", b"lost", synced=1)
        disk.sync(str(tmp_path))
        disk.lose_power()
        left.add(path.read_bytes())
    assert all(found.startswith(b"synced\n") for found in left)
    assert {b"synced\n", b"synced\nlost"} < left
    assert any(b"\0" in found for found in left)


def test_a_power_loss_may_take_new_files_of_an_unsynced_folder(disk: Disk, tmp_path: Path) -> None:
    left = set()
    for seed in range(10):
        disk.rng = random.Random(seed)
        path = tmp_path / f"{seed}.jsonl"
        written(path, b"synced", synced=1)
        disk.lose_power()
        left.add(path.exists())
    assert left == {True, False}


def test_a_power_loss_leaves_a_replaced_file_old_or_new(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = set()
    for seed in range(10):
        disk.rng = random.Random(seed)
        path = tmp_path / f"{seed}.jsonl"
        replace_file(path, b"old")
        with monkeypatch.context() as patched:
            patched.setattr("model.files.sync_folder", lambda _: None)
            replace_file(path, b"new")
        disk.lose_power()
        left.add(path.read_bytes())
    assert left == {b"old", b"new"}


def test_a_power_loss_keeps_what_was_acknowledged_about_a_task(disk: Disk, tmp_path: Path) -> None:
    """Its folder was made with it, and each change replaces its file."""
    for seed in range(20):
        disk.rng = random.Random(seed)
        files = TaskFiles(tmp_path / str(seed) / "state")
        task = files.add("c", Operation.REMOVE, (BrokerId(4),), "ada", 1_800_000_000_000)
        disk.lose_power()
        assert files.read(task.task_id) == task
        changed = files.change(task.task_id, lambda t: t.entered(TaskPhase.MOVING, 2, "now"))
        disk.lose_power()
        assert files.read(task.task_id) == changed


def test_a_power_loss_takes_a_task_where_nothing_syncs_folders(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("model.files.sync_folder", lambda _: None)
    lost = set()
    for seed in range(20):
        disk.rng = random.Random(seed)
        files = TaskFiles(tmp_path / str(seed))
        task = files.add("c", Operation.REMOVE, (BrokerId(4),), "ada", 1_800_000_000_000)
        disk.lose_power()
        lost.add(not files.path(task.task_id).exists())
    assert lost == {True, False}


def test_a_full_disk_takes_a_part(disk: Disk, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    disk.full = True
    with path.open("x+b", buffering=0) as file, pytest.raises(OSError, match="space") as raised:
        file.write(b"record")
    assert raised.value.errno == errno.ENOSPC
    assert b"record".startswith(path.read_bytes())


def test_files_elsewhere_are_left_alone(
    disk: Disk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("elsewhere") / "run.jsonl"
    disk.full = True
    written(path, b"record", synced=1)
    assert path.read_bytes() == b"record"
    assert not disk.durable


# ---- actors


def test_actors_take_turns_in_the_order_of_time() -> None:
    cluster = SimulatedCluster("c", [], [], now_s=0.0)
    actors, seen = Actors(cluster), list[tuple[float, str]]()

    def script(name: str, seconds: float) -> None:
        def play(actor: Actor) -> None:
            for _ in range(3):
                seen.append((round(cluster.now_s, 3), name))
                actors.sleep(actor, seconds)

        actors.add(play, 0.0)

    script("a", 2.0)
    script("b", 3.0)
    actors.run()
    assert seen == [(0, "a"), (0, "b"), (2, "a"), (3, "b"), (4, "a"), (6, "b")]
    assert not actors.errors
