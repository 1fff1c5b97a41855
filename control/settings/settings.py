"""Settings: flag > environment > profile > file > default.

A file is TOML: settings at the top, and `[profiles.NAME]` tables that override them.
An environment variable is `PLIMSOLL_` and the setting's name; `__` nests.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from platformdirs import user_cache_dir, user_config_dir, user_state_dir
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from collector.spark.deployment import LOCAL, master_of, properties_of
from control.settings import working_folder
from control.settings.auto_limits import AutoLimits, limits_at_effort
from control.settings.auto_policy import AutoPolicy
from control.settings.capacity_table import CapacitySettings
from control.settings.environment import Environment, Trail, inner_of, names_at, variables
from control.settings.history_tables import ForecastTable, HistoryTable
from control.settings.notify_table import ReceiverTable
from control.settings.policy_file import PolicyFile
from control.settings.prometheus_settings import PrometheusSettings
from control.settings.retention_table import RetentionTable
from control.settings.schedule_table import ScheduleTable
from control.settings.screen_settings import Keys, ScreenSettings
from control.settings.service_table import ServiceTable
from control.settings.solve_table import SolveTable
from control.settings.sources import Sources
from control.settings.throttle_settings import AutoThrottleSettings
from control.settings.trigger_table import TriggerTable
from model.bounded import MOST_TYPED_BYTES, parse_toml
from model.errors import ConfigError
from model.exchange.text_files import read_text
from model.exchange.toml_lines import line_of
from model.exchange.validation_messages import closest, faults_of
from model.files import FileModel
from model.goals.effort import Effort
from model.goals.goals import Goals
from model.paths import UserPath
from model.quantities import as_span
from model.stop_rules import StopRules
from model.units import span_of, throttle_of

OFF: Final = "off"

T = TypeVar("T", bound=BaseModel)


def _from_json(model: type[T]) -> BeforeValidator:
    """Validate a table by JSON's rules, in which a list may become a tuple."""

    def convert(value: Any) -> Any:
        if isinstance(value, model):
            return value
        # TOML has dates, which JSON writes as text.
        return model.model_validate_json(json.dumps(value, default=str))

    return BeforeValidator(convert)


def _each_from_json(model: type[T]) -> BeforeValidator:
    """Validate a list of tables by JSON's rules."""
    whole = TypeAdapter(tuple[model, ...])  # type: ignore[valid-type]  # known when it runs

    def convert(value: Any) -> Any:
        if isinstance(value, tuple) and all(isinstance(each, model) for each in value):
            return value
        return whole.validate_json(json.dumps(value, default=str))

    return BeforeValidator(convert)


def _span_or_off(value: Any) -> Any:
    """Seconds; infinity for `off`."""
    # Of numbers, 0 equals False.
    if value is False or value in (OFF, math.inf):
        return math.inf
    try:
        found = span_of(str(value), least=0)
    except ValueError as exc:
        raise ValueError(f"{exc}, or {OFF}") from exc
    if found == 0:
        raise ValueError(
            "0 s would move the replicas of a broker whenever it restarts; give a longer time, or "
            f"{OFF} to wait for ever"
        )
    return found


class S3Bucket(FileModel):
    """A bucket and how to access it."""

    endpoint_url: str | None = None
    """Address of the S3 service; AWS's own by default."""
    bucket: str
    """Name of the bucket."""
    prefix: str = ""
    """Text put before every key, as it stands."""
    access_key: str | None = None
    """Access key id; by default boto3 looks for credentials in its usual places."""
    secret_key: Annotated[str | None, Field(repr=False)] = None
    """Secret access key that belongs to `access_key`."""


Limits = Annotated[AutoLimits, _from_json(AutoLimits)]


