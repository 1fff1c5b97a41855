"""`plimsoll apply PLAN`, `rollback RUN`, `run --resume`: exactly one plan."""

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

from control import compose
from control.cli.command_errors import output_lost
from control.cli.console import operator
from control.cli.exit_codes import Exit
from control.cli.output_format import Form
from control.render.plan_text import forecast_text, json_text, plan_text
from control.render.run_report import run_text
from control.settings.auto_limits import EAGER
from control.settings.settings import Settings
from executor.run.operator_control import Steering
from executor.run.rollback_plan import restores
from model.errors import ConfigError, GuardrailRefused
from model.plan.plan import Plan, read_plan
from model.printable import printable
from model.run import MoveState, RunProgress, RunReport, RunState
from model.units import seconds_text

_LONG_S: Final = 10.0
"""What is worth a line while one waits."""

if TYPE_CHECKING:
    from executor.executor import Executor
    from executor.schedule.estimate import Forecast


def attempt(
    settings: Settings,
    plan_file: Path,
    *,
    allow_changes: bool,
    dry_run: bool,
    yes: bool,
    output: Form,
) -> int:
    """Check the plan against the cluster, ask, carry it out, report."""
    plan = read_plan(plan_file)
    if restores(plan):
        raise ConfigError(
            f"{plan_file} undoes a run and is not checked against the goals; say "
            "rollback and name that run"
        )
    compose.bootstrap_of(settings)
    if not plan.moves:
        sys.stderr.write(f"plimsoll: {plan_file} has no moves; nothing to do\n")
        return Exit.DONE
    refuse_read_only(allow_changes or dry_run)
    with contextlib.closing(compose.executor(settings)) as executor:
        return _carried_out(
            executor, settings, plan, dry_run=dry_run, yes=yes, output=output
        )


def roll_back(
    settings: Settings,
    run_id: str | None,
    *,
    allow_changes: bool,
    dry_run: bool,
    yes: bool,
    output: Form,
) -> int:
    """Undo a run: the plan back, carried out as any other, and what was left set."""
    compose.bootstrap_of(settings)
    refuse_read_only(allow_changes or dry_run)
    with contextlib.closing(compose.executor(settings)) as executor:
        plan, left = executor.plan_rollback(compose.journal_dir(settings), run_id)
        for words in left:
            sys.stderr.write(f"plimsoll: left alone: {words}\n")
        code: int = Exit.DONE
        if plan.moves:
            code = _carried_out(
                executor, settings, plan, dry_run=dry_run, yes=yes, output=output
            )
        else:
            sys.stderr.write("plimsoll: that run has nothing to undo\n")
        if dry_run:
            return code
        did, left = _cleaned_up(executor, settings)
        for words in (*did, *left):
            sys.stderr.write(f"plimsoll: {words}\n")
        return Exit.INCOMPLETE if left and code == Exit.DONE else code


def go_on(settings: Settings, *, allow_changes: bool) -> RunReport:
    """Finish the newest run, which was cut off, stopped or failed."""
    compose.bootstrap_of(settings)
    refuse_read_only(allow_changes, "resume the run")
    with (
        contextlib.closing(compose.executor(settings)) as executor,
        steered_by_signals() as steering,
    ):
        return executor.resume(
            journal_dir=compose.journal_dir(settings),
            moves_in_flight=EAGER.moves_in_flight,
            observe=RunNarrator(),
            steering=steering,
        )


def clean_up(settings: Settings, *, allow_changes: bool, output: Form) -> int:
    """Take away what interrupted runs have left set."""
    compose.bootstrap_of(settings)
    refuse_read_only(
        allow_changes, "restore the settings that interrupted runs have left"
    )
    with contextlib.closing(compose.executor(settings)) as executor:
        did, left = _cleaned_up(executor, settings)
    if output is Form.JSON:
        sys.stdout.write(json_text({"done": did, "left": left}))
    else:
        for words in (*did, *left) or ["no run has left anything set"]:
            sys.stdout.write(f"{words}\n")
    return Exit.INCOMPLETE if left else Exit.DONE


def _cleaned_up(
    executor: "Executor", settings: Settings
) -> tuple[list[str], list[str]]:
    """What was taken away and what remains, in words."""
    folder = compose.journal_dir(settings)
    did = executor.clean_up(folder)
    return did, executor.left(folder)


def refuse_read_only(
    allowed: bool, purpose: str = "carry out the plan, or --dry-run to see its requests"
) -> None:
    if not allowed:
        raise GuardrailRefused(
            f"plimsoll is read-only; say --allow-changes to {purpose}"
        )


