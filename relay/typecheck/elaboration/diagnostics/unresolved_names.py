"""Unresolved names in skipped code: blocks of failed bindings, and local functions without a call.

They are reported together with that mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from relay.errors import RelayError
from relay.ir.expr import Expr, Global
from relay.ir.surface import Attribute
from relay.ir.traverse import all_blocks, blocks, operands, terminator_operands
from relay.typecheck.elaboration.abstract_values import Context, DependsOnPoison, PythonObject, TypedBlockBuilder
from relay.typecheck.elaboration.checker import Checker
from relay.typecheck.elaboration.expressions.atoms import atom_entity
from relay.typecheck.elaboration.members.value_attributes import attribute


def report(checker: Checker, context: Context, expression: Expr) -> None:
    """Report the names without a meaning in a binding that has failed, and in its blocks."""
    report_operands(checker, context, expression)
    for inner in _nested_expressions(expression):
        report_operands(checker, context, inner)
        if isinstance(inner, Attribute) and isinstance(inner.value, Global):
            try:
                _look_at(checker, context, inner)
            except (DependsOnPoison, RelayError) as error:
                checker.report(error)


def report_operands(checker: Checker, context: Context, expression: Expr) -> None:
    """Report the names without a meaning that an expression mentions itself."""
    for atom in operands(expression):
        if isinstance(atom, Global):
            try:
                atom_entity(context, atom)
            except (DependsOnPoison, RelayError) as error:
                checker.report(error)


def report_unseen_functions(checker: Checker) -> None:
    """Report the names without a meaning in local functions that were not called."""
    unseen, checker.unseen_functions = checker.unseen_functions, {}
    for function, expression in unseen.values():
        report(checker, function.context, expression)


def _nested_expressions(expression: Expr) -> Iterator[Expr]:
    for outer in blocks(expression):
        for block in all_blocks(outer):
            yield from (binding.value for binding in block.bindings)
            yield from terminator_operands(block.terminator)


def _look_at(checker: Checker, context: Context, expression: Attribute) -> None:
    """Find what an attribute of a module means."""
    entity = atom_entity(context, expression.value)
    if isinstance(entity, PythonObject) and isinstance(entity.value, ModuleType):
        attribute(checker, TypedBlockBuilder(), entity, expression.name, expression.span, "")
