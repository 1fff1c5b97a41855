"""A small cluster as files that a user would have."""

from collections.abc import Sequence
from pathlib import Path

PLACES = ((1, 2), (1, 2), (1, 2), (2, 1), (2, 3), (1, 3))
RATES = (3.0, 3.0, 2.5, 1.5, 1.0, 1.0)


def described(topic: str, places: Sequence[tuple[int, ...]]) -> str:
    """A topic as Kafka 4 describes it; the first replica leads, all are in sync."""
    lists = [",".join(map(str, place)) for place in places]
    lines = [
        f"Topic: {topic}\tTopicId: sE05QnUPQQ-FLs5ekB8NLQ\tPartitionCount: "
        f"{len(places)}\tReplicationFactor: {len(places[0])}\tConfigs: \n",
        *(
            f"\tTopic: {topic}\tPartition: {i}\tLeader: {text[0]}\tReplicas: {text}"
            f"\tIsr: {text}\tElr: \tLastKnownElr: \n"
            for i, text in enumerate(lists)
        ),
    ]
    return "".join(lines)


def write_cluster_files(folder: Path) -> None:
    """`describe.txt` of 8 partitions on brokers 1 to 3, and their `loads.csv`."""
    text = described("audit", ((1,), (2,))) + described("orders", PLACES)
    (folder / "describe.txt").write_text(text)
    loads = [
        f"orders,{i},{rate * 1e6:.0f},{rate * 1e6:.0f},{rate * 3e8:.0f}\n"
        for i, rate in enumerate(RATES)
    ]
    audit = ["audit,0,400000,0,90000000\n", "audit,1,400000,0,90000000\n"]
    header = "topic,partition,net_in,net_out,disk\n"
    (folder / "loads.csv").write_text("".join([header, *loads, *audit]))
