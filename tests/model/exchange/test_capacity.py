"""Cruise Control's capacity file, in all its forms."""

import json
from pathlib import Path
from typing import Any

import pytest

from model.errors import ConfigError
from model.exchange.capacity import read_capacities
from model.ids import BrokerId
from model.snapshot.capacities import with_capacities
from model.snapshot.snapshot import Broker, Resource
from tests.support.model.clusters import brokers, snapshot

PLAIN = {"DISK": "100000", "CPU": "100", "NW_IN": "10000", "NW_OUT": "20000"}
KB, MB = 2.0**10, 2.0**20


def entry(broker: Any, **capacity: Any) -> dict[str, Any]:
    return {"brokerId": broker, "capacity": PLAIN | capacity, "doc": "words"}


def written(folder: Path, *entries: Any) -> Path:
    path = folder / "capacity.json"
    path.write_text(json.dumps({"brokerCapacities": entries}))
    return path


def capacity(path: Path, broker: int) -> Broker:
    return read_capacities(path).of(Broker(id=BrokerId(broker)))


def test_units_become_bytes(tmp_path: Path) -> None:
    """MB of disk and KB/s of network, of 1,024 each as in Cruise Control."""
    result = capacity(written(tmp_path, entry("-1")), 5).capacity
    assert result == {
        Resource.DISK: 100_000 * MB,
        Resource.CPU: 1.0,
        Resource.NET_IN: 10_000 * KB,
        Resource.NET_OUT: 20_000 * KB,
    }


def test_a_brokers_own_entry_overrides_the_default(tmp_path: Path) -> None:
    path = written(tmp_path, entry("-1"), entry("0", NW_IN="50000"))
    assert capacity(path, 0).capacity[Resource.NET_IN] == 50_000 * KB
    assert capacity(path, 1).capacity[Resource.NET_IN] == 10_000 * KB


def test_numbers_may_be_unquoted(tmp_path: Path) -> None:
    path = written(tmp_path, entry(3, DISK=5, NW_IN=0.5))
    assert capacity(path, 3).capacity[Resource.DISK] == 5 * MB
    assert capacity(path, 3).capacity[Resource.NET_IN] == 512.0


def test_cores_are_read_unchanged(tmp_path: Path) -> None:
    path = written(tmp_path, entry("-1", CPU={"num.cores": "16"}))
    assert capacity(path, 1).capacity[Resource.CPU] == 16.0


def test_log_directories_are_summed_and_preserved(tmp_path: Path) -> None:
    path = written(tmp_path, entry("-1", DISK={"/b": "200", "/a": "100"}))
    broker = capacity(path, 1)
    assert broker.capacity[Resource.DISK] == 300 * MB
    assert [(d.path, d.capacity_bytes) for d in broker.log_dirs] == [
        ("/a", 100 * MB),
        ("/b", 200 * MB),
    ]


def test_a_single_log_directory_leaves_nothing_to_choose(tmp_path: Path) -> None:
    path = written(tmp_path, entry("-1", DISK={"/a": "100"}))
    assert capacity(path, 1).log_dirs == ()
    assert capacity(path, 1).capacity[Resource.DISK] == 100 * MB


def test_a_broker_without_an_entry_is_unchanged(tmp_path: Path) -> None:
    path = written(tmp_path, entry("7"))
    assert capacity(path, 1) == Broker(id=BrokerId(1))


def test_adding_capacities_leaves_the_rest_of_a_snapshot_unchanged(tmp_path: Path) -> None:
    state = snapshot(brokers(2, "ab"), [(1,), (2,)])
    result = with_capacities(state, read_capacities(written(tmp_path, entry("2"))))
    assert [bool(b.capacity) for b in result.header.brokers] == [False, True]
    assert [b.rack for b in result.header.brokers] == ["a", "b"]
    assert result.fingerprint == state.fingerprint


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([], "has no list brokerCapacities; add it"),
        (["x"], "an entry of brokerCapacities is not a JSON object"),
        ([{"brokerId": "1"}], "brokerId 1: capacity is not a JSON object"),
        ([entry("x")], "brokerId is 'x'; give a broker's id, or -1 for all others"),
        ([entry("-2")], "brokerId is '-2'"),
        ([{"capacity": PLAIN}], "brokerId is None"),
        ([entry("1"), entry(1)], "brokerId 1 is listed twice"),
        ([entry("1", NW="1")], "brokerId 1: NW is not a resource; did you mean 'NW_"),
        ([entry("-1", DISK="0")], r"-1 \(the default\): DISK is '0'; give a number a"),
        ([entry("1", DISK="nan")], "DISK is 'nan'; give a number above 0"),
        ([entry("1", NW_IN=None)], "NW_IN is null; give a number above 0"),
        ([entry("1", DISK=True)], "DISK is True; give a number above 0"),
        ([entry("1", NW_IN=["1"])], "NW_IN is "),
        ([entry("1", NW_IN={"a": "1"})], "NW_IN is "),
        ([entry("1", NW_OUT="1e99")], "NW_OUT is '1e99', more than"),
        ([entry("1", DISK={})], "DISK names no log directory; add one"),
        ([entry("1", DISK={"a": "1"})], "'a' is not an absolute path; start it with /"),
        ([entry("1", DISK={"/a": "-1"})], "DISK: /a is '-1'"),
        ([entry("1", CPU={"cores": "1"})], "CPU is to be a number or"),
        (
            [entry("1", CPU={"num.cores": "1"}), entry("2")],
            "num.cores for some brokers only; give it for all",
        ),
    ],
)
def test_an_impossible_capacity_is_named(tmp_path: Path, entries: list, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_capacities(written(tmp_path, *entries))


def test_invalid_json_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{\n"brokerCapacities": [,]}')
    with pytest.raises(ConfigError, match=r"c\.json, line 2: this is not valid JSON"):
        read_capacities(tmp_path / "c.json")
