"""A broker's folder, formatted without a JVM."""

from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from lab.local_cluster.broker_properties import (
    BrokerSettings,
    ClusterSettings,
    format_broker,
    kafka_id,
)
from lab.local_cluster.kafka_versions import DEFAULT_VERSION, checkpoint_of
from model.ids import BrokerId


def formatted(
    tmp_path: Path,
    broker: int,
    tier_dir: Path | None,
    directories: int = 1,
    properties: Mapping[str, str] | None = None,
    proxy_port: int | None = None,
) -> dict[str, str]:
    cluster = ClusterSettings(
        cluster_id="cluster",
        controllers=((BrokerId(1), 9001), (BrokerId(2), 9002)),
        replication=2,
        tier_dir=tier_dir,
        properties=properties or {},
    )
    settings = BrokerSettings(
        broker=BrokerId(broker),
        rack="b",
        port=9102,
        folder=tmp_path,
        directories=directories,
        proxy_port=proxy_port,
        inner_port=9202 if proxy_port else None,
    )
    ids = [UUID(int=5 + number) for number in range(directories)]
    format_broker(cluster, settings, ids)
    lines = settings.properties_file.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_a_voter_is_broker_and_controller(tmp_path: Path) -> None:
    result = formatted(tmp_path, 2, None)
    assert result["process.roles"] == "broker,controller"
    assert result["listeners"] == "PLAINTEXT://127.0.0.1:9102,CONTROLLER://127.0.0.1:9002"
    assert result["controller.quorum.voters"] == "1@127.0.0.1:9001,2@127.0.0.1:9002"
    assert result["broker.rack"] == "b"


def test_a_later_broker_is_not_a_controller(tmp_path: Path) -> None:
    result = formatted(tmp_path, 3, None)
    assert result["process.roles"] == "broker"
    assert result["listeners"] == "PLAINTEXT://127.0.0.1:9102"


def test_clients_use_a_proxy_and_brokers_bypass_it(tmp_path: Path) -> None:
    plain = formatted(tmp_path / "plain", 2, None)
    assert plain["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9102"
    assert plain["inter.broker.listener.name"] == "PLAINTEXT"
    result = formatted(tmp_path / "proxied", 2, None, proxy_port=9302)
    inner = "INNER://127.0.0.1:9202"
    assert result["listeners"] == (
        f"PLAINTEXT://127.0.0.1:9102,{inner},CONTROLLER://127.0.0.1:9002"
    )
    assert result["advertised.listeners"] == f"PLAINTEXT://127.0.0.1:9302,{inner}"
    assert result["inter.broker.listener.name"] == "INNER"


def test_given_properties_override_the_defaults(tmp_path: Path) -> None:
    key = "auto.leader.rebalance.enable"
    assert formatted(tmp_path / "plain", 1, None)[key] == "false"
    given = formatted(tmp_path / "given", 1, None, properties={key: "true"})
    assert given[key] == "true"


def test_the_tier_is_set_only_on_request(tmp_path: Path) -> None:
    plain = formatted(tmp_path / "plain", 1, None)
    tiered = formatted(tmp_path / "tiered", 1, tmp_path / "tier")
    assert not any(key.startswith(("remote.", "rsm.", "rlmm.")) for key in plain)
    assert tiered["rsm.config.dir"] == str(tmp_path / "tier")
    assert tiered["follower.fetch.last.tiered.offset.enable"] == "true"


def test_the_data_folder_is_formatted(tmp_path: Path) -> None:
    formatted(tmp_path, 1, None)
    meta = (tmp_path / "data" / "meta.properties").read_text().splitlines()
    assert meta[:3] == ["version=1", "cluster.id=cluster", "node.id=1"]
    assert meta[3] == f"directory.id={kafka_id(UUID(int=5))}"
    copied = (tmp_path / "data" / "bootstrap.checkpoint").read_bytes()
    assert copied == checkpoint_of(DEFAULT_VERSION).read_bytes()


def test_every_log_directory_is_formatted_with_an_id_of_its_own(tmp_path: Path) -> None:
    result = formatted(tmp_path, 1, None, directories=3)
    folders = [tmp_path / name for name in ("data", "data-2", "data-3")]
    assert result["log.dirs"] == ",".join(map(str, folders))
    ids = {(f / "meta.properties").read_text().splitlines()[3] for f in folders}
    assert ids == {f"directory.id={kafka_id(UUID(int=5 + i))}" for i in range(3)}
    assert [p.parent.name for p in tmp_path.rglob("bootstrap.checkpoint")] == ["data"]


def test_ids_are_written_as_kafka_does() -> None:
    """22 characters, never with a leading dash, which Kafka rejects."""
    assert kafka_id(UUID(int=0)) == "A" * 22
    dashed = UUID(bytes=b"\xf8" + bytes(15))
    assert kafka_id(dashed) == "AAAAAAAAAAAAAAAAAAAAAA"


def test_clients_of_a_secured_broker_use_tls_and_brokers_do_not(tmp_path: Path) -> None:
    cluster = ClusterSettings(
        cluster_id="cluster",
        controllers=((BrokerId(1), 9001),),
        replication=1,
        tier_dir=None,
        secured=True,
    )
    broker = BrokerSettings(
        broker=BrokerId(1),
        rack="a",
        port=9102,
        folder=tmp_path,
        directories=1,
        inner_port=9202,
        tls_port=9302,
    )
    format_broker(cluster, broker, [UUID(int=5)])
    text = broker.properties_file.read_text()
    result = dict(line.split("=", 1) for line in text.splitlines())
    message = "SASL_SSL://127.0.0.1:9102,SSL://127.0.0.1:9302,INNER://127.0.0.1:9202"
    assert result["advertised.listeners"] == message
    assert result["inter.broker.listener.name"] == "INNER"
    assert "SASL_SSL:SASL_SSL" in result["listener.security.protocol.map"].split(",")
