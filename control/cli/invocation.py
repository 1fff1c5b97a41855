"""What a command receives besides its own options: settings, and where to read."""

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from control.cli.options import (
    AllowChanges,
    Ascii,
    Bootstrap,
    Brokers,
    Capacity,
    CommandConfig,
    Config,
    Describe,
    DryRun,
    FleetCluster,
    FleetFile,
    Loads,
    LogFile,
    LogForm,
    LowerSegmentBytes,
    NoRacks,
    Placement,
    Profile,
    SnapshotFile,
    SparkMaster,
    Storage,
    SuspendBalancer,
    Theme,
    Throttle,
    Verbose,
    Yes,
)
from control.cli.output import LogFormat
from model.errors import ConfigError
from model.units import throttle_of

if TYPE_CHECKING:
    from control.settings.settings import Settings
    from model.goals.effort import Effort

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The options that replace a live cluster by files; without any, the live cluster."""

    snapshot: SnapshotFile = None
    describe: Describe = None
    loads: Loads = None
    brokers: Brokers = None
    storage: Storage = None
    capacity: Capacity = None
    no_racks: NoRacks = False
    placement: Placement = None

    @property
    def is_live(self) -> bool:
        """Whether the live cluster is read rather than files."""
        return self.snapshot is None and self.describe is None

    def check(self, bootstrap_server: str | None, client_properties: Path | None) -> None:
        """Refuse options that contradict each other.

        Raises ConfigError where two clusters are named, or an option needs another one.
        """
        named = {
            "--snapshot": self.snapshot,
            "--from": self.describe,
            "--bootstrap-server": bootstrap_server,
        }
        given = [flag for flag, value in named.items() if value is not None]
        if len(given) > 1:
            raise ConfigError(f"{' and '.join(given)} each name a cluster; use only one")
        if client_properties and not self.is_live:
            raise ConfigError(
                f"--command-config is for a live cluster, but {given[0]} reads a "
                "file; omit one of them"
            )
        beside = {"--loads": self.loads, "--brokers": self.brokers, "--storage": self.storage}
        alone = [flag for flag, value in beside.items() if value is not None]
        if alone and self.describe is None:
            raise ConfigError(
                f"{alone[0]} needs --from FILE, the output of kafka-topics --describe; add it"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOptions:
    """The options of executing a plan."""

    allow_changes: AllowChanges = False
    throttle: Throttle = None
    suspend_balancer: SuspendBalancer = False
    lower_segment_bytes: LowerSegmentBytes = False
    dry_run: DryRun = False
    yes: Yes = False


def _live_cluster(
    *, bootstrap_server: Bootstrap = None, client_properties: CommandConfig = None
) -> None:
    """The options that name a live cluster."""


def _service(*, fleet: FleetFile = None, cluster: FleetCluster = None) -> None:
    """The options that name a service beside those of the settings."""


def settings_of_cluster(
    fleet: Path | None, cluster: str | None, flags: Mapping[str, Any]
) -> dict[str, Any]:
    """The flags that read the settings of a cluster of a fleet; none where none is named.

    Raises ConfigError where the fleet has no such cluster, or other settings are named, too.
    """
    if fleet is None and cluster is None:
        return {}
    if fleet is None:
        raise ConfigError("--cluster needs --fleet FILE, which names the clusters; add it")
    if given := [f"--{name}" for name in ("config", "profile") if flags.get(name) is not None]:
        raise ConfigError(f"--fleet names the settings: omit {' and '.join(given)}")
    from control.settings.fleet_file import read_fleet

    known = read_fleet(fleet).clusters
    if cluster not in known:
        wrong = "--fleet needs --cluster NAME" if cluster is None else f"{fleet} has no {cluster!r}"
        raise ConfigError(f"{wrong}; the clusters are {', '.join(known)}")
    return {"config": known[cluster].config, "profile": known[cluster].profile}


def _settings_of_running(given: Mapping[str, Any], why: ConfigError) -> "Settings":
    """Settings for asking a service whose own cannot be read, but for its state folder.

    A person must be able to stop a run, whatever was written to a file since the service read it.
    given: the options that name the service and its settings. Raises `why` where no service runs,
    or its folder is not known.
    """
    from control.settings.settings import Settings, state_dir_alone
    from model.errors import PlimsollError
    from model.printable import printable

    fleet, folder = given["fleet"], None
    if fleet is None:
        folder = state_dir_alone(given["config"], given["profile"])
        if folder is None:
            raise ConfigError(f"{why}; set PLIMSOLL_STATE_DIR to ask its service nevertheless")
    try:
        found = _running_in(folder) if folder else _folder_in_fleet(fleet, given["cluster"])
    except PlimsollError:
        raise why from None
    if found is None:
        raise why
    words = printable(f"{why}; asking the service that runs in {found}")
    sys.stderr.write(f"plimsoll: warning: {words}\n")
    return Settings.model_construct(state_dir=found)


def _running_in(folder: Path) -> Path:
    """The folder, whose service answers. Raises PlimsollError where none does."""
    from control.cli.control_client import ControlClient
    from control.cli.output_types import CtlStatusAnswer

    ControlClient(folder).get("/control/v1/status", CtlStatusAnswer)
    return folder


def _folder_in_fleet(fleet: Path, cluster: str) -> Path | None:
    """The state folder of a cluster, as the fleet's service knows it. Raises PlimsollError."""
    from control.cli.control_client import ControlClient
    from control.cli.output_types import FleetAnswer
    from control.settings.fleet_file import read_fleet

    rows = ControlClient(read_fleet(fleet).state_dir).get("/control/v1/fleet", FleetAnswer).clusters
    folder = next((row.state_dir for row in rows if row.name == cluster), "")
    return Path(folder) if folder else None


