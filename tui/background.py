"""Calls that take long, in threads that the end of the program does not wait for."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_background(call: Callable[[], T]) -> T:
    """Return the result of a call, or raise what it raises.

    `asyncio.to_thread` would keep a screen that has been left until the call returns, for half a
    minute where a service does not answer.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def deliver(give: Callable[[], None]) -> None:
        # The loop may have ended in the meantime, and whoever asked may have been cancelled.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if future.done() else give())

    def work() -> None:
        try:
            result = call()
        except Exception as exc:  # noqa: BLE001 - raised where it is awaited
            error = exc
            deliver(lambda: future.set_exception(error))
        else:
            deliver(lambda: future.set_result(result))

    threading.Thread(target=work, name="background", daemon=True).start()
    return await future
