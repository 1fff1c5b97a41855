"""`plimsoll disk` on a simulated cluster whose brokers have several log directories."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.simulated_cluster.cluster_state import CORDONED
from lab.simulated_cluster.faults import Faults
from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.file import write_snapshot
from tests.support.control.command_cluster import answer, plimsoll, reached
from tests.support.control.simulated_disks import SimulatedDisks
from tests.support.control.simulated_tasks import MB, TOPIC, KillSwitch
from tests.support.executor.simulated_runs import Killed

CHANGING = ("--allow-changes", "--yes")
REMOVE, HEAL = ("disk", "remove"), ("disk", "heal")
PLACES = [(1, 2), (2, 3), (1, 3), (4, 1), (1, 4), (3, 2)]
LIES = {(0, 1): "/a", (2, 1): "/a", (3, 1): "/b", (4, 1): "/c", (0, 2): "/b"}
Make = Callable[..., SimulatedDisks]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A cluster that commands reach; the last one made counts."""
    numbers = itertools.count()

    def made(**changes: object) -> SimulatedDisks:
        folder = tmp_path / f"{next(numbers)}"
        (folder / "state").mkdir(parents=True)
        given: dict[str, object] = {"places": PLACES, "lies": LIES, "folder": folder / "state"}
        found = SimulatedDisks(**(given | changes))  # type: ignore[arg-type]
        reached(found, folder, monkeypatch)
        return found

    return made


def tight(make: Make, share: float = 0.45, **changes: object) -> SimulatedDisks:
    """Directories of 100 MB that are filled up to a share of it."""
    at = make(capacity=100.0 * MB, **changes)
    Path("plimsoll.toml").write_text(f"[goals.capacity_limits]\ndisk = {share}\n")
    return at


def words(result: str) -> str:
    return " ".join(result.split())


@pytest.mark.parametrize(
    ("budget", "why"),
    [
        ("bytes = '1MB'", "bytes = 1.00 MB allows none of 2 moves, the smallest needs"),
        ("replica_moves = 0", "replica_moves = 0 allows none of 2 moves, the smallest needs 1"),
    ],
)
def test_budgets_that_allow_no_healing_are_named(make: Make, budget: str, why: str) -> None:
    """It said what was left to the next plan of a task that there was not."""
    at = make()
    Path("plimsoll.toml").write_text(f"[goals.budgets]\n{budget}\n")
    at.cluster.fail_dir(BrokerId(1), "/a")
    at.cluster.advance(60.0)
    for options in (CHANGING, ("--dry-run",)):
        said = words(plimsoll(*HEAL, "1", *options, code=5).stderr)
        assert f"cannot heal broker 1: the budget {why}" in said
        assert "next plan" not in said
    assert at.files.paths() == []


# ---- remove


def test_replicas_go_to_other_directories_of_the_broker(make: Make) -> None:
    at = make()
    done = plimsoll(*REMOVE, "1", "/a", *CHANGING)
    assert at.where(1) == {"/b": [0, 3], "/c": [2, 4]}
    assert at.lists == PLACES
    assert "/a of broker 1 holds no replica" in words(done.stderr)
    assert "take it out of log.dirs and restart the broker" in words(done.stderr)
    assert "cordoned /a of broker 1: Kafka puts no new replicas there" in words(done.stderr)
    assert at.cordons == {1: "/a"}
    shown = words(plimsoll(*REMOVE, "1", "/a", "--dry-run").stderr)
    assert "nothing has to move; the task only cordons /a of broker 1, on Kafka 4.3 or" in shown
    already = plimsoll(*REMOVE, "1", "/a/", *CHANGING)
    assert "/a of broker 1 holds no replica already; nothing to do" in words(already.stderr)


