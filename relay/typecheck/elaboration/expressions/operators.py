"""Operator calls: attributes become Python values, operands tensors, and the operator's type gives the result's.

For an operator with a `Relation`, operands become tensors and base types are unified at once; only the shape may have
to wait. Numbers take the base type that the other operands have.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from relay.errors import ShapeError, Span, TypeMismatch
from relay.ir.axes import ResultNames
from relay.ir.expr import Assert, Binding, Constant, OpCall
from relay.ir.sizes.facts import AT_LEAST, DimConstraint
from relay.ir.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    Application,
    BaseClass,
    BaseType,
    FunctionType,
    Kind,
    QuantifiedType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    Unknown,
    prune,
    show,
)
from relay.operator import Emitter, Operator, Relation, Undetermined, lookup
from relay.operator.relation import BaseSignature, substitute
from relay.typecheck.dims import follows_equal
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    Number,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.descriptions import kind_of, operand_notes, operand_texts, operator_name
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import dtype_promotion, weak_types
from relay.typecheck.elaboration.expressions.operator_relations import (
    ShapeInference,
    refuse_float,
    result_base,
    unify_token,
)
from relay.typecheck.elaboration.schemes import rank_polymorphism
from relay.typecheck.elaboration.values import axis_names, range_numbers
from relay.typecheck.elaboration.values.labels import as_number
from relay.typecheck.guards import DataDependentGuard
from relay.typecheck.relations import EmptyAxis
from relay.typecheck.unification import Clash, flat_shape, is_known, resolve, unknowns


def bool_value(value: bool, span: Span | None) -> DynamicValue:
    """A boolean that the checker knows."""
    constant = Constant(np.asarray(value), span)
    return DynamicValue(constant, constant.type, value)


def apply(
    checker: Checker,
    out: TypedBlockBuilder,
    operator: Operator,
    operands: Sequence[AbstractValue],
    attributes: dict[str, object],
    span: Span | None,
    described: Sequence[str],
) -> DynamicValue:
    """Apply an operator; attributes that are not given have their defaults.

    Raises TypeMismatch or ShapeError at `span`, with the operands' types as notes.
    """
    operands = [as_array(checker, out, as_number(operand, span), span) for operand in operands]
    numbers = dtype_promotion.booleans_as_numbers(checker, out, operator, operands, span)
    if numbers is not None:
        result = apply(checker, out, operator, numbers, attributes, span, described)
        is_integer = operator.algebra.of_booleans == "integers"
        return result if is_integer else dtype_promotion.convert(checker, out, result, BOOL, span)
    while True:
        try:
            return _apply(checker, out, operator, operands, attributes, span, described)
        except EmptyAxis as error:
            if not checker.may_be_skipped:
                raise ShapeError(error.message, error.span, notes=error.notes, help=error.help) from None
            operands = [_with_elements(checker, out, operand, span) for operand in operands]
        except DataDependentGuard as question:
            texts = operand_texts(len(operands), described)
            operands, attributes = data_dependent.agree(checker, out, question, operands, attributes, span, texts)


def _with_elements(
    checker: Checker, out: TypedBlockBuilder, operand: AbstractValue, span: Span | None
) -> AbstractValue:
    """An operand that has no elements, with one along each empty axis: an error where it runs."""
    type_ = prune(operand.type) if isinstance(operand, DynamicValue) else None
    assert isinstance(type_, TensorType)
    data_dependent.require(checker, out, DimConstraint(0, AT_LEAST, 1), span)
    widths = tuple((0, int(follows_equal(dim, 0) is True)) for dim in flat_shape(type_.shape))
    return apply(checker, out, lookup("pad"), [operand], {"widths": widths}, span, [])


def _apply(
    checker: Checker,
    out: TypedBlockBuilder,
    operator: Operator,
    operands: Sequence[AbstractValue],
    attributes: dict[str, object],
    span: Span | None,
    described: Sequence[str],
) -> DynamicValue:
    attributes = {**operator.attributes, **attributes}
    found: list[DynamicValue | None] = [_operand(checker, out, operator, e, i, span) for i, e in enumerate(operands)]
    result: Type
    try:
        relation = operator.relation
        if not isinstance(relation, Relation):
            relation = _relation_of_numbers(checker, operator, found) or relation
        if isinstance(relation, Relation):
            signature = relation.base
            bound = _unify_bases(checker, out, operator, signature, operands, found, span, described)
            base = result_base(operator, signature.result, bound, attributes)
            values = [v for v in found if v is not None]
            if signature.result.text == "@dtype":
                _note_conversions(checker, values, base)
            shapes = [_tensor(v).shape for v in values]
            inference = ShapeInference(checker, operator, relation, values, shapes, attributes, described, span)
            result = inference.result(base)
        elif isinstance(relation, QuantifiedType | FunctionType):
            result = _function_type(checker, out, operator, relation, operands, found, span)
        else:
            result = _callable(checker, out, operator, operands, found, attributes, span, described)
    except TypeMismatch as error:
        if error.span is None:
            error.span = span
            error.notes = (*error.notes, *operand_notes(found, described))
        raise
    values = [v for v in found if v is not None]
    checker.module.pending_attributes.append(attributes)
    if operator.requirements or operator.composition is not None:
        _require(checker, out, operator, values, attributes, span)
    call = OpCall(operator.name, tuple(v.atom for v in values), attributes, span)  # type: ignore[arg-type]
    return checker.bind(out, call, result, operator.name, span)


def _note_conversions(checker: Checker, values: Sequence[DynamicValue], base: object) -> None:
    """Say to which dtype numbers are converted that are still open."""
    if isinstance(base, BaseType | Unknown):
        bases = [prune(_tensor(value).base) for value in values]
        checker.solver.conversions += [(b, base) for b in bases if isinstance(b, Unknown)]


def _relation_of_numbers(checker: Checker, operator: Operator, found: Sequence[DynamicValue | None]) -> Relation | None:
    """The relation that an operator's type is for numbers, if something is open in a shape. In a scheme an element type
    may be open, too, that may be a number's."""
    relation: Relation | None = getattr(operator.relation, "__of_numbers__", None)
    if relation is None:
        return None
    tensors = [_tensor(v) for v in found if v is not None]
    if all(is_known(t.shape) for t in tensors):
        return None
    numbers = {BaseClass.FLOAT, BaseClass.INTEGER}
    if not checker.generic and not all(isinstance(prune(t.base), BaseType) for t in tensors):
        return None
    for base in (prune(t.base) for t in tensors):
        if isinstance(base, BaseType) and base.base_class not in numbers:
            return None
        if isinstance(base, Unknown) and (base.rigid or (base.classes is not None and not base.classes & numbers)):
            return None
    return relation


