"""Brokers are demoted, maintained and added under load, and no record is lost."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.jvm.jars import default_cache_dir
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from tests.support.cli_on_cluster import Shell, placement, wait_until
from tests.support.executor.topic_records import assert_exact, loaded
from tests.support.settled_topics import described

TOPIC = "maintained"
SETTINGS = "window_s = 5.0\n"
PARTITIONS = 12
# Broker 4 holds nothing.
PLACES = [[1 + n % 3, 1 + (n + 1) % 3] for n in range(PARTITIONS)]
CHANGING = ("--allow-changes", "--yes")


@pytest.fixture
def four_brokers() -> Iterator[LocalCluster]:
    with LocalCluster(default_cache_dir(), LocalPlan(brokers=4)) as started:
        yield started


def leaders(bootstrap: str) -> dict[int, int]:
    """The leader of each partition, as Kafka's own tool shows it."""
    return {number: leader for number, (leader, _, _) in described(bootstrap, TOPIC).items()}


def done(shell: Shell, *arguments: str) -> None:
    run = shell.plimsoll("broker", *arguments, *CHANGING, "-o", "json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["phase"] == "done"


@pytest.mark.soak  # As removals: it starts five commands, each with a window of its own.
@pytest.mark.kafka
@pytest.mark.spark
def test_leaders_leave_and_return_and_a_broker_is_filled_under_load(
    four_brokers: LocalCluster, tmp_path: Path
) -> None:
    four_brokers.create_topic(TOPIC, PLACES)
    load = loaded(four_brokers, TOPIC, 500_000, partitions=PARTITIONS, rate=4_000_000.0)
    (tmp_path / "plimsoll.toml").write_text(SETTINGS)
    shell = Shell(tmp_path, four_brokers.bootstrap)
    before, led = placement(shell.bootstrap, TOPIC), leaders(shell.bootstrap)

    for begin, end in (
        (("demote", "2"), ("undemote", "2")),
        (("maintenance", "3", "on"), ("maintenance", "3", "off")),
    ):
        broker = int(begin[1])
        done(shell, *begin)
        assert broker not in leaders(shell.bootstrap).values()
        assert broker not in {held[0] for held in placement(shell.bootstrap, TOPIC).values()}
        done(shell, *end)
        wait_until(lambda: placement(shell.bootstrap, TOPIC) == before)
        wait_until(lambda: leaders(shell.bootstrap) == led)

    done(shell, "add", "4")
    after = placement(shell.bootstrap, TOPIC)
    assert sum(4 in held for held in after.values()) >= 3
    assert all({*after[n]} - {*before[n]} <= {4} for n in before)
    assert_exact(load)
