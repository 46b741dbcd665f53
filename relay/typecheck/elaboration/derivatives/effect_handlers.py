"""Handlers of effects: implicit keys of random numbers, and parameters.

    with_key__(f, key)             f(), whose draws take their keys from this one
    with_params__(f, values)       f(), whose parameters have these values
    init_params__(f, key)          values for the parameters of f(), which is not run, by their initializers

Their texts are in `relay/api/effects`; what functions see of them is their evidence (`effects/evidence.py`).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

import attrs

from relay.errors import Label, Span, TypeCheckError, TypeMismatch
from relay.ir.definition import Definition
from relay.ir.effects import Effects
from relay.ir.expr import Binding, Constant, OpCall, RefRead, RefWrite, Var
from relay.ir.types import UINT32, Form, TensorType, Unknown, prune, show
from relay.operator import lookup
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    PythonNumber,
    PythonObject,
    Tuple,
    TypedBlockBuilder,
    is_of_template,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly
from relay.typecheck.elaboration.dynamic_shapes import data_dependent
from relay.typecheck.elaboration.effects.effect_notes import DRAWS, HAS_PARAMETERS
from relay.typecheck.elaboration.effects.evidence import PARAM, RNG, Evidence, Initializer
from relay.typecheck.elaboration.expressions import operators, references
from relay.typecheck.elaboration.expressions.attributes import open_shape, static_value
from relay.typecheck.elaboration.values.expansion import settle
from relay.typecheck.unification import resolve

OPERATIONS = ("with_key__", "with_params__", "init_params__")
"""The names of the operations."""

Site = tuple[Checker, Context, TypedBlockBuilder, Span | None]


def apply(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    name: str,
    arguments: Sequence[AbstractValue],
    span: Span | None,
) -> AbstractValue:
    """Call one of the operations of this file."""
    site, (function, given) = (checker, context, out, span), arguments
    match name:
        case "with_key__":
            return _handled(site, _with_key(checker, out, given, span), function, [])
        case "with_params__":
            evidence = Evidence(PARAM, out.slot(), checker.sizes_in_scope(), values=_values(checker, given, span))
            return _handled(site, evidence, function, [])
        case _:
            assert name == "init_params__"
            return _initial_values(site, function, given)


def _handled(
    site: Site, evidence: Evidence, function: AbstractValue, arguments: Sequence[AbstractValue]
) -> AbstractValue:
    """The call of a function that sees a handler. Its effect cannot be seen outside."""
    checker, context, out, span = site
    inner = Effects(handled=evidence.effect)
    checker.effects.include(inner)
    seen = (*checker.frame.evidence, evidence)
    with checker.at_frame(attrs.evolve(checker.frame, evidence=seen, effects=inner)):
        return checker.engine.call(checker, context, out, function, arguments, (), span, [])


def enter(
    checker: Checker, out: TypedBlockBuilder, effect: str, given: AbstractValue, span: Span | None
) -> AbstractValue:
    """The `with` of a handler: what follows in the block sees it."""
    if effect == RNG:
        evidence = _with_key(checker, out, given, span)
    else:
        evidence = Evidence(PARAM, out.slot(), checker.sizes_in_scope(), values=_values(checker, given, span))
    inner = Effects(handled=effect)
    checker.effects.include(inner)
    evidence.outer.append(checker.frame)
    checker.frame = attrs.evolve(checker.frame, evidence=(*checker.frame.evidence, evidence), effects=inner)
    return PythonObject(None)


def leave(checker: Checker) -> AbstractValue:
    """The end of a `with`."""
    before = checker.frame.evidence[-1].outer.pop()
    checker.frame = attrs.evolve(checker.frame, evidence=before.evidence, effects=before.effects)
    return PythonObject(None)


def _evidence(checker: Checker, effect: str) -> Evidence | None:
    """That of the innermost handler of an effect."""
    return next((e for e in reversed(checker.frame.evidence) if e.effect == effect), None)


# ---- random numbers


def _with_key(checker: Checker, out: TypedBlockBuilder, key: AbstractValue, span: Span | None) -> Evidence:
    typed = checker.materialize(out, key, span)
    type_ = prune(typed.type)
    base = prune(type_.base) if isinstance(type_, TensorType) else None
    if base != UINT32 and not isinstance(base, Unknown) and not isinstance(type_, Unknown):
        message = f"a key of random numbers is Tensor[uint32, (2,)], found {show(resolve(typed.type))}"
        raise TypeMismatch(message, span, help="pass relay.random.key(seed)")
    cell = references.new_reference(checker, out, typed, span)
    return Evidence(RNG, out.slot(), checker.sizes_in_scope(), key=cell)


def next_key(checker: Checker, out: TypedBlockBuilder, what: str, span: Span | None) -> AbstractValue:
    """A key that nothing else has: one half of what the handler's key is split into, the other half of which is the
    handler's key from then on. Raises TypeCheckError where there is no handler around."""
    checker.effect(RNG, DRAWS, span)
    evidence = _evidence(checker, RNG)
    if evidence is None and not checker.generic:
        message = f"{what} draws with an implicit key, and no handler around it gives one"
        raise TypeCheckError(message, span, help=f"call relay.rng.handle({_entry(checker)})(key, ..)")
    if evidence is None:
        return operators.apply(checker, out, lookup("zeros"), [], {"shape": (2,), "dtype": UINT32}, span, [])
    cell = evidence.key
    assert cell is not None
    content = prune(cell.type).content  # type: ignore[union-attr]
    key = checker.bind(out, RefRead(cell.atom, span), content, "key", span)
    keys = checker.engine.call_operator(checker, out, lookup("random_split"), [key], (), span, [])
    mine, rest = (checker.engine.index(checker, out, keys, [PythonNumber(i)], span) for i in (0, 1))
    kept = checker.materialize(out, rest, span)
    out.items.append(Binding((), RefWrite(cell.atom, kept.atom, span)))
    return mine


