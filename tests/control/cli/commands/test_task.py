"""`plimsoll task` and `plimsoll broker` on a simulated cluster, and without one."""

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clients.s3 import S3Settings
from control import compose
from control.cli import task_work
from control.cli.exit_codes import Exit
from control.cli.main import app
from control.planning.plan_needs import Reason, plan_needs
from control.settings.settings import Settings
from control.tasks import broker_marks, task_files
from control.tasks.broker_task import MOST_BROKERS, SCHEMA_VERSION, Operation, TaskPhase
from control.tasks.task_cordons import cordon_notes
from control.tasks.task_files import Marks
from control.tasks.task_request import TaskRequest, requested_task
from executor.executor import Executor
from executor.timing import RunLimits
from lab.simulated_cluster.cluster_state import CORDONED, SimulatedBroker
from lab.simulated_cluster.faults import Faults
from model.errors import ConfigError
from model.evaluate import evaluate
from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState
from tests.control.tasks.test_continued_tasks import tasks_of
from tests.support.control.command_cluster import PLACES, answer, commanded, plimsoll, reached
from tests.support.control.simulated_tasks import TOPIC, KillSwitch, SimulatedTask
from tests.support.executor.s3_server import place
from tests.support.executor.simulated_runs import Killed

CHANGING = ("--allow-changes", "--yes")


def test_a_broker_is_removed_by_one_command(at: SimulatedTask) -> None:
    done = answer("broker", "remove", "4", *CHANGING)
    assert (done["phase"], done["open"], done["brokers"]) == ("done", False, [4])
    assert done["plans"][0]["bytes_to_copy"] == done["plans"][0]["least_bytes"]
    assert 4 not in at.held
    text = plimsoll("task", "show").stdout
    assert "remove broker 4, done" in text
    assert "no plan empties broker 4 with fewer bytes" in text


def test_a_dry_run_shows_the_plan_and_stores_nothing(at: SimulatedTask) -> None:
    found = answer("broker", "remove", "4", "--dry-run")
    assert found["replicas"] == len(found["plan"]["moves"]) == 4
    assert found["waves"] == 1
    assert found["seconds"] > 0
    assert len(found["requests"]) >= 4
    assert [p["broker"] for p in found["peaks"] if p["more_bytes"]]
    assert not at.files.paths()
    assert at.states == {}
    assert "wave of at most 50" in plimsoll("broker", "remove", "4", "--dry-run").stdout


@pytest.mark.parametrize(
    ("places", "before", "command", "words"),
    [
        (
            [(1, 2), (2, 4)],
            (),
            ("maintenance", "4", "on"),
            "broker 4 leads nothing, so that nothing has to move; the task only has broker 4 "
            "marked as in maintenance: broker 4 takes no new replicas and no leaders until "
            "you run plimsoll broker maintenance 4 off; warning: while broker 4 is stopped",
        ),
        (
            [(1, 2), (2, 4)],
            ("maintenance", "4", "on"),
            ("maintenance", "4", "off"),
            "the task only ends marks of broker 4, and cordons that plimsoll has set",
        ),
        (
            [(1, 2)],
            (),
            ("remove", "4"),
            "the task only has broker 4 marked as draining and, on Kafka 4.3 or newer, cordoned",
        ),
    ],
    ids=["maintenance", "off", "remove"],
)
def test_a_dry_run_says_what_is_marked_where_nothing_has_to_move(
    at: SimulatedTask,
    places: list[tuple[int, ...]],
    before: tuple[str, ...],
    command: tuple[str, ...],
    words: str,
) -> None:
    """It said "nothing to do", and the command marked the broker all the same."""
    at.cluster.partitions = {p.id: p for p in itertools.starmap(at.partition, enumerate(places))}
    at.cluster.topic_configs[TOPIC] = {"min.insync.replicas": "2"}
    if before:
        plimsoll("broker", *before, *CHANGING)
    states = at.states
    said = " ".join(plimsoll("broker", *command, "--dry-run").stderr.split())
    assert words in said
    assert said.count("warning") == words.count("warning")
    assert at.states == states
    plimsoll("broker", *command, *CHANGING)
    assert at.states != states


def test_a_stopped_removal_is_listed_and_resumed(at: SimulatedTask) -> None:
    at.faults.denied.add("reassign")
    failed = plimsoll("broker", "remove", "4", *CHANGING, code=5)
    (task,) = answer("task", "list")["tasks"]
    assert task["phase"] == "failed"
    assert task["note"] in failed.stderr
    assert f"stays open: plimsoll task resume {task['task_id']} continues it" in failed.stderr
    assert "failed" in plimsoll("task", "list").stdout
    at.faults.denied.clear()
    assert answer("task", "resume", *CHANGING)["phase"] == "done"
    assert answer("task", "list") == {"tasks": []}
    assert len(answer("task", "list", "--all")["tasks"]) == 1
    over = plimsoll("task", "resume", task["task_id"], *CHANGING, code=2).stderr
    assert "is done; nothing is left to resume" in over


