"""The smoothed dual over known configurations, and its ascent by L-BFGS.

D_T(pi) = sum_bd -(pi^2 / 4 w + pi) + sum_p -T log sum_i exp(-cost_pi(pi) / T)

A row's softmin over its configurations is smooth and below its minimum; as T falls, the
maximiser converges to the dual prices of the relaxation (Nesterov, 2005). Few rows are
near a change, so an evaluation involves few configurations. L-BFGS: Nocedal, 1980.
"""

from typing import NamedTuple

import numpy as np

from solver.kernels.arithmetic import exponential, logarithm
from solver.kernels.compiled import Array, by_reference, compiled, linked
from solver.kernels.pricing import change_cost
from solver.kernels.problem_arrays import Columns
from solver.kernels.relaxation import NONE, Masses


@by_reference
class Options(NamedTuple):
    """Configurations of the rows that may be split, row after row."""

    start: Array
    """(rows + 1,) first configuration of each row."""
    node: Array
    """(options,) the node of the masses."""
    broker: Array
    """(options, M) brokers, leader first; -1 fills."""
    load: Array
    """(options, M, K) load on each of them, as a share of that broker's mean."""
    cost: Array
    """(options,) cost of the change."""


def list_options(c: Columns, m: Masses, rows: Array) -> Options:
    """List the configurations of `rows`, (rows,), with their loads, and costs in units of F.

    A row without nodes, whole at home, has none; leave such rows out for `ascend`.
    """
    count, most, dims = _count_options(m, rows), c.home.shape[1], c.lead.shape[1]
    record = Options(
        start=np.zeros(len(rows) + 1, np.int64),
        node=np.zeros(count, np.int64),
        broker=np.full((count, most), -1, np.int64),
        load=np.zeros((count, most, dims)),
        cost=np.zeros(count),
    )
    options = linked(record)
    _fill_options(c, m, rows, options)
    return options


@compiled
def _count_options(m: Masses, rows: Array) -> int:
    found = 0
    for i in range(len(rows)):
        node = m.head[rows[i]]
        while node != NONE:
            found += 1
            node = m.next[node]
    return found


@compiled
def _fill_options(c: Columns, m: Masses, rows: Array, o: Options) -> None:
    at = 0
    for i in range(len(rows)):
        p = rows[i]
        o.start[i] = at
        node = m.head[p]
        while node != NONE:
            o.node[at] = node
            for k in range(c.rf[p]):
                b = m.at[node, k]
                o.broker[at, k] = b
                for d in range(c.lead.shape[1]):
                    a = c.lead[p, d] if k == 0 else c.follow[p, d]
                    o.load[at, k, d] = a * c.scale[b, d]
            o.cost[at] = change_cost(c, p, m.at[node])
            at += 1
            node = m.next[node]
    o.start[len(rows)] = at


@compiled
def smooth_dual(
    c: Columns, o: Options, unsplit: Array, t: float, pi: Array, grad: Array, mass: Array
) -> float:
    """Compute the smoothed dual at prices pi, (B, K), negated, in units of F.

    `unsplit` is (B, K): loads of all rows that are not listed, as shares of the mean, and t
    > 0 the temperature in units of F. Fills `grad`, (B, K), with the negated gradient, 0 on
    brokers that are not balanced, and `mass`, (options,), with each option's share of its row.
    """
    brokers, dims = pi.shape
    total = 0.0
    for b in range(brokers):
        for d in range(dims):
            x = pi[b, d]
            if c.holding[b]:
                total -= x * x / (4.0 * c.weight[d]) + x
                total += x * unsplit[b, d]
                grad[b, d] = -x / (2.0 * c.weight[d]) - 1.0 + unsplit[b, d]
            else:
                grad[b, d] = 0.0
    for i in range(len(o.start) - 1):
        first, end = o.start[i], o.start[i + 1]
        least = np.inf
        for z in range(first, end):
            cost = o.cost[z]
            for k in range(o.broker.shape[1]):
                b = o.broker[z, k]
                if b >= 0:
                    for d in range(dims):
                        cost += o.load[z, k, d] * pi[b, d]
            mass[z] = cost
            least = min(least, cost)
        weight = 0.0
        for z in range(first, end):
            mass[z] = exponential((least - mass[z]) / t)
            weight += mass[z]
        total += least - t * logarithm(weight)
        for z in range(first, end):
            mass[z] /= weight
            if mass[z] > 1e-15:
                for k in range(o.broker.shape[1]):
                    b = o.broker[z, k]
                    if b >= 0:
                        for d in range(dims):
                            grad[b, d] += mass[z] * o.load[z, k, d]
    for b in range(brokers):
        for d in range(dims):
            grad[b, d] = -grad[b, d] if c.holding[b] else 0.0
    return -total


