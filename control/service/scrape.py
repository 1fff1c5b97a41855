"""The metrics at one moment, in the text formats of Prometheus and OpenMetrics."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from control.loop.policy import DecisionInputs
from control.loop.view import LoopView, Mode, Phase
from control.service import metric_specs as specs
from control.service.metric_specs import MetricSpec
from control.service.service_state import ASKING, ENDED_MOVES, ENDED_RUNS, ServiceState, Tallies
from control.settings.trigger_table import Trigger
from model import __version__, errors
from model.evaluate import Evaluation
from model.goals.goals import Goals
from model.plan.plan import PlanStatus
from model.run import MoveState
from model.snapshot.snapshot import BrokerState

Row = tuple[tuple[str, ...], float]
"""Values of the labels, and the sample."""
_ERRORS: Final = tuple(
    kind.__name__
    for kind in (
        *(errors.ClusterUnreachable, errors.ConfigError, errors.ExecutionStopped),
        *(errors.GuardrailRefused, errors.PlanOutdated, errors.RightsMissing),
    )
)
_WAITING: Final = frozenset(step.value for step in ASKING)


def registry_of(state: ServiceState) -> CollectorRegistry:
    """The registry of the service: its metrics, and those of its process."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    registry.register(StateCollector(state))
    return registry


def fleet_registry(states: Mapping[str, ServiceState]) -> CollectorRegistry:
    """The registry of a fleet: the metrics of each cluster, by its name, and of the process."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    registry.register(FleetCollector(states))
    return registry


def exposition(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """A scrape, in the format that the `Accept` header prefers, and its content type."""
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class StateCollector(Collector):
    """Compute the metrics from the state when they are scraped."""

    def __init__(self, state: ServiceState) -> None:
        self._state = state

    def describe(self) -> Iterable[Metric]:
        """Nothing: names are checked by a test, not at registration."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All metrics; those without a value yet are left out."""
        state, view = self._state, self._state.view
        yield _gauge(specs.BUILD, [((__version__,), 1)])
        yield _one(specs.BEAT, state.beat_at_s)
        yield _one(specs.SETTINGS_READ, state.read_at_s)
        yield from _counts(state.tallies)
        if state.certificate_until_s is not None:
            yield _one(specs.CERTIFICATE, state.certificate_until_s)
        if (standing := state.standing) is not None:
            yield _one(specs.LEADS, standing.leads)
            yield _gauge(specs.LEADER, [((standing.leader,), 1)] if standing.leader else [])
        if state.decision is not None:
            yield _gauge(specs.DECISION, [(state.decision, 1)])
            yield _one(specs.DECIDED_AT, state.decided_at_s)
            waits = state.decision[0] in _WAITING
            yield _one(specs.PLAN_WAITS, waits)
        if state.inputs is not None and state.inputs.mode is Mode.AUTO:
            yield from _of_policy(state.inputs)
        if view is not None:
            yield from _of_view(view, state.goals)
            yield _one(specs.RUN_ACTIVE, state.run_active)
            yield _one(specs.PAUSED, state.paused)


