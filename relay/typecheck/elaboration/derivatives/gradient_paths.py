"""Gradient-path diagnostics: the line and the variables at which a result loses its gradient."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from relay.errors import DifferentiationError, InternalError, Label, RelayError, Span
from relay.ir.derivative import has_gradient
from relay.ir.expr import (
    Atom,
    Call,
    Construct,
    Expr,
    Function,
    Global,
    If,
    Lambda,
    Loop,
    MakeTuple,
    Match,
    OpCall,
    RefWrite,
    StackPush,
    StackSet,
    Var,
)
from relay.ir.traverse import moves, operands, returns, walk
from relay.ir.types import NONE, UNIT, BaseType, FunctionType, TensorType, TupleType, prune, show
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DerivativeFunction,
    GlobalFunction,
    LocalFunction,
    surface_function,
)
from relay.typecheck.elaboration.checker import Checker, Instance
from relay.typecheck.unification import resolve


def explain(
    error: DifferentiationError, checker: Checker, entity: AbstractValue, output: int | None
) -> DifferentiationError:
    """The error about a function's result, with the place in the user's code that makes the result what it is."""
    function = _typed_function(checker, entity)
    if function is None:
        return error
    graph = _Graph(checker, function)
    result = graph.result(output or 0)
    if result is None:
        return error
    lost, source = (result, result) if _is_float(result) else graph.lost_gradient(result) or (result, result)
    span, type_ = graph.spans.get(lost), None if lost.type is None else resolve(lost.type)
    if span is not None and type_ is not None and type_ not in (UNIT, NONE):
        text = f"{graph.display_name(lost)}: {show(type_)}" if _is_float(lost) else f"{show(type_)} has no gradient"
        error.labels = (*error.labels, Label(span, text))
    path = graph.path(source)
    if lost is not source and path:
        error.notes = (*error.notes, f"{graph.maker(lost)} reads {' -> '.join(path)}")
    elif len(path) > 1:
        error.notes = (*error.notes, f"it is computed along {' -> '.join(path)}")
    return error


def check_parameters(
    checker: Checker,
    entity: AbstractValue,
    function: FunctionType,
    wrt: Iterable[int],
    fixed: frozenset[int],
    span: Span | None,
) -> None:
    """Raises DifferentiationError for a parameter in `wrt` that has no gradient. `fixed` are the positions of
    parameters that the function's type omits."""
    while isinstance(entity, DerivativeFunction):
        entity = entity.of
    code = surface_function(entity) if isinstance(entity, GlobalFunction | LocalFunction) else None
    named = [p for i, p in enumerate(code.parameters) if i not in fixed] if code is not None else []
    for position in wrt:
        if not 0 <= position < len(function.parameters) or has_gradient(
            function.parameters[position], checker.monomorphic_type
        ):
            continue
        type_ = show(resolve(function.parameters[position]))
        name, place = (
            (named[position].name, named[position].span) if position < len(named) else (f"parameter {position}", None)
        )
        raise DifferentiationError(
            f"there is no gradient with respect to {name}, which is {type_}",
            span,
            labels=(Label(place, f"{name}: {type_}"),) if place is not None else (),
            help="leave it out of wrt, or pass a float",
        )


def _typed_function(checker: Checker, entity: object) -> Function | None:
    """The typed code of a function as far as it is known."""
    code: object = entity.definition if isinstance(entity, GlobalFunction) else entity
    if not isinstance(entity, GlobalFunction | LocalFunction):
        return None
    made = (*checker.module.globals.values(), *checker.module.instances.values())
    return _build_first(i for i in made if i.code is code)


def _build_first(instances: Iterable[Instance]) -> Function | None:
    for instance in instances:
        if instance.build is not None:
            try:
                built = instance.build()
                return built if isinstance(built, Function) else None
            except (RelayError, InternalError):  # it is not finished
                return None
    return None


def _is_float(var: Var) -> bool:
    type_ = None if var.type is None else prune(var.type)
    if isinstance(type_, TupleType):
        return any(_is_float(Var("", t)) for t in type_.items)
    base = prune(type_.base) if isinstance(type_, TensorType) else None
    return isinstance(base, BaseType) and base.is_float


LONGEST_TEXT = 40
"""The number of characters of the user's code that are shown for a variable without a name."""


