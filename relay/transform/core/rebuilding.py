"""Rebuilding functions and modules around new bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar
from weakref import WeakSet

from relay.ir.expr import Block, Derivative, Function, Module
from relay.ir.types import DataDefinition, Type

_Value = TypeVar("_Value")


def with_body(function: Function, body: Block, result: Type | None = None) -> Function:
    """The function with another body (and type of its result) and the same parameters and label, which takes its place
    in the module; itself, if nothing is another."""
    if body is function.body and (result is None or result is function.result):
        return function
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


def map_bodies(module: Module, change: Callable[[Function], Block], settled: WeakSet[Block] | None = None) -> Module:
    """The module with every function's body changed. What is still to be derived stays.

    `settled` are the bodies in which such a change finds nothing to do, and gets others that it leaves as they are. It
    is for changes that look at the body alone.
    """
    functions: dict[str, Function | Derivative] = {}
    for name, function in module.functions.items():
        functions[name] = function
        if isinstance(function, Function) and (settled is None or function.body not in settled):
            made = change(function)
            functions[name] = with_body(function, made)
            if settled is not None and made is function.body:
                settled.add(made)
    return with_functions(module, functions)


def select(values: tuple[_Value, ...], keep: tuple[bool, ...]) -> tuple[_Value, ...]:
    """The values at the positions where `keep` is true."""
    if all(keep):
        return values
    return tuple(v for v, kept in zip(values, keep, strict=True) if kept)
