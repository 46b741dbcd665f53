"""Random numbers from keys: a key and a place give the same number in every executor, on every target, in every run.

The generator is Threefry-2x32 with 20 rounds: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, Parallel random
numbers: as easy as 1, 2, 3, SC 2011. It maps a key and a counter, two uint32 each, to two uint32. Number i of a tensor
is made of the counter (i >> 32, i); so are the keys that `random_split` makes.

A key of more axes than one, (*s, 2), is several keys, and each draws for itself: the axes s come first in the result.
So the draws of a batch of keys are one call.

Bits become floats by exact operations and those of `reproducible`. Programs write `relay.random.uniform` for
`random_uniform`, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relay.errors import ShapeError, TypeMismatch
from relay.ir.dims import Dim, DimExpr, TypeId, Unknown
from relay.ir.types import FLOAT32, FLOAT64, BaseType, Shape, Type, show_shape
from relay.operator.batching import Batch
from relay.operator.relation import infer_relation
from relay.ops.batching import same_call
from relay.ops.notation import (
    Batching,
    Element,
    Relation,
    Requirement,
    Stage,
    Tensor,
    Value,
    dims,
    number_or_size,
    register_op,
    result_dims,
)
from relay.ops.samples import case, cases
from relay.ops.tir import reproducible, scalar, stages
from relay.ops.tir.reproducible import NUMPY, Arithmetic, TirArithmetic
from relay.ops.tir.stages import Registers
from relay.ops.tir.tvm_modules import tirx
from relay.typecheck import relations
from relay.typecheck.dims import equal

_BITS = "random numbers do not depend on their key differentiably"
_SHAPE = frozenset({"shape"})
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_ROUNDS = 20
_ZERO, _KEY = np.array([0, 0], np.uint32), np.array([0x13198A2E, 0x03707344], np.uint32)
_KEYS = np.array([[0, 7], [0x13198A2E, 1]], np.uint32)


# ---- the generator


def numpy_threefry(key: Tensor, high: Tensor, low: Tensor) -> tuple[Tensor, Tensor]:
    """Threefry-2x32-20 of keys (*s, 2) and counters (n,), in uint32, which wraps: two of (*s, n)."""
    first, second = key[..., 0, None], key[..., 1, None]
    keys = first, second, first ^ second ^ np.uint32(_PARITY)
    x, y = high + keys[0], low + keys[1]
    for number in range(_ROUNDS):
        rotation = np.uint32(_ROTATIONS[number // 4 % 2][number % 4])
        x = x + y
        y = ((y << rotation) | (y >> (np.uint32(32) - rotation))) ^ x
        if number % 4 == 3:
            block = number // 4 + 1
            x, y = x + keys[block % 3], y + keys[(block + 1) % 3] + np.uint32(block)
    return np.asarray(x), np.asarray(y)


def _threefry(
    registers: Registers, key: Any, at: Sequence[Element], high: Element, low: Element
) -> tuple[Element, Element]:
    """The same on uint32 expressions; `key` is a buffer, in which the key is at a place."""

    def word(number: int) -> Element:
        return tirx.const(number, "uint32")

    first, second = (registers.name(tirx.BufferLoad(key, [*at, place])) for place in (0, 1))
    third = registers.name(tirx.bitwise_xor(tirx.bitwise_xor(first, second), word(_PARITY)))
    keys = first, second, third
    x, y = registers.name(scalar.add(high, first)), registers.name(scalar.add(low, second))
    for number in range(_ROUNDS):
        rotation = _ROTATIONS[number // 4 % 2][number % 4]
        x = registers.name(scalar.add(x, y))
        turned = tirx.bitwise_or(tirx.shift_left(y, word(rotation)), tirx.shift_right(y, word(32 - rotation)))
        y = registers.name(tirx.bitwise_xor(turned, x))
        if number % 4 == 3:
            block = number // 4 + 1
            x = registers.name(scalar.add(x, keys[block % 3]))
            y = registers.name(scalar.add(scalar.add(y, keys[(block + 1) % 3]), word(block)))
    return x, y


def _numpy_words(key: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The generator's two words for the places 0 .. count - 1, of each key."""
    places = np.arange(count, dtype=np.uint64)
    return numpy_threefry(key, (places >> np.uint64(32)).astype(np.uint32), places.astype(np.uint32))


