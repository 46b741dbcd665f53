"""Integers of two dtypes that meet in a variable: `argmax` counts in an int32, indices of NumPy are int64."""

import numpy as np

from relay import relay
from zoo import Program

_X = np.array([0.5, 3.0, 2.0])
_NEXT = np.array([1, 2, 0])


@relay
def forced_or_chosen(scores, targets, forced):
    """The rounds choose where the next word comes from."""
    word, total = 0, 0.0
    for t in range(len(targets)):
        row = scores * (word + 1)
        total += row[targets[t]]
        word = targets[t] if forced[t] else np.argmax(row)
    return total


@relay
def followed(x, after):
    """It enters the loop as an int32 and is an int64 after a round, which a `continue` may skip."""
    place = np.argmax(x)
    total = x[place]
    for i in range(len(after)):
        if x[i] > 2.5:
            continue
        place = after[place]
        total = total * x[place]
    return total


@relay
def first_or_largest(x, after):
    for i in range(len(after)):
        if x[i] > 5.0:
            return after[i]
    return np.argmax(x)


@relay
def walked(x, after):
    """Elements of lists, and of tuples in them."""
    todo, seen = [(np.argmax(x), 0)], []
    while todo:
        place, depth = todo.pop()
        seen.append(place)
        if depth < 3:
            todo.append((after[place], depth + 1))
    return seen, max(seen)


@relay
def follow(x, after, place):
    if x[place] < 1.0:
        return place
    return follow(x, after, after[place])


@relay
def followed_down(x, after):
    return x[follow(x, after, np.argmax(x))]


PROGRAMS = [
    Program(forced_or_chosen, (_X, _NEXT, np.array([True, False, True]))),
    Program(followed, (_X, _NEXT)),
    Program(first_or_largest, (_X, _NEXT), differentiable=False, expected=np.int64(1)),
    Program(walked, (_X, _NEXT), differentiable=False, expected=(list(map(np.int64, (1, 2, 0, 1))), np.int64(2))),
    Program(followed_down, (_X, _NEXT), expected=0.5),
]
