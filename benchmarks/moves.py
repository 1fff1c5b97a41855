"""Measures moves on real clusters: `python -P -m benchmarks.moves`, into `moves.md`.

With --only, the other sections of the table stay as they are.
"""

from pathlib import Path
from typing import Final

from benchmarks.machine import processor
from benchmarks.moves_automq import automq
from benchmarks.moves_drain import drained
from benchmarks.moves_kafka import replicated, tiered
from benchmarks.removals import removals
from benchmarks.sections import Section, measure_sections

TABLE: Final = Path(__file__).with_name("moves.md")
WORDS: Final = (
    "Moves executed as by `plimsoll apply`, with a producer (acks=all, idempotent) and "
    "a consumer that count every record; `make bench-moves`"
)
SECTIONS: Final[dict[str, Section]] = {
    "automq": (
        "AutoMQ",
        "Three nodes, their S3 on the same machine. Pacing defaults are lifted: 100 "
        "moves at once, in the cluster and on each node, though a run begins with 8 "
        "and raises that by itself. Every partition has traffic; the single one "
        "holds 520 MB.",
        automq,
    ),
    "tiered": (
        "Kafka with a remote tier",
        "Three brokers, segments of 8 MB, one replica, 1 MB/s of traffic, nothing "
        "deleted locally until the run lowers the retention (`--lower-segment-bytes`). "
        "The plain move is of a topic of the same size without the tier. Disk and "
        "network are on one machine here, so a plain move is as fast as possible.",
        tiered,
    ),
    "replicated": (
        "Kafka, throttled",
        "Four brokers; one of two replicas of each partition of a topic moves to the "
        "fourth, which is empty. Batches have at most 128 kB: with batches of up to "
        "1 MB, librdkafka's default, 78 % of the throttle was used, also by six copies "
        "of 400 MB, because a fetch of 1 MB cuts off its last batch and Kafka counts "
        "the part.",
        replicated,
    ),
    "drained": (
        "Kafka with a remote tier: a broker drained",
        "Four brokers, 200 partitions of 20 MB with two replicas each, segments of 8 MB, 1 MB/s "
        "of traffic; each broker has 100 of the replicas. `plimsoll broker remove 4` with "
        "loads observed for 5 s, in a new cluster each time; all that is still on the local "
        "disks is copied, without a throttle. The broker counts as empty once another client "
        "no longer sees it in any list of replicas. The first run on a machine compiles the "
        "planner's loops.",
        drained,
    ),
    "removals": (
        "The plan of a removal",
        "`plimsoll broker remove 0` on paper: 50 brokers in three racks, 5,000 partitions with "
        "three replicas on their disks, default goals and limits, each plan in a process of its "
        "own with warm compiled code. Tails are Zipf exponents of topics and of partitions "
        "within a topic: 0.9 and 0.4, heavier 1.3 and 0.8, heaviest 1.6 and 1.2. The plan counts "
        "from the snapshot to the checked plan, the import of planner and evaluator included; "
        "the process also makes the cluster. The bound: each replica on the broker is copied "
        "once; moves include changes of leaders alone. Aims: 5 s, 1.02.",
        removals,
    ),
}


def main() -> None:
    measure_sections(TABLE, f"{WORDS}, {processor()}.", SECTIONS)


if __name__ == "__main__":
    main()
