"""Memory layouts: the layout of every type, and the pools of data whose amount is data-dependent.

    Tensor[B, S]        the elements, row major
    (T, ..)             its components, one after the other; no memory of its own
    D, small            an int32 tag, and the fields of all constructors; only the active one's are written
    D, recursive or of  a row (int64) of the pool of D, which holds tag and fields
       many leaves
    Ref[T]              a row (int64) of the pool of Ref[T], which holds the content
    Stack[T]            offset and length (int64) of consecutive rows of a pool of T

A pool is a struct of arrays that grows. Two stacks that never meet in one variable get different pools; `analyze` finds
by unification which stacks meet. The rows of a stack are a block, which has room for more: see `pools.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, assert_never

import attrs

from relay.errors import CompileError, InternalError, Span
from relay.ir.dims import ANY, Dim, multiply, product
from relay.ir.expr import (
    Atom,
    Call,
    Constant,
    Construct,
    Expr,
    Function,
    Global,
    MakeTuple,
    Match,
    Module,
    OpCall,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    Shadow,
    StackGet,
    StackNew,
    StackPrefix,
    StackPush,
    StackSet,
    Static,
    Var,
)
from relay.ir.sizes.facts import facts
from relay.ir.traverse import bound_variables, moves, returns, walk
from relay.ir.types import (
    INT64,
    BaseType,
    DataDefinition,
    DataType,
    RefType,
    StackType,
    TensorType,
    TupleType,
    Type,
    show,
)

MAXIMUM_LEAVES = 400
"""Of more tensors a value of a data type lies in a pool."""


@attrs.frozen
class TensorLayout:
    """A tensor: `dims` elements of `base`. Dims may be symbolic."""

    base: BaseType
    dims: tuple[Dim, ...]

    @property
    def elements(self) -> Dim:
        return product(self.dims)

    @property
    def bytes(self) -> Dim:
        return multiply(self.elements, self.base.dtype.itemsize)


@attrs.frozen(eq=False)
class TupleLayout:
    """A tuple."""

    items: tuple[Layout, ...]


@attrs.frozen(eq=False)
class SizedLayout(TupleLayout):
    """A tensor some of whose extents are data-dependent: its address, which lies in the arena, and these extents."""

    base: BaseType
    dims: tuple[Dim, ...]


@attrs.frozen(eq=False)
class DataLayout:
    """A value of a data type that is neither recursive nor large: tag and the fields of every constructor."""

    definition: DataDefinition
    fields: tuple[tuple[Layout, ...], ...]


@attrs.define(eq=False)
class RowLayout:
    """A reference, or a recursive or large value: a row of a pool."""

    pool: Pool


@attrs.define(eq=False)
class StackLayout:
    """A stack: rows of the pool that `pool()` finds after unification."""

    own: Pool
    merged: StackLayout | None = None

    def representative(self) -> StackLayout:
        found = self
        while found.merged is not None:
            found = found.merged
        if found is not self:
            self.merged = found
        return found

    @property
    def pool(self) -> Pool:
        return self.representative().own


@attrs.define(eq=False)
class Pool:
    """Rows of one layout: those of references (`cells`), of recursive data, or of stacks (`blocks`). `slot` is its
    first place in the context table: top, capacity, then a base for each leaf. Those of stacks have a word more in each
    row, which matters in the first row of a block (`pools.py`), and places for blocks that are free (`free`).

    After the content of a reference there are two words for each slot of shadows (`Shadow`): 1 + the row of the sweep,
    0 if there is no shadow yet, and the shadow's row. The caller that passes references makes room for them; each call
    clears them.
    """

    name: str
    element: Layout = attrs.field(factory=lambda: TupleLayout(()))
    slot: int | None = None
    cells: bool = False
    blocks: bool = False
    free: int | None = None
    shadows: list[str] = attrs.field(factory=list)

    def leaves(self) -> list[TensorLayout]:
        """The leaves of a row: of the content, and the words for shadows or for the block."""
        return [*leaves(self.element), *(ROW,) * (2 * len(self.shadows) + self.blocks)]


def has_cells(pool: Pool) -> bool:
    """True if the rows of stacks in a pool contain rows of references, as the elements of lists may."""
    return isinstance(pool.element, RowLayout) and pool.element.pool.cells


def has_fixed_rows(pool: Pool) -> bool:
    """True if no size in a row is symbolic."""
    return all(isinstance(leaf.bytes, int) for leaf in leaves(pool.element))


Layout: TypeAlias = TensorLayout | TupleLayout | DataLayout | RowLayout | StackLayout

ROW = TensorLayout(INT64, ())


def leaves(layout: Layout) -> Iterator[TensorLayout]:
    """The tensors that a value consists of, in order. A tag is an int32 scalar, a row or their number an int64 one."""
    match layout:
        case TensorLayout():
            yield layout
        case TupleLayout(items):
            for item in items:
                yield from leaves(item)
        case DataLayout(_, fields):
            yield TAG
            for constructor in fields:
                for field in constructor:
                    yield from leaves(field)
        case RowLayout():
            yield ROW
        case StackLayout():
            yield ROW
            yield ROW
        case _:
            assert_never(layout)


TAG = TensorLayout(BaseType("int32"), ())


def received_leaves(layouts: Sequence[Layout]) -> Iterator[tuple[TensorLayout, bool]]:
    """The leaves of arguments, each with whether it is always there: fields of data may belong to another value."""
    for layout in layouts:
        match layout:
            case TupleLayout(items):
                yield from received_leaves(items)
            case DataLayout(_, fields):
                yield TAG, True
                for constructor in fields:
                    for leaf, there in received_leaves(constructor):
                        yield leaf, there and len(fields) == 1
            case _:
                yield from ((leaf, True) for leaf in leaves(layout))


def recursive_definitions(definitions: Iterable[DataDefinition]) -> set[DataDefinition]:
    """The definitions whose values can contain values of the same definition."""
    below: dict[DataDefinition, set[DataDefinition]] = {}
    pending = list(definitions)
    while pending:
        definition = pending.pop()
        if definition not in below:
            below[definition] = {
                d for c in definition.constructors for f in c.fields for d in _contained_definitions(f)
            }
            pending += below[definition]
    found = set()
    for definition in below:
        reached: set[DataDefinition] = set()
        pending = list(below[definition])
        while pending:
            other = pending.pop()
            if other not in reached:
                reached.add(other)
                pending += below[other]
        if definition in reached:
            found.add(definition)
    return found


def _contained_definitions(type_: Type) -> Iterator[DataDefinition]:
    match type_:
        case TupleType(items):
            for item in items:
                yield from _contained_definitions(item)
        case RefType(inner) | StackType(inner):
            yield from _contained_definitions(inner)
        case DataType(definition):
            yield definition
        case _:
            return


class Layouts:
    """The layout of every variable and of every function's result in one module."""

    def __init__(self) -> None:
        self.of: dict[Var, Layout] = {}
        self.results: dict[str, Layout] = {}
        self._plain: dict[Type, Layout] = {}
        self._shared: dict[Type, Pool] = {}  # the pools of references and recursive data, by type
        self._pooled: dict[DataDefinition, bool] = {}
        self._stacks = 0

    def fresh_layout(self, type_: Type | None, span: Span | None = None) -> Layout:
        """A layout for a type, whose stacks are of a kind of their own. Raises CompileError for functions."""
        if type_ is not None and type_ in self._plain:
            return self._plain[type_]
        match type_:
            case TensorType():
                layout: Layout = TensorLayout(type_.base, type_.shape)  # type: ignore[arg-type]
                if ANY in type_.shape:
                    words = (ROW,) * (1 + type_.shape.count(ANY))
                    layout = SizedLayout(words, type_.base, type_.shape)  # type: ignore[arg-type]
            case TupleType(items):
                layout = TupleLayout(tuple(self.fresh_layout(t, span) for t in items))
                if any(not _is_plain(item) for item in layout.items):
                    return layout
            case DataType(definition):
                if self._is_pooled(definition):
                    layout = RowLayout(self._pool_of(type_, span))
                else:
                    layout = self._sum(definition, span)
                    if not _is_plain(layout):
                        return layout
            case RefType():
                layout = RowLayout(self._pool_of(type_, span))
            case StackType(element):
                self._stacks += 1
                return StackLayout(Pool(f"stack{self._stacks}", self.fresh_layout(element, span), blocks=True))
            case None:
                raise InternalError("a variable without a type in code generation")
            case _:
                raise CompileError(f"a value of type {show(type_)} cannot be compiled", span)
        self._plain[type_] = layout
        return layout

    def pools(self) -> list[Pool]:
        """All pools, each once."""
        found: dict[Pool, None] = dict.fromkeys(self._shared.values())

        def visit(layout: Layout) -> None:
            match layout:
                case TupleLayout(items):
                    for item in items:
                        visit(item)
                case DataLayout(_, fields):
                    for constructor in fields:
                        for field in constructor:
                            visit(field)
                case StackLayout():
                    if layout.pool not in found:
                        found[layout.pool] = None
                        visit(layout.pool.element)
                case TensorLayout() | RowLayout():
                    pass
                case _:
                    assert_never(layout)

        for pool in list(found):
            visit(pool.element)
        for layout in [*self.of.values(), *self.results.values()]:
            visit(layout)
        return list(found)

    def _is_pooled(self, definition: DataDefinition) -> bool:
        """True if values of a data type are rows of a pool."""
        if definition not in self._pooled:
            recursive = definition in recursive_definitions([definition])
            self._pooled[definition] = recursive or self._leaves(definition) > MAXIMUM_LEAVES
        return self._pooled[definition]

    def _leaves(self, definition: DataDefinition) -> int:
        """The number of leaves of a value of a data type that is not recursive."""
        pending = [field for constructor in definition.constructors for field in constructor.fields]
        count = 1
        while pending and count <= MAXIMUM_LEAVES:
            match pending.pop():
                case TupleType(items):
                    pending += items
                case DataType(inner) if not self._is_pooled(inner):
                    count += 1
                    pending += (field for constructor in inner.constructors for field in constructor.fields)
                case TensorType(_, shape):
                    count += 1 + shape.count(ANY)
                case _:
                    count += 2
        return count

    def _sum(self, definition: DataDefinition, span: Span | None) -> DataLayout:
        fields = tuple(tuple(self.fresh_layout(t, span) for t in c.fields) for c in definition.constructors)
        return DataLayout(definition, fields)

    def _pool_of(self, type_: RefType | DataType, span: Span | None) -> Pool:
        if type_ not in self._shared:
            pool = self._shared[type_] = Pool(show(type_), cells=isinstance(type_, RefType))
            pool.element = (
                self._sum(type_.definition, span)
                if isinstance(type_, DataType)
                else self.fresh_layout(type_.content, span)
            )
        return self._shared[type_]

    def atom(self, atom: Atom) -> Layout:
        """The layout of an atom."""
        match atom:
            case Var():
                return self.of[atom]
            case Constant():
                return self.fresh_layout(atom.type, atom.span)
            case Global() | Static():
                raise InternalError(f"{atom!r} is not a first-order value")
            case _:
                assert_never(atom)


