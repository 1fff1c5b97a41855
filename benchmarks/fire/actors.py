"""Actors that take turns: threads of which one runs at a time, in an order that time decides.

An actor runs until it sleeps. Whoever sleeps lets the world's time pass up to the next wake-up, and
hands over to the actor that wakes then, so equal seeds give equal runs.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from lab.simulated_cluster.cluster import SimulatedCluster


class Dead(BaseException):
    """The process is killed: nothing is caught, written or cleaned up after it."""


@dataclass(slots=True, eq=False)
class Actor:
    """One thread of control."""

    number: int
    wake_s: float
    turn: threading.Lock = field(default_factory=threading.Lock)


class Actors:
    """All actors of a world, and its clock."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._actors: list[Actor] = []
        self._threads: list[threading.Thread] = []
        self._all_done = threading.Lock()
        self._all_done.acquire()
        self.errors: list[BaseException] = []
        """What actors have raised, which is an error of the world itself."""

    def add(self, script: Callable[[Actor], None], begins_s: float) -> Actor:
        """Add an actor that begins at a time of the cluster's clock."""
        actor = Actor(len(self._actors), begins_s)
        actor.turn.acquire()
        self._actors.append(actor)

        def play() -> None:
            actor.turn.acquire()
            try:
                script(actor)
            except BaseException as exc:  # noqa: BLE001 - a thread would lose it
                self.errors.append(exc)
            self._actors.remove(actor)
            self._pass_on(None)

        thread = threading.Thread(target=play, name=f"actor {actor.number}", daemon=True)
        thread.start()
        self._threads.append(thread)
        return actor

    def run(self) -> None:
        """Let the actors act until all have ended."""
        self._pass_on(None)
        self._all_done.acquire()
        for thread in self._threads:
            thread.join()

    def sleep(self, actor: Actor, seconds: float) -> None:
        """Let time pass, and others act in it; it may take longer where the actor is frozen."""
        actor.wake_s = self._cluster.now_s + seconds
        if self._pass_on(actor):
            actor.turn.acquire()

    def _pass_on(self, actor: Actor | None) -> bool:
        """Wake the next actor; return whether that is another one."""
        found = self._next()
        if actor is not None and found is actor:
            return False
        (found.turn if found is not None else self._all_done).release()
        return True

    def _next(self) -> Actor | None:
        while self._actors:
            # Events while time passes may freeze or wake actors.
            found = min(self._actors, key=lambda actor: (actor.wake_s, actor.number))
            if found.wake_s <= self._cluster.now_s:
                found.wake_s = -inf
                return found
            self._cluster.advance(found.wake_s - self._cluster.now_s)
        return None
