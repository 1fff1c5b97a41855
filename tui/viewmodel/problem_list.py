"""What is wrong that no plan fixes, one row for each partition or broker."""

from collections.abc import Iterator

from control.loop.view import LoopView
from model.goals.goals import Goals
from model.plan.outages import dead_brokers, failed_dirs
from model.snapshot.broker_troubles import Trouble, rank_of, trouble_of
from model.snapshot.snapshot import BrokerState, dimension_words
from model.units import count_text
from tui.viewmodel.brokers.broker_troubles import brokers_of, role_of
from tui.viewmodel.brokers.gauges import gauges
from tui.viewmodel.brokers.headline import amount
from tui.viewmodel.cells import Column, Role, Row, Table, cell, named
from tui.viewmodel.sort_filter import Wish, arranged

KIND = 18
LEAST_NAME = 20
DETAIL = 34
BROKER = "broker "
"""Before the id in the key of a broker's row; partitions are named by themselves."""
NOTHING = (
    "Nothing is wrong: no broker is dead, slow or over capacity, no disk has failed, and no "
    "partition is offline or under-replicated."
)
UNKNOWN = "Nothing is known yet: the cluster has not answered."
SLOW = "answers much later than the others"


def problem_table(view: LoopView, goals: Goals, width: int, wish: Wish) -> Table:
    """Brokers that are dead, slow or over capacity, failed disks, and degraded partitions."""
    name = max(LEAST_NAME, width - KIND - DETAIL)
    columns = (
        Column("kind", "problem", KIND),
        Column("what", "where", name),
        Column("detail", "detail", max(0, min(DETAIL, width - KIND - name))),
    )
    found = view.replication
    rows = [*_troubles(view)]
    unlisted = 0
    if found is not None:
        rows += [_partition("OFFLINE", str(pid), Role.ALARM) for pid in found.offline_ids]
        rows += [_partition("under-replicated", str(p), Role.OVER) for p in found.behind_ids]
        listed = len(found.offline_ids) + len(found.behind_ids)
        unlisted = found.offline + found.under_replicated - listed
    for (broker, resource), gauge in gauges(view, goals).items():
        if gauge.over_limit and gauge.capacity:
            share = gauge.load / gauge.capacity
            words = f"{amount(resource, gauge.load)}, {share:.0%} of capacity"
            what = f"{BROKER}{broker}, {dimension_words(resource)}"
            rows.append((f"{BROKER}{broker} {resource}", "OVER CAPACITY", what, words, Role.ALARM))
    table = Table(
        columns=columns,
        rows=tuple(
            Row(key=key, cells=(cell(kind, role), where, cell(words)), full=full)
            for key, kind, what, words, role in rows
            for where, full in [named(what, name - 1)]
        ),
        why_empty=NOTHING if found is not None else UNKNOWN,
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


def _troubles(view: LoopView) -> Iterator[tuple[str, str, str, str, Role]]:
    """Brokers with something wrong, the worst first, and what they hold."""
    known = view.snapshot
    held = {} if known is None else {b.id: b.replicas for b in dead_brokers(known)}
    lost = {} if known is None else {(d.broker, d.path): d.replicas for d in failed_dirs(known)}
    for broker in sorted(brokers_of(view), key=rank_of):
        trouble = trouble_of(broker)
        if trouble is None:
            continue
        what = f"{BROKER}{broker.id}"
        if trouble is Trouble.DEAD:
            yield f"{what} dead", trouble, what, _holds(held.get(broker.id)), role_of(trouble)
            continue
        for entry in broker.log_dirs:
            if entry.failed:
                detail = _holds(lost.get((broker.id, entry.path)))
                where = f"{what}, {entry.path}"
                yield f"{what} {entry.path}", Trouble.FAILED_DISK, where, detail, Role.ALARM
        if broker.state is BrokerState.SLOW:
            yield f"{what} slow", Trouble.SLOW, what, SLOW, role_of(trouble)


def _holds(replicas: int | None) -> str:
    """Empty where it is not known what a broker or a disk holds."""
    return "" if replicas is None else f"holds {count_text(replicas, 'replica')}"


def _partition(kind: str, name: str, role: Role) -> tuple[str, str, str, str, Role]:
    detail = "no leader: cannot be used" if role is Role.ALARM else "replicas not in sync"
    return f"{name} {kind}", kind, name, detail, role
