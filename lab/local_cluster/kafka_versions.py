"""Kafka versions that the local cluster can start: those whose jars are pinned."""

from functools import cache
from pathlib import Path
from typing import Final

from clients.jvm.jars import JarPin, read_pins
from model.errors import ConfigError

PINS: Final = Path(__file__).with_name("jars.tsv")
DEFAULT_VERSION: Final = "4.3.1"
_SET: Final = "kafka-"
_FIRST_SNAPSHOT: Final = (4, 4)


def set_of(version: str) -> str:
    """The set of pins of one version."""
    return _SET + version


def checkpoint_of(version: str) -> Path:
    """Feature levels of a new cluster of a version, made by `lab.local_cluster.pin`."""
    return Path(__file__).with_name(f"bootstrap-{version}.checkpoint")


def checkpoint_path(version: str) -> Path:
    """Where a new broker expects its checkpoint, in the first of its log directories.

    Since 4.4 it is the first snapshot of the cluster's metadata (KIP-1170).
    """
    if release(version) < _FIRST_SNAPSHOT:
        return Path("bootstrap.checkpoint")
    return Path("__cluster_metadata-0", "00000000000000000000-0000000000.checkpoint")


@cache
def pinned_versions() -> tuple[str, ...]:
    """All versions with pinned jars, the oldest first."""
    rows = PINS.read_text("utf-8").splitlines()[1:]
    sets = {row.split("\t")[0] for row in rows}
    found = {name.removeprefix(_SET) for name in sets if name.startswith(_SET)}
    return tuple(sorted(found, key=release))


def release(version: str) -> tuple[int, ...]:
    """A version as numbers, to compare it: (4, 3, 1).

    Raises ValueError for anything but numbers between dots.
    """
    return tuple(int(part) for part in version.split("."))


def pinned_version(wanted: str) -> str:
    """The pinned version of this name, or of this release, such as 4.0.

    Raises ConfigError, which lists the pinned versions.
    """
    versions = pinned_versions()
    matching = [v for v in versions if wanted in (v, v.rpartition(".")[0])]
    if not matching:
        raise ConfigError(
            f"no jars of Kafka {wanted} are pinned; choose {', '.join(versions[:-1])} or "
            f"{versions[-1]}"
        )
    return matching[-1]


def kafka_pins(version: str = DEFAULT_VERSION) -> tuple[JarPin, ...]:
    """Pinned jars of the local brokers. Raises KeyError for a version without pins."""
    return read_pins(PINS, set_of(version))


def s3_pins() -> tuple[JarPin, ...]:
    """Pinned jar of the local S3."""
    return read_pins(PINS, "s3proxy")
