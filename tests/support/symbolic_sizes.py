"""Programs of the zoo with symbolic sizes: their modules, and their arguments at other sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from zoo import programs

from relay.api.function import RelayFunction
from relay.calling.arguments import describe
from relay.calling.results import run_time_value
from relay.errors import InternalError, RelayError
from relay.eval.sizes import sizes_of
from relay.ir.dims import TypeId
from relay.ir.expr import Module
from relay.ir.sizes.extents import Place
from relay.ir.structure import build, split
from relay.ir.types import TensorType
from relay.typecheck.elaboration import StaticArg, elaborate_structured

CONFIGURED = ("configured_transformer", "keyed_layers")  # whose arguments are static where their values are needed
ALL = [program for program in programs() if program.name not in CONFIGURED]


def _parts(value: Any) -> list[Any] | None:
    structure = split(value)
    return None if structure is None else list(structure[1])


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
    given = [d for d in described if not isinstance(d.argument, StaticArg)]
    return [run_time_value(d.value, p.type, p.name) for d, p in zip(given, module.main.parameters, strict=True)]  # type: ignore[arg-type]


def resized(arguments: tuple[Any, ...], module: Module, function: RelayFunction, change: int) -> tuple[Any, ...]:
    """The arguments with every symbolic dim `change` longer, by repeating elements."""
    described = [describe(v, function._function, i) for i, v in enumerate(function._bind(arguments, {}))]
    positions = [i for i, d in enumerate(described) if not isinstance(d.argument, StaticArg)]
    sizes = sizes_of(Module(module.functions, module.entry), module.main, values(function, arguments, module))
    changed = {dim: size + change for dim, size in sizes.items()}

    def rebuilt(part: Any, type_: Any) -> Any:
        structure = split(part)
        if structure is not None:
            return build(structure[0], [rebuilt(p, t) for p, t in zip(structure[1], type_.items, strict=True)])
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
