"""Text at run time: a string that branches and loops choose, as the code points of its characters.

Programs write Python's strings. Where a string has to be a run-time value, it is a `String`, and to Python it is a
`str` again.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

import relay
from relay import Int32, Tensor
from relay.typecheck.elaboration.library.overloads import LibraryFunction, library_function
from relay.typecheck.elaboration.values.texts import use_language


@relay.data
class String:
    """A run-time string. codes: (int32, (Any,)), a code point for each character."""

    codes: Tensor[Int32, (Any,)]


def to_python(codes):
    """The `str` of these code points."""
    return "".join(map(chr, codes))


@library_function()
def joined(*codes):
    """The string of these code points, one after the other."""
    return String(relay.concatenate(codes))


@library_function()
def length(codes):
    """The number of characters."""
    return len(codes)


@library_function()
def number_text(x, form):
    """The code points of a number's text; `form`: those of its format."""
    found = relay.characters(x, form)
    return found[1 : 1 + found[0]]


@library_function()
def same(left, right):
    """True if two strings have the same characters."""
    return len(left) == len(right) and all(left[i] == right[i] for i in range(len(left)))


@library_function()
def precedes(left, right):
    """True if one string stands before another one: by the first characters that differ, and then by length."""
    for i in range(min(len(left), len(right))):
        if left[i] != right[i]:
            return left[i] < right[i]
    return len(left) < len(right)


@library_function()
def hash_code(codes):
    """An int64 that follows from all characters."""
    whole = np.int64(len(codes))
    for i in range(len(codes)):
        whole = whole * 1000003 ^ codes[i]
    return whole


@library_function()
def characters(codes):
    """The characters as strings, in a list."""
    found: list[String] = []
    for i in range(len(codes)):
        found.append(String(codes[i : i + 1]))
    return found


@library_function()
def repeated(codes, times):
    """The string so many times."""
    found: Tensor[Int32, (Any,)] = relay.zeros((0,), relay.Int32)
    for _ in range(times):
        found = relay.concatenate((found, codes))
    return String(found)


@library_function()
def find(codes, part, start=0, end=None, /):
    """The first place of one string in a part of another one; -1 where there is none."""
    first, last = bounds(codes, start, end)
    for place in range(first, last - len(part) + 1):
        if same(codes[place : place + len(part)], part):
            return place
    return -1


@library_function()
def bounds(codes, start, end):
    """The places of `text[start:end]`, which begins behind the text where `start` does."""
    first, last = start, len(codes) if end is None else min(end, len(codes))
    if first < 0:
        first = max(first + len(codes), 0)
    if last < 0:
        last = max(last + len(codes), 0)
    return first, last


@library_function()
def contains(codes, part):
    """True if a string contains another one."""
    return find(codes, part) >= 0


@library_function()
def startswith(codes, part):
    """True if a string begins with another one."""
    return len(codes) >= len(part) and same(codes[: len(part)], part)


@library_function()
def endswith(codes, part):
    """True if a string ends with another one."""
    return len(codes) >= len(part) and same(codes[len(codes) - len(part) :], part)


@library_function()
def all_joined(separator, parts):
    """The strings of a list with a separator between them."""
    found: Tensor[Int32, (Any,)] = relay.zeros((0,), relay.Int32)
    for i in range(len(parts)):
        if i > 0:
            found = relay.concatenate((found, separator))
        found = relay.concatenate((found, parts[i].codes))
    return String(found)


@functools.cache
def _methods() -> Mapping[str, LibraryFunction]:
    """The functions that programs seldom need: the tables of Unicode are made when one does."""
    from relay.library import text_methods

    return {**text_methods.METHODS, **text_methods.FUNCTIONS}


_FUNCTIONS = (
    *(joined, length, number_text, same, precedes, hash_code, characters, repeated),
    *(find, contains, startswith, endswith, all_joined),
)
String.__relay_result__ = staticmethod(to_python)
use_language(String, {function.python.__name__: function for function in _FUNCTIONS}, _methods)