def _operand(
    checker: Checker,
    out: TypedBlockBuilder,
    operator: Operator,
    entity: AbstractValue,
    position: int,
    span: Span | None,
) -> DynamicValue | None:
    """The operand as a tensor; None for a number, which waits for the others."""
    if isinstance(entity, Number):
        return None
    if isinstance(entity, PythonObject) and isinstance(entity.value, bool):
        return bool_value(entity.value, span)
    if isinstance(entity, Tuple | PythonObject) or not isinstance(entity, DynamicValue):
        what = kind_of(entity)
        instead = {"add": "make one of two by `(*a, *b)`", "multiply": "repeat it by `[x for _ in range(n)]`"}
        if isinstance(entity, Tuple) and entity.form is not None and entity.form.cls is list:
            instead["add"] = "make an array of it, np.array(xs); two lists are joined by `+`"
        raise TypeMismatch(
            f"operand {position + 1} of {operator_name(operator)} must be a tensor, found {what}",
            span,
            help=instead.get(operator.name)
            if isinstance(entity, Tuple)
            else 'join text in print or assert: f"{x}"'
            if isinstance(entity, PythonObject) and isinstance(entity.value, str)
            else "test before: `if x is not None:`"
            if isinstance(entity, PythonObject) and entity.value is None
            else None,
        )
    type_ = prune(entity.type)
    if isinstance(type_, Unknown):
        if type_.rigid:
            told = f"must be a tensor, and {type_} is annotated as any type"
            raise TypeMismatch(f"operand {position + 1} of {operator_name(operator)} {told}", span)
        checker.solver.unify(type_, checker.solver.fresh_tensor())
    elif not isinstance(type_, TensorType):
        raise TypeMismatch(
            f"operand {position + 1} of {operator_name(operator)} must be a tensor, found {show(resolve(entity.type))}",
            span,
        )
    return entity


