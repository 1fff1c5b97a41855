"""The source of each quantity in the load vectors of a cluster."""

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from collector.spark.vectors import BY, NOBODY, ORIGINS

UNKNOWN: Final = "nobody"
_WHY: Final[Mapping[tuple[str, str], str]] = {
    ("net_in", "probe"): "offsets, and how far logs grew",
    ("net_in", "automq"): "its meter of the partition, as logs do not suffice",
    ("net_in", "cruise-control"): "its rate of the topic, split by new records",
    ("net_in", "prometheus"): "its rates, as logs do not suffice",
    ("net_out", "probe"): "what groups have committed",
    ("net_out", "assumed"): "no reporter and no commits: taken from bytes in, or 0",
    ("net_out", "automq"): "its meter of the partition, less its lag",
    ("net_out", "cruise-control"): "its rate of the topic, split by bytes in",
    ("net_out", "prometheus"): "its rates, per topic split by bytes in",
    ("total_bytes", "probe"): "log directories and offsets",
    ("total_bytes", "automq"): "its size of the partition, as directories do not show it",
    ("cpu", "cruise-control"): "the broker's CPU, split by bytes in and out",
    ("cpu", "prometheus"): "the broker's CPU, split by bytes in and out",
    ("cpu", "assumed"): "its broker reports none: by traffic, at the others' cost",
    ("requests", "cruise-control"): "the broker's requests, split by traffic",
    ("requests", "prometheus"): "its counts, per broker split by traffic",
    ("requests", "assumed"): "its broker reports none: by traffic, at the others' cost",
}
_NOBODY_WHY: Final = "no source that was found reports it"


def origins(vectors: pa.Table, topics: Iterable[str]) -> dict[str, dict[str, int]]:
    """Count the partitions of these topics by quantity and by source.

    vectors: schema `VECTORS`.
    """
    known = pa.array(list(topics), pa.string())
    vectors = vectors.filter(pc.is_in(vectors["topic"], value_set=known))
    found = {}
    for quantity, column in BY.items():
        counts = pc.value_counts(vectors[column].combine_chunks()).to_pylist()
        by_code = {row["values"]: row["counts"] for row in counts}
        named = {name: by_code.get(code, 0) for code, name in enumerate(ORIGINS)}
        named[UNKNOWN] = by_code.get(NOBODY, 0)
        found[quantity] = {name: count for name, count in named.items() if count}
    return found


def why(quantity: str, origin: str) -> str:
    """Return the reason why a source is used for a quantity, as a phrase."""
    return _WHY.get((quantity, origin), _NOBODY_WHY)
