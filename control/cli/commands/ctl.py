"""`plimsoll ctl`: ask the service of the state folder, and steer it."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control.cli.commands.why import Last
from control.cli.exit_codes import Exit
from control.cli.options import Output
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.output_types import AuditAnswer, CtlStatusAnswer
    from control.settings.settings import Settings

By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Name for the audit log; by default the login name."),
]
PlanHash = Annotated[
    str, typer.Argument(metavar="HASH", help="The plan's hash, or its first 8 characters or more.")
]


def status(*, service_settings: "Settings", output: Output = Form.TABLE) -> int:
    """Print what the service does now. Exits with 3 where no service runs."""
    from control.cli.control_client import ControlClient
    from control.cli.output_types import CtlStatusAnswer
    from control.render.text import answer_text

    found = ControlClient(service_settings.state_dir).get("/control/v1/status", CtlStatusAnswer)
    sys.stdout.write(answer_text(found, _status_text, output))
    return Exit.DONE


def why(*, last: Last = 1, service_settings: "Settings", output: Output = Form.TABLE) -> int:
    """Print the last decisions of the service, and when it reconsiders."""
    from control.cli.commands.why import decisions_text
    from control.cli.control_client import ControlClient
    from control.cli.output_types import WhyAnswer
    from control.render.text import answer_text

    found = ControlClient(service_settings.state_dir).get(f"/api/v1/why?last={last}", WhyAnswer)
    if not found.decisions:
        sys.stderr.write("plimsoll: the service has decided nothing yet; with --auto it does\n")
    sys.stdout.write(answer_text(found, decisions_text, output))
    return Exit.DONE if found.decisions else Exit.INCOMPLETE


def tasks(
    *,
    every: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    service_settings: "Settings",
    output: Output = Form.TABLE,
) -> int:
    """Print the tasks on brokers of the service."""
    from control.cli.control_client import ControlClient
    from control.cli.output_types import TasksAnswer
    from control.render.task_text import tasks_text
    from control.render.text import answer_text

    path = f"/control/v1/tasks?all={str(every).lower()}"
    found = ControlClient(service_settings.state_dir).get(path, TasksAnswer)
    if not found.tasks:
        sys.stderr.write(f"plimsoll: the service has no{'' if every else ' open'} task\n")
    if found.tasks or output is Form.JSON:
        sys.stdout.write(answer_text(found, tasks_text, output))
    return Exit.DONE


def pause(*, by: By = None, service_settings: "Settings", output: Output = Form.TABLE) -> int:
    """Start no run, and no more moves of a run in progress, until `resume`; restarts keep it."""
    return _act("pause", service_settings, output, by)


def resume(*, by: By = None, service_settings: "Settings", output: Output = Form.TABLE) -> int:
    """End a pause."""
    return _act("resume", service_settings, output, by)


def stop(*, by: By = None, service_settings: "Settings", output: Output = Form.TABLE) -> int:
    """End the run in progress after its in-flight moves, and pause."""
    return _act("stop", service_settings, output, by)


def abort(*, by: By = None, service_settings: "Settings", output: Output = Form.TABLE) -> int:
    """End the run in progress, cancel its in-flight moves, and pause."""
    return _act("abort", service_settings, output, by)


def throttle(
    rate: Annotated[
        str, typer.Argument(metavar="RATE", help="Bytes per second, such as 50MiB, or auto.")
    ],
    *,
    by: By = None,
    service_settings: "Settings",
    output: Output = Form.TABLE,
) -> int:
    """Change the throttle of the run in progress."""
    return _act("throttle", service_settings, output, by, rate=rate)


def approve(
    plan_hash: PlanHash, *, by: By = None, service_settings: "Settings", output: Output = Form.TABLE
) -> int:
    """Approve exactly this plan, once; the service executes it."""
    return _act("approve", service_settings, output, by, plan_hash=plan_hash)


def reject(
    plan_hash: Annotated[
        str | None,
        typer.Argument(
            metavar="HASH", help="The plan's hash, or its start; by default the one that waits."
        ),
    ] = None,
    *,
    by: By = None,
    service_settings: "Settings",
    output: Output = Form.TABLE,
) -> int:
    """Reject the plan that waits; the service does not ask for it again."""
    return _act("reject", service_settings, output, by, plan_hash=plan_hash)


def reload(*, by: By = None, service_settings: "Settings", output: Output = Form.TABLE) -> int:
    """Read the settings again; the loop starts with them between two runs."""
    return _act("reload", service_settings, output, by)


def audit(
    *,
    last: Annotated[
        int, typer.Option(min=1, max=100_000, help="Print this many actions, oldest first.")
    ] = 20,
    service_settings: "Settings",
    output: Output = Form.TABLE,
) -> int:
    """Print what people and clients asked of the service, and how it ended.

    It reads the log in the state folder, so no service needs to run.
    """
    from control.render.audit_text import audit_answer, audit_text
    from control.render.text import answer_text
    from control.service.audit_log import FILE, read_audit
    from model.printable import printable

    def warn(words: str) -> None:
        sys.stderr.write(f"plimsoll: warning: {printable(words)}\n")

    folder = service_settings.state_dir
    answer: AuditAnswer = audit_answer(read_audit(folder, warn), last)
    if not answer.actions:
        sys.stderr.write(f"plimsoll: no action is recorded in {folder / FILE}\n")
    sys.stdout.write(answer_text(answer, audit_text, output))
    return Exit.DONE


def _act(action: str, settings: "Settings", output: Form, by: str | None, **request: Any) -> int:
    from control.cli.console import operator
    from control.cli.control_client import ControlClient
    from control.cli.output_types import ActionAnswer
    from control.render.text import answer_text

    asked = {"by": operator() if by is None else by} | request
    found = ControlClient(settings.state_dir).act(action, asked, ActionAnswer)
    sys.stdout.write(answer_text(found, lambda answer: f"{answer.message}\n", output))
    return Exit.DONE


def _status_text(answer: "CtlStatusAnswer") -> str:
    from control.render.control_text import control_text

    return control_text(answer)
