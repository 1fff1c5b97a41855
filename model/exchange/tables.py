"""Tables of loads and of brokers: CSV with a header."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from model.cpu import from_file
from model.errors import ConfigError
from model.exchange.text_files import amount, fault, nearest, read_json, read_table, whole_number
from model.ids import MOST_ID, BrokerId, PartitionId, TopicName
from model.snapshot.snapshot import Broker, BrokerState, Resource

SIZES: Final = ("size_bytes", "local_bytes")
"""Columns of a loads table that are sizes, not loads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRow:
    """The loads and sizes that a table gives for one partition."""

    line: int
    """Counted from 1."""
    loads: dict[Resource, float]
    """Of the leader, bytes/s or bytes; an unknown one is absent."""
    size_bytes: int
    """Bytes of the whole log; -1 where unknown."""
    local_bytes: int
    """Bytes in the leader's local log directories; -1 where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTable:
    """A whole table of loads, in plimsoll's units."""

    path: Path | None
    """None where no table was given."""
    resources: tuple[Resource, ...]
    """Resources that have a column, in the order of `Resource`."""
    rows: dict[PartitionId, LoadRow]


NO_ROW: Final = LoadRow(line=0, loads={}, size_bytes=-1, local_bytes=-1)
NO_LOADS: Final = LoadTable(path=None, resources=(), rows={})


def read_loads(path: Path) -> LoadTable:
    """Read a CSV of loads: `topic,partition`, then a column for each known resource.

    An empty cell is a load that is not known; so is every load of a partition without a row.
    `size_bytes` and `local_bytes` may stand beside them.

    Raises ConfigError: a column that is not known, a partition listed twice, or a cell that is not
    a number of 0 or more; file and line are named.
    """
    required = ("topic", "partition")
    known = (*required, *(r.value for r in Resource), *SIZES)
    columns, lines = read_table(path, required=required, known=known)
    resources = tuple(r for r in Resource if r.value in columns)
    names = {r.value: r for r in resources}
    rows: dict[PartitionId, LoadRow] = {}
    for line, cells in lines:
        number = whole_number(path, line, "partition", cells["partition"])
        pid = PartitionId(TopicName(cells["topic"]), number)
        if pid in rows:
            raise fault(path, line, f"{pid} is already in line {rows[pid].line}; keep one of them")
        rows[pid] = _load_row(path, line, names, cells)
    return LoadTable(path=path, resources=resources, rows=rows)


def _load_row(
    path: Path, line: int, resources: dict[str, Resource], cells: dict[str, str]
) -> LoadRow:
    loads = {
        resource: from_file(name, amount(path, line, name, cells[name]))
        for name, resource in resources.items()
        if cells[name]
    }
    size, local = (
        whole_number(path, line, name, cells[name]) if cells.get(name) else -1 for name in SIZES
    )
    return LoadRow(line=line, loads=loads, size_bytes=size, local_bytes=local)


def read_brokers(path: Path) -> tuple[Broker, ...]:
    """Read brokers, by id: a CSV `id[,rack][,state]`, or JSON where it ends in .json.

    The JSON is a list of objects as a snapshot has them. An empty rack is none; a broker without a
    state is alive.

    Raises ConfigError: a broker listed twice, a state that is not known, a value that does not fit.
    """
    brokers = _json_brokers(path) if path.suffix == ".json" else _csv_brokers(path)
    for broker in brokers:
        if not 0 <= broker.id <= MOST_ID:
            words = f"broker {broker.id} has an id that Kafka cannot give"
            raise ConfigError(f"{path}: {words}; ids are from 0 to {MOST_ID}")
    return tuple(sorted(brokers, key=lambda b: b.id))


def _json_brokers(path: Path) -> tuple[Broker, ...]:
    try:
        document = json.dumps(read_json(path))
        brokers = TypeAdapter(tuple[Broker, ...]).validate_json(document)
    except ValidationError as exc:
        first = exc.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the list of brokers"
        raise ConfigError(f"{path}: {place}: {first['msg']}") from exc
    counts = Counter(b.id for b in brokers)
    twice = next((i for i, count in counts.items() if count > 1), None)
    if twice is not None:
        raise ConfigError(f"{path}: broker {twice} is listed twice; keep one entry")
    return brokers


def _csv_brokers(path: Path) -> tuple[Broker, ...]:
    columns = ("id", "rack", "state")
    _, lines = read_table(path, required=("id",), known=columns)
    brokers: dict[BrokerId, tuple[int, Broker]] = {}
    for line, cells in lines:
        number = BrokerId(whole_number(path, line, "id", cells["id"]))
        if number in brokers:
            words = f"broker {number} is already in line {brokers[number][0]}"
            raise fault(path, line, f"{words}; keep one of them")
        broker = Broker(
            id=number,
            rack=cells.get("rack") or None,
            state=_state(path, line, cells.get("state") or BrokerState.ALIVE.value),
        )
        brokers[number] = (line, broker)
    return tuple(broker for _, broker in brokers.values())


def _state(path: Path, line: int, name: str) -> BrokerState:
    states = [s.value for s in BrokerState]
    if name not in states:
        raise fault(path, line, f"unknown state {name!r}{nearest(name, states)}")
    return BrokerState(name)
