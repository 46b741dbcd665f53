"""Removal of what inference does not need: identities, dropout, assertions, prints.

    a = copy(x); b = stop_gradient(a); c = exp(b)          c = exp(x)
    a = dropout(x, key); b = exp(a)                        a = dropout(x, key, training=False); b = exp(a)
    assert c "why"; print "x = " x                         nothing

Which operator is an identity says its definition (`forwards`). Which one does something else while a network is trained
says its attribute `training`, which is off afterwards: dropout is its operand then, once it is expanded. A program with
pending derivatives keeps its identities, since derivatives tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable

from relay.ir.expr import Assert, Atom, Binding, Block, Constant, Derivative, Module, OpCall, Print, Var
from relay.ir.rebuild import map_parts, map_terminator, rebind, rebuild_block
from relay.operator import Operator, lookup
from relay.transform.core.rebuilding import map_bodies
from relay.transform.module_pass import module_pass


@module_pass
def remove_identities(module: Module) -> Module:
    """The module without operators whose result is one of their operands, unless it has pending derivatives."""
    if any(isinstance(f, Derivative) for f in module.functions.values()):
        return module
    return _forward(module, lambda operator: operator.algebra.forwards)


@module_pass
def switch_to_inference(module: Module) -> Module:
    """The module with operators that have an attribute `training`, as dropout has, as they are in inference. It is for
    programs whose composite operators have not been expanded."""

    def block(block_: Block) -> Block:
        bindings = []
        for binding in block_.bindings:
            value = map_parts(binding.value, block=block)
            if isinstance(value, OpCall) and lookup(value.operator).attributes.get("training") is True:
                value = OpCall(value.operator, value.arguments, {**value.attributes, "training": False}, value.span)
            bindings.append(rebind(binding, value))
        return rebuild_block(block_, bindings, block_.terminator)

    return map_bodies(module, lambda function: block(function.body))


@module_pass
def remove_assertions(module: Module) -> Module:
    """The module without assertions, those included that operators make of their requirements. What would have stopped
    the program goes on with any value."""
    return _drop_bindings(module, lambda value: isinstance(value, Assert) or (isinstance(value, Print) and value.fails))


@module_pass
def remove_prints(module: Module) -> Module:
    """The module without prints."""
    return _drop_bindings(module, lambda value: isinstance(value, Print) and not value.fails)


def _forward(module: Module, position: Callable[[Operator], int | None]) -> Module:
    return map_bodies(module, lambda function: _Forwarding(position).block(function.body))


class _Forwarding:
    """One function. Results of calls at which `position` names an operand of the result's type are that operand."""

    def __init__(self, position: Callable[[Operator], int | None]) -> None:
        self.position = position
        self.known: dict[Var, Atom] = {}

    def block(self, block: Block) -> Block:
        bindings: list[Binding] = []
        for binding in block.bindings:
            value = map_parts(binding.value, atom=self.atom, block=self.block)
            if isinstance(value, OpCall) and (place := self.position(lookup(value.operator))) is not None:
                operand = value.arguments[place]
                if isinstance(operand, Var | Constant) and operand.type == binding.targets[0].type:
                    self.known[binding.targets[0]] = operand
                    continue
            bindings.append(rebind(binding, value))
        return rebuild_block(block, bindings, map_terminator(block.terminator, self.atom))

    def atom(self, atom: Atom) -> Atom:
        return self.known.get(atom, atom) if isinstance(atom, Var) else atom


def _drop_bindings(module: Module, removed: Callable[[object], bool]) -> Module:
    def block(block_: Block) -> Block:
        kept = [b for b in block_.bindings if b.targets or not removed(b.value)]
        bindings = [rebind(b, map_parts(b.value, block=block)) for b in kept]
        return rebuild_block(block_, bindings, block_.terminator)

    return map_bodies(module, lambda function: block(function.body))
