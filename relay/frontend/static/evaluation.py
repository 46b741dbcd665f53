"""Constant evaluation of expressions at the top of a file that is not imported.

Nothing of the file is run. An expression has a value here if it is of one of the forms below, and if its parts are
values that this module knows how to work with: numbers, texts, tuples, lists, dicts, sets, arrays of numbers, sizes,
types, and what Relay's, NumPy's and a few other modules have at their tops.

    literals, names, dotted names, tuples, lists, dicts, sets, a[i], a[i:j], arithmetic, comparisons, `and`, `or`,
    `not`, `a if c else b`, calls of the functions that `evaluated_calls.py` lists

Every operation is applied to values of types whose operations are Python's, NumPy's or ours, after its result's size
has been computed, so a short text takes neither much time nor much memory.
"""

from __future__ import annotations

import ast
import builtins
import operator
import types
import typing
from collections.abc import Callable, MutableMapping, Sequence
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

from relay.errors import RelayError
from relay.frontend.static.static_functions import SourceFunction
from relay.frontend.static.unknown_names import UnknownNameError, UnknownValue
from relay.ir.annotations.annotation import Fn, Forall, PureFn, Ref, Tensor
from relay.ir.definition import Definition, data_class
from relay.ir.dims import Arithmetic, DimExpr, TypeId

MOST_BITS = 4096
"""Of an integer."""

MOST_ELEMENTS = 2 * 10**7
"""Of everything that the expressions of files which are read together make, copies included."""

MOST_ITEMS = 2**20
"""Of a list, tuple or dict, its parts' parts included."""

_MANY = 1024

_MOST_KEYS = 10_000
"""Of a dict or set, for the keys may all have the same hash."""

_MOST_TERMS = 64
"""Of a size, for products of sums are multiplied out."""

MODULES = ("relay", "numpy", "math", "dataclasses", "typing", "collections", "functools", "__future__")
"""The modules whose names mean what they mean where the program runs."""


class NotEvaluated(Exception):
    """An expression whose value is not known without running the program."""


class Budget:
    """The number of elements that may still be made."""

    def __init__(self) -> None:
        self._left = MOST_ELEMENTS

    def take(self, elements: int) -> None:
        """Count a new value of this many elements. Raises NotEvaluated where there are too many."""
        if not 0 <= elements <= self._left:
            raise NotEvaluated
        self._left -= elements


