"""Collective operators: what all examples along an axis have is computed between loops over the examples.

    loop for i < n along "b" (r = rows) { y = f(x[i]); s = collective_sum(y); r' = set r i (y / s); next r' }

    loop for i < n (ys = ..) { y = f(x[i]); next (set ys i y) }
    s = sum(ys)
    loop for i < n (r = rows) { y = ys[i]; r' = set r i (y / s); next r' }

A loop along an axis is divided at the collective operators in its body (`axis_division`); functions that hold one are
inlined before.

Derivatives that are still to be made of a function with collective operators leave the calls of it in loops that keep
the axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

import attrs

from relay.errors import CompileError, InternalError
from relay.ir.expr import (
    Binding,
    Block,
    Call,
    CustomGradient,
    Derivative,
    Function,
    Global,
    Loop,
    Module,
    OpCall,
    Var,
)
from relay.ir.rebuild import map_blocks, rebind, rebuild_block
from relay.ir.traverse import NESTING, operands, walk
from relay.transform.analysis.graph import call_graph, strong_components
from relay.transform.analysis.value_ranges import ValueRanges
from relay.transform.cleanup.dead_code import drop_unreachable
from relay.transform.cleanup.inlining import inlined_call
from relay.transform.core.rebuilding import with_body, with_functions
from relay.transform.loops.axis_division import Division, asks, is_collective
from relay.transform.module_pass import module_pass


@module_pass
def lower_collectives(module: Module) -> Module:
    """The module without collective operators in loops along their axes, but for those in functions whose derivative is
    still to be made.

    Raises CompileError for a collective operator in a function that calls itself. Examples that do not come to one
    together, in a branch or loop that differs between them, fail when the program runs.
    """
    if not any(isinstance(f, Function) and _mentions_axes(f.body) for f in module.functions.values()):
        return module
    graph = call_graph(module)
    calling = _CollectiveFunctions(module, graph)
    functions = dict(module.functions)
    for component in strong_components(graph):
        for name in component:
            function = functions[name]
            if isinstance(function, Function):
                lowering = _Lowering(functions, calling, ValueRanges(function.body), name in calling.differentiated)
                functions[name] = with_body(function, lowering.block(function.body))
    return drop_unreachable(with_functions(module, functions))


def _mentions_axes(body: Block) -> bool:
    return any(
        (isinstance(b.value, Loop) and b.value.counter is not None and b.value.counter.axis != "")
        or (isinstance(b.value, OpCall) and is_collective(b.value))
        for b in walk(body)
    )


class _CollectiveFunctions:
    """The functions of a module that hold collective operators."""

    def __init__(self, module: Module, graph: Mapping[str, Iterable[str]]) -> None:
        self.functions = module.functions
        holding = {
            name
            for name, f in module.functions.items()
            if isinstance(f, Function) and any(is_collective(b.value) for b in walk(f.body))
        }
        derivatives = {n for n, f in module.functions.items() if isinstance(f, Derivative)}
        callers: dict[str, list[str]] = {}
        for name, callees in graph.items():
            for callee in callees:
                callers.setdefault(callee, []).append(name)
        self.recursive = {n for c in strong_components(graph) for n in c if len(c) > 1 or n in graph[n]}
        self.now = _transitive(holding, callers, stop=derivatives)
        self.later = _transitive(
            derivatives & _transitive(holding, callers, stop=frozenset()), callers, stop=frozenset()
        )
        self.differentiated = {
            n
            for n in derivatives
            for n in _callees_of(module.functions[n].of, graph)  # type: ignore[union-attr]
        }


def _transitive(start: Set[str], edges: Mapping[str, Iterable[str]], stop: Set[str]) -> set[str]:
    """The names that edges lead to, without going on behind some."""
    found, pending = set(start), list(start)
    while pending:
        for name in edges.get(pending.pop(), ()):
            if name not in found and name not in stop:
                found.add(name)
                pending.append(name)
    return found


def _callees_of(name: str, graph: Mapping[str, Iterable[str]]) -> set[str]:
    return _transitive({name}, graph, frozenset())


class _Lowering:
    """The loops along axes of one function."""

    def __init__(
        self,
        functions: Mapping[str, Function | Derivative],
        calling: _CollectiveFunctions,
        ranges: ValueRanges,
        is_differentiated: bool,
    ) -> None:
        self.functions, self.calling, self.ranges = functions, calling, ranges
        self.is_differentiated = is_differentiated  # a derivative of the function is still to be made

    def block(self, block: Block) -> Block:
        bindings: list[Binding] = []
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, Loop) and value.counter is not None and value.counter.axis:
                inner = self.block(self._inlined(value.body, value.counter.axis))
                bindings += _divided(binding, _with_body(value, inner), self)
            else:
                bindings.append(rebind(binding, map_blocks(value, self.block)))
        return rebuild_block(block, bindings, block.terminator)

    def _inlined(self, block: Block, axis: str) -> Block:
        """A block with the functions that hold collective operators in place of their calls."""
        bindings: list[Binding] = []
        pending = list(reversed(block.bindings))
        while pending:
            binding = pending.pop()
            value = binding.value
            if isinstance(value, Call) and isinstance(value.function, Global) and self._holds(value.function.name):
                pending += reversed(self._body(binding.targets[0], value, value.function.name))
            elif value.__class__ in NESTING:
                bindings.append(rebind(binding, map_blocks(value, lambda inner: self._inlined(inner, axis))))
            else:
                bindings.append(binding)
        return rebuild_block(block, bindings, block.terminator)

    def _holds(self, name: str) -> bool:
        return name in self.calling.now and isinstance(self.functions[name], Function)

    def _body(self, target: Var, call: Call, name: str) -> list[Binding]:
        function = self.functions[name]
        assert isinstance(function, Function)
        if isinstance(function.rule, CustomGradient) and name in self.calling.differentiated:
            raise CompileError(
                f"{function.label.name} has a gradient of its own, and asks for all examples of an axis",
                call.span,
                help="compute what all examples have outside of it",
            )
        made = None if name in self.calling.recursive else inlined_call(target, function, call)
        if made is None:
            raise CompileError(
                f"{function.label.name} calls itself, and asks for all examples of an axis",
                call.span,
                help="compute what all examples have outside of it, and pass it on",
            )
        return made

    def is_pending(self, block: Block) -> bool:
        """True if a block calls functions that will ask for an axis when their derivatives are made."""
        return any(
            isinstance(a, Global) and a.name in self.calling.later for b in walk(block) for a in operands(b.value)
        )


def _with_body(loop: Loop, body: Block) -> Loop:
    return loop if body is loop.body else attrs.evolve(loop, body=body)  # type: ignore[misc]


def _divided(binding: Binding, loop: Loop, lowering: _Lowering) -> list[Binding]:
    """The loops that a loop along an axis becomes."""
    counter = loop.counter
    assert counter is not None
    if not any(asks(b.value, counter.axis) for b in walk(loop.body)):
        if lowering.is_pending(loop.body):
            return [Binding(binding.targets, loop)]
        plain = attrs.evolve(loop, counter=attrs.evolve(counter, axis=""))  # type: ignore[misc]
        return [Binding(binding.targets, plain)]
    count = lowering.ranges.count(loop)
    if count is None:
        raise InternalError("the number of examples along an axis is not known")
    division = Division(loop, counter, count, lowering)
    return division.bindings(binding.targets)