@pytest.mark.parametrize("known", [True, False], ids=["cordoned", "before Kafka 4.3"])
def test_one_directory_after_the_other_stays_empty(make: Make, known: bool) -> None:
    at = make()
    at.cluster.knows_cordons = known
    first = plimsoll(*REMOVE, "1", "/a", *CHANGING)
    second = plimsoll(*REMOVE, "1", "/b", *CHANGING)
    assert at.where(1) == {"/c": [0, 2, 3, 4]}
    assert at.cordons == ({1: "/a,/b"} if known else {})
    if not known:
        assert "warning: /a of broker 1 not cordoned: it has no cordoned.log.dirs" in words(
            first.stderr
        )
        assert "/a of broker 1 was emptied before, and takes no replica" in words(second.stderr)
        return
    refused = plimsoll("disk", "include", "1", "/a", code=5)
    assert "add --allow-changes to end the cordons" in words(refused.stderr)
    ended = plimsoll("disk", "include", "1", "/a/", "--allow-changes", "-o", "json")
    document = json.loads(ended.stdout)
    assert (document["broker"], document["paths"], document["changed"]) == (1, ["/a/"], True)
    assert at.cordons == {1: "/b"}
    # The newest run emptied /b, and goes back alone.
    plimsoll("rollback", *CHANGING)
    assert at.cordons == {}
    assert at.where(1)["/b"]


def test_an_unknown_broker_or_directory_is_no_cordon_that_ends(make: Make) -> None:
    """Both were answered with success."""
    at = make()
    include = ("disk", "include")
    missing = plimsoll(*include, "77", "/zzz", "--allow-changes", code=2)
    assert "there is no live broker 77; known: 1, 2, 3, 4" in words(missing.stderr)
    unknown = plimsoll(*include, "1", "/zzz", "--allow-changes", code=2)
    assert "broker 1 has no log directory /zzz; known: /a, /b, /c" in words(unknown.stderr)
    plimsoll(*REMOVE, "1", "/a", *CHANGING)
    at.cluster.kill(BrokerId(1))
    dead = plimsoll(*include, "1", "/a", "--allow-changes")
    assert "it is dead or fenced" in dead.stdout


def test_a_directory_of_an_excluded_broker_stays_cordoned_for_itself(make: Make) -> None:
    at = make()
    plimsoll(*REMOVE, "1", "/a", *CHANGING)
    plimsoll("broker", "exclude", "1", "--allow-changes")
    assert at.cordons == {1: "*"}
    plimsoll("broker", "include", "1", "--allow-changes")
    assert at.cordons == {1: "/a"}


def test_someone_elses_cordon_of_a_directory_stays(make: Make) -> None:
    at = make()
    at.cluster.brokers[BrokerId(1)].configs[CORDONED] = "/c"
    done = plimsoll(*REMOVE, "1", "/a", *CHANGING)
    assert "someone else has set cordoned.log.dirs=/c, which stays" in words(done.stderr)
    assert at.where(1) == {"/b": [0, 2, 3], "/c": [4]}
    plimsoll("rollback", *CHANGING)
    assert at.cordons == {1: "/c"}


def test_a_run_that_is_refused_leaves_no_cordon(make: Make) -> None:
    at = make()
    at.faults.denied.add("reassignments")
    plimsoll(*REMOVE, "1", "/a", *CHANGING, code=5)
    assert at.cordons == {}


def test_several_directories_are_emptied_at_once(make: Make) -> None:
    at = make()
    plimsoll(*REMOVE, "1", "/a", "/b", *CHANGING)
    assert at.where(1) == {"/c": [0, 2, 3, 4]}
    assert at.lists == PLACES


