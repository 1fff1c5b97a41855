"""Whether a shift of load is a burst, noise, or there to stay."""

import dataclasses

import pytest

from control.loop.load_shift import (
    BURST_S,
    CONSUMERS_PATIENCE_S,
    PATIENCE_S,
    LoadShift,
    confidence_text,
    early_text,
    level_age_s,
    noise_of_objective,
    uncertain_text,
    unread_text,
)
from model.evaluate import Evaluation, evaluate
from model.ids import BrokerId
from model.snapshot.steadiness import Steadiness
from tests.support.control.loop_parts import EASY, MB, cluster

NOW_MS = 1_700_000_000_000
STEADY = Steadiness(newest_ms=NOW_MS, since_ms=NOW_MS - 15_000, changed_ms=None, agrees=True)
SHIFTED = dataclasses.replace(STEADY, changed_ms=NOW_MS - 12_000)


def evaluation(loads: list[float]) -> Evaluation:
    """Three brokers with these loads tenfold: small ones are not balanced."""
    return evaluate(cluster([1, 2, 3], [10 * load for load in loads]), EASY, ())


def noisy(error: float) -> dict[BrokerId, float]:
    return {BrokerId(number): error for number in (1, 2, 3)}


def test_a_shift_is_a_burst_until_it_has_lasted() -> None:
    assert "burst" in LoadShift(level_s=BURST_S - 0.1).doubt(30)
    assert LoadShift(level_s=BURST_S).doubt(30) == ""
    assert "burst" in LoadShift().doubt(BURST_S - 0.1)
    assert LoadShift().doubt(BURST_S) == ""


def test_a_sample_that_contradicts_the_shift_is_waited_for() -> None:
    assert "next one" in LoadShift(level_s=BURST_S, agrees=False).doubt(30)


def test_loads_from_before_the_shift_are_replaced_first() -> None:
    shift = LoadShift(level_s=BURST_S, measured=False)
    assert "not every partition has been measured" in shift.doubt(30)
    assert shift.doubt(PATIENCE_S) == ""


def test_loads_that_are_never_steady_do_not_hold_back_for_ever() -> None:
    wild = LoadShift(level_s=1.0, agrees=False, uncertain="noise")
    assert wild.doubt(PATIENCE_S - 1)
    assert wild.doubt(PATIENCE_S) == ""


def test_consumers_are_waited_for_longer() -> None:
    behind = LoadShift(level_s=BURST_S, unread="consumers")
    assert behind.doubt(PATIENCE_S + 1) == "consumers"
    assert behind.doubt(CONSUMERS_PATIENCE_S) == ""


@pytest.mark.parametrize(("error", "certain"), [(0.0, True), (0.02, True), (0.1, False)])
def test_noise_may_explain_a_small_deviation(error: float, certain: bool) -> None:
    """Broker 1 is 20 % above the average; the tolerance is 10 %."""
    text = uncertain_text(evaluation([1.2 * MB, 0.9 * MB, 0.9 * MB]), EASY, noisy(error))
    assert (text == "") is certain
    if text:
        assert text.startswith("bytes in of broker 1 deviates by 20 % ± 24 %")


def test_a_doubled_load_is_certain_in_spite_of_noise() -> None:
    assert uncertain_text(evaluation([2 * MB, MB, MB]), EASY, noisy(0.08)) == ""


def test_noise_adds_its_square_to_the_objective() -> None:
    """Of three brokers, with two rates balanced; disks are no rates."""
    found = evaluation([MB, MB, MB])
    assert found.levels.keys() >= {"net_in", "net_out"}
    steady = dataclasses.replace(STEADY, noise=noisy(0.02))
    assert noise_of_objective(steady, found, EASY) == pytest.approx(2 * 3 * 0.02**2)
    unknown = dataclasses.replace(STEADY, noise=noisy(float("inf")))
    assert noise_of_objective(unknown, found, EASY) == 0.0
    assert noise_of_objective(None, found, EASY) == 0.0


def test_too_few_samples_are_not_certain() -> None:
    assert uncertain_text(evaluation([2 * MB, MB, MB]), EASY, noisy(float("inf")))


def test_a_balanced_cluster_leaves_nothing_to_be_certain_of() -> None:
    assert uncertain_text(evaluation([MB, MB, MB]), EASY, noisy(1.0)) == ""


def test_consumers_are_no_excuse_for_uneven_producers() -> None:
    uneven = evaluation([2 * MB, MB, MB])
    assert uneven.deviations.keys() == {"net_in", "net_out"}
    assert unread_text(uneven, EASY, {BrokerId(1)}) == ""
    out = dataclasses.replace(uneven, deviations={"net_out": uneven.deviations["net_in"]})
    assert unread_text(out, EASY, set()) == ""
    assert unread_text(out, EASY, {BrokerId(3), BrokerId(2)}).startswith(
        "consumers on brokers 2, 3"
    )


def test_a_plan_states_how_exactly_loads_are_known() -> None:
    seen = dataclasses.replace(SHIFTED, noise={BrokerId(1): 0.01, BrokerId(2): 0.02})
    assert confidence_text(seen) == "loads of 12.0 s, those of brokers within ± 4 %"
    early = dataclasses.replace(seen, noise=noisy(float("inf")))
    assert confidence_text(early) == "loads of 12.0 s, too short to tell their noise"
    assert confidence_text(None) == confidence_text(STEADY) == ""


def test_irregular_commits_are_watched_for_longer_at_first() -> None:
    unread = frozenset({BrokerId(2)})
    seen = dataclasses.replace(STEADY, since_ms=NOW_MS - 6_000, unread=unread)
    assert early_text(seen) == "consumers have been watched for 6 s; measuring for 10 s"
    assert early_text(dataclasses.replace(seen, unread=frozenset())) == ""
    assert early_text(dataclasses.replace(seen, since_ms=NOW_MS - 10_000)) == ""


def test_without_samples_nothing_holds_back() -> None:
    assert LoadShift.of(None, evaluation([2 * MB, MB, MB]), EASY) == LoadShift()


def test_at_first_contact_every_sample_counts() -> None:
    assert level_age_s(STEADY, NOW_MS, was_balanced=False) == 15
    assert level_age_s(STEADY, NOW_MS, was_balanced=True) == 0
    assert level_age_s(None, NOW_MS, was_balanced=False) == 0


def test_a_balanced_cluster_is_judged_by_the_time_since_the_change() -> None:
    assert level_age_s(SHIFTED, NOW_MS + 1000, was_balanced=True) == 13


@pytest.mark.parametrize("set_by_ms", [-3_600_000, 3_600_000])
def test_a_clock_that_was_set_hardly_changes_the_age(set_by_ms: int) -> None:
    assert 12 <= level_age_s(SHIFTED, NOW_MS + set_by_ms, was_balanced=True) <= 17
