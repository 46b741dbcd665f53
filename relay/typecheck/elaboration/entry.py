"""Programs and schemes: a function is elaborated from its entry, under assumptions that are corrected."""

from __future__ import annotations

import builtins
import contextlib
import functools
from collections import Counter
from collections.abc import Container, Mapping, Sequence

import attrs

from relay.errors import InternalError, RelayError, Span, TypeCheckError, TypeMismatch, bugs_of
from relay.ir.debugging.source_places import collected_values
from relay.ir.definition import Definition, DerivedDefinition, Scope, primal, seed_count
from relay.ir.expr import Atom, Block, Exit, Function, Global, LoopLabel, Module, Parameter, Static, Var
from relay.ir.intrinsic import Intrinsic
from relay.ir.sizes.extents import Place
from relay.ir.sizes.facts import assume_facts
from relay.ir.surface import Apply, Attribute, ForEach
from relay.ir.traverse import blocks, operands, terminator_operands, walk
from relay.ir.types import (
    PYTHON_FLOAT,
    FunctionType,
    Kind,
    QuantifiedType,
    StackType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    prune,
    type_variables,
    unknown_of,
)
from relay.typecheck.elaboration.abstract_arguments import (
    Argument,
    ArgumentTypeReader,
    StaticArg,
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
    Tuple,
    TypedBlockBuilder,
    is_of_template,
    surface_function,
)
from relay.typecheck.elaboration.annotated_types import annotation_type
from relay.typecheck.elaboration.checker import Checker, Instance
from relay.typecheck.elaboration.completion import finish, finished_module
from relay.typecheck.elaboration.control_flow import optionals
from relay.typecheck.elaboration.diagnostics import unresolved_names
from relay.typecheck.elaboration.dynamic_lists import early_elements
from relay.typecheck.elaboration.dynamic_shapes.data_dependent import pack_sizes
from relay.typecheck.elaboration.engine import Engine, Scheme, late_import
from relay.typecheck.elaboration.expressions.arguments import defaults, require_fitting
from relay.typecheck.elaboration.instances import instantiate
from relay.typecheck.elaboration.restarts import Assumptions, IntegersAreLong, Restart
from relay.typecheck.elaboration.schemes import rank_n_types
from relay.typecheck.elaboration.schemes.schemes import generalize, name_the_rest
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.function_values import call_derived
from relay.typecheck.elaboration.values.objects import derived_entity, object_entity
from relay.typecheck.mapping import erase_names_and_effects
from relay.typecheck.unification import Clash, erase_forms, is_known, resolve


def elaborate_program(
    engine: Engine,
    generic: bool,
    definition: Definition | DerivedDefinition,
    arguments: Sequence[Argument],
    symbolic: frozenset[Place] = frozenset(),
    decisions: Assumptions | None = None,
) -> tuple[Checker, Module]:
    """Elaborate until nothing is found out too late."""
    decisions = decisions or Assumptions()
    values = collected_values()
    mark = None if values is None else values.mark()
    mistake: RelayError | None = None
    while True:
        if values is not None and mark is not None:
            values.forget(mark)
        checker = Checker(engine, generic=generic, decisions=decisions)
        checker.before_raising = functools.partial(unresolved_names.report_unseen_functions, checker)
        try:
            module = _attempt(checker, definition, arguments, symbolic)
            if not decisions.sampled:
                return checker, module
            decisions.by_call.update(decisions.sampled)  # where rounds of their own have types, a call gives them
            decisions.sampled.clear()
        except RelayError as error:
            chosen = checker.blamed_texts - decisions.choosing_texts
            differing = (checker.blamed or checker.uncopied) - decisions.copied
            if not differing and not checker.blamed_numbers and not chosen:
                configured = checker.configured - decisions.sampled - decisions.by_call
                if not configured:
                    raise (error if mistake is None or _is_part(error, mistake) else mistake) from None
                mistake = mistake or error
                decisions.sampled.update(configured)
                decisions.copied.update(configured)
                continue
            decisions.copied.update(differing)
            decisions.specializing.update(checker.blamed_numbers)
            decisions.choosing_texts.update(chosen)
        except Restart as found:
            before = decisions.content()
            found.note(decisions)
            if isinstance(found, IntegersAreLong):
                mistake = mistake or found.error
            if decisions.content() == before:  # there would be no end
                raise InternalError(
                    f"an elaboration was restarted without a new assumption: {type(found).__name__}"
                ) from found


