"""Expansion of composite operators: a call is replaced by the operator's body.

A composite operator with its own code stays, except where it is differentiated and has no gradient of its own. The code
of a body gets the place of the operator's call.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Derivative,
    Expr,
    Function,
    Global,
    MakeTuple,
    Module,
    OpCall,
    Var,
)
from relay.ir.rebuild import copy_function, map_blocks, map_parts
from relay.ir.traverse import blocks
from relay.ir.types import DataDefinition, TensorType, TupleType
from relay.operator import Operator, lookup
from relay.transform.analysis.graph import call_graph
from relay.transform.cleanup.inlining import inlined_call
from relay.transform.core.rebuilding import with_body, with_functions
from relay.transform.module_pass import module_pass


@module_pass
def expand_composites(module: Module, *, will_be_differentiated: bool = False) -> Module:
    """The module with composite operators replaced by their bodies; those with a gradient of their own stay where a
    pending derivative reaches them, or everywhere if derivatives of the module may be taken later."""
    differentiated = set(module.functions) if will_be_differentiated else _differentiated_functions(module)
    expansion = _CompositeExpansion(module)
    for name, function in module.functions.items():
        if isinstance(function, Function):
            body = expansion.block(function.body, name in differentiated)
            if body is not function.body:
                expansion.functions[name] = with_body(function, body)
    if not expansion.changed:
        return module
    return with_functions(module, expansion.functions, expansion.data)


def _differentiated_functions(module: Module) -> set[str]:
    """The functions that a pending derivative reaches."""
    pending = [f.of for f in module.functions.values() if isinstance(f, Derivative)]
    if not pending:
        return set()
    graph, found = call_graph(module), set[str]()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += graph[name]
    return found


def _is_expanded(operator: Operator, differentiated: bool) -> bool:
    if operator.composition is None:
        return False
    if differentiated:  # one with a gradient of its own is expanded when that has been used
        return operator.gradient is None and operator.no_gradient is None
    return operator.compute is None and operator.external is None


class _CompositeExpansion:
    def __init__(self, module: Module) -> None:
        self.functions: dict[str, Function | Derivative] = dict(module.functions)
        self.data: list[DataDefinition] = []
        self.changed = False

    def block(self, block: Block, differentiated: bool) -> Block:
        bindings: list[Binding] = []
        changed = False
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, OpCall):
                operator = lookup(value.operator)
                if _is_expanded(operator, differentiated):
                    bindings += self._expand(binding.targets[0], operator, value, differentiated)
                    changed = True
                    continue
            inside = {b: self.block(b, differentiated) for b in blocks(value)}
            if all(before is after for before, after in inside.items()):
                bindings.append(binding)
                continue
            bindings.append(Binding(binding.targets, map_blocks(value, inside.__getitem__)))
            changed = True
        if not changed:
            return block
        self.changed = True
        return Block(tuple(bindings), block.terminator)

    def _expand(self, target: Var, operator: Operator, call: OpCall, differentiated: bool) -> list[Binding]:
        assert operator.composition is not None
        types = tuple(map(_type, call.arguments))
        attributes = {**operator.attributes, **call.attributes}
        body = operator.composition.body(types, attributes).core
        names = self._adopt(body, call, differentiated)
        arguments: tuple[Atom, ...] = call.arguments
        before: list[Binding] = []
        if operator.variadic:
            whole = Var("operands", TupleType(types), call.span)
            before.append(Binding((whole,), MakeTuple(arguments, call.span)))
            arguments = (whole,)
        name = names[body.entry]
        entry = self.functions[name]
        assert isinstance(entry, Function)
        made = Call(Global(name, entry.type, call.span), arguments, call.span)
        if len(names) == 1:
            inlined = inlined_call(target, entry, made)
            if inlined is not None:
                del self.functions[name]
                return [*before, *inlined]
        return [*before, Binding((target,), made)]

    def _adopt(self, body: Module, call: OpCall, differentiated: bool) -> dict[str, str]:
        """Copy the body's functions into the module under free names; maps their old names to the new ones."""
        names: dict[str, str] = {}
        for name in body.functions:
            free, count = name, 1
            while free in self.functions or free in names.values():
                free, count = f"{name}_{count}", count + 1
            names[name] = free
        for name, function in body.functions.items():
            assert isinstance(function, Function)  # the core of a body has no pending derivatives
            copy = copy_function(function)
            placed = _relocate_block(copy.body, names, call)
            # Copies of bodies hold composite operators with code of their own; these may have to go, too.
            block = self.block(placed, differentiated)
            self.functions[names[name]] = attrs.evolve(copy, name=names[name], body=block)  # type: ignore[misc]
        known = {id(d) for d in self.data}
        self.data += [d for d in body.data if id(d) not in known]
        self.changed = True
        return names


def _relocate_block(block: Block, names: Mapping[str, str], call: OpCall) -> Block:
    """The block with functions renamed and everything at the call's place."""

    def atom(a: Atom) -> Atom:
        return Global(names.get(a.name, a.name), a.type, call.span) if isinstance(a, Global) else a

    def expression(value: Expr) -> Expr:
        made = map_parts(value, atom=atom, block=relocate_inner)
        if isinstance(made, Var) or not hasattr(made, "span"):
            return made
        return attrs.evolve(made, span=call.span)  # type: ignore[misc]

    def relocate_inner(part: Block) -> Block:
        return Block(tuple(Binding(b.targets, expression(b.value)) for b in part.bindings), part.terminator)

    return relocate_inner(block)


def _type(atom: Atom) -> TensorType:
    type_ = getattr(atom, "type", None)
    assert isinstance(type_, TensorType)
    return type_
