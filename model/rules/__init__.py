"""The plain half of each hard rule: checks a proposal, and says what it binds.

The solver has the other half of each; the halves share no code, and this one is the truth.
"""

from model.rules.brokers import DrainedBrokersEmpty, EligibleBrokers
from model.rules.budgets import WithinBudgets
from model.rules.capacity import CapacityLimit, ReplicaLimit
from model.rules.cooldown import CooledDown, NoReturn
from model.rules.log_dirs import LogDirectories
from model.rules.movable import Movable
from model.rules.pins import Pinned
from model.rules.placements import ExplicitPlacement
from model.rules.racks import RackSpread
from model.rules.replicas import DistinctReplicas, ReplicationFactorKept
from model.rules.rule import Rule, Violation

RULES: tuple[Rule, ...] = (
    ReplicationFactorKept(),
    DistinctReplicas(),
    EligibleBrokers(),
    DrainedBrokersEmpty(),
    Movable(),
    CooledDown(),
    NoReturn(),
    Pinned(),
    RackSpread(),
    ExplicitPlacement(),
    CapacityLimit(),
    ReplicaLimit(),
    LogDirectories(),
    WithinBudgets(),
)

__all__ = ["RULES", "Rule", "Violation"]
