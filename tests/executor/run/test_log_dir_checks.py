"""Unfit log directories are refused with a reason."""

from collections.abc import Mapping, Sequence

import pytest

from executor.client.responses import LogDirView
from executor.run.preflight import check
from model.errors import GuardrailRefused, PlanOutdated, RightsMissing
from model.ids import BrokerId
from model.plan.plan import Move
from model.snapshot.snapshot import StorageKind
from tests.support.executor.plan_builders import log_dir, move, observed, plan

ONE, TWO, THREE = map(BrokerId, (1, 2, 3))
STAYS = move(7, (1, 2), (1, 2), dirs_before=("/a", "/a"), dirs_after=("/b", "any"))
GOES = move(8, (1, 2), (3, 2), dirs_before=("/a", "any"), dirs_after=("/b", "any"))
HELD = log_dir("/a", {STAYS.id: 300, GOES.id: 500})
FREE = log_dir("/b", usable=400)
Seen = Mapping[BrokerId, Sequence[LogDirView]]
FITS: Seen = {ONE: (HELD, FREE), TWO: (HELD,), THREE: (log_dir("/b", usable=500),)}


def checked(seen: Seen, *moves: Move) -> None:
    planned = plan(moves or (STAYS, GOES))
    check(planned, observed(planned, log_dirs=seen))


def test_existing_directories_with_enough_space_pass() -> None:
    checked(FITS)
    unknown_room = (HELD, log_dir("/b"))
    checked({**FITS, ONE: unknown_room})


@pytest.mark.parametrize(
    ("of_one", "error", "message"),
    [
        (
            (HELD, log_dir("/c")),
            PlanOutdated,
            "Broker 1 has no log directory /b, where orders-7 goes; it has /a and /c",
        ),
        (
            (HELD, log_dir("/b", offline=True)),
            GuardrailRefused,
            "The log directory /b of broker 1 is offline, so orders-7 cannot go to",
        ),
        (
            (HELD, FREE, log_dir("/c", offline=True)),
            GuardrailRefused,
            "The log directory /c of broker 1 is offline, so orders-7 cannot go to",
        ),
        (
            (HELD, log_dir("/b", cordoned=True)),
            GuardrailRefused,
            "/b of broker 1, where orders-7 goes, is cordoned",
        ),
        (
            (HELD, log_dir("/b", usable=299)),
            GuardrailRefused,
            "/b of broker 1 has 299 B free, but the plan copies 300 B there",
        ),
        ((), RightsMissing, "Broker 1 does not show its log directories"),
        (
            (log_dir("/a"), log_dir("/c", {STAYS.id: 300}), FREE),
            PlanOutdated,
            "orders-7 is in /c of broker 1, the plan expects /a",
        ),
        (
            (HELD, log_dir("/b", {}, {STAYS.id: 5})),
            GuardrailRefused,
            "orders-7 is being moved to /b of broker 1 by someone else",
        ),
    ],
)
def test_an_unfit_directory_is_named(
    of_one: tuple[LogDirView, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        checked({**FITS, ONE: of_one}, STAYS)


def test_a_new_replica_needs_as_much_space_as_the_leader() -> None:
    message = "/b of broker 3 has 499 B free, but the plan copies 500 B there"
    with pytest.raises(GuardrailRefused, match=message):
        checked({**FITS, THREE: (log_dir("/b", usable=499),)})


def test_a_failed_directory_does_not_block_another_one() -> None:
    beside = (log_dir("/b"), log_dir("/c", offline=True))
    checked({**FITS, THREE: beside})


def test_replicas_going_to_one_directory_need_space_together() -> None:
    second = STAYS.model_copy(update={"partition": 9})
    used = log_dir("/a", {STAYS.id: 300, second.id: 101})
    with pytest.raises(GuardrailRefused, match="the plan copies 401 B there"):
        checked({**FITS, ONE: (used, FREE)}, STAYS, second)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"storage": StorageKind.SHARED}, "orders-7, which is in object storage"),
        ({"log_dirs_before": ()}, "does not name the current and the new log directory"),
        ({"log_dirs_after": ("/b",)}, "log directory of each replica of orders-7"),
        (
            {"log_dirs_before": ("any", "any")},
            "does not name the log directory of broker 1 that has orders-7 now",
        ),
    ],
)
def test_an_incomplete_plan_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(GuardrailRefused, match=message):
        checked(FITS, STAYS.model_copy(update=changes))
