"""A plan, what it changes, what it costs, and what it leaves unresolved."""
