"""The image's entry points as processes, with Strimzi's files under a temporary root."""

import base64
import contextlib
import json
import os
import re
import socket
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest

from lab.local_cluster.local_cluster import LocalCluster
from tests.support.cli_on_cluster import wait_until
from tests.support.paths import ROOT
from tests.support.strimzi_container import OPERATOR, PASSWORD, StrimziContainer

NOWHERE = "127.0.0.1:1"
"""No broker answers there."""
OPEN = {
    "STRIMZI_CC_TLS_ENABLED": "false",
    "STRIMZI_CC_API_SSL_ENABLED": "false",
    "STRIMZI_CC_API_AUTH_ENABLED": "false",
}
"""Variables of a cluster without TLS and logins."""
KEYS = """\
metric.reporter.topic=strimzi.cruisecontrol.metrics
# plimsoll.name=comment
plimsoll.triggers.uneven_load=ignored
plimsoll.name = first
plimsoll.triggers.uneven_load=act
plimsoll.name = my cluster
plimsoll.goals.move_price=2.5
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def without_logins(root: Path, bootstrap: str) -> StrimziContainer:
    """A container whose API listens on loopback."""
    port = free_port()
    listen = {"API_PORT": str(port), "PLIMSOLL_SERVICE__CRUISE_CONTROL_LISTEN": f"127.0.0.1:{port}"}
    return StrimziContainer(root, bootstrap, OPEN | listen)


def state_of(container: StrimziContainer) -> dict[str, object]:
    url = f"http://127.0.0.1:{container.environment['API_PORT']}/kafkacruisecontrol/state?json=true"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=60) as answer:
        found: dict[str, object] = json.load(answer)
        return found


def test_the_container_answers_before_kafka_does(tmp_path: Path) -> None:
    container = without_logins(tmp_path, NOWHERE)
    container.lay_out(KEYS)
    checked = container.run(str(container.home / "cruise_control_healthcheck.sh"))
    assert checked.returncode == 1
    assert "the API does not answer" in checked.stderr
    volume = {"PLIMSOLL_VOLUME_HOME": str(container.volume)}
    assert container.run("plimsoll-probe.py", "livez", **volume).returncode == 1
    with container:
        container.wait_for("Cruise Control's API on")
        checked = container.run(str(container.home / "cruise_control_healthcheck.sh"))
        assert checked.returncode == 0, checked.stderr
        assert {"MonitorState", "ExecutorState"} <= state_of(container).keys()
        assert container.run("plimsoll-probe.py", "livez", **volume).returncode == 0
        container.wait_for("cannot connect")
        ready = container.run("plimsoll-probe.py", "readyz", **volume)
        assert ready.returncode == 1
        assert NOWHERE in ready.stderr
    # SIGTERM reached it through both scripts.
    assert container.process.returncode == 0
    assert {path.name for path in container.volume.iterdir()} == {"state", "strimzi", "tmp"}
    assert [path for path in tmp_path.iterdir() if path.name not in LAID_OUT] == []


def over_https(container: StrimziContainer, login: str) -> dict[str, object]:
    """The state, as Strimzi's operator asks for it. Raises HTTPError."""
    url = (
        f"https://localhost:{container.environment['API_PORT']}/kafkacruisecontrol/state?json=true"
    )
    authority = container.root / "etc/cruise-control/cluster-ca-certs/ca.crt"
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(authority))),
    )
    basic = base64.b64encode(login.encode()).decode()
    request = urllib.request.Request(url, headers={"Authorization": f"Basic {basic}"})
    with opener.open(request, timeout=60) as answer:
        found: dict[str, object] = json.load(answer)
        return found


def test_the_api_has_tls_and_logins_by_default(tmp_path: Path) -> None:
    container = StrimziContainer(tmp_path, NOWHERE, {"API_PORT": str(free_port())})
    container.lay_out(KEYS)
    with container:
        # Only what Strimzi sets, and the files that it mounts, protect the listener.
        assert "https://0.0.0.0:" in container.wait_for("Cruise Control's API on")
        assert {"MonitorState", "ExecutorState"} <= over_https(container, OPERATOR).keys()
        for wrong in ("rebalance-operator:guessed", f"nobody:{PASSWORD}"):
            with pytest.raises(urllib.error.HTTPError, match="401"):
                over_https(container, wrong)
        checked = container.run(str(container.home / "cruise_control_healthcheck.sh"))
        assert checked.returncode == 0, checked.stderr
        # Signals are handled once the loop has begun.
        container.wait_for("cannot connect")
    assert container.process.returncode == 0


LAID_OUT = {"opt", "etc", "mnt", "both.pem", "stderr.txt"}


