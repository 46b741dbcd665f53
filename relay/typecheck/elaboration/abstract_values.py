"""Abstract values: every meaning that a name can have during elaboration.

Only `Typed` exists at run time. Numbers, tuples, functions and Python objects are known to the checker; they become
typed atoms where the program needs them as values (`materialize`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from relay.errors import InternalError, Span
from relay.ir.builder import BlockBuilder
from relay.ir.builder import DeferredBinding as DeferredBinding
from relay.ir.debugging.source_names import (
    ComputedNumber,
    FunctionName,
    Meaning,
    Parts,
    PythonValue,
    SizeValue,
    SourceName,
    name_collector,
)
from relay.ir.definition import Definition, NoScope, Scope
from relay.ir.dims import DataDependentDim, Dim, add, resolve_dim, variables
from relay.ir.effects import Purity
from relay.ir.expr import Atom, Block, Constant, Expr, Function, Global, Grad, LoopLabel, Terminator, Var
from relay.ir.sizes.facts import facts
from relay.ir.types import (
    Form,
    Type,
    TypeId,
    Unknown,
)
from relay.operator.relation import Undetermined
from relay.typecheck.dims import refuse_made

if TYPE_CHECKING:
    from relay.typecheck.elaboration.checker import Instance
    from relay.typecheck.elaboration.effects.evidence import Evidence

TEMPLATE = "<relay."
"""The beginning of the file names that templates appear to come from."""


def is_of_template(span: Span | None) -> bool:
    """True if a place is in the text of a template, which users do not see."""
    return span is not None and span.source.filename.startswith(TEMPLATE)


@attrs.define(eq=False, slots=False)
class TypedBlockBuilder(BlockBuilder):
    """A block that is being written, with what its names mean."""

    names: list[tuple[int, str, AbstractValue]] = attrs.field(factory=list)  # each after how many items

    def slot(self) -> TypedBlockBuilder:
        """Reserve a place here."""
        place = TypedBlockBuilder()
        self.items.append(place)
        return place

    def block(self, end: Terminator | None = None) -> Block:
        """The finished block."""
        block = super().block(end)
        if (names := name_collector()) is not None:
            names.add(block, self._source_names(0))
        return block

    def _source_names(self, start: int) -> list[SourceName]:
        """The names that get a meaning, in order, where the items begin at a position of the finished block."""
        starts = [start]
        for item in self.items:
            starts.append(starts[-1] + (item.length if isinstance(item, BlockBuilder) else 1))
        found = [SourceName(starts[count], name, meaning_of(value)) for count, name, value in self.names]
        for item, position in zip(self.items, starts, strict=False):
            if isinstance(item, TypedBlockBuilder):
                found += item._source_names(position)
        return sorted(found, key=lambda name: name.position)


class NotAList(enum.Enum):
    """No list, whose length could be another one."""

    NOTHING = enum.auto()


NOTHING = NotAList.NOTHING


@attrs.frozen
class ListLength:
    """The length of a list that grows, as far as it is known: `more` elements than at `origin` (None: than none at
    all). `elements`: that of its elements, if they are such lists of one length; NOTHING of a list without any."""

    origin: object
    more: Dim
    elements: ListLength | NotAList | None = None

    def plus(self, count: Dim) -> ListLength:
        """The length with this many more elements."""
        return ListLength(self.origin, add(self.more, count), self.elements)

    def with_elements(self, elements: ListLength | NotAList | None) -> ListLength:
        """The length of the list when there are elements of this length in it, too."""
        if elements is NOTHING or elements == self.elements:
            return self
        return ListLength(self.origin, self.more, elements if self.elements is NOTHING else None)

    @property
    def absolute(self) -> Dim | None:
        """The length, if it is known."""
        return self.more if self.origin is None else None


@attrs.frozen(eq=False)
class DynamicValue:
    """A value at run time: an atom of the typed IR. `known` is its value where the checker knows it (a bool), `length`
    that of a list that grows. A number `of_range` takes the dtype of other integers (`range_numbers`)."""

    atom: Atom
    type: Type
    known: bool | None = None
    length: ListLength | None = None
    of_range: bool = False


class Number:
    """A number that is known at compile time: of Python, or a size. Each use chooses its own dtype."""

    span: Span | None

    def specialize(self) -> int | float:
        """The number. That of symbolic dims is theirs in this call, and the program is for these sizes only then: what
        does not know sizes is right for the call; what does, asks for `dim`."""
        raise NotImplementedError

    @property
    def is_float(self) -> bool:
        """True if it is a float."""
        raise NotImplementedError


@attrs.frozen(eq=False)
class PythonNumber(Number):
    """A Python number."""

    value: int | float
    span: Span | None = None

    def specialize(self) -> int | float:
        return self.value

    @property
    def is_float(self) -> bool:
        return isinstance(self.value, float)


class StaticNumber(PythonNumber):
    """An integer in a structure that is a part of the structure, as strings are: functions that get it know it."""


@attrs.frozen(eq=False)
class Size(Number):
    """A number that symbolic dims decide."""

    dim: Dim
    span: Span | None = None

    def specialize(self) -> int:
        number = facts().number(self.dim)
        if number is None:
            refuse_made(self.dim)
            raise Undetermined(*(v for v in variables(self.dim) if isinstance(v, Unknown)))
        return number

    @property
    def is_float(self) -> bool:
        return False


@attrs.frozen(eq=False)
class SizeExpression(Number):
    """A number that an operator computes from sizes, where it is not a dim: `1.0 / n`."""

    operator: str
    operands: tuple[Number, ...]
    compute: Callable[..., int | float]
    is_float: bool
    span: Span | None

    def specialize(self) -> int | float:
        return self.compute(*(operand.specialize() for operand in self.operands))


def size(dim: Dim, span: Span | None = None) -> Number:
    """A dim as a number."""
    dim = resolve_dim(dim)
    return PythonNumber(dim, span) if isinstance(dim, int) else Size(dim, span)


def dim_of(number: Number) -> Dim | None:
    """The dim that a number is: itself, if it is an integer."""
    if isinstance(number, Size):
        return resolve_dim(number.dim)
    return number.value if isinstance(number, PythonNumber) and isinstance(number.value, int) else None


def integer_of(value: object) -> int | None:
    """The integer that a value is, for the sizes of this call; None for other values."""
    number = value.specialize() if isinstance(value, Number) else None
    return number if isinstance(number, int) else None


@attrs.frozen(eq=False)
class Tuple:
    """A tuple whose components the checker knows one by one. `form` tells records and lists from tuples. `parts`: to
    this list of nothing tuples of this many components are appended later on. `origin`: where it is written, if it is a
    list of nothing."""

    items: tuple[AbstractValue, ...]
    form: Form | None = None
    parts: int | None = None
    origin: Span | None = None

    def field(self, name: Any) -> AbstractValue | None:
        """A record's field; None if there is none."""
        if self.form is None or name not in self.form.names:
            return None
        return self.items[self.form.names.index(name)]


