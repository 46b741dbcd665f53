"""The program that is debugged: a decorated function at some arguments, as a module that the interpreter runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from relay.api.function import RelayFunction
from relay.calling.results import Values, wrap
from relay.compilation.stages import CompiledSignature, to_core
from relay.errors import FrontendError
from relay.eval.interpreter import accept
from relay.eval.sizes import sizes_of
from relay.eval.tape import unbox
from relay.ir.debugging.source_names import SourceNames
from relay.ir.definition import Definition
from relay.ir.dims import TypeId
from relay.ir.expr import Derivative, Function, Grad, Module
from relay.ir.traverse import walk

STAGES = ("typed", "derived", "optimized")
"""The stages of the program to run: as it is written, with derivatives as separate programs, or as it is compiled."""


@attrs.frozen(eq=False)
class Program:
    """A call of a decorated function, ready to be run."""

    function: RelayFunction
    stage: str
    module: Module
    typed: Module  # as it is written
    names: SourceNames | None
    arguments: Sequence[object]  # as run-time values
    sizes: Mapping[TypeId, int]
    definitions: Sequence[Definition]  # of the decorated functions in it
    _signature: CompiledSignature
    _values: Values

    def result(self, value: object) -> Any:
        """The call's result, from the value that its program has returned. References hold what it has written to
        them."""
        signature = self._signature
        self._values.give_back(signature.parameters, interpreted=True)
        found = wrap(unbox(value), signature.result, interpreted=True)
        return found if signature.returned is None else signature.returned(found, self.function, True)


def program_of(
    function: RelayFunction, arguments: Sequence[Any], keywords: Mapping[str, Any], stage: str | None = None
) -> Program:
    """The program of a call.

    `stage` is one of `STAGES`; None: "typed", but "derived" for one that differentiates, so that its backward part can
    be seen. Raises what the call would raise before it runs, and FrontendError for what is not a decorated function.
    """
    if not isinstance(function, RelayFunction):
        found = type(function).__name__
        raise FrontendError(f"the debugger takes a decorated function, found {found}", help="debug.step(f, x)")
    if stage is not None and stage not in STAGES:
        raise FrontendError(f"there is no stage {stage!r}", help=f"one of {', '.join(map(repr, STAGES))}")
    signature, values = function.prepare_call(arguments, keywords)
    typed = signature.typed
    if stage is None:
        stage = "derived" if differentiates(typed) else "typed"
    module = {
        "typed": lambda: typed,
        "derived": lambda: to_core(typed, 0),
        "optimized": lambda: signature.core,
    }[stage]()
    accepted = accept(module.main, values)
    names = signature.source_names if stage == "typed" else None
    sizes = sizes_of(module, module.main, accepted)
    return Program(function, stage, module, typed, names, accepted, sizes, signature.used, signature, values)


def differentiates(module: Module) -> bool:
    """True if a program has derivatives in it."""
    for function in module.functions.values():
        if isinstance(function, Derivative):
            return True
        if isinstance(function, Function) and any(isinstance(b.value, Grad) for b in walk(function.body)):
            return True
    return False
