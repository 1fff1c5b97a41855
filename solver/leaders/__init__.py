"""Minimum leaders per broker: plans that keep it, and why there may be none."""
