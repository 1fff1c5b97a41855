"""Names of events in JSON logs: stable, for rules and searches; messages may change."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Self

ATTRIBUTE: Final = "log_event"
"""The attribute of a log record that names its event."""


class LogEvent(StrEnum):
    """One kind of event; a name never changes its meaning, and none is used again."""

    when: str
    """When it happens."""

    def __new__(cls, name: str, when: str) -> Self:
        """An event that happens then."""
        found = str.__new__(cls, name)
        found._value_ = name
        found.when = when
        return found

    # ---- the service
    SERVICE_FAILED = "service.failed", "The HTTP server of the service ended with an error."
    SETTINGS_READ = "settings.read", "Settings were read again; a loop with them follows."
    SETTINGS_REJECTED = "settings.rejected", "Settings cannot be used; those before stay."
    SETTINGS_LATER = "settings.later", "`[service]` changed, which takes effect with a start."
    CLUSTER_FAILED = "cluster.failed", "The service of one cluster of a fleet ended; others go on."
    NOTIFY_FAILED = "notify.failed", "A notification was not delivered."
    CERTIFICATE_ENDS = "certificate.ends", "The certificate of the service ends soon, or has."
    SECRET_READABLE = "secret.readable", "Others can read a file with passwords."
    SETTINGS_FOLDER = "settings.folder", "Settings come from the current folder."
    SETTINGS_UNUSED = "settings.unused", "A properties file of Kafka's has keys without effect."
    OPERATOR_ACTION = "operator.action", "A person paused, steered, stopped or asked for something."
    AUDIT_FAILED = "audit.failed", "The audit log cannot be written."
    PAUSE_FAILED = "pause.failed", "A pause holds, but does not outlast a restart."
    STANDBY_LEADS = "standby.leads", "This service leads: it acts, and others stand by."
    STANDBY_WAITS = "standby.waits", "Another service leads; this one stands by."
    STANDBY_LOST = "standby.lost", "This service no longer leads."
    STANDBY_FAILED = "standby.failed", "It is not known who leads, or what the last leader left."
    REQUEST_FAILED = "request.failed", "A task of Cruise Control's API cannot be kept or read."

    # ---- the loop
    LOOP_PHASE = "loop.phase", "The loop is in another phase, which begins the message."
    LOOP_DECISION = "loop.decision", "Another rule of `--auto` decides within a phase."
    LOOP_FAILED = "loop.failed", "The loop, a solve or a run ended with an internal error."
    LOOP_WARNING = "loop.warning", "A warning of another part, repeated in the log of the loop."
    CLUSTER_WARNING = "cluster.warning", "A capacity, a load or a placement needs attention."
    BROKER_SLOW = "broker.slow", "A broker answers much later than the others."
    REBALANCER_FOUND = "rebalancer.found", "Something else may balance the cluster as well."
    REBALANCER_UNKNOWN = "rebalancer.unknown", "Other rebalancers cannot be searched for."
    POLICY_CHANGED = "policy.changed", "Limits, triggers or the schedule changed in their file."
    POLICY_REJECTED = "policy.rejected", "A change of them cannot be used."
    PLAN_FAILED = "plan.failed", "A plan, an effort or a what-if could not be computed."
    PLAN_PARTIAL = "plan.partial", "A plan repairs only part, within the limits of `--auto`."
    PLAN_APPROVED = "plan.approved", "A person or the limits of `--auto` approved a plan."
    PLAN_WAITING = "plan.waiting", "A plan waits for a person."
    PLAN_REJECTED = "plan.rejected", "A person rejected a plan."
    PLAN_WITHDRAWN = "plan.withdrawn", "A waiting plan is no longer needed or valid."
    QUESTION_FAILED = "question.failed", "A file of a waiting plan cannot be read or written."
    DECISIONS_FAILED = "decisions.failed", "The decisions of `--auto` cannot be written."

    # ---- runs
    RUN_STATE = "run.state", "A run begins, pauses, continues, stops or ends."
    RUN_MOVE = "run.move", "A move starts, ends, is skipped or is stuck."
    RUN_STEERED = "run.steered", "A person or a rule steers the run."
    RUN_OVERRIDDEN = "run.overridden", "A more urgent trigger ends a run of `--auto`."
    RUN_INTERRUPTED = "run.interrupted", "An earlier process left a run, which can be resumed."
    RUN_ESTIMATE = "run.estimate", "How long the run will take."
    RUN_SLOW = "run.slow", "A move copies slowly, or waits for something."
    RUN_UNANSWERED = "run.unanswered", "The cluster did not answer a request of the run."
    RUN_SETTINGS = "run.settings", "Settings that runs leave, restore, or cannot restore."
    RUN_WARNING = "run.warning", "A check before or after a run, or of earlier runs, warns."
    THROTTLE_CHANGED = "throttle.changed", "The throttle of a run changes."
    THROTTLE_FAILED = "throttle.failed", "A throttle cannot be set, read or removed now."
    THROTTLE_FOREIGN = "throttle.foreign", "Someone else changed a throttle."
    JOURNAL_REWRITTEN = "journal.rewritten", "A journal was removed during its run."
    JOURNAL_FAILED = "journal.failed", "A journal cannot be written."
    JOURNALS_DELETED = ("journals.deleted", "Old journals were deleted, as `[retention]` says.")
    JOURNALS_KEPT = "journals.kept", "Journals exceed `journal_bytes`, or cannot be deleted."
    TASKS_DELETED = "tasks.deleted", "Tasks that are over were deleted, as `[retention]` says."
    ARCHIVE_FAILED = "archive.failed", "The archive lacks something, or cannot be asked."
    LEASE_WAITING = "lease.waiting", "Another process holds the lease of the cluster."
    LEASE_FAILED = "lease.failed", "The lease cannot be renewed or released now."

    # ---- tasks
    TASK_STATE = "task.state", "`--auto` continues a task, plans for it, or ends its work on it."
    TASK_FAILED = "task.failed", "A task failed; or it, or the marks on brokers, cannot be kept."

    # ---- other parts, by their logger
    CLIENTS = "clients", "Any message of the clients: connections, Java, jars."
    COMMAND = "command", "What a command says on stderr, with `--log-format json`."
    COLLECTOR = "collector", "Any message of the collector: the probe, Spark, reports, history."
    CONTROL = "control", "Any other message of the command line."
    EXECUTOR = "executor", "Any other message of runs."
    LAB = "lab", "Any message of local and simulated clusters."
    PRIVATE = "private", "Any message about permissions of files."
    SERVICE = "service", "Any other message of the service."
    SETTINGS = "settings", "Any other message about settings."
    SOLVER = "solver", "Any message of the planner."


def named(event: LogEvent) -> Mapping[str, object]:
    """What to pass to a logger as `extra` so that the message has this event."""
    return {ATTRIBUTE: event.value}


def event_of(logger: str, found: object) -> str:
    """The name of a message's event; by default that of its logger, as `plimsoll.executor`."""
    if isinstance(found, str):
        return found
    area = logger.split(".")[1:2]
    return area[0] if area else LogEvent.CONTROL.value