class Settings(BaseSettings):
    """All settings of one cluster."""

    model_config = SettingsConfigDict(
        env_prefix="PLIMSOLL_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    bootstrap_server: str | None = None
    """Kafka's bootstrap servers, `HOST:PORT,...`."""
    client_properties: UserPath | None = None
    """Kafka's `client.properties`: protocol, certificates and login."""
    name: str | None = None
    """Display name of the cluster; the first characters of its id by default."""
    timeout_s: Annotated[float, Field(gt=0), as_span] = 10.0
    """How long to wait for a response from the cluster, in seconds."""
    state_dir: UserPath = Path(user_state_dir("plimsoll"))
    """Folder for journals, history and samples."""
    cache_dir: UserPath = Path(user_cache_dir("plimsoll"))
    """Folder for downloaded jars."""
    spark_master: Annotated[str, AfterValidator(master_of)] = LOCAL
    """Spark master: `local[*]`, standalone, YARN or Kubernetes."""
    spark: Annotated[dict[str, str], BeforeValidator(properties_of), Field(repr=False)] = {}
    """Spark properties; they override those that plimsoll sets."""
    spark_secret_file: UserPath | None = None
    """File with the secret (`spark.authenticate.secret`) of a standalone Spark cluster."""
    spark_shared_state: bool = False
    """Whether Spark's workers can read `state_dir` under the same path."""
    interval_s: Annotated[float, Field(gt=0), as_span] = 1.0
    """Time between two samples, in seconds."""
    window_s: Annotated[float, Field(gt=0), as_span] = 15.0
    """Time over which loads are averaged, in seconds."""
    retention: Annotated[RetentionTable, _from_json(RetentionTable)] = RetentionTable()
    """How many journals and tasks are kept."""
    history: Annotated[HistoryTable, _from_json(HistoryTable)] = HistoryTable()
    """How much load history is kept, and where."""
    forecast: Annotated[ForecastTable, _from_json(ForecastTable)] = ForecastTable()
    """Which future hours plans take into account."""
    samples_topic: str | None = None
    """Topic for samples; by default they are written to files under `state_dir`."""
    cruise_control_topic: Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")] = (
        "__CruiseControlMetrics"
    )
    """Topic of Cruise Control's metrics reporter (`cruise.control.metrics.topic`)."""
    throttle: (
        Annotated[int | Literal["auto"], BeforeValidator(lambda v: throttle_of(str(v)))] | None
    ) = None
    """Limit of replication traffic into, and out of, each broker: bytes/s, or `50MB/s`;
    `auto` adapts to the bandwidth that clients leave free."""
    auto_throttle: Annotated[AutoThrottleSettings, _from_json(AutoThrottleSettings)] = (
        AutoThrottleSettings()
    )
    stand_down_balancer: bool = False
    """Whether a run may suspend AutoMQ's own balancer (`--suspend-balancer`)."""
    shorten_segments: bool = False
    """Whether a run may lower `segment.bytes` and local retention of tiered topics
    (`--lower-segment-bytes`)."""
    capacity_file: UserPath | None = None
    """Cruise Control's capacity file."""
    capacities: Annotated[CapacitySettings, _from_json(CapacitySettings)] = CapacitySettings()
    """Broker capacities, if there is no capacity file."""
    require_signature: UserPath | None = None
    """File of public keys in PEM (Ed25519); only plans signed by one of them are executed."""
    goals: Annotated[Goals, _from_json(Goals)] = Goals()
    solve: Annotated[SolveTable, _from_json(SolveTable)] = SolveTable()
    limits: dict[str, Limits] = {}
    triggers: Annotated[TriggerTable, _from_json(TriggerTable)] = TriggerTable()
    schedule: Annotated[ScheduleTable, _from_json(ScheduleTable)] = ScheduleTable()
    dead_broker_after: Annotated[float, BeforeValidator(_span_or_off)] = 3600.0
    """How long `--auto` waits for a dead broker before it moves its replicas: seconds,
    or `1h`; `off` to wait indefinitely."""
    prometheus: Annotated[PrometheusSettings, _from_json(PrometheusSettings)] | None = None
    """Source of CPU, request and broker metrics."""
    tier: Annotated[S3Bucket, _from_json(S3Bucket)] | None = None
    """Bucket of the remote tier's segments."""
    wal: Annotated[S3Bucket, _from_json(S3Bucket)] | None = None
    """Bucket of AutoMQ's write-ahead logs (`s3.wal.path`)."""
    stop_rules: Annotated[StopRules, _from_json(StopRules)] = StopRules()
    """What stops or pauses a run."""
    service: Annotated[ServiceTable, _from_json(ServiceTable)] = ServiceTable()
    """Where `plimsoll service` listens."""
    notify: Annotated[tuple[ReceiverTable, ...], _each_from_json(ReceiverTable)] = ()
    """Who is notified of what the service logs."""
    screen: Annotated[ScreenSettings, _from_json(ScreenSettings)] = ScreenSettings()
    """Appearance of the screen."""
    keys: Keys = {}
    """Keys of the screen, by action id."""
    archive: Annotated[S3Bucket, _from_json(S3Bucket)] | None = None
    """Bucket of archived runs and tasks, from which other hosts can resume them."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *_others: PydanticBaseSettingsSource,
        **_named: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment takes precedence over values of the file."""
        return Environment(settings_cls), init_settings


def load(
    flags: Mapping[str, Any], *, config: Path | None = None, profile: str | None = None
) -> Settings:
    """Settings from options, the environment and a file.

    Raises
    ------
    ConfigError
        A file cannot be read, a key is unknown, or a value is invalid.
    """
    return settings_of(sources(config, profile), flags)


def sources(config: Path | None, profile: str | None) -> Sources:
    """Values of the environment and a file. Raises ConfigError as `load` does."""
    given = variables(Settings)
    path, named = _file(config)
    profile = profile or os.environ.get("PLIMSOLL_PROFILE")
    sources = _file_sources(path, profile, given)
    implicit = not named and path == working_folder.FILE
    if implicit:
        working_folder.check_keys(sources)
    return replace(sources, implicit=implicit)


