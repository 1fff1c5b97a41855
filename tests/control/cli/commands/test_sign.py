"""`plimsoll sign`, and `apply` where plans need a signature."""

import json
from pathlib import Path

import pytest

from control.cli.exit_codes import Exit
from model.ids import BrokerId, PartitionId
from model.plan.plan import read_plan
from tests.support.control.command_cluster import answer, commanded, plimsoll
from tests.support.control.simulated_tasks import SimulatedTask
from tests.support.model.signing_keys import key_pair

CHANGING = ("--allow-changes", "--yes")
APPLY = ("apply", "plan.json", *CHANGING)


def placement(found: SimulatedTask) -> dict[PartitionId, tuple[BrokerId, ...]]:
    return {pid: tuple(p.replicas) for pid, p in found.cluster.partitions.items()}


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimulatedTask:
    found = commanded(tmp_path, monkeypatch)
    plimsoll("plan", "--out", "plan.json")
    assert read_plan(Path("plan.json")).moves
    return found


@pytest.mark.parametrize("by_setting", [True, False])
def test_only_a_signed_plan_is_applied(
    found: SimulatedTask, by_setting: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, keys = key_pair(tmp_path, "eve")
    mallory, _ = key_pair(tmp_path, "mallory")
    if by_setting:
        monkeypatch.setenv("PLIMSOLL_REQUIRE_SIGNATURE", str(keys))
        command: tuple[str, ...] = APPLY
    else:
        command = (*APPLY, "--require-signature", str(keys))
    before, sealed = placement(found), Path("plan.json").read_bytes()

    refused = plimsoll(*command, code=Exit.REFUSED)
    assert "is not signed: there is no plan.json.sig" in refused.stderr
    plimsoll("sign", "plan.json", "--key", str(mallory))
    refused = plimsoll(*command, code=Exit.REFUSED)
    assert "plan.json.sig has no signature of plan" in refused.stderr
    keys.chmod(0o666)
    refused = plimsoll(*command, code=Exit.USAGE)
    assert "others can read or change the public keys" in refused.stderr
    keys.chmod(0o644)
    assert placement(found) == before
    assert not list(tmp_path.glob("state/journal/*"))

    signed = json.loads(plimsoll("sign", "plan.json", "--key", str(key), "-o", "json").stdout)
    assert signed["plan_hash"] == read_plan(Path("plan.json")).hash
    assert signed["signature"] in Path(signed["file"]).read_text().splitlines()
    plimsoll(*command)
    assert placement(found) != before
    assert Path("plan.json").read_bytes() == sealed


@pytest.mark.parametrize(
    "command",
    [
        (*APPLY, "--require-signature", ""),
        (*APPLY, "--require-signature="),
        ("sign", "plan.json", "--key", ""),
        ("sign", "", "--key", "eve.key"),
    ],
)
def test_an_empty_path_is_not_the_current_folder(
    found: SimulatedTask, command: tuple[str, ...]
) -> None:
    before = placement(found)
    refused = plimsoll(*command, code=Exit.USAGE)
    assert "the path is empty" in refused.stderr
    assert placement(found) == before


def test_a_public_key_does_not_sign(found: SimulatedTask, tmp_path: Path) -> None:
    _, keys = key_pair(tmp_path, "eve")
    refused = plimsoll("sign", "plan.json", "--key", str(keys), code=Exit.USAGE)
    assert "eve.pub holds no private key; sign with the private one" in refused.stderr
    assert "chmod" not in refused.stderr


def test_a_file_of_signatures_that_is_too_large_is_named_with_its_limit(
    found: SimulatedTask, tmp_path: Path
) -> None:
    _, keys = key_pair(tmp_path, "eve")
    Path("plan.json.sig").write_text("A" * 200_000)
    refused = plimsoll(*APPLY, "--require-signature", str(keys), code=Exit.USAGE)
    assert "plan.json.sig holds more than 64 KiB" in refused.stderr


def test_tasks_are_refused_where_plans_need_a_signature(
    found: SimulatedTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, keys = key_pair(tmp_path, "eve")
    monkeypatch.setenv("PLIMSOLL_REQUIRE_SIGNATURE", str(keys))
    before = placement(found)
    refused = plimsoll("broker", "remove", "4", *CHANGING, code=Exit.REFUSED)
    assert "sign it with plimsoll sign, and execute it with plimsoll apply" in refused.stderr
    assert placement(found) == before
    assert "no open task" in plimsoll("task", "list").output
    task = found.request()
    refused = plimsoll("task", "resume", *CHANGING, code=Exit.REFUSED)
    assert "sign it with plimsoll sign" in refused.stderr
    assert found.files.read(task.task_id) == task
    plimsoll("task", "cancel")


@pytest.mark.parametrize(
    "request_of_task",
    [
        ("broker", "remove", "4"),
        ("broker", "demote", "4"),
        ("topic", "set-replicas", "orders", "3"),
    ],
    ids=["remove", "demote", "set-replicas"],
)
def test_the_plan_of_a_dry_run_is_signed_and_applied_instead_of_a_task(
    found: SimulatedTask,
    request_of_task: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key, keys = key_pair(tmp_path, "eve")
    monkeypatch.setenv("PLIMSOLL_REQUIRE_SIGNATURE", str(keys))
    plan = answer(*request_of_task, "--dry-run")["plan"]
    Path("plan.json").write_text(json.dumps(plan))
    plimsoll("sign", "plan.json", "--key", str(key))
    plimsoll(*APPLY)
    after = {f"{m['topic']}-{m['partition']}": m["replicas_after"] for m in plan["moves"]}
    assert after
    shown = {str(pid): list(replicas) for pid, replicas in placement(found).items()}
    assert shown | after == shown