def test_replicas_without_room_go_to_other_brokers(make: Make) -> None:
    at = tight(make)
    # Each directory takes two replicas: one more in /c.
    extra = [at.partition(n, (1, 2)) for n in (6, 7)]
    for partition in extra:
        partition.dirs[BrokerId(1)] = "/b" if partition.id.partition == 6 else "/a"
        at.cluster.partitions[partition.id] = partition
    plan = answer(*REMOVE, "1", "/a", "--dry-run")
    assert (plan["inside"], plan["outside"]) == (1, 2)
    assert plan["bytes_to_copy"] == 2 * 20 * MB
    assert plan["bytes_inside"] == 20 * MB
    assert plan["least_bytes"] == 3 * 20 * MB
    text = words(plimsoll(*REMOVE, "1", "/a", "--dry-run").stdout)
    assert "no plan empties /a of broker 1 with fewer bytes" in text
    assert at.where(1)["/a"] == [0, 2, 7]
    plimsoll(*REMOVE, "1", "/a", *CHANGING)
    assert "/a" not in at.where(1)
    assert sum(map(len, at.where(1).values())) == 4
    moved = [n for n, now in enumerate(at.lists) if {*now} != {*[*PLACES, (1, 2), (1, 2)][n]}]
    assert len(moved) == 2
    plimsoll("rollback", *CHANGING)
    assert at.lists == [*PLACES, (1, 2), (1, 2)]
    assert at.where(1) == {"/a": [0, 2, 7], "/b": [3, 6], "/c": [4]}


def test_internal_excluded_and_unmeasured_topics_leave_too(make: Make) -> None:
    at = tight(make, 0.25, internal=frozenset({"__consumer_offsets"}))
    offsets = at.partition(0, (1, 2), "__consumer_offsets")
    offsets.dirs[BrokerId(1)] = "/a"
    at.cluster.partitions[offsets.id] = offsets
    with Path("plimsoll.toml").open("a") as file:
        file.write(f'[goals]\nexcluded_topics = ["{TOPIC}"]\n')
    plan = answer(*REMOVE, "1", "/a", "--dry-run")
    assert (plan["inside"], plan["outside"]) == (0, 3)
    plimsoll(*REMOVE, "1", "/a", *CHANGING)
    assert "/a" not in at.where(1)


def test_a_dry_run_shows_plan_and_requests_and_changes_nothing(make: Make) -> None:
    at = make()
    before = at.where(1)
    found = answer(*REMOVE, "1", "/a", "--dry-run")
    assert found["directories"] == [{"broker": 1, "path": "/a"}]
    assert (found["inside"], found["outside"], found["waves"]) == (2, 0, 1)
    assert (found["bytes_inside"], found["bytes_to_copy"]) == (2 * 20 * MB, 0)
    assert sum("AlterReplicaLogDirs orders-" in r for r in found["requests"]) == 2
    assert found["plan"]["schema_version"] == "1.10"
    text = plimsoll(*REMOVE, "1", "/a", "--dry-run").stdout
    assert "2 replicas to other directories of the broker (40" in text
    assert "2 moves in 1 wave of at most 50" in text
    assert at.where(1) == before


def test_a_plan_file_of_it_is_verified_explained_and_applied(make: Make) -> None:
    at = tight(make, 0.25, lies=LIES | {(4, 1): "/b", (3, 1): "/a"})
    found = answer(*REMOVE, "1", "/a", "--dry-run")
    write_snapshot(Path("s.json"), at.last)
    Path("p.json").write_text(json.dumps(found["plan"]))
    Path("goals.toml").write_text(
        'repair_racks = false\nemptied = [{broker = 1, path = "/a"}]\n'
        "[capacity_limits]\ndisk = 0.25\n"
    )
    plimsoll("verify", "p.json", "--snapshot", "s.json", "--goals", "goals.toml")
    text = plimsoll("explain", "p.json", "--snapshot", "s.json").stdout
    assert "leaves /a of broker 1" in text
    refused = plimsoll("plan", "--goals", "goals.toml", "--snapshot", "s.json", code=2)
    assert "goals.emptied is for plimsoll disk remove alone" in words(refused.stderr)
    plimsoll("apply", "p.json", *CHANGING)
    assert "/a" not in at.where(1)


