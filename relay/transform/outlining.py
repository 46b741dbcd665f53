"""Fusion as a transformation: every group of `relay.transform.fusion` becomes a function of the module.

    t = add(x, 1.0); y = exp(t)         y = @exp_add(x)        fn exp_add(x) { t = add(x, 1.0); y = exp(t); y }

Groups that are equal up to names share one function, so the text shows the kernels that code generation would make of a
program. Code generation makes the same groups from the program without these calls.
"""

from __future__ import annotations

import re

from relay.ir.alpha import alpha_hash
from relay.ir.dims import Dim, TypeId, Unknown, variables
from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    Derivative,
    Exit,
    Expr,
    Function,
    Global,
    LoopLabel,
    Module,
    OpCall,
    Var,
)
from relay.ir.traverse import copy_function, map_blocks, operands
from relay.ir.types import TensorType
from relay.transform.functions import with_body, with_functions
from relay.transform.fusion import Group, plan

LONGEST_NAME = 40


def fuse(module: Module) -> Module:
    """The module with each group of operators that runs as one kernel in a function of its own."""
    outlining = _Outlining(module)
    functions: dict[str, Function | Derivative] = {}
    for name, function in module.functions.items():
        if isinstance(function, Function) and not (name != module.entry and _is_kernel(function)):
            functions[name] = with_body(function, outlining.block(function.body))
        else:
            functions[name] = function
    return with_functions(module, {**functions, **outlining.kernels})


def _is_kernel(function: Function) -> bool:
    """Whether a function is one group already."""
    end = function.body.terminator
    groups = plan(function.body)
    if len(groups) != 1 or not isinstance(end, Exit):
        return False
    (group,) = groups.values()
    return len(group.bindings) == len(function.body.bindings) and end.values == (group.output,)


_Key = tuple[str, tuple[TypeId | Unknown, ...]]


def _key(function: Function) -> _Key:
    """The same for kernels that are equal up to names: their hash, and the symbolic dims, which are no names."""
    types = [v.type for v in function.parameters] + [t.type for b in function.body.bindings for t in b.targets]
    shapes = [t.shape for t in types if isinstance(t, TensorType)]
    return alpha_hash(function), tuple(dict.fromkeys(v for shape in shapes for dim in shape for v in _sorted(dim)))


def _sorted(dim: Dim) -> list[TypeId | Unknown]:
    return sorted(variables(dim), key=lambda v: v.name)


class _Outlining:
    def __init__(self, module: Module) -> None:
        self.kernels: dict[str, Function] = {}
        self._taken = set(module.functions)
        self._known: dict[_Key, str] = {}
        for name, function in module.functions.items():
            if name != module.entry and isinstance(function, Function) and _is_kernel(function):
                self._known.setdefault(_key(function), name)

    def block(self, block: Block) -> Block:
        groups = plan(block)
        bindings: list[Binding] = []
        for position, binding in enumerate(block.bindings):
            if position in groups:
                bindings.append(Binding(binding.targets, self._call(groups[position], binding.value)))
            elif not isinstance(binding.value, OpCall):  # else it is in a group, or nobody uses it
                changed: Expr = map_blocks(binding.value, self.block)
                bindings.append(Binding(binding.targets, changed))
        return Block(tuple(bindings), block.terminator)

    def _call(self, group: Group, value: Expr) -> Call:
        """The call of the group's function, with what the group reads from outside."""
        inside = {target for b in group.bindings for target in b.targets}
        outside: dict[Var, None] = {}
        for binding in group.bindings:
            outside.update((a, None) for a in operands(binding.value) if isinstance(a, Var) and a not in inside)
        arguments: tuple[Atom, ...] = tuple(outside)
        return Call(self._function(group, tuple(outside)), arguments, value.span)

    def _function(self, group: Group, parameters: tuple[Var, ...]) -> Global:
        label = LoopLabel("kernel")
        body = Block(group.bindings, Exit(label, (group.output,)))
        draft = Function("kernel", parameters, body, label, group.output.type, span=group.bindings[-1].value.span)
        key = _key(draft)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._name(group)
            copy = copy_function(draft)
            self.kernels[known] = Function(known, copy.parameters, copy.body, copy.label, copy.result, span=copy.span)
        return Global(known, draft.type, draft.span)

    def _name(self, group: Group) -> str:
        """The operators of the group, in order, with a number where the name is taken."""
        words = [b.value.operator for b in group.bindings if isinstance(b.value, OpCall)]
        base = "fused_" + re.sub(r"[^A-Za-z0-9_]", "_", "_".join(words))[:LONGEST_NAME]
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name
