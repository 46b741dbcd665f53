"""Partial evaluation: recursive functions and loops are specialized to constants and known constructors.

    power(x, 3)        power_3(x) = x * power_2(x); power_2(x) = x * power_1(x); power_1(x) = x

Each set of constants and constructors that a function is called with gives one version of it (polyvariant
specialization, after Jones, Gomard and Sestoft): its body with them in place of parameters, simplified and folded, in
which further calls get versions in turn. A version that is being made, or was, is called again, so `loop(x) = loop(x)`
ends as a call of itself. A recursion that what is known does not end would give versions for ever: where the versions
that one call needs have more than `budget` bindings together, the call stays as it is, and also where the data that a
recursion is called with only grows from call to call, as a continuation does (the versions before are embedded in it;
after Sorensen and Gluck). `inline` then puts versions that are called once in their places.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import numpy as np

from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    Derivative,
    Expr,
    Function,
    Global,
    Loop,
    LoopLabel,
    MakeTuple,
    Module,
    Var,
)
from relay.ir.rebuild import copy_block, map_blocks
from relay.ir.traverse import count_bindings, walk
from relay.transform.aggregates.known_structures import (
    Known,
    KnownConstructor,
    is_embedded,
    rebuilt_value,
    structure_of,
    unknown_parts,
    unroll_over_structure,
)
from relay.transform.analysis.graph import call_graph, strong_components
from relay.transform.analysis.implicit_dims import given_sizes, gives_sizes
from relay.transform.cleanup.constant_folding import fold_constants
from relay.transform.cleanup.simplification import simplify
from relay.transform.core.rebuilding import with_body, with_functions
from relay.transform.module_pass import pass_about

BUDGET = 256
"""The most bindings that the versions for one call have together."""

_LARGEST = 16  # elements of a constant that a version is made for
_ROUNDS = 32
_PATIENCE = 4  # calls of one function that may turn out to need too many versions
_GROWING = 6  # versions of one function in a row, each called by the last one with more data

_Number: TypeAlias = tuple[str, tuple[int, ...], bytes]
_Key: TypeAlias = tuple[str, tuple[_Number | KnownConstructor | None, ...]]


@pass_about(Call, Loop)
def evaluate_partially(module: Module, budget: int = BUDGET) -> Module:
    """The module with recursive functions specialized to the constants that they are called with, where that ends
    within `budget` bindings for a call."""
    for _ in range(_ROUNDS):  # what one version or round makes may be known in the next
        made = _specialize_calls(module, budget)
        if made is module:
            break
        module = made
    return module


def _specialize_calls(module: Module, budget: int) -> Module:
    evaluation = _PartialEvaluation(module, budget)
    functions: dict[str, Function | Derivative] = {}
    for name, function in module.functions.items():
        functions[name] = function
        if isinstance(function, Function):
            functions[name] = with_body(function, evaluation.block(function.body))
    if not evaluation.changed:
        return module
    return with_functions(module, {**functions, **evaluation.versions})


class _PartialEvaluation:
    """`versions` are the functions that were made; `changed`: whether something was."""

    def __init__(self, module: Module, budget: int) -> None:
        self.budget = budget
        self.versions: dict[str, Function] = {}
        self.names: dict[_Key, str] = {}
        self.failures: Counter[str] = Counter()
        self.taken = set(module.functions)
        self.changed = False
        self.known: Known = {}
        for function in module.functions.values():
            if isinstance(function, Function):
                self.learn(function.body)
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

    def learn(self, block: Block) -> None:
        """Record the data and tuples that are constructed in a block."""
        for binding in walk(block):
            value = binding.value
            made = self.known.get(value) if isinstance(value, Var) else value
            if isinstance(made, Construct | MakeTuple):
                self.known[binding.targets[0]] = made

    def block(self, block: Block) -> Block:
        """A block with its calls of recursive functions on what is known replaced by calls of versions, and loops
        through what is known by their rounds."""
        if not self.recursive and not self.known:
            return block
        bindings: list[Binding] = []
        for binding in block.bindings:
            made: Expr = map_blocks(binding.value, self.block)
            rounds = (
                unroll_over_structure(made, binding.targets, self.known, self.budget)
                if isinstance(made, Loop)
                else None
            )
            if rounds is not None:
                bindings += rounds
                self.changed = True
                continue
            key = self.key(made)
            if key is not None and self._make(key):
                made = self.call(made, key, self.names)
                self.changed = True
            bindings.append(Binding(binding.targets, made))
        return Block(tuple(bindings), block.terminator)

    def key(self, value: Expr) -> _Key | None:
        """The version that a call needs; None for what is not such a call."""
        match value:
            case Call(Global(name), arguments) if name in self.recursive:
                contents = tuple(
                    _content(a) if isinstance(a, Constant) else structure_of(a, self.known) for a in arguments
                )
                return None if all(c is None for c in contents) else (name, contents)
            case _:
                return None

    def call(self, value: Expr, key: _Key, names: dict[_Key, str]) -> Call:
        """The call of a version."""
        assert isinstance(value, Call)
        rest: list[Atom] = []
        for argument, content in zip(value.arguments, key[1], strict=True):
            if not isinstance(content, tuple):
                rest += unknown_parts(argument, content, self.known)
        return Call(Global(names[key]), tuple(rest), value.span)

    def _make(self, root: _Key) -> bool:
        """Make a version and those that it needs; False if there are too many."""
        if root in self.names:
            return True
        if self.failures[root[0]] >= _PATIENCE:
            return False
        names: dict[_Key, str] = {root: self._name(root[0])}
        versions: dict[str, Function] = {}
        callers: dict[_Key, _Key | None] = {root: None}
        growths: dict[_Key, int] = {root: 0}
        pending, size = [root], 0
        while pending:
            key = pending.pop()
            body, parameters = self._body(key)
            size += max(1, sum(not isinstance(b.value, Construct) for b in walk(body.body)))
            calls = _VersionCalls(self, names, pending)
            before = len(pending)
            versions[names[key]] = Function(
                names[key], parameters, calls.block(body.body), body.label, body.result, span=body.span
            )
            for called in pending[before:]:
                callers[called] = key
                earlier = callers[called]
                while earlier is not None and earlier[0] != called[0]:
                    earlier = callers[earlier]
                is_larger = earlier is not None and _grows(earlier, called)
                growths[called] = growths[earlier] + 1 if earlier is not None and is_larger else 0
            if size > self.budget or any(growths[called] >= _GROWING for called in pending[before:]):
                self.failures[root[0]] += 1
                self.taken.difference_update(names.values())
                return False
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
        """A function with what is known in place of parameters, simplified, and the parameters that are left."""
        function = self.recursive[key[0]]
        mapping: dict[Var, Var | Constant] = {}
        left: list[Var] = []
        before: list[Binding] = []
        for parameter, content in zip(function.parameters, key[1], strict=True):
            match content:
                case None:
                    left.append(Var(parameter.name, parameter.type, parameter.span))
                    mapping[parameter] = left[-1]
                case KnownConstructor():
                    mapping[parameter] = rebuilt_value(content, parameter.name, left, before)
                case _:
                    mapping[parameter] = _constant(content)
        parameters = tuple(left)
        label = LoopLabel(function.label.name)
        body = copy_block(function.body, mapping, {function.label: label})
        body = Block((*before, *body.bindings), body.terminator)
        made = Function(function.name, parameters, body, label, function.result, span=function.span)
        while True:
            small = Module({function.name: made}, function.name)
            after = fold_constants(simplify(small)).main
            if count_bindings(after.body) == count_bindings(made.body):
                self.learn(after.body)
                return after, parameters
            made = after


class _VersionCalls:
    """The calls in a version: of versions that are there, or in `names`, to which new ones are added."""

    def __init__(self, evaluation: _PartialEvaluation, names: dict[_Key, str], pending: list[_Key]) -> None:
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


def _grows(before: _Key, after: _Key) -> bool:
    """True if a function calls itself with the same constants and more data."""
    return before != after and all(
        is_embedded(a, b) if isinstance(a, KnownConstructor) and isinstance(b, KnownConstructor) else a == b
        for a, b in zip(before[1], after[1], strict=True)
    )


def _content(constant: Constant) -> _Number | None:
    value = constant.value
    return (value.dtype.name, value.shape, value.tobytes()) if value.size <= _LARGEST else None


def _constant(content: _Number) -> Constant:
    name, shape, data = content
    return Constant(np.frombuffer(data, np.dtype(name)).reshape(shape).copy())
