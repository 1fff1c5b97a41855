"""A policy that changes while the loop runs."""

import math
import os
from pathlib import Path

import pytest

from control.settings.auto_limits import CONSERVATIVE, EAGER
from control.settings.auto_policy import AutoPolicy
from control.settings.policy_file import PolicyFile
from control.settings.settings import auto_policy, load, policy_file
from control.settings.trigger_table import Response, Trigger, TriggerTable
from model.goals.effort import Effort

NIGHT = CONSERVATIVE.model_copy(update={"replica_moves": 50})


def table(name: str, **changes: object) -> str:
    """The limits `NIGHT` as a table, with other values as given."""
    values = NIGHT.model_dump(exclude_none=True) | changes
    return f"[limits.{name}]\n" + "".join(f"{k} = {v!r}\n" for k, v in values.items())


class Edited:
    """A settings file and the policy read from it, as `run --auto --limits night` uses them."""

    def __init__(
        self, folder: Path, text: str, *, profile: str | None = None, **how: Effort
    ) -> None:
        self.path, self.warnings = folder / "mine.toml", list[str]()
        self._at_s = 100
        self.write(text)
        name = "night" if "night" in text else "eager"
        settings = load({}, config=self.path, profile=profile)
        limits = settings.limits.get(name, EAGER).model_copy(update=how)
        self.policy = auto_policy(settings, limits)
        found = policy_file(self.path, profile, limits=name, **how)
        assert found is not None
        self.file: PolicyFile = found

    def write(self, text: str) -> None:
        self.path.write_text(text)
        self._at_s += 100
        os.utime(self.path, (self._at_s, self._at_s))

    def poll_once(self) -> AutoPolicy | None:
        return self.file.poll(self.policy, self.warnings.append)

    def poll(self) -> AutoPolicy | None:
        """What two calls find: the first one waits for the file to be whole."""
        return self.poll_once() or self.poll_once()


def test_a_changed_file_is_read_once(tmp_path: Path) -> None:
    edited = Edited(tmp_path, "[triggers]\nuneven_load = 'ask'\n")
    assert edited.poll() is None
    edited.write("[triggers]\nuneven_load = 'off'\n")
    found = edited.poll()
    assert found is not None
    assert found.triggers == TriggerTable(uneven_load=Response.OFF)
    assert edited.poll() is None
    assert edited.warnings == []


def test_a_file_that_is_being_written_is_not_used(tmp_path: Path) -> None:
    """An empty file would mean the defaults."""
    edited = Edited(tmp_path, "dead_broker_after = 'off'\n")
    for text in ("", "dead_broker_after = 'off'\n[triggers]\nuneven_load = 'off'\n"):
        edited.write(text)
        assert edited.poll_once() is None
    found = edited.poll_once()
    assert found is not None
    assert found.dead_broker_after_s == math.inf
    assert found.triggers == TriggerTable(uneven_load=Response.OFF)


def test_limits_schedule_and_the_wait_for_dead_brokers_are_read_again(tmp_path: Path) -> None:
    edited = Edited(tmp_path, table("night"))
    edited.write(
        "dead_broker_after = 'off'\n"
        + table("night", runs_per_day=3, replica_moves=7)
        + table("day", replica_moves=9)
        + "[[schedule.freezes]]\nfirst = 2026-12-20\nlast = 2027-01-03\n"
    )
    found = edited.poll()
    assert found is not None
    assert found.limits == NIGHT.model_copy(update={"runs_per_day": 3, "replica_moves": 7})
    assert found.dead_broker_after_s == math.inf
    assert len(found.schedule.freezes) == 1
    assert edited.warnings == []


def test_a_file_that_cannot_be_used_is_reported_once_and_changes_nothing(tmp_path: Path) -> None:
    edited = Edited(tmp_path, "")
    for text in ("[triggers]\nuneven_load = 'of'\n", "[trig"):
        edited.write(text)
        assert edited.poll() is None
        assert edited.poll() is None
    assert len(edited.warnings) == 2
    assert "triggers.uneven_load" in edited.warnings[0]
    assert all("the policy stays as it is" in warning for warning in edited.warnings)
    edited.write("[triggers]\nuneven_load = 'act'\n")
    found = edited.poll()
    assert found is not None
    assert found.triggers == TriggerTable(uneven_load=Response.ACT)


