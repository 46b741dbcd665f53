"""Rewriting of finished programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay.errors import CompileError, InternalError, TypeMismatch
from relay.ir.expr import Binding, Block, Module, OpCall
from relay.ir.rebuild import map_parts, rebind, rebuild_block
from relay.ir.types import show
from relay.ir.validation.check import check
from relay.operator import Emitter, Value
from relay.transform.core.rebuilding import map_bodies


def replace_calls(module: Module, change: Callable[[OpCall, Sequence[Value]], Value | None]) -> Module:
    """The module with other values in the place of operator calls: `change(call, operands)` builds one of the operands,
    or returns None for a call that stays. It sees each call once, not those that it makes.

    Raises TypeMismatch for a value of another type than the call's, CompileError for one that is not in scope.
    """

    def block(given: Block) -> Block:
        bindings: list[Binding] = []
        for binding in given.bindings:
            value = map_parts(binding.value, block=block)
            if isinstance(value, OpCall):
                emitter = Emitter(value.span)
                made = change(value, [emitter.value(a) for a in value.arguments])
                if made is not None:
                    (target,) = binding.targets
                    if made.type != target.type:
                        wanted = "nothing" if target.type is None else show(target.type)
                        raise TypeMismatch(f"{value.operator} is {wanted}, and in its place is {show(made.type)}")
                    bindings += [*emitter.bindings, Binding((target,), made.atom)]
                    continue
            bindings.append(rebind(binding, value))
        return rebuild_block(given, bindings, given.terminator)

    result = map_bodies(module, lambda function: block(function.body))
    try:
        check(result)
    except InternalError as error:
        raise CompileError(f"the rewritten program is not well formed: {error.message}") from None
    return result
