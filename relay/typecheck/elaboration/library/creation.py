"""Array creation calls: arguments that Python's signatures leave open.

An array without a dtype takes, like a literal, the dtype of the operands that it meets: `zeros((3,))` is float64 beside
float64. `arange(n)` starts at 0. `full(shape, v)` is of integers, floats or booleans as v is, and also takes a value
that is known only at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from relay.errors import Span
from relay.ir.dims import LARGEST_SIZE
from relay.ir.expr import Binding, Constant, OpCall
from relay.ir.sizes.facts import AT_LEAST, DimConstraint
from relay.ir.types import BOOL, INT32, Base, BaseClass, BaseType, TensorType, Unknown, prune
from relay.operator import Operator, Relation, lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    PythonNumber,
    PythonObject,
    Range,
    Size,
    SizeExpression,
    Tuple,
    TypedBlockBuilder,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow import trip_counts
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_reductions
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.expressions.attributes import checked_attribute, normalize_attribute, static_value
from relay.typecheck.elaboration.library.library_calls import as_sequence
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.tensors import tensor_type
from relay.typecheck.guards import fits_int32
from relay.typecheck.unification import flat_shape

Keywords = Sequence[tuple[str, AbstractValue]]


def completed_arguments(
    operator: Operator, arguments: Sequence[AbstractValue], keywords: Mapping[str, AbstractValue]
) -> list[AbstractValue]:
    """The positional arguments, with the start of `arange(n)`."""
    if operator is lookup("arange") and len(arguments) == 1 and not keywords.keys() & {"start", "stop"}:
        return [PythonNumber(0, arguments[0].span if isinstance(arguments[0], Number) else None), *arguments]
    return list(arguments)


def open_dtype(
    checker: Checker,
    out: TypedBlockBuilder,
    operator: Operator,
    named: dict[str, object],
    arguments: int,
    keywords: Mapping[str, AbstractValue],
    span: Span | None,
) -> None:
    """Let the dtype of the result be decided by its uses, if the call does not give it."""
    if not isinstance(operator.relation, Relation) or operator.relation.base.result.text != "@dtype":
        return
    default = operator.attributes.get("dtype")
    names = (*operator.operands, *operator.attributes)
    if not isinstance(default, BaseType) or "dtype" in keywords or "dtype" in names[:arguments]:
        return
    value = named.get("value") if operator is lookup("full") else None
    if isinstance(value, DynamicValue):  # a boolean, and static
        named["dtype"] = PythonObject(BOOL)
        return
    is_float = default.is_float and not isinstance(value, Number)
    is_float = is_float or any(value.is_float for value in named.values() if isinstance(value, Number))
    base = checker.solver.literal_base(0.0 if is_float else _largest_number(operator, named), span)
    named["dtype"] = PythonObject(base)
    for size in named.values():
        if operator is lookup("arange") and isinstance(size, Size) and not fits_int32(checker.hints, size.dim):
            _check_numbers(checker, out, size, base, span)


def _check_numbers(checker: Checker, out: TypedBlockBuilder, size: Size, base: Base, span: Span | None) -> None:
    """Check at run time that numbers below a size are of a dtype that is not known yet, if that is int32."""
    place = out.slot()

    def finish() -> None:
        if prune(base) == INT32:
            text = f"an arange of int32 has {LARGEST_SIZE} numbers at most: give dtype=relay.Int64"
            data_dependent.require(checker, place, DimConstraint(LARGEST_SIZE, AT_LEAST, size.dim), span, text)

    checker.module.finishers.append(finish)


def _largest_number(operator: Operator, named: Mapping[str, object]) -> int:
    """A number that integers of the array's dtype have to hold."""
    if operator is not lookup("arange"):
        return 0
    bounds = named["start"], named["stop"]
    found = [int(n.specialize()) for n in bounds if isinstance(n, Number) and not isinstance(n, Size | SizeExpression)]
    return max((n - 1 if n > 0 else n for n in found), key=abs, default=0)


def call_full(
    checker: Checker, out: TypedBlockBuilder, operator: Operator, named: Mapping[str, object], span: Span | None
) -> AbstractValue | None:
    """`full(shape, v)` with a run-time value, in its own dtype unless a dtype is passed; None for all other calls."""
    if operator is not lookup("full"):
        return None
    value = data_dependent.number_at_run_time(checker, out, named["value"], span)  # type: ignore[arg-type]
    if not isinstance(value, DynamicValue) or is_constant_bool(value) is not None:
        return None
    shape, dtype = named["shape"], named["dtype"]
    static = static_value(shape, "shape", span, symbolic=True)  # type: ignore[arg-type]
    sizes = normalize_attribute("shape", static)
    if dtype != operator.attributes["dtype"]:
        given = normalize_attribute("dtype", static_value(dtype, "dtype", span))  # type: ignore[arg-type]
        base = checked_attribute(operator, "dtype", given, span)
        value = operators.apply(checker, out, lookup("cast"), [value], {"dtype": base}, span, [])
    return operators.apply(checker, out, lookup("broadcast_to"), [value], {"shape": sizes}, span, ["the value"])


