"""Closure escape check: functions that outlive the iteration that created them.

A function of Python sees the variables around it as they are when it is called; one of Relay as they were when it was
made. The two differ for a function that a round hands on to the next one, which assigns the same variables again. The
front end refuses that where names show it; here it is refused where the function went through a call, whose result's
type tells that it holds functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from relay.errors import Label, Span, TypeCheckError
from relay.ir.expr import Atom, Binding, Block, Expr, Lambda, Loop, LoopLabel, Next, RefNew, Static, Terminator, Var
from relay.ir.intrinsic import Intrinsic
from relay.ir.surface import Apply, ForEach
from relay.ir.traverse import blocks, bound_variables, free_variables, operands, terminator_operands
from relay.ir.types import FunctionType, RefType, StackType, TupleType, Type, prune
from relay.typecheck.elaboration.abstract_values import FUNCTIONS, AbstractValue, DynamicValue, Tuple


@attrs.frozen
class Capture:
    """A variable that a function of the round captured, and where that function is."""

    name: str
    span: Span | None


@attrs.frozen(eq=False)
class EscapingVariables:
    """The variables of a loop's body that may hold a function of the round, each with what it captured."""

    loop: Loop | ForEach
    holding: dict[Var, Capture]
    carried: tuple[bool, ...]  # for each parameter, whether the next round may read it

    def refuse(self, values: Sequence[Atom], entities: Sequence[AbstractValue]) -> None:
        """Raise TypeCheckError if a function of this round is handed on to the next one."""
        for parameter, atom, entity, carried in zip(self.loop.parameters, values, entities, self.carried, strict=True):
            captured = self.holding.get(atom) if isinstance(atom, Var) else None
            if captured is not None and carried and holds_function(entity):
                self._fail(f"`{parameter.name}`", captured)

    def refuse_stored(self, atoms: Sequence[Atom], entities: Sequence[AbstractValue]) -> None:
        """Raise TypeCheckError if a function of this round may be stored in a reference that holds functions."""
        if any(
            isinstance(e, DynamicValue) and isinstance(prune(e.type), RefType) and holds_function(e) for e in entities
        ):
            for atom, entity in zip(atoms, entities, strict=True):
                captured = self.holding.get(atom) if isinstance(atom, Var) else None
                if captured is not None and holds_function(entity):
                    self._fail("a reference", captured)

    def _fail(self, where: str, captured: Capture) -> None:
        name = captured.name
        raise TypeCheckError(
            f"{where} carries a function to the next round of the loop, which assigns `{name}` again",
            captured.span,
            labels=() if self.loop.span is None else (Label(self.loop.span, "the loop"),),
            help=f"keep this round's value with a default: `lambda v, {name}={name}: ..`",
        )


def holds_function(entity: AbstractValue) -> bool:
    """True if a value is or holds a function, as far as its type is known."""
    match entity:
        case DynamicValue(_, type_):
            return _mentions_function(type_)
        case Tuple(items):
            return any(holds_function(item) for item in items)
        case _:
            return isinstance(entity, FUNCTIONS)


def _mentions_function(type_: Type) -> bool:
    match prune(type_):
        case FunctionType():
            return True
        case TupleType(items):
            return any(_mentions_function(t) for t in items)
        case RefType(content) | StackType(content):
            return _mentions_function(content)
        case _:
            return False


def survivors(loop: Loop | ForEach) -> EscapingVariables | None:
    """The variables that a loop's body may pass on, or None if no function is made in it."""
    bindings = list(_bindings(loop.body))
    lambdas = {b.targets[0]: b.value.function for b in bindings if isinstance(b.value, Lambda)}
    if not lambdas:
        return None
    own = {*loop.parameters, *([loop.element] if isinstance(loop, ForEach) else [])}
    unset = {b.targets[0] for b in bindings if _is_unset(b.value)}
    for binding in bindings:
        if isinstance(binding.value, RefNew) and binding.value.value in unset:
            continue  # the cell of a comprehension's variable, which is another one in each round
        own.update(binding.targets)
        if not isinstance(binding.value, Lambda):
            own.update(bound_variables(binding.value))
    captured = {variable: list(free_variables(function)) for variable, function in lambdas.items()}
    holding: dict[Var, Capture] = {}
    before = -1
    while before != len(holding):
        before = len(holding)
        for binding in bindings:
            if isinstance(binding.value, Lambda):
                seen = captured[binding.targets[0]]
                assigned = (v for v in seen if v in own and (v not in lambdas or v in holding))
                found = next((Capture(v.name, binding.value.span) for v in assigned), None)
                defaults = [p.default for p in binding.value.function.signature]
                if found is None:
                    found = next((holding[d] for d in defaults if isinstance(d, Var) and d in holding), None)
                reached = binding.targets
            else:
                atoms = (*operands(binding.value), *(a for t in _ends(binding.value) for a in terminator_operands(t)))
                found = next((holding[a] for a in atoms if isinstance(a, Var) and a in holding), None)
                reached = (*binding.targets, *bound_variables(binding.value))
            if found is not None:
                for variable in reached:
                    holding.setdefault(variable, found)
    if not holding:
        return None
    read = free_variables(loop.body)
    return EscapingVariables(loop, holding, tuple(p in read for p in loop.parameters))


def _is_unset(value: Expr) -> bool:
    match value:
        case Apply(Static(Intrinsic("unset"))):
            return True
        case _:
            return False


def _bindings(block: Block) -> Iterator[Binding]:
    """The bindings of a block and inside it, without those of lambdas."""
    pending = [iter(block.bindings)]
    while pending:
        binding = next(pending[-1], None)
        if binding is None:
            pending.pop()
            continue
        yield binding
        if not isinstance(binding.value, Lambda):
            pending += [iter(b.bindings) for b in reversed(tuple(blocks(binding.value)))]


def _ends(value: object) -> Iterator[Terminator]:
    """The terminators of the blocks inside of an expression."""
    pending = list(blocks(value))  # type: ignore[arg-type]
    while pending:
        block = pending.pop()
        yield block.terminator
        pending += [inner for b in block.bindings if not isinstance(b.value, Lambda) for inner in blocks(b.value)]


class EnclosingLoops:
    """The loops whose bodies are being elaborated."""

    def __init__(self) -> None:
        self._found: dict[LoopLabel, EscapingVariables | None] = {}

    def enter(self, loop: Loop | ForEach) -> None:
        """A loop's body is going to be elaborated."""
        if loop.label not in self._found:
            self._found[loop.label] = survivors(loop)

    def hand_on(self, terminator: Next, entities: Sequence[AbstractValue]) -> None:
        """Check what a round hands on to the next one. Raises TypeCheckError."""
        found = self._found.get(terminator.label)
        if found is not None:
            found.refuse(terminator.values, entities)

    def store(self, atoms: Sequence[Atom], entities: Sequence[AbstractValue]) -> None:
        """Check what a call may store in a reference. Raises TypeCheckError."""
        for found in self._found.values():
            if found is not None:
                found.refuse_stored(atoms, entities)
