"""Requests of Cruise Control's clients: the endpoints, their parameters, and what forbids them.

Names and types are those of Cruise Control's OpenAPI description (linkedin/cruise-control,
`cruise-control/src/main/resources/yaml/endpoints`).
"""

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlencode

import numpy as np
from pydantic import ValidationError

from control.service.logins import Role
from model.ids import BrokerId
from model.names import Names
from model.printable import printable
from model.snapshot.snapshot import Bools

PREFIX: Final = "/kafkacruisecontrol"
"""The beginning of each path."""
MOST_DIGITS: Final = 18
"""Digits of a number."""
MOST_ITEMS: Final = 1_000
"""Brokers, goals or ids in one list."""
MOST_MATCHING_S: Final = 2.0
"""Seconds of CPU in which a regular expression is compared with the cluster's topics."""
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
FORM: Final = frozenset({"json", "get_response_schema", "doas", "verbose", "super_verbose"})
"""Parameters that change how an answer looks, and not what is done."""
REVIEW_ID: Final = "review_id"
"""The parameter that names a request under review."""

FOR_VIEWERS: Final = frozenset({"kafka_cluster_state", "user_tasks", "review_board"})
"""Reads that need no more than Cruise Control's role VIEWER; others need USER."""
FOR_ADMINS: Final = frozenset({"bootstrap", "train"})
"""Reads that need its role ADMIN."""


class BadRequest(Exception):
    """A request that Cruise Control answers with 400; the message is the reason."""


class Kind(StrEnum):
    """The type of a parameter."""

    FLAG = "true or false"
    NUMBER = "a whole number"
    ID = "an id"
    COUNT = "a whole number, at least 1"
    TIME = "milliseconds since the epoch"
    SHARE = "a number from 0 to 1"
    TEXT = "text"
    NAMES = "names, separated by commas"
    TASKS = "ids of user tasks, separated by commas"
    BROKERS = "ids, separated by commas"
    REGEX = "a regular expression"
    DATA = "the data that a plan is made from"
    STRATEGIES = "orders of moves, separated by commas"


DATA_FROM: Final = ("VALID_WINDOWS", "VALID_PARTITIONS")
"""What Cruise Control may make plans from."""
STRATEGIES: Final = (
    "BaseReplicaMovementStrategy",
    "PostponeUrpReplicaMovementStrategy",
    "PrioritizeLargeReplicaMovementStrategy",
    "PrioritizeMinIsrWithOfflineReplicasStrategy",
    "PrioritizeOneAboveMinIsrWithOfflineReplicasStrategy",
    "PrioritizeSmallReplicaMovementStrategy",
)
"""The orders of moves that Cruise Control knows."""
_VALUELESS: Final = "skip_rack_awareness_check"

