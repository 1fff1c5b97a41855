"""The `ssl.*` keys: trusted certificates, and the client's own, in PEM or Java's stores."""

import contextlib
import logging
import re
import stat
import textwrap
import time
from pathlib import Path
from typing import Final

from clients.connection import Tls, is_encrypted
from clients.java_stores import JavaStore, StoreKind, kind_of, read_store
from clients.properties import Properties
from model.bounded import MOST_TYPED_BYTES, read_bytes
from model.errors import ConfigError

_NAMES: Final = "ssl.endpoint.identification.algorithm"
_CA_FILES: Final = ("ssl.truststore.location", "ssl.ca.location")
_CA_TEXTS: Final = ("ssl.truststore.certificates", "ssl.ca.pem")
_KEYSTORE: Final = "ssl.keystore.location"
_OWN_FILES: Final = (_KEYSTORE, "ssl.certificate.location")
_OWN_TEXTS: Final = ("ssl.keystore.certificate.chain", "ssl.certificate.pem")
_KEY_FILES: Final = ("ssl.key.location",)
_KEY_TEXTS: Final = ("ssl.keystore.key", "ssl.key.pem")
_PASSWORD: Final = "ssl.key.password"  # noqa: S105 - the name of a key
_TRUSTED: Final = "ssl.truststore"
_OWN: Final = "ssl.keystore"
_TYPES: Final = (f"{_TRUSTED}.type", f"{_OWN}.type")
_STORE_PASSWORDS: Final = (f"{_TRUSTED}.password", f"{_OWN}.password")
_BESIDE: Final = {
    _TRUSTED: ("ssl.ca.location", *_CA_TEXTS),
    _OWN: ("ssl.certificate.location", *_OWN_TEXTS, *_KEY_FILES, *_KEY_TEXTS),
}
"""Keys that a store in one of Java's formats makes superfluous."""
TLS_KEYS: Final = (
    *(*_CA_FILES, *_CA_TEXTS, *_OWN_FILES, *_OWN_TEXTS, *_KEY_FILES, *_KEY_TEXTS),
    *(*_TYPES, *_STORE_PASSWORDS, _PASSWORD, _NAMES),
)
_BLOCK: Final = re.compile(
    r"-----BEGIN (?P<kind>[A-Z0-9 ]+)-----(?P<body>(?:(?!-----).)*)"
    r"-----END (?P=kind)-----",
    re.DOTALL,
)
_WIDTH: Final = 64
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.S)
_log = logging.getLogger("plimsoll.private")


def read_tls(properties: Properties) -> Tls:
    """Return the TLS settings that the keys describe.

    Raises ConfigError where a key is unsupported or contradicts another one, or where a
    certificate or private key is missing or damaged.
    """
    trusted, own = (_java_store(properties, store) for store in (_TRUSTED, _OWN))
    if own is None:
        certificates = _pem(properties, _OWN_FILES, _OWN_TEXTS, "certificate")
        key = _private_key(properties, certificates)
        password = properties.get(_PASSWORD) if key else None
    else:
        certificates, key, password = own.certificates, own.key, None
    tls = Tls(
        authorities=(
            _pem(properties, _CA_FILES, _CA_TEXTS, "certificate")
            if trusted is None
            else trusted.certificates
        ),
        certificates=certificates,
        key=key,
        key_password=password,
        check_names=_check_names(properties),
    )
    try:
        tls.context()
    except ValueError as exc:
        (key_given, *_) = properties.given((*_OWN_FILES, *_OWN_TEXTS, *TLS_KEYS))
        raise properties.fault(key_given, str(exc)) from exc
    _warn_of_readers(properties)
    _warn_of_end(certificates)
    return tls


def _java_store(properties: Properties, store: str) -> JavaStore | None:
    """The content of a store in one of Java's formats; None where it is PEM, or not given."""
    location, kind = f"{store}.location", properties.get(f"{store}.type")
    if kind is not None and kind.upper() not in [*StoreKind]:
        raise properties.fault(
            f"{store}.type", f"{kind} is not supported; it is one of {', '.join(StoreKind)}"
        )
    path = properties.get(location)
    if path is None or (kind is not None and kind.upper() == StoreKind.PEM):
        return None
    try:
        data = read_bytes(Path(path), MOST_TYPED_BYTES)
    except ConfigError as exc:
        raise properties.fault(location, str(exc)) from exc
    if kind_of(data) is None:
        if kind is None:
            return None
        raise properties.fault(location, f"{path} is neither PKCS12 nor JKS; check {store}.type")
    return _read_java_store(properties, store, data)


def _read_java_store(properties: Properties, store: str, data: bytes) -> JavaStore:
    location = f"{store}.location"
    path = properties.get(location) or ""
    password = properties.get(f"{store}.password") or None
    if others := properties.given(_BESIDE[store]):
        raise properties.fault(others[0], f"{location} has the same; keep one of them")
    try:
        found = read_store(Path(path), data, password, properties.get(_PASSWORD) or None)
    except ValueError as exc:
        problem = f"{path} cannot be read: {exc}; check {store}.password"
        raise properties.fault(location, problem) from exc
    if not found.certificates:
        raise properties.fault(location, f"{path} contains no certificate")
    if store == _OWN and found.key is None:
        raise properties.fault(location, f"{path} contains no private key")
    return found


def _warn_of_readers(properties: Properties) -> None:
    for key in properties.given((_KEYSTORE, *_KEY_FILES)):
        path = Path(properties.get(key) or "")
        if path.stat().st_mode & stat.S_IROTH:
            _log.warning("others can read the private key in %s; chmod 600 it", path)


def _ends_s(pem: str) -> float | None:
    """End of a certificate's validity, in seconds since the epoch; None if it is damaged."""
    from cryptography import x509

    with contextlib.suppress(ValueError):
        return x509.load_pem_x509_certificate(pem.encode("ascii")).not_valid_after_utc.timestamp()
    return None


def _warn_of_end(certificates: str | None) -> None:
    for text in _CERTIFICATE.findall(certificates or "")[:1]:
        ends_s = _ends_s(text)
        if ends_s is not None and ends_s < time.time():
            day = time.strftime("%Y-%m-%d", time.gmtime(ends_s))
            words = "the client's certificate ended on %s, and brokers may refuse it; replace it"
            _log.warning(words, day)


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
        place = given if key in files else "its value"
        problem = f"{place} contains no {what} in PEM, which begins with -----BEGIN"
        raise properties.fault(key, problem)
    return found


def _lines(body: str) -> str:
    """Lines of 64, as OpenSSL needs them; a properties file may have one line."""
    if ":" in body:  # headers of an older form, which stand in lines of their own
        return body.strip()
    return "\n".join(textwrap.wrap("".join(body.split()), _WIDTH))


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
