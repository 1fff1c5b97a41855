"""Hosts that have nothing in common but a cluster and a bucket."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.cli_on_cluster import Shell
from tests.support.executor.s3_server import BUCKET, place, s3_server

SETTINGS = """
window_s = 5.0
timeout_s = 4

[archive]
endpoint_url = "{endpoint}"
bucket = "{bucket}"
prefix = "{prefix}"
access_key = "me"
secret_key = "secret"
"""


@dataclass(slots=True)
class ArchivedHosts:
    """Makes hosts, each with an empty state folder of its own."""

    folder: Path
    bootstrap: str
    endpoint: str
    prefix: str
    made: list[Shell] = field(default_factory=list)

    def host(self) -> Shell:
        """Another host."""
        shell = Shell(self.folder / f"host-{len(self.made) + 1}", self.bootstrap)
        shell.folder.mkdir()
        config = SETTINGS.format(endpoint=self.endpoint, bucket=BUCKET, prefix=self.prefix)
        (shell.folder / "plimsoll.toml").write_text(config)
        self.made.append(shell)
        return shell


@contextmanager
def archived_hosts(folder: Path, bootstrap: str) -> Iterator[ArchivedHosts]:
    """Hosts below a folder, whose archive is a part of a bucket of its own."""
    with s3_server() as endpoint:
        yield ArchivedHosts(folder, bootstrap, endpoint, place(endpoint).prefix)
