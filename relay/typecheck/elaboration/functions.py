"""Instances of functions: one for each choice of argument types, and functions as values.

A decorated function becomes a function of the module, a nested one a lambda at the place of its definition. A call
finds the instance of its argument types, or the one that is being elaborated (recursion), or elaborates a new one. An
argument whose type is not yet known makes an instance of its own, which shares the caller's variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from relay.errors import DifferentiationError, InternalError, Label, Span, TypeCheckError, TypeMismatch
from relay.ir.derivative import gradient_type
from relay.ir.dims import DimExpr, settled, variables
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Exit,
    Function,
    Global,
    Lambda,
    LoopLabel,
    OpCall,
    Parameter,
    Project,
    Var,
)
from relay.ir.types import (
    ANY,
    FunctionType,
    Kind,
    RefType,
    StackType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    map_dims,
    prune,
    show,
)
from relay.operator import Operator
from relay.operator.relation import substitute
from relay.typecheck.elaboration.entities import (
    Computed,
    Consequence,
    Context,
    Derived,
    Enough,
    Entity,
    GlobalFunction,
    Handler,
    Later,
    LocalFunction,
    Number,
    Object,
    Output,
    Size,
    Tuple,
    Typed,
)
from relay.typecheck.elaboration.session import Instance, ListGrows, Session
from relay.typecheck.unification import is_known, outer_unknowns, resolve, unknowns

MAX_POLYMORPHIC_DEPTH = 64
"""How many instances of one function may be under elaboration at once before its recursion counts as growing."""


def surface_function(entity: GlobalFunction | LocalFunction) -> Function:
    """The surface code of a function."""
    return entity.definition.function if isinstance(entity, GlobalFunction) else entity.function


def call_function(
    session: Session,
    out: Output,
    callee: GlobalFunction | LocalFunction,
    arguments: Sequence[Entity],
    keywords: Sequence[tuple[str, Entity]],
    span: Span | None,
) -> Entity:
    """Call a decorated or nested function."""
    entities = bind_arguments(callee, arguments, keywords, span)
    values: list[Typed | None] = []
    given = {id(e) for e in arguments} | {id(e) for _, e in keywords}
    static = static_positions(callee)
    for position, (entity, parameter) in enumerate(zip(entities, surface_function(callee).parameters, strict=True)):
        if position in static:
            require_static(entity, surface_function(callee), position, span)
        fixed = position in static or id(entity) not in given  # a default that was not overridden stays what it is
        values.append(None if fixed else _argument(session, out, entity, parameter))
    instance = instantiate(session, callee, entities, values, span)
    atoms = tuple(v.atom for v in values if v is not None)
    name = surface_function(callee).name
    return expand(
        session, out, session.bind(out, Call(instance.target, atoms, span), instance.result, name, span), span
    )


def static_positions(callee: GlobalFunction | LocalFunction) -> frozenset[int]:
    """The parameters whose arguments specialise the function."""
    return frozenset(i for i, p in enumerate(surface_function(callee).signature) if p.static)


def require_static(entity: Entity, function: Function, position: int, span: Span | None) -> None:
    """Raise TypeCheckError if the argument of a static parameter is only known at run time."""
    stack = [entity]
    while stack:
        part = stack.pop()
        if isinstance(part, Tuple):
            stack += part.items
        elif isinstance(part, Typed) and not isinstance(part.atom, Constant):
            parameter = function.parameters[position]
            labels = (Label(parameter.span, "static"),) if parameter.span is not None else ()
            raise TypeCheckError(
                f"argument {parameter.name} of {function.name} is static: it must be known before the program runs",
                span,
                labels=labels,
            )


def _argument(session: Session, out: Output, entity: Entity, parameter: Var) -> Typed | None:
    """The run-time value of an argument, or None for one that specialises the function."""
    return None if _specialises(entity) else session.materialise(out, entity, parameter.span)


def _specialises(entity: Entity) -> bool:
    """Whether an argument is no value at run time."""
    if isinstance(entity, Object):
        return not isinstance(entity.value, Operator)
    return isinstance(entity, GlobalFunction) or (isinstance(entity, Derived) and isinstance(entity.of, GlobalFunction))


def wrong_count(name: str, least: int, most: int, found: int) -> str:
    """What to say of a call with another number of arguments than the function has parameters."""
    expected = f"{most}" if least == most else f"{least} to {most}"
    return f"wrong number of arguments to {name}: expected {expected}, found {found}"


def bind_arguments(
    callee: GlobalFunction | LocalFunction,
    arguments: Sequence[Entity],
    keywords: Sequence[tuple[str, Entity]],
    span: Span | None,
) -> list[Entity]:
    """One entity for each parameter, as Python binds arguments. Raises TypeCheckError."""
    function = surface_function(callee)
    signature = function.signature or tuple(Parameter() for _ in function.parameters)
    defined = (Label(function.span, "defined here"),) if function.span is not None else ()
    positional = [i for i, p in enumerate(signature) if p.kind != "keyword_only"]
    if len(arguments) > len(positional):
        least = sum(signature[i].default is None for i in positional)
        raise TypeCheckError(wrong_count(function.name, least, len(positional), len(arguments)), span, labels=defined)
    found: dict[int, Entity] = dict(enumerate(arguments))
    names = {p.name: i for i, p in enumerate(function.parameters) if signature[i].kind != "positional_only"}
    for name, entity in keywords:
        if name not in names:
            raise TypeCheckError(f"{function.name} has no parameter {name!r}", span, labels=defined)
        if names[name] in found:
            raise TypeCheckError(f"{function.name} got two values for {name!r}", span, labels=defined)
        found[names[name]] = entity
    result = []
    for position, parameter in enumerate(function.parameters):
        if position in found:
            result.append(found[position])
            continue
        default = signature[position].default
        if default is None:
            needed = sum(p.default is None for p in signature)
            given = len(arguments) + len(keywords)
            text = f"{function.name} needs a value for {parameter.name!r}"
            if given < needed:
                text = f"{wrong_count(function.name, needed, len(signature), given)}; {parameter.name!r} is missing"
            raise TypeCheckError(text, span, labels=defined)
        result.append(_default(callee, default))
    return result


def _default(callee: GlobalFunction | LocalFunction, default: Atom) -> Entity:
    from relay.typecheck.elaboration.blocks import atom_entity

    return atom_entity(_definition_context(callee), default)


def _defaults(entity: Entity) -> dict[int, Entity]:
    """The defaults of a function, or of the one that is differentiated, by position."""
    while isinstance(entity, Derived):
        entity = entity.of
    if not isinstance(entity, GlobalFunction | LocalFunction):
        return {}
    signature = surface_function(entity).signature
    return {i: _default(entity, p.default) for i, p in enumerate(signature) if p.default is not None}


def _definition_context(callee: GlobalFunction | LocalFunction) -> Context:
    if isinstance(callee, GlobalFunction):
        return Context({}, {}, callee.definition.scope)
    return Context(dict(callee.environment), {}, callee.context.scope, callee.context.annotated, callee.context)


def _static_key(entity: Entity) -> object:
    match entity:
        case Object(value):
            try:
                hash(value)
            except TypeError:
                return ("object", id(value))
            return ("object", type(value).__name__, value)
        case Size(dim):
            return ("size", settled(dim))
        case Computed(operator=operator, operands=operands):
            return ("computed", operator, *(_static_key(o) for o in operands))
        case Number(value):
            return ("number", type(value).__name__, value)
        case GlobalFunction(definition):
            return ("function", id(definition))
        case Tuple(items):
            return ("tuple", *(_static_key(i) for i in items))
        case Derived(of, grad):
            return (
                "grad",
                _static_key(of),
                grad.wrt,
                grad.output,
                grad.keeping,
                grad.seedable,
                grad.with_value,
                grad.memory,
            )
        case Typed(Constant(value)) if value.ndim == 0:
            return ("constant", value.dtype.name, value.item())
        case Typed(atom, _):
            return ("atom", id(atom))
        case _:
            return ("entity", id(entity))


def instantiate(
    session: Session,
    callee: GlobalFunction | LocalFunction,
    entities: Sequence[Entity],
    values: Sequence[Typed | None],
    span: Span | None,
) -> Instance:
    """The instance for these arguments; `values` holds the run-time ones, None where the entity specialises."""
    function = surface_function(callee)
    code: object = callee.definition if isinstance(callee, GlobalFunction) else callee
    types = tuple(resolve(v.type) for v in values if v is not None)
    statics = tuple(_static_key(e) for e, v in zip(entities, values, strict=True) if v is None)
    shape = tuple(v is None for v in values)
    key = (id(code), shape, types, statics) if all(is_known(t) for t in types) else None
    if key is not None and key in session.instances:
        if session.instances[key].failed:
            raise Consequence
        return session.instances[key]
    running = [i for i in session.active if i.code is code and i.statics == (shape, *statics)]
    for instance in reversed(running):
        if key is not None and all(is_known(t) for t in instance.parameters):
            continue
        for found, expected, parameter in zip(types, instance.parameters, function.parameters, strict=False):
            session.unify_at(found, expected, span, f"argument {parameter.name} of {function.name}")
        return instance
    if len(running) >= MAX_POLYMORPHIC_DEPTH:
        error = TypeCheckError(
            f"the types of {function.name}'s arguments change with the depth of the recursion:"
            f" {', '.join(show(t) for t in types)}",
            span,
            help="pass an index instead of a smaller tensor",
        )
        session.report(error)
        raise Enough  # to go on at every depth would take for ever
    return _new_instance(session, callee, function, code, entities, values, types, (shape, *statics), key, span)


def _new_instance(
    session: Session,
    callee: GlobalFunction | LocalFunction,
    function: Function,
    code: object,
    entities: Sequence[Entity],
    values: Sequence[Typed | None],
    types: tuple[Type, ...],
    statics: tuple[object, ...],
    key: object,
    span: Span | None,
) -> Instance:
    from relay.typecheck.elaboration import growing

    result: Type = session.solver.fresh(Kind.Type)
    name = session.unique_name(function.name) if isinstance(callee, GlobalFunction) else function.name
    if isinstance(callee, GlobalFunction):
        instance = Instance(name, code, types, statics, result, Global(name))
        session.globals[name] = instance
    else:
        target = session.variable(name, FunctionType(types, result), function.span)
        instance = Instance(name, code, types, statics, result, target)
    if key is not None:
        session.instances[key] = instance
    context = _definition_context(callee)
    if isinstance(callee, GlobalFunction):
        context.annotated = {}
    parameters: list[Var] = []
    body = Output()
    remaining = iter(types)
    for surface, entity, value in zip(function.parameters, entities, values, strict=True):
        annotation = annotation_type(session, context, surface.type) if surface.type is not None else None
        if value is None:
            context.environment[surface] = entity
            continue
        var = session.variable(surface.name, next(remaining), surface.span)
        if isinstance(annotation, StackType) and isinstance(prune(var.type), TupleType):  # type: ignore[arg-type]
            parameters.append(var)
            given = growing.as_growing(session, body, Typed(var, prune(var.type)), surface.span)  # type: ignore[arg-type]
            session.unify_at(
                given.type, annotation, span or surface.span, f"argument {surface.name} of {function.name}"
            )
            context.environment[surface] = given
            continue
        if annotation is not None and var.type is not None:
            what = f"argument {surface.name} of {function.name}"
            declared = (Label(surface.span, "declared here"),) if surface.span is not None and span is not None else ()
            session.unify_at(var.type, annotation, span or surface.span, what, labels=declared)
        parameters.append(var)
        context.environment[surface] = expand(session, body, Typed(var, annotation or var.type or result), surface.span)
    label = LoopLabel(name)
    returned, failures = False, session.failures
    declared_at: list[tuple[Span | None, Callable[[], str]]] = []  # what says which result there must be

    def on_exit(out: Output, results: tuple[Entity, ...], at: Span | None) -> None:
        nonlocal returned, declared_at
        value = _result(session, out, function, instance, results[0], at)
        try:
            session.unify_at(value.type, instance.result, at, f"the result of {function.name}")
        except TypeMismatch as error:
            error.labels = tuple(Label(span, text()) for span, text in declared_at if span is not None)
            raise
        out.terminator = Exit(label, (value.atom,), at)
        returned = True
        if not declared_at:
            declared_at = [(at, lambda: f"another path returns {show(resolve(value.type))}")]

    context.handlers = {function.label: Handler(label, None, on_exit)}
    if function.result is not None:
        written = annotation_type(session, context, function.result)
        session.unify_at(written, result, function.span, "the result")
        declared_at = [(function.span, lambda: f"declared to return {show(resolve(written))}")]
    _elaborate_body(session, context, function, body, instance, span)
    if not returned and session.failures > failures:
        instance.failed = True
        raise Consequence
    instance.rule = function.rule
    if isinstance(callee, GlobalFunction) and callee.definition.gradient is not None:
        from relay.typecheck.elaboration.gradients import define_gradient

        define_gradient(session, callee, callee.definition.gradient, instance, entities, values)

    def build() -> Function:
        return Function(
            name,
            tuple(parameters),
            body.block(),
            label,
            session.final(result),
            (),
            function.documentation,
            function.span,
            instance.rule,
        )

    instance.build = build
    if isinstance(callee, LocalFunction):
        assert isinstance(instance.target, Var)
        callee.slot.items.append(Later((instance.target,), lambda: Lambda(build(), function.span)))
    return instance


def _result(
    session: Session, out: Output, function: Function, instance: Instance, entity: Entity, span: Span | None
) -> Typed:
    """A result as a value. A list has a fixed length only if it has the same one wherever the function returns."""
    fitting = _with_growing(session, out, function.label, entity, instance.result, (), span)
    return session.materialise(out, fitting, span)


def _with_growing(
    session: Session,
    out: Output,
    label: LoopLabel,
    entity: Entity,
    expected: Type | None,
    path: tuple[int, ...],
    span: Span | None,
) -> Entity:
    """A result, or a part of one, with the lists that grow as such. `expected` is the type of earlier results there."""
    from relay.typecheck.elaboration import growing

    if isinstance(entity, Typed):
        entity = expand(session, out, entity, span)
    known = None if expected is None else prune(expected)
    if growing.is_list(entity):
        if (label, path) in session.decisions.growing or isinstance(known, StackType):
            return growing.as_growing(session, out, entity, span)
        was_fixed = isinstance(known, TupleType) and known.form is not None and known.form.cls is list
        if was_fixed and not (
            isinstance(entity, Tuple) and isinstance(known, TupleType) and len(entity.items) == len(known.items)
        ):
            raise ListGrows((label, path))
    if not isinstance(entity, Tuple):
        return entity
    same = isinstance(known, TupleType) and len(known.items) == len(entity.items)
    types: Sequence[Type | None] = known.items if same and isinstance(known, TupleType) else [None] * len(entity.items)
    parts = enumerate(zip(entity.items, types, strict=True))
    items = (_with_growing(session, out, label, i, t, (*path, p), span) for p, (i, t) in parts)
    return Tuple(tuple(items), entity.form)


def _elaborate_body(
    session: Session, context: Context, function: Function, body: Output, instance: Instance, span: Span | None
) -> None:
    from relay.typecheck.elaboration.blocks import elaborate_block

    session.active.append(instance)
    session.call_spans.append((function.name, span))
    try:
        elaborate_block(session, context, function.body, body, None)
    finally:
        session.active.pop()
        session.call_spans.pop()
    session.solver.run()


def annotation_type(session: Session, context: Context, type_: Type, *, any_stays: bool = False) -> Type:
    """A written type with its variables replaced by this instance's. Each `Any` is whatever it is here, unless it
    stays."""
    from relay.typecheck.elaboration import data

    for variable in type_ids(type_):
        if variable not in context.annotated:
            context.annotated[variable] = session.solver.fresh(variable.kind, variable.name)
    written = type_ if any_stays else map_dims(type_, lambda d: _whatever(session) if d is ANY else d)
    return data.fill(session, substitute(written, context.annotated))


def _whatever(session: Session) -> Unknown:
    return session.solver.fresh(Kind.Dim, "_" if session.generic else "Any")


def type_ids(type_: object) -> list[TypeId]:
    """The named variables of a type, in order of occurrence, perhaps several times."""
    found: list[TypeId] = []
    stack: list[object] = [type_]
    while stack:
        item = stack.pop()
        match item:
            case TypeId():
                found.append(item)
            case tuple():
                stack += reversed(item)
            case Unknown():
                pass
            case DimExpr():
                found += sorted((v for v in variables(item) if isinstance(v, TypeId)), key=lambda v: v.name)
            case _:
                for name in ("arguments", "element", "content", "result", "parameters", "items", "shape", "base"):
                    if hasattr(item, name):
                        stack.append(getattr(item, name))
    return found


def expand(session: Session, out: Output, typed: Typed, span: Span | None) -> Entity:
    """A value whose type is a known tuple, component by component; anything else is itself."""
    type_ = prune(typed.type)
    if not isinstance(type_, TupleType):
        return typed
    items = []
    for index, item in enumerate(type_.items):
        name = f"{typed.atom.name}_{index}" if isinstance(typed.atom, Var) else "item"
        part = session.bind(out, Project(typed.atom, index, span), item, name, span)
        items.append(expand(session, out, part, span))
    return Tuple(tuple(items), type_.form)


# ---- functions as values


def function_value(
    session: Session, out: Output, entity: Entity, span: Span | None, fixed: Mapping[int, Entity] | None = None
) -> Typed:
    """A function as a value of the typed IR. Its instance is made when its parameters' types are known.

    `fixed` are the parameters, by position, that specialise the function; the others are the value's. Without it, those
    with a default are fixed.
    """
    if fixed is None:
        fixed = _defaults(entity)
    if isinstance(entity, Object) and isinstance(entity.value, Operator):
        entity = _operator_function(entity.value, out, span)
    if isinstance(entity, Derived):
        return _derived_value(session, out, entity, span, fixed)
    if isinstance(entity, Typed):
        return entity
    if not isinstance(entity, GlobalFunction | LocalFunction):
        what = type(entity.value).__name__ if isinstance(entity, Object) else type(entity).__name__.lower()
        raise TypeCheckError(f"a Python {what} is not a value of a Relay program", span)
    function = surface_function(entity)
    parameters = tuple(session.solver.fresh(Kind.Type) for _ in range(len(function.parameters) - len(fixed)))
    result = session.solver.fresh(Kind.Type)
    type_ = FunctionType(parameters, result)
    var = session.variable(function.name, type_, span)
    place = out.slot()

    def attempt() -> Sequence[Unknown] | None:
        waiting = [u for p in parameters for u in outer_unknowns(p) if u.kind is not Kind.BaseType]
        if waiting:
            return waiting
        make()
        return None

    def make() -> None:
        types = iter(parameters)
        entities: list[Entity] = []
        values: list[Typed | None] = []
        for position in range(len(function.parameters)):
            value = None if position in fixed else Typed(var, next(types))
            values.append(value)
            entities.append(value if value is not None else fixed[position])
        instance = instantiate(session, entity, entities, values, span)
        place.items.append(Later((var,), lambda: instance.target))
        session.unify_at(instance.result, result, span, f"the result of {function.name}")

    session.defer(attempt, span, f"the parameters of {function.name}", force=make)
    return Typed(var, type_)


def _operator_function(operator: Operator, out: Output, span: Span | None) -> LocalFunction:
    parameters = tuple(Var(name, None, span) for name in operator.operands)
    label, result = LoopLabel(operator.name), Var("result", None, span)
    body = Block((Binding((result,), OpCall(operator.name, parameters, {}, span)),), Exit(label, (result,), span))
    function = Function(
        operator.name, parameters, body, label, None, tuple(Parameter() for _ in parameters), None, span
    )

    class NoScope:
        def resolve(self, name: str) -> object:
            raise InternalError(f"operators have no free names, found {name}")

        def names(self) -> list[str]:
            return []

    return LocalFunction(function, {}, out.slot(), Context({}, {}, NoScope()), operator.name)


def _derived_value(
    session: Session, out: Output, entity: Derived, span: Span | None, fixed: Mapping[int, Entity]
) -> Typed:
    grad = entity.grad
    function = function_value(session, out, entity.of, span, fixed)
    inner_type: Type = prune(function.type)  # type: ignore[assignment]
    type_: Type = session.solver.fresh(Kind.Type)
    if isinstance(inner_type, FunctionType):
        seed = (session.solver.fresh(Kind.Type),) if grad.seedable else ()
        type_ = FunctionType((*inner_type.parameters, *seed), session.solver.fresh(Kind.Type))
    wrt = None
    if grad.wrt is not None:
        for position in grad.wrt:
            if position in fixed:
                raise DifferentiationError(
                    f"there is no gradient with respect to parameter {position}: it is no tensor", span
                )
        wrt = tuple(position - sum(f < position for f in fixed) for position in grad.wrt)
    at = grad.span or span
    node = attrs.evolve(grad, function=function.atom, wrt=wrt, span=at)  # type: ignore[misc]

    def attempt() -> Sequence[Unknown] | None:
        waiting = list(unknowns(inner_type))
        if waiting:
            return waiting
        known = resolve(inner_type)
        if not isinstance(known, FunctionType):
            raise TypeCheckError(f"only a function can be differentiated, found {show(known)}", span)
        for position in range(len(known.parameters)) if wrt is None else wrt:
            parameter = known.parameters[position] if position < len(known.parameters) else None
            if parameter is not None and _holds(parameter, StackType):
                raise DifferentiationError(
                    f"there is no gradient with respect to a list that grows, {show(parameter)}",
                    grad.span or span,
                    help="name the other parameters, `wrt=..`, and differentiate by what the elements are made of",
                )
            if parameter is not None and _holds(parameter, RefType):
                raise DifferentiationError(
                    f"there is no gradient with respect to a reference, {show(parameter)}",
                    grad.span or span,
                    help="name the other parameters, `wrt=..`; differentiate by what it holds: pass `r.value`",
                )
        try:
            session.unify_at(gradient_type(known, node, session.monomorphic), type_, span, "the derivative")
        except DifferentiationError as error:
            from relay.typecheck.elaboration.lost_gradients import explain

            raise explain(error, session, entity.of, grad.output).at(grad.span or span) from None
        return None

    session.defer(attempt, span, "the differentiated function")
    return session.bind(out, node, type_, "gradient", span)


def _holds(type_: Type, kind: type[StackType] | type[RefType]) -> bool:
    """Whether values of a type hold, in tuples, a list whose length only the run knows, or a reference."""
    known = prune(type_)
    if isinstance(known, TupleType):
        return any(_holds(item, kind) for item in known.items)
    return isinstance(known, kind)


def call_value(
    session: Session, out: Output, callee: Typed, arguments: Sequence[Entity], span: Span | None, name: str
) -> Entity:
    """Call a function value."""
    values = [session.materialise(out, a, span) for a in arguments]
    type_ = prune(callee.type)
    if isinstance(type_, FunctionType) and len(type_.parameters) != len(values):
        count = len(type_.parameters)
        where = callee.atom.span
        labels = (Label(where, f"it is {show(resolve(type_))}"),) if where is not None else ()
        raise TypeCheckError(wrong_count(name, count, count, len(values)), span, labels=labels)
    if not isinstance(type_, FunctionType | Unknown):
        raise TypeCheckError(f"{name} is no function, it is {show(resolve(callee.type))}", span)
    result = session.solver.fresh(Kind.Type)
    session.unify_at(callee.type, FunctionType(tuple(v.type for v in values), result), span, name)
    session.solver.run()
    typed = session.bind(out, Call(callee.atom, tuple(v.atom for v in values), span), result, "result", span)
    return expand(session, out, typed, span)


def call_derived(
    session: Session,
    out: Output,
    callee: Derived,
    arguments: Sequence[Entity],
    keywords: Sequence[tuple[str, Entity]],
    span: Span | None,
) -> Entity:
    """Call `grad(f)`."""
    base: Entity = callee.of
    seeds = 1 if callee.grad.seedable else 0
    while isinstance(base, Derived):
        seeds += 1 if base.grad.seedable else 0
        base = base.of
    fixed: dict[int, Entity] = {}
    if isinstance(base, GlobalFunction | LocalFunction):
        ordinary = arguments[: len(arguments) - seeds]
        entities = bind_arguments(base, ordinary, keywords, span)
        given = {id(e) for e in ordinary} | {id(e) for _, e in keywords}
        static = static_positions(base)
        for position, entity in enumerate(entities):
            if id(entity) not in given or position in static or _specialises(entity):
                fixed[position] = entity
            if position in static:
                require_static(entity, surface_function(base), position, span)
        seed_arguments = arguments[len(arguments) - seeds :]
        arguments = [*(e for i, e in enumerate(entities) if i not in fixed), *seed_arguments]
    elif keywords:
        raise TypeCheckError("a derivative takes no keyword arguments here", span)
    elif isinstance(base, Typed) and isinstance(prune(base.type), Unknown):
        parameters = tuple(session.solver.fresh(Kind.Type) for _ in range(len(arguments) - seeds))
        session.unify_at(base.type, FunctionType(parameters, session.solver.fresh(Kind.Type)), span, "the function")
    function = function_value(session, out, callee, span, fixed)
    result = call_value(session, out, function, arguments, span, "the derivative")
    if not fixed or callee.grad.wrt is not None:
        return result
    count = len(arguments) - (1 if callee.grad.seedable else 0)
    if not callee.grad.with_value:
        return _in_places(result, count, len(callee.grad.keeping), fixed)
    if not isinstance(result, Tuple):
        return result
    return Tuple((result.items[0], _in_places(result.items[1], count, len(callee.grad.keeping), fixed)))


def _in_places(gradients: Entity, count: int, kept: int, fixed: Mapping[int, Entity]) -> Entity:
    """So many gradients and kept results, with None in the places of the parameters that specialise the function."""
    if count + kept == 1:
        items: tuple[Entity, ...] = (gradients,)
    elif isinstance(gradients, Tuple):
        items = gradients.items
    else:
        return gradients
    rest = iter(items)
    placed = [Object(None) if i in fixed else next(rest) for i in range(count + len(fixed))]
    return Tuple((*placed, *rest)) if len(placed) + kept > 1 else placed[0]
