"""Settings of confluent-kafka and of Spark's Kafka connector for a `Connection`."""

import logging
from typing import TYPE_CHECKING, Any, Final

from clients.connection import Connection, Login, MskIam, Tls, TokenSource
from clients.jaas import quoted
from clients.msk_tokens import MskTokens
from clients.tokens import Tokens

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

_SECURITY: Final = "org.apache.kafka.common.security"
_IAM: Final = "software.amazon.msk.auth.iam"
_librdkafka = logging.getLogger("plimsoll.collector.librdkafka")
_librdkafka.setLevel(logging.CRITICAL + 1)

# Fatal errors are raised; the driver would also write them to the terminal.
_SILENT: Final[dict[str, Any]] = {"log_level": 0, "logger": _librdkafka}


def confluent_settings(connection: Connection) -> dict[str, Any]:
    """Return librdkafka's settings for any client of confluent-kafka.

    Bootstrap servers, client id, TLS and SASL; tokens are fetched by a callback.
    """
    client = connection.client
    settings: dict[str, Any] = {
        "bootstrap.servers": connection.bootstrap,
        "client.id": client.client_id,
        "security.protocol": client.protocol,
    }
    if client.tls is not None:
        names = "https" if client.tls.check_names else "none"
        stores = {
            "ssl.ca.pem": client.tls.authorities,
            "ssl.certificate.pem": client.tls.certificates,
            "ssl.key.pem": client.tls.key,
            "ssl.key.password": client.tls.key_password,
        }
        settings |= {key: value for key, value in stores.items() if value}
        settings["ssl.endpoint.identification.algorithm"] = names
    match client.sasl:
        case Login() as login:
            settings["sasl.username"] = login.username
            settings["sasl.password"] = login.password
        case TokenSource() as source:
            tokens = Tokens(source, client, connection.timeout_s)
            settings["oauth_cb"] = lambda _: _token(tokens)
        case MskIam() as credentials:
            signed = MskTokens(credentials, connection)
            settings["oauth_cb"] = lambda _: _token(signed)
    if client.sasl is not None:
        settings["sasl.mechanism"] = client.sasl.mechanism
    return settings


def _token(tokens: Tokens | MskTokens) -> tuple[str, float]:
    token = tokens.current()
    return token.text, token.ends_at_s


def make_producer(connection: Connection) -> "Producer":
    """Create a producer for samples that logs nothing and stops retrying in time.

    A record is given up after `connection.timeout_s`.
    """
    from confluent_kafka import Producer

    return Producer(
        {
            **confluent_settings(connection),
            **_SILENT,
            # The wait is bounded by time; samples may outnumber the default of 100,000.
            "queue.buffering.max.messages": 0,
            "linger.ms": 5,
            "acks": "all",
            "enable.idempotence": True,
            "delivery.timeout.ms": int(1000 * connection.timeout_s),
        }
    )


def lease_producer(connection: Connection, transactional_id: str, timeout_s: float) -> "Producer":
    """Create a producer of single records in transactions, which logs nothing.

    timeout_s: after which a record is given up; Kafka aborts its transaction after twice that.
    """
    from confluent_kafka import Producer

    timeout_ms = int(1000 * timeout_s)
    return Producer(
        {
            **confluent_settings(connection),
            **_SILENT,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 2 * timeout_ms,
            "delivery.timeout.ms": timeout_ms,
            "linger.ms": 0,
        }
    )


def lease_consumer(connection: Connection) -> "Consumer":
    """Create a consumer of what is committed, which is given its partitions and logs nothing."""
    from confluent_kafka import Consumer

    return Consumer(
        {
            **confluent_settings(connection),
            **_SILENT,
            # Required, and unused: nothing is committed, and no group is joined.
            "group.id": "plimsoll",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "allow.auto.create.topics": False,
            # A broker answers at once at the end of the log, which is read once a second.
            "fetch.wait.max.ms": 10,
        }
    )


def topic_config(connection: Connection, topic: str, name: str, timeout_s: float) -> str | None:
    """Return a configuration of a topic; None if unknown. Raises KafkaException."""
    from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

    admin = AdminClient({**confluent_settings(connection), **_SILENT})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (found,) = admin.describe_configs([resource], request_timeout=timeout_s).values()
    entry = found.result().get(name)
    return None if entry is None else entry.value


def spark_options(connection: Connection) -> dict[str, str]:
    """Return options of Spark's Kafka connector, keys with the prefix `kafka.`.

    Its clients are Java's and run on any machine, so certificates go along as text.
    """
    client = connection.client
    options = {"bootstrap.servers": connection.bootstrap, "security.protocol": client.protocol}
    if client.tls is not None:
        options |= _java_stores(client.tls)
    match client.sasl:
        case Login() as login:
            options |= _java_login(login)
        case TokenSource() as source:
            options |= _java_tokens(source, client.tls)
        case MskIam() as credentials:
            options |= _java_iam(credentials)
    if client.sasl is not None:
        options.setdefault("sasl.mechanism", client.sasl.mechanism)
    return {f"kafka.{key}": value for key, value in options.items()}


def _java_stores(tls: Tls) -> dict[str, str]:
    stores = {
        "ssl.truststore.certificates": tls.authorities,
        "ssl.keystore.certificate.chain": tls.certificates,
        "ssl.keystore.key": tls.key,
        "ssl.key.password": tls.key_password,
    }
    options = {key: value for key, value in stores.items() if value}
    for store in ("truststore", "keystore"):
        if any(key.startswith(f"ssl.{store}.") for key in options):
            options[f"ssl.{store}.type"] = "PEM"
    names = "https" if tls.check_names else ""
    return options | {"ssl.endpoint.identification.algorithm": names}


def _java_login(login: Login) -> dict[str, str]:
    module = "plain.PlainLoginModule" if login.mechanism == "PLAIN" else "scram.ScramLoginModule"
    login_options = {"username": login.username, "password": login.password}
    return {"sasl.jaas.config": _jaas(module, login_options)}


def _java_tokens(source: TokenSource, tls: Tls | None) -> dict[str, str]:
    """Java fetches the tokens itself; its login module gets the trusted certificates."""
    credentials = {"clientId": source.client_id, "clientSecret": source.client_secret}
    if source.scope:
        credentials["scope"] = source.scope
    if tls is not None and tls.authorities and source.url.startswith("https:"):
        credentials["ssl.truststore.type"] = "PEM"
        credentials["ssl.truststore.certificates"] = tls.authorities
    return {
        "sasl.jaas.config": _jaas("oauthbearer.OAuthBearerLoginModule", credentials),
        "sasl.login.callback.handler.class": (
            f"{_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler"
        ),
        "sasl.oauthbearer.token.endpoint.url": source.url,
    }


def _java_iam(credentials: MskIam) -> dict[str, str]:
    """AWS' library for Java signs by itself; its jar must be among Spark's."""
    given = {
        "awsProfileName": credentials.profile,
        "awsRoleArn": credentials.role_arn,
        "awsRoleSessionName": credentials.role_session,
    }
    pairs = "".join(f" {key}={quoted(value)}" for key, value in given.items() if value)
    return {
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": f"{_IAM}.IAMLoginModule required{pairs};",
        "sasl.client.callback.handler.class": f"{_IAM}.IAMClientCallbackHandler",
    }


def _jaas(module: str, options: dict[str, str]) -> str:
    pairs = " ".join(f"{key}={quoted(value)}" for key, value in options.items())
    return f"{_SECURITY}.{module} required {pairs};"
