"""Build a sealed plan from the placement a search found."""

from collections.abc import Iterator
from decimal import ROUND_FLOOR, Context
from typing import Final

from model.files import DIGITS, rounded
from model.goals.goals import Goal
from model.ids import BrokerId
from model.plan.plan import (
    ANY_DIR,
    SCHEMA_VERSION,
    VERSION_WITH_BUDGET_PRICES,
    VERSION_WITH_DEMOTION,
    VERSION_WITH_EARLIER,
    VERSION_WITH_EMPTIED,
    VERSION_WITH_MIN_LEADERS,
    VERSION_WITH_NOISE,
    VERSION_WITH_RELIEF,
    VERSION_WITH_TOLERANCE,
    BrokerChange,
    Move,
    Plan,
    PlanStatus,
)
from model.plan.warnings import plan_warnings
from model.snapshot.snapshot import LEADERLESS, BrokerState, Count, Floats
from solver.log_dirs.balance import DirectoryAssignment, balance_directories
from solver.problem.placement import Placement, deviations, gains, loads_of, objective, topic_totals
from solver.problem.problem import Problem
from solver.problem.rack_rule import observers_last
from solver.problem.remaining_violations import held, over_limits, rack_violations
from solver.report.proof_status import limited_by, unmet_reason
from solver.report.reasons import Reasons
from solver.search.leaders_only import plan_leaders_only
from solver.search.search import Search

_DOWN: Final = Context(prec=DIGITS, rounding=ROUND_FLOOR)


def rounded_down(bound: float) -> float:
    """Round a lower bound to the significant digits of a file; down, so that it remains valid."""
    return float(_DOWN.create_decimal_from_float(bound))


def build_plan(
    search: Search,
    placement: Placement,
    status: PlanStatus,
    directories: DirectoryAssignment | None = None,
) -> Plan:
    """Build the sealed plan that leads to a placement, with the bound proved in `search`.

    The placement must be allowed; it need not be the incumbent. `directories` are the log
    directories of its replicas; None chooses good ones at the expense of `search` if the goals
    balance directories, and otherwise leaves them to the brokers.
    """
    problem = search.problem
    header = search.problem.snapshot.header
    live = (b.id for b in header.brokers if b.state is not BrokerState.DEAD)
    if directories is None and problem.goals.level_directories:
        directories = balance_directories(problem, placement, search)
    elif directories is None:
        directories = DirectoryAssignment(chosen={}, gain={}, reason={})
    moves = _moves(problem, placement, directories)
    unmet = unmet_reason(search, placement)
    version = VERSION_WITH_TOLERANCE if unmet else SCHEMA_VERSION
    version = VERSION_WITH_EARLIER if search.near_to else version
    version = VERSION_WITH_MIN_LEADERS if problem.goals.min_leaders else version
    version = VERSION_WITH_RELIEF if problem.goals.relieve_slow else version
    if any(b.state in LEADERLESS for b in header.brokers):
        version = VERSION_WITH_DEMOTION
    version = VERSION_WITH_EMPTIED if problem.goals.emptied else version
    version = VERSION_WITH_NOISE if search.limits.noise else version
    version = VERSION_WITH_BUDGET_PRICES if search.budget_prices else version
    return Plan(
        schema_version=version,
        cluster_id=header.cluster_id,
        snapshot_fingerprint=problem.snapshot.fingerprint,
        snapshot_taken_at_ms=header.taken_at_ms,
        live_brokers=tuple(live),
        goals=problem.goals,
        limits=search.limits,
        status=status,
        objective_before=rounded(
            objective(problem, Placement.home(problem)) + directories.cost_before
        ),
        objective=rounded(objective(problem, placement) + directories.cost + directories.price),
        bound=rounded_down(search.bound),
        price_bound=rounded_down(search.price_bound),
        bound_method=search.method,
        limited_by=limited_by(search),
        move_price=rounded(problem.costs.move),
        levels=_levels(problem),
        brokers=_broker_changes(search, placement),
        moves=moves,
        forecast=header.forecast,
        warnings=plan_warnings(problem.snapshot, problem.goals, ignored_goals(problem), moves),
        leaders_only=plan_leaders_only(problem, placement),
        over_limit=over_limits(problem, placement),
        rack_violations=rack_violations(problem, placement, search.unrepaired),
        tolerance_unmet=unmet,
        near_to=search.near_to,
        budget_prices=search.budget_prices,
    ).seal()


def _levels(problem: Problem) -> dict[str, float]:
    """Mean load per holding broker of each balanced dimension."""
    levels = dict(zip(problem.keys, problem.mean_load.tolist(), strict=True))
    holding = int(problem.may.holding.sum())
    for goal in problem.topic_goals:
        total = topic_totals(problem, Count(goal.resource)).sum()
        levels[str(goal.resource)] = float(total) / holding
    return {key: rounded(level) for key, level in levels.items()}


