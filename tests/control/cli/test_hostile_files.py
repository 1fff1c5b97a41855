"""Every reader of a file rejects invalid content in one sentence with its name."""

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clients.client_properties import read_client_properties
from control.session_recording.format import RecordingHeader, RecordingWriter
from control.session_recording.reader import read_recording
from control.settings.settings import load
from model.errors import PlimsollError
from model.exchange.capacity import read_capacities
from model.exchange.goals_file import read_goals
from model.exchange.offline_snapshot import ClusterFiles, read_cluster
from model.exchange.reassignment import read_election, read_reassignment
from model.exchange.tables import read_brokers, read_loads
from model.files import canonical
from model.goals.goals import Goals
from model.plan.plan import plan_of_document, read_plan, write_plan
from model.snapshot.file import as_document, read_snapshot
from model.snapshot.state_file import StateFile, read_state
from model.stop_rules import StopRules
from tests.support.cluster_files import write_cluster_files
from tests.support.control.loop_parts import MB, cluster
from tests.support.hostile_names import SURROGATE
from tests.support.tui.loop_views import plan, plan_ready, running

ROUNDS = 150
VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1.5, 2**31, 2**63 - 1, -(2**63), 1e300, "", "x"),
    *(SURROGATE, [], {}, [[]], [1, 1], {"a": 1}, "9" * 5000, ".", "a" * 300),
)
TOKENS = (
    *("NaN", "Infinity", "1e400", "9" * 30, "9" * 5000, "[" * 5000, '"\\ud800"'),
    *("-0", '"\\u0000"', "tru"),
)
"""Values that the standard library cannot write."""


@dataclass(frozen=True)
class Reader:
    """One reader, and a file that it reads."""

    name: str
    read: Callable[[Path], Any]
    good: bytes


def _read_recording(path: Path) -> None:
    for _ in read_recording(path)[1]:
        pass


def _recorded(path: Path) -> bytes:
    header = RecordingHeader(
        bootstrap="b:1", name=None, goals=Goals(), throttle=None, stop_rules=StopRules()
    )
    film = RecordingWriter(path, header)
    film.add(plan_ready(), after_s=0.0, running=False, report=None)
    film.add(running(), after_s=1.0, running=True, report=None)
    film.close()
    return path.read_bytes()


def _plan_of(path: Path) -> None:
    plan_of_document(json.loads(path.read_bytes()), path)


STATE = StateFile(
    plimsoll="0", cluster_id="c", begun_ms=1, ended_ms=2, window_ms=1, fan_out=1.0, anonymised=False
)
CAPACITY = {
    "brokerCapacities": [
        {"brokerId": "-1", "capacity": {"DISK": "1", "CPU": {"num.cores": "2"}}},
        {"brokerId": "0", "capacity": {"DISK": {"/a": "1"}, "CPU": {"num.cores": 2}}},
    ]
}
MOVES = {
    "version": 1,
    "partitions": [{"topic": "a", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "/a"]}],
}


def readers(folder: Path) -> Iterator[Reader]:
    write_cluster_files(folder)
    write_plan(folder / "plan.json", plan())
    snapshot = canonical(as_document(cluster([1, 2], [MB] * 2)))
    yield Reader("p.json", read_plan, (folder / "plan.json").read_bytes())
    yield Reader("s.json", read_snapshot, snapshot)
    yield Reader("t.json", read_state, canonical(STATE.model_dump(mode="json")))
    yield Reader("screen.jsonl", _read_recording, _recorded(folder / "f.jsonl"))
    yield Reader("c.json", read_capacities, canonical(CAPACITY))
    yield Reader("r.json", read_reassignment, canonical(MOVES))
    yield Reader("e.json", read_election, canonical(MOVES))
    yield Reader("b.json", read_brokers, b'[{"id":1,"rack":"a","capacity":{"disk":1}}]')
    yield Reader("g.json", read_goals, b'{"move_price":0.5,"band":0.1}')
    yield Reader("g.toml", read_goals, b"move_price = 0.5\n[budget]\nmoves = 3\n")
    yield Reader(
        "d.txt",
        lambda path: read_cluster(ClusterFiles(describe=path)),
        (folder / "describe.txt").read_bytes(),
    )
    yield Reader("l.csv", read_loads, (folder / "loads.csv").read_bytes())
    yield Reader("b.csv", read_brokers, b"id,rack,state\n1,a,\n2,b,draining\n")
    yield Reader(
        "k.properties",
        read_client_properties,
        b"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=\\\n"
        b"org.apache.kafka.common.security.plain.PlainLoginModule required "
        b'username="u" password="p";\nssl.truststore.certificates=x\n',
    )
    yield Reader(
        "settings.toml",
        lambda path: load({}, config=path),
        b'throttle = "50MB/s"\ntimeout_s = 3\n[goals]\nmove_price = 0.5\n[limits.x]\n',
    )


