"""Names without a meaning in what elaboration does not look at, since another mistake keeps it from that: the blocks of
a binding that has failed, and local functions that are not called. They are told together with that mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from relay.errors import RelayError
from relay.ir.expr import Attribute, Expr, Global
from relay.ir.traverse import all_blocks, blocks, operands, terminator_operands
from relay.typecheck.elaboration.abstract_values import Consequence, Context, Object, Output
from relay.typecheck.elaboration.checker import Session


def report(session: Session, context: Context, expression: Expr) -> None:
    """Report the names without a meaning in a binding that has failed, and in its blocks."""
    report_operands(session, context, expression)
    for inner in _inside(expression):
        report_operands(session, context, inner)
        if isinstance(inner, Attribute) and isinstance(inner.value, Global):
            try:
                _look_at(session, context, inner)
            except (Consequence, RelayError) as error:
                session.report(error)


def report_operands(session: Session, context: Context, expression: Expr) -> None:
    """Report the names without a meaning that an expression mentions itself."""
    from relay.typecheck.elaboration.expressions.blocks import atom_entity

    for atom in operands(expression):
        if isinstance(atom, Global):
            try:
                atom_entity(context, atom)
            except (Consequence, RelayError) as error:
                session.report(error)


def report_unseen_functions(session: Session) -> None:
    """Report the names without a meaning in local functions that were not called."""
    unseen, session.unseen_functions = session.unseen_functions, {}
    for function, expression in unseen.values():
        report(session, function.context, expression)


def _inside(expression: Expr) -> Iterator[Expr]:
    for outer in blocks(expression):
        for block in all_blocks(outer):
            yield from (binding.value for binding in block.bindings)
            yield from terminator_operands(block.terminator)


def _look_at(session: Session, context: Context, expression: Attribute) -> None:
    """Find what an attribute of a module means."""
    from relay.typecheck.elaboration.expressions.blocks import atom_entity
    from relay.typecheck.elaboration.values.tensors import attribute

    entity = atom_entity(context, expression.value)
    if isinstance(entity, Object) and isinstance(entity.value, ModuleType):
        attribute(session, Output(), entity, expression.name, expression.span, "")
