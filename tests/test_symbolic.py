"""Programs of the zoo with symbolic sizes: elaborated once, right at the sizes of that call and at others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from programs import Program, programs
from test_programs import assert_close

import relay
from relay.arguments import describe, run_time_value, wrap
from relay.compiler import RelayFunction, to_core
from relay.errors import ExecutionError, InternalError, RelayError
from relay.eval import interpreter
from relay.eval.sizes import sizes_of
from relay.ir.alpha import alpha_equal
from relay.ir.check import check
from relay.ir.dims import TypeId
from relay.ir.expr import Module
from relay.ir.extents import Place, symbolic_dims
from relay.ir.structure import build, fields_of, form_of
from relay.ir.types import TensorType
from relay.text.parser import parse
from relay.typecheck.elaboration import Fixed, elaborate_structured

ALL = programs()


def _parts(value: Any) -> list[Any] | None:
    form = form_of(value)
    if form is not None:
        return fields_of(value, form)
    return list(value) if isinstance(value, tuple) else None


def arrays(arguments: tuple[Any, ...]) -> Iterator[tuple[int, tuple[int, ...], np.ndarray]]:
    """The arrays with axes in the arguments, by parameter and path."""

    def inside(part: Any, position: int, path: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...], np.ndarray]]:
        parts = _parts(part)
        if parts is not None:
            for index, item in enumerate(parts):
                yield from inside(item, position, (*path, index))
        elif isinstance(part, np.ndarray) and part.ndim:
            yield position, path, part

    for position, argument in enumerate(arguments):
        yield from inside(argument, position, ())


def all_axes(arguments: tuple[Any, ...]) -> list[Place]:
    return [Place(n, path, axis) for n, path, array in arrays(arguments) for axis in range(array.ndim)]


def elaborated(function: RelayFunction, arguments: tuple[Any, ...], axes: list[Place]) -> Module:
    described = [describe(v, function._function, i).argument for i, v in enumerate(function._bind(arguments, {}))]
    return elaborate_structured(function.__relay__, described, axes).module


def values(function: RelayFunction, arguments: tuple[Any, ...], module: Module) -> list[Any]:
    described = [describe(v, function._function, i) for i, v in enumerate(function._bind(arguments, {}))]
    given = [d for d in described if not isinstance(d.argument, Fixed)]
    return [run_time_value(d.value, p.type, p.name) for d, p in zip(given, module.main.parameters, strict=True)]  # type: ignore[arg-type]


def resized(arguments: tuple[Any, ...], module: Module, function: RelayFunction, change: int) -> tuple[Any, ...]:
    """The arguments with every symbolic dim `change` longer, by repeating elements."""
    described = [describe(v, function._function, i) for i, v in enumerate(function._bind(arguments, {}))]
    positions = [i for i, d in enumerate(described) if not isinstance(d.argument, Fixed)]
    sizes = sizes_of(Module(module.functions, module.entry), module.main, values(function, arguments, module))
    changed = {dim: size + change for dim, size in sizes.items()}

    def rebuilt(part: Any, type_: Any) -> Any:
        parts = _parts(part)
        if parts is not None:
            new = [rebuilt(p, t) for p, t in zip(parts, type_.items, strict=True)]
            form = form_of(part)
            return tuple(new) if form is None else build(form, new)
        if isinstance(part, np.ndarray) and isinstance(type_, TensorType):
            for axis, dim in enumerate(type_.shape):
                if not isinstance(dim, int):
                    length = relay_evaluate(dim, changed)
                    part = np.take(part, np.arange(length) % part.shape[axis], axis)
        return part

    result = list(arguments)
    for position, parameter in zip(positions, module.main.parameters, strict=True):
        if position < len(result):
            result[position] = rebuilt(result[position], parameter.type)
    return tuple(result)


def relay_evaluate(dim: Any, sizes: dict[TypeId, int]) -> int:
    from relay.ir.dims import evaluate

    return evaluate(dim, sizes)


def outcome(run: Any) -> Any:
    """What a run gives, or the message of its error."""
    try:
        return run()
    except InternalError:
        raise
    except RelayError as error:
        return error.message


def compare(function: RelayFunction, arguments: tuple[Any, ...], module: Module) -> None:
    concrete = outcome(lambda: function.interpret(*arguments))
    found = outcome(lambda: interpreter.run(module, values(function, arguments, module)))
    if isinstance(concrete, str) or isinstance(found, str):
        assert concrete == found
    else:
        lowered, given = function._lower(arguments, {})
        expected = wrap(interpreter.run(lowered.typed, given), lowered.result)
        assert_close(wrap(found, lowered.result), expected, rtol=1e-6)


@pytest.mark.parametrize("program", ALL, ids=lambda p: p.name)
def test_core_programs_and_gradients_are_right_at_sizes_never_seen(program: Program) -> None:
    axes = all_axes(program.arguments)
    functions = [program.function, *([relay.grad(program.function)] if program.differentiable else [])]
    for function in functions if axes else []:
        module = elaborated(function, program.arguments, axes)
        if not symbolic_dims(module):
            continue
        core = to_core(module, 2)
        check(core, "structured")
        for change in (0, 3):
            arguments = resized(program.arguments, module, function, change)
            given = values(function, arguments, module)
            try:
                sizes_of(module, module.main, given)
            except ExecutionError:
                continue
            typed = outcome(lambda: interpreter.run(module, given))  # noqa: B023
            found = outcome(lambda: interpreter.run(core, given))  # noqa: B023
            if isinstance(typed, str):
                assert typed == found
            else:
                result = function._lower(arguments, {})[0].result
                assert_close(wrap(found, result), wrap(typed, result), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("program", ALL, ids=lambda p: p.name)
def test_symbolic_programs_are_right_at_sizes_never_seen(program: Program) -> None:
    axes = all_axes(program.arguments)
    if not axes:
        return
    module = elaborated(program.function, program.arguments, axes)
    check(module, "typed")
    assert alpha_equal(parse(relay.to_text(module)), module)
    compare(program.function, program.arguments, module)
    for change in (1, 3, 4):
        arguments = resized(program.arguments, module, program.function, change)
        try:
            sizes_of(module, module.main, values(program.function, arguments, module))
        except ExecutionError:
            continue  # the program does not assume to be right here
        if symbolic_dims(module):
            compare(program.function, arguments, module)
