"""Elaboration of a new instance: its parameters, its body and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

import attrs

from relay.errors import Label, Span, TypeMismatch
from relay.ir.effects import Effects, Purity
from relay.ir.expr import (
    Exit,
    Function,
    Global,
    Lambda,
    LoopLabel,
    Var,
)
from relay.ir.types import (
    FunctionType,
    Kind,
    StackType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    prune,
    show,
)
from relay.typecheck.elaboration import constant_results
from relay.typecheck.elaboration.abstract_values import (
    OPERATORS,
    AbstractValue,
    Context,
    DeferredBinding,
    DependsOnPoison,
    DynamicValue,
    GlobalFunction,
    Handler,
    LocalFunction,
    Number,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
    is_of_template,
    local_function,
)
from relay.typecheck.elaboration.annotated_types import annotation_type
from relay.typecheck.elaboration.checker import Checker, Instance, InstanceKey
from relay.typecheck.elaboration.closures import returned_functions
from relay.typecheck.elaboration.control_flow import recursive_results
from relay.typecheck.elaboration.dynamic_shapes import polymorphic_recursion, size_conditions
from relay.typecheck.elaboration.effects import effects
from relay.typecheck.elaboration.expressions.arguments import (
    definition_context,
    require_fitting,
    static_positions,
    surface_function,
)
from relay.typecheck.elaboration.restarts import ParameterPlace
from relay.typecheck.elaboration.results import result_value
from relay.typecheck.elaboration.schemes import conditional_types, rank_n_types
from relay.typecheck.elaboration.values import labels, range_numbers
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.mapping import map_type
from relay.typecheck.unification import resolve


def is_number(entity: AbstractValue) -> bool:
    """Whether an argument is a number, or a tuple of numbers, that is static."""
    if isinstance(entity, Tuple):
        return entity.form is None and bool(entity.items) and all(map(is_number, entity.items))
    return isinstance(entity, Number) and isinstance(entity.value, int | float)


def _is_count(entity: AbstractValue, function: Function, position: int) -> bool:
    """Whether an argument is a count of which nothing is declared: it is converted where it meets floats there, too."""
    return (
        isinstance(entity, DynamicValue)
        and range_numbers.is_count(entity)
        and function.parameters[position].type is None
    )


def _new_instance(
    checker: Checker,
    callee: GlobalFunction | LocalFunction,
    function: Function,
    code: object,
    entities: Sequence[AbstractValue],
    values: Sequence[DynamicValue | None],
    types: tuple[Type, ...],
    lengths: Sequence[object],
    statics: tuple[object, ...],
    key: InstanceKey | None,
    span: Span | None,
    numbers: Set[ParameterPlace],
    annotated: Mapping[TypeId, object],
    packs: bool,
) -> Instance:
    from relay.typecheck.elaboration.dynamic_lists import dynamic_lists
    from relay.typecheck.elaboration.dynamic_shapes import data_dependent

    is_entry = not checker.active

    checker.unseen_functions.pop(id(function), None)
    types = tuple(map(effects.parameter_type, types))
    number, opened, before = checker.made_instances, len(checker.opened), checker.sizes_in_scope()
    checker.made_instances += 1
    result = recursive_results.earlier_result(checker, number, function.label) or checker.solver.fresh(Kind.Type)
    name = checker.unique_name(function.name) if isinstance(callee, GlobalFunction) else function.name
    if isinstance(callee, GlobalFunction):
        instance = Instance(name, code, types, statics, result, Global(name), numbers=numbers)
        checker.globals[name] = instance
    else:
        own = Effects()
        target = checker.variable(name, FunctionType(types, result, (), own), function.span)
        instance = Instance(name, code, types, statics, result, target, effects=own, numbers=numbers)
    if isinstance(callee, GlobalFunction) and callee.definition.pure:
        help = "leave `pure=True` out, or return what it would print"
        checker.pure.append((instance.effects, Purity(function.name, function.span, help)))
    if key is not None:
        checker.instances[key] = instance
        polymorphic_recursion.note_sizes(checker, key, instance)
    elif (first := next((i for i in checker.active if i.code is code and i.statics == statics), None)) is not None:
        polymorphic_recursion.note_made(checker, first, instance)
    context = definition_context(callee)
    context.annotated = {**context.annotated, **annotated}
    instance.annotated, instance.is_general = context.annotated, checker.generic and bool(annotated)
    parameters: list[Var] = instance.variables
    instance.of_any_size = {p.name: axes for p in function.parameters if (axes := data_dependent.any_axes(p.type))}
    body = TypedBlockBuilder()
    label = LoopLabel(name)
    returned, failures = False, checker.failures
    exits: list[AbstractValue] = []
    by_sizes: list[bool] = []  # whether annotated sizes choose the exits
    declared_at: list[tuple[Span | None, Callable[[], str]]] = []  # what says which result there must be
    results = conditional_types.ReturnTypes(checker, instance, number, function.result is not None)
    written: Type | None = None

    def on_exit(out: TypedBlockBuilder, entities: tuple[AbstractValue, ...], at: Span | None) -> None:
        nonlocal returned, declared_at
        by_sizes.append(function.result is None and size_conditions.is_lenient(checker))
        found = entities[0]
        if is_entry:
            checker.decisions.holding.append(returned_functions.has_functions(found))
        if packs:
            found = _pack_functions(checker, out, function, instance, found, written, is_entry, returned, at)
        value = result_value(checker, out, function, instance, found, any(by_sizes), at)
        exits.append(entities[0])
        try:
            if not checker.generic or not results.is_apart(value.type, at):
                if not returned:
                    checker.solver.define(instance.result, value.type)
                checker.unify_at(value.type, instance.result, at, f"the result of {function.name}")
        except TypeMismatch as error:
            error.labels = tuple(Label(span, text()) for span, text in declared_at if span is not None)
            raise
        out.terminator = Exit(label, (value.atom,), at)
        returned = True
        if not declared_at:
            declared_at = [(at, lambda: f"another path returns {show(resolve(value.type))}")]

    handler = Handler(label, None, on_exit, len(checker.scopes), on_open_exit=results.left_open)
    context.handlers = {function.label: handler}
    known: list[tuple[AbstractValue, FunctionType, Var]] = []  # functions as arguments, whose types are written
    with checker.scope(body):
        remaining = iter(types)
        for position, (surface, entity, value) in enumerate(zip(function.parameters, entities, values, strict=True)):
            what = f"argument {surface.name} of {function.name}"
            annotation, where, of_any, stays = None, (function.label, (-1, position)), False, False
            if surface.type is not None and not (value is None and rank_n_types.is_polymorphic(surface)):
                of_any = data_dependent.is_function_of_any(surface.type)
                stays = of_any and (value is None or where in checker.decisions.of_all_sizes)
                annotation = annotation_type(
                    checker, context, surface.type, any_stays=stays, what=what, span=surface.span, call=span
                )
            if value is None:
                require_fitting(entity, function, position, span)
                context.environment[surface] = effects.declared_pure(entity, surface, function.name, span)
                if isinstance(annotation, FunctionType):
                    known.append((entity, annotation, surface))
                continue
            var = checker.variable(surface.name, next(remaining), surface.span)
            if of_any and not stays:
                checker.functions_of_any[var] = where
            if surface.type is None and local_function(entity) is not None:
                checker.function_parameters[var] = function.label, position
            elif isinstance(entity, DynamicValue) and entity.atom in checker.function_parameters:  # which is passed on
                checker.function_parameters[var] = checker.function_parameters[entity.atom]
            if is_entry and surface in checker.function_arguments:
                parameters.append(var)
                context.environment[surface] = _function_argument(checker, body, var, surface, annotation, what)
                continue
            if isinstance(annotation, StackType) and isinstance(prune(var.type), TupleType):  # type: ignore[arg-type]
                parameters.append(var)
                listed = DynamicValue(var, prune(var.type))  # type: ignore[arg-type]
                given = dynamic_lists.as_growing(checker, body, listed, surface.span, surface.type)
                checker.unify_at(
                    given.type, annotation, span or surface.span, f"argument {surface.name} of {function.name}"
                )
                context.environment[surface] = given
                continue
            if annotation is not None and var.type is not None:
                is_shown = surface.span is not None and span is not None
                declared = (Label(surface.span, "declared here"),) if is_shown else ()  # type: ignore[arg-type]
                checker.unify_at(var.type, annotation, span or surface.span, what, labels=declared)
            parameters.append(var)
            received = range_numbers.of_python(
                checker,
                DynamicValue(var, annotation or var.type or result),
                (function.label, position),
                annotation is not None,
            )
            if _is_count(entity, function, position):
                received = range_numbers.of_range(received)
            given_entity = expand(checker, body, received, surface.span)
            with_lengths = constant_results.with_lengths(given_entity, lengths[position])
            context.environment[surface] = labels.with_labels(with_lengths, entity)
            data_dependent.note_any(checker, context.environment[surface], surface.type)
        for entity, annotation, surface in known:
            _check_known_function(checker, body, entity, annotation, surface, function.name, span)
        if function.result is not None:
            what = f"what {function.name} returns"
            written = wanted = annotation_type(checker, context, function.result, what=what, span=function.span)
            if not packs:
                checker.unify_at(written, result, function.span, "the result")
            declared_at = [(function.span, lambda: f"declared to return {show(resolve(wanted))}")]
        _elaborate_body(checker, context, function, body, instance, span)
    if checker.generic:
        results.settle()
        checker.solver.run()
    if not returned and checker.failures > failures:
        instance.failed = True
        raise DependsOnPoison
    if not returned and not results.are_open:  # every path ends in an assertion that does not hold

        def returns_nothing() -> None:
            if isinstance(prune(result), Unknown):
                checker.unify_at(TupleType(()), result, span, "the result")

        checker.finishers.append(returns_nothing)
    recursive_results.restart_if_used_early(checker, number, function.label, instance, opened)
    instance.rule = function.rule
    instance.known = constant_results.common(exits, before, counts=function.result is None)
    takes_counts = all(_is_count(e, function, p) or is_number(e) for p, e in enumerate(entities))
    if instance.calls_itself and takes_counts and function.result is None and isinstance(callee, GlobalFunction):
        instance.known = constant_results.of_counts(result, instance.known)
    if isinstance(callee, GlobalFunction) and callee.definition.gradient is not None:
        from relay.typecheck.elaboration.derivatives.custom_gradients import define_gradient

        define_gradient(checker, callee, callee.definition.gradient, instance, entities, values)

    def build() -> Function:
        return Function(
            name,
            tuple(parameters),
            body.block(),
            label,
            checker.final(result),
            (),
            function.documentation,
            function.span,
            instance.rule,
        )

    instance.build = build
    if isinstance(callee, LocalFunction):
        assert isinstance(instance.target, Var)
        place = data_dependent.place_of(checker, callee, types)
        place.items.append(DeferredBinding((instance.target,), lambda: Lambda(build(), function.span)))
    return instance


def _function_argument(
    checker: Checker, out: TypedBlockBuilder, var: Var, parameter: Var, annotation: Type | None, what: str
) -> AbstractValue:
    """An argument of the program that holds functions which other programs have returned."""
    from relay.typecheck.elaboration import restore_closures
    from relay.typecheck.elaboration.values.function_values import function_value

    assert var.type is not None
    given = expand(checker, out, DynamicValue(var, var.type), parameter.span)
    entity = restore_closures(checker, out, checker.function_arguments.pop(parameter), given, parameter.span)
    if not isinstance(annotation, FunctionType) or isinstance(entity, Tuple):
        return entity
    value = function_value(checker, out, entity, parameter.span)
    checker.unify_at(value.type, annotation, parameter.span, what)
    return value


def _pack_functions(
    checker: Checker,
    out: TypedBlockBuilder,
    function: Function,
    instance: Instance,
    entity: AbstractValue,
    written: Type | None,
    is_entry: bool,
    is_later: bool,
    span: Span | None,
) -> AbstractValue:
    """A result as what the functions in it have captured, if it holds any. `is_later`: another path has returned."""
    try:
        packed = returned_functions.pack_result(checker, out, entity, written, is_entry, span)
        if is_later and instance.returned != (packed and packed.node):
            raise returned_functions.FunctionChosenAtRunTime
    except returned_functions.FunctionChosenAtRunTime:
        if is_entry:
            raise
        raise returned_functions.ResultStaysDynamic(function.label) from None
    if packed is None:
        if written is not None:
            checker.unify_at(written, instance.result, function.span, "the result")
        return entity
    instance.returned = packed.node
    return packed.values


def _check_known_function(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: AbstractValue,
    annotation: FunctionType,
    parameter: Var,
    name: str,
    span: Span | None,
) -> None:
    """Demand that a function that specializes another one has the type which is written for the parameter."""
    from relay.typecheck.elaboration.values.function_values import function_value

    fixed: dict[int, AbstractValue] | None = None
    if isinstance(entity, GlobalFunction):
        if static_positions(entity):
            return  # it is not a value
        if len(surface_function(entity).parameters) == len(annotation.parameters):
            fixed = {}
    elif not isinstance(entity, PythonObject) or not isinstance(entity.value, OPERATORS):
        return
    value = function_value(checker, out, entity, span or parameter.span, fixed)
    declared = (Label(parameter.span, "declared here"),) if parameter.span is not None and span is not None else ()
    what = f"argument {parameter.name} of {name}"
    wanted = map_type(annotation, function=lambda f: attrs.evolve(f, effects=None))  # they are looked at by name
    checker.unify_at(value.type, wanted, span or parameter.span, what, labels=declared)


def _elaborate_body(
    checker: Checker,
    context: Context,
    function: Function,
    body: TypedBlockBuilder,
    instance: Instance,
    span: Span | None,
) -> None:
    from relay.typecheck.elaboration.expressions.blocks import elaborate_block

    if is_of_template(span) and not is_of_template(checker.hints.span):
        span = checker.hints.span  # where a function of the template's is called
    checker.active.append(instance)
    checker.call_spans.append((function.name, span))
    try:
        with checker.effects_of(instance.effects), checker.inside_of_function():
            elaborate_block(checker, context, function.body, body, None)
    except Exception:
        if is_of_template(checker.hints.span):  # what users know of it is the call
            checker.hints.span = span
        raise
    finally:
        checker.active.pop()
        checker.call_spans.pop()
    checker.solver.run()
