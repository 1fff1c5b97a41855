"""Kafka versions by name, and pins of a further one."""

from collections.abc import Sequence

import pytest

from clients.jvm.jars import JarPin
from lab.local_cluster.kafka_versions import (
    DEFAULT_VERSION,
    checkpoint_of,
    checkpoint_path,
    kafka_pins,
    pinned_version,
    pinned_versions,
    release,
)
from lab.local_cluster.pin import with_set
from model.errors import ConfigError


def test_the_pinned_versions_begin_with_3_7_and_include_the_default() -> None:
    releases = [release(version) for version in pinned_versions()]
    assert releases == sorted(releases)
    assert releases[0][:2] == (3, 7)
    assert DEFAULT_VERSION in pinned_versions()


@pytest.mark.parametrize("version", pinned_versions())
def test_a_version_has_its_own_kafka_the_tier_and_a_checkpoint(version: str) -> None:
    """One configuration of the log serves all: older versions need a bridge to it."""
    pins = [pin.coordinate.split(":") for pin in kafka_pins(version)]
    kafka = [parts for parts in pins if parts[0] == "org.apache.kafka"]
    assert {parts[2] for parts in kafka} == {version}
    assert any(parts[1] == "kafka-storage" and len(parts) == 4 for parts in kafka)
    assert checkpoint_of(version).stat().st_size > 200
    names = {parts[1] for parts in pins}
    assert {"log4j-core", "log4j-slf4j-impl"} <= names
    assert ("log4j-1.2-api" in names) == (release(version) < (4, 1))


@pytest.mark.parametrize("wanted", ["4.3.1", "4.3"])
def test_a_version_is_named_exactly_or_by_its_release(wanted: str) -> None:
    assert pinned_version(wanted) == "4.3.1"


@pytest.mark.parametrize("wanted", ["4", "", ".", "4.3.", "4.3.10", "2.8", "../4.3.1"])
def test_an_unknown_version_is_refused_with_those_that_are_known(wanted: str) -> None:
    with pytest.raises(ConfigError) as caught:
        pinned_version(wanted)
    for version in pinned_versions():
        assert version in str(caught.value)


def test_the_first_snapshot_is_the_checkpoint_since_4_4() -> None:
    assert str(checkpoint_path("4.3.1")) == "bootstrap.checkpoint"
    assert checkpoint_path("4.4.0").parent.name == "__cluster_metadata-0"
    assert checkpoint_path("4.10.0") == checkpoint_path("4.4.0")


def lines_of(sets: Sequence[tuple[str, str]]) -> list[str]:
    return ["set\tmaven coordinate", *(f"{name}\t{jar}\t1\tff" for name, jar in sets)]


def test_a_set_of_pins_is_replaced_and_the_others_stay() -> None:
    lines = lines_of([("kafka-1.0", "a:b:1"), ("kafka-1.0.1", "a:b:2"), ("s3proxy", "c:d:1")])
    pin = JarPin(coordinate="a:b:9", size_bytes=5, sha256="ee")
    assert with_set(lines, "kafka-1.0", [pin]) == [lines[0], *lines[2:], "kafka-1.0\ta:b:9\t5\tee"]
