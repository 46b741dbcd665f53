"""Calls that constant evaluation supports at the top of a file that is not imported.

They are known by identity. Each gets arguments that have been checked, and makes a result whose size has been computed.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, TypeVarTuple

import numpy as np

from relay.frontend.static.evaluation import MOST_BITS, Evaluator, NotEvaluated, is_number, is_numeric, truth_value

_Rule = Callable[..., object]

_DTYPE = re.compile(r"[<>=|]?[a-z_]{1,12}\d{0,3}")
_MOST_DIGITS = 100
_MOST_OF_FACTORIALS = 500
_MOST_DIMS = 16


def evaluate_call(evaluator: Evaluator, function: Any, arguments: Sequence[Any], named: dict[str, object]) -> object:
    """The result of a call. Raises NotEvaluated, and what the function raises."""
    rule = _rules().get(id(function))
    if rule is not None:
        return rule(evaluator, *arguments, **named)
    if isinstance(function, np.ufunc):
        return _elementwise(evaluator, function, arguments, named)
    if isinstance(function, type) and issubclass(function, np.number | np.bool_) and not named and len(arguments) == 1:
        array = _array(evaluator, arguments[0])
        evaluator.budget.take(array.size)
        return function(arguments[0])
    if function in _of_math() and not named:
        return _of_number(function, arguments)
    raise NotEvaluated


@functools.cache
def _rules() -> dict[int, _Rule]:
    """By the functions' identities; they live as long as their modules."""
    relay = importlib.import_module("relay")
    own: list[tuple[object, _Rule]] = [
        *((getattr(relay, name), _variables(getattr(relay, name))) for name in _VARIABLES),
        *((getattr(relay, name), _derivative(getattr(relay, name))) for name in _DERIVATIVES),
        (TypeVar, _type_variable(TypeVar)),
        (TypeVarTuple, _type_variable(TypeVarTuple)),
    ]
    return {id(function): rule for function, rule in (*own, *_OF_BUILTINS, *_OF_NUMPY)}


@functools.cache
def _of_math() -> frozenset[object]:
    sequences = (math.prod, math.fsum, math.dist, math.sumprod if hasattr(math, "sumprod") else None)
    return frozenset(f for f in vars(math).values() if callable(f)) - {*sequences, type(math.__loader__)}


# ---- Relay's


_VARIABLES = ("dims", "type_var", "shape_var", "base_type_var")
_DERIVATIVES = ("grad", "value_and_grad", "jacobian", "hessian", "checkpoint", "vmap")


def _variables(make: Callable[[str], object]) -> _Rule:
    def rule(evaluator: Evaluator, names: Any) -> object:
        if not isinstance(names, str):
            raise NotEvaluated
        return make(names)

    return rule


def _derivative(derive: Callable[..., object]) -> _Rule:
    def rule(evaluator: Evaluator, function: Any, *arguments: Any, **named: Any) -> object:
        evaluator.budget.take(10_000)  # for each reads a template
        return derive(function, *arguments, **named)

    return rule


def _type_variable(make: Callable[[str], object]) -> _Rule:
    """Type variables; their bounds mean nothing to Relay."""

    def rule(evaluator: Evaluator, name: Any, *bounds: Any, **named: Any) -> object:
        if not isinstance(name, str):
            raise NotEvaluated
        return make(name)

    return rule


# ---- Python's


def _range(evaluator: Evaluator, *bounds: Any) -> object:
    return range(*map(_integer, bounds))


def _tuple(evaluator: Evaluator, items: Any = ()) -> object:
    return tuple(evaluator.sequence(items))


def _list(evaluator: Evaluator, items: Any = ()) -> object:
    return evaluator.sequence(items)


def _dict(evaluator: Evaluator, items: Any = None, **named: Any) -> object:
    if items is not None and not isinstance(items, dict):
        raise NotEvaluated
    evaluator.budget.take(evaluator.weight(items))
    return {**(items or {}), **named}


def _len(evaluator: Evaluator, items: Any) -> object:
    if not isinstance(items, list | tuple | dict | set | str | bytes | range | np.ndarray):
        raise NotEvaluated
    return len(items)


def _extremum(choose: Callable[..., object]) -> _Rule:
    def rule(evaluator: Evaluator, *items: Any) -> object:
        found = evaluator.sequence(items[0]) if len(items) == 1 else list(items)
        if not all(map(is_number, found)) and not all(isinstance(item, str) for item in found):
            raise NotEvaluated
        return choose(found)

    return rule


