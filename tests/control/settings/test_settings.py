"""Sources of settings, and errors about invalid ones."""

import math
import os
import re
from datetime import datetime
from pathlib import Path

import pytest

from control.settings.capacity_table import capacities_of
from control.settings.settings import Settings, load, state_dir_alone
from control.settings.throttle_settings import auto_throttle
from model.errors import ConfigError
from model.snapshot.snapshot import Resource
from model.stop_rules import Reaction


def written(text: str) -> Path:
    path = Path("config", "plimsoll", "plimsoll.toml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_flag_environment_profile_file_default_in_this_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written("timeout_s = 1\n[profiles.p]\ntimeout_s = 2\n")
    assert load({}).timeout_s == 1
    assert load({}, profile="p").timeout_s == 2
    monkeypatch.setenv("PLIMSOLL_TIMEOUT_S", "3")
    assert load({}, profile="p").timeout_s == 3
    assert load({"timeout_s": 4.0}, profile="p").timeout_s == 4
    assert load({"timeout_s": None}, profile="p").timeout_s == 3


def test_a_default_flag_does_not_beat_the_file() -> None:
    written('bootstrap_server = "broker:9092"\n')
    assert load({"bootstrap_server": None}).bootstrap_server == "broker:9092"


def test_appearance_and_keys_of_the_screen_are_read_with_and_without_quotes() -> None:
    written(
        '[screen]\ntheme = "nord"\nascii = true\n'
        '[keys]\nplan.approve = "ctrl+y"\n"run.stop" = "K"\n'
    )
    result = load({})
    assert (result.screen.theme, result.screen.ascii) == ("nord", True)
    assert result.keys == {"plan.approve": "ctrl+y", "run.stop": "K"}


def test_limits_and_budgets_may_have_their_old_names() -> None:
    written(
        "[goals.budgets]\nmoves = 3\n"
        "[limits.night]\nmoves_per_run = 50\nbytes_per_run = 1000\n"
        "partitions_per_topic = 10\nmoves_in_flight = 4\nleast_gain_share = 0.1\n"
        "pause_s = 900\nconfirm_s = 300\n"
    )
    result = load({})
    assert result.goals.budgets.replica_moves == 3
    night = result.limits["night"]
    # It counted every changed partition, so it limits each kind of change.
    every = night.replica_moves, night.leader_changes, night.partitions
    assert every == (50, 50, 50)
    assert (night.bytes, night.min_gain, night.pause) == (1000, 0.1, 900)


@pytest.mark.parametrize(
    ("text", "seconds"), [('"2h"', 7200.0), ("90", 90.0), ('"off"', math.inf), ("false", math.inf)]
)
def test_the_wait_for_a_dead_broker_is_a_time_span_or_off(text: str, seconds: float) -> None:
    written(f"dead_broker_after = {text}\n")
    assert load({}).dead_broker_after == seconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('dead_broker_after = "soon"\n', "dead_broker_after: .*or off"),
        (
            "dead_broker_after = 0\n",
            "0 s would move .* whenever it restarts; give a longer time, or",
        ),
        ('dead_broker_after = "0s"\n', "0 s would move the replicas"),
        ("dead_broker_after = -1\n", "'-1' is not a time span; .*or off"),
        ("timeout_s = '999999d'\n", "'999999d' is too long; give at most 11574d"),
        ("[limits.x]\nmoves_per_run = 1\nreplica_moves = 1\n", "moves_per_run is the old name of"),
        ("[screen]\nascci = true\n", "unknown key 'screen.ascci'; did you mean 'as"),
        ("[keys]\nplan.approve = 3\n", "keys.plan.approve: Input should be a valid"),
        ('bootstrap_serve = "x:1"\n', "line 1: unknown key 'bootstrap_serve'; did you"),
        ("\n[goals]\nmove_prise = 1\n", "line 3: unknown key 'goals.move_prise'; did"),
        ("[profiles.p]\nwindow = 3\n", "line 2: unknown key 'window'; did you mean"),
        ("timeout_s = -1\n", "timeout_s: Input should be greater than 0"),
        ("timeout_s = \n", "is not valid TOML"),
        ("profiles = 3\n", "profiles are tables"),
        ("[limits.x]\nmoves_per_run = 1\n", "limits.x.bytes: Field required"),
        ('throttle = "fast"\n', "use bytes per second, or a unit: 50MB/s, 50MiB/s, or auto"),
        ("[history]\nweks = 1\n", "unknown key 'history.weks'; did you mean 'weeks'"),
        ("[history]\nraw_days = 0\n", "raw_days: Input should be greater than or"),
        ('[forecast]\nhorizon = "month"\n', "horizon: Input should be 'day', 'week'"),
        ('[forecast]\ntime_zone = "Mars/Base"\n', "unknown time zone 'Mars/Base'"),
        ("[auto_throttle]\nflor = 1\n", "unknown key 'auto_throttle.flor'; did you"),
        ("[auto_throttle]\nfloor = 2\nceiling = 1\n", "the floor is above the"),
        ('[auto_throttle]\nfloor = "wide"\n', "auto_throttle.floor: .* is not a rate"),
        ('[goals]\nexcluded_topics = ["("]\n', "'\\(' is not a valid regular expression"),
        (
            f'[goals]\nexcluded_topics = ["{"a{0,1000}" * 200}"]\n',
            "excluded_topics.*: the regular expression is too large; simplify it: 'a",
        ),
    ],
)
def test_invalid_settings_are_named(text: str, message: str) -> None:
    path = written(text)
    with pytest.raises(ConfigError, match=message) as caught:
        load({})
    assert str(path) in str(caught.value)


