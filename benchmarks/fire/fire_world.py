"""The world of one seed: a cluster, hosts that act on it, and everything that fails."""

import math
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

from benchmarks.fire.actors import Actor, Actors, Dead
from benchmarks.fire.auto_invariants import AutoInvariants
from benchmarks.fire.invariants import Invariants, Violation
from benchmarks.fire.scenarios import (
    BROKERS,
    CLUSTER_ID,
    HEALED_S,
    ONLY_WITH_BUCKET,
    RACKS,
    FaultKind,
    PlannedFault,
    Scenario,
)
from benchmarks.fire.task_invariants import TaskInvariants
from benchmarks.fire.world_admin import (
    FORWARDED_S,
    TIMEOUT_S,
    Change,
    Passage,
    StaleMetadata,
    WorldAdmin,
)
from benchmarks.fire.world_bucket import MemoryBucket, WorldS3
from benchmarks.fire.world_files import Disk, Flip, simulated
from benchmarks.fire.world_loop import LoopProcess
from benchmarks.fire.world_tasks import TaskProcess
from clients.s3 import Bucket, S3Settings
from control.compose import IDLE_LEASE_S, SPARE_LEASE_S
from control.tasks.broker_task import BrokerTask, TaskPhase
from executor.client.kafka_admin import latest_effect_s, longest_request_s, slowest_change_s
from executor.executor import Executor
from executor.journal.archive import archive_in
from executor.journal.lease import LeaseSettings
from executor.journal.run_history import PastRun, past_run, read_content
from executor.journal.run_journal import CORDON, run_paths
from executor.run.operator_control import Steering
from executor.run.rollback_plan import restores
from executor.timing import RunLimits, Timing
from lab.simulated_cluster.cluster import SimulatedCluster
from lab.simulated_cluster.cluster_state import SimulatedBroker, SimulatedPartition, steady
from model.errors import ConfigError, ExecutionStopped, GuardrailRefused, PlimsollError
from model.ids import BrokerId
from model.plan.plan import read_plan
from model.run import MoveState, RunReport, RunState

