"""Apache Kafka brokers on this machine, in one KRaft quorum."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from threading import RLock
from typing import Final
from uuid import uuid4

from clients.jvm.java import Java
from lab.local_cluster.broker_admin import BrokerAdmin
from lab.local_cluster.broker_properties import (
    JVM_FLAGS,
    BrokerSettings,
    ClusterSettings,
    class_path,
    format_broker,
    kafka_id,
)
from lab.local_cluster.kafka_versions import DEFAULT_VERSION
from lab.local_cluster.processes import Processes
from lab.local_cluster.tcp_ports import HOST, answers, claim, free_ports
from model.errors import ClusterUnreachable, ExecutionStopped
from model.ids import BrokerId

READY_S: Final = 300.0
"""Brokers take 4 s to start on an idle machine, and took over 90 s on a busy one.

One that has ended is not waited for.
"""
_RACKS: Final = "abc"
_MAX_REPLICATION: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPlan:
    """Options of a local cluster."""

    brokers: int = 3
    version: str = DEFAULT_VERSION
    """Kafka's version; one with pinned jars."""
    ports: tuple[int, ...] | None = None
    """Ports for clients, one per broker; None: any free ones."""
    proxy_ports: tuple[int, ...] = ()
    """Ports advertised to clients instead, one per broker, for a proxy."""
    directories: int = 1
    """Log directories of each broker."""
    tier: bool = True
    """Whether topics may have remote storage, served through S3."""
    secured: bool = False
    """Whether clients need TLS: listeners SASL_SSL and SSL, set up by `properties`. Another one,
    INNER, stays open to all."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Additional broker properties; they override the lab's own."""
    jvm_flags: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """Additional JVM flags by broker id."""
    java: Java | None = None
    """None: the one that `find_java` finds."""


