"""How uneven the log directories inside brokers are: the plain half."""

from model.goals.goals import Goal, ObjectiveKind
from model.plan.proposal import Proposal
from model.rules.log_dirs import bytes_before, growth
from model.snapshot.snapshot import TAKING, Broker, Resource


def directory_cost(proposal: Proposal, price: float) -> float:
    """What all deviations of directories from their broker's level cost.

    Of brokers that may take load and have two directories or more, and hold as many
    bytes as the floor of the goal for disks says. Bytes count where the directory is
    known, or named by a change. 0 unless the goals level directories.

    Parameters
    ----------
    price
        lambda, which `band` prices the excess with.
    """
    goals = proposal.goals
    found = [g for g in goals.balance if g.resource is Resource.DISK]
    goal = found[0] if found else Goal(resource=Resource.DISK)
    if not goals.level_directories or goal.weight == 0:
        return 0.0
    used = bytes_before(proposal.snapshot)
    for place, more in growth(proposal.snapshot, proposal.changes).items():
        used[place] = used.get(place, 0.0) + more
    brokers = (b for b in proposal.snapshot.header.brokers if b.state in TAKING)
    return sum(
        _cost(
            proposal,
            b,
            goal,
            [used.get((b.id, d.path), 0.0) for d in b.log_dirs],
            price,
        )
        for b in brokers
        if len(b.log_dirs) > 1
    )


def _cost(
    proposal: Proposal, broker: Broker, goal: Goal, used: list[float], price: float
) -> float:
    known = [d.capacity_bytes for d in broker.log_dirs]
    capacity = [1.0 if None in known or c is None else c for c in known]
    total = sum(used)
    if total <= 0 or total < goal.floor:
        return 0.0
    level = total / sum(capacity)
    where = [u / c / level - 1 for u, c in zip(used, capacity, strict=True)]
    if proposal.goals.objective is ObjectiveKind.BAND:
        over = sum(max(0.0, abs(v) - goal.tolerance) for v in where)
        return goal.weight * proposal.goals.excess_price * price * over
    return goal.weight * sum(v * v for v in where)
