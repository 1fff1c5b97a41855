"""AutoMQ's own balancer is suspended with consent and restored afterwards."""

import copy
import itertools
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from executor.client.cluster_admin import ClusterAdmin
from executor.executor import Executor
from executor.journal.run_history import past_run, read_journal
from executor.platforms.automq import AutoMQ
from executor.platforms.automq_balancer import ENABLE, NEVER, THRESHOLDS, AutoMQBalancer
from model.errors import ClusterUnreachable, ExecutionStopped, GuardrailRefused
from model.ids import BrokerId, PartitionId
from model.plan.plan import Move
from model.run import JournalEvent, RunState
from model.snapshot.snapshot import StorageKind
from tests.support.executor.fake_platform import FakeConfigs, FakeTime, Fault
from tests.support.executor.fake_runs import FakeRun, interrupted_runs, kill_at
from tests.support.executor.plan_builders import CLUSTER_ID, ids, move, plan
from tests.support.executor.simulated_runs import Killed

IN, OUT = THRESHOLDS
ONE, TWO, THREE = ids([1, 2, 3])
SHARED = plan([move(i, storage=StorageKind.SHARED) for i in range(4)])
FIRST = SHARED.moves[0].id
TOGETHER = {IN: "5000000"}
OWN = {TWO: {OUT: "7", "other": "1"}}
"""Broker 2 has one threshold of its own, and something else."""
RAISED = str(NEVER)


def bench_in(folder: Path, **more: Any) -> FakeRun:
    bench = FakeRun(folder, plan=SHARED, suspend=True, **more)
    bench.configs.together = dict(TOGETHER)
    bench.configs.brokers = copy.deepcopy(OWN)
    return bench


def killed_bench(folder: Path) -> FakeRun:
    """A run that was killed while the balancer was suspended."""
    bench = bench_in(folder)
    kill_at(bench, 9, written=True)
    with pytest.raises(Killed):
        bench.run()
    return bench


def settings_of(bench: FakeRun) -> tuple[dict[str, str], dict[BrokerId, dict[str, str]]]:
    return copy.deepcopy((bench.configs.together, bench.configs.brokers))


def platform(configs: FakeConfigs, time: FakeTime, *, suspend: bool) -> AutoMQ:
    admin = cast("ClusterAdmin", configs)
    return AutoMQ(admin, time.timing, suspend=suspend, wal=None)


def clean_up(bench: FakeRun) -> list[str]:
    """As `plimsoll cleanup` in another process."""
    bench.configs.unreachable = False
    timing = bench.time.timing
    return Executor(cast("ClusterAdmin", bench.configs), timing=timing).clean_up(bench.folder)


