"""Python builtins and NumPy functions that are not operators: `any`, `round`, `np.array`, .."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Sequence

import attrs
import numpy as np

from relay.errors import FrontendError, Span, TypeCheckError
from relay.ir.types import INT32, BaseClass, BaseType, Kind, TensorType, prune, scalar
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    Progression,
    PythonObject,
    Range,
    Size,
    SliceItem,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_items, list_reductions
from relay.typecheck.elaboration.expressions import comparisons, operators
from relay.typecheck.elaboration.expressions.attributes import normalize_attribute, static_value
from relay.typecheck.elaboration.expressions.intrinsics import elements
from relay.typecheck.elaboration.expressions.python_operators import apply_named
from relay.typecheck.elaboration.library import numpy_matrices, ordering
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.objects import object_entity
from relay.typecheck.elaboration.values.subscripts import index
from relay.typecheck.elaboration.values.tensors import tensor_type
from relay.typecheck.unification import resolve

Keywords = Sequence[tuple[str, AbstractValue]]
Rule = Callable[[Checker, TypedBlockBuilder, Sequence[AbstractValue], "Span | None"], AbstractValue]


def call(
    checker: Checker,
    out: TypedBlockBuilder,
    function: object,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue | None:
    """Call one of these functions; None for all others."""
    rule = next((rule for known, rule in _RULES if known is function), None)
    if rule is None:
        return None
    name = getattr(function, "__name__", "function")
    if function is np.clip:
        return _clip_call(checker, out, arguments, keywords, span)
    given = list(arguments)
    if rule is array and len(given) == 2:
        keywords, given = [("dtype", given[1]), *keywords], given[:1]
    dtype: AbstractValue | None = None
    named = dict(keywords)
    for key, default in _DEFAULTS.get(name, ())[max(len(given) - 2, 0) :]:
        given.append(named.pop(key, Number(default, span)))
    for key, entity in named.items():
        if key != "dtype" or rule is not array:
            raise TypeCheckError(f"{name} takes no argument {key!r} here", span)
        dtype = entity
    low, high = _ARITY.get(name, (1, 1))
    if not low <= len(given) <= high:
        raise TypeCheckError(f"{name} takes {low} argument{'s' * (low != 1)}, found {len(given)}", span)
    result = rule(checker, out, given, span)
    if dtype is not None:
        attributes = {"dtype": normalize_attribute("dtype", static_value(dtype, "dtype", span))}
        result = operators.apply(checker, out, lookup("cast"), [result], attributes, span, [])
    return result


def refusal(function: object, span: Span | None) -> FrontendError | None:
    """The error for a function of Python or NumPy that users try, with what to write instead; None for others."""
    module = (getattr(function, "__module__", None) or "").split(".")
    name = getattr(function, "__name__", "")
    if "random" in module or hasattr(getattr(function, "__self__", None), "get_state"):
        return FrontendError(
            f"{name} of Python's or NumPy's random numbers is not part of a program",
            span,
            help="draw them with a key: relay.random.normal(key, (3,)); or make the numbers outside and pass them",
        )
    if isinstance(function, type) and function.__module__ == "itertools":
        return FrontendError(f"`{name}` is not part of Relay", span, help="write loops inside of each other")
    help = _INSTEAD.get(function) if callable(function) and _hashable(function) else None
    return None if help is None else FrontendError(f"`{name}` is not part of Relay", span, help=help)


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _items(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None
) -> list[AbstractValue] | None:
    """The components of a tuple; None for a tensor."""
    if isinstance(entity, DynamicValue):
        entity = expand(checker, out, entity, span)
    return list(entity.items) if isinstance(entity, Tuple) else None


def _quantifier(name: str, decides: bool) -> Rule:
    def rule(
        checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
    ) -> AbstractValue:
        xs = ordering.values(checker, out, arguments[0], span)
        items = _items(checker, out, xs, span)
        if isinstance(xs, DynamicValue) and dynamic_lists.is_growing(xs):
            return list_reductions.any_or_all(checker, out, xs, lambda body, x: x, decides, span)
        if items is None:
            return operators.apply(checker, out, lookup(name), [xs], {}, span, [])
        truths = (object_entity(bool(i.value), span) if isinstance(i, Number) else i for i in items)
        return comparisons.combine_conditions(checker, out, truths, decides, span)

    return rule


def _round(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """Half to even. Of a float scalar it is int32, as in Python; of a tensor it is elementwise, as in NumPy."""
    match list(arguments):
        case [Number(value)]:
            return Number(round(value), span)
        case [Number(value), Number(int(digits))]:
            return Number(round(value, digits), span)
    if len(arguments) > 1:
        raise TypeCheckError(
            "`round` to digits is for numbers that are known at compile time",
            span,
            help="scale it: relay.round(x * 10.0) / 10.0",
        )
    x = checker.materialize(out, arguments[0], span)
    if not isinstance(prune(x.type), TensorType):
        checker.unify_at(x.type, scalar(checker.solver.fresh(Kind.BaseType)), span, "what `round` takes")
    type_ = resolve(x.type)
    assert isinstance(type_, TensorType)
    if isinstance(type_.base, BaseType) and type_.base.base_class is BaseClass.INTEGER:
        return x
    rounded = operators.apply(checker, out, lookup("round"), [x], {}, span, [])
    if type_.shape:
        return rounded
    return operators.apply(checker, out, lookup("cast"), [rounded], {"dtype": INT32}, span, [])


def _to_integer(name: str) -> Rule:
    """`math.floor` and the like: of a scalar the integer, int32; of a tensor elementwise, as in NumPy."""

    def rule(
        checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
    ) -> AbstractValue:
        (value,) = arguments
        if isinstance(value, Number):
            return value if isinstance(value, Size) else Number(getattr(math, name)(value.value), span)
        x = checker.materialize(out, value, span)
        if not isinstance(prune(x.type), TensorType):
            checker.unify_at(x.type, scalar(checker.solver.fresh(Kind.BaseType)), span, f"what `math.{name}` takes")
        type_ = resolve(x.type)
        assert isinstance(type_, TensorType)
        if isinstance(type_.base, BaseType) and type_.base.base_class is BaseClass.INTEGER:
            return x
        rounded = operators.apply(checker, out, lookup(name), [x], {}, span, [])
        if type_.shape:
            return rounded
        return operators.apply(checker, out, lookup("cast"), [rounded], {"dtype": INT32}, span, [])

    return rule


def _pow(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    return apply_named(checker, out, "power", list(arguments), {}, span, [])


def _divmod(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    names = ("floor_divide", "mod")
    return Tuple(tuple(apply_named(checker, out, n, list(arguments), {}, span, []) for n in names))


def _reversed_range(checker: Checker, out: TypedBlockBuilder, xs: Range, span: Span | None) -> AbstractValue:
    """The numbers of a range whose bounds are sizes, or run-time numbers, from the last one on."""
    if not isinstance(xs.start, Number) or not isinstance(xs.stop, Number) or xs.backward:
        return attrs.evolve(xs, backward=not xs.backward, reversed=True)

    def call(name: str, *operands: AbstractValue) -> AbstractValue:
        return apply_named(checker, out, name, list(operands), {}, span, [])

    step, one = Number(xs.step, span), Number(1 if xs.step > 0 else -1, span)
    beyond = call("subtract", call("subtract", xs.stop, one), xs.start)
    last = call("add", xs.start, call("multiply", call("floor_divide", beyond, step), step))
    return Range(last, call("subtract", xs.start, step), -xs.step, reversed=True)


def _reverse_sequence(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    xs = arguments[0]
    if isinstance(xs, DynamicValue) and dynamic_lists.is_growing(xs):
        return list_items.slice_list(checker, out, xs, None, None, Number(-1, span), span)
    if isinstance(xs, Range):
        return _reversed_range(checker, out, xs, span)
    if isinstance(xs, Progression):
        return attrs.evolve(xs, backward=not xs.backward)
    if isinstance(xs, DynamicValue) and (type_ := tensor_type(xs)) is not None and type_.rank > 0:
        return index(checker, out, xs, [SliceItem(None, None, Number(-1, span))], span)
    found = elements(checker, out, xs, span)
    if found is None and checker.generic and isinstance(xs, DynamicValue):
        raise SchemeOnly(span, "the length of the argument of reversed")
    if found is None:
        raise TypeCheckError(
            "`reversed` needs a length that is known", span, help="use range(n - 1, -1, -1), or x[::-1]"
        )
    return Tuple(tuple(reversed(found)))


def array(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """`np.array([[a, b], [c, d]])`: stacked, from the inside out."""
    entity = ordering.values(checker, out, arguments[0], span)
    if isinstance(entity, DynamicValue) and dynamic_lists.is_growing(entity):
        whole = list_reductions.as_tensor(
            checker, out, entity, span, lambda body, element: array(checker, body, [element], span)
        )
        if whole is not None:
            return whole
        entity = list_reductions.element_tuple(checker, out, entity, span)
    items = _items(checker, out, entity, span)
    if items is None:
        return checker.materialize(out, entity, span)
    if not items:
        raise TypeCheckError("an empty array has no dtype", span, help="use relay.zeros((0,))")
    rows = [array(checker, out, [i], span) if isinstance(i, Tuple | DynamicValue) else i for i in items]
    return operators.apply(checker, out, lookup("stack"), rows, {}, span, [])


def _log(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """`math.log(x)` and `math.log(x, base)`."""
    logs = [operators.apply(checker, out, lookup("log"), [a], {}, span, []) for a in arguments]
    return logs[0] if len(logs) == 1 else operators.apply(checker, out, lookup("divide"), logs, {}, span, [])


def _float_power(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """`math.pow(x, y)`, which is a float where `x ** y` may be an integer."""
    numbers = [Number(float(a.value), span) if type(a) is Number else a for a in arguments]
    types = [prune(a.type) for a in numbers if isinstance(a, DynamicValue) and not a.of_range]
    bases = [prune(t.base) for t in types if isinstance(t, TensorType)]
    if any(isinstance(b, BaseType) and b.base_class is BaseClass.INTEGER for b in bases):
        help = "convert: math.pow(float(n), 2.0); or n ** 2, which is an integer"
        raise TypeCheckError("math.pow is about floats, found integers", span, help=help)
    return apply_named(checker, out, "power", numbers, {}, span, [])


def _of_floats(name: str, operator: str, instead: str) -> Rule:
    """A function that NumPy has for integers with another meaning than here."""

    def rule(
        checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
    ) -> AbstractValue:
        (value,) = arguments
        type_ = prune(value.type) if isinstance(value, DynamicValue) and not value.of_range else None
        base = prune(type_.base) if isinstance(type_, TensorType) else None
        if (type(value) is Number and not value.is_float) or (
            isinstance(base, BaseType) and base.base_class is BaseClass.INTEGER
        ):
            raise TypeCheckError(f"{name} of integers is not part of Relay", span, help=instead)
        return operators.apply(checker, out, lookup(operator), [value], {}, span, [])

    return rule


def _product(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """`math.prod(xs)`: of numbers one after the other, or of the elements of a vector."""
    items = _items(checker, out, arguments[0], span)
    if items is None:
        x = checker.materialize(out, arguments[0], span)
        if len(numpy_matrices.ranked_type(x, span).shape) != 1:
            raise TypeCheckError("math.prod goes along one axis", span, help="of all elements: np.prod(x)")
        return operators.apply(checker, out, lookup("prod"), [x], {}, span, [])
    result: AbstractValue = Number(1, span)
    for item in items:
        result = apply_named(checker, out, "multiply", [result, item], {}, span, [])
    return result


def _clip(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    value, low, high = arguments
    for name, bound in (("maximum", low), ("minimum", high)):
        if not (isinstance(bound, PythonObject) and bound.value is None):
            value = operators.apply(checker, out, lookup(name), [value, bound], {}, span, [])
    return value


def clip(
    checker: Checker,
    out: TypedBlockBuilder,
    value: AbstractValue,
    arguments: Sequence[AbstractValue],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue:
    """`x.clip(low, high)`, also by name."""
    bounds: dict[str, AbstractValue] = dict(zip(("min", "max"), arguments, strict=False))
    for name, bound in keywords:
        name = {"a_min": "min", "a_max": "max"}.get(name, name)
        if name not in ("min", "max") or name in bounds:
            raise TypeCheckError("clip takes the bounds min and max, each once", span)
        bounds[name] = bound
    if len(arguments) > 2:
        raise TypeCheckError("clip takes the bounds min and max", span)
    low, high = (bounds.get(name, PythonObject(None)) for name in ("min", "max"))
    return _clip(checker, out, [value, low, high], span)


def _clip_call(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], keywords: Keywords, span: Span | None
) -> AbstractValue:
    """`np.clip(x, low, high)`."""
    if not arguments:
        raise TypeCheckError("clip needs an array", span)
    return clip(checker, out, arguments[0], arguments[1:], keywords, span)


_RULES: list[tuple[object, Rule]] = [
    (builtins.any, _quantifier("any", True)),
    (builtins.all, _quantifier("all", False)),
    (builtins.round, _round),
    (builtins.pow, _pow),
    (math.floor, _to_integer("floor")),
    (math.ceil, _to_integer("ceil")),
    (math.trunc, _to_integer("trunc")),
    (builtins.divmod, _divmod),
    (builtins.reversed, _reverse_sequence),
    (builtins.isinstance, comparisons.is_instance),
    (math.log, _log),
    (math.pow, _float_power),
    (math.prod, _product),
    (np.rint, _of_floats("rint", "round", "integers are rounded already: np.round(n); or convert: np.rint(float(n))")),
    (np.reciprocal, _of_floats("reciprocal", "reciprocal", "it is 0 for most of them; convert: 1.0 / float(n)")),
    (np.array, array),
    (np.asarray, array),
    (np.clip, _clip),
    *((getattr(np, name), numpy_matrices.concatenation_rule(name)) for name in ("hstack", "vstack", "column_stack")),
    (np.array_equal, numpy_matrices.array_equal),
    (np.isclose, numpy_matrices.isclose),
    (np.allclose, numpy_matrices.allclose),
    (np.linalg.solve, numpy_matrices.of_matrix("solve", "solve__")),
    (np.linalg.inv, numpy_matrices.of_matrix("inv", "inverse__")),
    (np.linalg.det, numpy_matrices.of_matrix("det", "determinant__")),
    (np.linalg.slogdet, numpy_matrices.of_matrix("slogdet", "log_determinant__")),
]
_DEFAULTS = {"isclose": (("rtol", 1e-5), ("atol", 1e-8)), "allclose": (("rtol", 1e-5), ("atol", 1e-8))}
"""What follows the first two arguments."""

_ARITY = {
    "solve": (2, 2), "array_equal": (2, 2), "isclose": (4, 4), "allclose": (4, 4),
    "isinstance": (2, 2), "round": (1, 2), "pow": (2, 2), "divmod": (2, 2), "log": (1, 2),
}  # fmt: skip
KNOWN = tuple(function for function, _ in _RULES)

_INSTEAD: dict[object, str] = {
    builtins.super: "name the class: `Base.method(self, x)`",
    builtins.type: "types are known: test `x.ndim == 1` or `x.dtype == relay.Float32`",
    builtins.repr: 'use an f-string in print: print(f"{x}")',
    builtins.map: "call it with a function and an iterable, or write a comprehension: [f(x) for x in xs]",
    builtins.filter: "call it with a function and an iterable, or write a comprehension with `if`",
    builtins.set: "use a tuple",
    builtins.iter: "write a `for`",
    builtins.next: "write a `for`",
    builtins.input: "pass the input as an argument",
    builtins.open: "pass the input as an argument",
    builtins.complex: "use real numbers",
    builtins.eval: "write the expression",
    builtins.exec: "write the statements",
    builtins.id: "values have no identity; compare them with `==`",
    builtins.hasattr: "attributes are known at compile time",
    builtins.getattr: "write the attribute: x.name",
    np.unique: "the number of distinct elements is data-dependent; relay.unique(x, size) returns a fixed number",
    math.remainder: "the sign of `x % y` is that of y; IEEE's is x - y * relay.round(x / y)",
    functools.partial: "write a lambda: `lambda v: f(v, k=x)`",
    functools.reduce: "write a loop: `for x in xs: total = f(total, x)`",
    builtins.slice: "write it in brackets: x[a:b]",
    builtins.setattr: "build a new value with relay.replace",
}
