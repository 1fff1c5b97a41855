"""plimsoll beside other balancers of Kafka: `python -P -m benchmarks.peers`.

Each peer's balancing function is called without a cluster, in an environment of its own under
the user's cache folder. Its plan is judged by plimsoll's evaluator. Peers level one figure a
partition: they are given the sum of the partition's shares of all resources, which is the most
useful one. They know no cooldown, so these instances have none. Writes `peers.md`.
"""

import argparse
import json
import subprocess
import tempfile
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import peer_automq
from benchmarks.instances import build, goals_of, small
from benchmarks.machine import processor
from benchmarks.measure import cpu_seconds
from benchmarks.shapes import Shape, shapes_of
from clients.jvm.jars import default_cache_dir
from model.evaluate import evaluate_proposal
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.proposal import Change, Proposal
from model.snapshot.snapshot import Floats, Snapshot
from solver.solve import solve

HERE: Final = Path(__file__).parent
TABLE: Final = HERE / "peers.md"
INSTANCES: Final = ("10x500", "10x500-near-level", "9x500-rf3", "50x5000", "51x5000-rf3")
TIME_LIMIT_S: Final = 180.0
COLUMNS: Final = (
    "instance",
    "planner",
    "moves",
    "leader changes",
    "squared deviations",
    "F",
    "largest deviation",
    "CPU s",
    "rules broken, remarks",
)
TOPICMAPPR: Final = (
    "not called: its rebalance levels free storage alone, by functions that its "
    "package `commands` does not export, and the Go module proxy did not serve "
    "github.com/DataDog/kafka-kit/v4 where this ran"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A program on PyPI, and the script that calls its balancing function."""

    requirement: str
    script: str
    needs: tuple[str, ...] = ()
    """What it needs and does not declare."""
    kinds: tuple[str, ...]


PEERS: Final = (
    Peer(
        requirement="kafka-utils==4.1.0", script="peer_kafka_utils.py", kinds=("count", "genetic")
    ),
    Peer(
        requirement="kafka-tools==0.1.9",
        script="peer_kafka_tools.py",
        needs=("six==1.17.0",),
        kinds=("rate", "even", "count"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One planner's plan of one instance; no placement where there was none."""

    instance: str
    planner: str
    proposal: Proposal | None
    cpu_s: float
    remark: str = ""


def instance(shape: Shape, seed: int) -> Snapshot:
    """The instance without recent moves."""
    snapshot = build(shape, seed)
    header = snapshot.header.model_copy(update={"recent_moves": ()})
    return replace(snapshot, header=header)


def weights(snapshot: Snapshot) -> Floats:
    """(n,) sum of each partition's shares of the levels of all resources."""
    loads = snapshot.partitions.loads
    levels = loads.sum(axis=0) / len(snapshot.header.brokers)
    total: Floats = (loads / levels).sum(axis=1)
    return total


def peer_rows(snapshot: Snapshot, goals: Goals, name: str) -> Iterator[Row]:
    """What each peer on PyPI makes of an instance."""
    for peer in PEERS:
        for kind in peer.kinds:
            planner = f"{peer.requirement.replace('==', ' ')}, {kind}"
            proposal, cpu_s, remark = _run(peer, kind, snapshot, goals)
            yield Row(instance=name, planner=planner, proposal=proposal, cpu_s=cpu_s, remark=remark)
    yield Row(instance=name, planner="topicmappr", proposal=None, cpu_s=0, remark=TOPICMAPPR)


def automq_row(snapshot: Snapshot, goals: Goals, name: str) -> Row:
    """AutoMQ's rule, where partitions have one replica."""
    planner = "AutoMQ's rule (own implementation)"
    columns = snapshot.partitions
    if len(columns.replica_broker) != len(snapshot):
        remark = "not called: AutoMQ has one replica a partition"
        return Row(instance=name, planner=planner, proposal=None, cpu_s=0, remark=remark)
    cpu = cpu_seconds()
    after = peer_automq.plan(
        columns.replica_broker, columns.loads[:, :2], len(snapshot.header.brokers)
    )
    cpu = cpu_seconds() - cpu
    placed: dict[int, tuple[int, ...]] = {
        int(row): (int(after[row]),) for row in np.flatnonzero(after != columns.replica_broker)
    }
    return Row(
        instance=name, planner=planner, proposal=_proposal(snapshot, goals, placed), cpu_s=cpu
    )


def plimsoll_row(snapshot: Snapshot, goals: Goals, name: str, work: float) -> Row:
    """plimsoll's own plan, with its bound."""
    cpu = cpu_seconds()
    result = solve(snapshot, goals, SolveLimits(work=work))
    cpu = cpu_seconds() - cpu
    moves = () if result.best is None else result.best.moves
    return Row(
        instance=name,
        planner="plimsoll",
        proposal=Proposal.of_moves(snapshot, goals, moves),
        cpu_s=cpu,
        remark=f"{result.status}; no plan has F under {result.bound or 0.0:.5g}",
    )


def _run(
    peer: Peer, kind: str, snapshot: Snapshot, goals: Goals
) -> tuple[Proposal | None, float, str]:
    try:
        python = _environment(peer)
    except subprocess.CalledProcessError as exc:
        return None, 0.0, f"not called: pip answered {exc.stderr.strip()[-200:]}"
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder) / "in.json", Path(folder) / "out.json"
        given.write_text(json.dumps(_cluster(snapshot)))
        command = [str(python), str(HERE / peer.script), kind, str(given), str(out)]
        try:
            subprocess.run(
                command, check=True, capture_output=True, text=True, timeout=TIME_LIMIT_S
            )
        except subprocess.TimeoutExpired:
            return None, TIME_LIMIT_S, f"no plan after {TIME_LIMIT_S:g} s"
        except subprocess.CalledProcessError as exc:
            return None, 0.0, f"it failed: {exc.stderr.strip().splitlines()[-1]}"
        answer = json.loads(out.read_text())
    return _changed(snapshot, goals, answer["partitions"]), answer["cpu_s"], ""


