"""The hard rules of single rows as columns, for a bound that relaxes all others."""

from dataclasses import dataclass

import numpy as np

from model.plan.proposal import Proposal
from model.snapshot.snapshot import Bools, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRules:
    """Which rows stay, and which brokers a row may not go back to."""

    fixed: Bools
    """(n,) rows that no plan may change."""
    resting: Bools
    """(n,) rows whose last move is more recent than their cooldown."""
    barred_row: Ints
    """(pairs,) rising; with `barred_broker`, brokers within the return window."""
    barred_broker: Ints
    """(pairs,) positions in the header's brokers."""


def row_rules(proposal: Proposal) -> RowRules:
    """Compute the rules that bind rows one by one.

    As `model.rules.movable` has them: fixed rows follow `movable` and `cooled_down`, which forced
    rows are exempt from unless they have no leader; barred brokers follow `no_return`.
    """
    resting, barred = _recent(proposal)
    pairs = np.array(sorted(set(barred)), np.int64).reshape(-1, 2)
    stays = [*proposal.fixed.values(), resting & ~proposal.forced.rows]
    return RowRules(
        fixed=np.logical_or.reduce(stays),
        resting=resting,
        barred_row=pairs[:, 0],
        barred_broker=pairs[:, 1],
    )


def _recent(proposal: Proposal) -> tuple[Bools, list[tuple[int, int]]]:
    """(n,) rows that rest, and the brokers that rows may not return to."""
    snapshot = proposal.snapshot
    position = {b.id: i for i, b in enumerate(snapshot.header.brokers)}
    resting = np.zeros(len(snapshot), np.bool_)
    barred = []
    for partition, moves in proposal.recent.items():
        row = snapshot.find(partition)
        if row is None:
            continue
        topic = snapshot.header.topics[int(snapshot.partitions.topic[row])]
        rest = proposal.goals.rest_of(topic.storage)
        for move, age_s in moves:
            if age_s < rest.rest_s:
                resting[row] = True
            if age_s < rest.return_window_s:
                barred += [(row, position[b]) for b in move.left if b in position]
    return resting, barred
