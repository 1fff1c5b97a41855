"""Foreign reassignments are found before a run and reported once."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from model.ids import PartitionId, TopicName
from model.run import RunState
from tests.support.executor.simulated_runs import SimulatedRun

CRUISE = TopicName("__CruiseControlMetrics")


def test_the_run_does_not_repeat_warnings_given_before_approval(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    at = SimulatedRun(folder=tmp_path, before={0: (1, 2), 1: (1, 2)}, after={0: (1, 3)})
    pid, beside = PartitionId(CRUISE, 0), at.partitions[1]
    at.cluster.partitions[pid] = replace(beside, id=pid, topic_id="cruise")
    with at.executor() as executor:
        (message,) = executor.rebalancers(shared=False)
        assert message.startswith(f"The topic {CRUISE} belongs to Cruise Control.")
        assert not caplog.messages
        executor.dry_run(at.plan)
        with caplog.at_level(logging.WARNING, "plimsoll.executor"):
            report = executor.execute(
                at.plan, journal_dir=at.folder, observe=lambda _: None, steering=at.steering
            )
    assert report.state is RunState.DONE
    assert caplog.messages.count(message) == 1
