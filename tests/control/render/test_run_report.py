"""The report of a run as text."""

import json

from control.render.run_report import run_text
from model.goals.goals import Stay
from model.ids import TopicName
from model.plan.remaining import OverLimit, RackViolation
from model.run import BrokerBalance, MoveReport, MoveState, RunReport, RunState
from tests.support.executor.plan_builders import ids

ONE, TWO = ids([1, 2])
MOVED = MoveReport(
    topic=TopicName("orders"),
    partition=0,
    replicas_before=(ONE,),
    replicas_after=(TWO,),
    state=MoveState.DONE,
    duration_s=1.6,
    bytes_copied=2_000_000,
    stall_at_least_s=1.2,
    stall_at_most_s=1.55,
    requests=3,
    retries=1,
)
ADOPTED = MOVED.model_copy(
    update={"partition": 1, "stall_at_least_s": None, "stall_at_most_s": None}
)
BALANCE = BrokerBalance(
    id=ONE,
    before={"net_in": 3e6},
    planned={"net_in": 1e6},
    achieved={"net_in": 2e6},
    deviation_before={"net_in": 2.0},
    deviation_planned={"net_in": 0.0},
    deviation_achieved={"net_in": 1.0},
)
REPORT = RunReport(
    run_id="run-1",
    plan_hash="a" * 64,
    state=RunState.STOPPED,
    reason="stopped by the operator",
    started_at_ms=0,
    duration_s=4.0,
    preparation_s=2.0,
    moves=(MOVED, ADOPTED),
    brokers=(BALANCE,),
)


def test_a_report_has_the_cost_and_the_achieved_balance() -> None:
    assert run_text(REPORT) == (
        "run run-1 of plan aaaaaaaaaaaa: stopped (stopped by the operator)\n"
        "took 4.00 s; 2.00 s of preparation; 4.00 MB copied; no partition "
        "without a leader for over 1.55 s\n"
        "\n"
        "partition  brokers  state    time       no leader   copied    requests"
        "  reason\n"
        "orders-0    1 -> 2  done   1.60 s  1.20 to 1.55 s  2.00 MB  3, 1 retry\n"
        "orders-1    1 -> 2  done   1.60 s               -  2.00 MB  3, 1 retry\n"
        "\n"
        "broker  load                before          planned            achieved\n"
        "     1  net_in  3.00 MB/s (+200 %)  1.00 MB/s (0 %)  2.00 MB/s (+100 %)\n"
    )


def test_rules_still_broken_after_a_run_are_listed_and_otherwise_omitted() -> None:
    over = OverLimit(
        broker=ONE, dimension="net_in", before=3e6, after=2e6, limit=1.7e6, capacity=2e6
    )
    rack = RackViolation(
        topic=TopicName("orders"), partition=3, repaired=False, reason="it is pinned"
    )
    later = Stay(topic=TopicName("orders"), partitions=(4, 7))
    update = {"over_limit": (over,), "rack_violations": (rack,), "deferred": (later,)}
    left = REPORT.model_copy(update=update)
    assert run_text(left) == run_text(REPORT) + (
        "\n"
        "warning: broker 1 stays over its limit of bytes in: 2.00 MB/s, the limit is "
        "1.70 MB/s (85 % of 2.00 MB/s)\n"
        "warning: rack violations not repaired: 1 partition (orders-3): it is pinned\n"
        "warning: 2 partitions that must move left for a later plan: orders-4, "
        "orders-7\n"
    )
    assert update.keys() <= left.model_dump().keys()
    assert not update.keys() & REPORT.model_dump().keys()
    assert RunReport.model_validate_json(left.model_dump_json()) == left


def test_a_report_of_an_earlier_version_can_be_read() -> None:
    new = {"stall_at_least_s", "stall_at_most_s", "requests", "retries"}
    old = REPORT.model_dump(mode="json", exclude={"brokers", "moves"})
    old["moves"] = [MOVED.model_dump(mode="json", exclude=new)]
    (move,) = RunReport.model_validate_json(json.dumps(old)).moves
    assert (move.requests, move.stall_at_least_s) == (0, None)
