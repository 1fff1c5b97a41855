"""A `plimsoll.toml` in the current folder is trusted only with harmless keys."""

from pathlib import Path

import pytest

from control.settings.settings import Settings, load
from control.settings.working_folder import HARMLESS
from model.errors import ConfigError

BUCKET = '{ bucket = "b", endpoint_url = "http://evil.invalid" }'
HARMFUL = {
    "client_properties": '"evil.properties"',
    "state_dir": '"."',
    "cache_dir": '"."',
    "spark_master": '"spark://evil.invalid:7077"',
    "spark": '{ "spark.pyspark.python" = "./evil" }',
    "require_signature": '"/etc/passwd"',
    "spark_secret_file": '"/etc/passwd"',
    "spark_shared_state": "true",
    "retention": "{ tasks = 100 }",
    "history": '{ folder = "s3a://evil/x" }',
    "samples_topic": '"x"',
    "stand_down_balancer": "true",
    "shorten_segments": "true",
    "prometheus": '{ url = "http://evil.invalid" }',
    "tier": BUCKET,
    "wal": BUCKET,
    "archive": BUCKET,
    "capacity_file": '"evil.json"',
    "limits": "{ conservative = {} }",
    "triggers": '{ rule_violated = "act" }',
    "schedule": '{ exempt = ["uneven_load"] }',
    "notify": '[{ kind = "command", command = ["./evil"] }]',
    "service": '{ listen = "127.0.0.1:80" }',
}


def written(text: str) -> None:
    Path("plimsoll.toml").write_text(text)


def test_every_setting_is_harmless_or_harmful() -> None:
    assert set(Settings.model_fields) == HARMLESS | set(HARMFUL)


@pytest.mark.parametrize("key", HARMFUL)
@pytest.mark.parametrize("profile", [None, "p"])
def test_a_harmful_key_is_rejected_with_its_line(key: str, profile: str | None) -> None:
    head = "timeout_s = 3\n" + ("[profiles.p]\n" if profile else "")
    written(f"{head}{key} = {HARMFUL[key]}\n")
    line = 3 if profile else 2
    with pytest.raises(ConfigError) as caught:
        load({}, profile=profile)
    assert f"plimsoll.toml, line {line}: '{key}' is not allowed" in str(caught.value)
    assert "--config ./plimsoll.toml" in str(caught.value)


def test_the_file_is_named_also_where_the_environment_gives_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PLIMSOLL_CACHE_DIR", "mine")
    written('cache_dir = "theirs"\n')
    with pytest.raises(ConfigError, match=r"^plimsoll\.toml, line 1: 'cache_dir'"):
        load({})


@pytest.mark.parametrize("named", ["flag", "environment", "own folder"])
def test_a_file_given_explicitly_or_owned_by_the_user_is_trusted(
    named: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    written(f"tier = {BUCKET}\n")
    config = None
    if named == "flag":
        config = Path("./plimsoll.toml")
    elif named == "environment":
        monkeypatch.setenv("PLIMSOLL_CONFIG", "plimsoll.toml")
    else:
        own = Path("config", "plimsoll")
        own.mkdir(parents=True)
        Path("plimsoll.toml").rename(own / "plimsoll.toml")
        monkeypatch.chdir(own)
    result = load({}, config=config)
    assert result.tier is not None
    assert caplog.messages == []


def test_harmless_keys_are_accepted_and_the_file_is_reported(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import logging

    monkeypatch.setattr(logging.getLogger("plimsoll"), "propagate", True)
    written("[goals]\nmove_price = 0.5\n[screen]\nascii = true\n")
    result = load({})
    assert (result.goals.move_price, result.screen.ascii) == (0.5, True)
    assert "using settings from plimsoll.toml in the current folder" in caplog.text


def test_no_other_login_is_sent_to_servers_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    written('bootstrap_server = "evil.invalid:9092"\n')
    assert load({}).bootstrap_server == "evil.invalid:9092"
    login = {"client_properties": Path("secret.properties")}
    with pytest.raises(ConfigError, match="may hold secrets for other servers"):
        load(login)
    assert load(login | {"bootstrap_server": "b:1"}).bootstrap_server == "b:1"
    monkeypatch.setenv("PLIMSOLL_CLIENT_PROPERTIES", "secret.properties")
    with pytest.raises(ConfigError, match="may hold secrets for other servers"):
        load({})
    monkeypatch.setenv("PLIMSOLL_BOOTSTRAP_SERVER", "b:1")
    assert load({}).bootstrap_server == "b:1"
