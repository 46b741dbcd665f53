"""Effects in the types of functions: whose they are, and what nobody sees from outside."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

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


@relay
def shout(v):
    print(v)
    return v


@relay
def applied(f, x):
    return f(x)


@relay
def made_loud():
    return shout


@relay
def loud_by_default(x, g=shout):
    return g(x)


partial_shout = functools.partial(shout)


@R.data
class Counter:
    cell: Ref[float]
    f: Fn[[float], float]

    @relay
    def step(self, x):
        self.cell.value = x
        return x

    @relay
    def __add__(self, x):
        print(x)
        return self

    @relay
    def __call__(self, x):
        return self.f(x)


@dataclass
class Weight:
    w: Any

    @relay
    def loud(self, x):
        print(x)
        return x

    @relay
    def __call__(self, x):
        assert x > 0.0
        return x


# A body, and the effects of `def f(g, xs)` with it. `effects(A)` are those of g, `effects(A2)` those of xs.
UNSEEN = {
    "for x in xs: g(x)": "effects(A)",
    "for x in xs:\n  for y in x: g(y)": "effects(A)",
    "for h in xs: h(1.0)": "effects(A2)",
    "for h, x in zip(g, xs): x(1.0)": "effects(A), effects(A2)",
    "for x in xs: x.play()": "effects(A2)",
    "for x in xs: x.sum()": "",
    "for x in xs: print(x)": "io",
    "for x in xs:\n  while g(x): x = x - 1": "effects(A)",
    "for x in xs:\n  assert x > 0.0, f'{g(x)}'": "assert, effects(A)",
    "return [g(x) for x in xs]": "effects(A)",
    "return [x for x in xs if g(x)]": "effects(A)",
    "return any(g(x) for x in xs)": "effects(A)",
    "return sum(g(x) for x in xs)": "effects(A)",
    "return list(map(g, xs))": "effects(A)",
    "return list(filter(g, xs))": "effects(A)",
    "return sorted(xs, key=g)": "effects(A)",
    "return max(xs, key=g)": "effects(A)",
    "return g(*xs)": "effects(A)",
    "h = g\nfor x in xs: h(x)": "effects(A)",
    "h = (g, 1)\nfor x in xs: h[0](x)": "effects(A)",
    "r = relay.ref(g)\nfor x in xs: r.value(x)": "effects(A)",
    "r = relay.ref(lambda v: v)\nfor x in xs:\n  r.value = g\n  r.value(x)": "effects(A)",
    "t = 0.0\nfor x in xs: t += x.value": "effects(A2)",
    "for x in xs: x.value = 1.0": "ref",
    "k = lambda v: g(v)\nfor x in xs: k(x)": "effects(A)",
    "for x in xs:\n  def k(v): return g(v)\n  k(x)": "effects(A)",
    "for x in xs:\n  def k(v): return v * 2.0\n  k(x)": "",
    "for x in xs: applied(g, x)": "effects(A)",
    "for x in xs: shout(x)": "io",
    "for x in xs: made_loud()(1.0)": "io",
    "for x in xs: loud_by_default(1.0)": "io",
    "for x in xs: partial_shout(x)": "io",
    "for x in xs: relay.grad(g)(x)": "effects(A)",
    "for x in xs:\n  y, pull = relay.vjp(g, 1.0)\n  pull(y)": "effects(A)",
    "for x in xs: relay.jacobian(g)(x)": "effects(A)",
    "for x in xs: relay.checkpoint(g)(x)": "effects(A)",
    "for x in xs:\n  match x:\n    case Weight(w) if g(w): pass\n    case _: pass": "effects(A)",
    "w = Weight(1.0)\nfor x in xs: w.loud(x)": "io",
    "w = Weight(1.0)\nfor x in xs: w(x)": "assert",
    "for x in xs: Weight(1.0).loud(x)": "io",
    "for x in xs: Counter(relay.ref(0.0), g).f(x)": "effects(A)",
    "for x in xs: Counter(relay.ref(0.0), lambda v: v).step(x)": "ref",
}


@pytest.mark.parametrize("body", UNSEEN)
def test_what_a_scheme_does_not_look_at_has_its_effects(body: str) -> None:
    names = {n: globals()[n] for n in ("shout", "applied", "made_loud", "loud_by_default", "partial_shout")}
    text = "def f(g, xs):\n" + "".join(f"  {line}\n" for line in body.split("\n"))
    function = R.from_source(text, {"relay": R, "Weight": Weight, "Counter": Counter, **names})
    assert effects_of(function) == UNSEEN[body]


def test_functions_of_functions_in_a_result_have_their_effects() -> None:
    @relay
    def later(g, x: float):
        return lambda a: lambda b: g(b) + x

    assert str(later.type).endswith("-> lambda(A3) ! {effects(A)}")


def test_an_effect_that_a_constraint_decides_has_a_name_there() -> None:
    @relay
    def first(fs, x):
        return fs[0](x)

    @relay
    def played(o, x):
        return o.play(x)

    for function in (first, played):
        assert str(function.type).count("! {e}") == 2
        assert "(e: Effect)" in str(function.type)


def test_a_demand_for_purity_reaches_what_a_scheme_does_not_look_at() -> None:
    @relay(pure=True)
    def quiet(g, xs):
        for x in xs:
            g(x)

    @relay(pure=True)
    def loud(xs):
        for x in xs:
            quiet(shout, x)

    assert effects_of(quiet) == "effects(A)"
    with pytest.raises(R.TypeCheckError, match="must be pure, but it prints"):
        quiet(shout, (1.0, 2.0))
    with pytest.raises(R.TypeCheckError, match="must be pure, but it prints"):
        loud.type  # noqa: B018


@pytest.mark.parametrize("text", ["forall (A: Type). fn(A) -> () ! {io, effects(A)}"])
def test_effects_of_a_variable_parse_back(text: str) -> None:
    assert str(parse_type(text)) == text
