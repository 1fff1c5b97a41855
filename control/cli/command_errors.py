"""How a command ends: with its exit code, and one sentence where it could not."""

import contextlib
import errno
import functools
import os
import sys
from collections.abc import Callable
from typing import Final, ParamSpec

import typer

from control.cli.exit_codes import Exit, exit_of
from model.errors import PlimsollError
from model.printable import printable

P = ParamSpec("P")

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Errors of a stdout that takes no more."""


def guarded(command: Callable[P, int]) -> Callable[P, None]:
    """End a command with its exit code; an expected error is one sentence."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = int(command(*args, **kwargs))
            # What is still buffered may not fit on a full disk.
            sys.stdout.flush()
        except PlimsollError as exc:
            code = _told(str(exc), exit_of(exc))
        except KeyboardInterrupt:
            code = _told("interrupted", Exit.INTERRUPTED)
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
            code = _told(*_unexpected(exc))
        raise typer.Exit(code)

    return run


def _unexpected(error: Exception) -> tuple[str, Exit]:
    """An error that no command foresaw, in words, and its exit code."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        # A name that is too long, or a folder of the user's that cannot be read.
        return f"cannot use {error.filename}: {error.strerror}", Exit.USAGE
    words = f"internal error: {error!r}; run it again with -v for the traceback"
    return words, Exit.INTERNAL


def is_full(error: Exception) -> bool:
    """Whether stdout has no room; errors of files name their file."""
    full = isinstance(error, OSError) and error.errno in _FULL
    return full and getattr(error, "filename", None) is None


def output_lost(error: Exception) -> int:
    """Say that stdout could not be written; the exit code."""
    _close_stdout()
    reason = getattr(error, "strerror", None) or error
    return _told(f"cannot write to stdout: {reason}", Exit.USAGE)


def _close_stdout() -> None:
    """Let a flush at exit not fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(sentence: str, code: Exit) -> int:
    # The terminal may be the one that has vanished.
    with contextlib.suppress(OSError):
        sys.stderr.write(f"plimsoll: {printable(sentence)}\n")
    return code
