"""A local cluster that requires TLS, a login and rights."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    UserScramCredentialUpsertion,
)

from clients.jvm.jars import default_cache_dir
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from tests.support.cli_on_cluster import wait_until
from tests.support.lab.client_security import ClientSecurity
from tests.support.oauth_server import Signer
from tests.support.tls_certificates import Authority

Right = tuple[ResourceType, ACLOperation]
CLUSTER, TOPICS, GROUPS = ResourceType.CLUSTER, ResourceType.TOPIC, ResourceType.GROUP
OBSERVE: frozenset[Right] = frozenset(
    {
        (CLUSTER, ACLOperation.DESCRIBE),
        (CLUSTER, ACLOperation.DESCRIBE_CONFIGS),
        (TOPICS, ACLOperation.DESCRIBE),
        (TOPICS, ACLOperation.DESCRIBE_CONFIGS),
        (GROUPS, ACLOperation.DESCRIBE),
    }
)
MOVE: frozenset[Right] = frozenset({(CLUSTER, ACLOperation.ALTER)})
THROTTLE: frozenset[Right] = frozenset(
    {(CLUSTER, ACLOperation.ALTER_CONFIGS), (TOPICS, ACLOperation.ALTER_CONFIGS)}
)
EVERY = OBSERVE | MOVE | THROTTLE
SAMPLE: frozenset[Right] = frozenset(
    {(CLUSTER, ACLOperation.CREATE), (TOPICS, ACLOperation.READ), (TOPICS, ACLOperation.WRITE)}
)
PASSWORD = "hush; 'hush'"
"""With characters that must be quoted in a login module's options."""
SCRAM = "SCRAM-SHA-512"
SCRAM_USER = "scrammed"
TOKEN_USER = "tokened"


def without(right: Right) -> str:
    """The name of a user who has every right but this one."""
    return f"no-{right[1].name}-on-{right[0].name}".lower()


def each(rights: Iterable[Right]) -> list[Right]:
    """Always in the same order."""
    return sorted(rights, key=without)


RIGHTS: Mapping[str, Collection[Right]] = {
    "observer": OBSERVE,
    "mover": EVERY,
    "sampler": OBSERVE | SAMPLE,
    SCRAM_USER: OBSERVE,
    "CN=certified": OBSERVE,
    TOKEN_USER: OBSERVE | SAMPLE,
    # The right to alter implies that to describe, so both are missing.
    **{without(right): OBSERVE - {right} for right in OBSERVE},
    **{without(right): EVERY - {right} for right in MOVE | THROTTLE},
    **{without(right): (OBSERVE | SAMPLE) - {right} for right in SAMPLE},
}
"""Users, and what they may do on the cluster and on all topics and groups."""


@dataclass(frozen=True)
class Guarded:
    """The cluster, and files for its clients."""

    cluster: LocalCluster
    folder: Path
    authority: Authority
    signer: Signer

    @property
    def ca(self) -> Path:
        """The certificate that makes its brokers trusted."""
        return self.folder / "ca.pem"

    def properties(self, folder: Path, user: str, **other: str) -> Path:
        """A client.properties for a user, by PLAIN.

        Other values override those of keys, which have underscores for dots; an empty
        value removes the key.
        """
        values = {
            "bootstrap.servers": self.cluster.bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": PASSWORD,
        }
        values |= {key.replace("_", "."): value for key, value in other.items()}
        file = folder / "client.properties"
        file.write_text("".join(f"{k}={v}\n" for k, v in values.items() if v))
        return file


@contextmanager
def guarded(folder: Path) -> Iterator[Guarded]:
    """Two brokers, and users with their rights."""
    authority, signer = Authority.make("authority"), Signer.make()
    key_set = folder / "keys.json"
    key_set.write_text(signer.key_set())
    guard = ClientSecurity(
        keystore=authority.issue(folder / "broker.pem", "broker"),
        truststore=authority.write(folder / "ca.pem"),
        users={user: PASSWORD for user in RIGHTS if "=" not in user},
        key_set=key_set,
    )
    plan = LocalPlan(
        brokers=2,
        tier=False,
        secured=True,
        properties=guard.properties,
        jvm_flags=dict.fromkeys((1, 2), guard.jvm_flags),
    )
    with LocalCluster(default_cache_dir(), plan) as cluster:
        admin = KafkaAdminClient(bootstrap_servers=cluster.kafka.inner_bootstrap.split(","))
        try:
            _let_in(admin)
        finally:
            admin.close()
        yield Guarded(cluster, folder, authority, signer)


def _let_in(admin: KafkaAdminClient) -> None:
    acls = [acl for user, rights in RIGHTS.items() for acl in _acls(user, rights)]
    admin.create_acls(acls)
    credentials = [UserScramCredentialUpsertion(SCRAM_USER, SCRAM, PASSWORD)]
    assert admin.alter_user_scram_credentials(credentials) == {SCRAM_USER: None}
    on_all = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    everything = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, on_all)
    wait_until(lambda: len(admin.describe_acls(everything)[0]) == len(acls))


def _acls(user: str, rights: Iterable[Right]) -> Iterator[ACL]:
    for resource, operation in rights:
        name = "kafka-cluster" if resource is CLUSTER else "*"
        pattern = ResourcePattern(resource, name)
        yield ACL(f"User:{user}", "*", operation, ACLPermissionType.ALLOW, pattern)
