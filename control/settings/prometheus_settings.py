"""What the settings say of Prometheus, or of the brokers' exporters."""

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    field_validator,
    model_validator,
)

from collector.reports.selectors import selector
from model.errors import ConfigError
from model.files import FileModel
from model.paths import UserPath
from model.quantities import as_span

if TYPE_CHECKING:
    from collector.reports.http import Access
    from collector.reports.poller import Poller

Figure = Literal[
    "bytes_in",
    "bytes_out",
    "size_bytes",
    "requests",
    "cpu_cores",
    "cpu_share",
    "replication_in",
]


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        well = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        well = False
    if not well or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("it is no address; say http://HOST:PORT, or https://HOST:PORT")
    if parts.username is not None:
        raise ValueError("an address holds no login; say username and password_file")
    return url


def _label(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(f"{name!r} is no name of a label")
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
    """`[prometheus]`: a server that scrapes the brokers, or their own exporters."""

    url: Address | None = None
    """A Prometheus server."""
    endpoints: dict[Annotated[int, Field(ge=0, lt=2**31)], Address] = {}
    """Exporters by broker id, in place of a server."""
    preset: Literal["jmx", "strimzi", "automq"]
    """How metrics are named."""
    metrics: dict[Figure, Selectors] = {}
    """Series of figures that are named otherwise; what several give is summed."""
    broker_label: Label | None = None
    """The label that tells a server's series of which broker they are."""
    broker_pattern: str = r"(\d+)"
    """What that label holds, as a regular expression; its group is the broker's id."""
    labels: dict[Label, str] = {}
    """That a server's series must have besides: which cluster, which job."""
    interval_s: Annotated[float, Field(ge=1), as_span] = 15.0
    """Time between two looks."""
    timeout_s: Annotated[float, Field(gt=0), as_span] = 10.0
    """How long to wait for an answer."""
    rate_window_s: Annotated[int, Field(ge=1), as_span] = 120
    """Time that counters' increases are averaged over, at most."""
    ca_file: UserPath | None = None
    """PEM file of the authorities that sign; without it whom the system trusts."""
    username: str | None = None
    password: Annotated[str | None, Field(repr=False)] = None
    password_file: UserPath | None = None
    token: Annotated[str | None, Field(repr=False)] = None
    """Shown as a bearer of it, in place of a name and password."""
    token_file: UserPath | None = None

    @field_validator("broker_pattern")
    @classmethod
    def _has_one_group(cls, pattern: str) -> str:
        try:
            groups = re.compile(pattern, re.ASCII).groups
        except re.error as exc:
            raise ValueError(f"{pattern!r} is no regular expression: {exc}") from exc
        if groups != 1:
            raise ValueError(f"{pattern!r} needs one group, which is the broker's id")
        return pattern

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.url is None) == (not self.endpoints):
            raise ValueError("say either url, of a server, or endpoints of the brokers")
        if self.url is not None and self.broker_label is None:
            raise ValueError("say broker_label, the label that tells the broker's id")
        beside = {"broker_label", "broker_pattern", "labels"} & self.model_fields_set
        if self.endpoints and beside:
            raise ValueError(f"{min(beside)} is of no use beside endpoints; leave it")
        if self.rate_window_s < 2 * self.interval_s:
            raise ValueError("rate_window_s is shorter than two intervals; widen it")
        return self

    @model_validator(mode="after")
    def _one_login(self) -> Self:
        tokens = [self.token, self.token_file]
        passwords = [self.password, self.password_file]
        for given in (tokens, passwords):
            if None not in given:
                raise ValueError("a secret is given both itself and as a file")
        told = [any(secrets) for secrets in (tokens, passwords)]
        if all(told) or (told[0] and self.username is not None):
            raise ValueError("a token and a name with a password are both given")
        if told[1] != (self.username is not None):
            raise ValueError("a username and a password need one another")
        if self.username is not None and ":" in self.username:
            raise ValueError("a username has no colon")
        return self


def poller_of(settings: PrometheusSettings) -> "Poller":
    """Not started yet.

    Raises
    ------
    ConfigError
        The authorities or a secret cannot be read.
    """
    from collector.reports.exporters import Exporters, ExporterSettings
    from collector.reports.http import MetricsClient
    from collector.reports.poller import Poller
    from collector.reports.prometheus import PrometheusServer, ServerSettings
    from collector.reports.selectors import figures

    own = {str(figure): named for figure, named in settings.metrics.items()}
    chosen, web = figures(settings.preset, own), MetricsClient(_access(settings))
    if settings.url is None or settings.broker_label is None:
        exporters = ExporterSettings(
            urls=settings.endpoints,
            figures=chosen,
            rate_window_s=settings.rate_window_s,
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


def _access(settings: PrometheusSettings) -> "Access":
    from collector.reports.http import Access

    return Access(
        timeout_s=settings.timeout_s,
        authorities=settings.ca_file,
        username=settings.username,
        password=settings.password,
        password_file=settings.password_file,
        token=settings.token,
        token_file=settings.token_file,
    )
