"""Lookups of rows by number and by likeness: embedding and scaled dot-product attention."""

from __future__ import annotations

import math

import numpy as np

from relay.errors import ShapeError
from relay.ir.types import BOOL, Dim, Shape, show_shape
from relay.ops.elementwise.comparison import where
from relay.ops.indexing.updates import in_range
from relay.ops.notation import Relation, Requirement, Value, cast_like, expansion, integer_range, widened_value
from relay.ops.samples import case, cases
from relay.typecheck.dims import constant_dim, equal, equal_shapes
from relay.typecheck.relations import broadcast


def _embedding_shape(indices: Shape, weight: Shape) -> Shape:
    if len(weight) != 2:
        raise ShapeError(f"embedding needs a weight of shape (n, k), found {show_shape(weight)}")
    return (*indices, weight[1])


def _is_row(indices: Value, weight: Value) -> Value | None:
    return in_range(indices, weight.shape[0])


@expansion(
    relation=Relation("I:int, T -> T", _embedding_shape),
    requirements=(Requirement(_is_row, "index out of range"),),
    sampler=cases(
        case(np.array([[1, 0], [2, 1]], np.int32), (3, 4)), case(np.array(-1, np.int64), (2, 3)),
        case(np.zeros((0,), np.int32), (2, 3)),
    ),
)  # fmt: skip
def embedding(indices: Value, weight: Value) -> Value:
    """The weight's rows at indices in [-n, n). indices: (int, s), weight: (T, (n, k)) -> (T, (*s, k)).

    >>> relay.embedding(np.int32([1, 1, 0]), np.float32([[1, 2], [3, 4]]))
    Array([[3., 4.],
           [3., 4.],
           [1., 2.]], dtype=float32)
    """
    return weight.op("take", indices, axis=0)


# ---- attention


def _scores_shape(query: Shape, key: Shape, value: Shape) -> tuple[Shape, Shape]:
    """The shapes of the scores and of the result."""
    shapes = ", ".join(map(show_shape, (query, key, value)))
    if min(len(query), len(key), len(value)) < 2 or not len(query) == len(key) == len(value):
        raise ShapeError(f"attention needs query (*b, l, d), key (*b, s, d), value (*b, s, e), found {shapes}")
    for found, wanted, what in ((key[-1], query[-1], "query and key"), (value[-2], key[-2], "key and value")):
        if not equal(found, wanted):
            raise ShapeError(f"attention of the shapes {shapes}: the extents {wanted} and {found} of {what} differ")
    if not (equal_shapes(query[:-2], key[:-2]) and equal_shapes(query[:-2], value[:-2])):
        raise ShapeError(f"attention of the shapes {shapes}: the leading axes differ")
    return (*query[:-1], key[-2]), (*query[:-1], value[-1])


def _attention_shape(query: Shape, key: Shape, value: Shape, **attributes: object) -> Shape:
    return _scores_shape(query, key, value)[1]


def _masked_shape(query: Shape, key: Shape, value: Shape, mask: Shape, *, scale: float | None) -> Shape:
    scores, result = _scores_shape(query, key, value)
    if not equal_shapes(broadcast(scores, mask), scores):
        raise ShapeError(f"a mask of shape {show_shape(mask)} cannot be broadcast to scores of {show_shape(scores)}")
    return result


def _scores(query: Value, key: Value, scale: float | None) -> Value:
    """Products of all queries and keys, times `scale`, or 1 / sqrt(d)."""
    order = (*range(key.ndim - 2), key.ndim - 1, key.ndim - 2)
    queries, extent = widened_value(query), query.shape[-1]
    if scale is None and not isinstance(extent, int):
        scaled = queries / queries.emitter.number(extent, queries.base).op("sqrt")
    else:
        scaled = queries * (1 / math.sqrt(constant_dim(extent)) if scale is None else scale)
    return scaled @ widened_value(key).op("transpose", axes=order)


def _attention_output(scores: Value, value: Value, mask: Value | None) -> Value:
    """The mean of values by softmax of scores. Where no key is allowed, the result is 0."""
    if mask is None:
        return cast_like(scores.op("softmax") @ widened_value(value), value)
    lowest = number(scores, -1e30)  # whose exponential is 0, in float32 already
    weights = where(mask, scores, lowest).op("softmax")
    return cast_like(where(mask, weights, number(scores, 0.0)) @ widened_value(value), value)


def number(value: Value, constant: float) -> Value:
    """A constant of the value's dtype."""
    return value.emitter.constant(constant, value.base)


def _position_vector(value: Value, extent: Dim) -> Value:
    return integer_range(value.emitter, 0, extent)


@expansion(
    relation=Relation("T:float, T, T -> T", _attention_shape),
    sampler=cases(
        case((3, 4), (5, 4), (5, 2)),
        case((2, 3, 4), (2, 3, 4), (2, 3, 4), causal=True),
        case((1, 2, 2, 3), (1, 2, 4, 3), (1, 2, 4, 3), scale=0.3),
        case((0, 3), (2, 3), (2, 3)),
    ),
)
def scaled_dot_product_attention(
    query: Value, key: Value, value: Value, causal: bool = False, scale: float | None = None
) -> Value:
    """softmax(query key^T scale) value (Vaswani and others, 2017), with scale = 1 / sqrt(d) unless given; if `causal`,
    query i sees the keys up to i. query: (T float, (*b, l, d)), key: (T, (*b, s, d)), value: (T, (*b, s, e)) ->
    (T, (*b, l, e)).

    >>> relay.scaled_dot_product_attention(np.float32([[1], [0]]), np.float32([[0], [0]]), np.float32([[2], [4]]),
    ...     causal=True)
    Array([[2.],
           [3.]], dtype=float32)
    """
    scores = _scores(query, key, scale)
    if not causal:
        return _attention_output(scores, value, None)
    rows, columns = scores.shape[-2:]
    mask = _position_vector(scores, rows).op("expand_dims", axis=1) >= _position_vector(scores, columns)
    return _attention_output(scores, value, mask)


@expansion(
    relation=Relation("T:float, T, T, M:bool|float -> T", _masked_shape),
    sampler=cases(
        case((2, 3), (4, 3), (4, 2), np.array([[True, False, True, True], [False, False, False, False]])),
        case((2, 2, 3), (2, 4, 3), (2, 4, 3), np.array([True, True, False, True])),
        case((2, 3), (4, 3), (4, 2), (2, 4)),
    ),
)
def masked_attention(query: Value, key: Value, value: Value, mask: Value, scale: float | None = None) -> Value:
    """As `scaled_dot_product_attention`, with a mask that is broadcast to the scores: bools say which keys a query sees
    (the result is 0 where it sees none), floats of x's dtype are added.
    query: (T float, (*b, l, d)), key: (T, (*b, s, d)), value: (T, (*b, s, e)), mask: (bool or T, to (*b, l, s)) ->
    (T, (*b, l, e)).

    >>> mask = np.array([True, False])
    >>> relay.masked_attention(np.float32([[1]]), np.float32([[1], [5]]), np.float32([[2], [4]]), mask)
    Array([[2.]], dtype=float32)
    """
    scores = _scores(query, key, scale)
    if mask.base == BOOL:
        return _attention_output(scores, value, mask)
    return _attention_output(scores + cast_like(mask, scores), value, None)
