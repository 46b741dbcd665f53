"""Differentiation of the core: values to third order, options, sizes, errors, random programs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ad_programs import (
    PROGRAMS,
    Program,
    R,
    Z,
    broadcasting,
    calls,
    chain,
    ends,
    nested,
    op,
    power,
    reads,
    real,
    squares,
    vector,
    whole,
)
from derivative_checks import derived, gradient, scalarized, verify
from transform_programs import Build, function, leave, module

import relay
from relay.ad.reverse import differentiate
from relay.errors import DifferentiationError, ExecutionError, Source, Span
from relay.eval.interpreter import run
from relay.eval.values import Reference
from relay.ir.derivative import gradient_type
from relay.ir.expr import (
    Assert,
    Atom,
    Block,
    Call,
    Derivative,
    Exit,
    Function,
    Global,
    Grad,
    If,
    Loop,
    LoopLabel,
    Match,
    Module,
    Next,
    OpCall,
    RefRead,
    RefWrite,
    StackPush,
    Terminator,
    Var,
    Yield,
)
from relay.ir.traverse import count_bindings, walk
from relay.ir.types import RefType, TupleType
from relay.ir.validation.check import check
from relay.transform.pipeline import optimize


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: f"{p.name}-{p.arguments!r:.24}")
def test_derivatives_equal_finite_differences(program: Program) -> None:
    verify(program.make(), *program.arguments, orders=program.orders)


def test_fourth_order_through_a_loop() -> None:
    # y = x^8 after three rounds
    made = squares()
    for _ in range(4):
        made = differentiate(derived(made))
    np.testing.assert_allclose(run(made, [2.0]), 8 * 7 * 6 * 5 * 2.0**4)


# ---- values that are known


def test_sharing() -> None:
    made = module(function("f", [R], R, lambda b, x: (lambda y: b.op("add", y, y))(b.op("add", x, x))))
    assert gradient(made, 5.0) == 4


def test_while_loop_with_a_run_time_count() -> None:
    made = derived(squares(), with_value=True)
    value, derivative = run(differentiate(made), [3.0])  # type: ignore[misc]
    assert value == 6561 and derivative == 17496


def test_recursion() -> None:
    found = run(differentiate(derived(power(), wrt=(0,), with_value=True)), [2.0, 5])
    assert found == (32, 80)


def test_untaken_arm_does_not_count() -> None:
    """d/dx of log(x) if x > 0 else 2 x at -1 is 2, not NaN."""

    def f(b: Build, x: Var) -> Atom:
        (r,) = b.branch(
            [R],
            (b.op("greater", x, real(0)), lambda c: Yield((c.op("log", x),))),
            orelse=lambda c: Yield((c.op("multiply", x, real(2)),)),
        )
        return r

    assert gradient(module(function("f", [R], R, f)), -1.0) == 2


# ---- the interface of a derivative


def test_integers_give_unit_and_unused_parameters_zeros() -> None:
    made = module(function("f", [R, Z, vector(2)], R, lambda b, x, n, v: b.op("multiply", x, x)))
    x, n, v = gradient(made, 3.0, 4, np.ones(2))
    assert x == 6 and n == ()
    np.testing.assert_array_equal(v, np.zeros(2))


def test_a_result_that_does_not_depend_on_the_parameters() -> None:
    assert gradient(module(function("f", [R], R, lambda b, x: real(1))), 2.0) == 0


def test_the_identity() -> None:
    assert gradient(module(function("f", [R], R, lambda b, x: x)), 2.0) == 1


def test_options() -> None:
    def f(b: Build, x: Var, y: Var) -> Atom:
        return b.tuple(b.op("multiply", x, y), b.op("multiply", y, y))

    made = module(function("f", [R, R], TupleType((R, R)), f))
    assert gradient(made, 3.0, 5.0, output=0) == (5, 3)
    assert gradient(made, 3.0, 5.0, output=1) == (0, 10)
    assert gradient(made, 3.0, 5.0, output=-1, wrt=(1,)) == 10
    assert gradient(made, 3.0, 5.0, output=0, wrt=(1, 0), keeping=(1, -2)) == (3, 5, 25, 15)
    assert gradient(made, 3.0, 5.0, output=0, wrt=(0,), with_value=True) == ((15, 25), 5)
    assert gradient(made, 3.0, 5.0, 10.0, output=0, seedable=True) == (50, 30)


def test_seed_of_a_tensor() -> None:
    made = module(function("f", [vector(3)], vector(3), lambda b, x: b.op("multiply", x, x)))
    found = gradient(made, np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, 10.0]), seedable=True)
    np.testing.assert_array_equal(found, [2, 0, 60])


def test_a_function_that_calls_a_derivative() -> None:
    """g(x) = x * f'(x) with f = x^3: the inner derivative is made first, whatever the order of the module."""
    cubed = function("f", [R], R, lambda b, x: b.op("multiply", x, b.op("multiply", x, x)))
    inner = derived(module(cubed))
    name = Global(inner.entry, inner.functions[inner.entry].type)
    outer = function("g", [R], R, lambda b, x: b.op("multiply", x, b.call(name, x)))
    made = derived(Module({"g": outer, **inner.functions}, "g"))
    functions = {made.entry: made.functions[made.entry], **made.functions}
    assert run(differentiate(Module(functions, made.entry)), [2.0]) == 36


