"""Effects of a new topic on the brokers: room left, and the cost of each count."""

from dataclasses import dataclass, replace

import numpy as np

from model.snapshot.snapshot import Floats, Ints, Resource
from solver.new_topic.replica_counts import Slopes
from solver.new_topic.topic_problem import NewTopic
from solver.problem.problem import Problem
from solver.problem.remaining_violations import held


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLoad:
    """Room left on B brokers, and the cost of each count of replicas and leaders."""

    cap: Ints
    """(B,) replicas that fit next to the present load."""
    lead_cap: Ints
    """(B,) leaders that fit."""
    replica: Slopes
    """Cost of replicas: by load, or by number where no load is expected."""
    leader: Slopes
    """Cost of leaders, likewise; none where each partition has a single replica."""
    balances_replicas: bool
    """Whether the replicas' load is balanced, rather than their number."""
    balances_leaders: bool
    """Whether the leaders' load is balanced, rather than their number."""
    before: float | None
    """Cost before anything is assigned; None where no expected load is balanced."""

    def after(self, given: Ints, led: Ints) -> "TopicLoad":
        """Return limits and costs after (B,) replicas `given` and, of these, (B,) leaders `led`.

        `cap` and `lead_cap` may become negative; `before` stays.
        """
        return replace(
            self,
            cap=self.cap - given,
            lead_cap=self.lead_cap - led,
            replica=_shifted(self.replica, given),
            leader=_shifted(self.leader, led),
        )


def expected_load(problem: Problem, topic: NewTopic) -> TopicLoad:
    """Compute limits and costs for a new topic, from its expected bytes/s.

    Costs are in units of F, as the goals weigh network load, now and in forecast slots; where no
    load is expected or none of it is balanced, numbers of replicas and leaders are balanced
    instead. Only limits of replicas per broker, `net_in` and `net_out` bound the caps.
    """
    fill = _load_ranks(problem)
    replicas = topic.partitions * topic.replication_factor
    taken = _terms(problem, Resource.NET_IN, topic.taken, replicas)
    served = _terms(problem, Resource.NET_OUT, topic.served, topic.partitions)
    # With one replica each, the leader's load is the replica's.
    alone = topic.replication_factor == 1
    replica_terms = taken + served if alone else taken
    leader_terms = [] if alone else served
    terms = taken + served
    by_replicas = np.maximum(0, problem.allowed_replicas - held(problem, problem.replicas))
    return TopicLoad(
        cap=np.minimum(by_replicas, _fitting(problem, Resource.NET_IN, topic.taken)),
        lead_cap=_fitting(problem, Resource.NET_OUT, topic.served),
        replica=_slopes(replica_terms, fill),
        leader=_slopes(leader_terms, fill),
        balances_replicas=bool(replica_terms),
        balances_leaders=bool(leader_terms),
        before=sum(t.before for t in terms) if terms else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """One balanced dimension: weight x (at + each x count)^2, over B brokers."""

    weight: float
    at: Floats
    each: Floats

    @property
    def before(self) -> float:
        return self.weight * float((self.at * self.at).sum())


def _terms(problem: Problem, resource: Resource, load: float, pieces: int) -> list[_Term]:
    """The balanced dimensions of a resource, with the mean that includes the topic."""
    holding = int(problem.may.holding.sum())
    found = []
    for k, column in enumerate(problem.column.tolist()):
        if problem.dimensions[column].measure is not resource or not load:
            continue
        total = float(problem.mean_load[k]) * holding
        whole = total + pieces * load
        slope = problem.slope[:, k] * (total / whole)
        at = np.where(problem.may.holding, problem.loads_before[:, column] * slope - 1.0, 0.0)
        weight = float(problem.weight[k])
        found.append(_Term(weight=weight, at=at, each=load * slope))
        found.append(_number(problem, weight * pieces * load / whole, pieces))
    return found


def _number(problem: Problem, weight: float, pieces: int) -> _Term:
    """The deviation of each broker's number of pieces from their mean.

    Weighted by the topic's share of the load, it gives a broker that is a tenth below
    the mean load about a tenth more than the mean number, however small the topic is.
    """
    alive = problem.may.alive.astype(np.float64)
    return _Term(weight=weight, at=-alive, each=alive * alive.sum() / pieces)


def _slopes(terms: list[_Term], fill: Floats) -> Slopes:
    """Cost of one more by load, or by number where no load counts."""
    if not terms:
        return Slopes(first=np.zeros(len(fill)), rise=np.ones(len(fill)), tie=fill)
    first = sum((t.weight * t.each * (2 * t.at + t.each) for t in terms), 0 * fill)
    rise = sum((2 * t.weight * t.each * t.each for t in terms), 0 * fill)
    return Slopes(first=first, rise=rise, tie=fill)


def _shifted(slopes: Slopes, count: Ints) -> Slopes:
    return replace(slopes, first=slopes.first + slopes.rise * count)


def _fitting(problem: Problem, resource: Resource, load: float) -> Ints:
    """(B,) number of pieces of a load that fit under every limit of a resource."""
    most = np.full(len(problem.brokers), np.iinfo(np.int32).max, np.float64)
    for d, dimension in enumerate(problem.dimensions):
        if dimension.measure is resource and load:
            left = problem.allowed[:, d] - problem.loads_before[:, d]
            most = np.minimum(most, np.floor(np.maximum(0.0, left) / load))
    return most.astype(np.int64)


def _load_ranks(problem: Problem) -> Floats:
    """(B,) rank of each broker by load, the emptiest first, as a share of 1."""
    size = len(problem.brokers)
    ranks = np.zeros(size)
    ranks[np.argsort(problem.fill, kind="stable")] = np.arange(size) / max(1, size)
    return ranks
