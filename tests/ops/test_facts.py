"""What definitions say of their operators is true: every fact that passes rely on, checked on sampled calls.

A fact is a generator of pairs that must be equal, made of the operator's reference on a sample's operands; it yields
nothing where the sample does not show it. Passes change programs by these facts, so a wrong one is a wrong answer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
import pytest
from operator_samples import OF, OPERATORS, Array, Sample, evaluate

import relay
from relay.ir.expr import Var
from relay.ir.sizes.facts import DimConstraint
from relay.ir.types import TensorType
from relay.operator import (
    UNDEFINED,
    Algebra,
    Emitter,
    Indexing,
    IndexKind,
    Memory,
    Operator,
    Pattern,
    lookup,
)
from relay.operator.facets import FACETS

Pair = tuple[Any, Any]


class Call:
    """A sample, to be evaluated with other operands."""

    def __init__(self, operator: Operator, sample: Sample) -> None:
        self.operator = operator
        self.x = list(sample.operands)
        self.attributes = sample.attributes
        self.rng = np.random.default_rng(7)

    def __call__(self, *operands: Array, **changed: Any) -> Array:
        return np.asarray(self.operator.evaluate(list(map(np.asarray, operands)), {**self.attributes, **changed}))

    def replaced(self, position: int, operand: Array) -> Array:
        """The result with one operand changed."""
        return self(*self.x[:position], operand, *self.x[position + 1 :])

    def other(self, operand: Array) -> Array:
        """Its elements in another order."""
        return np.asarray(self.rng.permutation(operand.reshape(-1))).reshape(operand.shape)

    def type_of(self, *operands: Array) -> Any:
        return Sample(self.operator, operands, self.attributes).results[0]


def commutative(call: Call) -> Iterator[Pair]:
    x, y = call.x
    yield call(x, y), call(y, x)


def associative(call: Call) -> Iterator[Pair]:
    x, y = call.x
    if call.operator.algebra.commutative or (x.ndim == y.ndim == 2 and len({*x.shape, *y.shape}) == 1):
        z = call.other(y)
        yield call(call(x, y), z), call(x, call(y, z))


def idempotent(call: Call) -> Iterator[Pair]:
    if len(call.x) == 2:
        yield call(call.x[0], call.x[0]), call.x[0]
    else:
        once = call(*call.x)
        yield call(once), once


def involution(call: Call) -> Iterator[Pair]:
    yield call(call(*call.x)), call.x[0]


def coercion(call: Call) -> Iterator[Pair]:
    (x,) = call.x
    if call.type_of(x) == TensorType(call.type_of(x).base, x.shape) and call(x).dtype == x.dtype:
        yield call(x), x


def forwards(call: Call) -> Iterator[Pair]:
    position = call.operator.algebra.forwards
    assert position is not None
    yield call(*call.x), call.x[position]


def identity(call: Call) -> Iterator[Pair]:
    x = call.x[0]
    neutral = np.asarray(call.operator.algebra.identity, x.dtype)
    found = call(x, neutral)
    yield found, x
    yield np.signbit(found) if x.dtype.kind == "f" else found, np.signbit(x) if x.dtype.kind == "f" else x


def linear(call: Call) -> Iterator[Pair]:
    for position in call.operator.algebra.linear:
        x = call.x[position]
        if x.dtype == np.float64:
            y = call.other(x)
            whole = call.replaced(position, x * 2 + y)
            yield whole, call.replaced(position, x) * 2 + call.replaced(position, y)
            zero = call.replaced(position, np.zeros_like(x))
            yield np.nan_to_num(zero), np.zeros_like(zero)  # 0 / 0 stays NaN


def jointly_linear(call: Call) -> Iterator[Pair]:
    if all(x.dtype == np.float64 for x in call.x):
        others = [call.other(x) for x in call.x]
        both = call(*(x * 2 + y for x, y in zip(call.x, others, strict=True)))
        yield both, call(*call.x) * 2 + call(*others)


def homogeneous(call: Call) -> Iterator[Pair]:
    if all(x.dtype == np.float64 for x in call.x):
        yield call(*(x * 2.5 for x in call.x)), call(*call.x) * 2.5


def elementwise(call: Call) -> Iterator[Pair]:
    """Element i of the result is made of the operands' elements i, so another order of them is one of the result."""
    shape = np.broadcast_shapes(*(x.shape for x in call.x))
    if call(*call.x).shape == shape:
        whole = [np.array(np.broadcast_to(x, shape)) for x in call.x]
        order = call.rng.permutation(whole[0].size)
        moved = [x.reshape(-1)[order].reshape(shape) for x in whole]
        yield call(*whole), call(*call.x)
        yield call(*moved), call(*whole).reshape(-1)[order].reshape(shape)


