"""A real AutoMQ for tests: three nodes and their S3, from a user's installation."""

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from clients.jvm.java import find_java
from clients.s3 import S3Settings
from lab.local_cluster.broker_admin import BrokerAdmin
from lab.local_cluster.processes import Processes
from lab.local_cluster.tcp_ports import free_ports, is_free
from tests.support.paths import ROOT

NODES = 3
START_S = 300.0
KEY = "automqtest"
"""The access key and the secret key of the nodes' S3."""
SMALL = (
    *("--heap", "320m", "--direct", "64m", "--wal-cache", "24"),
    *("--wal-upload", "8", "--block-cache", "8"),
)


def automq_home() -> Path | None:
    """PLIMSOLL_AUTOMQ_HOME, or `../shared/automq` beside the repository."""
    beside = ROOT.parent / "shared" / "automq"
    home = Path(os.environ.get("PLIMSOLL_AUTOMQ_HOME", beside))
    return home if (home / "up.py").is_file() else None


class AutoMQCluster:
    """Nodes 0 to 2 with AutoMQ's own balancer off; `close` removes everything."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.bootstrap = ""
        self.bucket: S3Settings
        """The nodes' only one."""
        self._processes = Processes(folder)
        java = find_java().executable.parent
        path = os.pathsep.join([str(java), os.environ["PATH"]])
        command = [sys.executable, str(home / "up.py"), "start", "--dir", str(folder)]
        ports = ["--base-port", str(_base_port()), "--s3-port", str(free_ports(1)[0])]
        self._processes.spawn(
            "automq",
            [*command, *ports, "--nodes", str(NODES), "--s3-bin", sys.executable, *SMALL],
            environ={**os.environ, "PATH": path},
        )

    def wait_ready(self) -> Self:
        """Return once all nodes serve."""
        end_s = time.monotonic() + START_S
        while not self.bootstrap:
            assert self._processes.exit_code("automq") is None, self._log_tail()
            assert time.monotonic() < end_s, self._log_tail()
            for line in self._processes.log("automq").read_text().splitlines():
                if line.startswith('{"bootstrap"'):
                    document = json.loads(line)
                    self.bootstrap = document["bootstrap"]
                    self.bucket = S3Settings(
                        endpoint_url=document["s3"],
                        bucket=document["bucket"],
                        access_key=KEY,
                        secret_key=KEY,
                    )
            time.sleep(0.1)
        return self

    def create_topic(self, name: str, assignment: Sequence[Sequence[int]]) -> None:
        """A topic with this one replica per partition."""
        BrokerAdmin(self.bootstrap).create_topic(name, assignment, {}, timeout_s=30.0)

    def close(self) -> None:
        """Kill the nodes and remove their folder."""
        self._processes.close()

    def _log_tail(self) -> str:
        return self._processes.log_tail("automq", 30)


def _base_port() -> int:
    """A port from which the ports of the nodes are free: base + 10 n + 0, 1, 2."""
    while True:
        (base,) = free_ports(1)
        ports = [base + 10 * node + i for node in range(NODES) for i in range(3)]
        if ports[-1] < 65536 and all(map(is_free, ports)):
            return base
