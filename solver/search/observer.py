"""Who wants to follow a solve."""


class SolveObserver:
    """Hears of each better plan and each better bound; does nothing by itself."""

    def on_solution(self, objective: float, moves: int) -> None:
        """A better plan was found."""

    def on_bound(self, bound: float) -> None:
        """A better bound was proved."""

    def stops(self) -> bool:
        """Whether to end with the best so far; asked now and then, by any thread."""
        return False
