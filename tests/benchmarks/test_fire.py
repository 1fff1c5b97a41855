"""Worlds in which everything fails: they repeat, hold every invariant, and find bugs."""

import errno
import logging
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.fire.__main__ import in_words, main
from benchmarks.fire.actors import Actor, Actors
from benchmarks.fire.auto_invariants import AutoInvariants
from benchmarks.fire.figures import Figures, mutant_table, tables
from benchmarks.fire.fire_world import World, outcome_of
from benchmarks.fire.invariants import Invariants, Violation
from benchmarks.fire.mutants import MUTANTS, UNSEEN, found, mutated
from benchmarks.fire.scenarios import FaultKind, LoopPolicy, scenario_of
from benchmarks.fire.shrinking import shrunk
from benchmarks.fire.task_invariants import TaskInvariants
from benchmarks.fire.world_admin import Change
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


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        ([], "Every invariant holds in every world."),
        ([7], "1 world violates an invariant: seed 7."),
        ([3, 7], "2 worlds violate an invariant: seeds 3, 7."),
        ([*range(7)], "7 worlds violate an invariant: seeds 0, 1, 2, 3, 4 and 2 more."),
    ],
)
def test_the_table_names_the_worlds_that_violate_an_invariant(seeds: list[int], words: str) -> None:
    assert in_words(seeds) == words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seed", "5", "--keep", "99"], "--keep: seed 5 has .* none is number 99"),
        (["--seed", "5", "--keep", "0,-1"], "'0,-1' is not a list of numbers such as 0,2"),
        (["--seed", "5", "--keep", "x"], "'x' is not a list of numbers"),
        (["--seed", "5", "--keep", "0,,1"], "'0,,1' is not a list of numbers"),
        (["--keep", "0"], "--keep needs --seed"),
        (["--jobs", "0"], "--jobs: '0' is not a number from 1 on"),
        (["--seeds", "-3"], "--seeds: '-3' is not a number from 1 on"),
        (["--mutants", "--most", "0"], "--most: '0' is not a number from 1 on"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["fire", *arguments])
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    with pytest.raises(SystemExit) as refused:
        main()
    assert refused.value.code == 2
    assert re.search(message, capsys.readouterr().err)


def test_every_row_of_the_table_has_a_name() -> None:
    of = Figures(wall_s=4.0)
    whole = outcome_of(scenario_of(0))
    of.add(0, replace(whole, ended="", crowded=2))
    of.add(1, replace(whole, ended="", violation=Violation("racks kept", ""), crowded=1))
    rows = tables(of).splitlines()
    assert "| lists on the way in fewer racks | 3 |" in rows
    assert "| wall time of all | 4.0 s |" in rows
    assert [row for row in rows if row.startswith("| at rest:")] == [
        "| at rest: no run has ended | 1 |",
        "| at rest: none, an invariant was violated | 1 |",
    ]


@pytest.mark.parametrize("first", range(0, 80, 20))
@pytest.mark.slow
def test_every_invariant_holds(first: int) -> None:
    outcomes = [outcome_of(scenario_of(seed)) for seed in range(first, first + 20)]
    assert [str(o.violation) for o in outcomes if o.violation] == []
    assert sum(o.crashes for o in outcomes) > 0
    assert sum(o.checks for o in outcomes) > 500


@pytest.mark.parametrize(
    ("seed", "kept"),
    [
        (6815, (4,)),  # a flipped bit gave a journal another time, and its run was not counted
        (7234, (1, 2, 6)),  # a broker came back while a task asked about cordons
        (8393, (1, 2)),  # the planner left a replica on a dead broker
        (11224, (2, 3)),  # a process died between making a folder and syncing it into its parent
        (9317, (0, 1, 2, 5)),  # a person's approval was written by a process that died in the call
    ],
)
def test_worlds_that_once_violated_an_invariant_hold_it(seed: int, kept: tuple[int, ...]) -> None:
    assert outcome_of(scenario_of(seed).keeping(kept)).violation is None


def test_the_remains_of_a_record_may_go_but_no_synced_record(tmp_path: Path) -> None:
    """A power loss leaves a part of a record, and whoever opens the journal next cuts it off."""

    def violated(synced: bytes) -> str:
        folder = tmp_path / str(len(synced))
        folder.mkdir()
        world = World(scenario_of(0), folder)
        journal = world.hosts[0].folder / "r00000001-20270115T080000000-0a1b2c3d.jsonl"
        journal.touch()
        world.hosts[0].disk.durable[str(journal)] = synced
        world.readable(world.hosts[0])
        return "" if world.invariants.violation is None else world.invariants.violation.invariant

    assert violated(b'{"at_ms":18') == ""
    assert violated(b'{"at_ms":1800000000000}\n{"at') == "no synced record lost"


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

    def violated(policy: LoopPolicy, *, approved: bool = True, again: str = "") -> str:
        cluster = SimulatedCluster("fire", [], [], now_s=0.0)
        of = Invariants(world, cluster)
        auto = AutoInvariants(invariants=of, cluster=cluster, policy=policy)
        if approved:
            auto.approved(world.plan)
        if again in ("refused", "reported"):
            auto.changes("host 0", "r1")
            auto.resumes("host 0")
        else:
            auto.begins(world.plan, "host 0", 0.0)
        if again:
            if again == "changed":
                auto.changes("host 0", "r1")
            auto.ends("host 0", 10.0, has_reported=again == "reported")
            auto.begins(world.plan, "host 0", 12.0)
        return "" if of.violation is None else of.violation.invariant

    fewer = replace(allowed, limits=limits.model_copy(update={"bytes": 1}))
    off = TriggerTable(
        dead_broker=Response.OFF, empty_broker=Response.OFF, uneven_load=Response.OFF
    )
    assert violated(allowed) == violated(allowed, again="refused") == ""
    assert violated(allowed, again="changed") == "the limits of --auto hold"
    assert violated(allowed, again="reported") == "the limits of --auto hold"
    assert violated(fewer) == "the limits of --auto hold"
    assert violated(allowed, approved=False) == "only approved triggers act"
    assert violated(replace(allowed, triggers=off)) == "only approved triggers act"


