"""What many runs and a year cost: `python -P -m benchmarks.longevity`, into `longevity.md`.

Journals of RUNS=50,000 runs are written to a folder, and a process that has just started asks what
a command or a decision of `--auto` asks of them. The year is that of `longevity_year`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks.machine import pace, processor
from benchmarks.sections import table
from control.cli.main import collect_seldom
from control.loop.cleanup_schedule import CleanupSchedule
from executor.journal.journal_index import FILE, index_of, new_run_id
from executor.journal.left_settings import left_settings
from executor.journal.records import JournalEnd, sealed
from executor.journal.run_history import (
    facts_of,
    past_run,
    past_runs,
    recent_moves,
    unfinished,
    usage_since,
)
from executor.journal.run_journal import PLAN_SUFFIX, SUFFIX
from executor.throttle.quota import ThrottleSettings
from model.files import canonical
from model.plan.plan import Move, Plan
from model.run import JournalEvent, JournalRecord, RunState
from tests.support.executor import plan_builders

TABLE: Final = Path(__file__).with_name("longevity.md")
RUNS: Final = 50_000
YEAR_S: Final = 365 * 86_400
FAILED_EVERY: Final = 50
"""One run in so many fails, with a move skipped and nothing left."""
CUT_EVERY: Final = 10_000
"""One run in so many was interrupted while it moved partitions."""
MOVES: Final = 6
PARTITIONS: Final = 600
CLUSTER: Final = "benchmark"
MIB: Final = 2**20
TARGET_S: Final = 0.2
HEAD: Final = (
    "# Many runs\n\n"
    "`python -P -m benchmarks.longevity`, on {processor}. {runs:,} runs of {moves} moves over a "
    "year, one in {failed} failed, one in {cut:,} interrupted: {files:,} files, {mib:.0f} MiB. "
    "CPU seconds are those of a process that has just started, modules imported, and of the "
    "same question asked again; the median of {repeats}. The target is {target} s for all of a "
    "line. {pace}\n\n"
)
REPEATS: Final = 3
CALM_S: Final = 3.0
YEAR: Final = "## A simulated year\n"


def moves_of(number: int) -> list[Move]:
    """The moves of a run: others than those of the run before."""
    return [
        plan_builders.move(at % 20, (1, 2), (3, 2), topic=f"topic-{at // 20}", bytes_to_copy=10**6)
        for at in ((number * MOVES + i) % PARTITIONS for i in range(MOVES))
    ]


def fill(folder: Path, runs: int, now_s: float) -> None:
    """Write journals as runs do, without syncing each record."""
    plans = [
        plan_builders.plan(moves_of(number), cluster_id=CLUSTER)
        for number in range(PARTITIONS // MOVES)
    ]
    documents = [canonical(plan.model_dump(mode="json")) for plan in plans]
    for number in range(1, runs + 1):
        plan, document = plans[number % len(plans)], documents[number % len(plans)]
        at_s = now_s - YEAR_S * (runs - number + 1) / runs
        stamp = time.strftime("%Y%m%dT%H%M%S000", time.gmtime(at_s))
        run_id = f"r{number:08d}-{stamp}-{plan.hash[:8]}"
        lines, end = b"", JournalEnd()
        for event, move, detail in events_of(number, plan):
            record = JournalRecord(
                at_ms=int(1000 * at_s),
                event=event,
                run_id=run_id,
                plan_hash=plan.hash,
                cluster_id=plan.cluster_id,
                topic=move.topic if move else None,
                partition=move.partition if move else None,
                replicas_before=move.replicas_before if move else (),
                replicas_after=move.replicas_after if move else (),
                detail=detail,
            )
            line, end = sealed(record, end)
            lines += line
        (folder / (run_id + PLAN_SUFFIX)).write_bytes(document)
        path = folder / (run_id + SUFFIX)
        path.write_bytes(lines)
        os.utime(path, (at_s, at_s))


def events_of(
    number: int, plan: Plan
) -> Iterator[tuple[JournalEvent, Move | None, dict[str, Any]]]:
    """What a run records."""
    is_cut, failed = number % CUT_EVERY == 1, number % FAILED_EVERY == 1
    yield JournalEvent.STARTED, None, {"by": "benchmark"}
    yield JournalEvent.THROTTLED, None, ThrottleSettings().document()
    for move in plan.moves:
        yield JournalEvent.ISSUING, move, {}
    for move in plan.moves[is_cut:]:
        yield JournalEvent.MOVED, move, {"seconds": 1.0, "bytes": 10**6}
    if not is_cut:
        state = RunState.FAILED if failed else RunState.DONE
        yield JournalEvent.UNTHROTTLED, None, {}
        yield JournalEvent.ENDED, None, {"state": state, "reason": ""}


def questions(folder: Path, now_ms: int) -> dict[str, list[Callable[[], object]]]:
    """What is asked, by line of the table."""
    day_ago, cooldown = now_ms - 86_400_000, now_ms - 86_400_000
    return {
        "decision of `--auto`: recent moves, use of limits, settings left": [
            partial(recent_moves, folder, CLUSTER, cooldown),
            partial(usage_since, folder, CLUSTER, day_ago),
            partial(CleanupSchedule(folder).due, CLUSTER, 0.0),
        ],
        "start of a run: settings left, open moves, pace, next id": [
            partial(left_settings, folder, CLUSTER),
            partial(unfinished, folder, CLUSTER),
            partial(past_runs, folder, CLUSTER),
            partial(new_run_id, folder, now_ms, "aaaaaaaa"),
        ],
        "start of the screen: settings left, newest run": [
            partial(left_settings, folder, CLUSTER),
            partial(past_run, folder, CLUSTER),
        ],
        "`plimsoll status`: settings left": [partial(left_settings, folder, CLUSTER)],
    }


def ask(folder: Path, line: str, now_ms: int) -> None:
    """Answer one line in this process, twice; print seconds and memory as JSON."""
    collect_seldom()
    asked = questions(folder, now_ms)[line]
    seconds = []
    for _ in range(2):
        begun_s = time.process_time()
        for question in asked:
            question()
        seconds.append(time.process_time() - begun_s)
    print(json.dumps([*seconds, psutil.Process().memory_info().rss / MIB]))


def asked(folder: Path, line: str, now_ms: int) -> list[float]:
    """The median of several processes."""
    given = [str(folder), "--ask", line, "--now-ms", str(now_ms)]
    command = [sys.executable, "-P", "-m", "benchmarks.longevity", *given]
    found = sorted(
        json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        for _ in range(REPEATS)
    )
    return [float(value) for value in found[len(found) // 2]]


def rows(folder: Path, now_ms: int) -> list[tuple[str, ...]]:
    """Measure every question, and making the index again."""
    measure = partial(facts_of, folder)
    begun_s = time.process_time()
    index_of(folder).not_done(measure)
    index_of(folder).save()
    built_s = time.process_time() - begun_s
    # A folder that has just changed is listed each time.
    time.sleep(CALM_S)
    size = (folder / FILE).stat().st_size / MIB
    found: list[tuple[str, ...]] = []
    found += [("making the index from the journals, once", f"{built_s:.1f}", "", f"{size:.1f}")]
    for line in questions(folder, now_ms):
        first_s, again_s, mib = asked(folder, line, now_ms)
        found.append((line, f"{first_s:.3f}", f"{again_s:.3f}", f"{mib:.0f}"))
    return found


def many_runs(runs: int) -> str:
    """Measure what earlier runs cost."""
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as name:
        folder, now_s = Path(name), time.time()
        fill(folder, runs, now_s)
        files = list(folder.iterdir())
        head = HEAD.format(
            processor=processor(),
            pace=pace(),
            runs=runs,
            moves=MOVES,
            failed=FAILED_EVERY,
            cut=CUT_EVERY,
            files=len(files),
            mib=sum(path.stat().st_size for path in files) / MIB,
            repeats=REPEATS,
            target=TARGET_S,
        )
        return head + table(("", "seconds", "again", "MiB"), rows(folder, int(1000 * now_s)))


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where journals are, for --ask")
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    parser.add_argument("--now-ms", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", choices=("runs", "year"), help="this part of the table alone")
    given = parser.parse_args()
    if given.ask:
        ask(given.folder, given.ask, given.now_ms)
        return
    known, _, year = (TABLE.read_text() if TABLE.exists() else "").partition(YEAR)
    # First, in a process that has held nothing else yet.
    if given.only != "runs":
        # Processes that answer `--ask` do without what it imports.
        from benchmarks.longevity_year import measured

        year = f"\n{measured()}"
    if given.only != "year":
        known = f"{many_runs(given.runs)}\n"
    TABLE.write_text(f"{known}{YEAR}{year}")
    print(TABLE.read_text(), flush=True)


if __name__ == "__main__":
    main()