def _environment(peer: Peer) -> Path:
    """Python of an environment that holds one peer, made on first use."""
    folder = default_cache_dir() / "peers" / peer.requirement.replace("==", "-")
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet"]
        command += [peer.requirement, *peer.needs]
        subprocess.run(command, check=True, capture_output=True, text=True)
        (folder / "ready").touch()
    return python


def _cluster(snapshot: Snapshot) -> dict[str, Any]:
    """What the scripts read."""
    weight = weights(snapshot).tolist()
    return {
        "brokers": [{"id": b.id, "rack": b.rack} for b in snapshot.header.brokers],
        "partitions": [
            [pid.topic, pid.partition, list(snapshot.replicas(row)), weight[row]]
            for row, pid in enumerate(snapshot.ids)
        ],
    }


def _changed(snapshot: Snapshot, goals: Goals, placed: list[Any]) -> Proposal:
    found: dict[int, tuple[int, ...]] = {}
    for topic, number, replicas in placed:
        row = snapshot.row_of[PartitionId(TopicName(topic), number)]
        if tuple(replicas) != snapshot.replicas(row):
            found[row] = tuple(replicas)
    return _proposal(snapshot, goals, found)


def _proposal(snapshot: Snapshot, goals: Goals, placed: dict[int, tuple[int, ...]]) -> Proposal:
    changes = [
        Change(row, tuple(map(BrokerId, replicas)), BrokerId(replicas[0]))
        for row, replicas in sorted(placed.items())
    ]
    return Proposal(snapshot, goals, tuple(changes))


def table(lines: Sequence[str]) -> str:
    """The table as Markdown."""
    head = (
        f"Plans of the same instances (seed 1, without cooldown), judged by plimsoll's "
        f"evaluator; {processor()}. F is the sum of the squared deviations and the "
        "cost of the moves.\n\n"
    )
    rule = "|---" * len(COLUMNS) + "|"
    return head + "\n".join(["| " + " | ".join(COLUMNS) + " |", rule, *lines]) + "\n"


def line(row: Row) -> str:
    """One row of the table."""
    cells = [row.instance, row.planner]
    if row.proposal is None:
        return "| " + " | ".join([*cells, *[""] * 6, row.remark]) + " |"
    snapshot, changes = row.proposal.snapshot, row.proposal.changes
    judged = evaluate_proposal(row.proposal)
    moves = sum(len({*c.replicas} - {*snapshot.replicas(c.row)}) for c in changes)
    leaders = sum(c.leader != snapshot.partitions.leader[c.row] for c in changes)
    largest = max(abs(v) for by in judged.deviations.values() for v in by.values())
    broken = sorted({violation.rule for violation in judged.violations})
    cells += [
        f"{moves:,}",
        f"{leaders:,}",
        f"{judged.deviation:.5g}",
        f"{judged.objective:.5g}",
        f"{largest:.1%}",
        f"{row.cpu_s:.2f}",
        "; ".join([*broken, *([row.remark] if row.remark else [])]),
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Run all planners; write the table when all instances were run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="instances, joined by commas")
    parser.add_argument("--work", type=float, default=20.0)
    given = parser.parse_args()
    lines = []
    for shape in shapes_of(given.only or ",".join(INSTANCES)):
        name = shape.name
        snapshot, goals = instance(shape, 1), goals_of(shape)
        solve(build(small(shape), 0), goals_of(small(shape)), SolveLimits(work=1.0))
        rows = [
            Row(instance=name, planner="nobody", proposal=Proposal(snapshot, goals, ()), cpu_s=0.0),
            *peer_rows(snapshot, goals, name),
            automq_row(snapshot, goals, name),
            plimsoll_row(snapshot, goals, name, given.work),
        ]
        for row in rows:
            lines.append(line(row))
            print(lines[-1], flush=True)
    if not given.only:
        TABLE.write_text(table(lines))


if __name__ == "__main__":
    main()