def run_time_arange(
    checker: Checker,
    out: TypedBlockBuilder,
    operator: Operator,
    named: dict[str, object],
    keywords: Keywords,
    span: Span | None,
) -> AbstractValue | None:
    """`arange(a, b, step)` with run-time bounds, as NumPy has it: there may be none, and negative ones. None for what
    is something else, and for `arange(n)`, whose stop becomes the number of its elements."""

    start, stop, step = (named.get(name) for name in ("start", "stop", "step"))
    if operator is not lookup("arange") or not any(_is_count(checker, out, n) for n in (start, stop)):
        return None
    step = PythonNumber(step, span) if isinstance(step, int) else step
    if not isinstance(step, Number) or step.is_float or not step.specialize():
        return None
    if not all(_is_count(checker, out, n) or (isinstance(n, Number) and not n.is_float) for n in (start, stop)):
        return None
    part = Range(start, stop, int(step.specialize()))  # type: ignore[arg-type]
    base = trip_counts.element_base(checker, [part])
    found = trip_counts.count(checker, out, part, base, base, span)
    assert found is not None  # only a range without a stop has none
    if trip_counts.is_zero(part.start) and part.step == 1:
        named["stop"] = attrs.evolve(found, of_range=isinstance(stop, DynamicValue) and stop.of_range)
        return None
    given = [(name, value) for name, value in keywords if name == "dtype"]
    if not given and named["dtype"] != operator.attributes["dtype"]:  # the fourth argument
        given = [("dtype", named["dtype"])]  # type: ignore[list-item]
    places = checker.engine.call_operator(checker, out, operator, [found], given, span, [])
    if part.step != 1:
        places = operators.apply(
            checker, out, lookup("multiply"), [places, PythonNumber(part.step, span)], {}, span, []
        )
    if isinstance(part.start, DynamicValue):
        first: AbstractValue = _cast_later(checker, out, part.start, tensor_type(places).base, span)  # type: ignore[arg-type, union-attr]
    else:
        first = part.start
    return operators.apply(checker, out, lookup("add"), [places, first], {}, span, [])


def _is_count(checker: Checker, out: TypedBlockBuilder, entity: object) -> bool:
    """True if this is an integer that is known only at run time."""
    if not isinstance(entity, DynamicValue) or isinstance(entity.atom, Constant):
        return False
    type_ = prune(entity.type)
    if not isinstance(type_, TensorType) or flat_shape(type_.shape):
        return False
    base = prune(type_.base)
    if isinstance(base, Unknown):
        return bool(base.literals) and BaseClass.INTEGER in (base.classes or ())
    return isinstance(base, BaseType) and base.base_class is BaseClass.INTEGER


def _cast_later(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, base: Base, span: Span | None
) -> DynamicValue:
    """A number in a dtype that may be open yet."""
    type_ = TensorType(base, ())
    var, place = checker.variable("start", type_, span), out.slot()

    def finish() -> None:
        if isinstance(final := prune(base), BaseType):  # or it is a scheme, which is not run
            place.items.append(Binding((var,), OpCall("cast", (value.atom,), {"dtype": final}, span)))

    checker.module.finishers.append(finish)
    return DynamicValue(var, type_)


# ---- arrays of nested tuples and lists


def tuple_items(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None
) -> list[AbstractValue] | None:
    """The components of a tuple; None for a tensor."""
    if isinstance(entity, DynamicValue):
        entity = expand(checker, out, entity, span)
    return list(entity.items) if isinstance(entity, Tuple) else None


def array(checker: Checker, out: TypedBlockBuilder, value: AbstractValue, span: Span | None) -> AbstractValue:
    """`np.array([[a, b], [c, d]])`: stacked, from the inside out."""
    entity = as_sequence(checker, out, value, span)
    if isinstance(entity, DynamicValue) and dynamic_lists.is_growing(entity):
        whole = list_reductions.as_tensor(
            checker, out, entity, span, lambda body, element: array(checker, body, element, span)
        )
        if whole is not None:
            return whole
        entity = list_reductions.element_tuple(checker, out, entity, span)
    items = tuple_items(checker, out, entity, span)
    if items is None:
        return checker.materialize(out, entity, span)
    if not items:
        return checker.engine.call_operator(
            checker, out, lookup("zeros"), [Tuple((PythonNumber(0, span),))], [], span, []
        )
    rows = [array(checker, out, i, span) if isinstance(i, Tuple | DynamicValue) else i for i in items]
    return operators.apply(checker, out, lookup("stack"), rows, {}, span, [])