def as_array(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None, tuples: bool = False
) -> AbstractValue:
    """A list that stands for an array, as in `np.tanh([1.0, 2.0])`, as that array; all else as it is. `tuples`: so does
    a tuple, for NumPy's functions; with Python's operators it is a mistake."""
    return checker.engine.array(checker, out, entity, span) if _stands_for_array(entity, tuples) else entity


def _stands_for_array(entity: AbstractValue, tuples: bool) -> bool:
    """True for a list or tuple of numbers, of tensors, or of such lists."""
    match entity:
        case DynamicValue(_, type_):
            return isinstance(prune(type_), StackType) and _holds_numbers(type_)
        case Tuple(items, form) if items and (tuples if form is None else form.cls is list):
            return all(isinstance(i, Number) or _stands_for_array(i, tuples) or _is_tensor(i) for i in items)
        case _:
            return False


def _holds_numbers(type_: Type) -> bool:
    """True for tensors, and for lists and tuples of nothing else."""
    match prune(type_):
        case TensorType() | Unknown():
            return True
        case StackType(inner) | RefType(inner):
            return _holds_numbers(inner)
        case TupleType(items, form):
            return bool(items) and (form is None or form.cls is list) and all(map(_holds_numbers, items))
        case _:
            return False


def _is_tensor(entity: AbstractValue) -> bool:
    return isinstance(entity, DynamicValue) and isinstance(prune(entity.type), TensorType)


def _tensor(typed: DynamicValue) -> TensorType:
    type_ = prune(typed.type)
    assert isinstance(type_, TensorType)
    return type_


def _unify_bases(
    checker: Checker,
    out: TypedBlockBuilder,
    operator: Operator,
    signature: BaseSignature,
    operands: Sequence[AbstractValue],
    found: list[DynamicValue | None],
    span: Span | None,
    described: Sequence[str],
) -> dict[str, object]:
    """The base types of a signature's variables, as the operands have them. Numbers become constants in `found`."""
    bound: dict[str, object] = {}
    if any(value is not None and value.of_range for value in found):
        found[:] = range_numbers.adapt_operands(checker, out, signature, operands, found)
    found[:] = dtype_promotion.promoted_operands(checker, out, operator, signature, operands, found, span)
    if any(value is not None and weak_types.is_weak(value) for value in found):
        found[:] = weak_types.promote_operands(checker, out, signature, operands, found, span)
    for position, value in enumerate(found):
        if value is not None:
            unify_token(checker, operator, signature.token(position), _tensor(value).base, bound, position, described)
    for position, entity in enumerate(operands):
        if isinstance(entity, Number):
            token = signature.token(position)
            base = bound.get(token.text) if token.is_variable else BaseType(token.text)
            known = prune(base) if base is not None else None  # type: ignore[arg-type]
            if isinstance(known, BaseType) and entity.is_float and not known.is_float:
                refuse_float(operator, entity, known, span, operand_notes(found, described))
            typed = checker.constant(out, entity, base)
            found[position] = typed
            unify_token(checker, operator, token, _tensor(typed).base, bound, position, described)
    return bound


