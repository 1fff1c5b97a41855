"""Kafka versions that tests run on, and the record of those runs."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from executor.client.cluster_admin import ClusterAdmin
from lab.local_cluster.kafka_versions import pinned_version, pinned_versions, release
from model.ids import BrokerId

USUAL: Final = ("3.9", "4.0", pinned_versions()[-1])
"""Beside the default version, which all other tests run on."""
RECORD: Final = Path(__file__).parents[2] / "docs" / "reference" / "tested-versions.json"
SKIPS_TIERED: Final = "follower.fetch.last.tiered.offset.enable"
CORDONED: Final = "cordoned.log.dirs"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What one Kafka version has that an older one lacks, as a broker says itself."""

    skips_tiered: bool
    """New replicas of tiered topics copy only what the tier does not have (KIP-1023)."""
    cordons: bool
    """Log directories can be cordoned (KIP-1066)."""

    @classmethod
    def expected(cls, version: str) -> "Capabilities":
        """By Kafka's release notes: both came with 4.3."""
        new = release(version) >= (4, 3)
        return cls(skips_tiered=new, cordons=new)

    @classmethod
    def observed(cls, admin: ClusterAdmin, broker: BrokerId) -> "Capabilities":
        """By the settings that a broker has."""
        known = admin.broker_configs(broker, (SKIPS_TIERED, CORDONED))
        return cls(skips_tiered=SKIPS_TIERED in known, cordons=CORDONED in known)


def chosen_versions() -> tuple[str, ...]:
    """A few, or with `PLIMSOLL_ALL_VERSIONS` all that are pinned; exact versions."""
    if all_versions():
        return pinned_versions()
    return tuple(map(pinned_version, USUAL))


def all_versions() -> bool:
    """Whether every pinned version is tested, and the runs are recorded."""
    return bool(os.environ.get("PLIMSOLL_ALL_VERSIONS"))


def record(version: str, passed: Mapping[str, bool]) -> None:
    """Add a run that has passed to the record, which the README shows; others of it stay."""
    known = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    known[version] = known.get(version, {}) | passed
    kept = {v: known[v] for v in pinned_versions() if v in known}
    RECORD.write_text(json.dumps(kept, indent=2) + "\n", "utf-8")
