"""Facets of operators: properties for passes, one class for each group of properties.

    Algebra     which equations hold: asked by simplification, product joining, scale folding, and sums of cotangents
    Indexing    which element goes where: asked by fusion, layouts, and batching
    Memory      whose memory the result takes, and what is in it
    Batching    what many calls are as one
    Numerics    what the arithmetic of a call costs, and which precision it needs

An empty facet claims nothing. `relay.operator.soundness` checks each when an operator is registered, and the table
tests check that the facts are true.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from relay.errors import RegistrationError
from relay.ir.dims import Dim
from relay.ir.types import Shape
from relay.operator.symbolic import Value


class _FacetType(type):
    """The type of facets: a field that there is not is the user's mistake."""

    def __call__(cls, *arguments: Any, **fields: Any) -> Any:
        names = [field.name for field in attrs.fields(cls)]  # type: ignore[arg-type]
        if arguments:
            raise RegistrationError(f"{cls.__name__} takes keywords only", help=f"it has {', '.join(names)}")
        for field in fields:
            if field not in names:
                near = difflib.get_close_matches(field, names, 1)
                raise RegistrationError(
                    f"{cls.__name__} has no field {field!r}",
                    help=f"did you mean {near[0]!r}?" if near else f"it has {', '.join(names)}",
                )
        return super().__call__(**fields)


@attrs.frozen
class Columns:
    """The result at i along its axis `result_axis` depends on the last operand at i along `axis`, and on no other
    part of that operand. `joins`: the calls with several last operands are one with all of them along that axis. The
    first `batch` axes of that operand are axes of the result, too. What the first operand has along axis `rows[0]`
    is multiplied with what the last one has there along `rows[1]` and nothing else, if there are `rows`."""

    axis: int
    result_axis: int
    joins: bool = True
    batch: int = 0
    rows: tuple[int, int] | None = None


@attrs.frozen(kw_only=True)
class Algebra(metaclass=_FacetType):
    """Equations that hold for an operator.

    Attributes:
        commutative, associative: of a binary operator.
        idempotent: f(f(x)) = f(x) of a unary operator, f(x, x) = x of a binary one.
        involution: f(f(x)) = x.
        coercion: f(x) = x if x has the result's type already.
        forwards: the position of the operand that the result is, whatever the others are: the operator is there for
            derivatives, or for nothing.
        identity: the neutral element on the right of a binary operator: f(x, identity) = x.
        linear: the positions of operands in which the operator is linear.
        jointly_linear: linear in its operands taken together, f(c x, c y) = c f(x, y), as sums are.
        homogeneous: f(c x, c y) = c f(x, y) for numbers c above 0, as of an activation with a kink at 0.
        accumulates: how f(x, ..) + y is one call. The position of an operand that the rest is added to,
            f(.., y, ..) = y + f(.., 0, ..); or, if the result is mostly zeros, the name of the operator that adds it:
            f(x, ..) + y = accumulates(y, x, ..), with those attributes that both have.
        columns: `columns(*operands' shapes, **attributes)` of an operator that is linear in its last operand: the
            `Columns` of a call, or None.
        maps_over_tree: a call with a structure or a value of a data type is a call with each float tensor in it.
        of_booleans: booleans alone are operands, too, as 0 and 1; the result is one of "booleans" where it has the
            operands' dtype, as a sum of products is, or of "integers", as a shift is.
    """

    commutative: bool = False
    associative: bool = False
    idempotent: bool = False
    involution: bool = False
    coercion: bool = False
    forwards: int | None = None
    identity: float | bool | None = None
    linear: tuple[int, ...] = ()
    jointly_linear: bool = False
    homogeneous: bool = False
    accumulates: int | str | None = None
    columns: Callable[..., Columns | None] | None = None
    maps_over_tree: bool = False
    of_booleans: str | None = None


class IndexKind(enum.Enum):
    """The kind of map from places of the result to places of the first operand."""

    PERMUTE = "permute"  # all of them, with the axes in another order
    RESHAPE = "reshape"  # all of them in their order, in another shape
    SLICE = "slice"  # the slice that `begin`, `end` and `strides` say
    ROW = "row"  # op(x, i) is x at i along its first axis, for i in range