def test_a_file_that_is_gone_is_reported_once(tmp_path: Path) -> None:
    edited = Edited(tmp_path, "")
    edited.path.unlink()
    # An editor may be about to write it again.
    assert edited.poll_once() is None
    assert edited.warnings == []
    for _ in range(3):
        assert edited.poll() is None
    assert edited.warnings == [f"the policy stays as it is, since {edited.path} is gone"]
    edited.write("[triggers]\nuneven_load = 'off'\n")
    found = edited.poll()
    assert found is not None
    assert found.triggers == TriggerTable(uneven_load=Response.OFF)


def test_a_file_that_an_editor_replaces_in_two_steps_is_not_gone(tmp_path: Path) -> None:
    edited = Edited(tmp_path, "")
    for response in ("off", "ask"):
        edited.path.unlink()
        assert edited.poll_once() is None
        edited.write(f"[triggers]\nuneven_load = '{response}'\n")
        assert edited.poll() is not None
    assert edited.warnings == []


def test_limits_that_are_gone_stay_in_force_and_are_named(tmp_path: Path) -> None:
    edited = Edited(tmp_path, table("night"))
    edited.write(table("day") + "[triggers]\nuneven_load = 'off'\n")
    assert edited.poll() is None
    (warning,) = edited.warnings
    assert "the policy stays as it is" in warning
    assert "there are no limits named 'night'" in warning


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (table("night", pause=0), "it has no bounds: pause is 0"),
        (
            table("night")
            + "[triggers]\nrule_violated = 'act'\nslow_broker = 'act'\n[schedule]\nexempt = []\n"
            + "[[schedule.freezes]]\nfirst = 1970-01-02\nlast = 2999-12-31\n",
            "no run may start within ten years",
        ),
    ],
)
def test_a_policy_with_a_new_fault_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    edited = Edited(tmp_path, table("night"))
    edited.write(text)
    assert edited.poll() is None
    (warning,) = edited.warnings
    assert fault in warning
    assert str(edited.path) in warning


def test_a_fault_of_the_policy_in_force_forbids_no_other_change(tmp_path: Path) -> None:
    edited = Edited(tmp_path, table("night", pause=0))
    edited.write(table("night", pause=0, min_gain=0.5))
    found = edited.poll()
    assert found is not None
    assert found.limits.min_gain == 0.5
    assert edited.warnings == []


def test_all_triggers_may_be_turned_off(tmp_path: Path) -> None:
    """This stops `--auto` without ending it, so that the former policy must not stay in force."""
    edited = Edited(tmp_path, table("night"))
    edited.write(table("night") + "[triggers]\n" + "".join(f"{t.value} = 'off'\n" for t in Trigger))
    found = edited.poll()
    assert found is not None
    assert not found.firing(Response.ACT) + found.firing(Response.ASK)


def test_an_effort_that_was_typed_precedes_that_of_the_limits(tmp_path: Path) -> None:
    edited = Edited(tmp_path, table("night"), effort=Effort.QUICK)
    edited.write(table("night", effort="best", min_gain=0.5))
    found = edited.poll()
    assert found is not None
    assert (found.limits.effort, found.limits.min_gain) == (Effort.QUICK, 0.5)
    assert edited.warnings == []


def test_effort_and_stop_rules_stay_until_a_restart(tmp_path: Path) -> None:
    edited = Edited(tmp_path, table("night"))
    edited.write(
        table("night", effort="quick", min_gain=0.5)
        + "[stop_rules]\nwindow_end = 2001-01-01T00:00:00Z\n"
    )
    found = edited.poll()
    assert found is not None
    assert (found.limits.effort, found.limits.min_gain) == (None, 0.5)
    assert found.stop_rules == edited.policy.stop_rules
    (warning,) = edited.warnings
    assert warning.startswith("effort stays as it is")


def test_a_profile_has_a_policy_of_its_own(tmp_path: Path) -> None:
    edited = Edited(tmp_path, "[profiles.prod]\nname = 'p'\n", profile="prod")
    edited.write("[profiles.prod.triggers]\ndead_broker = 'off'\n")
    found = edited.poll()
    assert found is not None
    assert found.triggers == TriggerTable(dead_broker=Response.OFF)
