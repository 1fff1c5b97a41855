"""Kafka's own `--verify` agrees with plimsoll on a finished run."""

import re
import uuid
from pathlib import Path

import pytest

from control.render.plan_export import shell_commands
from executor.client.kafka_admin import KafkaAdmin
from executor.journal.run_history import read_journal
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from lab.local_cluster.local_cluster import LocalCluster
from model.exchange.reassignment import write_reassignment_json
from model.ids import PartitionId, TopicName
from model.plan.plan import Plan, write_plan
from model.run import JournalEvent
from tests.support.cli_on_cluster import Shell, wait_until
from tests.support.executor.plan_builders import plan_for
from tests.support.executor.topic_records import fill
from tests.support.kafka_tools import REASSIGN, in_a_shell, stock_tool

pytestmark = pytest.mark.kafka

AFTER = {0: [3, 2], 1: [1, 3], 2: [2, 1], 3: [3, 1]}
"""A replica that led, one that followed, a mere reorder, and a new leader."""
CHANGE = ("--allow-changes", "--yes", "--throttle", "50MB/s")


@pytest.fixture
def topic() -> str:
    return f"verify-{uuid.uuid4().hex[:6]}"


@pytest.fixture
def filled(local_cluster: LocalCluster, topic: str) -> LocalCluster:
    """With some megabytes in each partition, so that something is copied."""
    local_cluster.create_topic(topic, [[1, 2]] * len(AFTER))
    fill(local_cluster.bootstrap, topic, [4] * len(AFTER))
    return local_cluster


def verified(bootstrap: str, assignment: Path) -> dict[PartitionId, str]:
    """The tool's result for each partition."""
    file = ("--reassignment-json-file", assignment)
    output = stock_tool(REASSIGN, bootstrap, *file, "--verify")
    lines = re.finditer(r"^.* of partition (\S+)-(\d+)\b.*$", output, re.MULTILINE)
    return {PartitionId(TopicName(m[1]), int(m[2])): m[0] for m in lines}


def completed(plan: Plan) -> dict[PartitionId, str]:
    """The tool's result if every move has ended as planned."""
    return {m.id: f"Reassignment of partition {m.id} is completed." for m in plan.moves}


def throttles(bootstrap: str) -> list[object]:
    """All settings of topics and brokers."""
    with KafkaAdmin(bootstrap, 10.0) as admin:
        topics = admin.own_topic_configs(list(admin.topics()), (LEADERS, FOLLOWERS))
        brokers = admin.cluster().alive
        rates = [admin.own_broker_configs(broker, RATES) for broker in brokers]
    return [result for result in (*topics.values(), *rates) if result]


def test_kafkas_tool_verifies_a_run_and_its_rollback(
    filled: LocalCluster, topic: str, tmp_path: Path
) -> None:
    """The tool removes throttles itself, so they are checked before it runs."""
    shell = Shell(tmp_path, filled.bootstrap)
    plan = plan_for(shell.bootstrap, topic, AFTER)
    write_plan(tmp_path / "plan.json", plan)
    write_reassignment_json(tmp_path / "stock", plan)
    there = tmp_path / "stock" / "reassignment.json"
    before = verified(shell.bootstrap, there)
    assert before.keys() == completed(plan).keys()
    for pid, reported in before.items():
        assert reported.startswith(f"There is no active reassignment of partition {pid}, ")

    done = shell.plimsoll("apply", "plan.json", *CHANGE)
    assert done.returncode == 0, done.stderr
    # Each broker is queried directly and may lag behind the controller.
    wait_until(lambda: not throttles(shell.bootstrap))
    assert verified(shell.bootstrap, there) == completed(plan)

    undone = shell.plimsoll("rollback", *CHANGE)
    assert undone.returncode == 0, undone.stderr
    wait_until(lambda: not throttles(shell.bootstrap))
    back = tmp_path / "stock" / "rollback.json"
    assert verified(shell.bootstrap, back) == completed(plan)
    for journal in (tmp_path / "state" / "journal").glob("*.jsonl"):
        events = [record.event for record in read_journal(journal)]
        assert JournalEvent.THROTTLED in events


def test_the_copied_commands_lead_to_the_plans_placement(
    filled: LocalCluster, topic: str, tmp_path: Path
) -> None:
    """As pasted into a shell: the moves and, once they are done, the elections."""
    plan = plan_for(filled.bootstrap, topic, AFTER)
    commands = shell_commands(plan, filled.bootstrap).removeprefix("cat > ")
    moves, _, elections = commands.partition("cat > ")
    in_a_shell(f"cat > {moves}", tmp_path)
    (written,) = tmp_path.glob("plimsoll-*.json")
    wait_until(lambda: verified(filled.bootstrap, written) == completed(plan))
    in_a_shell(f"cat > {elections}", tmp_path)
    pids = [m.id for m in plan.moves]
    with KafkaAdmin(filled.bootstrap, 10.0) as admin:
        wait_until(
            lambda: (
                {p: (v.replicas, v.leader) for p, v in admin.partitions(pids).items()}
                == {m.id: (m.replicas_after, m.leader_after) for m in plan.moves}
            )
        )
