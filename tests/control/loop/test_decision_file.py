"""Decisions of `run --auto` in a bounded file."""

import dataclasses
import json
import math
import os
from pathlib import Path

import pytest

from control.loop.decision_file import (
    FILE,
    MOST_LINES,
    MOST_TEXT,
    DecisionFile,
    DecisionRecord,
    clock_text,
    read_decisions,
    record_of,
    when_text,
)
from control.loop.load_shift import LoadShift
from control.loop.policy import Decision, DecisionInputs, earliest_change_s, next_step
from control.loop.view import Mode
from control.planning.plan_needs import PlanNeed, Reason
from control.settings.auto_limits import EAGER
from model.errors import ConfigError

NOW = 1000.0
NEED = PlanNeed(reason=Reason.OUT_OF_TOLERANCE, message="the cluster is out of tolerance")
FACTS = DecisionInputs(
    now_s=NOW,
    mode=Mode.AUTO,
    limits=EAGER.model_copy(update={"confirm": 60.0, "pause": 100.0}),
    loads_from_s=NOW - 15,
    needs=(NEED,),
    needed_since_s=NOW - 20,
    awaited="",
    was_balanced=False,
    ended_at_s=None,
    plan=None,
    outdated=False,
    answered=False,
    solve_in_s=0.0,
    quiet_in_s=0.0,
    retry="",
    plan_wanted=False,
)


def record(
    step: Decision = Decision.CONFIRM,
    reason: str = "out of tolerance for 20 s",
    at_ms: int = 5_000,
    **changes: object,
) -> DecisionRecord:
    facts = dataclasses.replace(FACTS, **changes)  # type: ignore[arg-type]
    return record_of(facts, step, reason, cluster_id="one", at_ms=at_ms)


def test_a_decision_that_differs_in_figures_alone_is_kept_once(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path)
    for second in range(20, 60):
        file.note(record(reason=f"out of tolerance for {second} s", at_ms=second))
    file.note(record(Decision.PLAN, "out of tolerance"))
    found = read_decisions(tmp_path, 10)
    assert [(r.decision, r.reason) for r in found] == [
        (Decision.CONFIRM, "out of tolerance for 20 s"),
        (Decision.PLAN, "out of tolerance"),
    ]
    assert found[0].trigger == NEED.message


def test_a_decision_whose_time_moves_far_is_kept_again(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path)
    # Each needs 40 s more, as where brokers flap or loads go on to change.
    for second in range(0, 300, 10):
        file.note(record(reason=f"out of tolerance for {second} s", at_ms=1000 * second))
    found = read_decisions(tmp_path, 10)
    assert [r.at_ms for r in found] == [0, 70_000, 140_000, 210_000, 280_000]
    assert [r.until_ms for r in found] == [r.at_ms + 40_000 for r in found]


def test_a_time_that_the_next_samples_tell_or_not_is_kept_once_a_minute(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path)
    times = (None, 300_000)
    for second in range(130):
        made = record(reason="the load shifted", at_ms=1000 * second)
        file.note(made.model_copy(update={"until_ms": times[second % 2]}))
    assert [r.at_ms for r in read_decisions(tmp_path, 10)] == [0, 61_000, 122_000]


@pytest.mark.parametrize("confirm_s", [10.0, 90.0, 9000.0])
def test_another_limit_is_another_decision(tmp_path: Path, confirm_s: float) -> None:
    """`why` named the limit from before its change until the old time had passed."""
    file, kept = DecisionFile(tmp_path), []
    for confirm in (50.0, confirm_s):
        limits = FACTS.limits.model_copy(update={"confirm": confirm})
        for second in range(5):
            facts = dataclasses.replace(
                FACTS, limits=limits, now_s=NOW + second, needed_since_s=NOW - 5
            )
            step, reason = next_step(facts)
            assert step is Decision.CONFIRM
            made = record_of(facts, step, reason, cluster_id="one", at_ms=1000 * second)
            kept += [made] if second == 0 else []
            file.note(made)
    assert read_decisions(tmp_path, 10) == kept


@pytest.mark.parametrize(
    "pair",
    [
        ("broker 3 is dead and holds 22 replicas", "broker 4 is dead and holds 7 replicas"),
        ("brokers 1, 3 hold almost nothing", "brokers 1, 4 hold almost nothing"),
        ("no replica of orders-3 is left", "no replica of orders-4 is left"),
        ("log directory /d1 has failed", "log directory /d2 has failed"),
        ("the pause between runs is 900 s", "the pause between runs is 1800 s"),
    ],
)
def test_another_broker_topic_or_limit_is_another_decision(
    tmp_path: Path, pair: tuple[str, str]
) -> None:
    file = DecisionFile(tmp_path)
    for reason in pair:
        file.note(record(Decision.IGNORE, f"{reason}, but dead_broker is off"))
    assert [r.reason.partition(", but")[0] for r in read_decisions(tmp_path, 10)] == [*pair]


