"""The operator's requests about tasks: list, resume and cancel them."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from control.tasks.broker_task import Operation, brokers_text, request_text
from control.tasks.task_listing import ListedTask, TaskListing
from control.tasks.task_request import NamedBrokers
from model.errors import ConfigError, PlimsollError
from model.ids import BrokerId
from model.plan.plan import Plan
from model.snapshot.snapshot import Snapshot
from tui.host import Host
from tui.loop_port import Engine
from tui.screens.approve import Preview
from tui.screens.broker_menu import EXCLUDE, INCLUDE, BrokerMenu, Chosen
from tui.screens.form import FormScreen
from tui.screens.many_brokers import ManyBrokersScreen
from tui.screens.question import Question
from tui.screens.task_plan import TaskPlanScreen
from tui.viewmodel.disabled_reasons import refusal
from tui.viewmodel.plan.forms import FormLine, Typed
from tui.viewmodel.tasks.task_questions import (
    NO_PLAN_YET,
    REPLACE_ONE,
    RESUMED,
    all_brokers,
    cancel_text,
    excluded_text,
    included_text,
    new_broker,
    not_open,
    not_resumed,
)

if TYPE_CHECKING:
    from control.tasks.operator_tasks import ProposedTask

T = TypeVar("T")


class TaskActions:
    """Confirm what needs confirmation, then pass the request on."""

    def __init__(self, app: Host, engine: Engine, user: str, preview: Preview) -> None:
        """preview: estimates the run of a plan."""
        self._app, self._engine, self._user = app, engine, user
        self._preview = preview

    @property
    def known(self) -> bool:
        """Whether there can be tasks at all."""
        return self._engine.tasks is not None

    def listing(self, cluster_id: str) -> TaskListing:
        """Read the tasks of a cluster; not for the thread that draws."""
        tasks = self._engine.tasks
        return TaskListing() if tasks is None else tasks.listing(cluster_id)

    # ---- requests

    def operate(self, broker: BrokerId) -> None:
        """Choose what to request for a broker, and request it after a confirmation."""
        if refusal("operate", self._app.moment) is not None:
            return
        if self._engine.tasks is None:
            self._warn("tasks on brokers cannot be requested here")
            return
        snapshot = self._app.moment.view.snapshot
        members = () if snapshot is None else snapshot.header.brokers
        self._app.push_screen(BrokerMenu(broker, members), self._chosen)

    def _chosen(self, chosen: Chosen | None) -> None:
        snapshot = self._app.moment.view.snapshot
        if chosen is None:
            return
        if snapshot is None:
            self._warn("no loads have been measured yet; wait a moment")
        elif chosen.name in (EXCLUDE, INCLUDE):
            marking = self._ask_mark(chosen.brokers, snapshot, excluded=chosen.name == EXCLUDE)
            self._app.run_worker(marking, group="task", exclusive=True)
        elif chosen.name == Operation.REPLACE:
            self._ask_new(chosen.brokers, snapshot)
        else:
            self._plan(Operation(chosen.name), chosen.brokers, snapshot)

    def _ask_new(self, named: NamedBrokers, snapshot: Snapshot) -> None:
        """Ask which broker takes the place of another."""
        members, answer = snapshot.header.brokers, list[BrokerId]()
        try:
            old, *others = named.among(members)
        except ConfigError as exc:
            self._warn(str(exc))
            return
        if others:
            self._warn(REPLACE_ONE)
            return

        def check(typed: Typed) -> BrokerId | None:
            return new_broker(typed["new"], old, members) if typed["new"].strip() else None

        def take(typed: Typed) -> None:
            answer[:] = [new_broker(typed["new"], old, members)]

        def answered(_closed: None) -> None:
            for new in answer:
                self._plan(Operation.REPLACE, named, snapshot, new)

        form = FormScreen(
            f"Replace broker {old}",
            (FormLine("new broker", "new", hint=f"the id of the one that replaces {old}"),),
            check=check,
            submit=take,
            done="Show the plan",
        )
        self._app.push_screen(form, answered)

    def _plan(
        self,
        operation: Operation,
        named: NamedBrokers,
        snapshot: Snapshot,
        onto: BrokerId | None = None,
    ) -> None:
        """Plan a request in the background, and show the plan."""
        try:
            words = request_text(operation, named.among(snapshot.header.brokers, operation), onto)
        except ConfigError as exc:
            self._warn(str(exc))
            return
        self._app.notify(f"planning: {words}", timeout=5)
        proposing = self._propose(operation, named, snapshot, onto)
        self._app.run_worker(proposing, group="task", exclusive=True)

    async def _propose(
        self, operation: Operation, named: NamedBrokers, snapshot: Snapshot, onto: BrokerId | None
    ) -> None:
        tasks, user = self._engine.tasks, self._user
        if tasks is None:
            return
        found = await self._result(lambda: tasks.proposed(operation, named, snapshot, user, onto))
        if found is None:
            return
        if found.found is None:
            self._ask_idle(found)
            return
        notes = (found.note, all_brokers(found.task.brokers))
        self._app.push_screen(
            TaskPlanScreen(
                found.task.words(),
                found.found.plan,
                self._app.moment,
                lambda _plan: self._request(found),
                self._preview,
                tuple(filter(None, notes)),
            )
        )

    def _ask_idle(self, proposed: "ProposedTask") -> None:
        """Ask whether to execute a task that moves nothing, and only sets or ends marks."""
        words, text = proposed.task.words(), proposed.note
        self._ask_many(
            f"Execute the task: {words}?",
            text[:1].upper() + text[1:],
            proposed.task.brokers,
            "Execute",
            lambda: self._request(proposed),
        )

    def _request(self, proposed: "ProposedTask") -> None:
        """Store the task and begin to work on it; from another thread."""
        tasks = self._engine.tasks
        if tasks is None:
            return
        stored = tasks.request(proposed, self._user)
        try:
            self._engine.work_on(stored)
        except PlimsollError:
            # A task that nothing has moved for must not begin at some later time.
            tasks.cancel(stored.task.task_id, self._user)
            raise
        words = f"task {stored.task.task_id} is stored and worked on; the screen of tasks shows it"
        self._app.call_from_thread(self._app.notify, words, timeout=8, markup=False)

    async def _ask_mark(self, named: NamedBrokers, snapshot: Snapshot, *, excluded: bool) -> None:
        tasks, cluster_id = self._engine.tasks, snapshot.header.cluster_id
        if tasks is None:
            return
        brokers = await self._result(lambda: tasks.markable(named, snapshot, excluded=excluded))
        if brokers is None:
            return

        change = tasks.exclude if excluded else tasks.include
        what = "Exclude" if excluded else "Include"
        words = f"{what.lower()} {brokers_text(brokers)}"

        def mark() -> None:
            """Set or remove the marks; from another thread."""
            said = change(cluster_id, brokers, self._user)
            self._app.call_from_thread(self._app.log_action, words)
            self._app.call_from_thread(self._report, f"done: {words}", said)

        text = excluded_text(brokers) if excluded else included_text(brokers)
        self._ask_many(f"{what} {brokers_text(brokers)}?", text, brokers, what, mark)

    def _ask_many(
        self, title: str, text: str, brokers: Sequence[BrokerId], yes: str, act: Callable[[], None]
    ) -> None:
        """Ask once, or for the cluster's name where there are many brokers; then act in a thread.

        yes: a verb, as `Exclude`.
        """

        def answered(agreed: bool | None) -> None:
            if agreed:
                self._app.run_worker(self._done(act), group="task")

        if many := all_brokers(brokers):
            text, cluster_name = f"{text}\n{many}", self._app.moment.view.cluster_name
            self._app.push_screen(ManyBrokersScreen(title, text, cluster_name, act, yes))
            return
        self._app.push_screen(Question(title, text, yes=yes, no="Cancel"), answered)

    # ---- tasks that exist

    def cancel(self, of: ListedTask, then: Callable[[], None]) -> None:
        """Cancel a task after a confirmation; call `then` once that is done."""
        if refusal("cancel_task", self._app.moment) is not None:
            return
        if reason := not_open(of.task, "cancel"):
            self._warn(reason)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._app.run_worker(self._cancel(of.task.task_id, then), group="task")

        self._app.push_screen(
            Question(
                f"Cancel the task to {of.task.words()}?",
                cancel_text(of),
                yes="Cancel the task",
                no="Keep the task",
            ),
            answered,
        )

    def resume(self, of: ListedTask, then: Callable[[], None]) -> None:
        """Resume a task after a confirmation; call `then` once it has begun."""
        if refusal("resume_task", self._app.moment) is not None:
            return
        if reason := not_resumed(of):
            self._warn(reason)
            return
        self._app.run_worker(self._ask_resume(of, then), group="task", exclusive=True)

    async def _ask_resume(self, of: ListedTask, then: Callable[[], None]) -> None:
        tasks, task_id = self._engine.tasks, of.task.task_id
        if tasks is None:
            return
        found = await self._result(lambda: (tasks.waiting_plan(task_id),))
        if found is None:
            return
        if (plan := found[0]) is not None:
            self._app.push_screen(
                TaskPlanScreen(
                    of.task.words(), plan, self._app.moment, self._starter(of, then), self._preview
                )
            )
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._app.run_worker(self._resume(of, then), group="task")

        text = RESUMED if of.task.approved else NO_PLAN_YET
        title = f"Resume the task to {of.task.words()}?"
        self._app.push_screen(Question(title, text, yes="Resume", no="Cancel"), answered)

    def _starter(self, of: ListedTask, then: Callable[[], None]) -> Callable[[Plan], None]:
        """Starts the work on a task with the plan that was approved; from another thread."""

        def start(plan: Plan) -> None:
            self._work_on(of.task.task_id, plan.hash)
            self._app.call_from_thread(then)

        return start

    def _work_on(self, task_id: str, approved: str = "") -> None:
        tasks = self._engine.tasks
        if tasks is not None:
            self._engine.work_on(tasks.resumed(task_id, self._user, approved))

    async def _resume(self, of: ListedTask, then: Callable[[], None]) -> None:
        if await self._done(lambda: self._work_on(of.task.task_id)):
            self._app.notify(f"working on the task to {of.task.words()}", timeout=5, markup=False)
            then()

    async def _cancel(self, task_id: str, then: Callable[[], None]) -> None:
        tasks = self._engine.tasks
        if tasks is None:
            return
        said = await self._result(lambda: tasks.cancel(task_id, self._user))
        if said is not None:
            self._app.log_action(f"cancel task {task_id}")
            self._report(f"task {task_id} is cancelled", said)
        then()

    def _report(self, done: str, said: str) -> None:
        """Say what was done, and what became of cordons."""
        words = f"{done}; {said}" if said else done
        self._app.notify(words, timeout=12 if said else 5, markup=False)

    async def _done(self, act: Callable[[], None]) -> bool:
        """Whether the request was accepted; shows why not."""

        def done() -> bool:
            act()
            return True

        return await self._result(done) or False

    async def _result(self, ask: Callable[[], T]) -> T | None:
        """Return the result, or None after showing why the request was refused."""
        try:
            return await asyncio.to_thread(ask)
        except PlimsollError as exc:
            self._app.notify(str(exc), severity="error", timeout=15, markup=False)
            return None

    def _warn(self, reason: str) -> None:
        self._app.notify(reason, severity="warning", timeout=5, markup=False)
