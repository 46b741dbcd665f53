"""Tensors of data-dependent size: stacks of growing lists, masks, slices, arrays of computed length; plain Python and
NumPy give the expected values."""

import numpy as np

import relay as rl
from relay import Any, Float64, Tensor, relay
from zoo import Program

SIX = np.array([1.5, -2.0, 3.25, 5.0, -0.5, 2.0])
ROWS = np.arange(12.0).reshape(4, 3) / 4.0 - 1.3


def stacked_states(x):
    states, h = [], x
    while h.sum() < 60.0:
        states.append(h)
        h = h * 1.5 + 0.25
    hs = rl.stack(states)
    return (hs * hs).mean() + hs[-1, 0] * hs[0, 1]


def stacked_twice(x):
    rows = []
    for i in range(6):
        if x[i] > 0.0:
            rows.append(x * x[i])
    columns = rl.stack(rows, axis=1)
    whole = rl.stack(rows)
    return (columns @ whole).sum() + rl.softmax(whole, axis=1)[0, 0]


def concatenated_parts(x):
    parts = []
    for i in range(6):
        if x[i] > 1.0:
            parts.append(x[:2] * x[i])
    return (rl.concatenate(parts) ** 2).sum()


def mean_of_chosen(x):
    chosen = x[x > 0.0]
    return (chosen * chosen).sum() / chosen.shape[0] + chosen[0] * chosen[-1]


def chosen_rows(rows):
    kept = rows[rows.sum(axis=1) > 0.0]
    return (kept @ kept.T).sum() + kept.mean()


def chosen_elements(rows):
    return (rows[rows > 0.1] ** 2).sum()


def cut_at_the_largest(x):
    n = rl.argmax(x)
    return (x[:n] * 2.0).sum() + (x[n:] ** 2).sum() + x[n::2].sum()


def neighbors(x):
    p = x[x > 0.0]
    return ((p[1:] - p[:-1]) ** 2).sum() + (p[::-1] * p).sum() + p[:2].sum()


def computed_length(x):
    n = int((x > 0.0).sum())
    grid = np.zeros((n, 2)) + x[0]
    places = np.arange(n).astype(x.dtype)
    return (grid * places[:, None]).sum() + (np.full((n,), 3.0) * x[1]).sum()


def grown_until(x):
    y = x[x > 0.0]
    while y.shape[0] < 20:
        y = rl.concatenate([y, y * 0.5])
    return (y * y).sum()


def grown_by_annotation(x):
    y: Tensor[Float64, (Any,)] = x
    while y.sum() < 60.0:
        y = rl.concatenate([y, x * 1.5])
    return (y * y).sum()


def grown_in_rounds(x):
    y = x[x > 0.0]
    for i in range(3):
        y = rl.concatenate([y, x * float(i)])
    return (y * y).sum()


def other_size_in_each_arm(x):
    if x.sum() > 0.0:
        y = x[x > 0.0]
    else:
        y = x
    return (y * y).sum()


def filtered_in_each_round(x):
    total = 0.0
    for i in range(5):
        y = x[x > float(i) - 2.25]
        total = total + (y * y).sum() * float(i)
    return total


def shrinking(x):
    """Each round drops the first element and all that are smaller."""
    y, total = x, 0.0
    y: Tensor[Float64, (Any,)] = y
    while y.shape[0] > 0:
        first = y[0]
        total = total + first * first * float(y.shape[0])
        rest = y[1:]
        y = rest[rest >= first - 4.0]
    return total


def ragged(x):
    lists = []
    i = 0
    while i < 3:
        lists.append(x[x > float(i) + 0.1])
        i += 1
    total = 0.0
    for part in lists:
        total += (part * part).sum() * float(part.shape[0])
    return total


def all_that_follow(x):
    def total(v):
        if v.shape[0] < 2:
            return v.sum()
        rest = v[1:]
        return total(rest[rest > v[0]]) + total(rest[rest <= v[0]]) + v[0] * v[0]

    return total(x)


def quicksort_weights(x):
    def ordered(v):
        if v.shape[0] < 2:
            return v
        rest = v[1:]
        return rl.concatenate([ordered(rest[rest < v[0]]), v[:1], ordered(rest[rest >= v[0]])])

    y = ordered(x)
    return (y * np.arange(6).astype(y.dtype)).sum()


