"""`[prometheus]`: valid and invalid settings of metrics."""

import re
import time
from pathlib import Path

import pytest

from collector.reports.selectors import figures
from control import compose
from control.settings.prometheus_settings import PrometheusSettings, poller_of
from control.settings.settings import load
from model.errors import ConfigError
from tests.support.collector.http_pages import Page, pages, query_of, vector

SERVER = 'preset = "strimzi"\nurl = "http://p:9090"\nbroker_label = "id"\n'


def settings_of(text: str) -> PrometheusSettings:
    path = Path("prometheus.toml")
    path.write_text(f"[prometheus]\n{text}\n")
    result = load({}, config=path).prometheus
    assert result is not None
    return result


def test_without_a_table_no_metrics_are_read() -> None:
    assert load({}).prometheus is None


def test_a_server_is_read_with_its_labels_and_metrics() -> None:
    result = settings_of(
        SERVER + 'labels = { cluster = "prod" }\nbroker_pattern = "kafka-(\\\\d+)"\n'
        "[prometheus.metrics]\n"
        'bytes_in = "rate(own_total)"\nrequests = ["a", "b"]\nsize_bytes = []\n'
    )
    assert (result.url, result.broker_label) == ("http://p:9090", "id")
    assert (result.labels, result.broker_pattern) == ({"cluster": "prod"}, r"kafka-(\d+)")
    chosen = figures(result.preset, {str(f): m for f, m in result.metrics.items()})
    assert [str(s) for s in chosen["requests"]] == ["a", "b"]
    assert chosen["bytes_in"][0].counter
    assert "size_bytes" not in chosen
    assert "cpu_cores" in chosen


def test_exporters_are_set_by_broker() -> None:
    result = settings_of('preset = "jmx"\n[prometheus.endpoints]\n1 = "http://a:7071/metrics"\n')
    assert result.endpoints == {1: "http://a:7071/metrics"}
    assert poller_of(result).state().place == "exporters of 1 broker"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('url = "http://p"', "prometheus.preset: Field required"),
        ('preset = "jmxx"', "'jmx', 'strimzi' or 'automq'"),
        ('preset = "jmx"', "set either url, of a server, or endpoints, of the broker"),
        (SERVER + 'endpoints = { 1 = "http://a" }', "set either url, of a server, or"),
        ('preset = "jmx"\nurl = "http://p"', "set broker_label, the label that contains"),
        (
            'preset = "jmx"\nbroker_label = "id"\nendpoints = { 1 = "http://a" }',
            "broker_label has no effect with endpoints",
        ),
        ('preset = "jmx"\nurl = "p:9090"', "url: not a valid address; use"),
        ('preset = "jmx"\nurl = "http://"', "not a valid address; use http://HOST:PORT"),
        ('preset = "jmx"\nurl = "http://p:x"', "not a valid address"),
        ('preset = "jmx"\nurl = "http://p/a b"', "not a valid address"),
        ('preset = "jmx"\nendpoints = { 1 = "ftp://a" }', "endpoints.1: not a valid"),
        ('preset = "jmx"\nendpoints = { a = "http://a" }', "endpoints.a: "),
        ('preset = "jmx"\nendpoints = { -1 = "http://a" }', "endpoints.-1: "),
        ('preset = "jmx"\nurl = "http://me:hush@p"', "an address cannot contain a login; set"),
        (SERVER + 'broker_lable = "x"', "unknown key 'prometheus.broker_lable'; did you"),
        (SERVER + 'broker_pattern = "("', "'(' is not a valid regular expression"),
        (SERVER + "broker_pattern = '\\d+'", "needs exactly one group, for the broker id"),
        (SERVER + 'labels = { "a-b" = "c" }', "'a-b' is not a valid label name"),
        (SERVER + 'metrics = { bytes_inn = "a" }', "metrics.bytes_inn: Input"),
        (SERVER + 'metrics = { bytes_in = "sum(a)" }', "'sum(a)' is not a series; use"),
        (SERVER + "interval_s = 0", "interval_s: Input should be greater than or equal"),
        (SERVER + "interval_s = 90", "rate_window_s is shorter than two intervals"),
        (SERVER + 'username = "me"', "set both username and password, or neither"),
        (SERVER + 'password = "hush"', "set both username and password, or neither"),
        (SERVER + 'username = "m:e"\npassword = "hush"', "a username cannot contain a colon"),
        (
            SERVER + 'token = "hush"\nusername = "me"\npassword = "hush"',
            "both a token and a login are set",
        ),
        (
            SERVER + 'token = "hush"\ntoken_file = "f"',
            "a secret is set both directly and as a file",
        ),
    ],
)
def test_invalid_settings_are_named_without_secrets(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        settings_of(text)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("key", ["ca_file", "token_file"])
def test_a_missing_file_is_named_before_anything_is_read(key: str) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        poller_of(settings_of(SERVER + f'{key} = "nowhere"'))


def test_a_collector_queries_the_sources_in_the_settings() -> None:
    settings_of(SERVER)
    settings = load({"bootstrap_server": "127.0.0.1:9"}, config=Path("prometheus.toml"))
    (state,) = compose.observer(settings).reporters.poll_states()
    assert (state.source, state.place) == ("prometheus", "http://p:9090")


def test_without_a_table_a_collector_queries_no_server() -> None:
    settings = load({"bootstrap_server": "127.0.0.1:9"})
    assert compose.observer(settings).reporters.poll_states() == ()


def test_a_secret_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_PROMETHEUS__TOKEN", "hush")
    result = settings_of(SERVER)
    assert result.token == "hush"
    assert "hush" not in repr(result)


def test_a_poller_reads_the_server_as_the_settings_say() -> None:
    def answer(path: str) -> Page:
        cpu = "process_cpu_seconds_total" in query_of(path)
        return vector(({"pod": "kafka-4"}, "0.5")) if cpu else vector()

    with pages(answer) as at:
        Path("token").write_text("hush")
        settings = settings_of(
            f'preset = "strimzi"\nurl = "{at.url}"\nbroker_label = "pod"\n'
            'broker_pattern = "kafka-(\\\\d+)"\ntoken_file = "token"\n'
        )
        with poller_of(settings) as poller:
            poller.start()
            end_s = time.monotonic() + 300
            while poller.state().read_at_ms is None:
                assert time.monotonic() < end_s
                time.sleep(0.01)
        (row,) = poller.reports().to_pylist()
        assert (row["broker"], row["cpu_cores"]) == (4, 0.5)
        assert all(h["Authorization"] == "Bearer hush" for _, h in at.asked)
