"""Requests to many brokers at once; a silent broker does not delay the others."""

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from clients.driver_errors import failure_of, is_unknown_broker

AT_ONCE: Final = 8
"""Brokers that are asked at one time; those that are silent do not count."""
ANSWER_S: Final = 2.0
"""How long the others wait for a broker; its own answer may take longer."""
_log = logging.getLogger("plimsoll.collector")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """A broker that is registered and does not answer."""

    broker: int
    since_ms: int
    """When it was asked what it has not answered."""
    reason: str
    """Its connection's last error, or that it takes long."""


class BrokerFanOut(Generic[T]):
    """Collects the answers of brokers as they come. One thread owns it."""

    def __init__(self, clock: Callable[[], float], *, answer_s: float = ANSWER_S) -> None:
        self._clock = clock
        self._answer_s = answer_s
        self._pending: dict[int, Future[T]] = {}
        self._asked_ms: dict[int, int] = {}
        self.silent: dict[int, Silence] = {}
        """Brokers that have not answered, by broker id."""
        self.lost = False
        """Whether the client did not know one of the brokers at the last call."""

    def ask(self, questions: Mapping[int, Callable[[], Future[T]]]) -> dict[int, T]:
        """Ask brokers at once; return the answers that came since the last call.

        Waits up to `answer_s` for brokers that answered last time, and not at all for
        silent ones; a later answer is returned by a later call. Errors of a single
        broker make it silent; other errors are raised.
        """
        self.lost = False
        self._forget_all_but(questions)
        for broker in self.silent.keys() & questions.keys():
            self._begin(broker, questions[broker])
        self._wait_for(questions)
        answers: dict[int, T] = {}
        for broker in questions:
            self._harvest(broker, answers)
        return answers

    def forget(self) -> None:
        """Drop all pending requests; late answers are ignored."""
        self._pending.clear()

    def _forget_all_but(self, brokers: Collection[int]) -> None:
        for broker in self._pending.keys() | self.silent.keys():
            if broker not in brokers:
                self._pending.pop(broker, None)
                self.silent.pop(broker, None)

    def _begin(self, broker: int, question: Callable[[], Future[T]]) -> None:
        if broker not in self._pending:
            self._asked_ms[broker] = int(1000 * self._clock())
            self._pending[broker] = question()

    def _wait_for(self, questions: Mapping[int, Callable[[], Future[T]]]) -> None:
        end_s = time.monotonic() + self._answer_s
        queue = deque(b for b in questions if b not in self.silent)
        running: set[Future[T]] = set()
        while queue or running:
            while queue and len(running) < AT_ONCE:
                broker = queue.popleft()
                self._begin(broker, questions[broker])
                running.add(self._pending[broker])
            left_s = max(0.0, end_s - time.monotonic())
            done, running = wait(running, left_s, FIRST_COMPLETED)
            if not done:
                return

    def _harvest(self, broker: int, answers: dict[int, T]) -> None:
        future = self._pending.get(broker)
        if future is None:
            return
        if not future.done():
            reason = f"no answer within {self._answer_s:g} s"
            self._hear_nothing(broker, reason)
            return
        del self._pending[broker]
        error = future.exception()
        if error is None:
            answers[broker] = future.result()
            if self.silent.pop(broker, None):
                _log.info("broker %d answers the probe again", broker)
        else:
            self.lost |= is_unknown_broker(error)
            self._hear_nothing(broker, failure_of(error))

    def _hear_nothing(self, broker: int, reason: str) -> None:
        known = self.silent.get(broker)
        since_ms = known.since_ms if known else self._asked_ms[broker]
        self.silent[broker] = Silence(broker=broker, since_ms=since_ms, reason=reason)
        if known is None:
            _log.warning("broker %d does not answer the probe: %s", broker, reason)