OLD = """\
[limits.night]
moves_per_run = 50
bytes_per_run = 1000
partitions_per_topic = 10
moves_in_flight = 4
least_gain_share = 0.1
pause_s = 900
confirm_s = 300
"""


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        (
            "moves_per_run = 50",
            "moves_per_run = 0",
            "line 2: limits.night.moves_per_run: Input should be greater than 0",
        ),
        (
            "bytes_per_run = 1000",
            "bytes_per_run = -1",
            "line 3: limits.night.bytes_per_run: Input should be greater than 0",
        ),
        (
            "least_gain_share",
            "least_gain_shar",
            "line 6: unknown key 'limits.night.least_gain_shar'; did you mean 'min_gain'?",
        ),
        ("pause_s", "paus", "line 7: unknown key 'limits.night.paus'; did you mean 'pause'?"),
    ],
)
def test_a_fault_under_an_old_name_has_that_name_and_its_own_line(
    good: str, bad: str, message: str
) -> None:
    path = written(OLD.replace(good, bad))
    with pytest.raises(ConfigError) as caught:
        load({})
    # The same fault under both fields that the old name sets is one.
    assert str(caught.value) == f"{path.absolute()}, {message}"


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"cannot read nowhere\.toml"):
        load({}, config=Path("nowhere.toml"))


def test_a_missing_profile_is_named_with_the_known_ones() -> None:
    written("[profiles.prod]\ntimeout_s = 1\n")
    with pytest.raises(ConfigError, match=r"no profile 'test'; it has \['prod'\]"):
        load({}, profile="test")


def test_an_unknown_variable_is_named_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_TIMOUT_S", "3")
    with pytest.raises(ConfigError, match="PLIMSOLL_TIMOUT_S; did you mean"):
        load({})


@pytest.mark.parametrize(
    ("variable", "text", "path", "value"),
    [
        ("PLIMSOLL_SOLVE__WORK", "1", "solve.work", 1.0),
        ("PLIMSOLL_SOLVE__SEED", "7", "solve.seed", 7),
        ("PLIMSOLL_GOALS__MOVE_PRICE", "0.25", "goals.move_price", 0.25),
        ("PLIMSOLL_GOALS__LEVEL_DIRECTORIES", "true", "goals.level_directories", True),
        ("PLIMSOLL_GOALS__BUDGETS__BYTES", "2GiB", "goals.budgets.bytes", 2**31),
        ("PLIMSOLL_GOALS__OBJECTIVE", "band", "goals.objective", "band"),
        ("PLIMSOLL_GOALS", '{"move_price": 3}', "goals.move_price", 3.0),
        ("PLIMSOLL_SCREEN__ASCII", "1", "screen.ascii", True),
        ("PLIMSOLL_NAME", "42", "name", "42"),
        ("PLIMSOLL_STOP_RULES__CALM_S", "1m", "stop_rules.calm_s", 60.0),
        ("PLIMSOLL_TIMEOUT_S", "1m30s", "timeout_s", 90.0),
        ("PLIMSOLL_AUTO_THROTTLE__FLOOR", "5MB/s", "auto_throttle.floor", 5_000_000),
        ("PLIMSOLL_ARCHIVE__BUCKET", "123", "archive.bucket", "123"),
        ("PLIMSOLL_SHORTEN_SEGMENTS", "yes", "shorten_segments", True),
    ],
)
def test_nested_variables_are_read_as_the_type_of_the_setting(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, path: str, value: object
) -> None:
    monkeypatch.setenv(variable, text)
    result: object = load({})
    for name in path.split("."):
        result = getattr(result, name)
    assert result == value
    assert type(result) is type(value) or isinstance(result, str)