class FleetCollector(Collector):
    """The metrics of each cluster, with its name as the label `cluster`."""

    def __init__(self, states: Mapping[str, ServiceState]) -> None:
        self._states = states

    def describe(self) -> Iterable[Metric]:
        """Nothing, as `StateCollector`."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """One family for each metric, with the samples of all clusters."""
        found: dict[str, Metric] = {}
        for name, state in self._states.items():
            for metric in StateCollector(state).collect():
                family = found.setdefault(
                    metric.name, Metric(metric.name, metric.documentation, metric.type)
                )
                family.samples += [
                    sample._replace(labels={"cluster": name} | dict(sample.labels))
                    for sample in metric.samples
                ]
        yield from found.values()


def _counts(tallies: Tallies) -> Iterator[Metric]:
    by_label: Mapping[MetricSpec, tuple[Counter[str], Iterable[str]]] = {
        specs.ERRORS: (tallies.errors, _ERRORS),
        specs.MESSAGES: (tallies.messages, ("info", "warning", "error")),
        specs.RELOADS: (tallies.reloads, ("done", "failed")),
        specs.SOLVES: (tallies.solves, PlanStatus),
        specs.RUNS: (tallies.runs, ENDED_RUNS),
        specs.MOVES: (tallies.moves, ENDED_MOVES),
    }
    for spec, (counter, known) in by_label.items():
        # Series that begin with 0: the first event would not be an increase otherwise.
        found = dict.fromkeys(map(str, known), 0) | counter.copy()
        yield _counter(spec, [((value,), n) for value, n in sorted(found.items())])
    yield _counter(specs.DECISIONS, sorted(tallies.decisions.copy().items()))
    yield _counter(specs.MOVED_BYTES, [((), tallies.moved_bytes)])
    yield _solve_seconds(tallies)


def _solve_seconds(tallies: Tallies) -> Metric:
    total, buckets = 0, []
    for bound, count in zip(
        (*specs.SOLVE_BUCKETS_S, math.inf), tuple(tallies.solve_buckets), strict=True
    ):
        total += count
        buckets.append(("+Inf" if bound == math.inf else str(bound), float(total)))
    spec = specs.SOLVE_SECONDS
    return HistogramMetricFamily(spec.name, spec.help, buckets=buckets, sum_value=tallies.solve_s)


def _of_policy(inputs: DecisionInputs) -> Iterator[Metric]:
    rows = ((str(trigger), str(inputs.triggers.response(trigger))) for trigger in Trigger)
    yield _gauge(specs.TRIGGER, [(row, 1) for row in rows])
    if inputs.runs_left is not None:
        yield _one(specs.RUNS_LEFT, inputs.runs_left)
    if inputs.bytes_left is not None:
        yield _one(specs.BYTES_LEFT, inputs.bytes_left)


def _of_view(view: LoopView, goals: Goals) -> Iterator[Metric]:
    yield _gauge(specs.PHASE, [((phase.value,), phase is view.phase) for phase in Phase])
    if view.brokers:
        states = Counter(broker.state for broker in view.brokers)
        yield _gauge(specs.BROKERS, [((s.value,), states[s]) for s in BrokerState])
    if view.replication is not None:
        yield _one(specs.OFFLINE, view.replication.offline)
        yield _one(specs.UNDER_REPLICATED, view.replication.under_replicated)
        yield _one(specs.UNDER_MIN_ISR, view.replication.below_min_isr)
    yield from _of_snapshot(view)
    if view.evaluation is not None:
        yield from _of_evaluation(view.evaluation, goals)
    yield from _of_plan(view)
    yield from _of_run(view)


def _of_snapshot(view: LoopView) -> Iterator[Metric]:
    if view.snapshot is None:
        return
    header = view.snapshot.header
    info = (header.cluster_id, view.cluster_name, view.mode.value)
    yield _gauge(specs.CLUSTER, [(info, 1)])
    yield _one(specs.PARTITIONS, len(view.snapshot))
    newest_ms = max((s.newest_sample_ms for s in header.sources), default=0)
    yield _one(specs.LOADS_AT, (newest_ms or header.taken_at_ms) / 1000)
    yield _one(specs.LOADS_WINDOW, max((s.window_s for s in header.sources), default=0.0))


def _of_evaluation(evaluation: Evaluation, goals: Goals) -> Iterator[Metric]:
    now = {key: found for key, found in evaluation.deviations.items() if "@" not in key}
    yield _gauge(
        specs.LOAD,
        [
            ((str(broker), resource), load)
            for broker, loads in sorted(evaluation.loads.items())
            for resource, load in sorted(loads.items())
            if "@" not in resource
        ],
    )
    yield _gauge(
        specs.DEVIATION,
        [
            ((str(broker), resource), deviation)
            for resource, by_broker in now.items()
            for broker, deviation in by_broker.items()
        ],
    )
    tolerances = {resource: goals.tolerance_of(resource) for resource in now}
    known = [((resource,), value) for resource, value in tolerances.items() if value is not None]
    yield _gauge(specs.TOLERANCE, known)
    yield _gauge(
        specs.IMBALANCE,
        [
            ((resource,), max(map(abs, by_broker.values()), default=0.0))
            for resource, by_broker in now.items()
        ],
    )
    yield _one(specs.SCORE, evaluation.objective)
    yield _one(specs.OUTSIDE, len({found.broker for found in evaluation.outside(goals)}))


def _of_plan(view: LoopView) -> Iterator[Metric]:
    plan = view.plan
    yield _one(specs.PLAN_MOVES, len(plan.moves) if plan is not None else 0)
    if plan is None:
        return
    if plan.bytes_to_copy is not None:
        yield _one(specs.PLAN_BYTES, plan.bytes_to_copy)
    if plan.gap_share == 0.0 or not plan.raises_objective:
        yield _one(specs.PLAN_GAP, plan.gap_share)


def _of_run(view: LoopView) -> Iterator[Metric]:
    if view.run is None:
        return
    states = Counter(item.state for item in view.run.moves)
    yield _gauge(specs.RUN_MOVES, [((s.value,), states[s]) for s in MoveState])
    if view.run.left_s is not None and view.phase is Phase.RUNNING:
        yield _one(specs.RUN_LEFT, view.run.left_s)


def _one(spec: MetricSpec, value: float) -> Metric:
    return _gauge(spec, [((), value)])


def _gauge(spec: MetricSpec, rows: Iterable[Row]) -> Metric:
    family = GaugeMetricFamily(spec.name, spec.help, labels=spec.labels)
    for labels, value in rows:
        family.add_metric(labels, float(value))
    return family


def _counter(spec: MetricSpec, rows: Iterable[Row]) -> Metric:
    family = CounterMetricFamily(spec.name.removesuffix("_total"), spec.help, labels=spec.labels)
    for labels, value in rows:
        family.add_metric(labels, float(value))
    return family
