"""S3: the client, and one bucket with conditional writes.

A write with a condition has one winner (S3's If-None-Match and If-Match). Whose answer
was lost may have won: what is found is then compared with what was written, so no two
writers may write the same bytes to one key and both rely on having been the one.
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
"""S3 asks for a repetition where two conditional writes meet."""
_CONFLICT, _PRECONDITION = 409, 412
_GONE: Final = "NoSuchKey"
_NO_WRITE: Final = '"00000000000000000000000000000000"'
"""The ETag of no object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """A bucket, and how to reach it."""

    endpoint_url: str | None = None
    """None for AWS itself."""
    bucket: str
    prefix: str = ""
    """Put before every key as it stands."""
    access_key: str | None = None
    """None takes boto3's usual places: environment, profile, instance role."""
    secret_key: str | None = field(default=None, repr=False)


def client_of(settings: S3Settings, timeout_s: float = _TIMEOUT_S) -> "S3Client":
    """A client that gives up after two attempts; nothing is connected yet.

    Raises ValueError where the endpoint is no URL.
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
    """Keys and bytes of the objects under a prefix, in order, those after a key.

    Raises as boto3 does.
    """
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix=prefix, StartAfter=after
    )
    for page in pages:
        for entry in page.get("Contents", ()):
            yield entry["Key"], entry["Size"]


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as it was found."""

    body: bytes
    etag: str


class Bucket:
    """Reads, lists and conditional writes under one prefix.

    Every call raises ArchiveUnreachable, RightsMissing or ConfigError, in words.
    """

    def __init__(
        self,
        settings: S3Settings,
        connect: Callable[[S3Settings], "S3Client"] = client_of,
    ) -> None:
        self._settings = settings
        self._connect = connect

    def where(self, key: str) -> str:
        """The address of an object, for people."""
        return f"s3://{self._settings.bucket}/{self._settings.prefix}{key}"

    def get(self, key: str, most: int = MOST_BYTES) -> Stored | None:
        """An object of at most so many bytes; None where there is none."""
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
                    f"{self.where(key)} is larger than {most:,} bytes, the limit for "
                    "such an object"
                )
            return Stored(body, found["ETag"])

    def put_new(self, key: str, body: bytes) -> str | None:
        """Make an object, its ETag; None where another one is there."""
        return self._put(key, body, {"IfNoneMatch": "*"})

    def put_over(self, key: str, body: bytes, etag: str) -> str | None:
        """Replace the object of this ETag, the new one; None where it is not there."""
        return self._put(key, body, {"IfMatch": etag})

    def keeps_conditions(self, key: str, probe: bytes) -> bool:
        """Whether writes that must fail do; where they do not, `probe` is written."""
        refused = self.put_new(key, probe) is None
        return refused and self.put_over(key, probe, _NO_WRITE) is None

    def folders(self, folder: str) -> list[str]:
        """Names of the folders in a folder, in order."""
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
        """Names in a folder and below with their bytes, in order, from a name on."""
        prefix = self._settings.prefix + folder
        with self._listing(prefix):
            found = listed(
                self._client, self._settings.bucket, prefix, after=prefix + after
            )
            return {key.removeprefix(prefix): size for key, size in found}

    def _listing(self, prefix: str) -> AbstractContextManager[None]:
        return s3_errors(f"list s3://{self._settings.bucket}/{prefix}")

    def _put(self, key: str, body: bytes, condition: Mapping[str, str]) -> str | None:
        for _ in range(_TRIES):
            with s3_errors(f"write {self.where(key)}"):
                try:
                    written = self._client.put_object(
                        **self._named(key), Body=body, **condition
                    )
                    return str(written["ETag"])
                except self._client.exceptions.ClientError as exc:
                    if s3_status(exc) == _CONFLICT:
                        continue
                    if s3_status(exc) != _PRECONDITION and s3_code(exc) != _GONE:
                        raise
            found = self.get(key)
            return found.etag if found and found.body == body else None
        raise ArchiveUnreachable(
            f"Other writers keep changing {self.where(key)}; try again."
        )

    def _named(self, key: str) -> dict[str, str]:
        return {"Bucket": self._settings.bucket, "Key": self._settings.prefix + key}

    @cached_property
    def _client(self) -> "S3Client":
        return self._connect(self._settings)
