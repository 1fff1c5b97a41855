"""What can go wrong, as one small tree.

PlimsollError
├── ConfigError         a flag, a setting or a file that cannot be used
│   ├── PortTaken       a port asked for is in use
│   └── AccessRefused   the cluster does not let plimsoll in by its properties
├── InvalidCluster      a cluster state that contradicts itself
├── ClusterUnreachable  no answer from the bootstrap servers, or lost on the way
│   ├── DownloadFailed  a jar could not be fetched
│   ├── ArchiveUnreachable  the archive's bucket gave no answer
│   └── MetricsUnreachable  Prometheus, or a broker's exporter, gave none
├── RightsMissing       the cluster refused a call
├── GuardrailRefused    a safety rule said no; nothing was changed
├── PlanOutdated        the cluster is not the one that was planned for
└── ExecutionStopped    a run ended before its plan was done
    └── WriterBarred    no lease, or no archive: no request may be sent any more

What is expected (level already, no plan in time) is a value, not an exception.
Messages name the thing and say what to do; `exit_codes` maps each class to an
exit code.
"""


class PlimsollError(Exception):
    """Base of every error that is told to the user as one sentence."""


class ConfigError(PlimsollError):
    """A flag, a setting or a file that cannot be used."""


class PortTaken(ConfigError):
    """A port that was asked for is in use."""


class AccessRefused(ConfigError):
    """The cluster does not let plimsoll in as the client properties have it."""


class InvalidCluster(PlimsollError):
    """A cluster state that contradicts itself."""


class ClusterUnreachable(PlimsollError):
    """No answer from the bootstrap servers, or the connection was lost."""


class DownloadFailed(ClusterUnreachable):
    """A jar could not be fetched, or is not the one that was pinned."""


class ArchiveUnreachable(ClusterUnreachable):
    """The bucket that runs are archived in gave no answer, or none of use."""


class MetricsUnreachable(ClusterUnreachable):
    """Prometheus, or a broker's exporter, gave no answer, or none of use."""


class RightsMissing(PlimsollError):
    """The cluster refused a call for want of a right, which the message names."""


class GuardrailRefused(PlimsollError):
    """A safety rule said no; nothing was changed on the cluster."""


class PlanOutdated(PlimsollError):
    """The cluster is not the one that was planned for; the message names the drift."""


class ExecutionStopped(PlimsollError):
    """A run ended before its plan was done; the message says where and why."""


class WriterBarred(ExecutionStopped):
    """The lease is lost or the archive away, so no request may be sent any more."""