def test_variables_of_tables_override_the_file_key_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    written("[solve]\nwork = 5\nseed = 3\n[capacities.brokers.3]\ndisk = 7\nnet_in = 8\n")
    monkeypatch.setenv("PLIMSOLL_SOLVE__WORK", "1.5")
    monkeypatch.setenv("PLIMSOLL_CAPACITIES__BROKERS__3__DISK", "1TiB")
    result = load({})
    assert (result.solve.work, result.solve.seed) == (1.5, 3)
    broker = result.capacities.brokers[3]
    assert (broker.disk, broker.net_in) == (2**40, 8)


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("PLIMSOLL_SOLVE__WORK", "much", "PLIMSOLL_SOLVE__WORK: solve.work: Input"),
        ("PLIMSOLL_SOLVE__WORK", "-1", "PLIMSOLL_SOLVE__WORK: solve.work: Input"),
        ("PLIMSOLL_SOLVE__WORK", "1e309", "PLIMSOLL_SOLVE__WORK: solve.work: Input"),
        ("PLIMSOLL_SOLVE__GAP", "1e309", "PLIMSOLL_SOLVE__GAP: solve.gap: Input"),
        ("PLIMSOLL_GOALS", "{", "PLIMSOLL_GOALS: goals: "),
        ("PLIMSOLL_GOALS", '{"move_prise": 1}', "did you mean 'move_price'"),
        ("PLIMSOLL_AUTO_THROTTLE__FLOOR", "1h", "'1h' is not a rate"),
        ("PLIMSOLL_SOLVE__WRK", "1", "PLIMSOLL_SOLVE__WRK; did you mean 'PLIMSOLL_SOLVE__WORK'"),
        (
            "PLIMSOLL_KEYS__TABLE__SORT",
            "o",
            """set a name with dots as JSON: PLIMSOLL_KEYS='{"table.sort": "..."}'""",
        ),
        ("PLIMSOLL_NAME__X", "1", "unknown environment variable PLIMSOLL_NAME__X"),
        ("PLIMSOLL_CONFIGS", "1", "unknown environment variable PLIMSOLL_CONFIGS"),
        ("PLIMSOLL_", "1", "unknown environment variable PLIMSOLL_"),
        ("PLIMSOLL_SOLVE__", "1", "unknown environment variable PLIMSOLL_SOLVE__"),
    ],
)
def test_a_variable_that_does_not_fit_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str, message: str
) -> None:
    written("[solve]\nseed = 3\n")
    monkeypatch.setenv(variable, text)
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        load({})
    assert variable in str(caught.value)


def test_a_value_in_the_file_is_named_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_SOLVE__WORK", "1")
    written("timeout_s = 3\n\n[solve]\nseed = -4\n[profiles.p.solve]\nseed = 0.5\n")
    with pytest.raises(ConfigError, match=r"toml, line 4: solve\.seed: Input"):
        load({})
    with pytest.raises(ConfigError, match=r"toml, line 6: solve\.seed: Input"):
        load({}, profile="p")


@pytest.mark.parametrize(
    "name", ["SERVICE_HOST", "SERVICE_PORT", "PORT", "PORT_80_TCP_ADDR", "API_PORT"]
)
def test_variables_that_kubernetes_sets_for_a_service_are_ignored(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(f"PLIMSOLL_{name}", "tcp://10.0.0.1:80")
    assert load({}).timeout_s == 10


def test_variables_that_choose_tools_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_AUTOMQ_HOME", "/nowhere")
    assert load({}).timeout_s == 10


def test_goals_come_from_the_file() -> None:
    written('[[goals.balance]]\nresource = "net_in"\nfloor = 5\ntolerance = 0.2\n')
    (goal,) = load({}).goals.balance
    assert (goal.floor, goal.tolerance, goal.weight) == (5, 0.2, 1.0)


def test_a_bucket_is_a_table_or_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    written('[archive]\nbucket = "ops"\nsecret_key = "hush"\n')
    archive = load({}).archive
    assert archive is not None
    assert (archive.bucket, archive.prefix, archive.endpoint_url) == ("ops", "", None)
    assert "hush" not in repr(archive)
    monkeypatch.setenv("PLIMSOLL_ARCHIVE__PREFIX", "p/")
    archive = load({}).archive
    assert archive is not None
    assert (archive.bucket, archive.prefix) == ("ops", "p/")


def test_a_following_throttle_takes_bandwidths_from_the_capacities() -> None:
    written(
        'throttle = "auto"\n[auto_throttle]\nfloor = "1MB/s"\nceiling = 9_000_000\n'
        '[capacities.default]\nnet_in = "125MB/s"\nnet_out = "50 MB/s"\n'
        '[capacities.brokers.1]\nnet_in = "1MB/s"\n'
    )
    settings = load({})
    assert settings.throttle == "auto"
    auto = auto_throttle(
        settings.auto_throttle, capacities_of(settings.capacities, settings.capacity_file)
    )
    assert (auto.floor, auto.ceiling) == (10**6, 9 * 10**6)
    assert auto.capacity == {
        -1: {Resource.NET_IN: 125e6, Resource.NET_OUT: 50e6},
        1: {Resource.NET_IN: 1e6, Resource.NET_OUT: 50e6},
    }


def test_stop_rules_come_from_the_file() -> None:
    written(
        '[stop_rules]\noffline = "roll back"\nwindow_hours = "22:00-06:00"\n'
        "window_end = 2026-03-01T06:00:00+01:00\ncalm_s = 5\n"
    )
    rules = load({}).stop_rules
    assert rules.offline is Reaction.ROLL_BACK
    assert rules.window_hours == "22:00-06:00"
    assert rules.window_end == datetime.fromisoformat("2026-03-01T05:00:00Z")
    assert rules.calm_s == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('offline = "halt"', "'off', 'pause', 'stop' or 'roll back'"),
        ('window_hours = "10pm-6am"', "'10pm-6am' is not a window; write it as 22:00-06:00"),
        ('window_hours = "22:00-22:00"', "write it as 22:00-06:00"),
        ("calm_s = -1", "greater than or equal to 0"),
        ('ofline = "stop"', "unknown key 'stop_rules.ofline'; did you mean 'offline'?"),
    ],
)
def test_stop_rules_that_do_not_fit_are_named(text: str, message: str) -> None:
    written(f"[stop_rules]\n{text}\n")
    with pytest.raises(ConfigError, match=re.escape(message)):
        load({})


