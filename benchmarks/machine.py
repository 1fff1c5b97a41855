"""The machine that figures were measured on, in words."""

import os
import platform
import statistics
import time
from pathlib import Path
from typing import Final

ADDITIONS: Final = 5_000_000
REPEATS: Final = 3


def processor() -> str:
    """Model of the processor, cores, Python."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def pace() -> str:
    """How fast this machine is at the moment: shared ones are at times half as fast."""
    took_s = statistics.median(_additions_s() for _ in range(REPEATS))
    return f"Just before, {ADDITIONS:,} additions in Python took {took_s:.2f} s of CPU."


def _additions_s() -> float:
    begun_s, total = time.process_time(), 0
    for number in range(ADDITIONS):
        total += number
    return time.process_time() - begun_s