@attrs.frozen(kw_only=True)
class Indexing(metaclass=_FacetType):
    """The map between an operator's axes and places: where the result's elements come from.

    Attributes:
        kind: how the result's elements are found in the operand, if it is one of the usual ways.
        axis: the attribute with the one axis along which the operator works; the others are alike, and the result has
            the axes of the operands. A variadic operator joins its operands along it.
        reduction_axes: the attribute with the axes (a number, a tuple, or None for all) along which elements of the
            only operand are combined, in any order; the result lacks these axes, or has them with extent 1.
    """

    kind: IndexKind | None = None
    axis: str | None = None
    reduction_axes: str | None = None


@attrs.frozen
class InPlace:
    """The result differs from an operand of its type in a part only, and may take that operand's memory.

    `compute(*operands, **attributes)`, on te tensors, returns an extern stage of the result's shape (see
    `relay.ops.tir.stages.extern_stage`) that writes the part that differs. Its output holds the old elements; of
    the operand itself it uses nothing but the shape. `write(*operands, **attributes)`, on NumPy arrays, writes it
    to the operand.
    """

    operand: int
    compute: Callable[..., Any]
    write: Callable[..., None] | None = None


class Undefined(enum.Enum):
    """The content of memory that nobody reads."""

    UNDEFINED = "undefined"


UNDEFINED = Undefined.UNDEFINED


@attrs.frozen(kw_only=True)
class Memory(metaclass=_FacetType):
    """The memory of the result: where it is, and its content.

    Attributes:
        in_place: how to write the result over an operand that is not needed any more.
        fill: the number that all elements of the result are, whatever the operands; or UNDEFINED: they may be
            anything, since nobody reads them, and nothing is computed.
        stored: the result is in memory, whoever reads it: a kernel ends with this operator. Where its attribute
            `in_blocks` is true, a kernel that goes block by block may compute it in the memory of a block instead.
        joins: the attribute with an axis of the result. Where all axes before it have one element, the elements of
            the result are those of the operands, one operand after the other.
    """

    in_place: InPlace | None = None
    fill: float | Undefined | None = None
    stored: bool = False
    joins: str | None = None

    @property
    def constant(self) -> float | None:
        """The number that all elements of the result are."""
        return None if isinstance(self.fill, Undefined) else self.fill

    @property
    def uninitialized(self) -> bool:
        """True if the elements of the result may be anything."""
        return self.fill is UNDEFINED


class OneByOne(enum.Enum):
    """A mark of calls for many examples that are not one call."""

    LOOP = "loop"


LOOP = OneByOne.LOOP


@attrs.frozen(kw_only=True)
class Batching(metaclass=_FacetType):
    """The batching of an operator: many calls as one.

    Attributes:
        rule: the calls for many examples as one, `rule(batch, *operands, **attributes)`, or LOOP; see
            `relay.operator.batching`. None where it follows from the rest of the definition.
        summed: the sum of the calls of many rounds, `summed(*operands, **attributes)` on symbolic values that all have
            the rounds as a new first axis; None where that is not one call.
        collective: the result depends on the operands of all examples along an axis, and on which example it is.
    """

    rule: Callable[..., Value | Sequence[Value] | None] | OneByOne | None = None
    summed: Callable[..., Value | None] | None = None
    collective: bool = False


@attrs.frozen(kw_only=True)
class Numerics(metaclass=_FacetType):
    """The cost of a call's arithmetic, and the precision that it needs.

    Attributes:
        work: `work(operands' shapes, result's shape)`, the floating-point operations of a call where the pattern does
            not tell them: one for each element of the result if elementwise, of the operands if a reduction.
        expensive_to_recompute: `compute` names many parts of its expression, as polynomials do; fusion nests
            few of them.
        keep_fp32: it loses digits or overflows in short floats, so mixed precision keeps it in float32.
        quantized: `quantized(*operands, **attributes)`, on symbolic values of int8, the int32 product of a call that
            multiplies; None where there is no such call.
    """

    work: Callable[[Sequence[Shape], Shape], Dim] | None = None
    expensive_to_recompute: bool = False
    keep_fp32: bool = False
    quantized: Callable[..., Value | None] | None = None


FACETS: dict[str, type] = {
    "algebra": Algebra,
    "indexing": Indexing,
    "memory": Memory,
    "batching": Batching,
    "numerics": Numerics,
}
"""The facets by their names in a definition."""
