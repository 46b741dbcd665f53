"""The passes on the structured core: same results, well-formed modules, and what each of them removes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from transform_programs import (
    PROGRAMS,
    Build,
    F,
    Program,
    assert_modules_agree,
    assert_structured,
    function,
    give,
    leave,
    lowered,
    module,
    real,
    straight,
    whole,
)

import relay
from relay.eval.interpreter import run
from relay.ir.expr import (
    Assert,
    Atom,
    Call,
    Constant,
    Exit,
    Expr,
    Function,
    Global,
    If,
    Loop,
    LoopLabel,
    MakeTuple,
    Match,
    Module,
    Next,
    OpCall,
    Project,
    RefNew,
    RefRead,
    RefWrite,
    StackNew,
    Terminator,
    Var,
)
from relay.ir.traverse import walk
from relay.ir.types import FunctionType, RefType, StackType, TensorType, TupleType
from relay.ir.validation.check import check
from relay.transform.cleanup.common_subexpressions import eliminate_common_subexpressions
from relay.transform.cleanup.constant_folding import fold_constants
from relay.transform.cleanup.dead_code import eliminate_dead_code
from relay.transform.cleanup.inlining import inline
from relay.transform.cleanup.simplification import simplify
from relay.transform.passes import LOSSY, PASSES
from relay.transform.pipeline import LEVELS, Pipeline, count, optimize, prepare

OPTIMIZATIONS = sorted(set(PASSES) - LOSSY - {"specialize", "structure", "differentiate"})


def expressions(module_: Module) -> list[Expr]:
    return [b.value for f in module_.functions.values() if isinstance(f, Function) for b in walk(f.body)]


def kinds(module_: Module) -> list[str]:
    return [e.operator if isinstance(e, OpCall) else type(e).__name__ for e in expressions(module_)]


def result(module_: Module) -> Atom:
    end = module_.main.body.terminator
    assert isinstance(end, Exit)
    return end.values[0]


def unary(write: Callable[[Build, Var], Atom]) -> Module:
    return module(function("f", [F], F, write))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("passed", OPTIMIZATIONS)
def test_pass_gives_the_same(name: str, passed: str) -> None:
    before = lowered(name)
    check(before, "structured")
    after = PASSES[passed](before)
    check(after, "structured")
    assert_structured(after)
    assert_modules_agree(before, after, PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_level_gives_the_same(name: str, level: int) -> None:
    before = PROGRAMS[name].make()
    prepared = prepare(lowered(name), level, checked=True)
    assert_modules_agree(before, prepared, PROGRAMS[name])
    assert_modules_agree(before, optimize(prepared, level, checked=True), PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_passes_compose_in_any_order(name: str) -> None:
    random = np.random.default_rng(sum(map(ord, name)))
    before = lowered(name)
    after = before
    for chosen in random.permutation(OPTIMIZATIONS * 2):
        after = PASSES[str(chosen)](after)
        check(after, "structured")
    assert_modules_agree(before, after, PROGRAMS[name])


def test_optimized_closures_leave_nothing_behind() -> None:
    """Two additions are what is left of make_adder; its calls are gone."""
    after = optimize(lowered("make_adder"), 2)
    assert kinds(after) == ["add", "add"]
    assert list(after.functions) == ["f"]
    assert kinds(optimize(lowered("compose"), 2)) == ["multiply", "add", "multiply", "add"]


def test_pipeline_records_what_it_did() -> None:
    pipeline = Pipeline(["inline", simplify, "eliminate_dead_code"], checked=True)
    after = pipeline(lowered("make_adder"))
    assert [r.name for r in pipeline.records] == ["inline", "simplify", "eliminate_dead_code"]
    assert pipeline.records[-1].bindings_after == count(after) == 2
    assert all(r.seconds >= 0 for r in pipeline.records)
    with pytest.raises(ValueError, match="no pass 'fuse_everything'"):
        Pipeline(["fuse_everything"])
    with pytest.raises(ValueError, match="0 to 3"):
        optimize(after, 4)


# ---- dead code


def test_dead_code_keeps_effects() -> None:
    def f(b: Build, x: Var) -> Atom:
        b.op("exp", x)
        cell = b.bind(RefNew(x), RefType(F))
        b.do(RefWrite(cell, b.op("add", x, real(1))))
        b.do(Assert(b.op("less", x, real(9)), "x is small"))
        b.branch([], (b.op("less", x, real(0)), lambda c: (c.op("exp", x), give())[1](c)))
        return b.bind(RefRead(cell), F)

    assert kinds(eliminate_dead_code(unary(f))) == ["RefNew", "add", "RefWrite", "less", "Assert", "RefRead"]


def test_dead_code_drops_targets_and_parameters() -> None:
    """Of a loop that carries (a, b, c) with b = f(b, c), only a is needed; nested the same."""

    def f(b: Build, x: Var) -> Atom:
        def outer(c: Build, label: LoopLabel, i: Var, p: Var, q: Var, r: Var) -> Terminator:
            def inner(d: Build, inner_label: LoopLabel, j: Var, s: Var, t: Var) -> Terminator:
                return Next(inner_label, (d.op("add", s, real(1)), d.op("multiply", t, s)))

            s, t = c.loop([p, q], [F, F], inner, count=whole(2))
            u, v = c.branch([F, F], (c.op("less", s, real(4)), give(s, t)), orelse=give(r, q))
            return Next(label, (u, v, c.op("exp", r)))

        p, _, _ = b.loop([x, x, x], [F, F, F], outer, count=whole(3))
        return p

    before = unary(f)
    after = eliminate_dead_code(before)
    assert_modules_agree(before, after, Program(straight, ((1.0,), (7.0,))))
    loops = [e for e in expressions(after) if isinstance(e, Loop)]
    assert [len(loop.parameters) for loop in loops] == [2, 1]
    assert "multiply" not in kinds(after)


def test_dead_code_knows_effectful_functions() -> None:
    type_ = FunctionType((F,), F)

    def checked(b: Build, x: Var) -> Atom:
        b.do(Assert(b.op("less", x, real(5)), "x is small"))
        return x

    def local(b: Build, x: Var) -> Atom:
        cell = b.bind(RefNew(x), RefType(F))
        b.do(RefWrite(cell, x))
        return b.bind(RefRead(cell), F)

    def f(b: Build, x: Var) -> Atom:
        b.call(Global("checked", type_), x)
        b.call(Global("local", type_), x)
        return x

    after = eliminate_dead_code(
        module(function("f", [F], F, f), function("checked", [F], F, checked), function("local", [F], F, local))
    )
    called = [e.function.name for e in expressions(after) if isinstance(e, Call) and isinstance(e.function, Global)]
    assert called == ["checked"]


# ---- simplification


@pytest.mark.parametrize(
    "write",
    [
        lambda b, x: b.op("add", x, real(-0.0)),
        lambda b, x: b.op("add", real(-0.0), x),
        lambda b, x: b.op("multiply", b.op("subtract", x, real(0)), real(1)),
        lambda b, x: b.op("divide", x, real(1)),
        lambda b, x: b.op("negative", b.op("negative", x)),
        lambda b, x: b.op("maximum", x, x),
        lambda b, x: b.project(b.tuple(real(1), x), 1),
        lambda b, x: b.project(b.bind(b.tuple(real(1), x), TupleType((F, F))), 1),
        lambda b, x: b.branch([F], (Constant(np.asarray(True)), give(x)), orelse=give(real(3)))[0],
        lambda b, x: b.branch([F], (Constant(np.asarray(False)), give(real(3))), orelse=give(x))[0],
        lambda b, x: b.branch([F], (b.op("less", x, real(0)), give(x)), orelse=give(x))[0],
        lambda b, x: b.loop([x, x], [F, F], lambda c, label, i, p, q: Next(label, (p, x)), count=whole(5))[1],
    ],
)
def test_simplifies_to_the_argument(write: Callable[[Build, Var], Atom]) -> None:
    after = simplify(unary(write))
    assert result(after) is after.main.parameters[0]


def test_does_not_simplify_what_changes_the_type_or_value() -> None:
    matrix = TensorType(F.base, (2, 1))
    wide = Constant(np.zeros((1, 3), np.float32))

    def f(b: Build, x: Var) -> Atom:
        return b.op("add", b.op("add", x, wide), b.op("subtract", real(0), x))

    after = simplify(module(function("f", [matrix], TensorType(F.base, (2, 3)), f)))
    assert kinds(after) == ["add", "subtract", "add"]
    absolute = simplify(unary(lambda b, x: b.op("absolute", b.op("absolute", x))))
    assert kinds(eliminate_dead_code(absolute)) == ["absolute"]


def test_signed_zeros_are_kept() -> None:
    """0.0 is not a neutral element: -0.0 + 0.0 is 0.0, and -0.0 - -0.0 too."""
    for name, zero in (("add", 0.0), ("subtract", -0.0)):
        before = unary(lambda b, x, name=name, zero=zero: b.op(name, x, real(zero)))  # type: ignore[misc]
        after = optimize(before, 3)
        assert kinds(after) == [name]
        assert not np.signbit(run(after, [np.float32(-0.0)]))


def test_certain_condition_in_tail_position_ends_the_block() -> None:
    def f(b: Build, label: LoopLabel, x: Var) -> Terminator:
        b.branch([], (Constant(np.asarray(False)), leave(label, real(1))), orelse=give())
        b.branch([], (Constant(np.asarray(True)), leave(label, x)), orelse=leave(label, real(2)))
        return Exit(label, (real(3),))

    before = module(function("f", [F], F, f))
    after = simplify(PASSES["structure"](before))
    check(after, "structured")
    assert result(after) is after.main.parameters[0]


def test_way_of_a_certain_exit_is_followed() -> None:
    """Match on a known constructor: what structuring adds goes away where the way is certain."""

    def f(b: Build, label: LoopLabel, x: Var) -> Terminator:
        inner = b.branch(
            [F],
            (Constant(np.asarray(True)), give(x)),
            (b.op("less", x, real(0)), leave(label, real(0))),
            orelse=give(real(2)),
        )
        return Exit(label, (b.op("add", inner[0], real(1)),))

    before = PASSES["structure"](module(function("f", [F], F, f)))
    assert any(isinstance(e, Match) for e in expressions(before))
    after = optimize(before, 2)
    assert kinds(after) == ["add"]


# ---- constants and common subexpressions


def test_folds_constants_but_not_failures() -> None:
    def f(b: Build, x: Var) -> Atom:
        one = b.op("add", real(2), b.op("multiply", real(3), real(4)))
        zero = b.op("floor_divide", whole(3), whole(0))
        return b.op("add", one, b.bind(OpCall("cast", (zero,), {"dtype": F.base}), F))

    assert kinds(fold_constants(unary(f))) == ["floor_divide", "cast", "add"]


MADE = {
    "x + relay.zeros((3,)) * 2.0": ["add"],
    "x + relay.copy(relay.exp(relay.full((3,), 2.0)))": ["add"],
    "x + relay.eye(3)[1]": ["add"],
    "x * relay.cast(relay.arange(3), relay.Float64)": ["multiply"],
    "x + relay.sum(relay.sin(relay.arange(300) * 0.5))": ["add"],
    "x + relay.sum(relay.tril(relay.ones((20, 20))), axis=1)[:3]": ["add"],
    "x + relay.sum(relay.zeros_like(x) + 1.0)": ["add"],
    "relay.copy(relay.copy(x)) * 2.0": ["multiply"],
    "x[0] + relay.sin(relay.arange(1000.0, dtype=relay.Float64))": ["strided_slice", "reshape", "add"],  # 8,000 bytes
    "x[0] + relay.sin(relay.arange(1100.0, dtype=relay.Float64))": ["strided_slice", "reshape", "arange", "sin", "add"],
    "x[0] + relay.ones((100,)) * 2.0": ["strided_slice", "reshape", "ones", "multiply", "add"],  # filled, not read
    "x + relay.sum(relay.ones((1000, 1000)))": ["ones", "sum", "add"],  # 8 MB are not made at compile time
}


@pytest.mark.parametrize("body", MADE)
def test_what_is_computed_of_what_the_program_makes(body: str) -> None:
    f = relay.from_source(f"def f(x):\n    return {body}\n", {"relay": relay})
    assert isinstance(f, relay.RelayFunction)
    x = np.array([1.0, 2.0, 3.0])
    (block,) = (g.body for g in f.core(x).functions.values() if isinstance(g, Function))
    assert sorted(b.value.operator for b in block.bindings if isinstance(b.value, OpCall)) == sorted(MADE[body])
    np.testing.assert_allclose(np.asarray(f(x)), np.asarray(f.interpret(x)), rtol=1e-12)


def test_what_a_program_makes_with_sizes_of_the_run_stays() -> None:
    text = """
