"""The loop that observes, plans, waits for approval and executes."""
