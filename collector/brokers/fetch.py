"""What one broker is asked for a sample, and its answers in rows of the placement."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from clients.admin_connection import exchange, post_request, response_to
from clients.driver_errors import raise_unauthorized
from collector.broker_log_dirs import BrokerLogDirs, read_directories
from collector.brokers.partition_index import PartitionIndex, ResponseReader
from collector.brokers.requests import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    EncodedRequest,
    about_commits,
    about_groups,
    about_log_dirs,
    about_offsets,
)
from collector.brokers.response_layout import (
    COMMITTED,
    ERROR,
    FUTURE,
    OFFSET,
    SIZE,
    RawResponse,
    commits,
    list_offsets,
    log_dirs,
)
from model.snapshot.snapshot import Ints

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

GROUPS_AGE_S: Final = 5.0
"""A broker is asked again which groups it coordinates after this."""
_LATEST_AT: Final = 1
"""The latest offsets come after the log directories."""
_log = logging.getLogger("plimsoll.collector")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerResponses:
    """The responses of one broker to one round of requests."""

    time_ms: int
    """When it gave the latest offsets."""
    log_dirs: RawResponse
    offsets: Sequence[RawResponse]
    """Latest, earliest local and, of partitions with a remote tier alone, earliest;
    none where it leads nothing."""
    commits: Sequence[RawResponse] | None = None
    answer_s: float = 0.0
    """Seconds until its first response, by a clock that is never set."""


@dataclass(frozen=True, slots=True)
class PartitionFigures:
    """A figure of some of a placement's partitions; none occurs twice."""

    rows: Ints
    values: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFigures:
    """The figures of one broker's responses, in rows of the placement."""

    time_ms: int
    directories: BrokerLogDirs
    columns: Mapping[str, PartitionFigures]
    """By column of `SAMPLES`: local_bytes, without copies in progress, and of the offsets
    latest, earliest_local and earliest those that were asked for."""
    commits: Sequence[PartitionFigures] | None
    """Offsets, of each answer, where a group has committed; a row for each group."""


