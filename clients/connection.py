"""What all clients of one cluster share, whichever driver they are made with."""

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from clients.pem import is_encrypted
from model.errors import ConfigError

CLIENT_ID: Final = "plimsoll"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """What is believed of brokers, and what is shown to them; all of it PEM."""

    authorities: str | None = field(default=None, repr=False)
    """Certificates that are trusted; None for those that the system trusts."""
    certificates: str | None = field(default=None, repr=False)
    """The client's own, its issuers' after it."""
    key: str | None = field(default=None, repr=False)
    """Its private key; there where `certificates` are."""
    key_password: str | None = field(default=None, repr=False)
    check_names: bool = True
    """Whether a broker's certificate must be for the host that was called."""

    def context(self) -> ssl.SSLContext:
        """For Python's sockets. Raises ValueError, in words, for what is no PEM."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.check_names
        try:
            if self.authorities is None:
                context.load_default_certs()
            else:
                context.load_verify_locations(cadata=self.authorities)
        except ssl.SSLError as exc:
            raise ValueError("a trusted certificate is damaged") from exc
        if self.certificates and self.key:
            self._load_own(context, self.certificates + self.key)
        return context

    def _load_own(self, context: ssl.SSLContext, pem: str) -> None:
        # Python reads them only from a file; no other user can read this one.
        with tempfile.TemporaryDirectory(prefix="plimsoll-") as folder:
            file = Path(folder, "client.pem")
            file.touch(mode=0o600)
            file.write_text(pem, "ascii")
            try:
                context.load_cert_chain(file, password=self.key_password or "")
            except (ssl.SSLError, OSError) as exc:
                raise ValueError(
                    "ssl.key.password does not open the private key"
                    if is_encrypted(pem)
                    else "the private key is damaged, or belongs to another certificate"
                ) from exc


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A name and its password (SASL PLAIN, SCRAM)."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSource:
    """Where tokens come from (SASL OAUTHBEARER, KIP-768: client credentials)."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None

    @property
    def mechanism(self) -> str:
        """SASL's name of it."""
        return "OAUTHBEARER"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProperties:
    """How clients of a cluster are set up; by default with nothing to show or hide."""

    bootstrap: str | None = None
    """The bootstrap servers, if the properties name them."""
    client_id: str = CLIENT_ID
    tls: Tls | None = None
    sasl: Login | TokenSource | None = None
    unused: tuple[str, ...] = ()
    """Keys that are not for plimsoll, as they came."""

    @property
    def protocol(self) -> str:
        """Kafka's `security.protocol`."""
        if self.sasl is not None:
            return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"
        return "SSL" if self.tls else "PLAINTEXT"

    @property
    def login_name(self) -> str:
        """Who plimsoll says it is, and how."""
        match self.sasl:
            case Login(username=name) | TokenSource(client_id=name):
                return f"{name} ({self.sasl.mechanism})"
            case None:
                return "nobody"


OPEN: Final = ClientProperties()
"""For a cluster that lets everybody in."""


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a cluster.

    Raises ConfigError where `bootstrap` is no list of `host:port`.
    """

    bootstrap: str
    """`host:port`, several parted by commas."""
    timeout_s: float = 10.0
    """How long one call may take."""
    client: ClientProperties = OPEN

    def __post_init__(self) -> None:
        _ = self.addresses

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """The bootstrap servers, apart."""
        return tuple(_address(part, self.bootstrap) for part in self.servers)

    @property
    def servers(self) -> list[str]:
        """The bootstrap servers as written."""
        return [part.strip() for part in self.bootstrap.split(",")]


def _address(text: str, whole: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and 0 < int(port) < 65536):
        raise ConfigError(
            f"{text!r} in the bootstrap servers {whole!r} is not host:port. Write for "
            "example localhost:9092, several separated by commas."
        )
    return host.strip("[]"), int(port)
