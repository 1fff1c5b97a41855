"""Actions of people on a loop: what each does, what it refuses, and what the audit log has."""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from control.loop.loop import Loop
from control.loop.questions import QuestionState, questions
from control.loop.view import Mode, Phase
from control.service.audit_log import FILE, AuditLog, AuditOutcome, read_audit
from control.service.control_socket import Peer
from control.service.operator_actions import Action, ActionRequest, OperatorActions
from control.service.pause_file import FILE as PAUSE_FILE
from control.service.service_state import ServiceState
from control.settings.auto_limits import EAGER
from executor.run.operator_control import Steering
from model.errors import ConfigError, GuardrailRefused, PlanOutdated
from model.plan.plan import Plan
from model.run import MoveProgress, RunProgress, RunReport, RunState
from tests.support.control.loop_parts import (
    MB,
    START_MS,
    CannedObserver,
    RecordingExecutor,
    cluster,
    constrained,
    loop_parts,
    loop_settings,
)

LONG_S = 300.0
PEER = Peer(uid=0, pid=77)
UNEVEN = cluster([2] * 8, [MB] * 8)
ASKS = constrained(cluster([1, 2, 3], [MB] * 3), a=1)
"""Its plan needs a person: the trigger of rules is set to ask."""


class Clock:
    """A clock that stands still."""

    def __call__(self) -> float:
        return START_MS / 1000


@dataclass
class SteeredExecutor(RecordingExecutor):
    """Runs a plan until it is told to stop, or to finish."""

    finish: threading.Event = field(default_factory=threading.Event)
    steering: Steering = field(default_factory=Steering)
    refusal: str = ""
    """Why another throttle is refused; empty if it is set."""

    def execute(
        self, plan: Plan, *, observe: Callable[[RunProgress], None], **order: Any
    ) -> RunReport:
        self.steering = order["steering"]
        moves = tuple(MoveProgress(move=move) for move in plan.moves)
        observe(
            RunProgress(
                run_id="run-1",
                plan_hash=plan.hash,
                state=RunState.RUNNING,
                moves=moves,
                started_at_ms=START_MS,
            )
        )
        while not (self.finish.is_set() or self.steering.stopping.is_set()):
            for _ in self.steering.asked_rates():
                self.steering.answer(self.refusal)
            self.finish.wait(0.01)
        return super().execute(plan, observe=observe, **order)


@dataclass
class Site:
    """A loop in AUTO mode, and actions on it."""

    loop: Loop
    executor: SteeredExecutor
    actions: OperatorActions
    state: ServiceState

    def do(self, action: Action, by: str = "eve", **request: str) -> str:
        return self.actions.perform(action, ActionRequest(by=by, **request), PEER).message

    def is_run_paused(self) -> bool:
        return self.executor.steering.paused

    def running(self) -> None:
        deadline = time.monotonic() + LONG_S
        # The state of the service sees a view after those who wait for one.
        while self.actions.run_in_progress(self.loop) is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def waiting(self) -> str:
        """Hash of the plan, once it waits for a person."""
        assert self.loop.wait(lambda _: self.loop.question is not None, LONG_S)
        assert self.loop.question is not None
        return self.loop.question.plan_hash

    def ended(self) -> None:
        assert self.loop.wait(lambda _: bool(self.loop.reports), LONG_S)


Start = Callable[..., Site]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with contextlib.ExitStack() as opened:

        def begin(
            snapshot: Any = UNEVEN,
            mode: Mode = Mode.AUTO,
            paused: bool = False,
            audit: AuditLog | None = None,
        ) -> Site:
            clock = Clock()
            executor = SteeredExecutor()
            settings = loop_settings(
                tmp_path / "journal",
                mode=mode,
                limits=EAGER.model_copy(update={"confirm": 0.0, "pause": 0.0}),
                decisions_dir=tmp_path,
            )
            parts = loop_parts(
                CannedObserver([snapshot]),
                None if mode is Mode.READ_ONLY else executor,
                clock=clock,
                steady=clock,
            )
            loop = Loop(settings, parts)
            state = ServiceState(clock=clock, steady=clock)
            loop.subscribe(state.see)
            actions = OperatorActions(tmp_path, state, clock=clock, audit=audit)
            actions.attach(loop)
            site = Site(loop, executor, actions, state)
            if paused:
                site.do(Action.PAUSE)
            opened.enter_context(loop)
            opened.callback(executor.finish.set)
            return site

        yield begin


def outcomes(folder: Path) -> list[tuple[str, str, str]]:
    return [(r.action, r.by, r.outcome.value) for r in read_audit(folder)]


