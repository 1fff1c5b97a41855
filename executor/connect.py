"""The executor as the rest of plimsoll sees it: one object per cluster."""

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from executor import preflight
from executor.admin import Admin
from executor.dialect import Dialect
from executor.execution import Execution
from executor.journal import Journal, unfinished
from executor.recognise import dialects
from executor.schedule import in_order
from executor.tier import S3Settings, Tier
from executor.timing import RunLimits, Timing
from model.ids import PartitionId
from model.plan import Plan
from model.run import RunProgress, RunReport
from model.snapshot import StorageKind

_DEFAULT_LIMITS: Final = RunLimits()
_REAL_TIME: Final = Timing()


class Executor:
    """Carries out plans on one cluster. One thread uses it."""

    def __init__(
        self,
        admin: Admin,
        *,
        tier: Tier | None = None,
        limits: RunLimits = _DEFAULT_LIMITS,
        timing: Timing = _REAL_TIME,
    ) -> None:
        self._admin = admin
        self._tier = tier
        self._limits = limits
        self._timing = timing

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def execute(
        self,
        plan: Plan,
        *,
        journal_dir: Path,
        observe: Callable[[RunProgress], None],
        stop: threading.Event,
        moves_in_flight: int | None = None,
    ) -> RunReport:
        """Carry out exactly this plan; starts nothing further once `stop` is set.

        Raises PlanOutdated or GuardrailRefused where the plan does not fit the
        cluster, and nothing was changed; ClusterUnreachable, RightsMissing, ConfigError
        or ExecutionStopped where it cannot be carried out.
        """
        limits = self._limits
        if moves_in_flight is not None:
            limits = replace(limits, moves_in_flight=moves_in_flight)
        ways = self._dialects()
        journal = Journal(
            journal_dir, plan, run_id_of(plan, self._timing.now_ms()), self._timing
        )
        with contextlib.closing(journal):
            return Execution(
                plan,
                ways,
                journal,
                check=lambda: self._check(
                    plan, ways, unfinished(journal_dir, plan.cluster_id)
                ),
                limits=limits,
                timing=self._timing,
                observe=observe,
                stop=stop,
            ).run()

    def dry_run(self, plan: Plan) -> list[str]:
        """The requests that would be sent, after the same checks."""
        ways = self._dialects()
        self._check(plan, ways, {})
        return [
            request
            for move in in_order(plan.moves)
            for request in ways[move.storage].requests(move)
        ]

    def close(self) -> None:
        """Close the connection."""
        self._admin.close()

    def _dialects(self) -> Mapping[StorageKind, Dialect]:
        return dialects(
            self._admin,
            timing=self._timing,
            tier_wait_s=self._limits.tier_wait_s,
            tier=self._tier,
        )

    def _check(
        self,
        plan: Plan,
        ways: Mapping[StorageKind, Dialect],
        ours: Mapping[PartitionId, str],
    ) -> None:
        preflight.check(plan, preflight.observe(self._admin, plan), ours)
        for kind in {move.storage for move in plan.moves}:
            ways[kind].check([m for m in plan.moves if m.storage is kind])


def connect(
    bootstrap: str,
    *,
    timeout_s: float,
    s3: S3Settings | None = None,
    limits: RunLimits = _DEFAULT_LIMITS,
    timing: Timing = _REAL_TIME,
) -> Executor:
    """An executor for the cluster at `bootstrap` (`host:port`, parted by commas).

    Nothing is connected before the first call. With `s3`, what the remote tier holds
    of each partition is looked up before its move. Raises ConfigError.
    """
    tier = Tier(s3) if s3 is not None else None
    return Executor(
        Admin(bootstrap, timeout_s), tier=tier, limits=limits, timing=timing
    )


def run_id_of(plan: Plan, at_ms: int) -> str:
    """A name for a run that sorts by time: `20260102T030405678-1a2b3c4d`."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{at:%Y%m%dT%H%M%S}{at_ms % 1000:03d}-{plan.hash[:8]}"