Parameters = Mapping[str, Kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One endpoint: its name, method and parameters."""

    name: str
    method: str
    parameters: Parameters = field(hash=False)
    """By name in lower case: Cruise Control ignores the case of names."""

    @property
    def role(self) -> Role:
        """That it needs, as by Cruise Control's `DefaultRoleSecurityProvider`."""
        if self.method != "GET" or self.name in FOR_ADMINS:
            return Role.ADMIN
        return Role.VIEWER if self.name in FOR_VIEWERS else Role.OPERATOR

    @property
    def operation(self) -> str:
        """What progress calls it: `Add broker` of `add_broker`."""
        return self.name.replace("_", " ").capitalize()


def _kinds(kind: Kind, names: str) -> dict[str, Kind]:
    return dict.fromkeys(names.split(), kind)


_COMMON: Final = _kinds(Kind.FLAG, "json get_response_schema") | _kinds(Kind.TEXT, "doas reason")


def _endpoint(method: str, name: str, *parameters: Parameters) -> Endpoint:
    found: dict[str, Kind] = dict(_COMMON)
    for group in parameters:
        found |= group
    return Endpoint(name=name, method=method, parameters=found)


_READS: Final = (
    _endpoint(
        "GET", "state", _kinds(Kind.NAMES, "substates"), _kinds(Kind.FLAG, "verbose super_verbose")
    ),
    _endpoint(
        "GET", "kafka_cluster_state", _kinds(Kind.REGEX, "topic"), _kinds(Kind.FLAG, "verbose")
    ),
    _endpoint(
        "GET",
        "load",
        _kinds(Kind.TIME, "start end time"),
        _kinds(Kind.FLAG, "allow_capacity_estimation populate_disk_info capacity_only"),
    ),
    _endpoint(
        "GET",
        "partition_load",
        _kinds(Kind.TEXT, "resource partition"),
        _kinds(Kind.TIME, "start end"),
        _kinds(Kind.NUMBER, "entries"),
        _kinds(Kind.REGEX, "topic"),
        _kinds(Kind.SHARE, "min_valid_partition_ratio"),
        _kinds(Kind.FLAG, "allow_capacity_estimation max_load avg_load"),
        _kinds(Kind.BROKERS, "brokerid"),
    ),
    _endpoint(
        "GET",
        "user_tasks",
        _kinds(Kind.NAMES, "client_ids endpoints types"),
        _kinds(Kind.TASKS, "user_task_ids"),
        _kinds(Kind.NUMBER, "entries"),
        _kinds(Kind.FLAG, "fetch_completed_task"),
    ),
)

_PLANNED: Final = (
    _kinds(
        Kind.FLAG,
        "dryrun allow_capacity_estimation stop_ongoing_execution skip_hard_goal_check verbose "
        "use_ready_default_goals exclude_recently_demoted_brokers exclude_recently_removed_brokers "
        "fast_mode",
    )
    | _kinds(
        Kind.COUNT,
        "concurrent_partition_movements_per_broker max_partition_movements_in_cluster "
        "concurrent_leader_movements broker_concurrent_leader_movements "
        "execution_progress_check_interval_ms",
    )
    | _kinds(Kind.NUMBER, "replication_throttle")
    | _kinds(Kind.ID, REVIEW_ID)
    | _kinds(Kind.NAMES, "goals")
    | _kinds(Kind.STRATEGIES, "replica_movement_strategies")
    | _kinds(Kind.REGEX, "excluded_topics")
    | _kinds(Kind.DATA, "data_from")
)
"""Parameters of everything that plans."""
_REBALANCE: Final = (
    _kinds(Kind.FLAG, "ignore_proposal_cache kafka_assigner rebalance_disk")
    | _kinds(Kind.BROKERS, "destination_broker_ids")
    | _kinds(Kind.COUNT, "concurrent_intra_broker_partition_movements")
)
_BROKERS: Final = _kinds(Kind.BROKERS, "brokerid")
_PLANS: Final = (
    _endpoint(
        "GET",
        "proposals",
        _kinds(
            Kind.FLAG,
            "ignore_proposal_cache kafka_assigner rebalance_disk use_ready_default_goals "
            "allow_capacity_estimation verbose exclude_recently_demoted_brokers "
            "exclude_recently_removed_brokers fast_mode",
        ),
        _kinds(Kind.BROKERS, "destination_broker_ids"),
        _kinds(Kind.NAMES, "goals"),
        _kinds(Kind.REGEX, "excluded_topics"),
        _kinds(Kind.DATA, "data_from"),
    ),
    _endpoint("POST", "rebalance", _PLANNED, _REBALANCE),
    _endpoint(
        "POST",
        "add_broker",
        _PLANNED,
        _BROKERS,
        _kinds(Kind.FLAG, "throttle_added_broker kafka_assigner"),
    ),
    _endpoint(
        "POST",
        "remove_broker",
        _PLANNED,
        _BROKERS,
        _kinds(Kind.FLAG, "throttle_removed_broker kafka_assigner"),
        _kinds(Kind.BROKERS, "destination_broker_ids"),
    ),
    _endpoint(
        "POST",
        "demote_broker",
        _PLANNED,
        _BROKERS,
        _kinds(Kind.FLAG, "skip_urp_demotion exclude_follower_demotion"),
        _kinds(Kind.NAMES, "brokerid_and_logdirs"),
    ),
    _endpoint("POST", "fix_offline_replicas", _PLANNED),
    _endpoint(
        "POST",
        "topic_configuration",
        _PLANNED,
        _kinds(Kind.REGEX, "topic"),
        _kinds(Kind.NUMBER, "replication_factor"),
        _kinds(Kind.FLAG, "skip_rack_awareness_check"),
    ),
    _endpoint(
        "POST",
        "remove_disks",
        _kinds(Kind.FLAG, "dryrun stop_ongoing_execution"),
        _kinds(Kind.NAMES, "brokerid_and_logdirs"),
    ),
)

PLANNED: Final = frozenset(found.name for found in _PLANS)
"""Endpoints that plan."""
_STOP: Final = _endpoint(
    "POST",
    "stop_proposal_execution",
    _kinds(Kind.FLAG, "force_stop stop_external_agent"),
    _kinds(Kind.ID, REVIEW_ID),
)
_REVIEWS: Final = (
    _endpoint("GET", "review_board", _kinds(Kind.BROKERS, "review_ids")),
    _endpoint("POST", "review", _kinds(Kind.BROKERS, "approve discard")),
)
_SAMPLES: Final = _kinds(Kind.TIME, "start end")
_SETTLED: Final = (
    _endpoint(
        "POST",
        "admin",
        _kinds(
            Kind.NAMES,
            "disable_self_healing_for enable_self_healing_for disable_concurrency_adjuster_for "
            "enable_concurrency_adjuster_for",
        ),
        _kinds(
            Kind.COUNT,
            "concurrent_partition_movements_per_broker max_partition_movements_in_cluster "
            "concurrent_intra_broker_partition_movements concurrent_leader_movements "
            "broker_concurrent_leader_movements execution_progress_check_interval_ms",
        ),
        _kinds(Kind.ID, REVIEW_ID),
        _kinds(Kind.BROKERS, "drop_recently_removed_brokers drop_recently_demoted_brokers"),
        _kinds(Kind.FLAG, "min_isr_based_concurrency_adjustment"),
    ),
    _endpoint("POST", "pause_sampling", _kinds(Kind.ID, REVIEW_ID)),
    _endpoint("POST", "resume_sampling", _kinds(Kind.ID, REVIEW_ID)),
    _endpoint(
        "POST",
        "rightsize",
        _kinds(Kind.NUMBER, "num_brokers_to_add partition_count"),
        _kinds(Kind.REGEX, "topic"),
    ),
    _endpoint("GET", "train", _SAMPLES),
    _endpoint("GET", "bootstrap", _SAMPLES, _kinds(Kind.FLAG, "clearmetrics developer_mode")),
)
SETTLED: Final = frozenset(found.name for found in _SETTLED)
"""Endpoints that change nothing here."""
PERMISSIONS: Final = "permissions"
ENDPOINTS: Final[Mapping[str, Endpoint]] = {
    found.name: found
    for found in (*_READS, *_PLANS, _STOP, *_REVIEWS, *_SETTLED, _endpoint("GET", PERMISSIONS))
}
"""By name."""
_ALIASES: Final = {"partitionload": "partition_load"}
"""Names in lower case that clients have for endpoints: one view of Cruise Control's web UI."""


def endpoint_of(name: str) -> Endpoint | None:
    """The endpoint with this name, in any case, as in Cruise Control; None without one."""
    bare = name.lower()
    return ENDPOINTS.get(_ALIASES.get(bare, bare))


@dataclass(frozen=True)
class Request:
    """A valid request."""

    endpoint: Endpoint
    pairs: tuple[tuple[str, str], ...]
    """Names in lower case, with values as sent; sorted."""
    body: str = ""
    """The JSON body of `topic_configuration`; empty without one."""

    @cached_property
    def values(self) -> dict[str, Any]:
        """The parsed values by name."""
        kinds = self.endpoint.parameters
        return {name: _parsed(name, kinds[name], text) for name, text in self.pairs}

    @property
    def wants_json(self) -> bool:
        """Whether the answer is JSON; plain text otherwise, as is the default."""
        return bool(self.values.get("json", False))

    @property
    def url(self) -> str:
        """`POST /kafkacruisecontrol/rebalance?dryrun=true`, as `user_tasks` shows it."""
        query = urlencode(self.pairs)
        path = f"{self.endpoint.method} {PREFIX}/{self.endpoint.name}"
        return f"{path}?{query}" if query else path

    def flag(self, name: str, default: bool) -> bool:
        """A parameter that is true or false."""
        return bool(self.values.get(name, default))

    def brokers(self) -> tuple[BrokerId, ...]:
        """`brokerid`, in rising order; empty without it."""
        return tuple(sorted({*self.values.get("brokerid", ())}))


def parsed(
    endpoint: Endpoint, query: Sequence[tuple[str, str]], path: str, body: str = ""
) -> Request:
    """A request with these parameters, as they stand in its URL.

    Raises BadRequest with a whole sentence where Cruise Control answers 400.
    """
    method = endpoint.method
    names = [name.lower() for name, _ in query]
    unknown = sorted({name for name, _ in query if name.lower() not in endpoint.parameters})
    if unknown:
        raise BadRequest(
            f"Unrecognized endpoint parameters in {endpoint.name.upper()} {method} request: "
            f"[{printable(', '.join(unknown))}]."
        )
    pairs = tuple(sorted(zip(names, (value for _, value in query), strict=True)))
    request = Request(endpoint, pairs, body)
    try:
        for name in names:
            if names.count(name) > 1:
                raise BadRequest(f"{name} is given {names.count(name)} times")
        start, end = (request.values.get(name) for name in ("start", "end"))
        if start is not None and end is not None and start > end:
            raise BadRequest(f"start is not after end, not {start} after {end}")
    except BadRequest as exc:
        raise BadRequest(bad(method, path, str(exc))) from None
    return request


def bad(method: str, path: str, why: str) -> str:
    """The sentence of Cruise Control for a request that it refuses with 400."""
    return f"Bad {method} request '{printable(path)}' due to '{why}'."


def matching(names: Names, topics: Sequence[str], most_s: float = MOST_MATCHING_S) -> Bools:
    """(topics,) True for those whose name matches; raises BadRequest where that takes too long.

    RE2 may take milliseconds per name, and one thread answers the reads of all clients.
    """
    found = np.zeros(len(topics), np.bool_)
    began_s = time.thread_time()
    for i, topic in enumerate(topics):
        found[i] = names.match(topic)
        if time.thread_time() - began_s > most_s:
            raise BadRequest(
                f"topic: the regular expression takes more than {most_s:g} s of CPU for "
                f"{len(topics):,} topics; simplify it"
            )
    return found


def _parsed(name: str, kind: Kind, text: str) -> Any:
    return _READERS[kind](name, text)


def _brokers(name: str, text: str) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(_natural(name, _number(name, item))) for item in _items(name, text))


