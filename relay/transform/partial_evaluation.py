"""Recursive functions called with constants are made for these constants.

    power(x, 3)        power_3(x) = x * power_2(x); power_2(x) = x * power_1(x); power_1(x) = x

Each set of constants that a function is called with gives one version of it (polyvariant specialisation, after Jones,
Gomard and Sestoft): its body with the constants in place of parameters, simplified and folded, in which further calls
get versions in turn. A version that is being made, or was, is called again, so `loop(x) = loop(x)` ends as a call of
itself. A recursion that the constants do not end would give versions for ever: where the versions that one call needs
have more than `budget` bindings together, the call stays as it is. `inline` then puts versions that are called once in
their places.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import numpy as np

from relay.ir.expr import Binding, Block, Call, Constant, Derivative, Expr, Function, Global, LoopLabel, Module, Var
from relay.ir.traverse import copy_block, count_bindings, map_blocks
from relay.transform.constant_folding import fold_constants
from relay.transform.functions import with_body, with_functions
from relay.transform.given_sizes import given_sizes, gives_sizes
from relay.transform.graph import call_graph, strong_components
from relay.transform.simplification import simplify

BUDGET = 256
"""The most bindings that the versions for one call have together."""

_LARGEST = 16  # elements of a constant that a version is made for
_PATIENCE = 4  # calls of one function that may turn out to need too many versions

_Key: TypeAlias = tuple[str, tuple[tuple[str, tuple[int, ...], bytes] | None, ...]]


def evaluate_partially(module: Module, budget: int = BUDGET) -> Module:
    """The module with recursive functions specialised to the constants that they are called with, where that ends
    within `budget` bindings for a call."""
    evaluation = _Evaluation(module, budget)
    functions: dict[str, Function | Derivative] = {}
    for name, function in module.functions.items():
        if isinstance(function, Function):
            body = evaluation.block(function.body)
            functions[name] = function if body is function.body else with_body(function, body)
        else:
            functions[name] = function
    if not evaluation.versions:
        return module
    return with_functions(module, {**functions, **evaluation.versions})


class _Evaluation:
    """`versions` are the functions that were made."""

    def __init__(self, module: Module, budget: int) -> None:
        self.budget = budget
        self.versions: dict[str, Function] = {}
        self.names: dict[_Key, str] = {}
        self.failures: Counter[str] = Counter()
        self.taken = set(module.functions)
        graph = call_graph(module)
        given = given_sizes(module.functions, graph)
        self.recursive: dict[str, Function] = {}
        for component in strong_components(graph):
            for name in component:
                function = module.functions[name]
                if isinstance(function, Function) and function.rule is None and (
                    len(component) > 1 or name in graph[name]
                ) and not gives_sizes(function.body, given):  # fmt: skip
                    self.recursive[name] = function

    def block(self, block: Block) -> Block:
        """A block with its calls of recursive functions on constants replaced by calls of versions."""
        if not self.recursive:
            return block
        bindings: list[Binding] = []
        changed = False
        for binding in block.bindings:
            made: Expr = map_blocks(binding.value, self.block)
            key = self.key(made)
            if key is not None and self._make(key):
                made = self.call(made, key, self.names)
            changed |= made is not binding.value
            bindings.append(binding if made is binding.value else Binding(binding.targets, made))
        return Block(tuple(bindings), block.terminator) if changed else block

    def key(self, value: Expr) -> _Key | None:
        """The version that a call needs; None for what is no such call."""
        match value:
            case Call(Global(name), arguments) if name in self.recursive:
                constants = tuple(_content(a) if isinstance(a, Constant) else None for a in arguments)
                return None if all(c is None for c in constants) else (name, constants)
            case _:
                return None

    @staticmethod
    def call(value: Expr, key: _Key, names: dict[_Key, str]) -> Call:
        """The call of a version."""
        assert isinstance(value, Call)
        rest = tuple(a for a, c in zip(value.arguments, key[1], strict=True) if c is None)
        return Call(Global(names[key]), rest, value.span)

    def _make(self, root: _Key) -> bool:
        """Make a version and those that it needs; whether there are few enough."""
        if root in self.names:
            return True
        if self.failures[root[0]] >= _PATIENCE:
            return False
        names: dict[_Key, str] = {root: self._name(root[0])}
        versions: dict[str, Function] = {}
        pending, size = [root], 0
        while pending:
            key = pending.pop()
            body, parameters = self._body(key)
            size += max(1, count_bindings(body.body))
            if size > self.budget:
                self.failures[root[0]] += 1
                self.taken.difference_update(names.values())
                return False
            calls = _Calls(self, names, pending)
            versions[names[key]] = Function(
                names[key], parameters, calls.block(body.body), body.label, body.result, span=body.span
            )
        self.names.update(names)
        self.versions.update(versions)
        return True

    def _name(self, name: str) -> str:
        number = 1
        while f"{name}_{number}" in self.taken:
            number += 1
        self.taken.add(f"{name}_{number}")
        return f"{name}_{number}"

    def _body(self, key: _Key) -> tuple[Function, tuple[Var, ...]]:
        """A function with constants in place of parameters, simplified, and the parameters that are left."""
        function = self.recursive[key[0]]
        mapping: dict[Var, Var | Constant] = {}
        for parameter, constant in zip(function.parameters, key[1], strict=True):
            mapping[parameter] = (
                Var(parameter.name, parameter.type, parameter.span) if constant is None else _constant(constant)
            )
        parameters = tuple(v for v in mapping.values() if isinstance(v, Var))
        label = LoopLabel(function.label.name)
        body = copy_block(function.body, mapping, {function.label: label})
        made = Function(function.name, parameters, body, label, function.result, span=function.span)
        while True:
            small = Module({function.name: made}, function.name)
            after = fold_constants(simplify(small)).main
            if count_bindings(after.body) == count_bindings(made.body):
                return after, parameters
            made = after


class _Calls:
    """The calls in a version: of versions that are there, or in `names`, to which new ones are added."""

    def __init__(self, evaluation: _Evaluation, names: dict[_Key, str], pending: list[_Key]) -> None:
        self.evaluation, self.names, self.pending = evaluation, names, pending

    def block(self, block: Block) -> Block:
        bindings: list[Binding] = []
        for binding in block.bindings:
            made: Expr = map_blocks(binding.value, self.block)
            key = self.evaluation.key(made)
            if key is not None:
                known = self.evaluation.names if key in self.evaluation.names else self.names
                if key not in known:
                    known[key] = self.evaluation._name(key[0])
                    self.pending.append(key)
                made = self.evaluation.call(made, key, known)
            bindings.append(Binding(binding.targets, made))
        return Block(tuple(bindings), block.terminator)


def _content(constant: Constant) -> tuple[str, tuple[int, ...], bytes] | None:
    value = constant.value
    return (value.dtype.name, value.shape, value.tobytes()) if value.size <= _LARGEST else None


def _constant(content: tuple[str, tuple[int, ...], bytes]) -> Constant:
    name, shape, data = content
    return Constant(np.frombuffer(data, np.dtype(name)).reshape(shape).copy())
