"""Marks of brokers: who sets them, whom they bind, and files that cannot be trusted."""

import os
from pathlib import Path
from typing import Any

import pytest

from control.tasks.broker_marks import (
    FILE,
    BrokerMark,
    MarkedBrokers,
    change_marks,
    marked,
    read_marks,
    states_of,
    unmarked,
    with_states,
)
from model.errors import ConfigError
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState
from tests.support.model import clusters


def mark(broker: int, **others: Any) -> BrokerMark:
    usual: dict[str, Any] = {
        "cluster_id": "c",
        "broker": BrokerId(broker),
        "state": BrokerState.EXCLUDED,
        "at_ms": 1,
        "by": "ada",
        "reason": "old disks",
    }
    return BrokerMark(**(usual | others))


def test_marks_replace_those_of_the_same_broker_and_leave_others() -> None:
    draining = mark(4, state=BrokerState.DRAINING)
    found = marked((mark(4), mark(2), mark(4, cluster_id="other")), (draining,))
    assert found == (mark(2), draining, mark(4, cluster_id="other"))
    assert unmarked(found, "c", [BrokerId(4)]) == (mark(2), mark(4, cluster_id="other"))


def test_a_task_removes_its_own_marks_alone() -> None:
    own, other = mark(4, task_id="a"), mark(5)
    assert unmarked((own, other), "c", [BrokerId(4), BrokerId(5)], "a") == (other,)


def test_marks_bind_live_brokers_of_their_cluster() -> None:
    members = clusters.brokers(4, states={2: BrokerState.DEAD, 3: BrokerState.NEW})
    marks = [mark(2), mark(3), mark(4, state=BrokerState.DRAINING), mark(1, cluster_id="other")]
    found = {b.id: b.state for b in with_states(members, states_of(marks, "c"))}
    assert found == {
        1: BrokerState.ALIVE,
        2: BrokerState.DEAD,
        3: BrokerState.EXCLUDED,
        4: BrokerState.DRAINING,
    }


@pytest.mark.parametrize(
    ("own", "set_to", "wanted"),
    [
        ("cordoned", "draining", "draining"),
        ("slow", "draining", "draining"),
        ("excluded", "draining", "draining"),
        ("cordoned", "excluded", "excluded"),
        ("slow", "excluded", "slow"),
        ("draining", "excluded", "draining"),
        ("dead", "draining", "dead"),
    ],
)
def test_of_mark_and_own_state_the_one_that_forbids_more_holds(
    own: str, set_to: str, wanted: str
) -> None:
    """An operator may have cordoned a broker before it is removed."""
    members = clusters.brokers(4, states={3: BrokerState(own)})
    states = states_of([mark(3, state=BrokerState(set_to))], "c")
    found = {b.id: b.state for b in with_states(members, states)}
    assert found[BrokerId(3)] is BrokerState(wanted)


def test_marks_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert read_marks(tmp_path) == ()
    change_marks(tmp_path, lambda marks: marked(marks, [mark(4)]))
    assert read_marks(tmp_path) == (mark(4),)
    written_ns = (tmp_path / FILE).stat().st_mtime_ns
    change_marks(tmp_path, lambda marks: marks)
    assert (tmp_path / FILE).stat().st_mtime_ns == written_ns


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"broker":4', '"broker":3', "its checksum does not fit"),
        ('"1.1"', '"2.0"', "use a newer plimsoll"),
        ('"marks":', "", "is not a plimsoll.broker-marks file"),
    ],
)
def test_nothing_is_planned_on_marks_that_cannot_be_trusted(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    change_marks(tmp_path, lambda marks: marked(marks, [mark(4)]))
    path = tmp_path / FILE
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ConfigError, match=words):
        read_marks(tmp_path)
    with pytest.raises(ConfigError, match=words):
        MarkedBrokers(tmp_path)("c", clusters.brokers(4))
    with pytest.raises(ConfigError, match=words):
        change_marks(tmp_path, lambda marks: marked(marks, [mark(5)]))


def test_a_watcher_sees_new_marks_and_survives_a_damaged_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watcher, members = MarkedBrokers(tmp_path), clusters.brokers(4)
    assert watcher("c", members) == members
    change_marks(tmp_path, lambda marks: marked(marks, [mark(4)]))
    assert watcher("c", members)[3].state is BrokerState.EXCLUDED
    path = tmp_path / FILE
    path.write_text("{")
    os.utime(path, ns=(1, 1))
    for _ in range(3):
        assert watcher("c", members)[3].state is BrokerState.EXCLUDED
    assert len(caplog.records) == 1
    assert "the marks read before still hold" in caplog.text
