"""A run: its figures, its progress and its moves."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from executor.journal.run_history import PastRun
from model.run import BrokerBalance, MoveProgress, MoveState, RunProgress, RunState
from model.units import bytes_text, count_text, rate_text, seconds_text
from tui.screen_state import Moment
from tui.viewmodel.brokers.bars import bar
from tui.viewmodel.brokers.gauges import short_name
from tui.viewmodel.cells import (
    Cell,
    Column,
    LazyRows,
    Role,
    Row,
    Span,
    Table,
    cell,
    flow,
    named,
    right,
    shorten_words,
)
from tui.viewmodel.disabled_reasons import refusal
from tui.viewmodel.plan.moves import brief_reason, reason_of
from tui.viewmodel.plan.wording import REASON_LEAST, change_text
from tui.viewmodel.run.health_gauges import GAUGED, gauge_lines, gauges_of
from tui.viewmodel.run.progress import (
    ACTIVE,
    bytes_copied,
    bytes_total,
    move_share,
    rate_now,
    rate_of_move,
    share_done,
)
from tui.viewmodel.run.stop_rules import armed
from tui.viewmodel.run.throttle import refused_text, throttle_text
from tui.viewmodel.sort_filter import (
    SortKey,
    Wish,
    by_number,
    by_text,
    left_out,
    marked,
    no_match,
    selected,
)
from tui.viewmodel.staleness import ticking

NO_RUN = "No run yet. Approve a plan, and its moves appear here."
MOVES_SHOWN = 200
"""Rows of the table; further ones are only counted."""
ROOMY = 108
"""Width from which moves have bars, rates and leaderless times."""
WITH_REASON = 72
"""Width from which a move's time and reason are in its row."""
BAR = 10
OMITTED = ("bytes", "rate", "stall", "time")
"""Columns left out, in this order, where changes between many brokers need their room."""
REASON_LINES = 3

RUN_ROLES = {
    RunState.DONE: Role.GOOD,
    RunState.FAILED: Role.ALARM,
    RunState.STOPPED: Role.UNDER,
    RunState.INTERRUPTED: Role.ALARM,
    RunState.REFUSED: Role.ALARM,
    RunState.PAUSED: Role.UNDER,
}
MOVE_ROLES = {
    MoveState.PLANNED: Role.MUTED,
    MoveState.ISSUED: Role.STRONG,
    MoveState.DONE: Role.GOOD,
    MoveState.DROPPED: Role.UNDER,
    MoveState.STUCK: Role.ALARM,
}
RUN_TEXT = {RunState.INTERRUPTED: "interrupted"}
MOVE_TEXT = {MoveState.PLANNED: "waiting", MoveState.ISSUED: "moving", MoveState.DROPPED: "skipped"}
LEFT = (MoveState.DROPPED, MoveState.STUCK)
"""States in which nothing more is copied."""
ORDER = (MoveState.STUCK, MoveState.DROPPED, MoveState.ISSUED, MoveState.PLANNED, MoveState.DONE)
"""What needs attention is at the top, what is done at the bottom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunShown:
    """A run as displayed at one time."""

    title: str
    lines: tuple[Cell, ...] = ()
    run: RunProgress | None = None
    at_ms: int = 0

    @property
    def share(self) -> float | None:
        """The share that is done; None without a run."""
        return None if self.run is None else share_done(self.run)


def run_shown(moment: Moment, width: int) -> RunShown:
    """The run in progress, else the last one, else an interrupted one."""
    run, lost = moment.view.run, moment.interrupted
    if run is not None:
        lines = _live_lines(run, moment, width)
        return RunShown(title=_title("Run", run), lines=lines, run=run, at_ms=moment.view.at_ms)
    if lost is None:
        return RunShown(title="Run")
    past = _past_lines(lost.progress, lost.duration_s, width)
    lines = (*_interrupted_lines(lost, moment, width), *past)
    title = _title("Interrupted run", lost.progress)
    return RunShown(title=title, lines=lines, run=lost.progress, at_ms=lost.last_at_ms)


def past_shown(
    run: RunProgress, balance: Sequence[BrokerBalance], at_ms: int, width: int, where: str
) -> RunShown:
    """A previous run as it was at one time; `where`: the position in its journal."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    when = cell(f"REPLAY, state at {at:%Y-%m-%d %H:%M:%S}Z, {where}", Role.MARK)
    lines = (
        *flow([when], width),
        *_past_lines(run, (at_ms - run.started_at_ms) / 1000, width),
        *flow(_balance(balance), width),
    )
    return RunShown(title=_title("Previous run", run), lines=lines, run=run, at_ms=at_ms)


