"""The `ssl.*` keys: trusted certificates, and the client's own, in PEM."""

import re
import textwrap
from typing import Final

from clients.connection import Tls, is_encrypted
from clients.properties import Properties

_NAMES: Final = "ssl.endpoint.identification.algorithm"
_CA_FILES: Final = ("ssl.truststore.location", "ssl.ca.location")
_CA_TEXTS: Final = ("ssl.truststore.certificates", "ssl.ca.pem")
_KEYSTORE: Final = "ssl.keystore.location"
_OWN_FILES: Final = (_KEYSTORE, "ssl.certificate.location")
_OWN_TEXTS: Final = ("ssl.keystore.certificate.chain", "ssl.certificate.pem")
_KEY_FILES: Final = ("ssl.key.location",)
_KEY_TEXTS: Final = ("ssl.keystore.key", "ssl.key.pem")
_PASSWORD: Final = "ssl.key.password"  # noqa: S105 - the name of a key
_TYPES: Final = ("ssl.truststore.type", "ssl.keystore.type")
TLS_KEYS: Final = (
    *(*_CA_FILES, *_CA_TEXTS, *_OWN_FILES, *_OWN_TEXTS, *_KEY_FILES, *_KEY_TEXTS),
    *(*_TYPES, _PASSWORD, _NAMES),
)
_BLOCK: Final = re.compile(
    r"-----BEGIN (?P<kind>[A-Z0-9 ]+)-----(?P<body>(?:(?!-----).)*)"
    r"-----END (?P=kind)-----",
    re.DOTALL,
)
_WIDTH: Final = 64
_TO_PEM: Final = {
    "truststore": "`keytool -list -rfc -keystore {0} > truststore.pem`",
    "keystore": (
        "`keytool -importkeystore -srckeystore {0} -destkeystore keystore.p12 "
        "-deststoretype PKCS12` and `openssl pkcs12 -in keystore.p12 -out keystore.pem`"
    ),
}


def read_tls(properties: Properties) -> Tls:
    """Return the TLS settings that the keys describe.

    Raises ConfigError where a key is unsupported or contradicts another one, or where a
    certificate or private key is missing or damaged.
    """
    for store in _TO_PEM:
        _refuse_other_types(properties, store)
    certificates = _pem(properties, _OWN_FILES, _OWN_TEXTS, "certificate")
    key = _private_key(properties, certificates)
    tls = Tls(
        authorities=_pem(properties, _CA_FILES, _CA_TEXTS, "certificate"),
        certificates=certificates,
        key=key,
        key_password=properties.get(_PASSWORD) if key else None,
        check_names=_check_names(properties),
    )
    try:
        tls.context()
    except ValueError as exc:
        (key_given, *_) = properties.given((*_OWN_FILES, *_OWN_TEXTS, *TLS_KEYS))
        raise properties.fault(key_given, str(exc)) from exc
    return tls


def _refuse_other_types(properties: Properties, store: str) -> None:
    kind, location = f"ssl.{store}.type", f"ssl.{store}.location"
    given = properties.get(kind)
    if given is not None and given.upper() != "PEM":
        where = properties.get(location) or f"your.{given.lower()}"
        raise properties.fault(
            kind,
            f"plimsoll reads only stores of the type PEM, not {given}; convert yours "
            f"with {_TO_PEM[store].format(where)}, and set {kind}=PEM",
        )


def _pem(
    properties: Properties, files: tuple[str, ...], texts: tuple[str, ...], what: str
) -> str | None:
    """The certificates or the private key, in PEM, in a file or in the value itself."""
    given = properties.get(*files, *texts)
    if given is None:
        return None
    (key,) = properties.given((*files, *texts))
    text = properties.text_of(key) if key in files else given
    found = "".join(
        f"-----BEGIN {block['kind']}-----\n{_lines(block['body'])}\n-----END {block['kind']}-----\n"
        for block in _BLOCK.finditer(text)
        if block["kind"].endswith(what.upper())
    )
    if not found:
        raise properties.fault(key, _lacks(key, given if key in files else "", what))
    return found


def _lines(body: str) -> str:
    """Lines of 64, as OpenSSL needs them; a properties file may have one line."""
    if ":" in body:  # headers of an older form, which stand in lines of their own
        return body.strip()
    return "\n".join(textwrap.wrap("".join(body.split()), _WIDTH))


def _lacks(key: str, file: str, what: str) -> str:
    problem = f"{file or 'its value'} contains no {what} in PEM"
    store = key.split(".")[1]
    if file and store in _TO_PEM:
        return f"{problem}; convert a Java store with {_TO_PEM[store].format(file)}"
    return f"{problem}, which begins with -----BEGIN"


def _private_key(properties: Properties, certificates: str | None) -> str | None:
    keystore = (_KEYSTORE,) if properties.given((_KEYSTORE,)) else ()
    key = _pem(properties, (*_KEY_FILES, *keystore), _KEY_TEXTS, "private key")
    given = properties.given((*keystore, *_KEY_FILES, *_KEY_TEXTS))
    if key and certificates is None:
        raise properties.fault(given[0], "there is a private key, but no certificate")
    if certificates is not None and key is None:
        (own,) = properties.given((*_OWN_FILES, *_OWN_TEXTS))
        raise properties.fault(own, "there is a certificate, but no private key")
    if key and is_encrypted(key) and not properties.get(_PASSWORD):
        raise properties.fault(
            given[0], f"the private key is encrypted; give its password as {_PASSWORD}"
        )
    return key


def _check_names(properties: Properties) -> bool:
    given = properties.get(_NAMES)
    if given is None or given.lower() == "https":
        return True
    if given.lower() in ("", "none"):
        return False
    raise properties.fault(_NAMES, "it must be `https`, or empty to accept any host name")
