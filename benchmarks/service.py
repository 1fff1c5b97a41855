"""What `plimsoll service` takes, and how soon it answers: `python -P -m benchmarks.service`.

The service watches a large cluster in memory whose loads change every second. It is measured while
that is balanced, and while a plan is solved; clients ask it over HTTP from another process.
"""

import argparse
import asyncio
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp
import psutil

from benchmarks.loop import BROKERS, PARTITIONS
from benchmarks.machine import processor
from benchmarks.sections import table
from model.goals.goals import SolveLimits
from tests.support.paths import ROOT

TABLE: Final = Path(__file__).with_name("service.md")
SERVICE: Final = (sys.executable, "-P", "-m", "benchmarks.service_process", "service")
READ: Final = re.compile(r"metrics on (http://\S+)/metrics")
CRUISE: Final = re.compile(r"API on (http://\S+)")
RATE: Final = 200
"""Requests per second."""
ASKED_S: Final = 30.0
WATCHED_S: Final = 30.0
SETTLED_S: Final = 10.0
START_S: Final = 120.0
EACH: Final = 100
OK: Final = 200
MIB: Final = 2**20
BALANCED: Final = ("net_in", "net_out", "disk")
SETTINGS: Final = """
[solve]
work = {work}
[service]
listen = "127.0.0.1:0"
api = true
cruise_control_api = "read"
cruise_control_listen = "127.0.0.1:0"
"""
WIDE: Final = '[[goals.balance]]\nresource = "{resource}"\ntolerance = 1.0\n'
Rows = list[tuple[str, ...]]
HEADERS: Final = ("while", "requests", "not answered with 200", "median", "99 %", "worst", "CPU")


