"""S3: the client, and one bucket with conditional writes.

Of writes with a condition (S3's If-None-Match and If-Match) one succeeds. A writer whose answer
was lost may have succeeded: it then compares the object with what it wrote. So two writers must
never write the same bytes to one key and both rely on having succeeded.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from clients.driver_errors import s3_code, s3_errors, s3_status
from model.bounded import MOST_BYTES
from model.errors import ArchiveUnreachable, ConfigError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_TIMEOUT_S: Final = 5.0
_TRIES: Final = 3
"""S3 asks for a retry where two conditional writes collide."""
_CONFLICT, _PRECONDITION = 409, 412
_GONE: Final = "NoSuchKey"
_NO_WRITE: Final = '"00000000000000000000000000000000"'
"""An ETag that no object has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """A bucket, and how to reach it."""

    endpoint_url: str | None = None
    """None for AWS itself."""
    bucket: str
    prefix: str = ""
    """Prepended to every key unchanged."""
    access_key: str | None = None
    """None for boto3's usual sources: environment, profile, instance role."""
    secret_key: str | None = field(default=None, repr=False)


def client_of(settings: S3Settings, timeout_s: float = _TIMEOUT_S) -> "S3Client":
    """Create a client that gives up after two attempts; it connects at the first call.

    Raises ValueError where the endpoint is not a URL.
    """
    from boto3.session import Session  # 0.3 s
    from botocore.config import Config

    # A session of its own: boto3's shared one is not thread-safe.
    return Session().client(
        "s3",
        endpoint_url=settings.endpoint_url,
        aws_access_key_id=settings.access_key,
        aws_secret_access_key=settings.secret_key,
        region_name="us-east-1" if settings.endpoint_url else None,
        config=Config(
            s3={"addressing_style": "path"},
            connect_timeout=timeout_s,
            read_timeout=timeout_s,
            retries={"total_max_attempts": 2},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def listed(
    client: "S3Client", bucket: str, prefix: str, after: str = ""
) -> Iterator[tuple[str, int]]:
    """Yield key and size in bytes of the objects under a prefix, in order of keys.

    `after`: only keys after this one. Raises boto3's errors.
    """
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix=prefix, StartAfter=after
    )
    for page in pages:
        for entry in page.get("Contents", ()):
            yield entry["Key"], entry["Size"]


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as read, and the ETag of that version."""

    body: bytes
    etag: str


class Bucket:
    """Reads, lists and conditional writes under one prefix.

    Every call raises ArchiveUnreachable, RightsMissing or ConfigError in place of
    boto3's errors.
    """

    def __init__(
        self, settings: S3Settings, connect: Callable[[S3Settings], "S3Client"] = client_of
    ) -> None:
        self._settings = settings
        self._connect = connect

    def where(self, key: str) -> str:
        """Return the address of an object for messages: `s3://bucket/key`."""
        return f"s3://{self._settings.bucket}/{self._settings.prefix}{key}"

    def get(self, key: str, most: int = MOST_BYTES) -> Stored | None:
        """Return an object of at most `most` bytes; None if there is none.

        Raises ConfigError where it is larger.
        """
        with s3_errors(f"read {self.where(key)}"):
            try:
                found = self._client.get_object(**self._named(key))
            except self._client.exceptions.ClientError as exc:
                if s3_code(exc) == _GONE:
                    return None
                raise
            body = found["Body"].read(most + 1)
            if len(body) > most:
                raise ConfigError(
                    f"{self.where(key)} is larger than {most:,} bytes, the limit for such an object"
                )
            return Stored(body, found["ETag"])

    def put_new(self, key: str, body: bytes) -> str | None:
        """Create an object and return its ETag; None if another one exists."""
        return self._put(key, body, {"IfNoneMatch": "*"})

    def put_over(self, key: str, body: bytes, etag: str) -> str | None:
        """Replace the object of this ETag, return the new one; None if it is gone."""
        return self._put(key, body, {"IfMatch": etag})

    def keeps_conditions(self, key: str, probe: bytes) -> bool:
        """Whether writes whose condition fails are refused; else `probe` is written."""
        refused = self.put_new(key, probe) is None
        return refused and self.put_over(key, probe, _NO_WRITE) is None

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder, in order."""
        prefix = self._settings.prefix + folder
        with self._listing(prefix):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._settings.bucket, Prefix=prefix, Delimiter="/"
            )
            return [
                entry["Prefix"].removeprefix(prefix).rstrip("/")
                for page in pages
                for entry in page.get("CommonPrefixes", ())
            ]

    def sizes(self, folder: str, after: str = "") -> dict[str, int]:
        """Return bytes by name, of a folder and its subfolders, after a name."""
        prefix = self._settings.prefix + folder
        with self._listing(prefix):
            found = listed(self._client, self._settings.bucket, prefix, after=prefix + after)
            return {key.removeprefix(prefix): size for key, size in found}

    def etags(self, folder: str) -> dict[str, str]:
        """Return ETags by name, of a folder and its subfolders."""
        prefix = self._settings.prefix + folder
        with self._listing(prefix):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._settings.bucket, Prefix=prefix
            )
            return {
                entry["Key"].removeprefix(prefix): entry["ETag"]
                for page in pages
                for entry in page.get("Contents", ())
            }

    def _listing(self, prefix: str) -> AbstractContextManager[None]:
        return s3_errors(f"list s3://{self._settings.bucket}/{prefix}")

    def _put(self, key: str, body: bytes, condition: Mapping[str, str]) -> str | None:
        for _ in range(_TRIES):
            with s3_errors(f"write {self.where(key)}"):
                try:
                    written = self._client.put_object(**self._named(key), Body=body, **condition)
                    return str(written["ETag"])
                except self._client.exceptions.ClientError as exc:
                    if s3_status(exc) == _CONFLICT:
                        continue
                    if s3_status(exc) != _PRECONDITION and s3_code(exc) != _GONE:
                        raise
            found = self.get(key)
            return found.etag if found and found.body == body else None
        raise ArchiveUnreachable(f"Other writers keep changing {self.where(key)}; try again.")

    def _named(self, key: str) -> dict[str, str]:
        return {"Bucket": self._settings.bucket, "Key": self._settings.prefix + key}

    @cached_property
    def _client(self) -> "S3Client":
        return self._connect(self._settings)
