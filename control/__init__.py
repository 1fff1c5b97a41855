"""The loop observe, plan, approve, apply; the command line and its settings."""

PUBLIC = (
    "cli.console",
    "cli.fleet_source",
    "cli.output_types",
    "loop.dependencies",
    "loop.loop",
    "loop.policy",
    "loop.run_lag",
    "loop.view",
    "planning.frontier_points",
    "planning.plan_gain",
    "planning.plan_overrides",
    "planning.plan_view",
    "planning.scenario_flags",
    "render.fleet_text",
    "render.plan_export",
    "render.text",
    "service.auto_watch",
    "service.member_state",
    "settings.screen_settings",
    "tasks.broker_task",
    "tasks.operator_tasks",
    "tasks.task_listing",
    "tasks.task_request",
)
"""Modules that other packages may import; tests/test_layers.py enforces it."""
