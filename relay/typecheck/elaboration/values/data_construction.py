"""Values of data types: their construction, and copies with other fields."""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import Span, TypeCheckError
from relay.ir.definition import complete_definition
from relay.ir.expr import Construct
from relay.ir.types import (
    Constructor,
    DataType,
    StackType,
    TensorType,
    prune,
    show,
)
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DeferredBinding,
    DynamicValue,
    Number,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.values.data import (
    constructor_of,
    display_name,
    field_types,
    fresh_type,
    missing_field_error,
    read_fields,
)
from relay.typecheck.elaboration.values.objects import object_entity
from relay.typecheck.unification import resolve


def construct(
    checker: Checker,
    out: TypedBlockBuilder,
    value: type,
    arguments: Sequence[AbstractValue],
    keywords: Sequence[tuple[str, AbstractValue]],
    span: Span | None,
) -> AbstractValue:
    """`Tree.Leaf(x)`."""
    owner, constructor = constructor_of(value, span)
    what = display_name(owner.definition, constructor)
    if len(arguments) > len(constructor.names):
        count = f"{len(constructor.names)} field{'s' * (len(constructor.names) != 1)}"
        raise TypeCheckError(f"{what} has {count}, found {len(arguments)} values", span)
    found = dict(zip(constructor.names, arguments, strict=False))
    for name, entity in keywords:
        if name not in constructor.names:
            raise missing_field_error(owner.definition, constructor, name, span)
        if name in found:
            raise TypeCheckError(f"{what} got two values for the field {name!r}", span)
        found[name] = entity
    defaults = owner.defaults[constructor.name]
    for name in constructor.names:
        if name not in found:
            if name not in defaults:
                raise TypeCheckError(f"{what} needs a value for the field {name!r}", span)
            found[name] = object_entity(defaults[name], span)
    type_ = fresh_type(checker, owner.definition)
    return build(checker, out, type_, constructor, [found[name] for name in constructor.names], span)


def build(
    checker: Checker,
    out: TypedBlockBuilder,
    type_: DataType,
    constructor: Constructor,
    fields: Sequence[AbstractValue],
    span: Span | None,
) -> DynamicValue:
    """A value of a data type with one of its constructors."""
    atoms = []
    for name, entity, expected in zip(constructor.names, fields, field_types(checker, type_, constructor), strict=True):
        scalar = prune(expected)
        if isinstance(entity, Number) and isinstance(scalar, TensorType) and scalar.shape == ():
            value = checker.constant(out, entity, scalar.base)
        else:
            if isinstance(scalar, StackType):
                entity = dynamic_lists.given_as_list(checker, out, entity, span)
            entity = data_dependent.pack_sizes(checker, out, entity, None, expected, span)
            value = checker.materialize(out, entity, span)
        checker.unify_at(
            value.type, expected, span, f"the field {name} of {display_name(type_.definition, constructor)}"
        )
        atoms.append(value.atom)
    var = checker.variable(constructor.name.lower(), type_, span)
    operands = tuple(atoms)
    out.items.append(
        DeferredBinding((var,), lambda: Construct(checker.definition(type_), constructor.name, operands, span))
    )
    return DynamicValue(var, type_)


def replace(
    checker: Checker,
    out: TypedBlockBuilder,
    value: AbstractValue,
    keywords: Sequence[tuple[str, AbstractValue]],
    span: Span | None,
) -> AbstractValue:
    """`relay.replace(value, field=new, ..)`."""
    typed = checker.materialize(out, value, span)
    type_ = prune(typed.type)
    if not isinstance(type_, DataType):
        raise TypeCheckError(f"replace needs a record, found {show(resolve(typed.type))}", span)
    definition = complete_definition(type_.definition)
    if len(definition.constructors) != 1:
        raise TypeCheckError(
            f"{show(resolve(type_))} has {len(definition.constructors)} constructors; replace needs a type with one",
            span,
            help="use `match`, and construct the new value in each case",
        )
    (constructor,) = definition.constructors
    changes = dict(keywords)
    for name in changes:
        if name not in constructor.names:
            raise missing_field_error(definition, constructor, name, span)
    kept = [p for p, name in enumerate(constructor.names) if name not in changes]
    values = dict(zip(kept, read_fields(checker, out, typed, type_, kept, span), strict=True)) if kept else {}
    fields = [values[p] if p in values else changes[name] for p, name in enumerate(constructor.names)]
    # The new fields may have other types, if the type is polymorphic.
    return build(checker, out, fresh_type(checker, definition), constructor, fields, span)