@compiled
def _dot(x: Array, y: Array) -> float:
    total = 0.0
    for b in range(x.shape[0]):
        for d in range(x.shape[1]):
            total += x[b, d] * y[b, d]
    return total


@compiled
def _put(x: Array, factor: float, y: Array) -> None:
    """Fill x with y times a factor.

    A loop here and in `_add`: array expressions take four times as long to compile.
    """
    for b in range(x.shape[0]):
        for d in range(x.shape[1]):
            x[b, d] = factor * y[b, d]


@compiled
def _add(x: Array, factor: float, y: Array) -> None:
    """Add y times a factor to x."""
    for b in range(x.shape[0]):
        for d in range(x.shape[1]):
            x[b, d] += factor * y[b, d]


@compiled
def ascend(
    c: Columns,
    o: Options,
    unsplit: Array,
    t: float,
    pi: Array,
    mass: Array,
    most: int,
    small: float,
) -> int:
    """Maximise the smoothed dual over pi, (B, K), in place; return the evaluations.

    Other arguments as in `smooth_dual`; `mass` is filled with the shares at the final prices.
    Ends when the squared gradient, weighted as in F, is at most `small`, after about `most`
    evaluations, or where no step along the direction gains.
    """
    brokers, dims = pi.shape
    memory = 20
    ss = np.zeros((memory, brokers, dims))
    ys = np.zeros((memory, brokers, dims))
    rho = np.zeros(memory)
    alpha = np.zeros(memory)
    grad = np.zeros((brokers, dims))
    new_grad = np.zeros((brokers, dims))
    step = np.zeros((brokers, dims))
    trial = np.zeros((brokers, dims))
    value = smooth_dual(c, o, unsplit, t, pi, grad, mass)
    made, kept, evaluations = 0, 0, 1
    while evaluations < most:
        norm = 0.0
        for b in range(brokers):
            for d in range(dims):
                norm += c.weight[d] * grad[b, d] * grad[b, d]
        if norm <= small:
            break
        _put(step, 1.0, grad)
        for i in range(kept):
            j = (made - 1 - i) % memory
            alpha[j] = rho[j] * _dot(ss[j], step)
            _add(step, -alpha[j], ys[j])
        if kept > 0:
            j = (made - 1) % memory
            _put(step, 1.0 / (rho[j] * _dot(ys[j], ys[j])), step)
        else:
            for d in range(dims):
                for b in range(brokers):
                    step[b, d] *= 0.02 * c.weight[d]
        for i in range(kept - 1, -1, -1):
            j = (made - 1 - i) % memory
            beta = rho[j] * _dot(ys[j], step)
            _add(step, alpha[j] - beta, ss[j])
        slope = _dot(grad, step)
        if slope <= 0.0:
            kept = 0
            made = 0
            if norm <= small * 1e-6:
                break
            _put(step, 1.0, grad)
            slope = _dot(grad, step)
        size = 1.0
        for _ in range(30):
            _put(trial, 1.0, pi)
            _add(trial, -size, step)
            found = smooth_dual(c, o, unsplit, t, trial, new_grad, mass)
            evaluations += 1
            if found <= value - 1e-4 * size * slope:
                break
            size *= 0.4
        else:
            break
        j = made % memory
        _put(ss[j], -size, step)
        _put(ys[j], 1.0, new_grad)
        _add(ys[j], -1.0, grad)
        curved = _dot(ss[j], ys[j])
        if curved > 0.0:
            rho[j] = 1.0 / curved
            made += 1
            kept = min(kept + 1, memory)
        _put(pi, 1.0, trial)
        _put(grad, 1.0, new_grad)
        value = found
    smooth_dual(c, o, unsplit, t, pi, grad, mass)
    return evaluations