def test_the_input_is_untouched() -> None:
    made = derived(nested())
    before = {n: count_bindings(f.body) for n, f in made.functions.items() if isinstance(f, Function)}
    differentiate(made)
    differentiate(made)
    assert before == {n: count_bindings(f.body) for n, f in made.functions.items() if isinstance(f, Function)}
    done = differentiate(made)
    assert differentiate(done) is done


def test_simplification_between_orders() -> None:
    """It is asked for between orders only, and pays at the higher ones."""
    source = function("f", [R], R, lambda b, x: b.op("sin", b.op("multiply", x, x)))
    pending = module(source)
    for _ in range(3):
        pending = derived(pending)
    stages: list[int] = []

    def clean(made: Module) -> Module:
        stages.append(sum(isinstance(f, Derivative) for f in made.functions.values()))
        return optimize(made, 2)

    plain, cleaned = differentiate(pending), differentiate(pending, clean)
    check(cleaned, "structured")
    assert stages == [2, 1]
    np.testing.assert_allclose(run(cleaned, [0.7]), run(plain, [0.7]), rtol=1e-12)
    assert count_bindings(body_of(cleaned)) < 0.8 * count_bindings(body_of(plain))


# ---- sizes


def body_of(made: Module) -> Block:
    return made.main.body


@pytest.mark.parametrize("make", [chain, broadcasting])
def test_straight_line_code_stays_one_block(make: Callable[[], Module]) -> None:
    source = make()
    made = differentiate(derived(source))
    assert made.functions.keys() - source.functions.keys() == {made.entry}
    assert not any(isinstance(b.value, If | Match | Loop | Call) for b in walk(body_of(made)))
    assert count_bindings(body_of(made)) <= 4 * count_bindings(body_of(source))


def test_cost_of_higher_orders_of_straight_line_code() -> None:
    source = module(function("f", [R], R, lambda b, x: b.op("sin", b.op("multiply", x, b.op("exp", x)))))
    for _ in range(3):
        made = differentiate(derived(source))
        assert count_bindings(body_of(made)) <= 5 * count_bindings(body_of(source))
        source = made


def test_a_long_block() -> None:
    """Blocks are walked, not recursed into."""

    def f(b: Build, x: Var) -> Atom:
        value: Atom = x
        for _ in range(3000):
            value = b.op("multiply", b.op("sin", value), real(1.5))
        return value

    limit = sys.getrecursionlimit()
    made = differentiate(derived(module(function("f", [R], R, f))))
    assert sys.getrecursionlimit() == limit
    assert count_bindings(body_of(made)) <= 4 * 6000


