"""Create the checkpoint that formats brokers of one Kafka version without a JVM.

It has the feature levels of a new cluster of that version.
"""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

from clients.jvm.java import Java
from lab.local_cluster.broker_properties import class_path, kafka_id

_CONFIG: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
log.dirs={folder}/data
"""


def make(java: Java, jars: Sequence[Path]) -> bytes:
    """The checkpoint that `kafka.tools.StorageTool` writes for a new cluster."""
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as name:
        config = Path(name) / "server.properties"
        config.write_text(_CONFIG.format(folder=name), "utf-8")
        tool = ("kafka.tools.StorageTool", "format", "--config", str(config))
        command = [str(java.executable), "-cp", class_path(jars), *tool]
        cluster = ["--cluster-id", kafka_id(uuid4())]
        # Test jars configure a log in the working folder.
        subprocess.run([*command, *cluster], check=True, capture_output=True, cwd=name)
        (written,) = Path(name, "data").rglob("*.checkpoint")
        return written.read_bytes()
