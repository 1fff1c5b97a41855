"""Runs on real brokers whose requests and answers are lost, delayed or truncated.

Kafka's own leader balancing is on, every 5 s.
"""

import threading

import pytest

from executor.timing import RunLimits
from lab.load.load_generator import Load, LoadOrder
from model.errors import ExecutionStopped
from model.run import MoveState, RunProgress, RunState
from tests.support.cli_on_cluster import wait_until
from tests.support.executor.proxied_cluster import PARTITIONS, THROTTLED, TIMEOUT_S, TOPIC, Proxied
from tests.support.executor.real_runs import assert_done
from tests.support.executor.topic_records import assert_exact
from tests.support.lab.proxy import Api, Fault

pytestmark = pytest.mark.kafka

BROKER_PROPERTIES = {
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "5",
}
HARMED = [
    (Api.ALTER_PARTITION_REASSIGNMENTS, Fault.LOSE_REQUEST),
    (Api.ALTER_PARTITION_REASSIGNMENTS, Fault.LOSE_ANSWER),
    (Api.ALTER_PARTITION_REASSIGNMENTS, Fault.CUT_AFTER),
    (Api.METADATA, Fault.DELAY),
    (Api.DESCRIBE_LOG_DIRS, Fault.CUT_BEFORE),
]
"""Each way in which the driver fails, once; a simulated cluster loses every call."""


@pytest.fixture(scope="module", autouse=True)
def load(behind_proxy: Proxied) -> Load:
    """On every partition, past the proxy, from the first test to the last."""
    order = LoadOrder(topic=TOPIC, bytes_per_s=3e5, weights=(1.0,) * PARTITIONS)
    local = behind_proxy.cluster
    started = Load(local.processes, local.kafka.inner_bootstrap, order)
    started.start()
    return started


class Once:
    """Does something when all moves of a run are first seen in a state, or done."""

    def __init__(self, site: Proxied, state: MoveState, api: Api, harm: Fault) -> None:
        self._site = site
        self._state = state
        self._order = api, harm
        self.is_done = False

    def __call__(self, run: RunProgress) -> None:
        reached = {m.state for m in run.moves}
        if not self.is_done and self._state in reached and reached <= {self._state, MoveState.DONE}:
            self.is_done = True
            self._site.proxy.order(*self._order, delay_s=1.5 * TIMEOUT_S)


@pytest.mark.parametrize(("api", "harm"), HARMED, ids=[f"{h.value} {a.name}" for a, h in HARMED])
def test_a_run_survives_a_fault_in_one_request(site: Proxied, api: Api, harm: Fault) -> None:
    plan = site.plan()
    once = Once(site, MoveState.ISSUED, api, harm)
    report = site.execute(plan, observe=once)
    assert once.is_done
    assert site.proxy.faults_left(api) == 0
    assert_done(report)
    wait_until(lambda: site.is_as_planned(plan))
    wait_until(lambda: site.is_clean)


def test_a_run_ends_as_planned_even_if_kafka_elects_its_leaders(site: Proxied) -> None:
    """Kafka may be first; then the run has nothing to ask for, and nothing is lost."""
    plan = site.plan()
    site.proxy.order(Api.ELECT_LEADERS, Fault.LOSE_REQUEST)
    assert_done(site.execute(plan))
    wait_until(lambda: site.is_as_planned(plan))
    wait_until(lambda: site.is_clean)


def test_a_repeatedly_lost_reassignment_is_given_up(site: Proxied) -> None:
    plan = site.plan()
    api = Api.ALTER_PARTITION_REASSIGNMENTS
    site.proxy.order(api, Fault.CUT_BEFORE, times=99)
    report = site.execute(plan)
    assert report.state is RunState.FAILED
    assert "not begun after 3 requests without an answer" in report.reason
    assert {m.state for m in report.moves} == {MoveState.DROPPED}
    wait_until(lambda: site.is_clean)


@pytest.mark.parametrize("harm", [Fault.LOSE_REQUEST, Fault.LOSE_ANSWER])
def test_a_throttle_whose_request_was_lost_does_not_stay(site: Proxied, harm: Fault) -> None:
    plan = site.plan()
    site.proxy.order(Api.INCREMENTAL_ALTER_CONFIGS, harm)
    with pytest.raises(ExecutionStopped, match="broker 1 did not accept the throttle"):
        site.execute(plan, THROTTLED)
    wait_until(lambda: site.is_clean)
    assert_done(site.resume())
    wait_until(lambda: site.is_as_planned(plan))


@pytest.mark.parametrize("harm", [Fault.LOSE_REQUEST, Fault.LOSE_ANSWER])
def test_a_throttle_is_removed_even_if_a_request_is_lost(site: Proxied, harm: Fault) -> None:
    plan = site.plan()
    once = Once(site, MoveState.DONE, Api.INCREMENTAL_ALTER_CONFIGS, harm)
    report = site.execute(plan, THROTTLED, once)
    assert once.is_done
    assert_done(report)
    wait_until(lambda: site.is_as_planned(plan))
    wait_until(lambda: site.is_clean)


def test_a_run_survives_two_connection_losses(site: Proxied) -> None:
    plan = site.plan()
    cuts = iter((site.proxy.cut, site.proxy.cut))

    def observe(run: RunProgress) -> None:
        if run.count(MoveState.ISSUED) and (cut := next(cuts, None)):
            cut()

    report = site.execute(plan, observe=observe)
    assert next(cuts, None) is None
    assert_done(report)
    wait_until(lambda: site.is_as_planned(plan))
    wait_until(lambda: site.is_clean)


def test_a_run_waits_for_temporarily_unreachable_brokers(site: Proxied) -> None:
    plan = site.plan()
    comes_back = threading.Timer(3.0 * TIMEOUT_S, site.proxy.come_back)

    def observe(run: RunProgress) -> None:
        if run.count(MoveState.ISSUED) and not comes_back.ident:
            site.proxy.go_away()
            comes_back.start()

    report = site.execute(plan, observe=observe)
    comes_back.join()
    assert_done(report)
    wait_until(lambda: site.is_as_planned(plan))
    wait_until(lambda: site.is_clean)


def test_a_run_ends_when_brokers_stay_unreachable_and_is_resumed(site: Proxied) -> None:
    plan = site.plan()

    def observe(run: RunProgress) -> None:
        if run.count(MoveState.ISSUED):
            site.proxy.go_away()

    limits = RunLimits(unreachable_s=3.0)
    report = site.execute(plan, limits, observe)
    assert report.state is RunState.FAILED
    assert "no answer for 3 s: No Kafka broker answers" in report.reason
    assert [m.note for m in report.moves if m.note] == ["its end was not seen"]
    site.proxy.come_back()
    resumed = site.resume()
    assert_done(resumed)
    wait_until(lambda: site.is_as_planned(plan))
    wait_until(lambda: site.is_clean)


def test_nothing_that_was_produced_meanwhile_is_lost_or_written_twice(load: Load) -> None:
    assert_exact(load)
