"""Runs on real brokers that lose a request to elect, or its answer.

Kafka's own leader balancing is off: with it on, Kafka may elect the leader before the
run has asked for that, and then there is no request to lose.
"""

import pytest

from tests.support.cli_on_cluster import wait_until
from tests.support.executor.proxied_cluster import Proxied
from tests.support.executor.real_runs import assert_done
from tests.support.lab.proxy import Api, Fault

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("harm", [Fault.LOSE_REQUEST, Fault.LOSE_ANSWER, Fault.CUT_BEFORE])
def test_a_lost_election_is_requested_again(site: Proxied, harm: Fault) -> None:
    plan = site.plan()
    site.proxy.order(Api.ELECT_LEADERS, harm)
    report = site.execute(plan)
    assert site.proxy.faults_left(Api.ELECT_LEADERS) == 0
    assert_done(report)
    retries = [move.retries for move in report.moves]
    assert sum(retries) >= (harm is not Fault.LOSE_ANSWER)
    wait_until(lambda: site.is_as_planned(plan))
    wait_until(lambda: site.is_clean)
