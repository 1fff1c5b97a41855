"""The container that Strimzi starts, as a process: its files under a root of its own."""

import os
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from clients.jvm.jars import default_cache_dir
from tests.support.cli_offline import PLIMSOLL
from tests.support.paths import ROOT
from tests.support.tls_certificates import Authority

CONTAINER = ROOT / "deploy" / "container"
PASSWORD = "p4ss word"
OPERATOR = "rebalance-operator:secret"
"""Name and password of Strimzi's cluster operator."""
MOUNTED = 0o444
"""Mode of the secrets that Strimzi mounts on Kubernetes (`VolumeUtils.createSecretVolume`)."""
WAIT_S = 300.0


@dataclass
class StrimziContainer:
    """A running container, killed at the end of a `with` block."""

    root: Path
    bootstrap: str
    environment: dict[str, str] = field(default_factory=dict)
    """Over what Strimzi sets."""

    def lay_out(self, properties: str = "") -> None:
        """The image's files, and those that Strimzi mounts; properties: of Cruise Control."""
        home = self.home
        for folder in (
            *(home / "custom-config", home / "api-auth-config", self.root / "mnt"),
            *(self.certificates, self.root / "etc/cruise-control/cluster-ca-certs"),
        ):
            folder.mkdir(parents=True)
        for name in ("cruise_control_run.sh", "cruise_control_healthcheck.sh", "healthcheck.py"):
            shutil.copy(CONTAINER / name, home)
        (home / "custom-config" / "cruisecontrol.properties").write_text(properties)
        (home / "custom-config" / "capacity.json").write_text(
            '{"brokerCapacities": [{"brokerId": "-1", "capacity": {"DISK": "100000", '
            '"CPU": "100", "NW_IN": "10000", "NW_OUT": "10000"}}]}'
        )
        (home / "api-auth-config" / "healthcheck.password").write_text(PASSWORD)
        (home / "api-auth-config" / "cruise-control.authFile").write_text(
            f"{OPERATOR.replace(':', ': ')},ADMIN\nhealthcheck: {PASSWORD},USER\n"
        )
        authority = Authority.make("cluster-ca")
        authority.write(self.root / "etc/cruise-control/cluster-ca-certs/ca.crt")
        both = authority.issue(self.root / "both.pem", "cruise-control", hosts=["localhost"])
        key, mark, certificate = both.read_text().partition("-----BEGIN CERTIFICATE-----")
        (self.certificates / "cruise-control.key").write_text(key)
        (self.certificates / "cruise-control.crt").write_text(mark + certificate)
        for folder in (home / "api-auth-config", self.certificates):
            for path in folder.iterdir():
                path.chmod(MOUNTED)

    @property
    def home(self) -> Path:
        return self.root / "opt" / "cruise-control"

    @property
    def certificates(self) -> Path:
        return self.root / "etc" / "cruise-control" / "cc-certs"

    @property
    def volume(self) -> Path:
        return self.root / "mnt" / "plimsoll"

    @property
    def all_variables(self) -> dict[str, str]:
        known = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_")}
        path = os.pathsep.join([str(CONTAINER), str(PLIMSOLL.parent), os.environ["PATH"]])
        return (
            known
            | {
                "PATH": path,
                "STRIMZI_KAFKA_BOOTSTRAP_SERVERS": self.bootstrap,
                "API_HEALTHCHECK_USERNAME": "healthcheck",
                "API_HEALTHCHECK_PATH": "/kafkacruisecontrol/state",
                "PLIMSOLL_SERVICE__LISTEN": "127.0.0.1:0",
                "PLIMSOLL_CACHE_DIR": str(default_cache_dir()),
                # What a pod may have, and what must not matter on loopback.
                "HTTP_PROXY": "http://127.0.0.1:1",
                "http_proxy": "http://127.0.0.1:1",
            }
            | self.environment
        )

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the container to its end."""
        return subprocess.run(
            command,
            cwd=self.root,
            env=self.all_variables | variables,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            stdin=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        self.log = self.root / "stderr.txt"
        with self.log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [str(self.home / "cruise_control_run.sh")],
                cwd=self.root,
                env=self.all_variables,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                stdin=subprocess.DEVNULL,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def wait_for(self, text: str) -> str:
        """What it has written on stderr, once that contains a text."""
        deadline_s = time.monotonic() + WAIT_S
        while text not in (found := self.log.read_text()):
            assert self.process.poll() is None, found
            assert time.monotonic() < deadline_s, found
            time.sleep(0.1)
        return found
