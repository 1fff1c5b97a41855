"""How Cruise Control's own properties protect its API: the keys `webserver.*`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clients.properties import Properties, read_properties

SECURITY: Final = "webserver.security.enable"
PROVIDER: Final = "webserver.security.provider"
CREDENTIALS: Final = "webserver.auth.credentials.file"
TLS: Final = "webserver.ssl.enable"
KEYSTORE: Final = "webserver.ssl.keystore.location"
KEYSTORE_TYPE: Final = "webserver.ssl.keystore.type"
_BASIC: Final = "BasicSecurityProvider"
_DEFAULT_CREDENTIALS: Final = "/etc/cruisecontrol-basic-auth.credentials"


@dataclass(frozen=True, slots=True)
class WebserverFiles:
    """What the properties name."""

    credentials: Path | None
    """The file of logins; None without authentication."""
    certificate: Path | None
    """PEM file with certificate and key; None without TLS, or where a setting has to name it."""


def webserver_files(path: Path, *, has_certificate: bool) -> WebserverFiles:
    """Read the properties; has_certificate: whether `tls_certificate` is set, which goes first.

    Raises ConfigError where the file cannot be read, or a key is unsupported.
    """
    found = Properties(path, read_properties(path))
    return WebserverFiles(_credentials(found), _certificate(found, has_certificate))


def _credentials(found: Properties) -> Path | None:
    if not _is_on(found, SECURITY):
        return None
    provider = found.get(PROVIDER) or _BASIC
    if provider.rpartition(".")[2] != _BASIC:
        raise found.fault(PROVIDER, f"only {_BASIC} is supported")
    return Path(found.get(CREDENTIALS) or _DEFAULT_CREDENTIALS)


def _certificate(found: Properties, has_certificate: bool) -> Path | None:
    if not _is_on(found, TLS) or has_certificate:
        return None
    kind = (found.get(KEYSTORE_TYPE) or "JKS").upper()
    if kind != "PEM":
        # Strimzi makes its PKCS12 store of PEM files that are in the container, too.
        raise found.fault(
            TLS,
            f"a {kind} store is not supported here: set tls_certificate and tls_key in [service] "
            "to the certificate and key as PEM files, which go first",
        )
    return Path(found.require(KEYSTORE, reason="it names the certificate"))


def _is_on(found: Properties, key: str) -> bool:
    value = (found.get(key) or "false").strip().lower()
    if value not in ("true", "false"):
        raise found.fault(key, "it is true or false")
    return value == "true"
