"""Clusters whose days pass in seconds: loads and broken brokers over time, and moves."""
