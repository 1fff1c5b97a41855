"""The remote tier seen through S3: the proof that a partition's segments are there."""

import base64
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from model.ids import PartitionId
from model.units import bytes_text, count_text

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """Where the tier's objects can be seen."""

    endpoint_url: str | None = None
    """None for AWS itself."""
    bucket: str
    prefix: str = ""
    """Put before every key as it stands."""
    access_key: str | None = None
    """None takes boto3's usual places: environment, profile, instance role."""
    secret_key: str | None = field(default=None, repr=False)


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
            sizes = list(self._sizes(self.folder(pid, topic_id)))
        except (BotoCoreError, ClientError) as exc:
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

    def _sizes(self, prefix: str) -> Iterator[int]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._settings.bucket, Prefix=prefix
        )
        for page in pages:
            for entry in page.get("Contents", ()):
                if entry["Key"].endswith(".log"):
                    yield entry["Size"]

    @cached_property
    def _client(self) -> "S3Client":
        import boto3  # 0.3 s
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self._settings.endpoint_url,
            aws_access_key_id=self._settings.access_key,
            aws_secret_access_key=self._settings.secret_key,
            region_name="us-east-1" if self._settings.endpoint_url else None,
            config=Config(
                s3={"addressing_style": "path"},
                connect_timeout=_TIMEOUT_S,
                read_timeout=_TIMEOUT_S,
                retries={"total_max_attempts": 2},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )


def kafka_text(topic_id: str) -> str:
    """A topic id as Kafka writes it: URL-safe base64 without padding."""
    raw = uuid.UUID(topic_id).bytes
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
