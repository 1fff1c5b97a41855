"""Kafka's own command line tools, of the version that the local brokers have."""

import subprocess
from pathlib import Path
from typing import Final

from collector.jars import default_cache_dir, fetch, read_pins
from collector.java import find_java
from lab.local import kafka_pins
from lab.settings import JVM_FLAGS, class_path

REASSIGN: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT: Final = "org.apache.kafka.tools.LeaderElectionCommand"
PINS: Final = Path(__file__).with_name("jars.tsv")
RUN_S: Final = 120.0


def stock_tool(main: str, bootstrap: str, *arguments: str | Path) -> str:
    """What a tool prints; it is not told that plimsoll exists."""
    pins = (*kafka_pins(), *read_pins(PINS, "kafka-tools"))
    jars = class_path(fetch(pins, default_cache_dir()))
    java, server = find_java().executable, ("--bootstrap-server", bootstrap)
    run = subprocess.run(
        [java, *JVM_FLAGS, "-cp", jars, main, *server, *arguments],
        capture_output=True,
        text=True,
        timeout=RUN_S,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout
