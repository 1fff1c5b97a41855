"""What a seed means: a cluster with a plan, hosts, and the faults that will happen."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from control.settings.auto_limits import AutoLimits
from control.settings.trigger_table import Response, TriggerTable
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId, TopicName
from model.plan.plan import Move, Plan, PlanStatus
from model.snapshot.snapshot import StorageKind

CLUSTER_ID: Final = "fire"
MB: Final = 10**6
BROKERS: Final = 6
RACKS: Final = "abcabc"
HEALED_S: Final = 160.0
"""Seconds after the beginning when faults end, and everything works again."""
_BEGIN_S: Final = 20.0
_TOPICS: Final = ("orders", "clicks")
_MOST_FAULTS: Final = 7
_OF_TASKS: Final = 0.4
"""Share of the worlds in which a task makes the plans."""
_OF_BROKERS: Final = 0.3
"""Chance of each further fault of `BROKER_FAULTS`."""
_OF_FLIPS: Final = 0.15
"""Share of the worlds in which a bit of a file flips."""
_OF_LOOPS: Final = 0.35
"""Share of the other worlds in which the loop of `--auto` makes them."""
_OF_STANDBYS: Final = 0.6
"""Share of the worlds with the leases of services of which one stands by."""


class FaultKind(StrEnum):
    """Everything that can fail, in the words of the table."""

    KILL = "process killed"
    KILL_AT_STEP = "process killed at a step"
    POWER_LOSS = "power lost"
    POWER_AT_STEP = "power lost at a step"
    FREEZE = "process frozen"
    DISK_FULL = "disk full"
    WRITE_ERROR = "write error"
    SYNC_ERROR = "sync error"
    BIT_FLIP = "bit flipped"
    REQUEST_LOST = "request lost"
    ANSWER_LOST = "answer lost"
    SLOW_REQUEST = "request delayed"
    LATE_REQUEST = "request delivered after its time-out"
    CLUSTER_AWAY = "cluster cut off"
    ONE_WAY = "answers of the cluster cut off"
    BUCKET_AWAY = "bucket unreachable"
    BUCKET_ANSWER_LOST = "bucket's answer lost"
    BUCKET_CONFLICT = "conflict of conditional writes"
    BUCKET_SLOW = "bucket slow"
    BUCKET_LATE = "write to the bucket after its time-out"
    BROKER_DEAD = "broker dead"
    BROKER_FLAPS = "broker flaps"
    BROKER_SLOW = "broker slow"
    DISK_FILLS = "disk of a broker fills"
    METADATA_LAG = "metadata lag"
    CLOCK_STEP = "clock stepped"
    STOP = "run stopped"
    ABORT = "run aborted"
    PAUSE = "run paused"
    RATE = "throttle changed"
    FOREIGN = "foreign reassignment"


ONLY_WITH_BUCKET: Final = frozenset(
    {
        FaultKind.BUCKET_AWAY,
        FaultKind.BUCKET_ANSWER_LOST,
        FaultKind.BUCKET_CONFLICT,
        FaultKind.BUCKET_SLOW,
        FaultKind.BUCKET_LATE,
    }
)


BROKER_FAULTS: Final = frozenset(
    {FaultKind.BROKER_SLOW, FaultKind.DISK_FILLS, FaultKind.METADATA_LAG}
)
_APART: Final = BROKER_FAULTS | {FaultKind.BIT_FLIP}
"""Faults that are drawn apart, so that older seeds keep theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault:
    """One fault; which of its fields count depends on its kind."""

    kind: FaultKind
    host: int
    """Number of the host that meets it."""
    at_s: float
    """Seconds after the beginning."""
    takes_s: float
    nth: int
    """Number of the step, write, sync or request that meets it, from 0."""
    which: int
    """Of brokers, partitions or other choices."""

    def __str__(self) -> str:
        return (
            f"{self.kind}: host {self.host}, at {self.at_s:.1f} s for {self.takes_s:.1f} s, "
            f"number {self.nth}, choice {self.which}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """A task that empties a broker, and the person who requests it."""

    broker: BrokerId
    replaces: bool
    """Whether its twin replaces it; otherwise it is removed, which comes to the same."""
    asks_s: float
    """Seconds until a person has read a plan."""
    refuses: int
    """How many plans wait longer, since they are not approved at first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPolicy:
    """The policy of `--auto`, and the person who answers what it asks."""

    limits: AutoLimits
    triggers: TriggerTable
    dead_broker_after_s: float
    keeps_budgets: bool
    """Whether plans keep the limits by themselves."""
    answers_s: float | None
    """Seconds until a person approves a plan that waits; None where nobody does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The world of a seed, before anything happens in it."""

    seed: int
    plan: Plan
    """Of a task: what it comes to, with the partitions that it leaves alone."""
    task: TaskRequest | None
    """None where the plan is executed without a task."""
    auto: LoopPolicy | None
    """None where no loop makes the plans; else the plan above only says what there is."""
    hosts: int
    """1 without an archive, 2 that share one."""
    stands_by: bool
    """Whether the hosts hold leases as services with a standby do."""
    throttle: int | None
    """Bytes per second."""
    producers: float
    """Bytes per second into each partition."""
    log_bytes: float
    moves_in_flight: int
    ways: tuple[str, ...]
    """What a host does about an unfinished run, each time it begins: resume or roll back."""
    begins_s: tuple[float, ...]
    """When each host begins, in seconds."""
    rates: tuple[float, ...]
    """Of the hosts' steady clocks."""
    clocks_s: tuple[float, ...]
    """By how much the hosts' wall clocks differ from the true time."""
    faults: tuple[PlannedFault, ...]

    def keeping(self, numbers: tuple[int, ...]) -> "Scenario":
        """The same with some of its faults."""
        return replace(self, faults=tuple(self.faults[n] for n in numbers))


def scenario_of(seed: int) -> Scenario:
    """Draw the world of a seed."""
    rng = random.Random(seed)
    hosts = rng.choice((1, 2, 2))
    moves = _moves(rng)
    task = _task(random.Random(f"task {seed}"), moves)
    if task is not None:
        moves = [_emptying(move, task.broker) for move in moves]
    is_loop = task is None and random.Random(f"loops {seed}").random() < _OF_LOOPS
    if is_loop:
        moves = _crowded(moves)
    log_bytes = rng.choice((30.0, 200.0, 900.0)) * MB
    sized = [m.model_copy(update={"bytes_to_copy": int(log_bytes) * len(m.added)}) for m in moves]
    return Scenario(
        seed=seed,
        plan=plan_of(sized),
        task=task,
        auto=_policy(random.Random(f"loop {seed}"), log_bytes) if is_loop else None,
        hosts=hosts,
        stands_by=random.Random(f"leases {seed}").random() < _OF_STANDBYS,
        throttle=rng.choice((None, 40 * MB, 80 * MB)),
        producers=rng.choice((0.0, 0.5, 2.0)) * MB,
        log_bytes=log_bytes,
        moves_in_flight=rng.randint(1, 3),
        ways=tuple(rng.choice(("resume", "resume", "resume", "roll back")) for _ in range(8)),
        begins_s=(0.0, rng.uniform(0.5, 90.0)),
        rates=tuple(rng.uniform(0.9955, 1.0045) for _ in range(2)),
        clocks_s=tuple(rng.choice((0.0, 0.0, -300.0, 90.0)) for _ in range(2)),
        faults=(
            *(_fault(rng, hosts) for _ in range(rng.randint(1, _MOST_FAULTS))),
            *_faults_of_brokers(random.Random(f"brokers {seed}"), hosts),
            *_flips(random.Random(f"flips {seed}"), hosts),
        ),
    )


def _faults_of_brokers(rng: random.Random, hosts: int) -> Iterator[PlannedFault]:
    while rng.random() < _OF_BROKERS:
        yield _fault(rng, hosts, sorted(BROKER_FAULTS))


def _flips(rng: random.Random, hosts: int) -> Iterator[PlannedFault]:
    if rng.random() < _OF_FLIPS:
        yield _fault(rng, hosts, [FaultKind.BIT_FLIP])


def _fault(
    rng: random.Random, hosts: int, kinds: Sequence[FaultKind] | None = None
) -> PlannedFault:
    if kinds is None:
        known = [k for k in FaultKind if k not in _APART]
        kinds = [k for k in known if hosts > 1 or k not in ONLY_WITH_BUCKET]
    return PlannedFault(
        kind=rng.choice(kinds),
        host=0 if rng.random() < 0.7 else rng.randrange(hosts),
        at_s=round(rng.expovariate(1 / _BEGIN_S), 2) % HEALED_S,
        takes_s=round(rng.choice((1.0, 10.0, 60.0)) * rng.random(), 2),
        nth=int(rng.expovariate(1 / 12)),
        which=rng.randrange(1000),
    )


def _task(rng: random.Random, moves: list[Move]) -> TaskRequest | None:
    if rng.random() >= _OF_TASKS:
        return None
    return TaskRequest(
        broker=rng.choice(moves[0].replicas_before),
        replaces=rng.random() < 0.5,
        asks_s=rng.choice((0.0, 0.0, 3.0, 40.0)),
        refuses=rng.choice((0, 0, 0, 1)),
    )


def _policy(rng: random.Random, log_bytes: float) -> LoopPolicy:
    most = int(log_bytes) * rng.randint(1, 4)
    acts = (Response.ACT, Response.ACT, Response.ACT, Response.ASK, Response.OFF)
    return LoopPolicy(
        limits=AutoLimits(
            replica_moves=rng.randint(1, 3),
            leader_changes=rng.randint(0, 3),
            bytes=most,
            partitions_per_topic=rng.randint(1, 4),
            moves_in_flight=rng.randint(1, 2),
            min_gain=rng.choice((0.0, 0.0, 0.1)),
            pause=rng.choice((5, 20, 60)),
            confirm=rng.choice((0, 4, 15)),
            runs_per_day=rng.choice((None, 1, 2)),
            bytes_per_day=rng.choice((None, None, 2 * most)),
        ),
        triggers=TriggerTable(
            dead_broker=rng.choice(acts),
            empty_broker=rng.choice(acts),
            uneven_load=rng.choice(acts),
        ),
        dead_broker_after_s=rng.choice((10.0, 40.0, 3600.0)),
        keeps_budgets=rng.random() < 0.7,
        answers_s=rng.choice((None, 0.0, 10.0)),
    )


def twin(broker: BrokerId) -> BrokerId:
    """The other broker of the same rack."""
    return BrokerId((broker + 2) % BROKERS + 1)


def _emptying(move: Move, broker: BrokerId) -> Move:
    """The move after which the twin of a broker has its replica."""
    after = tuple(twin(b) if b == broker else b for b in move.replicas_before)
    update = {"replicas_after": after, "leader_after": after[0]}
    return move.model_copy(update=update)


def _crowded(moves: list[Move]) -> list[Move]:
    """The moves as of a cluster of which one broker of each rack holds everything."""
    found = []
    for move in moves:
        before = tuple(min(b, twin(b)) for b in move.replicas_before)
        after = tuple(twin(b) for b in before)
        update = {
            "replicas_before": before,
            "replicas_after": after,
            "leader_before": before[0],
            "leader_after": after[0],
        }
        found.append(move.model_copy(update=update))
    return found


def _moves(rng: random.Random) -> list[Move]:
    found = []
    for number in range(rng.randint(1, 4)):
        factor = rng.randint(1, 3)
        before = _placed(rng, factor)
        after = _changed(rng, before)
        # The racks of the plan are as many as before.
        topic = _TOPICS[number % 2 if rng.random() < 0.5 else 0]
        found.append(
            Move(
                topic=TopicName(topic),
                topic_id=f"id of {topic}",
                partition=number,
                storage=StorageKind.REPLICATED,
                replicas_before=before,
                replicas_after=after,
                leader_before=before[0],
                leader_after=after[0],
                bytes_to_copy=0,
                gain=0.0,
                reason="drawn",
            )
        )
    return found


def _placed(rng: random.Random, factor: int) -> tuple[BrokerId, ...]:
    """Brokers in as many racks."""
    racks = rng.sample(range(3), factor)
    return tuple(BrokerId(1 + rack + 3 * rng.randrange(2)) for rack in racks)


def _changed(rng: random.Random, before: tuple[BrokerId, ...]) -> tuple[BrokerId, ...]:
    """Other replicas, each in the rack of the one that it replaces, or another order."""
    while True:
        after = [twin(b) if rng.random() < 0.5 else b for b in before]
        if rng.random() < 0.3:
            rng.shuffle(after)
        if len(before) == 1 and rng.random() < 0.3:
            after = [BrokerId(1 + rng.randrange(BROKERS))]
        if tuple(after) != before:
            return tuple(after)


def plan_of(moves: list[Move]) -> Plan:
    """A sealed plan of these moves."""
    return Plan(
        cluster_id=CLUSTER_ID,
        snapshot_fingerprint="drawn",
        snapshot_taken_at_ms=0,
        live_brokers=tuple(BrokerId(b) for b in range(1, BROKERS + 1)),
        goals=Goals(),
        limits=SolveLimits(),
        status=PlanStatus.IMPROVED,
        objective_before=1.0,
        objective=0.0,
        bound=0.0,
        move_price=0.1,
        levels={},
        brokers=(),
        moves=tuple(moves),
    ).seal()
