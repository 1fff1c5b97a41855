"""Brokers with something wrong: they come before any deviation."""

from typing import Final

from control.loop.view import LoopView
from control.tasks.broker_task import brokers_text
from model.ids import BrokerId
from model.snapshot.broker_troubles import Trouble, rank_of, trouble_of
from model.snapshot.snapshot import Broker
from tui.viewmodel.cells import Cell, Role, cell
from tui.viewmodel.memoize import memoized

BROKERS_NAMED: Final = 3
"""Brokers that the header names of a kind; further ones are counted."""


def role_of(trouble: Trouble) -> Role:
    """How a trouble is drawn."""
    return Role.OVER if trouble is Trouble.SLOW else Role.ALARM


def brokers_of(view: LoopView) -> tuple[Broker, ...]:
    """The brokers as last seen; those of the snapshot while none are known."""
    return view.brokers or (view.snapshot.header.brokers if view.snapshot else ())


@memoized
def troubled(brokers: tuple[Broker, ...]) -> dict[Trouble, tuple[BrokerId, ...]]:
    """The brokers with something wrong by what it is, the worst first."""
    found: dict[Trouble, tuple[BrokerId, ...]] = {}
    for broker in sorted(brokers, key=rank_of):
        if (trouble := trouble_of(broker)) is not None:
            found[trouble] = (*found.get(trouble, ()), broker.id)
    return found


def alarms(view: LoopView) -> tuple[Cell, ...]:
    """An item of the header for each trouble: `! broker 42 DEAD`."""
    found = troubled(brokers_of(view))
    return tuple(
        cell(f"! {brokers_text(brokers, BROKERS_NAMED)} {trouble}", role_of(trouble))
        for trouble, brokers in found.items()
    )
