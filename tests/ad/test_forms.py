"""What the derivatives of programs look like after optimization: which forms are left, over the whole zoo."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matrix import sample
from zoo import Program, programs

import relay
from relay.ir.expr import BindDim, Call, Constant, Construct, Extent, Function, Loop, Match, Module, RefNew, StackNew
from relay.ir.traverse import walk
from relay.ir.types import DataType, RefType, StackType, TensorType, TupleType

DIFFERENTIABLE = [p for p in programs() if p.differentiable]


def forms(module: Module) -> set[str]:
    """What a module holds beside straight-line code, branches and loops whose lengths are known."""
    found = {"data type" for _ in module.data}
    for function in module.functions.values():
        assert isinstance(function, Function)
        sizes = {b.targets[0] for b in walk(function.body) if isinstance(b.value, Extent)}
        for binding in walk(function.body):
            match binding.value:
                case Call():
                    found.add("call")
                case Construct() | Match():
                    found.add("data type")
                case RefNew():
                    found.add("reference")
                case StackNew():
                    found.add("stack")
                case Loop(counter=None):
                    found.add("while")
                case Loop(counter=counter):
                    if not isinstance(counter.count, Constant) and counter.count not in sizes:
                        found.add("run-time range")
                case _:
                    pass
            for target in binding.targets:
                found |= {"data type"} if isinstance(target.type, DataType) else set()
                found |= {"reference"} if isinstance(target.type, RefType) else set()
                found |= {"stack"} if isinstance(target.type, StackType) else set()
    return found


def is_static(module: Module) -> bool:
    """Whether a program has neither recursion nor dynamic data, as data-dependent sizes, nor dynamic loops."""
    return not forms(module) and not any(isinstance(b.value, BindDim) for b in bindings(module))


@pytest.mark.parametrize("program", sample(DIFFERENTIABLE, 50), ids=lambda p: p.name)
def test_derivatives_of_static_programs_hold_tensors_only(program: Program) -> None:
    if not is_static(program.function.core(*program.arguments)):
        pytest.skip("the program itself has dynamic parts")
    # Backwards, a loop that was left early has as many rounds as were executed.
    assert forms(relay.grad(program.function).core(*program.arguments)) <= {"run-time range"}


def bindings(module: Module) -> list[Any]:
    return [b for f in module.functions.values() if isinstance(f, Function) for b in walk(f.body)]


def stacks(module: Module) -> list[str]:
    return [str(b.targets[0].type) for b in bindings(module) if isinstance(b.value, StackNew)]


def carried(module: Module) -> list[tuple[Any, ...]]:
    """The shapes of the tensors that loops carry."""
    loops = [b.value for b in bindings(module) if isinstance(b.value, Loop)]
    return [p.type.shape for loop in loops for p in loop.parameters if isinstance(p.type, TensorType)]


X = np.array([0.3, -0.4, 0.8])


@relay
def in_a_range(x):
    for _ in range(50):
        x = relay.sin(x) * x
    return relay.sum(x)


@relay
def in_nested_ranges(x):
    for _ in range(7):
        for _ in range(5):
            x = relay.sin(x) * x + 0.3
        x = relay.tanh(x) * x
    return relay.sum(x)


@relay
def left_early(x):
    for _ in range(40):
        x = relay.sin(x) * x + 0.5
        if relay.sum(x) > 1.9:
            x = x * x
            break
        if x[0] > 0.6:
            x = relay.exp(-x)
            continue
        x = x * 1.1
    else:
        return relay.sum(x) * 2.0
    return relay.sum(x * x)


@relay
def chosen_closures(x):
    y = x
    for _ in range(6):
        f = (lambda v: relay.sin(v) * x) if y[0] > 0.2 else (lambda v: v * v + 0.2)
        y = f(y) + 0.1
    return relay.sum(y)


@relay
def an_inner_loop_in_one_arm(x):
    for i in range(5):
        if i % 2 == 0:
            for _ in range(3):
                x = relay.sin(x) * x + 0.4
        else:
            for _ in range(4):
                x = relay.tanh(x) * x + 0.2
    return relay.sum(x)


@relay
def until(x):
    y = x[0] * x[1]
    while y < 2.0:
        y = y * y + 0.4
    return y


@relay
def an_inner_range(x):
    while relay.sum(x) < 3.0:
        for _ in range(4):
            x = relay.sin(x) * x + 0.6
    return relay.sum(x)


STATIC = [in_a_range, in_nested_ranges, left_early, chosen_closures, an_inner_loop_in_one_arm]


@pytest.mark.parametrize("function", STATIC, ids=lambda f: f.__name__)
def test_a_static_range_uses_preallocated_buffers(function: Any) -> None:
    derivative = relay.grad(function)
    assert forms(function.core(X)) == set()
    core = derivative.core(X)
    assert forms(core) <= {"run-time range"}
    np.testing.assert_allclose(derivative(X), derivative.interpret(X), rtol=1e-10)
    assert relay.check_gradient(function, X) < 1e-6
    second = relay.jacobian(derivative)
    assert forms(second.core(X)) <= {"run-time range"}
    np.testing.assert_allclose(second(X), second.interpret(X), rtol=1e-9, atol=1e-12)


def test_the_buffers_have_the_rounds_as_their_first_axes() -> None:
    assert (50, 3) in carried(relay.grad(in_a_range).core(X))
    assert {(7, 5, 3), (7, 3)} <= set(carried(relay.grad(in_nested_ranges).core(X)))


def test_dynamic_loops_use_stacks_that_grow() -> None:
    core = relay.grad(until).core(X)
    assert forms(core) == {"while", "run-time range", "stack"}
    assert stacks(core) == ["Stack[Tensor[float64, ()]]"]
    core = relay.grad(an_inner_range).core(X)  # whose entries are the buffers of the inner loops
    assert forms(core) == {"while", "run-time range", "stack"}
    (entry,) = {t.type.element for b in bindings(core) for t in b.targets if isinstance(t.type, StackType)}
    held = entry.items if isinstance(entry, TupleType) else (entry,)
    assert TensorType(held[0].base, (4, 3)) in held
    np.testing.assert_allclose(relay.grad(an_inner_range)(X), relay.grad(an_inner_range).interpret(X), rtol=1e-9)


def test_a_long_range_that_is_left_early_is_not_preallocated() -> None:
    @relay
    def search(x):
        for _ in range(1_000_000_000):
            x = relay.sin(x) * 1.5
            if x > 0.9:
                break
        return x

    derivative = relay.grad(search)
    assert stacks(derivative.core(np.float64(0.3)))
    np.testing.assert_allclose(derivative(np.float64(0.3)), derivative.interpret(np.float64(0.3)), rtol=1e-10)
