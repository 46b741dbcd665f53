"""What the derivatives of recursive functions cost: counted, never timed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from programs.tree_recursion import WEIGHTS, Branching, encoded_tree, mutual_layers

import relay
from relay.eval.interpreter import Machine
from relay.eval.values import Closure
from relay.ir.expr import Function, Module, OpCall
from relay.ir.traverse import walk
from relay.ir.types import TensorType, TupleType, Type
from relay.operator import Operator


def tensors(type_: Type) -> list[TensorType]:
    if isinstance(type_, TupleType):
        return [t for item in type_.items for t in tensors(item)]
    return [type_] if isinstance(type_, TensorType) else []


def taped(module: Module) -> list[TensorType]:
    """The tensors in the data types of a module."""
    return [t for d in module.data for c in d.constructors for field in c.fields for t in tensors(field)]


def chain(length: int) -> Any:
    tree = Branching.Tip(np.full(3, 0.1))
    for k in range(length):
        tip = Branching.Tip(np.full(3, 0.1 * k))
        tree = Branching.Fork(tree, tip) if k % 2 else Branching.Fork(tip, tree)
    return tree


def run(monkeypatch: pytest.MonkeyPatch, function: Any, *arguments: Any) -> tuple[int, int]:
    """The interpreter's steps through a transformed program, and the elements that its operators make."""
    core, made = function.core(*arguments), [0]
    values = function._lower(arguments, {})[1]
    evaluate = Operator.evaluate

    def counted(self: Operator, *given: Any, **keywords: Any) -> Any:
        result = evaluate(self, *given, **keywords)
        made[0] += sum(np.size(r) for r in result) if isinstance(result, tuple) else np.size(result)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(Operator, "evaluate", counted)
        machine = Machine()
        machine.enter(Closure(core.main, {}, core), values)
        steps = 0
        while machine.frames:
            machine.step()
            steps += 1
    return steps, made[0]


def test_what_recursion_passes_on_is_on_no_tape() -> None:
    for function, arguments in (
        (relay.grad(encoded_tree, wrt=1), (chain(2), WEIGHTS)),
        (relay.grad(mutual_layers), (np.ones(3), np.eye(3), np.eye(3), np.int32(3))),
    ):
        module = function.core(*arguments)
        assert taped(module)
        assert not [t for t in taped(module) if t.rank == 2]


def test_cotangents_of_what_recursion_passes_on_start_once() -> None:
    module = relay.grad(encoded_tree, wrt=1).core(chain(2), WEIGHTS)
    for name, function in module.functions.items():
        assert isinstance(function, Function)
        zeros = [
            b
            for b in walk(function.body)
            if isinstance(b.value, OpCall) and b.value.operator == "zeros" and math.prod(b.targets[0].type.dims) == 9
        ]
        assert not zeros or name == module.entry


@pytest.mark.parametrize("order", [1, 2])
def test_the_gradient_of_a_recursion_grows_linearly(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(tree, weights):
        return relay.sum(relay.sin(relay.grad(encoded_tree, wrt=1)(tree, weights)["tip"]))

    function = relay.grad(encoded_tree if order == 1 else relay.relay(again), wrt=1)
    found = [run(monkeypatch, function, chain(length), WEIGHTS) for length in (8, 16, 24)]
    for a, b, c in zip(*found, strict=True):
        assert c - b <= 1.01 * (b - a)
