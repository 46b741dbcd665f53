"""Where a function's result stops to be differentiable: the line, and the variables that lead there."""

from __future__ import annotations

from collections.abc import Mapping

from relay.errors import DifferentiationError, InternalError, Label, RelayError, Span
from relay.ir.expr import (
    Block,
    Call,
    Exit,
    Expr,
    Function,
    Global,
    If,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    Next,
    OpCall,
    Var,
    Yield,
)
from relay.ir.traverse import blocks, operands
from relay.ir.types import BaseType, TensorType, TupleType, prune, show
from relay.typecheck.elaboration.entities import Entity, GlobalFunction, LocalFunction
from relay.typecheck.elaboration.session import Session


def explain(error: DifferentiationError, session: Session, entity: Entity, output: int | None) -> DifferentiationError:
    """The error with the place in the function's code that makes the result what it is."""
    function = _typed(session, entity)
    if function is None:
        return error
    graph = _Graph(function)
    result = graph.result(output or 0)
    if result is None:
        return error
    if _is_float(result):
        span = graph.spans.get(result)
        if span is not None and result.type is not None:
            error.labels = (*error.labels, Label(span, f"{result.name}: {show(result.type)}"))
        return error
    found = graph.lost(result)
    if found is None:
        return error
    lost, source = found
    span, path = graph.spans.get(lost), graph.path(source)
    if span is not None and lost.type is not None:
        error.labels = (*error.labels, Label(span, f"{show(lost.type)} has no gradient"))
    if path:
        error.notes = (*error.notes, f"{graph.maker(lost)} reads {' -> '.join(path)}")
    return error


def _typed(session: Session, entity: Entity) -> Function | None:
    """The typed code of a function as far as it is known."""
    code: object = entity.definition if isinstance(entity, GlobalFunction) else entity
    if not isinstance(entity, GlobalFunction | LocalFunction):
        return None
    for instance in (*session.globals.values(), *session.instances.values()):
        if instance.code is code and instance.build is not None:
            try:
                return instance.build()
            except (RelayError, InternalError):  # it is not finished
                return None
    return None


def _is_float(var: Var) -> bool:
    type_ = None if var.type is None else prune(var.type)
    if isinstance(type_, TupleType):
        return any(_is_float(Var("", t)) for t in type_.items)
    base = prune(type_.base) if isinstance(type_, TensorType) else None
    return isinstance(base, BaseType) and base.is_float


class _Graph:
    """What each variable of a function is computed from."""

    def __init__(self, function: Function) -> None:
        self.sources: dict[Var, list[Var]] = {p: [] for p in function.parameters}
        self.spans: dict[Var, Span | None] = {}
        self.values: dict[Var, Expr] = {}
        self._parameters = function.parameters
        self._label = function.label
        self._results: list[Var] = []
        self._block(function.body, (), {})

    def _block(
        self, block: Block, yields: tuple[Var, ...], labels: Mapping[LoopLabel, tuple[tuple[Var, ...], tuple[Var, ...]]]
    ) -> None:
        for binding in block.bindings:
            value, targets = binding.value, binding.targets
            inner = dict(labels)
            for target in targets:
                self.spans[target], self.values[target] = value.span, value
                sources = self.sources.setdefault(target, [])
                if not isinstance(value, If | Loop | Match):
                    sources += [a for a in operands(value) if isinstance(a, Var)]
            if isinstance(value, Loop):
                inner[value.label] = (value.parameters, targets)
                for parameter, start in zip(value.parameters, value.initial, strict=True):
                    self.sources.setdefault(parameter, []).extend([start] if isinstance(start, Var) else [])
                if value.counter is not None:
                    for parameter, target in zip(value.parameters, targets, strict=True):
                        self.sources[target].append(parameter)
            if isinstance(value, Match) and isinstance(value.value, Var):
                for arm in value.arms:
                    for field in arm.fields:
                        self.sources.setdefault(field, []).append(value.value)
            conditions = {a.condition for a in value.arms} if isinstance(value, If) else set()
            for part in blocks(value):
                self._block(part, () if part in conditions else targets, inner)
        match block.terminator:
            case Yield(values):
                self._flow(values, yields)
            case Next(label, values) if label in labels:
                self._flow(values, labels[label][0])
            case Exit(label, values) if label in labels:
                self._flow(values, labels[label][1])
            case Exit(label, values) if label is self._label:
                self._results += [v for v in values if isinstance(v, Var)]
            case _:
                pass

    def _flow(self, values: tuple[object, ...], targets: tuple[Var, ...]) -> None:
        for value, target in zip(values, targets, strict=False):
            if isinstance(value, Var):
                self.sources.setdefault(target, []).append(value)

    def result(self, output: int) -> Var | None:
        """The variable that is returned, or this component of it."""
        if not self._results:
            return None
        value = self.values.get(self._results[0])
        if isinstance(value, MakeTuple) and -len(value.items) <= output < len(value.items):
            item = value.items[output]
            return item if isinstance(item, Var) else None
        return self._results[0]

    def lost(self, result: Var) -> tuple[Var, Var] | None:
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
                    if not names or names[-1] != step.name:
                        names.append(step.name)
                    step = after[step]
                return names
            for source in self.sources.get(var, ()):
                if source not in after:
                    after[source] = var
                    pending.append(source)
        return []

    def maker(self, var: Var) -> str:
        """What computes a variable."""
        match self.values.get(var):
            case OpCall(name):
                return name
            case Call(Global(name)):
                return name
            case _:
                return var.name
