"""Requests to brokers, and their responses as columns."""
