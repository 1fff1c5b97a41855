"""Settings left in force by runs: restored by later commands, or named."""

import fcntl
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from control.cli.main import app
from executor.executor import Executor
from executor.journal.journal_repair import repaired
from executor.journal.left_settings import left_settings
from executor.journal.records import scan
from executor.journal.run_journal import run_path, run_paths
from executor.platforms.automq_balancer import NEVER, THRESHOLDS
from executor.platforms.tiered_segments import SEGMENT
from executor.throttle.quota import LEADER_RATE
from executor.timing import RunLimits
from lab.simulated_cluster.faults import Faults, Lost
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.errors import ExecutionStopped, GuardrailRefused, PlimsollError
from model.ids import BrokerId, PartitionId
from model.run import RunState
from model.snapshot.snapshot import StorageKind
from tests.support.executor.plan_builders import CLUSTER_ID
from tests.support.executor.simulated_runs import MB, TOPIC, Killed, SimulatedRun, interrupted_runs

TWO = BrokerId(2)
WHAT = (
    "a throttle (leader.replication.throttled.rate, "
    "follower.replication.throttled.rate, leader.replication.throttled.replicas, "
    "follower.replication.throttled.replicas) on the brokers 1, 2, 3 and the topics "
    "orders. Restore the previous values with plimsoll cleanup --allow-changes."
)


def site(folder: Path, storage: StorageKind = StorageKind.REPLICATED) -> SimulatedRun:
    return SimulatedRun(
        folder=folder,
        before={0: (1, 2), 1: (2, 1)},
        after={0: (3, 2), 1: (3, 1)},
        brokers=3,
        storage=storage,
        limits=RunLimits(throttle_bytes_per_s=50 * MB, lower_segments=True),
    )


def interrupted(
    folder: Path, change: int = 6, storage: StorageKind = StorageKind.REPLICATED
) -> SimulatedRun:
    at = site(folder, storage)
    at.kill_at(change, made=True)
    with pytest.raises(Killed):
        at.run()
    at.stop_killing()
    assert not at.is_clean
    return at


@contextmanager
def unwritable(path: Path) -> Iterator[None]:
    """A file that can be read and not written, also by root."""
    data = path.read_bytes()
    sealed = os.memfd_create("journal", os.MFD_ALLOW_SEALING)
    os.write(sealed, data)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
    fcntl.fcntl(sealed, fcntl.F_ADD_SEALS, seals)
    path.unlink()
    path.symlink_to(f"/proc/self/fd/{sealed}")
    yield
    path.unlink()
    path.write_bytes(data)
    os.close(sealed)


