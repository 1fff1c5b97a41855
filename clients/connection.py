"""How to reach a cluster: addresses, TLS and login, for every driver."""

import ipaddress
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from model.errors import ConfigError

CLIENT_ID: Final = "plimsoll"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Trusted certificates and the client's own certificate, in PEM."""

    authorities: str | None = field(default=None, repr=False)
    """Trusted certificates; None for those that the system trusts."""
    certificates: str | None = field(default=None, repr=False)
    """The client's own certificate, followed by those of its issuers."""
    key: str | None = field(default=None, repr=False)
    """Its private key; set exactly where `certificates` is."""
    key_password: str | None = field(default=None, repr=False)
    check_names: bool = True
    """Whether a broker's certificate must name the host that was connected to."""

    def context(self) -> ssl.SSLContext:
        """Build the context of Python's sockets, TLS 1.2 or newer.

        Raises ValueError, with a sentence, where a certificate or key is damaged.
        """
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
    """A user name and its password (SASL PLAIN or SCRAM)."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSource:
    """An OAuth token endpoint (SASL OAUTHBEARER, KIP-768: client credentials)."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    mechanism: ClassVar[str] = "OAUTHBEARER"
    """The name of the SASL mechanism (KIP-255)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MskIam:
    """Credentials of AWS, with which tokens for Amazon MSK are signed (AWS_MSK_IAM)."""

    profile: str | None = None
    """Of AWS' files; by default credentials come from AWS' usual places."""
    role_arn: str | None = None
    """The role to assume."""
    role_session: str | None = None
    """Name of its session."""
    mechanism: ClassVar[str] = "OAUTHBEARER"
    """With which clients other than Java's log in to MSK."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProperties:
    """How clients of a cluster are set up; by default without TLS and login."""

    bootstrap: str | None = None
    """The bootstrap servers, if the properties name them."""
    client_id: str = CLIENT_ID
    tls: Tls | None = None
    sasl: Login | TokenSource | MskIam | None = None
    unused: tuple[str, ...] = ()
    """Keys of the file that plimsoll does not use."""

    @property
    def protocol(self) -> str:
        """Kafka's `security.protocol`: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        if self.sasl is not None:
            return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"
        return "SSL" if self.tls else "PLAINTEXT"

    @property
    def login_name(self) -> str:
        """User or client id with the mechanism, for messages: `alice (PLAIN)`."""
        match self.sasl:
            case Login(username=name) | TokenSource(client_id=name):
                return f"{name} ({self.sasl.mechanism})"
            case MskIam(role_arn=role, profile=profile):
                return f"{role or profile or 'AWS credentials'} (AWS_MSK_IAM)"
            case None:
                return "nobody"


OPEN: Final = ClientProperties()
"""For a cluster without TLS and login."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A cluster's bootstrap servers and how its clients are set up.

    Raises ConfigError where `bootstrap` is not a list of `host:port`.
    """

    bootstrap: str
    """`host:port`, several separated by commas."""
    timeout_s: float = 10.0
    """Time-out of one call."""
    client: ClientProperties = OPEN

    def __post_init__(self) -> None:
        _ = self.addresses

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Host and port of each bootstrap server, in the order given."""
        return tuple(_address(part, self.bootstrap) for part in self.servers)

    @property
    def servers(self) -> list[str]:
        """The bootstrap servers as written, one text each."""
        return [part.strip() for part in self.bootstrap.split(",")]


def is_encrypted(key: str) -> bool:
    """Whether a private key in PEM is encrypted with a password."""
    return "BEGIN ENCRYPTED" in key or "Proc-Type: 4,ENCRYPTED" in key


def _address(text: str, whole: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and 0 < int(port) < 65536):
        raise ConfigError(
            f"{text!r} in the bootstrap servers {whole!r} is not host:port. Write for "
            "example localhost:9092, several separated by commas."
        )
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether this is an IP address of the machine's loopback interface; False for names."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
