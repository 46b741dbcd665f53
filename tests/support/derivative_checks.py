"""What is checked of the derivatives of core programs: that they are finite differences, order by order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from ad_programs import op, real
from agreement import assert_close
from transform_programs import Build, function

import relay.ops  # noqa: F401
from relay.ad.reverse import differentiate
from relay.eval.interpreter import run
from relay.ir.derivative import gradient_type
from relay.ir.expr import (
    Atom,
    Call,
    Constant,
    Derivative,
    Global,
    Grad,
    Module,
    Var,
)
from relay.ir.types import (
    FLOAT64,
    INT32,
    TensorType,
    TupleType,
    Type,
    scalar,
)
from relay.ir.validation.check import check

R, Z = scalar(FLOAT64), scalar(INT32)


def derived(source: Module, of: str | None = None, wrt: Sequence[int] | None = None, **options: Any) -> Module:
    """The module with a derivative of one of its functions as its entry, still to be made."""
    name = of or source.entry
    type_ = source.functions[name].type
    positions = tuple(range(len(type_.parameters))) if wrt is None else tuple(wrt)
    grad = Grad(Global(name), positions, **options)
    # all parameters without naming them: those without a gradient give unit
    declared = Grad(Global(name), None if wrt is None else positions, **options)
    own = next(f"d{k}_{name}" for k in itertools.count() if f"d{k}_{name}" not in source.functions)
    derivative = Derivative(own, name, gradient_type(type_, declared), grad)
    return Module({**source.functions, own: derivative}, own, source.data)


def gradient(source: Module, *arguments: Any, **options: Any) -> Any:
    """The gradient by the transform, checked, as the interpreter computes it."""
    made = differentiate(derived(source, **options))
    check(made, "structured")
    return run(made, arguments)


def scalarized(source: Module) -> Module:
    """A new entry: the sum of all float elements of the old entry's result, each times another weight."""
    entry = source.functions[source.entry]
    assert entry.type is not None
    name, weights = f"sum_{entry.name}", itertools.count(1)

    def write(b: Build, *parameters: Var) -> Atom:
        total: Atom = real(0)

        def visit(value: Atom, type_: Type) -> None:
            nonlocal total
            if isinstance(type_, TupleType):
                for i, item in enumerate(type_.items):
                    visit(b.project(value, i), item)
            elif isinstance(type_, TensorType) and type_.base == FLOAT64:
                size = int(np.prod(type_.dims))
                weight = 0.5 + 0.25 * np.cos(np.arange(size).reshape(type_.dims) + next(weights))
                part = b.op("multiply", value, Constant(np.asarray(weight)))
                total = b.op("add", total, op(b, "sum", part))

        result = b.bind(Call(Global(entry.name, entry.type), parameters), entry.type.result)
        visit(result, entry.type.result)
        return total

    made = function(name, entry.type.parameters, R, write)
    return Module({**source.functions, name: made}, name, source.data)


def numeric(
    source: Module, arguments: Sequence[Any], position: int, item: int | None = None, step: float = 1e-5
) -> np.ndarray:
    """The gradient of a scalar program with respect to one float argument, or to an item of one that is a tuple, by
    central differences."""
    argument = arguments[position]
    value = np.asarray(argument if item is None else argument[item], np.float64)
    result = np.zeros_like(value)
    for index in np.ndindex(value.shape):

        def at(offset: float, index: tuple[int, ...] = index) -> float:
            moved = value.copy()
            moved[index] += offset
            changed = list(arguments)
            changed[position] = moved if item is None else (*argument[:item], moved, *argument[item + 1 :])
            return float(run(source, changed))  # type: ignore[arg-type]

        # fourth order, so that derivatives of derivatives can be compared closely
        result[index] = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step)
    return result


def verify(source: Module, *arguments: Any, orders: int = 3, tolerance: float = 1e-6) -> list[Module]:
    """Compare derivatives up to an order with finite differences of the order before. Returns their modules."""
    stages = []
    check(source, "structured")
    for order in range(orders):
        current = scalarized(source) if order or source.functions[source.entry].type.result != R else source
        made = differentiate(derived(current))
        check(made, "structured")
        found = run(made, arguments)
        parts = found if len(arguments) > 1 else (found,)
        for position, (argument, part) in enumerate(zip(arguments, parts, strict=True)):
            bound = tolerance * 10**order
            if isinstance(argument, int):
                assert part == ()
            elif isinstance(argument, tuple):
                for i, (inner, item) in enumerate(zip(part, argument, strict=True)):
                    if isinstance(item, np.ndarray | float):
                        assert_close(inner, numeric(current, arguments, position, i), bound, bound)
            else:
                assert_close(part, numeric(current, arguments, position), bound, bound)
        stages.append(made)
        source = made
    return stages
