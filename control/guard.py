"""How a command ends: with its exit code, and one sentence where it could not."""

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

from control.exits import Exit, exit_of
from model.errors import PlimsollError
from model.printable import printable

P = ParamSpec("P")


def guarded(command: Callable[P, int]) -> Callable[P, None]:
    """End a command with its exit code; an expected error is one sentence."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = int(command(*args, **kwargs))
        except PlimsollError as exc:
            code = _told(str(exc), exit_of(exc))
        except KeyboardInterrupt:
            code = _told("interrupted", Exit.INTERRUPTED)
        except BrokenPipeError:
            # The reader of stdout has left; a flush at exit must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = Exit.DONE
        except typer.Exit:
            raise
        except Exception as exc:
            if kwargs.get("verbose"):
                raise
            words = f"internal error: {exc!r}; run it again with -v for the traceback"
            code = _told(words, Exit.INTERNAL)
        raise typer.Exit(code)

    return run


def _told(sentence: str, code: Exit) -> int:
    # The terminal may be the one that has vanished.
    with contextlib.suppress(OSError):
        sys.stderr.write(f"plimsoll: {printable(sentence)}\n")
    return code
