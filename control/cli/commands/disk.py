"""`plimsoll disk`: empty log directories, and heal failed ones."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.exit_codes import Exit
from control.cli.options import AllowChanges, Output
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.invocation import ExecutionOptions
    from control.cli.output_types import CordonAnswer
    from control.planning.disk_request import DiskPlan
    from control.settings.settings import Settings
    from executor.executor import Executor
    from executor.journal.run_history import PastRun
    from model.ids import BrokerId
    from model.plan.plan import Plan
    from model.run import RunReport


def remove(
    broker: Annotated[int, typer.Argument(metavar="BROKER", min=0, help="The broker's id.")],
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH", help="Its log directories, as log.dirs names them."),
    ],
    *,
    settings: "Settings",
    execution: "ExecutionOptions",
    output: Output = Form.TABLE,
) -> int:
    """Plan that directories hold no replica, ask, execute the plan and report.

    Raises GuardrailRefused where it is impossible, not allowed, or not confirmed, and ConfigError
    where the broker or a directory is unknown.
    """
    import contextlib

    from control import compose
    from control.cli.input_source import snapshot_of
    from control.cli.invocation import Origin
    from control.cli.plan_execution import execute, print_report, refuse_read_only
    from control.cli.task_work import find_plan, refuse_unasked
    from control.planning.disk_request import broker_of, paths_of, plan_disk_removal
    from model.run import RunState

    refuse_read_only(
        execution.allow_changes or execution.dry_run,
        "empty log directories, or --dry-run to see the plan",
    )
    if not execution.dry_run:
        refuse_unasked(execution)
    with contextlib.closing(compose.executor(settings)) as executor:
        report = None if execution.dry_run else _resumed(executor, settings, broker, paths)
        if report is not None and report.state is not RunState.DONE:
            return print_report(report, output)
        snapshot = snapshot_of(settings, Origin())
        member = broker_of(snapshot, broker)
        found = paths_of(member, paths)
        emptied = _emptied_before(executor, settings, member.id, found)
        plan = plan_disk_removal(
            snapshot,
            settings.goals,
            lambda s, g: find_plan(settings, s, g),
            member.id,
            found,
            emptied,
        )
        if plan is None:
            cordoned = not execution.dry_run and _cordon(executor, settings, member.id, found)
            _say_empty(executor, member.id, found, already=report is None, cordoned=cordoned)
            return Exit.DONE if report is None else print_report(report, output)
        if execution.dry_run:
            return _dry_run(executor, settings, plan, output)
        cordon = _Cordon(executor, settings, member.id, found, plan.plan)
        code = execute(executor, settings, plan.plan, execution, output, lambda: cordon)
        if code != Exit.DONE:
            return code
        if left := executor.replicas_in(member.id, found):
            _say(
                f"{_replicas(left)} came to {', '.join(found)} of broker {member.id} meanwhile; "
                "run the same command again"
            )
            return Exit.INCOMPLETE
        _say_empty(executor, member.id, found, already=False, cordoned=cordon.set)
        return Exit.DONE


def _resumed(
    executor: "Executor", settings: "Settings", broker: int, paths: Sequence[str]
) -> "RunReport | None":
    """Resume the newest run if it is unfinished and empties these directories; else None."""
    from control import compose
    from control.cli.narration import RunNarrator
    from control.cli.plan_execution import steered_by_signals
    from control.settings.auto_limits import EAGER

    journal_dir = compose.journal_dir(settings)
    runs = executor.runs(journal_dir, executor.cluster().cluster_id)
    if not runs or not runs[-1].is_unfinished:
        return None
    emptied = {(entry.broker, entry.path.rstrip("/")) for entry in runs[-1].plan.goals.emptied}
    if emptied != {(broker, path.rstrip("/")) for path in paths}:
        _refuse_unfinished(runs[-1])
        return None
    _say(f"resumes the run {runs[-1].run_id}")
    _cordon(executor, settings, runs[-1].plan.goals.emptied[0].broker, paths)
    with steered_by_signals() as steering:
        return executor.resume(
            journal_dir=journal_dir,
            moves_in_flight=EAGER.moves_in_flight,
            observe=RunNarrator(),
            steering=steering,
        )


def _refuse_unfinished(run: "PastRun") -> None:
    """Raise GuardrailRefused where an unfinished run empties other directories.

    Another run is only named: `plimsoll run --resume` could no longer continue it.
    """
    from model.errors import GuardrailRefused
    from model.run import MoveState
    from model.units import count_text

    moves = count_text(len(run.progress.moves), "move")
    made = f"{run.progress.count(MoveState.DONE)} of {moves} done"
    begun = f"run {run.run_id} was not finished, {made}"
    if not run.plan.goals.emptied:
        _say(f"warning: {begun}; it will no longer be resumed, since this run is newer")
        return
    broker = run.plan.goals.emptied[0].broker
    paths = " ".join(entry.path for entry in run.plan.goals.emptied)
    raise GuardrailRefused(
        f"{begun}; finish it with plimsoll disk remove {broker} {paths}, or undo it with plimsoll "
        "rollback, first"
    )


class _Cordon:
    """Keeps new replicas away from directories, from before their run on.

    Where the run is refused before it begins, the cordon ends again.
    """

    def __init__(
        self,
        executor: "Executor",
        settings: "Settings",
        broker: "BrokerId",
        paths: Sequence[str],
        plan: "Plan",
    ) -> None:
        self._executor = executor
        self._settings = settings
        self._broker = broker
        self._paths = paths
        self._plan = plan
        self.set = False
        """Whether plimsoll has cordoned them."""

    def __enter__(self) -> None:
        self.set = _cordon(self._executor, self._settings, self._broker, self._paths)

    def __exit__(self, _kind: object, exc: BaseException | None, _trace: object) -> None:
        from control import compose
        from control.cli.console import operator
        from model.errors import PlimsollError

        if not self.set or not isinstance(exc, PlimsollError):
            return
        journal_dir = compose.journal_dir(self._settings)
        runs = self._executor.runs(journal_dir, self._plan.cluster_id)
        if not runs or runs[-1].plan.hash != self._plan.hash:
            self._executor.uncordon_dirs(
                self._broker, self._paths, journal_dir=journal_dir, by=operator()
            )


def _cordon(
    executor: "Executor", settings: "Settings", broker: "BrokerId", paths: Sequence[str]
) -> bool:
    """Cordon directories where Kafka can; whether plimsoll has."""
    from control import compose
    from control.cli.console import operator
    from control.tasks.task_cordons import cordon_dirs

    journal_dir = compose.journal_dir(settings)
    return cordon_dirs(executor, broker, paths, journal_dir, operator(), _say)


def _emptied_before(
    executor: "Executor", settings: "Settings", broker: "BrokerId", paths: Sequence[str]
) -> tuple[str, ...]:
    """Directories of a broker that earlier runs have emptied and that still hold nothing.

    Only where Kafka knows no cordons, which say the same since 4.3.
    """
    from control import compose
    from model.run import RunState

    if executor.knows_cordons(broker):
        return ()
    runs = executor.runs(compose.journal_dir(settings), executor.cluster().cluster_id)
    done = (run.plan.goals.emptied for run in runs if run.state is RunState.DONE)
    emptied = {d.path for dirs in done for d in dirs if d.broker == broker} - {*paths}
    found = tuple(path for path in sorted(emptied) if not executor.replicas_in(broker, [path]))
    if found:
        _say(f"{', '.join(found)} of broker {broker} was emptied before, and takes no replica")
    return found


def include(
    broker: Annotated[int, typer.Argument(metavar="BROKER", min=0, help="The broker's id.")],
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH", help="The log directories, as log.dirs has them.")
    ],
    *,
    settings: "Settings",
    allow_changes: AllowChanges = False,
    output: Output = Form.TABLE,
) -> int:
    """End the cordons that `disk remove` has set. Raises GuardrailRefused where not allowed."""
    import contextlib

    from control import compose
    from control.cli.console import operator
    from control.cli.output_types import CordonAnswer
    from control.cli.plan_execution import refuse_read_only
    from control.render.text import answer_text
    from model.ids import BrokerId

    refuse_read_only(allow_changes, "end the cordons of log directories")
    with contextlib.closing(compose.executor(settings)) as executor:
        change = executor.uncordon_dirs(
            BrokerId(broker), paths, journal_dir=compose.journal_dir(settings), by=operator()
        )
    answer = CordonAnswer(
        broker=BrokerId(broker), paths=tuple(paths), changed=change.changed, note=change.note
    )
    sys.stdout.write(answer_text(answer, _cordon_text, output))
    return Exit.DONE


def _cordon_text(answer: "CordonAnswer") -> str:
    named = f"{', '.join(answer.paths)} of broker {answer.broker}"
    done = "no longer cordoned" if answer.changed else "not changed"
    return f"{named} {done}{f': {answer.note}' if answer.note else ''}\n"


def _say_empty(
    executor: "Executor", broker: "BrokerId", paths: Sequence[str], *, already: bool, cordoned: bool
) -> None:
    """Report that directories are empty, and what has to be done before a disk is taken out."""
    words = ", ".join(paths)
    holds = "holds" if len(paths) == 1 else "hold"
    done = " already; nothing to do" if already else ""
    _say(f"{words} of broker {broker} {holds} no replica{done}")
    metadata = executor.metadata_dir(broker)
    if metadata.rstrip("/") in {path.rstrip("/") for path in paths}:
        _say(
            f"warning: broker {broker} keeps the cluster's metadata in {metadata}; set "
            "metadata.log.dir to another directory before this one is taken out"
        )
    them = "it" if len(paths) == 1 else "them"
    if cordoned:
        _say(
            f"take {them} out of log.dirs and restart the broker, then end the cordon with "
            f"plimsoll disk include {broker} {' '.join(paths)} --allow-changes"
        )
        return
    _say(
        f"take {them} out of log.dirs and restart the broker soon: until then Kafka puts new "
        f"replicas there, unless cordoned.log.dirs names {them} (Kafka 4.3)"
    )


def heal(
    brokers: Annotated[
        list[int] | None,
        typer.Argument(metavar="BROKER", help="Ids; by default all with a failed directory."),
    ] = None,
    *,
    settings: "Settings",
    execution: "ExecutionOptions",
    output: Output = Form.TABLE,
) -> int:
    """Plan that replicas of failed directories are created on other brokers, ask, execute, report.

    Raises GuardrailRefused where it is impossible, not allowed, or not confirmed, and ConfigError
    where a broker is unknown.
    """
    import contextlib

    from control import compose
    from control.cli.input_source import snapshot_of
    from control.cli.invocation import Origin
    from control.cli.plan_execution import execute, refuse_read_only
    from control.cli.task_work import find_plan, refuse_unasked
    from control.planning.disk_request import broker_of, plan_healing

    refuse_read_only(
        execution.allow_changes or execution.dry_run,
        "create replicas again, or --dry-run to see the plan",
    )
    if not execution.dry_run:
        refuse_unasked(execution)
    snapshot = snapshot_of(settings, Origin())
    named = [broker_of(snapshot, broker).id for broker in brokers or ()]
    healed = named or [b.id for b in snapshot.header.brokers]
    plan = plan_healing(
        snapshot, settings.goals, lambda s, g: find_plan(settings, s, g), sorted({*healed})
    )
    if plan is None:
        of = f" of broker {', '.join(map(str, named))}" if named else ""
        _say(f"no failed log directory{of} holds a replica; nothing to do")
        return Exit.DONE
    for sentence in plan.notes:
        _say(sentence)
    if not plan.plan.moves:
        return Exit.INCOMPLETE
    with contextlib.closing(compose.executor(settings)) as executor:
        if execution.dry_run:
            return _dry_run(executor, settings, plan, output)
        code = execute(executor, settings, plan.plan, execution, output)
    return Exit.INCOMPLETE if code == Exit.DONE and plan.notes else code


def _dry_run(executor: "Executor", settings: "Settings", found: "DiskPlan", output: Form) -> int:
    """Print the plan, its waves, peaks and duration, and its requests as JSON."""
    from control.cli.output_types import DiskAnswer
    from control.cli.plan_execution import rehearse
    from control.render.text import answer_text

    rehearsal = rehearse(executor, settings, found.plan)
    answer = DiskAnswer.of(
        found,
        bytes_to_copy=found.plan.bytes_to_copy,
        unavailable=tuple(map(str, found.unavailable)),
        placeless=tuple(map(str, found.placeless)),
        **rehearsal.figures,
    )
    shown = "\n".join((found.words, *found.bounds, rehearsal.text))
    sys.stdout.write(answer_text(answer, lambda _: shown, output))
    return Exit.DONE


def _say(sentence: str) -> None:
    from control.cli.task_work import print_line

    print_line(sentence)


def _replicas(partitions: Sequence[object]) -> str:
    from model.units import count_text, listed

    return f"{count_text(len(partitions), 'replica')} ({listed(partitions, 3)})"
