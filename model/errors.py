"""Errors of plimsoll, as one small tree.

Expected results (already balanced, no plan in time) are values, not exceptions. Messages name
the thing and say what to do; `control.cli.exit_codes` maps each class to an exit code.
"""


class PlimsollError(Exception):
    """Base of every error; its message is one sentence for the user."""


class ConfigError(PlimsollError):
    """A flag, a setting or a file that cannot be used."""


class PortTaken(ConfigError):
    """A port that was asked for is in use."""


class NewerVersion(ConfigError):
    """A file that a newer plimsoll has written."""


class AccessRefused(ConfigError):
    """The cluster does not let plimsoll in as the client properties have it."""


class InvalidCluster(PlimsollError):
    """A cluster state that contradicts itself; the message names the contradiction."""


class ClusterUnreachable(PlimsollError):
    """No answer from the bootstrap servers, or the connection was lost."""


class DownloadFailed(ClusterUnreachable):
    """A jar could not be fetched, or is not the one that was pinned."""


class ArchiveUnreachable(ClusterUnreachable):
    """The archive, or what keeps a lease, gave no answer, or none of use."""


class MetricsUnreachable(ClusterUnreachable):
    """Prometheus, or a broker's exporter, gave no answer, or none of use."""


class ServiceUnreachable(ClusterUnreachable):
    """No service of plimsoll answers for the state folder."""


class RightsMissing(PlimsollError):
    """The cluster refused a call; the message names the missing right."""


class GuardrailRefused(PlimsollError):
    """A safety rule refused; nothing was changed on the cluster."""


class PlanOutdated(PlimsollError):
    """The cluster has changed since the plan was made; the message names the drift."""


class ExecutionStopped(PlimsollError):
    """A run ended before its plan was done; the message says where and why."""


class WriterBarred(ExecutionStopped):
    """The lease is lost or the archive away, so no request may be sent any more."""
