"""The archive of the brokers' classes: `python -P -m lab.local_cluster.class_archive` makes it.

It is that of the default version, and takes about ten CPU seconds to make.
"""

import os
import signal
import tempfile
from pathlib import Path
from typing import Final

from clients.jvm.class_archive import archive_flags, archive_path, dump_archive, listing_flag
from clients.jvm.jars import default_cache_dir, fetch
from clients.jvm.java import Java, find_java
from lab.local_cluster.broker_properties import JVM_FLAGS, class_path
from lab.local_cluster.kafka_versions import DEFAULT_VERSION, kafka_pins

_BROKER: Final = "broker-1"
_END_S: Final = 120.0


def class_flags(java: Java, version: str, cache_dir: Path) -> list[str]:
    """JVM flags with which a broker uses the archive; none where it has not been made."""
    return archive_flags(java, f"kafka-{version}", _folder(cache_dir))


def make_archive(java: Java, version: str, cache_dir: Path) -> Path:
    """Start and end a broker, and make an archive of the classes that it has loaded.

    Raises
    ------
    OSError
        The Java has no modules.
    subprocess.SubprocessError
        The JVM cannot make one, or takes minutes.
    DownloadFailed, ClusterUnreachable
        As `LocalCluster.start`.
    """
    # It asks for the flags above.
    from lab.local_cluster.local_cluster import LocalCluster, LocalPlan

    archive = archive_path(java, f"kafka-{version}", _folder(cache_dir))
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as name:
        listed = Path(name, "classes")
        flags = {1: (listing_flag(listed),)}
        plan = LocalPlan(brokers=1, version=version, java=java, jvm_flags=flags)
        with LocalCluster(cache_dir, plan) as cluster:
            # The JVM writes the end of the list when it exits.
            os.kill(cluster.pids[_BROKER], signal.SIGTERM)
            cluster.kafka.admin.wait(
                "its broker does not end", lambda: _BROKER not in cluster.pids, timeout_s=_END_S
            )
        jars = class_path(fetch(kafka_pins(version), cache_dir))
        dump_archive(java, JVM_FLAGS, jars, listed, archive)
    return archive


def _folder(cache_dir: Path) -> Path:
    return cache_dir / "classes"


def main() -> int:
    """Make the archive for this machine's Java, unless there is one."""
    java, cache_dir = find_java(), default_cache_dir()
    if not class_flags(java, DEFAULT_VERSION, cache_dir):
        make_archive(java, DEFAULT_VERSION, cache_dir)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
