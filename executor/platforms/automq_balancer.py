"""Suspend AutoMQ's own balancer while a run moves partitions.

The balancer moves partitions when a load exceeds its thresholds; with thresholds out of
reach it no longer acts, but keeps measuring for fail-over (verified with AutoMQ 1.7.3).
Previous values are journalled first, so that a later process can restore them after a
crash. Settings changed by someone else in the meantime are kept and reported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from executor.client.cluster_admin import ClusterAdmin, ClusterReads
from executor.journal.run_journal import RunJournal
from executor.timing import Timing
from model.errors import ClusterUnreachable, ExecutionStopped, PlimsollError
from model.ids import BrokerId
from model.plan.plan import Move
from model.run import JournalEvent
from model.snapshot.snapshot import StorageKind

ENABLE: Final = "autobalancer.controller.enable"
THRESHOLDS: Final = (
    "autobalancer.controller.network.in.usage.distribution.detect.threshold",
    "autobalancer.controller.network.out.usage.distribution.detect.threshold",
)
NEVER: Final = 10**15
"""A threshold in bytes per second that no broker reaches."""

Values = dict[str, str | None]
"""Thresholds; None where none is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendedBalancer:
    """The thresholds from before a run raised them."""

    before: dict[BrokerId | None, Values]
    """By broker with values of its own; None stands for the cluster-wide default."""

    def document(self) -> dict[str, Any]:
        """The journal's form; Kafka's name for the cluster-wide default is ""."""
        return {
            "" if broker is None else str(broker): dict(values)
            for broker, values in self.before.items()
        }

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Read the journal's form."""
        return cls(
            before={
                BrokerId(int(name)) if name else None: values for name, values in document.items()
            }
        )

    def requests(self) -> list[str]:
        """The requests that suspend the balancer, as text."""
        return [
            f"IncrementalAlterConfigs {_whose(broker)}: {key} = {NEVER}"
            for broker, values in self.before.items()
            for key in values
        ]


class BalancerReads:
    """What AutoMQ's balancer does, without changing anything. Calls raise as the cluster's do."""

    def __init__(self, reads: ClusterReads) -> None:
        self._reads = reads

    def acts(self) -> str | None:
        """A sentence about the first broker where the balancer acts; None if none.

        A value set on the broker itself takes precedence over the cluster-wide one; the
        effective value of each broker counts.
        """
        for broker in sorted(self._reads.cluster().alive):
            configs = self._reads.broker_configs(broker, (ENABLE, *THRESHOLDS))
            if configs.get(ENABLE) == "false":
                continue
            if not all(_is_out_of_reach(configs.get(key)) for key in THRESHOLDS):
                return f"AutoMQ's own balancer is on at broker {broker}"
        return None

    def plan(
        self, moves: Sequence[Move], held: SuspendedBalancer | None = None
    ) -> SuspendedBalancer | None:
        """Return the thresholds to raise for these moves, with their present values.

        For thresholds that `held` raised and that were not changed since, the values from before.
        None where the balancer does not act, or no move is in shared storage. Changes nothing.
        """
        shared = any(move.storage is StorageKind.SHARED for move in moves)
        if not (shared and self.acts()):
            return None
        before: dict[BrokerId | None, Values] = {None: _to_raise(self._read(None, THRESHOLDS))}
        for one in sorted(self._reads.cluster().alive):
            if values := _to_raise(self._reads.own_broker_configs(one, THRESHOLDS)):
                before[one] = values
        for broker, values in (held.before if held else {}).items():
            now = self._read(broker, list(values))
            ours = {k: old for k, old in values.items() if now[k] == str(NEVER)}
            before.setdefault(broker, {}).update(ours)
        return SuspendedBalancer(before=before)

    def _read(self, broker: BrokerId | None, keys: Sequence[str]) -> Values:
        found = self._reads.own_broker_configs(broker, keys)
        return {key: found.get(key) for key in keys}