dims n where n >= 1;

entry fn f(%x: Tensor[int32, (n,)]) -> Tensor[int32, (3,)] {
  let %a: Tensor[int32, (3,)] = arange(start=n, stop=n + 3, step=1, dtype=int32);
  let %b: Tensor[int32, (3,)] = add(%a, 1i32);
  %b
}
"""
    before = relay.parse(text)
    assert relay.to_text(fold_constants(before)) == relay.to_text(before)


def test_common_subexpressions_by_scope() -> None:
    def f(b: Build, x: Var) -> Atom:
        first = b.op("multiply", x, real(2))

        def arm(c: Build) -> Terminator:
            return give(c.op("add", c.op("multiply", real(2), x), c.op("exp", x)))(c)

        (r,) = b.branch([F], (b.op("less", x, real(0)), arm), orelse=arm)
        return b.op("add", r, b.op("add", first, b.op("exp", x)))

    after = kinds(eliminate_common_subexpressions(unary(f)))
    assert after.count("multiply") == 1
    assert after.count("exp") == 3


def test_allocations_and_reads_are_not_common() -> None:
    def f(b: Build, x: Var) -> Atom:
        cells = [b.bind(RefNew(x), RefType(F)) for _ in range(2)]
        for _ in range(2):
            b.bind(StackNew(F), StackType(F))
        b.do(RefWrite(cells[0], real(1)))
        first = b.bind(RefRead(cells[0]), F)
        b.do(RefWrite(cells[0], real(2)))
        return b.op("add", first, b.bind(RefRead(cells[0]), F))

    after = eliminate_common_subexpressions(unary(f))
    assert len(kinds(after)) == 9


# ---- inlining


def test_inlines_branches_and_keeps_recursion() -> None:
    type_ = FunctionType((F,), F)

    def clipped(b: Build, label: LoopLabel, x: Var) -> Terminator:
        b.branch([], (b.op("less", x, real(0)), leave(label, real(0))))
        b.branch([], (b.op("greater", x, real(1)), leave(label, real(1))))
        return Exit(label, (b.op("multiply", x, x),))

    def countdown(b: Build, label: LoopLabel, x: Var) -> Terminator:
        b.branch([], (b.op("less", x, real(0)), leave(label, x)))
        return Exit(label, (b.call(Global("countdown", type_), b.op("subtract", x, real(1))),))

    def f(b: Build, x: Var) -> Atom:
        clip = Global("clipped", type_)
        return b.op("add", b.op("add", b.call(clip, x), b.call(clip, real(0.5))), b.call(Global("countdown", type_), x))

    before = PASSES["structure"](
        module(function("f", [F], F, f), function("clipped", [F], F, clipped), function("countdown", [F], F, countdown))
    )
    after = inline(before)
    check(after, "structured")
    assert set(after.functions) == {"f", "countdown"}
    assert sum(isinstance(e, If) for e in expressions(after)) == 3
    assert_modules_agree(before, after, Program(straight, ((-1.0,), (0.25,), (2.5,))))


def test_long_blocks_take_linear_time() -> None:
    """Twenty thousand bindings at Python's normal recursion limit."""

    def f(b: Build, x: Var) -> Atom:
        for i in range(10000):
            x = b.op("add", b.op("multiply", x, real(i % 7 + 2)), real(1))
        return x

    before = unary(f)
    after = Pipeline(["specialize", "structure", *LEVELS[3]])(before)
    assert count(after) == count(before)


