"""`plimsoll record` and `replay` without a cluster, from the user's point of view."""

from pathlib import Path

import pytest

from tests.support.cli_offline import plimsoll, refused

AWAY = ("--bootstrap-server", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("record",), "no cluster is configured"),
        (("record", *AWAY, "--for", "soon"), "'soon' is not a time span; use sec"),
        (("record", *AWAY, "--for", "0s"), "'0s' is too short; give at least 0.001s"),
        (("record", *AWAY, "--out", "taken"), "taken exists; name another folder"),
        (("record", *AWAY, "--out", "no/such"), "cannot make the folder no/such.part"),
        (("record", *AWAY, "--anonymise-key", "k"), "needs --anonymise; add it"),
        (("record", *AWAY, "--anonymise", "--anonymise-key", "short"), "the key short has 3 bytes"),
        (("replay", "missing"), "missing is not a recorded state; name a folder"),
        (("replay", "short"), "short is not a recorded state"),
        (("replay", "taken"), "cannot read the plimsoll.state file taken/state.json"),
    ],
)
@pytest.mark.slow
def test_unusable_arguments_are_rejected_and_nothing_is_written(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "short").write_text("abc")
    run = plimsoll(tmp_path, *arguments)
    if "--for" in arguments:
        assert (run.returncode, run.stdout) == (2, "")
        assert message in " ".join(run.stderr.split())
    else:
        refused(run, 2, message)
    assert {p.name for p in tmp_path.iterdir()} <= {"taken", "short", "state"}
    assert list((tmp_path / "taken").iterdir()) == []


def test_an_unreachable_cluster_leaves_no_recording(tmp_path: Path) -> None:
    run = plimsoll(tmp_path, "record", *AWAY, "--out", "found")
    refused(run, 3, "127.0.0.1:1")
    assert {p.name for p in tmp_path.iterdir()} <= {"state"}
