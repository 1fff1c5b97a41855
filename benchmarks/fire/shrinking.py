"""Shrink a failing seed: the fewest of its faults with which it still fails in the same way."""

from collections.abc import Callable

from benchmarks.fire.fire_world import Outcome, outcome_of
from benchmarks.fire.scenarios import scenario_of


def shrunk(seed: int, run: Callable[..., Outcome] = outcome_of) -> tuple[tuple[int, ...], Outcome]:
    """The numbers of the faults that remain, and what happens with them.

    No single one of them can be left out. Raises ValueError where the seed does not fail.
    """
    scenario = scenario_of(seed)
    kept, outcome = tuple(range(len(scenario.faults))), run(scenario)
    if outcome.violation is None:
        raise ValueError(f"seed {seed} does not fail")
    invariant, begin = outcome.violation.invariant, 0
    while begin < len(kept):
        fewer = kept[:begin] + kept[begin + 1 :]
        found = run(scenario.keeping(fewer))
        if found.violation is not None and found.violation.invariant == invariant:
            kept, outcome = fewer, found
        else:
            begin += 1
    return kept, outcome
