"""Effects in the types of functions: whose they are, and what nobody sees from outside."""

from __future__ import annotations

import pytest

import relay as R
from relay import Fn, Ref, relay
from relay.ir.types import mentioned_definitions
from relay.text.type_parser import parse_type

SCALAR = "Tensor[float32, ()]"


def effects_of(function: R.RelayFunction) -> str:
    """What stands behind the `!` of a function's type."""
    _, found, behind = str(function.type).partition(" ! {")
    return behind.partition("}")[0] if found else ""


@relay
def increased(cell):
    cell.value += 1


@relay
def made():
    cell = R.ref(0)

    def next_one():
        cell.value += 1
        return cell.value

    return next_one


def test_what_a_function_does_to_its_own_references_is_its_own() -> None:
    @relay(pure=True)
    def local(x: float, rounds: int):
        cell = R.ref(x)
        for _ in range(rounds):
            cell.value = cell.value * 2.0
        return cell.value

    @relay(pure=True)
    def handed_on(x: float):
        cell = R.ref(0)
        increased(cell)
        increased(cell)
        return x * float(cell.value)

    @relay(pure=True)
    def captured(x: float):
        total = 0.0

        def add(v):
            nonlocal total
            total += v

        add(x)
        add(x)
        return total

    for function in (local, handed_on, captured):
        assert effects_of(function) == ""
    assert (local(1.5, 3), handed_on(1.5), captured(1.5)) == (12.0, 3.0, 3.0)


def test_references_from_elsewhere_are_seen() -> None:
    @relay
    def chosen(c: bool, other: Ref[int]):
        cell = R.ref(0)
        either = cell if c else other
        either.value = 3
        return cell.value

    @relay
    def counted():
        following = made()
        following()
        return following()

    @relay
    def repeated(cell, k):
        if k == 0:
            return 0
        cell.value += 1
        return repeated(cell, k - 1)

    assert effects_of(increased) == "ref"
    assert effects_of(chosen) == "ref"
    assert effects_of(made) == "ref"  # of the function that it returns
    assert effects_of(counted) == "ref"
    assert effects_of(repeated) == "ref"


def test_a_loop_over_anything_has_the_effects_of_its_body() -> None:
    @relay
    def told(v):
        print(v)

    @relay
    def shown(xs):
        for x in xs:
            print(x)

    @relay
    def shown_by_another(xs):
        tell = lambda v: told(v)  # noqa: E731
        for x in xs:
            tell(x)

    @relay
    def checked(xs):
        for x in xs[0]:
            assert x > 0.0
        return xs

    @relay
    def written(xs, cell):
        for x in xs:
            cell.value = x

    @relay
    def summed(xs):
        total = R.ref(0.0)
        for x in xs:
            total.value += x.sum()
        return total.value

    assert effects_of(shown) == effects_of(shown_by_another) == "io"
    assert effects_of(checked) == "assert"
    assert effects_of(written) == "ref"
    assert effects_of(summed) == ""

    @relay(pure=True)
    def pure(xs):
        for x in xs:
            print(x)

    with pytest.raises(R.TypeCheckError, match="pure must be pure, but it prints"):
        pure.type  # noqa: B018


def test_a_function_that_is_returned_and_never_called_has_its_effects() -> None:
    @relay
    def maker(x: float):
        def inner(v):
            print(v)
            return v

        return inner

    assert str(maker.type) == f"forall (A: Type). fn({SCALAR}) -> fn(A) -> A ! {{io}}"


def test_a_function_in_a_field_may_have_any_effects() -> None:
    @R.data
    class Held:
        f: Fn[[float], float]

    @relay
    def use(held: Held, x: float):
        return held.f(x)

    @relay
    def loud(x: float):
        def told(v):
            print(v)
            return v

        return use(Held(told), x)

    assert str(use.type) == f"forall (e: Effect). fn(Held, {SCALAR}) -> {SCALAR} ! {{e}}"
    type_ = use.type
    assert str(parse_type(str(type_), data=mentioned_definitions([type_.body]))) == str(type_)  # type: ignore[union-attr]
    assert effects_of(loud) == "io"
