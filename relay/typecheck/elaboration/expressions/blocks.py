"""Blocks and branches: one case for each node of the surface IR."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator

import attrs

from relay.errors import InternalError, RelayError, Span, TypeCheckError, TypeMismatch
from relay.ir.debugging.source_names import is_written, name_collector
from relay.ir.debugging.source_places import collected_values
from relay.ir.expr import (
    Assert,
    Atom,
    Attempt,
    Binding,
    Block,
    Call,
    CatchesError,
    Constant,
    Dead,
    EndAttempt,
    Exit,
    Expr,
    Global,
    If,
    Lambda,
    Loop,
    MakeTuple,
    Next,
    OpCall,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    Rethrow,
    Static,
    Var,
    Yield,
)
from relay.ir.surface import (
    Annotated,
    Apply,
    Attribute,
    ForEach,
    Index,
    IndexUpdate,
    PatternMatch,
    SetAttribute,
    Unpack,
)
from relay.ir.traverse import free_variables
from relay.ir.types import ANY, Kind, StackType, TensorType, TupleType, Type, prune, show
from relay.operator import Undetermined
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DependsOnPoison,
    DynamicValue,
    LocalFunction,
    Number,
    Poison,
    PythonObject,
    SliceItem,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.annotated_types import annotation_type
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.control_flow import optionals, recursive_results
from relay.typecheck.elaboration.diagnostics import unresolved_names
from relay.typecheck.elaboration.diagnostics.descriptions import kind_of
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly, reportable_error
from relay.typecheck.elaboration.dynamic_lists import dynamic_lists, list_items
from relay.typecheck.elaboration.dynamic_shapes import data_dependent, masks, size_conditions
from relay.typecheck.elaboration.engine import late_import
from relay.typecheck.elaboration.expressions import calls, references
from relay.typecheck.elaboration.expressions.atoms import atom_entity, describe, handed_entities, index_items
from relay.typecheck.elaboration.expressions.conditions import is_stuck, require_bool
from relay.typecheck.elaboration.expressions.python_operators import apply_named
from relay.typecheck.elaboration.library import formatting, overloads
from relay.typecheck.elaboration.members import changing_calls, item_updates, subscripts
from relay.typecheck.elaboration.members.value_attributes import attribute
from relay.typecheck.elaboration.schemes import conditional_types, rank_polymorphism, stuck_terms
from relay.typecheck.elaboration.values import axis_names, special_methods
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.unification import Clash

OnYield = Callable[[TypedBlockBuilder, tuple[AbstractValue, ...], "Span | None"], None]


def elaborate_block(
    checker: Checker, context: Context, block: Block, out: TypedBlockBuilder, on_yield: OnYield | None
) -> None:
    """Elaborate a block into `out`. What its `yield` does is the caller's; `next` and `exit` are the handlers'.

    A binding with a mistake is reported, and elaboration goes on without what depends on it.
    """
    mark = len(context.narrowed)
    with checker.scope(out) as depth, checker.facts_of_block():
        _elaborate_block(checker, context, block, out, on_yield, depth)
    context.restore(mark)


def _elaborate_block(
    checker: Checker, context: Context, block: Block, out: TypedBlockBuilder, on_yield: OnYield | None, depth: int
) -> None:
    names, values = name_collector(), collected_values()
    if names is not None:
        introduced = names.introduced_variables(block, context.environment)
        _note_names(out, context, introduced)
        if values is not None:
            values.note(_meanings(context, introduced), None)
    for binding in block.bindings:
        checker.hints.span = binding.value.span or checker.hints.span
        opened = len(checker.scheme.opened)
        if checker.is_partial:
            stuck_terms.note_doubt(checker, binding)
        if names is not None:
            names.enter(binding.value)
        try:
            elaborate_binding(checker, context, binding, out)
            if names is not None:
                _note_names(out, context, binding.targets)
            if values is not None:
                values.note(_meanings(context, binding.targets), binding.value.span)
            checker.solver.run()
            if len(checker.scheme.opened) > opened:
                checker.scheme.doubtful.update(binding.targets)
            if checker.generic:
                conditional_types.note(checker, context, binding, len(checker.scheme.opened) > opened)
        except (DependsOnPoison, RelayError, Undetermined, Clash) as error:
            error = reportable_error(error, checker.hints.span)
            if isinstance(error, RelayError) and error.at_run_time is not None and checker.decisions.caught:
                _caught_errors().fail(checker, out, error, binding.value.span)
                return
            if checker.generic and stuck_terms.is_open(checker, context, binding, error):
                unresolved_names.report_operands(checker, context, binding.value)
                stuck_terms.open_binding(checker, context, binding)
                if values is not None:
                    values.note(_meanings(context, binding.targets), binding.value.span)
                conditional_types.note(checker, context, binding, True)
                continue
            if recursive_results.leave_open(checker, context, binding, error):
                continue
            checker.report(error.with_span(binding.value.span) if isinstance(error, RelayError) else error)
            unresolved_names.report(checker, context, binding.value)
            context.assign(binding.targets, [Poison()] * len(binding.targets))
        if out.terminator is not None:  # a branch that the checker decided has left
            return
    try:
        _terminate(checker, context, block, out, on_yield, depth)
    except (DependsOnPoison, RelayError, Undetermined, Clash) as error:
        checker.report(reportable_error(error, checker.hints.span))
        out.terminator = Dead()


def _meanings(context: Context, variables: Iterable[Var]) -> Iterator[tuple[Var, AbstractValue]]:
    """The meanings of variables from here on."""
    for variable in variables:
        value = context.environment.get(variable)
        if value is not None and not isinstance(value, Poison):
            yield variable, value


def _note_names(out: TypedBlockBuilder, context: Context, variables: Iterable[Var]) -> None:
    """Record the meanings of the user's variables among these from here on."""
    for variable in variables:
        value = context.environment.get(variable)
        if value is not None and is_written(variable.name, variable.span):
            out.names.append((len(out.items), variable.name, value))


