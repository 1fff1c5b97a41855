"""What may be typed after `:`."""

import pytest

from tests.support.tui.loop_views import CONNECTING, plan_ready
from tui.viewmodel.command_names import NAMES, command_of, completions


@pytest.mark.parametrize(
    ("typed", "action"),
    [
        ("topics", "show_mode('topics')"),
        (":log", "show_mode('log')"),
        ("TOPICS", "show_mode('topics')"),
        ("Hist", "show_mode('history')"),
        ("Broker 3", "open_broker(3)"),
        ("topic Orders", "open_topic('orders')"),
        ("his", "show_mode('history')"),
        ("prob", "problems"),
        ("broker 3", "open_broker(3)"),
        ("topic orders", "open_topic('orders')"),
    ],
)
def test_a_name_its_beginning_and_a_list_are_found(typed: str, action: str) -> None:
    assert command_of(typed, plan_ready()).action == action


@pytest.mark.parametrize(
    ("typed", "fault"),
    [
        ("topicz", "there is no 'topicz'; did you mean 'topics'?"),
        ("", "there is no ''"),
        ("xyz", "there is no 'xyz'; known: overview, "),
        ("broker 99", "there is no broker '99'"),
        ("topic order", "there is no topic 'order'; did you mean 'orders'?"),
    ],
)
def test_an_unknown_name_is_explained(typed: str, fault: str) -> None:
    found = command_of(typed, plan_ready())
    assert not found.action
    assert found.fault.startswith(fault)
    assert found.fault.count("overview") <= 1


def test_a_beginning_that_fits_several_screens_is_not_guessed() -> None:
    assert command_of("p", plan_ready()).fault == "p fits plan, problems"


def test_completions_are_names_then_brokers_and_topics() -> None:
    assert completions("", plan_ready()) == tuple(NAMES)
    assert completions("top", plan_ready()) == ("topics", "topic orders")
    assert completions("broker ", plan_ready()) == ("broker 1", "broker 2", "broker 3")
    assert completions("topic o", CONNECTING) == ()
