"""Proven lower bounds on F over all allowed plans."""
