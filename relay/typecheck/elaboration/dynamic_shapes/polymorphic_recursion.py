"""Recursion at other sizes: `half(x[: n // 2])` in the body of `half`.

Where a call's sizes are known, each depth has an instance of its own, until sizes repeat. Two rules end an infinite
recursion: in a scheme a function whose parameters and result are annotated is used at its annotation, as polymorphic as
that is; and sizes that are annotated `Any` are known only at run time, if the recursion changes them.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence

import attrs

from relay.errors import Span, TypeCheckError
from relay.ir.dims import Dim, resolve_dim
from relay.ir.expr import Function
from relay.ir.types import (
    Form,
    Kind,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    map_dims,
    prune,
    type_variables,
    unknown_of,
)
from relay.operator.relation import substitute
from relay.typecheck.elaboration.abstract_values import (
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    TypedBlockBuilder,
    surface_function,
)
from relay.typecheck.elaboration.annotated_types import annotation_type
from relay.typecheck.elaboration.checker import Checker, Instance, InstanceKey
from relay.typecheck.elaboration.diagnostics.mistakes import display_type
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.dynamic_shapes.data_dependent import any_axes, varying_axes
from relay.typecheck.elaboration.expressions.arguments import definition_context
from relay.typecheck.elaboration.restarts import ListGrows, Place, SizeVaries
from relay.typecheck.elaboration.schemes import rank_n_types
from relay.typecheck.elaboration.schemes.schemes import close_type
from relay.typecheck.unification import flat_shape, resolve, shape_variable, unknowns


def note_sizes(checker: Checker, key: InstanceKey, instance: Instance) -> None:
    """Let `at_equal_sizes` find an instance."""
    if checker.hints.is_open:
        checker.module.instances_at_numbers.setdefault(_at_numbers(checker, key), instance)


def at_equal_sizes(checker: Checker, key: InstanceKey, types: Sequence[Type]) -> Instance | None:
    """For a function that calls itself at other symbolic sizes, an instance whose sizes are the same in this call: they
    become numbers then. Halves of `n`, rounded up and down, would be sizes of their own, and a recursion with two calls
    would have twice as many instances at each depth, for a program that is right for few sizes."""
    found = checker.module.instances_at_numbers.get(_at_numbers(checker, key)) if checker.hints.is_open else None
    if found is None:
        return None
    for left, right in zip(_dims(types), _dims(found.parameters), strict=True):
        if resolve_dim(left) == resolve_dim(right):
            continue
        number = checker.hints.number(left)  # also of sizes that are known to be equal: types have to be the same
        if number is None or number != checker.hints.number(right):
            return None
    return found


def has_other_sizes(checker: Checker, found: Sequence[Type], expected: Sequence[Type]) -> bool:
    """True if sizes differ that are known in both, of types whose dtypes may not be."""
    pairs = list(zip(_dims(found), _dims(expected), strict=False))
    numbers = [(checker.hints.hinted_number(a), checker.hints.hinted_number(b)) for a, b in pairs]
    return any(a is not None and b is not None and a != b for a, b in numbers)


def note_made(checker: Checker, first: Instance, instance: Instance) -> None:
    """Let `made_for` find an instance that a recursion needs at types that are not known yet."""
    if (sizes := _structure(checker, instance.parameters)) is not None:
        first.inside.setdefault(sizes, instance)


def recursive_instance(checker: Checker, first: Instance, types: Sequence[Type]) -> Instance | None:
    """The instance that a recursion, whose outermost call is `first`, has at these sizes: it has one set of dtypes."""
    sizes = _structure(checker, types)
    return None if sizes is None else first.inside.get(sizes)


def _structure(checker: Checker, types: Sequence[Type]) -> object:
    """Types without their dtypes; None where their sizes are not known."""
    is_open = False

    def hinted_structure(type_: Type) -> object:
        nonlocal is_open
        known = prune(type_)
        if isinstance(known, TupleType):
            return tuple(map(hinted_structure, known.items))
        if not isinstance(known, TensorType):
            return known
        sizes = tuple(map(checker.hints.hinted_number, flat_shape(known.shape)))
        is_open = is_open or None in sizes
        return TensorType, sizes

    found = tuple(map(hinted_structure, types))
    return None if is_open else found


def _dims(types: Sequence[Type]) -> list[Dim]:
    """All dims in types, in their order."""
    found: list[Dim] = []

    def note(dim: Dim) -> Dim:
        found.append(dim)
        return dim

    for type_ in types:
        map_dims(type_, note)
    return found


def _at_numbers(checker: Checker, key: InstanceKey) -> object:
    def number(dim: Dim) -> Dim:
        found = checker.hints.hinted_number(dim)
        return dim if found is None else found

    code, shape, types, names, statics = key
    return code, shape, tuple(map_dims(t, number) for t in types), names, statics


MAX_POLYMORPHIC_DEPTH = 64
"""The largest number of nested calls with other types each."""

GROWING_DEPTH = 6
"""The number of calls in a row with larger structures that shows that a recursion does not end."""


def general_use(
    checker: Checker,
    callee: GlobalFunction | LocalFunction,
    running: Instance,
    types: Sequence[Type],
    span: Span | None,
) -> Instance | None:
    """In a scheme, the use of a function in its own body, at types of its own for what is annotated by variables; None
    if these are the same there, or there are none.

        f : forall v. fn(A[v], B) -> R[v]   while its body is typed
        f(a, b) : R[w]                      for a : A[w], b : B

    Raises TypeMismatch for arguments that the annotations do not allow.
    """
    function = surface_function(callee)
    if not checker.generic or len(function.parameters) != len(types):
        return None
    if not any(p.type is not None and type_variables(p.type) for p in function.parameters):
        return None
    context = definition_context(callee)
    context.annotated = dict(context.annotated)  # variables of the functions around keep their meaning
    parameters = []
    for parameter, found, own in zip(function.parameters, types, running.parameters, strict=True):
        expected = own
        if parameter.type is not None:
            expected = annotation_type(checker, context, parameter.type, span=span)
        checker.unify_at(found, expected, span, f"argument {parameter.name} of {function.name}")
        parameters.append(expected)
    meaning = context.annotated
    if all(v in running.annotated and _is_same(running.annotated[v], value) for v, value in meaning.items()):
        return None
    if function.result is not None:
        result = annotation_type(checker, context, function.result, any_stays=True, span=span)
    elif running.is_general:
        result = _result_there(checker, function, running, meaning, span)
    else:
        general = _general_result(checker, callee, running, span)
        result = substitute(general, meaning)
    return attrs.evolve(running, parameters=tuple(map(resolve, parameters)), result=result, known=None)


def _is_same(left: object, right: object) -> bool:
    """True if two values of a variable are equal already."""
    a, b = (flat_shape(x) if isinstance(x, tuple) else prune(x) for x in (left, right))  # type: ignore[arg-type]
    if isinstance(a, TensorType | TupleType) and isinstance(b, TensorType | TupleType):
        return resolve(a) == resolve(b)
    return a is b or (a == b and not isinstance(a, Unknown))


def _result_there(
    checker: Checker, function: Function, running: Instance, meaning: Mapping[TypeId, object], span: Span | None
) -> Type:
    """The result of a function under other values of its variables, while its body is typed."""
    result = checker.solver.fresh_variable(Kind.Type)

    def attempt() -> Sequence[Unknown] | None:
        waiting = [u for u in unknowns(running.result) if u.kind is not Kind.BaseType and not u.rigid]
        if waiting:
            return waiting
        there = substitute(_closed_result(running), meaning)
        checker.unify_at(there, result, span, f"the result of {function.name}")
        return None

    checker.defer(attempt, span, f"the result of {function.name}")
    return result


def _closed_result(running: Instance) -> Type:
    """The result of a general instance, by the variables of the annotations."""
    rigid = {v: name for name, value in running.annotated.items() if isinstance(v := prune(value), Unknown)}  # type: ignore[arg-type]
    return close_type(running.result, rigid)  # type: ignore[return-value]


def _general_result(
    checker: Checker, callee: GlobalFunction | LocalFunction, running: Instance, span: Span | None
) -> Type:
    """The result of a function by the variables of its annotations, found by typing its body for all of them. Raises
    TypeCheckError if that does not tell it."""

    function = surface_function(callee)
    if function.label in checker.scheme.general_results:
        return checker.scheme.general_results[function.label]
    context = definition_context(callee)
    context.annotated = dict(context.annotated)  # variables of the functions around keep their meaning
    for variable in (v for p in function.parameters if p.type is not None for v in type_variables(p.type)):
        rigid = variable if variable.kind is Kind.Dim else unknown_of(variable, rigid=True)
        context.annotated.setdefault(variable, rigid)
    errors = len(checker.errors)
    with rank_n_types.discarded_elaboration(checker), checker.detached_frame(), _kept_slot(callee):
        types = [
            own if p.type is None else annotation_type(checker, context, p.type, span=span)
            for p, own in zip(function.parameters, running.parameters, strict=True)
        ]
        values = [
            DynamicValue(checker.variable(p.name, t, p.span), t)
            for p, t in zip(function.parameters, types, strict=True)
        ]
        instance = checker.engine.instantiate(checker, callee, values, values, span, annotated=context.annotated)
        checker.solver.run()
        if len(checker.errors) > errors:
            raise checker.errors[errors]
        result = _closed_result(instance)
        if any(not u.literals for u in unknowns(result)):
            raise TypeCheckError(
                f"the result of {function.name} for arguments of other sizes is not known here",
                span,
                help=f"annotate the result of {function.name}",
            )
    checker.scheme.general_results[function.label] = result
    return result


@contextlib.contextmanager
def _kept_slot(callee: GlobalFunction | LocalFunction) -> Iterator[None]:
    """While a local function is elaborated whose code is not kept."""
    items = callee.slot.items if isinstance(callee, LocalFunction) else []
    length = len(items)
    try:
        yield
    finally:
        del items[length:]


def refuse_endless(
    checker: Checker,
    function: Function,
    running: Sequence[Instance],
    types: Sequence[Type],
    shape: Sequence[bool],
    span: Span | None,
) -> None:
    """Raise TypeCheckError for a recursion whose arguments have another type at each depth, after this many. Start
    again with dynamic lists where it passes longer ones."""
    larger, name = _get_larger(running, types), function.name
    if len(running) < MAX_POLYMORPHIC_DEPTH and not larger:
        return
    given = [position for position, is_static in enumerate(shape) if not is_static]
    for position, found, before in zip(given, types, running[-1].parameters, strict=True):
        if _is_longer_list(found, before) and _place(function, position) not in checker.decisions.growing:
            raise ListGrows(_place(function, position))
    first, second = (", ".join(map(display_type, i.parameters)) for i in running[:2])
    help = "pass an index instead of a smaller tensor, or annotate sizes that change with Any"
    raise TypeCheckError(
        f"the types of {name}'s arguments change with the depth of the recursion: {first}, then {second}, ..",
        span,
        help="collect values in a list, or in a data type" if larger else help,
    )


def _is_longer_list(found: Type, before: Type) -> bool:
    match prune(found), prune(before):
        case TupleType(items, Form(cls)), TupleType(others, _):
            return cls is list and len(items) > len(others)
        case _:
            return False


def _get_larger(running: Sequence[Instance], types: Sequence[Type]) -> bool:
    """True if a function's arguments get larger types at each depth: more components, not other sizes."""
    if len(running) < GROWING_DEPTH:
        return False
    recent = [running[k].parameters for k in range(-GROWING_DEPTH, 0)]
    counts = [sum(map(_count, parameters)) for parameters in (*recent, types)]
    return all(a < b for a, b in itertools.pairwise(counts))


