"""The eight seeded clusters of `cruise.md`, in the format `cc-offline/1`.

Traffic of topics follows Zipf's law, that of partitions within a topic a lognormal one. Some
topics have three times their rate since they were placed, and new brokers hold about 4 % of what
an old one holds. Clumped topics lie on a quarter of the old brokers each. The order of the draws
is part of the format: equal names give equal clusters, as those of the `gen.py` that comes with
Cruise Control's goals.
"""

import math
import random
from dataclasses import dataclass, replace
from typing import Any, Final

Document = dict[str, Any]
Load = dict[str, float]

RESOURCES: Final = ("cpu", "disk", "nw_in", "nw_out")
CAPACITY: Final[Load] = {"cpu": 100.0, "disk": 4e6, "nw_in": 125e3, "nw_out": 250e3}
"""Of each broker: percent, MB, KB/s, KB/s."""
USED: Final[Load] = {"cpu": 0.30, "disk": 0.45, "nw_in": 0.35, "nw_out": 0.32}
"""Mean share of the capacity that is used."""
FAN_OUT: Final = (1.0, 1.0, 1.5, 2.0, 3.0)
"""Bytes that consumers read of each byte that arrives; drawn by topic."""
RETENTION: Final = (6, 12, 24, 24, 48, 72)
"""Hours, drawn by topic."""
SKEW: Final = 0.4
"""Standard deviation of the logarithm of the rates within a topic."""
HOT: Final = 3.0
"""Factor of the rate of hot topics."""
HOT_DISK: Final = 0.5
"""What is left of that factor on disk: the rate has not been as high for the whole retention."""
NEW_SHARE: Final = 0.04
"""Replicas of a new broker, as a share of those of an old one."""
CPU_NOISE: Final = (0.7, 1.3)
DIGITS: Final = 5
"""Significant digits of a load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What one cluster is made of."""

    brokers: int
    partitions: int
    rf: int
    racks: int
    topics: int
    new: int
    """Brokers that were added last."""
    hot: int
    """Topics with three times their rate."""
    disk: bool
    """Whether brokers hold what they receive."""
    seed: int
    clumped: bool = False


_SPREAD: Final = {
    "s1-6x300-rf3": Spec(
        brokers=6, partitions=300, rf=3, racks=3, topics=30, new=1, hot=2, disk=True, seed=101
    ),
    "s2-10x500-rf1": Spec(
        brokers=10, partitions=500, rf=1, racks=3, topics=50, new=1, hot=3, disk=False, seed=202
    ),
    "s3-24x5000-rf3": Spec(
        brokers=24, partitions=5000, rf=3, racks=3, topics=300, new=3, hot=10, disk=True, seed=303
    ),
    "s4-50x5000-rf1": Spec(
        brokers=50, partitions=5000, rf=1, racks=3, topics=300, new=5, hot=10, disk=False, seed=404
    ),
    "s5-60x20000-rf3": Spec(
        brokers=60, partitions=20000, rf=3, racks=6, topics=1000, new=6, hot=30, disk=True, seed=505
    ),
}
_CLUMPED: Final = {
    f"{name.replace('s', 'sc', 1)}-clumped": replace(_SPREAD[name], clumped=True, seed=seed)
    for name, seed in (("s3-24x5000-rf3", 313), ("s4-50x5000-rf1", 414), ("s5-60x20000-rf3", 515))
}
SPECS: Final = {**_SPREAD, **_CLUMPED}
"""Of the eight clusters, by name."""


def random_cluster(name: str) -> Document:
    """Generate one of `SPECS`; raises KeyError for another name."""
    spec = SPECS[name]
    rnd = random.Random(spec.seed)
    partitions = _partitions(spec, rnd)
    _fill_new_brokers(spec, rnd, partitions)
    for partition in partitions:
        load = partition["load"]
        load["cpu"] = (load["nw_in"] + 0.25 * load["nw_out"]) * rnd.uniform(*CPU_NOISE)
        load["disk"] = load["disk"] if spec.disk else 0.0
    _scale(spec, partitions)
    brokers = [
        {"id": b, "rack": f"r{b % spec.racks}", "state": state, "capacity": dict(CAPACITY)}
        for b in range(spec.brokers)
        for state in ["new" if b >= spec.brokers - spec.new else "alive"]
    ]
    return {
        "format": "cc-offline/1",
        "name": name,
        "seed": spec.seed,
        "brokers": brokers,
        "partitions": partitions,
    }


