"""Measures moves on real clusters: `python -P -m benchmarks.moves`, into `moves.md`.

With --only, the other sections of the table stay as they are.
"""

import argparse
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from benchmarks.machine import processor
from benchmarks.moves_automq import automq
from benchmarks.moves_kafka import replicated, tiered
from benchmarks.sections import known_sections

TABLE: Final = Path(__file__).with_name("moves.md")
SECTIONS: Final[dict[str, tuple[str, str, Callable[[Path], str]]]] = {
    "automq": (
        "AutoMQ",
        "Three nodes, their S3 on the same machine. Pacing defaults are lifted: 100 "
        "moves at once, in the cluster and on each node, though a run begins with 8 "
        "and widens by itself. Every partition has traffic; the single one holds "
        "520 MB.",
        automq,
    ),
    "tiered": (
        "Kafka with a remote tier",
        "Three brokers, segments of 8 MB, one replica, 1 MB/s of traffic, nothing "
        "deleted locally until the run says so (`--shorten-segments`). The plain move "
        "is of a topic of the same size without the tier. Disk and network are one "
        "machine here, where a plain move is as fast as it gets.",
        tiered,
    ),
    "replicated": (
        "Kafka, throttled",
        "Four brokers; one replica of each partition of a topic of two goes to the "
        "fourth, which is empty. Batches are of 128 kB at most: with those of up to "
        "1 MB, librdkafka's default, 78 % of the throttle was used, also by six copies "
        "of 400 MB, since a fetch of 1 MB cuts its last batch off and Kafka counts the "
        "part.",
        replicated,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=SECTIONS)
    given = parser.parse_args()
    texts = known_sections(TABLE)
    for key in [given.only] if given.only else SECTIONS:
        title, words, measure = SECTIONS[key]
        with tempfile.TemporaryDirectory(prefix="plimsoll-") as folder:
            texts[title] = f"## {title}\n\n{words}\n\n{measure(Path(folder))}"
        _write(texts)
    print(TABLE.read_text())


def _write(texts: Mapping[str, str]) -> None:
    head = (
        f"Moves carried out by the executor as `plimsoll apply` does, with a producer "
        f"(acks=all, idempotent) and a consumer that count every record; "
        f"`make bench-moves`, {processor()}.\n\n"
    )
    titles = [title for title, _, _ in SECTIONS.values() if title in texts]
    TABLE.write_text(head + "\n".join(texts[title] for title in titles))


if __name__ == "__main__":
    main()
