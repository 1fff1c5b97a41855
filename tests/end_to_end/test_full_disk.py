"""A full journal disk during a run, simulated by a limit on the size of files."""

import resource
import subprocess
import uuid
from functools import partial
from pathlib import Path

import pytest

from executor.client.kafka_admin import KafkaAdmin
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from lab.local_cluster.local_cluster import LocalCluster
from model.ids import BrokerId, TopicName
from model.plan.plan import write_plan
from tests.support.cli_offline import PLIMSOLL, RUN_S
from tests.support.cli_on_cluster import Shell, placement, wait_until
from tests.support.executor.plan_builders import plan_for

PARTITIONS = 32


@pytest.mark.kafka
def test_a_run_whose_journal_cannot_grow_ends_clean_and_is_resumed(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    topic = f"full-{uuid.uuid4().hex[:6]}"
    local_cluster.create_topic(topic, [[1, 2]] * PARTITIONS)
    after = {number: [3, 2] for number in range(PARTITIONS)}
    write_plan(tmp_path / "plan.json", plan_for(local_cluster.bootstrap, topic, after))
    shell = Shell(tmp_path, local_cluster.bootstrap)
    # The plan beside the journal still fits.
    room = 2 * (tmp_path / "plan.json").stat().st_size
    apply = ("apply", "plan.json", "--allow-changes", "--yes", "--throttle", "50MB/s")
    ended = subprocess.run(
        [PLIMSOLL, *apply],
        cwd=tmp_path,
        env=shell.environment,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        stdin=subprocess.DEVNULL,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (room, room)),
    )
    assert ended.returncode not in (0, 1)
    assert "cannot be written (File too large), so nothing further is" in ended.stdout
    assert "continue with plimsoll run --resume" in " ".join(ended.stdout.split())
    (journal,) = (tmp_path / "state" / "journal").glob("*.jsonl")
    assert journal.stat().st_size == room
    assert '"event":"ended"' not in journal.read_text()
    with KafkaAdmin(shell.bootstrap, 10.0) as admin:

        def is_clean() -> bool:
            rates = [admin.own_broker_configs(BrokerId(b), RATES) for b in (1, 2, 3)]
            name = TopicName(topic)
            lists = admin.own_topic_configs([name], (LEADERS, FOLLOWERS))[name]
            return not any([*rates, lists])

        wait_until(is_clean)
        resumed = shell.plimsoll("run", "--resume", "--allow-changes")
        assert resumed.returncode == 0, resumed.stderr
        assert placement(shell.bootstrap, topic) == after
        wait_until(is_clean)