def injective(call: Call) -> Iterator[Pair]:
    """Each element of the result depends on one element of an operand: of two operands mixed it is that of one or of
    the other."""
    for position, x in enumerate(call.x):
        if x.dtype == np.float64 and call(*call.x).dtype == np.float64:
            y = call.other(x) + 0.125
            mixed = call.replaced(position, np.where(call.rng.integers(0, 2, x.shape).astype(bool), x, y))
            one = call.replaced(position, x)
            yield mixed, np.where(mixed == one, one, call.replaced(position, y))


def fill(call: Call) -> Iterator[Pair]:
    found = call(*call.x)
    yield found, np.full_like(found, call.operator.memory.constant)


def kind(call: Call) -> Iterator[Pair]:
    x, found = call.x[0], call(*call.x)
    match call.operator.indexing.kind:
        case IndexKind.PERMUTE:
            yield found, x.transpose(call.attributes.get("axes"))
        case IndexKind.RESHAPE:
            yield found.reshape(-1), x.reshape(-1)
        case IndexKind.SLICE:
            begin, end, strides = (call.attributes[name] for name in ("begin", "end", "strides"))
            places = zip(begin, end, strides, strict=True)
            bounds = [slice(b, None if e < 0 else e, s) for b, e, s in places]
            yield found, x[tuple(bounds)]
        case IndexKind.ROW:
            yield found, x[int(call.x[1])]


def reduction_axes(call: Call) -> Iterator[Pair]:
    """The elements along these axes may stand in any order, and other axes are alike."""
    (x,) = call.x
    named = call.attributes[str(call.operator.indexing.reduction_axes)]
    axes = range(x.ndim) if named is None else [a % x.ndim for a in np.atleast_1d(named)]
    order = x
    for axis in range(x.ndim):
        order = np.flip(order, axis)
    found = call(x)
    if found.ndim == x.ndim or named is None:
        kept = [axis for axis in range(found.ndim) if axis not in axes]
    else:
        kept = [i for i, axis in enumerate(a for a in range(x.ndim) if a not in axes)]
    yield call(order), np.flip(found, kept) if kept else found


def axis(call: Call) -> Iterator[Pair]:
    """The places on the other axes are alike, so they can be taken in another order."""
    rank = call.x[0].ndim
    along = call.attributes[str(call.operator.indexing.axis)] % rank
    for other in range(rank):
        if other != along:
            yield call(*(np.flip(x, other) for x in call.x)), np.flip(call(*call.x), other)


def accumulates(call: Call) -> Iterator[Pair]:
    """A sum with a call is one call."""
    name = call.operator.algebra.accumulates
    if isinstance(name, int):
        x = call.x[name]
        if x.dtype.kind == "i" or x.dtype == np.float64:
            yield call(*call.x), x + call.replaced(name, np.zeros_like(x))
        return
    assert name is not None
    adding, found = lookup(name), call(*call.x)
    y = np.asarray(call.rng.integers(0, 9, found.shape)).astype(found.dtype)
    shared = {n: v for n, v in call.attributes.items() if n in adding.attributes}
    yield found + y, adding.evaluate([y, *call.x], shared)


def in_place(call: Call) -> Iterator[Pair]:
    change = call.operator.memory.in_place
    assert change is not None and change.write is not None
    copied = [x.copy() for x in call.x]
    change.write(*copied, **call.attributes)
    yield copied[change.operand], call(*call.x)


def joins(call: Call) -> Iterator[Pair]:
    """Where no axis before has several elements, the operands' elements stand one operand after the other."""
    found, along = call(*call.x), call.attributes[str(call.operator.memory.joins)]
    if all(n == 1 for n in found.shape[: along % found.ndim]):
        yield found.reshape(-1), np.concatenate([x.reshape(-1) for x in call.x])


