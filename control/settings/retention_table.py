"""`[retention]`: how much of what has ended is kept in the state folder."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from model.files import FileModel
from model.quantities import as_size

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from executor.journal.retention import Retention
    from model.goals.goals import Goals


class RetentionTable(FileModel):
    """How much of what has ended is kept in the state folder."""

    journal_bytes: Annotated[int, Field(ge=16 * 2**20), as_size] = 2**30
    """Bytes of journals and their plans from which on the oldest are deleted after a run: a number,
    or `2GB`. Runs that are unfinished, damaged or recent, or have left settings, are kept."""

    journal_days: Annotated[float, Field(ge=7)] | None = None
    """Days after which journals are deleted in any case; by default, `journal_bytes` decides."""

    tasks: Annotated[int, Field(ge=20)] = 200
    """Tasks that are over and are kept; older ones are deleted, unless there is an archive."""


def retention_of(
    table: RetentionTable, goals: "Goals", needed: "Callable[[], Collection[str]]"
) -> "Retention":
    """The table in the form of the executor; needed: ids of runs that something names."""
    from executor.journal.retention import Retention

    rests = [max(c.rest_s, c.return_window_s) for c in goals.cooldown.values()]
    return Retention(
        max_bytes=table.journal_bytes,
        days=table.journal_days,
        cooldown_ms=int(1000 * max(rests, default=0.0)),
        needed=needed,
    )