def follower(load: Load) -> Load:
    """What a follower bears where a leader bears `load`, by Cruise Control's rule."""
    led = 0.7 * load["nw_in"] + 0.15 * load["nw_out"]
    cpu = _short(load["cpu"] * 0.15 * load["nw_in"] / led) if led > 0 else 0.0
    return {"cpu": cpu, "disk": load["disk"], "nw_in": load["nw_in"], "nw_out": 0.0}


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _counts(spec: Spec) -> list[int]:
    """Partitions by topic: by the square root of the rate, at least one each."""
    roots = [math.sqrt(1.0 / (k + 1)) for k in range(spec.topics)]
    total = sum(roots)
    counts = [max(1, int(spec.partitions * root / total)) for root in roots]
    at = 0
    while sum(counts) < spec.partitions:
        counts[at % spec.topics] += 1
        at += 1
    while sum(counts) > spec.partitions:
        counts[counts.index(max(counts))] -= 1
    return counts


def _partitions(spec: Spec, rnd: random.Random) -> list[Document]:
    counts = _counts(spec)
    hot = set(rnd.sample(range(1, spec.topics), spec.hot))
    found: list[Document] = []
    for topic, count in enumerate(counts):
        fan_out, hours = rnd.choice(FAN_OUT), rnd.choice(RETENTION)
        skew = [rnd.lognormvariate(0, SKEW) for _ in range(count)]
        total = sum(skew)
        rate = 1.0 / (topic + 1) * (HOT if topic in hot else 1.0)
        homes = _homes(spec, rnd)
        start = rnd.randrange(len(homes))
        for number in range(count):
            rate_in = rate * skew[number] / total
            load = {
                "cpu": 0.0,
                "disk": rate_in * hours * (HOT_DISK if topic in hot else 1.0),
                "nw_in": rate_in,
                "nw_out": rate_in * (fan_out + spec.rf - 1),
            }
            found.append(
                {
                    "topic": f"topic-{topic:04d}",
                    "partition": number,
                    "replicas": _replicas(spec, homes, start, number),
                    "load": load,
                }
            )
    return found


def _homes(spec: Spec, rnd: random.Random) -> list[int]:
    """Brokers that a topic is placed on."""
    old = list(range(spec.brokers - spec.new))
    if not spec.clumped:
        return old
    homes: list[int] = []
    for rack in range(spec.racks):
        here = [b for b in old if b % spec.racks == rack]
        homes += rnd.sample(here, min(len(here), max(1, math.ceil(len(old) / 4 / spec.racks))))
    rnd.shuffle(homes)
    return homes


def _replicas(spec: Spec, homes: list[int], start: int, number: int) -> list[int]:
    """Leaders in turn, followers on the next brokers of other racks, as Kafka places them."""
    replicas = [homes[(start + number) % len(homes)]]
    seen = {replicas[0] % spec.racks}
    at = start + number + 1 + number // len(homes)
    while len(replicas) < spec.rf:
        broker, at = homes[at % len(homes)], at + 1
        rack = broker % spec.racks
        if broker not in replicas and (rack not in seen or len(seen) >= spec.racks):
            replicas.append(broker)
            seen.add(rack)
    return replicas


def _fill_new_brokers(spec: Spec, rnd: random.Random, partitions: list[Document]) -> None:
    """Give new brokers a few replicas: of their rack, or any where there is one each."""
    old = spec.brokers - spec.new
    each = max(1, int(NEW_SHARE * spec.partitions * spec.rf / old))
    for broker in range(old, spec.brokers):
        left = each
        while left:
            replicas = rnd.choice(partitions)["replicas"]
            fitting = [
                at
                for at, held in enumerate(replicas)
                if spec.rf == 1 or held % spec.racks == broker % spec.racks
            ]
            if broker not in replicas and fitting:
                replicas[rnd.choice(fitting)] = broker
                left -= 1


def _scale(spec: Spec, partitions: list[Document]) -> None:
    """Scale all loads so that brokers use as much as `USED` on average."""
    others = spec.rf - 1
    for resource in RESOURCES:
        total = 0.0
        for load in (p["load"] for p in partitions):
            total += load[resource]
            if others:
                total += others * follower(load)[resource]
        if total > 0:
            factor = USED[resource] * CAPACITY[resource] * spec.brokers / total
            for partition in partitions:
                partition["load"][resource] *= factor
    # A follower's CPU depends on traffic, which was scaled after CPU.
    total = sum(p["load"]["cpu"] + others * follower(p["load"])["cpu"] for p in partitions)
    for partition in partitions:
        load = partition["load"]
        load["cpu"] *= USED["cpu"] * CAPACITY["cpu"] * spec.brokers / total
        partition["load"] = load = {name: _short(load[name]) for name in RESOURCES}
        if others:
            partition["followers"] = follower(load)
