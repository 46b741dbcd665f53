"""Rebuilding functions and modules around new bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from relay.ir.expr import Block, Derivative, Function, Module
from relay.ir.types import DataDefinition, Type

_Value = TypeVar("_Value")


def with_body(function: Function, body: Block, result: Type | None = None) -> Function:
    """The function with another body (and type of its result) and the same parameters and label, which takes its place
    in the module."""
    return Function(
        function.name,
        function.parameters,
        body,
        function.label,
        function.result if result is None else result,
        function.signature,
        function.documentation,
        function.span,
        function.rule,
    )


def with_functions(
    module: Module, functions: Mapping[str, Function | Derivative], data: Iterable[DataDefinition] = ()
) -> Module:
    """The module with other functions, and further data types."""
    return Module(functions, module.entry, (*module.data, *data), module.where)


def map_bodies(module: Module, change: Callable[[Function], Block]) -> Module:
    """The module with every function's body changed. What is still to be derived stays."""
    functions: dict[str, Function | Derivative] = {}
    for name, function in module.functions.items():
        if isinstance(function, Function):
            body = change(function)
            functions[name] = function if body is function.body else with_body(function, body)
        else:
            functions[name] = function
    return with_functions(module, functions)


def select(values: tuple[_Value, ...], keep: tuple[bool, ...]) -> tuple[_Value, ...]:
    """The values at the positions where `keep` is true."""
    if all(keep):
        return values
    return tuple(v for v, kept in zip(values, keep, strict=True) if kept)