@attrs.frozen(eq=False)
class PythonObject:
    """A Python object: a module, an operator, a dtype, a string, None, a builtin function."""

    value: object


@attrs.frozen(eq=False)
class GlobalFunction:
    """A decorated function."""

    definition: Definition
    pure: Purity | None = None  # demanded of it, as the argument of a parameter


@attrs.frozen(eq=False)
class SizesInScope:
    """The data-dependent sizes that are bound before a place, and visible there."""

    _made: tuple[tuple[Sequence[DataDependentDim], int], ...]  # by the blocks around it: this many of their sizes

    _is_other: bool = False

    def __contains__(self, dim: object) -> bool:
        return any(dim in made[:count] for made, count in self._made) is not self._is_other

    def complement(self) -> SizesInScope:
        """All other sizes."""
        return SizesInScope(self._made, not self._is_other)


@attrs.frozen
class Identity:
    """The identity of an object as a key, which keeps it alive: no other one can have it later."""

    value: object = attrs.field(eq=id)


@attrs.define(eq=False)
class LocalFunction:
    """A nested function with its captured variables. Each use elaborates it again at its own types.

    `slot` is the place of its definition, and `sizes` are those in scope there. Its instances are bound there, or where
    the last of the sizes in their types is bound. A `partial` one may be differentiated with respect to references,
    which have no gradients. It is defined `inside` an instance of the function around it, and inside of handlers of
    effects, whose `evidence` it sees.
    """

    function: Function
    environment: dict[Var, AbstractValue]
    slot: TypedBlockBuilder
    sizes: SizesInScope
    context: Context
    name: str = ""
    pure: Purity | None = None
    partial: bool = False
    inside: Instance | None = None
    evidence: tuple[Evidence, ...] = ()


