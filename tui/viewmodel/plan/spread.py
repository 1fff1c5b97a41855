"""The largest deviation before and after a plan, and whom it leaves there."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from model.plan.plan import Plan
from model.plan.tolerance import tolerance_text
from model.snapshot.snapshot import dimension_words
from tui.viewmodel.brokers.gauges import short_name
from tui.viewmodel.brokers.headline import aside


def spread_text(plan: Plan, key: str, *, name: bool = True) -> str:
    """The largest deviation in a dimension, now and after the plan: `out 63% → 3%`.

    name: whether to add the broker that is left furthest, if it takes no new load and so stays
    there: `out 100% → 100%, broker 1 (demoted)`.
    """
    before, after = (plan.spread(key, after=at) for at in (False, True))
    last = left_furthest(plan, (key,)) if name else ""
    return f"{short_name(key)} {before:.0%} → {after:.0%}{last}"


def outside_text(plan: Plan) -> Iterator[str]:
    """Clause on the brokers that stay outside their tolerance; nothing where there are none."""
    named = [replace(one, dimension=dimension_words(one.dimension)) for one in plan.outside]
    yield from tolerance_text(named, plan.tolerance_unmet)


def left_furthest(plan: Plan, keys: Iterable[str]) -> str:
    """`, broker 1 (demoted)`: whom the plan leaves furthest from the average in these dimensions.

    Empty if that is a broker like others.
    """
    off = [
        (abs(b.deviation_after[key]), b)
        for key in keys
        for b in plan.brokers
        if key in b.deviation_after
    ]
    if not off:
        return ""
    _, broker = max(off, key=lambda pair: pair[0])
    state = aside(broker.state)
    return f", broker {broker.id}{state}" if state else ""
