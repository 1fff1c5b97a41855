"""The partitions that a broker holds a replica of."""

from control.loop.view import LoopView
from model.ids import BrokerId
from model.snapshot.snapshot import Snapshot
from model.units import bytes_text, count_text, short_text
from tui.viewmodel.brokers.broker_detail import heaviest, loads_of, rows_of
from tui.viewmodel.brokers.gauges import ORDER, SHORT
from tui.viewmodel.cells import Column, Role, Row, Table, cell, named, right
from tui.viewmodel.memoize import memoized
from tui.viewmodel.sort_filter import Wish, arranged

ROWS_SHOWN = 200
LEAST_NAME = 16
LOAD = 8
SIZE = 9
REPLICAS = 14


def partitions_of_broker(view: LoopView, broker: BrokerId, width: int, wish: Wish) -> Table:
    """The heaviest replicas first: those with the largest shares of the broker's load."""
    if view.snapshot is None or broker not in view.snapshot.broker:
        why = f"Broker {broker} is not known; escape closes this."
        return Table(
            columns=(Column("partition", "partition", LEAST_NAME),), rows=(), why_empty=why
        )
    return arranged(_table(view.snapshot, broker, width), wish)


@memoized
def _table(snapshot: Snapshot, broker: BrokerId, width: int) -> Table:
    held = rows_of(snapshot, broker)
    loads = loads_of(snapshot, broker, held)
    known = tuple(r for r in ORDER if r in loads)
    fixed = SIZE + 8 + REPLICAS
    known = known[: max(0, (width - fixed - LEAST_NAME) // LOAD)]
    name = max(LEAST_NAME, width - fixed - LOAD * len(known))
    columns = (
        Column("partition", "partition", name),
        Column("role", "role", 8),
        Column("replicas", "replicas", REPLICAS),
        *(Column(r.value, f"{SHORT[r]:>{LOAD - 1}}", LOAD) for r in known),
        Column("size", f"{'size':>{SIZE - 1}}", SIZE),
    )
    rows = []
    for at in heaviest(loads, ROWS_SHOWN) or range(min(ROWS_SHOWN, len(held))):
        row = int(held[at])
        leads = int(snapshot.partitions.leader[row]) == broker
        size = int(snapshot.partitions.size_bytes[row])
        partition = str(snapshot.id(row))
        replicas = ",".join(map(str, snapshot.replicas(row)))
        shown, full = named(partition, name - 1, Role.STRONG)
        rows.append(
            Row(
                key=partition,
                cells=(
                    shown,
                    cell("leads" if leads else "follows", Role.PLAIN if leads else Role.MUTED),
                    cell(replicas),
                    *(right(short_text(loads[r][at]), LOAD) for r in known),
                    right(bytes_text(size if size >= 0 else None), SIZE),
                ),
                values=(
                    partition,
                    "leads" if leads else "follows",
                    replicas,
                    *(float(loads[r][at]) for r in known),
                    size,
                ),
                full=full,
            )
        )
    more = len(held) - len(rows)
    return Table(
        columns=columns,
        rows=tuple(rows),
        why_empty="This broker holds no replica.",
        note=f"and {count_text(more, 'more replica')}" if more > 0 else "",
    )
