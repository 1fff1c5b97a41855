"""What a plan aims for: the goals, their weights and the costs of moves."""
