"""Brokers that die, flap or slow down during a simulation."""

import heapq
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from model.errors import ConfigError
from model.ids import BrokerId
from model.units import span_of

FLAP_S: Final = 30.0
"""How long a flapping broker stays dead, and then alive."""
USUAL_S: Final = 3600.0
"""Length of a fault that names none, but of a dead broker."""
_FAULT: Final = re.compile(r"(?P<kind>[a-z]+):(?P<broker>\d+)@(?P<at>[^+]+)(\+(?P<length>.+))?")


class FaultKind(StrEnum):
    """What happens to a broker."""

    DEAD = "dead"
    """It dies, and returns at the end if there is one."""
    FLAPPING = "flapping"
    """It dies and returns, over and over."""
    SLOW = "slow"
    """It is reported as slow, and copies at a tenth of the usual rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFault:
    """A fault of one broker; times are seconds since the start of the simulation."""

    kind: FaultKind
    broker: BrokerId
    at_s: float
    length_s: float
    """inf: to the end."""

    @classmethod
    def parse(cls, text: str) -> "BrokerFault":
        """Read `KIND:BROKER@START[+LENGTH]`, such as `dead:3@5d+2d`; ConfigError as said."""
        kinds = ", ".join(kind.value for kind in FaultKind)
        found = _FAULT.fullmatch(text)
        if found is None or found["kind"] not in list(FaultKind):
            raise ConfigError(
                f"--fault {text}: write KIND:BROKER@START+LENGTH, such as dead:3@5d+2d; kinds "
                f"are {kinds}"
            )
        kind, length = FaultKind(found["kind"]), found["length"]
        usual_s = math.inf if kind is FaultKind.DEAD else USUAL_S
        try:
            at_s = span_of(found["at"], least=0.0)
            length_s = usual_s if length is None else span_of(length)
        except ValueError as exc:
            raise ConfigError(f"--fault {text}: {exc}") from exc
        if length_s <= 0:
            raise ConfigError(f"--fault {text}: it lasts 0 s; give a longer time")
        return cls(kind=kind, broker=BrokerId(int(found["broker"])), at_s=at_s, length_s=length_s)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class BrokerEvent:
    """One change of a broker, seconds since the start."""

    at_s: float
    broker: BrokerId
    kind: FaultKind
    begins: bool


def events_of(faults: Iterable[BrokerFault]) -> Iterator[BrokerEvent]:
    """All changes of brokers, in order; a flapping broker dies and returns many times.

    Each begin has its end, unless the fault never ends; faults of one broker may overlap.
    """
    return heapq.merge(*map(_events, faults))


def _events(fault: BrokerFault) -> Iterator[BrokerEvent]:
    end_s = fault.at_s + fault.length_s
    kind = FaultKind.SLOW if fault.kind is FaultKind.SLOW else FaultKind.DEAD
    spans = [(fault.at_s, end_s)]
    if fault.kind is FaultKind.FLAPPING:
        turns = math.ceil(fault.length_s / FLAP_S)
        begins_s = [fault.at_s + turn * FLAP_S for turn in range(0, turns, 2)]
        spans = [(at_s, min(at_s + FLAP_S, end_s)) for at_s in begins_s]
    for begin_s, until_s in spans:
        yield BrokerEvent(at_s=begin_s, broker=fault.broker, kind=kind, begins=True)
        if until_s < math.inf:
            yield BrokerEvent(at_s=until_s, broker=fault.broker, kind=kind, begins=False)