def test_indexed_reads_add_into_one_tensor() -> None:
    made = differentiate(derived(reads()))
    loops = [b.value for b in walk(body_of(made)) if isinstance(b.value, Loop)]
    backward = loops[-1]
    assert not any(isinstance(b.value, OpCall) and b.value.operator in ("zeros", "add") for b in walk(backward.body))


def test_indices_are_computed_again_and_invariants_stay_outside() -> None:
    """Of w[i] * s only s is stored: one number a round."""
    made = differentiate(derived(reads()))
    pushes = [b.value for b in walk(body_of(made)) if isinstance(b.value, StackPush)]
    assert [getattr(p.value, "type", None) for p in pushes] == [R]


def test_a_loop_whose_rounds_leave_nothing_has_no_tape() -> None:
    def f(b: Build, x: Var, a: Var) -> Atom:
        def body(c: Build, label: LoopLabel, i: Var, s: Var) -> Terminator:
            return Next(label, (c.op("multiply", s, real(0.5)),))

        (r,) = b.loop([x], [R], body, count=whole(7))
        return r

    made = differentiate(derived(module(function("f", [R, R], R, f)), wrt=(0,)))
    assert not any(isinstance(b.value, StackPush) for b in walk(body_of(made)))
    assert run(made, [1.0, 1.0]) == 0.5**7


def test_recursion_adds_two_functions() -> None:
    source = power()
    made = differentiate(derived(source, wrt=(0,)))
    new = made.functions.keys() - source.functions.keys() - {made.entry}
    assert new == {"power_forward", "power_backward"}


def test_a_function_is_differentiated_once_for_each_set_of_parameters_and_results() -> None:
    made = differentiate(derived(calls()))  # of the call outside of the loop, the last result is not used
    assert sum("_backward" in name for name in made.functions) == 2


# ---- errors


def line(text: str) -> Span:
    return Span(Source("model.py", text), 1, 1, 1, 1 + len(text))


def rounding(used: bool) -> Module:
    """x + argmax-like operator of x without a gradient, used or not."""

    def f(b: Build, x: Var) -> Atom:
        y = b.bind(OpCall("multiply", (x, x)), R, "y")
        z = b.bind(OpCall("test_opaque", (y,), {}, line("z = opaque(y)")), R, "z")
        return b.op("add", x, z) if used else b.op("add", x, y)

    return module(function("f", [R], R, f))


def _opaque() -> None:
    from relay.operator import Relation, register_op, resolve_name
    from relay.ops.notation import Tensor

    if resolve_name("test_opaque") is None:

        @register_op(relation=Relation("T:float -> T", lambda s: s), compute=lambda x: x, no_gradient="it is a test")
        def test_opaque(x: Tensor) -> Tensor:
            """Nothing."""
            return x


def test_no_gradient() -> None:
    _opaque()
    with pytest.raises(DifferentiationError) as raised:
        differentiate(derived(rounding(used=True)))
    text = str(raised.value)
    assert "test_opaque has no gradient: it is a test" in text
    assert "model.py:1:1" in text and "x0 through y" in text
    assert gradient(rounding(used=False), 3.0) == 7


def test_a_reference_from_outside() -> None:
    def f(b: Build, x: Var, r: Var) -> Atom:
        b.do(RefWrite(r, x))
        return b.op("multiply", b.bind(RefRead(r), R), x)

    cell = Reference(np.asarray(1.0))
    made = differentiate(derived(module(function("f", [R, RefType(R)], R, f)), wrt=(0,)))
    assert run(made, [3.0, cell]) == 6 and cell.content == 3