class AutoMQBalancer(BalancerReads):
    """Suspends and restores AutoMQ's balancer. Calls raise as the cluster's do."""

    def __init__(self, admin: ClusterAdmin, timing: Timing) -> None:
        super().__init__(admin)
        self._admin = admin
        self._timing = timing

    def set(self, planned: SuspendedBalancer) -> None:
        """Raise the planned thresholds, and wait until every broker shows them.

        Raises ExecutionStopped where one does not.
        """
        for broker, values in planned.before.items():
            self._admin.alter_broker_configs(broker, dict.fromkeys(values, str(NEVER)))
        acts: str | None = None

        def is_quiet() -> bool:
            nonlocal acts
            acts = self.acts()
            return acts is None

        if not self._timing.settles(is_quiet):
            raise ExecutionStopped(f"{acts} although its thresholds were raised; nothing was moved")

    def restore(self, held: SuspendedBalancer) -> tuple[list[str], list[str]]:
        """Restore the previous thresholds; this may be repeated.

        Returns, in words, what could not be restored, and what someone else has set in
        the meantime, which stays.
        """
        left, theirs = [], []
        for broker, before in held.before.items():
            try:
                theirs += self._restore(broker, before)
            except ClusterUnreachable:
                whose = _whose(broker)
                left.append(f"no answer came, so {whose} may keep raised thresholds")
        return left, theirs

    def _restore(self, broker: BrokerId | None, before: Values) -> list[str]:
        now = self._read(broker, list(before))
        changed = {k for k, old in before.items() if now[k] not in (old, str(NEVER))}
        # Also where the old value shows: a broker may lag behind the controller.
        ours = {key: old for key, old in before.items() if key not in changed}
        self._admin.alter_broker_configs(broker, ours)
        self._timing.settles(lambda: self._read(broker, list(ours)) == ours)
        return [
            f"someone else has set {key} of {_whose(broker)} to "
            f"{now[key] or 'its default'} in the meantime, which stays"
            for key in sorted(changed)
        ]


def _is_out_of_reach(value: str | None) -> bool:
    return value is not None and int(value) >= NEVER


def _to_raise(values: Mapping[str, str | None]) -> Values:
    return {k: value for k, value in values.items() if not _is_out_of_reach(value)}


def _whose(broker: BrokerId | None) -> str:
    return "all brokers" if broker is None else f"broker {broker}"


class RunBalancer:
    """AutoMQ's balancer during one run, journalled before each change.

    `consent`: whether the run may suspend it. `held`: what the run being resumed has raised.
    """

    def __init__(
        self,
        balancer: AutoMQBalancer,
        journal: RunJournal,
        *,
        consent: bool,
        held: SuspendedBalancer | None = None,
    ) -> None:
        self._balancer = balancer
        self._journal = journal
        self._consent = consent
        self.held = held
        """Thresholds raised now, by this run or the one being resumed."""

    def begin(self, moves: Sequence[Move]) -> None:
        """Suspend the balancer for these moves, if it acts and there is consent."""
        planned = self._balancer.plan(moves, self.held) if self._consent else None
        if planned is None:
            return
        document = planned.document()
        self._journal.write(JournalEvent.BALANCER_SUSPENDED, before=document)
        self.held = planned
        self._balancer.set(planned)

    def end(self) -> str:
        """Restore the balancer; return what is left or not ours, in words, or ""."""
        if self.held is None:
            return ""
        try:
            left, theirs = self._balancer.restore(self.held)
        except PlimsollError as exc:
            left, theirs = [f"AutoMQ's own balancer is still suspended: {exc}"], []
        if left:
            return f"{'; '.join([*left, *theirs])}; plimsoll cleanup restores the rest"
        self.held = None
        self._journal.write(JournalEvent.BALANCER_RESTORED, theirs=theirs)
        return "; ".join(theirs)
