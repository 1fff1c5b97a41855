"""plimsoll against brokers that require TLS, a login and rights."""

import json
import re
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka.admin import ACLOperation

from clients.client_properties import read_client_properties
from clients.connection import Connection
from clients.jaas import quoted
from clients.jvm.jars import default_cache_dir
from collector.collector import Collector
from collector.collector_settings import CollectorSettings
from collector.reports.metric_topics import CRUISE_CONTROL_TOPIC
from collector.samples_topic import SamplesTopic
from model.errors import RightsMissing
from model.plan.plan import write_plan
from tests.support.cli_on_cluster import HANG_S, Shell, placement
from tests.support.collector.reporter_records import PRODUCED, cruise
from tests.support.collector.sample_rows import sample, table
from tests.support.executor.plan_builders import plan_for
from tests.support.oauth_server import TokenServer, token_server
from tests.support.secured_kafka import (
    CLUSTER,
    GROUPS,
    MOVE,
    OBSERVE,
    PASSWORD,
    SAMPLE,
    SCRAM,
    SCRAM_USER,
    THROTTLE,
    TOKEN_USER,
    TOPICS,
    Guarded,
    Right,
    each,
    guarded,
    without,
)
from tests.support.tls_certificates import Authority

pytestmark = pytest.mark.kafka
TOPIC = "orders"
CHANGE = ("--allow-changes", "--yes", "--throttle", "50MB/s")
LOOK = ("elect-leaders", "--topic", TOPIC, "--dry-run")
"""A command that does little more than connect."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded(tmp_path_factory.mktemp("guarded")) as started:
        started.cluster.create_topic(TOPIC, [[1]] * 8)
        commit(started.cluster.kafka.inner_bootstrap)
        yield started


def commit(bootstrap: str) -> None:
    """Make a consumer group that has read the topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "billing"})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 0)], asynchronous=False)
    consumer.close()


Completed = subprocess.CompletedProcess[str]


def plimsoll(folder: Path, properties: Path, *arguments: str) -> Completed:
    """A command with only a client.properties, which contains the password."""
    process = Shell(folder, "").plimsoll(*arguments, "--command-config", str(properties))
    assert PASSWORD not in process.stdout + process.stderr
    assert "Traceback" not in process.stderr
    assert_no_secret_in(folder / "state")
    return process


def assert_no_secret_in(folder: Path) -> None:
    for file in folder.rglob("*"):
        assert not file.is_file() or PASSWORD.encode() not in file.read_bytes()


def test_the_documented_rights_suffice_to_observe_plan_and_balance(
    site: Guarded, tmp_path: Path
) -> None:
    observer = site.properties(tmp_path, "observer")
    out = ("--topic", TOPIC, "--out", "plan.json", "-o", "json", "-v")
    planned = plimsoll(tmp_path, observer, "plan", *out)
    assert planned.returncode == 0, planned.stderr
    moves = json.loads(planned.stdout)["plan"]["moves"]
    assert moves
    mover = site.properties(tmp_path, "mover")
    done = plimsoll(tmp_path, mover, "apply", "plan.json", *CHANGE)
    assert done.returncode == 0, done.stderr
    now = placement(site.cluster.kafka.inner_bootstrap, TOPIC)
    assert {m["partition"]: m["replicas_after"] for m in moves}.items() <= now.items()


def test_an_observer_sees_the_loads_after_a_login_by_scram(site: Guarded, tmp_path: Path) -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    scram = site.properties(
        tmp_path,
        "",
        sasl_mechanism=SCRAM,
        sasl_password="",
        sasl_jaas_config=f"{module} required \\\n  username={quoted(SCRAM_USER)} \\\n"
        f"  password={quoted(PASSWORD)};",
    )
    shown = plimsoll(tmp_path, scram, "status", "-o", "json")
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["cluster_id"] == site.cluster.cluster_id


NAMED = {
    (CLUSTER, "DESCRIBE"): "DESCRIBE on the cluster",
    (CLUSTER, "DESCRIBE_CONFIGS"): "DESCRIBE_CONFIGS on the cluster",
    (TOPICS, "DESCRIBE"): f"DESCRIBE on the topics __consumer_offsets, {TOPIC}",
    (TOPICS, "DESCRIBE_CONFIGS"): (f"DESCRIBE_CONFIGS on the topics __consumer_offsets, {TOPIC}"),
    (GROUPS, "DESCRIBE"): "DESCRIBE on all consumer groups",
}


@pytest.mark.parametrize("right", each(OBSERVE), ids=without)
def test_a_missing_right_to_observe_is_named(site: Guarded, tmp_path: Path, right: Right) -> None:
    refused = plimsoll(tmp_path, site.properties(tmp_path, without(right)), "status")
    assert refused.returncode == 5
    named = NAMED[right[0], right[1].name]
    assert refused.stderr.endswith(f"Give plimsoll's user the right {named}.\n")
    assert refused.stdout == ""