def _entry(checker: Checker) -> str:
    """The function that Python calls, which may be in handlers of other effects, as one writes it."""
    written = (_written_name(instance.code) for instance in checker.frame.active)
    return next((name for name in written if name is not None), "f")


def _written_name(code: object) -> str | None:
    """A function as one writes it: by its name, or `relay.grad(f)`; None if it is in the text of a template."""
    match code:
        case DerivativeFunction(of=function):
            name = _written_name(function)
            return None if name is None else f"relay.grad({name})"
        case GlobalFunction(definition=definition):
            return _written_name(definition)
        case Definition(function=function) | LocalFunction(function=function):
            return None if is_of_template(function.span) else function.name.strip("<>")
        case _:
            return None


# ---- parameters


def _values(checker: Checker, given: AbstractValue, span: Span | None) -> Mapping[str, AbstractValue] | None:
    """The values of parameters by name; None in a scheme that does not know them, whose types initializers tell."""
    if checker.generic and isinstance(given, DynamicValue) and isinstance(prune(given.type), Unknown):
        return None
    if not isinstance(given, Tuple) or given.form is None or given.form.cls is not dict:
        raise TypeMismatch(
            "parameters are a dict of tensors by name", span, help="as relay.params.init(f)(key, ..) returns"
        )
    return dict(zip(given.form.names, given.items, strict=True))


def parameter(
    checker: Checker,
    context: Context,
    out: TypedBlockBuilder,
    arguments: tuple[AbstractValue, AbstractValue, AbstractValue],
    span: Span | None,
) -> AbstractValue:
    """`relay.param(name, shape, init)`. Raises TypeCheckError where no handler around has a value for it."""
    said, shape, init = arguments
    checker.effect(PARAM, HAS_PARAMETERS, span)
    name = static_value(said, "the name of a parameter", span)
    if not isinstance(name, str):
        raise TypeCheckError(f"the name of a parameter is a text, found {name!r}", span)
    evidence = _evidence(checker, PARAM)
    site = (checker, context, out, span)
    if evidence is not None and evidence.values is not None:
        return _parameter_value(checker, out, evidence.values, name, shape, span)
    if evidence is None and not checker.generic:
        entry = _entry(checker)
        message = f"{entry} has the parameter {name!r}, and no handler around it gives its value"
        help = f"params = relay.params.init({entry})(key, ..); relay.params.apply({entry})(params, ..)"
        raise TypeCheckError(message, span, help=help)
    made = _handled(site, _with_key(checker, out, _blank_key(checker, out, span), span), init, [shape])
    if evidence is not None:
        type_ = _tensor_type(checker, out, made, name, span)
        before = evidence.found.setdefault(name, Initializer(shape, init, type_, span))
        if before.type is not type_:
            declared = (Label(before.span, "and here"),) if before.span not in (None, span) else ()
            checker.unify_at(type_, before.type, span, f"the parameter {name!r}", labels=declared)
    return made