@dataclass(frozen=True)
class Site:
    """A running service."""

    process: psutil.Process
    url: str
    cruise: str
    """Address of Cruise Control's API."""

    @property
    def paths(self) -> tuple[str, ...]:
        """What clients poll, one after the other."""
        return (
            f"{self.url}/metrics",
            f"{self.url}/readyz",
            f"{self.url}/api/v1/why",
            f"{self.cruise}/state?json=true",
            f"{self.cruise}/load?json=true",
            f"{self.cruise}/user_tasks?json=true",
            f"{self.cruise}/kafka_cluster_state?json=true",
        )

    @property
    def whole(self) -> str:
        """The document with every partition, too large to be polled."""
        return f"{self.url}/api/v1/status"

    def cpu_s(self) -> float:
        """User and system seconds so far."""
        return float(sum(self.process.cpu_times()[:2]))

    def memory(self) -> str:
        """What it holds in memory now."""
        return f"{self.process.memory_info().rss / MIB:.0f} MiB"

    def peak(self) -> str:
        """What it has held in memory at most since its start."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (kib,) = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
        return f"{int(kib) / 1024:.0f} MiB"


@contextmanager
def running(work: float, goals: str) -> Iterator[Site]:
    """A service with a search budget, ended with SIGTERM and checked."""
    with tempfile.TemporaryDirectory(prefix="plimsoll-") as name:
        folder, log = Path(name), Path(name, "stderr.txt")
        (folder / "plimsoll.toml").write_text(SETTINGS.format(work=work) + goals)
        known = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_")}
        own = {
            "PLIMSOLL_CONFIG": str(folder / "plimsoll.toml"),
            "PLIMSOLL_STATE_DIR": str(folder / "state"),
            "PYTHONPATH": str(ROOT),
        }
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [*SERVICE, "-b", "127.0.0.1:1"],
                cwd=folder,
                env=known | own,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
        try:
            deadline_s = time.monotonic() + START_S
            while not (
                (read := READ.search(text := log.read_text())) and (cruise := CRUISE.search(text))
            ):
                if process.poll() is not None or time.monotonic() > deadline_s:
                    sys.exit(log.read_text())
                time.sleep(0.1)
            yield Site(psutil.Process(process.pid), read[1], cruise[1])
            process.send_signal(signal.SIGTERM)
            if code := process.wait(START_S):
                sys.exit(f"the service ended with {code}: {log.read_text()}")
        finally:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Answer:
    """One response."""

    path: str
    status: int
    size: int
    """Bytes of the body."""
    seconds: float
    """From the moment at which the request was due."""


async def phase(client: aiohttp.ClientSession, site: Site) -> str:
    """What the loop does, by its metrics."""
    async with client.get(f"{site.url}/metrics") as found:
        text = await found.text()
    match = re.search(r'^plimsoll_loop_phase\{phase="([^"]+)"\} 1\.0$', text, re.MULTILINE)
    return "" if match is None else match[1]


async def until(client: aiohttp.ClientSession, site: Site, wanted: str) -> None:
    """Wait until the loop is in a phase."""
    deadline_s = time.monotonic() + START_S
    while (now := await phase(client, site)) != wanted:
        if time.monotonic() > deadline_s:
            sys.exit(f"the loop did not come to {wanted!r}, but to {now!r}")
        await asyncio.sleep(0.2)


async def ask(client: aiohttp.ClientSession, path: str, due_s: float) -> Answer:
    """Send one request when it is due."""
    await asyncio.sleep(max(0.0, due_s - time.monotonic()))
    try:
        async with client.get(path) as found:
            size, status = len(await found.read()), found.status
    except aiohttp.ClientError as exc:
        print(f"{path}: {exc!r}", file=sys.stderr)
        size = status = 0
    return Answer(path, status, size, time.monotonic() - due_s)


async def asked(
    client: aiohttp.ClientSession, paths: Sequence[str], seconds: float
) -> list[Answer]:
    """Requests at a constant rate, whether or not earlier ones have been answered."""
    begin_s = time.monotonic() + 0.5
    count = int(RATE * seconds)
    return list(
        await asyncio.gather(
            *(ask(client, paths[n % len(paths)], begin_s + n / RATE) for n in range(count))
        )
    )


async def each(client: aiohttp.ClientSession, site: Site) -> Rows:
    """Lines of what each read takes, one request after the other."""
    rows: Rows = []
    for path in (*site.paths, site.whole):
        cpu_s = site.cpu_s()
        found = [await ask(client, path, time.monotonic()) for _ in range(EACH)]
        cpu_ms = 1000 * (site.cpu_s() - cpu_s) / EACH
        took_ms = statistics.median(1000 * answer.seconds for answer in found)
        name = "/" + path.split("/", 3)[3]
        rows.append((f"`{name}`", f"{found[-1].size:,}", f"{took_ms:.1f} ms", f"{cpu_ms:.1f} ms"))
        print(rows[-1], flush=True)
    return rows


def row(words: str, found: Sequence[Answer], cpu: str) -> tuple[str, ...]:
    """A line of the table."""
    took_ms = sorted(1000 * answer.seconds for answer in found)
    failed = sum(answer.status != OK for answer in found)
    at_99 = took_ms[int(0.99 * (len(took_ms) - 1))]
    figures = (statistics.median(took_ms), at_99, took_ms[-1])
    return words, f"{len(found):,}", str(failed), *(f"{ms:.1f} ms" for ms in figures), cpu


async def balanced(site: Site) -> tuple[str, Rows, Rows]:
    """What the service takes, its answers one by one, and at a rate, while nothing is planned."""
    async with aiohttp.ClientSession() as client:
        await until(client, site, "balanced")
        await asyncio.sleep(SETTLED_S)
        cpu_s, begun_s = site.cpu_s(), time.monotonic()
        await asyncio.sleep(WATCHED_S)
        share = (site.cpu_s() - cpu_s) / (time.monotonic() - begun_s)
        takes = f"{share:.1%} of a core and {site.memory()} while nobody asks"
        one_by_one = await each(client, site)
        rows = [await reads("the cluster is balanced", client, site)]
        takes += f", {site.memory()} after {RATE} requests a second for {ASKED_S:.0f} s"
        return takes, one_by_one, rows


async def reads(words: str, client: aiohttp.ClientSession, site: Site) -> tuple[str, ...]:
    """The line of all reads at the rate that is required."""
    cpu_s, begun_s = site.cpu_s(), time.monotonic()
    found = await asked(client, site.paths, ASKED_S)
    share = (site.cpu_s() - cpu_s) / (time.monotonic() - begun_s)
    for path in site.paths:
        own = [answer for answer in found if answer.path == path]
        print(row(f"{words}: {path}", own, ""), {answer.status for answer in own}, flush=True)
    return row(words, found, f"{share:.0%}")


async def solving(site: Site) -> Rows:
    """Answers while a plan is solved."""
    async with aiohttp.ClientSession() as client:
        await until(client, site, "solving")
        rows = [await reads("a plan is solved", client, site)]
        if (now := await phase(client, site)) != "solving":
            sys.exit(f"the plan was done before the requests: {now}")
        return rows


async def solved(site: Site) -> str:
    """The most memory that it has held once a plan of the usual budget is there."""
    async with aiohttp.ClientSession() as client:
        await until(client, site, "plan ready")
        return f"{site.peak()} at most until its first plan, and {site.memory()} after it"


def main() -> None:
    """Measure, and write `service.md`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=float, default=1000.0, help="Search budget of the solve.")
    arguments = parser.parse_args()
    loads = [os.getloadavg()[0]]
    goals = "".join(WIDE.format(resource=resource) for resource in BALANCED)
    with running(1.0, goals) as site:
        takes, one_by_one, rows = asyncio.run(balanced(site))
    loads.append(os.getloadavg()[0])
    with running(arguments.work, "") as site:
        rows += asyncio.run(solving(site))
    loads.append(os.getloadavg()[0])
    with running(SolveLimits().work, "") as site:
        takes += f"; {asyncio.run(solved(site))}"
    loads.append(os.getloadavg()[0])
    TABLE.write_text(text(takes, one_by_one, rows, loads))
    print(TABLE.read_text())


def text(takes: str, one_by_one: Rows, rows: Rows, loads: Sequence[float]) -> str:
    """The page."""
    return (
        "# What the service takes, and how soon it answers\n\n"
        f"`make bench-service`; {processor()}; load average {min(loads):.1f} to {max(loads):.1f}, "
        "other work included.\n\n"
        f"{BROKERS} brokers, {PARTITIONS:,} partitions with three replicas, new loads every "
        "second, from memory: what it costs to measure loads is in [probe.md](probe.md) and "
        "[stream.md](stream.md).\n"
        f"The service takes {takes}; Spark's JVM is not there.\n"
        "Required: 10 % of a core and 1 GiB, 50 ms for `/metrics`, and 100 ms for 99 % of "
        f"{RATE} requests a second while a plan is solved.\n\n"
        f"## One request after the other\n\nMedians of {EACH}; CPU is that of the service for one "
        "request.\n\n"
        + table(("path", "bytes", "answered in", "CPU"), one_by_one)
        + f"\n## {RATE} requests a second\n\n"
        "The same without `/api/v1/status`, which has every partition, in turn, from another "
        "process on the same machine, whether or not earlier ones have been answered; a time "
        "begins when its request is due.\nCPU is the share of a core that the service got, with "
        "the solve; where other work leaves it less than the requests need, they queue.\n\n"
        + table(HEADERS, rows)
    )


if __name__ == "__main__":
    main()
