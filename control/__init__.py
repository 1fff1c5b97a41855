"""The loop observe, plan, approve, apply; the command line and its settings."""

PUBLIC = (
    "cli.console",
    "loop.dependencies",
    "loop.loop",
    "loop.run_lag",
    "loop.view",
    "planning.frontier_points",
    "planning.plan_gain",
    "planning.plan_overrides",
    "planning.plan_view",
    "planning.scenario_flags",
    "render.plan_export",
    "tasks.broker_task",
    "tasks.operator_tasks",
    "tasks.task_listing",
    "tasks.task_request",
)
"""Modules that other packages may import; tests/test_layers.py enforces it."""