def _function_type(
    checker: Checker,
    out: TypedBlockBuilder,
    operator: Operator,
    relation: QuantifiedType | FunctionType,
    operands: Sequence[AbstractValue],
    found: list[DynamicValue | None],
    span: Span | None,
) -> Type:
    type_: Type = relation
    if isinstance(relation, QuantifiedType):
        fresh = {i: checker.solver.fresh_variable(i.kind) for i in relation.identifiers}
        type_ = substitute(relation.body, fresh)
    assert isinstance(type_, FunctionType)
    if len(type_.parameters) != len(operands):
        raise TypeMismatch(f"{operator.name} takes {len(type_.parameters)} arguments, found {len(operands)}", span)
    for position, parameter in enumerate(type_.parameters):
        entity, value = operands[position], found[position]
        if value is None:
            assert isinstance(entity, Number)
            base = prune(parameter.base) if isinstance(parameter, TensorType) else None
            value = found[position] = checker.constant(out, entity, base)
        value = found[position] = weak_types.loosen_base(checker, out, value)
        wanted = show(resolve(parameter))
        try:
            checker.solver.unify(value.type, parameter)
        except Clash:
            raise TypeMismatch(
                f"argument {position + 1} of {operator.name} must be {wanted}, found {show(resolve(value.type))}"
            ) from None
    return type_.result


def _callable(
    checker: Checker,
    out: TypedBlockBuilder,
    operator: Operator,
    operands: Sequence[AbstractValue],
    found: list[DynamicValue | None],
    attributes: dict[str, object],
    span: Span | None,
    described: Sequence[str],
) -> Type:
    base = next((_tensor(v).base for v in found if v is not None), None)
    for position, entity in enumerate(operands):
        if isinstance(entity, Number):
            found[position] = checker.constant(out, entity, base)
    values = [v for v in found if v is not None]
    if all(is_known(v.type) for v in values):
        return _infer_result(operator, values, attributes, described, span)
    in_any_dtype = _inferred_in_any_dtype(operator, values, attributes)
    if in_any_dtype is not None:
        shape = in_any_dtype.shape if isinstance(in_any_dtype, TensorType) else ()
        names = axis_names.result_names(operator, values, attributes, described, span, lambda: shape)
        return _with_names(in_any_dtype, names)
    if checker.generic:
        at_any_rank = rank_polymorphism.inferred_at_any_rank(
            checker,
            [v.type for v in values],
            lambda types: operator.infer(types, attributes),  # type: ignore[arg-type]
        )
        if at_any_rank is not None:
            names = axis_names.result_names(operator, values, attributes, described, span, lambda: at_any_rank.shape)
            return _with_names(at_any_rank, names)
    result = checker.solver.fresh_variable(Kind.Type)

    def attempt() -> Sequence[Unknown] | None:
        waiting = [u for v in values for u in unknowns(v.type)]
        if waiting:
            return waiting
        try:
            inferred = _infer_result(operator, values, attributes, described, span)
        except TypeMismatch as error:
            raise error.with_span(span) from None
        checker.unify_at(inferred, result, span, f"the result of {operator.name}")
        return None

    def application() -> Application:
        defaults = operator.attributes
        told = tuple((n, a) for n, a in attributes.items() if n not in defaults or defaults[n] != a)
        return Application(operator.name, tuple(v.type for v in values), told)  # type: ignore[arg-type]

    checker.defer(attempt, span, f"the result of {operator.name}", result=result, application=application)
    return result


_NUMBERS = (FLOAT32, FLOAT64, INT32, INT64)


def _inferred_in_any_dtype(
    operator: Operator, values: Sequence[DynamicValue], attributes: dict[str, object]
) -> Type | None:
    """The result for operands of which only one dtype is open, that of numbers without one, where it is the same for
    all number types, up to that dtype. None if the operator's result differs."""
    types = [resolve(v.type) for v in values]
    bases = {u for t in types for u in unknowns(t)}
    base = next(iter(bases), None)
    if len(bases) != 1 or not isinstance(base, Unknown) or base.kind is not Kind.BaseType or not base.literals:
        return None
    candidates = [c for c in _NUMBERS if base.classes is None or c.base_class in base.classes]
    inferred = []
    for candidate in candidates:
        at = [attrs.evolve(t, base=candidate) if isinstance(t, TensorType) and t.base is base else t for t in types]
        try:
            inferred.append(operator.infer(at, attributes))  # type: ignore[arg-type]
        except (TypeMismatch, Undetermined):
            return None
    return _common_type(base, candidates, inferred)


