"""Runs on a simulated cluster with a real bucket, resumed on another host."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Event

import pytest

from clients.s3 import S3Settings
from executor.executor import Executor
from executor.journal.journal_repair import repaired
from executor.journal.records import JournalEnd, sealed
from executor.journal.run_history import past_run
from executor.journal.run_journal import plan_path, run_path, run_paths
from executor.run.operator_control import Steering
from executor.timing import RunLimits
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.errors import ArchiveUnreachable, ConfigError, PlimsollError, WriterBarred
from model.plan.plan import Plan
from model.run import JournalEvent, JournalRecord, MoveState, RunReport, RunState
from tests.support.executor.plan_builders import CLUSTER_ID, plan
from tests.support.executor.s3_server import BUCKET, Fault, Host, client, keys, place
from tests.support.executor.simulated_runs import MB, Killed, SimulatedRun

QUIET = {
    JournalEvent.PREPARED,
    JournalEvent.ISSUED,
    JournalEvent.MOVED,
    JournalEvent.DROPPED,
    JournalEvent.STUCK,
}
"""Events that announce no request."""
_numbers = count()


@dataclass
class Field:
    """A simulated cluster, a bucket, and hosts that have nothing but these."""

    folder: Path
    store: S3Settings
    site: SimulatedRun = field(init=False)

    def __post_init__(self) -> None:
        self.site = SimulatedRun(
            folder=self.folder,
            before={0: (1, 2), 1: (2, 1)},
            after={0: (3, 2), 1: (1, 2)},
            log_bytes=20.0 * MB,
            limits=RunLimits(moves_in_flight=2, throttle_bytes_per_s=50 * MB),
        )

    def machine(self, name: str) -> "Machine":
        return Machine(self, name)

    @property
    def archived(self) -> bytes:
        """All pieces in the bucket, in the order of their names."""
        return b"".join(
            client(self.store).get_object(Bucket=BUCKET, Key=self.store.prefix + key)["Body"].read()
            for key in sorted(keys(self.store))
            if key.endswith(".jsonl")
        )

    @property
    def is_done(self) -> bool:
        """Whether all is as planned, and nothing is left set."""
        planned = {n: (tuple(to), to[0]) for n, to in self.site.after.items()}
        return self.site.placement == planned and self.site.is_clean


class Machine(Host):
    """One host of a field; a new process for each command."""

    def __init__(self, at: Field, name: str) -> None:
        super().__init__(at.store, at.site.cluster.timing, name)
        self.site = at.site
        self.folder = at.folder / name
        self.wire.wait = at.site.cluster.advance

    def executor(self) -> Executor:
        return Executor(
            SimulatedAdmin(self.site.cluster, self.site.faults),
            timing=self.site.cluster.timing,
            limits=self.site.limits,
            archive=self.archive,
        )

    def run(self) -> RunReport:
        return self.executor().execute(
            self.site.plan,
            journal_dir=self.folder,
            observe=lambda _: None,
            steering=self.site.steering,
        )

    def resume(self) -> RunReport:
        return self.executor().resume(
            journal_dir=self.folder, observe=lambda _: None, steering=self.site.steering
        )

    def killed(self) -> bool:
        """Execute the plan; return whether the process was killed."""
        try:
            self.run()
        except Killed:
            self.site.stop_killing()
            # The dead release nothing.
            return True
        return False

    @property
    def journal(self) -> bytes:
        (path,) = run_paths(self.folder)
        return path.read_bytes()


Fields = Callable[[], Field]


@pytest.fixture
def fields(tmp_path: Path, endpoint: str) -> Fields:
    def make() -> Field:
        name = str(next(_numbers))
        return Field(tmp_path / name, place(endpoint))

    return make


def test_a_run_archives_its_plan_and_its_whole_journal(fields: Fields) -> None:
    at = fields()
    a = at.machine("a")
    assert a.run().state is RunState.DONE
    assert at.archived == a.journal
    (run,) = run_paths(a.folder)
    names = keys(at.store)
    assert names[0] == f"{CLUSTER_ID}/lease.json"
    assert f"{CLUSTER_ID}/runs/{run.stem}/plan.json" in names
    lease = a.bucket.get(names[0])
    assert lease is not None
    assert json.loads(lease.body)["released"]


def test_a_request_is_archived_before_it_is_sent(fields: Fields) -> None:
    at = fields()
    a = at.machine("a")
    calls: list[str] = []

    def look(call: str, *, made: bool) -> None:
        if not made:
            calls.append(call)
            there = at.archived
            assert a.journal.startswith(there)
            rest = a.journal[len(there) :].splitlines()
            events = {JournalRecord.model_validate_json(line).event for line in rest}
            assert events <= QUIET

    at.site.faults.on_call = look
    assert a.run().state is RunState.DONE
    assert {"reassign", "elect_preferred", "alter_broker_configs"} <= {*calls}


@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
@pytest.mark.slow
def test_killed_at_any_request_a_run_is_resumed_on_another_host(fields: Fields, made: bool) -> None:
    for change in count():
        at = fields()
        a, b = at.machine("a"), at.machine("b")
        at.site.kill_at(change, made=made)
        if not died(a):
            break
        report = b.resume()
        assert (report.state, report.reason) == (RunState.DONE, "")
        assert at.is_done
        assert at.archived == b.journal
    assert change > 10


def died(host: Machine) -> bool:
    """Whether its run was killed; then the bucket hears no more of it."""
    kill = host.site.faults.on_call

    def on_call(call: str, *, made: bool) -> None:
        try:
            kill(call, made=made)
        except Killed:
            host.wire.fault = lambda _: Fault.AWAY
            raise

    host.site.faults.on_call = on_call
    return host.killed()


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.slow
def test_killed_at_any_call_to_the_bucket_a_run_is_resumed_on_another_host(
    fields: Fields, done: bool
) -> None:
    for call in count():
        at = fields()
        a, b = at.machine("a"), at.machine("b")
        killer(a, call, done=done)
        if not a.killed():
            break
        if not at.archived:
            assert at.site.placement == {n: (tuple(r), r[0]) for n, r in at.site.before.items()}
            with pytest.raises(ConfigError, match="has no run on this"):
                b.resume()
            continue
        outcome = outcome_of(b.resume)
        assert outcome == "done" or outcome.endswith("nothing is left to resume.")
        assert at.is_done
        assert at.archived == b.journal
    assert call > 15


def killer(host: Machine, call: int, *, done: bool) -> None:
    """Die at the n-th call to the bucket, before or after it has effect."""

    def fault(number: int) -> Fault | None:
        return (Fault.KILLED_AFTER if done else Fault.KILLED) if number >= call else None

    host.wire.fault = fault


@pytest.mark.parametrize("fault", [Fault.AWAY, Fault.DENIED])
@pytest.mark.slow
def test_without_the_bucket_nothing_further_is_sent_and_the_run_can_be_resumed(
    fields: Fields, fault: Fault
) -> None:
    """The bucket stays unreachable from any call on; in-flight moves are waited for."""
    ends = set()
    for call in count():
        at = fields()
        a = at.machine("a")
        sent = requests_without(at.site, a, call, fault)
        outcome = outcome_of(a.run)
        if a.wire.calls <= call:
            break
        ends.add(outcome.partition(" ")[0])
        assert not sent
        assert not [p for p in at.site.cluster.partitions.values() if p.is_moving]
        a.wire.fault = lambda _: None
        if run_paths(a.folder):
            assert "nothing further is sent" in outcome or outcome == "done"
            resumed = outcome_of(a.resume)
            assert resumed == "done" or resumed.endswith("nothing is left to resume.")
            assert at.is_done
            assert at.archived == a.journal
        else:
            assert "s3://archive" in outcome
            assert at.site.is_clean
    assert {"Cannot", "failed:", "done"} <= ends


def outcome_of(command: Callable[[], RunReport]) -> str:
    """The outcome of a run as a message."""
    try:
        report = command()
    except PlimsollError as exc:
        return str(exc)
    assert MoveState.ISSUED not in {m.state for m in report.moves}
    return f"{report.state}: {report.reason}".removesuffix(": ")


def requests_without(site: SimulatedRun, host: Host, call: int, fault: Fault) -> list[str]:
    """Requests for moves that are sent although the bucket does not answer any more."""
    sent: list[str] = []
    host.wire.fault = lambda number: fault if number >= call else None

    def on_call(name: str, *, made: bool) -> None:
        if host.wire.calls > call and not made and name in ("reassign", "elect"):
            sent.append(name)

    site.faults.on_call = on_call
    return sent


def test_a_slow_bucket_only_costs_time(fields: Fields) -> None:
    at = fields()
    a = at.machine("a")
    a.wire.fault = lambda _: Fault.SLOW
    a.wire.wait = lambda _: at.site.cluster.advance(4.0)
    assert a.run().state is RunState.DONE
    assert at.is_done


@pytest.mark.slow
def test_losing_the_lease_at_any_request_ends_all_requests(fields: Fields) -> None:
    """It was stopped for long, and another process has resumed its run."""
    for change in count():
        at = fields()
        a, b = at.machine("a"), at.machine("b")
        sent = hand_over(at.site, b, change)
        outcome = outcome_of(a.run)
        if not sent:
            break
        assert sent == ["the last of a"]
        assert at.is_done
        assert at.archived == b.journal
        # Records that host a has written after that are set aside.
        assert outcome_of(a.resume).endswith("nothing is left to resume.")
        assert a.journal == b.journal
        if outcome.startswith("failed") and "another process has written" not in outcome:
            assert "is lost (b has taken it), so nothing further is sent" in outcome
    assert change > 10


def hand_over(site: SimulatedRun, to: Machine, change: int) -> list[str]:
    """Let much time pass after the n-th request, in which another host resumes the run.

    Returns what is sent from there on.
    """
    sent: list[str] = []
    numbers = count()

    def on_call(name: str, *, made: bool) -> None:
        if not made and sent:
            sent.append(name)
        if made and next(numbers) == change:
            site.stop_killing()
            site.cluster.advance(100.0)
            assert to.resume().state is RunState.DONE
            site.faults.on_call = on_call
            sent.append("the last of a")

    site.faults.on_call = on_call
    return sent


def test_a_second_run_is_refused_during_the_first(fields: Fields) -> None:
    at = fields()
    a, b = at.machine("a"), at.machine("b")
    refused: list[str] = []

    def on_call(_: str, *, made: bool) -> None:
        del made
        if not refused:
            refused.append("")
            for seconds in (20.0, 40.0):
                at.site.cluster.after(seconds, a.lease.need)
            refused[0] = outcome_of(b.run)

    at.site.faults.on_call = on_call
    assert a.run().state is RunState.DONE
    assert refused[0].startswith("a is changing the cluster: it holds the lease s3://")
    assert not run_paths(b.folder)


def test_another_host_rolls_a_finished_run_back(fields: Fields) -> None:
    at = fields()
    before = at.site.placement
    at.machine("a").run()
    b = at.machine("b")
    back, left = b.executor().plan_rollback(b.folder, None)
    assert not left
    report = b.executor().execute(
        back, journal_dir=b.folder, observe=lambda _: None, steering=Steering()
    )
    assert report.state is RunState.DONE
    assert at.site.placement == before


def test_another_host_cleans_up_after_a_killed_run(fields: Fields) -> None:
    at = fields()
    a, b = at.machine("a"), at.machine("b")
    at.site.kill_at(9, made=True)
    assert died(a)
    left = at.site.is_clean
    assert not left
    assert "its throttle is gone" in b.executor().clean_up(b.folder)[0]
    assert at.site.is_clean
    assert at.archived == b.journal


def runs(at: Field, host: Machine, times: int, apart_s: float) -> list[str]:
    """Ids of runs whose plan has one move that changes nothing for long."""
    result = []
    for _ in range(times):
        host.run()
        result.append(run_paths(host.folder)[-1].stem)
        back, _ = host.executor().plan_rollback(host.folder, None)
        host.executor().execute(
            back, journal_dir=host.folder, observe=lambda _: None, steering=Steering()
        )
        result.append(run_paths(host.folder)[-1].stem)
        at.site.cluster.now_s += apart_s
    return result


def test_runs_of_the_last_day_are_downloaded_and_older_ones_on_request(fields: Fields) -> None:
    at = fields()
    ids = runs(at, at.machine("a"), 3, 20 * 3600.0)
    b, c, d = (at.machine(name) for name in "bcd")
    b.archive.fetch(b.folder, CLUSTER_ID)
    assert [p.stem for p in run_paths(b.folder)] == ids[-2:]
    at.site.cluster.now_s += 10 * 24 * 3600.0
    c.archive.fetch(c.folder, CLUSTER_ID)
    assert [p.stem for p in run_paths(c.folder)] == ids[-1:]
    c.archive.fetch(c.folder, CLUSTER_ID, ids[2][:15])
    assert [p.stem for p in run_paths(c.folder)] == ids[2:]
    d.archive.fetch(d.folder, "another")
    assert not run_paths(d.folder)
    result = past_run(c.folder, CLUSTER_ID, ids[2])
    assert result.among(MoveState.DONE)


def interrupted_without_a_bucket(at: Field) -> Machine:
    """A host whose run was killed, and is not archived."""
    at.site.folder = at.folder / "a"
    at.site.kill_at(9, made=True)
    with pytest.raises(Killed):
        at.site.run()
    at.site.stop_killing()
    return at.machine("a")


def test_a_run_started_without_a_bucket_is_archived_when_resumed(fields: Fields) -> None:
    at = fields()
    a = interrupted_without_a_bucket(at)
    assert a.resume().state is RunState.DONE
    assert at.archived == a.journal


def test_a_damaged_journal_is_not_archived_until_it_is_repaired(fields: Fields) -> None:
    """A run that was begun without a bucket; missing records do not stop it."""
    at = fields()
    a = interrupted_without_a_bucket(at)
    (path,) = run_paths(a.folder)
    whole = path.read_bytes()
    path.write_bytes(whole[:40] + b"#" + whole[41:])
    with pytest.raises(ConfigError, match=rf"line 1 .* plimsoll journal repair {path.stem}"):
        a.resume()
    assert at.archived == b""
    repaired(a.folder, path.stem, at.site.cluster.timing)
    assert a.resume().state is RunState.DONE
    assert at.archived == a.journal
    assert at.machine("b").executor().runs(at.folder / "b", CLUSTER_ID)


def test_a_record_is_written_by_one_writer_alone(fields: Fields) -> None:
    at = fields()
    a, b = at.machine("a"), at.machine("b")
    made = plan([]).seal()
    one, two, three, four = [*sealed_lines(made, 3), b"other\n"]
    with a.lease.held(CLUSTER_ID, Event()):
        first = a.archive.sink(a.folder, made, "run")
        first(JournalEvent.STARTED, one + two)
    with b.lease.held(CLUSTER_ID, Event()):
        b.folder.mkdir(parents=True)
        run_path(b.folder, "run").write_bytes(one + two)
        second = b.archive.sink(b.folder, made, "run")
        late = b.archive.sink(b.folder, made, "run")
        second(JournalEvent.RESUMED, three)
        with pytest.raises(WriterBarred, match="another process has written s3://arch"):
            late(JournalEvent.RESUMED, four)
    assert at.archived == one + two + three


def sealed_lines(of: Plan, count: int) -> list[bytes]:
    """Lines of the journal of a run."""
    lines, end = [], JournalEnd()
    for number in range(count):
        record = JournalRecord(
            at_ms=number,
            event=JournalEvent.RESUMED,
            run_id="run",
            plan_hash=of.hash,
            cluster_id=of.cluster_id,
        )
        line, end = sealed(record, end)
        lines.append(line)
    return lines


@pytest.mark.parametrize("spoilt", ["first line", "middle", "plan"])
def test_a_damaged_local_journal_is_restored_from_the_archive(fields: Fields, spoilt: str) -> None:
    """Later local records are kept, and so is the damaged file."""
    at = fields()
    a = at.machine("a")
    assert a.run().state is RunState.DONE
    (path,) = run_paths(a.folder)
    whole = path.read_bytes()
    if spoilt == "plan":
        plan_of = plan_path(a.folder, path.stem)
        plan_of.write_bytes(plan_of.read_bytes().replace(b"orders", b"ordars"))
    else:
        place = 40 if spoilt == "first line" else len(whole) // 2
        path.write_bytes(whole[:place] + b"#" + whole[place + 1 :])
    plan_rollback, left = a.executor().plan_rollback(a.folder, None)
    assert plan_rollback.moves
    assert not left
    assert path.read_bytes() == whole
    if spoilt != "plan":
        assert path.with_name(path.name + ".set-aside").read_bytes() != whole


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        ("piece gone", "does not begin with record"),
        ("piece garbled", "is damaged: line 1 is not a journal record"),
        ("plan gone", r"plan\.json is missing"),
        ("plan garbled", "plan"),
    ],
)
def test_a_changed_archive_is_named(fields: Fields, spoil: str, message: str) -> None:
    at = fields()
    at.machine("a").run()
    b = at.machine("b")
    pieces = [k for k in keys(at.store) if k.endswith(".jsonl")]
    (plan_key,) = [k for k in keys(at.store) if k.endswith("plan.json")]
    key = at.store.prefix + (pieces[1] if "piece" in spoil else plan_key)
    direct = client(at.store)
    if "gone" in spoil:
        direct.delete_object(Bucket=BUCKET, Key=key)
    else:
        direct.put_object(Bucket=BUCKET, Key=key, Body=b"{}\n")
    with pytest.raises(ConfigError, match=message):
        b.resume()
    with pytest.raises(PlimsollError):
        b.executor().plan_rollback(b.folder, None)


def test_an_unreachable_bucket_at_the_start_changes_nothing(fields: Fields) -> None:
    at = fields()
    a = at.machine("a")
    a.wire.fault = lambda _: Fault.AWAY
    for command in (a.run, a.resume, lambda: a.executor().clean_up(a.folder)):
        with pytest.raises(ArchiveUnreachable):
            command()
    with pytest.raises(ArchiveUnreachable):
        a.executor().plan_rollback(a.folder, None)
    assert not run_paths(a.folder)
    assert at.site.is_clean
