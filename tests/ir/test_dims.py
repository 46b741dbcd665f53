"""Dims: the normal form and its agreement with integers, facts about dims, and modules whose dims are symbolic."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from relay.errors import ExecutionError, FrontendError, InternalError, TypeCheckError
from relay.eval.interpreter import run
from relay.ir import dims
from relay.ir.analysis.alpha import alpha_equal, alpha_hash
from relay.ir.dims import ANY, Dim, Kind, TypeId, Unknown
from relay.ir.sizes.facts import DimConstraint, Facts
from relay.ir.types import FLOAT32, QuantifiedType, TensorType
from relay.operator.relation import substitute
from relay.text.parser import parse
from relay.text.printer import to_text
from relay.text.type_parser import parse_type
from relay.transform.pipeline import optimize

N, M, K = (TypeId(name, Kind.Dim) for name in "nmk")
VARIABLES = (N, M, K)

expressions = st.recursive(
    st.integers(-3, 9) | st.sampled_from(VARIABLES),
    lambda inner: st.tuples(st.sampled_from(["+", "-", "*", "//", "%", "max", "min"]), inner, inner),
    max_leaves=7,
)
sizes = st.fixed_dictionaries({v: st.integers(0, 7) for v in VARIABLES})

_OPERATIONS = {
    "+": (dims.add, int.__add__), "-": (dims.subtract, int.__sub__), "*": (dims.multiply, int.__mul__),
    "//": (dims.floor_divide, int.__floordiv__), "%": (dims.modulo, int.__mod__), "max": (dims.maximum, max),
    "min": (dims.minimum, min),
}  # fmt: skip


def symbolic(expression: object) -> Dim:
    if not isinstance(expression, tuple):
        return expression  # type: ignore[return-value]
    operation, left, right = expression
    return _OPERATIONS[operation][0](symbolic(left), symbolic(right))


def numeric(expression: object, values: dict[TypeId, int]) -> int:
    if isinstance(expression, TypeId):
        return values[expression]
    if isinstance(expression, int):
        return expression
    operation, left, right = expression  # type: ignore[misc]
    return int(_OPERATIONS[operation][1](numeric(left, values), numeric(right, values)))


@given(expressions, sizes)
def test_the_normal_form_has_the_value_of_the_expression(expression: object, values: dict[TypeId, int]) -> None:
    try:
        expected = numeric(expression, values)
        normal = symbolic(expression)
    except ZeroDivisionError:
        assume(False)
    assert dims.evaluate(normal, values) == expected
    bound = dims.lower_bound(normal)
    assert bound is None or bound <= expected


def test_bounds_by_the_sides_of_maxima_and_minima() -> None:
    n, m, k = (TypeId(name, Kind.Dim) for name in "nmk")
    smaller, larger = dims.minimum(n, m), dims.maximum(n, m)
    for dim in (n - smaller, larger - m, n + m - larger, larger - dims.minimum(n, k)):
        assert dims.lower_bound(dim) == 0
    for dim in (smaller - n, n - larger, larger - k):
        assert dims.lower_bound(dim) is None
    assert dims.lower_bound(larger - n + 3) == 3


def test_bounds_of_quotients_of_one_number() -> None:
    """n // 2 is at least n // 4, as often as each is there."""
    n, m = TypeId("n", Kind.Dim), TypeId("m", Kind.Dim)
    assert dims.lower_bound(n // 2 - n // 4) == 0
    assert dims.lower_bound(3 * (n // 2) - 2 * (n // 4) - n // 8 + 1) == 1
    assert dims.lower_bound((n + m) // 3 - (n + m) // 5 + m) == 0
    for unknown in (n // 4 - n // 2, n // 2 - 2 * (n // 4) - n // 8, n // 2 - m // 4, (n - m) // 2 - (n - m) // 4):
        assert dims.lower_bound(unknown) is None


def test_bounds_of_products_follow_from_those_of_their_factors() -> None:
    n, m = TypeId("n", Kind.Dim), TypeId("m", Kind.Dim)

    def least(dim: dims.Dim, bound: int) -> int | None:
        return dims.lower_bound(dim, lambda factor: bound)

    assert least(n * m - n, 2) == 2
    assert least(n * m - n - m + 1, 1) == 0
    assert least(n * n * m - n * m, 3) == 18
    assert least(n * m - n, 0) is None
    assert least(n * m - 3 * n, 2) is None


@given(expressions)
def test_a_dim_is_printed_as_it_is_read(expression: object) -> None:
    try:
        normal = symbolic(expression)
    except ZeroDivisionError:
        assume(False)
    if normal in VARIABLES or isinstance(normal, int):
        return
    names = {v.name: v for v in VARIABLES}
    read = eval(str(normal), {"max": dims.maximum, "min": dims.minimum}, names)
    assert read == normal and hash(read) == hash(normal)


@given(expressions, expressions, expressions)
def test_polynomials_obey_the_laws_of_arithmetic(a: object, b: object, c: object) -> None:
    try:
        x, y, z = symbolic(a), symbolic(b), symbolic(c)
    except ZeroDivisionError:
        assume(False)
    assert dims.add(x, y) == dims.add(y, x)
    assert dims.multiply(x, dims.add(y, z)) == dims.add(dims.multiply(x, y), dims.multiply(x, z))
    assert dims.subtract(dims.add(x, y), y) == x
    if y != 0:
        assert dims.divide_exactly(dims.multiply(x, y), y) == x
        assert dims.add(dims.multiply(dims.floor_divide(x, y), y), dims.modulo(x, y)) == x


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (2 * N + N, 3 * N),
        ((N + 1) * (N - 1), N * N - 1),
        ((2 * N + 3) // 2, N + 1),
        (N * M // M, N),
        (N * 3 // 2, N + N // 2),
        (4 * N % 2, 0),
        (N // 2 // 3, N // 6),
        ((4 * N + 3) // 6, (2 * N + 1) // 3),
        (dims.maximum(N, N + 1, 0), N + 1),
        (dims.minimum(N, M, N), dims.minimum(M, N)),
        ((N * N - M * M) // (N + M), N - M),
        (ANY + 1, ANY),
    ],
)
def test_equal_dims(left: Dim, right: Dim) -> None:
    assert left == right


def test_rounding_down_loses_the_remainder() -> None:
    assert (N // 2) * 2 != N
    assert N - N == 0 and isinstance(N - N, int) and N + 0 is N


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (N * 2 + M - 1, "m + 2*n - 1"),
        (1 - N, "1 - n"),
        (N % 2, "n % 2"),
        ((N + 1) // 2, "(n + 1)//2"),
        (2 * (N // 3) + 1, "2*(n//3) + 1"),
        (dims.maximum(N, M) * N, "max(m, n)*n"),
    ],
)
def test_printing(dim: Dim, text: str) -> None:
    assert str(dim) == text


def test_a_variable_that_is_solved_later_is_replaced() -> None:
    unknown = Unknown(Kind.Dim)
    waiting = unknown * 2 + N
    unknown.binding = N + 1
    assert dims.resolve_dim(waiting) == 3 * N + 2


def test_only_dims_have_arithmetic() -> None:
    with pytest.raises(TypeError, match="only dims"):
        TypeId("s", Kind.Shape) + 1
    with pytest.raises(TypeError):
        N + 1.5  # type: ignore[operator]
    with pytest.raises(InternalError, match="has no size"):
        dims.evaluate(N + M, {N: 1})


# ---- facts


def where(*constraints: tuple[Dim, str, Dim]) -> Facts:
    return Facts(DimConstraint(*c) for c in constraints)


@pytest.mark.parametrize(
    ("facts", "left", "right", "answer"),
    [
        (where(), N, 2 * N - N, True),
        (where(), N, M, None),
        (where(), 2 * N, 2 * M + 1, False),
        (where(), N + 1, N, False),
        (where((N, ">=", 2)), N, 1, False),
        (where((N, ">=", 2)), 2 * N, N, False),
        (where((N, "==", M)), N * K, K * M, True),
        (where((N, "==", M), (M, "==", K)), N, K, True),
        (where((N, "==", M + 1), (N, ">=", 3)), M, 1, False),
        (where((N % 2, "==", 0)), N // 2 * 2, N, True),
        (where(((N + 2) // 3, ">=", 2)), N, 3, False),
        (where((2 * ((N + 2) // 3), ">=", 3)), N, 3, False),
        (where(((N + 2) // 3, ">=", 2)), N, 4, None),
        (where((N % 2, "==", 0)), N // 4 * 4, N, None),
        (where((N - 1, "!=", M)), M + 1, N, False),
        (where((N, ">=", M + 1)), N, M, False),
        (where((N * N, "==", M * M)), M * M, N * N, True),
        (where(), N, ANY, None),
    ],
)
def test_what_follows_from_facts(facts: Facts, left: Dim, right: Dim, answer: bool | None) -> None:
    assert facts.equal(left, right) is answer


@given(
    st.lists(st.tuples(expressions, st.sampled_from(["==", "!=", ">="]), expressions), max_size=3),
    st.tuples(expressions, expressions),
)
def test_facts_never_contradict_numbers_that_satisfy_them(constraints: list[object], question: object) -> None:
    try:
        left, right = map(symbolic, question)  # type: ignore[call-overload]
        known = [DimConstraint(symbolic(a), r, symbolic(b)) for a, r, b in constraints]  # type: ignore[misc]
    except ZeroDivisionError:
        assume(False)
    facts = Facts(known)
    equal, at_least = facts.equal(left, right), facts.at_least(left, right)
    for values in itertools.product(range(4), repeat=3):
        environment = dict(zip(VARIABLES, values, strict=True))
        try:
            if all(c.holds(dims.evaluate(c.left, environment), dims.evaluate(c.right, environment)) for c in known):
                a, b = dims.evaluate(left, environment), dims.evaluate(right, environment)
                assert equal in (None, a == b)
                assert at_least in (None, a >= b)
        except ZeroDivisionError:
            continue


# ---- modules

PROGRAM = """dims n, m where n >= 2 "a reason", m % 2 == 0;

fn twice(%x: Tensor[float32, (n, 4)]) -> Tensor[float32, (2*n, 4)] {
  let %y: Tensor[float32, (2*n, 4)] = concatenate(%x, %x, axis=0);
  %y
}

entry fn main(%x: Tensor[float32, (n, 4)], %k: Tensor[int32, (m,)]) -> (Tensor[float32, ()], Tensor[int64, ()]) {
  let %y: Tensor[float32, (2*n, 4)] = @twice(%x);
  let %z: Tensor[float32, (2*n, m//2 + 1)] = full(shape=(2*n, m//2 + 1), value=1.0, dtype=float32);
  let %s: Tensor[float32, ()] = sum(%y, axis=none, keepdims=false);
  let %t: Tensor[float32, ()] = sum(%z, axis=none, keepdims=false);
  let %u: Tensor[float32, ()] = add(%s, %t);
  let %count: Tensor[int64, ()] = extent[2*n + m, int64];
  let %both: (Tensor[float32, ()], Tensor[int64, ()]) = (%u, %count);
  %both
}"""


@pytest.mark.parametrize(("n", "m"), [(2, 0), (3, 4), (7, 2)])
def test_a_symbolic_module_runs_at_every_size(n: int, m: int) -> None:
    module = parse(PROGRAM)
    arguments = [np.ones((n, 4), np.float32), np.zeros(m, np.int32)]
    for program in (module, optimize(module, 2, checked=True)):
        total, count = run(program, arguments)  # type: ignore[misc]
        assert total == 8 * n + 2 * n * (m // 2 + 1) and count == 2 * n + m


def test_the_text_of_a_symbolic_module_is_read_back() -> None:
    module = parse(PROGRAM)
    assert to_text(parse(to_text(module))) == to_text(module)
    assert alpha_equal(parse(to_text(module)), module)


def test_equality_up_to_the_names_of_dims() -> None:
    renamed = PROGRAM.replace("n, m where n >= 2", "m, q where m >= 2").replace("m % 2", "q % 2")
    renamed = renamed.replace("(m,)", "(q,)").replace("m//2", "q//2").replace("+ m,", "+ q,").replace("n, 4)", "m, 4)")
    renamed = renamed.replace("2*n", "2*m")
    assert alpha_hash(parse(renamed)) == alpha_hash(parse(PROGRAM))
    assert alpha_hash(parse(PROGRAM.replace("n >= 2", "n >= 3"))) != alpha_hash(parse(PROGRAM))
    assert not alpha_equal(parse(PROGRAM.replace("extent[2*n", "extent[n")), parse(PROGRAM))


@pytest.mark.parametrize(
    ("n", "m", "rows", "message"),
    [
        (1, 2, 1, "main needs n >= 2: a reason; found n = 1, m = 2"),
        (2, 3, 2, "main needs m % 2 == 0; found n = 2, m = 3"),
    ],
)
def test_sizes_that_a_module_does_not_assume_are_refused(n: int, m: int, rows: int, message: str) -> None:
    with pytest.raises(ExecutionError, match="main needs") as caught:
        run(parse(PROGRAM), [np.ones((rows, 4), np.float32), np.zeros(m, np.int32)])
    assert caught.value.message == message


def test_axes_of_one_dim_must_agree() -> None:
    module = parse(
        """dims n;
        entry fn main(%x: Tensor[float32, (n,)], %y: (Tensor[float32, (n, n + 1)],)) -> Tensor[float32, (n,)] { %x }"""
    )
    with pytest.raises(ExecutionError, match=r"axis 0 of y\[0\] must be n, which is 2 in axis 0 of x; found 3"):
        run(module, [np.ones(2, np.float32), (np.ones((3, 4), np.float32),)])
    with pytest.raises(ExecutionError, match=r"axis 1 of y\[0\] must be n \+ 1 = 3; found 4"):
        run(module, [np.ones(2, np.float32), (np.ones((2, 4), np.float32),)])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dims n, m where", "dims n, m, k where k >= 1,", "k in k >= 1 is the extent of no argument of main"),
        ("extent[2*n + m, int64]", "extent[2*n + m, float32]", r"the extent m \+ 2\*n as float32"),
        (
            "(2*n, 4)] = @twice",
            "(n, 4)] = @twice",
            r"expected Tensor\[float32, \(n, 4\)\], found Tensor\[float32, \(2\*n, 4\)\]",
        ),
    ],
)
def test_ill_formed_symbolic_modules(old: str, new: str, message: str) -> None:
    with pytest.raises(TypeCheckError, match=message):
        parse(PROGRAM.replace(old, new))


def test_dims_are_declared_once_and_before_use() -> None:
    with pytest.raises(FrontendError, match="the dim `n` is declared twice"):
        parse(PROGRAM.replace("dims n, m", "dims n, n"))
    with pytest.raises(FrontendError, match="expected a dim"):
        parse(PROGRAM.replace("dims n, m", "dims n, q"))


@given(st.lists(expressions, min_size=1, max_size=3))
def test_a_type_with_dims_is_read_back(found: list[object]) -> None:
    try:
        shape = tuple(map(symbolic, found))
    except ZeroDivisionError:
        assume(False)
    type_ = QuantifiedType(VARIABLES, TensorType(FLOAT32, shape))
    read = parse_type(str(type_))
    assert isinstance(read, QuantifiedType) and isinstance(read.body, TensorType)
    assert str(read) == str(type_)
    renamed = dict(zip(read.identifiers, VARIABLES, strict=True))
    assert substitute(read.body, renamed) == type_.body
