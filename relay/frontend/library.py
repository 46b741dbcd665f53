"""Python's functions of lists that are written in the language itself; `typecheck/elaboration/ordering.py` calls them.

order__         the places of the keys in ascending (or descending) order, equal ones as they stand: a merge sort
keys__          the keys of elements
chosen__        the elements at some places
sorted_rows__   the numbers of a tensor of rank 1, in order
best__          the first element with the largest (or smallest) key; best_or__ has a default for a list of nothing
index__         where a value stands first, or -1
count__         how often a value stands in a list
rows__          the parts of a tensor along its first axis; column__ of a list of tuples
alone__         the elements of a list as tuples of one, joined__ with those of another list, as_lists__ as lists
pick__          a choice of the run
itself__        its argument
"""

from __future__ import annotations

import builtins
import functools

from relay.frontend.lower import lower_text
from relay.ir.definition import Definition
from relay.operator import lookup
from relay.typecheck.elaboration.ordering import use_library

_TEXT = """
def order__(keys, reverse):
    order = [i for i in range(len(keys))]
    width = 1
    while width < len(order):
        merged = []
        start = 0
        while start < len(order):
            middle, end = min(start + width, len(order)), min(start + 2 * width, len(order))
            left, right = start, middle
            while left < middle or right < end:
                if right < end and (left >= middle or before__(keys[order[right]], keys[order[left]], reverse)):
                    merged.append(order[right])
                    right += 1
                else:
                    merged.append(order[left])
                    left += 1
            start = end
        order = merged
        width *= 2
    return order

def before__(a, b, reverse):
    return b < a if reverse else a < b

def keys__(xs, key):
    return [key(x) for x in xs]

def chosen__(xs, order):
    return [xs[i] for i in order]

def sorted_rows__(x, reverse):
    y = sort__(x)
    return [v for v in (y[::-1] if reverse else y)]

def best__(xs, key, largest):
    best = xs[0]
    most = key(best)
    for x in xs[1:]:
        score = key(x)
        if before__(most, score, not largest):
            best, most = x, score
    return best

def best_or__(xs, key, largest, default):
    if len(xs) == 0:
        return default
    return best__(xs, key, largest)

def itself__(x):
    return x

def index__(xs, value):
    place = -1
    for i, x in enumerate(xs):
        if x == value:
            place = i
            break
    return place

def count__(xs, value):
    count = 0
    for x in xs:
        if x == value:
            count += 1
    return count

def rows__(x):
    return [row for row in x]

def column__(
    xs,
    place,  # relay: static
):
    return [x[place] for x in xs]

def alone__(xs):
    return [(x,) for x in xs]

def joined__(xs, ys):
    return [(*x, y) for x, y in zip(xs, ys)]

def as_lists__(xs):
    return [[*x] for x in xs]

def pick__(condition, a, b):
    return a if condition else b
"""


@functools.cache
def _definitions() -> dict[str, Definition]:
    names = {name: getattr(builtins, name) for name in ("range", "len", "min", "enumerate", "zip")}
    return lower_text(_TEXT, "<relay.library>", {**names, "sort__": lookup("sort")})


use_library(lambda name: _definitions()[name])
