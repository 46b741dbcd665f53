"""The engine: one interface for the recursion of elaboration, so that its files import each other in one direction.

A call elaborates a body, a body holds subscripts, and a subscript of a data value is a call again. A file reaches those
above it through the checker's engine; `handlers.py` assigns the implementations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from relay.errors import Span
from relay.ir.definition import Definition, DerivedDefinition
from relay.ir.expr import Block, Module
from relay.ir.sizes.extents import Place
from relay.ir.sizes.facts import DimConstraint
from relay.ir.types import (
    Type,
    TypeId,
)
from relay.operator import Operator
from relay.support.locks import compiling
from relay.typecheck.elaboration.abstract_values import (
    AbstractValue,
    Context,
    DynamicValue,
    GlobalFunction,
    LocalFunction,
    SliceItem,
    TypedBlockBuilder,
)
from relay.typecheck.elaboration.restarts import Assumptions, ParameterPlace

if TYPE_CHECKING:
    from relay.typecheck.elaboration.abstract_arguments import Argument
    from relay.typecheck.elaboration.checker import Checker, Instance

late_import = compiling
"""Held where a file of elaboration is imported with the first program that needs it: a copy of the process has nothing
that is half imported."""

OnYield = Callable[[TypedBlockBuilder, tuple[AbstractValue, ...], "Span | None"], None]
"""The action at the `yield` of a block."""

Keywords = Sequence[tuple[str, AbstractValue]]
"""The arguments of a call that have names."""


class Scheme(NamedTuple):
    """A function's program at its annotations, and its type. `is_partial`: parts of the body were not checked, since
    only a call's types decide what they mean. `result`: the type of the result with the forms of its structures."""

    module: Module
    type: Type
    is_partial: bool
    result: Type


class Engine(Protocol):
    """The operations on abstract values by which elaboration calls itself."""

    def elaborate_block(
        self, checker: Checker, context: Context, block: Block, out: TypedBlockBuilder, on_yield: OnYield | None
    ) -> None:
        """Elaborate a block into `out`."""

    def call(
        self,
        checker: Checker,
        context: Context,
        out: TypedBlockBuilder,
        callee: AbstractValue,
        arguments: Sequence[AbstractValue],
        keywords: Keywords,
        span: Span | None,
        described: Sequence[str],
        name: str = ...,
    ) -> AbstractValue:
        """Call anything. `name` is the called function for messages."""

    def apply_operator(
        self,
        checker: Checker,
        out: TypedBlockBuilder,
        name: str,
        operands: list[AbstractValue],
        attributes: dict[str, object],
        span: Span | None,
        described: Sequence[str],
    ) -> AbstractValue:
        """An operator of Python's syntax, of values of any kind."""

    def call_operator(
        self,
        checker: Checker,
        out: TypedBlockBuilder,
        operator: Operator,
        arguments: Sequence[AbstractValue],
        keywords: Keywords,
        span: Span | None,
        described: Sequence[str],
    ) -> AbstractValue:
        """Call an operator by its Python signature."""

    def call_function(
        self,
        checker: Checker,
        out: TypedBlockBuilder,
        callee: GlobalFunction | LocalFunction,
        arguments: Sequence[AbstractValue],
        keywords: Keywords,
        span: Span | None,
        bound: int = 0,
    ) -> AbstractValue:
        """Call a decorated or nested function; this many arguments are not written in the call."""

    def instantiate(
        self,
        checker: Checker,
        callee: GlobalFunction | LocalFunction,
        entities: Sequence[AbstractValue],
        values: Sequence[DynamicValue | None],
        span: Span | None,
        numbers: Set[ParameterPlace] = frozenset(),
        annotated: Mapping[TypeId, object] = MappingProxyType({}),
        packs: bool = False,
        iterated: Mapping[int, AbstractValue] = MappingProxyType({}),
    ) -> Instance:
        """The instance of a function for these arguments."""

    def array(self, checker: Checker, out: TypedBlockBuilder, value: AbstractValue, span: Span | None) -> AbstractValue:
        """`np.array(value)`."""

    def function_value(
        self,
        checker: Checker,
        out: TypedBlockBuilder,
        entity: AbstractValue,
        span: Span | None,
        fixed: Mapping[int, AbstractValue] | None = None,
        numbers: Set[ParameterPlace] = frozenset(),
    ) -> DynamicValue:
        """A function as a value of the typed IR."""

    def index(
        self,
        checker: Checker,
        out: TypedBlockBuilder,
        entity: AbstractValue,
        items: Sequence[AbstractValue | SliceItem],
        span: Span | None,
    ) -> AbstractValue:
        """`entity[items]`."""

    def materialize(
        self, checker: Checker, out: TypedBlockBuilder, entity: AbstractValue, span: Span | None
    ) -> DynamicValue:
        """The entity as a value of the typed IR."""

    def require(
        self,
        checker: Checker,
        out: TypedBlockBuilder,
        constraint: DimConstraint,
        span: Span | None,
        text: str | None = None,
    ) -> None:
        """Check at run time what is needed of sizes."""

    def elaborate_program(
        self,
        engine: Engine,
        generic: bool,
        definition: Definition | DerivedDefinition,
        arguments: Sequence[Argument],
        symbolic: frozenset[Place] = frozenset(),
        decisions: Assumptions | None = None,
    ) -> tuple[Checker, Module]:
        """Elaborate a program until nothing is found out too late."""

    def elaborate_scheme(self, engine: Engine, definition: Definition | DerivedDefinition) -> Scheme:
        """Elaborate a function at its annotations alone. Raises TypeCheckError."""