def test_references_from_outside_that_may_be_the_same_one() -> None:
    def f(b: Build, x: Var, r: Var, other: Var) -> Atom:
        b.do(RefWrite(r, x))
        return b.op("multiply", b.bind(RefRead(other), R), x)

    made = differentiate(derived(module(function("f", [R, RefType(R), RefType(R)], R, f)), wrt=(0,)))
    cell, other = Reference(np.asarray(1.0)), Reference(np.asarray(5.0))
    assert run(made, [3.0, cell, cell]) == 6 and cell.content == 3
    assert run(made, [3.0, cell, other]) == 5 and other.content == 5


def test_assertions_stay() -> None:
    def f(b: Build, x: Var) -> Atom:
        b.do(Assert(b.op("less", x, real(2)), "too large"))
        return b.op("multiply", x, x)

    made = module(function("f", [R], R, f))
    assert gradient(made, 1.0) == 2
    with pytest.raises(ExecutionError, match="too large"):
        gradient(made, 3.0)


def test_a_function_in_its_own_derivative() -> None:
    def f(b: Build, x: Var) -> Atom:
        return b.call(Global("d0_f", function("f", [R], R, lambda c, y: y).type), x)

    with pytest.raises(DifferentiationError, match="its own derivative"):
        differentiate(derived(module(function("f", [R], R, f))))


# ---- random programs


