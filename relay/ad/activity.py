"""Activity analysis: the variables of a function that take part in its derivative.

A cotangent can differ from zero only for a variable that depends on a differentiated parameter and that the result
depends on, both through values that have cotangents. The graph of these dependences ignores the order of execution, so
that loops need no fixpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_never

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
    Dead,
    Exit,
    Expr,
    Extent,
    Global,
    If,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    Next,
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
    Terminator,
    Var,
    Yield,
)
from relay.ir.traverse import blocks, operands
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
        # What the values of Next and Exit become, by their kind and label.
        self._targets: dict[tuple[str, LoopLabel], tuple[Var, ...]] = {}
        self._block(body, ())

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

    def _block(self, block: Block, yields: tuple[Var, ...]) -> None:
        for binding in block.bindings:
            if len(binding.targets) == 1:
                self.definitions[binding.targets[0]] = binding.value
            self._expression(binding.value, binding.targets)
        self._terminator(block.terminator, yields)

    def _terminator(self, terminator: Terminator, yields: tuple[Var, ...]) -> None:
        match terminator:
            case Yield(values):
                targets = yields
            case Next(label, values):
                targets = self._targets[("next", label)]
            case Exit(label, values):
                targets = self._targets.get(("exit", label), ())
            case Dead():
                return
            case _:
                assert_never(terminator)
        for value, target in zip(values, targets, strict=False):
            self._flow(value, target)

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
            case If():
                for block in blocks(expression):
                    self._block(block, targets)
            case Match(value, arms):
                for arm in arms:
                    for field in arm.fields:
                        self._flow(value, field)
                    self._block(arm.body, targets)
            case Loop(label, parameters, initial, body, counter):
                for source, parameter in zip(initial, parameters, strict=True):
                    self._flow(source, parameter)
                self._targets[("next", label)] = parameters
                self._targets[("exit", label)] = targets
                if counter is not None:
                    for parameter, target in zip(parameters, targets, strict=True):
                        self._flow(parameter, target)
                self._block(body, ())
            case (
                StackNew()
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
