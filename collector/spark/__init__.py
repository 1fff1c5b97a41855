"""Spark sessions and the jobs that turn samples into load vectors."""