def test_spark_properties_are_passed_through() -> None:
    written(
        'spark_master = "spark://a:7077"\nspark_shared_state = true\n'
        '[spark]\n"spark.executor.memory" = "2g"\n'
    )
    result = load({})
    assert result.spark_master == "spark://a:7077"
    assert result.spark == {"spark.executor.memory": "2g"}
    assert result.spark_shared_state
    assert load({"spark_master": "yarn"}).spark_master == "yarn"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('spark_master = "sc://a"\n', "spark_master: .*'sc://a' is not a Spark master"),
        ("spark = 3\n", "properties are a table of names and texts"),
        ("[spark]\nspark.cores.max = 3\n", "'spark' is not a Spark property.*name in quotes"),
        ('[spark]\n"spark.cores.max" = 3\n', r"spark\.cores\.max is a text; write its"),
        ('[spark]\n"spark.master" = "yarn"\n', r"spark\.master is set by spark_master"),
        ('[spark]\n"kafka.x" = "1"\n', r"'kafka\.x' is not a Spark property"),
    ],
)
def test_an_invalid_spark_property_is_rejected(text: str, message: str) -> None:
    written(text)
    with pytest.raises(ConfigError, match=message):
        load({})


def test_a_path_may_begin_with_the_home_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PLIMSOLL_CACHE_DIR", "~/jars")
    written(
        'state_dir = "~/state"\n'
        '[prometheus]\npreset = "strimzi"\nurl = "http://p"\n'
        'broker_label = "pod"\nca_file = "~/ca"\n'
    )
    result = load({})
    assert (result.state_dir, result.cache_dir) == (tmp_path / "state", tmp_path / "jars")
    assert result.prometheus is not None
    assert result.prometheus.ca_file == tmp_path / "ca"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "the path is empty"),
        ("~nobody-has-this-name/x", "there is no such user"),
        ("a\x1b[2Jb", "the path has unprintable characters"),
    ],
)
def test_an_impossible_path_is_rejected(
    monkeypatch: pytest.MonkeyPatch, path: str, reason: str
) -> None:
    """An empty path would be the current folder, which others may read."""
    monkeypatch.setenv("PLIMSOLL_STATE_DIR", path)
    with pytest.raises(ConfigError, match=f"state_dir: .*{reason}"):
        load({})


def test_the_state_folder_of_refused_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in [name for name in os.environ if name.startswith("PLIMSOLL_")]:
        monkeypatch.delenv(variable)
    file = tmp_path / "own.toml"
    own = 'state_dir = "~/mine"\nunknown = 1\n[profiles.other]\nstate_dir = "/other"\n'
    file.write_text(own)
    assert state_dir_alone(file, None) == Path.home() / "mine"
    assert state_dir_alone(file, "other") == Path("/other")
    file.write_text("unknown = 1\n")
    assert state_dir_alone(file, None) == Settings.model_fields["state_dir"].default
    # Nothing says whether the default is meant.
    for text in ("window_s = [\n", "state_dir = 1\n", "profiles = 1\n"):
        file.write_text(text)
        assert state_dir_alone(file, "other") is None
    (tmp_path / "plimsoll.toml").write_text("unknown = 1\n")
    monkeypatch.chdir(tmp_path)
    assert state_dir_alone(None, None) is None
    monkeypatch.setenv("PLIMSOLL_STATE_DIR", "/set")
    assert state_dir_alone(file, None) == Path("/set")
    assert state_dir_alone(tmp_path / "missing.toml", None) == Path("/set")
