"""What a `Connection` is to each of the drivers that this package uses."""

from typing import Any

from model.connection.client import Connection, Login, Tls, TokenSource
from model.connection.jaas import quoted
from model.errors import ConfigError


def confluent_settings(connection: Connection) -> dict[str, Any]:
    """Of any of confluent-kafka's clients; not for OAUTHBEARER."""
    client = connection.client
    settings: dict[str, Any] = {
        "bootstrap.servers": connection.bootstrap,
        "client.id": client.client_id,
        "security.protocol": client.protocol,
    }
    if client.tls is not None:
        names = "https" if client.tls.check_names else "none"
        shown = {
            "ssl.ca.pem": client.tls.authorities,
            "ssl.certificate.pem": client.tls.certificates,
            "ssl.key.pem": client.tls.key,
            "ssl.key.password": client.tls.key_password,
        }
        settings |= {key: value for key, value in shown.items() if value}
        settings["ssl.endpoint.identification.algorithm"] = names
    if isinstance(client.sasl, Login):
        settings["sasl.mechanism"] = client.sasl.mechanism
        settings["sasl.username"] = client.sasl.username
        settings["sasl.password"] = client.sasl.password
    return settings


def spark_options(connection: Connection) -> dict[str, str]:
    """Of Spark's Kafka connector, whose clients are Java's, on whatever machine.

    Raises ConfigError for OAUTHBEARER.
    """
    client = connection.client
    options = {
        "bootstrap.servers": connection.bootstrap,
        "security.protocol": client.protocol,
    }
    if client.tls is not None:
        options |= _java_stores(client.tls)
    match client.sasl:
        case Login() as login:
            options["sasl.mechanism"] = login.mechanism
            options["sasl.jaas.config"] = _jaas(login)
        case TokenSource():
            raise ConfigError(
                "Spark cannot read topics by OAUTHBEARER yet; leave samples_topic out, "
                "or log in by SCRAM or PLAIN"
            )
    return {f"kafka.{key}": value for key, value in options.items()}


def _java_stores(tls: Tls) -> dict[str, str]:
    shown = {
        "ssl.truststore.certificates": tls.authorities,
        "ssl.keystore.certificate.chain": tls.certificates,
        "ssl.keystore.key": tls.key,
        "ssl.key.password": tls.key_password,
    }
    options = {key: value for key, value in shown.items() if value}
    for store in ("truststore", "keystore"):
        if any(key.startswith(f"ssl.{store}.") for key in options):
            options[f"ssl.{store}.type"] = "PEM"
    names = "https" if tls.check_names else ""
    return options | {"ssl.endpoint.identification.algorithm": names}


def _jaas(login: Login) -> str:
    module = (
        "plain.PlainLoginModule"
        if login.mechanism == "PLAIN"
        else "scram.ScramLoginModule"
    )
    return (
        f"org.apache.kafka.common.security.{module} required "
        f"username={quoted(login.username)} password={quoted(login.password)};"
    )
