"""Watches a cluster; Spark turns its samples into load vectors per partition."""
