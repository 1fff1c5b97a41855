"""Values that the shell completes: profiles, limits, run ids, topics and the like."""

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from control.settings.settings import Settings

Values = Callable[[typer.Context, str], list[str]]


def completing(find: Callable[[typer.Context], Iterable[str]]) -> Values:
    """Make a completion callback for typer of a function that lists all values.

    Nothing is completed where the values cannot be read, and nothing is logged: a
    shell has no place for messages while someone is typing.
    """

    def values(context: typer.Context, incomplete: str) -> list[str]:
        # Not above: --help need not load it.
        import logging

        logging.disable()
        with contextlib.suppress(Exception):
            return [v for v in sorted(find(context)) if v.startswith(incomplete)]
        return []

    return values


def _given(context: typer.Context, name: str) -> Any:
    """An option typed so far, also before the command's name; None if absent."""
    above: typer.Context | None = context
    while above is not None:
        if (value := above.params.get(name)) is not None:
            return value
        above = above.parent  # type: ignore[assignment]  # typer's own contexts
    return None


def _path(context: typer.Context, name: str) -> Path | None:
    value = _given(context, name)
    return None if value is None else Path(value)


def _settings(context: typer.Context) -> "Settings":
    from control.settings.settings import load

    config, profile = _path(context, "config"), _given(context, "profile")
    return load({}, config=config, profile=profile)


@completing
def profile_names(context: typer.Context) -> Iterable[str]:
    """Profiles of the configuration file."""
    from control.settings.settings import profiles_of

    return profiles_of(_path(context, "config"))


@completing
def limit_names(context: typer.Context) -> Iterable[str]:
    """Limits of `--auto`."""
    from control.settings.auto_limits import NAMED

    return {**NAMED, **_settings(context).limits}


@completing
def theme_names(_context: typer.Context) -> Iterable[str]:
    """Themes of the screen."""
    from control.settings.screen_settings import THEMES

    return THEMES


@completing
def schema_kinds(_context: typer.Context) -> Iterable[str]:
    """Kinds of files and of output that have a schema."""
    from control.cli.output_types import ANSWERS
    from model.exchange.json_schemas import FILES

    return {**FILES, **ANSWERS}


@completing
def run_ids(context: typer.Context) -> Iterable[str]:
    """Runs that have a journal."""
    from control.compose import journal_dir
    from executor.journal.run_journal import run_paths

    return (path.stem for path in run_paths(journal_dir(_settings(context))))


@completing
def task_ids(context: typer.Context) -> Iterable[str]:
    """Tasks of the state folder."""
    from control.tasks.task_files import TaskFiles

    return (path.stem for path in TaskFiles(_settings(context).state_dir).paths())


@completing
def topic_names(context: typer.Context) -> Iterable[str]:
    """Topics of the typed snapshot; a live cluster is not asked while typing."""
    from model.snapshot.file import read_snapshot

    path = _path(context, "snapshot")
    return () if path is None else (topic.name for topic in read_snapshot(path).header.topics)


@completing
def storage_kinds(_context: typer.Context) -> Iterable[str]:
    """Kinds of storage."""
    from model.snapshot.snapshot import StorageKind

    return StorageKind


spark_masters = completing(lambda _context: ("local[*]", "yarn"))
throttle_rates = completing(lambda _context: ("auto", "10MB/s", "50MB/s", "100MB/s"))
