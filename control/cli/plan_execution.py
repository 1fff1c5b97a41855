"""Executing one plan from the command line: confirm, steer by signals, report."""

import contextlib
import math
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from control import compose
from control.cli.console import handling, operator
from control.cli.exit_codes import Exit, output_lost
from control.cli.narration import RunNarrator
from control.cli.output import Form
from control.cli.output_types import BrokerPeakAnswer, RequestsAnswer
from control.render.plan_text import forecast_text, plan_text
from control.render.run_report import run_text
from control.render.text import answer_text, json_text
from control.settings.auto_limits import EAGER
from control.settings.settings import Settings
from executor.run.operator_control import Steering
from model.errors import GuardrailRefused
from model.plan.plan import Plan
from model.printable import printable
from model.run import RunReport, RunState
from model.units import count_text

if TYPE_CHECKING:
    from control.cli.invocation import ExecutionOptions
    from executor.executor import Executor
    from executor.schedule.estimate import Forecast


def refuse_read_only(
    allowed: bool, purpose: str = "execute the plan, or --dry-run to see its requests"
) -> None:
    """Raise GuardrailRefused unless changes are allowed, naming the option to add."""
    if not allowed:
        raise GuardrailRefused(f"plimsoll is read-only; add --allow-changes to {purpose}")


def execute(
    executor: "Executor",
    settings: Settings,
    plan: Plan,
    options: "ExecutionOptions",
    output: Form,
    around: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
    also: Sequence[str] = (),
) -> int:
    """Ask, execute the plan and print its report; the exit code.

    around: entered around the run, once it is confirmed. also: what ends besides, in sentences.
    Raises GuardrailRefused without confirmation, or where a check before the run fails.
    """
    journal_dir = compose.journal_dir(settings)
    if options.dry_run:
        rehearsal = rehearse(executor, settings, plan)
        say(also)
        sys.stderr.write(f"plimsoll: {forecast_text(rehearsal.estimate)}")
        sys.stdout.write(requests_text(rehearsal.requests, output, also))
        return Exit.DONE
    executor.signature_of(plan, journal_dir)  # before anything is asked
    if options.yes and also:
        # Nothing of it ends where the plan is refused.
        executor.dry_run(plan, journal_dir)
        say(also)
    if not options.yes and not plan_confirmed(executor, settings, plan, also):
        raise GuardrailRefused("not confirmed; nothing was changed")
    with around(), steered_by_signals() as steering:
        report = executor.execute(
            plan,
            journal_dir=journal_dir,
            moves_in_flight=EAGER.moves_in_flight,
            observe=RunNarrator(),
            steering=steering,
        )
    return print_report(report, output)


def resume(settings: Settings, *, allow_changes: bool) -> RunReport:
    """Resume the most recent run, which was interrupted, stopped or failed."""
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


def restored_settings(executor: "Executor", settings: Settings) -> tuple[list[str], list[str]]:
    """Restore settings left by interrupted runs: what was restored, what remains."""
    folder = compose.journal_dir(settings)
    restored = executor.clean_up(folder)
    return restored, executor.left(folder)


def requests_text(requests: Sequence[str], output: Form, also: Sequence[str] = ()) -> str:
    """Requests of a dry run, one per line or as JSON, which has `also`, too."""
    if output is Form.JSON:
        return json_text(RequestsAnswer.of(requests=requests, also=also))
    return "".join(f"{request}\n" for request in requests)


def print_report(report: RunReport, output: Form) -> int:
    """Print a run's report; its exit code, even if stdout cannot be written."""
    code = Exit.DONE if report.state is RunState.DONE else Exit.INCOMPLETE
    try:
        sys.stdout.write(answer_text(report, run_text, output))
        sys.stdout.flush()
    except OSError as exc:
        output_lost(exc)
    return code


