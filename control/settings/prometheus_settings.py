"""Settings of Prometheus, or of the brokers' own exporters."""

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from collector.reports.selectors import selector
from model.errors import ConfigError
from model.files import FileModel
from model.paths import UserPath
from model.quantities import as_span

if TYPE_CHECKING:
    from collector.reports.poller import Poller

Figure = Literal[
    "bytes_in", "bytes_out", "size_bytes", "requests", "cpu_cores", "cpu_share", "replication_in"
]


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        valid = False
    if not valid or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("not a valid address; use http://HOST:PORT or https://HOST:PORT")
    if parts.username is not None:
        raise ValueError("an address cannot contain a login; set username and password_file")
    return url


def _label(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(f"{name!r} is not a valid label name")
    return name


def _selector(text: str) -> str:
    try:
        selector(text)
    except ConfigError as exc:
        raise ValueError(str(exc)) from exc
    return text


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else tuple(value)


Address = Annotated[str, AfterValidator(_address)]
Label = Annotated[str, AfterValidator(_label)]
Selectors = Annotated[
    tuple[Annotated[str, AfterValidator(_selector)], ...], BeforeValidator(_several)
]


class PrometheusSettings(FileModel):
    """`[prometheus]`: a server that scrapes the brokers, or the brokers' exporters."""

    url: Address | None = None
    """URL of a Prometheus server."""
    endpoints: dict[Annotated[int, Field(ge=0, lt=2**31)], Address] = {}
    """URLs of exporters by broker id, instead of a server."""
    preset: Literal["jmx", "strimzi", "automq"]
    """Naming scheme of the metrics."""
    metrics: dict[Figure, Selectors] = {}
    """Series of figures that the preset names differently; several are summed."""
    broker_label: Label | None = None
    """Label of a server's series that identifies the broker."""
    broker_pattern: str = r"(\d+)"
    """Regular expression for that label; its group is the broker id."""
    labels: dict[Label, str] = {}
    """Further labels a server's series must have, such as cluster or job."""
    interval_s: Annotated[float, Field(ge=1), as_span] = 15.0
    """Time between two polls, in seconds."""
    timeout_s: Annotated[float, Field(gt=0), as_span] = 10.0
    """How long to wait for a response, in seconds."""
    rate_window_s: Annotated[int, Field(ge=1), as_span] = 120
    """Longest time over which increases of counters are averaged, in seconds."""
    ca_file: UserPath | None = None
    """PEM file of trusted certificate authorities; by default those of the system."""
    username: str | None = None
    """User name of basic authentication."""
    password: Annotated[str | None, Field(repr=False)] = None
    """Password that belongs to `username`."""
    password_file: UserPath | None = None
    """File that holds the password."""
    token: Annotated[str | None, Field(repr=False)] = None
    """Bearer token, instead of a username and password."""
    token_file: UserPath | None = None
    """File that holds the bearer token."""

    @field_validator("broker_pattern")
    @classmethod
    def _has_one_group(cls, pattern: str) -> str:
        try:
            groups = re.compile(pattern, re.ASCII).groups
        except re.error as exc:
            raise ValueError(f"{pattern!r} is not a valid regular expression: {exc}") from exc
        if groups != 1:
            raise ValueError(f"{pattern!r} needs exactly one group, for the broker id")
        return pattern

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.url is None) == (not self.endpoints):
            raise ValueError("set either url, of a server, or endpoints, of the brokers")
        if self.url is not None and self.broker_label is None:
            raise ValueError("set broker_label, the label that contains the broker id")
        beside = {"broker_label", "broker_pattern", "labels"} & self.model_fields_set
        if self.endpoints and beside:
            raise ValueError(f"{min(beside)} has no effect with endpoints; remove it")
        if self.rate_window_s < 2 * self.interval_s:
            raise ValueError("rate_window_s is shorter than two intervals; increase it")
        return self

    @model_validator(mode="after")
    def _one_login(self) -> Self:
        tokens = [self.token, self.token_file]
        passwords = [self.password, self.password_file]
        for given in (tokens, passwords):
            if None not in given:
                raise ValueError("a secret is set both directly and as a file; remove one")
        given_kinds = [any(secrets) for secrets in (tokens, passwords)]
        if all(given_kinds) or (given_kinds[0] and self.username is not None):
            raise ValueError("both a token and a login are set; remove one")
        if given_kinds[1] != (self.username is not None):
            raise ValueError("set both username and password, or neither")
        if self.username is not None and ":" in self.username:
            raise ValueError("a username cannot contain a colon")
        return self


def poller_of(settings: PrometheusSettings) -> "Poller":
    """A poller of the configured server or exporters, not started.

    Raises
    ------
    ConfigError
        The CA file or a secret file cannot be read.
    """
    from collector.reports.exporters import Exporters, ExporterSettings
    from collector.reports.http import Access, MetricsClient
    from collector.reports.poller import Poller
    from collector.reports.prometheus import PrometheusServer, ServerSettings
    from collector.reports.selectors import figures

    own = {str(figure): named for figure, named in settings.metrics.items()}
    same = {"timeout_s", "username", "password", "password_file", "token", "token_file"}
    access = Access(authorities=settings.ca_file, **settings.model_dump(include=same))
    chosen, web = figures(settings.preset, own), MetricsClient(access)
    if settings.url is None or settings.broker_label is None:
        exporters = ExporterSettings(
            urls=settings.endpoints, figures=chosen, rate_window_s=settings.rate_window_s
        )
        return Poller(Exporters(exporters, web), settings.interval_s)
    server = ServerSettings(
        url=settings.url,
        figures=chosen,
        broker_label=settings.broker_label,
        broker_pattern=settings.broker_pattern,
        labels=settings.labels,
        rate_window_s=settings.rate_window_s,
    )
    return Poller(PrometheusServer(server, web), settings.interval_s)
