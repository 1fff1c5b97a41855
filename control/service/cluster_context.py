"""Which cluster a thread works for, where one process serves several: for log and messages."""

import threading
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Final

CLUSTER: Final = ContextVar("cluster", default="")
"""The name of the cluster in its fleet; empty where the process serves one cluster alone."""
_start: Final = threading.Thread.start


def inherit_contexts() -> None:
    """Let every new thread begin with the context of the thread that starts it, from now on.

    Python 3.14 has an option for this, `thread_inherit_context`. Libraries start threads, too, so a
    class of our own would not reach all of them.
    """
    threading.Thread.start = _start_in_context  # type: ignore[method-assign]


def _start_in_context(self: threading.Thread) -> None:
    # An attribute of the thread itself, since `run` may be that of a subclass.
    self.run = partial(copy_context().run, self.run)  # type: ignore[method-assign]
    _start(self)
