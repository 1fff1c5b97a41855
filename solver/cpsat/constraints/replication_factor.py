"""The replication factor is kept, on distinct brokers, one of which leads."""

from dataclasses import dataclass

from solver.cpsat.constraints.constraint import Guard, enforce, unguarded
from solver.cpsat.variables import Variables
from solver.problem.problem import Problem


@dataclass(frozen=True)
class ReplicationFactor:
    """Each row keeps its number of replicas and has one leader among them.

    One variable per broker makes replicas distinct. Guards `replication factor of
    TOPIC-PARTITION`: without it a row may lose replicas, but gets none.
    """

    name: str = "replication factor"

    def post(self, problem: Problem, variables: Variables, guard: Guard = unguarded) -> None:
        """Post for each row its number of replicas, and that exactly one of them leads."""
        for row, holders in variables.holders.items():
            literal = guard(f"{self.name} of {problem.snapshot.id(row)}")
            rf = int(problem.rf[row])
            on = [variables.on[row, b] for b in holders]
            if rf == 1 and literal is None:
                variables.model.add_exactly_one(on)
                continue
            if literal is not None:
                variables.model.add(sum(on) <= rf)
            enforce(variables.model.add(sum(on) == rf), literal)
            if rf > 1:
                _led(variables, row, literal)


def _led(variables: Variables, row: int, literal: object) -> None:
    model = variables.model
    lead = {b: variables.lead[row, b] for b in variables.leaders[row]}
    if literal is None:
        model.add_exactly_one(lead.values())
    else:
        model.add_at_most_one(lead.values())
        model.add_bool_or([*lead.values()]).only_enforce_if(literal)
    for b, leads in lead.items():
        model.add_implication(leads, variables.on[row, b])
