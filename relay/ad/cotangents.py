"""Cotangents: their types, zeros and sums.

The cotangent of a value is a tree over the structure of its tuples, known while code is generated. Its leaves are atoms
of the program, or `None` for a zero about which nothing is emitted:

    leaves(Tensor[float, s]) = (Tensor[float, s],)      leaves(Tensor[int or bool, s]) = leaves(Ref[T]) = ()
    leaves((A, B)) = leaves(A) + leaves(B)              leaves(D) = (D',)
    leaves(Stack[T]) = (Stack[leaves(T)],)              D' = Zero | C'(leaves of the fields of C) | ..   (for C in D)

A cotangent of a data type can be zero at run time without knowing the value; that of a stack has as many elements as
the stack has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, assert_never

import numpy as np

from relay.ad.sizes import has_any, no_elements, sum_of
from relay.errors import InternalError
from relay.ir.expr import (
    Atom,
    AttributeValue,
    Binding,
    Block,
    Call,
    Constant,
    Construct,
    Counter,
    Exit,
    Function,
    Global,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    MatchArm,
    Next,
    OpCall,
    Project,
    StackGet,
    StackLength,
    StackNew,
    StackPush,
    Var,
    Yield,
)
from relay.ir.types import (
    INT64,
    BaseType,
    Constructor,
    DataDefinition,
    DataType,
    FunctionType,
    QuantifiedType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    TypeId,
    Unknown,
    prune,
    scalar,
)
from relay.operator import Emitter, lookup

Cotangent: TypeAlias = "Atom | tuple[Cotangent, ...] | None"

ZERO_CONSTRUCTOR = "Zero"


def type_of(atom: Atom) -> Type:
    """The type of an atom of the core."""
    if isinstance(atom, Var | Constant) and atom.type is not None:
        return prune(atom.type)  # type: ignore[return-value]
    raise InternalError(f"an atom without a type: {atom!r}")


def pack_type(types: Sequence[Type]) -> Type:
    """The type of several values as one: bare if there is one, otherwise a tuple."""
    return types[0] if len(types) == 1 else TupleType(tuple(types))


def pack(emitter: Emitter, atoms: Sequence[Atom]) -> Atom:
    """Several values as one: bare if there is one, otherwise a tuple."""
    if len(atoms) == 1:
        return atoms[0]
    return emitter.bind(MakeTuple(tuple(atoms)), TupleType(tuple(type_of(a) for a in atoms)), "packed").atom


def unpack(emitter: Emitter, atom: Atom, types: Sequence[Type], names: Sequence[str] = ()) -> list[Atom]:
    """The values that `pack` made one of."""
    if len(types) == 1:
        return [atom]
    called = names or ("part",) * len(types)
    return [emitter.bind(Project(atom, i), t, n).atom for i, (t, n) in enumerate(zip(types, called, strict=True))]


class Cotangents:
    """The cotangent types of one module, and the code for zeros and sums.

    `definitions` are the data types that were made on the way, `functions` those that add their values.
    """

    def __init__(self, fresh_name: Callable[[str], str]) -> None:
        self.definitions: list[DataDefinition] = []
        self.functions: dict[str, Function] = {}
        self.fresh_name = fresh_name
        self._primed: dict[DataDefinition, DataDefinition] = {}
        self._exists: dict[DataDefinition, bool] = {}
        self._adders: dict[DataDefinition, Global] = {}

    # ---- types

    def exists(self, type_: Type) -> bool:
        """True if values of this type have a cotangent that can differ from zero."""
        type_ = prune(type_)  # type: ignore[assignment]
        match type_:
            case TensorType(base, _):
                return isinstance(base, BaseType) and base.is_float
            case TupleType(items):
                return any(self.exists(t) for t in items)
            case StackType(element):
                return self.exists(element)
            case DataType(definition):
                if definition not in self._exists:
                    self._exists[definition] = self._data_exists(definition)
                return self._exists[definition]
            case RefType() | FunctionType() | QuantifiedType() | TypeId() | Unknown():
                return False
            case _:
                assert_never(type_)

    def _data_exists(self, definition: DataDefinition) -> bool:
        seen, pending = {definition}, [definition]
        while pending:
            types = [t for c in pending.pop().constructors for t in c.fields]
            while types:
                type_ = prune(types.pop())
                match type_:
                    case DataType(inner):
                        if inner not in seen:
                            seen.add(inner)
                            pending.append(inner)
                    case TupleType(items):
                        types += items
                    case StackType(element):
                        types.append(element)
                    case TensorType() if self.exists(type_):
                        return True
        return False

    def leaves(self, type_: Type) -> tuple[Type, ...]:
        """The types of the leaves of a cotangent."""
        type_ = prune(type_)  # type: ignore[assignment]
        if not self.exists(type_):
            return ()
        match type_:
            case TupleType(items):
                return tuple(leaf for t in items for leaf in self.leaves(t))
            case DataType(definition):
                return (DataType(self.cotangent_definition(definition)),)
            case StackType(element):
                return (StackType(pack_type(self.leaves(element))),)
            case _:
                return (type_,)

    def cotangent_definition(self, definition: DataDefinition) -> DataDefinition:
        """The data type of the cotangents of a data type."""
        found = self._primed.get(definition)
        if found is None:
            found = self._primed[definition] = DataDefinition(self.fresh_name(f"{definition.name}_cotangent"))
            self.definitions.append(found)
            if definition.constructors:
                self._fill(definition)
        return found

    def _fill(self, definition: DataDefinition) -> None:
        self._primed[definition].constructors = (
            Constructor(ZERO_CONSTRUCTOR, ()),
            *(
                Constructor(primed_constructor(c.name), tuple(leaf for t in c.fields for leaf in self.leaves(t)))
                for c in definition.constructors
            ),
        )

    def share_existence(self, definition: DataDefinition, new: DataDefinition) -> None:
        """Note that a data type has a cotangent if another one does. It may still be without constructors."""
        self._exists[new] = self.exists(DataType(definition))

    def complete(self, definition: DataDefinition) -> None:
        """Note that a data type has got its constructors: cotangents of it may have been asked for before."""
        if definition in self._primed:
            self._fill(definition)

    # ---- trees

    def flatten(self, cotangent: Cotangent, type_: Type) -> list[Atom | None]:
        """The leaves of a cotangent, in the order of `leaves`."""
        type_ = prune(type_)  # type: ignore[assignment]
        if not self.exists(type_):
            return []
        if not isinstance(type_, TupleType):
            assert not isinstance(cotangent, tuple)
            return [cotangent]
        parts = cotangent if isinstance(cotangent, tuple) else (None,) * len(type_.items)
        return [leaf for part, t in zip(parts, type_.items, strict=True) for leaf in self.flatten(part, t)]

    def unflatten(self, leaves: Sequence[Atom | None], type_: Type) -> Cotangent:
        """The cotangent with these leaves."""
        rest = iter(leaves)
        cotangent = self._build(rest, type_)
        assert next(rest, self) is self, "too many leaves"
        return cotangent

    def _build(self, leaves: Iterator[Atom | None], type_: Type) -> Cotangent:
        type_ = prune(type_)  # type: ignore[assignment]
        if not self.exists(type_):
            return None
        if not isinstance(type_, TupleType):
            return next(leaves)
        parts = tuple(self._build(leaves, t) for t in type_.items)
        return None if all(p is None for p in parts) else parts

    def variables(self, type_: Type, name: str) -> list[Var]:
        """Fresh variables for the leaves of a cotangent."""
        return [Var(name, leaf) for leaf in self.leaves(type_)]

    # ---- zeros

    def zeros(self, emitter: Emitter, type_: Type, like: Atom | None) -> list[Atom]:
        """Emit the leaves of a zero. `like`, the value itself, gives stacks their lengths; else they are empty."""
        type_ = prune(type_)  # type: ignore[assignment]
        if not self.exists(type_):
            return []
        match type_:
            case TupleType(items):
                leaves: list[Atom] = []
                for position, item in enumerate(items):
                    part = like
                    if like is not None and self._holds_stack(item):
                        part = emitter.bind(Project(like, position), item, "part").atom
                    leaves += self.zeros(emitter, item, part)
                return leaves
            case DataType(definition):
                primed = self.cotangent_definition(definition)
                return [emitter.bind(Construct(primed, ZERO_CONSTRUCTOR, ()), DataType(primed), "zero").atom]
            case StackType(element):
                return [self._zero_stack(emitter, element, like)]
            case TensorType() if has_any(type_):
                return [no_elements(emitter, type_)]
            case _:
                return [zero_tensor(emitter, type_)]

    def _holds_stack(self, type_: Type) -> bool:
        type_ = prune(type_)  # type: ignore[assignment]
        if isinstance(type_, TupleType):
            return any(self._holds_stack(t) for t in type_.items)
        return isinstance(type_, StackType) and self.exists(type_)

    def _zero_stack(self, emitter: Emitter, element: Type, like: Atom | None) -> Atom:
        primed = pack_type(self.leaves(element))
        empty = emitter.bind(StackNew(primed), StackType(primed), "empty").atom
        if like is None:
            return empty

        def zero(inner: Emitter, index: Var) -> Atom:
            value = inner.bind(StackGet(like, index), element, "entry").atom
            return pack(inner, self.zeros(inner, element, value))

        return fill_stack(emitter, empty, like, zero)

    def dense(self, emitter: Emitter, cotangent: Cotangent, type_: Type, like: Atom | None) -> list[Atom]:
        """The leaves of a cotangent, with the zeros emitted."""
        leaves = self.flatten(cotangent, type_)
        if all(leaf is not None for leaf in leaves):
            return [leaf for leaf in leaves if leaf is not None]
        zeros = self.zeros(emitter, type_, like)
        return [zero if leaf is None else leaf for leaf, zero in zip(leaves, zeros, strict=True)]

    # ---- sums

    def add(self, emitter: Emitter, left: Cotangent, right: Cotangent) -> Cotangent:
        """Emit the sum; nothing where one side is zero."""
        if left is None or right is None:
            return right if left is None else left
        if isinstance(left, tuple) or isinstance(right, tuple):
            assert isinstance(left, tuple) and isinstance(right, tuple)
            return tuple(self.add(emitter, a, b) for a, b in zip(left, right, strict=True))
        return self._add_leaves(emitter, left, right)

    def _add_leaves(self, emitter: Emitter, left: Atom, right: Atom) -> Atom:
        type_ = type_of(left)
        match type_:
            case DataType(primed):
                return emitter.bind(Call(self._adder(primed), (left, right)), type_, "sum").atom
            case StackType(element):
                last = (emitter.value(emitter.bind(StackLength(left), scalar(INT64), "length").atom) - 1).atom

                def entry(inner: Emitter, stack: Atom, index: Var) -> Atom:
                    place = (inner.value(last) - inner.value(index)).atom
                    return inner.bind(StackGet(stack, place), element, "entry").atom

                def total(inner: Emitter, index: Var) -> Atom:
                    a, b = entry(inner, left, index), entry(inner, right, index)
                    types = element.items if isinstance(element, TupleType) else (element,)
                    pairs = zip(unpack(inner, a, types), unpack(inner, b, types), strict=True)
                    return pack(inner, [self._add_leaves(inner, x, y) for x, y in pairs])

                # Stacks are read from the last entry to the first, also here, as sums may be differentiated: so the
                # sums are stacked in this order at first, and turned then.
                empty = emitter.bind(StackNew(element), type_, "empty").atom
                sums = fill_stack(emitter, empty, left, total)
                empty = emitter.bind(StackNew(element), type_, "empty").atom
                return fill_stack(emitter, empty, sums, lambda inner, index: entry(inner, sums, index))
            case TensorType() if has_any(type_):
                return sum_of(emitter, left, right)
            case _:
                return (emitter.value(left) + emitter.value(right)).atom

    def _adder(self, primed: DataDefinition) -> Global:
        """The function that adds two cotangents of a data type. They come from one value, so that they never have
        different constructors unless one is zero."""
        found = self._adders.get(primed)
        if found is not None:
            return found
        type_ = DataType(primed)
        name = self.fresh_name(f"add_{primed.name}")
        found = self._adders[primed] = Global(name, FunctionType((type_, type_), type_))
        left, right, result, label = Var("left", type_), Var("right", type_), Var("sum", type_), LoopLabel(name)
        arms = []
        for constructor in primed.constructors:
            fields = tuple(Var("left", t) for t in constructor.fields)
            if not fields:
                other: Atom = right if constructor.name == ZERO_CONSTRUCTOR else left
                arms.append(MatchArm(constructor.name, (), Block((), Yield((other,)))))
                continue
            inner = []
            for candidate in primed.constructors:
                others = tuple(Var("right", t) for t in candidate.fields)
                emitter = Emitter()
                total: Atom = left
                if candidate is constructor:
                    sums = tuple(self._add_leaves(emitter, a, b) for a, b in zip(fields, others, strict=True))
                    total = emitter.bind(Construct(primed, constructor.name, sums), type_, "sum").atom
                inner.append(MatchArm(candidate.name, others, Block(tuple(emitter.bindings), Yield((total,)))))
            both = Var("sum", type_)
            body = Block((Binding((both,), Match(right, tuple(inner))),), Yield((both,)))
            arms.append(MatchArm(constructor.name, fields, body))
        block = Block((Binding((result,), Match(left, tuple(arms))),), Exit(label, (result,)))
        self.functions[name] = Function(name, (left, right), block, label, type_)
        return found


def primed_constructor(name: str) -> str:
    """The constructor of cotangents of values with this constructor."""
    return f"{name}_cotangent"


def zero_tensor(emitter: Emitter, type_: Type) -> Atom:
    """Emit a tensor of zeros."""
    assert isinstance(type_, TensorType) and isinstance(type_.base, BaseType)
    if type_.rank == 0:
        return Constant(np.zeros((), type_.dtype))
    operator = lookup("zeros")
    call = OpCall(operator.name, (), fill_attributes(type_), emitter.span)
    return emitter.bind(call, type_, "zero").atom


def fill_attributes(type_: TensorType) -> dict[str, AttributeValue]:
    """The attributes of an operator that makes a tensor of this type from nothing."""
    shape: tuple[AttributeValue, ...] = type_.shape  # type: ignore[assignment]  # finished types have no open dims
    assert isinstance(type_.base, BaseType)
    return {"shape": shape, "dtype": type_.base}


def fill_stack(emitter: Emitter, empty: Atom, like: Atom, element: Callable[[Emitter, Var], Atom]) -> Atom:
    """A stack of the length of `like`, each element computed from its index."""
    type_ = type_of(empty)
    length = emitter.bind(StackLength(like), scalar(INT64), "length").atom
    index, stack, label = Var("i", scalar(INT64)), Var("stack", type_), LoopLabel("fill")
    inner = Emitter(emitter.span)
    value = element(inner, index)
    longer = inner.bind(StackPush(stack, value), type_, "stack").atom
    body = Block(tuple(inner.bindings), Next(label, (longer,)))
    return emitter.bind(Loop(label, (stack,), (empty,), body, Counter(index, length)), type_, "stack").atom
