"""Programs of the zoo under `relay.vmap`, over one axis and two: values and gradients are those of each example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_agree, leaves
from matrix import sample
from zoo import Program, programs

import relay

COUNT = 2


def _is_float(argument: Any) -> bool:
    """True for a float, an array of floats, or a structure of these."""
    if isinstance(argument, tuple | list):
        return bool(argument) and all(map(_is_float, argument))
    if isinstance(argument, dict):
        return bool(argument) and all(map(_is_float, argument.values()))
    return isinstance(argument, float | np.floating) or (
        isinstance(argument, np.ndarray) and argument.dtype.kind == "f"
    )


def _returns_arrays_of_one_shape(program: Program) -> bool:
    return program.name not in ("early_result",)


BATCHED = [
    p for p in programs() if p.differentiable and any(map(_is_float, p.arguments)) and _returns_arrays_of_one_shape(p)
]
INTERPRETED, COMPILED = sample(BATCHED, 12), sample(BATCHED, 3)


def _examples(program: Program) -> list[tuple[Any, ...]]:
    """The arguments of each example: floats differ a little between them."""

    def change(argument: Any, number: int) -> Any:
        return (
            relay.tree.map(lambda x: np.asarray(x) * (1 + 0.05 * number), argument) if _is_float(argument) else argument
        )

    return [tuple(change(a, number) for a in program.arguments) for number in range(COUNT)]


def _stacked(examples: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    def stack(*parts: Any) -> Any:
        return relay.tree.map(lambda *xs: np.stack(xs), *parts) if _is_float(parts[0]) else parts[0]

    return tuple(map(stack, *examples))


def _axes(program: Program) -> tuple[int | None, ...]:
    return tuple(0 if _is_float(a) else None for a in program.arguments)


@pytest.mark.parametrize("program", INTERPRETED, ids=lambda p: p.name)
def test_a_batch_is_its_examples(program: Program) -> None:
    examples, axes = _examples(program), _axes(program)
    each = [program.function.interpret(*example) for example in examples]
    once = relay.vmap(program.function, axes)
    batch = _stacked(examples)
    assert_agree(once.interpret(*batch), np.stack(each), rtol=1e-12)
    twice = relay.vmap(once, axes)
    assert_agree(twice.interpret(*_stacked([batch, batch])), np.stack([each, each]), rtol=1e-12)


@pytest.mark.parametrize("program", COMPILED, ids=lambda p: p.name)
@pytest.mark.usefixtures("low_effort")
def test_compiled_batches_and_their_gradients(program: Program) -> None:
    axes, batch = _axes(program), _stacked(_examples(program))
    once = relay.vmap(program.function, axes)
    assert_agree(once(*batch), once.interpret(*batch), rtol=1e-9, atol=1e-12)
    wrt = tuple(number for number, axis in enumerate(axes) if axis is not None)
    gradients = relay.vmap(relay.grad(program.function, wrt=wrt), axes)
    for found, expected in zip(leaves(gradients(*batch)), leaves(gradients.interpret(*batch)), strict=True):
        assert_agree(found, expected, rtol=1e-7, atol=1e-10)
