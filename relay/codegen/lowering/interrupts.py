"""Interrupts: loops and recursive functions let Python handle Ctrl-C and other signals from time to time.

A function counts the work of the rounds of its loops, as far as it is known at compile time, and checks for signals
after a certain amount. Without Python, as in an exported library that C++ calls, the check does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.codegen.lowering.context import CALLS, INTERRUPTED, STACK_LIMIT
from relay.codegen.lowering.function_builder import Code
from relay.codegen.lowering.values import Leaf
from relay.codegen.tvm import tir
from relay.codegen.tvm.tir import Expression, Statement, integer, tirx
from relay.ir.analysis.metering import Meter
from relay.ir.expr import Constant, Loop
from relay.ir.traverse import all_blocks
from relay.support.limits import UNLIMITED

ENOUGH = 1 << 26  # operations; some ten milliseconds
ENOUGH_CALLS = 1 << 20


class Interrupts:
    """The signals of one native function."""

    def __init__(self, code: Code, meter: Meter) -> None:
        self._code, self._meter = code, meter
        self._done: Leaf | None = None

    def loop(self, loop: Loop, condition: Expression, body: list[Statement]) -> None:
        """Emit a loop. A short one is part of the code around it.

        The check is outside of an inner loop, whose registers would have to be saved around it.
        """
        work = self._meter.block(loop.body)
        cost = work.flops + work.bytes // 8 + sum(len(block.bindings) for block in all_blocks(loop.body)) + 1
        count = loop.counter.count if loop.counter is not None else None
        code = self._code
        if isinstance(count, Constant) and int(count.value) * cost < ENOUGH:
            code.emit(tirx.While(condition, tir.sequence(body)))
            return
        if self._done is None:
            self._done = code.register(0)
        enough = integer(ENOUGH)
        with code.collect() as counting:
            code.store(self._done, code.load(self._done) + integer(min(cost, ENOUGH)))
        with code.collect() as ask:
            code.store(self._done, integer(0))
            _poll(code)
        with code.collect() as some:
            more = tirx.And(condition, tirx.LT(code.load(self._done), enough))
            code.emit(tirx.While(more, tir.sequence([*counting, *body])))
            code.emit_if(tirx.GE(code.load(self._done), enough), ask)
        code.emit(tirx.While(condition, tir.sequence(some)))


def recursive_call(code: Code) -> None:
    """Emit what each call of a recursive function does."""
    calls = code.bind(code.table(CALLS) + integer(1), name="calls")
    code.set_table(CALLS, calls)
    with code.collect() as ask:
        code.set_table(CALLS, integer(0))
        _poll(code)
    code.emit_if(tirx.GE(calls, integer(ENOUGH_CALLS)), ask)


def _poll(code: Code) -> None:
    raised = code.bind(tirx.call_extern("int32", "TVMFFIEnvCheckSignals"), "int32", "raised")
    with code.collect() as interrupted:
        code.emit(*code.failure(INTERRUPTED))
    code.emit_if(tirx.NE(raised, integer(0, "int32")), interrupted)
    # A thread that is not Python's main one gets no signals; whoever waits for it takes its stack away.
    code.emit_if(tirx.EQ(code.table(STACK_LIMIT), integer(UNLIMITED)), interrupted)


def let_python_raise(status: Expression) -> Sequence[Statement]:
    """Leave the program's entry with the exception that a signal's handler has raised, if that is the status."""
    leave = [
        tirx.Evaluate(tirx.call_extern("int32", "TVMFFIErrorSetRaisedFromCStr", "EnvErrorAlreadySet", "")),
        tir.fail(),
    ]
    return [tirx.IfThenElse(tirx.EQ(status, integer(INTERRUPTED)), tir.sequence(leave), None)]
