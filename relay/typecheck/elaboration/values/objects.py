"""Python objects in programs: modules, numbers, arrays, operators, decorated functions, builtins."""

from __future__ import annotations

import collections
import dataclasses
import difflib
import enum
import functools
import re
import types
import typing
from collections.abc import Iterable

import attrs
import numpy as np

from relay.errors import FrontendError, Span
from relay.ir.annotations.type_parameters import is_parameter
from relay.ir.definition import MISSING, Definition, DerivedDefinition, Scope, data_class
from relay.ir.expr import Constant
from relay.ir.structure import is_plain_class, is_record_class, split
from relay.ir.tree import Structure
from relay.ir.types import BaseType, TensorType, TypeId, base_of_dtype
from relay.operator import Operator
from relay.operator import resolve_name as resolve_operator
from relay.support import foreign_names
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    DerivativeFunction,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    PythonNumber,
    PythonObject,
    Tuple,
    surface_function,
)
from relay.typecheck.elaboration.library import undecorated
from relay.typecheck.elaboration.library.known_callables import library_operator, refusal
from relay.typecheck.elaboration.library.overloads import find as find_overloads


def resolve_name(scope: Scope, name: str, span: Span | None, variables: Iterable[str] = ()) -> AbstractValue:
    """The meaning of a Python name. Raises FrontendError with a suggestion if there is none: one of these variables of
    the function that the user wrote down, else a name around it."""
    value = scope.resolve(name)
    if value is MISSING:
        written = set(re.findall(r"\w+", span.source.text)) if span is not None else set()
        own = [variable for variable in variables if variable in written]
        close = difflib.get_close_matches(name, own, n=1) or difflib.get_close_matches(name, scope.names(), n=1)
        help = f"did you mean {close[0]!r}?" if close else f"give {name} a value before, or define it in the module"
        raise FrontendError(f"the name {name!r} is not defined", span, help=help)
    return object_entity(value, span)


def object_entity(value: object, span: Span | None) -> AbstractValue:
    """A Python object as an entity. Raises FrontendError for what has no meaning here."""
    if isinstance(value, bool | np.bool_):
        constant = Constant(np.asarray(bool(value)), span)
        return DynamicValue(constant, constant.type, bool(value))
    if callable(value) and (overloads := find_overloads(value)):
        meaning = overloads[0].definition if len(overloads) == 1 else None
        return PythonObject(value) if meaning is None else GlobalFunction(meaning)
    if isinstance(value, enum.Enum | Structure) or (isinstance(value, type) and issubclass(value, enum.Enum)):
        return PythonObject(value)
    if isinstance(value, int | float):
        return PythonNumber(value, span)
    if isinstance(value, np.ndarray | np.generic):
        return _array(np.asarray(value), span)
    structure = split(value)
    if structure is not None:
        form, parts = structure
        return Tuple(tuple(object_entity(v, span) for v in parts), form)
    definition = value if isinstance(value, Definition | DerivedDefinition) else getattr(value, "__relay__", None)
    if definition is not None and isinstance(value, types.FunctionType):  # functools.wraps has copied the attribute
        raise FrontendError(
            f"{value.__name__} is a decorated function inside of another decorator, which is plain Python",
            span,
            help=f"call the function itself, {value.__name__}.__wrapped__, or write the other decorator with @relay",
        )
    if isinstance(definition, Definition):
        return GlobalFunction(definition)
    if isinstance(definition, DerivedDefinition):
        return derived_entity(definition)
    if isinstance(value, DynamicValue | DerivativeFunction | LocalFunction | GlobalFunction):  # of a template
        return value
    if hasattr(value, "__relay_array__"):
        return _array(np.asarray(value), span)
    if _is_static_object(value):
        return PythonObject(value)
    if isinstance(value, functools._lru_cache_wrapper) and undecorated.is_written(value.__wrapped__):
        return GlobalFunction(undecorated.definition(value.__wrapped__))  # with a dict of its results
    if typing.is_typeddict(value) or value is collections.OrderedDict:
        return PythonObject(dict)
    if isinstance(value, functools.partial):
        object_entity(value.func, span)  # raises for what cannot be called
        return PythonObject(value)
    refused = refusal(value, span)
    if refused is not None:
        raise refused
    if undecorated.is_written(value) or (isinstance(value, types.FunctionType) and undecorated.is_read(value)):
        return GlobalFunction(undecorated.definition(value))
    if isinstance(value, set):
        return PythonObject(frozenset(value))
    if callable(value) and (operator := library_operator(value)) is not None:
        return PythonObject(operator)
    raise _without_meaning(value, span)


