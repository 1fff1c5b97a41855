"""The benchmark of the order of moves measures what it says."""

from benchmarks.schedule import measured, random_moves, row


def test_moves_are_drawn_the_same_each_time() -> None:
    assert random_moves(1, 5, 4) == random_moves(1, 5, 4)
    assert random_moves(1, 5, 4) != random_moves(2, 5, 4)


def test_no_order_beats_the_least_time() -> None:
    result = measured(random_moves(1, 12, 5), in_flight=2)
    assert min(one.time for one in result.values()) >= 1 - 1e-9
    assert result["run"].time <= 1.02 * result["list"].time


def test_a_row_has_a_cell_for_each_figure() -> None:
    assert row("random", [random_moves(1, 5, 4)], 2).count("|") == 11
