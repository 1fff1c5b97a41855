"""Building blocks of text output: tables, JSON, times and loads with units."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from control.cli.output import Form, json_of
from model.cpu import is_cpu
from model.printable import printable
from model.snapshot.snapshot import Count, Resource
from model.units import bytes_text, cores_text, deviation_text, rate_text

A = TypeVar("A", bound=BaseModel)


def json_text(document: BaseModel | Mapping[str, Any]) -> str:
    """Indented JSON with sorted keys and a newline at the end."""
    if isinstance(document, BaseModel):
        document = document.model_dump(mode="json")
    return json_of(document, indent=2, sort_keys=True) + "\n"


def answer_text(answer: A, text: Callable[[A], str], output: Form) -> str:
    """An answer as JSON, or as `text` writes it."""
    return json_text(answer) if output is Form.JSON else text(answer)


def file_text(path: Path, output: Form) -> str:
    """Output of a command that only wrote a file: its path as JSON, or nothing."""
    return json_text({"file": str(path)}) if output is Form.JSON else ""


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell, with numbers aligned right."""
    cells = [[printable(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headers))]
    right = [bool(rows) and _is_figure(rows[0][i]) for i in range(len(headers))]
    lines = [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]
    return "\n".join(lines) + "\n"


def _is_figure(cell: str) -> bool:
    return cell[:1].lstrip("+-").isdigit() or cell[1:2].isdigit()


def ids_text(brokers: Iterable[int]) -> str:
    """Broker ids as `1,2,3`."""
    return ",".join(map(str, brokers))


def range_text(least: int, most: int) -> str:
    """Two counts as `1 to 2`, or one where they are equal."""
    return str(least) if least == most else f"{least} to {most}"


def under_replicated_text(share: float | None) -> str:
    """A percentage that is 0 only where no partition lacks a replica; a dash for unknown."""
    if share is None:
        return "-"
    return f"{max(0.01, share):.0%}" if share else "0%"


def time_text(at_ms: int) -> str:
    """UTC in ISO 8601, to the second."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def load_text(dimension: str, value: float) -> str:
    """A load of a resource or of a plan's dimension (`disk@Mon 08`), with its unit."""
    measure = dimension.partition("@")[0]
    if measure == Resource.DISK:
        return bytes_text(value)
    if measure in (Resource.NET_IN, Resource.NET_OUT, Count.LEADER_NET_IN, Count.POTENTIAL_NET_OUT):
        return rate_text(value)
    if is_cpu(dimension):
        return cores_text(value)
    return f"{value:.4g}" if value < 9999.5 else f"{value:,.0f}"


def load_cell(dimension: str, loads: Mapping[str, float], deviations: Mapping[str, float]) -> str:
    """A load with its deviation from the average, as far as known: `3.00 MB/s (+200 %)`."""
    parts = []
    if dimension in loads:
        parts.append(load_text(dimension, loads[dimension]))
    if dimension in deviations:
        parts.append(f"({deviation_text(deviations[dimension])})")
    return " ".join(parts) or "-"