def _numpy_bits(key: Tensor, shape: Sequence[int], wide: bool) -> Tensor:
    first, second = _numpy_words(key, math.prod(shape))
    bits: Any = (first.astype(np.uint64) << np.uint64(32)) | second if wide else first ^ second
    return np.asarray(bits.reshape((*key.shape[:-1], *shape)))


def _words(
    registers: Registers, key: Any, at: Sequence[Element], index: Sequence[Element], shape: Sequence[int]
) -> tuple[Element, Element]:
    place: Element = tirx.const(0, "int64")
    for i, extent in zip(index, shape, strict=True):
        place = place * number_or_size(extent, "int64") + tirx.Cast("int64", i)
    place = registers.name(tirx.Cast("uint64", place))
    high = tirx.shift_right(place, tirx.const(32, "uint64"))
    return _threefry(registers, key, at, tirx.Cast("uint32", high), tirx.Cast("uint32", place))


def _combine_words(first: Element, second: Element) -> Element:
    wide = tirx.shift_left(tirx.Cast("uint64", first), tirx.const(32, "uint64"))
    return tirx.bitwise_or(wide, tirx.Cast("uint64", second))


def _tensor(shape: object, inputs: Sequence[Stage], dtype: str, wide: bool, value: Callable[..., Element]) -> Stage:
    """A stage of `value(registers, bits, *numbers)`, of the bits of each place; the first input is the key, further
    ones are single numbers, or one for each key."""
    axes = dims(inputs[0])[:-1]
    extents = result_dims(lambda: (*axes, *relations.literal_shape(shape)))

    def element(registers: Registers, index: Sequence[Element], buffers: Sequence[Any]) -> Element:
        at, place = index[: len(axes)], index[len(axes) :]
        first, second = _words(registers, buffers[0], at, place, extents[len(axes) :])
        bits = registers.name(_combine_words(first, second) if wide else tirx.bitwise_xor(first, second))
        return value(registers, bits, *(tirx.BufferLoad(b, at if len(b.shape) else []) for b in buffers[1:]))

    return stages.register_stage(extents, inputs, dtype, element)


# ---- keys


def check_key(key: Shape) -> None:
    """Raises ShapeError if this is not the shape of a key."""
    if len(key) != 1 or not equal(key[0], 2):
        raise ShapeError(f"a key has the shape (2,), found {show_shape(key)}; relay.random.key(seed) makes one")


def _axes_of_keys(key: Shape) -> Shape:
    """The axes of several keys, none for one. Raises ShapeError if there are no keys in this shape."""
    check_key(key[-1:] if len(key) > 1 else key)
    return key[:-1]


def _random_shape(key: Shape, *, shape: Sequence[int] | int, **attributes: object) -> Shape:
    return (*_axes_of_keys(key), *relations.literal_shape(shape))


def _key_shape(seed: Shape) -> Shape:
    return (*seed, 2)


def _key(seed: Stage) -> Stage:
    def element(registers: Registers, index: Sequence[Element], buffers: Sequence[Any]) -> Element:
        number = tirx.BufferLoad(buffers[0], index[:-1])
        wide = tirx.Cast("int64" if not str(seed.dtype).startswith("u") else "uint64", number)
        bits = registers.name(tirx.Cast("uint64", wide))
        low = tirx.Cast("uint32", bits)
        if str(seed.dtype) not in ("int64", "uint64"):
            return tirx.Select(scalar.is_zero(index[-1]), tirx.const(0, "uint32"), low)
        high = tirx.Cast("uint32", tirx.shift_right(bits, tirx.const(32, "uint64")))
        return tirx.Select(scalar.is_zero(index[-1]), high, low)

    return stages.register_stage((*dims(seed), 2), [seed], "uint32", element)


@register_op(
    relation=Relation("T:int -> uint32", _key_shape),
    compute=_key,
    no_gradient=_BITS,
    batching=Batching(rule=same_call), sampler=cases(
        case(np.array(42, np.int32)), case(np.array(-1, np.int32)), case(np.array(-(2**40) + 5, np.int64)),
        case(np.array(2**63 + 7, np.uint64)), case(np.array(200, np.uint8)), case(np.array([-1, 5], np.int64)),
    ),
)  # fmt: skip
def random_key(seed: Tensor) -> Tensor:
    """The key of a seed, or of each: its upper and lower 32 bits, the upper ones 0 for narrower seeds.
    seed: (int, s) -> (uint32, (*s, 2)).

    >>> relay.random_key(42)
    Array([ 0, 42], dtype=uint32)
    """
    bits = seed.astype(np.uint64 if seed.dtype.kind == "u" else np.int64).astype(np.uint64)
    high = bits >> np.uint64(32) if seed.dtype.itemsize == 8 else np.zeros_like(bits)
    return np.stack([high, bits & np.uint64(0xFFFFFFFF)], axis=-1).astype(np.uint32)


