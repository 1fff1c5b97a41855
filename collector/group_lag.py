"""The lag of consumer groups, from two samples."""

from collections.abc import Collection
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from model.ids import TopicName
from model.snapshot.consumer_lag import ConsumerLag

_FIGURES: Final = ("time_ms", "groups", "latest", "group_offsets")


def consumer_lag(
    before: pa.Table | None, samples: pa.Table, topics: Collection[TopicName]
) -> ConsumerLag | None:
    """The lag of all groups that have committed on these topics; None if none has.

    before, samples: two samples of all partitions, schema `SAMPLES`, the older one first.
    """
    names, parts, now = _of_topics(samples, topics)
    known = (now["groups"] > 0) & (now["group_offsets"] >= 0)
    if not known.any():
        return None
    behind = np.where(known, now["groups"] * now["latest"] - now["group_offsets"], 0)
    behind = np.maximum(behind, 0)
    arriving = np.where(known, now["groups"] * _rates(before, topics, names, parts, now), 0.0)
    found, at = np.unique(names[known], return_inverse=True)
    records = np.bincount(at, behind[known], len(found))
    rates = np.bincount(at, arriving[known], len(found))
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.where(rates > 0, records / rates, -1.0)
    last = int(np.lexsort((records, seconds))[-1])
    return ConsumerLag(
        records=int(records.sum()),
        seconds=float(seconds[last]) if seconds[last] >= 0 else None,
        topic=TopicName(str(found[last])),
    )


def _rates(
    before: pa.Table | None,
    topics: Collection[TopicName],
    names: NDArray[Any],
    parts: NDArray[Any],
    now: dict[str, NDArray[Any]],
) -> NDArray[np.float64]:
    """(n,) records per second of each partition; 0 where two samples do not tell."""
    rates = np.zeros(len(parts), np.float64)
    if before is None:
        return rates
    old_names, old_parts, old = _of_topics(before, topics)
    if not (np.array_equal(old_names, names) and np.array_equal(old_parts, parts)):
        return rates
    seconds = (now["time_ms"] - old["time_ms"]) / 1000
    grown = np.maximum(now["latest"] - old["latest"], 0)
    np.divide(grown, seconds, out=rates, where=seconds > 0)
    return rates


def _of_topics(
    samples: pa.Table, topics: Collection[TopicName]
) -> tuple[NDArray[Any], NDArray[Any], dict[str, NDArray[Any]]]:
    """Topic, partition and figures of each sample of these topics, in order."""
    wanted = pc.is_in(samples["topic"], value_set=pa.array(sorted(topics), pa.string()))
    rows = samples.filter(wanted).sort_by([("topic", "ascending"), ("partition", "ascending")])
    figures = {name: rows[name].to_numpy().astype(np.int64) for name in _FIGURES}
    return rows["topic"].to_numpy(), rows["partition"].to_numpy(), figures
