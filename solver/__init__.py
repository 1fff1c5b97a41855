"""Planning: problems compiled to columns, exact and local search, bounds, and plans."""

PUBLIC = (
    "infeasible.messages",
    "log_dirs.emptying",
    "new_topic.assign_topic",
    "new_topic.topic_problem",
    "problem.problem",
    "replication.placing",
    "replication.replication_plan",
    "report.build_plan",
    "report.counterfactual",
    "report.given_plan",
    "report.remove_moves",
    "report.result",
    "report.unmovable",
    "search.observer",
    "solve",
    "studies.best_seed",
    "studies.min_brokers",
    "studies.solve_tasks",
    "studies.trace_frontier",
)
"""Modules that other packages may import; tests/test_layers.py enforces it."""