def test_the_balancer_is_suspended_on_every_broker_during_moves(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    seen = []

    def look(_: Move) -> None:
        seen.append(copy.deepcopy(settings_of(bench)))

    bench.platform._on_request = look
    report = bench.run()
    assert (report.state, report.reason) == (RunState.DONE, "")
    assert seen == [({IN: RAISED, OUT: RAISED}, {TWO: {OUT: RAISED, "other": "1"}})] * len(
        SHARED.moves
    )
    assert settings_of(bench) == (TOGETHER, OWN)


def test_settings_are_journalled_before_they_are_changed(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)

    def look() -> None:
        last = read_journal(bench.journal.path)[-1]
        assert last.event is not JournalEvent.STARTED

    bench.configs.on_change = look
    bench.run()
    records = {r.event: r for r in read_journal(bench.journal.path)}
    assert records[JournalEvent.BALANCER_SUSPENDED].detail == {
        "before": {"": {IN: "5000000", OUT: None}, "2": {OUT: "7"}}
    }
    assert records[JournalEvent.BALANCER_RESTORED].detail == {"theirs": []}


def test_without_consent_the_balancer_is_left_alone_and_the_run_refused(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    bench.suspend = False
    bench.configs.on_change = pytest.fail
    bench.run()
    refusing = platform(bench.configs, bench.time, suspend=False)
    with pytest.raises(GuardrailRefused, match=r"at broker 1 .* --suspend-balancer"):
        refusing.check(SHARED.moves)
    platform(bench.configs, bench.time, suspend=True).check(SHARED.moves)


@pytest.mark.parametrize("quiet", [{ENABLE: "false"}, dict.fromkeys(THRESHOLDS, str(2 * NEVER))])
def test_a_balancer_that_does_not_act_is_left_alone(tmp_path: Path, quiet: dict[str, str]) -> None:
    bench = bench_in(tmp_path)
    bench.configs.together, bench.configs.brokers = quiet, {}
    bench.configs.on_change = pytest.fail
    assert bench.run().state is RunState.DONE
    assert bench.events()[None, JournalEvent.BALANCER_SUSPENDED] == 0


def test_a_threshold_already_out_of_reach_is_left_alone(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    bench.configs.together = {IN: str(2 * NEVER)}
    balancer = AutoMQBalancer(cast("ClusterAdmin", bench.configs), bench.time.timing)
    suspended_balancer = balancer.plan(SHARED.moves)
    assert suspended_balancer is not None
    assert suspended_balancer.before == {None: {OUT: None}, TWO: {OUT: "7"}}


def test_moves_that_are_not_in_shared_storage_do_not_need_it(tmp_path: Path) -> None:
    bench = FakeRun(tmp_path, suspend=True)
    bench.configs.on_change = pytest.fail
    assert bench.run().state is RunState.DONE


def stop(bench: FakeRun) -> None:
    bench.time.after.append((bench.time.now_s + 0.1, bench.steering.stop))


def interrupt(bench: FakeRun) -> None:
    bench.time.after.append((bench.time.now_s + 0.1, _interrupt))


def _interrupt() -> None:
    raise KeyboardInterrupt


def fill_disk(bench: FakeRun) -> None:
    """The journal takes no record once the first move was sent."""
    write = bench.journal.write

    def full(event: JournalEvent, *moves: Any, **more: Any) -> None:
        if bench.platform.sent:
            raise ExecutionStopped("No space left on device")
        write(event, *moves, **more)

    bench.journal.write = full  # type: ignore[method-assign]


WAYS_OUT: dict[str, tuple[Callable[[FakeRun], None], object]] = {
    "stopped": (stop, RunState.STOPPED),
    "failed": (lambda bench: bench.after(0.1, ill="ill"), RunState.FAILED),
    "silent": (lambda bench: bench.after(0.1, silent=True), RunState.FAILED),
    "interrupted": (interrupt, KeyboardInterrupt),
    "disk full": (fill_disk, ExecutionStopped),
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_thresholds_are_restored_on_every_exit(tmp_path: Path, way: str) -> None:
    bench = bench_in(tmp_path, faults={FIRST: Fault.STUCK})
    bring_about, ends = WAYS_OUT[way]
    bring_about(bench)
    if isinstance(ends, RunState):
        assert bench.run().state is ends
    else:
        with pytest.raises(cast("type[BaseException]", ends)):
            bench.run()
    assert bench.platform.sent
    assert settings_of(bench) == (TOGETHER, OWN)


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("by", ["resume", "cleanup"])
def test_killed_at_any_record_it_is_restored(tmp_path: Path, by: str, written: bool) -> None:
    for bench in interrupted_runs(tmp_path, bench_in, written=written):
        if not bench.journal.path.exists():
            assert settings_of(bench) == (TOGETHER, OWN)
            continue
        if by == "resume":
            assert bench.resume().state is RunState.DONE
        else:
            clean_up(bench)
        assert settings_of(bench) == (TOGETHER, OWN)
        past = past_run(bench.folder, CLUSTER_ID, bench.journal.run_id)
        assert past.suspended_balancer is None
        assert clean_up(bench) == []


def kill_at_change(bench: FakeRun, change: int) -> None:
    """Die before the n-th change of brokers' settings."""
    count = itertools.count()

    def dying() -> None:
        if next(count) == change:
            bench.configs.unreachable = True
            raise Killed

    bench.configs.on_change = dying


@pytest.mark.parametrize("by", ["resume", "cleanup"])
def test_killed_between_two_changes_it_is_restored(tmp_path: Path, by: str) -> None:
    for change in range(4):
        bench = bench_in(tmp_path / f"{change}")
        kill_at_change(bench, change)
        with pytest.raises(Killed):
            bench.run()
        if by == "resume":
            assert bench.resume().state is RunState.DONE
        else:
            (output,) = clean_up(bench)
            assert output.endswith("AutoMQ's own balancer is restored")
        assert settings_of(bench) == (TOGETHER, OWN)


def test_a_run_is_resumed_without_consent_while_the_balancer_is_suspended(tmp_path: Path) -> None:
    bench = killed_bench(tmp_path)
    assert settings_of(bench) != (TOGETHER, OWN)
    bench.suspend = False
    assert bench.resume().state is RunState.DONE
    assert settings_of(bench) == (TOGETHER, OWN)


def test_settings_changed_by_someone_else_are_kept_and_reported(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)

    def change(_: Move) -> None:
        bench.configs.together[IN] = "9"
        bench.configs.brokers[TWO].pop(OUT, None)

    bench.platform._on_request = change
    report = bench.run()
    assert report.state is RunState.DONE
    assert report.reason == (
        f"someone else has set {IN} of all brokers to 9 in the meantime, which stays; someone else "
        f"has set {OUT} of broker 2 to its default in the meantime, which stays"
    )
    assert settings_of(bench) == ({IN: "9"}, {TWO: {"other": "1"}})


def test_a_setting_changed_after_a_crash_is_restored_by_the_resumed_run(tmp_path: Path) -> None:
    bench = killed_bench(tmp_path)
    bench.configs.together[IN] = "9"
    assert bench.resume().state is RunState.DONE
    assert settings_of(bench) == ({IN: "9"}, OWN)


def test_a_broker_that_does_not_answer_is_named_and_restored_by_cleanup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = bench_in(tmp_path)
    change = bench.configs.alter_broker_configs

    def silent(broker: BrokerId | None, values: dict[str, str | None]) -> None:
        if bench.platform.sent and broker is not None:
            raise ClusterUnreachable("no answer")
        change(broker, values)

    monkeypatch.setattr(bench.configs, "alter_broker_configs", silent)
    report = bench.run()
    assert report.state is RunState.FAILED
    assert report.reason == (
        "no answer came, so broker 2 may keep raised thresholds; plimsoll cleanup restores the rest"
    )
    assert bench.configs.together == TOGETHER
    monkeypatch.undo()
    assert len(clean_up(bench)) == 1
    assert settings_of(bench) == (TOGETHER, OWN)


def keep_own_settings(bench: FakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only cluster-wide defaults be changed."""
    alter = bench.configs.alter_broker_configs

    def alter_default(broker: BrokerId | None, values: Mapping[str, str | None]) -> None:
        if broker is None:
            alter(broker, values)

    monkeypatch.setattr(bench.configs, "alter_broker_configs", alter_default)


def test_a_threshold_applied_after_the_last_poll_still_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = bench_in(tmp_path)
    end_s, shown = bench.time.now_s + 10.0, bench.configs.broker_configs
    last_looks = itertools.count()

    def late(broker: BrokerId, keys: tuple[str, ...]) -> dict[str, str]:
        is_late = bench.time.now_s >= end_s and broker == TWO
        if is_late and next(last_looks):
            return dict.fromkeys(THRESHOLDS, RAISED)
        return shown(broker, keys)

    keep_own_settings(bench, monkeypatch)
    monkeypatch.setattr(bench.configs, "broker_configs", late)
    with pytest.raises(ExecutionStopped, match="is on at broker 2 although"):
        bench.run()


def test_a_threshold_that_is_not_accepted_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = bench_in(tmp_path)
    keep_own_settings(bench, monkeypatch)
    with pytest.raises(ExecutionStopped, match="is on at broker 2 although"):
        bench.run()
    assert not bench.platform.sent
    assert settings_of(bench) == (TOGETHER, OWN)


class Served(FakeConfigs):
    """The partitions do not matter."""

    def partitions(self, ids: list[PartitionId]) -> dict[PartitionId, object]:
        del ids
        return {}


def test_a_balancer_turned_on_again_is_noticed_within_ten_seconds() -> None:
    configs, time = Served(), FakeTime()
    configs.together = dict.fromkeys(THRESHOLDS, RAISED)
    watching = platform(configs, time, suspend=True)
    watching.prepare(SHARED.moves, threading.Event())
    assert watching.health(SHARED.moves, SHARED.moves) is None
    configs.brokers[THREE] = {IN: "1"}
    assert watching.health(SHARED.moves, SHARED.moves) is None
    time.now_s += 10
    result = watching.health(SHARED.moves, SHARED.moves)
    assert result is not None
    assert result.reason == "AutoMQ's own balancer is on at broker 3"
