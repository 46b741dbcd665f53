"""Conditional types: conditions in a scheme that a call decides, as `x.ndim == 0`, `o is None`.

A call takes one of the arms and does not check the others. A scheme checks all of them, and their results need not be
of one type: where they are not, its type is an application, `either(T, ..)`, and so is the result of a function whose
`return`s such conditions choose.

    E |- p : T   E |- q : T'   a call decides c
    -------------------------------------------
     E |- p if c else q : either(T, T')

A function of parameters A that calls itself at other types B has another result there: R[A := B], if its result R is
known from its parameters, and otherwise `f(B)`. Where a call decides what is returned, R is assumed to be the first
result without a recursion; if others are not equal then, elaboration starts again without that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from relay.errors import RelayError, Span
from relay.ir.dims import DimExpr
from relay.ir.expr import Binding, Block, Constant, Expr, Function, Global, If, Loop, OpCall, Static, Var, Yield
from relay.ir.surface import Apply, Attribute, ForEach, Index
from relay.ir.traverse import blocks, operands
from relay.ir.types import NONE, Application, FunctionType, Kind, TensorType, TupleType, Type, TypeId, Unknown, prune
from relay.operator.relation import substitute
from relay.typecheck.elaboration.abstract_values import Context, DynamicValue
from relay.typecheck.elaboration.checker import Checker, Instance, PolymorphicRecursiveCall
from relay.typecheck.elaboration.restarts import Assumptions, Restart
from relay.typecheck.elaboration.schemes.schemes import close_type
from relay.typecheck.elaboration.schemes.stuck_terms import StuckTerm
from relay.typecheck.unification import Clash, resolve, unknowns

_TELLS = frozenset({"shape", "ndim", "size", "dtype"})  # attributes that a call knows at compile time


class ResultsDiffer(Restart):
    """A function returns something else without calling itself than otherwise.  The number is its instance's."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def note(self, decisions: Assumptions) -> None:
        decisions.differing.add(self.number)


# ---- which conditions


def condition(checker: Checker, span: Span | None) -> DynamicValue:
    """The answer to a question that a call answers: `isinstance(t, tuple)`, `o is None`, `mode == "sum"`."""
    found = checker.constant_bool(span)
    assert isinstance(found.atom, Var)
    checker.scheme.decided_by_call.add(found.atom)
    return found


def note(checker: Checker, context: Context, binding: Binding, is_open: bool) -> None:
    """Remember what a call knows at compile time: answers, shapes that are open here, and what is computed of them."""
    if _is_decided(checker, context, binding.value, binding.targets, is_open):
        checker.scheme.decided_by_call.update(binding.targets)


def _is_decided(checker: Checker, context: Context, value: Expr, targets: Sequence[Var], is_open: bool) -> bool:
    known = checker.scheme.decided_by_call
    match value:
        case Attribute(name=name) if is_open and name in _TELLS:
            return True
        case Apply(Global("len")) if is_open:
            return True
        case If():
            return all(decides(checker, block) or _is_constant(block) for block in blocks(value))
        case OpCall() | Apply() | Index():
            used = [atom for atom in operands(value) if isinstance(atom, Var)]
            if used and all(v in known for v in used):
                return True
    found = context.environment.get(targets[0]) if len(targets) == 1 else None
    return isinstance(found, DynamicValue) and found.atom in known


def decides(checker: Checker, block: Block) -> bool:
    """True if a block yields a value that a call knows at compile time."""
    end = block.terminator
    return isinstance(end, Yield) and any(v in checker.scheme.decided_by_call for v in end.values)


def _is_constant(block: Block) -> bool:
    end = block.terminator
    return isinstance(end, Yield) and all(isinstance(v, Constant | Static) for v in end.values)


def arm(checker: Checker, is_chosen: bool) -> contextlib.AbstractContextManager[None]:
    """While an arm is elaborated; `is_chosen`: a call decides whether it is taken."""
    if not is_chosen:
        return contextlib.nullcontext()
    return checker.at_frame(attrs.evolve(checker.frame, chosen_by_call=checker.frame.chosen_by_call + is_chosen))


# ---- what the arms make


