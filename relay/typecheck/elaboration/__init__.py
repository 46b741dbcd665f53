"""From the surface IR to the typed IR: inference and monomorphization in one pass.

The body of a function is elaborated once for each choice of its arguments' types. Types are inferred by unification
(`typecheck/unification.py`); what cannot be decided yet is deferred (`checker.py`). The result is monomorphic, still
higher-order, and holds no surface node.

    abstract_values.py     what a name can mean; abstract_arguments.py what is known of a program's arguments
    checker.py             variables, instances, scopes, the end; constraints.py what waits
    restarts.py            what is found out too late, and makes it start anew
    instances.py           instances of functions; instance_bodies.py new ones, results.py and constant_results.py
                           what they return
    expressions/           one case for each node; calls, operators and their attributes, weak integers
    control_flow/          loops, and joins where paths meet
    patterns/              `match`
    values/                kinds of values: tensors, structures, data, functions, sizes, Python objects
    dynamic_lists/         lists of any length
    dynamic_shapes/        data-dependent and symbolic sizes; recursion at other sizes
    library/               functions of Python and NumPy
    derivatives/           `grad` in programs
    closures/              functions that leave a program
    effects/               what calls do beside their result
    schemes/               the types of functions before any call decides them
    diagnostics/           several mistakes at once, and their words
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import pkgutil
from collections.abc import Collection, Container, Mapping, Sequence
from typing import NamedTuple

import attrs

from relay.errors import InternalError, RelayError, Span, TypeCheckError, TypeMismatch, bugs_of
from relay.ir.axes import ResultNames
from relay.ir.definition import Definition, DerivedDefinition, Scope, primal, seed_count
from relay.ir.effects import Effect
from relay.ir.expr import Exit, Function, Global, LoopLabel, Module, Parameter
from relay.ir.sizes.extents import Place
from relay.ir.sizes.facts import assuming
from relay.ir.types import (
    FunctionType,
    Kind,
    QuantifiedType,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    prune,
    type_variables,
)
from relay.ir.types import axis_names as names_of_axes
from relay.typecheck.elaboration.abstract_arguments import (
    Argument,
    ArgumentTypeReader,
    ClosureArg,
    DataArg,
    ListArg,
    RefArg,
    ScalarArg,
    StaticArg,
    StructureArg,
    holds_returned,
    is_empty,
    restore_closures,
)
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DependsOnPoison,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    TypedBlockBuilder,
    is_of_template,
)
from relay.typecheck.elaboration.annotated_types import annotation_type
from relay.typecheck.elaboration.checker import Checker, Instance
from relay.typecheck.elaboration.closures.returned_functions import (
    FunctionChosenAtRunTime,
    Node,
    effects_of,
    holds_functions,
    resolve_node,
)
from relay.typecheck.elaboration.dynamic_shapes.data_dependent import pack_sizes
from relay.typecheck.elaboration.expressions.arguments import defaults, require_fitting, surface_function
from relay.typecheck.elaboration.instances import instantiate
from relay.typecheck.elaboration.restarts import Assumptions, Restart
from relay.typecheck.elaboration.schemes import rank_n_types
from relay.typecheck.elaboration.schemes.schemes import generalize, name_the_rest
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.function_values import call_derived, takes_unseen
from relay.typecheck.elaboration.values.objects import derived_entity, object_entity
from relay.typecheck.guards import DimSpecialization
from relay.typecheck.mapping import erase_names_and_effects
from relay.typecheck.unification import Clash, is_known, resolve

__all__ = [
    "Argument",
    "ClosureArg",
    "DataArg",
    "Elaborated",
    "ListArg",
    "RefArg",
    "ScalarArg",
    "Scheme",
    "StaticArg",
    "StructureArg",
    "elaborate",
    "elaborate_structured",
    "holds_returned",
    "load",
    "restore_closures",
    "scheme",
]


@functools.cache
def load() -> None:
    """Import the modules that are imported when a construct first needs them."""
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(module.name)


def elaborate(definition: Definition | DerivedDefinition, arguments: Sequence[Argument]) -> Module:
    """The program for these arguments.

    Raises TypeCheckError (FrontendError, DifferentiationError) at the user's line.
    """
    return elaborate_structured(definition, arguments).module


@attrs.frozen
class Elaborated:
    """A program, its result's and parameters' types with the Python structures that tuples stand for, the decorated
    functions in it, the symbolic axes that became numbers or equal to others, and what it does beside computing."""

    module: Module
    result: Type
    parameters: tuple[Type, ...]
    used: list[Definition]
    pins: tuple[DimSpecialization, ...]
    effects: tuple[Effect, ...]
    names: ResultNames = None
    returned: Node | None = None  # the result is what the functions in it have captured; what else is known of it
    effects_of_functions: frozenset[str] = frozenset()  # those of the functions in the result


def elaborate_structured(
    definition: Definition | DerivedDefinition, arguments: Sequence[Argument], symbolic: Collection[Place] = ()
) -> Elaborated:
    """The program for these arguments. The axes in `symbolic` stay variables of the program as far as possible: it is
    right for all arguments that have its entry's types and satisfy `Module.where`. Axes of extent 0 and 1 are numbers.

    Parts of an argument count as in `relay.ir.sizes.extents`; arguments that specialize the program count, too.
    """
    checker, module, returned = _with_functions(definition, arguments, frozenset(symbolic))
    used = [i.code for i in checker.globals.values() if isinstance(i.code, Definition)]
    entry = checker.globals[module.entry]
    result = resolve(entry.result)
    pins, effects = tuple(checker.hints.pins), tuple(entry.effects.all_effects())
    parameters = tuple(erase_names_and_effects(resolve(type_)) for type_ in checker.received)
    inside = effects_of(result)
    return Elaborated(
        module, erase_names_and_effects(result), parameters, used, pins, effects, _names(result), returned, inside
    )


def _with_functions(
    definition: Definition | DerivedDefinition, arguments: Sequence[Argument], symbolic: frozenset[Place]
) -> tuple[Checker, Module, Node | None]:
    """The program, which returns what the functions in its result have captured, if it holds any that are known."""
    mistake: RelayError | None = None
    checker, decisions = None, Assumptions()
    try:
        checker, module = _run(False, definition, arguments, symbolic, decisions)
        result = checker.globals[module.entry].result
        if not isinstance(definition, Definition) or not holds_functions(result):
            return checker, module, None
        if takes_unseen(result):
            mistake = TypeCheckError(
                "the parameters of the returned function have no known types", definition.function.span
            )
    except RelayError as error:
        if not isinstance(definition, Definition) or not any(decisions.holding):
            raise
        mistake = error
    try:
        packing, packed = _run(False, definition, arguments, symbolic, Assumptions(returning=True))
        returned = packing.globals[packed.entry].returned
        if returned is not None:
            return packing, packed, resolve_node(returned)
    except FunctionChosenAtRunTime:
        if mistake is not None:
            raise _untyped_function_error(definition, mistake) from None
    except RelayError:
        if mistake is None:
            raise
    if mistake is not None:
        raise mistake
    assert checker is not None
    return checker, module, None


def _untyped_function_error(definition: Definition, mistake: RelayError) -> RelayError:
    """The error for functions that are returned and selected at run time, whose types nothing tells."""
    return TypeCheckError(
        f"the function that {definition.function.name} returns is selected at run time, so its type cannot be inferred",
        definition.function.span,
        help="annotate what it returns: `-> Fn[[A, B], C]`",
        notes=(f"without an annotation: {mistake.message}",),
    )


def _names(result: Type) -> ResultNames:
    match result:
        case TensorType():
            return names_of_axes(result)
        case TupleType(items):
            return [_names(item) for item in items]
        case _:
            return None


class Scheme(NamedTuple):
    """A function's program at its annotations, and its type. `is_partial`: parts of the body were not looked at, since
    only a call's types decide what they mean. `result`: the type of the result with the forms of its structures."""

    module: Module
    type: Type
    is_partial: bool
    result: Type


