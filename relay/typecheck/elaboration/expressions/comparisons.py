"""Questions about structures: `==` of tuples and records, `in`, `isinstance`.

What the checker knows is answered at compile time, so that it can choose an arm of an `if`; run-time numbers are
compared by operators, and the answers combined.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence

import numpy as np

from relay.errors import Span, TypeCheckError, TypeMismatch
from relay.ir.definition import complete_definition, data_class
from relay.ir.expr import Atom, Block, Match, MatchArm, Yield
from relay.ir.types import BOOL, BaseType, Form, TensorType, prune, scalar, show
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    FUNCTIONS,
    AbstractValue,
    DeferredBinding,
    DynamicValue,
    Number,
    Progression,
    PythonNumber,
    PythonObject,
    Range,
    Tuple,
    TypedBlockBuilder,
    is_constant_bool,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow import optionals
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_reductions
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.expressions.conditions import require_bool
from relay.typecheck.elaboration.expressions.operators import bool_value
from relay.typecheck.elaboration.members.iterated import iterated
from relay.typecheck.elaboration.schemes import conditional_types
from relay.typecheck.elaboration.values import data, records, special_methods, texts
from relay.typecheck.elaboration.values.data import is_text
from relay.typecheck.elaboration.values.expansion import expand, settle
from relay.typecheck.elaboration.values.labels import as_number, members_of_run
from relay.typecheck.elaboration.values.objects import object_entity
from relay.typecheck.elaboration.values.tensors import tensor_type
from relay.typecheck.unification import resolve


def combine_conditions(
    checker: Checker, out: TypedBlockBuilder, parts: Iterable[AbstractValue], decides: bool, span: Span | None
) -> AbstractValue:
    """`and` (decides: False) or `or` (decides: True) of conditions that have no effects."""
    result: AbstractValue | None = None
    name = "logical_or" if decides else "logical_and"
    for part in parts:
        known = is_constant_bool(part)
        if known is decides:
            return bool_value(decides, span)
        if known is None:
            both = None if result is None else [result, part]
            result = part if both is None else operators.apply(checker, out, lookup(name), both, {}, span, [])
    return bool_value(not decides, span) if result is None else result


def equal(
    checker: Checker, out: TypedBlockBuilder, left: AbstractValue, right: AbstractValue, span: Span | None
) -> AbstractValue:
    """`left == right` where at least one side is a structure or may be None, and inside of structures."""
    if optionals.may_be_none(left) or optionals.may_be_none(right):
        return _equal_where_present(checker, out, left, right, span)
    left, right = (settle(checker, out, e, span) if isinstance(e, DynamicValue) else e for e in (left, right))
    if members_of_run(left) is not None or members_of_run(right) is not None:
        left, right = as_number(left, span), as_number(right, span)
    for one, other in ((left, right), (right, left)):
        own = special_methods.call(checker, out, "__eq__", one, [other], span) if isinstance(one, Tuple) else None
        if own is not None:
            return own
    if isinstance(left, Tuple) and isinstance(right, Tuple):
        is_object = records.is_object(left) and members_of_run(left) is None
        if is_object and left.form is not None and left.form.cls is not types.SimpleNamespace:
            raise TypeCheckError(
                f"{left.form.cls.__name__} has no __eq__: `==` asks whether two names mean one object, which values do"
                " not tell",
                span,
                help="define __eq__ in the class, or compare fields",
            )
        if len(left.items) != len(right.items) or _class(left.form) != _class(right.form):
            return bool_value(False, span)
        pairs = zip(left.items, right.items, strict=True)
        return combine_conditions(checker, out, (equal(checker, out, a, b, span) for a, b in pairs), False, span)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Tuple) and isinstance(other, (Number, PythonObject, *FUNCTIONS)):
            return bool_value(False, span)
        if isinstance(one, DynamicValue) and (type_ := tensor_type(one)) is not None and type_.rank > 0:
            what = "a tuple with a tensor" if isinstance(other, Tuple) else "structures that hold tensors"
            raise TypeMismatch(f"`==` of {what} has no single answer", span, help="compare the tensors: (x == y).all()")
        if isinstance(one, Tuple) and isinstance(other, DynamicValue):
            if checker.is_open(other):
                raise SchemeOnly(span, "the type of an operand of `==`")
            return bool_value(False, span)
    return checker.engine.apply_operator(checker, out, "equal", [left, right], {}, span, [])


def _equal_where_present(
    checker: Checker, out: TypedBlockBuilder, left: AbstractValue, right: AbstractValue, span: Span | None
) -> AbstractValue:
    """`left == right` where a side may be None: None equals None alone, and contents are compared."""
    if not optionals.may_be_none(left):
        left, right = right, left
    assert isinstance(left, DynamicValue)
    if optionals.is_none(right):
        return optionals.is_nothing(checker, out, left, span)
    place = TypedBlockBuilder()

    def same_content(content: DynamicValue) -> Atom:
        inside = expand(checker, place, content, span)
        return require_bool(checker, place, equal(checker, place, inside, right, span), span, "a comparison").atom

    same = optionals.on_content(checker, out, place, left, same_content, span)
    if not optionals.may_be_none(right):
        return same
    assert isinstance(right, DynamicValue)
    missing = (optionals.is_nothing(checker, out, side, span) for side in (left, right))
    neither = combine_conditions(checker, out, missing, False, span)
    return combine_conditions(checker, out, (neither, same), True, span)


def _class(form: Form | None) -> object:
    return (tuple,) if form is None else (form.cls, frozenset(form.names) if form.cls is dict else form.names)


def contains(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """`item in container`."""
    item, container = arguments
    container = optionals.content(checker, out, container, "what `in` looks through", span)
    item, container = (expand(checker, out, e, span) if isinstance(e, DynamicValue) else e for e in (item, container))
    if (own := special_methods.call(checker, out, "__contains__", container, [item], span)) is not None:
        return own
    container = iterated(checker, out, container, span, in_any_order=True)
    match container:
        case PythonObject(str(text)) if isinstance(item, PythonObject) and isinstance(item.value, str):
            return bool_value(item.value in text, span)
        case PythonObject(frozenset() as known):
            parts = [object_entity(part, span) for part in known]
            return combine_conditions(checker, out, (equal(checker, out, item, p, span) for p in parts), True, span)
        case _ if is_text(container) and is_text(item):
            return texts.contains(checker, out, container, item, span)
        case Tuple(_, Form(cls, names)) if cls is dict:
            return _in_keys(checker, out, item, container, names, span)
        case Tuple(items) if records.is_sequence(container):
            return combine_conditions(checker, out, (equal(checker, out, item, i, span) for i in items), True, span)
        case DynamicValue() if dynamic_lists.is_growing(container):

            def same_as_item(body: TypedBlockBuilder, x: AbstractValue) -> AbstractValue:
                return equal(checker, body, item, x, span)

            return list_reductions.any_or_all(checker, out, container, same_as_item, True, span)
        case Range():
            return _in_range(checker, out, item, container, span)
        case Progression():
            raise TypeCheckError("`in` of a range needs a step that is known", span, help="compare with the bounds")
        case DynamicValue() if (type_ := tensor_type(container)) is not None and type_.rank > 0:
            same = checker.engine.apply_operator(checker, out, "equal", [container, item], {}, span, [])
            return operators.apply(checker, out, lookup("any"), [same], {}, span, [])
        case _:
            if checker.is_open(container):
                raise SchemeOnly(span, "what `in` looks through")
            raise TypeCheckError(
                "`in` needs a tuple, list, dict, range or tensor on its right", span, help="compare with `==`"
            )


def _in_keys(
    checker: Checker,
    out: TypedBlockBuilder,
    item: AbstractValue,
    record: Tuple,
    names: Sequence[object],
    span: Span | None,
) -> AbstractValue:
    """`item in d` of a dict whose keys are known. A run-time item is compared with them, if the program did not make
    the dict, which would be a hash table then."""
    try:
        return bool_value(records.key_in(checker, record, item, span) in names, span)
    except TypeCheckError as error:
        if not error.needs_value or record.form is None or record.form.origin is not None:
            raise
    keys = (records.key_entity(name, span) for name in names)
    return combine_conditions(checker, out, (equal(checker, out, item, key, span) for key in keys), True, span)


def _in_range(
    checker: Checker, out: TypedBlockBuilder, item: AbstractValue, container: Range, span: Span | None
) -> AbstractValue:
    def compute(name: str, *operands: AbstractValue) -> AbstractValue:
        return checker.engine.apply_operator(checker, out, name, list(operands), {}, span, [])

    upward = container.step > 0
    conditions = [compute("greater_equal" if upward else "less_equal", item, container.start)]
    conditions.append(compute("less" if upward else "greater", item, container.stop))
    if abs(container.step) != 1:
        step = PythonNumber(container.step, span)  # no difference, which may wrap around
        conditions.append(compute("equal", compute("mod", item, step), compute("mod", container.start, step)))
    return combine_conditions(checker, out, conditions, False, span)


# ---- isinstance


def is_instance(
    checker: Checker, out: TypedBlockBuilder, arguments: Sequence[AbstractValue], span: Span | None
) -> AbstractValue:
    """`isinstance(value, classes)`: known at compile time, but for the constructor of a value of a data type."""
    value, wanted = arguments
    if isinstance(value, DynamicValue):
        value = expand(checker, out, value, span)
    classes: list[object] = []
    for entity in wanted.items if isinstance(wanted, Tuple) else (wanted,):
        held = entity.value if isinstance(entity, PythonObject) else None
        classes += held.__args__ if isinstance(held, types.UnionType) else (held,)
    if not classes or not all(isinstance(c, type) for c in classes):
        raise TypeCheckError("isinstance needs a class, or a tuple of classes", span)
    answers = (_is_of(checker, out, value, cls, span) for cls in classes if isinstance(cls, type))
    return combine_conditions(checker, out, answers, True, span)


def _is_of(
    checker: Checker, out: TypedBlockBuilder, value: AbstractValue, cls: type, span: Span | None
) -> AbstractValue:
    match value:
        case Number():
            return bool_value(isinstance(value.specialize(), cls), span)
        case PythonObject(BaseType()):
            return bool_value(False, span)
        case PythonObject(held):
            return bool_value(isinstance(held, cls), span)
        case _ if is_text(value):
            return bool_value(issubclass(str, cls), span)
        case Tuple(_, form):
            return bool_value(issubclass(tuple if form is None else form.cls, cls), span)
        case DynamicValue() if (type_ := data.data_type(value)) is not None:
            return _is_constructed(checker, out, value, type_.definition.origin, cls, span)
        case DynamicValue(_, type_) if isinstance(prune(type_), TensorType):
            if cls in (bool, int, float) or issubclass(cls, np.generic):
                raise TypeCheckError(
                    f"whether a tensor is a Python {cls.__name__} is not part of the program",
                    span,
                    help="test x.ndim == 0 and x.dtype == relay.Float32",
                )
            return bool_value(cls is np.ndarray or hasattr(cls, "__relay_array__"), span)
        case DynamicValue() if checker.is_open(value):
            return conditional_types.condition(checker, span)
        case DynamicValue(_, type_):
            raise TypeCheckError(f"isinstance of {show(resolve(type_))} is not known here", span)
        case _:
            return bool_value(False, span)


def _is_constructed(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, origin: object, cls: type, span: Span | None
) -> AbstractValue:
    type_ = data.data_type(value)
    assert type_ is not None
    owner = data_class(type_.definition)
    if owner is None or cls is owner.cls:
        return bool_value(owner is not None, span)
    if cls not in owner.constructors.values():
        return bool_value(False, span)
    arms = []
    for constructor in complete_definition(type_.definition).constructors:
        fields = tuple(checker.variable("field", t, span) for t in data.field_types(checker, type_, constructor))
        answer = bool_value(owner.constructors[constructor.name] is cls, span)
        arms.append(MatchArm(constructor.name, fields, Block((), Yield((answer.atom,), span))))
    target = checker.variable("condition", scalar(BOOL), span)
    out.items.append(DeferredBinding((target,), lambda: Match(value.atom, tuple(arms), span)))
    return DynamicValue(target, scalar(BOOL))
