"""Endpoints that steer what plimsoll does by itself, or has in its settings: they change nothing.

A request for what is so already succeeds. Any other is refused with the setting that does it, by
403, with which Cruise Control answers what its configuration forbids.
"""

from typing import Any, Final

from control.cruise_control.anomalies import AnomalyKind, healed
from control.cruise_control.answers import REFUSED, Answer, done, error
from control.cruise_control.load_documents import VERSION
from control.cruise_control.requests import BadRequest, Request
from control.cruise_control.state_documents import StateSources
from control.service.logins import Role
from model.printable import printable

ROLE_NAMES: Final = {Role.VIEWER: "VIEWER", Role.OPERATOR: "USER", Role.ADMIN: "ADMIN"}
"""Cruise Control's names of roles."""
MESSAGES: Final = {
    "bootstrap": "No bootstrap is needed: plimsoll measures loads from its start.",
    "train": "No training is needed: plimsoll has no model of CPU load.",
    "resume_sampling": "Metric sampling is running.",
}
"""Of requests for what is so already."""
REASONS: Final = {
    "pause_sampling": "plimsoll always measures; use plimsoll ctl pause to start no more runs",
    "rightsize": "plimsoll has no provisioner; plimsoll simulate says what brokers would change",
}
"""Why all requests of an endpoint are refused."""
_CONCURRENCY: Final = "concurrency is that of the limits of --auto; set it there"
_MARKS: Final = "brokers are left out by marks; plimsoll broker include removes them"
ADMIN: Final = {
    "concurrent_partition_movements_per_broker": _CONCURRENCY,
    "max_partition_movements_in_cluster": _CONCURRENCY,
    "concurrent_intra_broker_partition_movements": _CONCURRENCY,
    "concurrent_leader_movements": _CONCURRENCY,
    "broker_concurrent_leader_movements": _CONCURRENCY,
    "execution_progress_check_interval_ms": _CONCURRENCY,
    "enable_concurrency_adjuster_for": _CONCURRENCY,
    "disable_concurrency_adjuster_for": _CONCURRENCY,
    "min_isr_based_concurrency_adjustment": _CONCURRENCY,
    "drop_recently_removed_brokers": _MARKS,
    "drop_recently_demoted_brokers": _MARKS,
}
"""Why parameters of `admin` are refused."""


def settled(sources: StateSources, request: Request) -> Answer:
    """The answer to one of these endpoints. Raises BadRequest for unknown anomalies."""
    name = request.endpoint.name
    if name == "admin":
        return _admin(sources, request)
    if name in MESSAGES:
        return done({"version": VERSION, "message": MESSAGES[name]})
    return _refused(request, REASONS[name])


def permissions(role: Role) -> Answer:
    """The answer to `permissions`."""
    return done({"version": VERSION, "roles": [ROLE_NAMES[role]]})


def _admin(sources: StateSources, request: Request) -> Answer:
    for name, why in ADMIN.items():
        if name in request.values:
            return _refused(request, f"{name}: {why}")
    on, off = (_kinds(request, f"{verb}_self_healing_for") for verb in ("enable", "disable"))
    if on & off:
        raise BadRequest(f"{min(on & off)} is to be both enabled and disabled")
    heals = healed(sources.mode(), sources.triggers())
    changed = sorted((on - {*heals}) | (off & {*heals}))
    if changed:
        why = f"self-healing of {', '.join(changed)} follows from --auto and its [triggers]"
        return _refused(request, f"{why}; set them in the settings")
    document: dict[str, Any] = {"version": VERSION}
    if on or off:
        found = {kind.value: kind in heals for kind in AnomalyKind if kind in on | off}
        document |= {"selfHealingEnabledBefore": found, "selfHealingEnabledAfter": found}
    return done(document)


def _kinds(request: Request, name: str) -> set[AnomalyKind]:
    items = [item.upper() for item in request.values.get(name, ())]
    for item in items:
        if item not in list(AnomalyKind):
            known = ", ".join(AnomalyKind)
            raise BadRequest(f"{name}: unknown anomaly {printable(item)!r}; there are {known}")
    return {AnomalyKind(item) for item in items}


def _refused(request: Request, why: str) -> Answer:
    method, name = request.endpoint.method, request.endpoint.name
    return error(403, f"Error processing {method} request '/{name}' due to: '{REFUSED}: {why}'.")