class Generator:
    """Random structured programs over scalars."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.helpers: list[Function] = []

    def pick(self, values: list[Any]) -> Any:
        return values[self.random.integers(len(values))]

    def constant(self) -> Atom:
        return real(float(self.random.uniform(-1, 1)))

    def value(self, b: Build, scope: list[Atom]) -> Atom:
        """One operator on what is in scope; results stay between -2 and 2."""
        name = self.pick(["sin", "tanh", "product", "sum", "copy"])
        x, y = self.pick(scope), self.pick([*scope, self.constant()])
        if name == "copy":
            return x
        if name in ("sin", "tanh"):
            return b.op(name, b.op("multiply", x, y))
        return b.op("tanh", b.op("multiply" if name == "product" else "add", x, y))

    def condition(self, b: Build, scope: list[Atom]) -> Atom:
        return b.op("less", self.pick(scope), self.constant())

    def statements(self, b: Build, scope: list[Atom], depth: int) -> list[Atom]:
        scope = list(scope)
        for _ in range(self.random.integers(1, 4)):
            kinds = ["value", "choice", "count", "until", "call"] if depth else ["value"]
            scope += getattr(self, f"make_{self.pick(kinds)}")(b, scope, depth)
        return scope

    def make_value(self, b: Build, scope: list[Atom], depth: int) -> list[Atom]:
        return [self.value(b, scope)]

    def make_choice(self, b: Build, scope: list[Atom], depth: int) -> list[Atom]:
        def arm(c: Build) -> Terminator:
            inner = self.statements(c, scope, depth - 1)
            return Yield((self.value(c, inner), self.pick(inner)))

        def condition(c: Build) -> Terminator:
            return Yield((self.condition(c, scope),))

        arms = [(self.condition(b, scope), arm), (condition, arm)]
        return list(b.branch([R, R], *arms[: self.random.integers(1, 3)], orelse=arm))

    def make_count(self, b: Build, scope: list[Atom], depth: int) -> list[Atom]:
        def body(c: Build, label: LoopLabel, i: Var, s: Var, t: Var) -> Terminator:
            inner = self.statements(c, [*scope, s, t, op(c, "cast", i, dtype=R.base)], depth - 1)
            going = (self.value(c, inner), self.pick(inner))
            if self.random.random() < 0.5:
                return Next(label, going)
            leaving = (self.value(c, inner), self.pick(inner))
            return ends(c, self.condition(c, inner), leave(label, *leaving), lambda d: Next(label, going))

        return list(
            b.loop([self.pick(scope), self.pick(scope)], [R, R], body, count=whole(int(self.random.integers(4))))
        )

    def make_until(self, b: Build, scope: list[Atom], depth: int) -> list[Atom]:
        def body(c: Build, label: LoopLabel, n: Var, s: Var) -> Terminator:
            def rest(d: Build) -> Terminator:
                inner = self.statements(d, [*scope, s], depth - 1)

                def again(e: Build) -> Terminator:
                    return Next(label, (e.op("add", n, whole(1)), self.value(e, inner)))

                if self.random.random() < 0.5:
                    return again(d)
                return ends(d, self.condition(d, inner), again, leave(label, self.value(d, inner), self.pick(inner)))

            return ends(c, c.op("greater", n, whole(2)), leave(label, s, self.pick(scope)), rest)

        return list(b.loop([whole(0), self.pick(scope)], [R, R], body))

    def make_call(self, b: Build, scope: list[Atom], depth: int) -> list[Atom]:
        """A new function, which may call itself once."""
        name, label = f"helper{len(self.helpers)}", LoopLabel("helper")
        x, n = Var("x", R), Var("n", Z)
        type_ = function(name, [R, Z], R, lambda c, y, m: y).type
        inner = Build()

        def again(c: Build) -> Terminator:
            deeper = c.call(Global(name, type_), self.value(c, [x]), c.op("subtract", n, whole(1)))
            return Exit(label, (self.value(c, [x, deeper]),))

        slot = len(self.helpers)
        self.helpers.append(function(name, [R, Z], R, lambda c, y, m: y))
        local = self.statements(inner, [x], depth - 1)
        end = ends(inner, inner.op("less", n, whole(1)), leave(label, self.pick(local)), again)
        self.helpers[slot] = Function(name, (x, n), Block(tuple(inner.bindings), end), label, R)
        return [b.call(Global(name, type_), self.pick(scope), whole(int(self.random.integers(3))))]

    def program(self) -> Module:
        def f(b: Build, x: Var, y: Var) -> Atom:
            scope = self.statements(b, [x, y], 2)
            total = scope[-1]
            for value in scope[-4:-1]:
                total = b.op("add", total, value)
            return total

        main = function("f", [R, R], R, f)
        return module(main, *self.helpers)


def by_interpreter(source: Module) -> Module:
    """The gradient of the entry as the interpreter's own differentiation finds it."""
    entry = source.functions[source.entry]
    grad = Grad(Global(entry.name, entry.type))

    def write(b: Build, *parameters: Var) -> Atom:
        return b.call(b.bind(grad, gradient_type(entry.type, grad), "d"), *parameters)

    made = function(f"g_{entry.name}", entry.type.parameters, gradient_type(entry.type, grad).result, write)
    return Module({made.name: made, **source.functions}, made.name, source.data)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    source = Generator(seed).program()
    check(source, "structured")
    arguments = [0.3, -0.8]
    made = differentiate(derived(source))
    check(made, "structured")
    np.testing.assert_allclose(run(made, arguments), run(by_interpreter(source), arguments), rtol=1e-10, atol=1e-12)
    source = scalarized(made)
    made = differentiate(derived(source))
    check(made, "structured")
    np.testing.assert_allclose(run(made, arguments), run(by_interpreter(source), arguments), rtol=1e-9, atol=1e-11)


@pytest.mark.usefixtures("low_effort")
@pytest.mark.parametrize("reduction", ["min(axis=0)", "max(axis=1)", "max()"])
def test_the_gradient_of_an_extremum_of_what_rounds_finds_it(reduction: str) -> None:
    """The elements that are the extremum are found by equality, in a kernel that may round otherwise."""
    text = f"def f(x, w):\n    return relay.sum(relay.sin((relay.outer(w, x) - relay.mean(x)).{reduction}))\n"
    gradient = relay.grad(relay.from_source(text, {"relay": relay}))
    rng = np.random.default_rng(0)
    for n, m in ((3, 2), (13, 6), (20, 4)):
        x, w = rng.uniform(-2, 2, n), rng.uniform(-2, 2, m)
        for found, wanted in zip(gradient(x, w), gradient.interpret(x, w), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
