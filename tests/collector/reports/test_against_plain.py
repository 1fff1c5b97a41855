"""Column operations compared with plain objects, on arbitrary reports."""

import math
import random
from dataclasses import dataclass
from typing import Any

import pytest

from collector.reports.merge import complete
from collector.reports.report_columns import FIGURES, SOURCES
from collector.spark.vectors import ASSUMED, NOBODY, PROBE, VECTORS
from tests.support.collector.report_rows import report, report_table
from tests.support.collector.reports_oracle import World
from tests.support.collector.sample_rows import figures, load_table, vector

WORLDS = 100
TOPICS = ("a.b", "a_b", "orders")
BROKERS = (1, 2)
SECONDS = (-200, -150, -70, -30, -20, -10, 0, 10, 40)
RATES = (0.0, 1.0, 700.0, 1500.0, 100_000.0, 170_000.0, 2e6)


@dataclass(frozen=True)
class Case:
    vectors: list[dict[str, Any]]
    reports: list[dict[str, Any]]
    cores: dict[int, float]


def case(seed: int) -> Case:
    """Some of nine partitions, and arbitrary reports of these and others."""
    dice = random.Random(seed)
    places = [(topic, number) for topic in TOPICS for number in range(3)]
    few = dice.sample(places, dice.randint(1, len(places)))
    return Case(
        vectors=[seen(dice, *place) for place in few],
        reports=[random_report(dice) for _ in range(dice.choice((3, 10, 30)))],
        cores={b: dice.choice((1.0, 4.0)) for b in BROKERS if dice.random() < 0.7},
    )


def seen(dice: random.Random, topic: str, number: int) -> dict[str, Any]:
    net_in, net_out, total, records = dice.choices((math.nan, *RATES), k=4)
    by = dice.choice((PROBE, ASSUMED))
    return vector(
        topic=topic,
        partition=number,
        broker=dice.choice(BROKERS),
        net_in=net_in,
        net_out=net_out,
        total_bytes=total,
        in_measured=dice.random() < 0.5 and not math.isnan(net_in),
        out_measured=by == PROBE and not math.isnan(net_out),
        records_in=records,
        in_by=NOBODY if math.isnan(net_in) else PROBE,
        out_by=NOBODY if math.isnan(net_out) else by,
        total_by=NOBODY if math.isnan(total) else PROBE,
    )


def random_report(dice: random.Random) -> dict[str, Any]:
    """A report with one figure or several."""
    topic = dice.choice((None, *TOPICS, *TOPICS, "gone"))
    result = report(
        dice.choice(SOURCES),
        dice.choice(SECONDS),
        broker=dice.choice((*BROKERS, *BROKERS, 9)),
        topic=topic,
        partition=-1 if topic is None else dice.choice((-1, -1, 0, 1, 2, 3)),
    )
    names = dice.sample(FIGURES, dice.randint(0, len(FIGURES)))
    values = RATES if dice.random() < 0.95 else (*RATES, -1.0, math.inf, 1e300)
    return result | {name: dice.choice(values) for name in names}


def test_columns_agree_with_one_object_at_a_time() -> None:
    for seed in range(WORLDS):
        given = case(seed)
        vectors = load_table(given.vectors)
        result = complete(vectors, report_table(given.reports), given.cores)
        world = World(vectors.to_pylist(), given.reports, given.cores)
        world.complete()
        assert result.vectors.schema == VECTORS
        assert result.passed_over == world.passed_over, seed
        assert list(result.without_cores) == world.without_cores, seed
        for row, expected in zip(figures(result.vectors), world.rows, strict=True):
            requested = {n: None if v != v else v for n, v in expected.items()}
            assert row == {
                name: pytest.approx(v) if isinstance(v, float) else v
                for name, v in requested.items()
            }, seed


def test_order_and_repetition_of_reports_do_not_matter() -> None:
    for seed in range(WORLDS):
        given = case(seed)
        vectors = load_table(given.vectors)
        twice = [*given.reports, *given.reports]
        random.Random(seed).shuffle(twice)
        once = complete(vectors, report_table(given.reports), given.cores)
        again = complete(vectors, report_table(twice), given.cores)
        assert figures(again.vectors) == figures(once.vectors), seed
        assert again.passed_over == {r: 2 * n for r, n in once.passed_over.items()}
