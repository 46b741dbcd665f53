"""The reversal of references.

A reference whose content has a cotangent becomes a pair: the cell itself, and one for the cotangent of what it holds.
The pair travels wherever the reference does, also in tuples, data and tapes, so that aliases share one cotangent:

    [Ref[T]] = (Ref[[T]], Ref[T'])      [(A, B)] = ([A], [B])      [D] = a copy of D with [.] of all fields

    r = ref v          p = ref v; d = ref 0; r = (p, d)        v' += read d
    v = read r         v = read r.0                            r.1 := read r.1 + v'
    write r v          write r.0 v                             v' += read r.1; r.1 := 0

The backward effects happen in the reverse order of the forward ones, whether or not any cotangent is known there.

Pairs cannot be made of references from outside of the derivative if two may be the same one, or if they hold others,
or lie in data or lists; nor can data with pairs leave it. Such derivatives leave all references as they are, and have
the cells for cotangents behind them (`shadows`), with d = shadow r:

    r = ref v          r = ref v                               v' += read d
    v = read r         v = read r                              d := read d + v'
    write r v          write r v                               v' += read d; d := 0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from relay.ad.cotangents import Cotangents, fill_stack, pack, pack_type, type_of, unpack
from relay.ad.scopes import Scope
from relay.ad.tapes import BlockReversal
from relay.errors import InternalError, Span
from relay.ir.expr import Atom, Binding, Expr, MakeTuple, Project, RefNew, RefRead, RefWrite, StackGet, StackNew, Var
from relay.ir.types import (
    Constructor,
    DataDefinition,
    DataType,
    RefType,
    StackType,
    TupleType,
    Type,
    prune,
    show,
)
from relay.operator import Emitter


class References:
    """Types that hold references with cotangents, and the pairs that they become. `definitions` are the new data
    types."""

    slot: str | None = None
    """The slot of the shadows, if there are no pairs."""

    def __init__(self, cotangents: Cotangents, fresh_name: Callable[[str], str]) -> None:
        self.definitions: list[DataDefinition] = []
        self._cotangents = cotangents
        self._fresh_name = fresh_name
        self._paired: dict[DataDefinition, DataDefinition] = {}

    def holds(self, type_: Type) -> bool:
        """True if values of a type contain a reference to something with a cotangent."""
        seen: set[DataDefinition] = set()
        pending = [type_]
        while pending:
            current = prune(pending.pop())
            match current:
                case RefType(content):
                    if self._cotangents.exists(content):
                        return True
                    pending.append(content)
                case TupleType(items):
                    pending += items
                case StackType(element):
                    pending.append(element)
                case DataType(definition) if definition not in seen:
                    seen.add(definition)
                    pending += [t for c in definition.constructors for t in c.fields]
        return False

    def paired_type(self, type_: Type) -> Type:
        """The type with pairs in place of references."""
        type_ = prune(type_)  # type: ignore[assignment]
        if not self.holds(type_):
            return type_
        match type_:
            case RefType(content):
                inner = self.paired_type(content)
                if not self._cotangents.exists(content):
                    return RefType(inner)
                return TupleType((RefType(inner), RefType(pack_type(self._cotangents.leaves(inner)))))
            case TupleType(items):
                return TupleType(tuple(self.paired_type(t) for t in items))
            case StackType(element):
                return StackType(self.paired_type(element))
            case DataType(definition):
                return DataType(self.paired_definition(definition))
            case _:
                return type_

    def can_receive(self, type_: Type, shared: Sequence[Type]) -> bool:
        """True if pairs can be made of the references in a value from outside of a derivative. References in values
        of `shared` types may be the same one."""
        type_ = prune(type_)  # type: ignore[assignment]
        if not self.holds(type_):
            return True
        if isinstance(type_, TupleType):
            return type_ not in shared and all(self.can_receive(t, shared) for t in type_.items)
        return isinstance(type_, RefType) and type_ not in shared and not self.holds(type_.content)

    def bind_outer_pairs(self, cells: Mapping[Var, Var], span: Span | None) -> list[Binding]:
        """The pairs of references that come from outside of a derivative: each gets a cell for its cotangent, which is
        not needed afterwards. `cells` has what they are outside."""
        emitter = Emitter(span)
        for pair, outside in cells.items():
            emitter.emit((pair,), self._paired_value(emitter, outside, type_of(outside)))
        return emitter.bindings

    def _paired_value(self, emitter: Emitter, value: Atom, type_: Type) -> Expr:
        """The expression that makes pairs of the references in a value."""
        span, type_ = emitter.span, prune(type_)  # type: ignore[assignment]
        if isinstance(type_, TupleType):
            parts: list[Atom] = []
            for index, item in enumerate(type_.items):
                part = emitter.bind(Project(value, index, span), item, "part").atom
                if self.holds(item):
                    part = emitter.bind(self._paired_value(emitter, part, item), self.paired_type(item), "pair").atom
                parts.append(part)
            return MakeTuple(tuple(parts), span)
        assert isinstance(type_, RefType)
        zeros = pack(emitter, self._cotangents.zeros(emitter, type_.content, None))
        adjoint = emitter.bind(RefNew(zeros, span), RefType(type_of(zeros)), "adjoint").atom
        return MakeTuple((value, adjoint), span)

    def can_return(self, type_: Type) -> bool:
        """True if a value with pairs can be turned back into the original value to leave a derivative."""
        type_ = prune(type_)  # type: ignore[assignment]
        if not self.holds(type_):
            return True
        match type_:
            case RefType(content):
                return not self.holds(content)
            case TupleType(items):
                return all(map(self.can_return, items))
            case StackType(element):
                return self.can_return(element)
            case _:
                return False

    def unpair_value(self, emitter: Emitter, value: Atom, type_: Type) -> Atom:
        """The original value of type `type_` for one of `paired(type_)`, if it can leave the derivative."""
        type_ = prune(type_)  # type: ignore[assignment]
        if not self.holds(type_):
            return value
        match type_:
            case RefType():
                return emitter.bind(Project(value, 0, emitter.span), type_, "cell").atom
            case TupleType(items):
                parts = [
                    self.unpair_value(emitter, emitter.bind(Project(value, i), self.paired_type(t), "part").atom, t)
                    for i, t in enumerate(items)
                ]
                return emitter.bind(MakeTuple(tuple(parts), emitter.span), type_, "parts").atom
            case StackType(element):
                paired = self.paired_type(element)

                def entry(inner: Emitter, index: Var) -> Atom:
                    found = inner.bind(StackGet(value, index, inner.span), paired, "entry").atom
                    return self.unpair_value(inner, found, element)

                empty = emitter.bind(StackNew(element, emitter.span), type_, "empty").atom
                return fill_stack(emitter, empty, value, entry)
            case _:
                raise InternalError(f"pairs in {show(type_)} leave a derivative")

    def paired_definition(self, definition: DataDefinition) -> DataDefinition:
        """The data type with pairs in place of references."""
        if not self.holds(DataType(definition)):
            return definition
        found = self._paired.get(definition)
        if found is None:
            found = self._paired[definition] = DataDefinition(self._fresh_name(f"{definition.name}_paired"))
            self.definitions.append(found)
            self._cotangents.share_existence(definition, found)
            found.constructors = tuple(
                Constructor(c.name, tuple(self.paired_type(t) for t in c.fields)) for c in definition.constructors
            )
            self._cotangents.complete(found)
        return found


class ShadowReferences(References):
    """References stay as they are, and have the cells for cotangents behind them."""

    def __init__(self, cotangents: Cotangents, fresh_name: Callable[[str], str], slot: str) -> None:
        super().__init__(cotangents, fresh_name)
        self.slot = slot

    def paired_type(self, type_: Type) -> Type:
        """The type itself."""
        return type_

    def paired_definition(self, definition: DataDefinition) -> DataDefinition:
        """The data type itself."""
        return definition


def references_in(type_: Type) -> Iterator[RefType]:
    """The types of the references in values of a type. The cells of lists nobody else has."""
    pending, seen = [type_], set[DataDefinition]()
    while pending:
        match prune(pending.pop()):
            case RefType(content) as found:
                yield found
                pending.append(content)
            case TupleType(items):
                pending += items
            case StackType(RefType(content)):
                pending.append(content)
            case StackType(element):
                pending.append(element)
            case DataType(definition) if definition not in seen:
                seen.add(definition)
                pending += [t for c in definition.constructors for t in c.fields]
            case _:
                pass


def count_references(type_: RefType, every: Sequence[Type]) -> int:
    """The number of references of a type that there may be in values of these types; 2 or more for any number."""
    count, seen = 0, set[DataDefinition]()
    pending = list(every)
    while pending:
        match prune(pending.pop()):
            case RefType(content) as found:
                count += found == type_
                pending.append(content)
            case TupleType(items):
                pending += items
            case StackType(RefType(content)):  # a list, whose cells nobody else has
                pending += (content, content)
            case StackType(element):
                pending += (element, element)
            case DataType(definition) if definition not in seen:
                seen.add(definition)
                pending += [t for c in definition.constructors for t in c.fields for _ in range(2)]
            case _:
                pass
    return count


def reverse_new(reversal: BlockReversal, binding: Binding, new: RefNew, scope: Scope) -> list[Binding]:
    """v' += read d"""
    target = binding.targets[0]
    content = _content(reversal, target)
    if content is None:
        return [binding]
    if reversal.is_tracked(new.value):
        leaves = _leaves(reversal, scope, _adjoint(scope, target, content, reversal), content)
        reversal.accumulate(scope, new.value, reversal.cotangents.unflatten(leaves, content))
    if reversal.sweep is not None:
        return [binding]
    forward = Emitter(new.span)
    cell = forward.bind(RefNew(new.value, new.span), RefType(content), "cell").atom
    zeros = pack(forward, reversal.cotangents.zeros(forward, content, None))
    adjoint = forward.bind(RefNew(zeros, new.span), RefType(type_of(zeros)), "adjoint").atom
    return [*forward.bindings, Binding((target,), MakeTuple((cell, adjoint), new.span))]


