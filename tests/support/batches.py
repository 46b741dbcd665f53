"""What becomes of the examples of a batch."""

from __future__ import annotations

from typing import Any

import relay
from relay.ir.expr import Function, Loop
from relay.ir.traverse import walk
from relay.transform.pipeline import Pipeline


def loops_over_examples(f: relay.RelayFunction, *arguments: Any) -> int:
    """The number of loops that run one example of `vmap` after the other, before derivatives are made."""
    module = Pipeline.for_level(2, ("lower", "prepare"), checked=True)(f.typed(*arguments))
    functions = [g for g in module.functions.values() if isinstance(g, Function)]
    loops = [b.value for g in functions for b in walk(g.body) if isinstance(b.value, Loop)]
    return sum(loop.label.name.startswith("for_index") for loop in loops)
