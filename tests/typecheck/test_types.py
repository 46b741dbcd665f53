"""Types with symbolic sizes: how they print, what is refused, and what a call does to them."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from error_cases import NAMES, Case, all_cases, verify

import relay as R
from relay import Any, Float, Fn, Tensor, relay
from relay.api.static_check import check_text
from relay.frontend.lower import lower_text
from relay.text.type_parser import parse_type
from relay.typecheck.elaboration import scheme
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly

n, m = R.dims("n m")


def check_shapes(text: str, filename: str) -> None:
    """Type-check all functions of a text at their annotations."""
    for definition in lower_text(text, filename, {**NAMES, "relay": R}).values():
        with contextlib.suppress(SchemeOnly):
            scheme(definition)


@pytest.mark.parametrize("case", all_cases("shapes*.test"))
def test_errors(case: Case) -> None:
    verify(case, check_shapes)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@relay
def tail(x: Tensor[Float, (n, 3)]):
    return x[1:]


@relay
def middle(x: Tensor[Float, (n,)]):
    return x[2:-2] / x.shape[0]


@relay
def longer(x: Tensor[Float, (n,)], y: Tensor[Float, (m,)]) -> Tensor[Float, (max(n, m),)]:
    return R.zeros((max(x.shape[0], y.shape[0]),))


@relay
def padded(x: Tensor[Float, (n + 1,)], y: Tensor[Float, (n,)]):
    return x[1:] + y


@relay
def halves(x: Tensor[Float, (n // 2,)], y: Tensor[Float, (n,)]):
    return x.sum() + y.sum()


@relay
def partly(x: Tensor[Float, (Any, 4)]):
    known: Tensor[Float, (Any, 4)] = x
    return known.sum()


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (tail, "forall (n: Dim). fn(Tensor[float32, (n, 3)]) -> Tensor[float32, (n - 1, 3)] where n >= 1"),
        (middle, "forall (n: Dim). fn(Tensor[float32, (n,)]) -> Tensor[float32, (n - 4,)] where n >= 4"),
        (
            longer,
            "forall (n: Dim) (m: Dim). fn(Tensor[float32, (n,)], Tensor[float32, (m,)])"
            " -> Tensor[float32, (max(m, n),)]",
        ),
        (
            padded,
            "forall (n: Dim). fn(Tensor[float32, (n + 1,)], Tensor[float32, (n,)]) -> Tensor[float32, (n,)]",
        ),
        (partly, "fn(Tensor[float32, (Any, 4)]) -> Tensor[float32, ()]"),
    ],
)
def test_types_with_sizes(function: R.RelayFunction, text: str) -> None:
    assert str(function.type) == text
    assert str(parse_type(text)) == text


def test_sizes_are_solved_at_a_call() -> None:
    assert padded.interpret(ones(5), ones(4)).shape == (4,)
    with pytest.raises(R.TypeMismatch, match=r"argument y of padded must be Tensor\[float32, \(3,\)\]"):
        padded.interpret(ones(4), ones(4))
    with pytest.raises(R.TypeMismatch, match=r"argument x of padded must be Tensor\[float32, \(n \+ 1,\)\]"):
        padded.interpret(ones(0), ones(1))
    assert halves.interpret(ones(2), ones(5)) == 7
    with pytest.raises(R.ShapeError, match=r"n//2 must be 2 here, but it is 3"):
        halves.interpret(ones(2), ones(6))
    assert longer.interpret(ones(2), ones(6)).shape == (6,)


def test_any_is_checked_at_the_call() -> None:
    for count in (0, 1, 7):
        assert partly.interpret(ones(count, 4)) == 4 * count
    with pytest.raises(R.TypeMismatch, match="argument x of partly") as caught:
        partly.interpret(ones(3, 5))
    assert caught.value.notes == ("axis 1 is 5, not 4",)


def _interleaved(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    if x[1:] != y[1:] or not y[0] <= x[0]:
        raise R.TypeMismatch(f"interleaved needs rows like {x[1:]}, and not more than {x[0]}; found {y}")
    return (x[0] + y[0], *x[1:])


@R.register_op(
    relation=R.Relation("T, T -> T", _interleaved), compute=lambda x, y: x, no_gradient="it is only for its type"
)
def interleaved(x: Tensor, y: Tensor) -> Tensor:
    """Rows of x and y in turns."""
    return np.concatenate([x, y])


def test_a_rule_of_the_users_compares_and_calculates_with_sizes() -> None:
    @relay
    def free(x: Tensor[Float, (n + 2, m)], y: Tensor[Float, (n, m)]):
        return interleaved(x, y)

    assert str(free.type).endswith("-> Tensor[float32, (2*n + 2, m)]")

    @relay(dynamic=True)
    def called(x, y):
        return interleaved(x, y)

    assert called.interpret(ones(5, 3), ones(4, 3)).shape == (9, 3)
    module = called.typed(ones(5, 3), ones(4, 3))
    assert [str(c) for c in module.where if "x_0" in str(c) and "y_0" in str(c)] == ["x_0 >= y_0"]
    with pytest.raises(R.TypeMismatch, match=r"rows like \(3,\), and not more than 2; found \(4, 3\)"):
        called.interpret(ones(2, 3), ones(4, 3))


# ---- effects


@relay
def counted(x, cell):
    cell.value = cell.value + 1
    print(x.sum())
    return x * 2.0


def test_effects_are_part_of_the_type() -> None:
    assert "-> Tensor[bt, s1] ! {io, ref} where bt is float" in str(counted.type)

    @relay
    def outer(x):
        cell = R.ref(0)
        assert (x > 0.0).all()
        return counted(x, cell)

    assert "! {assert, io} where" in str(outer.type)  # nobody else sees the cell
    assert "!" not in str(tail.type)
    shown = "fn(Tensor[float32, (3,)]) -> Tensor[float32, ()] ! {io, ref}"
    assert str(parse_type(shown)) == shown


def test_effects_of_functions_that_are_arguments_and_results() -> None:
    @relay
    def twice(f, x):
        return f(f(x))

    @relay
    def shown(v: float):
        print(v)
        return v

    @relay
    def maker(x: float) -> Fn[[float], float]:
        def inner(v: float):
            print(v)
            return v + x

        return inner

    @relay
    def made(x: float):
        return maker(x), twice(lambda v: v * 2.0, x)

    @relay
    def called(x: float):
        return twice(maker(x), x)

    @relay
    def strict(f: R.PureFn[[float], float], x: float):
        return f(x)

    scalar = "Tensor[float32, ()]"
    assert str(twice.type) == "forall (A: Type) (e: Effect). fn(fn(A) -> A ! {e}, A) -> A ! {e}"
    assert str(strict.type) == f"fn(fn({scalar}) -> {scalar} ! {{}}, {scalar}) -> {scalar}"
    assert str(made.type) == f"fn({scalar}) -> (fn({scalar}) -> {scalar} ! {{io}}, {scalar})"
    assert str(called.type) == f"fn({scalar}) -> {scalar} ! {{io}}"
    assert str(R.grad(called).type) == f"fn({scalar}) -> {scalar} ! {{io}}"
    for function in (twice, strict, made, called):
        assert str(parse_type(str(function.type))) == str(function.type)


def test_functions_in_fields_have_the_effects_of_all_that_are_stored_there() -> None:
    @R.data
    class Stored:
        f: Fn[[float], float]

    @relay
    def use(x: float):
        def inner(v: float):
            print(v)
            return v

        Stored(inner)
        return Stored(lambda v: v).f(x)

    assert str(use.type).endswith("! {io}")

    @R.data
    class Pure:
        f: R.PureFn[[float], float]

    @relay
    def stored(x: float):
        def inner(v: float):
            print(v)
            return v

        return Pure(inner).f(x)

    with pytest.raises(R.TypeCheckError, match="the field f of Pure must be pure, but it prints"):
        str(stored.type)


def test_derivatives_have_the_effects_of_a_gradient_that_a_program_gives() -> None:
    @relay
    def square(x: float):
        return x * x

    @square.def_gradient
    def backward(saved, seed):
        print(seed)
        return 2.0 * saved[0] * seed

    @relay
    def slope(x: float):
        return R.grad(square)(x)

    assert str(slope.type).endswith("! {io}")


def test_operators_that_are_programs_are_pure() -> None:
    @R.composite
    def printed(x: Tensor) -> Tensor:
        """The value itself. x: (T, s) -> (T, s)."""
        print(x)
        return x

    @relay
    def use(x):
        return printed(x)

    with pytest.raises(R.TypeMismatch, match="the operator printed must be pure, but it prints"):
        use.interpret(ones(2))


def test_purity_is_checked_where_a_pure_function_is_called_and_by_its_type() -> None:
    @relay(pure=True)
    def quiet(x: float):
        print(x)
        return x

    @relay
    def caller(x: float):
        return quiet(x)

    for attempt in (lambda: quiet.type, lambda: caller.type, lambda: caller.interpret(1.0)):
        with pytest.raises(R.TypeCheckError, match="quiet must be pure, but it prints"):
            attempt()
    text = "from relay import relay\n@relay(pure=True)\ndef f(x):\n    print(x)\n    return x\n"
    assert [d.message for d in check_text(text, "file.py")] == ["f must be pure, but it prints"]


def test_a_function_can_be_required_to_be_pure() -> None:
    @relay(pure=True)
    def quiet(x):
        return helper(x) + 1.0

    @relay
    def helper(x):
        print(x)
        return x

    with pytest.raises(R.TypeCheckError, match="quiet must be pure, but it prints") as caught:
        quiet.interpret(ones(2))
    assert caught.value.span is not None and caught.value.span.line == helper._function.span.line + 1

    @relay(pure=True)
    def silent(x):
        return x * 2.0

    assert silent.interpret(ones(2)).shape == (2,)


@relay
def three_rows(x: Tensor[Float, (3, 4)]):
    return x.sum()


@relay
def of_any(x: Tensor[Float, (Any, 4)], y: Tensor[Float, (3, 4)]):
    here: Tensor[Float, (3, 4)] = x
    return x + y, three_rows(x), here


def test_any_beside_known_sizes_is_checked_where_they_meet() -> None:
    assert str(of_any.type).endswith("-> (Tensor[float32, (3, 4)], Tensor[float32, ()], Tensor[float32, (3, 4)])")
    assert of_any.interpret(ones(3, 4), ones(3, 4))[1] == 12
    with pytest.raises(R.TypeMismatch, match=r"here must be Tensor\[float32, \(3, 4\)\], found .*\(2, 4\)"):
        of_any.interpret(ones(2, 4), ones(3, 4))
    with pytest.raises(R.TypeMismatch, match="here must be"):  # Any is not 1
        of_any.interpret(ones(1, 4), ones(3, 4))


@pytest.mark.parametrize("annotation", ["k", "Tensor[k, (2,)]", "Tensor[Float, (k, 3)]"])
def test_one_variable_that_was_not_unpacked(annotation: str) -> None:
    text = f"def f(x: {annotation}):\n    return x\n"
    with pytest.raises(R.FrontendError, match=r"^<relay>:1:\d+: error: \(k,\) is not an? ") as error:
        R.from_source(text, {"Tensor": Tensor, "Float": Float, "k": R.dims("k")})
    assert error.value.help == 'dims returns a tuple: (k,) = relay.dims("k")'


@relay
def first_and_rest(x: Tensor[Float, (n,)]):
    return x[1:] * 2.0


@relay
def rest_or_nothing(x: Tensor[Float, (n,)]):
    if x.shape[0] == 0:
        return 0.0
    return x[1:].sum()


@relay
def rest_if_asked(x: Tensor[Float, (n,)], ask):
    if ask and x.shape[0] > 0:
        return x[1:].sum()
    return 0.0


@relay
def rest_of_nothing(x):
    return x[1:]


def test_what_a_type_demands_of_sizes_is_checked_at_calls() -> None:
    assert str(first_and_rest.type).endswith("where n >= 1")
    with pytest.raises(R.ShapeError, match="first_and_rest needs n >= 1, but n is 0") as error:
        first_and_rest(ones(0))
    assert error.value.notes == ("n is the extent of axis 0 of x",)
    with pytest.raises(R.ShapeError, match="first_and_rest needs n >= 1"):
        R.grad(first_and_rest, seedable=True)(ones(0), ones(0))
    assert first_and_rest(ones(1)).shape == (0,)
    assert "where" not in str(rest_or_nothing.type)
    assert rest_or_nothing(ones(0)) == 0
    assert rest_if_asked(ones(0), True) == 0  # what only a branch needs is no reason
    assert rest_of_nothing(ones(0)).shape == (0,)


@relay
def second_if_wanted(x: Tensor[Float, (n,)], wanted: bool):
    return x[1] if wanted and n > 1 and x[1] > 0.0 else -1.0


@relay
def second_unless_unwanted(x: Tensor[Float, (n,)], unwanted: bool):
    if unwanted or (n < 2) | unwanted:
        return -1.0
    return x[1]


@relay
def rounds_while_long(x: Tensor[Float, (n,)], rounds: int):
    total = 0.0
    while rounds > 0 and n > 2:
        total = total + x[2]
        rounds = rounds - 1
    return total


def test_arms_that_sizes_exclude_beside_a_run_time_condition() -> None:
    for size in range(4):
        x = np.arange(size, dtype=np.float32)
        for flag in (np.bool_(False), np.bool_(True)):
            assert second_if_wanted.interpret(x, flag) == (1 if flag and size > 1 else -1)
            assert second_unless_unwanted.interpret(x, flag) == (-1 if flag or size < 2 else 1)
        assert rounds_while_long.interpret(x, np.int32(3)) == (6 if size > 2 else 0)
    assert second_if_wanted(ones(1), np.bool_(True)) == -1
    assert second_if_wanted(ones(3), np.bool_(True)) == 1
    assert rounds_while_long(ones(1), np.int32(3)) == 0


@relay
def doubled_structure(x, k: int):
    if k == 0:
        return x
    return doubled_structure((x, x), k - 1)


def test_a_recursion_over_larger_and_larger_structures_ends() -> None:
    with pytest.raises(R.TypeCheckError, match="change with the depth of the recursion") as error:
        doubled_structure(ones(3), np.array(3, np.int32))
    assert len(error.value.message) < 400
    assert error.value.help == "collect values in a list, or in a data type"


@relay
def nothing_tells(x, k):
    return nothing_tells(x, k - 1)[1:]


def test_a_recursion_whose_result_nothing_tells() -> None:
    message = r"the type of nothing_tells\(x, k - 1\) is ambiguous: nothing determines A"
    with pytest.raises(R.TypeCheckError, match=message):
        _ = nothing_tells.type
    with pytest.raises(R.TypeCheckError, match=message) as error:
        nothing_tells(ones(3), np.int32(3))
    assert error.value.span is not None and error.value.span.column == 12
