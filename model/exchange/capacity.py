"""Cruise Control's capacity file: what each broker has.

`capacity.json`, `capacityCores.json` and `capacityJBOD.json` of its `config` folder
(class `BrokerCapacityConfigFileResolver`): DISK in MB, or in MB per log directory;
NW_IN and NW_OUT in KB/s; CPU in percent of one core, or as a number of cores. A KB is
1,024 bytes (class `HolderUtils`).
"""

import contextlib
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from model.cpu import from_file
from model.errors import ConfigError
from model.exchange.text_files import LARGEST, nearest, object_at, read_object
from model.ids import BrokerId
from model.snapshot.capacities import DEFAULT, Capacities, Entry
from model.snapshot.snapshot import CapacitySource, LogDir, Resource

CORES: Final = "num.cores"
MOST: Final = LARGEST / 2**20
"""In Cruise Control's units; its largest is the MB."""
_WHOLE: Final = re.compile(r"-?[0-9]{1,10}")
_NAMES: Final = {
    "DISK": (Resource.DISK, 2.0**20),
    "CPU": (Resource.CPU, 1.0),
    "NW_IN": (Resource.NET_IN, 2.0**10),
    "NW_OUT": (Resource.NET_OUT, 2.0**10),
}
"""Cruise Control's resource: ours, and its unit in ours."""


def read_capacities(path: Path) -> Capacities:
    """Read a capacity file.

    Raises ConfigError: no such file, a broker listed twice, a resource that is not known, a
    capacity that is not a number above 0, cores for some of the brokers only.
    """
    document = read_object(path)
    entries = document.get("brokerCapacities")
    if not isinstance(entries, list) or not entries:
        raise ConfigError(f"{path} has no list brokerCapacities; add it")
    by_broker: dict[int, Entry] = {}
    with_cores = set()
    for entry in entries:
        broker = _broker(path, entry)
        if broker in by_broker:
            raise ConfigError(f"{path}: brokerId {broker} is listed twice; keep one entry")
        capacity = object_at(path, entry.get("capacity"), f"{_name(broker)}: capacity")
        with_cores.add(isinstance(capacity.get("CPU"), dict))
        by_broker[broker] = _capacity(path, broker, capacity)
    if len(with_cores) > 1:
        raise ConfigError(f"{path}: CPU is given in {CORES} for some brokers only; give it for all")
    return Capacities(source=CapacitySource.FILE, place=str(path), by_broker=by_broker)


def _name(broker: int) -> str:
    return "brokerId -1 (the default)" if broker == DEFAULT else f"brokerId {broker}"


def _broker(path: Path, entry: Any) -> BrokerId:
    found = object_at(path, entry, "an entry of brokerCapacities").get("brokerId")
    text = str(found)
    if _WHOLE.fullmatch(text) and DEFAULT <= int(text) < 2**31:
        return BrokerId(int(text))
    raise ConfigError(f"{path}: brokerId is {found!r}; give a broker's id, or -1 for all others")


def _capacity(path: Path, broker: int, capacity: Mapping[str, Any]) -> Entry:
    found: dict[Resource, float] = {}
    log_dirs: tuple[LogDir, ...] = ()
    for name, value in capacity.items():
        where = f"{path}: {_name(broker)}: {name}"
        if name not in _NAMES:
            raise ConfigError(f"{where} is not a resource{nearest(name, _NAMES)}")
        resource, unit = _NAMES[name]
        if name == "CPU" and isinstance(value, dict):
            found[resource] = _cores(where, value)
        elif name == "DISK" and isinstance(value, dict):
            log_dirs = _log_dirs(where, value)
            sizes = (d.capacity_bytes or 0.0 for d in log_dirs)
            found[resource] = math.fsum(sizes)
        else:
            found[resource] = from_file(resource, unit * _number(where, value))
    return Entry(capacity=found, log_dirs=log_dirs)


def _cores(where: str, value: Mapping[str, Any]) -> float:
    if set(value) != {CORES}:
        raise ConfigError(f'{where} is to be a number or {{"{CORES}": "16"}}')
    return _number(f"{where}: {CORES}", value[CORES])


def _log_dirs(where: str, value: Mapping[str, Any]) -> tuple[LogDir, ...]:
    if not value:
        raise ConfigError(f"{where} names no log directory; add one")
    for folder in value:
        if not folder.startswith("/"):
            raise ConfigError(f"{where}: {folder!r} is not an absolute path; start it with /")
    unit = _NAMES["DISK"][1]
    return tuple(
        LogDir(path=folder, capacity_bytes=unit * _number(f"{where}: {folder}", size))
        for folder, size in sorted(value.items())
    )


def _number(where: str, value: Any) -> float:
    number = math.nan
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        with contextlib.suppress(ValueError, OverflowError):
            number = float(value)
    if number > MOST:
        raise ConfigError(f"{where} is {value!r}, more than {MOST:g}; mind the unit")
    if number > 0:
        return number
    shown = "null" if value is None else repr(value)
    raise ConfigError(f"{where} is {shown}; give a number above 0")
