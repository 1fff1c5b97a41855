"""Plans that need a signature: nothing is changed without one, and journals keep it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from executor.executor import Executor
from executor.journal.run_history import past_run, read_journal
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.errors import GuardrailRefused
from model.plan.plan import write_plan
from model.plan.signatures import RequiredSignature, Signature, sign, signature_file
from model.run import JournalEvent, RunState
from tests.support.executor.plan_builders import CLUSTER_ID
from tests.support.executor.simulated_runs import Killed, SimulatedRun
from tests.support.model.signing_keys import key_pair


@dataclass(slots=True, kw_only=True)
class SignedRun(SimulatedRun):
    """A simulated run whose plan needs a signature."""

    required: RequiredSignature

    def executor(self) -> Executor:
        admin = SimulatedAdmin(self.cluster, self.faults)
        timing = self.cluster.timing
        return Executor(admin, timing=timing, limits=self.limits, required=self.required)


class Site:
    def __init__(self, folder: Path) -> None:
        self.key, keys = key_pair(folder, "eve")
        waiting = folder / "waiting"
        waiting.mkdir()
        before, after = {0: (1, 2), 1: (2, 3)}, {0: (3, 2), 1: (2, 4)}
        required = RequiredSignature(keys, waiting)
        journals = folder / "journal"
        self.run = SignedRun(folder=journals, before=before, after=after, required=required)
        self.plan_file = waiting / f"{self.run.plan.hash}.plan.json"
        write_plan(self.plan_file, self.run.plan)

    def sign(self) -> Signature:
        made = sign(self.run.plan.hash, self.key)
        signature_file(self.plan_file).write_text(made.text)
        return made


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_without_a_signature_nothing_is_changed_and_no_run_begins(site: Site) -> None:
    before = site.run.placement
    with pytest.raises(GuardrailRefused, match="is not signed"):
        site.run.run()
    assert site.run.placement == before
    assert not list(site.run.folder.glob("*.jsonl"))
    assert site.run.executor().dry_run(site.run.plan)


def test_a_signed_plan_is_executed_and_its_journal_names_the_signer(site: Site) -> None:
    made = site.sign()
    report = site.run.run()
    assert report.state is RunState.DONE
    first = read_journal(site.run.folder / f"{report.run_id}.jsonl")[0]
    assert first.event is JournalEvent.STARTED
    assert first.detail["signature"] == {"signer": made.signer, "text": made.text}


def test_a_killed_run_is_resumed_and_rolled_back_by_the_signature_in_its_journal(
    site: Site,
) -> None:
    site.sign()
    before = site.run.placement
    site.run.kill_at(0, made=True)
    with pytest.raises(Killed):
        site.run.run()
    site.run.stop_killing()
    signature_file(site.plan_file).unlink()
    assert site.run.resume().state is RunState.DONE
    site.run.cluster.advance(300.0)
    assert site.run.roll_back().state is RunState.DONE
    assert site.run.placement == before


def test_runs_of_plans_that_were_not_signed_are_neither_resumed_nor_rolled_back(
    site: Site, tmp_path: Path
) -> None:
    site.sign()
    site.run.kill_at(0, made=True)
    with pytest.raises(Killed):
        site.run.run()
    site.run.stop_killing()
    _, others = key_pair(tmp_path, "mallory")
    site.run.required = RequiredSignature(others, site.run.required.folder)
    with pytest.raises(GuardrailRefused, match="its journal has no signature of plan"):
        site.run.resume()
    past = past_run(site.run.folder, CLUSTER_ID)
    assert past.is_unfinished
    site.run.cluster.advance(300.0)
    placed = site.run.placement
    with pytest.raises(GuardrailRefused, match="its journal has no signature of plan"):
        site.run.roll_back()
    assert len(list(site.run.folder.glob("*.jsonl"))) == 1
    assert site.run.placement == placed