def scheme(definition: Definition | DerivedDefinition) -> Scheme:
    """The program at its annotations, with variables for what they leave open, and the function's type.

    Unannotated parts of the type are quantified: `forall (bt: BaseType) (s: Shape). fn(..) -> ..`.
    """
    arguments = len(primal(definition).function.parameters) + seed_count(definition)
    checker, module = _run(True, definition, [None] * arguments)
    type_ = resolve(module.main.type)
    assert isinstance(type_, FunctionType)
    closed = generalize(
        checker,
        attrs.evolve(type_, effects=checker.globals[module.entry].effects),
        checker.hints.assumptions(always=True),
    )
    name_the_rest(checker, closed.identifiers if isinstance(closed, QuantifiedType) else ())
    return Scheme(
        module, closed, checker.is_partial, erase_names_and_effects(resolve(checker.globals[module.entry].result))
    )


def _run(
    generic: bool,
    definition: Definition | DerivedDefinition,
    arguments: Sequence[Argument],
    symbolic: frozenset[Place] = frozenset(),
    decisions: Assumptions | None = None,
) -> tuple[Checker, Module]:
    """Elaborate until nothing is found out too late."""
    decisions = decisions or Assumptions()
    while True:
        checker = Checker(generic=generic, decisions=decisions)
        try:
            return checker, _attempt(checker, definition, arguments, symbolic)
        except RelayError:
            differing = (checker.blamed or checker.uncopied) - decisions.copied
            if not differing:
                raise
            decisions.copied.update(differing)
        except Restart as found:
            before = decisions.content()
            found.note(decisions)
            if decisions.content() == before:  # there would be no end
                raise InternalError(
                    f"an elaboration was restarted without a new assumption: {type(found).__name__}"
                ) from found


