"""The output of `plimsoll status` besides loads."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from collector.brokers.fan_out import Silence
from control import compose
from control.cli.commands.status import status
from control.cli.output import Form
from control.render.cluster_status import cluster_text
from control.settings.settings import Settings
from control.tasks.broker_task import Operation
from control.tasks.task_files import TaskFiles
from executor.timing import RunLimits
from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Snapshot
from tests.support.control.loop_parts import MB, cluster
from tests.support.executor.plan_builders import CLUSTER_ID
from tests.support.executor.simulated_runs import Killed, SimulatedRun
from tests.support.model import clusters
from tests.support.model.failed_disks import with_failed_disks

SILENCE = Silence(broker=2, since_ms=1_700_000_000_000, reason="no answer within 2 s")
WORDS = (
    "Broker 2 has not answered since 2023-11-14T22:13:20Z (no answer within 2 s); its "
    "partitions keep their last known loads for a minute."
)


@pytest.mark.parametrize("form", [Form.TABLE, Form.JSON])
def test_a_silent_broker_is_named_with_the_time(form: Form) -> None:
    state = cluster([1, 2, 3], [MB] * 3)
    text = cluster_text(state, Goals(), form, now_ms=0, silent=[SILENCE])
    if form is Form.JSON:
        assert json.loads(text)["notes"] == [WORDS]
    else:
        assert WORDS in text


@pytest.mark.parametrize("form", [Form.TABLE, Form.JSON])
def test_a_competing_rebalancer_is_named(form: Form) -> None:
    state, message = cluster([1, 2, 3], [MB] * 3), "Cruise Control is here."
    text = cluster_text(state, Goals(), form, now_ms=0, notes=[message])
    assert message in (json.loads(text)["notes"] if form is Form.JSON else text)


def test_partitions_that_are_not_whole_are_counted() -> None:
    """A snapshot alone tells which are offline; only the cluster tells which are in sync."""
    state = with_failed_disks(3, [(1, 2), (2,)], {(1, 2)})
    lacking = Replication(under_replicated=1200, offline=1, below_min_isr=4)
    text = cluster_text(state, Goals(), Form.TABLE, now_ms=0, replication=lacking)
    words = "partitions: 1 offline, 1,200 under-replicated, 4 below min.insync.replicas\n"
    assert words in text
    assert "Log directory /b of broker 2 has failed with 1 replica, 1 of them unavailable." in text
    alone = json.loads(cluster_text(state, Goals(), Form.JSON, now_ms=0))
    assert alone["offline"] == 1
    assert "below_min_isr" not in alone
    whole = cluster_text(cluster([1, 2, 3], [MB] * 3), Goals(), Form.TABLE, now_ms=0)
    assert "partitions: " not in whole


class Observed:
    """A collector that has one snapshot."""

    silent = ()

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def wait(self, _: float | None = None) -> Snapshot:
        return self._snapshot

    def replication(self) -> Replication:
        return Replication(under_replicated=3, offline=0, below_min_isr=2)


def test_settings_left_by_an_interrupted_run_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at = SimulatedRun(
        folder=tmp_path,
        before={0: (1, 2)},
        after={0: (3, 2)},
        limits=RunLimits(throttle_bytes_per_s=50_000_000),
    )
    at.kill_at(4, made=True)
    with pytest.raises(Killed):
        at.run()
    state = cluster([1, 2, 3], [MB] * 3)
    header = state.header.model_copy(update={"cluster_id": CLUSTER_ID})
    result = nullcontext(Observed(Snapshot(header, state.partitions)))
    monkeypatch.setattr(compose, "observer", lambda *_, **__: result)
    monkeypatch.setattr(compose, "rebalancers", lambda *_, **__: [])
    monkeypatch.setattr(compose, "journal_dir", lambda _: tmp_path)
    assert status(settings=Settings(state_dir=tmp_path), output=Form.JSON) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [answer[k] for k in ("offline", "under_replicated", "below_min_isr")] == [0, 3, 2]
    (output,) = answer["notes"]
    assert "has not restored all settings: a throttle (leader." in output
    assert output.endswith("with plimsoll cleanup --allow-changes.")


def test_an_open_task_of_the_cluster_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = cluster([1, 2, 3], [MB] * 3)
    files, brokers = TaskFiles(tmp_path), (BrokerId(3),)
    task = files.add(state.header.cluster_id, Operation.REMOVE, brokers, "ada", 1)
    files.add("another", Operation.REMOVE, brokers, "ada", 2_000)
    monkeypatch.setattr(compose, "observer", lambda *_, **__: nullcontext(Observed(state)))
    monkeypatch.setattr(compose, "rebalancers", lambda *_, **__: [])
    assert status(settings=Settings(state_dir=tmp_path), output=Form.JSON) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert note.startswith(f"Task {task.task_id} is open: remove broker 3, requested.")


def test_a_placement_in_a_topics_config_is_not_a_rack_violation() -> None:
    value = '{"version": 1, "replicas": [{"count": 2, "constraints": {"rack": "a"}}]}'
    plain = clusters.snapshot(clusters.brokers(4, "aabb"), [(1, 2)])
    (topic,) = plain.header.topics
    for placement, message in ((value, ""), ("{", "of topic orders is ignored")):
        topics = (topic.model_copy(update={"placement": placement}),)
        header = plain.header.model_copy(update={"topics": topics})
        state = Snapshot(header, plain.partitions)
        text = cluster_text(state, Goals(), Form.JSON, now_ms=0)
        assert message in text
        assert json.loads(text)["rack_violations"]["count"] == bool(message)
