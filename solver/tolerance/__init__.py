"""The tolerance as a promise: plans that bring every broker inside it, or as close as possible."""