def _is_plain(layout: Layout) -> bool:
    """True if a layout contains no stack, so that all variables of the type may share it."""
    match layout:
        case TensorLayout() | RowLayout():
            return True
        case StackLayout():
            return False
        case TupleLayout(items):
            return all(_is_plain(item) for item in items)
        case DataLayout(_, fields):
            return all(_is_plain(field) for constructor in fields for field in constructor)
        case _:
            assert_never(layout)


def unify(a: Layout, b: Layout) -> None:
    """Let stacks at the same places of two layouts of one type share a pool. Tensors may write the same extents in
    other ways, which what the program assumes of its sizes makes equal."""
    if a is b:
        return
    match a, b:
        case TupleLayout(left), TupleLayout(right):
            for x, y in zip(left, right, strict=True):
                unify(x, y)
        case DataLayout(_, left_fields), DataLayout(_, right_fields):
            for xs, ys in zip(left_fields, right_fields, strict=True):
                for x, y in zip(xs, ys, strict=True):
                    unify(x, y)
        case StackLayout(), StackLayout():
            x, y = a.representative(), b.representative()
            if x is not y:
                y.merged = x
                unify(x.own.element, y.own.element)
        case TensorLayout(), TensorLayout():
            same_kind = a.base == b.base and len(a.dims) == len(b.dims)
            if a != b and not (same_kind and all(map(facts().equal, a.dims, b.dims))):
                raise InternalError(f"layouts {a} and {b} meet")
        case RowLayout(), RowLayout():
            if a.pool is not b.pool:
                raise InternalError(f"rows of {a.pool.name} and {b.pool.name} meet")
        case _:
            raise InternalError(f"layouts {a} and {b} meet")


