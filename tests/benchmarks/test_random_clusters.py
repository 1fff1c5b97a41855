"""The eight seeded clusters are equal on every machine, and what their names say."""

import hashlib
import json
from typing import Any

import pytest

from benchmarks.cruise_format import snapshot_of
from benchmarks.random_clusters import CAPACITY, RESOURCES, SPECS, USED, random_cluster

DIGESTS = {
    "s1-6x300-rf3": "c37a1738a2c00932",
    "s2-10x500-rf1": "b3b27b3afe97da14",
    "sc4-50x5000-rf1-clumped": "de279fb23dab4622",
}
"""Of the clusters that Cruise Control's recorded plans are of."""


@pytest.mark.parametrize("name", DIGESTS)
def test_a_name_gives_the_same_cluster(name: str) -> None:
    text = json.dumps(random_cluster(name))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == DIGESTS[name]


@pytest.mark.parametrize("name", ["s1-6x300-rf3", "s2-10x500-rf1"])
def test_a_cluster_is_what_its_specification_says(name: str) -> None:
    spec, document = SPECS[name], random_cluster(name)
    snapshot = snapshot_of(document)
    assert len(snapshot.header.brokers) == spec.brokers
    assert len(snapshot) == spec.partitions
    assert {len(snapshot.replicas(row)) for row in range(len(snapshot))} == {spec.rf}
    for resource in RESOURCES if spec.disk else ("cpu", "nw_in", "nw_out"):
        used = sum(_loads(p, resource) for p in document["partitions"])
        expected_share = pytest.approx(USED[resource], rel=1e-3)
        assert used / (CAPACITY[resource] * spec.brokers) == expected_share


def _loads(partition: dict[str, Any], resource: str) -> float:
    others = len(partition["replicas"]) - 1
    followers = others * partition["followers"][resource] if others else 0.0
    return float(partition["load"][resource] + followers)
