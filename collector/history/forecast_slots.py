"""Add the coming hours that a plan must balance to snapshots, as slots: few, and different ones."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np

from collector.history.history_settings import Horizon
from collector.history.hours import HOUR_MS
from collector.history.slots import DAY, WEEK, Calendar, Floats, Ints
from collector.history.weekly_forecast import WeeklyForecast, read_weekly_forecast
from model.ids import TopicName
from model.snapshot.checks import MOST_SLOTS
from model.snapshot.forecast import LoadForecast, SlotReason
from model.snapshot.snapshot import Resource, Snapshot
from model.units import count_text, percent_text

LEAST_DAYS: Final = {Horizon.DAY: 3, Horizon.WEEK: 8}
"""Days of history that suffice: two to learn from, or a week, and one held back."""
MOST_AGE_DAYS: Final = 7
"""A forecast from older history is not used."""
MORE: Final = 1.1
"""A peak that is not so many times what flows now changes no plan."""
LEAST_APART: Final = 0.1
"""Hours that differ by less of their load are alike: a plan for one suits both."""
_HOURS: Final = {Horizon.DAY: DAY, Horizon.WEEK: WEEK}
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FILE: Final = "outlook.parquet"
_log = logging.getLogger("plimsoll.collector")


@dataclass(frozen=True, slots=True)
class SelectedHour:
    """A selected forecast hour, and the reason for it."""

    at: int
    why: str
    topic: str | None
    """In which most of the difference lies, where that is why."""


@dataclass(frozen=True, slots=True)
class UpcomingSlots:
    """The forecast hours selected at one hour, for all snapshots until the next."""

    forecast: LoadForecast
    """Of no partitions yet."""
    week: tuple[int, ...]
    """Hour of the week of each slot."""


class SlotForecaster:
    """Adds slots to snapshots, from the newest forecast.

    Which slots is decided once an hour. One thread uses `add`.
    """

    def __init__(self, horizon: Horizon, clock: Callable[[], float]) -> None:
        self._horizon, self._clock = horizon, clock
        self.forecast: WeeklyForecast | None = None
        """The forecast in use; None until one has been computed or loaded."""
        self._chosen: tuple[object, UpcomingSlots] | None = None

    def recall(self, folder: Path) -> None:
        """Load the forecast kept in a cluster's folder, if there is one."""
        self.forecast = read_weekly_forecast(folder / _FILE)

    def learn(self, forecast: WeeklyForecast, folder: Path) -> None:
        """Use this forecast from now on, and write it to the cluster's folder.

        A failure to write is reported in the log.
        """
        self.forecast = forecast
        try:
            forecast.write(folder / _FILE)
        except OSError as exc:
            _log.warning("the forecast cannot be written to %s: %s", folder, exc)

    def add(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with slots and their loads, or with the reason for none.

        Unchanged without a forecast and with the horizon `off`.
        """
        forecast = self.forecast
        if forecast is None or self._horizon is Horizon.OFF:
            return snapshot
        hour = int(1000 * self._clock()) // HOUR_MS
        key = id(forecast), hour, snapshot.header.resources
        if self._chosen is None or self._chosen[0] != key:
            found = coming(forecast, hour, self._horizon, snapshot.header.resources)
            self._chosen = key, found
        return with_slots(snapshot, forecast, self._chosen[1])


def coming(
    forecast: WeeklyForecast, hour: int, horizon: Horizon, resources: Sequence[Resource]
) -> UpcomingSlots:
    """Select at most seven slots within the horizon, with a reason for each.

    hour: the current one, in hours since the epoch. No slots, but a reason, where
    history is too short, too inaccurate, or like now.
    """
    accuracy = forecast.accuracy(resources)
    unused = _too_little(forecast, hour, horizon) or _too_far_off(accuracy)
    if unused:
        return UpcomingSlots(accuracy.model_copy(update={"unused": unused}), ())
    calendar = Calendar.of(hour, _HOURS[horizon], ZoneInfo(forecast.zone))
    week, first = _once(calendar.week)
    loads = {str(r): forecast.by_topic(r)[:, week] for r in resources if forecast.knows(r)}
    names = [name_of(number) for number in week[1:].tolist()]
    chosen = choose(loads, forecast.topics, names)
    if not chosen:
        unused = f"every hour of the coming {horizon} is like now"
        return UpcomingSlots(accuracy.model_copy(update={"unused": unused}), ())
    slots = tuple(
        SlotReason(
            name=names[c.at],
            begins_ms=(hour + int(first[1 + c.at])) * HOUR_MS,
            why=c.why,
            topic=TopicName(c.topic) if c.topic is not None else None,
        )
        for c in chosen
    )
    picked = tuple(int(week[1 + c.at]) for c in chosen)
    return UpcomingSlots(accuracy.model_copy(update={"slots": slots}), picked)


def with_slots(snapshot: Snapshot, forecast: WeeklyForecast, found: UpcomingSlots) -> Snapshot:
    """Return the snapshot with forecast loads at these slots.

    What is not forecast stays as it is now: sizes, and partitions with too little
    history, which are counted.
    """
    columns, header = snapshot.partitions, snapshot.header
    at = forecast.rows(snapshot)
    slot_loads = np.repeat(columns.loads[:, None, :], len(found.week), axis=1)
    known = np.zeros(len(snapshot), np.bool_)
    for number, resource in enumerate(header.resources):
        if forecast.knows(resource):
            ahead = forecast.loads(resource, at, found.week)
            known |= ~np.isnan(ahead).all(axis=1)
            now = slot_loads[:, :, number]
            slot_loads[:, :, number] = np.where(np.isnan(ahead), now, ahead)
    counts = {"partitions": len(snapshot), "as_now": int((~known).sum())}
    update = {
        "slots": tuple(s.name for s in found.forecast.slots),
        "forecast": found.forecast.model_copy(update=counts),
    }
    return Snapshot(
        header.model_copy(update=update),
        replace(columns, slot_loads=slot_loads) if found.week else columns,
    )


def name_of(week: int) -> str:
    """Return the name of an hour of the week, 0 to 167: `tue-14` for 38."""
    return f"{_DAYS[week // DAY]}-{week % DAY:02d}"


def choose(
    loads: Mapping[str, Floats], topics: Sequence[str], names: Sequence[str]
) -> tuple[SelectedHour, ...]:
    """Select at most seven hours besides now, in the order of time.

    First the peak of each resource, where it stands out; then, one after the other,
    the hour that is farthest from now and from all that were chosen.

    loads: by resource, (topics, 1 + a): now, and each of the a forecast hours. topics, names:
    of the rows, and of the columns after the first.
    """
    resources = {r: v for r, v in loads.items() if v.sum() > 0}
    if not resources:
        return ()
    hours = _Hours(resources, topics, ("now", *names))
    found: dict[int, tuple[str, str | None]] = {**hours.peaks()}
    while len(found) < MOST_SLOTS:
        at, apart = hours.farthest([0, *found])
        if apart < LEAST_APART:
            break
        found[at] = hours.difference(at, [0, *found])
    return tuple(SelectedHour(at - 1, *found[at]) for at in sorted(found))


class _Hours:
    """How far hours lie apart: the share of their load that is in other topics.

    An hour in which little flows counts less: by its load over that of the peak. All
    loads times two is no difference, since a balanced cluster stays balanced; the
    peak is chosen for the sake of capacities.
    """

    def __init__(
        self, loads: Mapping[str, Floats], topics: Sequence[str], names: Sequence[str]
    ) -> None:
        self._loads, self._topics, self._names = loads, topics, names
        self._totals = {r: v.sum(axis=0) for r, v in loads.items()}
        self._weight = {r: t / t.max() for r, t in self._totals.items()}
        self._mix = {
            r: v / np.where(self._totals[r] > 0, self._totals[r], 1.0) for r, v in loads.items()
        }

    def peaks(self) -> dict[int, tuple[str, None]]:
        """Why, by column."""
        found: dict[int, list[str]] = {}
        for resource, totals in self._totals.items():
            at = int(np.argmax(totals))
            if totals[at] > MORE * totals[0]:
                times = f", {totals[at] / totals[0]:.1f} x now's" if totals[0] > 0 else ""
                found.setdefault(at, []).append(f"the most {resource}{times}")
        return {at: ("; ".join(words), None) for at, words in found.items()}

    def farthest(self, chosen: Sequence[int]) -> tuple[int, float]:
        """The column whose nearest among those chosen is farthest, and how far."""
        apart = np.min([self._apart(at) for at in chosen], axis=0)
        # Rounded, so that the last bits of sums choose nothing; then the earliest.
        at = int(np.argmax(np.round(apart, 9)))
        return at, float(apart[at])

    def difference(self, at: int, chosen: Sequence[int]) -> tuple[str, str]:
        """In words, from the nearest of those chosen, and by which topic most."""
        nearest = min(chosen, key=lambda c: (round(float(self._apart(c)[at]), 9), c))
        moved = sum(mix[:, at] - mix[:, nearest] for mix in self._mix.values())
        topic = self._topics[int(np.argmax(moved))]
        share = percent_text(float(self._apart(nearest)[at]))
        where = self._names[nearest]
        return f"{share} of the load in other topics than at {where}", topic

    def _apart(self, chosen: int) -> Floats:
        """(1 + a,) each hour's distance from one of them, 0 to 1."""
        found = [
            self._weight[r] * np.abs(mix - mix[:, [chosen]]).sum(axis=0) / 2
            for r, mix in self._mix.items()
        ]
        apart: Floats = np.mean(found, axis=0)
        return apart


def _once(week: Ints) -> tuple[Ints, Ints]:
    """Hours of the week, each where it first occurs, and the positions of these.

    When clocks are put back, one occurs twice.
    """
    _, first = np.unique(week, return_index=True)
    first.sort()
    return week[first], first


def _too_little(forecast: WeeklyForecast, hour: int, horizon: Horizon) -> str:
    """Why the history does not suffice; empty if it does."""
    least = LEAST_DAYS[horizon]
    if forecast.days < least:
        return (
            f"{forecast.days} of the {count_text(least, 'day')} of history that a look "
            f"at the coming {horizon} needs"
        )
    ended = datetime.fromisoformat(forecast.newest_day).replace(tzinfo=UTC)
    if hour * HOUR_MS / 1000 - ended.timestamp() > (1 + MOST_AGE_DAYS) * 86_400:
        return f"the newest day of history is {forecast.newest_day}"
    return ""


def _too_far_off(accuracy: LoadForecast) -> str:
    """Why such forecasts are too inaccurate; empty if they are not."""
    if not accuracy.missed:
        return "no load was known on the days held back"
    if sum(accuracy.missed.values()) >= sum(accuracy.missed_as_now.values()):
        return "on the days held back it missed no less than the last hour before them"
    return ""
