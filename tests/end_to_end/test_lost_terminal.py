"""A run that copies under a throttle while its terminal or reader disappears."""

import os
import subprocess
import uuid
from pathlib import Path

import pytest

from executor.client.kafka_admin import KafkaAdmin
from lab.local_cluster.local_cluster import LocalCluster
from model.plan.plan import write_plan
from tests.end_to_end.test_resume import wait_until_nothing_is_set
from tests.support.cli_offline import PLIMSOLL
from tests.support.cli_on_cluster import HANG_S, Shell, placement, wait_until
from tests.support.executor.plan_builders import plan_for
from tests.support.executor.topic_records import fill
from tests.support.tui.terminals import started_in_terminal

pytestmark = pytest.mark.kafka

SLOW = ("apply", "plan.json", "--allow-changes", "--yes", "--throttle", "1MB/s")


@pytest.fixture
def topic(local_cluster: LocalCluster, tmp_path: Path) -> str:
    """A topic, and a plan of one move of it that takes some ten seconds."""
    name = f"lost-{uuid.uuid4().hex[:6]}"
    local_cluster.create_topic(name, [[1, 2]])
    fill(local_cluster.bootstrap, name, [20])
    plan = plan_for(local_cluster.bootstrap, name, {0: [3, 2]})
    write_plan(tmp_path / "plan.json", plan)
    return name


def wait_until_it_copies(shell: Shell) -> None:
    def copies() -> bool:
        journals = (shell.folder / "state" / "journal").glob("*.jsonl")
        return any('"event":"issued"' in j.read_text() for j in journals)

    wait_until(copies)


def assert_it_ended_in_order(shell: Shell, topic: str) -> None:
    (last,) = shell.runs()
    assert last["event"] == "ended"
    assert placement(shell.bootstrap, topic) == {0: [3, 2]}
    with KafkaAdmin(shell.bootstrap, 10.0) as admin:
        wait_until_nothing_is_set(admin, topic)


def test_a_run_survives_the_loss_of_its_terminal(
    local_cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    shell = Shell(tmp_path, local_cluster.bootstrap)
    with started_in_terminal(
        [str(PLIMSOLL), *SLOW], cwd=shell.folder, env=shell.environment, controlled=True
    ) as (child, master):
        wait_until_it_copies(shell)
        os.close(master)
        code = child.wait(HANG_S)
    assert_it_ended_in_order(shell, topic)
    # Its only move was completed in spite of the stop.
    assert code == 0


def test_a_run_survives_the_end_of_its_reader(
    local_cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    shell = Shell(tmp_path, local_cluster.bootstrap)
    reader, writer = os.pipe()
    child = subprocess.Popen(
        [PLIMSOLL, *SLOW],
        cwd=tmp_path,
        env=shell.environment,
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=writer,
    )
    os.close(writer)
    wait_until_it_copies(shell)
    os.close(reader)
    assert child.wait(HANG_S) == 0
    assert_it_ended_in_order(shell, topic)
