"""What the screen needs of the loop; nothing else of it is within reach."""

from collections.abc import Callable
from typing import Protocol

from control.loop import LoopSettings
from control.view import LoopView
from executor.steering import Steering


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

    def subscribe(self, subscriber: Callable[[LoopView], None]) -> None:
        """Call `subscriber` with each new view, from any thread."""

    def approve(self, plan_hash: str, by: str) -> None:
        """Carry out the plan with this hash; refusals are GuardrailRefused."""

    def plan_again(self) -> None:
        """Make a new plan from the newest snapshot."""