def state_dir_alone(config: Path | None, profile: str | None) -> Path | None:
    """The state folder of settings that `load` refuses; None where it is not certain."""
    if folder := os.environ.get("PLIMSOLL_STATE_DIR"):
        return Path(folder).expanduser()
    path, named = _file(config)
    profile = profile or os.environ.get("PLIMSOLL_PROFILE")
    table: dict[str, Any] = {}
    if path is not None:
        if not named and path == working_folder.FILE:
            return None
        try:
            table = parse_toml(path, read_text(path, MOST_TYPED_BYTES))
        except ConfigError:
            return None
    profiles = table.get("profiles", {})
    if profile and not isinstance(profiles, dict):
        return None
    own = profiles.get(profile) if profile else {}
    if not isinstance(own, dict):
        return None
    folder = own.get("state_dir", table.get("state_dir", user_state_dir("plimsoll")))
    return Path(folder).expanduser() if isinstance(folder, str) else None


def auto_policy(settings: Settings, limits: AutoLimits) -> AutoPolicy:
    """The policy of `--auto` under these limits."""
    return AutoPolicy(
        limits=limits,
        triggers=settings.triggers,
        dead_broker_after_s=settings.dead_broker_after,
        stop_rules=settings.stop_rules,
        schedule=settings.schedule,
        goals=settings.goals,
        effort=settings.solve.effort,
    )


def policy_file(
    config: Path | None, profile: str | None, *, limits: str, effort: Effort | None = None
) -> PolicyFile | None:
    """The file of `load`, to read the policy again; None without a file. Raises as `load`.

    limits: their name. effort: given in place of theirs.
    """
    path = sources(config, profile).path
    if path is None:
        return None

    def read() -> AutoPolicy:
        settings = load({}, config=config, profile=profile)
        return auto_policy(settings, limits_at_effort(limits, settings.limits, effort))

    return PolicyFile(path, read)


def profiles_of(config: Path | None) -> tuple[str, ...]:
    """Names of the profiles in the file that `load` would read.

    Raises ConfigError if that file is not readable or not valid TOML.
    """
    path, _ = _file(config)
    if path is None:
        return ()
    text = read_text(path, MOST_TYPED_BYTES)
    return tuple(parse_toml(path, text).get("profiles", ()))


def settings_of(sources: Sources, flags: Mapping[str, Any]) -> Settings:
    """Settings from sources and options. Raises ConfigError as `load` does."""
    try:
        settings = Settings(**sources.values)
    except ValidationError as exc:
        faults = faults_of(Settings, exc, sources.has)
        named = [f"{sources.near(place)}: {words}".removeprefix(": ") for place, words in faults]
        raise ConfigError("; ".join(named)) from exc
    typed = {k: v for k, v in flags.items() if v is not None}
    given = {"client_properties": settings.client_properties}
    working_folder.check_login(sources, given | typed)
    return settings.model_copy(update=typed)


def _file(config: Path | None) -> tuple[Path | None, bool]:
    """The configuration file, and whether it was named rather than found."""
    named = config or os.environ.get("PLIMSOLL_CONFIG")
    if named:
        return Path(named), True
    own = Path(user_config_dir("plimsoll"), "plimsoll.toml")
    if working_folder.FILE.exists() and not (own.exists() and own.samefile(working_folder.FILE)):
        return working_folder.FILE, False
    return (own if own.exists() else None), False


def _file_sources(path: Path | None, profile: str | None, given: Mapping[Trail, str]) -> Sources:
    if path is None:
        if profile:
            raise ConfigError(f"there is no configuration file for profile {profile!r}")
        return Sources(variables=given, values={})
    text = read_text(path, MOST_TYPED_BYTES)
    values = parse_toml(path, text)
    profiles = values.pop("profiles", {})
    _refuse_unknown_keys(path, text, values)
    if not isinstance(profiles, dict) or not all(
        isinstance(table, dict) for table in profiles.values()
    ):
        raise ConfigError(f"{path}: profiles are tables, written [profiles.NAME]")
    for name, table in profiles.items():
        _refuse_unknown_keys(path, text, table, ("profiles", name))
    if profile is not None and profile not in profiles:
        raise ConfigError(f"{path} has no profile {profile!r}; it has {sorted(profiles) or 'none'}")
    chosen: dict[str, Any] = profiles[profile] if profile is not None else {}
    return Sources(
        variables=given,
        path=path,
        text=text,
        profile=profile,
        values=values | chosen,
        profiled=frozenset(chosen),
    )


def _refuse_unknown_keys(
    path: Path, text: str, table: Mapping[str, Any], above: Trail = ()
) -> None:
    for trail in _unknown(Settings, table):
        line = line_of(text, (*above, *trail)) or 1
        raise ConfigError(
            f"{path}, line {line}: unknown key {'.'.join(trail)!r}" + closest(Settings, trail)
        )


def _unknown(place: Any, table: Mapping[str, Any], above: Trail = ()) -> Iterator[Trail]:
    """Keys that name no setting; those of tables such as `limits` are free."""
    for key, value in table.items():
        inner = inner_of(place, key)
        if inner is None:
            yield (*above, key)
        elif isinstance(value, dict) and names_at(inner):
            yield from _unknown(inner, value, (*above, key))