def columns(call: Call) -> Iterator[Pair]:
    rule = call.operator.algebra.columns
    assert rule is not None
    found = rule(*(x.shape for x in call.x), **call.attributes)
    if found is not None and call.x[-1].shape[found.axis] > 1 and call.x[-1].size:
        *rest, last = call.x
        if found.joins:
            parts = np.split(last, [1], axis=found.axis)
            yield call(*call.x), np.concatenate([call(*rest, p) for p in parts], axis=found.result_axis)
        changed = last.copy()
        changed[(slice(None),) * (found.axis % last.ndim) + (0,)] += 1
        kept = (slice(None),) * (found.result_axis % call(*call.x).ndim) + (slice(1, None),)
        if found.joins:
            yield call(*rest, changed)[kept], call(*call.x)[kept]


def emitted(make: Callable[..., Any], operands: list[Array]) -> Array | None:
    """What `make` emits for symbolic values, on these arrays; None where it makes nothing."""
    emitter = Emitter()
    variables = [Var("x", Sample(OPERATORS["add"], (x,), {}).types[0]) for x in operands]
    made = make(*map(emitter.value, variables))
    if made is None:
        return None
    values = dict(zip(variables, operands, strict=True))
    evaluate(emitter, values)
    return values[made.atom]


def rounds(call: Call, marked: tuple[bool, ...]) -> tuple[list[Array], list[Array]]:
    """Operands of three rounds, and the results of each."""
    each = [[call.other(x) if m else x for x, m in zip(call.x, marked, strict=True)] for _ in range(3)]
    whole = [np.stack([r[i] for r in each]) if m else x for i, (x, m) in enumerate(zip(call.x, marked, strict=True))]
    return whole, [call(*r) for r in each]


def summed(call: Call) -> Iterator[Pair]:
    rule = call.operator.batching.summed
    assert rule is not None
    whole, results = rounds(call, (True,) * len(call.x))
    found = emitted(functools.partial(rule, **call.attributes), whole)
    if found is not None:
        yield found, np.sum(results, axis=0)


def on_dims(call: Call) -> Iterator[Pair]:
    rule = call.operator.on_dims
    assert rule is not None
    wraps = str(call.attributes.get("dtype", "")).startswith("uint")
    for numbers in ((7, 3), (3, 3)) if wraps else ((7, 3), (-7, 3), (3, 3)):
        operands = [np.array(n, np.int64) for n in numbers[: len(call.x)]]
        given = {n: v for n, v in call.attributes.items() if call.operator.name == "cast"}
        found = rule(*map(int, operands), **given)
        if isinstance(found, DimConstraint):
            assert isinstance(found.left, int) and isinstance(found.right, int)
            yield found.holds(found.left, found.right), bool(call.operator.evaluate(operands, given))
        elif found is not None:
            yield found, int(call.operator.evaluate(operands, given))


OTHER_LAYOUTS = {"NCW": "NWC", "NCHW": "NHWC", "NCDHW": "NDHWC"}
OTHER_LAYOUTS |= {b: a for a, b in OTHER_LAYOUTS.items()}


def layouts(call: Call) -> Iterator[Pair]:
    """The call in the other layout, on transposed operands, gives the transposed result."""
    rule = call.operator.layouts
    assert rule is not None
    for names, array in zip(rule(**call.attributes), [*call.x, call(*call.x)], strict=True):
        yield len(names), array.ndim
    if call.attributes.get("layout") in OTHER_LAYOUTS:
        other = OTHER_LAYOUTS[call.attributes["layout"]]
        before, after = rule(**call.attributes), rule(**{**call.attributes, "layout": other})
        orders = [[a.index(name) for name in b] for a, b in zip(before, after, strict=True)]
        operands = [np.ascontiguousarray(x.transpose(o)) for x, o in zip(call.x, orders, strict=False)]
        yield call(*operands, layout=other), call(*call.x).transpose(orders[-1])


FACTS: dict[str, Callable[[Call], Iterator[Pair]]] = {
    f.__name__: f
    for f in (
        commutative, associative, idempotent, involution, coercion, forwards, identity, linear, jointly_linear,
        homogeneous, fill, kind, axis, reduction_axes, accumulates, in_place, joins, columns, summed, on_dims,
        layouts,
    )
}  # fmt: skip
PATTERNS = {Pattern.ELEMENTWISE: elementwise, Pattern.BROADCAST: elementwise, Pattern.INJECTIVE: injective}
EXACT = ("identity", "forwards", "fill", "kind", "on_dims", "coercion", "joins")
"""Those without any arithmetic, which hold for special numbers, too."""


