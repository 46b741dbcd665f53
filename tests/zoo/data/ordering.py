"""`sorted`, `max` and `min` by keys, comparisons of tuples, and where values stand in lists.

`PYTHON` are functions of Python: running one gives the expected value of the decorated one.
"""

from __future__ import annotations

import math

import numpy as np

from relay import relay
from zoo import Program

ROW = np.array([1.5, -2.0, 3.0, 0.5])


def sorted_numbers(row):
    xs = [x for x in row if x > 0.0]
    total = 0.0
    for i, x in enumerate(sorted(xs)):
        total += x * float(i + 1)
    for i, x in enumerate(sorted(xs, key=lambda v: (v - 0.8) ** 2, reverse=True)):
        total += x * float(i + 1) ** 2
    return total


def sorted_pairs(row, n):
    pairs = []
    for i in range(n):
        pairs.append((i * 7 % 3, row[i % 4] * float(i)))
    pairs.sort()
    first = pairs[0][1] * 100.0 + pairs[-1][1]
    pairs.sort(key=lambda p: p[0], reverse=True)
    return first + pairs[0][1] * 10.0 + pairs[1][1]


def sorted_items(a, b, c):
    three = [a, b, c]
    three.sort(reverse=True)
    records = sorted([("b", b), ("a", a), ("c", c)])
    low, *_ = sorted((a * b, b * c, c * a))
    return three[0] * 100.0 + three[1] * 10.0 + three[2] + records[0][1] * 0.5 + low


def sorted_rows_of_a_tensor(row):
    best = sorted(row, reverse=True)
    return best[0] * 10.0 + best[-1] + sorted(row)[1] ** 2


def largest_by_a_key(row):
    places = [(x, i) for i, x in enumerate(row)]
    best, place = max(places)
    worst = min(places, key=lambda p: abs(p[0]))
    return best * float(place) + worst[0] * float(worst[1]) + max(row, key=lambda v: -v)


def largest_of_a_growing_list(row, n):
    found = []
    for i in range(n):
        found.append((row[i % 4], i))
    best = max(found, key=lambda p: p[0] * float(p[1] + 1))
    return best[0] + max((x for x in row if x > 5.0), default=row[0]) + min(found)[0] * 2.0


def compared_tuples(a, b):
    score = 0.0
    if (a, b) < (b, a):
        score += a
    if (1, a) >= (1, b) and not (a, 2) > (a, 3):
        score += b * 2.0
    return score + (a if (b, a) <= (b, a, 1) else b)


def places_in_lists(x, n):
    xs = [5, 3, 5]
    for i in range(n):
        xs.append(i)
    xs.remove(5)
    kinds = [xs.index(3), xs.count(5), [4, 6, 4].index(6), (1, 2, 1).count(1), len(xs)]
    total = x
    for k in kinds:
        total = total * 2.0 + float(k)
    return total


def rounded_down(x):
    return x * float(math.floor(x) + math.ceil(x) * 10 + math.trunc(-x) * 100) + np.floor(x)


def slices_of_known_lists(x, n):
    xs = [x, x * 2.0, x * 3.0, x * 4.0]
    total = 0.0
    for y in xs[:n]:
        total += y
    xs[1:3] = [x * 10.0]
    return total * 100.0 + xs[1] * 10.0 + xs[2] + float(len(xs[n:]))


def beam_of_the_best(scores, width):
    beams = [(0.0, [0])]
    done = []
    for step in range(len(scores)):
        candidates = []
        for score, tokens in beams:
            for v in range(scores.shape[-1]):
                candidates.append((score + scores[step, tokens[-1], v], [*tokens, v]))
        candidates.sort(key=lambda c: c[0], reverse=True)
        beams = []
        for score, tokens in candidates[:width]:
            if tokens[-1] == 3:
                done.append((score, tokens))
            else:
                beams.append((score, tokens))
        if not beams:
            break
    best, _ = max(done + beams, key=lambda c: c[0] / float(len(c[1])))
    return best


def ranked_rows(x):
    """Rows joined, moved round and sorted, with derivatives through the order."""
    wide = np.concatenate((x * 2.0, x, np.roll(x * 3.0, 7, axis=1)), axis=1)
    ordered = np.sort(wide, axis=1)
    return (ordered[:, 3:] * wide[:, :-3]).sum()


SCORES = np.log(np.random.default_rng(0).dirichlet(np.ones(4), size=(5, 4)))

PYTHON = [
    (sorted_numbers, (ROW,)),
    (sorted_pairs, (ROW, np.int32(7))),
    (sorted_items, (np.float64(2.5), np.float64(-1.0), np.float64(0.75))),
    (sorted_rows_of_a_tensor, (ROW,)),
    (largest_by_a_key, (ROW,)),
    (largest_of_a_growing_list, (ROW, np.int32(6))),
    (compared_tuples, (np.float64(1.5), np.float64(2.5))),
    (places_in_lists, (np.float64(1.5), np.int32(4))),
    (rounded_down, (np.float64(2.5),)),
    (slices_of_known_lists, (np.float64(1.5), np.int32(2))),
    (beam_of_the_best, (SCORES, np.int32(3))),
    (ranked_rows, (np.random.default_rng(1).standard_normal((9, 20)),)),
]

PROGRAMS = [Program(relay(f), arguments, expected=f(*arguments)) for f, arguments in PYTHON]