def _attempt(
    checker: Checker,
    definition: Definition | DerivedDefinition,
    arguments: Sequence[Argument],
    symbolic: frozenset[Place],
) -> Module:
    try:
        with assuming(checker.hints):
            if isinstance(definition, Definition):
                name = _entry(checker, GlobalFunction(definition), arguments, symbolic)
            else:
                name = _derived_entry(checker, derived_entity(definition), arguments, symbolic)
            checker.finish()
        return checker.module(name)
    except (DependsOnPoison, RelayError) as error:
        checker.report(error)
        checker.stop()
        raise
    except Restart:
        raise  # what was reported may come from what was not known
    except RecursionError:
        function = primal(definition).function
        raise TypeCheckError(
            f"the calls of functions that begin with {function.name} are nested too deeply",
            function.span,
            help="replace them by a loop, or merge some of the functions",
        ) from None
    except Exception:
        checker.stop()  # the user's mistakes come first: without them, this may not happen
        with bugs_of("type inference", lambda: _place_of_bug(checker, definition)):
            raise


def _place_of_bug(checker: Checker, definition: Definition | DerivedDefinition) -> Span | None:
    """Where elaboration stands, in what the user wrote."""
    found = checker.hints.span
    if found is not None and not is_of_template(found):
        return found
    base: object = definition
    while isinstance(base, DerivedDefinition) or (isinstance(base, Definition) and is_of_template(base.function.span)):
        base = base.of if isinstance(base, DerivedDefinition) else base.scope.resolve("f__")
    return base.function.span if isinstance(base, Definition) else None


def _values(
    checker: Checker,
    scope: Scope,
    function: Function,
    arguments: Sequence[Argument],
    symbolic: frozenset[Place],
    by: Container[int] = (),
) -> tuple[list[AbstractValue], list[DynamicValue | None], Mapping[TypeId, object]]:
    """The arguments, and what the variables of their annotations are in a scheme. `by`: those to differentiate by."""
    entities: list[AbstractValue] = []
    values: list[DynamicValue | None] = []
    written = Context({}, {}, scope)
    if checker.generic:  # the function is right for all sizes that its annotations allow
        for variable in (v for p in function.parameters if p.type is not None for v in type_variables(p.type)):
            rigid = variable if variable.kind is Kind.Dim else Unknown(variable.kind, variable.name, rigid=True)
            written.annotated.setdefault(variable, rigid)
    for position, (parameter, argument) in enumerate(zip(function.parameters, arguments, strict=True)):
        if isinstance(argument, StaticArg):
            entity = object_entity(argument.value, parameter.span)
            if rank_n_types.is_polymorphic(parameter):
                entity = rank_n_types.check_polymorphic_argument(
                    checker, TypedBlockBuilder(), entity, parameter, function.name, parameter.span
                )
            entities.append(entity)
            values.append(None)
            continue
        if argument is None and parameter.type is not None:
            type_ = annotation_type(checker, written, parameter.type, any_stays=checker.generic)
        else:
            weak = position not in by
            reader = ArgumentTypeReader(
                checker, symbolic, parameter.span, parameter.name, position, parameter.type, weak
            )
            type_ = reader.type(argument)
        typed = DynamicValue(checker.variable(parameter.name, type_, parameter.span), type_)
        if holds_returned(argument):
            checker.function_arguments[parameter] = argument
        entities.append(typed)
        values.append(typed)
        checker.received.append(type_)
    return entities, values, written.annotated if checker.generic else {}


