"""The remote tier seen through S3: the proof that a partition's segments are there."""

import base64
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from executor.s3 import S3Settings, client_of, listed
from model.ids import PartitionId
from model.units import bytes_text, count_text

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True, slots=True, kw_only=True)
class TierListing:
    """What was seen of one partition's segments."""

    words: str
    """For people."""
    segments: int | None = None
    """None where the listing failed."""
    size_bytes: int | None = None

    @property
    def detail(self) -> dict[str, Any]:
        """For the journal."""
        return {"tier_segments": self.segments, "tier_bytes": self.size_bytes}


class Tier:
    """Lists segments as Kafka's LocalTieredStorage names them.

    Keys are `<topic>-<partition>-<topic id>/<base offset>-<segment id>.log`. Another
    RemoteStorageManager may name them otherwise; then nothing is found.
    """

    def __init__(self, settings: S3Settings) -> None:
        self._settings = settings

    def listing(self, pid: PartitionId, topic_id: str) -> TierListing:
        """Count and bytes of the partition's segments; a failure is told in words."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            sizes = list(self._segments(self.folder(pid, topic_id)))
        except (BotoCoreError, ClientError, ValueError) as exc:
            return TierListing(words=f"the tier cannot be seen through S3 ({exc})")
        seen = f"{count_text(len(sizes), 'segment')}, {bytes_text(sum(sizes))}"
        return TierListing(
            words=f"in the tier, seen through S3: {seen}",
            segments=len(sizes),
            size_bytes=sum(sizes),
        )

    def folder(self, pid: PartitionId, topic_id: str) -> str:
        """What the keys of one partition's objects begin with."""
        return f"{self._settings.prefix}{pid}-{kafka_text(topic_id)}/"

    def _segments(self, prefix: str) -> Iterator[int]:
        for key, size in listed(self._client, self._settings.bucket, prefix):
            if key.endswith(".log"):
                yield size

    @cached_property
    def _client(self) -> "S3Client":
        return client_of(self._settings)


def kafka_text(topic_id: str) -> str:
    """A topic id as Kafka writes it: URL-safe base64 without padding."""
    raw = uuid.UUID(topic_id).bytes
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
