"""Symbolic values: gradients, run-time requirements and compositions are written with them as with tensors.

An `Emitter` collects bindings; a `Value` is an atom in it with its type. Python's operators and the registered
operators applied to values append a binding and return the new value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np

from relay.errors import InternalError, Span
from relay.ir.builder import BlockBuilder
from relay.ir.dims import Dim, DimExpr, TypeId, Unknown, product
from relay.ir.expr import Atom, AttributeValue, Binding, Constant, Expr, Extent, MakeTuple, OpCall, Project
from relay.ir.types import INT32, INT64, BaseType, Shape, TensorType, TupleType, Type, scalar

ADDITION = "add"
"""The operator that `+` on values is: what sums are made of, also those that passes take apart."""


class OperatorLike(Protocol):
    """The interface of an operator that an emitter needs."""

    @property
    def name(self) -> str: ...

    def infer(self, types: Sequence[Type], attributes: Mapping[str, AttributeValue]) -> Type: ...

    def literal_base(
        self, position: int, literal: bool | int | float, bases: Sequence[BaseType | None]
    ) -> BaseType: ...


class Emitter(BlockBuilder):
    """Collects typed bindings in order. `span` is given to everything emitted."""

    def __init__(self, span: Span | None = None) -> None:
        super().__init__()
        self.span = span

    @property
    def bindings(self) -> list[Binding]:
        """The emitted bindings, to which more may be added."""
        return cast("list[Binding]", self.items)

    def bind(self, expression: Expr, type_: Type, name: str = "t") -> Value:
        """Append `name = expression` and return its value."""
        return Value(self, self.assign(expression, type_, name, self.span), type_)

    def value(self, atom: Atom, type_: Type | None = None) -> Value:
        """An atom that is in scope, as a value."""
        found = type_ if type_ is not None else getattr(atom, "type", None)
        if found is None:
            raise InternalError(f"an atom without a type: {atom!r}")
        return Value(self, atom, found)

    def constant(self, number: Any, base: BaseType) -> Value:
        """A Python number or array as a constant of the given base type."""
        constant = Constant(np.asarray(number, dtype=base.dtype), self.span)
        return Value(self, constant, constant.type)

    def number(self, number: Any, base: BaseType) -> Value:
        """A Python number, or a symbolic dim as the number that it is at run time, of the given base type."""
        if not isinstance(number, TypeId | DimExpr | Unknown):
            return self.constant(number, base)
        if base in (INT32, INT64):
            return self.bind(Extent(number, base, self.span), scalar(base), "size")
        extent = self.bind(Extent(number, INT64, self.span), scalar(INT64), "size")
        return self.bind(OpCall("cast", (extent.atom,), {"dtype": base}, self.span), scalar(base), "size")

    def _array(self, array: np.ndarray) -> Value:
        constant = Constant(array, self.span)
        return Value(self, constant, constant.type)

    def tuple(self, values: Sequence[Value]) -> Value:
        """Several values as one."""
        made = MakeTuple(tuple(v.atom for v in values), self.span)
        return self.bind(made, TupleType(tuple(v.type for v in values)))

    def components(self, whole: Value) -> list[Value]:
        """The values that a tuple of several holds."""
        assert isinstance(whole.type, TupleType)
        return [self.bind(Project(whole.atom, i, self.span), t) for i, t in enumerate(whole.type.items)]

    def call(self, operator: OperatorLike, operands: Sequence[Any], attributes: Mapping[str, AttributeValue]) -> Value:
        """Append an operator call. Python numbers among the operands take the base type that the operator's signature
        asks for."""
        typed = [v if isinstance(v, Value) or not isinstance(v, np.ndarray) else self._array(v) for v in operands]
        bases = [v.base if isinstance(v, Value) and isinstance(v.type, TensorType) else None for v in typed]
        values = [
            v if isinstance(v, Value) else self.number(v, operator.literal_base(position, v, bases))
            for position, v in enumerate(typed)
        ]
        type_ = operator.infer([v.type for v in values], attributes)
        return self.bind(OpCall(operator.name, tuple(v.atom for v in values), dict(attributes), self.span), type_)


class Value:
    """An atom with its type. The arithmetic operators and `op` emit operator calls; a tuple's items can be unpacked."""

    __slots__ = ("atom", "emitter", "type")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # NumPy arrays on the left leave the operation to us

    def __init__(self, emitter: Emitter, atom: Atom, type_: Type) -> None:
        self.emitter = emitter
        self.atom = atom
        self.type = type_

    def __repr__(self) -> str:
        return f"<symbolic {self.atom!r}: {self.type}>"

    def __iter__(self) -> Iterator[Value]:
        if not isinstance(self.type, TupleType):
            raise TypeError(f"{self!r} has no items")
        return iter(self.emitter.components(self))

    @property
    def tensor(self) -> TensorType:
        """The type of a tensor value."""
        if not isinstance(self.type, TensorType):
            raise InternalError(f"{self!r} is not a tensor")
        return self.type

    @property
    def shape(self) -> Shape:
        """The shape; a dim may be symbolic. As an operand, a dim is the number that it is at run time."""
        return self.tensor.shape

    @property
    def ndim(self) -> int:
        return self.tensor.rank

    @property
    def size(self) -> Dim:
        return product(self.shape)

    @property
    def base(self) -> BaseType:
        base = self.tensor.base
        assert isinstance(base, BaseType)
        return base

    def op(self, name: str, *operands: Any, **attributes: Any) -> Value:
        """Apply the operator of this name to this value and further operands."""
        from relay.operator.registry import lookup

        result = lookup(name)(self, *operands, **attributes)
        assert isinstance(result, Value)
        return result

    def _reflected_op(self, name: str, left: Any) -> Value:
        return self.emitter.number(left, self.base).op(name, self)

    def __add__(self, other: Any) -> Value:
        return self.op(ADDITION, other)

    def __radd__(self, other: Any) -> Value:
        return self._reflected_op("add", other)

    def __sub__(self, other: Any) -> Value:
        return self.op("subtract", other)

    def __rsub__(self, other: Any) -> Value:
        return self._reflected_op("subtract", other)

    def __mul__(self, other: Any) -> Value:
        return self.op("multiply", other)

    def __rmul__(self, other: Any) -> Value:
        return self._reflected_op("multiply", other)

    def __truediv__(self, other: Any) -> Value:
        return self.op("divide", other)

    def __rtruediv__(self, other: Any) -> Value:
        return self._reflected_op("divide", other)

    def __floordiv__(self, other: Any) -> Value:
        return self.op("floor_divide", other)

    def __mod__(self, other: Any) -> Value:
        return self.op("mod", other)

    def __pow__(self, other: Any) -> Value:
        return self.op("power", other)

    def __matmul__(self, other: Any) -> Value:
        return self.op("matmul", other)

    def __neg__(self) -> Value:
        return self.op("negative")

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return self.op("equal", other)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return self.op("not_equal", other)

    def __lt__(self, other: Any) -> Value:
        return self.op("less", other)

    def __le__(self, other: Any) -> Value:
        return self.op("less_equal", other)

    def __gt__(self, other: Any) -> Value:
        return self.op("greater", other)

    def __ge__(self, other: Any) -> Value:
        return self.op("greater_equal", other)

    def __and__(self, other: Any) -> Value:
        return self.op("logical_and", other)

    def __or__(self, other: Any) -> Value:
        return self.op("logical_or", other)

    def __invert__(self) -> Value:
        return self.op("logical_not")
