"""Capacities from the settings, and their display."""

import dataclasses
import json
from pathlib import Path

import pytest

from control.loop.decision_log import CapacityNotes
from control.loop.loop import Loop
from control.loop.view import Mode
from control.render.cluster_status import capacity_text, status_answer
from control.settings.capacity_table import capacities_of
from control.settings.settings import Settings, load
from model.errors import ConfigError
from model.evaluate import evaluate
from model.ids import BrokerId
from model.snapshot.capacities import Capacities
from model.snapshot.snapshot import Broker, CapacitySource, Resource, Snapshot
from tests.support.control.loop_parts import (
    EASY,
    MB,
    CannedObserver,
    cluster,
    loop_parts,
    loop_settings,
    with_header,
)

TABLE = """
[capacities.default]
net_in = "125MB/s"
net_out = 125_000_000
disk = "1TB"
cpu = 4
[capacities.brokers.3]
disk = "2TB"
cpu = 0.5
"""


def given(text: str) -> Capacities | None:
    """Capacities from a configuration file with this text."""
    path = Path("plimsoll.toml")
    path.write_text(text)
    return of_settings(load({}, config=path))


def of_settings(settings: Settings) -> Capacities | None:
    return capacities_of(settings.capacities, settings.capacity_file)


def limits(result: Capacities | None, broker: int) -> dict[Resource, float]:
    assert result is not None
    return result.of(Broker(id=BrokerId(broker))).capacity


def sized(*capacity: dict[Resource, float]) -> Snapshot:
    """Brokers 1 to 3 with these capacities, as reported by them."""
    state = cluster([1, 2, 3], [MB] * 3)
    brokers = tuple(
        b.model_copy(
            update={
                "capacity": known,
                "capacity_from": dict.fromkeys(known, CapacitySource.LOG_DIRS),
            }
        )
        for b, known in zip(state.header.brokers, capacity, strict=True)
    )
    return with_header(state, brokers=brokers)


def test_a_table_gives_every_broker_its_capacity() -> None:
    assert limits(given(TABLE), 1) == {
        Resource.NET_IN: 125e6,
        Resource.NET_OUT: 125e6,
        Resource.DISK: 1e12,
        Resource.CPU: 4.0,
    }


def test_a_brokers_own_table_overrides_the_default_entry_by_entry() -> None:
    result = limits(given(TABLE), 3)
    assert (result[Resource.DISK], result[Resource.CPU]) == (2e12, 0.5)
    assert result[Resource.NET_IN] == 125e6


def test_a_variable_gives_a_capacity_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_CAPACITIES__DEFAULT__NET_IN", "10MB/s")
    assert limits(given(""), 1) == {Resource.NET_IN: 10e6}


def test_a_capacity_that_is_not_given_is_unknown() -> None:
    assert given("") is None
    assert limits(given("[capacities.brokers.3]\ncpu = 1\n"), 1) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('default.net_in = "0"', "default.net_in: .*'0' is not a rate; use bytes"),
        ("default.net_in = -5", "default.net_in: .*greater than or equal to 1"),
        ('default.net_out = "1Gb/s"', "default.net_out: .*'1Gb/s' is not a rate"),
        ('default.disk = "1TB/s"', "default.disk: .*'1TB/s' is not a size; use bytes, or"),
        ("default.disk = 0", "default.disk: .*greater than 0"),
        ("default.disk = nan", "default.disk is nan; give a finite number"),
        ("default.cpu = 0", "default.cpu: Input should be greater than 0"),
        ('default.cpu = "4"', "default.cpu: Input should be a valid number"),
        ("default.cpu = inf", "default.cpu is inf; give a finite number"),
        ('brokers.3.dsk = "1TB"', "unknown key 'capacities.brokers.3.dsk'; did you mean"),
        ("brokers.x.cpu = 1", "brokers.x.*: Input should be a valid integer"),
        ("brokers.-1.cpu = 1", "brokers.-1.*: Input should be greater than or equal"),
        ("defalt.cpu = 1", "line [12]: unknown key 'capacities.defalt'; did you mean"),
    ],
)
def test_an_impossible_capacity_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        given(f"[capacities]\n{text}\n")


def capacity_file() -> Path:
    path = Path("capacity.json")
    entry = {"brokerId": "-1", "capacity": {"NW_IN": "1000"}}
    path.write_text(json.dumps({"brokerCapacities": [entry]}))
    return path


def test_a_file_is_named_by_setting_or_flag() -> None:
    path = capacity_file()
    assert limits(given(f'capacity_file = "{path}"\n'), 1)[Resource.NET_IN] == 1_024_000
    Path("plimsoll.toml").unlink()
    assert limits(of_settings(load({"capacity_file": path})), 1)


def test_a_file_beside_a_table_is_refused() -> None:
    path = capacity_file()
    Path("plimsoll.toml").write_text(TABLE)
    with pytest.raises(ConfigError, match=r"both capacity\.json and \[capacities\]"):
        of_settings(load({"capacity_file": path}))


def test_an_unreadable_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"cannot read gone\.json: No such file"):
        given('capacity_file = "gone.json"\n')


def test_status_shows_each_capacity_its_use_and_its_source() -> None:
    state = sized({Resource.NET_IN: 4e6, Resource.CPU: 4.0}, {}, {})
    text = capacity_text(state, evaluate(state, EASY, ()))
    assert "25 % of 4.00 MB/s (log directories)" in text
    assert "4 cores (log directories)" in text
    assert text.count("unknown") == 4


def test_status_omits_capacities_if_none_is_known() -> None:
    state = cluster([1], [MB])
    assert capacity_text(state, evaluate(state, EASY, ())) == ""


def test_status_has_capacities_for_programs() -> None:
    state = sized({Resource.DISK: 1e12}, {}, {})
    answer = status_answer(
        state, evaluate(state, EASY, ()), within_band=True, now_ms=0, notes=("words",)
    )
    result = answer.model_dump(mode="json")
    assert result["notes"] == ["words"]
    first, second, _ = result["brokers"]
    assert first["capacity"] == {"disk": 1e12}
    assert first["capacity_from"] == {"disk": "log directories"}
    assert second["capacity"] == second["capacity_from"] == {}


def test_the_log_names_missing_capacities_once(tmp_path: Path) -> None:
    """And again after a change in between."""
    partial, whole = sized({Resource.NET_IN: 4e6}, {}, {}), sized({}, {}, {})
    parts = loop_parts(CannedObserver([partial]), None)
    loop = Loop(loop_settings(tmp_path, mode=Mode.READ_ONLY), parts)
    notes = CapacityNotes(loop.warn, None)
    for snapshot in (partial, partial, dataclasses.replace(partial), whole, partial):
        notes(dataclasses.replace(loop.view, snapshot=snapshot))
    messages = [line for line in loop.view.log if line.text.startswith("net_in: no cap")]
    assert [line.level for line in messages] == ["warning"] * 2
