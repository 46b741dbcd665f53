"""Programs whose recursions over data are evaluated level by level, whatever the size of their products."""

from __future__ import annotations

from typing import Any

from agreement import assert_close

from relay.ad.reverse import differentiate
from relay.codegen.runtime.cpu import compile_module
from relay.eval.interpreter import run as interpret
from relay.ir.expr import Function, Loop, Module
from relay.ir.traverse import walk
from relay.transform import BETWEEN, LEVELS, PREPARATION, Pipeline


def by_levels(function: Any, *arguments: Any, width: int = 3, fewest: int = 0) -> Module:
    """The optimized program, in which recursions with products of any size are evaluated level by level."""
    step = f"batch_recursion{{smallest=1, width={width}, fewest={fewest}}}"
    steps = ", ".join(step if p == "batch_recursion" else p for p in PREPARATION[2])
    prepared = Pipeline(["specialize, structure", steps], stage="typed", checked=True)(function.typed(*arguments))
    assert groups(prepared), "no recursion was batched"
    derived = differentiate(prepared, lambda module: Pipeline(", ".join(BETWEEN[2]))(module))
    return Pipeline(", ".join(LEVELS[2]), checked=True)(derived)


def groups(module: Module) -> int:
    """The number of loops over groups."""
    loops = [
        b.value
        for f in module.functions.values()
        if isinstance(f, Function)
        for b in walk(f.body)
        if isinstance(b.value, Loop)
    ]
    return sum(loop.label.name == "group" for loop in loops)


def assert_same(function: Any, *arguments: Any, compiled: bool = False, **options: int) -> None:
    """The program by levels gives what the recursion gives: interpreted, and also compiled."""
    module, values = by_levels(function, *arguments, **options), function.lower(*arguments).values
    plain = interpret(function.typed(*arguments), values)
    runs = [interpret(module, values)]
    if compiled:
        runs.append(compile_module(module)(values))
    for found in runs:
        for a, b in zip(tensors(found), tensors(plain), strict=True):
            assert_close(a, b, atol=1e-12)


def tensors(value: Any) -> list[Any]:
    """The arrays in an answer of the interpreter or of a compiled module."""
    if hasattr(value, "constructor"):
        return [value.constructor == "", *(t for f in value.fields for t in tensors(f))]
    if hasattr(value, "content"):
        return tensors(value.content)
    if hasattr(value, "buffer"):
        return [t for v in value.buffer[: value.length] for t in tensors(v)]
    if isinstance(value, tuple | list):
        return [t for v in value for t in tensors(v)]
    return [value]
