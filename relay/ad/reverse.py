"""Reverse-mode differentiation of the first-order core, by transformation.

Notation: x' is the cotangent of x, 0 one that is known to be zero while code is generated (nothing is emitted for it),
and `+=` updates x' at that point. Only variables that depend on a differentiated parameter and that the result depends
on have cotangents (`activity`). Cotangents of tuples are tuples of cotangents, known statically; those of data types
and stacks have types of their own (`cotangents`).

    function   f(p..) = e          f_forward(p..) = (e, tape)      f_backward(tape, seed, p'..) = p'..       (functions)
    block      v1 = e1; ..; r      r' += seed; then the bindings in reverse                                     (blocks)
               v = op(a..)         a_i' += rule_i(a.., v, v'), summed over broadcast axes
               v = (a..)           a_i' += v'.i
               v = t.i             t' += (0, .., v', .., 0)
               v = C(a..)          a_i' += match v' { Zero -> 0; C'(f..) -> f_i }
               v = f(a..)          (v, t) = f_forward(a..)         a' := f_backward(t, v', a'..)
               s1 = push s0 v      v' += get s1' (len s0); s0' += s1'
               v = get s i         s' := push s' v'
    choice     v = if c {e..}      the arms' backward parts, chosen by c or by a tape                         (branches)
               v = match x {C(f..) -> e, ..}                       the same; x' += C'(f'..)
    loop       v = loop(p = init)  the rounds in reverse, which carry p' and the cotangents from outside         (loops)
    rules      v = f(a..)          the rule of f: recompute, or another function                           (rules)
    derivative grad f (p..)        forward part of f; seed = 1; backward part of f; p'..                     (functions)

What the backward part uses of the forward part is a residual. Residuals of a block that both parts are in stay in
scope; others go through a tape (`tapes`): a data type for arms and functions, a stack for loops.

Stacks have one reader, a loop that reads each entry once, from the last to the first, at the start of its rounds. This
is why the cotangent of a stack is built with pushes, and why the result can be differentiated again at the same cost.

The input is structured (`transform.structuring`); so is the output, in which no derivative is pending.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from relay.ad.functions import ModuleReversal, reachable_functions
from relay.ad.lifting import lift_references
from relay.ad.print_erasure import erase_prints
from relay.errors import DifferentiationError
from relay.ir.expr import Derivative, Function, Module
from relay.ir.sizes.facts import assume_facts


def differentiate(module: Module, simplify: Callable[[Module], Module] | None = None) -> Module:
    """Replace every `Derivative` of a structured core module by a function, those that others need first.

    `simplify` is applied before each derivative of something that was derived itself; without it, every higher order
    pays for superfluous code of lower ones. It may drop functions that the entry does not need.

    Raises DifferentiationError where a derivative does not exist: an operator without a gradient stands between a
    differentiated parameter and the result, or a function calls its own derivative.
    """
    module = erase_prints(lift_references(module))
    while pending := _in_order(module):
        reversal = ModuleReversal(dict(module.functions), module.data)
        made: set[str] = set()
        with assume_facts(module.where):
            for derivative in pending:
                if simplify is not None and made & {f.name for f in reversal.reachable_functions([derivative.of])}:
                    break
                reversal.derive(derivative)
                made.add(derivative.name)
        module = Module(reversal.functions, module.entry, (*module.data, *reversal.data_types()), module.where)
        if simplify is not None and len(made) < len(pending):
            module = simplify(module)
    if not any(isinstance(f, Function) and f.rule is not None for f in module.functions.values()):
        return module
    functions = {n: _without_rule(f) for n, f in module.functions.items()}
    return Module(functions, module.entry, module.data, module.where)


def _without_rule(function: Function | Derivative) -> Function | Derivative:
    """The function without a rule for its derivative, when no derivative is left that asks for it."""
    if isinstance(function, Function) and function.rule is not None:
        return attrs.evolve(function, rule=None)  # type: ignore[misc]
    return function


def _in_order(module: Module) -> list[Derivative]:
    """The derivatives of a module, each after those that its function needs."""
    functions = module.functions
    ordered: dict[str, Derivative] = {}
    entered: set[str] = set()
    stack: list[tuple[Derivative, list[Derivative]]] = []

    def enter(derivative: Derivative) -> None:
        entered.add(derivative.name)
        needs = [f for f in reachable_functions(functions, [derivative.of]) if isinstance(f, Derivative)]
        stack.append((derivative, needs))

    for function in functions.values():
        if isinstance(function, Derivative) and function.name not in entered:
            enter(function)
        while stack:
            derivative, needs = stack[-1]
            if not needs:
                ordered[derivative.name] = derivative
                stack.pop()
                continue
            need = needs.pop()
            if need.name in ordered:
                continue
            if need.name in entered:
                raise DifferentiationError(f"{need.of} needs its own derivative", need.span)
            enter(need)
    return list(ordered.values())
