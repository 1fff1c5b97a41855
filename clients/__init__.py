"""Connection settings and drivers: Kafka, S3, OAuth tokens, Java and pinned jars."""

PUBLIC = (
    "admin_connection",
    "client_properties",
    "connection",
    "driver_configs",
    "driver_errors",
    "jvm.class_archive",
    "jvm.jars",
    "jvm.java",
    "kubernetes_leases",
    "lease_topic",
    "properties",
    "s3",
)
"""Modules that other packages may import; tests/test_layers.py enforces it."""
