"""The interface for following a solve."""


class SolveObserver:
    """Receives better plans and bounds, and may stop the solve; by default does neither."""

    def on_solution(self, objective: float, moves: int) -> None:
        """Called when a better plan is found, with its F and number of changed partitions."""

    def on_bound(self, bound: float) -> None:
        """Called when a better lower bound of F is proved."""

    def stops(self) -> bool:
        """Return whether to end with the best plan so far; called often, from any thread."""
        return False