def _carried_out(
    executor: "Executor",
    settings: Settings,
    plan: Plan,
    *,
    dry_run: bool,
    yes: bool,
    output: Form,
) -> int:
    if dry_run:
        foretold = _foretold(executor, settings, plan)
        in_order = plan.model_copy(update={"moves": foretold.order})
        requests = executor.dry_run(in_order, compose.journal_dir(settings))
        sys.stderr.write(f"plimsoll: {forecast_text(foretold)}")
        sys.stdout.write(requests_text(requests, output))
        return Exit.DONE
    if not yes:
        # What would stop the run is said before the question, and once.
        executor.dry_run(plan, compose.journal_dir(settings))
    if not (yes or _confirmed(executor, settings, plan)):
        raise GuardrailRefused("not confirmed; nothing was changed")
    with steered_by_signals() as steering:
        report = executor.execute(
            plan,
            journal_dir=compose.journal_dir(settings),
            moves_in_flight=EAGER.moves_in_flight,
            observe=RunNarrator(),
            steering=steering,
        )
    return told(report, output)


def requests_text(requests: Sequence[str], output: Form) -> str:
    """Requests that are not sent, one a line or as a document."""
    if output is Form.JSON:
        return json_text({"requests": list(requests)})
    return "".join(f"{request}\n" for request in requests)


def told(report: RunReport, output: Form) -> int:
    """Print the report; its exit code, whether or not anybody reads the report."""
    code = Exit.DONE if report.state is RunState.DONE else Exit.INCOMPLETE
    try:
        if output is Form.JSON:
            sys.stdout.write(json_text(report.model_dump(mode="json")))
        else:
            sys.stdout.write(run_text(report))
        sys.stdout.flush()
    except OSError as exc:
        output_lost(exc)
    return code


class RunNarrator:
    """A line on stderr as moves end, the run pauses or stops, and time goes by."""

    def __init__(self) -> None:
        self._told: set[object] = set()
        self._state = RunState.CHECKING
        self._left_s = inf

    def __call__(self, progress: RunProgress) -> None:
        self._tell_state(progress)
        self._tell_left(progress.left_s)
        ended = (MoveState.DONE, MoveState.DROPPED, MoveState.STUCK)
        for move in progress.moves:
            key = (progress.run_id, move.move.id)
            if move.state in ended and key not in self._told:
                self._told.add(key)
                seconds = f" in {move.seconds:.2f} s" if move.seconds else ""
                done = progress.count(*ended)
                sys.stderr.write(
                    f"{done}/{len(progress.moves)} {move.move.id} "
                    f"{move.state}{seconds} {move.note}".rstrip()
                    + "\n"
                )

    def _tell_left(self, left_s: float | None) -> None:
        if left_s is None or self._left_s / 2 < left_s < 1.5 * self._left_s:
            return
        if left_s >= _LONG_S:
            sys.stderr.write(f"about {seconds_text(left_s)} left\n")
        self._left_s = left_s

    def _tell_state(self, progress: RunProgress) -> None:
        before, self._state = self._state, progress.state
        if progress.state is before:
            return
        if progress.state in (RunState.PAUSED, RunState.STOPPING):
            sys.stderr.write(f"{progress.state}: {progress.reason}\n")
        elif before is RunState.PAUSED:
            sys.stderr.write("going on\n")


def _foretold(executor: "Executor", settings: Settings, plan: Plan) -> "Forecast":
    journal_dir, in_flight = compose.journal_dir(settings), EAGER.moves_in_flight
    return executor.forecast(plan, journal_dir, in_flight)


def _confirmed(executor: "Executor", settings: Settings, plan: Plan) -> bool:
    shown = plan_text(plan, f"plan of {printable(plan.cluster_id)}")
    if sys.stdin.isatty():
        shown += "\n" + forecast_text(_foretold(executor, settings, plan))
    return confirmed(shown, plan.cluster_id, "carry out this plan")


def confirmed(shown: str, cluster_id: str, to: str) -> bool:
    """Whether the one at the terminal types what stands for the cluster.

    Raises GuardrailRefused where there is none.
    """
    if not sys.stdin.isatty():
        raise GuardrailRefused(f"there is no terminal to ask on; say --yes to {to}")
    sys.stderr.write(f"{shown}\nType {printable(cluster_id[:8])} to {to}: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() == cluster_id[:8]


@contextlib.contextmanager
def steered_by_signals(
    on_abort: Callable[[], None] = lambda: None,
) -> Iterator[Steering]:
    """SIGTERM or Ctrl-C stops a run, a second aborts it, a third interrupts.

    To leave copies behind at once, without their throttle, is the last resort. A
    terminal that vanishes stops the run and does nothing more, however many hang-ups
    it sends; under nohup they stay ignored.
    """
    steering = Steering(by=operator())

    def on_signal(_number: int, _frame: object) -> None:
        if steering.aborting:
            raise KeyboardInterrupt
        if steering.stopping.is_set():
            steering.abort()
            on_abort()
            sys.stderr.write("plimsoll: aborting; moves that run are cancelled\n")
            return
        steering.stop()
        sys.stderr.write(
            "plimsoll: stopping; moves that run are let finish (once more cancels "
            "them)\n"
        )

    def on_hangup(_number: int, _frame: object) -> None:
        steering.stop()

    handlers = {signal.SIGTERM: on_signal, signal.SIGINT: on_signal}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handlers[signal.SIGHUP] = on_hangup
    before = {number: signal.signal(number, on) for number, on in handlers.items()}
    try:
        yield steering
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
