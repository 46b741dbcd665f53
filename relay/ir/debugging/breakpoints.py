"""`relay.breakpoint()` in the IR: an assertion that always holds, which the interpreter passes and every optimization
removes, so that only a debugger sees it."""

from __future__ import annotations

import numpy as np

from relay.errors import Span
from relay.ir.expr import Assert, Constant, Function, Module
from relay.ir.traverse import walk

_MESSAGE = "relay.breakpoint()"


def make_breakpoint(span: Span | None) -> Assert:
    """The node of a breakpoint."""
    return Assert(Constant(np.array(True), span), _MESSAGE, span)


def is_breakpoint(node: object) -> bool:
    """True if a node is a breakpoint."""
    return isinstance(node, Assert) and node.message == _MESSAGE


def breakpoint_in(module: Module) -> Assert | None:
    """The first breakpoint of a program."""
    for function in module.functions.values():
        if isinstance(function, Function):
            for binding in walk(function.body):
                if is_breakpoint(binding.value):
                    assert isinstance(binding.value, Assert)
                    return binding.value
    return None