def _title(what: str, run: RunProgress) -> str:
    return f"{what} {run.run_id} of plan {run.plan_hash[:12]}"


# ---- figures


def _live_lines(run: RunProgress, moment: Moment, width: int) -> tuple[Cell, ...]:
    items = [*_counts(run), *_bytes(run)]
    if run.state not in ACTIVE:
        report = moment.report
        if report is not None and report.run_id == run.run_id:
            items += [_took(report.duration_s)]
        found = () if report is None else report.brokers
        items += [*_timing(run), *_balance(found)]
        return (*flow(items, width), *_reason(run, width), *_remedy(run, moment, width))
    items += _speed(run, moment)
    words = throttle_text(moment.throttle, moment.asked)
    settings = [cell(f"throttle {words}"), *_checked(run, moment)]
    refused = refused_text(moment.asked)
    return (
        *flow(items, width),
        *_reason(run, width),
        *_wrapped(refused, width, Role.UNDER),
        *_gauges(run, moment, width),
        *flow(settings, width),
        *flow(run_keys(run, moment), width, "   "),
        *_rules(run, moment, width),
    )


def run_keys(run: RunProgress, moment: Moment) -> list[Cell]:
    """The keys that steer the run, with what each does now; none that is refused."""
    stopping = run.state is RunState.STOPPING
    paused = moment.paused and not stopping
    keys = [
        ("run.resume", "R", "resume", "resume: start moves again") if paused else None,
        ("run.pause", "P", "pause_run", "pause: start no moves until resumed")
        if not paused
        else None,
        ("run.stop", "X", "stop_run", "abort: cancel in-flight moves")
        if stopping
        else ("run.stop", "X", "stop_run", f"stop: {_after_stop(run)}"),
        ("run.throttle", "T", "throttle", "throttle"),
    ]
    return [
        (Span(f"[{moment.keys.get(name, key).partition(',')[0]}]", Role.STRONG), Span(f" {words}"))
        for name, key, action, words in filter(None, keys)
        if refusal(action, moment) is None
    ]


def _after_stop(run: RunProgress) -> str:
    """`end after 1 move in flight, 2 are not started`; `end now, 2 moves are not started`."""
    flying, waiting = run.count(MoveState.ISSUED), run.count(MoveState.PLANNED)
    after = f"after {count_text(flying, 'move')} in flight" if flying else "now"
    if not waiting:
        return f"end {after}"
    left = f"{waiting:,}" if flying else count_text(waiting, "move")
    return f"end {after}, {left} {'is' if waiting == 1 else 'are'} not started"


def _checked(run: RunProgress, moment: Moment) -> list[Cell]:
    """How old the gauges are; while a run is being stopped, nothing is checked."""
    if run.health is None:
        return []
    age_s = max(0, moment.view.at_ms - run.health.at_ms) // 1000
    return [cell(f"cluster checked {ticking(age_s)} ago", Role.MUTED)]


def _gauges(run: RunProgress, moment: Moment, width: int) -> tuple[Cell, ...]:
    """What stop rules watch, with their limits; none before the first check."""
    if run.health is None:
        return ()
    lag = moment.view.lag
    lag = lag if lag is not None and lag.run_id == run.run_id else None
    return gauge_lines(gauges_of(run.health, lag, moment.stop_rules), width)