def _split_shape(key: Shape, *, num: Dim) -> Shape:
    axes = _axes_of_keys(key)
    if (
        isinstance(num, bool)
        or not isinstance(num, int | TypeId | DimExpr | Unknown)
        or (isinstance(num, int) and num < 0)
    ):
        raise ShapeError(f"num, the number of keys, must be an integer that is not negative, found {num!r}")
    return (*axes, num, 2)


def _split(key: Stage, num: Any) -> Stage:
    extents = result_dims(lambda: (*dims(key)[:-1], *relations.literal_shape((num, 2))))

    def element(registers: Registers, index: Sequence[Element], buffers: Sequence[Any]) -> Element:
        first, second = _words(registers, buffers[0], index[:-2], index[-2:-1], extents[-2:-1])
        return tirx.Select(scalar.is_zero(index[-1]), first, second)

    return stages.register_stage(extents, [key], "uint32", element)


@register_op(
    sizes=frozenset({"num"}),
    relation=Relation("uint32 -> uint32", _split_shape),
    compute=_split,
    no_gradient=_BITS,
    batching=Batching(rule=same_call),
    sampler=cases(case(_ZERO), case(_KEY, num=5), case(_KEY, num=0), case(_KEYS, num=3)),
)
def random_split(key: Tensor, num: int = 2) -> Tensor:
    """New keys, independent of each other and of what is drawn with other keys; use the old one no more.
    key: (uint32, (*s, 2)) -> (uint32, (*s, num, 2)).

    >>> relay.random_split(relay.random_key(0))
    Array([[1797259609, 2579123966],
           [ 928981903, 3453687069]], dtype=uint32)
    """
    return np.stack(_numpy_words(key, num), axis=-1)


# ---- bits, and numbers made of them


def _bits_type(key: Type, shape: Sequence[int] | int, width: int) -> Type:
    if width not in (32, 64):
        raise TypeMismatch(f"the width of random bits is 32 or 64, found {width!r}")
    relation = Relation(f"uint32 -> uint{width}", _random_shape)
    return infer_relation("random_bits", relation, False, (key,), {"shape": shape})  # type: ignore[dict-item]


@register_op(
    sizes=_SHAPE,
    relation=_bits_type,
    compute=lambda key, shape, width: _tensor(shape, [key], f"uint{width}", width == 64, lambda registers, bits: bits),
    no_gradient=_BITS,
    batching=Batching(rule=same_call), sampler=cases(
        case(_ZERO, shape=()), case(_KEY, shape=(3, 4)), case(_KEY, shape=(5,), width=64), case(_KEY, shape=(0, 2)),
        case(_KEYS, shape=(3,)),
    ),
)  # fmt: skip
def random_bits(key: Tensor, shape: tuple[int, ...] = (), width: int = 32) -> Tensor:
    """Random bits in words of 32 or 64. key: (uint32, (*s, 2)) -> (uint32 or uint64, (*s, *shape)).

    >>> relay.random_bits(relay.random_key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)
    """
    return _numpy_bits(key, shape, width == 64)


