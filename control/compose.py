"""Puts the parts together: one function for what each command needs."""

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from clients.client_properties import read_client_properties
from clients.connection import OPEN, Connection
from control.cli.console import operator
from control.loop.decision_log import CapacityNotes
from control.loop.dependencies import LoopParts, LoopSettings
from control.loop.loop import Loop
from control.loop.view import Mode
from control.planning.planner import planner
from control.settings.auto_limits import EAGER, AutoLimits
from control.settings.capacity_table import capacities_of
from control.settings.history_tables import history_settings
from control.settings.prometheus_settings import poller_of
from control.settings.settings import Settings
from model.errors import ClusterUnreachable, ConfigError, RightsMissing
from model.snapshot.capacities import Capacities
from model.snapshot.snapshot import RecentMove
from model.units import AUTO

if TYPE_CHECKING:
    from collector.collector import Collector
    from collector.recorded_state import Recorder, Recording
    from collector.reports.reporters import Polled
    from collector.spark.deployment import SparkSite
    from collector.state_replay import Replayed
    from executor.executor import Executor
    from model.snapshot.pseudonyms import Pseudonyms

_log = logging.getLogger("plimsoll.control")


def bootstrap_of(settings: Settings) -> str:
    """The bootstrap servers.

    Raises
    ------
    ConfigError
        None are configured.
    """
    return connection(settings).bootstrap


def connection(settings: Settings) -> Connection:
    """How to reach the cluster: as the settings and `client.properties` have it.

    Raises
    ------
    ConfigError
        No servers are configured, or the file cannot be used.
    """
    path = settings.client_properties
    client = read_client_properties(path) if path else OPEN
    bootstrap = settings.bootstrap_server or client.bootstrap
    if bootstrap is None:
        raise ConfigError(
            "no cluster is configured; give --bootstrap-server HOST:PORT, or set "
            "bootstrap_server in plimsoll.toml"
        )
    return Connection(bootstrap, timeout_s=settings.timeout_s, client=client)


def _connection_for_use(settings: Settings) -> Connection:
    found = connection(settings)
    if found.client.unused:
        _log.warning(
            "%s: plimsoll does not use: %s",
            settings.client_properties,
            ", ".join(found.client.unused),
        )
    return found


def journal_dir(settings: Settings) -> Path:
    """Where runs are journalled."""
    return settings.state_dir / "journal"


def observer(
    settings: Settings,
    *,
    allow_changes: bool = False,
    capacities: Capacities | None = None,
    recorder: "Recorder | None" = None,
) -> "Collector":
    """A collector on the agentless probe and Spark, not started yet.

    capacities: what the operator gives; by default read anew from where the settings
    say. recorder: gets all that is measured, of a collector that knows nothing from
    before.
    """
    from collector.collector import Collector
    from collector.collector_settings import CollectorSettings
    from collector.reports.metric_topics import metric_topics

    return Collector(
        _connection_for_use(settings),
        CollectorSettings(
            state_dir=settings.state_dir,
            cache_dir=settings.cache_dir,
            spark=_spark_site(settings),
            interval_s=settings.interval_s,
            window_s=settings.window_s,
            samples_topic=settings.samples_topic if allow_changes else None,
            creating=partial(_creating, settings),
            # A replay has only samples, and must give the same loads.
            metric_topics=metric_topics(settings.cruise_control_topic)
            if recorder is None
            else (),
            polled=_polled(settings) if recorder is None else (),
            capacities=capacities
            or capacities_of(settings.capacities, settings.capacity_file),
            history=history_settings(settings.history, settings.forecast),
            apart=recorder is not None,
        ),
        on_batch=recorder.add if recorder is not None else None,
    )


@contextlib.contextmanager
def _creating(
    settings: Settings, cluster_id: str, topic: str, how: Mapping[str, object]
) -> Iterator[None]:
    """Creating a topic is a change: under lock, lease and journal like every other."""
    folder = journal_dir(settings)
    with (
        contextlib.closing(executor(settings)) as changing,
        changing.creating_topic(
            topic, how, journal_dir=folder, cluster_id=cluster_id, by=operator()
        ),
    ):
        yield


def _spark_site(settings: Settings) -> "SparkSite":
    from collector.spark.deployment import SparkSite

    return SparkSite(
        master=settings.spark_master,
        properties=settings.spark,
        shared_state=settings.spark_shared_state,
    )


