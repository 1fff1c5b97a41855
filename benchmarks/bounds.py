"""The best bound and the best plan ever found for each instance, in `bounds.json`."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from benchmarks.measure import Measurement
from model.files import rounded

FILE: Final = Path(__file__).with_name("bounds.json")


class Bounds:
    """Instances by `name/seed`: digest, bound, objective.

    A record whose digest differs is of another instance, and starts again.
    """

    def __init__(self, path: Path = FILE) -> None:
        self._path = path
        self._best: dict[str, dict[str, Any]] = (
            json.loads(path.read_text()) if path.exists() else {}
        )

    def learn(self, found: Iterable[Measurement]) -> None:
        """Keep what is better than what was known, and write the file.

        Raises
        ------
        ValueError
            A bound lies above a valid plan: one of them is wrong.
        """
        for one in found:
            if one.valid:
                self._learn(one)
        self._path.write_text(json.dumps(self._best, indent=1, sort_keys=True) + "\n")

    def bound(self, one: Measurement) -> float:
        """The best bound proved for this instance."""
        return float(self._record(one)["bound"])

    def objective(self, one: Measurement) -> float:
        """The least F of a valid plan of this instance."""
        return float(self._record(one)["objective"])

    def _record(self, one: Measurement) -> dict[str, Any]:
        name = f"{one.instance}/{one.seed}"
        record = self._best.get(name)
        if record is None or record["digest"] != one.digest:
            record = {"digest": one.digest, "bound": 0.0, "objective": math.inf}
        return record

    def _learn(self, one: Measurement) -> None:
        assert one.objective is not None
        old = self._record(one)
        bound = max(float(old["bound"]), _down(one.bound or 0.0))
        objective = min(float(old["objective"]), rounded(one.objective))
        if bound > objective * (1 + 1e-6):
            raise ValueError(f"{one.key}: the bound {bound} lies above a valid plan of {objective}")
        self._best[f"{one.instance}/{one.seed}"] = {
            "digest": one.digest,
            "bound": bound,
            "objective": objective,
        }


def _down(value: float) -> float:
    """Nine digits, rounded down, so that a bound stays one."""
    near = rounded(value)
    return near if near <= value else near - abs(near) * 1e-8
