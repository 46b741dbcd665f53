"""The types of functions of whose arguments nothing is known: they print, parse back, and say what calls then find."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from operator_samples import OPERATORS, samples
from zoo import Program, programs

import relay as R
from relay import Float, Tensor, relay
from relay.ir.types import (
    ClassConstraint,
    Equation,
    FunctionType,
    QuantifiedType,
    TensorType,
    Type,
    TypeId,
    mentioned_definitions,
)
from relay.operator import Relation, get_env, lookup, operators
from relay.operator.relation import substitute
from relay.text.type_parser import parse_type
from relay.typecheck import relations, shape_rules, windows

n, m = R.dims("n m")
s, t = R.shape_var("s"), R.shape_var("t")
b = R.base_type_var("b")
A = R.type_var("A")


def parsed(type_: Type) -> Type:
    """A type from its text."""
    data = mentioned_definitions([type_.body if isinstance(type_, QuantifiedType) else type_])
    return parse_type(str(type_), data=data)


PROGRAMS = list({p.name: p for p in programs()}.values())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_every_program_has_a_type_that_parses_back(program: Program) -> None:
    type_ = program.function.type
    assert str(parsed(type_)) == str(type_)
    assert "_" not in str(type_).replace(",", " ").replace(")", " ").split()


@relay
def added(x, y):
    return x + y


@relay
def added_twice(x, y):
    return x + y + x


@relay
def accumulated(x, c, k: int):
    for _ in range(k):
        x = x + c
    return x


@relay
def mean_of(x):
    return x.mean()


@relay
def last_mean(x):
    return x.mean(axis=-1)


@relay
def applied(w: Tensor[b, (n, m)], x: Tensor[b, (*s, n)]):
    return x @ w


@relay
def joined(x: Tensor[Float, (*s, n)], y: Tensor[Float, (*s, m)]) -> Tensor[Float, (*s, n + m)]:
    return R.concatenate((x, y), axis=-1)


@relay
def first(x):
    return x[0]


@relay
def rows(xs):
    total = 0.0
    for x in xs:
        total = total + x
    return total


@relay
def behind_the_first(x, i):
    return x[1:, ::2, i]


@relay
def half():
    return 0.5


@relay
def sum_of_halves(x: Tensor[Float, (n,)]) -> Tensor[Float, ()]:
    if n <= 1:
        return x.sum()
    return sum_of_halves(x[: n // 2]) + sum_of_halves(x[n // 2 :])


@relay
def with_equal_sizes(x: Tensor[Float, (n, m)]):
    if n != m:
        return x
    return x + x.T


@relay
def without_the_first(x: Tensor[Float, (n,)]):
    if x.shape[0] > 3:
        x = x[1:]
    return x


@relay
def shorter_if_long(x: Tensor[Float, (n,)]):
    if x.shape[0] > 3:
        return x[1:]
    return x


@relay
def fourth(x: Tensor[Float, (n,)]):
    return x[3] if n > 3 else 0.0


@relay
def between(x: Tensor[Float, (n,)]):
    return x[1] if n > 1 and n < 5 else 0.0


@relay
def fourth_if_wanted(x: Tensor[Float, (n,)], wanted: bool):
    return x[3] if wanted else 0.0


@relay
def second_and_fourth_if_wanted(x: Tensor[Float, (n,)], wanted: bool):
    fourth = x[3] if wanted else 0.0
    return fourth + x[1]


@relay
def second_and_fourth_after_another(x: Tensor[Float, (n,)], wanted: bool):
    def fourth(y):
        if not wanted:
            return 0.0
        return y[3]

    return fourth(x) + x[1]


@relay
def every_second(x: Tensor[Float, (n,)]):
    if n < 2:
        return 0.0
    return x[0] + every_second(x[2:])


@relay
def rotated(x: Tensor[Float, (n,)]):
    if n < 2:
        return x
    return R.concatenate((rotated(x[1:]), x[:1]))


@relay
def all_tails(x: Tensor[Float, (n,)]):
    if n < 2:
        return x
    return R.concatenate((x, all_tails(x[1:])))


@relay
def common_part(x: Tensor[Float, (n,)], y: Tensor[Float, (m,)]):
    shared = min(x.shape[0], y.shape[0])
    return x[:shared] + y[:shared]


@relay
def summed_rows(x):
    return x.sum(axis=0)


@relay
def less_the_first_row(x: Tensor[Float, (n, *s)]):
    return x.sum(axis=0) - x[0]


@relay
def rows_behind(x: Tensor[Float, (n, m, *s)]):
    return x[1:, 0]


@relay
def fourth_if_two(x: Tensor[Float, (n,)]):
    return x[3] if n > 1 else 0.0


@relay
def shorter_if_asked(x: Tensor[Float, (n,)], wanted: bool):
    if wanted and n > 3:
        return x[1:].sum()
    return x[1]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (
            added,
            "forall (bt: BaseType) (s1: Shape) (s2: Shape). fn(Tensor[bt, s1], Tensor[bt, s2])"
            " -> Tensor[bt, broadcast(s1, s2)] where bt is float or int",
        ),
        (
            added_twice,
            "forall (bt: BaseType) (s1: Shape) (s2: Shape). fn(Tensor[bt, s1], Tensor[bt, s2])"
            " -> Tensor[bt, broadcast(s1, s2)] where bt is float or int",
        ),
        (
            accumulated,
            "forall (bt: BaseType) (s1: Shape) (s2: Shape). fn(Tensor[bt, s1], Tensor[bt, s2], Tensor[int32, ()])"
            " -> Tensor[bt, s1] where broadcast(s1, s2) == s1, bt is float or int",
        ),
        (
            mean_of,
            "forall (bt: BaseType) (s1: Shape). fn(Tensor[bt, s1]) -> Tensor[bt, ()] where bt is float",
        ),
        (
            last_mean,
            "forall (bt: BaseType) (s1: Shape)."
            " fn(Tensor[bt, s1]) -> Tensor[bt, reduce(s1, axis=-1)] where bt is float",
        ),
        (
            applied,
            "forall (n: Dim) (m: Dim) (b: BaseType) (s: Shape). fn(Tensor[b, (n, m)], Tensor[b, (*s, n)])"
            " -> Tensor[b, (*s, m)] where b is float or int",
        ),
        (
            joined,
            "forall (n: Dim) (m: Dim) (s: Shape). fn(Tensor[float32, (*s, n)], Tensor[float32, (*s, m)])"
            " -> Tensor[float32, (*s, m + n)]",
        ),
        (first, "forall (A: Type). fn(A) -> index(A, 0)"),
        (behind_the_first, 'forall (A: Type) (A2: Type). fn(A, A2) -> index(A, A2, at="1:, ::2, ?")'),
        (
            common_part,
            "forall (n: Dim) (m: Dim). fn(Tensor[float32, (n,)], Tensor[float32, (m,)])"
            " -> Tensor[float32, (min(m, n),)]",
        ),
        (
            summed_rows,
            "forall (bt: BaseType) (s1: Shape)."
            " fn(Tensor[bt, s1]) -> Tensor[bt, reduce(s1, axis=0)] where bt is float or int",
        ),
        (
            less_the_first_row,
            "forall (n: Dim) (s: Shape). fn(Tensor[float32, (n, *s)]) -> Tensor[float32, s] where n >= 1",
        ),
        (
            rows_behind,
            "forall (n: Dim) (m: Dim) (s: Shape). fn(Tensor[float32, (n, m, *s)]) -> Tensor[float32, (n - 1, *s)]"
            " where n >= 1, m >= 1",
        ),
        (half, "forall (bt: BaseType). fn() -> Tensor[bt, ()] where bt is float"),
        (sum_of_halves, "forall (n: Dim). fn(Tensor[float32, (n,)]) -> Tensor[float32, ()]"),
        (with_equal_sizes, "forall (n: Dim) (m: Dim). fn(Tensor[float32, (n, m)]) -> Tensor[float32, (n, m)]"),
        (without_the_first, "forall (n: Dim). fn(Tensor[float32, (n,)]) -> Tensor[float32, (Any,)]"),
        (shorter_if_long, "forall (n: Dim). fn(Tensor[float32, (n,)]) -> Tensor[float32, (Any,)]"),
        (fourth, "forall (n: Dim). fn(Tensor[float32, (n,)]) -> Tensor[float32, ()]"),
        (between, "forall (n: Dim). fn(Tensor[float32, (n,)]) -> Tensor[float32, ()]"),
        (every_second, "forall (n: Dim). fn(Tensor[float32, (n,)]) -> Tensor[float32, ()]"),
        (rotated, "forall (n: Dim). fn(Tensor[float32, (n,)]) -> Tensor[float32, (n,)]"),
        (all_tails, "forall (n: Dim). fn(Tensor[float32, (n,)]) -> Tensor[float32, (Any,)]"),
        (fourth_if_two, "forall (n: Dim). fn(Tensor[float32, (n,)]) -> Tensor[float32, ()]"),
        (fourth_if_wanted, "forall (n: Dim). fn(Tensor[float32, (n,)], Tensor[bool, ()]) -> Tensor[float32, ()]"),
        (
            second_and_fourth_if_wanted,
            "forall (n: Dim). fn(Tensor[float32, (n,)], Tensor[bool, ()]) -> Tensor[float32, ()] where n >= 2",
        ),
        (
            second_and_fourth_after_another,
            "forall (n: Dim). fn(Tensor[float32, (n,)], Tensor[bool, ()]) -> Tensor[float32, ()] where n >= 2",
        ),
        (shorter_if_asked, "forall (n: Dim). fn(Tensor[float32, (n,)], Tensor[bool, ()]) -> Tensor[float32, ()]"),
    ],
    ids=lambda x: x.__name__ if isinstance(x, R.RelayFunction) else "",
)
def test_most_general_types(function: R.RelayFunction, text: str) -> None:
    assert str(function.type) == text
    assert str(parsed(function.type)) == text


def test_what_a_loop_over_anything_gives() -> None:
    assert str(rows.type) == "forall (A: Type). fn(A) -> loop(A)"
    assert rows.interpret((1.0, 2.0)) == 3.0
    assert rows.interpret(np.float32([1, 2])) == 3.0


def test_a_type_with_many_applications_stays_short() -> None:
    lines = ["def f(x0, w):", *(f"    x{i + 1} = x{i} @ w + x{i}" for i in range(400)), "    return x400"]
    function = R.from_source("\n".join(lines))
    text = str(function.type)
    assert len(text) < 60_000  # linear: 400 lines of two operations
    assert str(parsed(function.type)) == text


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_the_types_of_operators_parse_back_and_say_what_calls_find(name: str) -> None:
    sample = next(samples(OPERATORS[name]))
    operands = [f"x{i}" for i in range(len(sample.operands))]
    given = [f"({', '.join(operands)},)"] if sample.operator.variadic else operands
    attributes = [f"{key}=attribute_{key}" for key in sample.attributes]
    if name == "einsum":  # its text comes first
        given, attributes = ["attribute_subscripts", *operands], []
    elif name == "meshgrid":
        given = operands
    text = f"def f({', '.join(operands)}):\n    return relay.{name}({', '.join([*given, *attributes])})\n"
    names = {f"attribute_{key}": value for key, value in sample.attributes.items()}
    type_ = R.from_source(text, {"relay": R, **names}).type
    assert str(parsed(type_)) == str(type_)
    found = result_at(type_, sample.types)
    assert found is None or found == sample.operator.infer(
        sample.types, {**sample.operator.attributes, **sample.attributes}
    )


def result_at(scheme: Type, arguments: list[Type]) -> Type | None:
    """What a scheme says of a call: its applications evaluated by the rules of operators; None where it leaves that
    to the operator."""
    function = scheme.body if isinstance(scheme, QuantifiedType) else scheme
    assert isinstance(function, FunctionType)
    bound: dict[TypeId, object] = {}
    for parameter, argument in zip(function.parameters, arguments, strict=True):
        if isinstance(parameter, TypeId):
            bound[parameter] = argument
        else:
            assert isinstance(parameter, TensorType)
            assert bound.setdefault(parameter.base, argument.base) == argument.base
            assert bound.setdefault(parameter.shape[0], argument.shape) == argument.shape
    for constraint in function.where:
        if isinstance(constraint, ClassConstraint):
            assert bound[constraint.base].base_class in constraint.classes
        elif isinstance(constraint, Equation):
            rule = rule_of(constraint.application.function)
            shapes = [
                tuple(x for d in a for x in (bound[d] if isinstance(d, TypeId) else (d,)))
                if isinstance(a, tuple)
                else None
                for a in constraint.application.arguments
            ]
            if rule is None or None in shapes:
                return None
            value = rule(shapes, dict(constraint.application.attributes))
            if constraint.value is not None:
                assert bound.setdefault(constraint.value[0], value) == value
    return substitute(function.result, bound)


def rule_of(name: str) -> Callable[..., object] | None:
    """The shape rule that an application names."""
    if name in get_env().names():
        operator = lookup(name)
        if not isinstance(operator.relation, Relation):
            return None
        relation = operator.relation
        return lambda shapes, given: relation.apply(shapes, operator.variadic, {**operator.attributes, **given})
    places = [(module, key) for module in (relations, shape_rules, windows) for key in (name, f"{name}_shape")]
    rule = next(r for module, key in places if (r := getattr(module, key, None)))
    variadic = {o.relation.shape: o.variadic for o in operators() if isinstance(o.relation, Relation)}
    return lambda shapes, attributes: Relation("T -> T", rule).apply(shapes, variadic.get(rule, False), attributes)


# ---- annotations are checked: their variables stand for whatever a call gives


@relay
def same_shape(x: Tensor[Float, s]) -> Tensor[Float, s]:
    return x * 2.0


@relay
def flattened(x: Tensor[Float, (*s, n)]) -> Tensor[Float, s]:
    return x


@relay
def converted(x: Tensor[b, (n,)]) -> Tensor[b, (n,)]:
    return x.astype(R.Float32)


@relay
def both(x: Tensor[Float, s], y: Tensor[Float, t]) -> Tensor[Float, s]:
    return y


@relay
def anything(x: A) -> A:
    return x + 1.0


def test_variables_of_annotations_are_not_chosen_by_the_body() -> None:
    assert str(same_shape.type) == "forall (s: Shape). fn(Tensor[float32, s]) -> Tensor[float32, s]"
    for function, reason in (
        (flattened, "s is annotated as any shape"),
        (converted, "b is annotated as any element type, so it is not float32"),
        (both, "t is annotated as any shape, so it is not s"),
        (anything, "A is annotated as any type"),
    ):
        with pytest.raises(R.TypeMismatch) as caught:
            function.type  # noqa: B018
        assert any(reason in text for text in (caught.value.message, *caught.value.notes)), str(caught.value)


@relay
def square_image(pixels: Tensor[Float, (n * n,)]):
    return pixels.reshape((n, n)) * 2.0


@relay
def small_image(pixels: Tensor[Float, (16,)]):
    return square_image(pixels)


@relay
def other_image(pixels: Tensor[Float, (m * m,)]):
    return square_image(pixels)


@relay
def halves(x: Tensor[Float, (n // 2,)]):
    return R.exp(x)


@relay
def products(x: Tensor[Float, ((n + 1) * (n - 1),)], y: Tensor[Float, (n * n - 1,)]):
    return x + y


def test_variables_that_stand_only_in_products_and_quotients() -> None:
    assert str(square_image.type) == "forall (n: Dim). fn(Tensor[float32, (n*n,)]) -> Tensor[float32, (n, n)]"
    assert str(small_image.type) == "fn(Tensor[float32, (16,)]) -> Tensor[float32, (4, 4)]"
    assert str(other_image.type) == "forall (m: Dim). fn(Tensor[float32, (m*m,)]) -> Tensor[float32, (m, m)]"
    assert str(halves.type) == "forall (n: Dim). fn(Tensor[float32, (n//2,)]) -> Tensor[float32, (n//2,)]"
    assert str(products.type).count("(n*n - 1,)") == 3
    assert square_image(np.ones(25, np.float32)).shape == (5, 5)
    assert np.array_equal(products(np.ones(3, np.float32), np.ones(3, np.float32)), np.full(3, 2, np.float32))


def test_a_size_that_arguments_do_not_tell_is_named() -> None:
    with pytest.raises(R.ShapeError, match=r"n cannot be found from n\*n == 5"):
        square_image(np.ones(5, np.float32))
    with pytest.raises(R.ShapeError, match=r"n cannot be found from n//2 == 4"):
        halves(np.ones(4, np.float32))


def test_items_of_what_has_become_a_tuple_are_no_equations() -> None:
    @relay
    def picked(pair, is_whole: bool):
        first = pair[0]
        return pair if is_whole else (first * 2.0, pair[1])

    pair = "(Tensor[bt, s1], A)"
    quantified = "forall (bt: BaseType) (s1: Shape) (A: Type)"
    assert str(picked.type) == f"{quantified}. fn({pair}, Tensor[bool, ()]) -> {pair} where bt is float"


@pytest.mark.parametrize(
    "body",
    [
        "g = (lambda v, w: v * w) if c else (lambda v, w: v + w)\n    h = lambda v: g(v, x)\n    return x",
        "g = (lambda v: v * v) if c else (lambda v: v)\n    d = relay.grad(g)\n    return x",
        "g = (lambda v: v @ v) if c else (lambda v: v * 2.0)\n    h = lambda v, w: g(v) + w\n    return x",
        "fs = [lambda v: v * 2.0, lambda v: v[0]]\n    return x",
    ],
)
def test_nobody_has_to_tell_what_functions_take_that_nothing_calls(body: str) -> None:
    function = R.from_source(f"def f(x, c):\n    {body}\n", {"relay": R.relay})
    assert isinstance(function, R.RelayFunction)
    assert str(function.type).startswith("forall (A: Type")
    assert np.asarray(function.interpret(np.arange(3.0), True)).tolist() == [0.0, 1.0, 2.0]


def test_what_decides_a_branch_is_one_number() -> None:
    """Of a parameter of any shape, too: Python's numbers are true if they are not 0."""
    texts = {
        "def f(k, m):\n    a, b = abs(k) + 12, abs(m) + 1\n    while b:\n        a, b = b, a % b\n    return a\n": (
            "forall (bt: BaseType). fn(Tensor[bt, ()], Tensor[bt, ()]) -> Tensor[bt, ()] where bt is float or int"
        ),
        "def f(x, k):\n    assert k % 3\n    return x if not (k // 2) else -x\n": (
            "forall (bt: BaseType) (s1: Shape) (bt2: BaseType). fn(Tensor[bt, s1], Tensor[bt2, ()]) -> Tensor[bt, s1]"
            " ! {assert} where bt is float or int, bt2 is float or int"
        ),
        "def f(x):\n    return x[0] * 2 if x[0] else x[1]\n": (
            "forall (A: Type) (bt: BaseType) (s1: Shape). fn(A) -> Tensor[bt, s1]"
            " where index(A, 0), index(A, 0) == Tensor[bt, s1], index(A, 1) == Tensor[bt, s1], bt is float or int"
        ),
    }
    for text, expected in texts.items():
        function = R.from_source(text)
        assert isinstance(function, R.RelayFunction) and str(function.type) == expected, text