def rows_that_are_chosen(rows):
    total = 0.0
    for row in rows[rows[:, 0] > -1.0]:
        total += (row * row).sum()
    return total


def helper(x, limit):
    return x[x > limit]


def through_functions(x):
    a, b = helper(x, 0.0), helper(x, -1.0)
    return a.sum() * b.sum() + (helper(b, 1.75) ** 2).sum()


def squares_of_equal_parts(x):
    a, b = x[x > 0.0], x[x != x[1]]
    return (a * b[:4]).sum() + rl.max(a) * rl.min(b)


def weighted_by_rank(x):
    y = rl.sort(x[x > 0.0])
    return (y * np.arange(len(y)).astype(y.dtype)).sum()


def run_lengths(x):
    """The lengths of runs of one sign, weighted."""
    sums, i = [], 0
    while i < 6:
        j = i
        while j < 6 and (x[j] > 0.0) == (x[i] > 0.0):
            j += 1
        sums.append((x[i:j] ** 2).sum())
        i = j
    return (rl.stack(sums) * np.arange(len(sums)).astype(x.dtype)).sum()


FUNCTIONS = [
    (stacked_states, (SIX[:3] ** 2,)),
    (stacked_twice, (SIX,)),
    (concatenated_parts, (SIX,)),
    (mean_of_chosen, (SIX,)),
    (chosen_rows, (ROWS,)),
    (chosen_elements, (ROWS,)),
    (cut_at_the_largest, (SIX,)),
    (neighbors, (SIX,)),
    (computed_length, (SIX,)),
    (grown_until, (SIX,)),
    (grown_by_annotation, (SIX,)),
    (grown_in_rounds, (SIX,)),
    (other_size_in_each_arm, (SIX,)),
    (other_size_in_each_arm, (-SIX,)),
    (filtered_in_each_round, (SIX,)),
    (shrinking, (SIX,)),
    (ragged, (SIX,)),
    (all_that_follow, (SIX,)),
    (quicksort_weights, (SIX,)),
    (rows_that_are_chosen, (ROWS,)),
    (through_functions, (SIX,)),
    (squares_of_equal_parts, (SIX,)),
    (run_lengths, (SIX,)),
    (weighted_by_rank, (SIX,)),
]

PROGRAMS = [Program(relay(function), arguments, expected=function(*arguments)) for function, arguments in FUNCTIONS]
helper = relay(helper)


@relay
def several_results(x):
    y = x[x > 0.0]
    return y, y.reshape(-1, 1) * y, y.shape[0], {"rest": x[x <= 0.0], "none": x[x > 100.0]}


@relay
def early_result(x):
    y = x[x > 0.0]
    for _ in range(3):
        if y.sum() > 30.0:
            return y
        y = rl.concatenate([y, y])
    return y


@relay
def chosen_integers(k, n):
    return k[k % 3 == 1], np.arange(n), k[:n]


POSITIVE = SIX[SIX > 0.0]
PROGRAMS += [
    Program(
        several_results,
        (SIX,),
        differentiable=False,
        expected=(POSITIVE, POSITIVE[:, None] * POSITIVE, np.int32(4), {"rest": SIX[SIX <= 0.0], "none": SIX[:0]}),
    ),
    Program(early_result, (SIX,), differentiable=False, expected=np.tile(POSITIVE, 4)),
    Program(
        chosen_integers,
        (np.arange(10, dtype=np.int32), np.int32(4)),
        differentiable=False,
        expected=(np.array([1, 4, 7], np.int32), np.arange(4, dtype=np.int32), np.arange(4, dtype=np.int32)),
    ),
]


(n,) = rl.dims("n")


@relay
def of_three(x: Tensor[Float64, (3,)], scale):
    return (x * x).sum() * scale


@relay
def of_equal_sizes(x: Tensor[Float64, (n,)], y: Tensor[Float64, (n,)]):
    return x @ y


@relay
def checked_at_calls(x):
    """What a call's annotations say of data-dependent sizes is checked there."""
    chosen = x[x > 2.5]
    return of_three(chosen, 0.5) + of_equal_sizes(chosen, x[:3])


PROGRAMS.append(Program(checked_at_calls, (np.array([1.5, 3.25, -0.5, 5.0, 2.75]),)))
