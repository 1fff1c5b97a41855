"""Cruise Control's REST API, answered from the service's own state and planner."""