def load_settings(
    *,
    spark_master: SparkMaster = None,
    config: Config = None,
    profile: Profile = None,
    log_file: LogFile = None,
    log_format: LogForm = LogFormat.TEXT,
    verbose: Verbose = False,
    ascii_only: Ascii = False,
    theme: Theme = None,
    **flags: Any,
) -> "Settings":
    """Settings from the common options, the environment and the configuration file.

    flags: further options, by the name of the setting; None where not given. Also sets
    up logging and makes new files readable by their owner alone.

    Raises ConfigError where a file, a variable or an option cannot be used.
    """
    from control.cli import logs
    from model import private

    private.begin()
    logs.configure(verbose=verbose, file=log_file, form=log_format)
    loaded = read_settings(config, profile, flags | {"spark_master": spark_master})
    screen: dict[str, Any] = {"ascii": True} if ascii_only else {}
    screen |= {} if theme is None else {"theme": theme}
    return loaded.model_copy(update={"screen": loaded.screen.model_copy(update=screen)})


def read_settings(config: Path | None, profile: str | None, flags: Mapping[str, Any]) -> "Settings":
    """Settings from options, the environment and the file; makes the state folder private.

    flags: by the name of the setting; None where not given. Raises ConfigError as `load_settings`.
    """
    # pydantic-settings costs a tenth of a second, which --help need not pay.
    from control.settings import settings
    from model import private

    loaded = settings.load(flags, config=config, profile=profile)
    if loaded.spark_shared_state:
        # Spark's workers may run as another user and must read this folder.
        private.end()
    else:
        private.tighten(loaded.state_dir)
    return loaded


def with_overrides(
    settings: "Settings",
    *,
    capacity: Path | None = None,
    effort: "Effort | None" = None,
    throttle: str | None = None,
    suspend_balancer: bool = False,
    lower_segment_bytes: bool = False,
) -> "Settings":
    """The settings, with those options in their place that were given."""
    given = {
        "capacity_file": capacity,
        "solve": None if effort is None else settings.solve.model_copy(update={"effort": effort}),
        "throttle": None if throttle is None else throttle_of(throttle),
        "stand_down_balancer": suspend_balancer or None,
        "shorten_segments": lower_segment_bytes or None,
    }
    return settings.model_copy(update={k: v for k, v in given.items() if v is not None})


def with_settings(command: Callable[..., int]) -> Callable[..., int]:
    """Replace certain parameters of a command by the options that they stand for.

    `settings` becomes the options that name the cluster, in its place, and those that
    every command takes, at the end; `local_settings` the latter alone; `service_settings`
    the latter and those that name a cluster of a fleet; `setting_flags`
    the same as `settings`, but is passed the values of the options, nothing loaded.
    `origin` adds the options that read a cluster from files, `execution` those of
    executing a plan.
    """
    own = inspect.signature(command).parameters
    names = ("settings", "local_settings", "service_settings", "setting_flags")
    name = next((n for n in names if n in own), None)
    if name is None:
        return command
    cluster = _options(_live_cluster) if name in ("settings", "setting_flags") else []
    service = _options(_service) if name == "service_settings" else []
    files = _options(Origin) if "origin" in own else []
    executing = _options(ExecutionOptions) if "execution" in own else []
    common = _options(load_settings)

    @functools.wraps(command)
    def run(**given: Any) -> int:
        named, served, read, executed, shared = (
            {p.name: given.pop(p.name) for p in group}
            for group in (cluster, service, files, executing, common)
        )
        if files:
            given["origin"] = origin = Origin(**read)
            origin.check(**named)
        shared |= named
        if service:
            shared |= settings_of_cluster(**served, flags=shared)
        if name == "setting_flags":
            return command(**{name: shared}, **given)
        try:
            settings = load_settings(**shared)
        except ConfigError as exc:
            if not service:
                raise
            settings = _settings_of_running(shared | served, exc)
        if executing:
            given["execution"] = options = ExecutionOptions(**executed)
            settings = with_overrides(
                settings,
                throttle=options.throttle,
                suspend_balancer=options.suspend_balancer,
                lower_segment_bytes=options.lower_segment_bytes,
            )
        return command(**{name: settings}, **given)

    place = list(own).index(name)
    others = [p for p in own.values() if p.name not in (name, "origin", "execution")]
    return offering(
        run, [*others[:place], *cluster, *service, *files, *executing, *others[place:], *common]
    )


def _options(template: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = inspect.signature(template).parameters.values()
    return [p for p in parameters if p.kind is p.KEYWORD_ONLY]


def offering(function: Callable[P, T], options: Iterable[inspect.Parameter]) -> Callable[P, T]:
    """The function, with these parameters for typer to make options of."""
    signature = inspect.Signature(list(options))
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__annotations__ = {n: p.annotation for n, p in signature.parameters.items()}
    return function