def _polled(settings: Settings) -> "tuple[Polled, ...]":
    return (poller_of(settings.prometheus),) if settings.prometheus else ()


def pseudonyms(settings: Settings, key_file: Path | None) -> "Pseudonyms":
    """Pseudonyms under the key of a file, by default one kept in the state folder.

    Raises
    ------
    ConfigError
        The key cannot be read, or made.
    """
    from model.snapshot.pseudonyms import Pseudonyms, own_key, read_key

    usual = settings.state_dir / "anonymise.key"
    return Pseudonyms(own_key(usual) if key_file is None else read_key(key_file))


def replayed(settings: Settings, recording: "Recording") -> "Replayed":
    """What the settings' Spark makes of a recorded state."""
    from collector.state_replay import ReplaySettings, replay

    return replay(
        recording,
        ReplaySettings(state_dir=settings.state_dir, spark=_spark_site(settings)),
    )


def rebalancers(settings: Settings, *, shared: bool) -> list[str]:
    """Others that move partitions of the live cluster, in words; changes nothing."""
    with contextlib.closing(executor(settings)) as found:
        try:
            return list(found.rebalancers(shared=shared))
        except (ClusterUnreachable, RightsMissing) as exc:
            return [f"Cannot search for competing rebalancers: {exc}"]


def executor(settings: Settings) -> "Executor":
    """A client that can change the cluster; made only where changes are allowed."""
    from clients.s3 import S3Settings
    from control.settings.throttle_settings import auto_throttle
    from executor.executor import connect
    from executor.timing import RunLimits

    tier, wal, archive = (
        S3Settings(**bucket.model_dump()) if bucket else None
        for bucket in (settings.tier, settings.wal, settings.archive)
    )
    throttle = settings.throttle
    given = (
        capacities_of(settings.capacities, settings.capacity_file)
        if throttle == AUTO
        else None
    )
    found = _connection_for_use(settings)
    return connect(
        found.bootstrap,
        timeout_s=found.timeout_s,
        properties=found.client,
        s3=tier,
        wal=wal,
        archive=archive,
        limits=RunLimits(
            throttle_bytes_per_s=throttle if isinstance(throttle, int) else None,
            throttle_follows=throttle == AUTO,
            auto_throttle=auto_throttle(settings.auto_throttle, given),
            suspend_balancer=settings.stand_down_balancer,
            lower_segments=settings.shorten_segments,
            stop_rules=settings.stop_rules,
        ),
    )


def recent_moves(settings: Settings) -> Callable[[str, int], tuple[RecentMove, ...]]:
    """Moves on a cluster since a time, from the journal."""
    from executor.journal.run_history import recent_moves as read

    return lambda cluster_id, since_ms: read(
        journal_dir(settings), cluster_id, since_ms
    )


def loop(
    settings: Settings,
    *,
    mode: Mode,
    limits: AutoLimits = EAGER,
    patient: bool = False,
) -> Loop:
    """The loop over real parts, not started yet."""
    allowed = mode is not Mode.READ_ONLY
    # Read once: a file deleted later must not end a service that reconnects.
    given = capacities_of(settings.capacities, settings.capacity_file)
    found = Loop(
        LoopSettings(
            bootstrap=bootstrap_of(settings),
            name=settings.name,
            mode=mode,
            goals=settings.goals,
            solve=settings.solve,
            limits=limits,
            dead_broker_after_s=settings.dead_broker_after,
            journal_dir=journal_dir(settings),
            patient=patient,
            throttle=settings.throttle,
            screen=settings.screen,
            keys=settings.keys,
            stop_rules=settings.stop_rules,
        ),
        LoopParts(
            observer=lambda: observer(
                settings, allow_changes=allowed, capacities=given
            ),
            planner=planner,
            executor=(lambda: executor(settings)) if allowed else None,
            recent_moves=recent_moves(settings),
        ),
    )
    found.subscribe(CapacityNotes(found.warn, given))
    return found


class FrontEnd(Protocol):
    """A screen; found by its entry point, so that control does not import it."""

    def __call__(self, loop: Loop) -> None:
        """Show the loop until the user leaves."""
        ...


def front_end(name: str = "tui") -> FrontEnd:
    """The front end registered under this name."""
    from importlib.metadata import entry_points

    (found,) = entry_points(group="plimsoll.front_ends", name=name)
    return cast("FrontEnd", found.load())
