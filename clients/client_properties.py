"""`client.properties`: the file that Kafka's own tools take as `--command-config`.

Keys are those of Kafka's Java clients; librdkafka's equivalents are accepted, too.
"""

from pathlib import Path
from typing import Final

from clients.connection import CLIENT_ID, ClientProperties
from clients.properties import Properties, read_properties
from clients.sasl_properties import SASL_KEYS, read_sasl
from clients.tls_properties import TLS_KEYS, read_tls
from model.exchange.text_files import nearest

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PROTOCOL: Final = "security.protocol"
_SUPPORTED: Final = frozenset({"bootstrap.servers", "client.id", _PROTOCOL, *TLS_KEYS, *SASL_KEYS})
_JAVA_ONLY: Final = frozenset(
    {
        *("ssl.protocol", "ssl.enabled.protocols", "ssl.cipher.suites", "ssl.provider"),
        *("ssl.keymanager.algorithm", "ssl.trustmanager.algorithm"),
        *("ssl.secure.random.implementation", "security.providers"),
        *("sasl.login.callback.handler.class", "sasl.client.callback.handler.class"),
        *(
            f"sasl.login.{name}"
            for name in (
                *("connect.timeout.ms", "read.timeout.ms"),
                *("retry.backoff.ms", "retry.backoff.max.ms"),
                *("refresh.buffer.seconds", "refresh.min.period.seconds"),
                *("refresh.window.factor", "refresh.window.jitter"),
            )
        ),
        "sasl.oauthbearer.method",
    }
)
"""Ignored: they tune Java's own implementation and do not change what others mean."""


def read_client_properties(path: Path) -> ClientProperties:
    """Read how the clients of a cluster are set up.

    Keys that do not concern the connection, such as `group.id`, are listed in `unused`.

    Raises ConfigError where a key is malformed, missing, unsupported, contradicts another
    one, or is an unknown key of security. The message names file, line and key, and never a
    value that may be a secret.
    """
    properties = Properties(path, read_properties(path))
    _refuse_unknown(properties)
    protocol = _protocol(properties)
    return ClientProperties(
        bootstrap=properties.get("bootstrap.servers") or None,
        client_id=properties.get("client.id") or CLIENT_ID,
        tls=read_tls(properties) if protocol.endswith("SSL") else None,
        sasl=read_sasl(properties) if protocol.startswith("SASL") else None,
        unused=tuple(key for key in properties.by_key if key not in _SUPPORTED),
    )


def _refuse_unknown(properties: Properties) -> None:
    for key in properties.by_key:
        # The error about the mechanism GSSAPI is more helpful than one about its keys.
        if key in _SUPPORTED or key in _JAVA_ONLY or key.startswith("sasl.kerberos."):
            continue
        area = key.partition(".")[0]
        if area in ("ssl", "sasl", "security"):
            known = [name for name in _SUPPORTED if name.startswith(area)]
            raise properties.fault(key, f"plimsoll does not know this key{nearest(key, known)}")


def _protocol(properties: Properties) -> str:
    given = properties.get(_PROTOCOL)
    protocol = (given or "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise properties.fault(_PROTOCOL, f"it must be one of {', '.join(_PROTOCOLS)}")
    because = f"{_PROTOCOL} is {protocol}" if given else f"{_PROTOCOL} is missing"
    if not protocol.startswith("SASL") and (keys := properties.given(SASL_KEYS)):
        raise properties.fault(
            keys[0],
            f"plimsoll would not log in, because {because}; set it to SASL_SSL, or remove this key",
        )
    if not protocol.endswith("SSL") and (keys := properties.given(TLS_KEYS)):
        raise properties.fault(
            keys[0],
            f"nothing would be encrypted, because {because}; set it to SSL or "
            "SASL_SSL, or remove this key",
        )
    return protocol
