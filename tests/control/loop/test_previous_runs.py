"""Runs of before, over a simulated cluster: found, gone on with, undone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from control.loop.previous_runs import Past
from control.loop.run_thread import Runner
from control.loop.view import LoopView
from executor.journal.lock import sole_writer
from executor.timing import RunLimits
from model.errors import ConfigError, GuardrailRefused, PlimsollError
from model.run import RunProgress, RunReport, RunState
from model.snapshot.snapshot import Snapshot
from tests.support.executor.plan_builders import CLUSTER_ID
from tests.support.executor.simulated_runs import Killed, Site
from tests.support.tui.loop_views import skewed, solving

BEFORE = {0: (1, 2), 1: (1, 2), 2: (2, 1)}
AFTER = {0: (3, 2), 1: (4, 2), 2: (2, 5)}


def _view() -> LoopView:
    header = skewed().header.model_copy(update={"cluster_id": CLUSTER_ID})
    return replace(solving(), snapshot=Snapshot(header, skewed().partitions))


@dataclass
class Host:
    """A loop that does nothing but let runs begin."""

    view: LoopView = field(default_factory=_view)
    busy: bool = False
    said: list[str] = field(default_factory=list)
    reports: list[RunReport] = field(default_factory=list)
    errors: list[PlimsollError] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)

    def begin(self, words: str, start: Callable[[], None]) -> None:
        if self.busy:
            raise GuardrailRefused("a run goes on; wait for its end or stop it")
        self.said.append(words)
        start()

    def warn(self, text: str) -> None:
        self.warned.append(text)

    def run_progressed(self, progress: RunProgress) -> None:
        pass

    def run_ended(self, report: RunReport) -> None:
        self.reports.append(report)

    def run_failed(self, error: PlimsollError) -> None:
        self.errors.append(error)

    def cleaned_up(self, done: Sequence[str], error: PlimsollError | None) -> None:
        self.warned += [*done, *([str(error)] if error else [])]


def _site(folder: Path) -> Site:
    one_by_one = RunLimits(moves_in_flight=1)
    return Site(folder=folder, before=BEFORE, after=AFTER, limits=one_by_one)


def _interrupted(folder: Path) -> Site:
    """Its process has died when the second request had been sent."""
    at = _site(folder)
    at.kill_at(1, made=True)
    with pytest.raises(Killed):
        at.run()
    at.stop_killing()
    return at


def _past(at: Site, host: Host) -> tuple[Past, Runner]:
    runner = Runner(at.executor, host, journal_dir=at.folder, moves_in_flight=4)
    return Past(host, runner, at.folder), runner


def _joined(runner: Runner, host: Host) -> RunReport:
    runner.join()
    assert not host.errors
    return host.reports[-1]


def test_a_run_that_was_cut_off_is_found_with_the_first_view(tmp_path: Path) -> None:
    at, host = _interrupted(tmp_path), Host()
    past, _ = _past(at, host)
    past(host.view)
    assert past.cut_off is not None
    assert past.cut_off.state is RunState.INTERRUPTED


def test_one_that_another_process_carries_out_is_not(tmp_path: Path) -> None:
    at, host = _interrupted(tmp_path), Host()
    past, _ = _past(at, host)
    with sole_writer(tmp_path, CLUSTER_ID):
        past(host.view)
        (run,) = past.runs()
        assert run.state is RunState.RUNNING
    assert past.cut_off is None
    (run,) = past.runs()
    assert run.state is RunState.INTERRUPTED


def test_settings_that_are_still_in_force_are_warned_of_once(tmp_path: Path) -> None:
    at, host = _site(tmp_path), Host()
    at.limits = RunLimits(throttle_bytes_per_s=50_000_000)
    at.kill_at(6, made=True)
    with pytest.raises(Killed):
        at.run()
    at.stop_killing()
    past, _ = _past(at, host)
    past(host.view)
    past(host.view)
    (words,) = host.warned
    assert "has not restored all that it set: a throttle (leader." in words
    assert "plimsoll cleanup --allow-changes" in words


def test_neither_is_one_that_has_ended_nor_one_of_another_cluster(
    tmp_path: Path,
) -> None:
    at, host = _site(tmp_path), Host()
    at.run()
    past, _ = _past(at, host)
    past(host.view)
    assert past.cut_off is None
    other = _interrupted(tmp_path / "other")
    past, _ = _past(other, elsewhere := Host(view=solving()))
    past(elsewhere.view)
    assert past.cut_off is None


def test_it_is_gone_on_with_under_the_name_of_who_asked(tmp_path: Path) -> None:
    at, host = _interrupted(tmp_path), Host()
    past, runner = _past(at, host)
    past(host.view)
    past.resume("ann")
    assert _joined(runner, host).state is RunState.DONE
    assert {n: r for n, (r, _) in at.placement.items()} == AFTER
    assert past.cut_off is None
    (run,) = past.runs()
    assert (run.by, run.state) == ("ann", RunState.DONE)


def test_it_is_rolled_back_by_exactly_the_plan_that_was_shown(tmp_path: Path) -> None:
    at, host = _interrupted(tmp_path), Host()
    past, runner = _past(at, host)
    past(host.view)
    assert past.cut_off is not None
    at.cluster.advance(600.0)
    undone = past.cut_off.run_id
    plan, left = past.plan_rollback(undone)
    assert not left
    past.roll_back(plan, "ann")
    report = _joined(runner, host)
    assert (report.state, report.plan_hash) == (RunState.DONE, plan.hash)
    assert host.said == [
        f"moving back what run {undone} had moved: plan {plan.hash[:12]}, "
        "approved by ann"
    ]
    assert {n: r for n, (r, _) in at.placement.items()} == BEFORE
    assert at.is_clean


def test_why_it_cannot_be_rolled_back_now_stays_in_the_log(tmp_path: Path) -> None:
    at, host = _interrupted(tmp_path), Host()
    past, _ = _past(at, host)
    with pytest.raises(ConfigError) as refused:
        past.plan_rollback("20260101T000000000-00000000")
    (words,) = host.warned
    assert str(refused.value) in words


def test_nothing_begins_while_a_run_goes_on(tmp_path: Path) -> None:
    at, host = _interrupted(tmp_path), Host(busy=True)
    past, runner = _past(at, host)
    past(host.view)
    with pytest.raises(GuardrailRefused, match="a run goes on"):
        past.resume("ann")
    assert past.cut_off is not None
    assert not runner.running


def test_without_a_client_that_changes_all_is_refused_but_to_look(
    tmp_path: Path,
) -> None:
    at, host = _interrupted(tmp_path), Host()
    past = Past(host, None, at.folder)
    past(host.view)
    assert past.cut_off is not None
    (run,) = past.runs()
    for attempt in (
        lambda: past.resume("ann"),
        lambda: past.plan_rollback(run.run_id),
        lambda: past.roll_back(run.plan, "ann"),
    ):
        with pytest.raises(GuardrailRefused, match="--allow-changes"):
            attempt()


def test_runs_are_listed_newest_first_with_how_they_ended(tmp_path: Path) -> None:
    at, host = _site(tmp_path), Host()
    at.run()
    at.cluster.advance(600.0)
    at.reset_steering()
    at.roll_back()
    past, _ = _past(at, host)
    newest, oldest = past.runs()
    assert newest.started_at_ms > oldest.started_at_ms
    assert newest.plan.limited_by == f"what run {oldest.run_id} had moved"
    assert [newest.state, oldest.state] == [RunState.DONE, RunState.DONE]