def _is_part(error: RelayError, other: RelayError) -> bool:
    """True if all of an error's diagnostics are among another one's."""
    told = {(str(d.span), d.message) for d in other.diagnostics}
    return all((str(d.span), d.message) in told for d in error.diagnostics)


def _attempt(
    checker: Checker,
    definition: Definition | DerivedDefinition,
    arguments: Sequence[Argument],
    symbolic: frozenset[Place],
) -> Module:
    try:
        lost = primal(definition).lost
        if lost is not None and not checker.generic:
            raise lost
        with assume_facts(checker.hints):
            if isinstance(definition, Definition):
                name = _entry(checker, GlobalFunction(definition), arguments, symbolic)
            else:
                name = _derived_entry(checker, derived_entity(definition), arguments, symbolic)
            early_elements.settle(checker)
            optionals.settle_cells(checker)
            finish(checker)
            _check_aliases(checker, None if checker.generic else primal(definition))
        return finished_module(checker, name)
    except (DependsOnPoison, RelayError) as error:
        early_elements.settle(checker)
        optionals.settle_cells(checker)
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


def _check_aliases(checker: Checker, entry: Definition | None) -> None:
    """Report where the program's values would differ from Python's objects, if it changes any."""
    bodies = checker.module.bodies
    if not any(isinstance(callee, GlobalFunction) and _needs_check(callee.definition) for callee, _ in bodies):
        return
    with late_import:
        from relay.typecheck.elaboration.aliasing import check
    for mistake in check.errors(bodies, entry):
        checker.report(mistake)
    checker.stop()


_CHANGING = ("nan_to_num", "median", "nanmedian", "quantile", "percentile", "nanquantile", "nanpercentile")
"""Functions of NumPy that change what they are given, if a call says so."""


_ITERATORS = ("zip", "map", "filter", "enumerate", "reversed", "iter")
"""Functions of Python whose results are used up."""


def _needs_check(definition: Definition) -> bool:
    """True if a function's own text may change an object in place, or use an iterator twice."""
    if definition.updated:
        return True
    iterators: set[Var] = set()
    for binding in walk(definition.function.body):
        match binding.value:
            case Attribute(_, name) if name in _CHANGING:
                return True
            case Apply(Global(name)) if name in _CHANGING:
                return True
            case Apply(Static(Intrinsic("generated"))):
                return True
            case Apply(Global(name)) | ForEach(LoopLabel(name)) if name in _ITERATORS:
                iterators.update(binding.targets)
    return bool(iterators) and _keeps(definition.function.body, iterators)


def _keeps(body: Block, iterators: set[Var]) -> bool:
    """True unless each of some iterators has one use, in a loop or a call of a function of Python's."""
    uses: Counter[Atom] = Counter()
    for binding in walk(body):
        value = binding.value
        is_use = isinstance(value, ForEach) or (
            isinstance(value, Apply) and isinstance(value.function, Global) and hasattr(builtins, value.function.name)
        )
        for atom in operands(value):
            uses[atom] += 1 if is_use else 2
        for block in blocks(value):
            uses.update([*terminator_operands(block.terminator)] * 2)
    uses.update([*terminator_operands(body.terminator)] * 2)
    return any(uses[variable] > 1 for variable in iterators)


