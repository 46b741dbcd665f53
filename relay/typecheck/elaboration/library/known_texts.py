"""Methods of strings and sets that are known at compile time, which Python itself computes; `str`, `set`, `slice`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from relay.errors import TypeCheckError
from relay.ir.types import BaseType
from relay.typecheck.elaboration.abstract_values import AbstractValue, DynamicValue, PythonObject, Tuple
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, hash_tables, tables
from relay.typecheck.elaboration.expressions.known_strings import RunTimeValue, known_value
from relay.typecheck.elaboration.library import formatting
from relay.typecheck.elaboration.library.overloads import Call, implements
from relay.typecheck.elaboration.library.text_equality import refusal
from relay.typecheck.elaboration.members.elements import elements
from relay.typecheck.elaboration.values import texts
from relay.typecheck.elaboration.values.data import is_string_of_run
from relay.typecheck.elaboration.values.objects import object_entity

METHODS = (
    *("capitalize", "casefold", "center", "count", "endswith", "expandtabs", "find", "format", "index", "isalnum"),
    *("isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isspace", "istitle"),
    *("isupper", "join", "ljust", "lower", "lstrip", "partition", "removeprefix", "removesuffix", "replace", "rfind"),
    *("rindex", "rjust", "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "swapcase"),
    *("title", "upper", "zfill"),
)
"""The methods of strings; what they return are strings, numbers, truth values, and tuples and lists of strings."""


_COUNTING = ("center", "ljust", "replace", "rjust", "split", "zfill")
"""Methods of which an argument is a number."""


@implements(builtins.str)
def _str(call: Call, x: AbstractValue, /) -> AbstractValue:
    """`str(x)`: as in an f-string."""
    if isinstance(x, PythonObject) and isinstance(x.value, BaseType):
        return PythonObject(str(x.value))
    parts = [PythonObject(""), x, PythonObject(""), PythonObject("")]
    return formatting.make_text(call.checker, call.out, parts, call.span)


@implements(builtins.repr)
def _repr(call: Call, x: AbstractValue, /) -> AbstractValue:
    """`repr(x)`: as with `!r` in an f-string."""
    parts = [PythonObject(""), x, PythonObject("!r"), PythonObject("")]
    return formatting.make_text(call.checker, call.out, parts, call.span)


def _is_of_run(entity: AbstractValue) -> bool:
    """True if an argument is, or holds, a string that is not known."""
    if isinstance(entity, Tuple):
        return any(map(_is_of_run, entity.items))
    return is_string_of_run(entity) or dynamic_lists.is_growing(entity)


def _needs_run(name: str, arguments: Sequence[AbstractValue]) -> bool:
    """True if a method of a known string has an argument that only the run knows."""
    if any(map(_is_of_run, arguments)):
        return True
    return name in _COUNTING and any(isinstance(a, DynamicValue) for a in arguments)


def _method(name: str) -> None:
    def rule(call: Call, text: AbstractValue, /, *arguments: AbstractValue, **named: AbstractValue) -> AbstractValue:
        if is_string_of_run(text) or _needs_run(name, arguments):
            found = texts.method(call.checker, call.out, name, [text, *arguments], [*named.items()], call.span)
            if found is None:
                raise refusal(f"`{name}` does not take", call.span)
            return found
        assert isinstance(text, PythonObject)
        try:
            given = [known_value(a) for a in arguments]
            words = {key: known_value(value) for key, value in named.items()}
            return object_entity(getattr(text.value, name)(*given, **words), call.span)
        except RunTimeValue:
            needed = [a.atom for a in (*arguments, *named.values()) if isinstance(a, DynamicValue)]
            message = f"the arguments of `{name}` of a string must be known at compile time"
            raise TypeCheckError(message, call.span, help='write an f-string: f"{x}"').needing_value(*needed) from None
        except (TypeError, ValueError, IndexError, KeyError) as error:
            raise TypeCheckError(f"`{name}` of {text.value!r}: {error}", call.span) from None

    implements(getattr(str, name), name=f"str.{name}")(rule)


for _name in METHODS:
    _method(_name)


# ---- sets and slices


def _known_values(call: Call, entities: Sequence[AbstractValue], what: str) -> list[object]:
    try:
        return [known_value(entity) for entity in entities]
    except RunTimeValue:
        needed = [e.atom for e in entities if isinstance(e, DynamicValue)]
        message = f"{what} must be known at compile time"
        help = "use a list or a tensor for what is computed at run time"
        raise TypeCheckError(message, call.span, help=help).needing_value(*needed) from None


@implements(builtins.set, builtins.frozenset)
def _set(call: Call, items: AbstractValue | None = None, /, is_changed: AbstractValue | None = None) -> AbstractValue:
    """A set of things that are known, or a hash table; `is_changed`: by methods."""
    checker, out, span = call.site
    if items is None:
        return hash_tables.empty(checker, out, "set", span)
    parts = None if tables.is_set(items) or tables.is_dict(items) else elements(checker, out, items, span)
    if parts is None and checker.is_open(items):
        raise SchemeOnly(span, "the elements of a set")
    try:
        values = [known_value(part) for part in parts or ()]
        if parts and is_changed is None:
            return PythonObject(frozenset(values))
    except RunTimeValue:
        pass
    except TypeError as error:
        raise TypeCheckError(f"{error}", span) from None
    return hash_tables.set_of(checker, out, items if parts is None else Tuple(tuple(parts)), span)


@implements(builtins.slice)
def _slice(call: Call, /, *bounds: AbstractValue) -> AbstractValue:
    """`slice(a, b, c)`, as `a:b:c` in brackets."""
    if not 1 <= len(bounds) <= 3:
        raise TypeCheckError("slice takes one to three bounds", call.span)
    return PythonObject(slice(*_known_values(call, bounds, "the bounds of a slice object")))


def _set_method(name: str) -> None:
    def rule(call: Call, whole: AbstractValue, /, *others: AbstractValue) -> AbstractValue:
        values = _known_values(call, [whole, *others], "a set")
        return object_entity(getattr(values[0], name)(*values[1:]), call.span)

    implements(getattr(frozenset, name), name=f"set.{name}")(rule)


for _name in ("union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset", "isdisjoint"):
    _set_method(_name)