@pytest.mark.parametrize(
    "pair",
    [
        ("broker 3 is dead and holds 22 replicas", "broker 3 is dead and holds 21 replicas"),
        ("no loads have arrived for 99.5 s", "no loads have arrived for 2 min 05 s"),
        ("planning again in 1 h 00 min", "planning again in 59 min 59 s"),
        ("leaders of broker 13 deviates by 1.2e+04", "leaders of broker 2 deviates by 9.9"),
    ],
)
def test_figures_that_count_or_vary_are_no_other_decision(
    tmp_path: Path, pair: tuple[str, str]
) -> None:
    file = DecisionFile(tmp_path)
    for reason in pair:
        file.note(record(Decision.SETTLE, reason))
    assert [r.reason for r in read_decisions(tmp_path, 10)] == [pair[0]]


def test_a_plan_outside_another_limit_is_another_decision(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path)
    reasons = [f"the plan has bytes = 9, the limit is {limit}" for limit in (2, 3)]
    for reason in reasons:
        file.note(record(Decision.REFUSE, reason))
    assert [r.reason for r in read_decisions(tmp_path, 10)] == reasons


DEAD = PlanNeed(reason=Reason.DEAD_BROKER, message="broker 3 is dead")
RACKS = PlanNeed(reason=Reason.RACK_VIOLATION, message="1 rack violation can be repaired")
PATIENT = FACTS.limits.model_copy(update={"pause": 1000.0})
CONFIRMED = {"needed_since_s": NOW - 60}
SHIFTED = {
    "limits": EAGER,
    "was_balanced": True,
    "needed_since_s": NOW - 2.5,
    "shift": LoadShift(level_s=2.5),
}
CLOSED = {"closed": "outside the maintenance windows", "opens_in_s": 90.0}
AWAITED = {"awaited": "broker 3 is dead", "awaited_s": (30.0, 300.0)}


@pytest.mark.parametrize(
    ("step", "changes", "expected"),
    [
        (Decision.CONFIRM, {}, 40.0),
        (Decision.CONFIRM, {"ended_at_s": NOW - 30}, 70.0),
        (Decision.CONFIRM, {"was_balanced": True, "loads_from_s": NOW - 75}, 55.0),
        # A plan is made 4 s before a shift of load is no burst any more, and approved then.
        (Decision.CONFIRM, SHIFTED, 4.0),
        (Decision.CONFIRM, SHIFTED | {"answered": True}, 8.0),
        # What the next samples decide has no time.
        (Decision.CONFIRM, SHIFTED | {"shift": LoadShift(level_s=11, uncertain="?")}, 8.0),
        (
            Decision.CONFIRM,
            CONFIRMED | {"was_balanced": True, "shift": LoadShift(level_s=11, unread="?")},
            0.0,
        ),
        # Repairs wait for the pause, and for no confirmation.
        (Decision.CONFIRM, {"needs": (DEAD, NEED), "ended_at_s": NOW - 90}, 10.0),
        (Decision.CONFIRM, CONFIRMED | AWAITED, 300.0),
        (
            Decision.CONFIRM,
            CONFIRMED | AWAITED | {"ended_at_s": NOW - 20, "limits": PATIENT},
            980.0,
        ),
        (Decision.CONFIRM, CLOSED, 90.0),
        (Decision.CONFIRM, CONFIRMED | {"runs_wait_s": 5.0}, 5.0),
        (Decision.SETTLE, {"ended_at_s": NOW, "loads_from_s": NOW - 15}, 15.0),
        (Decision.SETTLE, CONFIRMED | {"quiet_in_s": 7.0, "solve_in_s": 3.0}, 7.0),
        (Decision.SETTLE, CONFIRMED | {"copied_at_s": NOW - 5}, 10.0),
        (Decision.SETTLE, CONFIRMED | {"copied_at_s": NOW, "copying": 2}, 0.0),
        (Decision.SETTLE, CONFIRMED | {"silent_s": 500.0, "solve_in_s": 3.0}, 0.0),
        (Decision.RETRY, {"retry": "no answer", "retry_s": 9.0}, 9.0),
        (Decision.REST, {"needs": (), "needed_since_s": None}, 0.0),
        (Decision.REST, {"needs": (), "needed_since_s": None} | AWAITED, 30.0),
        (Decision.HOLD, CONFIRMED | {"answered": True}, 0.0),
        # A trigger that asks does not wait for the schedule, and yields to one that acts.
        (
            Decision.HOLD,
            CONFIRMED
            | CLOSED
            | {"needs": (RACKS, NEED), "answered": True, "made_for": frozenset()},
            90.0,
        ),
    ],
)
def test_a_decision_is_reconsidered_when_its_rules_let_it_change(
    step: Decision, changes: dict[str, object], expected: float
) -> None:
    facts = dataclasses.replace(FACTS, **changes)  # type: ignore[arg-type]
    assert next_step(facts)[0] is step
    assert earliest_change_s(facts, step) == pytest.approx(expected)
    made = record_of(facts, step, "", cluster_id="one", at_ms=5_000)
    assert made.until_ms == (5_000 + int(1000 * expected) if expected else None)


