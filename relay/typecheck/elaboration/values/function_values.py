"""Functions as values: of the typed IR, derivatives of them, and their calls."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence, Set

import attrs

from relay.errors import DifferentiationError, Label, Span, TypeCheckError, TypeMismatch
from relay.ir.effects import Effects
from relay.ir.expr import (
    Binding,
    Block,
    Call,
    Dead,
    Function,
    Grad,
    Lambda,
    LoopLabel,
    Print,
    Var,
)
from relay.ir.types import (
    FLOAT32,
    Application,
    BaseType,
    FunctionType,
    Kind,
    QuantifiedType,
    TensorType,
    Type,
    Unknown,
    prune,
    scalar,
    show,
)
from relay.typecheck.elaboration import binding_times
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DeferredBinding,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    Method,
    Number,
    Progression,
    PythonObject,
    Range,
    Text,
    Tuple,
    TypedBlockBuilder,
    Zip,
    surface_function,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.closures.returned_closures import as_function
from relay.typecheck.elaboration.closures.returned_functions import UNSEEN, is_unseen
from relay.typecheck.elaboration.derivatives import labeled_structures, list_gradients
from relay.typecheck.elaboration.derivatives.derivation import Derivation
from relay.typecheck.elaboration.diagnostics import unseen_changes
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.effects.effects import demand_purity
from relay.typecheck.elaboration.effects.evidence import with_evidence
from relay.typecheck.elaboration.expressions import weak_types
from relay.typecheck.elaboration.expressions.arguments import (
    bind_arguments,
    defaults,
    require_static,
    specializes,
    static_positions,
    wrong_count,
)
from relay.typecheck.elaboration.instance_bodies import is_number
from relay.typecheck.elaboration.library.overloads import is_function
from relay.typecheck.elaboration.restarts import CalledAtTypes, ParameterPlace
from relay.typecheck.elaboration.schemes import effect_inference
from relay.typecheck.elaboration.schemes.rank_n_types import at_fresh_types
from relay.typecheck.elaboration.values import bound_methods, labels
from relay.typecheck.elaboration.values.expansion import expand
from relay.typecheck.elaboration.values.operator_functions import operator_function
from relay.typecheck.unification import flat_shape, outer_unknowns, resolve, unknowns


def function_value(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: AbstractValue,
    span: Span | None,
    fixed: Mapping[int, AbstractValue] | None = None,
    numbers: Set[ParameterPlace] = frozenset(),
) -> DynamicValue:
    """A function as a value of the typed IR. Its instance is elaborated when its parameters' types are known.

    `fixed` are the parameters, by position, that specialize the function; the others are the value's. Without it, those
    with a default are fixed. `numbers`: the parameters whose arguments are known numbers.
    """
    if fixed is None:
        fixed = defaults(entity)
    if isinstance(entity, PythonObject) and is_function(entity.value):
        entity = operator_function(checker, entity.value, out, span)
    if isinstance(entity, Method):
        entity = bound_methods.as_function(checker, out, entity, span)
    if isinstance(entity, DerivativeFunction):
        return _derived_value(checker, out, entity, span, fixed, numbers)
    if isinstance(entity, DynamicValue):
        chosen = as_function(checker, out, entity)
        return entity if chosen is None else function_value(checker, out, chosen, span)
    if isinstance(entity, Number):
        raise TypeCheckError("a number is not a function", span, help="pass a function, by its name or as a lambda")
    if not isinstance(entity, GlobalFunction | LocalFunction):
        what = type(entity.value).__name__ if isinstance(entity, PythonObject) else type(entity).__name__.lower()
        if isinstance(entity, PythonObject) and isinstance(entity.value, BaseType | Unknown):
            raise TypeCheckError("dtypes are compile-time values", span, help="compare it: x.dtype == relay.Float32")
        raise TypeCheckError(f"a Python {what} is not a value of a Relay program", span, help=_suggestion(entity))
    entity = with_evidence(checker, entity)
    function = surface_function(entity)
    count = len(function.parameters) - len(fixed)
    parameters = tuple(checker.solver.fresh_variable(Kind.Type) for _ in range(count))
    result = checker.solver.fresh_variable(Kind.Type)
    checker.sizes.of_parameters |= dict.fromkeys(parameters, checker.sizes_in_scope())
    effects = Effects()
    type_ = FunctionType(parameters, result, (), effects)
    if checker.generic:
        checker.scheme.function_values.append(type_)
    var = checker.variable(function.name, type_, span)
    value = _FunctionValue(checker, out.slot(), entity, function, span, fixed, numbers, var, type_, effects)
    checker.defer(
        value.attempt,
        span,
        f"the parameters of {function.name}",
        result=result,
        force=value.force,
        is_last=value.is_uncalled,
        application=lambda: Application(function.name.strip("<>"), parameters),
        unseen=value.note_effects,
        has_body=True,
    )
    return DynamicValue(var, type_)


@attrs.frozen(eq=False)
class _FunctionValue:
    """A function that is a value, which is elaborated when the types of its parameters are known."""

    checker: Checker
    place: TypedBlockBuilder
    entity: GlobalFunction | LocalFunction
    function: Function
    span: Span | None
    fixed: Mapping[int, AbstractValue]
    numbers: Set[ParameterPlace]
    var: Var
    type: FunctionType
    effects: Effects

    def attempt(self) -> Sequence[Unknown] | None:
        """Elaborate it, if the types of its parameters are known; the unknowns that it waits for otherwise."""
        waiting = [u for p in self.type.parameters for u in outer_unknowns(p) if u.kind is not Kind.BaseType]
        if waiting:
            return waiting
        if any(map(is_unseen, self.type.parameters)):  # another function in whose place this one may be
            self.leave_out()
        else:
            self.make()
        return None

    def make(self) -> None:
        """Elaborate its instance."""
        types = iter(self.type.parameters)
        entities: list[AbstractValue] = []
        values: list[DynamicValue | None] = []
        for position in range(len(self.function.parameters)):
            value = None if position in self.fixed else DynamicValue(self.var, next(types))
            values.append(value)
            entities.append(value if value is not None else self.fixed[position])
        unseen_changes.require_seen(self.entity, entities, self.span)
        instance = self.checker.engine.instantiate(self.checker, self.entity, entities, values, self.span, self.numbers)
        self.effects.include(instance.effects)
        demand_purity(self.checker, self.entity, self.effects)
        self.place.items.append(DeferredBinding((self.var,), lambda: instance.target))
        is_own = isinstance(self.entity, LocalFunction) and self.function.span is not None
        at, other = (self.function.span, self.span) if is_own else (self.span, self.function.span)
        text = "wanted here" if is_own else "defined here"
        labels = (Label(other, text),) if other is not None and other != at else ()
        self.checker.unify_at(
            instance.result, self.type.result, at, f"the result of {self.function.name}", labels=labels
        )

    def is_uncalled(self) -> bool:
        """True if nothing calls it."""
        return not self.checker.generic and all(isinstance(prune(p), Unknown) for p in self.type.parameters)

    def force(self) -> None:
        """Elaborate it with what is known at the end."""
        if not self.is_uncalled():
            self.make()
            return
        for parameter in self.type.parameters:
            self.checker.unify_at(parameter, UNSEEN, self.span, "a parameter")
        self.leave_out()

    def leave_out(self) -> None:
        """Put a function that fails in its place."""
        if isinstance(prune(self.type.result), Unknown):
            self.checker.unify_at(self.type.result, scalar(FLOAT32), self.span, "the result")
        self.place.items.append(
            DeferredBinding(
                (self.var,), lambda: Lambda(_uncalled_function(self.function, self.checker.final_type(self.type)))
            )
        )

    def note_effects(self) -> None:
        """Note the effects of a function that a scheme does not elaborate."""
        with self.checker.effects_of(self.effects):
            effect_inference.note_function(self.checker, self.entity)


def _uncalled_function(function: Function, type_: Type) -> Function:
    """A function in place of one that nobody calls, whose parameters have no types. It would fail."""
    assert isinstance(type_, FunctionType)
    parameters = tuple(Var(p.name, t, p.span) for p, t in zip(function.parameters, type_.parameters, strict=False))
    fails = Print((f"{function.name} has no types, since nothing calls it",), (), (), function.span, fails=True)
    body = Block((Binding((), fails),), Dead())
    return Function(function.name, parameters, body, LoopLabel(function.name), type_.result, (), None, function.span)


def _suggestion(entity: AbstractValue) -> str:
    """The advice for something that exists only at compile time."""
    match entity:
        case Range() | Progression() | Zip():
            return "iterate over it with `for`, or make a list: [x for x in xs]"
        case PythonObject(str()) | Text():
            return "use strings in print, assert and static arguments"
        case Method(_, name):
            return f"call it, or write a lambda: `lambda x: x.{name}()`"
        case PythonObject(value) if callable(value):
            return "call it, or write a lambda that does: `lambda x: f(x)`"
        case _:
            return "a program computes with numbers, tensors, structures of them, and functions"


def _derived_value(
    checker: Checker,
    out: TypedBlockBuilder,
    entity: DerivativeFunction,
    span: Span | None,
    fixed: Mapping[int, AbstractValue],
    numbers: Set[ParameterPlace],
) -> DynamicValue:
    grad = entity.grad
    function = function_value(checker, out, entity.of, span, fixed, numbers)
    inner_type: Type = prune(function.type)  # type: ignore[assignment]
    type_: Type = checker.solver.fresh_variable(Kind.Type)
    if isinstance(inner_type, FunctionType):
        seed = (checker.solver.fresh_variable(Kind.Type),) if grad.seedable else ()
        gradients = checker.solver.fresh_variable(Kind.Type)
        type_ = FunctionType((*inner_type.parameters, *seed), gradients, (), inner_type.effects)
    wrt = None
    if grad.wrt is not None:
        for position in grad.wrt:
            if position in fixed:
                raise DifferentiationError(
                    f"there is no gradient with respect to parameter {position}: it is not a tensor", span
                )
        wrt = tuple(position - sum(f < position for f in fixed) for position in grad.wrt)
    at = grad.span or span
    node = attrs.evolve(grad, function=function.atom, wrt=wrt, span=at)  # type: ignore[misc]

    derivation = Derivation(checker, entity, node, inner_type, type_, frozenset(fixed), span)

    def application() -> Application:
        wanted = () if wrt is None else (("wrt", wrt),)
        return Application("grad", (inner_type,), wanted)

    known = prune(type_)
    result = known.result if isinstance(known, FunctionType) else known
    checker.defer(
        derivation.attempt,
        span,
        "the differentiated function",
        result=result if isinstance(result, Unknown) else None,
        application=application,
    )
    return checker.bind(out, node, type_, "gradient", span)


def call_value(
    checker: Checker,
    out: TypedBlockBuilder,
    callee: DynamicValue,
    arguments: Sequence[AbstractValue],
    span: Span | None,
    name: str,
    seeded: bool = False,
) -> AbstractValue:
    """Call a function value. `seeded`: the last argument is a cotangent."""
    type_ = prune(callee.type)
    if isinstance(type_, FunctionType) and len(type_.parameters) == len(arguments) and checker.sizes.places:
        pairs = zip(arguments, type_.parameters, strict=True)
        arguments = [data_dependent.pack_argument(checker, out, argument, wanted, span) for argument, wanted in pairs]
    values = [checker.materialize(out, a, span) for a in arguments]
    if isinstance(type_, QuantifiedType):  # in a scheme; a call knows the function
        type_ = at_fresh_types(checker, type_)
        callee = DynamicValue(callee.atom, type_)
    if isinstance(type_, FunctionType) and len(type_.parameters) != len(values):
        count = len(type_.parameters)
        where = callee.atom.span
        labels = (Label(where, f"it is {show(resolve(type_))}"),) if where is not None else ()
        checker.decisions.holding.append(True)  # the function itself may have defaults for others
        raise TypeCheckError(wrong_count(name, count, count, len(values)), span, labels=labels)
    if not isinstance(type_, FunctionType | Unknown):
        help = "its elements are x[i]" if isinstance(type_, TensorType) else None
        raise TypeCheckError(f"{name} is not a function, it is {show(resolve(callee.type))}", span, help=help)
    data_dependent.refuse_one_size(checker, callee, values)
    if isinstance(type_, FunctionType):
        wanted = type_.parameters
        values = [data_dependent.of_any_size(checker, out, v, w, span) for v, w in zip(values, wanted, strict=True)]
    result, effects = checker.solver.fresh_variable(Kind.Type), Effects()
    types = [v.type for v in values]
    if seeded:  # whose type follows from those of the others
        types[-1] = checker.solver.fresh_variable(Kind.Type)
    place = checker.function_parameters.get(callee.atom)
    if place in checker.decisions.of_several_types:
        place = None  # a function that is made again in each call of itself
    if place is not None and isinstance(type_, FunctionType) and _chooses(checker, types, type_.parameters):
        raise CalledAtTypes(place)
    try:
        checker.unify_at(callee.type, FunctionType(tuple(types), result, (), effects), span, name)
    except TypeMismatch:
        if place is None:
            raise
        raise CalledAtTypes(place) from None
    if checker.generic:
        checker.scheme.called_values.append(callee.type)
    checker.effects.include(effects)
    checker.solver.run()
    if seeded:
        values[-1] = _cotangent(checker, out, values[-1], types[-1], span)
        checker.solver.run()
    typed = checker.bind(out, Call(callee.atom, tuple(v.atom for v in values), span), result, "result", span)
    return expand(checker, out, typed, span)


def _chooses(checker: Checker, found: Sequence[Type], expected: Sequence[Type]) -> bool:
    """True if, in a scheme, equal types would choose a type or shape that the caller chooses."""
    if not checker.generic:
        return False
    callers = {u for type_ in checker.received for u in unknowns(type_) if u.kind in (Kind.Type, Kind.Shape)}
    for left, right in zip(found, expected, strict=True):
        parts = _rank_of(left), _rank_of(right)
        open_ = {u for part in parts for u in unknowns(part) if u.kind in (Kind.Type, Kind.Shape)}
        if parts[0] != parts[1] and open_ and open_ <= callers:
            return True
    return False


def _rank_of(type_: Type) -> object:
    """The shape of a tensor, or another type."""
    found = prune(type_)
    return flat_shape(found.shape) if isinstance(found, TensorType) else resolve(found)  # type: ignore[arg-type]


LAST_IS_SEED = "the derivative is seedable: its last argument is the incoming cotangent"


def call_derived(
    checker: Checker,
    out: TypedBlockBuilder,
    callee: DerivativeFunction,
    arguments: Sequence[AbstractValue],
    keywords: Sequence[tuple[str, AbstractValue]],
    span: Span | None,
) -> AbstractValue:
    """Call `grad(f)`."""
    result = _call_derived(checker, out, callee, arguments, keywords, span)
    gradients = result.items[1] if callee.grad.with_value and isinstance(result, Tuple) else result
    kept = len(callee.grad.keeping)
    if callee.grad.has_aux and kept and isinstance(gradients, Tuple):
        gradients, kept = gradients.items[0], 0
    if isinstance(gradients, Tuple):
        places = _differentiated_positions(callee, len(arguments))
        if len(places) > 1 and len(places) == len(gradients.items) - kept:
            checker.gradients[gradients] = places
    return result


def _differentiated_positions(callee: DerivativeFunction, given: int) -> tuple[int, ...]:
    """The positions of the parameters with respect to which a function is differentiated, that gets this many
    arguments."""
    if callee.grad.wrt is not None:
        return tuple(callee.grad.wrt)
    if isinstance(callee.of, GlobalFunction | LocalFunction):
        return tuple(range(len(surface_function(callee.of).parameters)))
    return tuple(range(given - (1 if callee.grad.seedable else 0)))


def _call_derived(
    checker: Checker,
    out: TypedBlockBuilder,
    callee: DerivativeFunction,
    arguments: Sequence[AbstractValue],
    keywords: Sequence[tuple[str, AbstractValue]],
    span: Span | None,
) -> AbstractValue:
    base: AbstractValue = callee.of
    seeds = 1 if callee.grad.seedable else 0
    while isinstance(base, DerivativeFunction):
        seeds += 1 if base.grad.seedable else 0
        base = base.of
    fixed: dict[int, AbstractValue] = {}
    numbers: set[ParameterPlace] = set()
    if isinstance(base, GlobalFunction | LocalFunction):
        ordinary = arguments[: len(arguments) - seeds]
        try:
            entities = bind_arguments(base, ordinary, keywords, span)
        except TypeCheckError as error:
            error.help = error.help or (LAST_IS_SEED if seeds else None)
            raise
        given = {id(e) for e in ordinary} | {id(e) for _, e in keywords}
        static = static_positions(base)
        for position, entity in enumerate(entities):
            place = surface_function(base).label, position
            if id(entity) in given and labels.holds_numbers(entity) and place in checker.decisions.specializing:
                entities[position] = labels.with_static_numbers(entity)
                given.add(id(entities[position]))
        if any(position not in static and labels.holds_functions(e) for position, e in enumerate(entities)):
            callee = labeled_structures.with_labels(checker, out, callee, entities, span)
            base = innermost_function(callee)
            assert isinstance(base, GlobalFunction | LocalFunction)
            bare = [labels.without_functions(e) for e in entities]
            given |= {id(b) for e, b in zip(entities, bare, strict=True) if id(e) in given}
            entities = bare
        fixed, numbers = _fixed_arguments(checker, base, entities, given, span)
        seed_arguments = arguments[len(arguments) - seeds :]
        arguments = [*(e for i, e in enumerate(entities) if i not in fixed), *seed_arguments]
    elif keywords:
        raise TypeCheckError("a derivative takes no keyword arguments here", span)
    elif isinstance(base, DynamicValue) and isinstance(prune(base.type), Unknown):
        parameters = tuple(checker.solver.fresh_variable(Kind.Type) for _ in range(len(arguments) - seeds))
        type_ = FunctionType(parameters, checker.solver.fresh_variable(Kind.Type), (), Effects())
        checker.unify_at(base.type, type_, span, "the function")
    count = len(arguments) - (1 if callee.grad.seedable else 0)
    places = [i for i in range(count + len(fixed)) if i not in fixed]
    wrt = callee.grad.wrt
    arguments = [
        weak_types.open_integer_bases(checker, out, a) if i < count and (wrt is None or places[i] in wrt) else a
        for i, a in enumerate(arguments)
    ]
    result = _by_lists(checker, out, callee, arguments, fixed, numbers, span)
    if result is None:
        function = function_value(checker, out, callee, span, fixed, numbers)
        result = call_value(checker, out, function, arguments, span, "the derivative", callee.grad.seedable)
    return _gradients_in_places(callee.grad, result, count, fixed)


def _fixed_arguments(
    checker: Checker,
    base: GlobalFunction | LocalFunction,
    entities: Sequence[AbstractValue],
    given: Container[int],
    span: Span | None,
) -> tuple[dict[int, AbstractValue], set[ParameterPlace]]:
    """The arguments that specialize a function that is differentiated, and the parameters that get numbers. Those whose
    identities are `given` are no defaults."""
    fixed: dict[int, AbstractValue] = {}
    numbers: set[ParameterPlace] = set()
    function, static = surface_function(base), static_positions(base)
    kinds = [p.kind for p in function.signature] or [""] * len(entities)
    for position, entity in enumerate(entities):
        place = function.label, position
        checker.sources.enter(place, entity)
        is_given = id(entity) in given or kinds[position] in ("var_positional", "var_keyword")
        if not is_given or position in static or specializes(entity):
            fixed[position] = entity
        elif is_number(entity):
            numbers.add(place)
            if place in checker.decisions.specializing or position in binding_times.of_callee(checker, base):
                fixed[position] = entity
        elif labels.holds_numbers(entity):
            numbers.add(place)
        if position in static:
            require_static(entity, function, position, span)
    return fixed, numbers


def _gradients_in_places(
    grad: Grad, result: AbstractValue, count: int, fixed: Mapping[int, AbstractValue]
) -> AbstractValue:
    """The result of a derivative with its gradients where the parameters are, among those that are fixed."""
    if not fixed or grad.wrt is not None:
        return result
    if not grad.with_value and not grad.has_aux:
        return _in_places(result, count, len(grad.keeping), fixed)
    if not isinstance(result, Tuple):
        return result
    first, second = result.items[:2]
    if grad.with_value:
        return Tuple((first, _in_places(second, count, len(grad.keeping), fixed)))
    return Tuple((_in_places(first, count, 0, fixed), second))


def innermost_function(callee: DerivativeFunction) -> AbstractValue:
    """The function that is differentiated, once or several times."""
    base = callee.of
    while isinstance(base, DerivativeFunction):
        base = base.of
    return base


def _by_lists(
    checker: Checker,
    out: TypedBlockBuilder,
    callee: DerivativeFunction,
    arguments: Sequence[AbstractValue],
    fixed: Mapping[int, AbstractValue],
    numbers: Set[ParameterPlace],
    span: Span | None,
) -> AbstractValue | None:
    """The call of `grad(f)`, if that is by dynamic lists; None otherwise."""
    ordinary = arguments[: len(arguments) - (1 if callee.grad.seedable else 0)]
    places = list_gradients.list_arguments(checker, out, callee.grad, ordinary, fixed, span)
    if not places:
        return None
    of = function_value(checker, out, callee.of, span, fixed, numbers)
    stacked = list_gradients.without_lists(checker, out, of, len(ordinary), places, span)
    wrt = callee.grad.wrt
    if wrt is not None:
        wrt = tuple(position - sum(f < position for f in fixed) for position in wrt)
    given = [list_gradients.stack_lists(checker, out, a, span) if i in places else a for i, a in enumerate(ordinary)]
    derived = DerivativeFunction(stacked, attrs.evolve(callee.grad, wrt=wrt))  # type: ignore[misc]
    result = call_derived(checker, out, derived, [*given, *arguments[len(ordinary) :]], (), span)
    return list_gradients.rows(checker, out, result, span)


def _cotangent(
    checker: Checker, out: TypedBlockBuilder, value: DynamicValue, expected: Type, span: Span | None
) -> DynamicValue:
    """A cotangent at the type that the derivative takes: with `Any` for data-dependent sizes. It may not be known
    yet."""

    def attempt() -> Sequence[Unknown] | None:
        known: Type = prune(expected)  # type: ignore[assignment]
        if isinstance(known, Unknown) and not checker.generic:
            return [known]
        met = data_dependent.common_type(value.type, known)
        help = "it has the type of the result that is differentiated"
        checker.unify_at(value.type if met is None else met, known, span, "the incoming cotangent", help=help)
        return None

    checker.defer(attempt, span, "the cotangent")
    if isinstance(prune(expected), Unknown):
        return data_dependent.ascribe_type(checker, out, value, expected, span)
    return data_dependent.packed_value(checker, out, value, (), expected, span)


def _in_places(gradients: AbstractValue, count: int, kept: int, fixed: Mapping[int, AbstractValue]) -> AbstractValue:
    """This many gradients and kept results, with None in the places of the parameters that specialize the function."""
    if count + kept == 1:
        items: tuple[AbstractValue, ...] = (gradients,)
    elif isinstance(gradients, Tuple):
        items = gradients.items
    else:
        return gradients
    rest = iter(items)
    placed = [PythonObject(None) if i in fixed else next(rest) for i in range(count + len(fixed))]
    return Tuple((*placed, *rest)) if len(placed) + kept > 1 else placed[0]
