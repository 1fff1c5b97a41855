"""Clusters that nobody has: states and their past, made from a seed."""
