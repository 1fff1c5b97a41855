"""Topics by name, and the regular expressions that are refused."""

import time

import pytest

from model.names import LONGEST, Names

COSTLY = ("a{0,1000}" * 200, "(?:a?){0,30}" * 600, r"\pL{0,1000}" * 50, "a|" * LONGEST)


@pytest.mark.parametrize("pattern", COSTLY)
def test_an_expression_that_is_too_large_is_refused_at_once(pattern: str) -> None:
    began_s = time.process_time()
    with pytest.raises(ValueError, match="the regular expression is too large; simplify it: '"):
        Names(regex=(pattern,))
    # Minutes by RE2's default limit.
    assert time.process_time() - began_s < 5


def test_hundreds_of_topics_may_be_named_in_one_expression() -> None:
    topics = [f"team-{n % 7}.orders.changed-{n:03}" for n in range(300)]
    names = Names(regex=("|".join(topics),))
    assert all(map(names.match, topics))
    assert not names.match("team-1.orders.changed-300")


def test_groups_of_an_expression_cost_nothing() -> None:
    names = Names(regex=("(((((a?)?)?)?)?)?" * 200,))
    began_s = time.process_time()
    assert [names.match("a" * 248 + end) for end in "ab" * 50] == [False, False] * 50
    # Six seconds where the groups are captured.
    assert time.process_time() - began_s < 3