def _entry(checker: Checker, entity: GlobalFunction, arguments: Sequence[Argument], symbolic: frozenset[Place]) -> str:
    function = surface_function(entity)
    by = range(len(arguments)) if is_of_template(function.span) else ()
    entities, values, annotated = _values(checker, entity.definition.scope, function, arguments, symbolic, by)
    written = Context({}, {}, entity.definition.scope, dict(annotated))
    for parameter, value in zip(function.parameters, values, strict=True):
        checker.hints.span = parameter.span
        if parameter in checker.function_arguments:
            continue
        if value is not None and parameter.type is not None and is_known(value.type):
            # The error of a wrong argument stands at the parameter.
            probe = annotation_type(checker, written, parameter.type)
            if isinstance(probe, StackType) and isinstance(value.type, TupleType):
                continue  # a list of Python, which the function takes as one that can grow
            try:
                checker.unify_at(value.type, probe, parameter.span, f"argument {parameter.name} of {function.name}")
            except TypeMismatch as error:
                checker.report(error)
    for position, default in defaults(entity).items() if checker.generic else ():
        try:
            require_fitting(default, function, position, None)
        except TypeMismatch as error:
            checker.report(error)
    checker.solver.run()
    checker.stop()
    if any(map(is_empty, arguments)):
        annotated = _sizes_of_nothing(checker, function, values, written)
    packs = checker.decisions.returning
    return instantiate(checker, entity, entities, values, None, annotated=annotated, packs=packs).name


def _sizes_of_nothing(
    checker: Checker, function: Function, values: Sequence[DynamicValue | None], written: Context
) -> Mapping[TypeId, object]:
    """What the variables of a function's annotations are, where sizes that no argument has are 0: those of elements of
    empty lists."""
    for parameter, value in zip(function.parameters, values, strict=True):
        if value is not None and parameter.type is not None:
            with contextlib.suppress(Clash):  # the error of a wrong argument stands at the parameter
                checker.solver.unify(value.type, annotation_type(checker, written, parameter.type))
    for meaning in written.annotated.values():
        unknown = prune(meaning)  # type: ignore[arg-type]
        if isinstance(unknown, Unknown) and unknown.kind in (Kind.Dim, Kind.Shape):
            checker.solver.bind(unknown, 0 if unknown.kind is Kind.Dim else ())
    checker.solver.run()
    return written.annotated


def _derived_entry(
    checker: Checker, entity: DerivativeFunction, arguments: Sequence[Argument], symbolic: frozenset[Place]
) -> str:
    """A function of the module that calls the derivative."""
    base: AbstractValue = entity
    seeds, by = 0, set[int]()
    while isinstance(base, DerivativeFunction):
        seeds += 1 if base.grad.seedable else 0
        by.update(range(len(arguments)) if base.grad.wrt is None else base.grad.wrt)
        base = base.of
    assert isinstance(base, GlobalFunction)
    function = surface_function(base)
    name = checker.unique_name(f"grad_{function.name}")
    instance = Instance(name, entity, (), (), checker.solver.fresh(Kind.Type), Global(name))
    checker.globals[name] = instance
    count = len(function.parameters)
    entities, values, _ = _values(checker, base.definition.scope, function, arguments[:count], symbolic, by)
    extra = []
    for position, type_ in enumerate(arguments[count:] or [None] * seeds, start=count):
        found = ArgumentTypeReader(checker, symbolic, function.span, "seed", position).type(type_)
        extra.append(DynamicValue(checker.variable("seed", found, function.span), found))
        checker.received.append(found)
    body, span = TypedBlockBuilder(), function.span
    label = LoopLabel(name)
    inputs = [expand(checker, body, e, span) if isinstance(e, DynamicValue) else e for e in (*entities, *extra)]
    for position, parameter in enumerate(function.parameters):
        if parameter in checker.function_arguments:
            inputs[position] = restore_closures(checker, body, arguments[position], inputs[position], span)
    checker.function_arguments.clear()  # what is differentiated gets them as functions
    checker.active.append(instance)
    checker.effects = instance.effects
    signature = function.signature or tuple(Parameter() for _ in function.parameters)
    positional: list[AbstractValue] = []
    keywords: list[tuple[str, AbstractValue]] = []
    skipped = False
    for position, given in enumerate(inputs):
        argument = arguments[position]
        if isinstance(argument, StaticArg) and argument.default:
            skipped = True
            continue  # the callee has it, and it stays a number known to the checker
        if position < len(signature) and (skipped or signature[position].kind == "keyword_only"):
            keywords.append((function.parameters[position].name, given))
        else:
            positional.append(given)
    derived = call_derived(checker, body, entity, positional, keywords, span)
    # Data-dependent sizes end with the function, as in `results.result_value`: types of what leaves it say Any.
    result = checker.materialize(body, pack_sizes(checker, body, derived, None, None, span), span)
    checker.active.pop()
    checker.unify_at(result.type, instance.result, span, "the derivative")
    body.terminator = Exit(label, (result.atom,), span)
    parameters = tuple(v.atom for v in (*values, *extra) if v is not None)

    def build() -> Function:
        return Function(name, parameters, body.block(), label, checker.final(instance.result), (), None, span)  # type: ignore[arg-type]

    instance.build = build
    return name
