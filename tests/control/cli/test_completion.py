"""What the shell completes, through the program's own completion protocol."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.cli_offline import plimsoll

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with settings, a snapshot and the journal of a run."""
    shutil.copy(GOLDEN / "settings/plimsoll.toml", tmp_path / "own.toml")
    shutil.copy(GOLDEN / "snapshots/every-field.json", tmp_path / "snapshot.json")
    shutil.copytree(GOLDEN / "journals/schema-2/done", tmp_path / "state")
    return tmp_path


def completed(folder: Path, line: str) -> list[str]:
    """What bash would be offered at the end of a line."""
    words = line.split(" ")
    protocol: Mapping[str, str] = {
        "_PLIMSOLL_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    run = plimsoll(folder, **protocol)
    assert run.stderr == ""
    return run.stdout.split()


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("plimsoll fr", ["frontier"]),
        ("plimsoll status --config own.toml --profile b", ["bare"]),
        ("plimsoll --config own.toml --profile ", ["bare", "exporters", "inline", "old"]),
        ("plimsoll --theme solarized-", ["solarized-dark", "solarized-light"]),
        ("plimsoll run --limits ", ["conservative", "eager"]),
        ("plimsoll run --config own.toml --limits ", ["conservative", "eager", "weekend"]),
        ("plimsoll plan --storage t", ["tiered"]),
        ("plimsoll plan --snapshot snapshot.json --topic o", ["orders"]),
        ("plimsoll plan --topic ", []),
        ("plimsoll schema plan", ["plan", "plan-output", "plan-stages-output"]),
        ("plimsoll rollback r", ["r00000001-20270115T080000020-042fb202"]),
        ("plimsoll journal verify r", ["r00000001-20270115T080000020-042fb202"]),
        ("plimsoll apply --throttle a", ["auto"]),
        ("plimsoll status -o j", ["json"]),
    ],
)
def test_values_are_completed(folder: Path, line: str, values: list[str]) -> None:
    assert completed(folder, line) == values


def test_nothing_is_completed_from_a_file_that_cannot_be_read(folder: Path) -> None:
    (folder / "own.toml").write_text("[[[")
    assert completed(folder, "plimsoll --config own.toml --profile ") == []
    assert completed(folder, "plimsoll plan --snapshot own.toml --topic ") == []


def test_settings_found_in_the_current_folder_are_used_silently(folder: Path) -> None:
    (folder / "plimsoll.toml").write_text("[profiles.found]\n")
    assert completed(folder, "plimsoll --profile ") == ["found"]
    assert completed(folder, "plimsoll run --limits e") == ["eager"]


@pytest.mark.parametrize(
    ("line", "listed", "unlisted"),
    [
        ("plimsoll verify --", "--search-budget", {"--work"}),
        ("plimsoll plan --", "--detailed-exitcode", {"--stock", "--no-detailed-exitcode"}),
        ("plimsoll apply --", "--dry-run", {"--no-dry-run", "--stand-down-balancer"}),
        ("plimsoll ", "assign", {"place", "elect", "synthesise"}),
    ],
)
def test_names_that_the_help_does_not_list_are_not_completed(
    folder: Path, line: str, listed: str, unlisted: set[str]
) -> None:
    names = completed(folder, line)
    assert listed in names
    assert not unlisted & {*names}
