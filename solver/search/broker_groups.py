"""The relaxation of groups of similar brokers, from which that of single brokers starts.

With a thousand brokers, every row is priced on every broker in each sweep, and many sweeps are
needed. Brokers that differ little initially get nearly the same dual prices, so they are taken as
one: some sixty groups take a tenth of the work. What the relaxation moves into a group is then
spread over its brokers.

In group g, n brokers deviate by the same v, and u = sqrt(n) v is its only deviation: then u^2 is
what the group's brokers have in F.
"""

from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.compiled import changed
from solver.kernels.problem_arrays import Columns
from solver.kernels.relaxation import NONE, Masses, new_masses
from solver.kernels.smoothing import list_options
from solver.search.budget_prices import price_budgets
from solver.search.dual import Relaxation, prove_bound, solve_relaxation, warm_up

GROUPS: Final = 60
"""Most groups of brokers, unless there are more classes."""

MOST_CLASSES: Final = 30
"""Classes of brokers up to which groups are formed."""

LEAST_BROKERS: Final = 300
"""Brokers from which on groups are formed."""

GROUP_SWEEPS: Final = 10
"""Sweeps over all rows with groups of brokers."""

BROKER_SWEEPS: Final = 4
"""Sweeps with single brokers afterwards."""

LEAST_MASS: Final = 1e-3
"""Share of a row below which what is moved into a group stays at home instead."""

WORK_PER_PART: Final = 1e-5
"""Work units for finding the broker of one row's mass in a group; measured."""


def find_groups(c: Columns, v: Floats) -> Ints | None:
    """Return (B,) the group of each broker; None where no groups are to be formed.

    `v`, (B, K), are the initial deviations. Brokers of one group have the same scale, and may
    hold and lead the same rows. Where there are few classes of such brokers, the class that
    deviates most within itself is halved next, at the deviation that leaves least variance.
    """
    if len(c.scale) < LEAST_BROKERS or c.home.shape[1] > 1 or (c.home < 0).any():
        return None
    if (c.scale[c.holding] <= 0.0).any():
        return None
    alike = np.hstack([c.scale, c.holding[:, None], c.allow.T, c.may_lead.T]).astype(np.float64)
    _, group = np.unique(alike, axis=0, return_inverse=True)
    group = group.reshape(-1).astype(np.int64)
    count = int(group.max()) + 1
    if count > MOST_CLASSES:
        return None
    cuts = {g: _best_cut(np.flatnonzero(group == g), v) for g in range(count)}
    while count < GROUPS:
        widest = max(cuts, key=lambda g: cuts[g][0])
        if cuts[widest][0] <= 0.0:
            break
        group[cuts[widest][1]] = count
        for g in (widest, count):
            cuts[g] = _best_cut(np.flatnonzero(group == g), v)
        count += 1
    return group


def _best_cut(members: Ints, v: Floats) -> tuple[float, Ints]:
    """The variance of some brokers less that of two parts of them, and the second part."""
    best, part = 0.0, members[:0]
    for d in range(v.shape[1]):
        order = members[np.argsort(v[members, d], kind="stable")]
        x = v[order, d]
        n, total = np.arange(1, len(x)), np.cumsum(x)
        if not len(n):
            continue
        left, right = total[:-1], total[-1] - total[:-1]
        gain = left * left / n + right * right / (len(x) - n) - total[-1] * total[-1] / len(x)
        at = int(np.argmax(gain))
        if gain[at] > best + 1e-12:
            best, part = float(gain[at]), order[at + 1 :]
    return best, part


def of_groups(c: Columns, group: Ints) -> Columns:
    """Return the columns with groups of brokers, (B,) each one's, in place of brokers.

    Rows may return to brokers of a group: that a single broker is barred is left out.
    """
    count = np.bincount(group)
    first = np.unique(group, return_index=True)[1]
    none = np.zeros(len(c.home) + 1, np.int64)
    return changed(
        c,
        home=group[c.home],
        scale=c.scale[first] / np.sqrt(count)[:, None],
        allow=c.allow[:, first],
        may_lead=c.may_lead[:, first],
        rack=c.rack[first],
        holding=c.holding[first],
        barred_start=none,
        barred=none[:0],
        barred_leader_start=none,
        barred_leader=none[:0],
    )


def deviations_of_groups(c: Columns, group: Ints, v: Floats) -> Floats:
    """Return (G, K) deviations u of groups, from those of brokers, (B, K)."""
    count = np.bincount(group)
    total = np.stack([np.bincount(group, v[:, d], len(count)) for d in range(v.shape[1])], axis=1)
    return total / np.sqrt(count)[:, None]


