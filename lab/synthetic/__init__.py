"""Synthetic clusters: states and their history, generated from a seed."""
