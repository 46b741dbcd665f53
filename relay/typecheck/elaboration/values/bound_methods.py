"""Methods of one value as functions: `apply(layer.forward, x)`, `f = layer.forward`.

Called at once, `layer.forward(x)` is a call of the method. Where it is passed on, it is a function that captures the
value and calls the method.
"""

from __future__ import annotations

from relay.errors import InternalError, Span
from relay.ir.definition import Scope, complete_definition, data_class
from relay.ir.expr import Binding, Block, Exit, Function, LoopLabel, Parameter, Static, Var
from relay.ir.surface import Apply
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    GlobalFunction,
    LocalFunction,
    Method,
    Tuple,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.expressions.arguments import surface_function
from relay.typecheck.elaboration.values import data, records


class _NoScope(Scope):
    """Of code that mentions no global name."""

    def resolve(self, name: str) -> object:
        raise InternalError(f"a bound method has no free names, found {name}")

    def names(self) -> list[str]:
        return []


def as_function(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """The function that a method is which the class of a value defines; anything else as it is."""
    method = _function(entity) if isinstance(entity, Method) else None
    if method is None or not isinstance(entity, Method):
        return entity
    if _is_static(entity):
        return method
    code = surface_function(method)
    said = code.signature or tuple(Parameter() for _ in code.parameters)
    value, *parameters = (Var(p.name, None, p.span) for p in code.parameters)
    by_name = [(p.name, p) for p, s in zip(parameters, said[1:], strict=True) if s.kind == "keyword_only"]
    by_place = [p for p, s in zip(parameters, said[1:], strict=True) if s.kind != "keyword_only"]
    result, label = Var("result", None, span), LoopLabel(entity.name)
    call = Apply(Static(method, span), (value, *by_place), tuple(by_name), span)
    body = Block((Binding((result,), call),), Exit(label, (result,), span))
    function = Function(entity.name, tuple(parameters), body, label, None, tuple(said[1:]), None, code.span)
    environment = {value: entity.value}
    context = Context({}, {}, _NoScope())
    return LocalFunction(function, environment, out.slot(), checker.sizes_in_scope(), context, entity.name)


def _function(method: Method) -> GlobalFunction | None:
    """The function behind a method of a data type or of a record."""
    if isinstance(method.value, Tuple):
        return None if method.value.form is None else records.own_method(method.value, method.name)
    type_ = data.data_type(method.value)
    owner = None if type_ is None else data_class(complete_definition(type_.definition))
    if owner is None or method.name not in owner.methods:
        return None
    return GlobalFunction(owner.methods[method.name]())


def _is_static(method: Method) -> bool:
    """Whether a method of a data type does not take the value."""
    type_ = data.data_type(method.value)
    owner = None if type_ is None else data_class(type_.definition)
    return owner is not None and method.name in owner.static
