"""Kafka's own command line tools, in the version of the local brokers."""

import os
import shlex
import subprocess
from pathlib import Path
from typing import Final

from clients.jvm.jars import default_cache_dir, fetch, read_pins
from clients.jvm.java import find_java
from lab.local_cluster.broker_properties import JVM_FLAGS, class_path
from lab.local_cluster.kafka_versions import kafka_pins

REASSIGN: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT: Final = "org.apache.kafka.tools.LeaderElectionCommand"
NAMES: Final = {"kafka-reassign-partitions": REASSIGN, "kafka-leader-election": ELECT}
PINS: Final = Path(__file__).with_name("jars.tsv")
RUN_S: Final = 300.0


def stock_tool(main: str, bootstrap: str, *arguments: str | Path) -> str:
    """The output of a tool, which runs without plimsoll's environment."""
    return _output([*_java(main), "--bootstrap-server", bootstrap, *arguments], {})


def in_a_shell(commands: str, folder: Path) -> str:
    """The output of a shell that finds the tools under their usual names."""
    for name, main in NAMES.items():
        script = folder / name
        message = " ".join(shlex.quote(part) for part in _java(main))
        script.write_text(f'#!/bin/sh\nexec {message} "$@"\n')
        script.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    return _output(["bash", "-ec", commands], {"PATH": path}, folder)


def _java(main: str) -> list[str]:
    pins = (*kafka_pins(), *read_pins(PINS, "kafka-tools"))
    jars = class_path(fetch(pins, default_cache_dir()))
    return [str(find_java().executable), *JVM_FLAGS, "-cp", jars, main]


def _output(command: list[str | Path], more: dict[str, str], folder: Path | None = None) -> str:
    run = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        stdin=subprocess.DEVNULL,
        cwd=folder,
        env=os.environ | more,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout
