"""`[triggers]`: what `--auto` does about each reason for a plan: act, ask or nothing."""

from enum import StrEnum
from typing import Literal

from model.files import FileModel


class Response(StrEnum):
    """What `--auto` does when a trigger fires."""

    ACT = "act"
    """Plan and execute within the limits."""
    ASK = "ask"
    """Plan, and wait until a person approves the plan."""
    OFF = "off"
    """Nothing."""


class Trigger(StrEnum):
    """Reasons for a plan, most urgent first; the values are the settings of `TriggerTable`."""

    UNDER_MIN_ISR = "under_min_isr"
    DEAD_BROKER = "dead_broker"
    DEAD_LOG_DIR = "dead_log_dir"
    OVER_CAPACITY = "over_capacity"
    RULE_VIOLATED = "rule_violated"
    SLOW_BROKER = "slow_broker"
    EMPTY_BROKER = "empty_broker"
    UNEVEN_LOAD = "uneven_load"


class TriggerTable(FileModel):
    """What `--auto` does about each reason for a plan: `act`, `ask` a person, or `off`."""

    mode: Literal["any-uneven-load", "empty-broker"] = "any-uneven-load"
    """Modes of Confluent's Self-Balancing; `empty-broker` sets `uneven_load` to `off`."""
    under_min_isr: Response = Response.ACT
    """Partitions have had fewer in-sync replicas than `min.insync.replicas` for two minutes, a
    leader to copy from, and replicas on dead brokers or in failed log directories."""
    dead_broker: Response = Response.ACT
    """A broker has been dead for `dead_broker_after` and holds replicas."""
    dead_log_dir: Response = Response.ACT
    """A log directory of a live broker has failed, and replicas in it can be copied from others."""
    over_capacity: Response = Response.ACT
    """A broker or disk exceeds a limit of its capacity, now or in an hour of the forecast."""
    rule_violated: Response = Response.ASK
    """Replicas break the rack rule, a pin or a placement constraint."""
    slow_broker: Response = Response.ASK
    """A broker has answered small requests much later than the others for three minutes, and leads
    partitions that another replica can lead."""
    empty_broker: Response = Response.ACT
    """A live broker holds almost nothing, and is below its tolerance for that reason."""
    uneven_load: Response | None = None
    """A broker is outside its tolerance; by default `act`, or `off` in mode `empty-broker`."""

    def response(self, trigger: Trigger) -> Response:
        """What `--auto` does about a trigger."""
        found: Response | None = getattr(self, trigger.value)
        if found is not None:
            return found
        return Response.OFF if self.mode == "empty-broker" else Response.ACT
