"""Replication throttles: how high, set where, and restored to what."""