@pytest.mark.parametrize(
    ("step", "changes", "awaits"),
    [
        (Decision.CONFIRM, CLOSED | {"opens_in_s": math.inf}, "when the schedule is changed"),
        (Decision.CONFIRM, CONFIRMED | {"paused": "paused by ada"}, "when --auto is resumed"),
        (Decision.HOLD, CONFIRMED | {"answered": True}, ""),
    ],
)
def test_a_wait_that_no_time_ends_names_what_does(
    step: Decision, changes: dict[str, object], awaits: str
) -> None:
    facts = dataclasses.replace(FACTS, **changes)  # type: ignore[arg-type]
    assert record_of(facts, step, "", cluster_id="one", at_ms=0).awaits == awaits


def test_a_time_is_written_with_its_date_where_it_is_not_near() -> None:
    near, far = (dataclasses.replace(FACTS, opens_in_s=s, closed="?") for s in (90.0, 90_000.0))
    texts = []
    for facts in (near, far):
        made = record_of(facts, Decision.CONFIRM, "", cluster_id="one", at_ms=0)
        assert made.until_ms is not None
        texts.append(when_text(made, clock_text(made.until_ms, 0)))
    assert texts == ["not before 00:01:30Z", "not before 1970-01-02T01:00:00Z"]


def test_only_the_newest_decisions_are_kept(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path)
    steps = (Decision.REST, Decision.CONFIRM)
    for at_ms in range(MOST_LINES + 1):
        file.note(record(steps[at_ms % 2], "", at_ms))
    lines = (tmp_path / FILE).read_bytes().splitlines()
    assert len(lines) == MOST_LINES // 2 + 1
    (last,) = read_decisions(tmp_path, 1)
    assert last.at_ms == MOST_LINES
    # The next process counts on from what is there.
    again = DecisionFile(tmp_path)
    again.note(record(at_ms=1))
    assert len((tmp_path / FILE).read_bytes().splitlines()) == len(lines) + 1


def test_lines_that_are_cut_off_or_damaged_are_left_out(tmp_path: Path) -> None:
    DecisionFile(tmp_path).note(record(at_ms=1))
    path = tmp_path / FILE
    path.write_bytes(b"\xff\x00 no decision\n" + path.read_bytes() + b'{"at_ms": 2, "clus')
    DecisionFile(tmp_path).note(record(at_ms=3))
    warnings = list[str]()
    assert [r.at_ms for r in read_decisions(tmp_path, 10, warnings.append)] == [1, 3]
    (warning,) = warnings
    assert warning.startswith(f"{path}, line 1: Invalid JSON: ")
    assert warning.endswith("; this line and 1 other are left out")


@pytest.mark.parametrize("key", ["at_ms", "until_ms"])
@pytest.mark.parametrize("time_ms", [-(10**6), 10**18, 10**400])
def test_a_decision_at_an_absurd_time_is_named_and_left_out(
    tmp_path: Path, key: str, time_ms: int
) -> None:
    DecisionFile(tmp_path).note(record(at_ms=1))
    path = tmp_path / FILE
    absurd = json.loads(path.read_text()) | {key: time_ms}
    path.write_text(f"{json.dumps(absurd)}\n{path.read_text()}")
    warnings = list[str]()
    assert [r.at_ms for r in read_decisions(tmp_path, 10, warnings.append)] == [1]
    (warning,) = warnings
    assert warning.startswith(f"{path}, line 1: {key}: ")


def test_the_end_is_kept_once_and_only_after_a_decision(tmp_path: Path) -> None:
    DecisionFile(tmp_path).end("it was stopped", 1)
    assert read_decisions(tmp_path, 10) == []
    file = DecisionFile(tmp_path)
    file.note(record(at_ms=1))
    for at_ms in (2, 3):
        file.end("it was stopped", at_ms)
    _, ended = read_decisions(tmp_path, 10)
    assert (ended.at_ms, ended.decision, ended.reason) == (2, Decision.ENDED, "it was stopped")
    assert when_text(ended, "") == "when run --auto is started again"


def test_long_reasons_are_cut(tmp_path: Path) -> None:
    DecisionFile(tmp_path).note(record(reason="\U0001f600" * 5_000))
    (found,) = read_decisions(tmp_path, 1)
    assert found.reason == "\U0001f600" * MOST_TEXT


def test_a_file_that_cannot_be_written_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "state"
    folder.write_text("a file, not a folder")
    file = DecisionFile(folder)
    for step in (Decision.REST, Decision.CONFIRM):
        file.note(record(step))
    assert len(caplog.records) == 1
    assert f"cannot write {folder / FILE}" in caplog.text


def test_without_a_file_there_are_no_decisions(tmp_path: Path) -> None:
    assert read_decisions(tmp_path, 1) == []


def test_a_pipe_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    """Reading it waited for a writer without end."""
    os.mkfifo(tmp_path / FILE)
    with pytest.raises(ConfigError, match="not a regular file"):
        read_decisions(tmp_path, 5)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(ConfigError, match=f"cannot read .*{FILE}"):
        read_decisions(tmp_path, 1)