def analyze(module: Module) -> Layouts:
    """Lay out every variable of a structured first-order module. Raises CompileError for what has no layout."""
    layouts = Layouts()
    functions = {name: f for name, f in module.functions.items() if isinstance(f, Function)}
    for name, function in functions.items():
        for parameter in function.parameters:
            layouts.of[parameter] = layouts.fresh_layout(parameter.type, parameter.span or function.span)
        layouts.results[name] = layouts.fresh_layout(function.result, function.span)
    for name, function in functions.items():
        analysis = _LayoutAnalysis(layouts, functions)
        for binding in walk(function.body):
            analysis.binding(binding.targets, binding.value)
        for values, targets in moves(function.body):
            analysis.meet(values, [layouts.of[t] for t in targets])
        for end in returns(function):
            analysis.meet(end.values, (layouts.results[name],))
    return layouts


@attrs.frozen(eq=False)
class _LayoutAnalysis:
    """Layouts within one function."""

    layouts: Layouts
    functions: Mapping[str, Function]

    def meet(self, atoms: Sequence[Atom], layouts: Sequence[Layout]) -> None:
        for atom, layout in zip(atoms, layouts, strict=True):
            unify(layout, self.layouts.atom(atom))

    def _assign_layouts(self, targets: Sequence[Var]) -> tuple[Layout, ...]:
        for target in targets:
            self.layouts.of[target] = self.layouts.fresh_layout(target.type, target.span)
        return tuple(self.layouts.of[t] for t in targets)

    def binding(self, targets: tuple[Var, ...], value: Expr) -> None:
        of, atom = self.layouts.of, self.layouts.atom
        match value:
            case OpCall():
                self._assign_layouts(targets)
            case Var() | Constant():
                of[targets[0]] = atom(value)
            case MakeTuple(items):
                of[targets[0]] = TupleLayout(tuple(atom(item) for item in items))
            case Project(tuple_, index):
                whole = atom(tuple_)
                assert isinstance(whole, TupleLayout)
                of[targets[0]] = whole.items[index]
            case Match(matched, match_arms):
                layout = _of_data(atom(matched))
                self._assign_layouts(targets)
                for match_arm in match_arms:
                    fields = layout.fields[layout.definition.index(match_arm.constructor)]
                    of.update(zip(match_arm.fields, fields, strict=True))
            case Call(function, arguments):
                assert isinstance(function, Global)
                self.meet(arguments, tuple(of[p] for p in self.functions[function.name].parameters))
                of[targets[0]] = self.layouts.results[function.name]
            case Construct(definition, constructor, arguments):
                layout = _of_data(self._assign_layouts(targets)[0])
                self.meet(arguments, layout.fields[definition.index(constructor)])
            case RefNew(content):
                self.meet((content,), (_pool(self._assign_layouts(targets)[0]).element,))
            case RefWrite(reference, content):
                self.meet((content,), (_pool(atom(reference)).element,))
            case Shadow(reference, _, initial, slot):
                self.meet((initial,), (_pool(self._assign_layouts(targets)[0]).element,))
                shadows = _pool(atom(reference)).shadows
                if slot not in shadows:
                    shadows.append(slot)
            case StackNew(element):
                of[targets[0]] = self.layouts.fresh_layout(StackType(element), value.span)
            case StackPush(stack, pushed) | StackSet(stack, _, pushed):
                of[targets[0]] = atom(stack)
                self.meet((pushed,), (_pool(atom(stack)).element,))
            case StackPrefix(stack):
                of[targets[0]] = atom(stack)
            case StackGet(held) | RefRead(held):
                of[targets[0]] = _pool(atom(held)).element
            case _:
                self._assign_layouts((*bound_variables(value), *targets))


def _pool(layout: Layout) -> Pool:
    """The pool in which the content of a reference or the elements of a stack are."""
    assert isinstance(layout, RowLayout | StackLayout)
    return layout.pool


def _of_data(layout: Layout) -> DataLayout:
    """The layout of a data type's values, wherever they are."""
    found = layout.pool.element if isinstance(layout, RowLayout) else layout
    assert isinstance(found, DataLayout)
    return found