class _Graph:
    """The dependences of variables: those of a function, and of the functions that it calls."""

    def __init__(self, checker: Checker, function: Function) -> None:
        self.sources: dict[Var, list[Var]] = {}
        self.spans: dict[Var, Span | None] = {}
        self.values: dict[Var, Expr] = {}
        self._checker = checker
        self._parameters = function.parameters
        self._returned: dict[Function, list[Var]] = {}
        self._entry = function
        for cast, source in checker.module.pending_casts.items():
            self.spans[cast] = cast.span
            self._flow((source,), (cast,))
        self._read(function)

    def _read(self, function: Function) -> list[Var]:
        """The variables that a function returns, of which those of the calls on the way to it are not complete."""
        found = self._returned.get(function)
        if found is None:
            found = self._returned[function] = []
            for parameter in function.parameters:
                self.sources.setdefault(parameter, [])
                self.spans[parameter] = parameter.span
            for binding in walk(function.body):
                self._binding(binding.value, binding.targets)
            for values, targets in moves(function.body):
                self._flow(values, targets)
            for end in returns(function):
                found += [v for v in end.values if isinstance(v, Var)]
        return found

    def _callee_function(self, function: Atom) -> Function | None:
        match function:
            case Global(name):
                instance = self._checker.module.globals.get(name)
                return None if instance is None else _build_first([instance])
            case Var():
                made = self.values.get(function)
                return made.function if isinstance(made, Lambda) else None
            case _:
                return None

    def _binding(self, value: Expr, targets: tuple[Var, ...]) -> None:
        for target in targets:
            self.spans[target], self.values[target] = value.span, value
            self.sources.setdefault(target, [])
        match value:
            case If() | Loop():
                pass
            case Match(matched, match_arms):
                made = self.values.get(matched) if isinstance(matched, Var) else None
                for arm in match_arms:
                    if isinstance(made, Construct) and made.constructor == arm.constructor:
                        self._flow(made.arguments, arm.fields)
                    else:
                        self._flow((matched,) * len(arm.fields), arm.fields)
            case Call(function, arguments) if (callee := self._callee_function(function)) is not None:
                self._flow(arguments, callee.parameters)
                self.sources[targets[0]] += self._read(callee)
            case (
                RefWrite(Var() as reference, content)
                | StackPush(Var() as reference, content)
                | StackSet(Var() as reference, _, content)
            ):
                self._flow((content,), (reference,))
                self._flow((reference,), targets)
            case _:
                for target in targets:
                    self._flow(operands(value), (target,) * len(operands(value)))

    def _flow(self, values: Sequence[Atom], targets: Sequence[Var]) -> None:
        for value, target in zip(values, targets, strict=False):
            if isinstance(value, Var):
                self.sources.setdefault(target, []).append(value)

    def result(self, output: int) -> Var | None:
        """The variable that is returned, or this component of it."""
        results = self._returned[self._entry]
        if not results:
            return None
        value = self.values.get(results[0])
        if isinstance(value, MakeTuple) and -len(value.items) <= output < len(value.items):
            item = value.items[output]
            return item if isinstance(item, Var) else None
        return results[0]

    def lost_gradient(self, result: Var) -> tuple[Var, Var] | None:
        """The nearest variable without a gradient that is computed from a float variable, and that one."""
        seen, pending = {result}, [result]
        for var in pending:
            for source in self.sources.get(var, ()):
                if _is_float(source):
                    return var, source
                if source not in seen:
                    seen.add(source)
                    pending.append(source)
        return None

    def path(self, end: Var) -> list[str]:
        """The names on the shortest way from a parameter to a variable."""
        after: dict[Var, Var | None] = {end: None}
        pending = [end]
        for var in pending:
            if var in self._parameters:
                names: list[str] = []
                step: Var | None = var
                while step is not None:
                    name, place = self.display_name(step), self.spans.get(step)
                    is_internal = place is not None and place.is_internal
                    if not is_internal and (not names or names[-1] != name):
                        names.append(name)
                    step = after[step]
                return names
            for source in self.sources.get(var, ()):
                if source not in after:
                    after[source] = var
                    pending.append(source)
        return []

    def display_name(self, var: Var) -> str:
        """A variable's name, or the text of what it is the value of if the user has not given it one."""
        text = _text(self.spans.get(var))
        if text is None or var in self._parameters or var.name in re.findall(r"\w+", _line(self.spans[var])):
            return var.name
        return text

    def maker(self, var: Var) -> str:
        """The name of what computes a variable."""
        match self.values.get(var):
            case OpCall(name) if name in re.findall(r"\w+", _line(self.spans.get(var))):
                return name
            case Call(Global(name)):
                return name
            case _:
                return self.display_name(var)


def _line(span: Span | None) -> str:
    lines = span.source.text.splitlines() if span is not None else []
    return lines[span.line - 1] if span is not None and span.line <= len(lines) else ""


def _text(span: Span | None) -> str | None:
    """The source of an expression, if it is short."""
    if span is None or span.line != span.end_line:
        return None
    text = _line(span)[span.column - 1 : span.end_column - 1]
    return f"`{text}`" if 0 < len(text) <= LONGEST_TEXT else None
