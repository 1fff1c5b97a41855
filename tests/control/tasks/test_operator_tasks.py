"""Tasks that a person at a screen requests, resumes and cancels."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from control.loop.dependencies import WorkInterrupted
from control.tasks.broker_task import Operation, TaskPhase
from control.tasks.operator_tasks import OperatorTasks
from control.tasks.task_request import NamedBrokers
from executor.run.operator_control import Steering
from lab.simulated_cluster.cluster_state import CORDONED
from model.errors import ConfigError, GuardrailRefused, RightsMissing
from model.goals.goals import Budgets, Goals
from model.ids import BrokerId
from model.run import MoveState, RunProgress
from model.snapshot.snapshot import BrokerState, Snapshot
from tests.control.tasks.test_continued_tasks import CLUSTER, PLACES, killed, site, tasks_of
from tests.support.control.simulated_tasks import SimulatedTask


def unapproved(folder: Path) -> SimulatedTask:
    """A removal with a plan that waits for approval."""
    at = SimulatedTask(folder=folder, places=PLACES, approve=lambda _task, _plan: "")
    assert at.work().phase is TaskPhase.PLANNED
    return at


def test_a_killed_task_is_resumed_by_a_person(tmp_path: Path) -> None:
    at = killed(tmp_path)
    tasks = OperatorTasks(tasks_of(at))
    (listed,) = tasks.listing(CLUSTER).tasks
    task_id = listed.task.task_id
    assert tasks.waiting_plan(task_id) is None
    found = tasks.resumed(task_id, "bob")
    assert (found.title, found.by) == (f"task {task_id} (remove broker 4)", "bob")
    assert "is done" in found.work(site(at))
    assert 4 not in at.held
    # Who approved the request has approved its later plans.
    assert {plan.approved_by for plan in at.files.read(task_id).plans} == {"ada"}
    with pytest.raises(ConfigError, match="is done; nothing is left to resume"):
        tasks.resumed(task_id, "bob")


def test_exactly_the_plan_that_a_person_approved_is_executed(tmp_path: Path) -> None:
    at = unapproved(tmp_path)
    tasks = OperatorTasks(tasks_of(at))
    (task,) = at.files.all()
    plan = tasks.waiting_plan(task.task_id)
    assert plan is not None
    before = at.held
    assert "is planned" in tasks.resumed(task.task_id, "bob", "another").work(site(at))
    assert "is planned" in tasks.resumed(task.task_id, "bob").work(site(at))
    assert at.held == before
    assert "is done" in tasks.resumed(task.task_id, "bob", plan.hash).work(site(at))
    first, *_ = at.files.read(task.task_id).plans
    assert (first.plan_hash, first.approved_by) == (plan.hash, "bob")
    assert 4 not in at.held


def test_the_run_that_a_person_stops_waits_for_a_person(tmp_path: Path) -> None:
    at = killed(tmp_path)
    tasks = OperatorTasks(tasks_of(at))
    (task,) = at.files.all()
    steering = Steering()

    def stop(progress: RunProgress) -> None:
        if progress.count(MoveState.ISSUED, MoveState.DONE):
            steering.stop()

    at.on_progress = stop
    assert "is moving" in tasks.resumed(task.task_id, "bob").work(site(at, steering))
    assert at.files.read(task.task_id).stopped_by == "bob"
    at.on_progress = lambda _progress: None
    assert "is done" in tasks.resumed(task.task_id, "eve").work(site(at))


def test_a_task_is_cancelled_once(tmp_path: Path) -> None:
    at = killed(tmp_path)
    tasks = OperatorTasks(tasks_of(at))
    (task,) = at.files.all()
    assert at.states
    tasks.cancel(task.task_id, "bob")
    assert (at.files.read(task.task_id).note, at.states) == ("by bob", {})
    with pytest.raises(ConfigError, match="is cancelled; nothing is left to cancel"):
        tasks.cancel(task.task_id, "bob")


def test_a_task_that_a_process_works_on_is_not_resumed(tmp_path: Path) -> None:
    at = killed(tmp_path)
    tasks = OperatorTasks(tasks_of(at))
    (task,) = at.files.all()
    with (
        at.files.working_on(task.task_id),
        pytest.raises(GuardrailRefused, match=rf"works on task {task.task_id}; wait until"),
    ):
        tasks.resumed(task.task_id, "bob")


def test_a_task_whose_plan_is_missing_says_so(tmp_path: Path) -> None:
    at = unapproved(tmp_path)
    (task,) = at.files.all()
    assert task.plan is not None
    at.files.plan_path(task.task_id, task.plan.plan_hash).unlink()
    with pytest.raises(ConfigError, match=r"\.plan"):
        OperatorTasks(tasks_of(at)).waiting_plan(task.task_id)


# ---- requests


def test_exactly_the_plan_that_was_shown_is_stored_and_executed(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    tasks = OperatorTasks(tasks_of(at))
    proposed = tasks.proposed(Operation.REMOVE, NamedBrokers((4,)), at.snapshot(), "bob")
    assert at.files.all() == []
    assert at.states == {}
    stored = tasks.request(proposed, "bob")
    task = at.files.read(stored.task.task_id)
    assert (task.phase, task.words(), task.by) == (TaskPhase.APPROVED, "remove broker 4", "bob")
    assert proposed.found is not None
    assert [p.plan_hash for p in task.plans] == [proposed.found.plan.hash]
    assert "is done" in stored.work(site(at))
    assert 4 not in at.held
    assert at.states == {4: BrokerState.DRAINING}
    assert at.files.read(task.task_id).plans[0].closed


def test_a_request_that_was_stored_survives_its_process(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    tasks = OperatorTasks(tasks_of(at))
    tasks.request(tasks.proposed(Operation.REMOVE, NamedBrokers((4,)), at.snapshot(), "bob"), "bob")
    assert at.continued().phase is TaskPhase.DONE
    assert 4 not in at.held


def test_impossible_requests_are_refused_and_store_nothing(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    tasks = OperatorTasks(tasks_of(at))
    with pytest.raises(GuardrailRefused, match="was not demoted; nothing is to be undone"):
        tasks.proposed(Operation.UNDEMOTE, NamedBrokers((4,)), at.snapshot(), "bob")
    with pytest.raises(ConfigError, match="9"):
        tasks.proposed(Operation.REMOVE, NamedBrokers((9,)), at.snapshot(), "bob")
    assert at.files.all() == []
    proposed = tasks.proposed(Operation.REMOVE, NamedBrokers((4,)), at.snapshot(), "bob")
    task = tasks.request(proposed, "bob").task
    with pytest.raises(GuardrailRefused, match=rf"task {task.task_id} does that already"):
        tasks.proposed(Operation.REMOVE, NamedBrokers((4,)), at.snapshot(), "eve")
    with pytest.raises(GuardrailRefused, match=task.task_id):
        tasks.proposed(Operation.DEMOTE, NamedBrokers((4,)), at.snapshot(), "eve")
    # What was shown before another request is not stored after it.
    with pytest.raises(GuardrailRefused, match=task.task_id):
        tasks.request(proposed, "eve")
    assert len(at.files.all()) == 1


LED_ELSEWHERE = [(1, 2), (3, 1), (2, 4), (3, 4)]
"""Broker 4 leads nothing."""


@pytest.mark.parametrize(
    ("operations", "places", "words", "states"),
    [
        (
            [Operation.MAINTENANCE],
            LED_ELSEWHERE,
            "broker 4 leads nothing, so that nothing has to move; the task only has broker 4 "
            "marked as in maintenance: broker 4 can be stopped for a while",
            {4: BrokerState.MAINTENANCE},
        ),
        (
            [Operation.DEMOTE, Operation.MAINTENANCE],
            PLACES,
            "only has broker 4 marked as in maintenance",
            {4: BrokerState.MAINTENANCE},
        ),
        (
            [Operation.MAINTENANCE, Operation.MAINTENANCE_OFF],
            LED_ELSEWHERE,
            "leaders are as before the demotion, so that nothing has to move; the task only ends "
            "marks of broker 4",
            {},
        ),
        (
            [Operation.REMOVE],
            [(1, 2), (3, 1)],
            "no replica on broker 4, so that nothing has to move; the task only has broker 4 "
            "marked as draining and, on Kafka 4.3 or newer, cordoned",
            {4: BrokerState.DRAINING},
        ),
        ([Operation.REMOVE, Operation.ADD], [], "only ends marks of broker 4, and cordons", {}),
    ],
    ids=["maintenance", "of a demoted one", "off", "remove", "add"],
)
def test_where_nothing_has_to_move_marks_are_set_and_ended(
    tmp_path: Path,
    operations: list[Operation],
    places: list[tuple[int, ...]],
    words: str,
    states: dict[int, BrokerState],
) -> None:
    """It was refused with "nothing to do", which the commands do all the same."""
    at = SimulatedTask(folder=tmp_path, places=places)
    *before, asked = operations
    for at.operation in before:
        at.work()
    tasks = OperatorTasks(tasks_of(at))
    proposed = tasks.proposed(asked, NamedBrokers((4,)), at.snapshot(), "bob")
    assert proposed.found is None
    assert words in proposed.note
    assert "is done" in tasks.request(proposed, "bob").work(site(at))
    assert at.states == states
    assert (4 in at.cordons) is (BrokerState.DRAINING in states.values())


def test_a_task_without_a_plan_that_needs_one_after_all_waits_for_approval(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=LED_ELSEWHERE)
    tasks = OperatorTasks(tasks_of(at))
    ask = tasks.proposed(Operation.MAINTENANCE, NamedBrokers((4,)), at.snapshot(), "bob")
    created = at.partition(9, (4, 1))
    at.cluster.partitions[created.id] = created
    assert "is planned" in tasks.request(ask, "bob").work(site(at))
    assert at.cluster.partitions[created.id].leader == 4


def test_a_filling_that_is_worth_no_move_ends_the_mark(tmp_path: Path) -> None:
    goals = Goals(budgets=Budgets(replica_moves=0, leader_changes=0))
    places = [(1, 2), (2, 3), (3, 4), (1, 2), (2, 3)]
    at = SimulatedTask(folder=tmp_path, places=places, goals=goals)
    tasks = OperatorTasks(tasks_of(at))
    tasks.exclude(CLUSTER, [BrokerId(4)], "bob")
    proposed = tasks.proposed(Operation.ADD, NamedBrokers((4,)), at.snapshot(), "bob")
    assert proposed.found is None
    assert "no move is worth its cost, so that nothing has to move" in proposed.note
    assert "is done" in tasks.request(proposed, "bob").work(site(at))
    assert (at.states, at.cordons) == ({}, {})


def test_several_brokers_and_racks_are_one_request(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=[(1, 2), (3, 2), (4, 2)], racks="abcc")
    tasks = OperatorTasks(tasks_of(at))
    named = NamedBrokers.of("1 --rack c")
    found = tasks.proposed(Operation.DEMOTE, named, at.snapshot(), "bob")
    assert found.task.words() == "demote brokers 1, 3, 4"
    stored = tasks.request(found, "bob")
    assert stored.task.brokers == (1, 3, 4)
    assert found.found is not None
    assert stored.approved == found.found.plan.hash


def test_a_broker_is_replaced_by_the_one_that_was_named(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=[(4, 1), (2, 4)])
    tasks = OperatorTasks(tasks_of(at))
    ask = partial(tasks.proposed, Operation.REPLACE, snapshot=at.snapshot(), by="bob")
    found = ask(NamedBrokers((4,)), onto=3)
    assert found.task.words() == "replace broker 4 with 3"
    assert "is done" in tasks.request(found, "bob").work(site(at))
    assert at.held == {1: 1, 2: 1, 3: 2}
    for named, onto, words in (
        (NamedBrokers((1, 2)), 3, "replace takes one broker at a time, not 2"),
        (NamedBrokers((1,)), 9, "there is no broker 9"),
        (NamedBrokers((1,)), 1, "name two brokers"),
    ):
        with pytest.raises((ConfigError, GuardrailRefused), match=words):
            ask(named, onto=onto)


@pytest.mark.parametrize(
    ("text", "ids", "racks"),
    [
        ("4", (4,), ()),
        (" 4,5  6, ", (4, 5, 6), ()),
        ("4 --rack a --rack=b", (4,), ("a", "b")),
        ("--rack 'rack ünter 1'", (), ("rack ünter 1",)),
    ],
)
def test_brokers_are_named_as_the_commands_take_them(
    text: str, ids: tuple[int, ...], racks: tuple[str, ...]
) -> None:
    assert NamedBrokers.of(text) == NamedBrokers(ids, racks)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no broker is named"),
        (" , ", "no broker is named"),
        ("four", "'four' is not a broker id"),
        ("-1", "'-1' is not a broker id"),
        ("٤", "is not a broker id"),
        ("12345678901", "is not a broker id"),
        ("4 --rack", "--rack needs the name"),
        ("--rack 'a", "no closing quotation"),
    ],
)
def test_other_words_name_no_brokers(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        NamedBrokers.of(text)


# ---- marks and cordons


def test_brokers_are_excluded_and_included(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    tasks = OperatorTasks(tasks_of(at))
    (broker,) = tasks.markable(NamedBrokers((3,)), at.snapshot(), excluded=True)
    said = tasks.exclude(CLUSTER, [broker], "bob")
    assert said == "broker 3 is cordoned: Kafka puts no new replicas there"
    assert (at.states, at.cordons) == ({3: BrokerState.EXCLUDED}, {3: "*"})
    tasks.markable(NamedBrokers((3,)), at.snapshot(), excluded=False)
    assert tasks.include(CLUSTER, [broker], "bob") == "broker 3 is no longer cordoned"
    assert (at.states, at.cordons) == ({}, {})
    task = at.request()
    with pytest.raises(GuardrailRefused, match=task.task_id):
        tasks.markable(NamedBrokers((4,)), at.snapshot(), excluded=True)
    # A task that was requested while the question was open.
    with pytest.raises(GuardrailRefused, match=task.task_id):
        tasks.exclude(CLUSTER, [BrokerId(4)], "bob")
    assert at.states == {}


def test_including_an_emptied_broker_ends_its_cordon(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    at.work()
    assert (at.states, at.cordons) == ({4: BrokerState.DRAINING}, {4: "*"})
    tasks = OperatorTasks(tasks_of(at))
    brokers = tasks.markable(NamedBrokers((4,)), at.snapshot(), excluded=False)
    at.faults.denied.add("alter_broker_configs")
    with pytest.raises(RightsMissing):
        tasks.include(CLUSTER, brokers, "bob")
    # Nothing is half done: the mark stays with the cordon.
    assert (at.states, at.cordons) == ({4: BrokerState.DRAINING}, {4: "*"})
    at.faults.denied.clear()
    assert tasks.include(CLUSTER, brokers, "bob") == "broker 4 is no longer cordoned"
    assert (at.states, at.cordons) == ({}, {})


def test_a_cordon_of_someone_else_stays(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    at.cluster.brokers[BrokerId(3)].configs[CORDONED] = "*"
    tasks = OperatorTasks(tasks_of(at))
    assert "someone else has set" in tasks.exclude(CLUSTER, [BrokerId(3)], "bob")
    assert tasks.include(CLUSTER, [BrokerId(3)], "bob") == ""
    assert (at.states, at.cordons) == ({}, {3: "*"})


def test_a_dead_broker_is_included_only_where_it_is_marked(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=PLACES)
    tasks = OperatorTasks(tasks_of(at))
    tasks.exclude(CLUSTER, [BrokerId(4)], "bob")
    at.cluster.kill(BrokerId(4))
    named, seen = NamedBrokers((4,)), at.snapshot()
    with pytest.raises(ConfigError, match="broker 4 is dead"):
        tasks.markable(named, seen, excluded=True)
    assert tasks.markable(named, seen, excluded=False) == (4,)
    assert "it is dead or fenced" in tasks.include(CLUSTER, [BrokerId(4)], "bob")
    with pytest.raises(ConfigError, match="there is no live or marked broker 4"):
        tasks.markable(named, seen, excluded=False)


def test_a_cancelled_task_ends_its_cordon_or_says_how_to(tmp_path: Path) -> None:
    at = killed(tmp_path)
    tasks = OperatorTasks(tasks_of(at))
    (task,) = at.files.all()
    assert at.cordons == {4: "*"}
    at.faults.denied.add("alter_broker_configs")
    said = tasks.cancel(task.task_id, "bob")
    assert "plimsoll broker include 4 --allow-changes ends that" in said
    at.faults.denied.clear()
    assert tasks.include(CLUSTER, [BrokerId(4)], "bob") == "broker 4 is no longer cordoned"
    assert at.cordons == {}


# ---- who stopped it


@pytest.mark.parametrize("leaves", [True, False])
def test_quitting_leaves_a_task_to_be_continued(tmp_path: Path, leaves: bool) -> None:
    at = killed(tmp_path)
    tasks = OperatorTasks(tasks_of(at))
    (task,) = at.files.all()
    steering = Steering(operator="bob")

    def quit_(progress: RunProgress) -> None:
        if progress.count(MoveState.ISSUED, MoveState.DONE):
            if not leaves:
                steering.stop()
            # As the loop does when it is closed, after whatever the person did.
            steering.leave()

    at.on_progress = quit_
    assert "is moving" in tasks.resumed(task.task_id, "bob").work(site(at, steering))
    at.on_progress = lambda _progress: None
    found = at.files.read(task.task_id)
    assert found.stopped_by == ("" if leaves else "bob")
    assert ("interrupted" in found.note) is leaves
    again = tasks.continued.next(CLUSTER)
    assert (again is not None) is leaves
    if again is not None:
        assert "is done" in again.work(site(at))
        assert 4 not in at.held


@pytest.mark.parametrize("leaves", [True, False])
def test_a_person_stops_a_task_between_two_runs(tmp_path: Path, leaves: bool) -> None:
    at = killed(tmp_path)
    tasks, steering = OperatorTasks(tasks_of(at)), Steering()
    (task,) = at.files.all()

    def create(progress: RunProgress) -> None:
        if progress.count(MoveState.DONE) == len(progress.moves):
            created = at.partition(9, (4, 1))
            at.cluster.partitions[created.id] = created

    def interrupted() -> Snapshot:
        (steering.leave if leaves else steering.stop)()
        raise WorkInterrupted

    between = replace(site(at, steering), observe=interrupted, watch=create)
    assert "is moving" in tasks.resumed(task.task_id, "bob").work(between)
    assert at.files.read(task.task_id).stopped_by == ("" if leaves else "bob")
    assert (tasks.continued.next(CLUSTER) is not None) is leaves
