"""Activity analysis: the variables of a function that take part in its derivative.

A cotangent can differ from zero only for a variable that depends on a differentiated parameter and that the result
depends on, both through values that have cotangents. The graph of these dependences ignores the order of execution, so
that loops need no fixpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from relay.ir.expr import (
    Ascribe,
    Assert,
    Atom,
    AxisSize,
    BindDim,
    Block,
    Call,
    Constant,
    Construct,
    Expr,
    Extent,
    Global,
    If,
    Loop,
    MakeTuple,
    Match,
    OpCall,
    Print,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    Shadow,
    StackGet,
    StackLength,
    StackNew,
    StackPrefix,
    StackPush,
    StackSet,
    Static,
    Var,
)
from relay.ir.traverse import bound_variables, moves, operands, walk
from relay.ir.types import Type


class Activity:
    """The dependences inside a block.

    Attributes:
        tracked: the variables whose cotangents the derivative needs.
        definitions: what each variable that is the only target of its binding is bound to.
    """

    def __init__(self, body: Block, exists: Callable[[Type], bool], holds: Callable[[Type], bool]) -> None:
        self.tracked: set[Var] = set()
        self.definitions: dict[Var, Expr] = {}
        self._exists = exists
        self._holds = holds
        self._uses: dict[Var, list[Var]] = {}
        self._sources: dict[Var, list[Var]] = {}
        self._inputs: list[Var] = []
        for binding in walk(body):
            if len(binding.targets) == 1:
                self.definitions[binding.targets[0]] = binding.value
            self._expression(binding.value, binding.targets)
        for values, targets in moves(body):
            for value, target in zip(values, targets, strict=True):
                self._flow(value, target)

    def track(self, inputs: Iterable[Var], results: Iterable[Atom]) -> None:
        """Find the tracked variables for these differentiated parameters and these results."""
        self._inputs = [v for v in inputs if self._carries(v)]
        influenced = _reach(self._inputs, self._uses)
        self.tracked = influenced & _reach((r for r in results if isinstance(r, Var)), self._sources)

    def link(self, references: Iterable[Var]) -> None:
        """Record that references in some of these variables may be those in others."""
        first, *others = references
        for other in others:
            self._flow(first, other)

    def definition(self, atom: Atom) -> Expr | None:
        """The expression that an atom is bound to, through aliases."""
        found: Expr | None = atom
        while isinstance(found, Var):
            found = self.definitions.get(found)
        return found

    def path(self, target: Atom) -> list[Var]:
        """A shortest chain of variables from a differentiated parameter to a variable that depends on it."""
        before: dict[Var, Var | None] = dict.fromkeys(self._inputs)
        pending = list(self._inputs)
        for var in pending:
            if var is target:
                break
            for use in self._uses.get(var, ()):
                if use not in before:
                    before[use] = var
                    pending.append(use)
        chain: list[Var] = []
        step = target if isinstance(target, Var) and target in before else None
        while step is not None:
            chain.append(step)
            step = before[step]
        return chain[::-1]

    # ---- the graph

    def _carries(self, var: Var) -> bool:
        return var.type is not None and (self._exists(var.type) or self._holds(var.type))

    def _holds_reference(self, atom: Atom) -> bool:
        return isinstance(atom, Var) and atom.type is not None and self._holds(atom.type)

    def _flow(self, source: Atom, target: Atom) -> None:
        if isinstance(source, Var) and isinstance(target, Var) and self._carries(source) and self._carries(target):
            self._uses.setdefault(source, []).append(target)
            self._sources.setdefault(target, []).append(source)
            if self._holds(source.type) and self._holds(target.type):  # type: ignore[arg-type]
                # Aliases: what is written through one is read through the other.
                self._uses.setdefault(target, []).append(source)
                self._sources.setdefault(source, []).append(target)

    def _expression(self, expression: Expr, targets: tuple[Var, ...]) -> None:
        match expression:
            case OpCall(_, sources) | MakeTuple(sources) | Construct(_, _, sources):
                for source in sources:
                    self._flow(source, targets[0])
            case Call(_, sources):
                cells = [s for s in sources if self._holds_reference(s)]  # which the callee may write to
                for source in sources:
                    for target in (targets[0], *cells):
                        self._flow(source, target)
            case (
                Project(source)
                | Ascribe(source)
                | StackGet(source)
                | StackPrefix(source)
                | RefNew(source)
                | RefRead(source)
            ):
                self._flow(source, targets[0])
            case Var() | Constant():
                self._flow(expression, targets[0])
            case StackPush(stack, value) | StackSet(stack, _, value):
                self._flow(stack, targets[0])
                self._flow(value, targets[0])
            case RefWrite(reference, value):
                self._flow(value, reference)
            case Shadow(reference):
                self._flow(reference, targets[0])
            case Match(value):
                for field in bound_variables(expression):
                    self._flow(value, field)
            case (
                If()
                | Loop()
                | StackNew()
                | StackLength()
                | Extent()
                | BindDim()
                | AxisSize()
                | Assert()
                | Print()
                | Global()
                | Static()
            ):
                pass
            case _:  # what is not known may hand on all that it reads
                for source in operands(expression):
                    for target in targets:
                        self._flow(source, target)


def _reach(starts: Iterable[Var], edges: dict[Var, list[Var]]) -> set[Var]:
    seen = set(starts)
    pending = list(seen)
    while pending:
        for var in edges.get(pending.pop(), ()):
            if var not in seen:
                seen.add(var)
                pending.append(var)
    return seen