def _common_type(base: Unknown, candidates: Sequence[BaseType], types: Sequence[Type]) -> Type | None:
    """The one type that these are, with `base` where each has its candidate; None if they differ otherwise."""
    first = types[0]
    if isinstance(first, TupleType):
        items = [t.items for t in types if isinstance(t, TupleType) and len(t.items) == len(first.items)]
        if len(items) < len(types):
            return None
        parts = [_common_type(base, candidates, column) for column in zip(*items, strict=True)]
        return None if None in parts else TupleType(tuple(p for p in parts if p is not None), first.form)
    tensors = [t for t in types if isinstance(t, TensorType)]
    if len(tensors) < len(types) or len({flat_shape(t.shape) for t in tensors}) != 1:
        return None
    if all(t.base == candidate for t, candidate in zip(tensors, candidates, strict=True)):
        return TensorType(base, tensors[0].shape)
    return TensorType(tensors[0].base, tensors[0].shape) if len({t.base for t in tensors}) == 1 else None


def _infer_result(
    operator: Operator,
    values: Sequence[DynamicValue],
    attributes: dict[str, object],
    described: Sequence[str],
    span: Span | None,
) -> Type:
    def infer() -> Type:
        return operator.infer([resolve(v.type) for v in values], attributes)  # type: ignore[arg-type]

    def result() -> object:
        type_ = infer()
        return type_.shape if isinstance(type_, TensorType) else ()

    names = axis_names.result_names(operator, values, attributes, described, span, result)
    return _with_names(infer(), names)


def _with_names(type_: Type, names: ResultNames) -> Type:
    """The type of a result, or of several of one rank, with names."""
    match type_:
        case TensorType(_, shape) if isinstance(names, tuple) and len(shape) == len(names):
            return attrs.evolve(type_, axes=names)
        case TupleType(items, form) if isinstance(names, list):
            return TupleType(tuple(map(_with_names, items, names)), form)
        case _:
            return type_


def _require(
    checker: Checker,
    out: TypedBlockBuilder,
    operator: Operator,
    values: Sequence[DynamicValue],
    attributes: dict[str, object],
    span: Span | None,
) -> None:
    """Write the operator's run-time requirements before it, once its operands' types are known; then a composite
    operator's body is checked as well."""
    place = out.slot()
    if checker.hints.is_open:
        _ask_for_numbers(operator, values, attributes)

    def finish() -> None:
        types = [resolve(v.type) for v in values]
        if not all(is_known(t) for t in types):
            return  # a scheme, which is not run
        if operator.composition is not None:
            try:
                operator.composition.body(types, attributes)  # type: ignore[arg-type]
            except TypeMismatch as error:
                raise error.with_span(span) from None
        emitter = Emitter(span)
        for requirement in operator.requirements:
            symbols = [emitter.value(v.atom, t) for v, t in zip(values, types, strict=True)]
            holds = requirement.holds(*((tuple(symbols),) if operator.variadic else symbols), **attributes)
            if holds is not None:
                emitter.bindings.append(Binding((), Assert(holds.atom, requirement.message, span)))
        place.items += emitter.bindings

    checker.module.finishers.append(finish)


def _ask_for_numbers(operator: Operator, values: Sequence[DynamicValue], attributes: dict[str, object]) -> None:
    """Let a body or requirement ask for the sizes that it needs as numbers while they can still become so."""
    types = [resolve(v.type) for v in values]
    if not all(is_known(t) for t in types):
        return
    try:
        if operator.composition is not None:
            operator.composition.body(types, attributes)  # type: ignore[arg-type]
        for requirement in operator.requirements:
            emitter = Emitter()
            symbols = [emitter.value(v.atom, t) for v, t in zip(values, types, strict=True)]
            requirement.holds(*((tuple(symbols),) if operator.variadic else symbols), **attributes)
    except (TypeMismatch, Undetermined):
        return  # a mistake, which is reported when the requirements are written
