"""Metrics under the names of Cruise Control's JMX exporter, which Strimzi's dashboard queries."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric, UntypedMetricFamily
from prometheus_client.registry import Collector

from control.cruise_control.anomalies import AnomalyKind, violated_goals
from control.cruise_control.goal_names import names_of
from control.cruise_control.load_documents import PERCENT
from control.cruise_control.requests import ENDPOINTS
from control.cruise_control.state_documents import StateSources, balancedness, monitor_state

PREFIX: Final = "kafka_cruisecontrol_"
_PLANS: Final = "goaloptimizer_proposal_computation_timer_"
_MODELS: Final = "loadmonitor_cluster_model_creation_timer_"
_QUANTILES: Final = {"99thpercentile": 0.99, "999thpercentile": 0.999, "max": 1.0}


class DashboardMetrics(Collector):
    """Computes the metrics when they are scraped."""

    def __init__(self, sources: StateSources, requests: Counter[str]) -> None:
        """requests: their number by the name of the endpoint."""
        self._sources, self._requests = sources, requests

    def describe(self) -> Iterable[Metric]:
        """Nothing, as of plimsoll's own."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        sources, service = self._sources, self._sources.service
        view, goals = service.view, service.goals
        monitor = monitor_state(sources, view, verbose=False)
        violated = [] if view is None else violated_goals(view, goals)
        yield from _gauges(
            {
                "loadmonitor_total_monitored_windows_value": monitor["numMonitoredWindows"],
                "loadmonitor_valid_windows_value": monitor["numMonitoredWindows"],
                "loadmonitor_monitored_partitions_percentage_value": (
                    monitor["monitoringCoveragePct"] / PERCENT
                ),
                "executor_ongoing_execution_non_kafka_assigner_value": service.run_active,
                "anomalydetector_balancedness_score_value": balancedness(violated, names_of(goals)),
                **_timer(_PLANS, [*service.tallies.solve_times]),
                **_timer(_MODELS, [*service.tallies.model_times]),
            }
        )
        detected, errors = sources.anomalies.detected, service.tallies.errors
        counts = {
            "anomalydetector_goal_violation_rate": detected[AnomalyKind.GOAL_VIOLATION],
            "anomalydetector_disk_failure_rate": detected[AnomalyKind.DISK_FAILURE],
            "metricfetchermanager_partition_samples_fetcher_failure_rate": sum(errors.values()),
            # Nothing is trained here.
            "metricfetchermanager_training_samples_fetcher_failure_rate": 0,
        }
        counts |= {
            f"kafkacruisecontrolservlet_{name}_request_rate": self._requests[name]
            for name in ENDPOINTS
        }
        for name, count in counts.items():
            found = UntypedMetricFamily(f"{PREFIX}{name}_count", "As in Cruise Control.")
            found.add_sample(f"{PREFIX}{name}_count", {}, count)
            yield found


def _gauges(values: dict[str, float]) -> Iterator[Metric]:
    for name, value in values.items():
        found = GaugeMetricFamily(f"{PREFIX}{name}", "As in Cruise Control.")
        found.add_metric((), float(value))
        yield found


def _timer(name: str, times_s: list[float]) -> dict[str, float]:
    """Milliseconds of a timer, by the names that begin so; 0 at first, as in Cruise Control."""
    ordered = sorted(times_s) or [0.0]
    found = {
        quantile: ordered[max(0, math.ceil(share * len(ordered)) - 1)]
        for quantile, share in _QUANTILES.items()
    }
    found["mean"] = sum(ordered) / len(ordered)
    return {f"{name}{quantile}": 1000 * value for quantile, value in found.items()}
