"""Verify through S3 that a partition's segments are in the remote tier."""

import base64
import uuid
from functools import cached_property
from typing import TYPE_CHECKING, Final

from clients.driver_errors import s3_failures
from clients.s3 import S3Settings, client_of, listed
from executor.platforms.platform import MoveFinding
from model.ids import PartitionId
from model.units import bytes_text, count_text

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_NONE: Final = (
    "S3 has none of its segments under the names that LocalTieredStorage and Aiven's "
    "plug-in give them"
)


class RemoteTier:
    """Lists segments as Kafka's LocalTieredStorage or Aiven's plug-in names them.

    Keys are `<topic>-<partition>-<topic id>/<base offset>-<segment id>.log` for the former and
    `<topic>-<topic id>/<partition>/...` for the latter (its ObjectKeyFactory); the first that
    exist are used. Other RemoteStorageManagers may use other names, so that nothing is found.
    """

    def __init__(self, settings: S3Settings) -> None:
        self._settings = settings

    def listing(self, pid: PartitionId, topic_id: str) -> MoveFinding:
        """Return count (`tier_segments`) and bytes (`tier_bytes`) of the partition's segments.

        A plug-in may have compressed the objects. Both are None where the tier cannot be read;
        the note says why.
        """
        sizes: list[int] = []
        try:
            for folder in self.folders(pid, topic_id):
                found = listed(self._client, self._settings.bucket, folder)
                sizes = sizes or [size for key, size in found if key.endswith(".log")]
        except s3_failures() as exc:
            return _finding(f"the tier cannot be read through S3 ({exc})", None, None)
        if not sizes:
            return _finding(_NONE, 0, 0)
        seen = f"{count_text(len(sizes), 'segment')}, {bytes_text(sum(sizes))}"
        return _finding(f"in the tier, seen through S3: {seen}", len(sizes), sum(sizes))

    def folders(self, pid: PartitionId, topic_id: str) -> tuple[str, str]:
        """The possible key prefixes of one partition's objects."""
        prefix, name = self._settings.prefix, kafka_text(topic_id)
        return f"{prefix}{pid}-{name}/", f"{prefix}{pid.topic}-{name}/{pid.partition}/"

    @cached_property
    def _client(self) -> "S3Client":
        return client_of(self._settings)


def _finding(note: str, segments: int | None, size_bytes: int | None) -> MoveFinding:
    return MoveFinding(note=note, detail={"tier_segments": segments, "tier_bytes": size_bytes})


def kafka_text(topic_id: str) -> str:
    """Format a topic id as Kafka does: URL-safe base64 without padding."""
    raw = uuid.UUID(topic_id).bytes
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
