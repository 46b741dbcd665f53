"""Methods of one value as functions, `apply(layer.forward, x)`, `f = layer.forward`, and partial calls from Python.

Called at once, `layer.forward(x)` is a call of the method. Where it is passed on, it is a function that captures the
value and calls the method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from relay.errors import Span, TypeCheckError
from relay.ir.definition import Definition, complete_definition, data_class, giving_back
from relay.ir.expr import Binding, Block, Exit, Function, LoopLabel, Parameter, Static, Var
from relay.ir.partial_calls import PartialCall
from relay.ir.surface import Apply
from relay.ir.types import Form, TensorType, prune
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    Method,
    PythonObject,
    TensorMethod,
    Tuple,
    TypedBlockBuilder,
    empty_context,
    surface_function,
)
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.values import data, records


def as_function(checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None) -> AbstractValue:
    """The function that a method is which the class of a value defines, or that Python has given some of its arguments;
    a method of a tensor as a partial call; anything else as it is."""
    if isinstance(entity, Tuple) and entity.form is not None and entity.form.cls is PartialCall:
        function, given, named = parts_of(entity)
        if isinstance(function, GlobalFunction):
            return _with_arguments(checker, out, function, given, named, function.definition.function.name, span)
        return entity
    if not isinstance(entity, Method):
        return entity
    method = method_function(entity)
    if method is None and isinstance(entity.value, DynamicValue) and isinstance(prune(entity.value.type), TensorType):
        parts = PythonObject(TensorMethod(entity.name)), Tuple((entity.value,)), Tuple((), Form(dict))
        return Tuple(parts, Form(PartialCall, ("func", "args", "keywords")))
    if method is None:
        return entity
    if _is_static(entity):
        return method
    return _with_arguments(checker, out, method, [entity.value], {}, entity.name, span)


def parts_of(entity: Tuple) -> tuple[AbstractValue, list[AbstractValue], dict[str, AbstractValue]]:
    """The function, arguments and named arguments of a partial call."""
    function, given, named = entity.items
    assert isinstance(given, Tuple) and isinstance(named, Tuple) and named.form is not None
    return function, list(given.items), dict(zip(named.form.names, named.items, strict=True))


def _with_arguments(
    checker: Checker,
    out: TypedBlockBuilder,
    callee: GlobalFunction,
    given: Sequence[AbstractValue],
    named: Mapping[str, AbstractValue],
    name: str,
    span: Span | None,
) -> LocalFunction:
    """The function of the other parameters, which captures the arguments that are given. Raises TypeCheckError."""
    code = surface_function(callee)
    said = code.signature or tuple(Parameter() for _ in code.parameters)
    places = sum(s.kind != "keyword_only" for s in said)
    unknown = [key for key in named if key not in [p.name for p in code.parameters[len(given) :]]]
    if len(given) > places or unknown:
        what = f"no parameter {unknown[0]!r} left" if unknown else f"{places} parameters by position"
        raise TypeCheckError(f"{name} has {what}, but the partial call passes more", span)
    variables = [Var(p.name, None, p.span) for p in code.parameters]
    environment = dict(zip(variables, given, strict=False))
    environment |= {v: named[v.name] for v in variables if v.name in named}
    named_ones = [i for i, s in enumerate(said) if s.kind == "keyword_only" or variables[i].name in named]
    first = min(named_ones, default=len(variables))  # what follows is given by name only, as in Python
    by_place, by_name = variables[:first], [(v.name, v) for v in variables[first:]]
    left = [(v, s) for v, s in zip(variables[:first], said, strict=False) if v not in environment]
    for variable, parameter in zip(variables[first:], said[first:], strict=True):
        if variable not in environment:
            left.append((variable, attrs.evolve(parameter, kind="keyword_only")))  # type: ignore[misc]
    result, label = Var("result", None, span), LoopLabel(name)
    call = Apply(Static(callee, span), tuple(by_place), tuple(by_name), span)
    body = Block((Binding((result,), call),), Exit(label, (result,), span))
    parameters, signature = tuple(v for v, _ in left), tuple(s for _, s in left)
    function = Function(name, parameters, body, label, None, signature, None, code.span)
    return checker.function_here(out, function, environment, empty_context())


def method_function(method: Method) -> GlobalFunction | None:
    """The function behind a method of a data type or of a record."""
    if isinstance(method.value, Tuple):
        return None if method.value.form is None else records.own_method(method.value, method.name, method.owner)
    type_ = data.data_type(method.value)
    owner = None if type_ is None else data_class(complete_definition(type_.definition))
    if owner is None or method.name not in owner.methods:
        return None
    return GlobalFunction(owner.methods[method.name]())


def _is_static(method: Method) -> bool:
    """True if a method of a data type does not take the value."""
    type_ = data.data_type(method.value)
    owner = None if type_ is None else data_class(type_.definition)
    return owner is not None and method.name in owner.static


def changing_function(callee: AbstractValue) -> tuple[Definition, bool] | None:
    """The function of the user's that is called, which gives back what it changes, and whether the value of a method is
    its first argument; None for other callees."""
    if isinstance(callee, Method):
        own = method_function(callee)
    else:
        own = callee if isinstance(callee, GlobalFunction) else None
    definition = None if own is None else giving_back(own.definition)
    return None if definition is None else (definition, isinstance(callee, Method) and not _is_static(callee))


def inherited_method(whole: Tuple, above: object, name: str) -> Method | None:
    """The method that an object has from the classes above one of its own; None if there is none."""
    order = () if whole.form is None else whole.form.cls.__mro__
    if above not in order:
        return None
    owner = next((cls for cls in order[order.index(above) + 1 :] if name in vars(cls)), None)
    return None if owner is None else Method(whole, name, "self", owner)
