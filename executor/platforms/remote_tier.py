"""Verify through S3 that a partition's segments are in the remote tier."""

import base64
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from clients.driver_errors import s3_failures
from clients.s3 import S3Settings, client_of, listed
from model.ids import PartitionId
from model.units import bytes_text, count_text

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_NONE: Final = (
    "S3 has none of its segments under the names that LocalTieredStorage and Aiven's "
    "plug-in give them"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TierListing:
    """The segments found for one partition."""

    note: str
    """For people."""
    segments: int | None = None
    """None where the listing failed."""
    size_bytes: int | None = None
    """Total bytes of the objects, which a plug-in may have compressed."""

    @property
    def detail(self) -> dict[str, Any]:
        """For the journal."""
        return {"tier_segments": self.segments, "tier_bytes": self.size_bytes}


class RemoteTier:
    """Lists segments as Kafka's LocalTieredStorage or Aiven's plug-in names them.

    Keys are `<topic>-<partition>-<topic id>/<base offset>-<segment id>.log` for the former and
    `<topic>-<topic id>/<partition>/...` for the latter (its ObjectKeyFactory); the first that
    exist are used. Other RemoteStorageManagers may use other names, so that nothing is found.
    """

    def __init__(self, settings: S3Settings) -> None:
        self._settings = settings

    def listing(self, pid: PartitionId, topic_id: str) -> TierListing:
        """Return count and bytes of the partition's segments; errors as words."""
        sizes: list[int] = []
        try:
            for folder in self.folders(pid, topic_id):
                sizes = sizes or list(self._segments(folder))
        except s3_failures() as exc:
            return TierListing(note=f"the tier cannot be read through S3 ({exc})")
        if not sizes:
            return TierListing(note=_NONE, segments=0, size_bytes=0)
        seen = f"{count_text(len(sizes), 'segment')}, {bytes_text(sum(sizes))}"
        return TierListing(
            note=f"in the tier, seen through S3: {seen}", segments=len(sizes), size_bytes=sum(sizes)
        )

    def folders(self, pid: PartitionId, topic_id: str) -> tuple[str, str]:
        """The possible key prefixes of one partition's objects."""
        prefix, name = self._settings.prefix, kafka_text(topic_id)
        return f"{prefix}{pid}-{name}/", f"{prefix}{pid.topic}-{name}/{pid.partition}/"

    def _segments(self, prefix: str) -> Iterator[int]:
        for key, size in listed(self._client, self._settings.bucket, prefix):
            if key.endswith(".log"):
                yield size

    @cached_property
    def _client(self) -> "S3Client":
        return client_of(self._settings)


def kafka_text(topic_id: str) -> str:
    """Format a topic id as Kafka does: URL-safe base64 without padding."""
    raw = uuid.UUID(topic_id).bytes
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