class LocalKafka:
    """A cluster of combined brokers and controllers, ids from 1, racks a, b, c.

    Thread-safe; closing the processes stops it. Brokers bypass a proxy and need no login.
    tier_dir: folder of the remote tier; None: topics cannot have remote storage.
    class_flags: JVM flags of all brokers, as of `lab.local_cluster.class_archive`.
    """

    def __init__(
        self,
        processes: Processes,
        jars: Sequence[Path],
        java: Java,
        plan: LocalPlan,
        tier_dir: Path | None,
        class_flags: Sequence[str],
    ) -> None:
        self._processes = processes
        self._java = [str(java.executable), *JVM_FLAGS, *class_flags]
        self._program = ["-cp", class_path(jars), "kafka.Kafka"]
        self._plan = plan
        self._brokers = _lay_out(processes.folder, plan)
        voters = free_ports(plan.brokers)
        self._cluster = ClusterSettings(
            cluster_id=kafka_id(uuid4()),
            controllers=tuple(zip(self._brokers, voters, strict=True)),
            replication=min(plan.brokers, _MAX_REPLICATION),
            tier_dir=tier_dir,
            version=plan.version,
            secured=plan.secured,
            properties=plan.properties,
        )
        self.admin = BrokerAdmin(self.inner_bootstrap if plan.secured else self.bootstrap)
        self._lock = RLock()

    @property
    def bootstrap(self) -> str:
        """Bootstrap servers for clients."""
        return _bootstrap(broker.advertised_port for broker in self._brokers.values())

    @property
    def inner_bootstrap(self) -> str:
        """Bootstrap servers that bypass proxy and security; only with one of these."""
        return _bootstrap(b.inner_port for b in self._brokers.values() if b.inner_port)

    @property
    def tls_bootstrap(self) -> str:
        """Bootstrap servers for clients with a certificate; only with security."""
        return _bootstrap(b.tls_port for b in self._brokers.values() if b.tls_port)

    @property
    def cluster_id(self) -> str:
        """The Kafka cluster id."""
        return self._cluster.cluster_id

    @property
    def brokers(self) -> Mapping[BrokerId, BrokerSettings]:
        """The brokers by id, killed ones included."""
        return dict(self._brokers)

    def launch(self) -> None:
        """Start the brokers without waiting for them."""
        for broker in self._brokers.values():
            self._format(broker)
            self._spawn(broker)

    def wait_ready(self, on_step: Callable[[str], None]) -> None:
        """Wait until every broker is registered.

        Raises
        ------
        ClusterUnreachable
            A broker ended, or did not register within `READY_S`.
        ExecutionStopped
            The processes were closed meanwhile.
        """
        ports = [broker.port for broker in self._brokers.values()]
        self._wait("a broker does not listen", lambda: all(map(answers, ports)))
        on_step("brokers listen")
        self._wait_registered(set(self._brokers))
        on_step("brokers registered")

    def add_broker(self, rack: str) -> BrokerId:
        """Start one more broker, not a controller, and wait until it is registered."""
        with self._lock:
            number = BrokerId(max(self._brokers) + 1)
            (port,) = free_ports(1)
            broker = BrokerSettings(
                broker=number,
                rack=rack,
                port=port,
                folder=self._processes.folder / _name(number),
                directories=self._plan.directories,
            )
            self._format(broker)
            self._spawn(broker)
            self._brokers = {**self._brokers, number: broker}
        self._wait_registered({number})
        return number

    def kill_broker(self, broker: BrokerId) -> None:
        """Kill a broker with SIGKILL, like a power failure."""
        self._processes.kill(_name(broker))

    def restart_broker(self, broker: BrokerId) -> None:
        """Restart a killed broker on its data, and wait until it is registered."""
        self._spawn(self._brokers[broker])
        self._wait("it does not listen", lambda: answers(self._brokers[broker].port))
        self._wait_registered({broker})

    def _format(self, broker: BrokerSettings) -> None:
        format_broker(self._cluster, broker, [uuid4() for _ in broker.log_dirs])

    def _spawn(self, broker: BrokerSettings) -> None:
        own = self._plan.jvm_flags.get(broker.broker, ())
        command = [*self._java, *own, *self._program, str(broker.properties_file)]
        environ = {**os.environ, "MALLOC_ARENA_MAX": "2"}
        self._processes.spawn(_name(broker.broker), command, environ=environ)

    def _wait_registered(self, wanted: set[BrokerId]) -> None:
        self._wait("a broker is not registered", lambda: wanted <= self.admin.brokers())

    def _wait(self, what: str, done: Callable[[], bool]) -> None:
        def done_or_dead() -> bool:
            self._check_alive()
            return done()

        self.admin.wait(what, done_or_dead, timeout_s=READY_S)

    def _check_alive(self) -> None:
        if self._processes.closed:
            raise ExecutionStopped("The local cluster was stopped while it started.")
        for number in self._brokers:
            name = _name(number)
            code = self._processes.exit_code(name)
            if code is not None and code >= 0:
                raise ClusterUnreachable(
                    f"Local {name} ended with code {code} while it started. "
                    f"End of its log:\n{self._processes.log_tail(name)}"
                )


def _name(broker: BrokerId) -> str:
    return f"broker-{broker}"


def _bootstrap(ports: Iterable[int]) -> str:
    return ",".join(f"{HOST}:{port}" for port in ports)


def _lay_out(folder: Path, plan: LocalPlan) -> dict[BrokerId, BrokerSettings]:
    ids = [BrokerId(number) for number in range(1, plan.brokers + 1)]
    if plan.ports is None:
        ports = free_ports(len(ids))
    else:
        ports = [claim(port, "a local broker") for port in plan.ports]
    inner_ports = free_ports(len(ids) if plan.secured else len(plan.proxy_ports))
    tls_ports = free_ports(len(ids) if plan.secured else 0)
    return {
        number: BrokerSettings(
            broker=number,
            rack=_RACKS[index % len(_RACKS)],
            port=port,
            folder=folder / _name(number),
            directories=plan.directories,
            proxy_port=proxy_port,
            inner_port=inner_port,
            tls_port=tls_port,
        )
        for index, (number, port, proxy_port, inner_port, tls_port) in enumerate(
            zip_longest(ids, ports, plan.proxy_ports, inner_ports, tls_ports)
        )
    }
