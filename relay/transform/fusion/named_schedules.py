"""Schedules by the names of values: `@relay(schedule={"y": {"tile": (8, 32)}})`.

    y = multiply(a, b)        y' = multiply(a, b); y = schedule(y', tile=(8, 32))

A value is what the program assigns to the name, in any function and branch. The operator `schedule` says what a
schedule may be.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from relay.errors import CompileError, TypeMismatch
from relay.ir.expr import Binding, Block, Module, OpCall, Var
from relay.ir.rebuild import map_parts, rebind, rebuild_block
from relay.ir.types import TensorType
from relay.operator import Emitter
from relay.transform.core.rebuilding import map_bodies


def schedule_bindings(module: Module, schedules: Mapping[str, Mapping[str, Any]]) -> Module:
    """The module in which the values of these names are computed by kernels with these loops. Raises CompileError for a
    name that no operator's result has, and for what the operator `schedule` does not take."""
    blocks = [name for name, options in schedules.items() if options.get("in_blocks")]
    if blocks and not any(options.get("tile") for options in schedules.values()):
        help = "give the value that is computed from it a tile"
        raise CompileError(f"{blocks[0]!r} is to be computed in blocks, and no value has a tile", help=help)
    scheduler = _Scheduler(schedules)
    made = map_bodies(module, lambda function: scheduler.block(function.body))
    for name in schedules:
        if name not in scheduler.used:
            close = difflib.get_close_matches(name, scheduler.names, n=1)
            help = f"did you mean {close[0]!r}?" if close else f"it computes {', '.join(sorted(scheduler.names))}"
            raise CompileError(f"{module.main.name} computes no tensor {name!r} to schedule", help=help)
    return made


class _Scheduler:
    """The names that operators' results have, and those that were scheduled."""

    def __init__(self, schedules: Mapping[str, Mapping[str, Any]]) -> None:
        self.schedules = schedules
        self.names: set[str] = set()
        self.used: set[str] = set()

    def block(self, block: Block) -> Block:
        """A block with its values, and those in it, scheduled."""
        bindings: list[Binding] = []
        for binding in block.bindings:
            value = map_parts(binding.value, block=self.block)
            target = binding.targets[0] if len(binding.targets) == 1 else None
            if not isinstance(value, OpCall) or target is None or not isinstance(target.type, TensorType):
                bindings.append(rebind(binding, value))
                continue
            self.names.add(target.name)
            chosen = self.schedules.get(target.name)
            bindings += [rebind(binding, value)] if chosen is None else self._scheduled(target, value, chosen)
        return rebuild_block(block, bindings, block.terminator)

    def _scheduled(self, target: Var, call: OpCall, chosen: Mapping[str, Any]) -> list[Binding]:
        self.used.add(target.name)
        whole, emitter = Var(target.name, target.type, target.span), Emitter(call.span)
        try:
            emitter.value(whole).op("schedule", **chosen)
        except (TypeMismatch, TypeError) as error:
            reason = error.message if isinstance(error, TypeMismatch) else str(error)
            raise CompileError(f"the schedule of {target.name!r}: {reason}", target.span) from None
        (made,) = emitter.bindings
        return [Binding((whole,), call), Binding((target,), made.value)]