def has_other_structure(found: Type, expected: Type) -> bool:
    """True if two types cannot be equal: one is a tuple or a list, has other components, or another rank."""
    a, b = prune(found), prune(expected)
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        return len(a.items) != len(b.items) or any(map(has_other_structure, a.items, b.items))
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        ranks_known = shape_variable(flat_shape(a.shape)) is None and shape_variable(flat_shape(b.shape)) is None
        return ranks_known and len(flat_shape(a.shape)) != len(flat_shape(b.shape))
    known = TupleType | TensorType | StackType
    return isinstance(a, known) and isinstance(b, known) and type(a) is not type(b)


def _count(type_: Type) -> int:
    """The number of tensors in a tuple, and in tuples in it."""
    type_ = prune(type_)  # type: ignore[assignment]
    return sum(map(_count, type_.items)) if isinstance(type_, TupleType) else 1


def refuse_other_sizes(
    checker: Checker,
    function: Function,
    running: Instance,
    types: Sequence[Type],
    shape: Sequence[bool],
) -> None:
    """Start again with data-dependent sizes where a function calls itself with other sizes at axes that are
    annotated `Any`."""
    given = [position for position, is_static in enumerate(shape) if not is_static]
    for position, found, before in zip(given, types, running.parameters, strict=True):
        may = any_axes(function.parameters[position].type)
        place = _place(function, position)
        axes = varying_axes(found, before, may) & set(may) - checker.decisions.varying.get(place, set())
        if axes:
            raise SizeVaries(place, axes)


def widen_varying_sizes(
    checker: Checker,
    out: TypedBlockBuilder,
    function: Function,
    values: Sequence[DynamicValue | None],
    span: Span | None,
) -> list[DynamicValue | None]:
    """The arguments, with `Any` for the sizes that a recursion changes, and lists that grow for those whose length it
    changes."""
    found = list(values)
    for position, value in enumerate(values):
        if value is not None and _place(function, position) in checker.decisions.growing:
            found[position] = dynamic_lists.as_growing(checker, out, value, span)
        axes = checker.decisions.varying.get(_place(function, position))
        if value is not None and axes:
            found[position] = data_dependent.widen_axes(checker, out, value, axes, span)
    return found


def _place(function: Function, position: int) -> Place:
    return function.label, (-1, position)