def test_while_paused_no_run_starts_and_the_reason_is_named(start: Start) -> None:
    site = start(paused=True)
    assert site.loop.wait(lambda view: "paused by eve since" in view.message, LONG_S)
    assert site.executor.plans == []
    assert site.state.paused
    assert site.do(Action.RESUME) == "runs start again"
    site.running()
    assert not site.state.paused


def test_a_pause_holds_for_the_next_service_and_its_end_for_the_one_after(
    start: Start, tmp_path: Path
) -> None:
    start(paused=True)
    later = OperatorActions(tmp_path, ServiceState())
    assert later.pause is not None
    assert later.pause.by == "eve"
    later.attach(start().loop)
    later.perform(Action.RESUME, ActionRequest(by="bob"), PEER)
    assert not (tmp_path / PAUSE_FILE).exists()
    assert OperatorActions(tmp_path, ServiceState()).pause is None


def test_a_pause_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / PAUSE_FILE).write_bytes(b"\x00")
    with pytest.raises(ConfigError, match="remove the file to end the pause"):
        OperatorActions(tmp_path, ServiceState())


def test_a_run_is_paused_resumed_throttled_and_stopped(start: Start, tmp_path: Path) -> None:
    site = start()
    site.running()
    assert site.do(Action.PAUSE).startswith("run run-1 starts no more moves")
    assert site.is_run_paused()
    assert site.do(Action.RESUME) == "run run-1 continues"
    assert not site.is_run_paused()
    assert site.do(Action.THROTTLE, rate="50MB") == "throttle of run run-1: 50.0 MB/s"
    assert site.do(Action.STOP).startswith("run run-1 stops, after its in-flight moves")
    site.ended()
    assert site.executor.steering.stopping.is_set()
    assert not site.executor.steering.aborting
    # Otherwise --auto would start the next run at once.
    assert site.loop.paused
    found = read_audit(tmp_path)
    (plan,) = site.executor.plans
    assert {r.plan_hash for r in found} == {plan.hash}
    assert outcomes(tmp_path)[::2] == [
        (action, "eve", "requested") for action in ("pause", "resume", "throttle", "stop")
    ]
    assert {r.outcome for r in found[1::2]} == {AuditOutcome.DONE}
    assert {(r.uid, r.pid, r.user) for r in found} == {(0, 77, "root")}


def test_abort_cancels_in_flight_moves(start: Start) -> None:
    site = start()
    site.running()
    assert "cancelling in-flight moves" in site.do(Action.ABORT)
    site.ended()
    assert site.executor.steering.aborting


def test_a_throttle_that_the_run_refuses_is_an_error_with_its_reason(
    start: Start, tmp_path: Path
) -> None:
    site = start()
    site.executor.refusal = "it is too low"
    site.running()
    with pytest.raises(GuardrailRefused, match="stays as it is: it is too low"):
        site.do(Action.THROTTLE, rate="1kB")
    assert outcomes(tmp_path)[-1] == ("throttle", "eve", "refused")


@pytest.mark.parametrize("rate", ["", "fast", "-1MB", "1e999MB", "\x00"])
def test_rates_that_are_none_are_refused(start: Start, rate: str) -> None:
    site = start(paused=True)
    with pytest.raises(ConfigError):
        site.do(Action.THROTTLE, rate=rate)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (Action.STOP, "no run is in progress"),
        (Action.ABORT, "no run is in progress"),
        (Action.RESUME, "not paused"),
    ],
)
def test_without_a_run_there_is_nothing_to_end(
    start: Start, tmp_path: Path, action: Action, message: str
) -> None:
    site = start(ASKS)
    site.waiting()
    with pytest.raises(GuardrailRefused, match=message):
        site.do(action)
    assert outcomes(tmp_path) == [(action, "eve", "requested"), (action, "eve", "refused")]


def test_exactly_the_approved_plan_is_executed(start: Start, tmp_path: Path) -> None:
    site = start(ASKS)
    plan_hash = site.waiting()
    with pytest.raises(ConfigError, match="no plan 00000000"):
        site.do(Action.APPROVE, plan_hash="0" * 8)
    assert f"plan {plan_hash[:12]} approved" in site.do(Action.APPROVE, plan_hash=plan_hash[:8])
    site.executor.finish.set()
    site.ended()
    assert [plan.hash for plan in site.executor.plans] == [plan_hash]
    # The whole hash, whatever the client typed.
    assert read_audit(tmp_path)[-1].plan_hash == plan_hash


def test_a_plan_is_not_approved_while_paused(start: Start) -> None:
    site = start(ASKS, paused=True)
    plan_hash = site.waiting()
    with pytest.raises(GuardrailRefused, match="paused by eve"):
        site.do(Action.APPROVE, plan_hash=plan_hash)


