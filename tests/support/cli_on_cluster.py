"""Run `plimsoll` like a user, against a running cluster."""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from kafka import KafkaAdminClient

from tests.support.cli_offline import PLIMSOLL, RUN_S

HANG_S = 300.0
"""Limit for a wait of a few seconds, also on a busy machine."""


@dataclass(frozen=True)
class Shell:
    """A folder with its own state, and the cluster that commands connect to."""

    folder: Path
    bootstrap: str

    @property
    def environment(self) -> dict[str, str]:
        known = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith("PLIMSOLL_") or k.endswith(("_HOME", "_DIR", "_JAVA"))
        }
        state = {"PLIMSOLL_STATE_DIR": str(self.folder / "state")}
        state["PLIMSOLL_BOOTSTRAP_SERVER"] = self.bootstrap
        if (config := self.folder / "plimsoll.toml").exists():
            state["PLIMSOLL_CONFIG"] = str(config)
        return known | state

    def plimsoll(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [PLIMSOLL, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            stdin=subprocess.DEVNULL,
        )

    def start(self, *arguments: str) -> "Running":
        """Start a command that keeps running."""
        log = self.folder / "stderr.txt"
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [PLIMSOLL, *arguments],
                cwd=self.folder,
                env=self.environment,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                stdin=subprocess.DEVNULL,
            )
        return Running(process, log)

    def runs(self) -> list[dict[str, Any]]:
        """The last journal record of each run, oldest run first."""
        journals = sorted((self.folder / "state" / "journal").glob("*.jsonl"))
        return [json.loads(j.read_text().splitlines()[-1]) for j in journals]


@dataclass(frozen=True)
class Running:
    """A running command, killed at the end of a `with` block."""

    process: subprocess.Popen[bytes]
    log: Path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def wait_for(self, fits: Callable[[str], bool], timeout_s: float = RUN_S) -> str:
        """Its output on stderr, once that matches."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            text = self.log.read_text()
            if fits(text):
                return text
            assert self.process.poll() is None, f"it ended early:\n{text}"
            time.sleep(0.2)
        raise AssertionError(f"it did not say so in time:\n{self.log.read_text()}")

    def stop(self) -> int:
        """Send Ctrl-C; return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(HANG_S)


def wait_until(fits: Callable[[], bool], timeout_s: float = HANG_S) -> None:
    """Poll until a condition holds."""
    deadline = time.monotonic() + timeout_s
    while not fits():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def wait_for_requests(running: Running, shell: Shell, events: int, since: str = "") -> None:
    """Wait until the journals have so many records of requests.

    since: only in journals of runs from this time on, `20261128T115959`; others may come from an
    archive.
    """
    deadline = time.monotonic() + HANG_S
    while _requests(shell, since) < events:
        assert running.process.poll() is None, f"it ended: {running.log.read_text()}"
        assert time.monotonic() < deadline
        time.sleep(0.002)


def kill_after(running: Running, shell: Shell, events: int, since: str = "") -> None:
    """Send SIGKILL as soon as the journals have so many records; as `wait_for_requests`."""
    wait_for_requests(running, shell, events, since)
    running.process.send_signal(signal.SIGKILL)
    running.process.wait(HANG_S)


def _requests(shell: Shell, since: str) -> int:
    journals = (shell.folder / "state" / "journal").glob("*.jsonl")
    # Named r00000001-20261128T115959123-d3a28c15.jsonl.
    chosen = [j for j in journals if j.name.partition("-")[2] >= since]
    return sum(j.read_text().count('"event":"issu') for j in chosen)


def placement(bootstrap: str, topic: str) -> dict[int, list[int]]:
    """Replicas of each partition according to the cluster's metadata."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    try:
        (result,) = admin.describe_topics([topic])
        return {p["partition_index"]: p["replica_nodes"] for p in result["partitions"]}
    finally:
        admin.close()


def leaders_per_broker(bootstrap: str, topic: str) -> list[int]:
    """How many partitions of RF 1 each broker has, fewest first; empty ones not."""
    homes = Counter(replicas[0] for replicas in placement(bootstrap, topic).values())
    return sorted(homes.values())