def test_a_removal_interrupted_outside_its_runs_is_not_continued_by_itself(
    at: SimulatedTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("plimsoll.toml").write_text("[goals.budgets]\nreplica_moves = 2\n")
    snapshots = iter([at.snapshot()])

    def snapshot_of(*_args: object, **_options: object) -> object:
        for snapshot in snapshots:
            return snapshot
        raise KeyboardInterrupt

    monkeypatch.setattr(task_work, "snapshot_of", snapshot_of)
    said = plimsoll("broker", "remove", "4", *CHANGING, code=130).stderr
    (task,) = at.files.all()
    assert f"plimsoll task resume {task.task_id} continues it" in " ".join(said.split())
    assert (task.phase, bool(task.stopped_by)) == (TaskPhase.MOVING, True)
    assert tasks_of(at).next("simulated") is None


def test_the_same_command_continues_an_open_task(at: SimulatedTask) -> None:
    task = at.request()
    run = plimsoll("broker", "remove", "4", *CHANGING)
    assert f"continues task {task.task_id}" in run.stderr
    assert len(at.files.all()) == 1
    assert 4 not in at.held


def test_a_cancelled_task_lets_the_broker_take_replicas_again(at: SimulatedTask) -> None:
    at.approve = lambda _task, _plan: ""
    assert at.work().phase is TaskPhase.PLANNED
    assert at.states == {4: BrokerState.EXCLUDED}
    ended = answer("task", "cancel", "remove-4", "--reason", "not today")
    assert ended["phase"] == "cancelled"
    assert ended["note"].endswith(": not today")
    assert at.states == {}
    again = plimsoll("task", "cancel", "remove-4", code=2).stderr
    assert "is cancelled; nothing is left to cancel" in again


def test_brokers_are_excluded_and_included(at: SimulatedTask) -> None:
    (mark,) = answer("broker", "exclude", "2", "--reason", "old disks")["marks"]
    assert (mark["broker"], mark["state"], mark["reason"]) == (2, "excluded", "old disks")
    assert at.states == {2: BrokerState.EXCLUDED}
    assert "old disks" in plimsoll("broker", "exclude", "2").stdout
    plimsoll("broker", "remove", "4", *CHANGING)
    assert at.held[2] == 2
    assert "old disks" in plimsoll("broker", "exclude", "--rack", "c").stdout
    unknown = plimsoll("broker", "exclude", "9", code=2).stderr
    assert "there is no live broker 9; known: 1, 2, 3, 4" in unknown
    assert at.cordons == {4: "*"}
    refused = plimsoll("broker", "include", "2", "3", "4", code=5).stderr
    assert "add --allow-changes to end the cordon of broker 4, too" in refused
    assert at.states[2] == BrokerState.EXCLUDED
    included = plimsoll("broker", "include", "2", "3", "4", "--allow-changes")
    assert included.stdout == "all brokers may take new replicas\n"
    assert "broker 4 is no longer cordoned" in included.stderr
    assert (at.states, at.cordons) == ({}, {})


def test_an_emptied_broker_stays_draining_when_it_is_excluded(at: SimulatedTask) -> None:
    """Its mark became `excluded`, with the removal as the reason."""
    plimsoll("broker", "remove", "4", *CHANGING)
    said = plimsoll("broker", "exclude", "4", "2", "--reason", "old disks").stderr
    assert "broker 4 stays draining (task remove-4-" in said
    assert at.states == {2: BrokerState.EXCLUDED, 4: BrokerState.DRAINING}


def test_include_connects_once(at: SimulatedTask, monkeypatch: pytest.MonkeyPatch) -> None:
    plimsoll("broker", "exclude", "2", "--allow-changes")
    connected: list[object] = []
    connect = compose.executor

    def counted(settings: Settings) -> Executor:
        connected.append(settings)
        return connect(settings)

    monkeypatch.setattr(compose, "executor", counted)
    # Where nothing was cordoned, and where something was.
    for broker in ("3", "2"):
        plimsoll("broker", "include", broker, "--allow-changes")
        assert len(connected) == 1
        connected.clear()
    assert at.cordons == {}


def test_an_excluded_broker_is_cordoned_where_that_is_allowed(at: SimulatedTask) -> None:
    assert "with --allow-changes, Kafka 4.3 does not" in plimsoll("broker", "exclude", "2").stderr
    assert at.cordons == {}
    done = plimsoll("broker", "exclude", "2", "--allow-changes")
    assert "broker 2 is cordoned: Kafka puts no new replicas there" in done.stderr
    assert at.cordons == {2: "*"}
    # Its mark, which has the reason, is shown.
    assert at.snapshot().broker[BrokerId(2)].state is BrokerState.EXCLUDED
    answer("broker", "add", "2", *CHANGING)
    assert (at.states, at.cordons) == ({}, {})


def test_a_cordon_of_someone_else_stays(at: SimulatedTask) -> None:
    at.cluster.brokers[BrokerId(4)].configs[CORDONED] = "*"
    done = plimsoll("broker", "remove", "4", *CHANGING)
    assert "someone else has set cordoned.log.dirs=*, which stays" in done.stderr
    plimsoll("broker", "include", "4")
    assert at.cordons == {4: "*"}
    refused = plimsoll("broker", "add", "4", *CHANGING, code=5)
    assert "it is cordoned; clear its cordoned.log.dirs first" in refused.stderr


def test_leaders_that_cannot_return_are_named_and_end_with_a_code(at: SimulatedTask) -> None:
    plimsoll("broker", "maintenance", "4", "on", *CHANGING)
    for journal in (at.folder / "journal").glob("r*"):
        journal.unlink()
    lost = "2 partitions still as the demotion has left them, since the journal of its run cannot"
    rehearsed = plimsoll("broker", "maintenance", "4", "off", "--dry-run", code=6)
    assert lost in rehearsed.stderr
    assert at.states == {4: BrokerState.MAINTENANCE}
    done = plimsoll("broker", "maintenance", "4", "off", *CHANGING, code=6)
    assert f"warning: {lost}" in done.stderr
    assert "as before" not in done.stdout
    assert at.states == {}


def test_before_kafka_4_3_plimsoll_alone_excludes_and_says_so(at: SimulatedTask) -> None:
    at.cluster.knows_cordons = False
    done = plimsoll("broker", "remove", "4", *CHANGING)
    assert "broker 4 was not cordoned in Kafka: it has no cordoned.log.dirs" in done.stderr
    assert (at.states, at.cordons) == ({4: BrokerState.DRAINING}, {})
    assert not [*at.folder.glob("journal/*-cordon.jsonl")]
    plimsoll("broker", "include", "4")
    assert at.states == {}


def test_missing_rights_for_settings_do_not_keep_a_broker_from_being_emptied(
    at: SimulatedTask,
) -> None:
    at.faults.denied.add("alter_broker_configs")
    done = plimsoll("broker", "remove", "4", *CHANGING)
    assert "broker 4 not cordoned in Kafka: The cluster refused" in done.stderr
    assert 4 not in at.held


@pytest.mark.parametrize("allowed", [True, False])
def test_a_cancelled_task_ends_the_cordon_or_says_how_to(at: SimulatedTask, allowed: bool) -> None:
    at.faults.denied.add("reassign")
    plimsoll("broker", "remove", "4", *CHANGING, code=5)
    assert at.cordons == {4: "*"}
    cancelled = plimsoll("task", "cancel", *(["--allow-changes"] if allowed else []))
    assert at.cordons == ({} if allowed else {4: "*"})
    if not allowed:
        assert "broker 4 is still cordoned (changes are not allowed)" in cancelled.stderr
        assert "plimsoll broker include 4 --allow-changes ends that" in cancelled.stderr
        (note,) = cordon_notes(at.files, at.folder / "journal", "simulated")
        assert "plimsoll has cordoned broker 4, and nothing asks for that any longer" in note
        plimsoll("broker", "include", "4", "--allow-changes")
    assert cordon_notes(at.files, at.folder / "journal", "simulated") == []
    assert at.cordons == {}


def test_a_rollback_ends_the_cordon_first(at: SimulatedTask) -> None:
    before = dict(at.held)
    plimsoll("broker", "remove", "4", *CHANGING)
    plimsoll("rollback", *CHANGING)
    assert at.held == before
    assert at.cordons == {}


@pytest.mark.parametrize(
    "request_of_broker_4",
    [("remove", "4"), ("demote", "4"), ("maintenance", "4", "on")],
    ids=["removal", "demotion", "maintenance"],
)
def test_a_rollback_lifts_the_mark_that_its_task_has_set(
    at: SimulatedTask, request_of_broker_4: tuple[str, ...]
) -> None:
    """The mark stayed, and the next plan undid the rollback."""
    task = answer("broker", *request_of_broker_4, *CHANGING)
    plimsoll("broker", "exclude", "2", "--reason", "old disks")
    marked = at.states
    shown = plimsoll("rollback", "--dry-run", "-o", "json")
    (ends, *others) = json.loads(shown.stdout)["also"]
    assert ends == f"with the rollback, broker 4 is no longer {marked[4].words}"
    assert others == (
        ["with the rollback, the cordon of broker 4 ends"] if task["operation"] == "remove" else []
    )
    assert ends in shown.stderr
    assert at.states == marked
    plimsoll("rollback", *CHANGING)
    assert (at.states, at.cordons) == ({2: BrokerState.EXCLUDED}, {})
    lists = [tuple(map(int, p.replicas)) for _, p in sorted(at.cluster.partitions.items())]
    assert (lists, _leaders(at)) == (PLACES, [place[0] for place in PLACES])
    plimsoll("broker", "include", "2")
    # No trigger of a plan is left: nothing is misplaced.
    state, goals = at.snapshot(), Goals()
    needs = plan_needs(state, goals, evaluate(state, goals, ()), given_up=())
    assert not [need for need in needs if need.reason is Reason.MISPLACED]
    after = answer("task", "show", task["task_id"])
    assert (after["phase"], after["note"][:4]) == ("done", "run ")
    assert " was rolled back by " in after["note"]
    again = plimsoll("rollback", "--dry-run").stderr
    assert "are not set again: request the task again for that" in again


def test_a_mark_that_someone_else_has_set_outlasts_a_rollback(at: SimulatedTask) -> None:
    plimsoll("broker", "remove", "4", *CHANGING)
    plimsoll("broker", "include", "4", "--allow-changes")
    plimsoll("broker", "exclude", "4", "--reason", "old disks")
    said = plimsoll("rollback", *CHANGING).stderr
    assert "broker 4 stays excluded (old disks, by " in said
    assert "which may undo the rollback; plimsoll broker include 4 ends that" in said
    assert at.states == {4: BrokerState.EXCLUDED}


def test_the_run_of_an_open_task_is_not_rolled_back(at: SimulatedTask) -> None:
    at.on_progress = lambda progress: (
        at.steering.stop() if any(m.done_at_ms for m in progress.moves) else None
    )
    at.limits = RunLimits(moves_in_flight=1)
    assert at.work().phase is TaskPhase.MOVING
    refused = " ".join(plimsoll("rollback", *CHANGING, code=5).stderr.split())
    (task,) = at.files.all()
    assert f"belongs to task {task.task_id} (remove broker 4, moving)" in refused
    assert at.states == {4: BrokerState.DRAINING}
    plimsoll("task", "cancel", "--allow-changes")
    plimsoll("rollback", *CHANGING)
    lists = [tuple(map(int, p.replicas)) for _, p in sorted(at.cluster.partitions.items())]
    assert (lists, at.states, at.cordons) == (PLACES, {}, {})


def test_a_rollback_names_files_of_tasks_that_may_have_set_marks(at: SimulatedTask) -> None:
    task = answer("broker", "remove", "4", *CHANGING)["task_id"]
    damaged = at.files.path(task)
    damaged.write_text("{")
    said = plimsoll("rollback", *CHANGING).stderr
    assert str(damaged) in said
    assert "If the run is that task's, its marks stay" in said
    assert at.states == {4: BrokerState.DRAINING}


def test_a_rollback_that_is_refused_leaves_the_mark(at: SimulatedTask) -> None:
    plimsoll("broker", "remove", "4", *CHANGING)
    at.cluster.kill(BrokerId(4))
    at.cluster.advance(60)
    for options in (CHANGING, ("--dry-run",)):
        refused = plimsoll("rollback", *options, code=5)
        # What would end was said before the refusal.
        assert "with the rollback" not in refused.stderr
    assert at.states == {4: BrokerState.DRAINING}


@pytest.mark.parametrize("operation", ["demote", "remove"])
@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
def test_killed_at_any_change_a_rollback_is_completed_and_no_mark_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool, operation: str
) -> None:
    for change in itertools.count():
        folder = tmp_path / f"{change}"
        folder.mkdir()
        at = commanded(folder, monkeypatch)
        plimsoll("broker", operation, "4", *CHANGING)
        switch = KillSwitch(change, made)
        at.faults.on_call = switch.on_call
        with monkeypatch.context() as patched:
            for module in (broker_marks, task_files):
                patched.setattr(module, "write_document", switch.write)
            try:
                plimsoll("rollback", *CHANGING)
                killed = False
            except Killed:
                killed = True
        at.faults.on_call = Faults().on_call
        if killed:
            # There is nothing to resume before its run begins, or after its end.
            CliRunner().invoke(app, ["run", "--resume", "--allow-changes"])
            if _lists(at) != PLACES:
                plimsoll("rollback", *CHANGING)
        assert _lists(at) == PLACES
        assert _leaders(at) == [place[0] for place in PLACES]
        assert at.states == {}
        if not killed:
            assert change > 3
            return


PINNED = '[[goals.pins]]\ntopics = {exact = ["orders"]}\nbrokers = [1, 4]\n'
EXCLUDE = ("exclude", "4", "--reason", "old disks")
MAINTENANCE = ("maintenance", "4", "on", *CHANGING)


def _marked_before(at: SimulatedTask, how: Sequence[str]) -> tuple[Marks, dict[int, str]]:
    """Mark broker 4, and say how it is then marked and cordoned."""
    plimsoll("broker", *how)
    return at.files.marks("simulated"), at.cordons


def _as_before(at: SimulatedTask) -> tuple[Marks, dict[int, str]]:
    return at.files.marks("simulated"), at.cordons


@pytest.mark.parametrize("how", [EXCLUDE, MAINTENANCE], ids=["excluded", "maintenance"])
def test_a_removal_without_a_plan_leaves_the_mark_from_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: tuple[str, ...]
) -> None:
    (tmp_path / "state").mkdir()
    at = SimulatedTask(folder=tmp_path / "state", places=[(4, 1), (1, 4)])
    reached(at, tmp_path, monkeypatch)
    before = _marked_before(at, how)
    Path("plimsoll.toml").write_text(PINNED)
    refused = plimsoll("broker", "remove", "4", *CHANGING, code=Exit.INFEASIBLE)
    assert "no plan empties broker 4" in refused.stderr
    assert _as_before(at) == before
    assert len(before[0]) == 1


@pytest.mark.parametrize("how", [EXCLUDE, ("demote", "4", *CHANGING)], ids=["excluded", "demoted"])
def test_a_removal_that_is_declined_leaves_the_mark_from_before(
    at: SimulatedTask, how: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _marked_before(at, how)
    _declining(monkeypatch)
    plimsoll("broker", "remove", "4", "--allow-changes", code=Exit.REFUSED)
    assert _as_before(at) == before
    assert len(before[0]) == 1


@pytest.mark.parametrize(
    ("before", "ending"),
    [
        (("remove", "4", *CHANGING), ("add", "4")),
        (("demote", "4", *CHANGING), ("undemote", "4")),
        (MAINTENANCE, ("maintenance", "4", "off")),
    ],
    ids=["add", "undemote", "maintenance-off"],
)
def test_marks_and_cordons_end_once_the_plan_is_approved(
    at: SimulatedTask,
    before: tuple[str, ...],
    ending: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They had ended before the plan was shown, and for those who declined it, too."""
    found = _marked_before(at, before)
    _declining(monkeypatch)
    plimsoll("broker", *ending, "--allow-changes", code=Exit.REFUSED)
    assert _as_before(at) == found
    assert len(found[0]) == 1
    plimsoll("broker", *ending, *CHANGING)
    assert _as_before(at) == ((), {})


def _declining(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who declines every plan."""
    monkeypatch.setattr(task_work, "plan_confirmed", lambda *_: False)
    monkeypatch.setattr(task_work, "refuse_unasked", lambda _options: None)


def test_a_cancelled_removal_leaves_the_mark_and_the_cordon_from_before(at: SimulatedTask) -> None:
    before = _marked_before(at, (*EXCLUDE, "--allow-changes"))
    at.faults.denied.add("reassign")
    plimsoll("broker", "remove", "4", *CHANGING, code=5)
    assert at.states == {4: BrokerState.DRAINING}
    said = plimsoll("task", "cancel", "--allow-changes").stderr
    assert "broker 4 stays cordoned, as it is excluded (old disks, by " in said
    assert _as_before(at) == before
    assert at.cordons == {4: "*"}


@pytest.mark.parametrize(
    ("how", "cordons"),
    [((*EXCLUDE, "--allow-changes"), {4: "*"}), (EXCLUDE, {}), (MAINTENANCE, {})],
    ids=["cordoned", "excluded", "maintenance"],
)
def test_a_rollback_brings_back_the_mark_from_before(
    at: SimulatedTask, how: tuple[str, ...], cordons: dict[int, str]
) -> None:
    marks, cordoned = _marked_before(at, how)
    assert cordoned == cordons
    plimsoll("broker", "remove", "4", *CHANGING)
    assert at.states == {4: BrokerState.DRAINING}
    said = " ".join(plimsoll("rollback", *CHANGING).stderr.split())
    (mark,) = marks
    assert (
        f"as before the task, {BrokerState(mark.state).words} ({mark.reason}, by {mark.by})" in said
    )
    assert _as_before(at) == (marks, cordons)


@pytest.mark.parametrize("operation", ["remove", "demote"])
@pytest.mark.parametrize("denied", [True, False], ids=["without rights", "refused"])
def test_a_rollback_that_moves_nothing_leaves_the_mark_and_the_cordon(
    at: SimulatedTask, operation: str, denied: bool
) -> None:
    plimsoll("broker", operation, "4", *CHANGING)
    before = _as_before(at)
    if denied:
        at.faults.denied.add("reassign")
    else:
        at.faults.refusals["reassign"] = "not now"
    code = Exit.REFUSED if denied else Exit.INCOMPLETE
    said = " ".join(plimsoll("rollback", *CHANGING, code=code).stderr.split())
    (mark,) = before[0]
    assert f"nothing has moved, so broker 4 is still {mark.state}; plimsoll broker " in said
    assert ("once plimsoll run --resume has finished it" in said) is denied
    assert _as_before(at) == before


def test_a_rollback_leaves_the_cordon_of_a_later_exclusion(at: SimulatedTask) -> None:
    plimsoll("broker", "remove", "4", *CHANGING)
    plimsoll("broker", "include", "4", "--allow-changes")
    before = _marked_before(at, (*EXCLUDE, "--allow-changes"))
    plimsoll("rollback", *CHANGING)
    assert _lists(at) == PLACES
    assert _as_before(at) == before
    assert at.cordons == {4: "*"}


def test_a_demotion_that_was_rolled_back_does_not_keep_another_from_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir()
    places = [(1, 4), (2, 4), (4, 3), (3, 4)]
    at = SimulatedTask(folder=tmp_path / "state", places=places)
    reached(at, tmp_path, monkeypatch)
    plimsoll("broker", "demote", "1", "2", *CHANGING)
    plimsoll("rollback", *CHANGING)
    plimsoll("broker", "demote", "1", *CHANGING)
    plimsoll("broker", "undemote", "1", *CHANGING)
    assert (_lists(at), _leaders(at), at.states) == (places, [1, 2, 4, 3], {})


def test_a_rollback_of_the_end_of_a_demotion_names_the_mark_that_is_missing(
    at: SimulatedTask,
) -> None:
    plimsoll("broker", "demote", "4", *CHANGING)
    plimsoll("broker", "undemote", "4", *CHANGING)
    said = " ".join(plimsoll("rollback", *CHANGING).stderr.split())
    assert "plimsoll broker demote 4 keeps them away" in said
    assert 4 not in _leaders(at)


def test_more_than_a_thousand_brokers_are_demoted_by_one_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir()
    count = 1_100
    places = [(1, count + 1), (count + 1, 2)]
    at = SimulatedTask(
        folder=tmp_path / "state", places=places, brokers=count + 1, racks="a" * count + "b"
    )
    reached(at, tmp_path, monkeypatch)
    assert answer("broker", "demote", "--rack", "a", *CHANGING)["phase"] == "done"
    assert _leaders(at) == [count + 1, count + 1]
    assert len(at.states) == count
    many = tuple(map(BrokerId, range(MOST_BROKERS + 1)))
    asked = TaskRequest(operation=Operation.DEMOTE, brokers=many, by="ada", at_ms=1)
    with pytest.raises(ConfigError, match="at most 10,000 brokers, and 10,001 are named"):
        requested_task(at.files, at.snapshot(), Goals(), asked)


SMALL = '[goals.budgets]\nbytes = "1MB"\n'


@pytest.mark.parametrize(
    ("command", "barred"),
    [
        (("broker", "remove", "4"), "none of 4 moves"),
        (("broker", "replace", "4", "5"), "none of 4 moves"),
        (("broker", "add", "5"), "none of 5 moves"),
        (("cluster", "repair"), "none of 2 moves"),
    ],
    ids=lambda of: of[1] if isinstance(of, tuple) else "",
)
def test_budgets_that_allow_no_move_are_named(
    at: SimulatedTask, command: tuple[str, ...], barred: str
) -> None:
    at.cluster.brokers[BrokerId(5)] = SimulatedBroker(id=BrokerId(5), rack="a")
    Path("plimsoll.toml").write_text(SMALL)
    for options in (CHANGING, ("--dry-run",)):
        run = plimsoll(*command, *options, code=Exit.REFUSED)
        said = " ".join(run.stderr.split())
        why = f"the budget bytes = 1.00 MB allows {barred}, the smallest needs 20.0 MB; raise it"
        assert why in said
        assert "task resume" not in said
        assert not run.stdout
    assert (at.files.paths(), at.states) == ([], {})


def test_a_budget_that_allows_no_leader_to_change_is_named(at: SimulatedTask) -> None:
    Path("plimsoll.toml").write_text("[goals.budgets]\nleader_changes = 0\n")
    for command in (("demote", "4"), ("maintenance", "4", "on")):
        refused = " ".join(
            plimsoll("broker", *command, *CHANGING, code=Exit.REFUSED).stderr.split()
        )
        why = "the budget leader_changes = 0 allows none of 2 moves, the smallest needs 1; raise it"
        assert f"cannot demote broker 4: {why}" in refused
    assert (at.files.paths(), at.states) == ([], {})


def test_a_broker_that_is_gone_can_be_included(at: SimulatedTask) -> None:
    plimsoll("broker", "remove", "4", *CHANGING)
    at.cluster.kill(BrokerId(4))
    gone = plimsoll("broker", "include", "4", "--allow-changes").stderr
    assert "the cordon of broker 4 was not changed: it is dead or fenced" in gone
    assert at.states == {}
    unknown = plimsoll("broker", "include", "9", code=2).stderr
    assert "there is no live or marked broker 9; known: 1, 2, 3" in unknown


@pytest.mark.parametrize("switch", [("demote",), ("maintenance", "on")], ids=["demoted", "kept"])
def test_the_mark_of_a_dead_broker_ends_whatever_its_kind(
    at: SimulatedTask, switch: tuple[str, ...]
) -> None:
    """`maintenance off` refused it as dead, and `include` named `maintenance off`."""
    off = ("undemote",) if switch[0] == "demote" else ("maintenance", "off")
    plimsoll("broker", switch[0], "3", *switch[1:], *CHANGING)
    at.cluster.kill(BrokerId(3))
    refused = plimsoll("broker", off[0], "3", *off[1:], *CHANGING, code=2).stderr
    assert "start it, or end its mark with plimsoll broker include 3" in " ".join(refused.split())
    plimsoll("broker", "include", "3")
    assert at.states == {}
    at.cluster.revive(BrokerId(3))
    at.cluster.advance(60)
    plimsoll("broker", off[0], "3", *off[1:], *CHANGING)
    assert _leaders(at) == [place[0] for place in PLACES]


def test_marks_of_an_open_task_are_its_own(at: SimulatedTask) -> None:
    task = at.request()
    for command in ("exclude", "include"):
        refused = plimsoll("broker", command, "4", code=5).stderr
        assert f"plimsoll task cancel {task.task_id}" in refused


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("broker", "remove", "4"), 5, "plimsoll is read-only; add --allow-changes"),
        (("broker", "remove", "4", "--allow-changes"), 5, "add --yes to execute the plans"),
        (("broker", "remove", *CHANGING), 2, "no broker is named; give ids or --rack RACK"),
        (("broker", "remove", "9", *CHANGING), 2, "there is no broker 9; known: 1, 2, 3, 4"),
        (("broker", "remove", "four", *CHANGING), 2, "'four' is not a broker id, a whole number"),
        (("broker", "remove", "4", "2147483648", *CHANGING), 2, "'2147483648' is not a broker id"),
        (("broker", "replace", "4", "x", *CHANGING), 2, "'x' is not a broker id"),
        (("disk", "remove", "x", "/a", *CHANGING), 2, "'x' is not a broker id"),
        (("disk", "heal", "x", *CHANGING), 2, "'x' is not a broker id"),
        (("broker", "remove", "1", "2", "3", "4", *CHANGING), 5, "no other broker may take"),
        (("broker", "remove", "2", "3", "4", *CHANGING), 5, "only 1 broker"),
        (("broker", "remove", "--rack", "z", *CHANGING), 2, "rack 'z' does not exist"),
        (("broker", "exclude", "4", "--reason", "a\nb"), 2, "printable characters"),
        (("broker", "add", "9", *CHANGING), 2, "there is no broker 9; known: 1, 2, 3, 4"),
        (("broker", "add", *CHANGING), 2, "no broker is named; give ids or --rack RACK"),
        (("broker", "demote", "4"), 5, "add --allow-changes to demote brokers, or --dry-run"),
        (("broker", "demote", "1", "2", "3", "4", *CHANGING), 5, "orders-0 has no other replica"),
        (("broker", "undemote", "4", *CHANGING), 5, "broker 4 was not demoted"),
        (("broker", "maintenance", "4", "off", *CHANGING), 5, "broker 4 was not demoted"),
        (("broker", "maintenance", "4", "often", *CHANGING), 2, "'often' is not one of 'on'"),
        (("broker", "maintenance", *CHANGING), 2, "say whether maintenance is on or off"),
        (("broker", "maintenance", "on", *CHANGING), 2, "no broker is named"),
        (("broker", "replace", "4", *CHANGING), 2, "Missing argument 'NEW'"),
        (("broker", "replace", "4", "4", *CHANGING), 5, "name two brokers"),
        (("broker", "replace", "4", "9", *CHANGING), 2, "there is no broker 9"),
        (("broker", "replace", "4", "1", *CHANGING), 5, "broker 1 holds a replica of orders-0"),
        (("task", "resume", *CHANGING), 2, "no task is open in"),
        (("task", "resume", "--dry-run"), 2, "task resume has no --dry-run"),
        (("task", "show", "nothing"), 2, "has no task 'nothing'; it holds none"),
        (("task", "cancel"), 2, "no task is open in"),
    ],
)
def test_requests_that_cannot_be_met_change_nothing(
    at: SimulatedTask, arguments: tuple[str, ...], code: int, words: str
) -> None:
    assert words in " ".join(plimsoll(*arguments, code=code).stderr.split())
    assert not at.files.paths()
    assert at.states == {}
    assert at.held[4] == 4


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda text: text[:40], "is not a plimsoll.task file"),
        (lambda text: text.replace(f'"{SCHEMA_VERSION}"', '"9.0"'), "use a newer plimsoll"),
        (lambda text: text.replace("[4]", "[3]"), "is damaged or was edited"),
    ],
    ids=["torn", "newer", "edited"],
)
def test_a_task_file_that_cannot_be_trusted_is_named_and_stops_no_other_task(
    at: SimulatedTask, harm: Callable[[str], str], words: str
) -> None:
    damaged = at.files.path(at.request().task_id)
    harmed = harm(damaged.read_text())
    damaged.write_text(harmed)
    at.remove = (2,)
    two = at.request().task_id
    at.remove = (3,)
    three = at.request().task_id

    def refused(*command: str) -> str:
        shown = plimsoll(*command, code=Exit.USAGE).stderr
        assert words in shown
        assert str(damaged) in shown
        return shown

    # What it may contradict is not requested, and what may be meant is not guessed.
    refused("broker", "remove", "4", *CHANGING)
    refused("broker", "remove", "1", *CHANGING)
    refused("task", "show", damaged.stem)
    refused("task", "cancel", damaged.stem)
    for command in (("resume", *CHANGING), ("cancel",)):
        assert "name the task that is meant" in refused("task", *command)
    listed = plimsoll("task", "list", "-o", "json", code=Exit.USAGE)
    assert str(damaged) in listed.stderr
    assert [task["task_id"] for task in json.loads(listed.stdout)["tasks"]] == [two, three]
    assert answer("task", "cancel", two)["phase"] == "cancelled"
    newest = plimsoll("task", "show", "-o", "json")
    assert str(damaged) in newest.stderr
    assert json.loads(newest.stdout)["task_id"] == three
    assert answer("task", "resume", three, *CHANGING)["phase"] == "done"
    assert 3 not in at.held
    assert damaged.read_text() == harmed


