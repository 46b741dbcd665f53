"""Instances of functions: one for each choice of argument types, and functions as values.

A decorated function becomes a function of the module, a nested one a lambda at the place of its definition. A call
finds the instance of its argument types, or the one that is being elaborated (recursion), or elaborates a new one. An
argument whose type is not yet known makes an instance of its own, which shares the caller's variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType

import attrs

from relay.errors import Span, TypeCheckError
from relay.ir.definition import given_back
from relay.ir.expr import (
    Call,
    Function,
    Var,
)
from relay.ir.types import (
    Kind,
    QuantifiedType,
    StackType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    prune,
)
from relay.typecheck.elaboration import binding_times, constant_results, similar_instances
from relay.typecheck.elaboration.abstract_values import (
    AbortElaboration,
    AbstractValue,
    DependsOnPoison,
    DynamicValue,
    GlobalFunction,
    Identity,
    LocalFunction,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
    local_function,
    surface_function,
)
from relay.typecheck.elaboration.checker import Checker, Instance
from relay.typecheck.elaboration.closures import returned_functions
from relay.typecheck.elaboration.control_flow import recursive_results
from relay.typecheck.elaboration.diagnostics import unseen_changes
from relay.typecheck.elaboration.dynamic_shapes import polymorphic_recursion
from relay.typecheck.elaboration.dynamic_shapes.data_dependent import fit_arguments, pack_sizes, packed_value
from relay.typecheck.elaboration.effects import effects
from relay.typecheck.elaboration.effects.evidence import with_evidence
from relay.typecheck.elaboration.expressions.arguments import (
    bind_arguments,
    require_static,
    specializes,
    static_positions,
)
from relay.typecheck.elaboration.instance_bodies import InstanceElaboration, InstanceRequest, is_count, is_number
from relay.typecheck.elaboration.library.library_calls import list_elements
from relay.typecheck.elaboration.restarts import ParameterPlace
from relay.typecheck.elaboration.schemes import conditional_types, rank_n_types
from relay.typecheck.elaboration.similar_instances import Likeness
from relay.typecheck.elaboration.values import axis_names, iterables, labels
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.static_keys import static_key
from relay.typecheck.unification import is_known, resolve

MOST_CLOSURES = 8
"""The largest number of nested calls that specialize a function to a local function each."""


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
    if not checker.follows_call:
        unseen_changes.require_seen(callee, entities, span)
    checker.follows_call = False
    function = surface_function(callee)
    given = {id(e) for e in arguments} | {id(e) for _, e in keywords}
    passed = {p: e for p, e in enumerate(entities) if id(e) in given and iterables.is_iterable_only(e)}
    values, numbers = _passed_values(checker, out, callee, entities, given, span)
    callee = rank_n_types.localize_callee(
        checker, out, callee, [e for e, v in zip(entities, values, strict=True) if v is None]
    )
    callee = with_evidence(checker, callee)
    if _calls_itself(checker, callee):  # a recursion may call with other sizes each time
        values = [None if v is None else packed_value(checker, out, v, None, None, span) for v in values]
    values = polymorphic_recursion.widen_varying_sizes(checker, out, function, values, span)
    if not checker.generic:
        values = fit_arguments(checker, out, function, values, span)
    packs = checker.decisions.returning and function.label not in checker.decisions.kept
    instance = instantiate(checker, callee, entities, values, span, numbers, packs=packs, iterated=passed)
    _know_given_back(checker, instance, function, values, span)
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
    return constant_results.with_known_numbers(found, instance.known)


def _passed_values(
    checker: Checker,
    out: TypedBlockBuilder,
    callee: GlobalFunction | LocalFunction,
    entities: list[AbstractValue],
    given: Set[int],
    span: Span | None,
) -> tuple[list[DynamicValue | None], set[ParameterPlace]]:
    """The values of a call's arguments, None for those that specialize the function, which are in `entities` as they
    do; and the parameters that get numbers. `given`: the identities of the entities that the call gives."""
    values: list[DynamicValue | None] = []
    static, function = static_positions(callee), surface_function(callee)
    kinds = [p.kind for p in function.signature] or [""] * len(function.parameters)
    numbers: set[ParameterPlace] = set()
    for position, (entity, parameter) in enumerate(zip(entities, function.parameters, strict=True)):
        if position in static:
            require_static(entity, function, position, span)
        if isinstance(entity, PythonObject | Tuple) and isinstance(callee, GlobalFunction):
            labels.require_passed(entity, span)
        is_passed = id(entity) in given and iterables.is_iterable_only(entity)
        is_given = id(entity) in given or kinds[position] in ("var_positional", "var_keyword")
        fixed = position in static or not is_given  # a default that was not overridden stays what it is
        if not fixed and (is_number(entity) or labels.is_written_bool(entity)):
            place = function.label, position
            fixed = place in checker.decisions.specializing or position in binding_times.of_callee(checker, callee)
            numbers.add(place)
        elif not fixed and labels.holds_numbers(entity):
            numbers.add((function.label, position))
            if (function.label, position) in checker.decisions.specializing:
                entity = entities[position] = labels.with_static_numbers(entity)
        if (function.label, position) in checker.decisions.of_several_types and (
            local := local_function(entity)
        ) is not None:
            fixed = fixed or not _grows(checker, function, local)
        if is_passed and not fixed:
            entity = entities[position] = iterables.passed_values(checker, out, entity, span)
        elif isinstance(entity, Tuple) and not fixed and iterables.are_in(entity):
            entity = entities[position] = _with_lists(checker, out, entity, span)
        if rank_n_types.is_polymorphic(parameter) and not _is_passed_on(entity):
            entities[position] = rank_n_types.check_polymorphic_argument(
                checker, out, entity, parameter, function.name, span
            )
            fixed = True
            if isinstance(callee, GlobalFunction):
                rank_n_types.require_right(checker, callee.definition)
        if isinstance(entity, Tuple) and not fixed and _calls_itself(checker, callee):
            entity = pack_sizes(checker, out, entity, None, None, span)
        if not fixed:
            entity = labels.without_labels(entity)
        values.append(None if fixed else _argument(checker, out, entity, span or parameter.span))
    return values, numbers


def _with_lists(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """An argument with lists in place of the ranges and zips in its tuples."""
    if iterables.is_iterable_only(entity):
        return list_elements(checker, out, entity, span)
    if not isinstance(entity, Tuple):
        return entity
    return attrs.evolve(entity, items=tuple(_with_lists(checker, out, item, span) for item in entity.items))


def _know_given_back(
    checker: Checker, instance: Instance, function: Function, values: Sequence[DynamicValue | None], span: Span | None
) -> None:
    """Let the types of the parameters that a recursive call gives back be those of its arguments, as its result is not
    known yet."""
    back = given_back(function)
    if back and isinstance(prune(instance.result), Unknown):
        fresh = checker.solver.fresh_variable
        given = [value.type if (value := values[p]) is not None else fresh(Kind.Type) for p in back]
        parts = TupleType((fresh(Kind.Type), *given))
        checker.unify_at(instance.result, parts, span, f"the result of {function.name}")


def _calls_itself(checker: Checker, callee: GlobalFunction | LocalFunction) -> bool:
    """True if a function is called in itself."""
    code: object = callee.definition if isinstance(callee, GlobalFunction) else callee
    return any(i.code is code for i in checker.frame.active)


def _grows(checker: Checker, function: Function, entity: LocalFunction) -> bool:
    """True if a function gets another local function in each of its calls of itself, so that there might be no end."""
    mine, others = ("entity", Identity(entity)), 0
    for instance in checker.frame.active:
        if isinstance(instance.code, LocalFunction) and instance.code.function is function:
            others += mine not in instance.statics
    return others >= MOST_CLOSURES


def _is_passed_on(entity: AbstractValue) -> bool:
    """True if a polymorphic function is the value of a parameter, in a scheme."""
    return isinstance(entity, DynamicValue) and isinstance(prune(entity.type), QuantifiedType)


def _argument(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None
) -> DynamicValue | None:
    """The run-time value of an argument, or None for one that specializes the function."""
    return None if specializes(entity) else checker.materialize(out, entity, span)


def instantiate(
    checker: Checker,
    callee: GlobalFunction | LocalFunction,
    entities: Sequence[AbstractValue],
    values: Sequence[DynamicValue | None],
    span: Span | None,
    numbers: Set[ParameterPlace] = frozenset(),
    annotated: Mapping[TypeId, object] = MappingProxyType({}),
    packs: bool = False,
    iterated: Mapping[int, AbstractValue] = MappingProxyType({}),
) -> Instance:
    """The instance for these arguments; `values` holds the run-time ones, None where the entity specializes.
    `numbers`: the parameters whose arguments are known numbers. `annotated`: the known variables of annotations.
    With `packs`, it also returns the captured variables of the functions in its result. `iterated`: the ranges and
    zips, by position, whose parts the call passes."""
    request = _request(checker, callee, entities, values, span, numbers, annotated, packs, iterated)
    alike = similar_instances.likeness(request) if request.key is None else None
    found = _existing_instance(checker, request, alike)
    if found is not None:
        return found
    count = len(checker.module.globals)
    try:
        made = InstanceElaboration(checker, request).elaborate()
    except Exception:
        _forget(checker, request.key, count)
        raise
    if request.key is None:
        checker.module.instances_at_unknowns[request.key_at(tuple(map(resolve, request.types)))] = made
        similar_instances.note(checker, alike, made)
    return made


def _request(
    checker: Checker,
    callee: GlobalFunction | LocalFunction,
    entities: Sequence[AbstractValue],
    values: Sequence[DynamicValue | None],
    span: Span | None,
    numbers: Set[ParameterPlace],
    annotated: Mapping[TypeId, object],
    packs: bool,
    iterated: Mapping[int, AbstractValue],
) -> InstanceRequest:
    """The request of `instantiate`, and the key that distinguishes it from other instances."""
    function = surface_function(callee)
    code: object = callee.definition if isinstance(callee, GlobalFunction) else callee
    types = tuple(resolve(v.type) for v in values if v is not None)
    statics = tuple(static_key(e) for e, v in zip(entities, values, strict=True) if v is None)
    statics += ("packs",) if packs else ()
    statics += (("axes", checker.frame.axes),) if checker.frame.axes else ()
    statics += tuple((p, iterables.static_parts(e, static_key)) for p, e in iterated.items())
    counts = tuple(p for p, e in enumerate(entities) if is_count(e, function, p))
    statics += (("counts", counts),) if counts else ()
    shape = tuple(v is None for v in values)
    names = axis_names.all_names(types)
    given = zip(function.parameters, entities, values, strict=True)
    lengths = tuple(None if v is None else _lengths(checker, callee, p, e) for p, e, v in given)
    if any(found is not None for found in lengths):
        statics += (("lengths", lengths),)
    said = tuple(None if v is None else labels.labels_key(e) for e, v in zip(entities, values, strict=True))
    statics += (("labels", said),) if any(found is not None for found in said) else ()
    key = (Identity(code), shape, types, names, statics) if all(is_known(t) for t in types) else None
    everything = (shape, *statics)
    return InstanceRequest(
        callee, entities, values, span, numbers, annotated, packs, iterated, types, lengths, everything, key
    )


def _existing_instance(checker: Checker, request: InstanceRequest, alike: Likeness | None) -> Instance | None:
    """An instance that serves a call, if there is one; `alike` is what it has in common with others. Raises
    TypeCheckError for recursions without an end."""
    callee, function, code, key = request.callee, request.function, request.code, request.key
    types, span, shape = request.types, request.span, tuple(v is None for v in request.values)
    running = [i for i in checker.frame.active if i.code is code and i.statics == request.statics]
    there = checker.module.instances.get(key)
    if key is None:
        there = checker.module.instances_at_unknowns.get(request.key_at(types))
    if there is None and running and key is not None:
        there = polymorphic_recursion.at_equal_sizes(checker, key, types)
    if there is not None:
        if there.failed:
            raise DependsOnPoison
        for found, expected in zip(types, there.parameters, strict=True):
            effects.flow(found, expected)
        recursive_results.note_recursive_use(checker, there)
        return there
    if alike is not None and not running:
        similar = similar_instances.find(checker, request, alike)
        if similar is not None:
            return similar
    if running:
        general = polymorphic_recursion.general_use(checker, callee, running[-1], types, span)
        if general is not None:
            return general
        other = conditional_types.use_at_other_types(checker, function, running[-1], types, span)
        if other is not None:
            return other
    again = _recursive_instance(checker, request, running)
    if again is not None:
        return again
    if running and key is not None:
        polymorphic_recursion.refuse_other_sizes(checker, function, running[-1], types, shape)
    try:
        polymorphic_recursion.refuse_endless(checker, function, running, types, shape, span)
    except TypeCheckError as error:
        checker.report(error)
        raise AbortElaboration from None  # to go on at every depth would take for ever
    return None


def _recursive_instance(checker: Checker, request: InstanceRequest, running: Sequence[Instance]) -> Instance | None:
    """An instance that is being elaborated and calls itself here, at types that are not known yet."""
    key, types = request.key, request.types
    around = _enclosing_instances(checker, request.code, request.statics) if key is None else []
    for instance in (*reversed(running), *around):
        if key is not None and all(is_known(t) for t in instance.parameters):
            continue
        if any(map(polymorphic_recursion.has_other_structure, types, instance.parameters)):
            continue
        if polymorphic_recursion.has_other_sizes(checker, types, instance.parameters):
            continue
        return _reuse_instance(checker, instance, request.function, types, request.span)
    if running and key is None:
        made = polymorphic_recursion.recursive_instance(checker, running[0], types)
        if made is not None:
            if made.failed:
                raise DependsOnPoison
            return _reuse_instance(checker, made, request.function, types, request.span)
    return None


def _forget(checker: Checker, key: object, made: int) -> None:
    """Let an instance not be there whose elaboration has ended early, without a mistake in its body: a scheme leaves
    the call open. `made`: the number of functions before."""
    functions, instances = checker.module.globals, checker.module.instances
    for name in [*functions][made:]:
        if functions[name].build is None and not functions[name].failed:
            del functions[name]
    if key in instances and instances[key].build is None and not instances[key].failed:
        del instances[key]


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
    for instance in reversed(checker.frame.active):
        while isinstance(instance.code, LocalFunction) and instance.code.inside is not None:
            instance = instance.code.inside
            if instance.code is code and instance.statics == statics and instance not in found:
                found.append(instance)
    return found


def _lengths(
    checker: Checker, callee: GlobalFunction | LocalFunction, parameter: Var, argument: AbstractValue
) -> object:
    """The known lengths of lists in an argument, which specialize a function, unless it calls itself, or is
    annotated to take lists of any length."""
    if isinstance(parameter.type, StackType) or _calls_itself(checker, callee):
        return None
    return constant_results.lengths(argument)