class BrokerProbe:
    """Sends requests to one broker; reuses encoded requests and response layouts."""

    def __init__(self, broker: int, clock: Callable[[], float]) -> None:
        self._broker = broker
        self._clock = clock
        self._placement: PartitionIndex | None = None
        self._local_kind = EARLIEST_LOCAL
        self._log_dirs = about_log_dirs()
        self._offsets: list[EncodedRequest] = []
        self._groups: list[str] | None = None
        self._groups_at_s = float("-inf")
        self._commits: list[EncodedRequest] = []
        self._sizes = ResponseReader(log_dirs)
        kinds = ("latest", "earliest_local", "earliest")
        self._kinds = {name: ResponseReader(list_offsets) for name in kinds}
        self._committed: list[ResponseReader] = []

    @property
    def coordinates(self) -> bool:
        """Whether the broker may coordinate a group; True until it is known."""
        return self._groups is None or bool(self._groups)

    def prepare(self, placement: PartitionIndex) -> None:
        """Build the requests for offsets of the partitions that the broker leads in a placement.

        Does nothing for the placement of the last call.
        """
        if placement is not self._placement:
            self._placement = placement
            self._offsets = self._about_offsets(placement)

    def _about_offsets(self, placement: PartitionIndex) -> list[EncodedRequest]:
        led = placement.led_by(self._broker)
        tiered = led[placement.tiered[led]]
        asked = ((led, LATEST), (led, self._local_kind), (tiered, EARLIEST))
        return [about_offsets(placement.by_topic(rows), kind) for rows, kind in asked if len(rows)]

    async def ask(
        self, admin: "KafkaAdminClient", timeout_s: float, *, groups: bool
    ) -> BrokerResponses:
        """Send the requests of `prepare` and await the responses, `timeout_s` seconds each.

        Called in the driver's own thread. groups: also ask for the offsets that groups have
        committed; `commits` is None where the broker does not report them. Raises kafka-python's
        KafkaError where log directories or offsets were not answered.
        """
        from kafka.errors import IncompatibleBrokerVersion

        try:
            responses = await self._ask_offsets(admin, timeout_s)
        except IncompatibleBrokerVersion:  # before Kafka 3.4, and nothing tiered
            self._local_kind = EARLIEST
            if self._placement is not None:
                self._offsets = self._about_offsets(self._placement)
            responses = await self._ask_offsets(admin, timeout_s)
        if groups:
            responses = replace(responses, commits=await self._ask_commits(admin, timeout_s))
        return responses

    async def _ask_offsets(self, admin: "KafkaAdminClient", timeout_s: float) -> BrokerResponses:
        """Ask for sizes before offsets: `vectors._clean` relies on this order."""
        questions = [self._log_dirs, *self._offsets]
        posted = [post_request(admin, q, self._broker, timeout_s) for q in questions]
        found = []
        time_ms, asked_s, answer_s = 0, time.monotonic(), 0.0
        for one in posted:
            found.append(await response_to(admin, one, timeout_s))
            answer_s = answer_s or time.monotonic() - asked_s
            if len(found) == min(_LATEST_AT + 1, len(posted)):
                time_ms = int(1000 * self._clock())
        return BrokerResponses(
            time_ms=time_ms, answer_s=answer_s, log_dirs=found[0], offsets=found[1:]
        )

    async def _ask_commits(
        self, admin: "KafkaAdminClient", timeout_s: float
    ) -> list[RawResponse] | None:
        """Responses with commits; None where the broker does not list all groups."""
        from kafka.errors import KafkaError

        now_s = self._clock()
        try:
            if now_s - self._groups_at_s >= GROUPS_AGE_S:
                await self._ask_groups(admin, timeout_s)
                self._groups_at_s = now_s
            return [await exchange(admin, q, self._broker, timeout_s) for q in self._commits]
        except KafkaError as exc:
            _log.debug("broker %d does not report commits: %r", self._broker, exc)
            self._groups_at_s = float("-inf")
            return None

    async def _ask_groups(self, admin: "KafkaAdminClient", timeout_s: float) -> None:
        """Update the groups that the broker coordinates, and the requests for their commits."""
        from kafka.errors import for_code

        listed = await exchange(admin, about_groups(), self._broker, timeout_s)
        if listed.error_code:
            raise for_code(listed.error_code)
        groups = sorted(g.group_id for g in listed.groups if g.group_type != "share")
        if groups != self._groups:
            self._groups = groups
            self._commits = about_commits(admin, groups)
            self.expect(len(self._commits))

    def expect(self, answers: int) -> None:
        """Set the number of responses with commits.

        One, or one per group before Kafka 3.0.
        """
        self._committed = [ResponseReader(commits) for _ in range(answers)]

    def read(self, responses: BrokerResponses, placement: PartitionIndex) -> BrokerFigures:
        """Read responses as figures in rows of the placement.

        Raises MalformedResponse, and the driver's AuthorizationError for hidden groups.
        """
        layout, rows = self._sizes.read(responses.log_dirs, placement)
        here = (rows >= 0) & (layout.read(FUTURE) == 0)
        columns = {"local_bytes": PartitionFigures(rows[here], layout.read(SIZE)[here])}
        for (name, reading), found in zip(self._kinds.items(), responses.offsets, strict=False):
            columns[name] = self._offsets_of(reading, found, placement)
        return BrokerFigures(
            time_ms=responses.time_ms,
            directories=read_directories(layout),
            columns=columns,
            commits=self._commits_of(responses.commits, placement),
        )

    def _offsets_of(
        self, reading: ResponseReader, found: RawResponse, placement: PartitionIndex
    ) -> PartitionFigures:
        layout, rows = reading.read(found, placement)
        offsets = layout.read(OFFSET)
        good = (rows >= 0) & (layout.read(ERROR) == 0) & (offsets >= 0)
        return PartitionFigures(rows[good], offsets[good])

    def _commits_of(
        self, found: Sequence[RawResponse] | None, placement: PartitionIndex
    ) -> list[PartitionFigures] | None:
        if found is None:
            return None
        columns = []
        for reading, one in zip(self._committed, found, strict=True):
            layout, rows = reading.read(one, placement)
            if layout.errors:
                self._groups_at_s = float("-inf")
                # Other errors are of groups that have gone elsewhere, or are gone.
                raise_unauthorized(layout.errors)
                return None
            offsets = layout.read(COMMITTED)
            good = (rows >= 0) & (offsets >= 0)
            columns.append(PartitionFigures(rows[good], offsets[good]))
        return columns
