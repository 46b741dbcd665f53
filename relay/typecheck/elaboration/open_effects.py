"""The effects of what a scheme does not look at: the body of a loop over anything, the arms of a match of anything.

What it calls is found by the names in it. A function of which only a call knows what it is, an element of what the loop
goes through, has no effects here; where a value of unknown type is read by `.value`, it counts as no reference.
"""

from __future__ import annotations

from collections.abc import Callable

from relay.ir.effects import Effects
from relay.ir.expr import (
    Apply,
    Assert,
    Atom,
    Attribute,
    Binding,
    Expr,
    Function,
    Global,
    RefNew,
    RefRead,
    RefWrite,
    SetAttribute,
    Static,
    Var,
)
from relay.ir.intrinsic import Intrinsic
from relay.ir.traverse import all_blocks, blocks, operands
from relay.ir.types import FunctionType, RefType, prune
from relay.typecheck.elaboration.effect_notes import READS, WRITES
from relay.typecheck.elaboration.entities import (
    Context,
    Derived,
    Entity,
    Failed,
    GlobalFunction,
    LocalFunction,
    Object,
    Tuple,
    Typed,
)
from relay.typecheck.elaboration.session import Session

Meaning = Callable[[Atom], Entity | None]
"""What an atom means; None where nothing is known."""


def note(session: Session, context: Context, binding: Binding) -> None:
    """Note the effects of a binding that is not looked at."""
    _Reader(session).expression(binding.value, _meanings(context))


class _Reader:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._seen: set[int] = set()  # functions

    def expression(self, expression: Expr, meaning: Meaning) -> None:
        self._own(expression, meaning)
        for outer in blocks(expression):
            for block in all_blocks(outer):
                for binding in block.bindings:
                    if isinstance(binding.value, RefNew):
                        self._session.effects.own.update(binding.targets)
                    self._own(binding.value, meaning)

    def _own(self, expression: Expr, meaning: Meaning) -> None:
        session = self._session
        match expression:
            case Assert(span=span):
                session.effect("assert", "may fail in an assertion", span)
            case RefRead(atom, span):
                session.effect("ref", READS, span, _reference(atom, meaning))
            case Attribute(atom, "value", span) if _is_reference(meaning(atom)):
                session.effect("ref", READS, span, _reference(atom, meaning))
            case RefWrite(atom, _, span) | SetAttribute(atom, "value", _, span):
                session.effect("ref", WRITES, span, _reference(atom, meaning))
            case Apply(Static(Intrinsic("print")), span=span):
                session.effect("io", "prints", span)
            case _:
                pass
        for atom in operands(expression):
            self._used(meaning(atom))

    def _used(self, entity: Entity | None) -> None:
        """Of functions that are named it is assumed that they are called."""
        match entity:
            case GlobalFunction(definition):
                self._function(definition.function, lambda atom: _global(definition.scope, atom))
            case LocalFunction(function, context=context):
                self._function(function, _meanings(context))
            case Derived(of):
                self._used(of)
            case Tuple(items):
                for item in items:
                    self._used(item)
            case Typed(_, type_):
                known = prune(type_)
                if isinstance(known, FunctionType) and isinstance(known.effects, Effects):
                    self._session.effects.include(known.effects)
            case _:
                pass

    def _function(self, function: Function, meaning: Meaning) -> None:
        if id(function) not in self._seen:
            self._seen.add(id(function))
            for block in all_blocks(function.body):
                for binding in block.bindings:
                    if isinstance(binding.value, RefNew):
                        self._session.effects.own.update(binding.targets)
                    self._own(binding.value, meaning)


def _meanings(context: Context) -> Meaning:
    def meaning(atom: Atom) -> Entity | None:
        if not isinstance(atom, Var):
            return _global(context.scope, atom)
        around: Context | None = context
        while around is not None:
            if atom in around.environment:
                found = around.environment[atom]
                return None if isinstance(found, Failed) else found
            around = around.outer
        return None

    return meaning


def _global(scope: object, atom: Atom) -> Entity | None:
    from relay.errors import FrontendError
    from relay.typecheck.elaboration.objects import object_entity

    value = scope.resolve(atom.name) if isinstance(atom, Global) else None  # type: ignore[attr-defined]
    try:
        return None if value is None else object_entity(value, None)
    except FrontendError:
        return Object(value)  # which is reported where its place is looked at


def _reference(atom: Atom, meaning: Meaning) -> Atom:
    """The variable of a reference in the typed program, if it has one there."""
    found = meaning(atom)
    return found.atom if isinstance(found, Typed) else atom


def _is_reference(entity: Entity | None) -> bool:
    return isinstance(entity, Typed) and isinstance(prune(entity.type), RefType)