def is_same_type(left: object, right: object) -> bool:
    """True if two types are equal, but for the dtypes of numbers in the source."""
    a, b = prune(left), prune(right)  # type: ignore[arg-type]
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        bases = prune(a.base), prune(b.base)
        same = bases[0] == bases[1] or any(isinstance(x, Unknown) and x.literals for x in bases)
        return same and resolve(a).shape == resolve(b).shape  # type: ignore[union-attr]
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        return len(a.items) == len(b.items) and a.form == b.form and all(map(is_same_type, a.items, b.items))
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return a is b
    return bool(resolve(a) == resolve(b))  # type: ignore[arg-type]


def note_alternatives(checker: Checker, types: Sequence[Type], value: Type, span: Span | None) -> None:
    """Note that a type is one of several: that of the arm which a call takes. One that is known is enough: that of an
    empty list may be decided by nothing else."""
    different: list[Type] = []
    for type_ in types:
        if not any(is_same_type(type_, other) for other in different):
            different.append(type_)
    awaited = tuple(t for t in different if not isinstance(prune(t), FunctionType))  # functions take what calls give
    application = Application("either", tuple(map(resolve, different)))
    checker.scheme.opened.append(StuckTerm(application, value, span, awaited, any_=True))


# ---- results of functions


class ReturnTypes:
    """The types of what a function returns, while its body is elaborated for a scheme."""

    def __init__(self, checker: Checker, instance: Instance, number: int, is_declared: bool) -> None:
        self.checker = checker
        self.instance = instance
        self.number = number
        self.is_declared = is_declared
        self.level = checker.frame.chosen_by_call
        self.is_chosen = False
        self.types: list[tuple[Type, Span | None]] = []
        self.of_loops: list[tuple[Type, Span | None]] = []

    def is_apart(self, type_: Type, span: Span | None) -> bool:
        """Note a result. True if it may be of another type than the function's other results."""
        self.is_chosen = self.is_chosen or (self.checker.frame.chosen_by_call > self.level and not self.is_declared)
        if not self.is_declared and self.of_loops and prune(type_) == NONE:
            return True  # what the loop returns decides: it is optional
        self.types.append((type_, span))
        return self.is_chosen

    def left_open(self, value: Expr, result: Type) -> None:
        """Note what is returned where a scheme does not look: in a `match`, or a loop, of something unknown."""
        if isinstance(value, ForEach | Loop):
            self.of_loops.append((result, value.span))
        elif not self.is_declared:
            self.is_chosen = True
            self.types.append((result, value.span))

    @property
    def are_open(self) -> bool:
        """True if something is returned in code that a scheme does not check."""
        return self.is_chosen or bool(self.of_loops)

    def settle(self) -> None:
        """Give the function its result. Raises ResultsDiffer."""
        checker, result = self.checker, self.instance.result
        types = [t for t, _ in self.types if t is not result]
        if not self.types:
            types = [t for t, _ in self.of_loops if t is not result]
        if not self.is_chosen and self.types:
            for use in list(self.instance.uses):
                self._resolve_recursive_call(use, result)
            return
        first = next((t for t in types if self._is_from_parameters(t)), None)
        if self.instance.uses and first is not None and self.number not in checker.decisions.differing:
            self._assume(first, types)
        if types and all(is_same_type(types[0], t) for t in types[1:]):
            for type_ in types:
                checker.unify_at(type_, result, None, "the result")
        elif types:
            note_alternatives(checker, types, result, (self.types or self.of_loops)[0][1])

    def _is_from_parameters(self, type_: Type) -> bool:
        own = set(unknowns(self.instance.parameters))
        return all(u in own or u.kind is Kind.BaseType for u in unknowns(type_))

    def _assume(self, first: Type, types: Sequence[Type]) -> None:
        failures = self.checker.failures
        try:
            for use in list(self.instance.uses):
                if not self._resolve_recursive_call(use, first):
                    raise ResultsDiffer(self.number)
            self.checker.solver.run()
        except (Clash, RelayError):
            raise ResultsDiffer(self.number) from None
        if self.checker.failures > failures or not all(is_same_type(first, t) for t in types):
            raise ResultsDiffer(self.number)

    def _resolve_recursive_call(self, use: PolymorphicRecursiveCall, result: Type) -> bool:
        """Let a recursive call give the result that the function has at its arguments; False if that is not known."""
        if not self._is_from_parameters(result):
            if not set(unknowns(result)).isdisjoint(unknowns(use.opened.value)):  # nothing else tells it
                position = self.checker.scheme.opened.index(use.opened)
                self.checker.scheme.opened[position] = attrs.evolve(use.opened, awaited=(result,))
            return False
        there: dict[Unknown, object] = {}
        for own, found in zip(self.instance.parameters, use.types, strict=True):
            _match(self.checker, own, found, there)
        wanted = [u for u in unknowns(result) if u.kind is not Kind.BaseType]
        if any(u not in there for u in wanted):
            return False
        names = {u: TypeId(u.name, u.kind) for u in wanted}
        general = close_type(result, names)
        here = substitute(general, {names[u]: there[u] for u in wanted})  # type: ignore[arg-type]
        self.checker.scheme.opened.remove(use.opened)
        self.instance.uses.remove(use)
        self.checker.unify_at(use.opened.value, here, use.opened.span, "the result of the recursion")  # type: ignore[arg-type]
        return True


