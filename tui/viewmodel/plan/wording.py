"""Texts about plans and moves that several screens use."""

from typing import Final

from control.loop.view import LoopView, Phase
from model.ids import BrokerId
from model.plan.plan import Move

MOVES_SHOWN: Final = 500
"""Rows of the table; further ones are only counted."""

REASON_LEAST: Final = 12


def why_no_plan(view: LoopView) -> str:
    """Explain why there are no moves, and what will change that."""
    match view.phase:
        case Phase.CONNECTING | Phase.UNREACHABLE:
            return "No plan yet; waiting for the cluster to answer."
        case Phase.MEASURING:
            return "No plan yet; loads are still being measured."
        case Phase.SOLVING:
            return "Planning; this may take some seconds."
        case Phase.BALANCED:
            return (
                "There is nothing to move: every broker is within its tolerance band. "
                "When one leaves it, a plan is made."
            )
        case Phase.FAILED:
            return "There will be no plan: plimsoll has stopped. Quit and restart it."
        case _:
            return f"There is no plan: {view.message}."


def change_text(move: Move) -> str:
    """What a move changes: `1 → 2`, `leader 1 → 5`, `order 1,2 → 2,1`; `1 → 2 *` and the leader.

    The only replica of a partition takes its leadership along, which needs no mark.
    """
    leads = move.leader_before != move.leader_after
    if move.added or move.removed:
        moved = f"{listed(move.removed)} → {listed(move.added)}"
        return f"{moved} *" if leads and len(move.replicas_after) > 1 else moved
    if leads:
        return f"leader {move.leader_before} → {move.leader_after}"
    return f"order {listed(move.replicas_before)} → {listed(move.replicas_after)}"


def listed(brokers: tuple[BrokerId, ...]) -> str:
    """Broker ids separated by commas; a dash for none."""
    return ",".join(map(str, brokers)) or "-"