def test_tuples_are_made_once() -> None:
    def f(b: Build, x: Var) -> Atom:
        pair = b.tuple(x, real(1))
        again = b.tuple(x, real(1))
        return b.op("add", b.project(pair, 0), b.project(again, 1))

    after = optimize(unary(f), 1)
    assert not [e for e in expressions(after) if isinstance(e, MakeTuple | Project)]


def test_tuples_through_branches_and_loops_are_taken_apart() -> None:
    """Nested tuples carried by a loop and joined by an If; the component that nobody uses goes."""

    def f(b: Build, x: Var) -> Atom:
        def body(c: Build, label: LoopLabel, i: Var, p: Var) -> Terminator:
            inner = c.project(p, 0)
            y, unused = c.project(inner, 0), c.project(p, 1)
            changed = c.tuple(c.tuple(c.op("add", y, real(1)), y), c.op("exp", unused))
            (joined,) = c.branch([pair], (c.op("less", y, real(3)), give(changed)), orelse=give(p))
            return Next(label, (joined,))

        start = b.tuple(b.tuple(x, x), x)
        pair = TupleType((TupleType((F, F)), F))
        (r,) = b.loop([start], [pair], body, count=whole(4))
        whole_pair = b.project(r, 0)
        return b.op("add", b.project(whole_pair, 0), b.project(whole_pair, 1))

    before = unary(f)
    after = optimize(before, 2, checked=True)
    assert_modules_agree(before, after, Program(straight, ((0.0,), (2.5,), (9.0,))))
    assert not {"MakeTuple", "Project", "exp"} & set(kinds(after))


def test_tail_recursion_becomes_a_loop() -> None:
    type_ = FunctionType((F, F), F)

    def gcd(b: Build, label: LoopLabel, x: Var, y: Var) -> Terminator:
        b.branch([], (b.op("equal", y, real(0)), leave(label, x)))
        return Exit(label, (b.call(Global("gcd", type_), y, b.op("mod", x, y)),))

    before = PASSES["structure"](module(function("gcd", [F, F], F, gcd)))
    after = prepare(before, 0, checked=True)
    assert_modules_agree(before, after, Program(straight, ((12.0, 18.0), (7.0, 0.0))))
    assert "Call" not in kinds(after)
    recursive = prepare(lowered("power"), 0)
    assert "Call" in kinds(recursive)