def ignored_goals(problem: Problem) -> Iterator[tuple[Goal, float]]:
    """Yield goals that count neither now nor in a forecast slot, with the present mean load.

    The mean is per holding broker and in the measure's unit; 0 if there is no load column, as for
    counts per topic. Yields nothing without partitions or brokers that may hold load.
    """
    holding = int(problem.may.holding.sum())
    if not holding or not len(problem.leader):
        return
    measured = {d.measure: i for i, d in enumerate(problem.dimensions) if d.slot == 0}
    for goal in problem.goals.balance:
        if goal not in (*problem.counted, *problem.topic_goals):
            column = measured.get(goal.resource)
            total = 0.0 if column is None else problem.loads_before[:, column].sum()
            yield goal, float(total) / holding


def _moves(
    problem: Problem, placement: Placement, directories: DirectoryAssignment
) -> tuple[Move, ...]:
    """The moves in order: forced ones first, internal topics last, otherwise by gain."""
    gain = gains(problem, placement)
    for row, more in directories.gain.items():
        gain[row] = gain.get(row, 0.0) + more

    def place(row: int) -> tuple[bool, bool, float, int]:
        internal = problem.snapshot.row(row).internal
        return internal, not problem.may.forced[row], -rounded(gain[row]), row

    reasons = Reasons(problem, placement)
    return tuple(_move(reasons, row, gain[row], directories) for row in sorted(gain, key=place))


def _move(reasons: Reasons, row: int, gain: float, directories: DirectoryAssignment) -> Move:
    problem, placement = reasons.problem, reasons.placement
    partition = problem.snapshot.row(row)
    leader = problem.brokers[int(placement.leader[row])]
    after = _replicas_after(problem, placement, row, leader)
    added = len(set(after) - set(partition.replicas))
    stays = added == 0 and leader == partition.leader
    log_dirs = directories.log_dirs(row, after)
    return Move(
        topic=partition.id.topic,
        topic_id=partition.topic_id,
        partition=partition.id.partition,
        storage=partition.storage,
        replicas_before=partition.replicas,
        replicas_after=after,
        leader_before=partition.leader,
        leader_after=leader,
        bytes_to_copy=partition.bytes_to_copy(added),
        gain=rounded(gain),
        reason=directories.reason[row]
        if stays and row in directories.reason
        else reasons.of(row, gain),
        log_dirs_before=_log_dirs_before(problem, row) if log_dirs else (),
        log_dirs_after=log_dirs,
        leader_load=_now(problem, problem.lead[row]),
        follower_load=_now(problem, problem.follow[row]),
    )


def _now(problem: Problem, loads: Floats) -> dict[str, float]:
    """(D,) loads by dimension, leaving out forecast slots."""
    pairs = zip(problem.dimensions, loads.tolist(), strict=True)
    return {d.key: rounded(load) for d, load in pairs if d.slot == 0}


def _log_dirs_before(problem: Problem, row: int) -> tuple[str, ...]:
    return tuple(path or ANY_DIR for path in problem.snapshot.log_dirs(row).values())


def _replicas_after(
    problem: Problem, placement: Placement, row: int, leader: BrokerId
) -> tuple[BrokerId, ...]:
    """Leader first, then remaining replicas in their old order, then new ones by id."""
    before = problem.snapshot.replicas(row)
    on = [problem.brokers[b] for b in placement.holders(row)]
    stay = [b for b in before if b in on and b != leader]
    new = [b for b in on if b not in before and b != leader]
    return observers_last(problem, row, (leader, *stay, *new))


def _broker_changes(search: Search, placement: Placement) -> tuple[BrokerChange, ...]:
    problem = search.problem
    before, after = problem.loads_before, loads_of(problem, placement)
    now = {d.key: i for i, d in enumerate(problem.dimensions) if d.slot == 0}
    held_before = held(problem, problem.replicas).tolist()
    held_after = held(problem, placement.replicas).tolist()
    counted = problem.keys

    def deviation(loads: Floats, b: int) -> dict[str, float]:
        if not problem.may.holding[b]:
            return {}
        row = deviations(problem, loads)[b].tolist()
        return dict(zip(counted, map(rounded, row), strict=True))

    return tuple(
        BrokerChange(
            id=broker.id,
            rack=broker.rack,
            state=broker.state,
            before={key: rounded(float(before[b, d])) for key, d in now.items()},
            after={key: rounded(float(after[b, d])) for key, d in now.items()},
            deviation_before=deviation(before, b),
            deviation_after=deviation(after, b),
            bound_prices=_bound_prices(search, b),
            replicas_before=held_before[b],
            replicas_after=held_after[b],
            capacity={r.value: rounded(c) for r, c in broker.capacity.items()},
        )
        for b, broker in enumerate(problem.snapshot.header.brokers)
    )


def _bound_prices(search: Search, b: int) -> dict[str, float]:
    if search.prices is None or not search.problem.may.holding[b]:
        return {}
    return dict(zip(search.problem.keys, search.prices[b].tolist(), strict=True))