def in_schema_1(path: Path) -> None:
    """Write a journal as plimsoll did before records were chained."""
    lines = []
    for record in scan(path.read_bytes(), path.stem).records:
        document = record.model_dump(mode="json") | {"schema_version": "1.1"}
        for key in ("checksum", "previous", "sequence"):
            del document[key]
        lines.append(json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n")
    path.write_text("".join(lines))


@pytest.mark.parametrize("schema", [1, 2])
@pytest.mark.parametrize("storage", [StorageKind.REPLICATED, StorageKind.TIERED])
def test_a_rollback_restores_the_settings_of_an_interrupted_run(
    tmp_path: Path, storage: StorageKind, schema: int
) -> None:
    make = partial(site, storage=storage)
    for cut in interrupted_runs(tmp_path, make, made=True):
        if schema == 1:
            in_schema_1(run_paths(cut.folder)[0])
        cut.cluster.advance(100.0)
        back, _ = cut.executor().plan_rollback(cut.folder, None)
        if back.moves:
            assert cut.run(back).state is RunState.DONE
            assert cut.is_clean
            assert left_settings(cut.folder, CLUSTER_ID) == []


def test_a_rollback_recognises_a_throttle_left_by_the_run(tmp_path: Path) -> None:
    """The run back is killed too, under another rate; both are cleaned up."""
    for change in range(0, 12, 2):
        at = interrupted(tmp_path / f"{change}", 8)
        at.cluster.advance(100.0)
        back, _ = at.executor().plan_rollback(at.folder, None)
        at.limits = RunLimits(throttle_bytes_per_s=60 * MB)
        at.kill_at(change, made=True)
        with pytest.raises(Killed):
            at.run(back)
        at.stop_killing()
        at.executor().clean_up(at.folder)
        assert at.is_clean


def left_by_two_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> SimulatedRun:
    """The second run found the throttle of the first one, and would restore that."""
    at = interrupted(folder)
    at.cluster.advance(100.0)
    at.before = {n: of for n, (of, _) in at.placement.items()}
    at.after = {0: (1, 2), 1: (2, 1)}
    at.limits = RunLimits(throttle_bytes_per_s=60 * MB)
    at.kill_at(4, made=True)
    with monkeypatch.context() as patched:
        # As in versions in which runs did not first restore earlier settings.
        patched.setattr(Executor, "_restore_first", lambda *_, **__: None)
        with pytest.raises(Killed):
            at.run()
    at.stop_killing()
    assert at.cluster.brokers[TWO].configs[LEADER_RATE] == str(60 * MB)
    return at


def test_runs_are_cleaned_up_from_the_newest_to_the_oldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = left_by_two_runs(tmp_path, monkeypatch)
    at.executor().clean_up(at.folder)
    assert at.is_clean
    assert left_settings(at.folder, CLUSTER_ID) == []


def test_a_resumed_run_does_not_restore_the_throttle_of_an_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = left_by_two_runs(tmp_path, monkeypatch)
    assert at.resume().state is RunState.DONE
    assert at.is_clean
    assert left_settings(at.folder, CLUSTER_ID) == []


@pytest.mark.parametrize("call", range(12))
def test_an_older_run_recognises_rates_left_by_a_newer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """It used to take them for someone else's, so that its own came back for good."""
    at = left_by_two_runs(tmp_path, monkeypatch)
    at.faults.lost = {call: Lost.REQUEST, call + 1: Lost.REQUEST}
    at.executor().clean_up(at.folder)
    at.faults.lost.clear()
    at.executor().clean_up(at.folder)
    assert at.is_clean
    assert left_settings(at.folder, CLUSTER_ID) == []


def test_the_report_of_a_rollback_names_remaining_settings(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    at = interrupted(tmp_path, 8)
    at.cluster.advance(100.0)
    back, _ = at.executor().plan_rollback(at.folder, None)
    (path,) = run_paths(at.folder)
    at.faults.refusals["alter_broker_configs"] = "Policy says no."
    at.limits = RunLimits()
    report = at.run(back)
    named = f"The run {path.stem} has not restored all settings: {WHAT}"
    assert (report.state, report.reason) == (RunState.FAILED, named)
    assert "broker 2 keeps its throttle: the cluster did not " in caplog.text
    at.faults.refusals.clear()
    at.executor().clean_up(at.folder)
    assert at.is_clean


@pytest.mark.parametrize("rate", [None, 60 * MB])
def test_a_new_run_first_restores_settings_of_an_earlier_one(
    tmp_path: Path, rate: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    """It used to restore the rate of the earlier run at its end."""
    at = interrupted(tmp_path)
    at.cluster.advance(100.0)
    at.cluster.brokers[BrokerId(3)].configs[LEADER_RATE] = "7000000"
    at.before = {n: of for n, (of, _) in at.placement.items()}
    at.after = {0: (1, 2)}
    at.limits = RunLimits(throttle_bytes_per_s=rate)
    assert at.run().state is RunState.DONE
    assert at.cluster.brokers[BrokerId(3)].configs == {LEADER_RATE: "7000000"}
    del at.cluster.brokers[BrokerId(3)].configs[LEADER_RATE]
    assert at.is_clean
    assert left_settings(tmp_path, CLUSTER_ID) == []
    assert "its throttle is gone" in caplog.text


def test_a_new_run_names_settings_it_could_not_restore(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    at = interrupted(tmp_path)
    at.cluster.advance(100.0)
    at.before = {n: of for n, (of, _) in at.placement.items()}
    at.after = {0: (1, 2)}
    at.limits = RunLimits()
    at.faults.refusals["alter_broker_configs"] = "Policy says no."
    assert at.run().state is RunState.DONE
    assert f"has not restored all settings: {WHAT}" in caplog.text
    at.faults.refusals.clear()
    at.executor().clean_up(at.folder)
    assert at.is_clean


def test_a_throttle_stays_while_partitions_are_being_moved(tmp_path: Path) -> None:
    at = interrupted(tmp_path)
    rate = at.cluster.brokers[TWO].configs[LEADER_RATE]
    admin = SimulatedAdmin(at.cluster, Faults())
    at.cluster.advance(100.0)
    at.before = {n: of for n, (of, _) in at.placement.items()}
    at.after = {1: (2, 1)}
    admin.reassign({PartitionId(TOPIC, 0): [BrokerId(1), TWO]})
    with pytest.raises(GuardrailRefused, match="being moved"):
        at.run()
    assert at.cluster.brokers[TWO].configs[LEADER_RATE] == rate


def test_a_plan_for_another_cluster_restores_nothing_on_this_one(tmp_path: Path) -> None:
    at = interrupted(tmp_path)
    at.cluster.advance(100.0)
    other = at.plan.model_copy(update={"cluster_id": "other"}).seal()
    with pytest.raises(GuardrailRefused, match="The plan is for the cluster other"):
        at.run(other)
    assert not at.is_clean


def test_remaining_settings_are_reported_if_an_error_ends_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker accepts the throttle and does not remove it."""
    at = site(tmp_path)
    admin = SimulatedAdmin(at.cluster, Faults())
    executor = Executor(admin, timing=at.cluster.timing, limits=at.limits)
    change = admin.alter_broker_configs

    def refusing(broker: BrokerId, values: dict[str, str | None]) -> None:
        if broker == TWO or None in values.values():
            raise ExecutionStopped(f"broker {broker} refuses")
        change(broker, values)

    admin.alter_broker_configs = refusing  # type: ignore[method-assign, assignment]
    with pytest.raises(ExecutionStopped, match="broker 2 refuses"):
        executor.execute(
            at.plan, journal_dir=tmp_path, observe=at.shown.append, steering=at.steering
        )
    with caplog.at_level(logging.WARNING):
        assert "broker 1 keeps its throttle: broker 1 refuses" in caplog.text
    assert len(left_settings(tmp_path, CLUSTER_ID)) == 1


def test_completed_runs_and_runs_in_progress_are_not_reported(tmp_path: Path) -> None:
    at = site(tmp_path)
    seen = []
    at.run(observe=lambda _: seen.append(left_settings(tmp_path, CLUSTER_ID)))
    assert at.is_clean
    assert seen
    assert not any(seen)
    assert left_settings(tmp_path, CLUSTER_ID) == []


def test_an_unreadable_journal_does_not_hide_others(tmp_path: Path) -> None:
    at = interrupted(tmp_path)
    newer = run_path(tmp_path, "r00000002-20270115T080000000-1a2b3c4d")
    newer.write_bytes(b"#" * 100 + b"\n")
    named, unreadable = left_settings(tmp_path, CLUSTER_ID)
    assert WHAT in named
    assert str(newer) in unreadable
    assert "may have left settings in force" in unreadable
    at.executor().clean_up(at.folder)
    assert at.is_clean
    assert at.executor().left(at.folder) == [unreadable]


def test_a_cleanup_restores_even_if_it_cannot_be_recorded(tmp_path: Path) -> None:
    """It used to report that nothing was changed after changing everything."""
    at = interrupted(tmp_path)
    (path,) = run_paths(tmp_path)
    with unwritable(path):
        (message,) = at.executor().clean_up(tmp_path)
        assert message == (
            f"run {path.stem}: its throttle is gone; its journal cannot record that (Operation not "
            f"permitted); make {path} writable and repeat plimsoll cleanup"
        )
        assert at.is_clean
        assert len(at.executor().left(tmp_path)) == 1
    at.executor().clean_up(tmp_path)
    assert at.executor().left(tmp_path) == []


@pytest.mark.parametrize("command", ["cleanup", "rollback"])
@pytest.mark.parametrize("refused", [True, False])
def test_a_command_that_leaves_settings_exits_with_6(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, refused: bool
) -> None:
    at = interrupted(tmp_path, 8)
    at.cluster.advance(100.0)
    if refused:
        at.faults.refusals["alter_broker_configs"] = "Policy says no."
    at.limits = RunLimits()
    monkeypatch.setattr("control.compose.executor", lambda _: at.executor())
    monkeypatch.setattr("control.compose.journal_dir", lambda _: at.folder)
    yes = ["--yes"] if command == "rollback" else []
    run = CliRunner().invoke(app, [command, "-b", "h:1", "--allow-changes", *yes])
    assert run.exit_code == (6 if refused else 0), run.output
    assert (WHAT in run.output) == refused
    assert at.is_clean != refused


@pytest.mark.parametrize("repairs", [False, True])
def test_a_throttle_without_a_record_stays_until_someone_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repairs: bool
) -> None:
    at = interrupted(tmp_path)
    at.cluster.advance(100.0)
    (path,) = run_paths(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if b"throttled" not in line))
    if repairs:
        repaired(tmp_path, path.stem, at.cluster.timing)
    monkeypatch.setattr("control.compose.executor", lambda _: at.executor())
    monkeypatch.setattr("control.compose.journal_dir", lambda _: at.folder)
    command = ["cleanup", "-b", "h:1", "--allow-changes", "-o", "json"]
    run = CliRunner().invoke(app, command)
    assert run.exit_code == 6, run.output
    left = json.loads(run.stdout)["left"]
    shown = f"broker 2 has {LEADER_RATE} = 50000000, which the run {path.stem} may "
    assert any(shown in message for message in left)
    removed = f"--entity-type brokers --entity-name 2 --delete-config {LEADER_RATE}"
    assert any(removed in message for message in left)
    for broker in at.cluster.brokers.values():
        broker.configs.clear()
    at.cluster.topic_configs.clear()
    run = CliRunner().invoke(app, command)
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["left"] == []


@pytest.mark.parametrize("storage", [StorageKind.TIERED, StorageKind.SHARED])
def test_settings_without_a_record_are_named_with_their_remedy(
    tmp_path: Path, storage: StorageKind
) -> None:
    one_each = {0: (1,), 1: (2,)}
    at = SimulatedRun(folder=tmp_path, before=one_each, after={0: (3,)}, storage=storage)
    at.kill_at(0, made=True)
    with suppress(Killed):
        at.run()
    at.stop_killing()
    at.cluster.advance(100.0)
    (path,) = run_paths(tmp_path)
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([first, b"?\n", *rest[1:]]))
    admin = SimulatedAdmin(at.cluster, Faults())
    if storage is StorageKind.TIERED:
        key, value, entity = SEGMENT, "1048576", f"topics --entity-name {TOPIC}"
        admin.alter_topic_configs(TOPIC, {key: value})
    else:
        key, value, entity = THRESHOLDS[0], str(NEVER), "brokers --entity-default"
        admin.alter_broker_configs(None, {key: value})
    removes = f"kafka-configs.sh --alter --entity-type {entity} --delete-config {key}"
    reported = at.executor().left(tmp_path)
    assert [message for message in reported if removes in message and f"{key} = {value}" in message]


class Command(Enum):
    """What an operator does after a run has ended in any way."""

    RESUME = "resume"
    ROLL_BACK = "rollback"
    CLEAN_UP = "cleanup"
    NEW_RUN = "apply"


def do(at: SimulatedRun, command: Command) -> None:
    match command:
        case Command.RESUME:
            at.resume()
        case Command.ROLL_BACK:
            back, _ = at.executor().plan_rollback(at.folder, None)
            at.run(back)
        case Command.CLEAN_UP:
            at.executor().clean_up(at.folder)
        case Command.NEW_RUN:
            at.before = {n: replicas for n, (replicas, _) in at.placement.items()}
            at.leads = {n: leader for n, (_, leader) in at.placement.items()}
            # From two of the brokers 1, 2 and 3 to the third.
            at.after = {n: (6 - sum(of), of[1]) for n, of in at.before.items()}
            at.run()


@settings(max_examples=40, deadline=None)
@given(
    storage=st.sampled_from([StorageKind.REPLICATED, StorageKind.TIERED]),
    commands=st.lists(
        st.tuples(
            st.sampled_from(Command),
            st.sampled_from([None, 50 * MB, 60 * MB, 70 * MB]),
            st.none() | st.tuples(st.integers(0, 12), st.booleans()),
            st.dictionaries(st.integers(0, 12), st.sampled_from(Lost), max_size=3),
            st.sampled_from([0.0, 30.0, 200.0]),
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_whatever_is_interrupted_its_settings_are_restored_or_named(
    tmp_path_factory: pytest.TempPathFactory,
    storage: StorageKind,
    commands: list[tuple[Command, int | None, tuple[int, bool] | None, dict[int, Lost], float]],
) -> None:
    """After each command that was not killed, and by a cleanup in the end."""
    at = interrupted(tmp_path_factory.mktemp("run"), 8, storage)
    for command, rate, killed, lost, pause_s in commands:
        at.cluster.advance(pause_s)
        at.limits = RunLimits(throttle_bytes_per_s=rate, lower_segments=True)
        at.faults.lost = dict(lost)
        if killed is not None:
            at.kill_at(killed[0], made=killed[1])
        try:
            with suppress(PlimsollError):
                do(at, command)
            assert at.is_clean or left_settings(at.folder, CLUSTER_ID)
        except Killed:
            pass
        at.stop_killing()
        at.faults.lost.clear()
    at.cluster.advance(400.0)
    at.executor().clean_up(at.folder)
    assert at.is_clean
    assert left_settings(at.folder, CLUSTER_ID) == []
