"""Dicts and sets whose keys are known at run time only: hash tables, with the keys in the order of their insertion.

    slots     places in `keys`, -1 for a free one; twice as many as keys, a power of two
    keys      a dynamic list
    values    of a dict, another one

The slot of a key is the first one from its hash code on that is free or holds it. Programs write Python's dicts and
sets, and to Python these are `dict` and `set` again.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from relay.typecheck.elaboration.dynamic_lists.hash_tables import (
    as_dict,
    as_element,
    as_set,
    hash_code,
    place_of,
    slot_of,
    use_language,
)
from relay.typecheck.elaboration.library.overloads import library_function


@library_function()
def probed(slots, keys, key):
    """The slot that holds the place of a key, or the free one where it belongs."""
    last = len(slots) - 1
    slot = hash_code(key) & last
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + 1) & last
    return slot


@library_function()
def lookup(table, key):
    """The place of a key; -1 where it is missing."""
    slots, keys = table.slots__, table.keys__
    return slots[slot_of(slots, keys, as_element(keys, key))]


@library_function()
def contains(table, key):
    """`key in table`"""
    return place_of(table, key) >= 0


@library_function()
def item(table, key):
    """`d[key]`"""
    place = place_of(table, key)
    assert place >= 0, "the key is not in the dict"
    return table.values__[place]


@library_function()
def item_or(table, key, default):
    """`d.get(key, default)`"""
    place = place_of(table, key)
    return table.values__[place] if place >= 0 else default


@library_function()
def table_of(keys, count):
    """So many slots, with the places of these keys."""
    slots = [-1] * count
    for place in range(len(keys)):
        slots[slot_of(slots, keys, keys[place])] = place
    return slots


@library_function()
def with_key(slots, keys, key, slot):
    """The slots and keys with a new key at the end; the slots grow where two thirds of them are taken."""
    place = len(keys)
    keys.append(key)
    if 3 * len(keys) > 2 * len(slots):
        slots = table_of(keys, 2 * len(slots))
    else:
        slots[slot] = place
    return slots, keys


def key_in_python(key: Any) -> Any:
    """A key of a result as Python has it."""
    if isinstance(key, str):
        return key
    return tuple(map(key_in_python, key)) if isinstance(key, tuple) else key.item()


@dataclasses.dataclass
class Dictionary:
    """A dict."""

    slots__: Any
    keys__: Any
    values__: Any

    @staticmethod
    def __relay_result__(slots: Any, keys: Any, values: Any) -> dict[Any, Any]:
        return dict(zip(map(key_in_python, keys), values, strict=True))

    @library_function()
    def __len__(self):
        return len(self.keys__)

    def __contains__(self, key): ...

    def __getitem__(self, key): ...

    def get(self, key, default=None, /): ...

    def items(self): ...

    def counted__(self, elements): ...

    @library_function()
    def __eq__(self, other):
        others = as_dict(other)
        return len(self.keys__) == len(others.keys__) and all(
            key in others and others[key] == self[key] for key in self.keys__
        )

    @library_function()
    def __or__(self, other):
        return updated(self, as_dict(other))

    @library_function()
    def __ror__(self, other):
        return updated(as_dict(other), self)

    @library_function()
    def keys(self):
        return self.keys__

    @library_function()
    def values(self):
        return self.values__

    @library_function()
    def copy(self):
        return self

    @library_function()
    def most_common(self, n=None):
        """Of a Counter: the keys and numbers, the largest first, equal ones in the order of the keys."""
        order = sorted(range(len(self.keys__)), key=lambda place: -self.values__[place])
        count = len(order) if n is None else min(n, len(order))
        return [(self.keys__[place], self.values__[place]) for place in order[:count]]

    @library_function()
    def total(self):
        """Of a Counter: the sum of its numbers."""
        return sum(self.values__)


@library_function()
def with_item(table, key, value):
    """The dict after `d[key] = value`."""
    slots, keys, values = table.slots__, table.keys__, table.values__
    key = as_element(keys, key)
    slot = slot_of(slots, keys, key)
    place = slots[slot]
    if place < 0:
        slots, keys = with_key(slots, keys, key, slot)
        values.append(value)
    else:
        values[place] = value
    return Dictionary(slots, keys, values)


@library_function()
def without_key(table, key):
    """The value of a key, and the dict without it."""
    keys, values = table.keys__, table.values__
    place = place_of(table, key)
    assert place >= 0, "the key is not in the dict"
    taken = values.pop(place)
    del keys[place]
    return taken, Dictionary(table_of(keys, len(table.slots__)), keys, values)


@library_function()
def without_key_or(table, key, default):
    """The same, with a value for where the key is missing."""
    if key in table:
        return without_key(table, key)
    return default, table


@library_function()
def with_default(table, key, default):
    """The value of a key, and the dict, which gets this value where the key is missing."""
    if key in table:
        return table[key], table
    return default, with_item(table, key, default)


@library_function()
def counted(table, elements):
    """The dict with one more for each element."""
    for element in elements:
        table = with_item(table, element, table.get(element, 0) + 1)
    return table


@library_function()
def without_last(table):
    """The last key with its value, and the dict without them."""
    keys, values = table.keys__, table.values__
    assert len(keys) > 0, "popitem of an empty dict"
    last = (keys.pop(), values.pop())
    return last, Dictionary(table_of(keys, len(table.slots__)), keys, values)


@library_function()
def without_first(table):
    """The first key with its value, and the dict without them."""
    keys, values = table.keys__, table.values__
    assert len(keys) > 0, "popitem of an empty dict"
    first = (keys.pop(0), values.pop(0))
    return first, Dictionary(table_of(keys, len(table.slots__)), keys, values)


@library_function()
def updated(table, other):
    """The dict after `d.update(other)`."""
    for key, value in zip(other.keys__, other.values__):  # noqa: B905
        table = with_item(table, key, value)
    return table


@library_function()
def updated_by_pairs(table, pairs):
    """The same, with pairs of keys and values."""
    for key, value in pairs:
        table = with_item(table, key, value)
    return table


# ---- sets


@dataclasses.dataclass
class KeySet:
    """A set."""

    slots__: Any
    keys__: Any

    @staticmethod
    def __relay_result__(slots: Any, keys: Any) -> set[Any]:
        return set(map(key_in_python, keys))

    @library_function()
    def __len__(self):
        return len(self.keys__)

    def __contains__(self, element): ...

    @library_function()
    def __or__(self, other):
        return union_of(self, other)

    @library_function()
    def __and__(self, other):
        return intersection_of(self, other)

    @library_function()
    def __sub__(self, other):
        return difference_of(self, other)

    @library_function()
    def __xor__(self, other):
        return symmetric_difference_of(self, other)

    @library_function()
    def __ror__(self, other):
        return union_of(self, other)

    @library_function()
    def __rand__(self, other):
        return intersection_of(self, other)

    @library_function()
    def __rsub__(self, other):
        return difference_of(as_set(other), self)

    @library_function()
    def __rxor__(self, other):
        return symmetric_difference_of(self, other)

    @library_function()
    def __eq__(self, other):
        others = as_set(other)
        return len(self.keys__) == len(others.keys__) and self.issubset(others)

    @library_function()
    def __le__(self, other):
        return self.issubset(other)

    @library_function()
    def __ge__(self, other):
        return self.issuperset(other)

    @library_function()
    def __lt__(self, other):
        return self.issubset(other) and len(self.keys__) < len(as_set(other).keys__)

    @library_function()
    def __gt__(self, other):
        return self.issuperset(other) and len(self.keys__) > len(as_set(other).keys__)

    @library_function()
    def copy(self):
        return self

    @library_function()
    def union(self, *others):
        result = self
        for other in others:
            result = union_of(result, other)
        return result

    @library_function()
    def intersection(self, *others):
        result = self
        for other in others:
            result = intersection_of(result, other)
        return result

    @library_function()
    def difference(self, *others):
        result = self
        for other in others:
            result = difference_of(result, other)
        return result

    @library_function()
    def symmetric_difference(self, other):
        return symmetric_difference_of(self, other)

    @library_function()
    def issubset(self, other):
        others = as_set(other)
        return all(key in others for key in self.keys__)

    @library_function()
    def issuperset(self, other):
        return all(key in self for key in as_set(other).keys__)

    @library_function()
    def isdisjoint(self, other):
        return all(key not in self for key in as_set(other).keys__)


@library_function()
def with_element(whole, element):
    """The set after `s.add(element)`."""
    slots, keys = whole.slots__, whole.keys__
    key = as_element(keys, element)
    slot = slot_of(slots, keys, key)
    if slots[slot] < 0:
        slots, keys = with_key(slots, keys, key, slot)
    return KeySet(slots, keys)


@library_function()
def with_elements(whole, elements):
    """The set with all elements of a list."""
    for element in elements:
        whole = with_element(whole, element)
    return whole


@library_function()
def without_element(whole, element):
    """The set after `s.discard(element)`."""
    keys = whole.keys__
    place = place_of(whole, element)
    if place < 0:
        return whole
    del keys[place]
    return KeySet(table_of(keys, len(whole.slots__)), keys)


@library_function()
def without_known_element(whole, element):
    """The set after `s.remove(element)`."""
    assert element in whole, "the element is not in the set"
    return without_element(whole, element)


@library_function()
def union_of(whole, other):
    """The elements of two sets."""
    return with_elements(whole, as_set(other).keys__)


@library_function()
def intersection_of(whole, other):
    """The elements that both sets have."""
    others = as_set(other)
    keys = [key for key in whole.keys__ if key in others]
    return KeySet(table_of(keys, len(whole.slots__)), keys)


@library_function()
def difference_of(whole, other):
    """The elements that the other set does not have."""
    others = as_set(other)
    keys = [key for key in whole.keys__ if key not in others]
    return KeySet(table_of(keys, len(whole.slots__)), keys)


@library_function()
def symmetric_difference_of(whole, other):
    """The elements that one of the sets has alone."""
    others = as_set(other)
    return union_of(difference_of(whole, others), difference_of(others, whole))


_FUNCTIONS = (
    *(probed, lookup, contains, item, item_or),
    *(with_item, counted, without_key, without_key_or, without_first, without_last),
    *(with_default, updated, updated_by_pairs),
    *(with_element, with_elements, without_element, without_known_element),
    *(union_of, intersection_of, difference_of, symmetric_difference_of),
)
use_language(Dictionary, KeySet, {function.python.__name__: function for function in _FUNCTIONS})
