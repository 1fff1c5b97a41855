"""The end of a command: its exit code, and one sentence for an expected error."""

import atexit
import contextlib
import errno
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Final, ParamSpec

import typer

from model import errors
from model.printable import printable

if TYPE_CHECKING:
    from model.plan.plan import PlanStatus

P = ParamSpec("P")

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of writing to a full stdout."""


class Exit(IntEnum):
    """Exit codes of plimsoll."""

    DONE = 0
    """Done, already balanced, or no improvement worth its cost."""
    INTERNAL = 1
    """An error in plimsoll itself."""
    USAGE = 2
    """A flag, a setting or a file that cannot be used."""
    UNREACHABLE = 3
    """The cluster, or a download, was not reachable; try again."""
    INFEASIBLE = 4
    """No plan keeps every rule."""
    REFUSED = 5
    """A guardrail refused it, or a right is missing; nothing was changed."""
    INCOMPLETE = 6
    """Stopped before the end, or no plan was found in time."""
    OUTDATED = 7
    """The cluster changed since the plan was made."""
    MOVES_PROPOSED = 10
    """The plan has moves, with --detailed-exitcode; or a plan of run --auto --once waits."""
    INTERRUPTED = 130
    """Ctrl-C."""


BY_ERROR: Final = {
    errors.ConfigError: Exit.USAGE,
    errors.InvalidCluster: Exit.USAGE,
    errors.ClusterUnreachable: Exit.UNREACHABLE,
    errors.RightsMissing: Exit.REFUSED,
    errors.GuardrailRefused: Exit.REFUSED,
    errors.PlanOutdated: Exit.OUTDATED,
    errors.ExecutionStopped: Exit.INCOMPLETE,
}


def exit_of(error: errors.PlimsollError) -> Exit:
    """The exit code of an error; that of its nearest ancestor in the tree."""
    return next((BY_ERROR[c] for c in type(error).__mro__ if c in BY_ERROR), Exit.INTERNAL)


def exit_of_plan(status: "PlanStatus") -> Exit | None:
    """The exit code of a plan status; None where the moves decide."""
    from model.plan.plan import PlanStatus

    match status:
        case PlanStatus.INFEASIBLE:
            return Exit.INFEASIBLE
        case PlanStatus.NONE_IN_TIME | PlanStatus.STOPPED:
            return Exit.INCOMPLETE
    return None


# ---- errors


def guarded(command: Callable[P, int]) -> Callable[P, None]:
    """Make a command exit with its code, and print an expected error as one sentence.

    Unexpected errors are printed with their class; with `verbose` they are raised.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = int(command(*args, **kwargs))
            # What is still buffered may not fit on a full disk.
            sys.stdout.flush()
        except errors.PlimsollError as exc:
            code = _report(str(exc), exit_of(exc))
        except KeyboardInterrupt:
            code = _report("interrupted", Exit.INTERRUPTED)
        except BrokenPipeError:
            # The reader of stdout has left.
            _close_stdout()
            code = Exit.DONE
        except typer.Exit:
            raise
        except Exception as exc:
            if is_full(exc):
                raise typer.Exit(output_lost(exc)) from exc
            if kwargs.get("verbose"):
                raise
            code = _report(*_unexpected(exc))
        raise typer.Exit(code)

    return run


@contextlib.contextmanager
def ending_solves() -> Iterator[None]:
    """A context whose SystemExit ends the process also while a thread solves.

    Such a thread would call back into Python while the interpreter ends. Before Python 3.14 that
    unwinds the thread's stack, and in the compiled code of the solver, aborts the process.
    """
    try:
        yield
    except SystemExit as exc:
        if threading.active_count() > 1:
            from control.planning.background_call import SOLVE

            if any(thread.name == SOLVE for thread in threading.enumerate()):
                atexit._run_exitfuncs()  # noqa: SLF001 - all that `_exit` would leave out
                _flush()
                os._exit(exc.code if isinstance(exc.code, int) else Exit.INTERNAL)
        raise


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


def _unexpected(error: Exception) -> tuple[str, Exit]:
    """The message and exit code of an unexpected error."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        # The name is too long, or the user may not read the folder.
        return f"cannot use {error.filename}: {error.strerror}", Exit.USAGE
    message = f"internal error: {error!r}; run it again with -v for the traceback"
    return message, Exit.INTERNAL


def is_full(error: Exception) -> bool:
    """Whether the error is of a full stdout; errors of files name their file."""
    full = isinstance(error, OSError) and error.errno in _FULL
    return full and getattr(error, "filename", None) is None


def output_lost(error: Exception) -> int:
    """Report that stdout could not be written; the exit code."""
    _close_stdout()
    reason = getattr(error, "strerror", None) or error
    return _report(f"cannot write to stdout: {reason}", Exit.USAGE)


def _close_stdout() -> None:
    """Prevent the flush at exit from failing again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(sentence: str, code: Exit) -> int:
    # stderr may be a closed terminal.
    with contextlib.suppress(OSError):
        # Where stderr is a log of JSON, a line has a level.
        write = getattr(sys.stderr, "write_error", sys.stderr.write)
        write(f"plimsoll: {printable(sentence)}\n")
    return code
