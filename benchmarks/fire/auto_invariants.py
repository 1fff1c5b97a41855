"""What must hold of the loop of `--auto`: its limits, and which triggers it may act on.

Plans are judged by their moves and the limits by the world's own clock and count of runs; none of
this uses the code of the loop.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from benchmarks.fire.invariants import Invariants
from benchmarks.fire.scenarios import LoopPolicy
from control.settings.trigger_table import Response
from lab.simulated_cluster.cluster import SimulatedCluster
from model.ids import BrokerId
from model.plan.plan import Plan

_SEEN_S: Final = 30.0
"""A broker that has been dead for longer was dead when any plan was made that may still run."""
_RATES: Final = 0.99
"""Clocks of hosts run slower or faster by less than 1 %."""
_LIMITS: Final = "the limits of --auto hold"
_TRIGGERS: Final = "only approved triggers act"


@dataclass(slots=True, kw_only=True)
class AutoInvariants:
    """The invariants of the loops of one world, and what they have seen."""

    invariants: Invariants
    cluster: SimulatedCluster
    policy: LoopPolicy
    by_person: set[str] = field(default_factory=set)
    """Hashes of plans that a person has approved."""
    by_policy: set[str] = field(default_factory=set)
    """Hashes of plans that a loop has approved."""
    dead_since_s: dict[BrokerId, float] = field(default_factory=dict)
    """Of the brokers that are dead now, by the cluster's clock."""
    is_clock_off: bool = False
    """Whether a clock was stepped so far that runs of today look like yesterday's."""
    _ended_s: dict[str, float] = field(default_factory=dict)
    """End of the last run of each process, by its steady clock."""
    _changed: set[str] = field(default_factory=set)
    """Processes whose run has changed something."""
    _seen: set[str] = field(default_factory=set)
    """Runs that have."""

    def process_began(self, host: str) -> None:
        """Note a new process, which remembers nothing of the one before."""
        self._ended_s.pop(host, None)

    def approved(self, plan: Plan) -> None:
        """Note that a loop has approved a plan."""
        self.by_policy.add(plan.hash)

    def failed(self, words: str) -> None:
        """Check an error that a loop goes on after."""
        # A plan that breaks a rule is refused by these words, as it should be.
        if "internal error" in words and "the plan is invalid" not in words:
            self.invariants.broken("no unexpected error", words)

    def begins(self, plan: Plan, host: str, steady_s: float) -> None:
        """Check a plan that a loop is about to execute."""
        who = plan.hash in self.by_person or plan.hash in self.by_policy
        self.invariants.check(who, _TRIGGERS, f"no approval of plan {plan.hash[:12]}")
        self.invariants.approve(plan)
        self._changed.discard(host)
        if plan.hash not in self.by_person:
            self._within(plan)
            self._acts(plan)
            self._paused(plan, host, steady_s)

    def resumes(self, host: str) -> None:
        """Note that a run is about to be resumed."""
        self._changed.discard(host)

    def ends(self, host: str, steady_s: float, *, has_reported: bool) -> None:
        """Note the end of a run; one that was refused before its first change is none.

        So is one that could not be resumed, since another host holds the lease.
        """
        if has_reported or host in self._changed:
            self._ended_s[host] = steady_s

    def changes(self, host: str, run: str) -> None:
        """Note a change of a run, by its journal, and check the limit per day."""
        self._changed.add(host)
        if run in self._seen:
            return
        most = self.policy.limits.runs_per_day
        by_person = any(run.endswith(plan_hash[:8]) for plan_hash in self.by_person)
        if most is not None and not by_person:
            holds = len(self._seen) < most or self.is_clock_off
            words = f"{host} begins run {len(self._seen) + 1} of the day, of {most}"
            self.invariants.check(holds, _LIMITS, words)
        self._seen.add(run)

    @property
    def runs(self) -> int:
        """Runs that have changed something."""
        return len(self._seen)

    def _within(self, plan: Plan) -> None:
        limits, added = self.policy.limits, [len({*m.added}) for m in plan.moves]
        topics = Counter(move.topic for move in plan.moves)
        spent = {
            "replica_moves": (sum(added), limits.replica_moves),
            "leader_changes": (
                sum(m.leader_before != m.leader_after for m in plan.moves),
                limits.leader_changes,
            ),
            "bytes": (sum(m.bytes_to_copy or 0 for m in plan.moves), limits.bytes),
            "partitions_per_topic": (max(topics.values()), limits.partitions_per_topic),
        }
        for name, (used, most) in spent.items():
            words = f"plan {plan.hash[:12]} has {name} = {used}, of {most}"
            self.invariants.check(used <= most, _LIMITS, words)

    def _acts(self, plan: Plan) -> None:
        triggers, leaves_dead = self.policy.triggers, False
        for broker in {b for move in plan.moves for b in move.removed}:
            if broker not in self.dead_since_s:
                continue
            for_s = self.cluster.now_s - self.dead_since_s[broker]
            if for_s < _SEEN_S:
                continue
            leaves_dead = True
            holds = triggers.dead_broker is Response.ACT
            holds = holds and for_s >= _RATES * self.policy.dead_broker_after_s
            words = f"plan {plan.hash[:12]} leaves broker {broker}, dead for {for_s:.0f} s"
            self.invariants.check(holds, _TRIGGERS, words)
        even = {triggers.uneven_load, triggers.empty_broker, triggers.dead_broker}
        holds = leaves_dead or Response.ACT in even
        self.invariants.check(holds, _TRIGGERS, f"no trigger acts on plan {plan.hash[:12]}")

    def _paused(self, plan: Plan, host: str, steady_s: float) -> None:
        ended_s = self._ended_s.get(host)
        if ended_s is not None and not any({*m.removed} & {*self.dead_since_s} for m in plan.moves):
            rested_s = steady_s - ended_s
            words = f"{host} begins a run {rested_s:.0f} s after the last one"
            self.invariants.check(rested_s >= self.policy.limits.pause, _LIMITS, words)
