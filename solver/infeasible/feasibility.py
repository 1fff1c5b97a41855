"""Every rule as a requirement that can be dropped, to see which of them conflict.

Unlike the exact model of `solver.cpsat.model`, this one has a variable for every broker:
whatever forbids a broker is a constraint that binds only while its requirement is kept.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from ortools.sat.python import cp_model

from solver.infeasible.assumptions import RACKS, Barriers, Requirement, RequirementKind
from solver.problem.co_location import RackMode
from solver.problem.problem import Problem

Sum = cp_model.LinearExprT
Posted = tuple[cp_model.Constraint, tuple[cp_model.LiteralT, ...]]
"""A constraint, and the literals under which it binds besides its requirement's."""


class Feasibility:
    """Rows to be placed again, under requirements that are kept or dropped."""

    def __init__(
        self,
        problem: Problem,
        rows: Sequence[int],
        *,
        racks: Sequence[int] = (),
        next_rules: bool = False,
    ) -> None:
        """Post the rules of each row. A broker may be added in each of `racks`.

        With `next_rules`, dropping a placement lets the next one that matches the topic bind its
        rows, and after the last one the rack rule, as in goals without the placement.
        """
        self.problem, self.rows = problem, tuple(rows)
        self.added, self._next_rules = tuple(racks), next_rules
        self.model = cp_model.CpModel()
        self.keeps: dict[Requirement, cp_model.IntVar] = {}
        self.on: dict[tuple[int, int], cp_model.IntVar] = {}
        """By row and broker: a replica lies there."""
        self.lead: dict[tuple[int, int], cp_model.IntVar] = {}
        """By row and broker: it leads; the same variable where it is alone."""
        self._barriers = Barriers(problem)
        for row in self.rows:
            self._choose(row)
            self._keep_row(row)
            self._keep_racks(row)

    @property
    def rules(self) -> list[Requirement]:
        """All requirements except rows, in the order of their kinds."""
        return sorted(t for t in self.keeps if t.kind is not RequirementKind.ROW)

    @property
    def places(self) -> range:
        """Brokers by position; those that may be added come last."""
        return range(len(self.problem.brokers) + len(self.added))

    def home(self, row: int) -> list[int]:
        """Return the positions of the brokers that hold a row before the plan, in list order."""
        return [b for b in self.problem.replicas[row].tolist() if b >= 0]

    def keep(self, requirement: Requirement) -> cp_model.IntVar:
        """Return the literal that is true where a requirement is kept, creating it if needed.

        Literals are listed in `keeps`; nothing fixes them, so callers decide what is kept.
        """
        if requirement not in self.keeps:
            kind, at, part = requirement.kind, requirement.at, requirement.part
            name = f"keep[{kind.name.lower()},{at},{part}]"
            self.keeps[requirement] = self.model.new_bool_var(name)
        return self.keeps[requirement]

    def missing(self, row: int, variable: cp_model.IntVar) -> cp_model.IntVar:
        """Create a 0-1 variable that must be 1 where a row is kept and `variable` is 0.

        `variable` is a decision of `on` or `lead`. Elsewhere either value is allowed, so the new
        variable counts correctly only in sums that are bounded from above.
        """
        found = self.model.new_bool_var(f"not[{variable.name}]")
        self.model.add(found >= self.keep(Requirement(RequirementKind.ROW, row)) - variable)
        return found

    def when(self, requirement: Requirement, posted: cp_model.Constraint) -> None:
        """Make a constraint bind only where a requirement is kept, whatever else is dropped."""
        posted.only_enforce_if(self.keep(requirement))

    def _choose(self, row: int) -> None:
        single = self.problem.rf[row] == 1
        for b in self.places:
            on = self.on[row, b] = self.model.new_bool_var(f"on[{row},{b}]")
            lead = on if single else self.model.new_bool_var(f"lead[{row},{b}]")
            self.lead[row, b] = lead
            for requirement in self._barring(row, b):
                self.model.add_implication(self.keep(requirement), ~on)
            if b < len(self.problem.brokers) and self._may_not_lead(row, b):
                state = self.keep(Requirement(RequirementKind.STATE, b))
                self.model.add_implication(state, ~lead)

    def _may_not_lead(self, row: int, broker: int) -> bool:
        """Whether the state of a broker forbids that it leads a row, or leads it on."""
        may = self.problem.may
        leads = self.problem.leader[row] == broker
        return bool(may.demoted[row] if leads else not may.alive[broker])

    def _barring(self, row: int, place: int) -> Iterator[Requirement]:
        """Requirements that forbid a row's replica on an existing or an added broker."""
        known = len(self.problem.brokers)
        if place < known:
            yield from self._barriers.of(row, place)
            return
        rack = self.added[place - known]
        yield Requirement(RequirementKind.NEW_BROKER, rack)
        yield from self._barriers.of_added(row, rack)

    def _keep_row(self, row: int) -> None:
        on = [self.on[row, b] for b in self.places]
        lead = [self.lead[row, b] for b in self.places]
        requirement = Requirement(RequirementKind.ROW, row)
        self.when(requirement, self.model.add(sum(on) == int(self.problem.rf[row])))
        self.when(requirement, self.model.add(sum(lead) == 1))
        for leads, holds in zip(lead, on, strict=True):
            if leads is not holds:
                self.model.add_implication(leads, holds)
        if why := int(self.problem.may.fixed_reason[row]):
            stays = Requirement(RequirementKind.STAYS, why - 1)
            held = [self.on[row, b] for b in self.home(row)]
            posted = self.model.add_bool_and(*held, self.lead[row, int(self.problem.leader[row])])
            posted.only_enforce_if(self.keep(stays), self.keep(requirement))

    def _keep_racks(self, row: int) -> None:
        counts, dropped = self._by_rack(row), list[cp_model.LiteralT]()
        placements = self._barriers.placements_of(row)
        # The first placement that matches a row binds it.
        for placement in placements if self._next_rules else placements[:1]:
            self._keep_placement(row, placement, counts, dropped)
            dropped.append(~self.keep(placement))
        mode = self._barriers.rack_mode
        if dropped and not self._next_rules:
            return
        if mode != RackMode.OFF and self.problem.rf[row] > 1:
            post = self._spread if mode == RackMode.SPREAD else self._even
            stays = self.model.new_bool_var(f"stays[{row}]")
            for b in self.home(row):
                self.model.add_implication(stays, self.on[row, b])
            for constraint, literals in post(row, counts):
                constraint.only_enforce_if(self.keep(RACKS), ~stays, *dropped, *literals)

    def _keep_placement(
        self,
        row: int,
        placement: Requirement,
        counts: list[Sum],
        dropped: Sequence[cp_model.LiteralT],
    ) -> None:
        """Make a placement bind a row where those before it are dropped."""
        binds = [self.keep(placement), *dropped]
        rule = self.problem.goals.placements[placement.at].placement
        wanted, names = Counter(rule.racks), self.problem.may.spreading.racks
        for rack, count in enumerate(counts):
            posted = self.model.add(count == wanted.pop(names[rack] or "", 0))
            posted.only_enforce_if(*binds, self.keep(Requirement(RequirementKind.ROW, row)))
        if wanted:
            # No broker names such a rack.
            self.model.add_bool_or([~literal for literal in binds])
        racks = [*self.problem.may.spreading.rack.tolist(), *self.added]
        for b in self.places:
            if names[racks[b]] not in rule.replica_racks:
                posted = self.model.add(self.lead[row, b] == 0)
                posted.only_enforce_if(*binds)

    def _by_rack(self, row: int) -> list[Sum]:
        spreading = self.problem.may.spreading
        rack = [*spreading.rack.tolist(), *self.added]
        return [
            cp_model.LinearExpr.sum([self.on[row, b] for b in self.places if rack[b] == r])
            for r in range(len(spreading.racks))
        ]

    def _spread(self, row: int, counts: list[Sum]) -> Iterator[Posted]:
        racks = self.problem.may.spreading.rack[self._barriers.takers(row)]
        wanted = min(int(self.problem.rf[row]), len(np.unique(racks)))
        used = []
        for rack, count in enumerate(counts):
            uses = self.model.new_bool_var(f"uses[{row},{rack}]")
            self.model.add(uses <= count)
            used.append(uses)
        yield self.model.add(cp_model.LinearExpr.sum(used) >= wanted), ()

    def _even(self, row: int, counts: list[Sum]) -> Iterator[Posted]:
        takers, spreading = self._barriers.takers(row), self.problem.may.spreading
        for rack, count in enumerate(counts):
            here = np.flatnonzero(takers & (spreading.rack == rack)).tolist()
            if not here:
                continue
            # A rack whose eligible brokers all hold a replica has no room for more.
            full = self.model.new_bool_var(f"full[{row},{rack}]")
            for b in here:
                self.model.add_implication(full, self.on[row, b])
            for other, most in enumerate(counts):
                if other != rack:
                    yield self.model.add(most <= count + 1), (~full,)
