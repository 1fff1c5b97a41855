"""A clock that jumps, and a platform with faults on demand."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from executor.client.responses import ClusterView, PartitionResponse
from executor.health.health_rules import BrokenStopRule, broken_for_plan
from executor.platforms.platform import MoveFinding, MoveStage, ObservedMove
from executor.timing import Timing
from lab.simulated_cluster.dynamic_configs import alter, append, of_keys, subtract
from model.errors import ClusterUnreachable
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Move
from model.stop_rules import StopRule
from tests.support.executor.plan_builders import CLUSTER_ID, ids, view

HALFWAY = (1, 9)
"""Replicas of a partition whose move is halfway."""
LOOKS = 2
"""Polls until a move is done."""


class FakeTime:
    """Time passes only in pauses; `after` schedules actions."""

    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0
        self.after: list[tuple[float, Callable[[], None]]] = []

    @property
    def timing(self) -> Timing:
        return Timing(now_s=lambda: self.now_s, pause=self._pause, steady_s=lambda: self.now_s)

    def _pause(self, seconds: float) -> None:
        self.now_s += seconds
        due = [entry for entry in self.after if entry[0] <= self.now_s]
        self.after = [entry for entry in self.after if entry[0] > self.now_s]
        for _, action in due:
            action()


class Fault(Enum):
    """A fault of a move."""

    NONE = "none"
    REQUEST_LOST = "the first request does not arrive"
    ANSWER_LOST = "the request arrives and its answer does not"
    UNHEARD = "no request arrives"
    REFUSED = "the broker refuses"
    STUCK = "it begins and does not end"
    STOLEN = "someone else moves it elsewhere"
    CANCELLED = "someone else cancels it"
    ELECTION = "it needs an election to end"
    HALFWAY = "it has two replicas to exchange, one after the other"


class FakePlatform:
    """A platform whose moves take a few polls; `on_request` is called for each request."""

    def __init__(
        self,
        faults: Mapping[PartitionId, Fault],
        on_request: Callable[[Move], None] = lambda _: None,
    ) -> None:
        self._faults = faults
        self._on_request = on_request
        self.sent: Counter[PartitionId] = Counter()
        self.elections: Counter[PartitionId] = Counter()
        self.begun: dict[PartitionId, int] = {}
        """Polls left for moves in progress; 0 for completed ones."""
        self.done: list[Move] = []
        self.has_notes = False
        """Whether completed moves have findings."""
        self.most_at_once = 0
        self.silent = False
        self.ill: str | None = None

    def check(self, moves: Sequence[Move]) -> None:
        del moves

    def requests(self, move: Move) -> tuple[str, ...]:
        return (str(move.id),)

    def prepare(
        self, moves: Sequence[Move], stop: threading.Event
    ) -> Mapping[PartitionId, MoveFinding]:
        del stop
        return {m.id: MoveFinding(note="ready", detail={"n": 1}) for m in moves}

    def start(self, moves: Sequence[Move]) -> Mapping[PartitionId, PartitionResponse]:
        self._answer()
        answers = {m.id: self._begin(m) for m in moves}
        running = sum(left > 0 for left in self.begun.values())
        self.most_at_once = max(self.most_at_once, running)
        known = {pid: answer for pid, answer in answers.items() if answer is not None}
        if len(known) < len(answers):
            raise ClusterUnreachable("the connection was lost")
        return known

    def cancel(self, moves: Sequence[Move]) -> Mapping[PartitionId, PartitionResponse]:
        self._answer()
        for move in moves:
            self.begun.pop(move.id, None)
        return {move.id: PartitionResponse.accepted() for move in moves}

    def progress(self, moves: Sequence[Move]) -> Mapping[PartitionId, ObservedMove]:
        self._answer()
        return {m.id: self._look(m) for m in moves}

    def placed(self, moves: Sequence[Move]) -> Mapping[PartitionId, ObservedMove]:
        return self.progress(moves)

    def finish(self, moves: Sequence[Move]) -> None:
        self.elections.update(m.id for m in moves)

    def health(self, moves: Sequence[Move], planned: Sequence[Move]) -> BrokenStopRule | None:
        del moves, planned
        self._answer()
        return broken_for_plan(StopRule.BROKER_LOST, self.ill)

    def after(self, move: Move) -> None:
        self.done.append(move)

    def noted(self) -> Mapping[PartitionId, MoveFinding]:
        result = self.done if self.has_notes else []
        return {m.id: MoveFinding(note="uploaded", detail={"left": 0}) for m in result}

    def _answer(self) -> None:
        if self.silent:
            raise ClusterUnreachable("no broker answers")

    def _begin(self, move: Move) -> PartitionResponse | None:
        self._on_request(move)
        self.sent[move.id] += 1
        fault = self._faults.get(move.id, Fault.NONE)
        if fault is Fault.REFUSED:
            return PartitionResponse.refused("no such broker is registered")
        if fault is Fault.UNHEARD:
            return None
        if fault is Fault.REQUEST_LOST and self.sent[move.id] == 1:
            return None
        self.begun[move.id] = LOOKS
        return None if fault is Fault.ANSWER_LOST else PartitionResponse.accepted()

    def _look(self, move: Move) -> ObservedMove:
        fault = self._faults.get(move.id, Fault.NONE)
        if move.id not in self.begun or fault is Fault.CANCELLED:
            self.begun.pop(move.id, None)
            return ObservedMove(stage=MoveStage.NOT_BEGUN)
        if fault is Fault.STOLEN:
            self.begun[move.id] = 0
            return ObservedMove(stage=MoveStage.LOST, reason=f"{move.id} is on [9]")
        if fault is Fault.HALFWAY and self.sent[move.id] == 1:
            shown = view(move, HALFWAY)
            return ObservedMove(stage=MoveStage.HALFWAY, view=shown, bytes_copied=100)
        if fault is Fault.STUCK or self.begun[move.id] > 1:
            self.begun[move.id] -= fault is not Fault.STUCK
            return ObservedMove(stage=MoveStage.MOVING, bytes_copied=100)
        if fault is Fault.ELECTION and not self.elections[move.id]:
            return ObservedMove(stage=MoveStage.ARRIVED, bytes_copied=200)
        self.begun[move.id] = 0
        return ObservedMove(stage=MoveStage.DONE, bytes_copied=200)


class FakeConfigs:
    """The settings of three brokers and their topics that runs change."""

    def __init__(self) -> None:
        self.unreachable = False
        self.brokers: dict[BrokerId, dict[str, str]] = {}
        self.topics: dict[TopicName, dict[str, str]] = {}
        self.together: dict[str, str] = {}
        """Cluster-wide defaults; a broker's own settings take precedence."""
        self.on_change: Callable[[], None] = lambda: None
        """Called before each change of brokers' settings."""

    def cluster(self) -> ClusterView:
        return ClusterView(cluster_id=CLUSTER_ID, alive=frozenset(ids([1, 2, 3])))

    def own_broker_configs(self, broker: BrokerId | None, keys: Sequence[str]) -> dict[str, str]:
        return of_keys(self.together if broker is None else self.brokers.get(broker, {}), keys)

    def broker_configs(self, broker: BrokerId, keys: Sequence[str]) -> dict[str, str]:
        return of_keys(self.together | self.brokers.get(broker, {}), keys)

    def own_topic_configs(
        self, topics: Sequence[TopicName], keys: Sequence[str], broker: BrokerId | None = None
    ) -> dict[TopicName, dict[str, str]]:
        return {topic: of_keys(self.topics.get(topic, {}), keys) for topic in topics}

    def alter_broker_configs(
        self, broker: BrokerId | None, values: Mapping[str, str | None]
    ) -> None:
        self._answer()
        self.on_change()
        if broker is None:
            alter(self.together, values)
            return
        alter(self.brokers.setdefault(broker, {}), values)
        if not self.brokers[broker]:
            del self.brokers[broker]

    def append_topic_configs(self, topic: TopicName, lists: Mapping[str, Sequence[str]]) -> None:
        self._answer()
        append(self.topics.setdefault(topic, {}), lists)

    def subtract_topic_configs(self, topic: TopicName, lists: Mapping[str, Sequence[str]]) -> None:
        self._answer()
        subtract(self.topics.setdefault(topic, {}), lists)

    def alter_topic_configs(self, topic: TopicName, values: Mapping[str, str | None]) -> None:
        self._answer()
        alter(self.topics.setdefault(topic, {}), values)
        if not self.topics[topic]:
            del self.topics[topic]

    def _answer(self) -> None:
        if self.unreachable:
            raise ClusterUnreachable("the connection was cut")
