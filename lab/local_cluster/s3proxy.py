"""S3Proxy: serves the folder of the remote tier as S3 buckets."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clients.jvm.java import Java
from lab.local_cluster.broker_properties import TIER_BUCKET
from lab.local_cluster.processes import Processes
from lab.local_cluster.tcp_ports import HOST, answers, free_ports
from model.errors import ClusterUnreachable, ExecutionStopped

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_NAME: Final = "s3"
_READY_S: Final = 60.0
_PAUSE_S: Final = 0.1
_JVM_FLAGS: Final = (
    "-Xmx128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:MaxMetaspaceSize=96m",
    "-XX:ReservedCodeCacheSize=32m",
)


class LocalS3:
    """An S3 endpoint on 127.0.0.1 whose buckets are the folders of `tier_dir`."""

    bucket: Final = TIER_BUCKET
    access_key: Final = "plimsoll"
    secret_key: Final = "plimsoll-local-only"  # noqa: S105 - of this machine only

    def __init__(self, processes: Processes, jar: Path, java: Java, tier_dir: Path) -> None:
        self._processes = processes
        self._jar = jar
        self._java = java
        self._tier_dir = tier_dir
        (self._port,) = free_ports(1)

    @property
    def endpoint(self) -> str:
        """URL for clients; they must use path-style addressing."""
        return f"http://{HOST}:{self._port}"

    def launch(self) -> None:
        """Start the proxy without waiting for it."""
        properties = self._processes.folder / "s3proxy.properties"
        properties.write_text(self._properties(), "utf-8")
        command = [str(self._java.executable), *_JVM_FLAGS, "-jar", str(self._jar)]
        self._processes.spawn(_NAME, [*command, "--properties", str(properties)])

    def wait_ready(self, on_step: Callable[[str], None]) -> None:
        """Wait until it listens.

        Raises
        ------
        ClusterUnreachable
            It ended, or does not listen after a minute.
        ExecutionStopped
            The processes were closed meanwhile.
        """
        end = time.monotonic() + _READY_S
        while not answers(self._port):
            if self._processes.closed:
                raise ExecutionStopped("The local S3 was stopped while it started.")
            if self._processes.exit_code(_NAME) is not None or time.monotonic() > end:
                raise ClusterUnreachable(
                    f"The local S3 at {self.endpoint} did not start. End of its log:\n"
                    f"{self._processes.log_tail(_NAME)}"
                )
            time.sleep(_PAUSE_S)
        on_step("S3 listens")

    def client(self) -> "S3Client":
        """A boto3 client for this endpoint."""
        import boto3  # takes 0.3 s, so only where segments are listed
        from botocore.config import Config

        config = Config(
            s3={"addressing_style": "path"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name="us-east-1",
            config=config,
        )

    def _properties(self) -> str:
        settings = {
            "s3proxy.endpoint": self.endpoint,
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.identity": self.access_key,
            "s3proxy.credential": self.secret_key,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.identity": self.access_key,
            "jclouds.credential": self.secret_key,
            "jclouds.filesystem.basedir": str(self._tier_dir),
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())
