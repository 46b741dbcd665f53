"""`List[A]`: a sequence of any length, from its head on.

What goes through a whole list is a loop, so the stack does not limit its length. Gradients flow through the elements.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import relay

A = relay.type_var("A")


@relay.data
class List:
    """Nil, or Cons(head, tail)."""

    class Nil:
        """The empty list."""

    class Cons:
        """An element in front of a list."""

        head: A
        tail: List

    def is_empty(self):
        """True if there is no element."""
        match self:
            case List.Nil():
                return True
            case List.Cons():
                return False

    def fold(self, function, initial):
        """function(.. function(function(initial, x0), x1) .., xn)."""
        result, rest = initial, self
        while True:
            match rest:
                case List.Nil():
                    return result
                case List.Cons(head, tail):
                    result, rest = function(result, head), tail

    def fold_right(self, function, initial):
        """function(x0, function(x1, .. function(xn, initial)))."""
        return self.reverse().fold(lambda result, head: function(head, result), initial)

    def reverse(self):
        """The elements from the last one to the first."""
        return self.fold(lambda result, head: List.Cons(head, result), List.Nil())

    def map(self, function):
        """function(x) for each element."""
        return self.fold(lambda result, head: List.Cons(function(head), result), List.Nil()).reverse()

    def filter(self, predicate):
        """The elements for which the predicate holds."""

        def keep(result, head):
            if predicate(head):
                return List.Cons(head, result)
            return result

        return self.fold(keep, List.Nil()).reverse()

    def append(self, other):
        """These elements, then those of the other list."""
        return self.reverse().fold(lambda result, head: List.Cons(head, result), other)

    def length(self):
        """The number of elements, Int32."""
        return self.fold(lambda count, head: count + 1, relay.cast(0, relay.Int32))

    def zip_with(self, function, other):
        """function(x, y) for the elements at the same places, up to the end of the shorter list."""
        result, xs, ys = List.Nil(), self, other
        while True:
            match xs, ys:
                case List.Cons(x, xs), List.Cons(y, ys):
                    result = List.Cons(function(x, y), result)
                case _:
                    return result.reverse()

    def sum(self, initial):
        """initial + x0 + x1 + .. + xn."""
        return self.fold(lambda total, head: total + head, initial)


def from_sequence(items: Iterable[Any]) -> Any:
    """A List with the elements of a Python sequence."""
    result = List.Nil()
    for item in reversed(list(items)):
        result = List.Cons(item, result)
    return result


def to_sequence(items: Any) -> list[Any]:
    """The elements of a List as a Python list."""
    result = []
    while isinstance(items, List.Cons):
        result.append(items.head)
        items = items.tail
    return result
