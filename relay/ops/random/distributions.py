"""Random choices made of random numbers: Bernoulli and categorical draws, permutations, dropout."""

from __future__ import annotations

import numpy as np

from relay.errors import ShapeError, TypeMismatch
from relay.ir.types import FLOAT32, Shape
from relay.operator import lookup
from relay.operator.axes import carries
from relay.ops.elementwise.comparison import where
from relay.ops.notation import Relation, Value, expansion
from relay.ops.random.generation import check_key
from relay.ops.reduction.sorting import needs_places
from relay.ops.samples import case, cases
from relay.typecheck import axes as names
from relay.typecheck import relations
from relay.typecheck.dims import normalize_axis

_KEY = np.array([0, 7], np.uint32)
_DRAWS = "a draw has no derivative"


def _draw(name: str, key: Value, shape: Shape, **attributes: object) -> Value:
    operator = lookup(name)
    return key.emitter.call(operator, (key,), {**operator.attributes, "shape": shape, **attributes})  # type: ignore[dict-item]


def _bernoulli_shape(key: Shape, p: Shape, *, shape: object) -> Shape:
    check_key(key)
    if shape is None:
        return p
    return relations.broadcast_to(p, shape=shape)  # type: ignore[arg-type]


@expansion(
    sizes=frozenset({"shape"}),
    relation=Relation("uint32, T:float -> bool", _bernoulli_shape),
    no_gradient=_DRAWS,
    sampler=cases(case(_KEY, np.array([0, 0.3, 1], np.float32)), case(_KEY, np.array(0.5), shape=(2, 50))),
)
def random_bernoulli(key: Value, p: Value, shape: tuple[int, ...] | None = None) -> Value:
    """True with probability p, independently for each element of p, or of `shape`, to which p is broadcast.
    key: (uint32, (2,)), p: (T float, s) -> (bool, shape).

    >>> relay.random_bernoulli(relay.random_key(0), 0.5, shape=(4,))
    Array([False, False,  True,  True], dtype=bool)
    """
    return _draw("random_uniform", key, p.shape if shape is None else shape, dtype=p.base) < p


def _categorical_shape(key: Shape, logits: Shape, *, axis: int, shape: object) -> Shape:
    check_key(key)
    position = normalize_axis(axis, len(logits))
    needs_places(logits, axis)
    rest = (*logits[:position], *logits[position + 1 :])
    return rest if shape is None else relations.broadcast_to(rest, shape=shape)  # type: ignore[arg-type]


@expansion(
    sizes=frozenset({"shape"}),
    relation=Relation("uint32, T:float -> int32", _categorical_shape),
    no_gradient=_DRAWS,
    sampler=cases(
        case(_KEY, (3, 4)), case(_KEY, (4, 2), axis=0), case(_KEY, (3,), shape=(20,)),
        case(_KEY, np.array([0, -np.inf, 1], np.float32), shape=(9,)),
    ),
)  # fmt: skip
def random_categorical(key: Value, logits: Value, axis: int = -1, shape: tuple[int, ...] | None = None) -> Value:
    """Places along an axis, place i with probability softmax(logits)[i]: where logits plus Gumbel numbers are largest.
    `shape` is that of the draws, to which the other axes are broadcast. key: (uint32, (2,)), logits: (T float, s) ->
    (int32, s without the axis, or shape).

    >>> relay.random_categorical(relay.random_key(0), np.float32([0, 5, 0]), shape=(6,))
    Array([1, 1, 1, 1, 1, 1], dtype=int32)
    """
    position = normalize_axis(axis, logits.ndim)
    last = logits.op("transpose", axes=(*(i for i in range(logits.ndim) if i != position), position))
    draws = last.shape[:-1] if shape is None else tuple(shape)
    noise = _draw("random_gumbel", key, (*draws, last.shape[-1]), dtype=logits.base)
    return (last + noise).op("argmax", axis=-1)


def _permutation_shape(key: Shape, x: Shape, *, axis: int) -> Shape:
    check_key(key)
    if not x:
        raise ShapeError("a permutation needs an axis; of the numbers below n: permutation(key, relay.arange(n))")
    needs_places(x, axis)
    return x


@expansion(
    relation=Relation("uint32, T -> T", _permutation_shape),
    sampler=cases(case(_KEY, (7,)), case(_KEY, (2, 5), axis=1), case(_KEY, (0, 2))),
)
def random_permutation(key: Value, x: Value, axis: int = 0) -> Value:
    """x with what lies along an axis in random order: that of 64 random bits for each place.
    key: (uint32, (2,)), x: (T, s) -> (T, s).

    >>> relay.random_permutation(relay.random_key(0), np.int32([1, 2, 3, 4]))
    Array([2, 1, 4, 3], dtype=int32)
    """
    bits = _draw("random_bits", key, (x.shape[normalize_axis(axis, x.ndim)],), width=64)
    return x.op("take", bits.op("argsort"), axis=axis)


@carries(names.first_operand)
def _dropout_shape(x: Shape, key: Shape, *, rate: float, training: bool) -> Shape:
    check_key(key)
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise TypeMismatch(f"the rate of dropout, the part that is dropped, must be in [0, 1), found {rate!r}")
    if not isinstance(training, bool):
        raise TypeMismatch(f"training must be True or False when the program is compiled, found {training!r}")
    return x


@expansion(
    relation=Relation("T:float, uint32 -> T", _dropout_shape),
    sampler=cases(
        case((3, 4), _KEY),
        case((20,), _KEY, rate=0.1),
        case((2,), _KEY, rate=0.0),
        case((0, 2), _KEY),
        case((3, 4), _KEY, training=False),
    ),
)
def dropout(x: Value, key: Value, rate: float = 0.5, training: bool = True) -> Value:
    """x with each element 0 with probability `rate`, the others divided by 1 - rate (Srivastava and others, 2014);
    x itself with training=False, for inference. x: (T float, s), key: (uint32, (2,)) -> (T, s).

    >>> relay.dropout(np.float32([1, 2, 3, 4]), relay.random_key(0))
    Array([2., 4., 0., 0.], dtype=float32)
    """
    if not training:
        return x
    kept = _draw("random_uniform", key, x.shape, dtype=FLOAT32) >= rate
    return where(kept, x / (1 - rate), x.op("zeros_like"))