def test_a_task_of_another_cluster_is_refused(at: SimulatedTask) -> None:
    at.request()
    at.cluster.cluster_id = "another"
    refused = plimsoll("task", "resume", *CHANGING, code=2).stderr
    assert "is about the cluster simulated, and this is another" in refused
    assert at.held[4] == 4
    # It does not stand in the way of a task of this cluster.
    assert answer("broker", "remove", "4", *CHANGING)["phase"] == "done"


# ---- other operations than removal


def test_a_broker_is_demoted_and_leads_again(at: SimulatedTask) -> None:
    shown = answer("broker", "demote", "4", "--dry-run")
    assert (shown["operation"], shown["bytes_to_copy"]) == ("demote", 0)
    assert len(shown["plan"]["moves"]) == shown["replicas"] == 2
    assert at.states == {}
    assert answer("broker", "demote", "4", *CHANGING)["phase"] == "done"
    assert 4 not in _leaders(at)
    assert at.states == {4: BrokerState.DEMOTED}
    text = plimsoll("task", "show").stdout
    assert "demote broker 4, done" in text
    assert "broker 4 will not be made leader again until you run plimsoll broker undemote 4" in text
    already = plimsoll("broker", "demote", "4", "--dry-run", code=5).stderr
    assert "broker 4 is demoted (task demote-4" in already
    assert answer("broker", "undemote", "4", *CHANGING)["phase"] == "done"
    assert _leaders(at) == [place[0] for place in PLACES]
    assert at.states == {}