@pytest.mark.parametrize("right", each(MOVE | THROTTLE), ids=without)
def test_a_missing_right_to_move_is_named_and_nothing_is_moved(
    site: Guarded, tmp_path: Path, right: Right
) -> None:
    inner = site.cluster.kafka.inner_bootstrap
    before = placement(inner, TOPIC)
    (other,) = {1, 2} - set(before[0])
    write_plan(tmp_path / "plan.json", plan_for(inner, TOPIC, {0: [other]}))
    mine = site.properties(tmp_path, without(right))
    refused = plimsoll(tmp_path, mine, "apply", "plan.json", *CHANGE)
    assert refused.returncode == 5, refused.stderr
    assert re.search(
        rf"Give plimsoll's user the right {right[1].name} on the cluster", refused.stderr
    )
    assert placement(inner, TOPIC) == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"sasl.password": "wrong"},
            r"refused the login of mover \(PLAIN\)\. Check the user name, the password",
        ),
        (
            {"sasl.mechanism": "SCRAM-SHA-256"},
            r"refused the login of mover \(SCRAM-SHA-256\)\. Check the user name",
        ),
        (
            {"security.protocol": "PLAINTEXT"},
            r"127.0.0.1:\d+ requires TLS; set security.protocol=SSL\.",
        ),
        (
            {"security.protocol": "SASL_PLAINTEXT"},
            r"127.0.0.1:\d+ requires TLS; set security.protocol=SASL_SSL\.",
        ),
        (
            {"security.protocol": "SSL"},
            r"127.0.0.1:\d+ requires a login \(it offers .*PLAIN.*\); set security",
        ),
        (
            {"ssl.truststore.location": "{other}"},
            r"127.0.0.1:\d+ shows a certificate that is not trusted \(.*\); check ssl.",
        ),
        (
            {"ssl.truststore.location": "", "ssl.truststore.type": ""},
            r"127.0.0.1:\d+ shows a certificate that is not trusted \(.*\); check ssl.",
        ),
        (
            {"bootstrap.servers": "{tls}"},
            r"127.0.0.1:\d+ refused TLS \(.*certificate.*\); if it requires a client",
        ),
        (
            {"bootstrap.servers": "{inner}", "security.protocol": "SASL_PLAINTEXT"},
            r"127.0.0.1:\d+ accepts no login; set security.protocol=PLAINTEXT",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_the_reason_for_a_refused_login_is_reported(
    site: Guarded, tmp_path: Path, changes: dict[str, str], message: str
) -> None:
    kafka = site.cluster.kafka
    known = {
        "tls": kafka.tls_bootstrap,
        "inner": kafka.inner_bootstrap,
        "other": str(Authority.make("other").write(tmp_path / "other.pem")),
    }
    values = {key: value.format(**known) for key, value in changes.items()}
    protocol = values.get("security.protocol", "SASL_SSL")
    for area in ("sasl", "ssl"):
        if area.upper() not in protocol.split("_"):
            values |= dict.fromkeys(KEYS[area], "")
    refused = plimsoll(tmp_path, site.properties(tmp_path, "mover", **values), *LOOK)
    assert refused.returncode == 2, refused.stderr
    assert re.search(message, refused.stderr), refused.stderr
    assert refused.stderr.count("\n") == 1


KEYS = {
    "sasl": ("sasl.mechanism", "sasl.username", "sasl.password"),
    "ssl": ("ssl.truststore.type", "ssl.truststore.location"),
}


def test_tls_to_a_plaintext_listener_is_reported(site: Guarded, tmp_path: Path) -> None:
    inner = {"bootstrap.servers": site.cluster.kafka.inner_bootstrap}
    refused = plimsoll(tmp_path, site.properties(tmp_path, "mover", **inner), *LOOK)
    assert refused.returncode == 3
    assert "as a listener without TLS does; check security.protocol" in refused.stderr


def test_a_client_certificate_replaces_a_login(site: Guarded, tmp_path: Path) -> None:
    own = site.authority.issue(tmp_path / "own.pem", "certified", PASSWORD)
    changes = {
        **dict.fromkeys(KEYS["sasl"], ""),
        "bootstrap.servers": site.cluster.kafka.tls_bootstrap,
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own),
        "ssl.key.password": PASSWORD,
    }
    seen = plimsoll(tmp_path, site.properties(tmp_path, "", **changes), *LOOK)
    assert seen.returncode == 0, seen.stderr


