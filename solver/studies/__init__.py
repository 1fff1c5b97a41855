"""Studies of many solves: the frontier, the fewest brokers, and repairs of goals."""
