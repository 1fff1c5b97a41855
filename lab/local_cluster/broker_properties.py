"""Properties, JVM flags and formatted folder of a local broker.

The values were measured for three brokers on two cores; comments give the reason where
they are far from Kafka's defaults.
"""

import base64
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import UUID

from lab.local_cluster.kafka_versions import DEFAULT_VERSION, checkpoint_of, checkpoint_path
from lab.local_cluster.tcp_ports import HOST
from model.ids import BrokerId

TIER_BUCKET: Final = "kafka-tiered-storage"
"""The folder that LocalTieredStorage creates; S3Proxy serves it as a bucket."""

LOGGING: Final = Path(__file__).with_name("log4j2.properties")
JVM_FLAGS: Final = (
    "-Xmx256m",
    "-Xms64m",
    "-Xss256k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:MaxMetaspaceSize=128m",
    "-XX:ReservedCodeCacheSize=48m",
    "-Djava.awt.headless=true",
    f"-Dlog4j2.configurationFile={LOGGING}",
)

_EVERY_BROKER: Final[dict[str, str | int]] = {
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": ",".join(
        [
            *(f"{name}:PLAINTEXT" for name in ("PLAINTEXT", "INNER", "CONTROLLER")),
            *(f"{name}:{name}" for name in ("SASL_SSL", "SSL")),
        ]
    ),
    "num.network.threads": 2,
    "num.io.threads": 2,
    "background.threads": 2,
    "num.recovery.threads.per.data.dir": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    # The default takes 128 MB of heap.
    "log.cleaner.dedupe.buffer.size": 4194304,
    "log.cleaner.threads": 1,
    "log.cleaner.io.buffer.size": 65536,
    "log.index.size.max.bytes": 1048576,
    "log.retention.check.interval.ms": 500,
    "log.initial.task.delay.ms": 500,
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3000,
    # With the default of 1000 a producer stalls for 1.1 s when a leader moves.
    "replica.fetch.backoff.ms": 50,
    "replica.fetch.wait.max.ms": 100,
}

_TIER: Final[dict[str, str | int]] = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": (
        "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
    ),
    "rsm.config.delete.on.close": "false",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
    "rlmm.config.remote.log.metadata.initialization.retry.interval.ms": 300,
    "remote.log.manager.task.interval.ms": 500,
    "remote.log.manager.thread.pool.size": 2,
    "remote.log.manager.copier.thread.pool.size": 2,
    "remote.log.manager.expiration.thread.pool.size": 1,
    "remote.log.reader.threads": 2,
    # KIP-1023: a new follower copies only what the tier does not have.
    "follower.fetch.last.tiered.offset.enable": "true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """Settings that all brokers of a local cluster share."""

    cluster_id: str
    controllers: tuple[tuple[BrokerId, int], ...]
    """Node id and controller port of every voter; voters are brokers, too."""
    replication: int
    """Replicas of Kafka's own topics."""
    tier_dir: Path | None
    version: str = DEFAULT_VERSION
    secured: bool = False
    """As in `LocalPlan`."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Additional properties; they override the lab's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """One broker of a local cluster."""

    broker: BrokerId
    rack: str
    port: int
    """Port for clients."""
    folder: Path
    """Folder of its data and its properties file."""
    directories: int
    """Number of its log directories."""
    proxy_port: int | None = None
    """Port advertised to clients, if a proxy stands in front of it."""
    inner_port: int | None = None
    """Port for the other brokers, if they do not use that of clients."""
    tls_port: int | None = None
    """Port for clients with a certificate; only where clients are secured."""

    @property
    def log_dirs(self) -> tuple[Path, ...]:
        """Its log directories; the first one also holds the cluster metadata."""
        others = range(2, self.directories + 1)
        names = ["data", *(f"data-{number}" for number in others)]
        return tuple(self.folder / name for name in names)

    @property
    def advertised_port(self) -> int:
        """Port advertised to clients."""
        return self.proxy_port or self.port

    @property
    def properties_file(self) -> Path:
        """The properties file that `kafka.Kafka` is started with."""
        return self.folder / "server.properties"


def kafka_id(number: UUID) -> str:
    """A UUID in Kafka's form (`org.apache.kafka.common.Uuid`): 22 characters of base64.

    URL-safe, and without a leading dash, which Kafka refuses.
    """
    text = base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")
    return "A" + text[1:] if text.startswith("-") else text


def class_path(jars: Sequence[Path]) -> str:
    """Java's `-cp` for these jars."""
    return os.pathsep.join(str(jar) for jar in jars)


def format_broker(
    cluster: ClusterSettings, broker: BrokerSettings, directory_ids: Sequence[UUID]
) -> None:
    """Write the properties, and format the log directories as `kafka-storage` does."""
    for folder, number in zip(broker.log_dirs, directory_ids, strict=True):
        folder.mkdir(parents=True)
        (folder / "meta.properties").write_text(
            f"version=1\ncluster.id={cluster.cluster_id}\nnode.id={broker.broker}\n"
            f"directory.id={kafka_id(number)}\n",
            "utf-8",
        )
    checkpoint = broker.log_dirs[0] / checkpoint_path(cluster.version)
    checkpoint.parent.mkdir(exist_ok=True)
    shutil.copyfile(checkpoint_of(cluster.version), checkpoint)
    lines = [f"{key}={value}" for key, value in _properties(cluster, broker).items()]
    broker.properties_file.write_text("\n".join(lines) + "\n", "utf-8")


def _properties(cluster: ClusterSettings, broker: BrokerSettings) -> dict[str, str | int]:
    voters = ",".join(f"{node}@{HOST}:{port}" for node, port in cluster.controllers)
    return {
        "node.id": broker.broker,
        "broker.rack": broker.rack,
        "log.dirs": ",".join(map(str, broker.log_dirs)),
        "controller.quorum.voters": voters,
        "offsets.topic.replication.factor": cluster.replication,
        "transaction.state.log.replication.factor": cluster.replication,
        "share.coordinator.state.topic.replication.factor": cluster.replication,
        **_EVERY_BROKER,
        **_tier(cluster),
        **_listeners(cluster, broker),
        **cluster.properties,
    }


def _listeners(cluster: ClusterSettings, broker: BrokerSettings) -> dict[str, str | int]:
    clients = f"{'SASL_SSL' if cluster.secured else 'PLAINTEXT'}://{HOST}"
    bound, advertised = ([f"{clients}:{broker.port}"], [f"{clients}:{broker.advertised_port}"])
    found: dict[str, str | int] = {"process.roles": "broker"}
    if broker.tls_port is not None:
        tls = f"SSL://{HOST}:{broker.tls_port}"
        bound, advertised = [*bound, tls], [*advertised, tls]
    if broker.inner_port is not None:
        inner = f"INNER://{HOST}:{broker.inner_port}"
        bound, advertised = [*bound, inner], [*advertised, inner]
        found["inter.broker.listener.name"] = "INNER"
    if port := dict(cluster.controllers).get(broker.broker):
        bound.append(f"CONTROLLER://{HOST}:{port}")
        found["process.roles"] = "broker,controller"
    return found | {"listeners": ",".join(bound), "advertised.listeners": ",".join(advertised)}


def _tier(cluster: ClusterSettings) -> dict[str, str | int]:
    if cluster.tier_dir is None:
        return {}
    return {
        **_TIER,
        "rsm.config.dir": str(cluster.tier_dir),
        "rlmm.config.remote.log.metadata.topic.replication.factor": cluster.replication,
    }
