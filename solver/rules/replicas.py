"""The replication factor is kept, on distinct brokers, one of which leads."""

from dataclasses import dataclass

from solver.problem import Problem
from solver.variables import Variables


@dataclass(frozen=True)
class Replicas:
    """One variable per broker makes replicas distinct; their number is kept."""

    name: str = "replication factor"

    def post(self, problem: Problem, variables: Variables) -> None:
        """As many replicas as before; the leader is one of them."""
        model = variables.model
        for row, holders in variables.holders.items():
            rf = int(problem.rf[row])
            on = [variables.on[row, b] for b in holders]
            if rf == 1:
                model.add_exactly_one(on)
                continue
            model.add(sum(on) == rf)
            lead = {b: variables.lead[row, b] for b in variables.leaders[row]}
            model.add_exactly_one(lead.values())
            for b, leads in lead.items():
                model.add_implication(leads, variables.on[row, b])
