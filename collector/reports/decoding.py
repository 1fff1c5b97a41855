"""Records of a metric topic become reports.

Spark's Python workers run this, so nothing but numpy and pyarrow is imported here.
"""

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

from collector.reports import automq_metrics, cruise_control_metrics
from collector.reports.convert import automq_reports, cruise_control_reports
from collector.reports.report_columns import AUTOMQ, CRUISE_CONTROL

Found = tuple[pa.Table, dict[str, int]]
"""Reports, and how many records are none, by reason."""


def automq(records: pa.Array) -> Found:
    """Out of a binary array."""
    found = automq_metrics.decode(records)
    return automq_reports(found.metrics), found.skipped


def cruise_control(records: pa.Array) -> Found:
    """Out of a binary array."""
    found = cruise_control_metrics.decode(records)
    return cruise_control_reports(found.metrics), found.skipped


DECODERS: Final[Mapping[str, Callable[[pa.Array], Found]]] = {
    AUTOMQ: automq,
    CRUISE_CONTROL: cruise_control,
}
"""By source."""