def _terminate(
    checker: Checker, context: Context, block: Block, out: TypedBlockBuilder, on_yield: OnYield | None, depth: int
) -> None:
    if not isinstance(block.terminator, Dead):
        checker.handed = block.terminator.values
    match block.terminator:
        case Yield(values, span):
            if on_yield is None:
                raise InternalError("a yield outside of an arm")
            checker.escaping = checker.made_since(depth)
            on_yield(out, handed_entities(context, values), span)
        case Next(label, values, span):
            handler = context.handlers[label]
            assert handler.on_next is not None
            checker.escaping = checker.made_since(handler.depth)
            entities = handed_entities(context, values)
            checker.rounds.hand_on(block.terminator, entities)
            handler.on_next(out, entities, span)
        case Exit(label, values, span):
            handler = context.handlers[label]
            depth = handler.depth if handler.exit_depth is None else handler.exit_depth
            checker.escaping = checker.made_since(depth)
            handler.on_exit(out, handed_entities(context, values), span)
        case Dead():
            out.terminator = Dead()


@attrs.frozen(eq=False)
class _Operands:
    """The meanings of the operands of an expression."""

    checker: Checker
    context: Context
    out: TypedBlockBuilder
    span: Span | None

    def entity(self, atom: Atom) -> AbstractValue:
        """The meaning of an atom that is only passed on."""
        return atom_entity(self.context, atom)

    def content(self, atom: Atom) -> AbstractValue:
        """The meaning of an atom where it is used: never None."""
        entity = atom_entity(self.context, atom)
        return optionals.content(self.checker, self.out, entity, describe(atom), self.span)

    def compared(self, atoms: tuple[Atom, ...]) -> list[AbstractValue]:
        """The meanings of the operands of `==`: None equals None alone, but an array is compared by elements."""
        given = [atom_entity(self.context, a) for a in atoms]
        if any(map(optionals.may_be_none, given)) and not optionals.are_comparable(given):
            return [self.content(a) for a in atoms]
        return given

    def denied(self, atom: Atom) -> AbstractValue:
        """The meaning of the operand of `not`, which may be None."""
        entity = atom_entity(self.context, atom)
        if not optionals.may_be_none(entity) and not is_stuck(self.checker, entity):
            return entity
        found = require_bool(self.checker, self.out, entity, self.span, "the operand of `not`")
        optionals.note_truth(self.checker, found, atom, entity)
        return found


