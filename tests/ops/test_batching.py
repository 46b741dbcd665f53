"""Every operator's batching rule: the batched call gives what a loop of single calls gives.

The number of examples is static in half of the checks and symbolic in the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import pytest
from matrix import SEED
from operator_samples import OF, OPERATORS, Array, Sample, as_list

import relay
from relay import Relation, Tensor, register_op
from relay.errors import RelayError, ShapeError, TypeMismatch
from relay.eval import interpreter
from relay.ir.dims import Dim, Kind, TypeId
from relay.ir.expr import Block, Constant, Exit, Function, Loop, LoopLabel, Module, Var
from relay.operator import (
    LOOP,
    Batch,
    Batching,
    Emitter,
    Indexing,
    IndexKind,
    Operator,
    Pattern,
    Value,
    batch_call,
)
from relay.operator.batching import batch_body, batching_rule
from relay.ops.batching import same_call

EXAMPLES = 3
LOOPING = {
    "conv1d", "conv2d", "conv3d",  # in blocks of channels
    "characters", "parse_float", "parse_integer",  # which Python writes and reads
}  # fmt: skip
"""Operators some of whose batched calls are loops; and those convolutions where the number of examples is symbolic."""
BATCHED = {name: operator for name, operator in OPERATORS.items() if operator.operands}


def combinations(count: int) -> list[tuple[bool, ...]]:
    """All operands together, each alone, and all pairs."""
    alone = [tuple(i == place for i in range(count)) for place in range(count)]
    pairs = [tuple(i in pair for i in range(count)) for pair in itertools.combinations(range(count), 2)]
    return list(dict.fromkeys([(True,) * count, *alone, *pairs]))


def checks(operator: Operator, rng: np.random.Generator) -> Iterator[tuple[Sample, tuple[bool, ...]]]:
    """Samples and what is batched in them: for the first sample of each number of operands all of it, then one."""
    counts = set()
    for sample in chosen_samples(operator):
        every = combinations(len(sample.operands))
        if len(every) > 2 and len(sample.operands) in counts:
            every = [every[i] for i in rng.choice(len(every), 1)]
        counts.add(len(sample.operands))
        yield from ((sample, marked) for marked in every)


def chosen_samples(operator: Operator) -> list[Sample]:
    """Each dtype, and each choice of attributes and ranks, at least once; one without elements."""
    seen: set[Any] = set()
    found = []
    for sample in OF[operator.name]:
        if sample.extreme:
            continue
        dtypes = tuple(o.dtype.name for o in sample.operands)
        ranks = tuple((o.ndim, o.size == 0) for o in sample.operands)
        call = (ranks, repr(sorted(sample.attributes.items(), key=str)))
        if dtypes not in seen or call not in seen:
            seen |= {dtypes, call}
            found.append(sample)
    return found


def examples(sample: Sample, marked: Sequence[bool], rng: np.random.Generator) -> list[list[Array]]:
    """The operands of each example: those that are marked have their elements in other orders."""

    def other(operand: Array) -> Array:
        return np.asarray(rng.permutation(operand.reshape(-1))).reshape(operand.shape)

    found = [
        [other(o) if m and number else o for o, m in zip(sample.operands, marked, strict=True)]
        for number in range(EXAMPLES)
    ]
    try:
        for operands in found:
            sample.operator.evaluate(operands, sample.attributes)
    except (RelayError, IndexError, ZeroDivisionError):  # numbers that the operator refuses in this order
        return [list(sample.operands)] * EXAMPLES
    return found


def batched_results(
    sample: Sample, operands: list[Array], marked: Sequence[bool], size: Dim
) -> tuple[list[Array], bool]:
    """The results of the batched call, by the interpreter, and whether there is a loop in it. `size`: the number of
    examples, in types."""
    emitter = Emitter()
    types = [Constant(o).type for o in operands]
    types = [attrs.evolve(t, shape=(size, *t.shape[1:])) if m else t for t, m in zip(types, marked, strict=True)]
    parameters = [Var(f"x{i}", type_) for i, type_ in enumerate(types)]
    made = batch_call(sample.operator, [emitter.value(p) for p in parameters], marked, sample.attributes)
    assert made is not None
    label = LoopLabel("main")
    body = Block(tuple(emitter.bindings), Exit(label, (made.atom,)))
    module = Module({"main": Function("main", tuple(parameters), body, label, made.type)}, "main")
    loops = any(isinstance(b.value, Loop) for b in emitter.bindings)
    return as_list(interpreter.run(module, operands)), loops


def check(sample: Sample, marked: tuple[bool, ...], rng: np.random.Generator, size: Dim = EXAMPLES) -> bool:
    """Compare a batched call with a loop of single calls; whether the batched call is a loop."""
    each = examples(sample, marked, rng)
    whole = [
        np.stack([e[i] for e in each]) if m else o for i, (o, m) in enumerate(zip(sample.operands, marked, strict=True))
    ]
    singles = [as_list(sample.operator.evaluate(e, sample.attributes)) for e in each]
    found, loops = batched_results(sample, whole, marked, size)
    for number, result in enumerate(found):
        expected = np.stack([s[number] for s in singles])
        assert result.dtype == expected.dtype and result.shape == expected.shape, (sample, marked)
        bound = tolerance(expected)
        np.testing.assert_allclose(
            result.astype(wide(expected)),
            expected.astype(wide(expected)),
            rtol=bound,
            atol=bound,
            err_msg=f"{sample} {marked}",
        )
    return loops


def tolerance(array: Array) -> float:
    """Sums in another order are rounded otherwise."""
    return {"float64": 1e-12, "float32": 2e-5, "float16": 1e-2, "bfloat16": 6e-2}.get(array.dtype.name, 0)


def wide(array: Array) -> Any:
    return np.float64 if "float" in array.dtype.name else array.dtype


@pytest.mark.parametrize("name", BATCHED)
def test_a_batched_call_is_a_loop_of_calls(name: str) -> None:
    operator, rng = BATCHED[name], np.random.default_rng(SEED)
    for number, (sample, marked) in enumerate(checks(operator, rng)):
        looped = check(sample, marked, rng, TypeId("n", Kind.Dim) if number % 2 else EXAMPLES)
        groups = "groups" in sample.attributes and number % 2  # whose number is an attribute
        assert not looped or groups or name in LOOPING, f"{sample} {marked}"


def test_those_that_are_loops_say_so() -> None:
    said = {name for name, operator in BATCHED.items() if batching_rule(operator) is LOOP}
    assert said == {"characters", "parse_float", "parse_integer"}


def test_operators_with_a_gradient_of_their_own_stay() -> None:
    """A batched call of their body would have another derivative."""
    own = [name for name, operator in BATCHED.items() if operator.composition is not None and operator.gradient]
    assert len(own) > 9
    assert [name for name in own if batching_rule(OPERATORS[name]) is batch_body] == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("softmax", {"batching": Batching(rule=same_call)}), ("cumsum", {"pattern": Pattern.ELEMENTWISE}),
        ("reverse_sequence", {"indexing": Indexing(axis="axis"), "batching": Batching()}),
        ("take", {"batching": Batching(), "indexing": Indexing(axis="axis")}),
        ("sum", {"pattern": Pattern.BROADCAST}),
        ("tril", {"indexing": Indexing(kind=IndexKind.RESHAPE), "batching": Batching()}),
    ],
)  # fmt: skip
def test_a_wrong_rule_is_found(name: str, said: dict[str, Any]) -> None:
    operator, rng = attrs.evolve(OPERATORS[name], **said), np.random.default_rng(SEED)
    with pytest.raises((AssertionError, TypeMismatch)):
        for sample, marked in checks(operator, rng):
            assert not check(attrs.evolve(sample, operator=operator), marked, rng)


# ---- operators of users


@pytest.fixture
def nothing_is_left_behind() -> Iterator[None]:
    before = relay.get_env().names()
    yield
    for name in set(relay.get_env().names()) - set(before):
        del relay.get_env()._operators[name]


def sorted_rows(x: Tensor) -> Tensor:
    """Each row in order. x: (T, (n,)) -> (T, (n,))."""
    return np.sort(x)


def vector(shape: Any) -> Any:
    if len(shape) != 1:
        raise ShapeError("sorted_rows takes a vector")
    return shape


X = np.array([[3.0, 1.0, 2.0], [0.0, -1.0, 5.0]])
ROWS: dict[str, Any] = {"relation": Relation("T:float -> T", vector), "compute": lambda x: x, "no_gradient": "a test"}


@pytest.mark.usefixtures("nothing_is_left_behind")
@pytest.mark.parametrize("examples", [0, 2])
def test_an_operator_without_a_rule_is_called_in_a_loop(examples: int) -> None:
    operator = register_op(**ROWS)(sorted_rows)
    (found,), looped = batched_results(Sample(operator, (X[0],), {}), [X[:examples]], (True,), examples)
    np.testing.assert_array_equal(found, np.sort(X[:examples]))
    assert looped
    tight = register_op(**ROWS, name="tight", pattern=Pattern.ELEMENTWISE)(sorted_rows)  # but its type takes vectors
    assert batched_results(Sample(tight, (X[0],), {}), [X], (True,), 2)[1]


@pytest.mark.usefixtures("nothing_is_left_behind")
def test_a_rule_of_the_users() -> None:
    calls = []

    def rule(batch: Batch, x: Value) -> Value:
        calls.append(batch)
        return x.op("sort", axis=-1)

    operator = register_op(**ROWS, batching=relay.Batching(rule=rule))(sorted_rows)
    (found,), looped = batched_results(Sample(operator, (X[0],), {}), [X], (True,), 2)
    np.testing.assert_array_equal(found, np.sort(X))
    assert not looped and (calls[0].size, calls[0].rank()) == (2, 1)

    wrong = register_op(**ROWS, name="wrong", batching=relay.Batching(rule=lambda batch, x: x.op("sum")))(sorted_rows)
    with pytest.raises(
        TypeMismatch, match=r"the batching rule of wrong gives Tensor\[float64, \(\)\] for 2 examples of"
    ):
        batched_results(Sample(wrong, (X[0],), {}), [X], (True,), 2)


def test_examples_must_be_as_many_in_all_operands() -> None:
    sample = Sample(OPERATORS["add"], (X[0], X[0]), {})
    emitter = Emitter()
    values = [emitter.value(Var("x", Constant(x).type)) for x in (X, X[:1])]
    with pytest.raises(TypeMismatch, match="the operands of add are batched with 2 and 1 examples"):
        batch_call(sample.operator, values, (True, True), {})