def _rules(run: RunProgress, moment: Moment, width: int) -> tuple[Cell, ...]:
    """The rules that have no gauge, or all of them before the first check."""
    if run.health is None:
        lines = armed(moment.stop_rules)
        return tuple(line for one in lines for line in _wrapped(one, width, Role.PLAIN))
    words = "; ".join(armed(moment.stop_rules, GAUGED))
    return _wrapped(f"also {words}" if words else "", width, Role.PLAIN)


def _past_lines(run: RunProgress, took_s: float, width: int) -> tuple[Cell, ...]:
    took = [] if run.state in ACTIVE else [_took(took_s)]
    items = [*_counts(run), *_bytes(run), *took, *_timing(run)]
    return (*flow(items, width), *_reason(run, width))


def _interrupted_lines(lost: PastRun, moment: Moment, width: int) -> tuple[Cell, ...]:
    """What is left of an interrupted run, and what can be done about it."""
    left = " It left settings on the cluster." if lost.left_set else ""
    words = f"plimsoll ended during this run.{left} {_resume_or_back(moment)}"
    return _wrapped(words, width, Role.UNDER)


def _remedy(run: RunProgress, moment: Moment, width: int) -> tuple[Cell, ...]:
    """What to do about a run that ended before all of its moves were made."""
    words = ""
    if run.state is RunState.REFUSED:
        words = "Nothing was changed. Once that is settled, approve the plan again."
    elif run.state is RunState.FAILED or refusal("resume", moment) is None:
        words = _resume_or_back(moment)
    return _wrapped(words, width, Role.UNDER)


def _resume_or_back(moment: Moment) -> str:
    """What can be done about a run that did not finish, and by which keys."""
    resume, back = (
        moment.keys.get(name, key).partition(",")[0]
        for name, key in (("run.resume", "R"), ("run.rollback", "B"))
    )
    if reason := refusal("resume", moment) or refusal("roll_back", moment):
        return f"It can be resumed or rolled back; not now: {reason}."
    return (
        f"Resume it ({resume}) or roll it back ({back}); both first check the state of its moves."
    )


def _counts(run: RunProgress) -> list[Cell]:
    items = [
        cell(
            RUN_TEXT.get(run.state, run.state.value).upper(), RUN_ROLES.get(run.state, Role.STRONG)
        ),
        cell(f"{run.count(MoveState.DONE)} of {count_text(len(run.moves), 'move')}"),
    ]
    for state, words in (
        (MoveState.ISSUED, "in flight"),
        (MoveState.PLANNED, "waiting"),
        (MoveState.DROPPED, "skipped"),
        (MoveState.STUCK, "stuck"),
    ):
        if count := run.count(state):
            items.append(cell(f"{count:,} {words}", MOVE_ROLES[state]))
    return items


def _bytes(run: RunProgress) -> list[Cell]:
    total, copied = bytes_total(run), bytes_copied(run)
    planned = bytes_text(total)
    if copied > total:  # Partitions grow while they are copied.
        return [cell(f"{bytes_text(copied)} copied, {planned} planned")]
    return [cell(f"{bytes_text(copied)} of {planned} copied")] if total else []


def _speed(run: RunProgress, moment: Moment) -> list[Cell]:
    view, items = moment.view, []
    if rate := rate_now(run, view.at_ms):
        items.append(cell(rate_text(rate)))
    # Nobody knows how long a pause lasts, and what waits in a stop never begins.
    if run.left_s is not None and run.state is RunState.RUNNING:
        since_ms = max(0, view.at_ms - (run.left_at_ms or view.at_ms))
        words = f"about {ticking(max(0.0, run.left_s - since_ms / 1000))} left"
        # The estimate of the approval, where it was made here: a plan has one duration.
        foreseen_s = moment.approved.seconds if moment.approved is not None else run.foreseen_s
        if foreseen_s is not None:
            words += f" ({seconds_text(foreseen_s)} estimated)"
        items.append(cell(words, Role.STRONG))
    return items


def _took(seconds: float) -> Cell:
    """The duration of a run, pauses included."""
    return cell(f"took {seconds_text(max(0.0, seconds))}")