def estimate_of(executor: "Executor", settings: Settings, plan: Plan) -> "Forecast":
    """Estimate the run of a plan by the pace of earlier ones."""
    journal_dir, in_flight = compose.journal_dir(settings), EAGER.moves_in_flight
    return executor.forecast(plan, journal_dir, in_flight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What a run of a plan would send, and how long it would take."""

    plan: Plan
    estimate: "Forecast"
    requests: Sequence[str]
    """In the order of the estimate."""

    @property
    def figures(self) -> dict[str, Any]:
        """The same as the answers of dry runs have it."""
        at_once = EAGER.moves_in_flight
        return {
            "seconds": self.estimate.seconds,
            "moves_at_once": at_once,
            "waves": self.waves,
            "peaks": _peaks(self.estimate),
            "plan": self.plan,
            "requests": self.requests,
        }

    @property
    def waves(self) -> int:
        """Moves over those in flight at once, rounded up."""
        return math.ceil(len(self.plan.moves) / EAGER.moves_in_flight)

    @property
    def text(self) -> str:
        """The plan, its waves, the duration and the peak of each disk, for people."""
        plan = plan_text(self.plan, f"plan {self.plan.hash[:12]}")
        moves = count_text(len(self.plan.moves), "move")
        waves = count_text(self.waves, "wave")
        text = f"{moves} in {waves} of at most {EAGER.moves_in_flight}\n"
        if not any(peak.more_bytes for peak in self.estimate.peaks.values()):
            text += "no broker needs more disk meanwhile\n"
        return f"{plan}\n{text}{forecast_text(self.estimate)}"


def rehearse(executor: "Executor", settings: Settings, plan: Plan) -> Rehearsal:
    """Estimate the run of a plan, and check it as before a run; raises as the checks do."""
    estimate = estimate_of(executor, settings, plan)
    in_order = plan.model_copy(update={"moves": estimate.order})
    requests = executor.dry_run(in_order, compose.journal_dir(settings))
    return Rehearsal(plan=plan, estimate=estimate, requests=requests)


def _peaks(estimate: "Forecast") -> list[BrokerPeakAnswer]:
    """The peak of each broker that a run copies to."""

    def known(free: int | None) -> int | None:
        return free if free and free > 0 else None

    return [
        BrokerPeakAnswer.of(peak, broker=broker, free_bytes=known(estimate.free_bytes.get(broker)))
        for broker, peak in estimate.peaks.items()
    ]


def say(sentences: Sequence[str]) -> None:
    """Print sentences on stderr."""
    for sentence in sentences:
        sys.stderr.write(f"plimsoll: {sentence}\n")


def plan_confirmed(
    executor: "Executor", settings: Settings, plan: Plan, also: Sequence[str] = ()
) -> bool:
    """Check a plan against the cluster, show it, and ask; raises as the checks do.

    also: as of `execute`.
    """
    # Report what would stop the run before asking, not after.
    executor.dry_run(plan, compose.journal_dir(settings))
    say(also)
    shown = plan_text(plan, f"plan of {printable(plan.cluster_id)}")
    if sys.stdin.isatty():
        shown += "\n" + forecast_text(estimate_of(executor, settings, plan))
    return confirmed(shown, plan.cluster_id, "execute this plan")


def confirmed(shown: str, cluster_id: str, action: str) -> bool:
    """Whether the operator types the first 8 characters of the cluster's id.

    Raises GuardrailRefused without a terminal.
    """
    if not sys.stdin.isatty():
        raise GuardrailRefused(f"there is no terminal to confirm on; add --yes to {action}")
    sys.stderr.write(f"{shown}\nType {printable(cluster_id[:8])} to {action}: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() == cluster_id[:8]


@contextlib.contextmanager
def steered_by_signals(
    on_abort: Callable[[], None] = lambda: None,
    on_hangup: Callable[[], None] | None = None,
    *,
    moving: Callable[[], bool] = lambda: True,
) -> Iterator[Steering]:
    """SIGTERM or Ctrl-C stops a run, the second one aborts it, the third interrupts.

    Interrupting leaves copies running without their throttle: a last resort. A closed terminal
    (SIGHUP) only stops the run, however often it is signalled; under nohup it stays ignored.
    on_hangup: called for SIGHUP instead, for services, which have no terminal.
    moving: whether a run is in progress, whose in-flight moves have to be waited for.
    """
    steering = Steering(by=operator())

    def on_signal() -> None:
        if steering.aborting:
            raise KeyboardInterrupt
        if steering.stopping.is_set():
            steering.abort()
            on_abort()
            sys.stderr.write("plimsoll: aborting; cancelling in-flight moves\n")
            return
        steering.stop()
        waits = "; waiting for in-flight moves (Ctrl-C again cancels them)" if moving() else ""
        sys.stderr.write(f"plimsoll: stopping{waits}\n")

    handlers: dict[signal.Signals, Callable[[], None]]
    handlers = {signal.SIGTERM: on_signal, signal.SIGINT: on_signal}
    if on_hangup is not None:
        handlers[signal.SIGHUP] = on_hangup
    elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handlers[signal.SIGHUP] = steering.stop
    with handling(handlers):
        yield steering
