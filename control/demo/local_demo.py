"""The demo: a local cluster, skewed on purpose, which the loop balances."""

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from clients.jvm.jars import SPARK_KAFKA_PINS, JarProgress, fetch, read_pins
from control import compose
from control.demo.report import BrokerLine, DemoReport
from control.loop.loop import Loop
from control.loop.view import LoopView, Mode, Phase
from control.settings.auto_limits import EAGER
from control.settings.capacity_table import CapacitySettings
from control.settings.settings import S3Bucket, Settings
from lab.load.load_generator import DEMO_WEIGHTS, Load, LoadOrder
from lab.local_cluster.kafka_versions import DEFAULT_VERSION, kafka_pins, s3_pins
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from lab.local_cluster.reaper import MARK
from model.errors import ExecutionStopped, PlimsollError
from model.evaluate import Evaluation
from model.ids import TopicName
from model.plan.plan import Plan
from model.snapshot.snapshot import Resource

TOPIC = TopicName("orders")
BYTES_PER_S = 5_000_000.0
SKEWED_BROKER = 1
NAME = "demo"

TIERED = {
    "remote.storage.enable": "true",
    "segment.bytes": str(2 * 2**20),
    "local.retention.bytes": str(4 * 2**20),
    "local.retention.ms": "-2",
    "file.delete.delay.ms": "200",
}
"""Small segments, so that older ones move to the remote tier during the demo."""

PLAIN = {
    "segment.bytes": str(2 * 2**20),
    "retention.bytes": str(32 * 2**20),
    "file.delete.delay.ms": "200",
}
"""Partitions stay at a few megabytes, however long the operator waits."""

TWO_BY_TWO = EAGER.model_copy(update={"moves_in_flight": 2})
"""Limits of a plain demo: some moves wait, so that a pause has an effect."""

MOST_WAIT_S = 180.0
"""How long the headless demo waits for the cluster to be balanced."""


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Options of the demo."""

    mode: Mode
    """AUTO or APPROVE."""
    seed: int
    """Seed of the shares of the load per partition."""
    port: int | None
    """First of the brokers' ports; None: any free ones."""
    plain: bool = False
    """Use plain disks: moves copy whole partitions, two at a time."""
    kafka: str = DEFAULT_VERSION
    """Kafka's version; one with pinned jars."""


class Demo:
    """A running demo: the cluster, its load and the loop."""

    def __init__(
        self, cluster: LocalCluster, load: Load, loop: Loop, times: "_Times", *, plain: bool
    ) -> None:
        self.loop = loop
        self._plain = plain
        self._cluster, self._load, self._times = cluster, load, times

    def wait_until_balanced(self) -> None:
        """Block until a run has ended and the cluster is balanced.

        Raises
        ------
        ExecutionStopped
            The cluster was not balanced within `MOST_WAIT_S`.
        PlimsollError
            The error that ended the loop.
        """

        def is_balanced(view: LoopView) -> bool:
            return view.phase is Phase.BALANCED and bool(self.loop.reports)

        if not self.loop.wait(is_balanced, MOST_WAIT_S):
            raise self._trouble or ExecutionStopped(
                f"the cluster was not balanced after {MOST_WAIT_S:.0f} s; last state: "
                f"{self.loop.view.phase}: {self.loop.view.message}"
            )

    def watch_quiet(self, seconds: float, on_second: Callable[[int], None]) -> None:
        """Let the loop run on for `seconds`, to count further moves.

        Raises the error of the loop, if there is one.
        """
        for left in range(round(seconds), 0, -1):
            on_second(left)
            time.sleep(1.0)
            if self._trouble is not None:
                raise self._trouble

    @property
    def _trouble(self) -> PlimsollError | None:
        return self.loop.error or self.loop.failure

    def report(self) -> DemoReport | None:
        """Stop the load and summarise; None if there was no run."""
        view, runs, plan = self.loop.view, self.loop.reports, self._times.plan
        now_s = time.time()
        load = self._load.finish()
        if not runs or plan is None:
            return None
        if view.evaluation is None:
            raise PlimsollError("no load was measured")
        run, at_s = runs[0], self._times.at_s
        stall = self._load.longest_stall(run.started_at_ms)
        return DemoReport(
            level_within=_largest_deviation(view.evaluation),
            brokers=_brokers(plan, view.evaluation),
            objective_before=plan.objective_before,
            objective=plan.objective,
            bound=plan.bound,
            plan_status=plan.status,
            brokers_ready_s=at_s["ready"] - at_s["start"],
            planned_s=at_s["planned"] - at_s["start"],
            level_s=at_s["balanced"] - at_s["start"] if "balanced" in at_s else None,
            contact_to_plan_s=at_s["planned"] - at_s["contact"],
            run=run,
            later_moves=sum(len(r.moves) for r in runs[1:]),
            quiet_s=now_s - at_s.get("balanced", now_s),
            longest_stall_s=stall.duration_s if stall else 0.0,
            acknowledged=load.acknowledged_records,
            read=load.read_records,
            lost=load.lost_records,
            duplicated=load.duplicated_records,
            tier_segments=None if self._plain else _segments(self._cluster),
        )


