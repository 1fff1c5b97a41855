"""What one line says of a solve."""

import pytest

from model.goals.goals import SolveLimits
from solver.report.result import FEW_LIMITS
from solver.solve import solve
from tests.support.solver.exact_oracle import Row, broker, cluster, goals


@pytest.mark.parametrize("brokers", [FEW_LIMITS, 40])
def test_a_summary_names_few_of_the_limits_that_stay_exceeded(brokers: int) -> None:
    members = [broker(n, capacity=1.0) for n in range(brokers)]
    snapshot = cluster(members, [Row(replicas=(n,)) for n in range(brokers)])
    result = solve(snapshot, goals(0.01), SolveLimits(work=0.1))
    assert result.best is not None
    assert len(result.best.over_limit) >= brokers
    summary = result.summary()
    assert summary.count("stays over its limit") == FEW_LIMITS
    left = len(result.best.over_limit) - FEW_LIMITS
    assert (f"; {left} more limits stay exceeded" in summary) == (left > 0)
