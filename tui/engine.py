"""What the screen needs of the loop; nothing else of it is within reach."""

from collections.abc import Callable
from typing import Protocol

from control.asks import Asks
from control.parts import LoopSettings
from control.view import LoopView
from executor.steering import Steering
from model.scenario import Scenario


class Asking(Protocol):
    """What may be asked of plans; `control.proposals.Proposals` takes it.

    What cannot be asked of the cluster as it is is a ConfigError, in words.
    """

    def ask(self, asks: Asks) -> None:
        """Make a new plan, with what is asked of it."""

    def use_best(self) -> None:
        """End the solve under way with the best plan so far."""

    def trace(self) -> None:
        """Trace the frontier."""

    def choose(self, point: int) -> None:
        """Let the plan behind a point of the frontier be the plan."""

    def suppose(self, scenario: Scenario | None) -> None:
        """Plan a cluster that is only supposed; None ends it."""


class Engine(Protocol):
    """The loop, seen from the screen; `control.loop.Loop` is one."""

    @property
    def settings(self) -> LoopSettings:
        """Mode, goals and names."""
        ...

    @property
    def view(self) -> LoopView:
        """The loop as it stands."""
        ...

    @property
    def running(self) -> bool:
        """Whether a run goes on."""
        ...

    @property
    def steering(self) -> Steering:
        """Of the run that goes on."""
        ...

    @property
    def proposals(self) -> Asking:
        """What may be asked of plans."""
        ...

    def subscribe(self, subscriber: Callable[[LoopView], None]) -> None:
        """Call `subscriber` with each new view, from any thread."""

    def approve(self, plan_hash: str, by: str) -> None:
        """Carry out the plan with this hash; refusals are GuardrailRefused."""

    def plan_again(self) -> None:
        """Make a new plan from the newest snapshot."""
