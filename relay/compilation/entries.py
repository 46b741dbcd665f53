"""Entries: another function of a program that is given as text as the function to call."""

from __future__ import annotations

import difflib

from relay.ir.analysis.reachability import reachable_functions
from relay.ir.dims import variables
from relay.ir.expr import Binding, Block, Call, Derivative, Exit, Function, Global, LoopLabel, Module, Var
from relay.ir.sizes.extents import symbolic_dims
from relay.ir.validation.check import Violation, check


class EntryError(Exception):
    """The reason why a function cannot be the entry of a program."""


def with_entry(module: Module, name: str) -> Module:
    """The module with another entry, the functions that it needs, and what is assumed of the sizes of its arguments.

    Raises EntryError.
    """
    if name not in module.functions:
        close = difflib.get_close_matches(name, list(module.functions), n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(module.functions)}"
        raise EntryError(f"the program has no function {name!r}; {hint}")
    needed = reachable_functions(module, name)
    functions = {n: f for n, f in module.functions.items() if n in needed}
    if isinstance(functions[name], Derivative):
        name = _call_derivative(functions, name)
    entered = Module(functions, name, module.data)
    own = set(symbolic_dims(entered))
    where = tuple(c for c in module.where if own.issuperset((*variables(c.left), *variables(c.right))))
    entered = Module(functions, name, module.data, where)
    try:
        pending = any(isinstance(f, Derivative) for f in functions.values())
        check(entered, "core" if pending else "typed")
    except Violation as violation:
        raise EntryError(f"{name} cannot be the entry: {violation.violation}") from None
    return entered


def _call_derivative(functions: dict[str, Function | Derivative], name: str) -> str:
    """Add a function that calls a derivative, which is not itself a function before it is made; returns its name."""
    type_, own = functions[name].type, f"{name}__entry"
    while own in functions:
        own += "_"
    parameters = tuple(Var(f"x{i}" if i else "x", t) for i, t in enumerate(type_.parameters))
    result = Var("result", type_.result)
    label = LoopLabel(own)
    call = Binding((result,), Call(Global(name, type_), parameters))
    functions[own] = Function(own, parameters, Block((call,), Exit(label, (result,))), label, type_.result)
    return own