@attrs.frozen(eq=False)
class DerivativeFunction:
    """`grad(f)`."""

    of: AbstractValue
    grad: Grad


@attrs.frozen(eq=False)
class Method:
    """`x.name`, not called yet. `described`: x, for messages. `owner`: the class that has it, if not that of x."""

    value: AbstractValue
    name: str
    described: str = "x"
    owner: type | None = None


@attrs.frozen(eq=False)
class Range:
    """`range(start, stop, step)`; `backward`: the same numbers from the last one on. `reversed`: `reversed` made it;
    `axis`: the numbers are those of the examples along an axis of this name; `divergence`: how these are batched where
    they take different ways."""

    start: AbstractValue
    stop: AbstractValue
    step: int
    backward: bool = False
    reversed: bool = False
    axis: str = ""
    divergence: str = ""


@attrs.frozen(eq=False)
class Progression:
    """`range(start, stop, step)` whose step is computed at run time; `backward`: the same numbers from the last one
    on."""

    start: AbstractValue
    stop: AbstractValue
    step: DynamicValue
    backward: bool = False


@attrs.frozen(eq=False)
class Zip:
    """`zip(..)`, and `enumerate(x)` as the zip of a range and x."""

    items: tuple[AbstractValue, ...]


@attrs.frozen(eq=False)
class SliceItem:
    """One slice of a subscript, elaborated."""

    start: AbstractValue | None
    stop: AbstractValue | None
    step: AbstractValue | None

    @property
    def is_whole(self) -> bool:
        """True if it is written as `:`."""
        return self.start is None and self.stop is None and self.step is None


@attrs.frozen(eq=False)
class MaskedElements:
    """The elements of a tensor that a run-time mask chooses, in their places. Only `x[mask] += ..` uses it."""

    value: DynamicValue
    mask: DynamicValue


@attrs.frozen(eq=False)
class Places:
    """`x.at`, and `x.at[items]` as JAX has it: the elements of a tensor that a method gives other values."""

    value: DynamicValue
    items: tuple[AbstractValue | SliceItem, ...] | None = None


@attrs.frozen(eq=False)
class Text:
    """An f-string with run-time values: pieces of text with the values between them. Only `print` can use it."""

    pieces: tuple[str, ...]
    values: tuple[DynamicValue, ...]
    formats: tuple[str, ...]


@attrs.frozen(eq=False)
class Poison:
    """The meaning of a name after a mistake: none. The mistake is reported; code that depends on it is not checked."""


class DependsOnPoison(Exception):
    """Something depends on what Failed: there is nothing to say about it."""


class AbortElaboration(Exception):
    """Elaboration ends with the mistakes that were found."""


AbstractValue: TypeAlias = (
    DynamicValue
    | Number
    | Tuple
    | PythonObject
    | GlobalFunction
    | LocalFunction
    | DerivativeFunction
    | Method
    | Range
    | Progression
    | Zip
    | MaskedElements
    | Places
    | Text
    | Poison
)


def meaning_of(value: AbstractValue) -> Meaning:
    """The meaning of a value in a finished program."""
    match value:
        case DynamicValue(atom):
            assert isinstance(atom, Var | Constant | Global)
            return atom
        case Size(dim):
            return SizeValue(resolve_dim(dim))
        case SizeExpression(operands=operands):
            return ComputedNumber(value.compute, tuple(map(meaning_of, operands)))
        case Number():
            return PythonValue(value.specialize())
        case Tuple(items, form):
            return Parts(tuple(map(meaning_of, items)), form)
        case PythonObject(python):
            return PythonValue(python)
        case LocalFunction(name=name):
            return FunctionName(name)
        case GlobalFunction(definition):
            return FunctionName(definition.function.name)
        case Text(pieces):
            return PythonValue("{}".join(pieces))
        case DerivativeFunction(of):
            inner = meaning_of(of)
            return FunctionName(f"grad({inner.name if isinstance(inner, FunctionName) else 'f'})")
        case _:
            return FunctionName(type(value).__name__.lower())


FUNCTIONS = (GlobalFunction, LocalFunction, DerivativeFunction)


@attrs.frozen
class TensorMethod:
    """A method of tensors as a function, whose first argument is the tensor: `ndarray.reshape`."""

    name: str