def tokens(site: Guarded, secret: str) -> AbstractContextManager[TokenServer]:
    """By TLS, with a certificate of the brokers' authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(site.folder / "broker.pem")
    return token_server(TOKEN_USER, secret, site.signer, context)


def by_tokens(site: Guarded, folder: Path, server: TokenServer) -> Path:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    changes = {
        **dict.fromkeys(KEYS["sasl"], ""),
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": server.url,
        "sasl.jaas.config": f"{module} required clientId={quoted(TOKEN_USER)} "
        f"clientSecret={quoted(PASSWORD)};",
    }
    return site.properties(folder, "", **changes)


def test_a_login_by_tokens_works(site: Guarded, tmp_path: Path) -> None:
    with tokens(site, PASSWORD) as server:
        seen = plimsoll(tmp_path, by_tokens(site, tmp_path, server), *LOOK)
    assert seen.returncode == 0, seen.stderr
    assert server.forms


def test_a_refused_token_is_reported(site: Guarded, tmp_path: Path) -> None:
    with tokens(site, "another") as server:
        refused = plimsoll(tmp_path, by_tokens(site, tmp_path, server), *LOOK)
    assert refused.returncode == 2
    assert f"{server.url} refused a token to the client {TOKEN_USER}" in refused.stderr


@pytest.fixture(scope="module")
def metrics(site: Guarded) -> str:
    """Create Cruise Control's topic, still empty."""
    site.cluster.create_topic(CRUISE_CONTROL_TOPIC, [[1]])
    return CRUISE_CONTROL_TOPIC


def report(site: Guarded, topic: str) -> None:
    """Write records as a reporter does."""
    producer = Producer({"bootstrap.servers": site.cluster.kafka.inner_bootstrap})
    producer.produce(topic, cruise(PRODUCED, int(1000 * time.time()), 1, 5.0))
    producer.flush()


def source(process: Completed) -> dict[str, Any]:
    """The findings of `info` about Cruise Control's reporter."""
    assert process.returncode == 0, process.stderr
    result: dict[str, Any] = json.loads(process.stdout)["sources"][2]
    assert result["name"] == "cruise-control"
    return result


def test_without_the_right_to_read_reports_the_probe_continues_alone(
    site: Guarded, tmp_path: Path, metrics: str
) -> None:
    observer = site.properties(tmp_path, "observer")
    result = source(plimsoll(tmp_path, observer, "info", "-o", "json"))
    assert (result["found"], result["readable"], result["records"]) == (True, False, 0)
    assert result["why_not"] == (f"plimsoll's user lacks the right READ on the topic {metrics}")


def test_reports_are_read_with_the_right_and_a_login(
    site: Guarded, tmp_path: Path, metrics: str
) -> None:
    report(site, metrics)
    sampler = site.properties(tmp_path, "sampler")
    result = source(plimsoll(tmp_path, sampler, "info", "-o", "json"))
    assert (result["readable"], result["records"], result["left_out"]) == (True, 1, {})


def collector(site: Guarded, folder: Path, properties: Path) -> Collector:
    """A process that sends its samples through a topic."""
    client = read_client_properties(properties)
    return Collector(
        Connection(site.cluster.bootstrap, client=client),
        CollectorSettings(
            state_dir=folder / "state",
            cache_dir=default_cache_dir(),
            samples_topic="__plimsoll_samples",
        ),
    )


@pytest.mark.parametrize("right", each(SAMPLE), ids=without)
def test_a_missing_right_to_store_samples_is_named(
    site: Guarded, tmp_path: Path, right: Right
) -> None:
    message = f"Give plimsoll's user the right {right[1].name} on the"
    with (
        collector(site, tmp_path, site.properties(tmp_path, without(right))) as refused,
        pytest.raises(RightsMissing, match=message),
    ):
        refused.wait(HANG_S)


def test_each_write_that_is_refused_names_the_right(site: Guarded, tmp_path: Path) -> None:
    def samples_topic(user: str) -> SamplesTopic:
        client = read_client_properties(site.properties(tmp_path, user))
        return SamplesTopic(Connection(site.cluster.bootstrap, client=client), "__refused", 1)

    (write,) = [right for right in SAMPLE if right[1] is ACLOperation.WRITE]
    allowed = samples_topic("sampler")
    allowed.write(table([sample(1)]))
    refused = samples_topic(without(write))
    # The driver reports the cause of the error that ends a producer only once.
    for second in range(3):
        with pytest.raises(RightsMissing, match="the right WRITE on the topic __ref"):
            refused.write(table([sample(second)]))
        time.sleep(0.3)
    allowed.write(table([sample(2)]))
    for sink in (allowed, refused):
        sink.close()


def watched(site: Guarded, folder: Path, properties: Path) -> None:
    with collector(site, folder, properties) as watching:
        snapshot = watching.wait(300)
        assert snapshot.header.cluster_id == site.cluster.cluster_id
        assert snapshot.header.resources
    assert_no_secret_in(folder / "state")


def test_samples_may_go_through_a_topic_and_no_secret_is_stored(
    site: Guarded, tmp_path: Path
) -> None:
    watched(site, tmp_path, site.properties(tmp_path, "sampler"))


def test_samples_may_go_through_a_topic_by_tokens(site: Guarded, tmp_path: Path) -> None:
    with tokens(site, PASSWORD) as server:
        watched(site, tmp_path, by_tokens(site, tmp_path, server))
