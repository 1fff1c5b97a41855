"""Fair rates of copies that share network cards and quotas."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

_Flow = TypeVar("_Flow", bound=Hashable)
_Limit = TypeVar("_Limit", bound=Hashable)


def fair_rates(
    flows: Mapping[_Flow, Sequence[_Limit]], free: Mapping[_Limit, float]
) -> dict[_Flow, float]:
    """Return max-min fair rates in bytes per second.

    No rate can be raised without lowering a lower one. The limit with the least left per flow is
    filled first (progressive filling; Bertsekas and Gallager, Data Networks, 6.5.2). `flows`: the
    limits that each flow counts towards, at least one. `free`: bytes per second of each limit.
    """
    left = {limit: max(0.0, rate) for limit, rate in free.items()}
    rates: dict[_Flow, float] = {}
    while len(rates) < len(flows):
        open_flows: dict[_Limit, list[_Flow]] = {}
        for flow, limits in flows.items():
            if flow not in rates:
                for limit in limits:
                    open_flows.setdefault(limit, []).append(flow)
        tightest = min(open_flows, key=lambda limit: left[limit] / len(open_flows[limit]))
        share = left[tightest] / len(open_flows[tightest])
        for flow in open_flows[tightest]:
            rates[flow] = share
            for limit in flows[flow]:
                left[limit] = max(0.0, left[limit] - share)
    return rates