def _number(make: Callable[[Any], object]) -> _Rule:
    def rule(evaluator: Evaluator, value: Any = 0) -> object:
        is_text = isinstance(value, str) and len(value) <= _MOST_DIGITS
        if not (is_text or is_number(value) or (is_numeric(value) and np.ndim(value) == 0)):
            raise NotEvaluated
        return make(value)

    return rule


def _bool(evaluator: Evaluator, value: Any = False) -> object:
    return truth_value(value)


def _abs(evaluator: Evaluator, value: Any) -> object:
    if not is_numeric(value):
        raise NotEvaluated
    evaluator.budget.take(evaluator.weight(value))
    return abs(value)


def _round(evaluator: Evaluator, value: Any, digits: Any = None) -> object:
    if not is_number(value) or not (digits is None or abs(_integer(digits)) <= _MOST_DIGITS):
        raise NotEvaluated
    return round(value, digits)


def _sum(evaluator: Evaluator, items: Any, start: Any = 0) -> object:
    total = start
    for item in evaluator.sequence(items):
        total = evaluator.binary(ast.Add, total, item)
    return total


def _zip(evaluator: Evaluator, *items: Any) -> object:
    return tuple(zip(*map(evaluator.sequence, items), strict=False))


_OF_BUILTINS: tuple[tuple[object, _Rule], ...] = (
    (builtins.range, _range),
    (builtins.tuple, _tuple),
    (builtins.list, _list),
    (builtins.dict, _dict),
    (builtins.len, _len),
    (builtins.min, _extremum(min)),
    (builtins.max, _extremum(max)),
    (builtins.float, _number(float)),
    (builtins.int, _number(int)),
    (builtins.bool, _bool),
    (builtins.abs, _abs),
    (builtins.round, _round),
    (builtins.sum, _sum),
    (builtins.zip, _zip),
)


def _of_number(function: Callable[..., object], arguments: Sequence[Any]) -> object:
    """A function of `math`."""
    if not all(is_number(a) or (is_numeric(a) and np.ndim(a) == 0) for a in arguments):
        raise NotEvaluated
    grows = function in (math.factorial, math.comb, math.perm)
    if grows and any(abs(_integer(a)) > _MOST_OF_FACTORIALS for a in arguments):
        raise NotEvaluated
    found = function(*arguments)
    if isinstance(found, int) and found.bit_length() > MOST_BITS:
        raise NotEvaluated
    return found


# ---- NumPy's


def _integer(value: Any) -> int:
    if not isinstance(value, int | np.integer):
        raise NotEvaluated
    return int(value)


def _dtype(dtype: Any) -> np.dtype[Any]:
    """A dtype of numbers. Raises NotEvaluated for others, which may be as large as one likes."""
    if isinstance(dtype, str) and not _DTYPE.fullmatch(dtype):
        raise NotEvaluated
    is_type = isinstance(dtype, type) and (issubclass(dtype, np.number | np.bool_) or dtype in (float, int, bool))
    if not (is_type or isinstance(dtype, str | np.dtype)):
        raise NotEvaluated
    found = np.dtype(dtype)
    if found.kind not in "biufc":
        raise NotEvaluated
    return found  # type: ignore[no-any-return]


def _options(dtype: Any) -> dict[str, Any]:
    return {} if dtype is None else {"dtype": _dtype(dtype)}


def _array(evaluator: Evaluator, value: Any) -> np.ndarray:
    """An array of numbers."""
    if isinstance(value, list | tuple | range):
        evaluator.budget.take(evaluator.weight(value))
        if not _holds_numbers(value):
            raise NotEvaluated
    elif not is_numeric(value):
        raise NotEvaluated
    found = np.asarray(value)
    if found.dtype.kind not in "biufc":
        raise NotEvaluated
    return found


def _holds_numbers(value: Any) -> bool:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list | tuple):
            pending += item
        elif not (isinstance(item, range) or is_numeric(item)):
            return False
    return True


def _shape(evaluator: Evaluator, shape: Any) -> tuple[int, ...]:
    found = tuple(map(_integer, shape)) if isinstance(shape, list | tuple) else (_integer(shape),)
    if any(size < 0 for size in found) or len(found) > _MOST_DIMS:
        raise NotEvaluated
    evaluator.budget.take(math.prod(found))
    return found


def _as_array(evaluator: Evaluator, value: Any, dtype: Any = None) -> object:
    array = _array(evaluator, value)
    evaluator.budget.take(array.size)
    return np.array(array, **_options(dtype))


def _fill_rule(make: Callable[..., object]) -> _Rule:
    def rule(evaluator: Evaluator, shape: Any, dtype: Any = None) -> object:
        return make(_shape(evaluator, shape), **_options(dtype))

    return rule


