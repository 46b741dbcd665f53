"""Backward code under construction: its blocks, and the cotangents available at the current point.

The backward part of a block is written from the block's last binding to its first. A scope belongs to one block. It
sees the cotangents of the enclosing scope; what it adds to a variable from outside stays its own until the construct is
complete and hands the sum out as a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from relay.ad.cotangents import Cotangent, Cotangents, type_of
from relay.errors.diagnostic import Span
from relay.ir.expr import Binding, Block, Dead, Expr, If, Loop, Match, Var
from relay.ir.traverse import free_variables, operands, walk
from relay.operator import Emitter

UNNAMED = "t"
"""The name of what an emitter binds without a name."""


class BackwardEmitter(Emitter):
    """An emitter of backward code, whose places are marked as such."""

    @property
    def span(self) -> Span | None:
        """The span of everything emitted."""
        return self._span

    @span.setter
    def span(self, span: Span | None) -> None:
        self._span = None if span is None else span.backward()


class Scope:
    """The backward part of one block. `local` are the variables that the forward block binds."""

    def __init__(self, cotangents: Cotangents, local: Iterable[Var], outer: Scope | None) -> None:
        self.emitter: Emitter = BackwardEmitter()
        self.known: dict[Var, Cotangent] = {}
        self.local = set(local)
        self.outer = outer
        self._cotangents = cotangents

    def current_cotangent(self, var: Var) -> Cotangent:
        """The cotangent of a variable so far."""
        if var in self.known:
            return self.known[var]
        if var in self.local or self.outer is None:
            return None
        return self._inherit(var, self.outer)

    def _inherit(self, var: Var, outer: Scope) -> Cotangent:
        return outer.current_cotangent(var)

    @property
    def in_loop(self) -> bool:
        """True if the block is executed more than once in one execution of the function."""
        return self.outer is not None and self.outer.in_loop

    def take(self, var: Var) -> Cotangent:
        """The complete cotangent of a variable of this block, which is not needed any more."""
        return self.known.pop(var, None)

    def accumulate(self, var: Var, cotangent: Cotangent) -> None:
        """var' += cotangent"""
        if cotangent is not None:
            self.known[var] = total = self._cotangents.add(self.emitter, self.current_cotangent(var), cotangent)
            if isinstance(total, Var) and total.name == UNNAMED and total is not cotangent:
                total.name = f"d_{var.name}"


class LoopScope(Scope):
    """The backward part of a loop's body. A cotangent from outside is carried: a parameter of the backward loop."""

    def __init__(self, cotangents: Cotangents, local: Iterable[Var], outer: Scope) -> None:
        super().__init__(cotangents, local, outer)
        self.carried: dict[Var, list[Var]] = {}

    @property
    def in_loop(self) -> bool:
        return True

    def _inherit(self, var: Var, outer: Scope) -> Cotangent:
        if var not in self.carried:
            self.carried[var] = self._cotangents.variables(type_of(var), f"d_{var.name}")
        return self._cotangents.unflatten(self.carried[var], type_of(var))


def live_bindings(
    bindings: Sequence[Binding], results: Iterable[object], effectful: Callable[[Expr], bool]
) -> list[Binding]:
    """The bindings that the results or an effect need, in order."""
    live = {r for r in results if isinstance(r, Var)}
    kept = []
    for binding in reversed(bindings):
        if any(t in live for t in binding.targets) or has_effect(binding, effectful):
            kept.append(binding)
            nested = isinstance(binding.value, If | Match | Loop)
            used = free_variables(Block((binding,), Dead())) if nested else operands(binding.value)
            live.update(a for a in used if isinstance(a, Var))
    kept.reverse()
    return kept


def has_effect(binding: Binding, effectful: Callable[[Expr], bool]) -> bool:
    """True if a binding, or one inside it, has an effect."""
    if not isinstance(binding.value, If | Match | Loop):
        return effectful(binding.value)
    return any(effectful(b.value) for b in walk(Block((binding,), Dead())))


def residuals(bindings: Sequence[Binding], results: Iterable[object], available: Iterable[Var]) -> list[Var]:
    """The variables of the forward part that this backward code uses."""
    visible = set(available)
    used = dict(free_variables(Block(tuple(bindings), Dead())))
    bound = {t for b in bindings for t in b.targets}
    used.update((r, None) for r in results if isinstance(r, Var) and r not in bound)
    return [v for v in used if v in visible]
