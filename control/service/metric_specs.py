"""The metrics of the service: names, types, labels and help, for scrapes and the reference."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class MetricKind(StrEnum):
    """Types of metrics, as Prometheus names them."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric; its labels have few values, and none names a topic or a partition."""

    name: str
    """As exported; that of a counter ends in `_total`."""
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()


def _gauge(name: str, text: str, *labels: str) -> MetricSpec:
    return MetricSpec(f"plimsoll_{name}", MetricKind.GAUGE, text, labels)


def _counter(name: str, text: str, *labels: str) -> MetricSpec:
    return MetricSpec(f"plimsoll_{name}", MetricKind.COUNTER, text, labels)


BUILD: Final = _gauge("build_info", "Always 1; the version of plimsoll.", "version")
CLUSTER: Final = _gauge(
    "cluster_info",
    "Always 1; the cluster, its name in the settings, and who approves plans.",
    *("cluster_id", "name", "mode"),
)
PHASE: Final = _gauge("loop_phase", "1 for what the loop is doing, 0 for all else.", "phase")
BEAT: Final = _gauge(
    "loop_beat_timestamp_seconds", "When the loop last took a turn or waited to reconnect."
)
ERRORS: Final = _counter(
    "loop_errors_total", "Errors after which the loop tries again, by class.", "error"
)
MESSAGES: Final = _counter("log_messages_total", "Messages of the log, by level.", "level")
RELOADS: Final = _counter(
    "settings_reloads_total", "Times that settings were read again, by result.", "result"
)
SETTINGS_READ: Final = _gauge("settings_timestamp_seconds", "When the settings in force were read.")
CERTIFICATE: Final = _gauge(
    "tls_certificate_end_timestamp_seconds", "When the certificate of the listener ends."
)
BROKERS: Final = _gauge("brokers", "Brokers, by state.", "state")
PARTITIONS: Final = _gauge("partitions", "Partitions of the cluster.")
OFFLINE: Final = _gauge("partitions_offline", "Partitions without a leader.")
UNDER_REPLICATED: Final = _gauge(
    "partitions_under_replicated", "Partitions with fewer replicas in sync than replicas."
)
UNDER_MIN_ISR: Final = _gauge(
    "partitions_under_min_isr", "Partitions with fewer replicas in sync than min.insync.replicas."
)
LOADS_AT: Final = _gauge(
    "loads_timestamp_seconds", "When the newest sample of the loads was taken."
)
LOADS_WINDOW: Final = _gauge("loads_window_seconds", "Time over which loads are averaged.")
LOAD: Final = _gauge(
    "broker_load",
    "Load of each broker: bytes per second for net_in and net_out, bytes for disk, cores for "
    "cpu, requests per second, or a count.",
    *("broker", "resource"),
)
DEVIATION: Final = _gauge(
    "broker_deviation_ratio",
    "Utilisation of each broker divided by the average of all, minus 1.",
    *("broker", "resource"),
)
TOLERANCE: Final = _gauge(
    "tolerance_ratio", "Deviation up to which a broker is in balance.", "resource"
)
IMBALANCE: Final = _gauge(
    "imbalance_ratio", "Greatest absolute deviation of any broker.", "resource"
)
SCORE: Final = _gauge("imbalance_score", "Imbalance score of the current placement.")
OUTSIDE: Final = _gauge(
    "brokers_outside_tolerance", "Brokers outside the tolerance of some resource."
)
DECISION: Final = _gauge(
    "decision_info",
    "Always 1; the current decision, and the rule that holds an action back, if any.",
    *("decision", "rule"),
)
DECIDED_AT: Final = _gauge(
    "decision_timestamp_seconds", "When the current decision was first taken."
)
DECISIONS: Final = _counter(
    "decisions_total", "Changes of decision, by decision and rule.", "decision", "rule"
)
TRIGGER: Final = _gauge(
    "trigger_info",
    "Always 1; what `--auto` does about each trigger: act, ask or off.",
    *("trigger", "response"),
)
RUNS_LEFT: Final = _gauge(
    "limit_runs_left", "Runs that `runs_per_day` allows now; absent without that limit."
)
BYTES_LEFT: Final = _gauge(
    "limit_left_bytes", "Bytes that `bytes_per_day` allows now; absent without that limit."
)
SOLVES: Final = _counter("solves_total", "Plans computed, by the status of the result.", "status")
SOLVE_SECONDS: Final = MetricSpec(
    "plimsoll_solve_duration_seconds", MetricKind.HISTOGRAM, "Time to compute a plan."
)
PLAN_MOVES: Final = _gauge("plan_moves", "Moves of the newest plan.")
PLAN_BYTES: Final = _gauge(
    "plan_bytes", "Bytes that the newest plan copies; absent where sizes are unknown."
)
PLAN_GAP: Final = _gauge(
    "plan_gap_ratio",
    "Improvement that the newest plan may leave, as a share of the largest possible one; "
    "0 if proved optimal, absent if a plan that raises F, such as a repair, is not.",
)
PLAN_WAITS: Final = _gauge("plan_waits", "1 while a plan waits for a person's approval, else 0.")
PAUSED: Final = _gauge("paused", "1 while a person has paused the service, else 0.")
LEADS: Final = _gauge(
    "leads", "1 while this service leads, 0 while it stands by; absent without standby."
)
LEADER: Final = _gauge("leader_info", "Always 1; the process that leads, if known.", "leader")
RUN_ACTIVE: Final = _gauge("run_active", "1 while a run is in progress, else 0.")
RUN_MOVES: Final = _gauge("run_moves", "Moves of the newest run, by state.", "state")
RUN_LEFT: Final = _gauge(
    "run_remaining_seconds", "Estimated time until the moves of the run in progress end."
)
RUNS: Final = _counter("runs_total", "Runs that have ended, by state.", "state")
MOVES: Final = _counter("moves_total", "Moves that have ended, by state.", "state")
MOVED_BYTES: Final = _counter("moved_bytes_total", "Bytes that moves have copied, where known.")

METRICS: Final = (
    *(BUILD, CLUSTER, PHASE, BEAT, ERRORS, MESSAGES, RELOADS, SETTINGS_READ, CERTIFICATE),
    *(BROKERS, PARTITIONS, OFFLINE, UNDER_REPLICATED, UNDER_MIN_ISR),
    *(LOADS_AT, LOADS_WINDOW, LOAD, DEVIATION, TOLERANCE, IMBALANCE, SCORE, OUTSIDE),
    *(DECISION, DECIDED_AT, DECISIONS, TRIGGER, RUNS_LEFT, BYTES_LEFT),
    *(SOLVES, SOLVE_SECONDS, PLAN_MOVES, PLAN_BYTES, PLAN_GAP, PLAN_WAITS, PAUSED),
    *(LEADS, LEADER),
    *(RUN_ACTIVE, RUN_MOVES, RUN_LEFT, RUNS, MOVES, MOVED_BYTES),
)
"""All of them, in the order of the reference."""

SOLVE_BUCKETS_S: Final = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0)
"""Upper bounds of the buckets of `SOLVE_SECONDS`."""
