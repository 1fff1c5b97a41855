"""Runs worlds in which everything fails: `python -P -m benchmarks.fire`.

Writes `benchmarks/fire.md` where `--write` says so. A failing seed is shrunk, and printed with the
command that repeats it.
"""

import argparse
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.fire.figures import Figures, figures_of, mutant_table, tables
from benchmarks.fire.fire_world import Outcome, outcome_of
from benchmarks.fire.mutants import MUTANTS, UNSEEN, found
from benchmarks.fire.scenarios import Scenario, scenario_of
from benchmarks.fire.shrinking import shrunk
from benchmarks.machine import processor

TABLE: Final = Path(__file__).parent.with_name("fire.md")
_CHUNK: Final = 50
_PROGRESS_S: Final = 60.0
_SHRUNK: Final = 5
"""Failing seeds that are named, and shrunk."""
_HEAD: Final = """# Runs in a world in which everything fails

`make fire SEEDS={seeds}`, on {machine}.
Each seed is one world: a cluster, one or two hosts with a plan to execute, a task to work on or the
loop of `--auto`, and up to seven faults, at times with further ones of brokers.
Journal, executor, lease, archive, tasks and loop are the shipped code; the rest is simulated, as
[README.md](README.md#fire) says.
{violated}

## Worlds

{worlds}
"""
_MARK: Final = "\n## Deliberate bugs\n"
_MUTANTS: Final = f"""{_MARK}
`make fire ARGS=--mutants`: each bug is put into the shipped code, and seeds run from 0 on until an
invariant is violated, at most {{most:,}}.
{{found}} of {{all}} are found.

{{table}}"""


def main() -> int:
    """Run what the command line asks for; 1 if an invariant was violated, or a bug not found."""
    parser = argparse.ArgumentParser(prog="python -P -m benchmarks.fire", description=__doc__)
    parser.add_argument("--seeds", type=_positive, default=1000, help="number of worlds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seed", type=int, help="run this seed alone")
    parser.add_argument("--keep", type=_numbers, help="of its faults, keep these: 0,2")
    parser.add_argument("--mutants", action="store_true", help="find deliberate bugs instead")
    parser.add_argument("--most", type=_positive, default=10_000, help="seeds per deliberate bug")
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name}")
    options = parser.parse_args()
    if options.keep is not None:
        if options.seed is None:
            parser.error("--keep needs --seed")
        faults = len(scenario_of(options.seed).faults)
        if beyond := [n for n in options.keep if n >= faults]:
            parser.error(
                f"--keep: seed {options.seed} has {faults} faults, numbered from 0; "
                f"none is number {beyond[0]}"
            )
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets of names depends on it.
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        flags = ["-P"] if sys.flags.safe_path else []
        command = [sys.executable, *flags, "-m", "benchmarks.fire", *sys.argv[1:]]
        os.execve(sys.executable, command, environment)  # noqa: S606 - no shell is needed
    logging.disable(logging.CRITICAL)
    if options.seed is not None:
        return _one(options.seed, options.keep)
    if options.mutants:
        text, missed = _mutants(options.most, options.jobs)
        _write(text, mutants=True) if options.write else print(text)
        if missed:
            print(f"not found, and no reason is known: {'; '.join(missed)}", file=sys.stderr)
        return int(bool(missed))
    return _many(options)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _numbers(text: str) -> tuple[int, ...]:
    """Numbers of faults, ascending; none where the text is empty."""
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers such as 0,2")
    return tuple(sorted({int(part) for part in parts}))


def _one(seed: int, keep: tuple[int, ...] | None) -> int:
    scenario = scenario_of(seed)
    if keep is not None:
        scenario = scenario.keeping(keep)
    outcome = outcome_of(scenario)
    print(_described(scenario, outcome))
    return int(outcome.violation is not None)


def _described(scenario: Scenario, outcome: Outcome) -> str:
    moves = [
        f"  {m.id}: {list(m.replicas_before)} -> {list(m.replicas_after)}"
        for m in scenario.plan.moves
    ]
    lines = [
        f"seed {scenario.seed}: {outcome.violation or 'every invariant held'}",
        f"{scenario.hosts} hosts, {outcome.crashes} crashes, {outcome.takeovers} takeovers",
        *moves,
        *(f"  {fault}" for fault in scenario.faults),
        f"the newest run: {outcome.ended}",
        f"trace {outcome.trace[:16]}",
    ]
    return "\n".join(lines)


def _many(options: argparse.Namespace) -> int:
    seeds = range(options.first, options.first + options.seeds)
    whole, begun_s = Figures(), time.perf_counter()
    chunks = [seeds[at : at + _CHUNK] for at in range(0, len(seeds), _CHUNK)]
    with multiprocessing.Pool(options.jobs, initializer=_quiet) as pool:
        told_s = begun_s
        for part in pool.imap_unordered(figures_of, chunks):
            whole.merge(part)
            for seed, violation in part.violations:
                _tell(f"seed {seed} violates {violation.invariant!r}")
            if time.perf_counter() - told_s >= _PROGRESS_S:
                told_s = time.perf_counter()
                _tell(f"{whole.runs:,} of {len(seeds):,} worlds")
    whole.wall_s = time.perf_counter() - begun_s
    text = tables(whole)
    print(text)
    violated = sorted(whole.violations, key=lambda found: found[0])
    for seed, violation in violated[:_SHRUNK]:
        kept, outcome = shrunk(seed)
        numbers = ",".join(map(str, kept))
        print(f"\nseed {seed} violates {violation.invariant!r}; shrunk:")
        print(_described(scenario_of(seed).keeping(kept), outcome))
        print(f"repeat it: python -P -m benchmarks.fire --seed {seed} --keep={numbers}")
    if options.write:
        words = in_words([seed for seed, _ in violated])
        head = _HEAD.format(seeds=options.seeds, machine=processor(), violated=words, worlds=text)
        _write(head, mutants=False)
    return int(bool(violated))


def _tell(news: str) -> None:
    """Report what a run of an hour has found so far."""
    print(news, file=sys.stderr, flush=True)


def in_words(seeds: Sequence[int]) -> str:
    """How many worlds violate an invariant, and the first of them; seeds: theirs, ascending."""
    if not seeds:
        return "Every invariant holds in every world."
    named = ", ".join(map(str, seeds[:_SHRUNK]))
    more = f" and {len(seeds) - _SHRUNK} more" if len(seeds) > _SHRUNK else ""
    verb = "world violates" if len(seeds) == 1 else "worlds violate"
    noun = "seed" if len(seeds) == 1 else "seeds"
    return f"{len(seeds)} {verb} an invariant: {noun} {named}{more}."


def _mutants(most: int, jobs: int) -> tuple[str, list[str]]:
    """The table of the deliberate bugs, and those that should be found and are not."""
    with multiprocessing.Pool(jobs, initializer=_quiet) as pool:
        search = partial(found, seeds=range(most))
        results = list(zip(MUTANTS, pool.imap(search, MUTANTS), strict=True))
    count = sum(result is not None for _, result in results)
    text = _MUTANTS.format(most=most, found=count, all=len(results), table=mutant_table(results))
    return text, [name for name, result in results if result is None and name not in UNSEEN]


def _quiet() -> None:
    logging.disable(logging.CRITICAL)


def _write(text: str, *, mutants: bool) -> None:
    """Replace one part of the table, and keep the other."""
    known = TABLE.read_text() if TABLE.exists() else ""
    head, mark, rest = known.partition(_MARK)
    TABLE.write_text(head + text if mutants else text.rstrip("\n") + "\n" + mark + rest)


if __name__ == "__main__":
    sys.exit(main())