def test_maintenance_is_switched_on_and_off(at: SimulatedTask) -> None:
    plimsoll("broker", "maintenance", "--rack", "c", "on", *CHANGING)
    assert at.states == {3: BrokerState.MAINTENANCE}
    assert 3 not in _leaders(at)
    refused = plimsoll("broker", "undemote", "3", *CHANGING, code=5).stderr
    assert "end that with plimsoll broker maintenance 3 off first" in " ".join(refused.split())
    plimsoll("broker", "maintenance", "3", "off", *CHANGING)
    assert _leaders(at) == [place[0] for place in PLACES]
    assert at.states == {}


@pytest.mark.parametrize("switch", [("demote",), ("maintenance", "on")], ids=["demoted", "kept"])
def test_topics_that_need_a_broker_in_sync_are_listed(
    at: SimulatedTask, switch: tuple[str, ...]
) -> None:
    """It said that the broker could be stopped, and producers with acks=all got errors."""
    at.cluster.topic_configs[TOPIC] = {"min.insync.replicas": "2"}
    for number, held in enumerate(((4, 1, 2), (2, 4, 1))):
        new = at.partition(number, held, "wide")
        at.cluster.partitions[new.id] = new
    command = ("broker", switch[0], "4", *switch[1:])
    topics = [{"topic": TOPIC, "partitions": 4, "min_insync_replicas": 2}]
    words = (
        "while broker 4 is stopped, 4 partitions have fewer in-sync replicas than "
        "min.insync.replicas, so that producers with acks=all get errors: orders 4 (needs 2)"
    )
    shown = plimsoll(*command, "--dry-run", "-o", "json")
    assert json.loads(shown.stdout)["at_min_isr"] == topics
    assert words in shown.stderr
    done = plimsoll(*command, *CHANGING, "-o", "json")
    assert json.loads(done.stdout)["at_min_isr"] == topics
    assert words in done.stderr
    text = plimsoll("task", "show").stdout
    assert words in text
    assert "can be stopped" not in text


