"""Derivatives of programs without recursion, dynamic data and dynamic loops: nothing but tensors is left of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from matrix import sample
from zoo import Program, programs

import relay
from relay.ir.dims import ANY
from relay.ir.expr import BindDim, Binding, Constant, Function, Global, Loop, Module
from relay.ir.sizes.data_dependent import mentions
from relay.ir.traverse import operands, walk
from relay.ir.types import DataType, FunctionType, RefType, StackType, TensorType
from relay.transform import Pipeline
from relay.transform.analysis.graph import call_graph, strong_components
from relay.transform.loops.partition import finds_places


def bindings(module: Module) -> Iterator[Binding]:
    for function in module.functions.values():
        assert isinstance(function, Function)
        yield from walk(function.body)


def calls_itself(module: Module) -> bool:
    graph = call_graph(module)
    return any(len(c) > 1 or c[0] in graph[c[0]] for c in strong_components(graph))


def is_static(program: Program) -> bool:
    """Whether a program has no recursion, no data or data-dependent sizes, and loops of known numbers of rounds."""
    first = Pipeline("specialize, structure", stage="typed")(program.function.typed(*program.arguments))
    if calls_itself(first):
        return False
    for binding in bindings(program.function.core(*program.arguments)):
        value = binding.value
        if isinstance(value, Loop) and (value.counter is None or not isinstance(value.counter.count, Constant)):
            return False
        if isinstance(value, BindDim) or mentions(binding.targets):
            return False
        for target in binding.targets:
            if isinstance(target.type, DataType | StackType | RefType):
                return False
            if isinstance(target.type, TensorType) and ANY in target.type.shape:
                return False
    return True


DIFFERENTIABLE = [p for p in programs() if p.differentiable]


@pytest.mark.parametrize("program", sample(DIFFERENTIABLE, 80), ids=lambda p: p.name)
def test_derivatives_of_static_programs_hold_tensors_only(program: Program) -> None:
    if not is_static(program):
        pytest.skip("recursion, dynamic data or dynamic loops")
    core = relay.value_and_grad(program.function).core(*program.arguments)
    if any(isinstance(b.value, Loop) and finds_places(b.value) for b in bindings(core)):
        pytest.skip("rounds of a loop are partitioned: how many are in a part is found at run time")
    assert set(core.functions) == {core.entry}
    handed = [str(t) for t in (*core.main.type.parameters, core.main.type.result)]  # the user's own data types
    for binding in bindings(core):
        assert not any(isinstance(a, Global) for a in operands(binding.value))
        for target in binding.targets:
            assert not isinstance(target.type, RefType | StackType | FunctionType)
            if isinstance(target.type, DataType):
                assert any(str(target.type) in type_ for type_ in handed)


def test_many_programs_of_the_zoo_are_static() -> None:
    assert sum(map(is_static, DIFFERENTIABLE[::7])) > 10