def test_an_approval_from_another_shell_waits_for_the_end_of_the_pause(
    start: Start, tmp_path: Path
) -> None:
    from control.loop.questions import approve

    site = start(ASKS, paused=True)
    plan_hash = site.waiting()
    approve(tmp_path, plan_hash, "bob", START_MS)
    turns = 0

    def count(_view: object) -> bool:
        nonlocal turns
        turns += 1
        return turns > 20

    assert site.loop.wait(count, LONG_S)
    assert site.executor.plans == []
    site.do(Action.RESUME)
    site.executor.finish.set()
    site.ended()
    assert [plan.hash for plan in site.executor.plans] == [plan_hash]


def test_a_rejected_plan_is_not_asked_for_again_by_any_process(
    start: Start, tmp_path: Path
) -> None:
    site = start(ASKS)
    plan_hash = site.waiting()
    assert f"plan {plan_hash[:12]} rejected" in site.do(Action.REJECT)
    assert site.loop.wait(lambda _: site.loop.question is None, LONG_S)
    assert any("rejected by eve" in line.text for line in site.loop.view.log)
    site.loop.leave_question = True
    site.loop.close()
    again = start(ASKS)
    assert again.loop.wait(lambda view: view.phase is Phase.PLAN_READY, LONG_S)
    turns = 0

    def count(_view: object) -> bool:
        nonlocal turns
        turns += 1
        return turns > 20

    assert again.loop.wait(count, LONG_S)
    assert again.loop.question is None
    (question,) = questions(tmp_path)
    assert (question.state, question.closed) == (QuestionState.REJECTED, "eve")
    assert question.schema_version == "1.1"
    with pytest.raises(GuardrailRefused, match="was rejected by eve already"):
        again.do(Action.APPROVE, plan_hash=plan_hash)
    assert again.executor.plans == []


def test_without_a_waiting_plan_there_is_nothing_to_reject(start: Start) -> None:
    site = start(paused=True)
    with pytest.raises((ConfigError, PlanOutdated), match="no plan"):
        site.do(Action.REJECT)


@pytest.mark.parametrize("action", [Action.PAUSE, Action.APPROVE, Action.REJECT])
def test_a_read_only_service_has_nothing_to_steer(start: Start, action: Action) -> None:
    site = start(mode=Mode.READ_ONLY)
    with pytest.raises(GuardrailRefused, match="the service is read-only"):
        site.do(action, plan_hash="0" * 64)


def test_without_an_audit_log_only_what_ends_changes_is_done(start: Start, tmp_path: Path) -> None:
    site = start(ASKS)
    plan_hash = site.waiting()
    (tmp_path / FILE).mkdir()
    with pytest.raises(ConfigError, match=r"cannot be written.*nothing was changed"):
        site.do(Action.APPROVE, plan_hash=plan_hash)
    assert "the audit log" in site.do(Action.PAUSE)
    assert site.loop.paused
    with pytest.raises(ConfigError, match="cannot be written"):
        site.do(Action.RESUME)
    assert site.loop.paused
    assert site.executor.plans == []


def test_a_stopped_process_that_has_the_audit_log_does_not_keep_a_run_going(
    start: Start, tmp_path: Path
) -> None:
    site = start(audit=AuditLog(tmp_path, wait_s=0.1))
    site.running()
    with (tmp_path / FILE).open("ab") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match=r"another process has had.*nothing was changed"):
            site.do(Action.THROTTLE, rate="50MB")
        warned = site.do(Action.ABORT)
        assert "cancelling in-flight moves" in warned
        assert "another process has had its lock" in warned
        site.ended()
    assert site.executor.steering.aborting
    assert read_audit(tmp_path) == []


def test_a_pipe_in_place_of_a_file_of_the_state_folder_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    with pytest.raises(ConfigError, match=r"audit\.jsonl is not a regular file; move it away"):
        OperatorActions(tmp_path, ServiceState())
    (tmp_path / FILE).unlink()
    os.mkfifo(tmp_path / PAUSE_FILE)
    with pytest.raises(ConfigError, match="is not a file; remove the file to end the pause"):
        OperatorActions(tmp_path, ServiceState())


@pytest.mark.parametrize("by", ["", " ", "x" * 101, "e\nve", "e\x1bve"])
def test_names_that_could_forge_lines_are_refused(start: Start, tmp_path: Path, by: str) -> None:
    site = start(ASKS)
    with pytest.raises(ConfigError, match="printable"):
        site.do(Action.PAUSE, by=by)
    assert not site.loop.paused
