"""Reports as columns, the same for all reporters.

A report is what a metrics reporter says of a broker, of a topic on a broker, or of a partition
at one time. Spark's Python workers read this, so nothing but numpy and pyarrow is imported here.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

AUTOMQ: Final = "automq"
CRUISE_CONTROL: Final = "cruise-control"
PROMETHEUS: Final = "prometheus"

SOURCES: Final = (AUTOMQ, CRUISE_CONTROL, PROMETHEUS)
"""In the order in which they are asked for a figure."""

FRESH_MS: Final = {AUTOMQ: 60_000, CRUISE_CONTROL: 180_000, PROMETHEUS: 180_000}
"""A report older than this, three intervals at least, is not used."""

AHEAD_MS: Final = 30_000
"""A report further in the future than this is invalid: `clocks.Clocks` notices a clock that
is so wrong."""

FIGURES: Final = (
    "bytes_in",
    "bytes_out",
    "size_bytes",
    "requests",
    "cpu_cores",
    "cpu_share",
    "replication_in",
)

REPORTS: Final = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("time_ms", pa.int64()),
        pa.field("broker", pa.int32()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        *(pa.field(name, pa.float64()) for name in FIGURES),
    ]
)
"""One row per report; it has one figure or all, and NaN for those it has not.

source: AUTOMQ, CRUISE_CONTROL or PROMETHEUS. time_ms: by the reporter's clock. broker:
who reports. topic: null where it is the broker as a whole. partition: -1 where it is
all of the topic's partitions that the broker leads, or the broker.
bytes_in, bytes_out: bytes/s from producers, to consumers. size_bytes: of the log.
requests: of producers and of consumers that fetch, per second. cpu_cores: cores in
use. cpu_share: 0..1 of the broker's cores. replication_in: bytes/s from other brokers.
"""


def reports_of(source: str, columns: Mapping[str, Any]) -> pa.Table:
    """Return reports of one source, schema `REPORTS`; figures without a column are NaN.

    columns: time_ms, broker, topic and partition, (n,) each, and figures in their units.
    """
    rows = len(columns["time_ms"])
    absent = np.full(rows, np.nan)
    sources = pa.array([source]).take(pa.array(np.zeros(rows, np.int8)))
    known = {"source": sources, **columns}
    return pa.table([known.get(name, absent) for name in REPORTS.names], schema=REPORTS)
