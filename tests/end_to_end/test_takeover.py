"""A killed run is resumed on another host, which has only the bucket."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.local_cluster.local_cluster import LocalCluster
from model.plan.plan import write_plan
from tests.support.cli_on_cluster import Shell, kill_after, placement
from tests.support.executor.plan_builders import plan_for
from tests.support.executor.s3_server import BUCKET, s3_server

PARTITIONS = 8
CONFIG = """
timeout_s = 2

[archive]
endpoint_url = "{endpoint}"
bucket = "{bucket}"
prefix = "kafka/"
access_key = "me"
secret_key = "secret"
"""


@pytest.fixture(scope="module")
def config() -> Iterator[str]:
    with s3_server() as endpoint:
        yield CONFIG.format(endpoint=endpoint, bucket=BUCKET)


@pytest.fixture
def hosts(local_cluster: LocalCluster, config: str, tmp_path: Path) -> list[Shell]:
    result = [Shell(tmp_path / name, local_cluster.bootstrap) for name in "ab"]
    for host in result:
        host.folder.mkdir()
        (host.folder / "plimsoll.toml").write_text(config)
    return result


@pytest.mark.kafka
@pytest.mark.slow
def test_a_killed_run_is_resumed_on_another_host(
    local_cluster: LocalCluster, hosts: list[Shell]
) -> None:
    a, b = hosts
    topic = f"takeover-{uuid.uuid4().hex[:6]}"
    local_cluster.create_topic(topic, [[1, 2]] * PARTITIONS)
    plan = plan_for(local_cluster.bootstrap, topic, {p: [3, 2 - p % 2] for p in range(PARTITIONS)})
    before = placement(a.bootstrap, topic)
    after = {m.partition: list(m.replicas_after) for m in plan.moves}
    write_plan(a.folder / "plan.json", plan)
    slow = ("apply", "plan.json", "--allow-changes", "--yes", "--throttle", "50MB/s")
    kill_after(a.start(*slow), a, 3)
    (cut,) = a.runs()
    assert cut["event"] != "ended"

    resumed = b.plimsoll("run", "--resume", "--allow-changes", "-o", "json")
    assert resumed.returncode == 0, resumed.stderr
    assert "holds the lease s3://archive/kafka/" in resumed.stderr
    report = json.loads(resumed.stdout)
    assert report["run_id"] == cut["run_id"]
    assert {m["state"] for m in report["moves"]} == {"done"}
    assert placement(b.bootstrap, topic) == before | after

    again = a.plimsoll("run", "--resume", "--allow-changes")
    assert again.returncode == 2
    assert "has ended; nothing is left to resume" in again.stderr
    assert a.runs() == b.runs()
    back = a.plimsoll("rollback", "--allow-changes", "--yes")
    assert back.returncode == 0, back.stderr
    assert placement(a.bootstrap, topic) == before
    assert a.plimsoll("cleanup", "--allow-changes").stdout == ("no run has left settings changed\n")


@pytest.mark.kafka
def test_without_its_bucket_no_command_changes_anything(
    local_cluster: LocalCluster, hosts: list[Shell]
) -> None:
    a, _ = hosts
    topic = f"takeover-{uuid.uuid4().hex[:6]}"
    local_cluster.create_topic(topic, [[1, 2]])
    write_plan(a.folder / "plan.json", plan_for(local_cluster.bootstrap, topic, {0: [3, 2]}))
    path = a.folder / "plimsoll.toml"
    text = path.read_text()
    for old, new, code, message in (
        ("http://", "http://127.0.0.1:1/", 3, "Could not connect"),
        (f'"{BUCKET}"', '"another"', 2, "bucket does not exist"),
        ("http://", "nowhere:", 2, "Invalid endpoint"),
    ):
        path.write_text(text.replace(old, new))
        for command in (("apply", "plan.json", "--yes"), ("cleanup",), ("rollback",)):
            process = a.plimsoll(*command, "--allow-changes")
            assert process.returncode == code, process.stderr
            assert "plimsoll: Cannot " in process.stderr
            assert message in process.stderr
    assert placement(a.bootstrap, topic) == {0: [1, 2]}
    assert a.runs() == []
