"""What is wrong that no plan fixes, one row for each partition or broker."""

from control.loop.view import LoopView
from model.goals.goals import Goals
from model.units import count_text
from tui.viewmodel.brokers.gauges import gauges
from tui.viewmodel.brokers.headline import amount, dimension_text
from tui.viewmodel.cells import Column, Role, Row, Table, cell, shorten_middle
from tui.viewmodel.sort_filter import Wish, arranged

KIND = 18
LEAST_NAME = 20
DETAIL = 34
BROKER = "broker "
"""Before the id in the key of a broker's row; partitions are named by themselves."""
NOTHING = "Nothing is wrong: no partition is offline or under-replicated, no broker over capacity."


def problem_table(view: LoopView, goals: Goals, width: int, wish: Wish) -> Table:
    """Offline and under-replicated partitions, and brokers over their capacity."""
    name = max(LEAST_NAME, width - KIND - DETAIL)
    columns = (
        Column("kind", "problem", KIND),
        Column("what", "where", name),
        Column("detail", "detail", max(0, min(DETAIL, width - KIND - name))),
    )
    found = view.replication
    rows = []
    if found is not None:
        rows += [_partition("OFFLINE", str(pid), Role.ALARM) for pid in found.offline_ids]
        rows += [_partition("under-replicated", str(p), Role.OVER) for p in found.behind_ids]
    unlisted = _counted(view) - len(rows)
    for (broker, resource), gauge in gauges(view, goals).items():
        if gauge.over_limit and gauge.capacity:
            share = gauge.load / gauge.capacity
            words = f"{amount(resource, gauge.load)}, {share:.0%} of capacity"
            what = f"{BROKER}{broker}, {dimension_text(resource)}"
            rows.append((f"{BROKER}{broker} {resource}", "OVER CAPACITY", what, words, Role.ALARM))
    table = Table(
        columns=columns,
        rows=tuple(
            Row(
                key=key, cells=(cell(kind, role), cell(shorten_middle(what, name - 1)), cell(words))
            )
            for key, kind, what, words, role in rows
        ),
        why_empty=NOTHING,
        note=f"and {count_text(unlisted, 'more partition')}" if unlisted > 0 else "",
    )
    return arranged(table, wish)


def opened_by(key: str, view: LoopView) -> str:
    """The action that shows what a row is about."""
    if key.startswith(BROKER):
        return f"open_broker({key.removeprefix(BROKER).partition(' ')[0]})"
    found = view.replication
    ids = (*found.offline_ids, *found.behind_ids) if found is not None else ()
    topic = next((pid.topic for pid in ids if key.startswith(f"{pid} ")), "")
    return f"open_topic({str(topic)!r})"


def _partition(kind: str, name: str, role: Role) -> tuple[str, str, str, str, Role]:
    detail = "no leader: cannot be used" if role is Role.ALARM else "replicas not in sync"
    return f"{name} {kind}", kind, name, detail, role


def _counted(view: LoopView) -> int:
    found = view.replication
    return 0 if found is None else found.offline + found.under_replicated