@pytest.mark.parametrize(
    ("broker", "paths", "code", "reason"),
    [
        ("9", ["/a"], 2, "there is no broker 9; known: 1, 2, 3, 4"),
        ("1", ["/1"], 2, "broker 1 has no log directory '/1'"),
        ("1", ["/a", "/b", "/c"], 5, "/a, /b, /c are all that broker 1 has; to empty the broker"),
        ("3", ["/a"], 2, "broker 3 is dead"),
    ],
)
def test_a_directory_that_cannot_be_emptied_is_refused(
    make: Make, broker: str, paths: list[str], code: int, reason: str
) -> None:
    at = make()
    at.cluster.kill(BrokerId(3))
    refused = plimsoll(*REMOVE, broker, *paths, *CHANGING, code=code)
    assert reason in words(refused.stderr)
    assert not list(at.folder.glob("journal/*"))


def test_a_broker_with_one_directory_is_refused(make: Make) -> None:
    make(dirs=("/a",), lies={})
    # The collector lists the directories of brokers with several.
    refused = plimsoll(*REMOVE, "1", "/a", *CHANGING, code=5)
    assert "/a is all that broker 1 has; to empty the broker, use plimsoll broker" in words(
        refused.stderr
    )


def test_a_cluster_without_room_is_refused(make: Make) -> None:
    lies = {(0, 1): "/a", (1, 1): "/b", (2, 1): "/c"}
    tight(make, 0.25, brokers=2, racks="ab", places=[(1, 2), (2, 1), (1, 2)], lies=lies)
    refused = plimsoll(*REMOVE, "1", "/a", *CHANGING, code=5)
    assert "1 replica (orders-0) finds no room in the other directories" in words(refused.stderr)
    assert "no other broker may hold orders-0" in words(refused.stderr)


def test_nothing_is_changed_unasked(make: Make) -> None:
    at = make()
    before = at.where(1)
    refused = plimsoll(*REMOVE, "1", "/a", code=5)
    assert "add --allow-changes to empty log directories" in words(refused.stderr)
    unasked = plimsoll(*REMOVE, "1", "/a", "--allow-changes", code=5)
    assert "there is no terminal to confirm on" in words(unasked.stderr)
    assert at.where(1) == before


@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
def test_killed_at_any_change_the_same_command_continues(make: Make, made: bool) -> None:
    for change in itertools.count():
        internal = frozenset({"__consumer_offsets"})
        at = tight(make, 0.25, lies=LIES | {(4, 1): "/b", (3, 1): "/a"}, internal=internal)
        offsets = at.partition(0, (1, 2), "__consumer_offsets")
        at.cluster.partitions[offsets.id] = offsets
        switch = KillSwitch(change, made)
        at.faults.on_call = switch.on_call
        killed = False
        try:
            plimsoll(*REMOVE, "1", "/a", *CHANGING)
        except Killed:
            killed = True
            at.faults.on_call = Faults().on_call
            begun = [*at.folder.glob("journal/*.plan.json")]
            # Copies that were requested are complete before anyone looks.
            at.cluster.advance(60.0 if begun else 0.0)
            again = plimsoll(*REMOVE, "1", "/a", *CHANGING)
            assert "continues task disk-remove-1-" in words(again.stderr)
        assert at.cordons == {1: "/a"}
        assert "/a" not in at.where(1)
        assert sum(map(len, at.where(1).values())) == 2, at.where(1)
        assert all(len({*held}) == 2 for held in at.lists)
        if not killed:
            assert change >= 2
            return


def test_other_directories_wait_for_an_interrupted_task(make: Make) -> None:
    at = make()
    # The first change is the cordon.
    at.faults.on_call = KillSwitch(1, after=True).on_call
    with pytest.raises(Killed):
        plimsoll(*REMOVE, "1", "/a", *CHANGING)
    at.faults.on_call = Faults().on_call
    before = at.where(1)
    refused = plimsoll(*REMOVE, "1", "/b", *CHANGING, code=5)
    assert "(empty /a of broker 1, moving) names broker 1, too; finish it with" in words(
        refused.stderr
    )
    plimsoll("broker", "remove", "1", *CHANGING, code=5)
    assert at.where(1) == before
    (task,) = answer("task", "list")["tasks"]
    assert (task["operation"], task["brokers"], task["paths"]) == ("disk-remove", [1], ["/a"])
    assert "1:/a" in plimsoll("task", "list").stdout
    assert at.cordons == {1: "/a"}
    kept = plimsoll("task", "cancel")
    assert "/a of broker 1 is still cordoned" in words(kept.stderr)
    assert "plimsoll disk include 1 /a --allow-changes ends that" in words(kept.stderr)
    plimsoll("rollback", *CHANGING)
    plimsoll(*REMOVE, "1", "/b", *CHANGING)
    assert "/b" not in at.where(1)


