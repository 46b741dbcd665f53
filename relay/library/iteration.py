"""Functions of `itertools`. What Python makes one by one, as it is asked for, is a list here."""

from __future__ import annotations

import builtins
import itertools

from relay.typecheck.elaboration.library.overloads import library_function


@library_function(builtins.iter)
def iter_(iterable, /):
    """The elements."""
    return list(iterable)


@library_function(builtins.next)
def next_(iterator, /, *default):
    """The first element; where there is none, a default."""
    xs = list(iterator)
    if len(default) == 1:
        return xs[0] if len(xs) > 0 else default[0]
    assert len(xs) > 0, "next() of an iterator that has no more elements"
    return xs[0]


@library_function(itertools.chain.from_iterable)
def chain_from_iterable(iterable, /):
    """The elements of the elements."""
    return [x for xs in iterable for x in xs]


@library_function(itertools.accumulate)
def accumulate(iterable, func=None, *, initial=None):
    """The first element, its sum with the second, .., or what another function makes of the last one and the next."""
    combined = (lambda a, b: a + b) if func is None else func
    xs = list(iterable) if initial is None else [initial, *iterable]
    totals = []
    for i, x in enumerate(xs):
        totals.append(x if i == 0 else combined(totals[-1], x))
    return totals


@library_function(itertools.pairwise)
def pairwise(iterable, /):
    """Each element with the next one."""
    xs = list(iterable)
    return [(xs[i], xs[i + 1]) for i in range(len(xs) - 1)]


@library_function(itertools.repeat)
def repeat(object, times):
    """One value several times."""
    return [object for _ in range(times)]


@library_function(itertools.starmap)
def starmap(function, iterable, /):
    """A function of the items of each element."""
    return [function(*x) for x in iterable]


@library_function(itertools.compress)
def compress(data, selectors):
    """The elements beside which something true stands."""
    return [x for x, is_kept in zip(data, selectors, strict=False) if is_kept]


@library_function(itertools.filterfalse)
def filterfalse(function, iterable, /):
    """The elements for which a condition does not hold."""
    return [x for x in iterable if not (x if function is None else function(x))]


@library_function(itertools.takewhile)
def takewhile(predicate, iterable, /):
    """The elements before the first one for which a condition does not hold."""
    found = []
    for x in iterable:
        if not predicate(x):
            break
        found.append(x)
    return found


@library_function(itertools.dropwhile)
def dropwhile(predicate, iterable, /):
    """The elements from the first one on for which a condition does not hold."""
    found, is_after = [], False
    for x in iterable:
        is_after = is_after or not predicate(x)
        if is_after:
            found.append(x)
    return found


@library_function(itertools.zip_longest)
def zip_longest(*iterables, fillvalue=None):
    """The first elements of all, the second ones, ..: as many as the longest has, filled up with a value."""
    rows = [list(iterable) for iterable in iterables]
    count = max(len(row) for row in rows)
    return [tuple(row[i] if i < len(row) else fillvalue for row in rows) for i in range(count)]


@library_function(itertools.tee)
def tee(
    iterable,
    n=2,  # relay: static
    /,
):
    """The elements, several times."""
    xs = list(iterable)
    return tuple(xs for _ in range(n))


@library_function(itertools.groupby)
def groupby(iterable, key=None):
    """The runs of elements with one key, each with it."""
    groups = []
    for x in iterable:
        own = x if key is None else key(x)
        if len(groups) > 0 and groups[-1][0] == own:
            groups[-1][1].append(x)
        else:
            groups.append((own, [x]))
    return groups


@library_function(itertools.product)
def product(
    *iterables,
    repeat=1,  # relay: static
):
    """All tuples of one element of each iterable; the last one changes first."""
    return tuples_of(tuple(list(iterable) for iterable in iterables) * repeat)


@library_function()
def tuples_of(parts):
    """All tuples of one element of each list."""
    if len(parts) == 0:
        return [()]
    if len(parts) == 1:
        return [(x,) for x in parts[0]]
    rest = tuples_of(parts[1:])
    return [(x, *row) for x in parts[0] for row in rest]


@library_function(itertools.combinations)
def combinations(
    iterable,
    r,  # relay: static
):
    """All tuples of r elements in the order in which they stand."""
    return chosen_from(list(iterable), 0, r, 1)


@library_function(itertools.combinations_with_replacement)
def combinations_with_replacement(
    iterable,
    r,  # relay: static
):
    """All tuples of r elements in the order in which they stand, each as often as one likes."""
    return chosen_from(list(iterable), 0, r, 0)


@library_function()
def chosen_from(
    xs,
    start,
    r,  # relay: static
    step,  # relay: static
):
    """All tuples of r elements from a position on, in their order; the next one stands at least `step` behind."""
    assert r >= 0, "the number of elements in a combination must not be negative"
    if r == 0:
        return [()]
    if r == 1:
        return [(xs[i],) for i in range(start, len(xs))]
    return [(xs[i], *row) for i in range(start, len(xs)) for row in chosen_from(xs, i + step, r - 1, step)]


@library_function(itertools.permutations)
def permutations(
    iterable,
    r=None,  # relay: static
):
    """All tuples of r different elements, or of all of them, in every order."""
    xs = list(iterable)
    return arranged(xs, len(xs) if r is None else r)


@library_function()
def arranged(
    xs,
    r,  # relay: static
):
    """All tuples of r different elements of a list in every order."""
    assert r >= 0, "the number of elements in a permutation must not be negative"
    if r == 0:
        return [()]
    if r == 1:
        return [(x,) for x in xs]
    return [(xs[i], *row) for i in range(len(xs)) for row in arranged(xs[:i] + xs[i + 1 :], r - 1)]
