"""Weakly typed integers: literals and counts take the dtype of the operands that they meet.

     E |- n : Tensor[w, s]   E |- x : Tensor[b, t]
    ----------------------------------------------- (use: w weak, b not)
     E |- n + x = cast_b(n) + x : Tensor[b, ..]

     E |- n : Tensor[w, s]   E |- v : Tensor[b, s] on another path
    --------------------------------------------------------------- (join: w weak, c a new base, w <= c, b = c)
     E |- cast_c(n), v : Tensor[c, s]

A use never changes what n is. A variable that n flows into, such as one that a loop carries, a parameter or an
item, has its own base, to which n is converted: it may become a float by other values that flow there, while n stays an
integer. Information goes from n to that variable only: w <= c is

    c = w                          if w becomes a float, or data's integers, which are never converted silently
    c holds w's literals           if w is an integer by default, and c an integer
    true                           if w is an integer by default, and c a float
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from relay.errors import Span, TypeMismatch
from relay.ir.expr import Assert, Binding, OpCall, Var
from relay.ir.literals import holds, misfit_text, out_of_range_text
from relay.ir.types import BOOL, INT32, INT64, BaseClass, BaseType, TensorType, Unknown, prune
from relay.operator import Emitter, lookup
from relay.operator.relation import BaseSignature
from relay.typecheck.elaboration.abstract_values import AbstractValue, DynamicValue, Number, Tuple, TypedBlockBuilder
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.values import range_numbers
from relay.typecheck.unification import Clash, resolve

_FLOATS = frozenset({BaseClass.FLOAT})


def weak_base(value: DynamicValue) -> Unknown | None:
    """The base type of a tensor of which only literals and counts decide so far; None for another value."""
    type_ = prune(value.type)
    base = prune(type_.base) if isinstance(type_, TensorType) else None
    return base if isinstance(base, Unknown) and base.weak else None


def is_weak(value: DynamicValue) -> bool:
    """True if only literals and counts have been in a tensor so far."""
    return weak_base(value) is not None


def loosen_base(checker: Checker, out: TypedBlockBuilder, value: DynamicValue) -> DynamicValue:
    """A value that goes into something else: one of a weak base in another one, which what it goes into may change."""
    if (base := weak_base(value)) is None:
        return value
    return cast_weak(checker, out, value, _new_weak_base(checker, [base]))


def counting_integer(checker: Checker, out: TypedBlockBuilder, value: DynamicValue) -> DynamicValue:
    """A weak integer that counts rounds or elements, as an int32. One from Python is that from now on: nothing else
    goes into it."""
    base = weak_base(value)
    if base is None or not value.of_range:
        return loosen_base(checker, out, value)
    before, checker.defaulting = checker.defaulting, True
    try:
        checker.solver.unify_base(base, INT32)
        checker.solver.run()
    except Clash as clash:
        raise TypeMismatch(clash.reason or f"an int32 is needed here, found {base}", value.atom.span) from None
    finally:
        checker.defaulting = before
    return value


def free_count(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue) -> AbstractValue:
    """A count or weak integer that goes into a variable which other paths assign, too."""
    if not isinstance(entity, DynamicValue) or not range_numbers.is_count(entity):
        return entity
    return cast_weak(checker, out, entity, checker.solver.literal_base(1, entity.atom.span))


def open_integer_bases(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue) -> AbstractValue:
    """A value by which a program differentiates: an integer from Python or the source becomes a float where it meets
    one."""
    match entity:
        case Tuple(items, form):
            return Tuple(tuple(open_integer_bases(checker, out, item) for item in items), form)
        case Number() if not entity.is_float:
            base = checker.solver.literal_base(entity.specialize(), entity.span, weak=False)
            return checker.constant(out, entity, base)
        case DynamicValue() if is_weak(entity):
            return cast_weak(checker, out, entity, checker.solver.literal_base(1, entity.atom.span, weak=False))
        case _:
            return entity


def promote_operands(
    checker: Checker,
    out: TypedBlockBuilder,
    signature: BaseSignature,
    operands: Sequence[AbstractValue],
    values: Sequence[DynamicValue | None],
    span: Span | None,
) -> list[DynamicValue | None]:
    """The operands of an operator, weak ones converted to the base type of those that must have the same one."""
    found = list(values)
    groups: dict[str, list[int]] = {}
    for position in range(len(values)):
        groups.setdefault(signature.token(position).text, []).append(position)
    for text, positions in groups.items():
        weak = [p for p in positions if (v := found[p]) is not None and is_weak(v)]
        if not weak:
            continue
        token = signature.token(positions[0])
        counts = _counts(found, positions, weak)
        target: BaseType | Unknown | None = BaseType(text)
        if token.is_variable:
            deciding = [p for p in positions if p not in counts]
            target = _target(checker, token.classes, operands, found, deciding, bool(counts))
        if target is None or target == BOOL:
            continue
        for position in (*weak, *counts):
            value = found[position]
            assert value is not None
            found[position] = cast_weak(checker, out, value, target, span, is_operand=True)
    return found


def _counts(values: Sequence[DynamicValue | None], positions: Sequence[int], weak: Sequence[int]) -> Sequence[int]:
    """The counts among operands with a weak variable, which stay as weak as it is: `n += i`."""
    if all((v := values[p]) is not None and v.of_range for p in weak):
        return ()
    return [p for p in positions if (v := values[p]) is not None and range_numbers.is_count(v)]


def _target(
    checker: Checker,
    classes: frozenset[BaseClass] | None,
    operands: Sequence[AbstractValue],
    values: Sequence[DynamicValue | None],
    positions: Sequence[int],
    with_counts: bool = False,
) -> BaseType | Unknown | None:
    """The base type of operands that must have the same one; None for that of the only one, which is weak."""
    weak: dict[Unknown, None] = {}
    for position in positions:
        if (value := values[position]) is None:
            continue
        if (base := weak_base(value)) is None:
            type_ = prune(value.type)
            return prune(type_.base) if isinstance(type_, TensorType) else None  # type: ignore[return-value]
        weak[base] = None
    for position in positions:
        entity = operands[position]
        if values[position] is None and isinstance(entity, Number) and entity.is_float:
            return checker.solver.literal_base(entity.specialize(), entity.span)
    if classes == _FLOATS:
        return checker.solver.literal_base(0.0, None)
    return None if len(weak) == 1 and not with_counts else _new_weak_base(checker, list(weak))


def _new_weak_base(checker: Checker, bases: Sequence[Unknown]) -> Unknown:
    """A new weak base."""
    literals = [literal for base in bases for literal in base.literals]
    return checker.solver.literal_base(1, literals[0].span if literals else None)


def cast_weak(
    checker: Checker,
    out: TypedBlockBuilder,
    value: DynamicValue,
    base: BaseType | Unknown,
    span: Span | None = None,
    is_operand: bool = False,
) -> DynamicValue:
    """A weak value in another base type, which follows it if it becomes a float. `is_operand`: it meets floats there,
    which convert it also if it turns out to hold data's integers."""
    type_ = prune(value.type)
    assert isinstance(type_, TensorType)
    own, span = type_.base, span or value.atom.span
    if prune(own) is base or prune(own) == base:
        return value
    result = attrs.evolve(type_, base=base)
    name = value.atom.name if isinstance(value.atom, Var) else "number"
    var = checker.variable(name, result, span)
    place = out.slot()
    attributes: dict[str, object] = {"dtype": base}
    checker.module.pending_attributes.append(attributes)
    checker.module.pending_casts[var] = value.atom

    def finish() -> None:
        source, target = prune(own), prune(base)
        if source == target:
            place.items.append(Binding((var,), value.atom))
            return
        place.items += _checks(value, source, target, span)
        call = OpCall(lookup("cast").name, (value.atom,), attributes, span)  # type: ignore[arg-type]
        place.items.append(Binding((var,), call))

    checker.module.finishers.append(finish)
    if is_weak(value):
        checker.defer(lambda: _follows(checker, own, base, is_operand, span), span, "the dtype of a number")
    notes: tuple[dict[Any, Any], ...] = (checker.sizes.linear, checker.places_of_numbers, checker.sizes.axes_of_any)
    for known in notes:
        if value.atom in known:
            known[var] = known[value.atom]
    if value.atom in checker.sizes.naturals:
        checker.sizes.naturals.add(var)
    return DynamicValue(var, result)


def _checks(value: DynamicValue, source: object, target: object, span: Span | None) -> list[Binding]:
    """The check that integers of few bits, or without negative ones, hold a run-time number."""
    if not isinstance(source, BaseType) or not isinstance(target, BaseType) or target.is_float:
        return []
    limits, own = np.iinfo(target.name), np.iinfo(source.name)
    emitter = Emitter(span)
    number = emitter.value(value.atom, resolve(value.type))
    conditions = [number >= limits.min] if limits.min > own.min else []
    conditions += [number <= limits.max] if limits.max < own.max else []
    for condition in conditions:
        holds_all = condition.op("all") if condition.ndim else condition
        message = f"the number is {out_of_range_text(target)}"
        emitter.bindings.append(Binding((), Assert(holds_all.atom, message, span)))
    return emitter.bindings


def _follows(
    checker: Checker, own: object, base: object, is_operand: bool, span: Span | None
) -> Sequence[Unknown] | None:
    """The constraint between a weak base and that to which it is converted."""
    source, target = prune(own), prune(base)  # type: ignore[arg-type]
    if source is target or source == target:
        return None
    if isinstance(target, BaseType) and not target.is_float and isinstance(source, Unknown):
        for literal in source.literals:
            if not holds(target, literal.value):
                raise TypeMismatch(misfit_text(target, literal.value), literal.span or span)
    if isinstance(source, Unknown) and source.weak:
        return [u for u in (source, target) if isinstance(u, Unknown)]
    if checker.defaulting and (source == INT32 or (source == INT64 and getattr(target, "is_float", False))):
        return None
    if is_operand and isinstance(source, BaseType) and not source.is_float and _is_float(target):
        return None
    try:
        checker.solver.unify_base(source, target)
    except Clash as clash:
        reason = clash.reason or f"operands must have one dtype, found {target} and {source}"
        raise TypeMismatch(reason, span, help="convert one: x.astype(relay.Float32)") from None
    return None


def _is_float(base: object) -> bool:
    return base.is_float if isinstance(base, BaseType) else isinstance(base, Unknown) and base.classes == _FLOATS