def test_a_cancelled_task_ends_the_cordon_of_its_directories(make: Make) -> None:
    at = make()
    at.faults.on_call = KillSwitch(1, after=True).on_call
    with pytest.raises(Killed):
        plimsoll(*REMOVE, "1", "/a", *CHANGING)
    at.faults.on_call = Faults().on_call
    plimsoll("task", "cancel", "--allow-changes")
    assert at.cordons == {}


# ---- heal


def test_replicas_of_a_failed_directory_are_created_on_other_brokers(make: Make) -> None:
    at = make()
    at.cluster.fail_dir(BrokerId(1), "/a")
    refused = plimsoll(*REMOVE, "1", "/a", *CHANGING, code=5)
    assert "/a has failed; plimsoll disk heal 1 creates its replicas" in words(refused.stderr)
    other = plimsoll(*REMOVE, "1", "/b", *CHANGING, code=5)
    assert "Kafka moves no replica inside a broker of which a directory is offline" in words(
        other.stderr
    )
    found = answer(*HEAL, "--dry-run")
    assert found["directories"] == [{"broker": 1, "path": "/a"}]
    assert (found["inside"], found["outside"]) == (0, 2)
    assert found["least_bytes"] == found["least_outside"] == found["bytes_to_copy"]
    text = words(plimsoll(*HEAL, "--dry-run").stdout)
    assert "no plan creates these replicas again with fewer bytes" in text
    assert "2 moves in 1 wave of at most 50" in text
    plimsoll(*HEAL, *CHANGING)
    assert at.where(1) == {"/b": [3], "/c": [4]}
    assert [now for n, now in enumerate(at.lists) if n not in (0, 2)] == [
        place for n, place in enumerate(PLACES) if n not in (0, 2)
    ]
    assert all(p.in_sync == {*p.replicas} for p in at.cluster.partitions.values())
    nothing = plimsoll(*HEAL, "1", *CHANGING)
    assert "no failed log directory of broker 1 holds a replica" in words(nothing.stderr)


def test_internal_topics_are_healed_too(make: Make) -> None:
    at = make(internal=frozenset({"__consumer_offsets"}))
    offsets = at.partition(0, (1, 2), "__consumer_offsets")
    at.cluster.partitions[offsets.id] = offsets
    at.cluster.fail_dir(BrokerId(1), "/a")
    plimsoll(*HEAL, *CHANGING)
    assert "/a" not in at.where(1)


def test_partitions_without_a_copy_are_named(make: Make) -> None:
    at = make()
    lone = at.partition(0, (1,), "lone")
    at.cluster.partitions[lone.id] = lone
    at.cluster.fail_dir(BrokerId(1), "/a")
    done = plimsoll(*HEAL, *CHANGING, code=6)
    assert "1 partition (lone-0) without a leader, of which no live broker has a copy" in words(
        done.stderr
    )
    assert at.where(1) == {"/a": [0], "/b": [3], "/c": [4]}


def test_heal_ends_where_no_directory_has_failed(make: Make) -> None:
    at = make()
    found = plimsoll(*HEAL, *CHANGING)
    assert "no failed log directory holds a replica; nothing to do" in words(found.stderr)
    assert answer("task", "list", "--all")["tasks"] == []
    assert at.lists == PLACES
    assert Goals().emptied == ()
