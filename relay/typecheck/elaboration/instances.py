"""Instances of functions: one for each choice of argument types, and functions as values.

A decorated function becomes a function of the module, a nested one a lambda at the place of its definition. A call
finds the instance of its argument types, or the one that is being elaborated (recursion), or elaborates a new one. An
argument whose type is not yet known makes an instance of its own, which shares the caller's variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from types import MappingProxyType

import attrs

from relay.errors import Label, Span, TypeCheckError, TypeMismatch
from relay.ir.dims import resolve_dim
from relay.ir.effects import Effects, Purity
from relay.ir.expr import (
    Call,
    Constant,
    Exit,
    Function,
    Global,
    Lambda,
    LoopLabel,
    Project,
    Var,
)
from relay.ir.types import (
    ANY,
    FunctionType,
    Kind,
    QuantifiedType,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    map_dims,
    prune,
    show,
    type_variables,
)
from relay.operator.relation import substitute
from relay.typecheck.elaboration import constant_results
from relay.typecheck.elaboration.abstract_values import (
    OPERATORS,
    AbortElaboration,
    AbstractValue,
    Context,
    DeferredBinding,
    DependsOnPoison,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    Handler,
    LocalFunction,
    Number,
    PythonObject,
    Size,
    SizeExpression,
    Tuple,
    TypedBlockBuilder,
    is_of_template,
    local_function,
)
from relay.typecheck.elaboration.checker import Checker, Instance, InstanceKey
from relay.typecheck.elaboration.closures import returned_functions
from relay.typecheck.elaboration.control_flow import recursive_results
from relay.typecheck.elaboration.dynamic_shapes import polymorphic_recursion, size_conditions
from relay.typecheck.elaboration.effects import effects
from relay.typecheck.elaboration.expressions.arguments import (
    bind_arguments,
    definition_context,
    require_fitting,
    require_static,
    specializes,
    static_positions,
    surface_function,
)
from relay.typecheck.elaboration.restarts import ParameterPlace
from relay.typecheck.elaboration.results import result_value
from relay.typecheck.elaboration.schemes import conditional_types, rank_n_types
from relay.typecheck.elaboration.values import axis_names, range_numbers
from relay.typecheck.mapping import map_type
from relay.typecheck.unification import is_known, resolve

MOST_CLOSURES = 8
"""How many calls inside each other specialize a function to a local function each."""


def call_function(
    checker: Checker,
    out: TypedBlockBuilder,
    callee: GlobalFunction | LocalFunction,
    arguments: Sequence[AbstractValue],
    keywords: Sequence[tuple[str, AbstractValue]],
    span: Span | None,
    bound: int = 0,
) -> AbstractValue:
    """Call a decorated or nested function; this many arguments are not written in the call, as the value of a
    method."""
    entities = bind_arguments(callee, arguments, keywords, span, bound)
    values: list[DynamicValue | None] = []
    given = {id(e) for e in arguments} | {id(e) for _, e in keywords}
    static, function = static_positions(callee), surface_function(callee)
    numbers: set[ParameterPlace] = set()
    for position, (entity, parameter) in enumerate(zip(entities, function.parameters, strict=True)):
        if position in static:
            require_static(entity, function, position, span)
        fixed = position in static or id(entity) not in given  # a default that was not overridden stays what it is
        if not fixed and is_number(entity):
            place = function.label, position
            fixed = place in checker.decisions.specializing
            numbers.add(place)
        if (function.label, position) in checker.decisions.of_several_types and (
            local := local_function(entity)
        ) is not None:
            fixed = fixed or not _grows(checker, function, local)
        if rank_n_types.is_polymorphic(parameter) and not _is_passed_on(entity):
            entities[position] = rank_n_types.check_polymorphic_argument(
                checker, out, entity, parameter, function.name, span
            )
            fixed = True
            if isinstance(callee, GlobalFunction):
                rank_n_types.require_right(checker, callee.definition)
        if isinstance(entity, Tuple) and not fixed and _calls_itself(checker, callee):
            from relay.typecheck.elaboration.dynamic_shapes.data_dependent import pack_sizes

            entity = pack_sizes(checker, out, entity, None, None, span)
        values.append(None if fixed else _argument(checker, out, entity, span or parameter.span))
    callee = rank_n_types.localize_callee(
        checker, out, callee, [e for e, v in zip(entities, values, strict=True) if v is None]
    )
    if _calls_itself(checker, callee):  # a recursion may call with other sizes each time
        from relay.typecheck.elaboration.dynamic_shapes.data_dependent import packed_value

        values = [None if v is None else packed_value(checker, out, v, None, None, span) for v in values]
    values = polymorphic_recursion.widen_varying_sizes(checker, out, function, values, span)
    if not checker.generic:
        from relay.typecheck.elaboration.dynamic_shapes.data_dependent import fit_arguments

        values = fit_arguments(checker, out, function, values, span)
    packs = checker.decisions.returning and function.label not in checker.decisions.kept
    instance = instantiate(checker, callee, entities, values, span, numbers, packs=packs)
    if packs and instance.build is None:
        raise returned_functions.ResultStaysDynamic(
            function.label
        )  # a call of itself, which does not know yet what it returns
    atoms = tuple(v.atom for v in values if v is not None)
    checker.effects.include(instance.effects, dict(zip(instance.variables, atoms, strict=False)))
    effects.demand_purity(checker, callee, instance.effects)
    name = function.name
    result = checker.bind(out, Call(instance.target, atoms, span), instance.result, name, span)
    found = expand(checker, out, result, span)
    if instance.returned is not None:
        assert isinstance(found, Tuple)
        return returned_functions.unpack_result(checker, out, instance.returned, found.items, span)
    return constant_results.overlaid(found, instance.known)


def _calls_itself(checker: Checker, callee: GlobalFunction | LocalFunction) -> bool:
    """Whether a function is called in itself."""
    code: object = callee.definition if isinstance(callee, GlobalFunction) else callee
    return any(i.code is code for i in checker.active)


def _grows(checker: Checker, function: Function, entity: LocalFunction) -> bool:
    """Whether a function gets another local function in each of its calls of itself, so that there might be no end."""
    mine, others = ("entity", id(entity)), 0
    for instance in checker.active:
        if isinstance(instance.code, LocalFunction) and instance.code.function is function:
            others += mine not in instance.statics
    return others >= MOST_CLOSURES


def is_number(entity: AbstractValue) -> bool:
    """Whether an argument is a number, or a tuple of numbers, that is static."""
    if isinstance(entity, Tuple):
        return entity.form is None and bool(entity.items) and all(map(is_number, entity.items))
    return isinstance(entity, Number) and isinstance(entity.value, int | float)


def _is_passed_on(entity: AbstractValue) -> bool:
    """Whether a polymorphic function is one that a parameter stands for, in a scheme."""
    return isinstance(entity, DynamicValue) and isinstance(prune(entity.type), QuantifiedType)


def _argument(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None
) -> DynamicValue | None:
    """The run-time value of an argument, or None for one that specializes the function."""
    return None if specializes(entity) else checker.materialize(out, entity, span)


def static_key(entity: AbstractValue) -> object:
    """What tells an entity that is static from others."""
    match entity:
        case PythonObject(value):
            try:
                hash(value)
            except TypeError:
                return ("object", id(value))
            return ("object", type(value).__name__, value)
        case Size(dim):
            return ("size", resolve_dim(dim))
        case SizeExpression(operator=operator, operands=operands):
            return ("computed", operator, *(static_key(o) for o in operands))
        case Number(value):
            return ("number", type(value).__name__, value)
        case GlobalFunction(definition):
            return ("function", id(definition))
        case Tuple(items):
            return ("tuple", *(static_key(i) for i in items))
        case DerivativeFunction(of, grad):
            return ("grad", static_key(of), *grad.options)
        case DynamicValue(Constant(value)) if value.ndim == 0:
            return ("constant", value.dtype.name, value.item())
        case DynamicValue(atom, _):
            return ("atom", id(atom))
        case _:
            return ("entity", id(entity))


def instantiate(
    checker: Checker,
    callee: GlobalFunction | LocalFunction,
    entities: Sequence[AbstractValue],
    values: Sequence[DynamicValue | None],
    span: Span | None,
    numbers: Set[ParameterPlace] = frozenset(),
    annotated: Mapping[TypeId, object] = MappingProxyType({}),
    packs: bool = False,
) -> Instance:
    """The instance for these arguments; `values` holds the run-time ones, None where the entity specializes.
    `numbers`: the parameters whose arguments are known numbers. `annotated`: what is known of the variables of
    annotations. With `packs`, it returns what the functions in its result have captured."""
    function = surface_function(callee)
    code: object = callee.definition if isinstance(callee, GlobalFunction) else callee
    types = tuple(resolve(v.type) for v in values if v is not None)
    statics = tuple(static_key(e) for e, v in zip(entities, values, strict=True) if v is None)
    statics += ("packs",) if packs else ()
    counts = tuple(p for p, e in enumerate(entities) if _is_count(e, function, p))
    statics += (("counts", counts),) if counts else ()
    shape = tuple(v is None for v in values)
    names = axis_names.all_names(types)
    given = zip(function.parameters, entities, values, strict=True)
    lengths = tuple(None if v is None else _lengths(checker, callee, p, e) for p, e, v in given)
    if any(found is not None for found in lengths):
        statics += (("lengths", lengths),)
    key = (id(code), shape, types, names, statics) if all(is_known(t) for t in types) else None
    running = [i for i in checker.active if i.code is code and i.statics == (shape, *statics)]
    there = checker.instances.get(key)
    if there is None and running and key is not None:
        there = polymorphic_recursion.at_equal_sizes(checker, key, types)
    if there is not None:
        if there.failed:
            raise DependsOnPoison
        for found, expected in zip(types, there.parameters, strict=True):
            effects.flow(found, expected)
        recursive_results.note_recursive_use(checker, there)
        return there
    if running:
        general = polymorphic_recursion.general_use(checker, callee, running[-1], types, span)
        if general is not None:
            return general
        other = conditional_types.use_at_other_types(checker, function, running[-1], types, span)
        if other is not None:
            return other
    around = _enclosing_instances(checker, code, (shape, *statics)) if key is None else []
    for instance in (*reversed(running), *around):
        if key is not None and all(is_known(t) for t in instance.parameters):
            continue
        if any(map(polymorphic_recursion.has_other_structure, types, instance.parameters)):
            continue
        if polymorphic_recursion.has_other_sizes(checker, types, instance.parameters):
            continue
        return _reuse_instance(checker, instance, function, types, span)
    if running and key is None:
        made = polymorphic_recursion.recursive_instance(checker, running[0], types)
        if made is not None:
            if made.failed:
                raise DependsOnPoison
            return _reuse_instance(checker, made, function, types, span)
    if running and key is not None:
        polymorphic_recursion.refuse_other_sizes(checker, function, running[-1], types, shape)
    try:
        polymorphic_recursion.refuse_endless(checker, function, running, types, shape, span)
    except TypeCheckError as error:
        checker.report(error)
        raise AbortElaboration from None  # to go on at every depth would take for ever
    everything, count = (shape, *statics), len(checker.globals)
    try:
        return _new_instance(
            checker,
            callee,
            function,
            code,
            entities,
            values,
            types,
            lengths,
            everything,
            key,
            span,
            numbers,
            annotated,
            packs,
        )
    except Exception:
        _forget(checker, key, count)
        raise


def _forget(checker: Checker, key: object, made: int) -> None:
    """Let an instance not be there whose elaboration has ended early, without a mistake in its body: a scheme leaves
    the call open. `made`: the number of functions before."""
    for name in [*checker.globals][made:]:
        if checker.globals[name].build is None and not checker.globals[name].failed:
            del checker.globals[name]
    if key in checker.instances and checker.instances[key].build is None and not checker.instances[key].failed:
        del checker.instances[key]


def _reuse_instance(
    checker: Checker, instance: Instance, function: Function, types: Sequence[Type], span: Span | None
) -> Instance:
    """An instance whose types become these: that of a function which calls itself at types that are not known yet."""
    for found, expected, parameter in zip(types, instance.parameters, function.parameters, strict=False):
        checker.unify_at(found, expected, span, f"argument {parameter.name} of {function.name}")
    recursive_results.note_recursive_use(checker, instance)
    return instance


def _enclosing_instances(checker: Checker, code: object, statics: tuple[object, ...]) -> list[Instance]:
    """The instances of a function inside of which local functions are defined that are being elaborated: also there it
    calls itself, at types that are not known yet."""
    found: list[Instance] = []
    for instance in reversed(checker.active):
        while isinstance(instance.code, LocalFunction) and instance.code.inside is not None:
            instance = instance.code.inside
            if instance.code is code and instance.statics == statics and instance not in found:
                found.append(instance)
    return found


def _lengths(
    checker: Checker, callee: GlobalFunction | LocalFunction, parameter: Var, argument: AbstractValue
) -> object:
    """What is known of the lengths of lists in an argument, which specialize a function: not one that calls itself, or
    says that it takes lists of any length."""
    if isinstance(parameter.type, StackType) or _calls_itself(checker, callee):
        return None
    return constant_results.lengths(argument)


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
            context.environment[surface] = constant_results.with_lengths(given_entity, lengths[position])
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


def annotation_type(
    checker: Checker,
    context: Context,
    type_: Type,
    *,
    any_stays: bool = False,
    what: str = "this function",
    span: Span | None = None,
    call: Span | None = None,
) -> Type:
    """A written type with its variables replaced by this instance's. Each `Any` is whatever it is here, unless it
    stays."""
    from relay.typecheck.elaboration.values import data

    for variable in type_variables(type_):
        if variable not in context.annotated:
            context.annotated[variable] = checker.solver.fresh(variable.kind, variable.name)
    written = type_ if any_stays else map_dims(type_, lambda d: _whatever(checker) if d is ANY else d)
    filled = data.fill(checker, substitute(written, context.annotated))
    return checker.with_effects(axis_names.open_axis_names(filled, checker.solver), None, what, span, call)


def _whatever(checker: Checker) -> Unknown:
    return checker.solver.fresh(Kind.Dim, "_" if checker.generic else "Any")


def expand(checker: Checker, out: TypedBlockBuilder, typed: DynamicValue, span: Span | None) -> AbstractValue:
    """A value whose type is a known tuple, component by component; a tensor with a dim for each `Any` in its type;
    anything else is itself."""
    type_ = prune(typed.type)
    if isinstance(type_, TensorType):
        from relay.typecheck.elaboration.dynamic_shapes.data_dependent import open_sizes

        return open_sizes(checker, out, typed, span)
    if not isinstance(type_, TupleType):
        return typed
    items = []
    names = (type_.form.names if type_.form is not None else ()) or range(len(type_.items))
    for index, (field, item) in enumerate(zip(names, type_.items, strict=True)):
        name = f"{typed.atom.name}_{field}" if isinstance(typed.atom, Var) else "item"
        part = checker.bind(out, Project(typed.atom, index, span), item, name, span)
        items.append(expand(checker, out, part, span))
    return Tuple(tuple(items), type_.form)
