"""What `make fuzz` feeds: each reader accepts its first inputs and withstands damaged ones."""

import random
from collections.abc import Mapping

import pytest

from benchmarks.fuzz import budget
from benchmarks.fuzz.budget import within_budget
from benchmarks.fuzz.readers import ByteReader, readers
from model import private

NAMES = (
    *("p.json", "s.json", "t.json", "screen.jsonl", "c.json", "r.json", "e.json", "b.json"),
    *("g.json", "g.toml", "d.txt", "l.csv", "b.csv", "k.properties", "settings.toml"),
    *("automq-topic", "cruise-control-topic", "samples-topic", "journal", "properties"),
    *("cruise-control-logins", "authorization-header", "action-request", "exporter", "jaas"),
    *("offsets-response", "log-dirs-response", "commits-response", "signatures", "signers"),
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
