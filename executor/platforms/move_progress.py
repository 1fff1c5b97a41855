"""The stage of a move, and faults of a cluster, judged from what it reports."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise, zip_longest

from executor.client.responses import PartitionView
from executor.platforms.platform import MoveStage, ObservedMove
from executor.platforms.replica_log_dirs import changed_dirs
from model.ids import BrokerId, PartitionId
from model.plan.plan import Move, Plan

Replicas = tuple[BrokerId, ...]


def progress_of(move: Move, view: PartitionView | None, target: Replicas | None) -> ObservedMove:
    """Return the stage of a started move; `target` is that of a reassignment in progress.

    `view` may lag behind the controller, whose list of reassignments does not.
    """
    if view is None or view.topic_id != move.topic_id:
        reason = f"{move.id} no longer exists"
        return ObservedMove(stage=MoveStage.LOST, reason=reason, is_gone=True)
    lists = (move.replicas_before, *steps(move))
    if target is not None:
        if set(target) not in map(set, lists[1:]):
            return _lost(f"someone else moves {move.id} to {text(target)}")
        return ObservedMove(stage=MoveStage.MOVING, view=view)
    stage = _stage(move, view, lists)
    if stage is MoveStage.LOST:
        return _lost(
            f"{move.id} is on {text(view.replicas)}, the plan expects {text(move.replicas_after)}"
        )
    is_settled = bool(lists[1:]) and view.replicas in lists
    return ObservedMove(stage=stage, view=view, is_settled=is_settled)


def steps(move: Move) -> tuple[Replicas, ...]:
    """Return the replica lists to request in turn, ending with the plan's.

    Each exchanges one replica: with all at once, a partition would temporarily have
    twice its replicas. The leader is exchanged last. Where their number changes, each step adds
    one, or removes one.
    """
    if move.replicas_after == move.replicas_before:
        return ()
    if not (move.added or move.removed):
        return (move.replicas_after,)
    now, lists = list(move.replicas_before), []
    removed = sorted(move.removed, key=lambda broker: broker == move.leader_before)
    added = sorted(move.added, key=lambda broker: broker == move.leader_after)
    for old, new in zip_longest(removed, added):
        at = len(now) if old is None else now.index(old)
        now[at : at + 1] = [] if new is None else [new]
        lists.append(tuple(now))
    return (*lists[:-1], move.replicas_after)


def _stage(move: Move, view: PartitionView, lists: Sequence[Replicas]) -> MoveStage:
    if view.replicas == move.replicas_after:
        return _last_steps(move, view)
    if view.replicas == move.replicas_before:
        return MoveStage.NOT_BEGUN
    if view.replicas in lists:
        whole = view.in_sync.issuperset(view.replicas)
        return MoveStage.HALFWAY if whole else MoveStage.MOVING
    if set(view.replicas) in map(set, lists[:-1]):
        return MoveStage.REVERTED
    both = (set(old) | set(new) for old, new in pairwise(lists))
    return MoveStage.MOVING if set(view.replicas) in both else MoveStage.LOST


def _last_steps(move: Move, view: PartitionView) -> MoveStage:
    """Judge by what was added, and by the leader: another replica may have died meanwhile.

    Kafka ends a reassignment once all added replicas are in sync, whatever the others are
    (`PartitionReassignmentReplicas`); one that adds none ends at once. A plan may keep a leader
    that is not the preferred one. Should it lose the leadership, no election brings it back, so
    the preferred leader will do.
    """
    needed = (*move.added, move.leader_after)
    if move.log_dirs_after and not move.added:
        needed = move.replicas_after
    if not view.in_sync.issuperset(needed):
        return MoveStage.MOVING
    leads = view.leader in (move.leader_after, move.replicas_after[0])
    return MoveStage.DONE if leads else MoveStage.ARRIVED


def out_of_sync(view: PartitionView, target: Replicas) -> tuple[BrokerId, ...]:
    """Replicas not in sync that a step would leave, where it only removes others."""
    if not set(target) < set(view.replicas):
        return ()
    return tuple(b for b in target if b not in view.in_sync)


def is_step(move: Move, target: Replicas) -> bool:
    """Whether a reassignment in progress is a step of the move."""
    return set(target) in map(set, steps(move))


def step_before(move: Move, target: Replicas) -> Replicas:
    """The replica list from which the step in progress started."""
    ahead = [set(to) for to in steps(move)].index(set(target))
    return (move.replicas_before, *steps(move))[ahead]


def in_order(move: Move, view: PartitionView) -> Replicas | None:
    """The previous list whose order a cancel has changed; None where it has not."""
    lists = (move.replicas_before, *steps(move))
    if view.replicas in lists:
        return None
    return next((to for to in lists[:-1] if set(to) == set(view.replicas)), None)


def _lost(reason: str) -> ObservedMove:
    return ObservedMove(stage=MoveStage.LOST, reason=reason)


def dead_target(moves: Iterable[Move], alive: Collection[BrokerId]) -> str | None:
    """Name the first target that is not alive; None if all are."""
    for move in moves:
        for broker in targets(move):
            if broker not in alive:
                return f"broker {broker}, where {move.id} goes, is dead or fenced"
    return None


def dead_when_planned(plan: Plan) -> frozenset[BrokerId]:
    """Brokers that moves of a plan leave and that were dead when it was made."""
    left = {broker for move in plan.moves for broker in move.removed}
    return frozenset(left - {*plan.live_brokers})


def returned(move: Move, dead: Collection[BrokerId], view: PartitionView) -> str:
    """Name a broker that a move leaves for its death, and that has returned; else empty.

    dead: brokers that were dead when planned. A move that leaves others, too, is made.
    """
    back = set(move.removed)
    if not back or not back <= {*dead} or back & view.offline:
        return ""
    return f"broker {min(back)} has returned; its replica of {move.id} stays"


def targets(move: Move) -> tuple[BrokerId, ...]:
    """Brokers that the move needs alive: those that copy, and the leader."""
    return tuple(dict.fromkeys((*move.added, *changed_dirs(move), move.leader_after)))


def offline(moves: Iterable[Move], views: Mapping[PartitionId, PartitionView]) -> str | None:
    """Name the first partition without a leader; None if all have one."""
    for move in moves:
        view = views.get(move.id)
        if view is not None and not view.is_led:
            return f"{move.id} is offline: it has no leader"
    return None


def foreign(moves: Iterable[Move], listed: Iterable[PartitionId]) -> str | None:
    """Name a reassignment outside the plan; None if there is none."""
    others = sorted(set(listed) - {move.id for move in moves})
    if not others:
        return None
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return f"someone else is moving {others[0]}{more}"


def text(brokers: Sequence[BrokerId]) -> str:
    """Format a replica list, such as "[1, 2]"."""
    return f"[{', '.join(map(str, brokers))}]"


class ReplicaSteps:
    """The next replica list to request; progress never goes backwards.

    A client asks any broker, and one that lags shows an earlier list. To request the
    list after that one would undo later steps.
    """

    def __init__(self) -> None:
        # Positions in the lists of each move; 0 is the list before it.
        self._reached: Counter[PartitionId] = Counter()
        self._asked: Counter[PartitionId] = Counter()

    def see(self, move: Move, view: PartitionView | None, target: Replicas | None) -> None:
        """Take one poll of a move into account."""
        lists = (move.replicas_before, *steps(move))
        if view is not None and view.replicas in lists:
            reached = lists.index(view.replicas)
            self._reached[move.id] = max(self._reached[move.id], reached)
        for number, replicas in enumerate(lists[1:], start=1):
            if target is not None and set(target) == set(replicas):
                self._asked[move.id] = max(self._asked[move.id], number)

    def next(self, move: Move) -> Replicas | None:
        """The list to request; None once the last one is reached."""
        lists, reached = (move.replicas_before, *steps(move)), self._reached[move.id]
        if reached == len(lists) - 1:
            return None
        self._asked[move.id] = max(self._asked[move.id], reached + 1)
        return lists[self._asked[move.id]]