def test_requests_need_the_records_of_their_own_run_and_of_those_fetched() -> None:
    """A host has the runs of the last day, by its own clock, and the archive has all."""
    world = next(w for w in map(scenario_of, range(60)) if w.task is None and w.auto is None)
    move = world.plan.moves[0]
    runs = ("r00000001-20270115T080000000-aaaaaaaa", "r00000002-20270116T090000000-bbbbbbbb")
    at = {"topic": move.topic, "partition": move.partition}
    record = canonical({"event": "issuing", "detail": {}, **at})
    change = Change(call="reassign", about={move.id: move.replicas_after})

    unannounced = "no changing call without its"

    def violated(here: list[int], there: list[int], since: str) -> str:
        of = Invariants(world, SimulatedCluster("fire", [], [], now_s=0.0))
        of.sent("host 1", change, runs[0], [{runs[0]: record}, {runs[0]: record}], since)
        places = [{runs[n]: record for n in numbers} for numbers in (here, there)]
        of.sent("host 0", change, runs[1], places, since)
        return "" if of.violation is None else of.violation.invariant

    assert violated([0, 1], [0, 1], "") == violated([1], [0, 1], "20270115T090000") == ""
    assert violated([1], [0, 1], "20270115T080000") == f"{unannounced} synced record"
    assert violated([0], [0, 1], "20270115T090000") == f"{unannounced} synced record"
    assert violated([1], [1], "20270115T090000") == f"{unannounced} archived record"


def test_a_run_that_another_host_continues_has_left_nothing_yet() -> None:
    """A frozen host reports that its lease is lost while the throttle of the next one is set."""
    outcome = outcome_of(scenario_of(6134).keeping((0, 3)))
    assert (outcome.violation, outcome.takeovers) == (None, 1)


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
    first, again = ([outcome_of(scenario_of(seed)) for seed in range(12)] for _ in range(2))
    assert first == again
    assert len({o.trace for o in first}) > len(first) / 2


def test_all_faults_are_drawn() -> None:
    drawn = Counter(f.kind for seed in range(300) for f in scenario_of(seed).faults)
    assert drawn.keys() == {*FaultKind}


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.slow
def test_a_deliberate_bug_is_found(name: str) -> None:
    assert found(name, range(30)) is not None


def test_a_deliberate_bug_ends_with_its_context() -> None:
    before = move_progress.steps
    for name in MUTANTS:
        with suppress(ZeroDivisionError), mutated(name):
            raise ZeroDivisionError
    assert move_progress.steps is before
    assert outcome_of(scenario_of(0)).violation is None


def test_a_bug_that_no_seed_finds_is_explained() -> None:
    assert MUTANTS.keys() > UNSEEN.keys()
    name, seen = next(iter(UNSEEN)), "records are not synced"
    results = [(name, None), (seen, (0, Violation("held", "not")))]
    assert mutant_table(results).splitlines()[2:] == [
        f"| {name} | not found | {UNSEEN[name]} |",
        f"| {seen} | 1 | held |",
    ]


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


def test_a_power_loss_keeps_a_task_in_a_folder_of_a_process_that_died(
    disk: Disk, tmp_path: Path
) -> None:
    """The folder was made, but its parent not yet synced."""
    for seed in range(20):
        disk.rng = random.Random(seed)
        state = tmp_path / str(seed)
        files = TaskFiles(state)
        state.mkdir()
        disk.sync(str(tmp_path))
        (state / "tasks").mkdir()
        task = files.add("c", Operation.REMOVE, (BrokerId(4),), "ada", 1_800_000_000_000)
        disk.lose_power()
        assert files.read(task.task_id) == task


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


def test_files_have_the_time_of_the_world_whatever_fails(disk: Disk, tmp_path: Path) -> None:
    """Runs of the day are found by the times of their journals."""
    disk.now_s = lambda: 1_900_000_000.0
    path = tmp_path / "run.jsonl"

    def has_time() -> bool:
        return path.stat().st_mtime == 1_900_000_000.0

    written(path, b"synced\n", b"lost", synced=1)
    assert has_time()
    assert disk.flip(0)
    assert has_time()
    disk.sync(str(tmp_path))
    disk.lose_power()
    assert has_time()
    with path.open("r+b", buffering=0) as file:
        file.truncate(3)
        assert has_time()
        disk.failing_writes.add(disk.writes)
        with pytest.raises(OSError, match="Input/output"):
            file.write(b"record")
    assert has_time()


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