def _full(evaluator: Evaluator, shape: Any, fill_value: Any, dtype: Any = None) -> object:
    return np.full(_shape(evaluator, shape), _array(evaluator, fill_value), **_options(dtype))


def _like_rule(make: Callable[..., object]) -> _Rule:
    def rule(evaluator: Evaluator, value: Any, dtype: Any = None) -> object:
        array = _array(evaluator, value)
        evaluator.budget.take(array.size)
        return make(array, **_options(dtype))

    return rule


def _arange(evaluator: Evaluator, *bounds: Any, dtype: Any = None) -> object:
    if not 1 <= len(bounds) <= 3 or not all(is_numeric(b) and np.ndim(b) == 0 for b in bounds):
        raise NotEvaluated
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    evaluator.budget.take(max(math.ceil((stop - start) / step), 0))
    return np.arange(start, stop, step, **_options(dtype))


def _linspace(evaluator: Evaluator, start: Any, stop: Any, num: Any = 50, **options: Any) -> object:
    if not all(is_numeric(b) and np.ndim(b) == 0 for b in (start, stop)) or not options.keys() <= {"endpoint", "dtype"}:
        raise NotEvaluated
    ends: Any = options.get("endpoint", True)
    if not isinstance(ends, bool):
        raise NotEvaluated
    (count,) = _shape(evaluator, _integer(num))
    return np.linspace(start, stop, count, endpoint=ends, **_options(options.get("dtype")))


def _eye(evaluator: Evaluator, N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> object:
    rows, columns = _shape(evaluator, (N, N if M is None else M))
    return np.eye(rows, columns, _integer(k), **_options(dtype))


def _identity(evaluator: Evaluator, n: Any, dtype: Any = None) -> object:
    return np.eye(*_shape(evaluator, (n, n)), **_options(dtype))


def _prod(evaluator: Evaluator, a: Any, axis: Any = None, dtype: Any = None) -> object:
    array = _array(evaluator, a)
    evaluator.budget.take(array.size)
    return np.prod(array, axis=None if axis is None else _integer(axis), **_options(dtype))


def _reshape(evaluator: Evaluator, a: Any, shape: Any) -> object:
    sizes = tuple(map(_integer, shape)) if isinstance(shape, list | tuple) else (_integer(shape),)
    array = _array(evaluator, a)
    evaluator.budget.take(array.size)
    return array.reshape(sizes)


def _join_rule(join: Callable[..., object]) -> _Rule:
    def rule(evaluator: Evaluator, arrays: Any, axis: Any = 0) -> object:
        if not isinstance(arrays, list | tuple):
            raise NotEvaluated
        parts = [_array(evaluator, a) for a in arrays]
        evaluator.budget.take(sum(part.size for part in parts))
        return join(parts, axis=None if axis is None else _integer(axis))

    return rule


def _transpose(evaluator: Evaluator, a: Any, axes: Any = None) -> object:
    order = tuple(map(_integer, axes)) if isinstance(axes, list | tuple) else None
    return np.transpose(_array(evaluator, a), order)


def _elementwise(
    evaluator: Evaluator, function: np.ufunc, arguments: Sequence[Any], named: dict[str, object]
) -> object:
    if named or len(arguments) != function.nin:
        raise NotEvaluated
    arrays = [_array(evaluator, a) for a in arguments]
    if function is np.matmul:
        return evaluator.binary(ast.MatMult, *arrays)
    if function.signature is not None:
        raise NotEvaluated
    evaluator.budget.take(math.prod(np.broadcast_shapes(*(a.shape for a in arrays))))
    return function(*arguments)


_OF_NUMPY: tuple[tuple[object, _Rule], ...] = (
    (np.array, _as_array),
    (np.asarray, _as_array),
    (np.zeros, _fill_rule(np.zeros)),
    (np.ones, _fill_rule(np.ones)),
    (np.full, _full),
    (np.arange, _arange),
    (np.linspace, _linspace),
    (np.eye, _eye),
    (np.identity, _identity),
    (np.dtype, lambda evaluator, dtype: _dtype(dtype)),
    (np.prod, _prod),
    (np.reshape, _reshape),
    (np.zeros_like, _like_rule(np.zeros_like)),
    (np.ones_like, _like_rule(np.ones_like)),
    (np.stack, _join_rule(np.stack)),
    (np.concatenate, _join_rule(np.concatenate)),
    (np.transpose, _transpose),
    (np.finfo, lambda evaluator, dtype: np.finfo(_dtype(dtype))),
    (np.iinfo, lambda evaluator, dtype: np.iinfo(_dtype(dtype))),
)