def _nodes(document: Any, result: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every member of all objects and lists: its parent and key."""
    members: Any = ()
    if isinstance(document, dict):
        members = document.items()
    elif isinstance(document, list):
        members = enumerate(document)
    for key, value in members:
        result.append((document, key))
        _nodes(value, result)
    return result


def _with_other_value(dice: random.Random, line: bytes) -> bytes:
    """JSON with one member of another type."""
    document = json.loads(line)
    parent, key = dice.choice(_nodes(document, []))
    token = dice.choice((*VALUES, *TOKENS))
    if token in TOKENS:
        parent[key] = "TOKEN"
        return json.dumps(document).replace('"TOKEN"', str(token), 1).encode()
    parent[key] = token
    return json.dumps(document).encode()


def _damaged(dice: random.Random, data: bytes) -> bytes:
    """The bytes with a few of them changed, doubled, lost or inserted."""
    for _ in range(dice.randint(1, 4)):
        at, length = dice.randrange(len(data) + 1), dice.choice((0, 1, 3, 40))
        put = dice.choice(
            (
                dice.randbytes(length),
                data[at : at + 50] * dice.choice((1, 2, 100)),
                dice.choice(TOKENS).encode(),
                b"\n",
                b"\\",
                b'"',
                b"\0",
                b"-1",
            )
        )
        data = data[:at] + put + data[at + length :]
        data = data or b"x"
    return data


def _mutated(dice: random.Random, reader: Reader) -> bytes:
    lines = reader.good.splitlines(keepends=True)
    is_json = reader.name.endswith(("json", "jsonl"))
    if is_json and dice.random() < 0.7:
        at = dice.randrange(len(lines))
        lines[at] = _with_other_value(dice, lines[at]) + b"\n"
        return b"".join(lines)
    return _damaged(dice, reader.good)


NAMES = (
    *("p.json", "s.json", "t.json", "screen.jsonl", "c.json", "r.json", "e.json"),
    *("b.json", "g.json", "g.toml", "d.txt", "l.csv", "b.csv", "k.properties"),
    "settings.toml",
)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reader]:
    return {r.name: r for r in readers(tmp_path_factory.mktemp("good"))}


def attack(reader: Reader, folder: Path, seed: int) -> bool:
    """Whether one hostile file was rejected; asserts that it was rejected or read."""
    path = folder / reader.name
    data = _mutated(random.Random(seed), reader)
    path.write_bytes(data)
    try:
        reader.read(path)
    except PlimsollError as exc:
        refusal = str(exc)
    except BaseException as exc:
        raise AssertionError(f"seed {seed}: {data[:2000]!r}") from exc
    else:
        return False
    assert str(path) in refusal
    return True


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_rejects_a_file_by_its_name_or_reads_it(
    known: dict[str, Reader], tmp_path: Path, name: str
) -> None:
    refused = sum(attack(known[name], tmp_path, seed) for seed in range(ROUNDS))
    assert refused > ROUNDS / 10


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_does_not_wait_for_the_writer_of_a_named_pipe(
    known: dict[str, Reader], tmp_path: Path, name: str
) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(PlimsollError, match=f"{name}: it is a named pipe; give a file"):
        known[name].read(tmp_path / name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size_bytes": [-2, 0]}, "orders-0 has the size_bytes -2"),
        ({"local_bytes": [0, -9]}, "orders-1 has the local_bytes -9"),
        ({"partition": [0, 2**31]}, "has the number 2147483648"),
        ({"partition": [0, 0]}, "is listed twice"),
        ({"replicas": [[1], []]}, "has the replicas"),
        ({"replicas": [[1], [True]]}, "valid integer"),
        ({"leader": [1, 2.5]}, "valid integer"),
        ({"loads": [[-1.0, 1.0], [1.0, 1.0]]}, "negative or infinite load"),
    ],
)
def test_a_meaningless_partition_is_named(
    known: dict[str, Reader], tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    document = json.loads(known["s.json"].good)
    document["partitions"] |= change
    _refused(tmp_path, document, message)


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("taken_at_ms", 2**62, "header.taken_at_ms is .* not a time"),
        ("taken_at_ms", -5, "not a time"),
        ("topics.0.name", "a/../b", "'a/../b' is not a legal topic name"),
        ("topics.0.name", "x" * 250, "is not a legal topic name"),
        ("topics.0.name", "..", "is not a legal topic name"),
        ("brokers.0.id", -3, "a broker has the number -3"),
        ("brokers.0.id", True, "valid integer"),
        ("brokers.1.id", 1, "each listed once"),
        ("sources.0.measured_share", 7.0, "the source 'probe' has an impossible"),
        ("sources.0.samples", -1, "the source 'probe'"),
    ],
)
def test_a_meaningless_header_is_named(
    known: dict[str, Reader], tmp_path: Path, member: str, value: object, message: str
) -> None:
    document = json.loads(known["s.json"].good)
    *parents, last = member.split(".")
    place = document["header"]
    for step in parents:
        place = place[int(step) if step.isdigit() else step]
    place[last] = value
    _refused(tmp_path, document, message)


def _refused(folder: Path, document: dict[str, Any], message: str) -> None:
    path = folder / "s.json"
    path.write_text(json.dumps(document))
    with pytest.raises(PlimsollError, match=message) as caught:
        read_snapshot(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("topic", "a b", "Kafka allows no topic of this name"),
        ("partition", -1, "its number is not from 0"),
        ("replicas_after", [1, 1], r"names a broker twice: \[1, 1\]"),
        ("replicas_after", [], "replicas_after is empty"),
        ("bytes_to_copy", -1, "bytes_to_copy is less than 0"),
        ("replicas_after", [1.0], "valid integer"),
        ("gain", "much", "valid number"),
    ],
)
def test_a_meaningless_move_is_named(
    known: dict[str, Reader], tmp_path: Path, field: str, value: object, message: str
) -> None:
    document = json.loads(known["p.json"].good)
    document["moves"][0][field] = value
    path = tmp_path / "p.json"
    path.write_text(json.dumps(document))
    with pytest.raises(PlimsollError, match=message):
        _plan_of(path)
