"""A day's load vectors become statistics by hour.

Spark's Python workers run `hourly`, so nothing but numpy and pyarrow is imported here.
"""

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from collector.history.statistics import STATISTICS, dense, statistics
from collector.spark.vectors import VECTORS

HOUR_MS: Final = 3_600_000
QUANTITIES: Final = tuple(f.name for f in VECTORS if f.type == pa.float64())
"""What is kept of a vector: all that is a figure."""

NEEDED: Final = pa.schema(
    [
        *(VECTORS.field(name) for name in ("topic", "partition", "time_ms")),
        *(pa.field(q, pa.float32()) for q in QUANTITIES),
    ]
)
"""Of vectors, what hours are made of, as narrow as it may be."""

HOURS: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("hour", pa.int32()),
        *(
            pa.field(f"{q}_{s}", pa.int32() if s == "samples" else pa.float32())
            for q in QUANTITIES
            for s in STATISTICS
        ),
    ]
)
"""One row per partition and hour: statistics of the vectors of that hour.

hour: hours since the epoch. p95 is exact: one of the values. NaN where no vector of
the hour knew the quantity; samples: vectors that did.
"""


def hourly(vectors: pa.Table) -> pa.Table:
    """Compute hourly statistics, schema `HOURS`, in no particular order.

    vectors: schema `VECTORS` or `NEEDED`; NaN, infinite and negative figures do not count.
    """
    ids, row = distinct_partitions(vectors)
    hour = vectors["time_ms"].to_numpy() // HOUR_MS
    oldest = int(hour.min()) if len(hour) else 0
    span = int(hour.max(initial=oldest)) - oldest + 1
    cells, group = dense(row * span + hour - oldest)
    found = ids.take(pa.array(cells // span)).append_column("hour", pa.array(oldest + cells % span))
    for name in QUANTITIES:
        for key, values in statistics(group, vectors[name].to_numpy(), len(cells)).items():
            found = found.append_column(f"{name}_{key}", pa.array(values))
    return found.cast(HOURS)


def distinct_partitions(table: pa.Table) -> tuple[pa.Table, NDArray[np.int64]]:
    """Return each topic and partition of a table once, as p rows in no particular order.

    Also (n,) the position in them of each of the table's rows. Topics must not be null.
    """
    topics = table["topic"].combine_chunks().dictionary_encode()
    topic = topics.indices.to_numpy().astype(np.int64)
    partition = table["partition"].to_numpy().astype(np.int64)
    partitions = int(partition.max(initial=0)) + 1
    codes, row = dense(topic * partitions + partition)
    ids = {
        "topic": topics.dictionary.take(pa.array(codes // partitions)),
        "partition": pa.array(codes % partitions, pa.int32()),
    }
    return pa.table(ids), row
