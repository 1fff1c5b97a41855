"""Rights that a user of real brokers lacks, from the start or from a step on."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
)

from model.errors import RightsMissing
from model.run import RunProgress, RunState
from tests.support.cli_on_cluster import wait_until
from tests.support.executor.proxied_cluster import CLIENTS, THROTTLED, TOPIC, Proxied
from tests.support.executor.real_runs import assert_done

pytestmark = pytest.mark.kafka

BROKER_PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    # The controllers' quorum must be there before any ACL is known.
    "super.users": "User:broker",
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,INNER:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
    ),
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="broker" password="secret" user_broker="secret";'
    ),
}
CLUSTER = (ResourceType.CLUSTER, "kafka-cluster")
THE_TOPIC = (ResourceType.TOPIC, str(TOPIC))

Right = tuple[tuple[ResourceType, str], ACLOperation]


@contextmanager
def without(site: Proxied, right: Right) -> Iterator[None]:
    """Clients that come through the proxy lack a right, and others have all."""
    (kind, name), operation = right
    on = ResourcePattern(kind, name)
    anybody = "User:ANONYMOUS"
    acls = [
        ACL(anybody, "*", ACLOperation.ALL, ACLPermissionType.ALLOW, on),
        ACL(anybody, CLIENTS, operation, ACLPermissionType.DENY, on),
    ]
    any_on = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, on)
    past_the_proxy = site.cluster.kafka.inner_bootstrap.split(",")
    client = KafkaAdminClient(bootstrap_servers=past_the_proxy)
    try:
        client.create_acls(acls)
        wait_until(lambda: len(client.describe_acls(any_on)[0]) == len(acls))
        yield
    finally:
        client.delete_acls(acls)
        client.close()


REFUSALS = {
    (CLUSTER, ACLOperation.ALTER): ("reassign partitions", r"ALTER on the cluster\."),
    (CLUSTER, ACLOperation.DESCRIBE): ("list reassignments", "DESCRIBE on the cluster"),
    (CLUSTER, ACLOperation.DESCRIBE_CONFIGS): ("describe settings", "DESCRIBE_CONFIGS on the"),
    (CLUSTER, ACLOperation.ALTER_CONFIGS): ("change settings of broker 1", "ALTER_CONFIGS on the"),
    (THE_TOPIC, ACLOperation.DESCRIBE): ("describe topics", "DESCRIBE on the cluster and its top"),
    (THE_TOPIC, ACLOperation.DESCRIBE_CONFIGS): ("describe settings", "DESCRIBE_CONFIGS on the"),
    (THE_TOPIC, ACLOperation.ALTER_CONFIGS): (
        "change settings of topic numbered",
        "ALTER_CONFIGS on the",
    ),
}
"""What is refused without each right, and the right that the message names."""


@pytest.mark.parametrize("right", REFUSALS, ids=lambda r: f"{r[1].name} {r[0][1]}")
def test_a_missing_right_is_named_and_nothing_moves(site: Proxied, right: Right) -> None:
    plan = site.plan()
    refused, missing = REFUSALS[right]
    message = f"refused to {refused}. .* the right {missing}"
    with without(site, right), pytest.raises(RightsMissing, match=message):
        site.execute(plan, THROTTLED)
    views = site.admin.partitions([m.id for m in plan.moves])
    assert [v.replicas for v in views.values()] == [m.replicas_before for m in plan.moves]
    wait_until(lambda: site.is_clean)


class Loses:
    """Takes a right away when a run is first seen to copy."""

    def __init__(self, site: Proxied, right: Right, until: ExitStack) -> None:
        self._site = site
        self._right = right
        self._until = until
        self.is_done = False

    def __call__(self, run: RunProgress) -> None:
        if not self.is_done and any(m.bytes_copied is not None for m in run.moves):
            self.is_done = True
            self._until.enter_context(without(self._site, self._right))


@pytest.mark.parametrize(
    ("right", "message"),
    [
        ((CLUSTER, ACLOperation.ALTER), "refused to elect preferred leaders. .* ALTER"),
        ((THE_TOPIC, ACLOperation.DESCRIBE), "refused to describe topics. .* DESCRIBE"),
    ],
    ids=["ALTER", "DESCRIBE"],
)
def test_a_right_lost_during_a_run_is_named_and_the_run_can_be_resumed(
    site: Proxied, right: Right, message: str
) -> None:
    plan = site.plan()
    with ExitStack() as until:
        loses = Loses(site, right, until)
        with pytest.raises(RightsMissing, match=message):
            site.execute(plan, observe=loses)
    assert_done(site.resume())
    wait_until(lambda: site.is_as_planned(plan))
    wait_until(lambda: site.is_clean)


def test_a_throttle_that_cannot_be_removed_is_reported_and_cleaned_up(site: Proxied) -> None:
    plan = site.plan()
    with ExitStack() as until:
        loses = Loses(site, (CLUSTER, ACLOperation.ALTER_CONFIGS), until)
        report = site.execute(plan, THROTTLED, loses)
        assert loses.is_done
    assert report.state is RunState.FAILED
    assert "refused to change settings of broker 1. Give plimsoll's" in report.reason
    assert "plimsoll cleanup removes it" in report.reason
    wait_until(lambda: site.is_as_planned(plan))
    assert not site.is_clean
    with site.connect() as executor:
        (answer,) = executor.clean_up(site.folder)
    assert answer.endswith("its throttle is gone")
    wait_until(lambda: site.is_clean)