def elaborate_binding(checker: Checker, context: Context, binding: Binding, out: TypedBlockBuilder) -> None:
    """Elaborate one binding: write what exists at run time, and note what its targets mean."""
    targets, value = binding.targets, binding.value
    operands = _Operands(checker, context, out, value.span)
    match value:
        case If() | Loop() | ForEach() | PatternMatch():
            _elaborate_construct(checker, context, targets, value, out)
            return
        case Unpack(atom, count, span):
            context.assign(targets, unpack(checker, out, operands.content(atom), count, span))
            return
        case Attempt() | EndAttempt() | CatchesError() | Rethrow():
            _caught_errors().elaborate(checker, context, targets, value, out)
            return
        case RefWrite() | SetAttribute() | Assert():
            checker.follows_call = False
            _perform(operands, value)
            entity: AbstractValue = PythonObject(None)
        case _:
            checker.follows_call = special_methods.is_followed(value)
            entity = _value(operands, value, targets)
    if targets:
        context.environment[targets[0]] = entity
        if isinstance(value, OpCall | Apply) and isinstance(entity, DynamicValue) and isinstance(entity.atom, Var):
            entity.atom.name = targets[0].name


def _elaborate_construct(
    checker: Checker,
    context: Context,
    targets: tuple[Var, ...],
    value: If | Loop | ForEach | PatternMatch,
    out: TypedBlockBuilder,
) -> None:
    """Elaborate an expression with blocks."""
    _elaborator(type(value).__name__)(checker, context, targets, value, out)


@functools.cache
def _caught_errors() -> types.ModuleType:
    """The file for errors that are caught, which is imported with the first of them."""
    with late_import:
        from relay.typecheck.elaboration.control_flow import caught_errors

        return caught_errors


@functools.cache
def _elaborator(kind: str) -> Callable[..., None]:
    """The function that elaborates expressions of a kind, by its name. Its file is imported with the first one."""
    with late_import:
        if kind == "If":
            from relay.typecheck.elaboration.control_flow.branches import elaborate_if

            return elaborate_if
        if kind == "Loop":
            from relay.typecheck.elaboration.control_flow.loops import elaborate_loop

            return elaborate_loop
        if kind == "ForEach":
            from relay.typecheck.elaboration.control_flow.iteration import elaborate_for

            return elaborate_for
        from relay.typecheck.elaboration.patterns.matching import elaborate_match

        return elaborate_match


def _perform(operands: _Operands, value: RefWrite | SetAttribute | Assert) -> None:
    """Write an effect that has no value."""
    checker, context, out = operands.checker, operands.context, operands.out
    match value:
        case RefWrite(atom, new, span):
            checker.rounds.store((atom, new), (operands.entity(atom), operands.entity(new)))
            references.assign_variable(checker, out, atom, operands.entity(atom), operands.entity(new), span)
        case SetAttribute(atom, name, new, span):
            if name != "value":
                raise TypeCheckError(
                    f"the attribute {name!r} cannot be assigned", span, help="only `.value` of a reference can"
                )
            checker.rounds.store((atom, new), (operands.entity(atom), operands.entity(new)))
            references.write(checker, out, operands.entity(atom), operands.entity(new), span)
        case Assert(atom, message, span):
            checker.effect("assert", "may fail in an assertion", span)
            held = operands.entity(atom)
            if isinstance(held, DynamicValue) and held.known is False:
                raise formatting.never_holds(message, span)
            condition = require_bool(checker, out, held, span, "the condition of assert")
            optionals.note_truth(checker, condition, atom, held)
            out.items.append(Binding((), Assert(condition.atom, message, checker.visible_span(span))))
            if (said := size_conditions.condition_of(checker, condition)) is not None:
                checker.keep_knowing(said.holds)
            optionals.narrow(checker, context, out, checker.none_tests.of_condition(condition)[0])