def _place_of_bug(checker: Checker, definition: Definition | DerivedDefinition) -> Span | None:
    """The place of elaboration in the user's source."""
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
            rigid = variable if variable.kind is Kind.Dim else unknown_of(variable, rigid=True)
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
        type_: Type
        if argument is None and parameter.type is PYTHON_FLOAT:
            type_ = PYTHON_FLOAT
        elif argument is None and parameter.type is not None:
            type_ = annotation_type(checker, written, parameter.type, any_stays=checker.generic)
        else:
            weak = position not in by
            reader = ArgumentTypeReader(
                checker, symbolic, parameter.span, parameter.name, position, parameter.type, weak
            )
            type_ = reader.type(argument)
        received = checker.variable(parameter.name, type_, parameter.span)
        checker.sources.begin(received, position)
        typed = DynamicValue(received, type_)
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
    """The values of the variables of a function's annotations, with 0 for sizes that no argument has: those of
    elements of empty lists."""
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
    name = checker.module.unique_name(f"grad_{function.name}")
    instance = Instance(name, entity, (), (), checker.solver.fresh_variable(Kind.Type), Global(name))
    checker.module.globals[name] = instance
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
    positional, keywords = _written_arguments(function, arguments, inputs)
    with checker.at_frame(attrs.evolve(checker.frame, active=(instance,), effects=instance.effects)):
        derived = call_derived(checker, body, entity, positional, keywords, span)
        # Data-dependent sizes end with the function, as in `results.result_value`: types of what leaves it say Any.
        result = checker.materialize(body, pack_sizes(checker, body, derived, None, None, span), span)
    checker.unify_at(result.type, instance.result, span, "the derivative")
    body.terminator = Exit(label, (result.atom,), span)
    parameters = tuple(v.atom for v in (*values, *extra) if v is not None)

    def build() -> Function:
        return Function(name, parameters, body.block(), label, checker.final_type(instance.result), (), None, span)  # type: ignore[arg-type]

    instance.build = build
    return name


def _written_arguments(
    function: Function, arguments: Sequence[Argument], inputs: Sequence[AbstractValue]
) -> tuple[list[AbstractValue], list[tuple[str, AbstractValue]]]:
    """The positional and the keyword arguments of a call that gives a function's parameters these values."""
    signature = function.signature or tuple(Parameter() for _ in function.parameters)
    positional: list[AbstractValue] = []
    keywords: list[tuple[str, AbstractValue]] = []
    skipped = False
    for position, given in enumerate(inputs):
        argument = arguments[position]
        if isinstance(argument, StaticArg) and argument.default:
            skipped = True
            continue  # the callee has it, and it stays a number known to the checker
        kind = signature[position].kind if position < len(signature) else ""
        if kind in ("var_positional", "var_keyword") and isinstance(given, Tuple):
            if kind == "var_positional":
                positional += given.items
            else:
                keywords += zip(given.form.names if given.form is not None else (), given.items, strict=True)
            continue
        if position < len(signature) and (skipped or signature[position].kind == "keyword_only"):
            keywords.append((function.parameters[position].name, given))
        else:
            positional.append(given)
    return positional, keywords


def elaborate_scheme(engine: Engine, definition: Definition | DerivedDefinition) -> Scheme:
    """The program at its annotations, with variables for what they leave open, and the function's type.

    Unannotated parts of the type are quantified: `forall (bt: BaseType) (s: Shape). fn(..) -> ..`.
    """
    parameters = primal(definition).function.parameters
    arguments = len(parameters) + seed_count(definition)
    open_ = (i for i, p in enumerate(parameters) if p.type is None or getattr(p.type, "shape", None) == ())
    decisions = Assumptions(candidates=frozenset((position, ()) for position in open_))
    checker, module = elaborate_program(engine, True, definition, [None] * arguments, decisions=decisions)
    entry = checker.module.globals[module.entry]
    received, found = ([resolve(t) for t in types] for types in (checker.received, [entry.result]))
    type_ = erase_forms(FunctionType(received, found[0], effects=entry.effects), none_stays=True)
    assert isinstance(type_, FunctionType)
    closed = generalize(checker, type_, checker.hints.assumptions(always=True))
    name_the_rest(checker, closed.identifiers if isinstance(closed, QuantifiedType) else ())
    result = erase_names_and_effects(resolve(checker.module.globals[module.entry].result))
    return Scheme(module, closed, checker.is_partial, result)
