"""The archive of the brokers' classes: made once, used from then on, and not needed."""

from pathlib import Path

import pytest

from clients.jvm.jars import default_cache_dir, fetch
from clients.jvm.java import find_java
from lab.local_cluster.class_archive import class_flags, make_archive
from lab.local_cluster.kafka_versions import DEFAULT_VERSION, kafka_pins, s3_pins
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan

pytestmark = pytest.mark.kafka


@pytest.mark.slow
def test_brokers_take_their_classes_from_an_archive_once_it_is_made(tmp_path: Path) -> None:
    for pins in (kafka_pins(), s3_pins()):
        fetch(pins, default_cache_dir())
    (tmp_path / "jars").symlink_to(default_cache_dir() / "jars")
    java, loaded = find_java(), tmp_path / "loaded"
    assert class_flags(java, DEFAULT_VERSION, tmp_path) == []

    archive = make_archive(java, DEFAULT_VERSION, tmp_path)

    assert class_flags(java, DEFAULT_VERSION, tmp_path) == [f"-XX:SharedArchiveFile={archive}"]
    assert [path.name for path in archive.parent.iterdir()] == [archive.name]
    plan = LocalPlan(brokers=1, tier=False, jvm_flags={1: (f"-Xlog:class+load:file={loaded}",)})
    with LocalCluster(tmp_path, plan):
        lines = loaded.read_text("utf-8").splitlines()
    kafka = [line for line in lines if " kafka." in line or " org.apache.kafka." in line]
    shared = [line for line in kafka if line.endswith("source: shared objects file")]
    assert len(shared) > 0.8 * len(kafka) > 500