def _timing(run: RunProgress) -> list[Cell]:
    ended = [m for m in run.moves if m.seconds is not None]
    items = []
    if run.preparation_s:
        items.append(cell(f"prepared in {seconds_text(run.preparation_s)}"))
    if ended:
        slowest = max(m.seconds or 0.0 for m in ended)
        items.append(cell(f"slowest move {seconds_text(slowest)}"))
    stalls = [m.stall_s[1] for m in run.moves if m.stall_s is not None]
    if stalls:
        items.append(cell(f"leaderless for at most {seconds_text(max(stalls))}"))
    return items


def balance_text(balance: Sequence[BrokerBalance]) -> list[str]:
    """`deviation in 34% → 8% planned, 8% achieved`, by dimension."""
    counted = dict.fromkeys(d for b in balance for d in b.deviation_planned)
    return [
        f"deviation {short_name(dimension)} "
        f"{_most([b.deviation_before for b in balance], dimension)} → "
        f"{_most([b.deviation_planned for b in balance], dimension)} planned, "
        f"{_most([b.deviation_achieved for b in balance], dimension)} achieved"
        for dimension in counted
    ]


def _balance(balance: Sequence[BrokerBalance]) -> list[Cell]:
    return [cell(words) for words in balance_text(balance)]


def _most(deviations: Sequence[dict[str, float]], dimension: str) -> str:
    found = [abs(of[dimension]) for of in deviations if dimension in of]
    return f"{max(found):.0%}" if found else "-"


def _reason(run: RunProgress, width: int) -> tuple[Cell, ...]:
    words = f"reason: {run.reason}" if run.reason else ""
    return _wrapped(words, width, Role.UNDER)


def _wrapped(words: str, width: int, role: Role) -> tuple[Cell, ...]:
    lines = textwrap.wrap(words, max(20, width))
    if len(lines) > REASON_LINES:
        rest = " ".join(lines[REASON_LINES - 1 :])
        lines = [*lines[: REASON_LINES - 1], shorten_words(rest, max(20, width))]
    return tuple(cell(line, role) for line in lines)


# ---- moves


def moves_table(shown: RunShown, width: int, wish: Wish) -> Table:
    """The moves of a run: those that need attention first, finished ones last."""
    moves = () if shown.run is None else shown.run.moves
    ordered = sorted(moves, key=lambda m: ORDER.index(m.state))
    found = selected(ordered, wish, words=_words, keys=_keys(shown.at_ms))
    drawn = found[:MOVES_SHOWN]
    columns = _columns(drawn, width)
    return Table(
        columns=marked(columns, wish),
        rows=LazyRows(
            [str(m.move.id) for m in drawn], lambda at: _row(drawn[at], columns, shown.at_ms)
        ),
        why_empty=no_match(wish) if moves else NO_RUN,
        note=left_out(len(drawn), len(found), len(moves), "move"),
    )


def _words(item: MoveProgress) -> str:
    """What a filter matches."""
    reason = item.note or reason_of(item.move)
    return f"{item.move.id} {change_text(item.move)} {_state(item)} {reason}"


def _state(item: MoveProgress) -> str:
    return MOVE_TEXT.get(item.state, item.state.value)


def _keys(at_ms: int) -> dict[str, SortKey[MoveProgress]]:
    """What each column is sorted by."""
    return {
        "partition": by_text(lambda item: f"{item.move.topic}-{item.move.partition:09}"),
        "brokers": by_text(lambda item: change_text(item.move)),
        "state": by_text(_state),
        "done": by_number(lambda item: None if item.state in LEFT else move_share(item)),
        "bytes": by_number(lambda item: item.move.bytes_to_copy),
        "rate": by_number(lambda item: rate_of_move(item, at_ms)),
        "time": by_number(lambda item: _seconds(item, at_ms)),
        "stall": by_number(lambda item: item.stall_s[1] if item.stall_s else None),
        "reason": by_text(lambda item: item.note or reason_of(item.move)),
    }


