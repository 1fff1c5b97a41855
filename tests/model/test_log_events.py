"""Names of events in JSON logs: stable, unique, and given by every log call that matters."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from model.log_events import ATTRIBUTE, LogEvent, event_of, named
from tests.support.paths import ROOT

NAMED = ("control/loop", "control/service", "control/planning", "control/tasks", "executor")
"""Folders all of whose messages have names."""
LOGGERS = ("logger", "_log", "log")
LEVELS = ("debug", "info", "warning", "error", "exception", "critical", "log")
KEPT = {
    "service.failed",
    "settings.read",
    "settings.rejected",
    "operator.action",
    "loop.phase",
    "loop.failed",
    "plan.approved",
    "plan.waiting",
    "plan.rejected",
    "plan.withdrawn",
    "run.state",
    "run.move",
    "run.steered",
    "run.interrupted",
    "throttle.changed",
    "lease.waiting",
}
"""Names that rules and searches may use: they never change."""


def calls(path: Path) -> Iterator[ast.Call]:
    """Calls of loggers in a module."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of = node.func.value
        if isinstance(of, ast.Name) and of.id in LOGGERS and node.func.attr in LEVELS:
            yield node


def test_every_message_of_the_loop_the_executor_and_the_service_names_its_event() -> None:
    found, unnamed = 0, []
    for folder in NAMED:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for call in calls(path):
                found += 1
                extra = [ast.unparse(k.value) for k in call.keywords if k.arg == "extra"]
                match = extra and re.fullmatch(r"named\(LogEvent\.(\w+)\)", extra[0])
                if not match or match[1] not in LogEvent.__members__:
                    unnamed.append(f"{path.relative_to(ROOT)}:{call.lineno}")
    assert unnamed == []
    # The search finds the calls at all.
    assert found > 40


def test_the_loop_has_no_other_way_into_the_log() -> None:
    """`DecisionLog.note` takes the event as an argument without a default."""
    path = ROOT / "control/loop/decision_log.py"
    others = [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if _is_getattr_of_logger(n)]
    (call,) = others
    assert "extra=extra" in ast.unparse(call)
    assert "**named(event)" in path.read_text("utf-8")


def _is_getattr_of_logger(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr(logger, level)"


def test_names_are_unique_and_of_one_form() -> None:
    names = [event.value for event in LogEvent]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z]+(\.[a-z]+)?", name) for name in names)
    assert all(event.when.endswith(".") for event in LogEvent)


def test_names_that_rules_may_use_are_kept() -> None:
    assert {event.value for event in LogEvent} >= KEPT


def test_every_name_is_used() -> None:
    sources = "\n".join(
        path.read_text("utf-8")
        for package in ("control", "executor")
        for path in (ROOT / package).rglob("*.py")
    )
    by_call = [e for e in LogEvent if "." in e.value]
    assert [e.name for e in by_call if f"LogEvent.{e.name}" not in sources] == []


@pytest.mark.parametrize(
    ("logger", "attribute", "name"),
    [
        ("plimsoll.executor", "run.state", "run.state"),
        ("plimsoll.collector", None, "collector"),
        ("plimsoll.collector.librdkafka", None, "collector"),
        ("plimsoll", None, "control"),
        ("", None, "control"),
    ],
)
def test_a_message_without_a_name_has_that_of_its_logger(
    logger: str, attribute: object, name: str
) -> None:
    assert event_of(logger, attribute) == name
    assert name in list(LogEvent)


def test_a_logger_takes_the_name_as_an_attribute() -> None:
    assert named(LogEvent.RUN_STATE) == {ATTRIBUTE: "run.state"}
