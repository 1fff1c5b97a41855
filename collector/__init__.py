"""Observe a cluster: Spark turns samples into loads of each partition."""

PUBLIC = (
    "assemble",
    "brokers.fan_out",
    "collector",
    "collector_settings",
    "history.history_settings",
    "history.past_loads",
    "recorded_state",
    "reports.exporters",
    "reports.http",
    "reports.metric_topics",
    "reports.poller",
    "reports.prometheus",
    "reports.provenance",
    "reports.reporters",
    "reports.selectors",
    "samples",
    "spark.deployment",
    "spark.executor_calls",
    "spark.shared",
    "spark.vectors",
    "state_replay",
)
"""Modules that other packages may import; tests/test_layers.py enforces it."""