def _match(checker: Checker, own: object, found: object, there: dict[Unknown, object]) -> None:
    """Bind the variables of a parameter's type to their values in an argument's type."""
    own, found = prune(own), prune(found)  # type: ignore[arg-type]
    new: list[Any]
    if isinstance(own, Unknown) and own.kind is Kind.Type:
        there.setdefault(own, found)
    elif isinstance(own, TensorType):
        shape = tuple(map(prune, own.shape))
        if isinstance(found, Unknown):  # an argument has as many axes as the parameter, or any number
            new = [checker.solver.fresh_variable(d.kind) if isinstance(d, Unknown) else d for d in shape]
            checker.solver.unify(found, TensorType(own.base, tuple(new)))
            found = prune(found)
        if isinstance(found, TensorType):
            if len(shape) == 1 and isinstance(shape[0], Unknown) and shape[0].kind is Kind.Shape:
                there.setdefault(shape[0], resolve(found).shape)  # type: ignore[union-attr]
            elif len(shape) == len(found.shape):
                for axis, extent in zip(shape, found.shape, strict=True):
                    if isinstance(axis, Unknown) and axis.kind is Kind.Dim:
                        there.setdefault(axis, extent)
    elif isinstance(own, TupleType) and isinstance(found, TupleType) and len(own.items) == len(found.items):
        for a, b in zip(own.items, found.items, strict=True):
            _match(checker, a, b, there)


def use_at_other_types(
    checker: Checker, function: Function, running: Instance, types: Sequence[Type], span: Span | None
) -> Instance | None:
    """The use of a function in its own body at arguments of other types than its parameters'; None if they are those
    of its parameters, or can be."""
    if not checker.generic or not any(map(_changes(checker), types, running.parameters)):
        return None
    changes = _changes(checker)
    for found, expected, parameter in zip(types, running.parameters, function.parameters, strict=False):
        if not changes(found, expected):
            checker.unify_at(found, expected, span, f"argument {parameter.name} of {function.name}")
    result = checker.solver.fresh_variable(Kind.Type)
    opened = StuckTerm(Application(function.name.strip("<>"), tuple(types)), result, span, tuple(types))
    checker.scheme.opened.append(opened)
    running.uses.append(PolymorphicRecursiveCall(tuple(types), opened))
    return attrs.evolve(running, result=result, known=None)


def _changes(checker: Checker) -> Callable[[Type, Type], bool]:
    """A predicate: True if an argument of a recursive call cannot be assumed to have its parameter's type, since a
    subscript or a shape rule makes it."""
    made = {u for o in checker.scheme.opened for u in unknowns(o.value)}
    made |= {p.result for p in checker.pending if not p.done and p.result is not None}

    def is_changed(found: Type, expected: Type) -> bool:
        found, expected = resolve(found), resolve(expected)
        if isinstance(found, FunctionType) or isinstance(expected, FunctionType):
            return False  # continuations have one type
        own = set(unknowns(expected))
        if any(u in made and u not in own for u in unknowns(found) if u.kind is not Kind.BaseType):
            return True
        if not isinstance(found, TensorType) or not isinstance(expected, TensorType):
            return False
        pairs = list(zip(found.shape, expected.shape, strict=False))
        return len(found.shape) == len(expected.shape) and any(
            a != b and any(isinstance(d, DimExpr) for d in (a, b)) for a, b in pairs
        )

    return is_changed