_BEGIN_S: Final = 1_800_000_000.0
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - files of a world are made in a folder of their own
_MOST_TRIES: Final = 6
_FINAL_TRIES: Final = 8
_BETWEEN_S: Final = 12.0
_REFUSED_S: Final = 40.0
_STUCK_S: Final = 4000.0
"""A world that takes longer is stuck."""
_DAY_S: Final = 24 * 3600.0
_REQUEST_S: Final = longest_request_s(TIMEOUT_S)
_LONGEST_SEARCH_S: Final = slowest_change_s(TIMEOUT_S) - TIMEOUT_S
_STANDING_BY: Final = LeaseSettings(IDLE_LEASE_S, SPARE_LEASE_S)
_SPANS: Final = (
    FaultKind.DISK_FULL,
    FaultKind.CLUSTER_AWAY,
    FaultKind.ONE_WAY,
    FaultKind.BUCKET_AWAY,
    FaultKind.METADATA_LAG,
)
_OF_CHANGES: Final = (
    FaultKind.REQUEST_LOST,
    FaultKind.ANSWER_LOST,
    FaultKind.SLOW_REQUEST,
    FaultKind.LATE_REQUEST,
)
_REST: Final = (RunState.DONE, RunState.STOPPED, RunState.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one world was like."""

    violation: Violation | None
    met: Counter[FaultKind]
    """Faults that have happened."""
    crashes: int
    resumes: int
    rollbacks: int
    takeovers: int
    tasks: int
    """Tasks that were requested."""
    continued: int
    """Processes that worked on a task of an earlier one."""
    task_takeovers: int
    """Tasks that another host has continued, once their leases had ended."""
    loop_runs: int
    """Runs that a loop of `--auto` has begun."""
    checks: int
    crowded: int
    """Requested lists between those before and after a move that lie in fewer racks."""
    ended: str
    """How the newest run ended; empty where the world was over before."""
    seconds: float
    """Of simulated time."""
    trace: str
    """Digest of everything that was sent, by time: equal for equal seeds."""


@dataclass(slots=True, eq=False)
class Host:
    """One host: a process at a time, its disk, its clocks and its network."""

    world: "World"
    number: int
    folder: Path
    rng: random.Random
    actor: Actor = field(init=False)
    disk: Disk = field(init=False)
    timing: Timing = field(init=False)
    steering: Steering = field(init=False, default_factory=Steering)
    is_up: bool = False
    killed: str = ""
    """How its process was killed; empty while it lives."""
    life: int = 0
    """Number of the newest process."""
    cut_short: set[int] = field(default_factory=set)
    """Processes that were killed, or frozen for a while."""
    steps: int = 0
    changes: int = 0
    bucket_calls: int = 0
    death_at: dict[int, FaultKind] = field(default_factory=dict)
    """By number of the step."""
    fault_of_change: dict[int, PlannedFault] = field(default_factory=dict)
    fault_of_bucket: dict[int, FaultKind] = field(default_factory=dict)
    cut: Counter[FaultKind] = field(default_factory=Counter)
    """Networks that are cut at present, with the number of faults that do so."""
    stale: StaleMetadata | None = None
    """Metadata that lags."""

    def __post_init__(self) -> None:
        rate = self.world.scenario.rates[self.number]
        cluster = self.world.cluster
        self.clock_s = self.latest_s = self.world.scenario.clocks_s[self.number]
        self.timing = Timing(
            now_s=lambda: cluster.now_s + self.clock_s,
            pause=lambda seconds: self.sleep(seconds / rate),
            steady_s=lambda: (cluster.now_s - _BEGIN_S) * rate,
        )
        self.disk = Disk(
            self.folder,
            self.rng,
            self.step,
            now_s=self.timing.now_s,
            met=self._met_on_disk,
            replaced=self._replaced,
        )

    @property
    def name(self) -> str:
        return f"host {self.number}"

    clock_s: float = 0.0
    latest_s: float = 0.0
    """The most by which its wall clock has been ahead."""

    # ---- life and death

    def check(self) -> None:
        """Raise Dead where the process was killed, or the world has ended."""
        if self.killed or self.world.is_over:
            raise Dead

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.check()
        self.world.actors.sleep(self.actor, seconds)
        self.check()

    def step(self) -> None:
        """Take a step, at which the process may die."""
        self.check()
        number, self.steps = self.steps, self.steps + 1
        if kind := self.death_at.get(number):
            self.kill(kind)
        self.check()

    def kill(self, kind: FaultKind) -> None:
        """Kill the process."""
        if self.is_up and not self.killed and not self.world.is_healed:
            self.killed = kind
            self.cut_short.add(self.life)
            self.world.met[kind] += 1

    # ---- the network

    def passage(self, *, changes: bool) -> Passage:
        """How the next request passes the network."""
        if self.cut[FaultKind.CLUSTER_AWAY]:
            return Passage(None, None)
        back_s = None if self.cut[FaultKind.ONE_WAY] else 0.0
        if not changes:
            return Passage(0.0, back_s)
        number, self.changes = self.changes, self.changes + 1
        fault = self.fault_of_change.get(number)
        if fault is None or self.world.is_healed:
            return Passage(0.0, back_s)
        self.world.met[fault.kind] += 1
        match fault.kind:
            case FaultKind.REQUEST_LOST:
                return Passage(None, None)
            case FaultKind.ANSWER_LOST:
                return Passage(0.0, None)
            case FaultKind.LATE_REQUEST:
                return Passage(self.rng.uniform(TIMEOUT_S + 0.5, FORWARDED_S), 0.0)
        search_s = self.rng.choice((0.0, self.rng.uniform(0.0, _LONGEST_SEARCH_S)))
        return Passage(self.rng.uniform(0.5, 5.0), self.rng.uniform(0.0, 4.0), search_s)

    def lag(self) -> StaleMetadata | None:
        """What the broker that answers the next request knows, if its metadata lags."""
        # Others answer, too.
        return self.stale if self.stale is not None and self.rng.random() < 0.7 else None

    def sent(self, change: Change) -> None:
        """Check a changing call as it is sent."""
        world = self.world
        world.note(self.name, change.call, tuple(change.about.items()), change.extra)
        folder = str(self.folder)
        synced = {
            Path(n).stem: self.disk.intact(n, c)
            for n, c in self.disk.durable.items()
            if n.endswith(".jsonl") and os.path.dirname(n) == folder
        }
        # The newest run; a cordon may have been journalled since a run that is resumed.
        run = max((r for r in synced if not r.endswith(f"-{CORDON}")), default="")
        if world.auto is not None and change.call == "reassign" and run:
            world.auto.changes(self.name, run)
        places, since = [synced], ""
        if world.has_bucket:
            places.append(world.bucket.journals)
            # Of runs that others have made, a host fetches those of the last day, by its own clock.
            day_ago = datetime.fromtimestamp(world.cluster.now_s + self.latest_s - _DAY_S, UTC)
            since = f"{day_ago:%Y%m%dT%H%M%S}"
        world.invariants.sent(self.name, change, run, places, since)
        if world.has_bucket:
            world.invariants.held(self.name, world.bucket.holder, f"{change.call} is sent")

    def delivered(self, change: Change, after_s: float, life: int) -> None:
        """Check a changing call as it arrives, so many seconds after a process sent it."""
        world = self.world
        world.note(self.name, change.call, "arrives")
        if after_s >= TIMEOUT_S:
            world.invariants.late = True
        # No lease outlasts what a broker forwards for a process that is gone; one that lives waits.
        if world.has_bucket and (after_s <= _REQUEST_S or life not in self.cut_short):
            what = f"{change.call} arrives after {after_s:.2f} s"
            world.invariants.held(self.name, world.bucket.holder, what)
        world.cluster.after(0.0, world.invariants.placed)

    def next_bucket_fault(self) -> FaultKind | None:
        """The fault of the next call of the bucket."""
        if self.cut[FaultKind.BUCKET_AWAY]:
            return FaultKind.BUCKET_AWAY
        number, self.bucket_calls = self.bucket_calls, self.bucket_calls + 1
        fault = self.fault_of_bucket.get(number)
        if fault is None or self.world.is_healed:
            return None
        self.world.met[fault] += 1
        return fault

    def _met_on_disk(self, name: str) -> None:
        self.world.met[FaultKind(name)] += 1

    # ---- processes

    def _replaced(self, path: str, before: bytes | None) -> None:
        """Check a task that was replaced on the disk, unless the bucket has the truth."""
        world = self.world
        if world.tasks is not None and not world.has_bucket:
            there = Path(path)
            if there.suffix == ".json" and there.parent.name == "tasks":
                world.tasks.written(before, there.read_bytes())

    def bucket(self) -> Bucket | None:
        """A new process's client of the bucket; None without one."""
        world = self.world
        if not world.has_bucket:
            return None
        wire = WorldS3(
            world.bucket,
            sleep=self.sleep,
            step=self.step,
            fault=self.next_bucket_fault,
            after=world.cluster.after,
        )
        return Bucket(S3Settings(bucket="fire"), lambda _: cast("Any", wire))

    def tasks(self, *, patient: bool = False) -> TaskProcess | None:
        """A new process that works on tasks; None in a world without any."""
        world, request = self.world, self.world.scenario.task
        if request is None or world.tasks is None:
            return None
        return TaskProcess(
            scenario=world.scenario,
            request=request,
            name=self.name,
            folder=self.folder,
            timing=self.timing,
            executor=self.executor(),
            admin=WorldAdmin(world.cluster, self),
            bucket=self.bucket(),
            steering=self.steering,
            holder_of=lambda task_id: world.bucket.workers.get(task_id, ""),
            invariants=world.tasks,
            patient=patient,
        )

    def loop(self, way: str) -> LoopProcess | None:
        """A new process with a loop of `--auto`; None in a world without any."""
        world = self.world
        if world.auto is None:
            return None
        world.auto.process_began(self.name)
        return LoopProcess(
            scenario=world.scenario,
            name=self.name,
            folder=self.folder,
            timing=self.timing,
            cluster=world.cluster,
            executor=self.executor,
            is_cut=lambda: bool(self.cut[FaultKind.CLUSTER_AWAY] or self.cut[FaultKind.ONE_WAY]),
            is_healed=lambda: world.is_healed,
            invariants=world.auto,
            steers=self._steers,
            note=world.note,
            reported=self._has_reported,
            resumes=way == "resume",
        )

    def _steers(self, steering: Steering) -> None:
        self.steering = steering

    def executor(self, timing: Timing | None = None) -> Executor:
        """The executor of a new process, which knows only its disk and the bucket.

        timing: of its runs, if they do more than to wait while they pause.
        """
        world = self.world
        archive = None
        if (bucket := self.bucket()) is not None:
            archive = archive_in(
                bucket,
                self.timing,
                call_s=longest_request_s(TIMEOUT_S),
                slowest_s=slowest_change_s(TIMEOUT_S),
                late_s=latest_effect_s(TIMEOUT_S),
                leases=_STANDING_BY if world.scenario.stands_by else LeaseSettings(),
                holder=self.name,
            )
        scenario = world.scenario
        limits = RunLimits(
            moves_in_flight=scenario.moves_in_flight,
            throttle_bytes_per_s=scenario.throttle,
            poll_s=1.0,
            health_s=2.0,
        )
        guard = archive.lease.need if archive is not None else lambda: None
        return Executor(
            WorldAdmin(world.cluster, self, guard),
            limits=limits,
            timing=timing or self.timing,
            archive=archive,
        )

    def live(self, actor: Actor) -> None:
        """One process after the other, until the run has ended or patience has."""
        self.actor = actor
        for number in range(_MOST_TRIES):
            way = self.world.scenario.ways[number]
            if self._lives(partial(self._act, way)) or self.world.is_over:
                return

    def settle(self, actor: Actor) -> None:
        """Come to rest, now that nothing fails any more."""
        self.actor = actor
        for _ in range(_FINAL_TRIES):
            if self._lives(self._rest) or self.world.is_over:
                return
        damaged = [flip.path.stem for flip in self.disk.flips if flip.is_there]
        if any(stem in self.world.ended for stem in damaged):
            self.world.ended = "a damaged file is named"
            return
        self.world.invariants.broken("every run comes to rest", self.world.ended)

    def _lives(self, act: Callable[[], bool]) -> bool:
        """The life of one process; whether it was the last one."""
        self.is_up, self.steering, self.life = True, Steering(), self.life + 1
        try:
            try:
                if act():
                    return True
                self.sleep(_BETWEEN_S)
            except GuardrailRefused as exc:
                self.world.ended = str(exc)
                self.sleep(_REFUSED_S)
            except PlimsollError as exc:
                self.world.ended = str(exc)
                self.sleep(_BETWEEN_S)
        except Dead:
            self.disk.die()
            self._die()
        except Exception as exc:  # noqa: BLE001 - whatever it is, it is a finding
            self.world.invariants.broken("no unexpected error", repr(exc))
        finally:
            self.is_up = False
        return False

    def _die(self) -> None:
        if self.world.is_over:
            return
        self.world.crashes += 1
        if self.killed in (FaultKind.POWER_LOSS, FaultKind.POWER_AT_STEP):
            self.disk.lose_power()
        self.killed, self.is_up = "", False
        self.world.readable(self)
        self.world.actors.sleep(self.actor, self.rng.uniform(0.1, 30.0))

    def _act(self, way: str) -> bool:
        """Do about the run what its state asks for; whether nothing is left to do."""
        if (tasks := self.tasks()) is not None:
            return tasks.act(way)
        if (loop := self.loop(way)) is not None:
            return loop.act()
        executor = self.executor()
        runs = executor.runs(self.folder, CLUSTER_ID)
        if not runs:
            report = self._reported(executor.execute, self.world.scenario.plan)
            return report.state is RunState.DONE
        newest = runs[-1]
        if not newest.is_unfinished:
            return True
        if way == "resume" or restores(newest.plan):
            self.world.resumes += 1
            return self._reported(executor.resume).state is RunState.DONE
        return self._roll_back(executor)

    def _roll_back(self, executor: Executor) -> bool:
        back, _ = executor.plan_rollback(self.folder, None)
        if not back.moves:
            executor.clean_up(self.folder)
            return True
        self.world.rollbacks += 1
        return self._reported(executor.execute, back).state is RunState.DONE

    def _rest(self) -> bool:
        world, tasks = self.world, self.tasks(patient=True)
        if tasks is None:
            return self._run_rests()
        try:
            task = tasks.rest()
        except ExecutionStopped:
            # Without an excuse, nothing may be left that only a person could solve.
            task = tasks.newest()
            if task is None or not (world.invariants.stolen or world.invariants.is_excused):
                raise
        if task is not None and task.is_open and task.phase is not TaskPhase.FAILED:
            return False
        if not self._run_rests():
            return False
        world.task_rests(task, tasks.marks())
        return True

    def _run_rests(self) -> bool:
        executor, world = self.executor(), self.world
        runs = executor.runs(self.folder, CLUSTER_ID)
        if not runs:
            executor.clean_up(self.folder)
            world.ended = "no run has begun"
            return True
        if runs[-1].is_unfinished:
            world.resumes += 1
            report = self._reported(executor.resume)
            if report.state not in _REST:
                return False
            if report.state is not RunState.DONE and not world.has_excuse(report):
                return False
        executor.clean_up(self.folder)
        newest = executor.runs(self.folder, CLUSTER_ID)[-1]
        world.rests(newest)
        return True

    def _reported(self, run: Callable[..., RunReport], *plan: Any) -> RunReport:
        report = run(*plan, journal_dir=self.folder, observe=lambda _: None, steering=self.steering)
        self._has_reported(report)
        return report

    def _has_reported(self, report: RunReport) -> None:
        self.world.reported(self, report)
        self.world.readable(self)


class World:
    """Everything that a scenario describes, until it has come to rest."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.scenario = scenario
        self.has_bucket = scenario.hosts > 1
        self.cluster = _cluster(scenario)
        self.actors = Actors(self.cluster)
        self.bucket = MemoryBucket()
        self.invariants = Invariants(scenario, self.cluster)
        self.tasks = None if scenario.task is None else self._tasks(scenario.task.broker)
        self.auto = (
            None
            if scenario.auto is None
            else AutoInvariants(
                invariants=self.invariants, cluster=self.cluster, policy=scenario.auto
            )
        )
        self.met: Counter[FaultKind] = Counter()
        self.crashes = self.resumes = self.rollbacks = 0
        self.ended = ""
        self._trace = sha256()
        self._undone = folder / "undone"
        """Folder for files without the bits that have flipped."""
        self._undone.mkdir()
        self._read: dict[Path, bytes] = {}
        """Journals that were found readable, as they were then."""
        rng = random.Random(-1 - scenario.seed)
        self.hosts = [self._host(n, folder, rng.random()) for n in range(scenario.hosts)]
        for fault in scenario.faults:
            self._arm(fault)

    def _host(self, number: int, folder: Path, seed: float) -> Host:
        place = folder / str(number)
        place.mkdir()
        return Host(self, number, place, random.Random(seed))

    @property
    def is_over(self) -> bool:
        """Whether an invariant was violated, or the world is stuck."""
        is_stuck = self.cluster.now_s - _BEGIN_S > _STUCK_S
        if is_stuck:
            self.invariants.broken("every run comes to rest", "the world is stuck")
        return self.invariants.violation is not None

    @property
    def is_healed(self) -> bool:
        """Whether nothing fails any more."""
        return self.cluster.now_s - _BEGIN_S >= HEALED_S

    def run(self) -> Outcome:
        """Let everything happen."""
        with simulated(self._disk_of):
            for host in self.hosts:
                begins_s = _BEGIN_S + self.scenario.begins_s[host.number]
                host.actor = self.actors.add(host.live, begins_s)
            self.actors.run()
            if not self.is_over:
                # Requests that were sent arrive, and leases end.
                rest_s = max(_BEGIN_S + HEALED_S, self.cluster.now_s) + 60.0
                last = self.hosts[self.scenario.seed % len(self.hosts)]
                self.actors = Actors(self.cluster)
                last.actor = self.actors.add(last.settle, rest_s)
                self.actors.run()
        for error in self.actors.errors:
            raise error
        return Outcome(
            violation=self.invariants.violation,
            met=self.met,
            crashes=self.crashes,
            resumes=self.resumes,
            rollbacks=self.rollbacks,
            takeovers=self.bucket.takeovers,
            tasks=len(self.tasks.acknowledged) if self.tasks is not None else 0,
            continued=self.tasks.continued if self.tasks is not None else 0,
            task_takeovers=self.bucket.task_takeovers,
            loop_runs=self.auto.runs if self.auto is not None else 0,
            checks=self.invariants.checks,
            crowded=self.invariants.crowded,
            ended=self.ended,
            seconds=self.cluster.now_s - _BEGIN_S,
            trace=self._trace.hexdigest(),
        )

    def _tasks(self, empties: BrokerId) -> TaskInvariants:
        found = TaskInvariants(invariants=self.invariants, place=self._task, empties=empties)
        self.bucket.task_written = found.written
        return found

    def _task(self, task_id: str) -> bytes | None:
        """The newest state of a task, where the truth about it lies."""
        if self.has_bucket:
            return self.bucket.task(task_id)
        path = self.hosts[0].folder / "tasks" / f"{task_id}.json"
        return path.read_bytes() if path.exists() else None

    def note(self, *what: object) -> None:
        """Add to the trace."""
        self._trace.update(f"{self.cluster.now_s:.6f} {what}\n".encode())

    # ---- what was found

    def readable(self, host: Host) -> None:
        """Check the journals and tasks of a host, none of whose processes is writing."""
        if self.tasks is not None:
            self.tasks.kept({host.name: host.folder / "tasks"})
        for flip in host.disk.flips:
            if flip.is_there:
                self._disbelieved(flip)
        for path in run_paths(host.folder):
            data = path.read_bytes()
            if host.disk.flipped(path) or host.disk.flipped(path.with_suffix(".plan")):
                continue
            if self._read.get(path) == data:
                continue
            self._read[path] = data
            try:
                content = read_content(path)
                if content.records:
                    past_run(host.folder, CLUSTER_ID, path.stem)
            except ConfigError as exc:
                self.invariants.broken("a journal is readable after any crash", str(exc))
                return
            lost = "; ".join(str(d) for d in content.losses)
            self.invariants.check(not lost, "a journal is readable after any crash", lost)
            # What a power loss has left of a record is none; whoever reopens the file cuts it off.
            synced = host.disk.durable.get(str(path), b"").rpartition(b"\n")
            known = data.startswith(b"".join(synced[:2]))
            self.invariants.check(known, "no synced record lost", path.name)

    def _disbelieved(self, flip: Flip) -> None:
        """Check that only intact records of a damaged file are believed."""
        clean = self._undone / flip.path.name
        clean.write_bytes(flip.undone(flip.path.read_bytes()))
        found, known = _believed(flip.path), _believed(clean)
        new = [words for words in found if words not in known]
        self.invariants.check(not new, "no flipped bit is believed", f"{flip.path.name}: {new}")

    def reported(self, host: Host, report: RunReport) -> None:
        """Check a run that has ended by itself."""
        self.ended = f"{report.state}: {report.reason}"
        self.note(report.state, [m.state for m in report.moves])
        # A host that has lost its lease reports while the next one continues the run, with settings
        # of its own, which are checked at the end of that one.
        others_run = self.bucket.holder not in ("", host.name)
        told = "plimsoll cleanup" in self.ended or "cannot be" in self.ended
        if not (others_run or told):
            self.invariants.clean(f"the run {report.run_id} {self.ended}")

    def has_excuse(self, report: RunReport) -> bool:
        """Whether a run that is not complete says why, and what is left to do."""
        ended = [MoveState.DONE, MoveState.DROPPED]
        if "has changed since the plan was made" in report.reason:
            ended.append(MoveState.PLANNED)
        return bool(report.reason) and all(m.state in ended for m in report.moves)

    def task_rests(self, task: BrokerTask | None, marks: Mapping[BrokerId, str]) -> None:
        """Check the newest task once the world is at rest."""
        if task is None or self.tasks is None:
            self.ended = "no task was requested"
            return
        self.ended = f"task {task.phase}: {task.note}"
        self.tasks.at_rest(task.task_id, task.phase, task.note, marks)

    def rests(self, newest: PastRun) -> None:
        """Check the world once it is at rest."""
        invariants = self.invariants
        undoes = restores(newest.plan)
        self.ended = f"{'rolled back, ' if undoes else ''}{newest.state}: {newest.reason}"
        invariants.placed()
        invariants.clean("at rest")
        for host in self.hosts:
            self.readable(host)
        states = {pid: (str(at.state), undoes) for pid, at in newest.moves.items()}
        invariants.ends(states, newest.run_id, newest.plan.hash)
        moving = [str(p.id) for p in self.cluster.partitions.values() if p.is_moving]
        if not invariants.stolen and not invariants.is_excused:
            invariants.check(not moving, "nothing moves at rest", ", ".join(moving))

    # ---- faults

    def _arm(self, fault: PlannedFault) -> None:
        """Let a fault happen when it is due."""
        host = self.hosts[fault.host]
        if fault.kind in (FaultKind.BROKER_DEAD, FaultKind.BROKER_FLAPS):
            self._arm_broker(fault)
        elif fault.kind in (FaultKind.BROKER_SLOW, FaultKind.DISK_FILLS):
            ends_s = min(HEALED_S, fault.at_s + 4 * fault.takes_s)
            self.cluster.after(fault.at_s, partial(self._strain, fault))
            self.cluster.after(ends_s, partial(self._relieve, fault))
        elif fault.kind in _SPANS:
            ends_s = min(HEALED_S, fault.at_s + fault.takes_s)
            self.cluster.after(fault.at_s, partial(self._span, host, fault.kind, 1))
            self.cluster.after(ends_s, partial(self._span, host, fault.kind, -1))
        elif not self._arm_numbered(host, fault):
            self.cluster.after(fault.at_s, partial(self._happen, host, fault))

    @staticmethod
    def _arm_numbered(host: Host, fault: PlannedFault) -> bool:
        """Let a fault happen at a step, write, sync or call; False if it has a time instead."""
        match fault.kind:
            case FaultKind.KILL_AT_STEP | FaultKind.POWER_AT_STEP:
                host.death_at[fault.nth * 4 + fault.which % 4] = fault.kind
            case FaultKind.WRITE_ERROR:
                host.disk.failing_writes.add(fault.nth)
            case FaultKind.SYNC_ERROR:
                host.disk.failing_syncs.add(fault.nth)
            case kind if kind in _OF_CHANGES:
                host.fault_of_change[fault.nth] = fault
            case kind if kind in ONLY_WITH_BUCKET:
                host.fault_of_bucket[fault.nth] = fault.kind
            case _:
                return False
        return True

    def _happen(self, host: Host, fault: PlannedFault) -> None:
        match fault.kind:
            case FaultKind.KILL | FaultKind.POWER_LOSS:
                self._kill(host, fault.kind)
            case FaultKind.FREEZE:
                self._freeze(host, fault)
            case FaultKind.BIT_FLIP:
                self._flip(host, fault)
            case FaultKind.CLOCK_STEP:
                self._step_clock(host, fault)
            case FaultKind.FOREIGN:
                self._steal(fault)
            case _:
                self._steer(host, fault)

    def _met(self, fault: PlannedFault) -> None:
        self.met[fault.kind] += 1

    def _kill(self, host: Host, kind: FaultKind) -> None:
        if host.is_up:
            host.kill(kind)
            host.actor.wake_s = min(host.actor.wake_s, self.cluster.now_s)

    def _freeze(self, host: Host, fault: PlannedFault) -> None:
        if host.is_up:
            self._met(fault)
            host.cut_short.add(host.life)
            until_s = self.cluster.now_s + 2 * fault.takes_s
            host.actor.wake_s = max(host.actor.wake_s, until_s)

    def _flip(self, host: Host, fault: PlannedFault) -> None:
        if host.disk.flip(fault.which):
            self._met(fault)
            self.invariants.flipped = True

    def _span(self, host: Host, kind: FaultKind, by: int) -> None:
        """Begin or end what lasts for a while."""
        host.cut[kind] += by
        host.disk.full = host.cut[FaultKind.DISK_FULL] > 0
        if kind is FaultKind.METADATA_LAG:
            known = self.cluster
            host.stale = StaleMetadata(known.view, known.shown()) if host.cut[kind] else None
        if kind is not FaultKind.DISK_FULL:
            # That one counts when a write meets it.
            self.met[kind] += max(0, by)

    def _arm_broker(self, fault: PlannedFault) -> None:
        broker = _broker_of(fault)
        times = 3 if fault.kind is FaultKind.BROKER_FLAPS else 1
        length_s = fault.takes_s / (2 * times - 1)
        for number in range(times):
            begins_s = fault.at_s + 2 * number * length_s
            ends_s = min(HEALED_S, begins_s + length_s)
            if begins_s < HEALED_S:
                self.cluster.after(begins_s, partial(self._kill_broker, broker, fault))
                self.cluster.after(ends_s, partial(self._revive, broker))

    def _kill_broker(self, broker: BrokerId, fault: PlannedFault) -> None:
        if self.cluster.brokers[broker].alive:
            self._met(fault)
            self.cluster.kill(broker)
            if self.auto is not None:
                self.auto.dead_since_s[broker] = self.cluster.now_s

    def _strain(self, fault: PlannedFault) -> None:
        """Slow down the network of a broker, or leave little room on its disk."""
        broker = self.cluster.brokers[_broker_of(fault)]
        self._met(fault)
        if fault.kind is FaultKind.BROKER_SLOW:
            broker.network_bytes_per_s = 2e6
        else:
            room = (0.01, 0.5, 1.5)[fault.which % 3] * self.scenario.log_bytes
            broker.disk_bytes = self.cluster.used_bytes(broker.id) + room

    def _relieve(self, fault: PlannedFault) -> None:
        broker = self.cluster.brokers[_broker_of(fault)]
        if fault.kind is FaultKind.BROKER_SLOW:
            broker.network_bytes_per_s = SimulatedBroker(id=broker.id).network_bytes_per_s
            return
        broker.disk_bytes = math.inf
        if not broker.alive:
            self._revive(broker.id)

    def _revive(self, broker: BrokerId) -> None:
        self.cluster.revive(broker)
        if self.auto is not None:
            self.auto.dead_since_s.pop(broker, None)

    def _step_clock(self, host: Host, fault: PlannedFault) -> None:
        self._met(fault)
        by_s = (-3600.0, -30.0, 30.0, 86400.0)[fault.which % 4]
        host.clock_s += by_s
        host.latest_s = max(host.latest_s, host.clock_s)
        if self.auto is not None:
            self.auto.is_clock_off |= by_s > 3600.0

    def _steal(self, fault: PlannedFault) -> None:
        """Someone else moves a partition of the plan, within its racks."""
        moves = self.scenario.plan.moves
        partition = self.cluster.partitions[moves[fault.which % len(moves)].id]
        first = partition.target[0]
        target = [BrokerId((first + 2) % BROKERS + 1), *partition.target[1:]]
        self._met(fault)
        self.invariants.stolen.add(partition.id)
        self.cluster.reassign(partition.id, target)

    def _steer(self, host: Host, fault: PlannedFault) -> None:
        if not host.is_up:
            return
        self._met(fault)
        steering = host.steering
        match fault.kind:
            case FaultKind.STOP:
                steering.stop()
            case FaultKind.ABORT:
                steering.abort()
            case FaultKind.PAUSE:
                steering.pause()
                self.cluster.after(fault.takes_s, steering.resume)
            case FaultKind.RATE:
                steering.throttle((20, 60, 100)[fault.which % 3] * 10**6)

    def _disk_of(self, path: str) -> Disk | None:
        return next((h.disk for h in self.hosts if path.startswith(str(h.folder))), None)


def _believed(path: Path) -> list[str]:
    """What is read from a plan, or from each record of a journal."""
    try:
        if path.suffix == ".plan":
            return [read_plan(path).hash]
        return [record.model_dump_json() for record in read_content(path).records]
    except ConfigError:
        return []


def _broker_of(fault: PlannedFault) -> BrokerId:
    """The broker that meets a fault."""
    return BrokerId(1 + fault.which % BROKERS)


def _cluster(scenario: Scenario) -> SimulatedCluster:
    return SimulatedCluster(
        CLUSTER_ID,
        [SimulatedBroker(id=BrokerId(b), rack=RACKS[b - 1]) for b in range(1, BROKERS + 1)],
        [
            SimulatedPartition(
                id=move.id,
                topic_id=move.topic_id,
                storage=move.storage,
                replicas=list(move.replicas_before),
                leader=move.leader_before,
                bytes_in=steady(scenario.producers),
                log_bytes=scenario.log_bytes,
            )
            for move in scenario.plan.moves
        ],
        now_s=_BEGIN_S,
        tick_s=5.0,
    )


@contextmanager
def _folder() -> Iterator[Path]:
    """An empty folder in memory, where there is such a thing."""
    where = _MEMORY if _MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="plimsoll-fire-", dir=where)).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def outcome_of(scenario: Scenario) -> Outcome:
    """Let a scenario happen."""
    with _folder() as folder:
        return World(scenario, folder).run()