@contextlib.contextmanager
def demo(
    settings: Settings,
    order: DemoOptions,
    *,
    on_step: Callable[[str], None],
    on_download: Callable[[JarProgress], None],
) -> Iterator[Demo]:
    """Start cluster, load and loop; remove everything afterwards, also on errors.

    Raises
    ------
    DownloadFailed
        A jar is missing and cannot be fetched.
    PortTaken
        One of the requested ports is in use.
    """
    s3 = () if order.plain else s3_pins()
    for pins in (read_pins(SPARK_KAFKA_PINS, "spark-kafka"), kafka_pins(order.kafka), s3):
        fetch(pins, settings.cache_dir, on_download)
    times = _Times()
    ports = None if order.port is None else tuple(order.port + i for i in range(3))
    plan = LocalPlan(version=order.kafka, ports=ports, tier=not order.plain)
    cluster = LocalCluster(settings.cache_dir, plan)
    with contextlib.ExitStack() as stack:
        stack.callback(cluster.close)
        cluster.start(on_step, on_download)
        times.note("ready")
        on_step(f"topic {TOPIC}: 8 partitions, all on broker {SKEWED_BROKER}")
        load = _skewed_load(cluster, order)
        stack.callback(load.kill)
        loop = compose.loop(
            _on_cluster(settings, cluster, order),
            mode=order.mode,
            limits=TWO_BY_TWO if order.plain else EAGER,
        )
        times.follow(loop)
        running = Demo(cluster, load, loop, times, plain=order.plain)
        stack.enter_context(loop)
        on_step("observing: the probe takes samples, Spark turns them into loads")
        yield running


def _skewed_load(cluster: LocalCluster, order: DemoOptions) -> Load:
    weights = tuple(random.Random(order.seed).sample(DEMO_WEIGHTS, len(DEMO_WEIGHTS)))
    configs = PLAIN if order.plain else TIERED
    cluster.create_topic(TOPIC, [[SKEWED_BROKER]] * len(weights), configs)
    sent = LoadOrder(topic=TOPIC, bytes_per_s=BYTES_PER_S, weights=weights, seed=order.seed)
    load = Load(cluster.processes, cluster.bootstrap, sent)
    load.start()
    return load


def _on_cluster(settings: Settings, cluster: LocalCluster, order: DemoOptions) -> Settings:
    # Spark's JVM inherits it, so that the reaper finds it. Without that, a JVM whose
    # parent is killed while it starts would never exit.
    os.environ[MARK] = str(cluster.folder)
    return settings.model_copy(
        update={
            "bootstrap_server": cluster.bootstrap,
            "client_properties": None,
            "name": NAME,
            "state_dir": cluster.folder / "state",
            "tier": None if order.plain else _tier(cluster),
            "capacity_file": None,
            "capacities": CapacitySettings(),
        }
    )


def _tier(cluster: LocalCluster) -> S3Bucket:
    return S3Bucket(
        endpoint_url=cluster.s3.endpoint,
        bucket=cluster.s3.bucket,
        access_key=cluster.s3.access_key,
        secret_key=cluster.s3.secret_key,
    )


class _Times:
    """Times of the steps in the report, seconds since the epoch."""

    def __init__(self) -> None:
        self.at_s = {"start": time.time()}
        self.plan: Plan | None = None
        """The first plan with moves, in its last version before the run."""

    def note(self, what: str, at_s: float | None = None) -> None:
        """Record the first time of a step."""
        self.at_s.setdefault(what, time.time() if at_s is None else at_s)

    def follow(self, loop: Loop) -> None:
        """Record steps from the views of the loop."""

        def see(view: LoopView) -> None:
            at_s, ran = view.at_ms / 1000, bool(loop.reports)
            if view.brokers:
                self.note("contact", at_s)
            if view.plan is not None and view.plan.moves:
                self.note("planned", at_s)
                self.plan = self.plan if ran else view.plan
            if ran and view.phase is Phase.BALANCED:
                self.note("balanced", at_s)

        loop.subscribe(see)


def _largest_deviation(evaluation: Evaluation) -> float:
    deviations = evaluation.deviations.values()
    return max((abs(v) for by in deviations for v in by.values()), default=0.0)


def _brokers(plan: Plan, evaluation: Evaluation) -> tuple[BrokerLine, ...]:
    resources = (Resource.NET_IN, Resource.NET_OUT)
    return tuple(
        BrokerLine(
            id=b.id,
            rack=b.rack,
            before={r: b.before[r] for r in resources},
            after={r: evaluation.loads.get(b.id, b.after)[r] for r in resources},
        )
        for b in plan.brokers
    )


def _segments(cluster: LocalCluster) -> tuple[int, int]:
    """Number and bytes of the topic's segments, listed through S3."""
    pages = cluster.s3.client().get_paginator("list_objects_v2")
    found = [
        item["Size"]
        for page in pages.paginate(Bucket=cluster.s3.bucket)
        for item in page.get("Contents", [])
        if item["Key"].startswith(f"{TOPIC}-") and item["Key"].endswith(".log")
    ]
    return len(found), sum(found)