class Groups:
    """The relaxation of groups of brokers, beside that of single brokers."""

    def __init__(self, r: Relaxation, home: Floats, group: Ints, seed: int) -> None:
        self.single, self.home, self.group = r, home, group
        u = deviations_of_groups(r.columns, group, home)
        self.relaxation = Relaxation(of_groups(r.columns, group), u, seed, r.stops)
        self.relaxation.mean = np.sqrt(np.bincount(group)).astype(np.float64)

    @classmethod
    def of(cls, r: Relaxation, home: Floats, seed: int) -> "Groups | None":
        """Form groups; None where there are to be none.

        `home`, (B, K), are the deviations with all rows at home.
        """
        group = find_groups(r.columns, home)
        return None if group is None else cls(r, home, group, seed)

    def warm_up(self, objective: float, work: float) -> None:
        """Warm up within about `work` work units, and spread moved partitions over brokers.

        Charges for budgets that are exceeded; `objective` is F of the placement without changes.
        """
        before = self.relaxation.work
        warm_up(self.relaxation, work, GROUP_SWEEPS)
        price_budgets(self.relaxation, objective, before + work - self.relaxation.work)
        self.single.charge(self.relaxation.budget_prices)
        self._spread(before)

    def solve(self, work: float) -> None:
        """Find prices within about `work` work units, and the bound that they prove.

        Brokers of one group get equal prices. Partitions that move are spread over them again.
        """
        before, r = self.relaxation.work, self.single
        solve_relaxation(self.relaxation, work)
        r.start = (self.relaxation.prices / self.relaxation.mean[:, None])[self.group]
        prove_bound(r, r.start)
        self._spread(before)

    def _spread(self, before: float) -> None:
        r = self.single
        r.masses, r.v = _spread(r, self.relaxation, self.group, self.home)
        r.work += self.relaxation.work - before


def _spread(r: Relaxation, among: Relaxation, group: Ints, home: Floats) -> tuple[Masses, Floats]:
    """Masses and deviations, (B, K), of single brokers from those of groups.

    What stays in the group of a row's home stays at home. The rest goes to the brokers where F
    rises least, the largest first.
    """
    c, v = r.columns, home.copy()
    masses = new_masses(c, len(r.masses.mass))
    row, to, mass = _moved(among)
    away: Floats = np.bincount(row, mass, len(c.home)).astype(np.float64)
    at = c.home[:, 0]
    for d in range(v.shape[1]):
        v[:, d] -= np.bincount(at, away * c.lead[:, d], len(v)) * c.scale[:, d]
    members = [np.flatnonzero(group == g) for g in range(int(group.max()) + 1)]
    order = np.argsort(-mass * c.lead[row].max(axis=1, initial=0.0), kind="stable")
    broker = np.zeros(len(row), np.int64)
    for i in order.tolist():
        p, among_those = int(row[i]), members[to[i]]
        step = mass[i] * c.lead[p] * c.scale[among_those]
        rise = ((2.0 * v[among_those] + step) * step * c.weight).sum(axis=1)
        ruled_out = c.barred[c.barred_start[p] : c.barred_start[p + 1]].tolist()
        for b in [*ruled_out, int(at[p])] if c.forced[p] else ruled_out:
            rise[among_those == b] = np.inf
        k = int(rise.argmin())
        broker[i] = among_those[k]
        v[broker[i]] += step[k]
    r.work += len(row) * WORK_PER_PART
    _store(masses, c, row, broker, mass, away)
    return masses, v


def _moved(among: Relaxation) -> tuple[Ints, Ints, Floats]:
    """Rows, groups and masses of what is moved to another group; rows in ascending order."""
    c, m = among.columns, among.masses
    split = among.rows[m.head[among.rows] >= 0]
    options = list_options(c, m, split)
    row = np.repeat(split, np.diff(options.start))
    to, mass = options.broker[:, 0], m.mass[options.node]
    forced = c.forced[row]
    kept = (forced & (mass > 0.0)) | ((mass > LEAST_MASS) & (to != c.home[row, 0]))
    return row[kept], to[kept], np.minimum(mass[kept], 1.0)


def _store(m: Masses, c: Columns, row: Ints, broker: Ints, mass: Floats, away: Floats) -> None:
    """Fill empty masses with those of rows on brokers, and with what is left at home."""
    left = np.flatnonzero((away > 0.0) & (away < 1.0) & ~c.forced)
    rows = np.concatenate([row, left])
    order = np.argsort(rows, kind="stable")
    rows, count = rows[order], len(rows)
    m.at[:count, 0] = np.concatenate([broker, c.home[left, 0]])[order]
    m.mass[:count] = np.concatenate([mass, 1.0 - away[left]])[order]
    last = np.append(rows[1:] != rows[:-1], True)[:count]
    m.next[:count] = np.where(last, NONE, np.arange(1, count + 1))
    first = np.flatnonzero(np.append(True, last[:-1])[:count])
    m.head[rows[first]] = first
    m.unused[0] = count