def _is_static_object(value: object) -> bool:
    """True if an object is a value at compile time as it stands."""
    if isinstance(value, Operator | BaseType | TensorType | str | types.ModuleType | np.dtype | slice | frozenset):
        return True
    if value is None or value is dict or value is dataclasses.replace or value is Ellipsis:
        return True
    if data_class(value) is not None or is_record_class(value) or (isinstance(value, type) and is_plain_class(value)):
        return True
    if hasattr(value, "__relay_builtin__") or hasattr(value, "__relay_template__"):
        return True
    return isinstance(value, type) and issubclass(value, np.generic | np.ndarray | str)


def _without_meaning(value: object, span: Span | None) -> FrontendError:
    """The error for an object that has no meaning in programs."""
    name = getattr(value, "__name__", None)
    if callable(value):
        module = (getattr(value, "__module__", None) or "").split(".")[0]
        is_returned = hasattr(value, "__relay_returned__")
        kind = "class" if isinstance(value, type) else "function"
        what = "was returned by a program" if is_returned else f"is a Python {kind} that Relay does not know"
        called = "this lambda" if name == "<lambda>" else repr(name or value)
        return FrontendError(f"{called} {what}", span, help=_replacement_advice(value, name, module, is_returned))
    if isinstance(value, TypeId) or is_parameter(value):
        return FrontendError(
            f"{name or value} is a variable of types, which has no value",
            span,
            help="a size is an attribute of a tensor: `x.shape[0]`",
        )
    return FrontendError(f"a Python {type(value).__name__} has no meaning in a Relay program", span)


def _replacement_advice(value: object, name: str | None, module: str, is_returned: bool) -> str:
    """The advice for a Python function that Relay does not know."""
    if is_returned:
        return "pass it as an argument"
    if name == "<lambda>":
        return "decorate it: relay(lambda ..)"
    is_library = module in ("", "numpy", "math", "jax", "torch") or isinstance(value, np.ufunc)
    if name is not None and is_library and resolve_operator(name) is not None:
        return f"write relay.{name}"
    if name in foreign_names.MODULE and is_library:
        return foreign_names.MODULE[name]
    if is_library or isinstance(value, types.BuiltinFunctionType):  # nothing that users could decorate
        return "compose it of functions that Relay has (docs/operators.md), or register an operator"
    if isinstance(value, type):
        return f"write @dataclass above `class {name}`, with its fields in place of __init__, or make it outside"
    return "decorate it with @relay, or register an operator"


def is_meaningful(value: object) -> bool:
    """True if a program may mention this object."""
    try:
        object_entity(value, None)
    except FrontendError:
        return False
    return True


def _array(array: np.ndarray, span: Span | None) -> DynamicValue:
    base = base_of_dtype(array.dtype)
    if base is None:
        raise FrontendError(f"an array of dtype {array.dtype} has no meaning in a Relay program", span)
    copied = array.copy()
    copied.setflags(write=False)
    constant = Constant(copied, span)
    return DynamicValue(constant, constant.type)


def derived_entity(definition: DerivedDefinition) -> DerivativeFunction:
    """`grad(f)`, made outside of the program."""
    of = definition.of
    inner: AbstractValue = GlobalFunction(of) if isinstance(of, Definition) else derived_entity(of)
    grad = definition.grad
    positions = None if definition.wrt is None else tuple(position_of(inner, w, None) for w in definition.wrt)
    return DerivativeFunction(inner, attrs.evolve(grad, wrt=positions))  # type: ignore[misc]


def position_of(function: AbstractValue, parameter: int | str, span: Span | None) -> int:
    """The position of a parameter given by position or name. Raises FrontendError."""
    base = function
    while isinstance(base, DerivativeFunction):
        base = base.of
    names = []
    if span is None and isinstance(base, GlobalFunction):
        span = surface_function(base).span
    if isinstance(base, GlobalFunction) or type(base).__name__ == "LocalFunction":
        names = [p.name for p in surface_function(base).parameters]  # type: ignore[arg-type]
    if isinstance(parameter, str):
        if parameter not in names:
            whole, _, inside = parameter.replace("[", ".").partition(".")
            close = difflib.get_close_matches(parameter, names, n=1)
            help = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}" if names else None
            if inside and whole in names:
                field = parameter[len(whole) :]
                help = f"wrt names whole parameters: use `gradient{field}` of the gradient with respect to {whole!r}"
            raise FrontendError(f"wrt: there is no parameter {parameter!r}", span, help=help)
        return names.index(parameter)
    if not isinstance(parameter, int) or isinstance(parameter, bool):
        raise FrontendError(
            f"wrt holds positions and names of parameters, found {parameter!r}",
            span,
            help="the gradient of a structure has the same structure: use the part that you need",
        )
    if names and not -len(names) <= parameter < len(names):
        count = "is 1 parameter" if len(names) == 1 else f"are {len(names)} parameters"
        raise FrontendError(f"wrt: there {count}; there is no {parameter}", span)
    return parameter % len(names) if names else parameter