def test_a_broker_that_no_topic_needs_in_sync_can_be_stopped(at: SimulatedTask) -> None:
    shown = plimsoll("broker", "maintenance", "4", "on", *CHANGING, "-o", "json")
    assert json.loads(shown.stdout)["at_min_isr"] == []
    assert "acks=all" not in shown.stderr
    assert "broker 4 can be stopped for a while" in plimsoll("task", "show").stdout


@pytest.mark.parametrize("last", [("5",), ("4", "5")], ids=["alone", "with the first"])
def test_of_brokers_demoted_together_each_returns_when_it_is_named(
    at: SimulatedTask, last: tuple[str, ...]
) -> None:
    """All had to be named, which was refused where one was in maintenance since."""
    at.cluster.brokers[BrokerId(5)] = SimulatedBroker(id=BrokerId(5), rack="b")
    for number, held in enumerate(((5, 1), (4, 5, 1), (5, 4, 1))):
        new = at.partition(number, held, "wide")
        at.cluster.partitions[new.id] = new
    lists, led = _lists(at), _leaders(at)
    plimsoll("broker", "demote", "4", "5", *CHANGING)
    plimsoll("broker", "maintenance", "4", "on", *CHANGING)
    assert not {4, 5} & {*_leaders(at)}
    plimsoll("broker", "maintenance", "4", "off", *CHANGING)
    assert at.states == {5: BrokerState.DEMOTED}
    assert [b if b == 4 else 0 for b in _leaders(at)] == [b if b == 4 else 0 for b in led]
    assert 5 not in _leaders(at)
    plimsoll("broker", "undemote", *last, *CHANGING)
    assert (_lists(at), _leaders(at), at.states) == (lists, led, {})


def test_the_others_of_a_demotion_return_though_one_has_died(at: SimulatedTask) -> None:
    """Both were refused: the dead one alone as dead, and the other as part of the demotion."""
    wide = at.partition(0, (1, 3, 2), "wide")
    at.cluster.partitions[wide.id] = wide
    plimsoll("broker", "demote", "1", "3", *CHANGING)
    at.cluster.kill(BrokerId(3))
    at.cluster.advance(60)
    refused = " ".join(plimsoll("broker", "undemote", "1", "3", *CHANGING, code=2).stderr.split())
    assert "end its mark with plimsoll broker include 3 and name the others alone" in refused
    done = answer("broker", "undemote", "1", *CHANGING)
    assert (done["phase"], _leaders(at)) == ("done", [4, 1, 2, 4, 4, 1])
    assert "1 partition of broker 3, dead by now" in " ".join(p["note"] for p in done["phases"])
    assert at.states == {3: BrokerState.DEMOTED}
    at.cluster.revive(BrokerId(3))
    at.cluster.advance(60)
    answer("broker", "undemote", "3", *CHANGING)
    assert _leaders(at) == [*(place[0] for place in PLACES), 1]
    assert at.states == {}


def test_a_damaged_file_of_another_task_does_not_keep_leaders_away(at: SimulatedTask) -> None:
    demoted = answer("broker", "demote", "4", *CHANGING)["task_id"]
    damaged = at.files.path("remove-9-20270115T080000")
    damaged.write_text("{")
    assert str(damaged) in plimsoll("broker", "demote", "3", *CHANGING, code=Exit.USAGE).stderr
    own = at.files.path(demoted)
    whole = own.read_text()
    own.write_text(whole[:40])
    needed = plimsoll("broker", "undemote", "4", *CHANGING, code=Exit.USAGE).stderr
    assert str(own) in needed
    assert at.states == {4: BrokerState.DEMOTED}
    own.write_text(whole)
    assert answer("broker", "undemote", "4", *CHANGING)["phase"] == "done"
    assert _leaders(at) == [place[0] for place in PLACES]


def test_marks_of_a_demotion_are_not_lifted_by_other_commands(at: SimulatedTask) -> None:
    plimsoll("broker", "demote", "4", *CHANGING)
    for command in (("exclude", "4"), ("include", "4"), ("add", "4", *CHANGING)):
        refused = " ".join(plimsoll("broker", *command, code=5).stderr.split())
        assert "end that with plimsoll broker undemote 4 first" in refused
    assert at.states == {4: BrokerState.DEMOTED}
    # Whoever removes a demoted broker wants all of it gone.
    assert answer("broker", "remove", "4", *CHANGING)["phase"] == "done"
    assert at.states == {4: BrokerState.DRAINING}


@pytest.mark.parametrize(
    "contradiction",
    [("add", "4"), ("demote", "4"), ("maintenance", "4", "on"), ("replace", "3", "4")],
)
def test_an_open_removal_forbids_tasks_on_its_broker(
    at: SimulatedTask, contradiction: tuple[str, ...]
) -> None:
    task = at.request()
    refused = plimsoll("broker", *contradiction, *CHANGING, code=5).stderr
    assert f"task {task.task_id} (remove broker 4, requested) names broker 4, too" in refused
    assert len(at.files.all()) == 1


