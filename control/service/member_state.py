"""How the service of one cluster of a fleet fares."""

from enum import StrEnum


class MemberState(StrEnum):
    """States of the service of a cluster."""

    STARTING = "starting"
    """Its settings are read, or it has not observed the cluster yet."""
    RUNNING = "running"
    """It observes the cluster, or stands by."""
    NOT_READY = "not ready"
    """Its loop turns, but the cluster cannot be reached, or its loads are old."""
    HANGING = "hanging"
    """Its loop has not turned for a minute."""
    FAILED = "failed"
    """It has ended with an error, and starts again after a while."""
    STOPPING = "stopping"
    """It ends with the whole service, after its in-flight moves, or has ended."""
