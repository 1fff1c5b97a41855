"""Moves on the local Kafka: through the remote tier, plain ones, throttled ones."""

import statistics
import time
from collections.abc import Mapping
from typing import Final

from benchmarks.moves_on import Carried, Looking, balance, filled, spread
from benchmarks.sections import table
from clients.jvm.jars import default_cache_dir
from executor.client.cluster_admin import local_bytes
from executor.schedule.concurrency import Concurrency
from executor.timing import RunLimits
from lab.load.load_generator import LoadReport
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.ids import BrokerId
from model.plan.plan import Plan
from model.units import bytes_text
from tests.support.executor.plan_builders import plan_for

SIZES: Final = (0.25e9, 0.5e9, 1e9)
TIERED: Final = {
    "remote.storage.enable": "true",
    "segment.bytes": str(8 * 2**20),
    "file.delete.delay.ms": "200",
}
"""All segments stay on the broker's disk until the run has them leave it."""
ROUND: Final = (2, 3, 1, 2, 3)
SHORTENED: Final = RunLimits(lower_segments=True, tier_wait_s=60.0)
RATE: Final = 50_000_000
MOVES: Final = 200
MOVE_BYTES: Final = 10e6
WINDOW_S: Final = 10
THROTTLED: Final = RunLimits(throttle_bytes_per_s=RATE, moves_in_flight=50)
WIDEST: Final = Concurrency(THROTTLED).widest
NEW: Final = BrokerId(4)


class Arrivals(Looking):
    """Bytes of a plan's partitions on one broker, looked at once a second."""

    def __init__(self, bootstrap: str, plan: Plan, broker: BrokerId) -> None:
        super().__init__(bootstrap, 1.0)
        self._ids = [move.id for move in plan.moves]
        self._broker = broker
        self.seen: list[tuple[float, int]] = []

    def look(self) -> None:
        sizes = local_bytes(self.admin, self._broker, self._ids)
        self.seen.append((time.time(), sum(sizes.values())))

    def rates(self) -> list[float]:
        """Bytes per second over each window."""
        pairs = zip(self.seen, self.seen[WINDOW_S:], strict=False)
        return [(b - a) / (until - since) for (since, a), (until, b) in pairs]


def tiered() -> str:
    """The section of moves through the remote tier, plain ones beside them."""
    with LocalCluster(default_cache_dir()) as cluster:
        pairs = [(_moved(cluster, size, TIERED), _moved(cluster, size, {})) for size in SIZES]
    rows, medians = [], []
    for size, ((ran, load), (plain, plain_load)) in zip(SIZES, pairs, strict=True):
        medians.append(statistics.median(one.broker_s for one in ran))
        copied, whole = (max(map(_copied, runs)) for runs in (ran, plain))
        rows.append(
            [
                bytes_text(int(size)),
                f"{ran[0].report.preparation_s:.1f} s",
                spread([one.broker_s for one in ran]),
                bytes_text(copied),
                _stall(load),
                spread([one.broker_s for one in plain]),
                bytes_text(whole),
                _stall(plain_load),
                f"{100 * copied / whole:.1f} %",
            ]
        )
    headers = [
        "partition",
        "preparation of the first",
        "from request to leader, median / worst",
        "most copied",
        "longest stall",
        "plain: from request to leader, median / worst",
        "most copied",
        "longest stall",
        "copied of the plain move's",
    ]
    reports = [load for pair in pairs for _, load in pair]
    return (
        table(headers, rows)
        + "\nSlowest to fastest size through the tier: "
        + f"{max(medians) / min(medians):.2f}. {balance(reports)}.\n"
    )


def _moved(
    cluster: LocalCluster, size: float, configs: Mapping[str, str]
) -> tuple[list[Carried], LoadReport]:
    topic = f"{'tiered' if configs else 'plain'}-{size / 1e6:.0f}"
    cluster.create_topic(topic, [[1]], configs)
    load = filled(
        cluster.processes,
        cluster.bootstrap,
        topic,
        [size],
        fill_bytes_per_s=60e6,
        then_bytes_per_s=1e6,
    )
    runs = []
    for target in ROUND:
        plan = plan_for(cluster.bootstrap, topic, {0: [target]})
        runs.append(Carried(cluster.bootstrap, plan, SHORTENED))
        time.sleep(2.0)
        print(topic, runs[-1].broker_s, runs[-1].report.preparation_s, flush=True)
    return runs, load.finish()


def _copied(ran: Carried) -> int:
    return sum(move.bytes_copied or 0 for move in ran.report.moves)


def _stall(load: LoadReport) -> str:
    stall = load.longest_stall
    return f"{stall.duration_s:.2f} s" if stall else "under 0.05 s"


def replicated() -> str:
    """The section of throttled moves."""
    plan = LocalPlan(brokers=4, tier=False)
    with LocalCluster(default_cache_dir(), plan) as cluster:
        return _throttled(cluster)


def _throttled(cluster: LocalCluster) -> str:
    topic, bootstrap = "throttled", cluster.bootstrap
    pairs = [[1, 2], [2, 3], [3, 1]]
    cluster.create_topic(topic, [pairs[p % 3] for p in range(MOVES)])
    load = filled(
        cluster.processes,
        bootstrap,
        topic,
        [MOVE_BYTES] * MOVES,
        fill_bytes_per_s=30e6,
        then_bytes_per_s=1e6,
    )
    after = {p: [pairs[p % 3][0], int(NEW)] for p in range(MOVES)}
    plan = plan_for(bootstrap, topic, after)
    with Arrivals(bootstrap, plan, NEW) as arrivals:
        ran = Carried(bootstrap, plan, THROTTLED)
    copied = _copied(ran)
    rates = arrivals.rates()
    rows = [
        ["moves", str(MOVES)],
        ["copied into one broker", bytes_text(copied)],
        ["throttle", f"{bytes_text(RATE)}/s"],
        ["the whole run", f"{ran.report.duration_s:.1f} s"],
        ["share of the throttle used", f"{100 * copied / RATE / ran.report.duration_s:.0f} %"],
        [
            f"most in any {WINDOW_S} s",
            f"{bytes_text(max(rates))}/s ({100 * max(rates) / RATE:.0f} %)",
        ],
        [
            "most moves at once, on one broker",
            f"{ran.most_in_flight}, {ran.most_per_broker} (limits "
            f"{WIDEST.moves_in_flight}, {WIDEST.moves_per_broker})",
        ],
    ]
    return table(["what", "measured"], rows) + f"\n{balance([load.finish()])}.\n"
