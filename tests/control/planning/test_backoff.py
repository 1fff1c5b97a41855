"""Waiting longer after each failure."""

from control.planning.backoff import Backoff

START = Backoff(first_s=10.0, most_s=100.0)


def test_the_wait_doubles_up_to_its_cap() -> None:
    tried, waits, now_s = START, [], 0.0
    for _ in range(200):
        tried = tried.again(now_s)
        waits.append(tried.wait_s)
        now_s += tried.wait_s
    assert waits[:5] == [10.0, 20.0, 40.0, 80.0, 100.0]
    assert set(waits[5:]) == {100.0}


def test_the_remaining_wait_counts_down() -> None:
    assert START.left_s(5.0) == 0.0
    tried = START.again(5.0)
    assert tried.left_s(5.0) == 10.0
    assert tried.left_s(14.0) == 1.0
    assert tried.left_s(99.0) == 0.0


def test_success_or_a_long_time_without_attempts_resets_the_wait() -> None:
    tried = START.again(0.0).again(10.0).again(30.0)
    assert tried.reset().wait_s == 0.0
    assert tried.again(1000.0).wait_s == 10.0


def test_errors_that_need_the_operator_wait_longest() -> None:
    assert START.at_most(0.0).wait_s == 100.0
