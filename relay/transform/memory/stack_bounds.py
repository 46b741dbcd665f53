"""Static bounds of stacks: the number of entries of stacks that can be in the same variable.

Stacks that meet are of one *kind*, found by unification, as are the entries of stacks of stacks. It has a capacity if
all its stacks start empty and are filled by counted loops, by at most one entry in a round; see `tape_allocation`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import attrs

from relay.ir.analysis.tail_positions import leaves
from relay.ir.dims import Dim, product
from relay.ir.expr import (
    Atom,
    Call,
    Constant,
    Construct,
    Exit,
    Expr,
    Extent,
    Function,
    Global,
    Loop,
    MakeTuple,
    Match,
    Next,
    OpCall,
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
from relay.ir.sizes.facts import mentions_made
from relay.ir.traverse import bound_variables, moves, operands, returns, walk
from relay.ir.types import ANY, INT64, BaseType, StackType, TensorType, TupleType, Type, prune, scalar
from relay.operator import lookup

LARGEST_UNUSED = 2**24
"""The most bytes of a stack whose loop may end early, and would leave them unused."""

LARGEST = 2**31 - 1
"""The most elements of a tensor."""


@attrs.define(eq=False)
class StackClass:
    """Stacks that meet in some variable. `capacity` is None unless they become tensors."""

    element: Form
    capacity: Dim | None = None
    capacities: list[Dim | StackClass] = attrs.field(
        factory=list
    )  # numbers of rounds; a kind: as many as it has entries
    early: bool = False  # whether a loop that fills one may end before its last round
    fixed: bool = False  # whether something else knows the type
    measured: bool = False  # whether the number of entries is needed
    merged: StackClass | None = None

    @property
    def representative(self) -> StackClass:
        kind = self
        while kind.merged is not None:
            kind = kind.merged
        return kind


Form: TypeAlias = "Type | tuple[Form, ...] | StackClass"
"""A type with a tuple for each tuple, and a kind for each stack, outside of cells and data."""


def _form(type_: Type | None) -> Form:
    assert type_ is not None
    match prune(type_):
        case TupleType(items):
            return tuple(map(_form, items))
        case StackType(element):
            return StackClass(_form(element))
        case other:
            return other  # type: ignore[return-value]


@attrs.frozen(eq=False)
class StackGrowth:
    """The growth by a loop of the stack in one of its parameters: always by one entry in a round, or sometimes."""

    loop: Loop
    always: bool


class StackAnalysis:
    """The forms of a function's variables, and the loops that fill stacks."""

    def __init__(self, function: Function) -> None:
        self.forms: dict[Var, Form] = {}
        self.growths: dict[Var, StackGrowth] = {}  # by the parameter
        self.definitions: dict[Var, Expr] = {}
        self._loops: list[Loop] = []
        self._results: dict[Var, tuple[Loop, int]] = {}  # of counted loops
        self._pushes: list[StackPush] = []
        for parameter in function.parameters:
            self._fix(self._new_form(parameter))
        result = _form(function.result)
        self._fix(result)
        for binding in walk(function.body):
            if len(binding.targets) == 1:
                self.definitions[binding.targets[0]] = binding.value
            self._binding(binding.targets, binding.value)
        for values, targets in moves(function.body):
            self._meet(values, [self.forms[t] for t in targets])
        for end in returns(function):
            self._meet(end.values, (result,))
        self._find_capacities()

    def stack_form(self, atom: Atom) -> Form:
        """The form of an atom."""
        match atom:
            case Var():
                return self.forms[atom]
            case Constant():
                return atom.type
            case Global() | Static():
                raise AssertionError(f"{atom!r} is not a first-order value")

    def kind(self, atom: Atom) -> StackClass:
        """The kind of a stack."""
        form = self.stack_form(atom)
        assert isinstance(form, StackClass)
        return form.representative

    def stack_classes(self) -> set[StackClass]:
        """All kinds."""
        found: set[StackClass] = set()
        pending = list(self.forms.values())
        while pending:
            match pending.pop():
                case tuple() as items:
                    pending += items
                case StackClass() as kind if kind.representative not in found:
                    found.add(kind.representative)
                    pending.append(kind.representative.element)
                case _:
                    pass
        return found

    # ---- forms

    def _new_form(self, var: Var) -> Form:
        form = self.forms[var] = _form(var.type)
        return form

    def _fix(self, form: Form) -> None:
        """Leave the stacks in a form as they are, and those in their entries."""
        match form:
            case tuple():
                for item in form:
                    self._fix(item)
            case StackClass() if not form.representative.fixed:
                form.representative.fixed = True
                self._fix(form.representative.element)
            case _:
                pass

    def _unify(self, a: Form, b: Form) -> None:
        match a, b:
            case tuple(), tuple():
                for x, y in zip(a, b, strict=True):
                    self._unify(x, y)
            case StackClass(), StackClass() if a.representative is not b.representative:
                left, right = a.representative, b.representative
                right.merged = left
                if left.fixed != right.fixed:
                    self._fix(right.element if left.fixed else left.element)
                left.fixed |= right.fixed
                left.measured |= right.measured
                self._unify(left.element, right.element)
            case _:
                pass

    def _meet(self, atoms: Iterable[Atom], forms: Iterable[Form]) -> None:
        for atom, form in zip(atoms, forms, strict=True):
            self._unify(self.stack_form(atom), form)

    def _binding(self, targets: tuple[Var, ...], value: Expr) -> None:
        match value:
            case Var() | Constant():
                self.forms[targets[0]] = self.stack_form(value)
            case MakeTuple(items):
                self.forms[targets[0]] = tuple(map(self.stack_form, items))
            case Project(whole, index):
                form = self.stack_form(whole)
                assert isinstance(form, tuple)
                self.forms[targets[0]] = form[index]
            case Match(matched):
                self._fix(self.stack_form(matched))
                for field in bound_variables(value):
                    self._fix(self._new_form(field))
                for target in targets:
                    self._new_form(target)
            case Loop(_, _, _, _, counter):
                for variable in (*bound_variables(value), *targets):
                    self._new_form(variable)
                if counter is not None:
                    self._loops.append(value)
                    self._results.update((t, (value, i)) for i, t in enumerate(targets))
            case StackPush(stack, pushed):
                self.forms[targets[0]] = self.stack_form(stack)
                self._unify(self.kind(stack).element, self.stack_form(pushed))
                self._pushes.append(value)
            case StackSet(stack, _, changed):
                self.forms[targets[0]] = self.stack_form(stack)
                self._unify(self.kind(stack).element, self.stack_form(changed))
                self._fix(self.stack_form(stack))
            case StackPrefix(stack):
                self.forms[targets[0]] = self.stack_form(stack)
                self._fix(self.stack_form(stack))
            case StackGet(stack):
                self.forms[targets[0]] = self.kind(stack).element
            case StackLength(stack):
                self.kind(stack).measured = True
                self._new_form(targets[0])
            case Call() | Construct() | RefNew() | RefRead() | RefWrite() | Shadow():
                for atom in operands(value):
                    if not isinstance(atom, Global):
                        self._fix(self.stack_form(atom))
                for target in targets:
                    self._fix(self._new_form(target))
            case _:
                for target in targets:
                    self._new_form(target)

    # ---- capacities

    def _find_capacities(self) -> None:
        filled: set[StackPush] = set()
        for loop in self._loops:
            for position, parameter in enumerate(loop.parameters):
                if isinstance(self.forms[parameter], StackClass):
                    self._grows(loop, position, parameter, filled)
        kinds = self.stack_classes()
        left = {k for k in kinds if k.fixed or not k.capacities}
        left |= {self.kind(p.stack) for p in self._pushes if p not in filled}
        candidates = kinds - left
        pending = set(candidates)
        while known := {k for k in pending if all(_is_known(c) for c in k.capacities)}:
            for kind in known:
                capacities = [c.representative.capacity if isinstance(c, StackClass) else c for c in kind.capacities]
                numbers = [c for c in capacities if isinstance(c, int)]
                if len(numbers) == len(capacities):
                    kind.capacity = max([1, *numbers])  # a loop without rounds reads nothing
                elif all(c == capacities[0] for c in capacities):
                    kind.capacity = capacities[0]
            pending -= known
        while large := [k for k in candidates if k.capacity is not None and not self._fits(k)]:
            for kind in large:
                kind.capacity = None

    def _grows(self, loop: Loop, position: int, parameter: Var, filled: set[StackPush]) -> None:
        """Note how a loop fills a stack, if it starts empty and gets at most one entry in a round."""
        assert loop.counter is not None
        capacity = self._number(loop.counter.count)
        exact = isinstance(self.definition(loop.counter.count), Constant | Extent)
        if capacity is None or not isinstance(self.definition(loop.initial[position]), StackNew):
            return
        ends = [(leaf, self.definition(leaf.values[position])) for leaf in leaves(loop.body)]
        pushes = [v for _, v in ends if isinstance(v, StackPush) and self.definition(v.stack) is parameter]
        if len(pushes) + sum(v is parameter for _, v in ends) < len(ends):
            return
        always = all(v is not parameter for leaf, v in ends if isinstance(leaf, Next))
        kind = self.kind(parameter)
        kind.capacities.append(capacity)
        kind.measured |= not always
        kind.early |= not always or not exact or any(isinstance(leaf, Exit) for leaf, _ in ends)
        self.growths[parameter] = StackGrowth(loop, always)
        filled.update(pushes)

    def _number(self, count: Atom) -> Dim | StackClass | None:
        """The most rounds that a loop with this count has."""
        if isinstance(count, Constant):
            return int(count.value)
        match self.definition(count):
            case Extent(dim) if not mentions_made(dim):  # the stack may begin before the size is known
                return dim
            case StackLength(stack):
                return self.kind(stack)
            case _:
                return self._conditional_count(count)

    def _conditional_count(self, count: Atom) -> Dim | StackClass | None:
        """The number of rounds of a counted loop that adds at most one in each round to a number that starts at 0."""
        loop, position = self._results.get(count, (None, 0)) if isinstance(count, Var) else (None, 0)
        if loop is None or loop.counter is None or not _is_number(loop.initial[position], 0):
            return None
        parameter = loop.parameters[position]
        for leaf in leaves(loop.body):
            value = self.definition(leaf.values[position])
            if value is not parameter and not _is_next(value, parameter):
                return None
        return self._number(loop.counter.count)

    def definition(self, atom: Atom) -> Expr:
        """The expression that an atom is bound to, through aliases."""
        found: Expr = atom
        while isinstance(found, Var) and found in self.definitions:
            found = self.definitions[found]
        return found

    def _fits(self, kind: StackClass) -> bool:
        """True if the entries are tensors of a known size, and few enough."""
        assert kind.capacity is not None
        total = 0
        for leaf in self.tensors(kind.element):
            if leaf is None or not isinstance(leaf.base, BaseType):
                return False
            elements = product((kind.capacity, *leaf.shape))
            if isinstance(elements, int):
                if elements > LARGEST:
                    return False
                total += elements * leaf.dtype.itemsize
            elif kind.early:
                return False
        return not kind.early or total <= LARGEST_UNUSED

    def tensors(self, form: Form) -> list[TensorType | None]:
        """The tensors that a form consists of; None for what is none."""
        match form:
            case tuple():
                return [leaf for item in form for leaf in self.tensors(item)]
            case StackClass():
                kind = form.representative
                if kind.capacity is None:
                    return [None]
                length: list[TensorType | None] = [scalar(INT64)] if kind.measured else []
                return [*length, *(_with_axis(kind.capacity, t) for t in self.tensors(kind.element))]
            case TensorType(_, shape) if ANY not in shape and not any(map(mentions_made, shape)):
                return [form]
            case _:
                return [None]

    def type_of(self, form: Form) -> Type:
        """The type of the values that take the place of those of a form."""
        match form:
            case tuple():
                return TupleType(tuple(map(self.type_of, form)))
            case StackClass():
                kind = form.representative
                if kind.capacity is None:
                    return StackType(self.type_of(kind.element))
                return TupleType(tuple(t for t in self.tensors(form) if t is not None))
            case _:
                return form


def _is_known(capacity: Dim | StackClass) -> bool:
    return not isinstance(capacity, StackClass) or capacity.representative.capacity is not None


def _is_number(atom: Atom, number: int) -> bool:
    return isinstance(atom, Constant) and atom.value.ndim == 0 and atom.value == number


def _is_next(value: Expr, parameter: Var) -> bool:
    """True if a value is the parameter plus 1."""
    if not isinstance(value, OpCall):
        return False
    operator = lookup(value.operator)
    is_sum = operator.algebra.identity == 0 and operator.algebra.commutative
    return is_sum and value.arguments[0] is parameter and _is_number(value.arguments[1], 1)


def _with_axis(extent: Dim, type_: TensorType | None) -> TensorType | None:
    return None if type_ is None else TensorType(type_.base, (extent, *type_.shape))
