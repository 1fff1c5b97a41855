"""Small clusters of partitions with one replica, and searches over them."""

from dataclasses import replace

from hypothesis import strategies as st

from benchmarks.shapes import Shape, shape_of
from model.goals.goals import Goals
from model.snapshot.snapshot import BrokerState, Snapshot
from solver.search.local_search import LocalSearch, search_locally
from tests.support.solver.begun_search import begun
from tests.support.solver.exact_oracle import Row, broker, cluster

STATES = [*[BrokerState.ALIVE] * 4, BrokerState.NEW, BrokerState.DRAINING]


@st.composite
def single_replica_clusters(
    draw: st.DrawFn, loads: st.SearchStrategy[tuple[float, float]], most: int
) -> Snapshot:
    """Two or three brokers and up to `most` partitions."""
    ids = range(1, draw(st.integers(2, 3)) + 1)
    brokers = [broker(i, state=draw(st.sampled_from(STATES))) for i in ids]
    rows = [
        Row(replicas=(draw(st.sampled_from(ids)),), load=draw(loads))
        for _ in range(draw(st.integers(1, most)))
    ]
    return cluster(brokers, rows)


def searched(snapshot: Snapshot, given_goals: Goals, work: float = 1.0) -> LocalSearch | None:
    """A local search; None if there is nothing to search."""
    return search_locally(begun(snapshot, given_goals, 60.0), work)


def small_shape(name: str) -> Shape:
    """The named shape with 5 brokers and 100 partitions."""
    return replace(shape_of(name), brokers=5, partitions=100)
