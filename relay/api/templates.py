"""Templates: functions made of a function by the text of their meaning, in Python and inside programs alike.

`relay/typecheck/elaboration/derivatives/templates.py` says what the text may use.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, ParamSpec, TypeVar

import attrs

from relay.api.function import RelayFunction
from relay.api.plain_functions import readable_function
from relay.errors import TypeCheckError, TypeMismatch
from relay.frontend.lower import lower_text
from relay.ir.definition import Definition, DerivedDefinition
from relay.ir.expr import Function, Parameter, Recompute
from relay.operator import lookup
from relay.support import python_mode
from relay.support.foreign_names import argument_help, own_name
from relay.typecheck.elaboration.derivatives.template_scopes import TemplateScope
from relay.typecheck.elaboration.derivatives.templates import parameters_of_code

Parameters = Sequence[tuple[str, Parameter]]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def with_checked_options(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, with a better error for calls with options of another library."""
    names = inspect.signature(function).parameters

    @functools.wraps(function)
    def checked_call(*arguments: _P.args, **options: _P.kwargs) -> _R:
        __tracebackhide__ = True
        options = {own_name(name, names): value for name, value in options.items()}  # type: ignore[assignment]
        unknown = [name for name in options if name not in names]
        if unknown:
            message = f"{function.__name__} has no option {unknown[0]!r}; it has {', '.join(list(names)[1:])}"
            raise TypeCheckError(message, help=argument_help(unknown[0], names))
        if arguments:
            arguments = (readable_operand(arguments[0]), *arguments[1:])  # type: ignore[assignment]
        return function(*arguments, **options)

    return checked_call


OPERATORS = ("reshape", "zeros", "zeros_like", "sum", "multiply", "stack")
"""The operators that templates use."""


@attrs.frozen(eq=False)
class TextTemplate:
    """A template by its text: `text(parameters, options)`. `names` are those that only its text mentions. What it makes
    takes a `first` parameter before those of the function, if that has a name."""

    name: str
    called: bool
    text: Callable[[Parameters, Mapping[str, object]], str]
    options: tuple[str, ...] = ()
    of_gradient: bool = False
    recomputes: bool = False
    repeats: bool = False
    names: Mapping[str, object] = attrs.field(factory=dict)
    first: str = ""

    def function(self, parameters: Parameters, options: Mapping[str, object]) -> Function:
        """The surface code for a function with these parameters. Raises TypeCheckError for wrong options."""
        rule = Recompute() if self.recomputes else None
        code = _parse_template(f"<relay.{self.name}>", self.text(parameters, options)).function
        if self.called:
            return code
        first = (Parameter(),) if self.first else ()
        return attrs.evolve(code, signature=(*first, *(s for _, s in parameters)), rule=rule)  # type: ignore[misc]

    def globals(self) -> Mapping[str, object]:
        """The objects that its code mentions."""
        operators = {f"{name}__": lookup(name) for name in OPERATORS}
        return {"enumerate": enumerate, "range": range, **operators, **self.names}

    def definition(
        self, of: Definition | DerivedDefinition, parameters: Parameters, options: Mapping[str, object]
    ) -> Definition:
        """The template's function of one function, outside of a program."""
        return Definition(self.function(parameters, options), TemplateScope({**self.globals(), "f__": of}))


@functools.lru_cache(maxsize=256)
def _parse_template(filename: str, text: str) -> Definition:
    return next(iter(lower_text(text, filename, {}).values()))


def parameter_names(parameters: Parameters) -> str:
    return ", ".join(name for name, _ in parameters)


def call_arguments(parameters: Parameters) -> str:
    forms = {"keyword_only": "{0}={0}", "var_positional": "*{0}", "var_keyword": "**{0}"}
    return ", ".join(forms.get(s.kind, "{0}").format(name) for name, s in parameters)


def readable_operand(f: Any) -> Any:
    """The operand of a template; a local function of a program that runs as Python becomes a decorated function, as
    does a quantized program."""
    f = getattr(f, "__relay_function__", f)
    mode = python_mode.active.get()
    return readable_function(f if mode is None else mode.decorated_function(f))


def definition_of(f: Any, name: str) -> Definition | DerivedDefinition:
    definition = getattr(f, "__relay__", None)
    if not isinstance(definition, Definition | DerivedDefinition):
        raise undecorated_error(name, f)
    return definition


def undecorated_error(name: str, f: Any) -> TypeMismatch:
    """The error for a derivative of something else than a function of Relay's."""
    message = f"{name} needs a function decorated with @relay, found"
    if not callable(f):
        operands = {"vjp": "(f, x)", "jvp": "(f, x)", "check_gradient": "(f, x)", "to_int8": "(f, samples)"}
        call = f"relay.{name}{operands.get(name, '(f)(x)')}"
        help = f"pass the function itself, and not what it returns: {call}"
        return TypeMismatch(f"{message} a value, of type {type(f).__name__}", help=help)
    code = getattr(f, "__code__", None)
    if not isinstance(code, CodeType):
        return TypeMismatch(
            f"{message} {type(f).__name__}", help="write a function that calls it: relay(lambda x: f(x))"
        )
    is_lambda = code.co_name == "<lambda>"
    found = TypeMismatch(
        f"{message} {'a lambda' if is_lambda else f'the Python function {code.co_name!r}'}",
        help="write relay(lambda ..)" if is_lambda else "write @relay above it",
    )
    found.notes = (f"it is defined at {code.co_filename}:{code.co_firstlineno}",)
    return found


def parameters_of(f: RelayFunction) -> Parameters:
    seeds = [(f"seed{i or ''}", Parameter()) for i in range(f._seeds)]
    own = parameters_of_code(f._function)
    plain = [(name, attrs.evolve(said, of_examples=False)) for name, said in own]  # type: ignore[misc]
    return [*plain, *seeds]


def derived_function(
    f: RelayFunction, key: tuple[object, ...], make: Callable[[], Definition | DerivedDefinition]
) -> RelayFunction:
    """A function derived from f, the same object each time, so that `grad(f)(x)` in a loop compiles once."""
    found = f._made.get(key)
    if found is None:
        found = f._made.setdefault(key, RelayFunction(make(), f._options))
    assert isinstance(found, RelayFunction)
    return found
