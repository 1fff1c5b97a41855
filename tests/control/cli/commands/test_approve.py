"""`plimsoll approve`: list what waits, and approve it."""

import json
from pathlib import Path

import pytest

from control import compose
from control.cli.commands.approve import approve
from control.cli.commands.sign import sign
from control.cli.exit_codes import Exit
from control.cli.output import Form
from control.loop.questions import Questions
from control.settings.settings import Settings
from model.errors import ConfigError, GuardrailRefused
from model.plan.plan import Plan, write_plan
from solver.solve import solve
from tests.support.control.loop_parts import EASY, MB, WORK, cluster
from tests.support.model.signing_keys import key_pair

FAR_MS = 4_000_000_000_000
"""Later than any test, so that the question is never too old."""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    made = solve(cluster([2] * 8, [MB] * 8), EASY, WORK).best
    assert made is not None
    Questions(tmp_path, print).ask(made, "rule_violated", "rule_violated is set to ask", FAR_MS)
    return made


def test_waiting_plans_are_listed(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(state_dir=tmp_path)
    assert approve(local_settings=settings) == Exit.DONE
    shown = capsys.readouterr().out
    assert f"plan {plan.hash[:12]} of cluster-one: 5 moves" in shown
    assert "waits for approval" in shown
    assert "rule_violated is set to ask" in shown


def test_an_approved_plan_is_printed_with_its_approver(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(state_dir=tmp_path)
    code = approve(plan.hash[:8].upper(), by="eve", local_settings=settings, output=Form.JSON)
    assert code == Exit.DONE
    (found,) = json.loads(capsys.readouterr().out)["plans"]
    assert (found["plan_hash"], found["approved_by"]) == (plan.hash, "eve")
    assert Path(found["plan"]).exists()


def test_an_empty_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert approve(local_settings=Settings(state_dir=tmp_path)) == Exit.DONE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"no plan waits for approval in {tmp_path}" in shown.err


def test_an_approval_takes_a_required_signature_with_it(plan: Plan, tmp_path: Path) -> None:
    key, keys = key_pair(tmp_path, "eve")
    settings = Settings(state_dir=tmp_path, require_signature=keys)
    with pytest.raises(GuardrailRefused, match="is not signed"):
        approve(plan.hash, by="eve", local_settings=settings)
    given = tmp_path / "given.json"
    write_plan(given, plan)
    sealed = given.read_bytes()
    assert sign(given, key=key) == Exit.DONE
    assert given.read_bytes() == sealed
    with pytest.raises(ConfigError, match="truncated"):
        approve(plan.hash, signature=given, by="eve", local_settings=settings)
    with pytest.raises(GuardrailRefused, match="is not signed"):
        approve(plan.hash, by="eve", local_settings=settings)
    signature = tmp_path / "given.json.sig"
    assert approve(plan.hash, signature=signature, by="eve", local_settings=settings) == Exit.DONE
    required = compose.required_signature(settings)
    assert required is not None
    assert required.of(plan.hash).text == signature.read_text().strip()