def reverse_read(reversal: BlockReversal, binding: Binding, read: RefRead, scope: Scope) -> list[Binding]:
    """d := read d + v'"""
    target = binding.targets[0]
    cotangent, content = scope.take(target), _content(reversal, read.reference)
    if content is None:
        return [binding]
    if cotangent is not None:
        adjoint = _adjoint(scope, read.reference, content, reversal)
        before = reversal.cotangents.unflatten(_leaves(reversal, scope, adjoint, content), content)
        after = reversal.cotangents.add(scope.emitter, before, cotangent)
        _write(reversal, scope, adjoint, reversal.cotangents.dense(scope.emitter, after, content, None))
    forward = Emitter(read.span)
    cell = _cell(reversal, forward, read.reference, content)
    return [*forward.bindings, Binding((target,), RefRead(cell, read.span))]


def reverse_write(reversal: BlockReversal, binding: Binding, write: RefWrite, scope: Scope) -> list[Binding]:
    """v' += read d; d := 0"""
    content = _content(reversal, write.reference)
    if content is None:
        return [binding]
    adjoint = _adjoint(scope, write.reference, content, reversal)
    if reversal.is_tracked(write.value):
        leaves = _leaves(reversal, scope, adjoint, content)
        reversal.accumulate(scope, write.value, reversal.cotangents.unflatten(leaves, content))
    _write(reversal, scope, adjoint, reversal.cotangents.zeros(scope.emitter, content, None))
    forward = Emitter(write.span)
    cell = _cell(reversal, forward, write.reference, content)
    return [*forward.bindings, Binding((), RefWrite(cell, write.value, write.span))]


