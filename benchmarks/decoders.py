"""How fast metrics are decoded on one core: `python -P -m benchmarks.decoders`.

Writes `decoders.md`. Records are as a cluster of 2,000 topics, 20,000 partitions and
50 brokers sends them; they come in batches, as Spark hands them over.
"""

import statistics
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.machine import processor
from collector.reports import automq_metrics, cruise_control_metrics

TABLE: Final = Path(__file__).with_name("decoders.md")
RECORDS: Final = 1_000_000
BATCHES: Final = (10_000, 50_000)
RUNS: Final = 7
TOPICS, PARTITIONS, BROKERS = 2_000, 20_000, 50


def automq() -> Iterator[bytes]:
    """Each partition with its three figures; each broker with four."""
    for number in range(RECORDS):
        time_ms, broker = 1_700_000_000_000 + number, number % BROKERS
        if number % (PARTITIONS // BROKERS) == 0:
            head = struct.pack(">bbqii", 1, 0, time_ms, broker, 0)
            yield head + struct.pack(">i" + 4 * "bd", 4, 3, 1.0, 4, 0.0, 5, 0.0, 6, 2.0)
            continue
        topic = b"team-%d.events.v1" % (number % TOPICS)
        head = struct.pack(">bbqiii", 0, 0, time_ms, broker, 0, len(topic))
        figures = struct.pack(">i" + 3 * "bd", 3, 0, 1e6, 1, 2e6, 2, float(number))
        yield head + topic + struct.pack(">i", number % 10) + figures


def cruise_control() -> Iterator[bytes]:
    """Sizes of partitions, rates of topics, and a broker's own figures."""
    for number in range(RECORDS):
        scope = (2, 1, 2, 1, 2, 1, 2, 1, 2, 0)[number % 10]
        head = struct.pack(
            ">BBBqi", scope, 0, (5, 2, 4)[scope], 1_700_000_000_000 + number, number % BROKERS
        )
        topic = b"team-%d.events.v1" % (number % TOPICS)
        named = struct.pack(">i", len(topic)) + topic if scope else b""
        partition = struct.pack(">i", number % 10) if scope == 2 else b""
        yield head + named + partition + struct.pack(">d", float(number))


def rate(decode: Callable[[pa.Array], Any], records: pa.Array, batch: int) -> float:
    """Million records per CPU second, the median of the runs."""
    batches = [records.slice(at, batch) for at in range(0, len(records), batch)]
    taken = []
    for _ in range(RUNS):
        before = time.process_time()
        rows = sum(len(decode(part).table) for part in batches)
        taken.append(time.process_time() - before)
        assert rows == len(records)
    return len(records) / statistics.median(taken) / 1e6


def main() -> None:
    lines = [
        f"Million records per CPU second on one core, medians of {RUNS} runs over "
        f"{RECORDS:,} records; `python -P -m benchmarks.decoders`, {processor()}, "
        f"numpy {np.__version__}, pyarrow {pa.__version__}.\n\n",
        f"| layout | {' | '.join(f'batches of {b:,}' for b in BATCHES)} |\n",
        "|---|" + len(BATCHES) * "---|" + "\n",
    ]
    for name, decode, write in (
        ("AutoMQ", automq_metrics.decode, automq),
        ("Cruise Control", cruise_control_metrics.decode, cruise_control),
    ):
        records = pa.array(list(write()), pa.binary())
        rates = [f"{rate(decode, records, batch):.1f}" for batch in BATCHES]
        lines.append(f"| {name} | {' | '.join(rates)} |\n")
    TABLE.write_text("".join(lines))
    print(TABLE.read_text())


if __name__ == "__main__":
    main()
