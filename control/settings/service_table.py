"""`[service]`: where `plimsoll service` listens, and how it starts."""

import ipaddress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from model.files import FileModel
from model.paths import UserPath

LOCALHOST: Final = "127.0.0.1"
MOST_PORT: Final = 65535


class ListenAddress(NamedTuple):
    """An address of this machine, and a port; port 0 lets the system choose one."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The address as the beginning of a URL, without TLS."""
        return self.url_by("http")

    def url_by(self, scheme: str) -> str:
        """The address as the beginning of a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only programs of this machine reach it."""
        return ipaddress.ip_address(self.host).is_loopback


def listen_address(text: str) -> ListenAddress:
    """Parse `HOST:PORT`; ValueError unless it is an IP address and a port."""
    host, colon, port = text.rpartition(":")
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else -1
    if not colon or not 0 <= number <= MOST_PORT:
        raise ValueError(f"{text!r} is not HOST:PORT, such as {LOCALHOST}:9645")
    if host == "localhost":
        return ListenAddress(LOCALHOST, number)
    bare = host[1:-1] if host[:1] == "[" and host[-1:] == "]" else host
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        raise ValueError(
            f"{host!r} is not an IP address; give one of this machine, such as {LOCALHOST}"
        ) from None
    if "%" in bare or (":" in bare and bare == host):
        raise ValueError(f"write the IPv6 address in brackets and without a zone: [::1]:{number}")
    return ListenAddress(str(address), number)


class CruiseControlAccess(StrEnum):
    """What clients of Cruise Control may do."""

    OFF = "off"
    """Nothing: the API is not served."""
    READ = "read"
    """Read, and plan without executing."""
    EXECUTE = "execute"
    """Execute plans, too; needs `--auto`."""


class StandbyLease(StrEnum):
    """Where services that share a cluster keep the lease on leading."""

    S3 = "s3"
    """In the bucket of `[archive]`."""
    KAFKA = "kafka"
    """In a topic of the cluster, by transactions."""
    KUBERNETES = "kubernetes"
    """A Lease of the namespace, for services that run in pods."""


SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes mounts the files of a pod's service account."""
LEASE_TOPIC: Final = "__plimsoll_leases"
_TOPIC: Final = r"^[a-zA-Z0-9._-]{1,249}$"
_NAMESPACE: Final = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"


def _listen(text: str) -> str:
    listen_address(text)
    return text


class ServiceTable(FileModel):
    """Where `plimsoll service` listens for HTTP, and how it starts."""

    listen: Annotated[str, AfterValidator(_listen)] = f"{LOCALHOST}:9645"
    """Address and port of metrics and probes, `HOST:PORT`; port 0 lets the system choose one.
    Other addresses than those of loopback need `tls_certificate` and `logins`."""

    metrics_listen: Annotated[str, AfterValidator(_listen)] | None = None
    """Address and port of a second listener, which has `/metrics` alone, without TLS and logins,
    also for other machines: for a Prometheus that has neither, behind a network policy, as
    Strimzi's port 9404. By default there is none."""

    api: bool = False
    """Whether to serve `/api/v1` as well: without `logins`, anyone on this machine can then read
    plans, loads and the names of topics; with them, operators can pause, approve and the like."""

    tls_certificate: UserPath | None = None
    """PEM file with the certificate for HTTPS, and those of its issuers; SIGHUP reads it again."""

    tls_key: UserPath | None = None
    """PEM file with its key, without a password; by default it is in `tls_certificate`."""

    logins: UserPath | None = None
    """TOML file with the clients that may use the listener, as `plimsoll login` prints them; others
    must not be able to read it. SIGHUP reads it again."""

    resume: bool = False
    """Whether the service resumes a run that an earlier process left, with its start."""

    standby: bool = False
    """Whether several services share the cluster: one leads, the others stand by and take over
    loop, runs and tasks if it dies. Needs `--auto` and `[archive]`; all share the settings."""

    standby_lease: StandbyLease = StandbyLease.S3
    """Where the lease on leading is kept: `s3`, the bucket of `[archive]`; `kafka`, a topic of the
    cluster; or `kubernetes`. Runs and tasks are in the bucket in any case."""

    standby_topic: Annotated[str, Field(pattern=_TOPIC)] = LEASE_TOPIC
    """The topic for `standby_lease = "kafka"`, which has to exist and to be compacted."""

    standby_namespace: Annotated[str, Field(pattern=_NAMESPACE)] | None = None
    """The namespace for `standby_lease = "kubernetes"`; by default that of the pod."""

    standby_service_account: UserPath = SERVICE_ACCOUNT
    """Folder with `token`, `ca.crt` and `namespace` of the pod's service account, for
    `standby_lease = "kubernetes"`."""

    cruise_control_api: CruiseControlAccess = CruiseControlAccess.OFF
    """What clients of Cruise Control may do: `off`, `read` (which includes dry runs), or `execute`,
    which needs `--auto`."""

    cruise_control_listen: Annotated[str, AfterValidator(_listen)] = f"{LOCALHOST}:9090"
    """Address and port of Cruise Control's API, `HOST:PORT`; port 0 lets the system choose one. It
    is protected like `listen`, by `tls_certificate`, and `cruise_control_logins` or `logins`."""

    cruise_control_logins: UserPath | None = None
    """File with the clients of Cruise Control's API in Cruise Control's own form, a line `NAME:
    PASSWORD, ROLE` for each; by default those in `logins`. SIGHUP reads it again."""

    cruise_control_properties: UserPath | None = None
    """Cruise Control's own `cruisecontrol.properties`: its keys `webserver.security.*`,
    `webserver.auth.credentials.file` and `webserver.ssl.*` protect its API as they do there, and
    `default.goals` and `goals` are those of requests. A warning names what has no effect."""

    @model_validator(mode="after")
    def _protected(self) -> Self:
        if self.tls_key is not None and self.tls_certificate is None:
            raise ValueError("tls_key needs tls_certificate")
        if self.standby_lease is not StandbyLease.S3 and not self.standby:
            raise ValueError("standby_lease needs standby = true")
        if not self.address.is_loopback and None in (self.tls_certificate, self.logins):
            raise ValueError(
                f"{self.address.host} can be reached from other machines: set tls_certificate and "
                f"logins, or listen on {LOCALHOST}:{self.address.port}"
            )
        if self.cruise_control_properties is None:
            has_logins = self.logins is not None or self.cruise_control_logins is not None
            why = self.unprotected(has_tls=self.tls_certificate is not None, has_logins=has_logins)
            if why:
                raise ValueError(why)
        return self

    def unprotected(self, *, has_tls: bool, has_logins: bool) -> str:
        """Why Cruise Control's API may not be served with these; empty where it may."""
        address = self.cruise_control_address
        if address.is_loopback or (has_tls and has_logins):
            return ""
        return (
            f"cruise_control_listen: {address.host} can be reached from other machines: set "
            "tls_certificate, and cruise_control_logins or logins, or listen on "
            f"{LOCALHOST}:{address.port}"
        )

    @property
    def address(self) -> ListenAddress:
        """`listen`, parsed."""
        return listen_address(self.listen)

    @property
    def metrics_address(self) -> ListenAddress | None:
        """`metrics_listen`, parsed."""
        return None if self.metrics_listen is None else listen_address(self.metrics_listen)

    @property
    def cruise_control_address(self) -> ListenAddress:
        """`cruise_control_listen`, parsed."""
        return listen_address(self.cruise_control_listen)
