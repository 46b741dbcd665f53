"""Functions of `functools` and `operator`, and Python's `bisect` and `heapq`."""

from __future__ import annotations

import bisect
import functools
import heapq
import operator

from relay.typecheck.elaboration.library.overloads import library_function


@library_function(functools.reduce)
def reduce(function, iterable, /, *initial):
    """f(.. f(f(initial, x0), x1) .., xn), or without an initial value f(.. f(x0, x1) .., xn)."""
    assert len(initial) <= 1, "functools.reduce takes one initial value"
    xs = list(iterable)
    total = initial[0] if len(initial) == 1 else xs[0]
    for x in xs if len(initial) == 1 else xs[1:]:
        total = function(total, x)
    return total


@library_function(operator.itemgetter)
def itemgetter(item, /, *items):
    """A function of the item of its argument, or of several in a tuple."""
    if len(items) == 0:
        return lambda x: x[item]
    return lambda x: tuple(x[i] for i in (item, *items))


@library_function(operator.add)
def add(a, b, /):
    """The sum."""
    return a + b


@library_function(operator.sub)
def sub(a, b, /):
    """The difference."""
    return a - b


@library_function(operator.mul)
def mul(a, b, /):
    """The product."""
    return a * b


@library_function(operator.truediv)
def truediv(a, b, /):
    """The quotient."""
    return a / b


@library_function(operator.floordiv)
def floordiv(a, b, /):
    """The quotient, rounded down."""
    return a // b


@library_function(operator.mod)
def mod(a, b, /):
    """The remainder, with the sign of the divisor."""
    return a % b


@library_function(operator.pow)
def pow(a, b, /):
    """The power."""
    return a**b


@library_function(operator.matmul)
def matmul(a, b, /):
    """The product of matrices."""
    return a @ b


@library_function(operator.and_)
def and_(a, b, /):
    """The bits of both."""
    return a & b


@library_function(operator.or_)
def or_(a, b, /):
    """The bits of one or the other."""
    return a | b


@library_function(operator.xor)
def xor(a, b, /):
    """The bits of one of two."""
    return a ^ b


@library_function(operator.lt)
def lt(a, b, /):
    """True if a is less."""
    return a < b


@library_function(operator.le)
def le(a, b, /):
    """True if a is not larger."""
    return a <= b


@library_function(operator.gt)
def gt(a, b, /):
    """True if a is larger."""
    return a > b


@library_function(operator.ge)
def ge(a, b, /):
    """True if a is not less."""
    return a >= b


@library_function(operator.eq)
def eq(a, b, /):
    """True if they are equal."""
    return a == b


@library_function(operator.ne)
def ne(a, b, /):
    """True if they differ."""
    return a != b


@library_function(operator.neg)
def neg(a, /):
    """The number with the other sign."""
    return -a


@library_function(operator.not_)
def not_(a, /):
    """True for what counts as false."""
    return not a


@library_function(operator.getitem)
def getitem(a, b, /):
    """An item."""
    return a[b]


@library_function(operator.contains)
def contains(a, b, /):
    """True if b is among the elements of a."""
    return b in a


@library_function(bisect.bisect_right)
def bisect_right(a, x, lo=0, hi=None, *, key=None):
    """The place behind the elements of a sorted list that are not larger than x."""
    if hi is None and len(a) == 0:  # the elements of a list that is known to have none have no type
        return lo
    start, end = lo, len(a) if hi is None else hi
    while start < end:
        middle = (start + end) // 2
        if x < (a[middle] if key is None else key(a[middle])):
            end = middle
        else:
            start = middle + 1
    return start


@library_function(bisect.bisect_left)
def bisect_left(a, x, lo=0, hi=None, *, key=None):
    """The place before the elements of a sorted list that are not smaller than x."""
    if hi is None and len(a) == 0:  # the elements of a list that is known to have none have no type
        return lo
    start, end = lo, len(a) if hi is None else hi
    while start < end:
        middle = (start + end) // 2
        if (a[middle] if key is None else key(a[middle])) < x:
            start = middle + 1
        else:
            end = middle
    return start


@library_function(heapq.nlargest)
def nlargest(n, iterable, key=None):
    """The n largest elements, in descending order."""
    return sorted(iterable, key=key, reverse=True)[: max(n, 0)]


@library_function(heapq.nsmallest)
def nsmallest(n, iterable, key=None):
    """The n smallest elements, in ascending order."""
    return sorted(iterable, key=key)[: max(n, 0)]


@library_function(heapq.merge)
def merge(
    *iterables,
    key=None,
    reverse=False,  # relay: static
):
    """The elements of sorted lists in order."""
    found = []
    for iterable in iterables:
        found += list(iterable)
    return sorted(found, key=key, reverse=reverse)
