"""Another function of a program that is given as text as its entry."""

from __future__ import annotations

import difflib

from relay.cli.refusal import Refusal
from relay.ir.dims import variables
from relay.ir.expr import Binding, Block, Call, Derivative, Exit, Function, Global, LoopLabel, Module, Var
from relay.ir.sizes.extents import symbolic_dims
from relay.ir.traverse import all_blocks, operands, terminator_operands, walk
from relay.ir.validation.check import Violation, check


def with_entry(module: Module, name: str) -> Module:
    """The module with another entry, the functions that it needs, and what is assumed of the sizes of its arguments."""
    if name not in module.functions:
        close = difflib.get_close_matches(name, list(module.functions), n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(module.functions)}"
        raise Refusal(f"the program has no function {name!r}; {hint}")
    needed = _reachable_functions(module, name)
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
        raise Refusal(f"{name} cannot be the entry: {violation.violation}") from None
    return entered


def _call_derivative(functions: dict[str, Function | Derivative], name: str) -> str:
    """Add a function that calls a derivative, which is none itself before it is made; returns its name."""
    type_, own = functions[name].type, f"{name}__entry"
    while own in functions:
        own += "_"
    parameters = tuple(Var(f"x{i}" if i else "x", t) for i, t in enumerate(type_.parameters))
    result = Var("result", type_.result)
    label = LoopLabel(own)
    call = Binding((result,), Call(Global(name, type_), parameters))
    functions[own] = Function(own, parameters, Block((call,), Exit(label, (result,))), label, type_.result)
    return own


def _reachable_functions(module: Module, name: str) -> set[str]:
    """The functions that a function mentions, itself included, and so on."""
    needed: set[str] = set()
    pending = [name]
    while pending:
        current = pending.pop()
        function = module.functions.get(current)
        if current in needed or function is None:
            continue
        needed.add(current)
        if isinstance(function, Function):
            pending += function.rule_functions
            pending += (a.name for b in walk(function.body) for a in operands(b.value) if isinstance(a, Global))
            ends = (a for block in all_blocks(function.body) for a in terminator_operands(block.terminator))
            pending += (a.name for a in ends if isinstance(a, Global))
        else:
            pending.append(function.of)
    return needed