def test_a_removed_broker_is_added_and_filled_again(at: SimulatedTask) -> None:
    plimsoll("broker", "remove", "4", *CHANGING)
    assert 4 not in at.held
    assert answer("broker", "add", "4", *CHANGING)["phase"] == "done"
    assert at.held[4] >= 2
    assert at.states == {}


def test_a_broker_is_replaced_by_one_that_holds_nothing(at: SimulatedTask) -> None:
    at.cluster.brokers[BrokerId(5)] = SimulatedBroker(id=BrokerId(5), rack="a")
    shown = answer("broker", "replace", "4", "5", "--dry-run")
    assert (shown["onto"], len(shown["plan"]["moves"])) == (5, 4)
    done = answer("broker", "replace", "4", "5", *CHANGING)
    assert (done["phase"], done["onto"]) == ("done", 5)
    assert at.held == {1: 2, 2: 2, 3: 2, 5: 4}
    assert "replace broker 4 with 5, done" in plimsoll("task", "show").stdout
    assert at.states == {4: BrokerState.DRAINING}


def _lists(at: SimulatedTask) -> list[tuple[int, ...]]:
    return [tuple(map(int, p.replicas)) for _, p in sorted(at.cluster.partitions.items())]


def _leaders(at: SimulatedTask) -> list[int]:
    return [int(p.leader) for _, p in sorted(at.cluster.partitions.items())]


# ---- with an archive


def archived(store: S3Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands use this archive."""
    keys = ("endpoint_url", "bucket", "prefix", "access_key", "secret_key")
    monkeypatch.setenv("PLIMSOLL_ARCHIVE", json.dumps({k: getattr(store, k) for k in keys}))


@pytest.fixture
def elsewhere(
    at: SimulatedTask, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> SimulatedTask:
    """A host whose tasks the commands, which have a state folder of their own, find archived."""
    store = place(endpoint)
    archived(store, monkeypatch)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return SimulatedTask(folder=folder, places=PLACES, store=store, shared=at.cluster)


def test_an_archived_task_is_listed_shown_and_continued(elsewhere: SimulatedTask) -> None:
    task = elsewhere.request()
    (listed,) = answer("task", "list")["tasks"]
    assert (listed["task_id"], listed["open"], listed["worked_on"]) == (task.task_id, True, False)
    assert answer("task", "show", "remove-4")["phase"] == "requested"
    assert answer("task", "resume", *CHANGING)["phase"] == "done"
    assert elsewhere.files.all()[0].phase is TaskPhase.DONE
    assert elsewhere.states == {4: BrokerState.DRAINING}
    plimsoll("broker", "include", "4", "--allow-changes")
    assert elsewhere.states == {}


def test_an_archived_task_is_cancelled(elsewhere: SimulatedTask) -> None:
    elsewhere.request()
    plimsoll("task", "cancel", "--reason", "wrong broker")
    found = elsewhere.files.all()[0]
    assert found.phase is TaskPhase.CANCELLED
    assert found.note.endswith(": wrong broker")


def test_a_damaged_task_of_the_archive_is_named_and_stops_no_other_task(
    elsewhere: SimulatedTask,
) -> None:
    damaged = elsewhere.request().task_id
    elsewhere.remove = (3,)
    three = elsewhere.request().task_id
    assert elsewhere.host is not None
    bucket, key = elsewhere.host.bucket, f"tasks/simulated/{damaged}/task.json"
    found = bucket.get(key)
    assert found is not None
    assert bucket.put_over(key, found.body[:40], found.etag)
    listed = plimsoll("task", "list", "-o", "json", code=Exit.USAGE)
    assert key in listed.stderr
    assert [task["task_id"] for task in json.loads(listed.stdout)["tasks"]] == [three]
    for command in (("task", "show", damaged), ("broker", "remove", "4", *CHANGING)):
        assert key in plimsoll(*command, code=Exit.USAGE).stderr
    assert answer("task", "resume", three, *CHANGING)["phase"] == "done"


@pytest.mark.parametrize("resumes", [True, False], ids=["resume", "cancel"])
def test_a_damaged_plan_keeps_no_task_from_being_listed_and_cancelled(
    at: SimulatedTask, resumes: bool, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at.approve = lambda _task, _plan: ""
    task = at.work()
    (plan,) = at.files.folder.glob("*.plan")
    plan.write_text("{")
    archived(place(endpoint), monkeypatch)
    (listed,) = answer("task", "list")["tasks"]
    assert listed["task_id"] == task.task_id
    if resumes:
        refused = " ".join(plimsoll("task", "resume", *CHANGING, code=Exit.USAGE).stderr.split())
        assert str(plan) in refused
        words = f"give the task up with plimsoll task cancel {task.task_id}, and request it again"
        assert words in refused
        assert "continues it" not in refused
    else:
        assert answer("task", "cancel")["phase"] == "cancelled"
    assert (answer("task", "list")["tasks"], at.states) == ([], {})


def test_requests_of_the_command_line_are_archived(elsewhere: SimulatedTask) -> None:
    done = answer("broker", "remove", "4", *CHANGING)
    assert [task.task_id for task in elsewhere.files.all()] == [done["task_id"]]
    assert elsewhere.states == {4: BrokerState.DRAINING}


def test_without_the_bucket_nothing_is_requested(
    elsewhere: SimulatedTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = answer("broker", "remove", "4", *CHANGING)["task_id"]
    nowhere = {"endpoint_url": "http://127.0.0.1:1", "bucket": "archive"}
    keys = {"access_key": "me", "secret_key": "secret"}
    monkeypatch.setenv("PLIMSOLL_ARCHIVE", json.dumps(nowhere | keys))
    listed = plimsoll("task", "list", "--all", "-o", "json")
    assert [task["task_id"] for task in json.loads(listed.stdout)["tasks"]] == [known]
    held = elsewhere.held
    plimsoll("broker", "remove", "3", *CHANGING, code=Exit.UNREACHABLE)
    assert elsewhere.held == held