def _regex(name: str, text: str) -> Names:
    try:
        return Names(regex=(text,))
    except ValidationError as exc:
        why = exc.errors()[0]["msg"].removeprefix("Value error, ")
        raise BadRequest(f"{name}: {printable(why)}") from None


def _flag(name: str, text: str) -> bool:
    # Cruise Control reads anything but true as false; `dryrun=ture` would then move replicas.
    # Strimzi's topic operator sends `skip_rack_awareness_check` without a value.
    known = {"true": True, "false": False} | ({"": False} if name == _VALUELESS else {})
    found = known.get(text.strip().lower())
    if found is None:
        raise BadRequest(f"{name} is true or false, not {printable(text)!r}")
    return found


def _number(name: str, text: str) -> int:
    bare = text.strip()
    digits = bare.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS):
        raise BadRequest(f"{name} is a whole number, not {printable(text)!r}")
    return int(bare)


def _at_least(least: int, name: str, number: int) -> int:
    if number < least:
        raise BadRequest(f"{name} is at least {least}, not {number}")
    return number


def _natural(name: str, number: int) -> int:
    if not 0 <= number < 2**31:
        raise BadRequest(f"{name} is not below 0 and below 2^31, not {number}")
    return number


def _share(name: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise BadRequest(f"{name} is a number from 0 to 1, not {printable(text)!r}")
    return found


def _data(name: str, text: str) -> str:
    if text.upper() not in DATA_FROM:
        known = " or ".join(DATA_FROM)
        raise BadRequest(f"{name} is {known}, not {printable(text)!r}")
    return text.upper()


def _strategies(name: str, text: str) -> tuple[str, ...]:
    known = {strategy.lower() for strategy in STRATEGIES}
    found = _items(name, text)
    for item in found:
        if item.lower() not in known:
            listed = ", ".join(STRATEGIES)
            raise BadRequest(f"Strategy {printable(item)} is not supported. Supported: [{listed}]")
    return found


def _tasks(name: str, text: str) -> tuple[str, ...]:
    return tuple(_uuid(name, item) for item in _items(name, text))


def _uuid(name: str, text: str) -> str:
    # `UUID` itself also accepts braces, a URN, and no hyphens, which Java's does not.
    if not _UUID.fullmatch(text):
        raise BadRequest(f"{name} are UUIDs, not {printable(text)!r}")
    return text.lower()


def _items(name: str, text: str) -> tuple[str, ...]:
    found = tuple(item.strip() for item in text.split(",") if item.strip())
    if not found:
        raise BadRequest(f"{name} is empty")
    if len(found) > MOST_ITEMS:
        raise BadRequest(f"{name} has more than {MOST_ITEMS:,} items")
    return found


_READERS: Final[Mapping[Kind, Callable[[str, str], Any]]] = {
    Kind.FLAG: _flag,
    Kind.NUMBER: _number,
    Kind.ID: lambda name, text: _natural(name, _number(name, text)),
    Kind.COUNT: lambda name, text: _at_least(1, name, _number(name, text)),
    Kind.TIME: lambda name, text: _at_least(0, name, _number(name, text)),
    Kind.SHARE: _share,
    Kind.TEXT: lambda _name, text: text,
    Kind.NAMES: _items,
    Kind.TASKS: _tasks,
    Kind.BROKERS: _brokers,
    Kind.REGEX: _regex,
    Kind.DATA: _data,
    Kind.STRATEGIES: _strategies,
}