def _content(reversal: BlockReversal, reference: Atom) -> Type | None:
    """The type of the content of a reference with a cotangent; None for others."""
    match type_of(reference):
        case TupleType((RefType(content), RefType())) if reversal.sweep is None:
            return content
        case RefType(content) if reversal.sweep is not None and reference in reversal.paired:
            return content if reversal.cotangents.exists(content) else None
        case _:
            return None


def _cell(reversal: BlockReversal, forward: Emitter, reference: Atom, content: Type) -> Atom:
    if reversal.sweep is not None:
        return reference
    return forward.bind(Project(reference, 0, forward.span), RefType(content), "cell").atom


def _adjoint(scope: Scope, reference: Atom, content: Type, reversal: BlockReversal) -> Atom:
    if reversal.sweep is not None:
        return reversal.sweep.cell(scope.emitter, reversal.cotangents, reference, content)
    type_ = RefType(pack_type(reversal.cotangents.leaves(content)))
    return scope.emitter.bind(Project(reference, 1), type_, "adjoint").atom


def _leaves(reversal: BlockReversal, scope: Scope, adjoint: Atom, content: Type) -> list[Atom]:
    types = reversal.cotangents.leaves(content)
    return unpack(scope.emitter, scope.emitter.bind(RefRead(adjoint), pack_type(types), "dcell").atom, types)


def _write(reversal: BlockReversal, scope: Scope, adjoint: Atom, leaves: list[Atom]) -> None:
    packed = pack(scope.emitter, leaves)
    scope.emitter.emit((), RefWrite(adjoint, packed, scope.emitter.span))