def _value(operands: _Operands, value: Expr, targets: tuple[Var, ...]) -> AbstractValue:
    """The meaning of an expression."""
    checker, context, out = operands.checker, operands.context, operands.out
    match value:
        case OpCall(name, arguments, attributes, span):
            is_comparison = name in ("equal", "not_equal")
            if is_comparison:
                given = operands.compared(arguments)
            else:
                given = [operands.denied(a) if name == "logical_not" else operands.content(a) for a in arguments]
            described = [describe(a) for a in arguments]
            entity = apply_named(checker, out, name, given, dict(attributes), span, described)
            if is_comparison:
                optionals.note_equal(checker, entity, name, arguments, given)
            if name == "logical_not":
                holds, fails = checker.none_tests.of_condition(given[0])
                checker.none_tests.note(entity, fails, holds)
            return entity
        case Apply():
            return _call(operands, value)
        case Attribute(atom, name, span):
            return attribute(checker, out, operands.content(atom), name, span, describe(atom))
        case Index():
            return _index(operands, value)
        case IndexUpdate(atom, items, new, span, inside):
            subscript = [_used_item(checker, out, i, span) for i in index_items(context, items)]
            changed, item = operands.content(atom), operands.entity(new)
            return item_updates.index_update(checker, out, changed, subscript, item, span, inside)
        case MakeTuple(items, _):
            return Tuple(tuple(operands.entity(a) for a in items))
        case Var() | Constant() | Global() | Static():
            return operands.entity(value)
        case Lambda():
            return _local_function(operands, value)
        case Annotated(atom, annotation, span):
            return _check_annotation(checker, context, out, operands.entity(atom), annotation, span, targets)
        case Project(atom, index, span):
            return unpack(checker, out, operands.content(atom), None, span)[index]
        case Call(function, arguments, span):
            passed = [operands.entity(a) for a in arguments]
            return calls.apply(checker, context, out, operands.entity(function), passed, [], span, [])
        case RefNew(atom, span):
            content = operands.entity(atom)
            reference = references.new_reference(checker, out, content, span)
            if not dynamic_lists.is_growing(content):  # as what has no value yet is kept
                references.note_use(checker, atom, "first assigned here", span)
            return reference
        case RefRead(atom, span):
            references.note_use(checker, atom, "read here", span)
            return references.read(checker, out, operands.content(atom), span)
        case _:
            raise InternalError(f"the surface IR holds {type(value).__name__}")


def _call(operands: _Operands, value: Apply) -> AbstractValue:
    """A call of anything, with arguments by position and by name."""
    checker, arguments = operands.checker, value.arguments
    callee = operands.content(value.function)
    meaning = operands.entity if optionals.passes(callee) else operands.content
    named = [(k, meaning(a)) for k, a in value.keywords]
    described = [describe(a) for a in arguments]
    given = [meaning(a) for a in arguments]
    checker.rounds.store(arguments, given)
    context, out, name = operands.context, operands.out, describe(value.function)
    checker.follows_call = special_methods.is_followed_call(value, callee)
    if value.changed:
        call = overloads.Call(checker, context, out, callee, given, named, value.span, described)
        return changing_calls.apply(call, callee, value.changed, name)
    entity = calls.apply(checker, context, out, callee, given, named, value.span, described, name)
    if optionals.is_none_test(callee) and isinstance(arguments[0], Var):
        checker.none_tests.note(entity, frozenset(), frozenset({arguments[0]}))
    elif optionals.is_filter(callee):
        optionals.note_truth(checker, entity, arguments[0], given[0])
    return entity


def _index(operands: _Operands, value: Index) -> AbstractValue:
    """`x[items]`."""
    checker, out, span = operands.checker, operands.out, value.span
    whole = operands.content(value.value)
    subscript = [_used_item(checker, out, i, span) for i in index_items(operands.context, value.items)]
    masked = masks.masked_elements(checker, out, whole, subscript, span) if value.updated else None
    if masked is not None:
        return masked
    try:
        return subscripts.index(checker, out, whole, subscript, span)
    except SchemeOnly:
        entity = rank_polymorphism.indexed_at_any_rank(checker, whole, subscript, span) if checker.generic else None
        if entity is None:
            raise
        return entity