def _parameter_value(
    checker: Checker,
    out: TypedBlockBuilder,
    values: Mapping[str, AbstractValue],
    name: str,
    shape: AbstractValue,
    span: Span | None,
) -> AbstractValue:
    """The value that a handler has for a parameter."""
    if name not in values:
        close = difflib.get_close_matches(name, values, n=1)
        there = ", ".join(map(repr, values)) or "none"
        help = f"did you mean {close[0]!r}?" if close else "relay.params.init makes values for all parameters"
        raise TypeCheckError(f"there is no value for the parameter {name!r}; there are {there}", span, help=help)
    value = checker.materialize(out, values[name], span)
    dims = static_value(shape, f"the shape of the parameter {name!r}", span, symbolic=True)
    base = _tensor_type(checker, out, value, name, span).base
    wanted = TensorType(base, dims if isinstance(dims, tuple) else (dims,))
    checker.unify_at(value.type, wanted, span, f"the parameter {name!r}")
    return value


def _tensor_type(
    checker: Checker, out: TypedBlockBuilder, made: AbstractValue, name: str, span: Span | None
) -> TensorType:
    value = settle(checker, out, checker.materialize(out, made, span), span)
    type_ = prune(value.type) if isinstance(value, DynamicValue) else None
    if isinstance(type_, Unknown) or (isinstance(type_, TensorType) and open_shape(type_.shape)):
        raise SchemeOnly(span, f"the type of the parameter {name!r}")
    if not isinstance(type_, TensorType):
        raise TypeMismatch(f"a parameter is a tensor, and {name!r} is not", span)
    if data_dependent.data_dependent_dims(type_):
        raise TypeMismatch(f"the shape of the parameter {name!r} depends on values: {show(resolve(type_))}", span)
    return type_


def _blank_key(checker: Checker, out: TypedBlockBuilder, span: Span | None) -> DynamicValue:
    node = OpCall("zeros", (), {"shape": (2,), "dtype": UINT32}, span)
    return checker.bind(out, node, TensorType(UINT32, (2,)), "key", span)


def _initial_values(site: Site, function: AbstractValue, key: AbstractValue) -> AbstractValue:
    """The dict of parameters that a function has, each made by its initializer. Of the function only the types are
    used."""
    checker, context, out, span = site
    if checker.generic:
        raise SchemeOnly(span, "the parameters of the function")
    aside = TypedBlockBuilder()
    with checker.effects_of(Effects()):
        drawing = _with_key(checker, aside, _blank_key(checker, aside, span), span)
        having = Evidence(PARAM, aside.slot(), checker.sizes_in_scope())
        with checker.at_frame(attrs.evolve(checker.frame, evidence=(*checker.frame.evidence, drawing))):
            _handled((checker, context, aside, span), having, function, [])
    drawing = _with_key(checker, out, key, span)
    made = []
    for name, found in having.found.items():
        make = _known_function(checker, out, found.make, name, found.span)
        value = _handled(site, drawing, make, [found.shape])
        type_ = _tensor_type(checker, out, value, name, found.span)
        checker.unify_at(type_, found.type, found.span, f"the parameter {name!r}")
        made.append(value)
    return Tuple(tuple(made), Form(dict, tuple(having.found)))


def _known_function(
    checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, name: str, span: Span | None
) -> AbstractValue:
    """An initializer outside of the function that it was found in. Raises TypeCheckError if it uses a value of that."""
    moved: dict[int, AbstractValue] = {}

    def move(part: AbstractValue) -> AbstractValue:
        if id(part) in moved:
            return moved[id(part)]
        if isinstance(part, Tuple):
            return Tuple(tuple(map(move, part.items)), part.form)
        if isinstance(part, DerivativeFunction):
            return attrs.evolve(part, of=move(part.of))
        if isinstance(part, DynamicValue) and not isinstance(part.atom, Constant):
            raise TypeCheckError(
                f"the initializer of the parameter {name!r} uses a value that is computed",
                span,
                help="compute it in the initializer, from the shape that this is given",
            )
        if not isinstance(part, LocalFunction):
            return part
        environment: dict[Var, AbstractValue] = {}
        slot, sizes, seen = out.slot(), checker.sizes_in_scope(), checker.frame.evidence
        found = attrs.evolve(part, slot=slot, sizes=sizes, evidence=seen, environment=environment)
        moved[id(part)] = found
        environment.update((variable, move(value)) for variable, value in part.environment.items())
        return found

    return move(entity)