@attrs.frozen(eq=False)
class Handler:
    """The terminators of `next` and `exit` for one loop or function. `depth` and `exit_depth` (None: the same): the
    number of scopes of sizes around their targets. `depth` and `exit_depth` (None: the same): in how many scopes of
    sizes is what they lead to."""

    label: LoopLabel
    on_next: Callable[[TypedBlockBuilder, tuple[AbstractValue, ...], Span | None], None] | None
    on_exit: Callable[[TypedBlockBuilder, tuple[AbstractValue, ...], Span | None], None]
    depth: int
    exit_depth: int | None = None
    on_open_exit: Callable[[Expr, Type], None] | None = None  # where a scheme does not look


@attrs.define(eq=False)
class Context:
    """The state of elaboration at a place: the meaning of names, the targets of `next` and `exit`, and the Python
    names outside."""

    environment: dict[Var, AbstractValue]
    handlers: dict[LoopLabel, Handler]
    scope: Scope
    annotated: dict[TypeId, object] = attrs.field(factory=dict)  # this instance's meaning of annotation variables
    outer: Context | None = None
    narrowed: list[tuple[Var, AbstractValue | None]] = attrs.field(factory=list)  # with what they meant before
    copies: list[Context] = attrs.field(factory=list)  # for copies of blocks

    def assign(self, targets: Sequence[Var], entities: Sequence[AbstractValue]) -> None:
        """Note what targets mean."""
        self.environment.update(zip(targets, entities, strict=True))

    def narrow(self, variable: Var, meaning: AbstractValue) -> None:
        """Let a variable mean something else until `restore`: what it is where a test holds."""
        self.narrowed.append((variable, self.environment.get(variable)))
        self.environment[variable] = meaning

    def restore(self, count: int) -> None:
        """Let the variables that were narrowed after the first `count` mean what they meant."""
        while len(self.narrowed) > count:
            variable, meaning = self.narrowed.pop()
            if meaning is None:
                del self.environment[variable]
            else:
                self.environment[variable] = meaning

    def child_context(self) -> Context:
        """The same for one of several copies of a block: what the copy binds means nothing in the others, and functions
        that are defined in it see their own copy."""
        copy = Context({}, self.handlers, self.scope, self.annotated, self)
        self.copies.append(copy)
        return copy

    def names(self) -> Iterator[str]:
        """The names of the variables that have a meaning here, the innermost first."""
        context: Context | None = self
        while context is not None:
            yield from (variable.name for variable in context.environment)
            context = context.outer

    def value(self, var: Var) -> AbstractValue:
        """The meaning of a surface variable here. Raises DependsOnPoison if a mistake left it without a meaning."""
        entity = self.lookup(var)
        if isinstance(entity, Poison):
            raise DependsOnPoison
        return entity

    def lookup(self, var: Var) -> AbstractValue:
        """The meaning of a surface variable here, which may be Failed."""
        found = self.find(var)
        if found is None:
            raise InternalError(f"the surface variable {var!r} is not bound")
        return found

    def find(self, var: Var) -> AbstractValue | None:
        """The meaning of a surface variable, if it has one here."""
        context: Context | None = self
        while context is not None:
            if var in context.environment:
                return context.environment[var]
            context = context.outer
        return None


def empty_context() -> Context:
    """Of code without free names."""
    return Context({}, {}, NoScope())


def local_function(entity: AbstractValue) -> LocalFunction | None:
    """The local function that an entity is, or is a derivative of."""
    while isinstance(entity, DerivativeFunction):
        entity = entity.of
    return entity if isinstance(entity, LocalFunction) else None


def is_constant_bool(entity: AbstractValue) -> bool | None:
    """The boolean that an entity is known to have, or None."""
    if isinstance(entity, DynamicValue):
        if entity.known is not None:
            return entity.known
        if isinstance(entity.atom, Constant) and entity.atom.value.dtype == bool and entity.atom.value.ndim == 0:
            return bool(entity.atom.value)
    if isinstance(entity, PythonObject) and (entity.value is None or isinstance(entity.value, bool)):
        return bool(entity.value)
    return None


def surface_function(entity: GlobalFunction | LocalFunction) -> Function:
    """The surface code of a function."""
    return entity.definition.function if isinstance(entity, GlobalFunction) else entity.function
