"""Print erasure: programs without output, and copies of functions without it, for recomputation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping

import attrs

from relay.ir.expr import (
    Atom,
    Binding,
    Block,
    Call,
    CustomGradient,
    Derivative,
    Expr,
    Function,
    Global,
    Module,
    Print,
    PrintErased,
)
from relay.ir.rebuild import copy_function, map_parts
from relay.ir.traverse import walk


def without_prints(module: Module) -> Module:
    """The same program, which prints nothing; a `Print` that fails stays."""
    functions = {
        name: attrs.evolve(f, body=_erase(f.body)) if isinstance(f, Function) else f  # type: ignore[misc]
        for name, f in module.functions.items()
    }
    return Module(functions, module.entry, module.data, module.where)


def _same_atom(atom: Atom) -> Atom:
    return atom


def _erase(block: Block, atom: Callable[[Atom], Atom] = _same_atom) -> Block:
    """A block without its prints, reading other atoms."""

    def visit(part: Block) -> Block:
        kept = (b for b in part.bindings if not prints(b.value))
        values = ((b.targets, map_parts(b.value, atom=atom, block=visit)) for b in kept)
        return Block(tuple(Binding(targets, value) for targets, value in values), part.terminator)

    return visit(block)


def erase_prints(module: Module) -> Module:
    """The module in which no quiet function prints, nor what it calls."""
    if not any(isinstance(f, Function) and isinstance(f.rule, PrintErased) for f in module.functions.values()):
        return module
    functions: dict[str, Function | Derivative] = dict(module.functions)
    names: dict[str, str] = {}

    def fresh_name(name: str) -> str:
        while name in functions:
            name += "_"
        return name

    for name, function in module.functions.items():
        if isinstance(function, Function) and isinstance(function.rule, PrintErased):
            silencer = PrintEraser(functions, fresh_name, names)
            functions[name] = attrs.evolve(silencer.silent_copy(function), rule=None)  # type: ignore[misc]
    return Module(functions, module.entry, module.data, module.where)


class PrintEraser:
    """Makes silent copies of functions, among `functions`, once for each: `names` has the names of those made."""

    def __init__(
        self,
        functions: MutableMapping[str, Function | Derivative],
        fresh_name: Callable[[str], str],
        names: dict[str, str],
    ) -> None:
        self._functions = functions
        self._fresh_name = fresh_name
        self._names = names

    def silent_copy(self, function: Function) -> Function:
        """The function without its prints, calling silent copies of those that print."""
        printing = _printing_functions(self._functions, function)
        new = [name for name in printing if name not in self._names]
        for name in new:
            self._names[name] = self._fresh_name(f"{name}_silent")
            self._functions[self._names[name]] = self._functions[name]  # the name is taken
        for name in new:
            found = self._functions[name]
            if isinstance(found, Function):
                made: Function | Derivative = self._silent_copy(copy_function(found), self._names[name])
            else:
                of = self._names.get(found.of, found.of)
                grad = attrs.evolve(found.grad, function=self._atom(found.grad.function))  # type: ignore[misc]
                made = attrs.evolve(found, name=self._names[name], of=of, grad=grad)  # type: ignore[misc]
            self._functions[self._names[name]] = made
        return self._silent_copy(function, function.name)

    def _silent_copy(self, function: Function, name: str) -> Function:
        rule = function.rule
        if isinstance(rule, CustomGradient) and rule.forward is not None:
            forward = self._names.get(rule.forward, rule.forward)
            rule = attrs.evolve(rule, forward=forward)  # type: ignore[misc]
        return attrs.evolve(function, name=name, body=_erase(function.body, self._atom), rule=rule)  # type: ignore[misc]

    def _atom(self, atom: Atom) -> Atom:
        return Global(self._names.get(atom.name, atom.name), atom.type) if isinstance(atom, Global) else atom


def prints(expression: Expr) -> bool:
    """True if an expression prints; the text of a failed assertion does not count."""
    return isinstance(expression, Print) and not expression.fails


def _printing_functions(functions: Mapping[str, Function | Derivative], start: Function) -> list[str]:
    """The functions that a function reaches and that print, themselves or in what they call."""
    calls: dict[str, list[str]] = {}
    pending = list(_callee_names(start))
    while pending:
        name = pending.pop()
        if name not in calls:
            calls[name] = list(_callee_names(functions[name]))
            pending += calls[name]
    callers: dict[str, list[str]] = {name: [] for name in calls}
    for name, called in calls.items():
        for other in called:
            callers[other].append(name)
    found = [name for name in calls if _prints_itself(functions[name])]
    seen = set(found)
    for name in found:
        for caller in callers[name]:
            if caller not in seen:
                seen.add(caller)
                found.append(caller)
    return found


def _prints_itself(function: Function | Derivative) -> bool:
    return isinstance(function, Function) and any(prints(b.value) for b in walk(function.body))


def _callee_names(function: Function | Derivative) -> Iterator[str]:
    if isinstance(function, Derivative):
        yield function.of
        return
    for binding in walk(function.body):
        if isinstance(binding.value, Call) and isinstance(binding.value.function, Global):
            yield binding.value.function.name
    if isinstance(function.rule, CustomGradient) and function.rule.forward is not None:
        yield function.rule.forward