def _fraction_bits(dtype: BaseType) -> int:
    """The bits of a float's fraction, beside the leading one."""
    return {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[dtype.name]


def _check_float(name: str, dtype: object) -> None:
    if isinstance(dtype, BaseType) and not dtype.is_float:  # one that is open is a float's
        raise TypeMismatch(f"{name} draws floats, found {dtype}; random_randint draws integers")


def _uniform_shape(key: Shape, *, shape: Sequence[int] | int, minval: float, maxval: float, dtype: BaseType) -> Shape:
    _check_float("random_uniform", dtype)
    low, high = _bounds(minval, maxval, dtype)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise TypeMismatch(f"random_uniform needs finite bounds with minval < maxval, found {minval} and {maxval}")
    return _random_shape(key, shape=shape)


def _bounds(minval: float, maxval: float, dtype: object) -> tuple[float, float]:
    """Both as the dtype has them; as they are while it is open."""
    if not isinstance(dtype, BaseType):
        return float(minval), float(maxval)
    return float(np.asarray(minval, dtype.dtype)), float(np.asarray(maxval, dtype.dtype))


def _scale_to_interval(a: Arithmetic, unit: Any, minval: float, maxval: float, dtype: BaseType) -> Any:
    """A number in [0, 1) scaled to [minval, maxval), which rounding may not leave."""
    low, high = _bounds(minval, maxval, dtype)
    if (low, high) == (0.0, 1.0):
        return unit
    # The number is the last one below `high` if rounding would give more.
    last = float(np.nextafter(np.asarray(high, dtype.dtype), np.asarray(low, dtype.dtype)))
    scaled = a.name(a.constant(low) + reproducible.product(a, unit, a.constant(high - low)))
    return a.select(a.less(scaled, last), scaled, a.constant(last))


def _uniform(key: Stage, shape: tuple[int, ...], minval: float, maxval: float, dtype: BaseType) -> Stage:
    wide, fraction = dtype == FLOAT64, _fraction_bits(dtype)

    def value(registers: Registers, bits: Element) -> Element:
        width = 64 if wide else 32
        kept = tirx.shift_right(bits, tirx.const(width - fraction, f"uint{width}"))
        unit = registers.name(tirx.Cast("float64", kept) * tirx.const(2.0**-fraction, "float64"))
        return scalar.cast(_scale_to_interval(TirArithmetic(registers), unit, minval, maxval, dtype), dtype)

    return _tensor(shape, [key], str(dtype), wide, value)


@register_op(
    sizes=_SHAPE,
    relation=Relation("uint32 -> @dtype", _uniform_shape),
    compute=_uniform,
    no_gradient=_BITS,
    batching=Batching(rule=same_call), sampler=cases(
        case(_KEY, shape=(3, 4)), case(_KEY, shape=(200,), minval=-1.5, maxval=0.1), case(_ZERO, shape=()),
        case(_KEY, shape=(200,), minval=1 / 3, maxval=7.7, dtype=FLOAT64), case(_KEY, shape=(50,), dtype=FLOAT64),
        case(_KEY, shape=(0,)), case(_KEY, shape=(100,), minval=16777215.0, maxval=16777216.0),
    ),
)  # fmt: skip
def random_uniform(
    key: Tensor, shape: tuple[int, ...] = (), minval: float = 0.0, maxval: float = 1.0, dtype: BaseType = FLOAT32
) -> Tensor:
    """Floats that are equally likely everywhere in [minval, maxval).
    key: (uint32, (*s, 2)) -> (dtype float, (*s, *shape)).

    >>> relay.random_uniform(relay.random_key(0), (2,))
    Array([0.947667 , 0.9785799], dtype=float32)
    """
    wide, fraction = dtype == FLOAT64, _fraction_bits(dtype)
    bits = _numpy_bits(key, shape, wide) >> ((64 if wide else 32) - fraction)
    unit = bits.astype(np.float64) * 2.0**-fraction
    return np.asarray(_scale_to_interval(NUMPY, unit, minval, maxval, dtype)).astype(dtype.dtype)


def _distribution(name: str, quantile: Callable[[Arithmetic, Any], Any]) -> tuple[Any, Any, Any]:
    """The shape rule, the compute and the reference of a distribution by its quantile function: of a probability
    strictly between 0 and 1, of 32 bits, or 52 for float64."""

    def rule(key: Shape, *, shape: Sequence[int] | int, dtype: BaseType) -> Shape:
        _check_float(name, dtype)
        return _random_shape(key, shape=shape)

    def probability(a: Arithmetic, kept: Any, wide: bool) -> Any:
        return a.name((kept + a.constant(0.5)) * a.constant(2.0 ** (-52 if wide else -32)))

    def compute(key: Stage, shape: tuple[int, ...], dtype: BaseType) -> Stage:
        wide = dtype == FLOAT64

        def value(registers: Registers, bits: Element) -> Element:
            a = TirArithmetic(registers)
            kept = tirx.shift_right(bits, tirx.const(12, "uint64")) if wide else bits
            return scalar.cast(quantile(a, probability(a, tirx.Cast("float64", kept), wide)), dtype)

        return _tensor(shape, [key], str(dtype), wide, value)

    def reference(key: Tensor, shape: Sequence[int], dtype: BaseType) -> Tensor:
        wide = dtype == FLOAT64
        bits = _numpy_bits(key, shape, wide)
        kept = (bits >> np.uint64(12) if wide else bits).astype(np.float64)
        return np.asarray(quantile(NUMPY, probability(NUMPY, kept, wide))).astype(dtype.dtype)

    return rule, compute, reference


_DRAWS = cases(
    case(_KEY, shape=(4, 100)),
    case(_KEY, shape=(300,), dtype=FLOAT64),
    case(_ZERO, shape=()),
    case(_KEY, shape=(0, 2)),
    case(_KEYS, shape=(3,)),
)
_normal_rule, _normal, _numpy_normal = _distribution("random_normal", reproducible.normal_quantile)


@register_op(
    sizes=_SHAPE,
    relation=Relation("uint32 -> @dtype", _normal_rule),
    compute=_normal,
    no_gradient=_BITS,
    batching=Batching(rule=same_call),
    sampler=_DRAWS,
)
def random_normal(key: Tensor, shape: tuple[int, ...] = (), dtype: BaseType = FLOAT32) -> Tensor:
    """Floats of the normal distribution with mean 0 and variance 1.
    key: (uint32, (*s, 2)) -> (dtype float, (*s, *shape)).

    >>> relay.random_normal(relay.random_key(0), (2,))
    Array([1.6226428, 2.025265 ], dtype=float32)
    """
    return _numpy_normal(key, shape, dtype)


def _exponential_quantile(a: Arithmetic, p: Any) -> Any:
    return a.constant(0.0) - reproducible.log(a, p)


_exponential_rule, _exponential, _numpy_exponential = _distribution("random_exponential", _exponential_quantile)


@register_op(
    sizes=_SHAPE,
    relation=Relation("uint32 -> @dtype", _exponential_rule),
    compute=_exponential,
    no_gradient=_BITS,
    batching=Batching(rule=same_call),
    sampler=_DRAWS,
)
def random_exponential(key: Tensor, shape: tuple[int, ...] = (), dtype: BaseType = FLOAT32) -> Tensor:
    """Floats of the exponential distribution with mean 1.
    key: (uint32, (*s, 2)) -> (dtype float, (*s, *shape)).

    >>> relay.random_exponential(relay.random_key(0), (2,))
    Array([0.053752  , 0.02165283], dtype=float32)
    """
    return _numpy_exponential(key, shape, dtype)


def _gumbel_quantile(a: Arithmetic, p: Any) -> Any:
    return a.constant(0.0) - reproducible.log(a, _exponential_quantile(a, p))


_gumbel_rule, _gumbel, _numpy_gumbel = _distribution("random_gumbel", _gumbel_quantile)


@register_op(
    sizes=_SHAPE,
    relation=Relation("uint32 -> @dtype", _gumbel_rule),
    compute=_gumbel,
    no_gradient=_BITS,
    batching=Batching(rule=same_call),
    sampler=_DRAWS,
)
def random_gumbel(key: Tensor, shape: tuple[int, ...] = (), dtype: BaseType = FLOAT32) -> Tensor:
    """Floats -log(-log u) of the standard Gumbel distribution.
    key: (uint32, (*s, 2)) -> (dtype float, (*s, *shape)).

    >>> relay.random_gumbel(relay.random_key(0), (2,))
    Array([2.9233744, 3.8326192], dtype=float32)
    """
    return _numpy_gumbel(key, shape, dtype)


# ---- integers


def _randint_shape(key: Shape, minval: Shape, maxval: Shape, *, shape: Sequence[int] | int) -> Shape:
    axes = _axes_of_keys(key)
    for bound in (minval, maxval):
        if bound and not (len(bound) == len(axes) and all(map(equal, bound, axes))):
            found = f"{show_shape(minval)}, {show_shape(maxval)}"
            raise ShapeError(f"the bounds of random_randint are single numbers, or one for each key: {found}")
    return _random_shape(key, shape=shape)


def _upper_product(name: Callable[[Any], Any], x: Any, y: Any, part: Callable[[Any, int], Any]) -> Any:
    """The upper 64 bits of a product of uint64, from halves that do not overflow; `part(x, 0)` is the lower half."""
    x0, x1, y0, y1 = name(part(x, 0)), name(part(x, 1)), name(part(y, 0)), name(part(y, 1))
    middle = name(x1 * y0 + part(name(x0 * y0), 1))
    other = name(x0 * y1 + part(middle, 0))
    return x1 * y1 + part(middle, 1) + part(other, 1)


def _randint(key: Stage, minval: Stage, maxval: Stage, shape: tuple[int, ...]) -> Stage:
    dtype = str(minval.dtype)
    wide = "uint64" if dtype.startswith("u") else "int64"

    def part(x: Element, upper: int) -> Element:
        if upper:
            return tirx.shift_right(x, tirx.const(32, "uint64"))
        return tirx.bitwise_and(x, tirx.const(0xFFFFFFFF, "uint64"))

    def value(registers: Registers, bits: Element, low: Element, high: Element) -> Element:
        low, high = (registers.name(tirx.Cast(wide, bound)) for bound in (low, high))
        extent = registers.name(tirx.Cast("uint64", scalar.subtract(high, low)))
        above = registers.name(_upper_product(registers.name, bits, extent, part))
        return tirx.Cast(dtype, scalar.add(low, registers.name(tirx.Cast(wide, above))))

    return _tensor(shape, [key, minval, maxval], dtype, True, value)


def _not_empty(key: Value, minval: Value, maxval: Value, shape: Any) -> Value:
    return (minval < maxval).op("all")


def _batch_randint(batch: Batch, key: Value, minval: Value, maxval: Value, **attributes: Any) -> Value:
    """The same call, with a key, and numbers in place of one that differs, for each example."""
    key = batch.stretch(key, 0)
    axes = key.shape[:-1]
    bounds = []
    for position, bound in ((1, minval), (2, maxval)):
        if batch.batched[position] or batch.rank(position):
            bound = batch.stretch(bound, position)
            aligned = bound.op("reshape", shape=(*bound.shape, *(1,) * (len(axes) - bound.ndim)))
            bound = aligned.op("broadcast_to", shape=axes)
        bounds.append(bound)
    return batch.call(key, *bounds, **attributes)


def _range(low: int | list[int], high: int | list[int], dtype: str) -> tuple[Tensor, Tensor]:
    return np.array(low, dtype), np.array(high, dtype)


@register_op(
    sizes=_SHAPE,
    relation=Relation("uint32, T:int, T -> T", _randint_shape),
    compute=_randint,
    no_gradient=_BITS,
    requirements=(Requirement(_not_empty, "there is no integer from minval up to maxval, exclusive"),),
    batching=Batching(rule=_batch_randint), sampler=cases(
        case(_KEY, *_range(0, 10, "int32"), shape=(3, 20)), case(_KEY, *_range(-5, -2, "int8"), shape=(40,)),
        case(_KEY, *_range(-(2**63), 2**63 - 1, "int64"), shape=(30,)), case(_ZERO, *_range(3, 4, "uint8"), shape=()),
        case(_KEY, *_range(-(2**31), 2**31 - 1, "int32"), shape=(20,)), case(_KEY, *_range(0, 5, "int32"), shape=(0,)),
        case(_KEYS, *_range(0, 5, "int32"), shape=(3,)), case(_KEYS, *_range([0, 3], [9, 7], "int32"), shape=(3,)),
    ),
)  # fmt: skip
def random_randint(key: Tensor, minval: Tensor, maxval: Tensor, shape: tuple[int, ...] = ()) -> Tensor:
    """Integers from minval up to maxval, exclusive, the upper part of the product of 64 random bits and the range: no
    integer's probability is off by more than 2**-64. key: (uint32, (*s, 2)), minval: (T int, () or s), maxval: (T, ()
    or s) -> (T, (*s, *shape)).

    >>> relay.random_randint(relay.random_key(0), 1, 7, (8,))
    Array([3, 2, 6, 4, 4, 3, 6, 4], dtype=int32)
    """
    wide = np.uint64 if minval.dtype.kind == "u" else np.int64
    minval, maxval = (b.reshape((*b.shape, *(1,) * (len(shape) if b.ndim else 0))) for b in (minval, maxval))
    extent = np.asarray(maxval.astype(wide) - minval.astype(wide)).astype(np.uint64)

    def part(x: Any, upper: int) -> Any:
        return x >> np.uint64(32) if upper else x & np.uint64(0xFFFFFFFF)

    above = np.asarray(_upper_product(lambda x: x, _numpy_bits(key, shape, True), extent, part))
    return np.asarray(minval.astype(wide) + above.astype(wide)).astype(minval.dtype)
