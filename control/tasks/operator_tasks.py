"""What a person at a screen does about tasks: list, request, resume and cancel them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from control.loop.dependencies import TaskSite
from control.tasks import exclusion, task_runner
from control.tasks.broker_task import BrokerTask, Operation, TaskPhase
from control.tasks.continued_tasks import ContinuedTasks, approver
from control.tasks.operations import OPERATIONS, idle_text
from control.tasks.removal import refuse_conflicts
from control.tasks.task_cordons import cordon, end_cordons
from control.tasks.task_files import TaskFiles
from control.tasks.task_listing import TaskListing, task_listing
from control.tasks.task_parts import FoundPlan, NoPlan
from control.tasks.task_request import NamedBrokers, TaskRequest, requested_task
from executor.run.operator_control import Steering
from model.errors import ConfigError, GuardrailRefused, PlimsollError
from model.ids import BrokerId
from model.plan.plan import Plan, PlanStatus
from model.snapshot.snapshot import Broker, BrokerState, Snapshot


@dataclass(frozen=True, slots=True)
class OperatorTasks:
    """The tasks of one state folder, for a person; not for a thread that draws."""

    continued: ContinuedTasks
    """Works on them."""

    @property
    def _files(self) -> TaskFiles:
        return self.continued.files

    def listing(self, cluster_id: str) -> TaskListing:
        """Read the tasks of a cluster."""
        return task_listing(self._files, cluster_id)

    def cancel(self, task_id: str, by: str, why: str = "") -> str:
        """Cancel an open task: a run of it stops, its cordons end, and what has moved stays.

        why: kept with the task. Returns what became of the cordons, in sentences; empty where there
        are none. Raises ConfigError where it is over, and as `TaskFiles.change`.
        """
        continued, said = self.continued, list[str]()
        task, now_ms = self._files.read(task_id), continued.now_ms()
        ended = task_runner.cancel(self._files, task, by, now_ms, why)
        if not self._files.is_worked_on(task_id):
            end_cordons(
                continued.connect, ended, self._files, continued.journal_dir, by, said.append
            )
        return "; ".join(said)

    # ---- requests

    def proposed(
        self,
        operation: Operation,
        named: NamedBrokers,
        snapshot: Snapshot,
        by: str,
        onto: int | None = None,
    ) -> "ProposedTask":
        """Plan what a person asks for; nothing is stored. Takes as long as a plan.

        There is no plan where nothing has to move, and the task only sets or ends marks. onto: the
        broker that replaces another. Raises ConfigError for unknown and dead brokers,
        GuardrailRefused where it is impossible or needless, and NoPlan where no plan does it.
        """
        continued, members = self.continued, snapshot.header.brokers
        continued.refuse_barred()
        brokers = named.among(members, operation)
        if operation is Operation.REPLACE and len(brokers) != 1:
            raise ConfigError(f"replace takes one broker at a time, not {len(brokers)}")
        asked = TaskRequest(
            operation=operation,
            brokers=brokers,
            onto=None if onto is None else NamedBrokers((onto,)).among(members)[0],
            by=by,
            at_ms=continued.now_ms(),
        )
        task, rules = self._new(asked, snapshot), OPERATIONS[operation]
        with continued.connect() as executor:
            parts = continued.parts(executor, _planning_only(snapshot), lambda _task, _plan: "")
            left = rules.left(task, parts, lambda: snapshot)
            found = rules.find(task, snapshot, parts) if left.count else None
            if found is None or not found.plan.moves:
                at_min_isr = rules.at_min_isr(task, parts)
        if found is not None and found.plan.moves:
            return ProposedTask(task=task, found=found, note=found.note)
        if found is not None and not rules.rests:
            raise NoPlan(left.words, PlanStatus.NONE_IN_TIME)
        if not rules.marks:
            raise GuardrailRefused(f"{rules.verified(task)} already; nothing to do")
        why = left.words if found is None else "no move is worth its cost"
        as_left = task.model_copy(update={"at_min_isr": at_min_isr})
        return ProposedTask(task=task, found=None, note=idle_text(as_left, why))

    def _new(self, asked: TaskRequest, snapshot: Snapshot) -> BrokerTask:
        """The task of a request, not kept yet. Raises GuardrailRefused where there is one."""
        task, again = requested_task(self._files, snapshot, self.continued.goals, asked)
        if again:
            raise GuardrailRefused(
                f"task {task.task_id} does that already, and is {task.phase}; the screen of tasks "
                "and plimsoll task resume or cancel it"
            )
        return task

    def store(self, asked: TaskRequest, snapshot: Snapshot) -> "ResumedTask":
        """Store a task without a plan, whose plans `asked.by` approves as they come.

        Returns what then works on it. Raises GuardrailRefused where it is impossible, needless or
        not allowed, and as `TaskFiles.store`.
        """
        self.continued.refuse_barred()
        task, rules = self._new(asked, snapshot), OPERATIONS[asked.operation]
        if rules.needless(task, snapshot, self.continued.goals):
            raise GuardrailRefused(f"{rules.verified(task)} already; nothing to do")
        return ResumedTask(
            tasks=self.continued,
            task=self._files.store(task),
            by=asked.by,
            approved="",
            approves_all=True,
        )

    def request(self, proposed: "ProposedTask", by: str) -> "ResumedTask":
        """Store a task with its plan, which `by` approves; what then works on it.

        A task without one waits for approval if anything has to move after all. Raises
        GuardrailRefused where another task has been requested since, and ConfigError and as
        `Bucket` where it cannot be stored.
        """
        files, asked, found = self._files, proposed.task, proposed.found
        refuse_conflicts(files.of(asked.cluster_id), asked.named)
        now_ms = self.continued.now_ms()
        task = files.add(asked.cluster_id, asked.operation, asked.brokers, by, now_ms, asked.onto)
        if found is None:
            return ResumedTask(tasks=self.continued, task=task, by=by, approved="")

        def approved(of: BrokerTask) -> BrokerTask:
            of = of.planned(found.entry, now_ms, found.note)
            of = of.with_plan(approved_by=by, approved_at_ms=now_ms)
            return of.entered(TaskPhase.APPROVED, now_ms, f"by {by}")

        with files.working_on(task.task_id) as hold:
            files.keep_plan(task, found.plan, hold)
            task = files.change(task.task_id, approved, hold)
        return ResumedTask(tasks=self.continued, task=task, by=by, approved=found.plan.hash)

    def markable(
        self, named: NamedBrokers, snapshot: Snapshot, *, excluded: bool
    ) -> tuple[BrokerId, ...]:
        """Ids of the brokers that can be excluded, or included; also dead ones that are marked.

        Raises ConfigError for others, and GuardrailRefused where an open task, or another mark,
        forbids it.
        """
        files, cluster_id = self._files, snapshot.header.cluster_id
        members: Sequence[Broker] = snapshot.header.brokers
        if excluded:
            brokers = named.among(members)
            exclusion.refuse_marking(files, cluster_id, brokers)
            return brokers
        live = [b for b in members if b.state is not BrokerState.DEAD]
        known = exclusion.includable(live, files.marks(cluster_id), cluster_id)
        brokers = named.among(known, noun=exclusion.INCLUDABLE)
        exclusion.refuse_marking(files, cluster_id, brokers, away={*brokers} - {b.id for b in live})
        return brokers

    def exclude(self, cluster_id: str, brokers: Sequence[BrokerId], by: str) -> str:
        """Keep new replicas away from brokers, and cordon them; moves nothing.

        brokers: as `markable` returns them. Returns what became of the cordons, and of brokers that
        are draining, in sentences.
        """
        continued, said = self.continued, list[str]()
        marks = exclusion.exclude(self._files, cluster_id, brokers, by=by, at_ms=continued.now_ms())
        said += exclusion.draining_notes(marks, cluster_id, brokers)
        try:
            with continued.connect() as executor:
                cordon(executor, brokers, continued.journal_dir, cluster_id, by, said.append)
        except PlimsollError as exc:
            said.append(f"not cordoned in Kafka: {exc}; plimsoll itself puts no replicas there")
        return "; ".join(said)

    def include(self, cluster_id: str, brokers: Sequence[BrokerId], by: str) -> str:
        """Let brokers take new replicas again, and end the cordons that plimsoll has set.

        brokers: as `markable` returns them. Returns what became of the cordons, in sentences.
        Raises as `Executor.uncordon` does; the marks then stay.
        """
        files, journals, said = self._files, self.continued.journal_dir, list[str]()
        with self.continued.connect() as executor:
            exclusion.include(
                executor, files, journals, cluster_id, brokers, by=by, say=said.append
            )
        return "; ".join(said)

    # ---- work

    def waiting_plan(self, task_id: str) -> Plan | None:
        """The plan of a task that waits for its approval, if one does.

        Raises ConfigError where it cannot be read.
        """
        task = self._files.newest(task_id)
        plan = task.plan
        if plan is None or plan.approved_at_ms is not None:
            return None
        return self._files.read_plan(task, plan.plan_hash)

    def resumed(self, task_id: str, by: str, approved: str = "") -> "ResumedTask":
        """A task to be worked on because a person asks for it.

        approved: the hash of the plan that the person approves; empty for none. Raises ConfigError
        where the task is over, and GuardrailRefused where a process works on it, or tasks are
        barred.
        """
        self.continued.refuse_barred()
        task = self._files.newest(task_id)
        if not task.is_open:
            raise ConfigError(f"task {task_id} is {task.phase}; nothing is left to resume")
        if worker := self._files.worker_of(task_id):
            raise GuardrailRefused(
                f"{worker} works on task {task_id}; wait until it ends, or cancel the task"
            )
        return ResumedTask(tasks=self.continued, task=task, by=by, approved=approved)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedTask:
    """A task that is not kept yet, and its first plan."""

    task: BrokerTask
    found: FoundPlan | None
    """None where nothing has to move, and the task only sets or ends marks."""
    note: str
    """On the plan; without one, what the task does."""


def _planning_only(snapshot: Snapshot) -> TaskSite:
    """Where a plan is made and nothing is executed."""
    return TaskSite(
        snapshot=snapshot,
        observe=lambda: snapshot,
        steering=Steering(),
        watch=lambda _progress: None,
        say=lambda _words: None,
        moves_in_flight=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedTask:
    """One task that a person resumes."""

    tasks: ContinuedTasks
    task: BrokerTask
    by: str
    """Who resumes it."""
    approved: str
    """The hash of the plan that this person approves; empty for none."""
    approves_all: bool = False
    """Whether this person has approved whatever plan the task needs, by requesting it."""
    approving: Callable[[str], None] = lambda _plan_hash: None
    """Called before this person approves a plan, with its hash; raises PlimsollError to refuse."""

    @property
    def title(self) -> str:
        """The task in words: `task remove-1 (remove broker 4)`."""
        return f"task {self.task.task_id} ({self.task.words()})"

    def work(self, site: TaskSite) -> str:
        """Work on it to its end; how it ended, in words. Raises PlimsollError."""
        return self.tasks.work(self.task, site, self._approve, operator=self.by)

    def _approve(self, task: BrokerTask, plan: Plan) -> str:
        """Whoever approved the first plan approved the request; no other plan is approved."""
        if task.approved:
            return approver(task)
        if not self.approves_all and plan.hash != self.approved:
            return ""
        self.approving(plan.hash)
        return self.by
