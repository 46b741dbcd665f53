"""`for`: over a range or a tensor it is a loop with a counter; over a tuple it is unrolled, so that the elements'
types may differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import attrs

from relay.errors import Span, TypeCheckError
from relay.ir.dims import Dim, add, subtract
from relay.ir.expr import Counter, Dead, Exit, Loop, LoopLabel, Next, OpCall, Var
from relay.ir.surface import ForEach
from relay.ir.traverse import all_blocks
from relay.ir.types import INT64, BaseType, TensorType, axis_names, scalar
from relay.operator import lookup
from relay.typecheck.dims import at_least
from relay.typecheck.elaboration.abstract_values import (
    FUNCTIONS,
    AbstractValue,
    Context,
    DeferredBinding,
    DynamicValue,
    Handler,
    Number,
    Progression,
    PythonNumber,
    PythonObject,
    Range,
    Tuple,
    TypedBlockBuilder,
    Zip,
    dim_of,
    size,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow import known_sequences, loop_copies, optionals, trip_counts
from relay.typecheck.elaboration.control_flow.chosen_rounds import with_chosen_rounds
from relay.typecheck.elaboration.control_flow.joins import Join, assign_joined, rename
from relay.typecheck.elaboration.control_flow.loops import LoopState, elaborate_round
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_items
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.expressions import operators
from relay.typecheck.elaboration.expressions.atoms import atom_entity, describe, handed_entities
from relay.typecheck.elaboration.library.overloads import is_function
from relay.typecheck.elaboration.members.elements import elements
from relay.typecheck.elaboration.members.iterated import iterated
from relay.typecheck.elaboration.members.subscripts import index
from relay.typecheck.elaboration.restarts import NeverRuns
from relay.typecheck.elaboration.values import data_iteration, range_numbers, texts
from relay.typecheck.elaboration.values.data import is_string_of_run
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.records import iteration_items
from relay.typecheck.elaboration.values.tensors import tensor_type

FEW_ROUNDS = 16
"""Of how many rounds a loop is unrolled that makes functions of functions."""

SAMPLED_ROUNDS = 2
"""With how many rounds a scheme tries a loop over the number that an argument gives."""

Rest: TypeAlias = Callable[[tuple[AbstractValue, ...], TypedBlockBuilder], tuple[AbstractValue, ...]]
"""Elaborates the rounds after the first ones, for what the variables are then: what they are after all."""


def elaborate_for(
    checker: Checker, context: Context, targets: tuple[Var, ...], node: ForEach, out: TypedBlockBuilder
) -> None:
    """A `for` loop."""
    checker.rounds.enter(node)
    iterable = _configured(checker, node, atom_entity(context, node.iterable))
    iterable = optionals.content(checker, out, iterable, describe(node.iterable), node.span)
    iterable = iterated(checker, out, iterable, node.span)
    if isinstance(iterable, DynamicValue):
        iterable = expand(checker, out, iterable, node.span)
    if isinstance(iterable, DynamicValue) and data_iteration.list_constructors(iterable) is not None:
        data_iteration.elaborate_for_list(checker, context, targets, node, iterable, out)
        return
    if is_string_of_run(iterable):
        iterable = texts.characters(checker, out, iterable, node.span)
    iterable = known_sequences.as_read(checker, context, node, iterable, out)
    items = _static_items(checker, out, iterable, node.span)
    if items is None and loop_copies.is_copied(checker, context, node, iterable):
        items = elements(checker, out, iterable, node.span)
    if items is None:
        node, iterable = with_chosen_rounds(checker, context, node, iterable)
    if items is None and any(map(_is_function, handed_entities(context, node.initial))):
        items = _few_numbers(iterable, node.span)
    if items is not None:
        with loop_copies.rounds(checker, len(items)):
            _unroll(checker, context, targets, node, items, out)
    else:
        _elaborate_counted_loop(checker, context, targets, node, iterable, out)


def _configured(checker: Checker, node: ForEach, iterable: AbstractValue) -> AbstractValue:
    """The iterable of a loop; in a scheme, that of some rounds where a call's number of them has to be tried. Raises
    SchemeOnly where that has shown that only a call knows the types of the rounds."""
    if not checker.generic:
        return iterable
    if node.label in checker.decisions.by_call:
        raise SchemeOnly(node.span, "how many rounds this loop has")
    ranges = [part for part in trip_counts.parts(iterable) if isinstance(part, Range)]
    bounds = [b for part in ranges for b in (part.start, part.stop) if isinstance(b, DynamicValue)]
    if node.iterable not in checker.scheme.doubtful and not any(checker.sources.sources_of(b.atom) for b in bounds):
        return iterable
    checker.configured.add(node.label)
    return _sampled(iterable) if node.label in checker.decisions.sampled else iterable


def _sampled(iterable: AbstractValue) -> AbstractValue:
    """The iterable with known numbers for ranges whose bounds are computed."""
    match iterable:
        case Zip(items):
            return Zip(tuple(map(_sampled, items)))
        case Range(start, stop, step) if isinstance(start, DynamicValue) or isinstance(stop, DynamicValue):
            return attrs.evolve(iterable, start=PythonNumber(0), stop=PythonNumber(SAMPLED_ROUNDS * step))
        case _:
            return iterable


def _is_function(entity: AbstractValue) -> bool:
    """True if an entity is, or contains, a function of the program."""
    if isinstance(entity, Tuple):
        return any(map(_is_function, entity.items))
    return isinstance(entity, FUNCTIONS) or (isinstance(entity, PythonObject) and is_function(entity.value))


def _few_numbers(iterable: AbstractValue, span: Span | None) -> list[AbstractValue] | None:
    """The numbers of a range that is known and short. Rounds that make new functions of the last one's, as derivatives
    of higher orders, are unrolled: the functions stay known, and may be as many as there are rounds."""
    if (
        not isinstance(iterable, Range)
        or not isinstance(iterable.start, Number)
        or not isinstance(iterable.stop, Number)
    ):
        return None
    start, stop = dim_of(iterable.start), dim_of(iterable.stop)
    if not isinstance(start, int) or not isinstance(stop, int):
        return None
    numbers = range(start, stop, iterable.step)
    return [PythonNumber(n, span) for n in numbers] if len(numbers) <= FEW_ROUNDS else None


def _static_items(
    checker: Checker, out: TypedBlockBuilder, iterable: AbstractValue, span: Span | None
) -> list[AbstractValue] | None:
    """The elements, if the checker knows them one by one: of a tuple, or a zip with one in it."""
    match iterable:
        case Tuple():
            return list(iteration_items(iterable, span))
        case PythonObject(str() | frozenset()):
            return elements(checker, out, iterable, span)
        case Zip(parts):
            parts = tuple(expand(checker, out, p, span) if isinstance(p, DynamicValue) else p for p in parts)
            columns = [_static_items(checker, out, p, span) for p in parts]
            lengths = [len(c) for c in columns if c is not None]
            if not lengths:
                return None
            count = min(lengths)
            rows: list[AbstractValue] = []
            for position in range(count):
                row = [
                    column[position] if column is not None else _element_at(checker, out, part, position, span)
                    for part, column in zip(parts, columns, strict=True)
                ]
                if any(r is None for r in row):
                    return rows
                rows.append(Tuple(tuple(r for r in row if r is not None)))
            return rows
        case _:
            return None


def _element_at(
    checker: Checker, out: TypedBlockBuilder, part: AbstractValue, position: int, span: Span | None
) -> AbstractValue | None:
    """The element of a range, tensor or zip of these at a known position, None after its end."""
    if isinstance(part, Range) and isinstance(part.start, Number) and not isinstance(part.stop, DynamicValue):
        start = dim_of(part.start)
        assert start is not None
        value = add(start, position * part.step)
        stop = dim_of(part.stop) if isinstance(part.stop, Number) else None
        if stop is not None and (at_least(value, stop) if part.step > 0 else at_least(stop, value)):
            return None
        return size(value, span)
    if (
        isinstance(part, DynamicValue)
        and dynamic_lists.is_growing(part)
        and (count := dynamic_lists.count(checker, part)) is not None
    ):
        return index(checker, out, part, [PythonNumber(position, span)], span) if position < count else None
    if isinstance(part, DynamicValue) and (type_ := tensor_type(part)) is not None and type_.rank > 0:
        inside = at_least(type_.shape[0], position + 1)
        return index(checker, out, part, [PythonNumber(position, span)], span) if inside else None
    if isinstance(part, Zip):
        row = [_element_at(checker, out, item, position, span) for item in part.items]
        return None if any(item is None for item in row) else Tuple(tuple(item for item in row if item is not None))
    if checker.is_open(part):
        raise SchemeOnly(span, "an argument of zip")
    raise TypeCheckError("a zip with a tuple needs lengths that are known at compile time", span)


def _unroll(
    checker: Checker,
    context: Context,
    targets: tuple[Var, ...],
    node: ForEach,
    items: Sequence[AbstractValue],
    out: TypedBlockBuilder,
    rest: Rest | None = None,
) -> None:
    """One copy of the body for each element, and then the `rest` of the rounds. `continue` and `break` leave loops that
    run once."""
    current = handed_entities(context, node.initial)
    leaves = [
        t for block in all_blocks(node.body) if isinstance(t := block.terminator, Next | Exit) and t.label is node.label
    ]
    simple = len(leaves) == 1 and node.body.terminator is leaves[0] and isinstance(leaves[0], Next)
    if simple:
        for item in items:
            if out.terminator is not None:
                return
            current = _simple_round(checker, context, node, item, current, out)
        if rest is not None and out.terminator is None:
            current = rest(current, out)
        context.assign(targets, current)
        return
    outer = LoopLabel(node.label.name)
    outer_join = Join(checker, [t.name for t in targets])
    everything = TypedBlockBuilder()
    ended, failures = False, checker.failures
    with checker.scope(everything) as depth:
        for item in items:
            inside = context.child_context()
            inside.environment[node.element] = item
            current, ended = elaborate_round(checker, inside, node, current, everything, outer_join, depth)
            if ended:
                break
        if not ended:
            if rest is not None:
                current = rest(current, everything)
            checker.escaping = checker.made_since(depth)
            outer_join.add(everything, current, node.span)
    bound, entities = outer_join.close(lambda atoms, span: Exit(outer, atoms, span))
    out.items.append(DeferredBinding(bound, lambda: Loop(outer, (), (), everything.block(), None, node.span)))
    entities = tuple(data_dependent.all_opened(checker, out, e, node.span) for e in entities)
    if not assign_joined(checker, context, targets, outer_join, entities, failures):
        out.terminator = Dead()


def _simple_round(
    checker: Checker,
    context: Context,
    node: ForEach,
    item: AbstractValue,
    current: tuple[AbstractValue, ...],
    out: TypedBlockBuilder,
) -> tuple[AbstractValue, ...]:
    context = context.child_context()
    context.environment[node.element] = item
    context.assign(node.parameters, current)
    result = current

    def on_next(place: TypedBlockBuilder, entities: tuple[AbstractValue, ...], span: Span | None) -> None:
        nonlocal result
        result = entities

    context.handlers[node.label] = Handler(node.label, on_next, on_next, len(checker.frame.scopes))
    checker.engine.elaborate_block(checker, context, node.body, out, None)
    return result


def _elaborate_counted_loop(
    checker: Checker,
    context: Context,
    targets: tuple[Var, ...],
    node: ForEach,
    iterable: AbstractValue,
    out: TypedBlockBuilder,
) -> None:
    parts = trip_counts.parts(iterable)
    base = trip_counts.element_base(checker, parts)
    counting = trip_counts.counter_base(checker, parts, base)
    found = {id(p): trip_counts.count(checker, out, p, base, counting, node.span) for p in parts}
    counts = [c for c in found.values() if c is not None]
    if not counts:
        raise TypeCheckError("this loop has no end", node.span, help="add a range or a tensor to the zip")
    count = counts[0]
    for other in counts[1:]:
        count = trip_counts.minimum(checker, out, count, other, node.span)
    rounds = loop_copies.rounds_of(iterable)
    axis, divergence = (iterable.axis, iterable.divergence) if isinstance(iterable, Range) else ("", "")

    def element(block: TypedBlockBuilder, index: DynamicValue) -> AbstractValue:
        return _element(checker, block, iterable, index, found, base, node.span)

    def loop(current: tuple[AbstractValue, ...], block: TypedBlockBuilder, first: int) -> tuple[AbstractValue, ...]:
        counts = count, rounds, axis, divergence
        return _counted_rounds(checker, context, node, current, element, counts, first, block)

    if rounds == 0 and node.label in checker.decisions.idle:
        context.assign(targets, handed_entities(context, node.initial))
    elif node.label not in checker.decisions.peeled or rounds is None:
        context.assign(targets, loop(handed_entities(context, node.initial), out, 0))
    elif at_least(rounds, 1):
        start = element(out, trip_counts.integer(0, counting))
        _unroll(checker, context, targets, node, [start], out, lambda current, block: loop(current, block, 1))
    else:
        context.assign(targets, handed_entities(context, node.initial))


def _counted_rounds(
    checker: Checker,
    context: Context,
    node: ForEach,
    current: tuple[AbstractValue, ...],
    element: Callable[[TypedBlockBuilder, DynamicValue], AbstractValue],
    counts: tuple[DynamicValue, Dim | None, str, str],
    first: int,
    out: TypedBlockBuilder,
) -> tuple[AbstractValue, ...]:
    """The rounds from the `first` one on as a loop with a counter. `counts`: how many rounds there are, as the counter
    has it and as a dim, if that is known, and of what examples they are the name of the axis and the divergence."""
    count, rounds, axis, divergence = counts
    known = tensor_type(count)
    assert known is not None and isinstance(known.base, BaseType)
    skipped = trip_counts.integer(first, known.base)
    if first:
        count = trip_counts.call(checker, out, "subtract", [count, skipped], known.base, node.span)
    carried = LoopState(checker, context, out, node, current)
    label = LoopLabel(node.label.name)
    index = checker.variable(f"{node.element.name}_index", scalar(known.base), node.span)
    body = TypedBlockBuilder()

    def on_next(place: TypedBlockBuilder, entities: tuple[AbstractValue, ...], span: Span | None) -> None:
        place.terminator = Next(label, carried.fit(place, entities, span), span)

    leaves_early = False

    def on_exit(place: TypedBlockBuilder, entities: tuple[AbstractValue, ...], span: Span | None) -> None:
        nonlocal leaves_early
        leaves_early = True
        place.terminator = Exit(label, carried.fit(place, entities, span), span)

    context.handlers[node.label] = Handler(label, on_next, on_exit, len(checker.frame.scopes))
    failures = checker.failures
    with checker.where_it_may_not_run(), checker.scope(body), loop_copies.uncopied_body(checker, node):
        number = DynamicValue(index, scalar(known.base))
        if first:
            number = trip_counts.call(checker, body, "add", [number, skipped], known.base, node.span)
        context.environment[node.element] = element(body, number)
        context.assign(node.parameters, carried.round_entities(body))
        checker.engine.elaborate_block(checker, context, node.body, body, None)
    carried.settle_optional()
    if rounds == 0 and checker.failures > failures:
        raise NeverRuns(node.label)
    results = [checker.variable(p.name, p.type or scalar(known.base), p.span) for p in carried.parameters]
    renamed = dict(zip(carried.parameters, results, strict=True))
    followed = None if leaves_early or not carried.has_lists or rounds is None else subtract(rounds, first)
    counter = Counter(index, count.atom, axis, divergence)

    def build() -> Loop:
        return Loop(label, tuple(carried.parameters), tuple(carried.initial), body.block(), counter, node.span)

    out.items.append(DeferredBinding(tuple(results), build))
    after = [rename(carried.exit_entity(e, followed), renamed) for e in carried.entities]
    return tuple(data_dependent.all_opened(checker, out, e, node.span) for e in after)


def _element(
    checker: Checker,
    body: TypedBlockBuilder,
    part: AbstractValue,
    index: DynamicValue,
    counts: Mapping[int, DynamicValue | None],
    base: BaseType,
    span: Span | None,
) -> AbstractValue:
    """The element of a round. `counts`: the elements of each part, by identity; `base`: the dtype of numbers."""

    def compute(name: str, *operands: DynamicValue) -> DynamicValue:
        return trip_counts.call(checker, body, name, operands, base, span)

    match part:
        case Zip(items):
            return Tuple(tuple(_element(checker, body, i, index, counts, base, span) for i in items))
        case Range(start, _, step):
            value = trip_counts.cast_integer(checker, body, index, base, span)
            count = counts[id(part)]
            if part.backward and count is not None:
                first = trip_counts.last_number(checker, body, part, count, base, span)
                step = -step
            else:
                first = trip_counts.bound_of(checker, body, start, base, span)
            if step != 1:
                value = compute("multiply", value, trip_counts.wrapped_integer(step, base))
            if part.backward or not trip_counts.is_zero(start):
                value = compute("add", value, first)
            if trip_counts.is_natural(checker, start if part.step > 0 else part.stop):
                checker.sizes.naturals.add(value.atom)
            return range_numbers.of_range(value)
        case Progression(start, _, step):
            by = trip_counts.bound_of(checker, body, step, base, span)
            value = trip_counts.cast_integer(checker, body, index, base, span)
            count = counts[id(part)]
            if part.backward and count is not None:
                first = trip_counts.last_number(checker, body, part, count, base, span)
                return range_numbers.of_range(compute("subtract", first, compute("multiply", value, by)))
            first = trip_counts.bound_of(checker, body, start, base, span)
            return range_numbers.of_range(compute("add", compute("multiply", value, by), first))
        case DynamicValue() if dynamic_lists.is_growing(part):
            position = operators.apply(checker, body, lookup("cast"), [index], {"dtype": INT64}, span, [])
            return list_items.read(checker, body, part, position, span)
        case DynamicValue():
            type_ = tensor_type(part)
            assert type_ is not None
            names = axis_names(type_)
            row = TensorType(type_.base, type_.shape[1:], None if names is None else names[1:])
            value = checker.bind(body, OpCall("index", (part.atom, index.atom), {}, span), row, "row", span)
            return range_numbers.of_range(value) if part.of_range else value
        case _:
            raise TypeCheckError("this cannot be iterated over", span)
