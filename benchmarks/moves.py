"""Measures moves on real clusters and writes `moves.md`: `python -P -m benchmarks.moves`."""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.machine import processor
from benchmarks.moves_automq import automq
from benchmarks.moves_kafka import replicated

TABLE: Final = Path(__file__).with_name("moves.md")
SECTIONS: Final[dict[str, tuple[str, Callable[[Path], str]]]] = {
    "automq": ("AutoMQ", automq),
    "replicated": ("Replicated Kafka", replicated),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=SECTIONS)
    given = parser.parse_args()
    for key in [given.only] if given.only else SECTIONS:
        title, measure = SECTIONS[key]
        with tempfile.TemporaryDirectory(prefix="plimsoll-") as folder:
            print(title, measure(Path(folder)))


if __name__ == "__main__":
    main()
