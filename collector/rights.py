"""Missing rights for which brokers return incomplete answers instead of errors."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from clients.admin_connection import AdminConnection, send_request
from clients.driver_errors import is_unauthorized
from collector.brokers.fan_out import ANSWER_S
from collector.brokers.requests import about_log_dirs
from collector.brokers.response_layout import MalformedResponse, log_dirs

_MOST_NAMED: Final = 3


def refuse_hidden_topics(
    client: AdminConnection,
    admin: Any,
    brokers: Iterable[Mapping[str, Any]],
    topics: Iterable[Mapping[str, Any]],
    spared: Collection[str] = (),
) -> frozenset[str]:
    """Raise RightsMissing if there are topics that the user may not see.

    brokers, topics: kafka-python's descriptions. Metadata omit hidden topics; log
    directories list them (KIP-113). A broker that does not answer is skipped. Returns the
    names of all hidden topics, which are then in `spared`.
    """
    from kafka.errors import TopicAuthorizationFailedError

    stored = {name for b in brokers for name in _stored(admin, b["broker_id"])}
    unseen = sorted(stored - {topic["name"] for topic in topics})
    described = admin.describe_topics(unseen) if unseen else []
    hidden = {
        str(topic["name"])
        for topic in described
        if topic["error_code"] == TopicAuthorizationFailedError.errno
    }
    if needed := sorted(hidden.difference(spared)):
        raise client.refusal("describe topics", f"DESCRIBE on the {_named(needed)}")
    return frozenset(hidden)


def configs_of(
    client: AdminConnection, admin: Any, kind: str, names: Sequence[str], keys: Sequence[str]
) -> dict[tuple[str, str], str | None]:
    """Return settings by resource name and key (KIP-133); absent where unset.

    kind: TOPIC, or BROKER with the id of a single broker as text in `names`. keys: the
    settings to read. Empty without names. Raises RightsMissing if DESCRIBE_CONFIGS is
    refused for any of the names, where the driver's own call would return nothing.
    """
    from kafka.admin import ConfigResourceType
    from kafka.protocol.admin import DescribeConfigsRequest

    if not names:
        return {}
    resources = [(ConfigResourceType[kind], name, list(keys)) for name in names]
    request = DescribeConfigsRequest(resources=resources, include_synonyms=False)
    to = int(names[0]) if kind == "BROKER" else None
    results = send_request(admin, request, to).results
    refused = sorted(str(row.resource_name) for row in results if is_unauthorized(row.error_code))
    if refused:
        whose = "cluster" if kind == "BROKER" else _named(refused)
        raise client.refusal("describe settings", f"DESCRIBE_CONFIGS on the {whose}")
    return {
        (row.resource_name, config.name): config.value
        for row in results
        for config in row.configs
        if config.name in keys
    }


def _stored(admin: Any, broker: int) -> set[str]:
    """Names of all topics that a broker stores; the driver's own call knows only metadata's."""
    from kafka.errors import KafkaError

    try:
        layout = log_dirs(send_request(admin, about_log_dirs(), broker, ANSWER_S))
    except (KafkaError, OSError, MalformedResponse):
        return set()
    return set(layout.names)


def _named(topics: Sequence[str]) -> str:
    first, more = topics[:_MOST_NAMED], len(topics) - _MOST_NAMED
    rest = f" and {more} more" if more > 0 else ""
    return f"topic{'s' if len(topics) > 1 else ''} {', '.join(first)}{rest}"
