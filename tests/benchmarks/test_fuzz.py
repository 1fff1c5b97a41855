"""What `make fuzz` feeds: each reader accepts its first inputs and withstands damaged ones."""

import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.fuzz import budget
from benchmarks.fuzz.__main__ import replayed
from benchmarks.fuzz.budget import within_budget
from benchmarks.fuzz.corpus import FOLDER, SUFFIX, keep, kept, packed, unpacked
from benchmarks.fuzz.readers import ByteReader, readers
from model import private
from tests.support.paths import ROOT

NAMES = (
    *("p.json", "s.json", "t.json", "screen.jsonl", "c.json", "r.json", "e.json", "b.json"),
    *("g.json", "g.toml", "d.txt", "l.csv", "b.csv", "k.properties", "settings.toml"),
    *("automq-topic", "cruise-control-topic", "samples-topic", "journal", "properties"),
    *("cruise-control-logins", "authorization-header", "action-request", "exporter", "jaas"),
    *("offsets-response", "log-dirs-response", "commits-response", "signatures", "signers"),
    *("task", "broker-marks", "decisions", "audit", "lease", "kubernetes-lease", "prometheus"),
    *("oauth-token", "pkcs12", "cruise-control-request"),
)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ByteReader]:
    found = readers(tmp_path_factory.mktemp("fuzz"))
    private.end()
    return found


def test_every_reader_is_tried(known: Mapping[str, ByteReader]) -> None:
    assert tuple(known) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_accepts_its_first_inputs_and_withstands_damage(
    known: Mapping[str, ByteReader], name: str
) -> None:
    reader, dice = known[name], random.Random(4)
    assert reader.seeds
    for seed in reader.seeds:
        assert reader(seed) or "." in name  # some files are refused by what they say
        for _ in range(5):
            damaged = bytearray(seed)
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
            reader(bytes(damaged))
        reader(seed[: len(seed) // 2])


def test_a_reader_that_takes_too_much_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert within_budget(bool, b"x")
    monkeypatch.setattr(budget, "BASE_S", -1.0)
    with pytest.raises(budget.OverBudget, match="s of CPU for 1 bytes"):
        within_budget(bool, b"x")
    monkeypatch.setattr(budget, "BASE_S", 60.0)
    monkeypatch.setattr(budget, "BASE_BYTES", -10_000)
    with pytest.raises(budget.OverBudget, match="MiB for 1 bytes"):
        within_budget(bool, b"x")


def test_every_reader_withstands_the_inputs_that_are_kept() -> None:
    # In a process of its own, whose memory has not been larger before.
    command = [sys.executable, "-P", "-m", "benchmarks.fuzz", "--replay"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    found = dict(line.split(": ", 1) for line in shown.stdout.splitlines()[:-1])
    assert tuple(found) == NAMES
    counts = [int(words.split()[0]) for words in found.values()]
    assert sum(counts) > 500


def test_inputs_are_kept_for_readers_alone_and_in_little_space() -> None:
    archives = list(FOLDER.iterdir())
    assert {path.name.removesuffix(SUFFIX) for path in archives} <= {*NAMES}
    assert sum(path.stat().st_size for path in archives) < 500_000


def test_equal_inputs_give_equal_archives_whatever_their_order(tmp_path: Path) -> None:
    inputs = (b"", b"ab", b"a", b"\0" * 600, b"b")
    assert packed(inputs) == packed([*reversed(inputs), b"a"])
    assert unpacked(packed(inputs)) == (b"", b"a", b"b", b"ab", b"\0" * 600)
    keep("x", inputs, tmp_path)
    assert len(kept("x", tmp_path)) == len(inputs)
    keep("x", (), tmp_path)
    assert kept("x", tmp_path) == ()


def test_an_input_that_a_reader_does_not_withstand_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def read(data: bytes) -> None:
        if data == b"?":
            raise IndexError("out of range")

    reader = ByteReader(read, (b"good",))
    assert replayed("x", reader, [b"x"])
    assert not replayed("x", reader, [b"x", b"?", b"y"])
    shown = capsys.readouterr().out
    assert "x: input 5bab61eb53176449e25c2c82f172b82cb13ffb9d: b'?'" in shown
    assert "IndexError: out of range" in shown
    assert shown.endswith("x: 4 inputs, 1 failed\n")