def settings_of(container: StrimziContainer) -> dict[str, str]:
    """The settings with which the script would start the service, by name."""
    program = container.root / "bin" / "plimsoll"
    program.parent.mkdir(exist_ok=True)
    program.write_text('#!/bin/sh\nenv\necho "ARGUMENTS=$*"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{container.all_variables['PATH']}"
    run = container.run(str(container.home / "cruise_control_run.sh"), PATH=path)
    assert run.returncode == 0, run.stderr
    return dict(line.split("=", 1) for line in run.stdout.splitlines() if "=" in line)


def test_variables_and_files_of_strimzi_become_settings(tmp_path: Path) -> None:
    container = StrimziContainer(tmp_path, "my-cluster-kafka-bootstrap:9091")
    container.lay_out(KEYS)
    container.environment |= {"PLIMSOLL_GOALS__MOVE_PRICE": "3", "PLIMSOLL_OPTIONS": "--limits x"}
    found = settings_of(container)
    assert found["PLIMSOLL_BOOTSTRAP_SERVER"] == "my-cluster-kafka-bootstrap:9091"
    assert found["PLIMSOLL_CRUISE_CONTROL_TOPIC"] == "strimzi.cruisecontrol.metrics"
    assert found["PLIMSOLL_NAME"] == "my cluster"
    assert found["PLIMSOLL_TRIGGERS__UNEVEN_LOAD"] == "act"
    # What is not configured waits for a person.
    assert found["PLIMSOLL_TRIGGERS__EMPTY_BROKER"] == "ask"
    # The container's own environment goes first.
    assert found["PLIMSOLL_GOALS__MOVE_PRICE"] == "3"
    assert found["ARGUMENTS"] == "service --log-format json --limits x"
    assert "PLIMSOLL_OPTIONS" not in found
    assert found["PLIMSOLL_SERVICE__CRUISE_CONTROL_LISTEN"] == "0.0.0.0:9090"
    files = ("SERVICE__TLS_CERTIFICATE", "SERVICE__TLS_KEY", "CAPACITY_FILE")
    for name in (*files, "SERVICE__CRUISE_CONTROL_PROPERTIES"):
        assert Path(found[f"PLIMSOLL_{name}"]).is_file(), name
    assert "PLIMSOLL_SERVICE__METRICS_LISTEN" not in found
    container.environment["CRUISE_CONTROL_JMX_EXPORTER_ENABLED"] = "true"
    assert settings_of(container)["PLIMSOLL_SERVICE__METRICS_LISTEN"] == "0.0.0.0:9404"
    assert found["TMPDIR"] == str(container.volume / "tmp")
    client = Path(found["PLIMSOLL_CLIENT_PROPERTIES"])
    assert client.stat().st_mode & 0o077 == 0
    lines = dict(line.split("=", 1) for line in client.read_text().splitlines())
    assert lines.pop("security.protocol") == "SSL"
    assert len(lines) == 3
    assert all(Path(path).is_file() for path in lines.values())


def test_each_authority_of_the_cluster_is_trusted(tmp_path: Path) -> None:
    container = StrimziContainer(tmp_path, "kafka:9091", {"STRIMZI_CC_MTLS_ENABLED": "false"})
    container.lay_out()
    folder = tmp_path / "etc/cruise-control/cluster-ca-certs"
    (folder / "ca-2026.crt").write_bytes((folder / "ca.crt").read_bytes())
    found = settings_of(container)
    text = Path(found["PLIMSOLL_CLIENT_PROPERTIES"]).read_text()
    assert "ssl.key.location" not in text
    (bundle,) = re.findall(r"ssl\.ca\.location=(.*)", text)
    assert Path(bundle).read_text().count("BEGIN CERTIFICATE") == 2


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("volume", "mount a volume there that user"),
        ("authority", "has no certificate *.crt"),
        ("bootstrap", "STRIMZI_KAFKA_BOOTSTRAP_SERVERS is not set"),
        ("key", "plimsoll.a;b is not the name of a setting"),
    ],
)
def test_an_incomplete_container_says_why(tmp_path: Path, broken: str, message: str) -> None:
    container = StrimziContainer(tmp_path, "" if broken == "bootstrap" else "kafka:9091")
    container.lay_out("plimsoll.a;b=touch x\n" if broken == "key" else "")
    if broken == "volume":
        (tmp_path / "mnt" / "plimsoll").write_text("a file where the volume should be")
    if broken == "authority":
        (tmp_path / "etc/cruise-control/cluster-ca-certs/ca.crt").unlink()
    run = container.run(str(container.home / "cruise_control_run.sh"))
    assert (run.returncode, run.stdout) == (2, "")
    assert message in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_a_container_without_strimzi_needs_its_volume_alone(tmp_path: Path) -> None:
    container = StrimziContainer(tmp_path, NOWHERE)
    volume = {"PLIMSOLL_VOLUME_HOME": str(tmp_path / "volume")}
    run = container.run("plimsoll-container.sh", "--version", **volume)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "volume" / "tmp").is_dir()
    (tmp_path / "file").touch()
    volume["PLIMSOLL_VOLUME_HOME"] = str(tmp_path / "file")
    run = container.run("plimsoll-container.sh", "--version", **volume)
    assert run.returncode == 2
    assert "mount a volume there that user" in run.stderr


@pytest.mark.kafka
@pytest.mark.spark
def test_sparks_folders_are_on_the_volume_and_nothing_is_in_tmp(
    tmp_path: Path, local_cluster: LocalCluster
) -> None:
    container = without_logins(tmp_path, local_cluster.bootstrap)
    container.lay_out()
    with container:
        container.wait_for("Cruise Control's API on")
        pid = container.process.pid
        wait_until(lambda: spark_of(pid) is not None)
        java = spark_of(pid)
        assert java is not None

        def watched() -> bool:
            state = state_of(container)["MonitorState"]
            return isinstance(state, dict) and state["state"] == "RUNNING"

        wait_until(watched)
        open_files = [*files_of(pid), *files_of(java)]
        assert [*container.volume.rglob("spark-*/")]
        # The temporary root of this test may itself be below /tmp, and so may the program.
        known = (str(tmp_path), str(ROOT), sys.prefix)
        outside = [path for path in open_files if not path.startswith(known)]
        assert [path for path in outside if path.startswith(("/tmp/", "/var/tmp/"))] == []
        # Java would announce itself there.
        assert not [*Path("/tmp").glob(f"hsperfdata_*/{java}")]


def spark_of(pid: int) -> int | None:
    """Process id of the Java that a service has started."""
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.Error):  # ended in the meantime
            if any("PythonGatewayServer" in word for word in child.cmdline()):
                return int(child.pid)
    return None


def files_of(pid: int) -> list[str]:
    """Paths of the files that a process has open."""
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed in the meantime
            found.append(os.readlink(entry))
    return [path for path in found if path.startswith("/")]