@attrs.frozen(eq=False)
class Evaluator:
    """The values of expressions, from the known names in them."""

    names: MutableMapping[str, Any]
    budget: Budget = attrs.field(factory=Budget)

    def meaning(self, node: ast.expr) -> object:
        """The meaning of a dotted name, which may be Outside; None if it is not known, and for anything else."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            around = self.meaning(node.value)
            if around is None or isinstance(around, UnknownValue):
                return None
            try:
                return attribute(around, node.attr)
            except UnknownNameError as unknown:
                return unknown.outside
            except (NotEvaluated, AttributeError):
                return None
        return None

    def value(self, node: ast.expr) -> object:
        """The value of an expression. Raises NotEvaluated, and RelayError for a wrong use of Relay's functions."""
        try:
            with np.errstate(all="ignore"):
                return self._value(node)
        except (RelayError, UnknownNameError, NotEvaluated):
            raise
        except Exception as error:  # of the user's expression: importing the file shows it
            raise NotEvaluated from error

    def _value(self, node: ast.expr | None) -> object:
        self.budget.take(1)
        match node:
            case ast.Constant(value=value):
                return _no_more_bits(value)
            case ast.Name(id=name):
                return _require_known(self.names[name] if name in self.names else vars(builtins)[name])
            case ast.Attribute(value=around, attr=name):
                return _require_known(attribute(self._value(around), name))
            case ast.Tuple(elts=items):
                return tuple(self._items(items))
            case ast.List(elts=items):
                return self._items(items)
            case ast.Set(elts=items):
                return set(map(_key, _bounded_items(self._items(items))))
            case ast.Dict(keys=keys, values=values):
                return {_key(self._value(k)): self._value(v) for k, v in zip(_bounded_items(keys), values, strict=True)}
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(type(op), self._value(left), self._value(right))
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, self._value(operand))
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._comparison(ops, [self._value(n) for n in (left, *others)])
            case ast.BoolOp(op=op, values=values):
                return self._short_circuit(values, isinstance(op, ast.Or))
            case ast.IfExp(test=test, body=body, orelse=other):
                return self._value(body if truth_value(self._value(test)) else other)
            case ast.Subscript(value=around, slice=inside):
                return self._subscript(self._value(around), inside)
            case ast.Call(func=function, args=arguments, keywords=keywords):
                return self._call(function, arguments, keywords)
            case _:
                raise NotEvaluated

    def _items(self, nodes: Sequence[ast.expr]) -> list[object]:
        found: list[object] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                inner = self._value(node.value)
                several = isinstance(inner, TypeId | typing.TypeVarTuple)  # `*s` in a shape
                whole = list(inner) if several else self.sequence(inner)  # type: ignore[call-overload]
                self.budget.take(self.weight(whole))
                found += whole
            else:
                found.append(self._value(node))
                self.budget.take(self.weight(found[-1]))
        return found

    def _call(self, function: ast.expr, arguments: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> object:
        from relay.frontend.static.evaluated_calls import evaluate_call  # which evaluates by operations of this module

        named: dict[str, object] = {}
        for keyword in keywords:
            if keyword.arg is None:
                raise NotEvaluated
            named[keyword.arg] = self._value(keyword.value)
        return evaluate_call(self, self._value(function), self._items(arguments), named)

    # ---- sizes

    def weight(self, value: object) -> int:
        """The number of elements of a value, parts of parts included, however often a part is shared. Raises
        NotEvaluated where there are too many."""
        pending, items, elements = [value], 0, 0
        while pending:
            item = pending.pop()
            items += 1
            if items % _MANY == 0:
                self.budget.take(_MANY)  # the time that counting takes, also where it is in vain
                if items > MOST_ITEMS:
                    raise NotEvaluated
            if isinstance(item, list | tuple | set | frozenset):
                pending += item
            elif isinstance(item, dict):
                pending += [*item, *item.values()]
            elif isinstance(item, np.ndarray):
                elements += item.size
            elif isinstance(item, str | bytes | range):
                elements += len(item)
        return items + elements

    def sequence(self, value: object) -> list[object]:
        """The items of what can be iterated over."""
        if isinstance(value, list | tuple | dict | str | bytes | range):
            self.budget.take(len(value))
            return list(value)
        if isinstance(value, np.ndarray):
            self.budget.take(value.size)
            return list(value)
        raise NotEvaluated

    # ---- operations

    def binary(self, op: type[ast.operator], left: object, right: object) -> object:
        """`left op right`."""
        apply = _BINARY.get(op)
        if apply is None:
            raise NotEvaluated
        if is_number(left) and is_number(right):
            if isinstance(left, int) and isinstance(right, int):
                _bound_bits(op, left, right)
            return apply(left, right)
        if is_numeric(left) and is_numeric(right):
            self._bound_elements(op, np.asarray(left), np.asarray(right))
            return apply(left, right)
        if isinstance(left, Arithmetic | int) and isinstance(right, Arithmetic | int):
            for dim in (left, right):
                if isinstance(dim, DimExpr) and len(dim.terms) > _MOST_TERMS:
                    raise NotEvaluated
            if op is ast.Pow and not (isinstance(right, int) and 0 <= right <= 8):
                raise NotEvaluated
            return apply(left, right)
        if op is ast.Add and type(left) is type(right) and isinstance(left, list | tuple | str | bytes):
            self.budget.take(self.weight(left) + self.weight(right))
            return apply(left, right)
        if op is ast.Mult:
            many, count = (right, left) if isinstance(left, int) else (left, right)
            if isinstance(many, list | tuple | str | bytes) and isinstance(count, int):
                self.budget.take(self.weight(many) * max(count, 0))
                return apply(left, right)
        if op is ast.BitOr and _is_type(left) and _is_type(right):
            return apply(left, right)
        if op is ast.BitOr and isinstance(left, dict) and isinstance(right, dict):
            self.budget.take(self.weight(left) + self.weight(right))
            return apply(left, right)
        raise NotEvaluated

    def _bound_elements(self, op: type[ast.operator], left: np.ndarray, right: np.ndarray) -> None:
        if op is not ast.MatMult:
            self.budget.take(int(np.prod(np.broadcast_shapes(left.shape, right.shape), dtype=object)))
            return
        self.budget.take(left.size * (right.size // max(right.shape[-2 if right.ndim > 1 else 0], 1)))

    def _unary(self, op: ast.unaryop, operand: Any) -> object:
        if isinstance(op, ast.Not):
            return not truth_value(operand)
        if not is_numeric(operand) and not (isinstance(operand, Arithmetic) and isinstance(op, ast.USub)):
            raise NotEvaluated
        self.budget.take(self.weight(operand))
        return {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}[type(op)](operand)  # type: ignore[operator]

    def _comparison(self, ops: Sequence[ast.cmpop], values: Sequence[object]) -> object:
        found: object = True
        for op, (left, right) in zip(ops, pairwise(values), strict=True):
            if isinstance(op, ast.Is | ast.IsNot):
                found = (left is right) == isinstance(op, ast.Is)
            else:
                self.budget.take(self.weight(left) + self.weight(right))
                if not (_is_plain(left) and _is_plain(right)):
                    raise NotEvaluated
                found = _COMPARISONS[type(op)](left, right)
            if not truth_value(found) and len(ops) > 1:
                break
        return found

    def _short_circuit(self, nodes: Sequence[ast.expr], decides: bool) -> object:
        found: object = None
        for node in nodes:
            found = self._value(node)
            if truth_value(found) is decides:
                break
        return found

    def _subscript(self, around: object, inside: ast.expr) -> object:
        if isinstance(inside, ast.Slice):
            place: Any = self._slice(inside)
        elif isinstance(inside, ast.Tuple) and any(isinstance(n, ast.Slice) for n in inside.elts):
            place = tuple(self._slice(n) if isinstance(n, ast.Slice) else self._value(n) for n in inside.elts)
        else:
            place = self._value(inside)
        if isinstance(around, list | tuple | str | bytes | range) and isinstance(place, int | slice):
            found: object = around[place]
            if isinstance(place, slice):
                self.budget.take(self.weight(found))
            return found
        if isinstance(around, dict):
            return around[_key(place)]
        if isinstance(around, np.ndarray):
            if not all(n is None or n is ... or isinstance(n, int | slice) for n in _unpacked_items(place)):
                raise NotEvaluated
            return around[place]
        return _subscript_type(around, place)

    def _slice(self, node: ast.Slice) -> slice:
        bounds = [None if n is None else self._value(n) for n in (node.lower, node.upper, node.step)]
        if not all(b is None or isinstance(b, int) for b in bounds):
            raise NotEvaluated
        return slice(*bounds)


def attribute(around: object, name: str) -> object:
    """`around.name`, for values whose attributes no code of a file gives. Raises NotEvaluated, or AttributeError."""
    if name.startswith("_"):
        raise NotEvaluated
    if isinstance(around, types.ModuleType):
        reads = getattr(around, "__relay_file__", False)  # a module of the user's, which is only read
        if not reads and around.__name__.split(".")[0] not in MODULES:
            raise NotEvaluated
        if reads or around.__name__ == "relay":
            return getattr(around, name)
        found = vars(around).get(name, NotEvaluated)
        if found is NotEvaluated:
            raise NotEvaluated
        return found
    if isinstance(around, type):
        found = next((vars(c)[name] for c in around.__mro__ if name in vars(c)), None)
        is_written = isinstance(vars(around).get("__module__"), str) and around.__module__.startswith("<check ")
        if not is_written or isinstance(found, SourceFunction | staticmethod | classmethod | property | None):
            raise NotEvaluated
        return found
    if isinstance(around, np.ndarray | np.generic | np.dtype | np.finfo | np.iinfo) and name in _OF_ARRAYS:
        return getattr(around, name)
    if name == "def_gradient" and isinstance(getattr(around, "__relay__", None), Definition):
        return getattr(around, name)
    raise NotEvaluated


_OF_ARRAYS = (
    *("shape", "ndim", "size", "T", "dtype", "real", "imag", "itemsize", "name", "kind"),
    *("eps", "min", "max", "tiny", "bits", "resolution", "smallest_normal", "smallest_subnormal"),
)


def _require_known(value: object) -> object:
    if isinstance(value, UnknownValue):
        raise NotEvaluated
    return value


def truth_value(value: object) -> bool:
    """True if a value is true."""
    if value is None or isinstance(value, list | tuple | dict | set | str | bytes | range) or is_numeric(value):
        return bool(value)
    raise NotEvaluated


def is_number(value: object) -> bool:
    """True if a value is a number of Python."""
    return type(value) in (int, float, bool, complex)


def is_numeric(value: object) -> bool:
    """True if a value is a number, or an array of numbers in machine words."""
    if isinstance(value, np.ndarray | np.number | np.bool_):
        return value.dtype.kind in "biufc"
    return is_number(value) and not (isinstance(value, int) and value.bit_length() > 63)


def _is_plain(value: object) -> bool:
    """True if a value is compared by Python alone."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list | tuple | set):
            pending += item
        elif isinstance(item, dict):
            pending += [*item, *item.values()]
        elif not (item is None or item is ... or is_number(item) or is_numeric(item) or isinstance(item, _COMPARED)):
            return False
    return True


_COMPARED = (str, bytes, range, type, types.ModuleType)


def _is_type(value: object) -> bool:
    return value is None or isinstance(value, type | types.GenericAlias | types.UnionType)


def _no_more_bits(value: object) -> object:
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise NotEvaluated
    return value


def _bound_bits(op: type[ast.operator], left: int, right: int) -> None:
    bits = left.bit_length() + right.bit_length()
    if op is ast.Pow:
        bits = left.bit_length() * max(right, 1)
    elif op is ast.LShift:
        bits = left.bit_length() + max(right, 0)
    if bits > MOST_BITS:
        raise NotEvaluated


def _key(value: object) -> object:
    """A key of a dict or set, whose hash is Python's."""
    if not all(v is None or is_number(v) or isinstance(v, str | bytes) for v in _unpacked_items(value)):
        raise NotEvaluated
    return value


def _unpacked_items(value: object) -> Sequence[object]:
    return value if isinstance(value, tuple) else (value,)


def _bounded_items(items: Sequence[Any]) -> Sequence[Any]:
    if len(items) > _MOST_KEYS or any(item is None for item in items):
        raise NotEvaluated
    return items


def _subscript_type(head: object, item: object) -> object:
    """`head[item]` of a type."""
    items = item if isinstance(item, tuple) else (item,)
    if any(isinstance(i, UnknownValue) for i in items):
        raise NotEvaluated
    ours = any(head is known for known in (Tensor, Fn, PureFn, Forall, Ref)) or data_class(head) is not None
    pythons = any(head is known for known in (tuple, list, dict, type, set)) or type(head).__module__ == "typing"
    pythons = pythons or head is typing.Generic
    if ours or (pythons and not any(isinstance(i, str) for i in items)):  # `typing` compiles texts
        return head[item]  # type: ignore[index]
    raise NotEvaluated


_BINARY: dict[type[ast.operator], Callable[[Any, Any], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, around: item in around,
    ast.NotIn: lambda item, around: item not in around,
}
