"""How soon the loop acts on synthetic samples, by their own clock: what is required of it."""

import pytest

from benchmarks.reaction import QUIET, STEPS, Course, run_at_s


@pytest.mark.parametrize(("required_s", "course"), STEPS, ids=[course.words for _, course in STEPS])
@pytest.mark.slow
def test_a_load_that_grows_for_good_is_acted_on_in_time(required_s: float, course: Course) -> None:
    at_s = run_at_s(course, seed=1000)
    assert at_s is not None
    assert 10.0 <= at_s <= required_s


@pytest.mark.parametrize("course", QUIET, ids=[course.words for course in QUIET])
@pytest.mark.slow
def test_bursts_and_consumers_move_nothing(course: Course) -> None:
    assert run_at_s(course, seed=1000) is None
