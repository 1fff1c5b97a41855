"""Executes exactly the approved plan, journalled step by step."""

PUBLIC = (
    "client.cluster_admin",
    "client.responses",
    "executor",
    "journal.archive",
    "journal.journal_repair",
    "journal.journal_replay",
    "journal.lease",
    "journal.left_settings",
    "journal.lock",
    "journal.retention",
    "journal.run_history",
    "journal.run_journal",
    "platforms.cordons",
    "run.elections",
    "run.operator_control",
    "run.rollback_plan",
    "run.run_outcome",
    "schedule.estimate",
    "schedule.simulate",
    "throttle.auto",
    "throttle.fair_share",
    "throttle.quota",
    "timing",
)
"""Modules that other packages may import; tests/test_layers.py enforces it."""