def _local_function(operands: _Operands, value: Lambda) -> LocalFunction:
    """A nested function, with what it captures."""
    checker, context, function = operands.checker, operands.context, value.function
    defaults = [p.default for p in function.signature if isinstance(p.default, Var)]
    mentioned = (*free_variables(function), *defaults)
    captured = {v: context.lookup(v) for v in mentioned if _is_bound(context, v)}
    around = checker.frame.active[-1] if checker.frame.active else None
    sizes, place = checker.sizes_in_scope(), operands.out.slot()
    seen, name = checker.frame.evidence, function.name
    entity = LocalFunction(function, captured, place, sizes, context, name, inside=around, evidence=seen)
    checker.unseen_functions.setdefault(id(function), (entity, value))
    return entity


def _used_item(
    checker: Checker, out: TypedBlockBuilder, item: AbstractValue | SliceItem, span: Span | None
) -> AbstractValue | SliceItem:
    """An item of a subscript, or a bound of a slice, that is not None where it may be."""
    if isinstance(item, SliceItem):
        bounds = (
            None if b is None else optionals.content(checker, out, b, "a bound of the slice", span)
            for b in (item.start, item.stop, item.step)
        )
        return SliceItem(*bounds)
    return optionals.content(checker, out, item, "the index", span)


def _is_bound(context: Context, var: Var) -> bool:
    current: Context | None = context
    while current is not None:
        if var in current.environment:
            return True
        current = current.outer
    return False


def _unpacking_error(count: int, found: int, span: Span | None, help: str | None = None) -> TypeCheckError:
    return TypeCheckError(f"expected {count} values to unpack, found {found}", span, help=help).wherever_it_runs()


def unpack(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, count: int | None, span: Span | None
) -> tuple[AbstractValue, ...]:
    """The components of a tuple. Raises TypeCheckError if there are not `count`."""
    if isinstance(entity, DynamicValue):
        type_ = prune(entity.type)
        if isinstance(type_, TensorType) and count is not None:
            return subscripts.unpack_rows(checker, out, entity, count, span)
        if count is not None and dynamic_lists.is_growing(entity):
            known = dynamic_lists.count(checker, entity)
            if known is not None and known != count:
                raise _unpacking_error(count, known, span)
            return list_items.unpack_items(checker, out, entity, count, 0, False, span)
        if count is not None:
            parts = TupleType(tuple(checker.solver.fresh_variable(Kind.Type) for _ in range(count)))
            checker.unify_at(entity.type, parts, span, "the unpacked value")
        entity = expand(checker, out, entity, span)
    if not isinstance(entity, Tuple):
        what = "this value" if isinstance(entity, DynamicValue) else kind_of(entity)
        raise TypeCheckError(f"{what} cannot be unpacked", span)
    if count is not None and len(entity.items) != count:
        help = "write a name for each value, or one star: `a, *rest = t`"
        raise _unpacking_error(count, len(entity.items), span, help)
    return entity.items


def _check_annotation(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    entity: AbstractValue,
    annotation: Type,
    span: Span | None,
    targets: tuple[Var, ...],
) -> AbstractValue:
    expected = annotation_type(checker, context, annotation)
    name = targets[0].name if targets else "the value"
    if isinstance(entity, Number) and isinstance(expected, TensorType):
        return checker.constant(out, entity, expected.base) if expected.shape == () else _mismatch(name, expected, span)
    if isinstance(expected, StackType) and dynamic_lists.is_list(entity):
        entity = dynamic_lists.as_growing(checker, out, entity, span, annotation)
    entity = data_dependent.narrow_to_annotation(checker, out, entity, expected, name, span)
    typed = checker.materialize(out, entity, span)
    checker.unify_at(typed.type, expected, span, name)
    entity = axis_names.with_annotated_names(entity, expected)
    if isinstance(annotation, TensorType) and ANY in annotation.shape:
        axes = [axis for axis, dim in enumerate(annotation.shape) if dim is ANY]
        typed = checker.materialize(out, entity, span)
        return data_dependent.open_sizes(checker, out, data_dependent.widen_axes(checker, out, typed, axes, span), span)
    return entity


def _mismatch(name: str, expected: Type, span: Span | None) -> AbstractValue:
    raise TypeMismatch(f"{name} must be {show(expected)}, found a number", span, help="use relay.full(shape, value)")
