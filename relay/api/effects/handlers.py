"""Handlers of effects as public transformations, and the functions that have the effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relay.api.function import RelayFunction
from relay.api.templates import (
    Parameters,
    TextTemplate,
    call_arguments,
    definition_of,
    derived_function,
    parameters_of,
    readable_operand,
)
from relay.errors import TypeCheckError


def effectful(name: str, documentation: str) -> Callable[..., Any]:
    """A function of programs, `relay.<name>`, whose meaning a handler around them decides."""

    def function(*arguments: Any, **options: Any) -> Any:
        raise TypeCheckError(f"relay.{name} works inside decorated functions only")

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = documentation
    function.__relay_builtin__ = name  # type: ignore[attr-defined]
    return function


def handler(name: str, parameter: str, operation: str) -> TextTemplate:
    """The template of a handler: the function with one more parameter, before its own."""

    def text(parameters: Parameters, options: object) -> str:
        names = [n for n, _ in parameters]
        if parameter in names:
            raise TypeCheckError(
                f"the function has a parameter {parameter}, and {name} adds one of this name", help="rename it"
            )
        called = f"lambda: f__({call_arguments(parameters)})"
        head = f"def {name.rpartition('.')[2]}({', '.join((parameter, *names))}):"
        return f"{head}\n    return {operation}({called}, {parameter})\n"

    return TextTemplate(name, False, text, first=parameter)


def handled(template: TextTemplate, f: Any) -> RelayFunction:
    """The function of a template outside of programs."""
    f = readable_operand(f)
    of, parameters = definition_of(f, template.name), parameters_of(f)
    return derived_function(f, (template.name,), lambda: template.definition(of, parameters, {}))
