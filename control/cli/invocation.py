"""What a command receives besides its own options: settings, and where to read."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

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
    Loads,
    LogFile,
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
from model.units import throttle_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from control.cli.input_source import Origin
    from control.settings.settings import Settings

M = TypeVar("M", bound="BaseModel")


def load_settings(
    *,
    spark_master: SparkMaster = None,
    config: Config = None,
    profile: Profile = None,
    log_file: LogFile = None,
    verbose: Verbose = False,
    ascii_only: Ascii = False,
    theme: Theme = None,
    **flags: Any,
) -> "Settings":
    """Settings from the common options, the environment and the configuration file.

    flags: further options, by the name of the setting; None where not given. Also sets
    up logging and makes new files readable by their owner alone.

    Raises
    ------
    ConfigError
        A file, a variable or an option cannot be used.
    """
    # pydantic-settings costs a tenth of a second, which --help need not pay.
    from control.cli import logs
    from control.settings import settings
    from model import private

    private.begin()
    logs.configure(verbose=verbose, file=log_file)
    loaded = settings.load(flags | {"spark_master": spark_master}, config=config, profile=profile)
    if loaded.spark_shared_state:
        # Spark's workers may run as another user and must read this folder.
        private.end()
    else:
        private.tighten(loaded.state_dir)
    screen: dict[str, Any] = {"ascii": True} if ascii_only else {}
    screen |= {} if theme is None else {"theme": theme}
    return _updated(loaded, screen=_updated(loaded.screen, **screen))


def with_overrides(
    settings: "Settings",
    *,
    capacity: Path | None = None,
    throttle: str | None = None,
    suspend_balancer: bool = False,
    lower_segment_bytes: bool = False,
) -> "Settings":
    """The settings, with those options in their place that were given."""
    given = {
        "capacity_file": capacity,
        "throttle": None if throttle is None else throttle_of(throttle),
        "stand_down_balancer": suspend_balancer or None,
        "shorten_segments": lower_segment_bytes or None,
    }
    return _updated(settings, **{k: v for k, v in given.items() if v is not None})


def _updated(model: M, **fields: Any) -> M:
    return model.model_copy(update=fields)


def _origin(
    *,
    bootstrap_server: Bootstrap = None,
    command_config: CommandConfig = None,
    snapshot: SnapshotFile = None,
    describe: Describe = None,
    loads: Loads = None,
    brokers: Brokers = None,
    storage: Storage = None,
    capacity: Capacity = None,
    no_racks: NoRacks = False,
    placement: Placement = None,
) -> "Origin":
    from control.cli.input_source import Origin

    origin = Origin(
        snapshot=snapshot,
        describe=describe,
        loads=loads,
        brokers=brokers,
        storage=storage,
        capacity=capacity,
        no_racks=no_racks,
        placement=tuple(placement or ()),
    )
    origin.check(bootstrap_server, command_config)
    return origin


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOptions:
    """How a command executes its plan."""

    allow_changes: bool
    dry_run: bool
    """Only print the requests and the estimate."""
    yes: bool
    """Do not ask."""


def _execution(
    *,
    allow_changes: AllowChanges = False,
    throttle: Throttle = None,
    suspend_balancer: SuspendBalancer = False,
    lower_segment_bytes: LowerSegmentBytes = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> tuple[ExecutionOptions, dict[str, Any]]:
    """The options, and those that override settings."""
    options = ExecutionOptions(allow_changes=allow_changes, dry_run=dry_run, yes=yes)
    return options, {
        "throttle": throttle,
        "suspend_balancer": suspend_balancer,
        "lower_segment_bytes": lower_segment_bytes,
    }


def with_settings(command: Callable[..., int]) -> Callable[..., int]:
    """Replace certain parameters of a command by the options that they stand for.

    `settings` becomes the options that name the cluster, in its place, and those that
    every command takes, at the end; `local_settings` the latter alone; `setting_flags`
    the same as `settings`, but is passed the values of the options, nothing loaded.
    `origin` adds the options that read a cluster from files, `execution` those of
    executing a plan.
    """
    own = inspect.signature(command).parameters
    names = ("settings", "local_settings", "setting_flags")
    name = next((n for n in names if n in own), None)
    if name is None:
        return command
    from_files = "origin" in own
    cluster = _options(_origin) if from_files else _options(_origin)[:2]
    if name == "local_settings":
        cluster = []
    common = _options(load_settings)
    executing = _options(_execution) if "execution" in own else []

    @functools.wraps(command)
    def run(**given: Any) -> int:
        named, shared, executed = (
            {p.name: given.pop(p.name) for p in group} for group in (cluster, common, executing)
        )
        if from_files:
            given["origin"] = _origin(**named)
        if cluster:
            shared["bootstrap_server"] = named["bootstrap_server"]
            shared["client_properties"] = named["command_config"]
        if name == "setting_flags":
            return command(**{name: shared}, **given)
        settings = load_settings(**shared)
        if executing:
            given["execution"], overrides = _execution(**executed)
            settings = with_overrides(settings, **overrides)
        return command(**{name: settings}, **given)

    place = list(own).index(name)
    others = [p for p in own.values() if p.name not in (name, "origin", "execution")]
    offered = [*others[:place], *cluster, *executing, *others[place:], *common]
    run.__signature__ = inspect.Signature(offered)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in offered}
    return run


def _options(template: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = inspect.signature(template).parameters.values()
    return [p for p in parameters if p.kind is p.KEYWORD_ONLY]
