"""Dim queries of shape rules, which may have to wait for the solver.

A dim is a number, `ANY`, a variable, or arithmetic of these. Queries that follow from the normal form and the facts in
force (`relay.ir.sizes.facts`) are decided. Others are answered by the sizes of the call that is being elaborated, and
become assumptions of the program; where no call is elaborated they raise `Undetermined`, with the solver variables to
wait for.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay.errors import ShapeError, TypeCheckError
from relay.ir import dims as arithmetic
from relay.ir.dims import DataDependentDim, variables
from relay.ir.sizes.facts import AT_LEAST, EQUAL, DimConstraint, facts, mentions_made, solve
from relay.ir.types import ANY, Dim, Shape, Unknown, prune
from relay.operator.relation import Undetermined


def resolve(dim: Dim) -> Dim:
    """The dim itself, or what a solver variable was found to be."""
    return dim if type(dim) is int else prune(dim)  # type: ignore[return-value]


def resolve_shape(shape: Shape) -> Shape:
    """`resolve` for every dim."""
    return tuple(resolve(dim) for dim in shape)


def undetermined_error(*dims: Dim, question: DimConstraint | None = None) -> Undetermined:
    """The exception that waits for those variables of these dims that the solver may still find."""
    found = (v for dim in dims for v in variables(resolve(dim)) if isinstance(v, Unknown))
    return Undetermined(*dict.fromkeys(found), question=question)


def constant_dim(dim: Dim) -> int:
    """The number that a dim is. Raises Undetermined."""
    dim = resolve(dim)
    if isinstance(dim, int):
        return dim
    number = facts().number(dim)
    if number is None:
        refuse_made(dim)
        raise undetermined_error(dim)
    return number


def refuse_made(dim: Dim) -> None:
    """Raise TypeCheckError for a data-dependent size, where a number is needed."""
    if mentions_made(dim):
        raise TypeCheckError(
            "a size is needed at compile time here that is known only at run time",
            help="give the tensor a size that is known at compile time; a loop over its rows works with any size",
        )


def _decide(left: Dim, relation: str, right: Dim) -> bool:
    answer = facts().ask(left, relation, right)
    if answer is None:
        raise undetermined_error(left, right, question=DimConstraint(left, relation, right))
    return answer


def numbers(shape: Sequence[Dim]) -> tuple[int, ...]:
    """The numbers that dims are. Raises Undetermined."""
    return tuple(map(constant_dim, shape))


def equal(left: Dim, right: Dim) -> bool:
    """True if two dims are equal. Raises Undetermined where that depends on a variable or on `ANY`."""
    return _decide(resolve(left), EQUAL, resolve(right))


def at_least(left: Dim, right: Dim) -> bool:
    """True if left >= right. Raises Undetermined."""
    return _decide(resolve(left), AT_LEAST, resolve(right))


def needs_at_least(left: Dim, right: Dim) -> bool:
    """True if left >= right, where something needs it: for annotated sizes it is assumed. Raises Undetermined."""
    left, right = resolve(left), resolve(right)
    answer = facts().need(left, right)
    if answer is None:
        raise undetermined_error(left, right, question=DimConstraint(left, AT_LEAST, right))
    return answer


def is_product_of_made(left: Dim, right: Dim) -> bool:
    """True if it is open whether two sizes are equal, and equality would not determine a data-dependent size: of n*m
    and 6."""
    left, right = resolve(left), resolve(right)
    if not (mentions_made(left) or mentions_made(right)) or follows_equal(left, right) is not None:
        return False
    return solve(arithmetic.subtract(left, right), lambda v: isinstance(v, DataDependentDim)) is None


def needs_equal(left: Dim, right: Dim) -> bool:
    """True if left == right, where something needs it: it is checked at run time for products of sizes that this
    makes. Raises Undetermined."""
    if not is_product_of_made(left, right):
        return equal(left, right)
    return facts().need_equal(resolve(left), resolve(right)) is True


def needs_elements(dim: Dim) -> bool:
    """True if an axis is not empty, where something needs it: a data-dependent size is checked then."""
    return not mentions_made(resolve(dim)) or needs_at_least(dim, 1)


def follows_equal(left: Dim, right: Dim) -> bool | None:
    """True if two dims are equal, False if not, None if that is not known; nothing is assumed."""
    return facts().equal(resolve(left), resolve(right))


def follows_at_least(left: Dim, right: Dim) -> bool:
    """True if left >= right is known; nothing is assumed."""
    return facts().at_least(resolve(left), resolve(right)) is True


def likely_equal(left: Dim, right: Dim) -> bool:
    """True if two dims are known to be equal, or are so in the call that is being elaborated; nothing is assumed."""
    return facts().likely_equal(resolve(left), resolve(right))


def equal_shapes(left: Shape, right: Shape) -> bool:
    """True if two shapes are equal; numbers that differ decide even where variables are open. Raises Undetermined."""
    if len(left) != len(right):
        return False
    if any(follows_equal(a, b) is False for a, b in zip(left, right, strict=True)):
        return False
    open_dims: list[Dim] = []
    for a, b in zip(left, right, strict=True):
        try:
            if not equal(a, b):
                return False
        except Undetermined:
            open_dims += [a, b]
    if open_dims:
        raise undetermined_error(*open_dims, question=DimConstraint(open_dims[0], EQUAL, open_dims[1]))
    return True


def product(shape: Shape) -> Dim:
    """The number of elements of a shape. Raises Undetermined if a dim is open that has no arithmetic."""
    shape = resolve_shape(shape)
    if any(dim == 0 for dim in shape):
        return 0
    if any(dim is ANY for dim in shape):
        raise undetermined_error(*shape)
    return arithmetic.product(shape)


def quotient(dim: Dim, divisor: Dim) -> Dim | None:
    """dim / divisor if that is a whole number, and None if it is not. Raises Undetermined."""
    if isinstance(dim, int) and isinstance(divisor, int):
        return dim // divisor if divisor and dim % divisor == 0 else None
    exact = arithmetic.divide_exactly(dim, divisor)
    if exact is not None:
        return exact
    if not at_least(divisor, 1) or not equal(arithmetic.modulo(dim, divisor), 0):
        return None
    return arithmetic.floor_divide(dim, divisor)


def is_dim(value: object) -> bool:
    """True if an attribute is a size: an integer or a symbolic dim."""
    return not isinstance(value, bool) and isinstance(value, int | arithmetic.TypeId | Unknown | arithmetic.DimExpr)


def normalize_axis(axis: int, rank: int) -> int:
    """The axis counted from 0. Raises ShapeError if a tensor of this rank has none such."""
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise ShapeError(f"an axis must be an integer, found {axis!r}")
    if not -rank <= axis < rank:
        raise ShapeError(f"axis {axis} is out of range for a tensor of rank {rank}")
    return axis % rank


def normalize_axes(axis: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """The axes counted from 0, ascending; None means all. Raises ShapeError for bad or repeated axes."""
    if axis is None:
        return tuple(range(rank))
    axes = [normalize_axis(a, rank) for a in (axis if isinstance(axis, tuple | list) else (axis,))]
    if len(set(axes)) != len(axes):
        raise ShapeError(
            f"the axes {tuple(axis) if isinstance(axis, tuple | list) else axis} of a tensor of rank {rank} repeat"
        )
    return tuple(sorted(axes))
