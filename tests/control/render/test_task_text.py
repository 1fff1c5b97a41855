"""Tasks as text."""

import pytest

from control.render.task_text import progress_text
from control.tasks.broker_task import TaskProgress


@pytest.mark.parametrize(
    ("copied", "words"),
    [
        (5_000_000, "2 of 6 moves, 5.00 MB of 6.81 MB, about 3.00 s left"),
        (20_160_000, "2 of 6 moves, 20.2 MB (6.81 MB planned), about 3.00 s left"),
    ],
    ids=["less than planned", "producers write meanwhile"],
)
def test_progress_tells_planned_bytes_from_copied_ones(copied: int, words: str) -> None:
    progress = TaskProgress(
        at_ms=1,
        run_id="r",
        moves_done=2,
        moves=6,
        bytes_copied=copied,
        bytes_to_copy=6_810_000,
        seconds_left=3.0,
    )
    assert progress_text(progress) == words