def fact_of(operator: Operator, name: str) -> Any:
    """What a definition says by a name, in a facet or beside them."""
    owners = [facet for facet in FACETS if name in (field.name for field in attrs.fields(FACETS[facet]))]
    return getattr(getattr(operator, owners[0]), name) if owners else getattr(operator, name)


def declared(operator: Operator) -> Iterator[Callable[[Call], Iterator[Pair]]]:
    for name, fact in FACTS.items():
        said = fact_of(operator, name)
        if fact is in_place and said is not None and said.write is None:
            continue  # compiled code only
        if said is None or said == () or said is UNDEFINED or (said is False and name != "identity"):
            continue
        yield fact
    if operator.pattern in PATTERNS and operator.operands and (operator.composition is None or operator.compute):
        yield PATTERNS[operator.pattern]


def check(operator: Operator, fact: Callable[[Call], Iterator[Pair]]) -> int:
    """How often a fact was seen to hold."""
    seen = 0
    exact, special = fact.__name__ in EXACT, fact.__name__ in EXACT or fact is elementwise
    for sample in OF[operator.name]:
        rounded = any(
            o.dtype.kind not in "iubf" or (o.dtype.kind == "f" and o.dtype.itemsize < 8) for o in sample.operands
        )
        if (operator.variadic and fact is not joins) or (rounded and not exact) or (sample.extreme and not special):
            continue
        bound = 0 if exact else 1e-12
        with np.errstate(all="ignore"):
            for left, right in fact(Call(operator, sample)):
                np.testing.assert_allclose(left, right, rtol=bound, atol=bound, err_msg=f"{fact.__name__}: {sample}")
                seen += np.size(left) > 0
    return seen


@pytest.mark.parametrize("name", [n for n, o in OPERATORS.items() if any(declared(o))])
def test_facts_hold(name: str) -> None:
    operator = OPERATORS[name]
    for fact in declared(operator):
        seen = check(operator, fact)
        indices = all(o.dtype.kind in "iu" for s in OF[name] for o in s.operands)
        assert seen or (operator.variadic and fact is not joins) or (fact is injective and indices), fact.__name__


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("subtract", Algebra(commutative=True)), ("divide", Algebra(associative=True, commutative=True)),
        ("square", Algebra(idempotent=True)), ("add", Algebra(idempotent=True)),
        ("abs", Algebra(involution=True)), ("add", Algebra(identity=0.0)), ("power", Algebra(identity=2)),
        ("square", Algebra(linear=(0,))),
        ("divide", Algebra(linear=(1,))), ("multiply", Algebra(jointly_linear=True)),
        ("exp", Algebra(homogeneous=True)),
        ("cumsum", {"pattern": Pattern.INJECTIVE}),
        ("flip", Memory(fill=0)), ("cumsum", Indexing(kind=IndexKind.PERMUTE)), ("relu", Algebra(coercion=True)),
        ("flip", Indexing(kind=IndexKind.RESHAPE)), ("flip", Indexing(kind=IndexKind.PERMUTE)),
        ("cumsum", Indexing(reduction_axes="axis")), ("argsort", Indexing(reduction_axes="axis")),
        ("update_slice", Algebra(accumulates=0)), ("minimum", {"on_dims": lambda x, y: x}),
        ("softmax", {"pattern": Pattern.ELEMENTWISE}), ("cumsum", Memory(joins="axis")),
    ],
)  # fmt: skip
def test_what_is_not_true_is_found(name: str, said: Any) -> None:
    parts = said if isinstance(said, dict) else {type(said).__name__.lower(): said}
    operator = attrs.evolve(OPERATORS[name], **parts)
    with pytest.raises(AssertionError):
        for fact in declared(operator):
            check(operator, fact)


def test_no_fact_is_true_of_one_operator_only() -> None:
    """Which would be its name in other words."""
    for facet, type_ in FACETS.items():
        for field in attrs.fields(type_):
            said = [o.name for o in OPERATORS.values() if getattr(getattr(o, facet), field.name) is not field.default]
            assert len(said) > 1, f"{field.name} in {facet}: {said}"


@pytest.mark.parametrize("name", [name for name, o in OPERATORS.items() if o.algebra.maps_over_tree])
def test_identities_map_over_structures(name: str) -> None:
    pair = relay.from_source(f"def f(x):\n    return relay.{name}((x, x * 2.0))\n", {"relay": relay})
    first, second = pair.interpret(np.array([1.0, 2.0]))
    np.testing.assert_array_equal((first, second), ([1.0, 2.0], [2.0, 4.0]))
