"""Binding times: which parameters of a function must be known at compile time, found from its text before inference.

A parameter is static if it reaches an attribute of an operator, as an axis or a shape, or a static parameter of another
function. Numbers that calls write for such parameters specialize the function. What is not found here, since only types
tell it, elaboration finds out later, and starts again (`NumbersSpecialize`).
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator, Sequence

from relay.ir.definition import Definition, Scope
from relay.ir.expr import Atom, Binding, Expr, Function, Global, If, Lambda, MakeTuple, OpCall, Static, Var
from relay.ir.surface import Annotated, Apply, Attribute, Unpack
from relay.ir.traverse import walk, yields
from relay.operator import Operator, get_env, operators, resolve_name
from relay.typecheck.elaboration.abstract_values import GlobalFunction, LocalFunction, surface_function
from relay.typecheck.elaboration.checker import Checker

Known = dict[Function, frozenset[int]]
"""The static parameters of functions so far. Those of recursive functions begin empty."""


def static_parameters(function: Function, scope: Scope, known: Known) -> frozenset[int]:
    """The positions of the parameters that must be known at compile time. Linear in the function and those it calls."""
    found = known.get(function)
    if found is None:
        known[function] = frozenset(i for i, p in enumerate(function.signature) if p.static)
        found = known[function] = known[function] | _Function(function, scope, known).positions()
    return found


def of_callee(checker: Checker, callee: GlobalFunction | LocalFunction) -> frozenset[int]:
    """The positions of the parameters of a function that must be known at compile time, as far as its text tells."""
    scope = callee.definition.scope if isinstance(callee, GlobalFunction) else callee.context.scope
    return static_parameters(surface_function(callee), scope, checker.module.static_parameters)


class _Function:
    """One function: where its variables come from."""

    def __init__(self, function: Function, scope: Scope, known: Known) -> None:
        self._parameters = {parameter: i for i, parameter in enumerate(function.parameters)}
        self._scope = scope
        self._known = known
        self._bindings = list(walk(function.body))
        self._origins: dict[Var, tuple[Binding, int]] = {
            target: (binding, i) for binding in self._bindings for i, target in enumerate(binding.targets)
        }
        self._local: dict[Var, Function] = {
            b.targets[0]: b.value.function for b in self._bindings if isinstance(b.value, Lambda)
        }

    def positions(self) -> frozenset[int]:
        """The parameters that reach what is static."""
        pending = [atom for b in self._bindings if isinstance(b.value, Apply) for atom in self._static_atoms(b.value)]
        seen: set[Atom] = set()
        while pending:
            atom = pending.pop()
            if isinstance(atom, Var) and atom not in seen:
                seen.add(atom)
                if atom in self._origins:
                    binding, target = self._origins[atom]
                    pending += _sources(binding.value, target)
        return frozenset(self._parameters[v] for v in seen if v in self._parameters)

    def _static_atoms(self, call: Apply) -> Iterator[Atom]:
        """The arguments of a call that must be known at compile time."""
        callee = self._callee(call.function)
        if callee is not None:
            static = static_parameters(*callee, self._known)
            names = {p.name for i, p in enumerate(callee[0].parameters) if i in static}
            yield from (atom for i, atom in enumerate(call.arguments) if i in static)
            yield from (atom for name, atom in call.keywords if name in names)
            return
        operator, bound = self._operator(call.function)
        if operator is not None:
            yield from call.arguments[max(len(operator.operands) - bound, 0) :]
        yield from (atom for name, atom in call.keywords if name in _attribute_names(len(get_env().names())))

    def _callee(self, function: Atom) -> tuple[Function, Scope] | None:
        """The function of the language that is called, if the text tells it."""
        if isinstance(function, Var) and function in self._local:
            return self._local[function], self._scope
        value = self._scope.resolve(function.name) if isinstance(function, Global) else None
        definition = getattr(value, "__relay__", None)
        return (definition.function, definition.scope) if isinstance(definition, Definition) else None

    def _operator(self, function: Atom) -> tuple[Operator | None, int]:
        """The operator that is called by its name in a module, or as a method with an operand that is not written."""
        if not isinstance(function, Var) or function not in self._origins:
            return None, 0
        value = self._origins[function][0].value
        if not isinstance(value, Attribute):
            return None, 0
        owner = value.value
        owner_value = owner.value if isinstance(owner, Static) else None
        if isinstance(owner, Global):
            owner_value = self._scope.resolve(owner.name)
        return resolve_name(value.name), 0 if isinstance(owner_value, types.ModuleType) else 1


def _sources(value: Expr, target: int) -> Sequence[Atom]:
    """The atoms that the number bound by an expression is computed from."""
    match value:
        case Var():
            return [value]
        case Annotated(atom) | Unpack(atom):
            return [atom]
        case OpCall(_, arguments):
            return arguments
        case MakeTuple(items):
            return items
        case If():
            return [values[target] for values in yields(value)]
        case _:
            return []


@functools.lru_cache(maxsize=1)
def _attribute_names(_: int) -> frozenset[str]:
    """The names that operators give attributes, and none gives an operand, with NumPy's for these."""
    attributes = {name for operator in operators() for name in operator.attributes}
    return frozenset(attributes - {name for operator in operators() for name in operator.operands})