def _columns(moves: Sequence[MoveProgress], width: int) -> tuple[Column, ...]:
    """Fit the brokers, limit the partitions, give the rest to the reason.

    Enter shows what has no room; a table that has to be scrolled hides more than that.
    """
    if width >= ROOMY:
        middle = [
            Column("brokers", "change", 15),
            Column("state", "state", 8),
            Column("done", "copied", BAR + 6),
            Column("bytes", "   to copy", 10),
            Column("rate", "       rate", 12),
            Column("time", "    elapsed", 12),
        ]
        if any(m.stall_s is not None for m in moves):
            middle.append(Column("stall", "no leader", 10))
    elif width >= WITH_REASON:
        middle = [
            Column("brokers", "change", 13),
            Column("state", "state", 8),
            Column("done", "copied", 7),
            Column("bytes", "   to copy", 10),
            Column("time", "    elapsed", 12),
        ]
    else:
        middle = [
            Column("brokers", "change", 13),
            Column("state", "state", 8),
            Column("done", "copied", 7),
            Column("bytes", "   to copy", 10),
        ]
    needed = max((len(change_text(m.move)) for m in moves), default=0) + 1
    middle[0] = middle[0]._replace(width=max(middle[0].width, needed))
    longest = max((len(str(m.move.id)) for m in moves), default=0)
    name_width = max(len("partition"), longest) + 1
    first = Column("partition", "partition", min(name_width, max(16, width // 4)))
    for key in OMITTED:
        if first.width + sum(c.width for c in middle) > width:
            middle = [c for c in middle if c.key != key]
    left = width - first.width - sum(c.width for c in middle)
    if left >= REASON_LEAST:
        return (first, *middle, Column("reason", "reason", left))
    middle[0] = middle[0]._replace(width=middle[0].width + min(0, left))
    return (first, *middle)


def _row(item: MoveProgress, columns: tuple[Column, ...], at_ms: int) -> Row:
    width = {c.key: c.width for c in columns}
    partition, full = named(str(item.move.id), width["partition"] - 1)
    cells = {
        "partition": partition,
        "brokers": cell(shorten_words(change_text(item.move), width["brokers"] - 1)),
        "state": cell(_state(item), MOVE_ROLES[item.state]),
        "done": _done(item, width["done"]),
        "bytes": right(bytes_text(item.move.bytes_to_copy), width.get("bytes", 0)),
        "time": right(_time(item, at_ms), width.get("time", 0)),
        "reason": _move_reason(item, width.get("reason", 0)),
    }
    if "rate" in width:
        rate = rate_of_move(item, at_ms)
        cells["rate"] = right("-" if rate is None else rate_text(rate), width["rate"])
    if "stall" in width:
        cells["stall"] = right(_stall(item), width["stall"])
    return Row(key=str(item.move.id), cells=tuple(cells[c.key] for c in columns), full=full)


def _done(item: MoveProgress, width: int) -> Cell:
    """A bar and the share; a dash if the move was skipped or is stuck."""
    if item.state in LEFT:
        return cell("-".rjust(width - 1))
    if item.move.bytes_to_copy == 0 and item.state is not MoveState.DONE:
        return cell("")
    share = move_share(item)
    number = f"{share:.0%}".rjust(4)
    if width <= BAR:
        return right(number, width)
    drawn = bar(share, BAR, MOVE_ROLES[item.state])
    return (*drawn, Span(f" {number}"))


def _move_reason(item: MoveProgress, width: int) -> Cell:
    if item.note:
        return cell(shorten_words(item.note, width), Role.UNDER)
    return cell(brief_reason(item.move, width))


def _stall(item: MoveProgress) -> str:
    return "-" if item.stall_s is None else seconds_text(item.stall_s[1])


def _time(item: MoveProgress, at_ms: int) -> str:
    """How long the move took, or has taken so far."""
    seconds = _seconds(item, at_ms)
    if seconds is None:
        return "-"
    return seconds_text(seconds) if item.seconds is not None else ticking(seconds)


def _seconds(item: MoveProgress, at_ms: int) -> float | None:
    """How long the move took, or whole seconds so far; None where it has not begun."""
    if item.seconds is not None:
        return item.seconds
    if item.state is not MoveState.ISSUED or item.issued_at_ms is None:
        return None
    return max(0, at_ms - item.issued_at_ms) // 1000
