"""Lowering of TVM's vectors for LLVM, which would take them apart, element by element.

base + (0, 1, 2, ..)       as a number, not as a place in memory: one number, added to a constant vector
a[base + (0, 2, 4, ..)]    a few vectors of neighbors, and shuffles of them
a[base + (0, 0, 1, 1, ..)] the same
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import relay.codegen.tvm.without_torch  # noqa: F401  (before TVM)

# isort: split

import tvm
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer
from tvm_ffi import structural_map, structural_walk

Expression = Any

MOST = 4
"""Vectors of neighbors up to which shuffles of them are quicker than one element after the other."""


def _in_bodies(change: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A pass that changes the bodies of functions."""

    def run(module: Any, _: Any) -> Any:
        for name, made in module.functions_items():
            body = change(made.body)
            if not body.same_as(made.body):
                module.update_func(name, tirx.PrimFunc(made.params, body, made.ret_type, attrs=made.attrs))
        return module

    return run


# ---- numbers


def _rewrite_indices(body: Any) -> Any:
    places: dict[Any, None] = {}

    def access(node: Any) -> None:
        for index in node.indices:
            if isinstance(index, tirx.Ramp):
                places[index] = None
            elif not isinstance(index, tirx.IntImm | tirx.Var):
                structural_walk(index, ((tirx.Ramp, places.setdefault),))

    def ramp(node: Any) -> Any:
        if node in places or isinstance(node.base, tirx.IntImm) or not isinstance(node.stride, tirx.IntImm):
            return node
        start = tirx.const(0, str(node.base.ty))
        return tirx.Add(tirx.Broadcast(node.base, node.lanes), tirx.Ramp(start, node.stride, node.lanes))

    structural_walk(body, ((TensorLoad, access), (tirx.BufferStore, access)))
    return structural_map(body, ((tirx.Ramp, ramp),))


count_in_vectors = tvm.transform.module_pass(_in_bodies(_rewrite_indices), opt_level=0, name="relay.CountInVectors")


# ---- neighbors


def _shuffle_load(load: Any) -> Any:
    """A vector whose elements lie near each other in memory, in some known order, by vectors in the order of memory, of
    which the first one starts and the last one ends with an element that is wanted."""
    if len(load.indices) != 1 or "x" not in str(load.ty):
        return load
    (index,) = load.indices
    dtype, lanes = str(load.ty).split("x")
    if (isinstance(index, tirx.Ramp) and _is_number(index.stride, 1)) or dtype in ("bool", "bfloat16"):
        return load
    places = _places(index, int(lanes))
    if places is None:
        return load
    first, last = min(places), max(places)
    width = min(len(places), last - first + 1)
    starts = [*range(first, last + 1 - width, width), last + 1 - width]
    if width == 1 or len(starts) > MOST:
        return load
    zero: Any = _lane(index, 0)
    one = tirx.const(1, str(zero.ty))
    vectors = [tirx.BufferLoad(load.source, [tirx.Ramp(zero + start, one, width)]) for start in starts]
    return _select_lanes(vectors, starts, places)


def _select_lanes(vectors: Sequence[Expression], starts: Sequence[int], places: Sequence[int]) -> Expression:
    """A vector of the elements at these places, of vectors that start at these: two by two, which LLVM knows well."""
    width = int(vectors[0].ty.dtype.lanes)
    positions = [min(place - starts[0], width - 1) for place in places]
    if len(vectors) == 1:
        return _shuffle(vectors, positions)
    picked, size = vectors[0], width
    for n in range(1, len(vectors)):
        start, known = starts[n], starts[n - 1] + width
        behind = [min(size + place - start, size + width - 1) for place in places]
        picked = _shuffle(
            [picked, vectors[n]],
            [old if place < known else new for place, old, new in zip(places, positions, behind, strict=True)],
        )
        positions, size = list(range(len(places))), len(places)
    return picked


def _shuffle(vectors: Sequence[Expression], positions: Sequence[int]) -> Expression:
    times = -(-len(positions) // sum(int(vector.ty.dtype.lanes) for vector in vectors))  # TVM wants as many at least
    return tirx.Shuffle([*vectors] * times, [tirx.const(position, "int32") for position in positions])


def _places(index: Expression, lanes: int) -> list[int] | None:
    """The distances of a vector's elements from its first one; None if they are not known, or too large."""
    first = _lane(index, 0)
    places = [0]
    for lane in range(1, lanes):
        element = _lane(index, lane)
        if first is None or element is None:
            return None
        far = Analyzer().simplify(element - first)
        if not isinstance(far, tirx.IntImm) or abs(int(far.value)) >= MOST * lanes:
            return None
        places.append(int(far.value))
    return places


_LANEWISE: tuple[Any, ...] = (
    tirx.Add, tirx.Sub, tirx.Mul, tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod, tirx.Min, tirx.Max
)  # fmt: skip


def _lane(vector: Expression, lane: int) -> Expression | None:
    """An element of a vector of integers; None if it is not just computed."""
    match vector:
        case tirx.Ramp():
            return vector.base + vector.stride * lane
        case tirx.Broadcast():
            return vector.value
        case tirx.Cast():
            inner = _lane(vector.value, lane)
            return None if inner is None else tirx.Cast(str(vector.ty).split("x")[0], inner)
        case _ if isinstance(vector, _LANEWISE):
            left, right = _lane(vector.a, lane), _lane(vector.b, lane)
            return None if left is None or right is None else type(vector)(left, right)
    return None


def _is_number(expression: Expression, number: int) -> bool:
    return isinstance(expression, tirx.IntImm) and int(expression.value) == number


def _neighbors(body: Any) -> Any:
    return structural_map(body, ((TensorLoad, _shuffle_load),))


shuffle_neighbors = tvm.transform.module_pass(_in_bodies(_neighbors), opt_level=0, name="relay.ShuffleNeighbors")

__all__ = ["count_in_vectors", "shuffle_neighbors"]
