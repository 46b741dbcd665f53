"""Fusion as a transformation: every group of `relay.transform.fusion.fusion_groups` becomes a function of the module.

    t = add(x, 1.0); y = exp(t)         y = @exp_add(x)        fn exp_add(x) { t = add(x, 1.0); y = exp(t); y }

Groups that are equal up to names share one function, so the text shows the kernels that code generation would make of a
program. Code generation makes the same groups from the program without these calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from relay.errors import Span
from relay.ir.analysis.alpha import alpha_hash
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
    MakeTuple,
    Module,
    OpCall,
    Project,
    Var,
)
from relay.ir.rebuild import copy_function, map_blocks
from relay.ir.traverse import operands
from relay.ir.types import FunctionType, TensorType, TupleType, Type
from relay.transform.core.rebuilding import with_body, with_functions
from relay.transform.fusion.fusion_calls import is_call
from relay.transform.fusion.fusion_groups import FusionGroup, plan
from relay.transform.module_pass import module_pass

LONGEST_NAME = 40


@module_pass
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
    """True if a function is one group already."""
    end = function.body.terminator
    groups = plan(function.body)
    if len(groups) != 1 or not isinstance(end, Exit):
        return False
    (group,) = groups.values()
    others = function.body.bindings[len(group.bindings) :]
    if len(group.outputs) == 1:
        return not others and end.values == group.outputs
    made = others[0].value if len(others) == 1 else None
    return isinstance(made, MakeTuple) and made.items == group.outputs and end.values == others[0].targets


def function_of(group: FusionGroup, parameters: Sequence[Var]) -> Function:
    """A function of what a group reads that gives what others read of it: bare, or several in a tuple."""
    label, bindings, span = LoopLabel("kernel"), group.bindings, group.bindings[-1].value.span
    result = group.outputs[0]
    if len(group.outputs) > 1:
        result = Var("results", TupleType(tuple(_known_type(output) for output in group.outputs)))
        bindings = (*bindings, Binding((result,), MakeTuple(group.outputs, span)))
    body = Block(bindings, Exit(label, (result,)))
    return Function("kernel", tuple(parameters), body, label, result.type, span=span)


def _known_type(variable: Var) -> Type:
    assert variable.type is not None
    return variable.type


_Key = tuple[str, tuple[TypeId | Unknown, ...]]


def _key(function: Function) -> _Key:
    """The same for kernels that are equal up to names: their hash, and the symbolic dims, which are not names."""
    types = [v.type for v in function.parameters] + [t.type for b in function.body.bindings for t in b.targets]
    shapes = [t.shape for t in types if isinstance(t, TensorType)]
    return alpha_hash(function), tuple(
        dict.fromkeys(v for shape in shapes for dim in shape for v in _sorted_variables(dim))
    )


def _sorted_variables(dim: Dim) -> list[TypeId | Unknown]:
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
                bindings += self._outlined_call(groups[position], binding.value.span)
            elif not is_call(binding):  # else it is in a group, or nobody uses it
                changed: Expr = map_blocks(binding.value, self.block)
                bindings.append(Binding(binding.targets, changed))
        return Block(tuple(bindings), block.terminator)

    def _outlined_call(self, group: FusionGroup, span: Span | None) -> list[Binding]:
        """A call of the group's function in place of its calls."""
        call = self._call(group, span)
        if len(group.outputs) == 1:
            return [Binding(group.outputs, call)]
        assert isinstance(call.function, Global) and isinstance(call.function.type, FunctionType)
        results = Var("results", call.function.type.result)
        parts = [Binding((output,), Project(results, n, span)) for n, output in enumerate(group.outputs)]
        return [Binding((results,), call), *parts]

    def _call(self, group: FusionGroup, span: Span | None) -> Call:
        """The call of the group's function, with what the group reads from outside."""
        inside = {target for b in group.bindings for target in b.targets}
        outside: dict[Var, None] = {}
        for binding in group.bindings:
            outside.update((a, None) for a in operands(binding.value) if isinstance(a, Var) and a not in inside)
        arguments: tuple[Atom, ...] = tuple(outside)
        return Call(self._function(group, tuple(outside)), arguments, span)

    def _function(self, group: FusionGroup, parameters: tuple[Var, ...]) -> Global:
        draft = function_of(group, parameters)
        key = _key(draft)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._name(group)
            copy = copy_function(draft)
            self.kernels[known] = Function(known, copy.parameters, copy.body, copy.label, copy.result, span=copy.span)
        return Global(known, draft.type, draft.span)

    def _name(self, group: FusionGroup) -> str:
        """The operators of the group, in order, with a number where the name is taken."""
        words = [b.value.operator for b in group.bindings if isinstance(b.value, OpCall)]
        base = "fused_" + re.sub(r"[^A-Za-z0-9_]", "_", "_".join(words))[:LONGEST_NAME]
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name
