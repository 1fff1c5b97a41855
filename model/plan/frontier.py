"""The Pareto frontier of the cost of moves and the balance they reach.

The cost of a plan is counted in move equivalents: the price of its changes divided by
lambda, the price of one move. Its balance is the rest of F.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Final, Literal

from model.files import FileModel, VersionedModel, unless_empty
from model.goals.goals import Goals, ObjectiveKind, SolveLimits

KIND: Final = "plimsoll.frontier"
SCHEMA_VERSION: Final = "1.1"


class FrontierPoint(FileModel):
    """One plan: what it costs and what it reaches."""

    cost: float
    """In move equivalents: its price over lambda; forced moves are free."""
    balance: float
    """Weighted squared deviations from the average, or the excess over the bands."""
    bound: float
    """No plan of this cost has a lower balance."""
    moves: int
    """New replicas, the forced ones too."""
    leader_changes: int
    bytes_to_copy: int | None
    """None where the size of a partition is unknown. Since 1.1."""
    move_price: float
    """Price of a move at which the plan was found; `plan` finds it at this price."""
    most_moves: int | None = None
    """The budget of moves under which it was found, where there was one."""


class FrontierLine(FileModel):
    """A proved line: no plan has a balance under `bound - move_price x cost`."""

    move_price: float
    bound: float

    def at(self, cost: float) -> float:
        """The line's balance, in units of F, at a cost in move equivalents."""
        return self.bound - self.move_price * cost


class FrontierCorner(FileModel):
    """A corner of the frontier's lower bound, which is straight in between."""

    cost: float
    balance: float


class Frontier(VersionedModel):
    """The whole frontier of one cluster state."""

    kind: Literal["plimsoll.frontier"] = KIND
    schema_version: str = SCHEMA_VERSION
    cluster_id: str
    snapshot_fingerprint: str
    goals: Goals
    limits: SolveLimits
    """Work of all solves together."""
    measure: Literal["deviation", "excess"]
    """What `balance` is: squared deviations, or excess over the bands."""
    move_price: float
    """The price of a move that `goals` mean."""
    balance_before: float
    """Of the cluster as it is."""
    points: tuple[FrontierPoint, ...]
    """By rising cost and falling balance; another may beat the plan, and no other."""
    knee: int | None
    """The point farthest below the straight line from the first to the last: before
    it a move buys much, after it little. None with fewer than three points."""
    chosen: int | None
    """The plan that `plan` makes; None where it makes none."""
    lines: tuple[FrontierLine, ...]
    lower: tuple[FrontierCorner, ...]
    """The highest of the lines, and 0."""
    reasons: tuple[str, ...] = ()
    """Why there is no point, in words."""
    limited_by: Annotated[str, unless_empty] = ""
    """What ended solves before their proof, in words; empty where nothing did."""


def goals_at(goals: Goals, move_price: float, most_moves: int | None) -> Goals:
    """The goals under which a point of the frontier is found.

    Balance is traded for cost, so the tolerance does not come first. Under `band` the excess
    comes first whatever it costs, so there the price is the other way round: what the excess
    costs in moves.
    """
    update: dict[str, object] = {"move_price": move_price, "tolerance_first": False}
    if goals.objective is ObjectiveKind.BAND:
        update = {"move_price": 1.0, "excess_price": 1.0 / move_price}
    if most_moves is not None:
        update["budgets"] = goals.budgets.model_copy(update={"replica_moves": most_moves})
    return goals.model_copy(update=update)


def undominated(points: Iterable[FrontierPoint]) -> tuple[FrontierPoint, ...]:
    """The points that no other point beats in both cost and balance, by rising cost.

    Of points equal in both, the one with the fewest moves stays.
    """
    kept: list[FrontierPoint] = []
    for point in sorted(points, key=lambda p: (p.cost, p.balance, p.moves)):
        if not kept or point.balance < kept[-1].balance:
            kept.append(point)
    return tuple(kept)


def best_trade_off(points: Sequence[FrontierPoint]) -> int | None:
    """Position of the best trade-off: the point farthest below the chord.

    The chord runs from the first to the last point, both axes scaled to 1, as in Kneedle
    (Satopää et al. 2011) without smoothing. Costs must rise and balances fall strictly, as from
    `undominated`. The first of equals; None with fewer than three points, or where none lies
    below the chord.
    """
    if len(points) < 3:
        return None
    first, last = points[0], points[-1]
    width, height = last.cost - first.cost, first.balance - last.balance

    def under(point: FrontierPoint) -> float:
        along = (point.cost - first.cost) / width
        return (first.balance - point.balance) / height - along

    depths = [under(point) for point in points]
    deepest = max(range(len(points)), key=lambda i: (depths[i], -i))
    return deepest if 0 < deepest < len(points) - 1 else None


def lower_bound(lines: Iterable[FrontierLine], most: float) -> tuple[FrontierCorner, ...]:
    """The corners of the upper envelope of the lines and 0, from cost 0 to `most`.

    Costs are in move equivalents; `most` is the highest cost of interest.
    """
    every = (*lines, FrontierLine(move_price=0.0, bound=0.0))
    current = max(every, key=lambda line: (line.at(0.0), -line.move_price))
    cost, found = 0.0, [FrontierCorner(cost=0.0, balance=current.at(0.0))]
    while nexts := list(_overtakers(every, current, cost, most)):
        # Of several that cross in one place the flattest stays highest.
        cost, _, current = min(nexts, key=lambda n: n[:2])
        found.append(FrontierCorner(cost=cost, balance=current.at(cost)))
    if cost < most:
        found.append(FrontierCorner(cost=most, balance=current.at(most)))
    return tuple(found)


def _overtakers(
    lines: Sequence[FrontierLine], current: FrontierLine, cost: float, most: float
) -> Iterator[tuple[float, float, FrontierLine]]:
    """Flatter lines, with the cost from which each is higher than the current."""
    for line in lines:
        if line.move_price < current.move_price:
            fall = current.move_price - line.move_price
            crossing = max(cost, (current.bound - line.bound) / fall)
            if crossing < most:
                yield crossing, line.move_price, line
