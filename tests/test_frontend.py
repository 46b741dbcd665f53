"""The translation of Python functions: structure, positions, and where sources come from."""

from __future__ import annotations

import ast
import functools
import linecache
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from relay.errors import FrontendError, RelayError, Span
from relay.frontend.lower import lower_function, lower_text
from relay.frontend.source import find_function, parse_text
from relay.ir import expr, types
from relay.ir.annotation import Fn, Ref, Tensor, base_type_var, dims, shape_var, type_var
from relay.ir.definition import MISSING, Definition
from relay.ir.expr import Block, Expr, Function, Var
from relay.ir.types import ANY, BOOL, FLOAT32, INT32, RefType, TensorType, TupleType, scalar
from relay.ir.types import FunctionType as ArrowType

(n, m) = dims("n m")
Float = FLOAT32
SIZE = 3
Matrix = Tensor[Float, (n, m)]


def lower(text: str, **names: object) -> Function:
    """The last function of a text."""
    return list(lower_text(text, "<test>", names).values())[-1].function


def values(block: Block) -> list[Expr]:
    return [binding.value for binding in block.bindings]


def only(function: Function, kind: type[Any]) -> Any:
    """The one binding's value of a kind, anywhere in a function."""
    (found,) = [v for block in blocks(function.body) for v in values(block) if isinstance(v, kind)]
    return found


def blocks(block: Block) -> Iterator[Block]:
    """A block and those inside of it."""
    yield block
    for value in values(block):
        match value:
            case expr.If(arms, orelse):
                for arm in arms:
                    yield from blocks(arm.condition)
                    yield from blocks(arm.body)
                yield from blocks(orelse)
            case expr.Loop(body=body) | expr.ForEach(body=body):
                yield from blocks(body)
            case expr.Lambda(function):
                yield from blocks(function.body)


def place(span: Span | None) -> tuple[int, int, int, int]:
    assert span is not None
    return span.line, span.column, span.end_line, span.end_column


def source_of(span: Span | None) -> str:
    """The text of a span on one line."""
    assert span is not None and span.line == span.end_line
    return span.source.line(span.line)[span.column - 1 : span.end_column - 1]


# ---- expressions


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        ("x + y", "add"),
        ("x - y", "subtract"),
        ("x * y", "multiply"),
        ("x / y", "divide"),
        ("x // y", "floor_divide"),
        ("x % y", "mod"),
        ("x ** y", "power"),
        ("x @ y", "matmul"),
        ("x << y", "left_shift"),
        ("x >> y", "right_shift"),
        ("x & y", "bitwise_and"),
        ("x | y", "bitwise_or"),
        ("x ^ y", "bitwise_xor"),
        ("x == y", "equal"),
        ("x != y", "not_equal"),
        ("x < y", "less"),
        ("x <= y", "less_equal"),
        ("x > y", "greater"),
        ("x >= y", "greater_equal"),
    ],
)
def test_binary_operators(text: str, operator: str) -> None:
    function = lower(f"def f(x, y):\n    return {text}\n")
    (call,) = values(function.body)
    assert isinstance(call, expr.OpCall)
    assert call.operator == operator
    assert call.arguments == function.parameters
    assert source_of(call.span) == text


@pytest.mark.parametrize(("text", "operator"), [("-x", "negative"), ("not x", "logical_not"), ("~x", "bitwise_not")])
def test_unary_operators(text: str, operator: str) -> None:
    function = lower(f"def f(x):\n    return {text}\n")
    (call,) = values(function.body)
    assert isinstance(call, expr.OpCall)
    assert (call.operator, call.arguments) == (operator, function.parameters)


def test_plus_is_nothing() -> None:
    function = lower("def f(x):\n    return +x\n")
    assert function.body.bindings == ()
    assert function.body.terminator.values == function.parameters  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "value"), [("3", 3), ("2.5", 2.5), ("-3", -3), ("-0.0", -0.0), ("'a'", "a"), ("...", ...)]
)
def test_literals_are_static(text: str, value: object) -> None:
    function = lower(f"def f():\n    return {text}\n")
    assert function.body.bindings == ()
    (atom,) = function.body.terminator.values  # type: ignore[union-attr]
    assert isinstance(atom, expr.Static)
    assert type(atom.value) is type(value) and repr(atom.value) == repr(value)
    assert source_of(atom.span) == text


@pytest.mark.parametrize("value", [True, False])
def test_truth_values_are_constants(value: bool) -> None:
    (atom,) = lower(f"def f():\n    return {value}\n").body.terminator.values  # type: ignore[union-attr]
    assert isinstance(atom, expr.Constant)
    assert atom.value.dtype == np.bool_ and atom.value.shape == () and bool(atom.value) is value


def test_minus_true_is_an_operation() -> None:
    assert isinstance(values(lower("def f():\n    return -True\n").body)[0], expr.OpCall)


def test_sums_lean_left_without_recursion() -> None:
    function = lower("def f(x):\n    return " + " + ".join(["x"] * 900) + "\n")
    assert len(function.body.bindings) == 899
    first, last = function.body.bindings[0].value, function.body.bindings[-1].value
    assert isinstance(first, expr.OpCall) and source_of(first.span) == "x + x"
    assert isinstance(last, expr.OpCall) and isinstance(last.arguments[0], Var)


def test_subtraction_associates_left() -> None:
    function = lower("def f(a, b, c):\n    return a - b * c - a\n")
    product, difference, result = values(function.body)
    assert isinstance(product, expr.OpCall) and product.operator == "multiply"
    assert isinstance(difference, expr.OpCall) and difference.arguments[0] is function.parameters[0]
    assert isinstance(result, expr.OpCall) and result.arguments[1] is function.parameters[0]


def test_evaluation_goes_from_left_to_right() -> None:
    function = lower("def f(x):\n    return g(a(x), k=b(x)) + c(x)[d(x)]\n")
    names = [v.function.name for v in values(function.body) if isinstance(v, expr.Apply)]  # type: ignore[union-attr]
    assert names == ["a", "b", "g", "c", "d"]


def test_calls() -> None:
    function = lower("def f(x):\n    return g(x, 1, k=x, flag=True)\n")
    call = only(function, expr.Apply)
    assert isinstance(call.function, expr.Global) and call.function.name == "g"
    assert call.arguments[0] is function.parameters[0]
    assert [name for name, _ in call.keywords] == ["k", "flag"]
    assert source_of(call.span) == "g(x, 1, k=x, flag=True)"
    assert source_of(call.function.span) == "g"


def test_attributes_and_methods() -> None:
    function = lower("def f(x):\n    return relay.nn.relu(x).sum(axis=0)\n")
    chain = [(v.name, v.value) for v in values(function.body) if isinstance(v, expr.Attribute)]
    assert [name for name, _ in chain] == ["nn", "relu", "sum"]
    assert isinstance(chain[0][1], expr.Global) and chain[0][1].name == "relay"
    applied = [v for v in values(function.body) if isinstance(v, expr.Apply)]
    assert len(applied) == 2 and applied[1].keywords[0][0] == "axis"


def test_indices() -> None:
    function = lower("def f(x, i):\n    return x[i, 1:i:2, None, ..., :]\n")
    index = only(function, expr.Index)
    first, part, axis, rest, everything = index.items
    assert first is function.parameters[1]
    assert isinstance(part, expr.Slice) and part.stop is function.parameters[1]
    assert isinstance(part.start, expr.Static) and isinstance(part.step, expr.Static)
    assert isinstance(axis, expr.Static) and axis.value is None
    assert isinstance(rest, expr.Static) and rest.value is ...
    assert isinstance(everything, expr.Slice) and (everything.start, everything.stop, everything.step) == (None,) * 3


def test_tuples_and_lists() -> None:
    function = lower("def f(x):\n    return (x, [x, 1], ())\n")
    inner, empty, outer = values(function.body)
    assert all(isinstance(v, expr.MakeTuple) for v in (inner, empty, outer))
    assert [len(v.items) for v in (inner, empty, outer)] == [2, 0, 3]  # type: ignore[union-attr]


def test_and_computes_the_second_only_if_needed() -> None:
    function = lower("def f(x):\n    return g(x) and h(x)\n")
    call, chosen = values(function.body)
    assert isinstance(call, expr.Apply) and isinstance(chosen, expr.If)
    (arm,) = chosen.arms
    assert arm.condition.bindings == () and isinstance(arm.body.bindings[0].value, expr.Apply)
    (known,) = chosen.orelse.terminator.values  # type: ignore[union-attr]
    assert isinstance(known, expr.Constant) and not known.value


def test_or_computes_the_second_only_if_needed() -> None:
    chosen = only(lower("def f(x):\n    return g(x) or h(x)\n"), expr.If)
    (known,) = chosen.arms[0].body.terminator.values
    assert isinstance(known, expr.Constant) and known.value
    assert isinstance(chosen.orelse.bindings[0].value, expr.Apply)


@pytest.mark.parametrize("word", ["and", "or"])
def test_long_conditions_do_not_nest(word: str) -> None:
    function = lower("def f(x):\n    return " + f" {word} ".join(f"g{i}(x)" for i in range(3000)) + "\n")
    chosen = only(function, expr.If)
    assert len(chosen.arms) == 2999
    assert len(chosen.arms[0].condition.bindings) == 0 and len(chosen.arms[1].condition.bindings) > 0


def test_comparison_chains_compute_each_operand_once() -> None:
    function = lower("def f(x):\n    return a(x) < b(x) < c(x) <= d(x)\n")
    calls = [v for block in blocks(function.body) for v in values(block) if isinstance(v, expr.Apply)]
    assert [c.function.name for c in calls] == ["a", "b", "c", "d"]  # type: ignore[union-attr]
    comparisons = [v for block in blocks(function.body) for v in values(block) if isinstance(v, expr.OpCall)]
    assert [c.operator for c in comparisons] == ["less", "less", "less_equal"]
    assert source_of(comparisons[1].span) == "b(x) < c(x)"


def test_conditional_expressions_are_one_chain() -> None:
    function = lower("def f(x):\n    y = g(x) if x > 0 else h(x) if x < 0 else 0\n    return y\n")
    binding = function.body.bindings[-1]
    assert isinstance(binding.value, expr.If) and binding.targets[0].name == "y"
    assert len(binding.value.arms) == 2 and len(binding.value.arms[1].condition.bindings) == 1
    assert source_of(binding.value.arms[0].body.terminator.span) == "g(x)"  # type: ignore[union-attr]


def test_walrus_binds() -> None:
    function = lower("def f(x):\n    return (y := x + 1) * y\n")
    total, product = function.body.bindings
    assert total.targets[0].name == "y"
    assert product.value.arguments == (total.targets[0], total.targets[0])  # type: ignore[union-attr]


def test_operand_before_walrus_keeps_its_value() -> None:
    function = lower("def f(x):\n    return x * (x := 2)\n")
    alias, product = function.body.bindings
    assert product.value.arguments == (function.parameters[0], alias.targets[0])  # type: ignore[union-attr]


# ---- assignments


def test_each_assignment_is_a_new_variable() -> None:
    function = lower("def f(x):\n    x = x + 1\n    x = x + 2\n    return x\n")
    first, second = function.body.bindings
    assert first.targets[0] is not second.targets[0] is not function.parameters[0]
    assert [b.targets[0].name for b in (first, second)] == ["x", "x"]
    assert second.value.arguments[0] is first.targets[0]  # type: ignore[union-attr]
    assert function.body.terminator.values == second.targets  # type: ignore[union-attr]
    assert [place(b.targets[0].span) for b in (first, second)] == [(2, 5, 2, 6), (3, 5, 3, 6)]


def test_aliases_and_literals_have_bindings() -> None:
    function = lower("def f(x):\n    y = x\n    z = 3\n    return y + z\n")
    alias, number, _ = function.body.bindings
    assert alias.value is function.parameters[0] and alias.targets[0].name == "y"
    assert isinstance(number.value, expr.Static) and number.targets[0].name == "z"


def test_augmented_assignment() -> None:
    function = lower("def f(x):\n    x += 1\n    return x\n")
    (binding,) = function.body.bindings
    assert binding.targets[0].name == "x" and binding.value.operator == "add"  # type: ignore[union-attr]
    assert binding.value.arguments[0] is function.parameters[0]  # type: ignore[union-attr]


def test_swap_needs_no_tuple() -> None:
    function = lower("def f(a, b):\n    a, b = b, a\n    return a - b\n")
    first, second, difference = function.body.bindings
    assert (first.value, second.value) == (function.parameters[1], function.parameters[0])
    assert difference.value.arguments == (first.targets[0], second.targets[0])  # type: ignore[union-attr]


def test_patterns_nest() -> None:
    function = lower("def f(x):\n    (a, (b, c)), d = x, 1\n    return a, b, c, d\n")
    outer, inner = [b for b in function.body.bindings if isinstance(b.value, expr.Unpack)]
    assert outer.value.count == 2 and inner.value.value is outer.targets[1]  # type: ignore[union-attr]
    assert [v.name for v in (outer.targets[0], *inner.targets)] == ["a", "b", "c"]
    assert source_of(outer.value.span) == "(a, (b, c))"  # type: ignore[union-attr]


def test_several_targets_share_one_value() -> None:
    function = lower("def f(x):\n    a = b = g(x)\n    return a, b\n")
    calls = [v for v in values(function.body) if isinstance(v, expr.Apply)]
    assert len(calls) == 1


def test_items_are_updated_by_rebinding() -> None:
    function = lower("def f(x, i):\n    x[i] = 3\n    return x\n")
    (binding,) = function.body.bindings
    assert isinstance(binding.value, expr.IndexUpdate) and binding.value.value is function.parameters[0]
    assert binding.value.items == (function.parameters[1],)
    assert function.body.terminator.values == binding.targets  # type: ignore[union-attr]
    assert source_of(binding.value.span) == "x[i]"


def test_items_are_incremented() -> None:
    read, total, update = values(lower("def f(x, i):\n    x[g(i)] += 3\n    return x\n").body)[1:]
    assert isinstance(read, expr.Index) and isinstance(total, expr.OpCall) and isinstance(update, expr.IndexUpdate)
    assert read.items == update.items  # the index is computed once


def test_items_of_items() -> None:
    function = lower("def f(x):\n    x[0][1] = 3\n    return x\n")
    read, inner, outer = function.body.bindings
    assert isinstance(read.value, expr.Index) and isinstance(inner.value, expr.IndexUpdate)
    assert inner.value.value is read.targets[0]
    assert isinstance(outer.value, expr.IndexUpdate) and outer.value.new is inner.targets[0]


def test_references_are_written() -> None:
    function = lower("def f(r):\n    r.value = 1\n    r.value += 2\n    r.value[0] = 3\n")
    kinds = [type(b.value).__name__ for b in function.body.bindings]
    assert kinds == [
        "SetAttribute",
        "Attribute", "OpCall", "SetAttribute",
        "Attribute", "IndexUpdate", "SetAttribute",
        "MakeTuple",
    ]  # fmt: skip
    assert all(b.targets == () for b in function.body.bindings if isinstance(b.value, expr.SetAttribute))


def test_annotated_assignment() -> None:
    function = lower("def f(x):\n    y: T = x\n    return y\n", T=Matrix)
    (binding,) = function.body.bindings
    assert isinstance(binding.value, expr.Annotated) and binding.value.annotation == Matrix
    assert binding.targets[0].name == "y"


def test_assertions() -> None:
    function = lower('def f(x):\n    assert x > 0, "positive"\n    assert x < 3\n    return x\n')
    first, second = [b for b in function.body.bindings if isinstance(b.value, expr.Assert)]
    assert first.targets == () and first.value.message == "positive"  # type: ignore[union-attr]
    assert second.value.message == "assertion failed: x < 3"  # type: ignore[union-attr]
    assert source_of(second.value.span) == "x < 3"  # type: ignore[union-attr]


def test_calls_as_statements_are_kept() -> None:
    function = lower("def f(x):\n    write(x)\n    return x\n")
    assert isinstance(function.body.bindings[0].value, expr.Apply)


# ---- if


def test_if_yields_what_is_read_later() -> None:
    function = lower(
        "def f(x):\n    t = 0\n    if x > 0:\n        y = x\n        t = x + 1\n    else:\n        y = 1\n        u = 3\n    return y\n"
    )
    binding = function.body.bindings[-1]
    assert [v.name for v in binding.targets] == ["y"]
    ends = [binding.value.arms[0].body.terminator, binding.value.orelse.terminator]  # type: ignore[union-attr]
    assert all(isinstance(end, expr.Yield) and len(end.values) == 1 for end in ends)


def test_if_without_else_yields_the_old_value() -> None:
    function = lower("def f(x):\n    if x > 0:\n        x = 1\n    return x\n")
    binding = function.body.bindings[-1]
    assert binding.value.orelse.terminator.values == function.parameters  # type: ignore[union-attr]
    assert function.body.terminator.values == binding.targets  # type: ignore[union-attr]


def test_elif_chains_are_flat() -> None:
    count = 300
    arms = "".join(f"    elif x == {i}:\n        y = {i}\n" for i in range(count))
    function = lower(f"def f(x):\n    if x < 0:\n        y = 5\n{arms}    else:\n        y = 2\n    return y\n")
    chain = only(function, expr.If)
    assert len(chain.arms) == count + 1
    assert chain.arms[0].condition.bindings == () and len(chain.arms[1].condition.bindings) == 1


def test_elif_with_walrus_nests() -> None:
    function = lower(
        "def f(x):\n    if x:\n        y = 1\n    elif (z := g(x)):\n        y = z\n    else:\n        y = z + 1\n    return y\n"
    )
    outer = function.body.bindings[-1].value
    assert isinstance(outer, expr.If) and len(outer.arms) == 1
    assert [v.name for v in outer.orelse.bindings[-1].targets] == ["y"]


def test_early_return_leaves_several_constructs() -> None:
    function = lower(
        "def f(x):\n    while x > 0:\n        if x == 5:\n            return 7\n        x = x - 1\n    return x\n"
    )
    exits = [b.terminator for b in blocks(function.body) if isinstance(b.terminator, expr.Exit)]
    assert [end.label is function.label for end in exits] == [True, False, True] or {end.label for end in exits} > {
        function.label
    }
    guard = next(v for b in blocks(function.body) for v in values(b) if isinstance(v, expr.If) and len(b.bindings) > 2)
    assert isinstance(guard.arms[0].body.terminator, expr.Exit)
    assert guard.orelse.terminator.values == ()  # type: ignore[union-attr]


def test_guards_stay_flat() -> None:
    text = "def f(x):\n" + "    if x > 3:\n        return x\n    x = x + 1\n" * 2000 + "    return x\n"
    function = lower(text)
    assert len(function.body.bindings) == 6000


def test_if_that_never_yields_ends_its_block() -> None:
    function = lower("def f(x):\n    if x > 0:\n        return 1\n    else:\n        return 2\n")
    assert function.body.bindings[-1].targets == ()
    assert isinstance(function.body.terminator, expr.Dead)


# ---- loops


def test_while_carries_what_a_round_reads() -> None:
    function = lower(
        "def f(x, k):\n    t = 0\n    s = 0\n    while x > 0:\n        t = x * k\n        s = s + t\n        x = x - 1\n    return s\n"
    )
    binding = function.body.bindings[-1]
    loop = binding.value
    assert isinstance(loop, expr.Loop) and loop.counter is None
    assert [v.name for v in loop.parameters] == ["s", "x"]
    assert [v.name for v in binding.targets] == ["s"]
    assert loop.initial[1] is function.parameters[0]
    choice = loop.body.bindings[-1].value
    assert isinstance(choice, expr.If) and isinstance(loop.body.terminator, expr.Dead)
    assert isinstance(choice.arms[0].body.terminator, expr.Next)
    assert choice.orelse.terminator.values == (loop.parameters[0],)  # type: ignore[union-attr]
    assert source_of(loop.span) == "while x > 0"


def test_endless_while_has_no_condition() -> None:
    function = lower(
        "def f(x):\n    while True:\n        y = x + 1\n        if y > 3:\n            break\n        x = y\n    return y\n"
    )
    binding = function.body.bindings[-1]
    assert isinstance(binding.value, expr.Loop) and [v.name for v in binding.targets] == ["y"]
    assert [v.name for v in binding.value.parameters] == ["x"]
    assert isinstance(binding.value.body.terminator, expr.Next)


def test_loop_that_only_returns_is_followed_by_dead() -> None:
    function = lower("def f(x):\n    while True:\n        if x > 3:\n            return x\n        x = x + 1\n")
    assert function.body.bindings[-1].targets == ()
    assert isinstance(function.body.terminator, expr.Dead)


def test_while_else() -> None:
    function = lower(
        "def f(x):\n    y = 0\n    while x > 0:\n        if x == 5:\n            break\n        x = x - 1\n    else:\n        y = 1\n    return y\n"
    )
    loop = only(function, expr.Loop)
    done = loop.body.bindings[-1].value.orelse
    assert isinstance(done.bindings[0].value, expr.Static)
    assert done.terminator.values == done.bindings[0].targets


def test_for_loop() -> None:
    function = lower(
        "def f(xs, s):\n    for x in xs:\n        if x < 0:\n            continue\n        if x > 9:\n            break\n        s = s + x\n    return s\n"
    )
    binding = function.body.bindings[-1]
    loop = binding.value
    assert isinstance(loop, expr.ForEach) and loop.iterable is function.parameters[0]
    assert loop.element.name == "x" and loop.initial == (function.parameters[1],)
    assert [v.name for v in binding.targets] == ["s"]
    skip, leave = [v for v in values(loop.body) if isinstance(v, expr.If)]
    assert isinstance(skip.arms[0].body.terminator, expr.Next)
    assert skip.arms[0].body.terminator.values == loop.parameters
    assert isinstance(leave.arms[0].body.terminator, expr.Exit)
    assert leave.arms[0].body.terminator.values == loop.parameters
    assert source_of(loop.span) == "for x in xs"


def test_for_with_a_pattern() -> None:
    loop = only(lower("def f(xs):\n    for i, x in enumerate(xs):\n        g(i, x)\n"), expr.ForEach)
    unpack = loop.body.bindings[0]
    assert unpack.value.value is loop.element and [v.name for v in unpack.targets] == ["i", "x"]


def test_for_target_that_is_read_afterwards_is_carried() -> None:
    function = lower("def f(xs):\n    x = 0\n    for x in xs:\n        pass\n    return x\n")
    loop = only(function, expr.ForEach)
    assert [v.name for v in loop.parameters] == ["x"] and loop.parameters[0] is not loop.element
    assert loop.body.terminator.values == (loop.element,)


def test_for_else_with_break_has_a_flag() -> None:
    function = lower(
        "def f(xs):\n    for x in xs:\n        if x > 0:\n            break\n    else:\n        return 0\n    return 1\n"
    )
    binding = next(b for b in function.body.bindings if isinstance(b.value, expr.ForEach))
    assert [v.name for v in binding.targets] == ["broke"]
    choice = function.body.bindings[-1].value
    assert isinstance(choice, expr.If)
    assert choice.arms[0].condition.terminator.values == binding.targets  # type: ignore[union-attr]
    assert isinstance(choice.orelse.terminator, expr.Exit)


def test_for_else_without_break_is_what_follows() -> None:
    function = lower("def f(xs, y):\n    for x in xs:\n        y = y + x\n    else:\n        y = y * 2\n    return y\n")
    assert [type(v).__name__ for v in values(function.body)] == ["ForEach", "OpCall"]


def test_inner_continue_and_outer_variables() -> None:
    function = lower(
        "def f(xs, s):\n    for x in xs:\n        i = 0\n        while i < x:\n            i = i + 1\n            if i == 3:\n"
        "                continue\n            s = s + i\n    return s\n"
    )
    outer, inner = only(function, expr.ForEach), only(function, expr.Loop)
    assert [v.name for v in outer.parameters] == ["s"]
    assert {v.name for v in inner.parameters} == {"i", "s"}


def test_deep_loops_take_no_exponential_time() -> None:
    depth = 18
    nest = "".join("    " + " " * i + f"while x > {i}:\n" for i in range(depth))
    function = lower(f"def f(x):\n{nest}{' ' * (depth + 5)}x = x - 1\n    return x\n")
    assert len([b for b in blocks(function.body)]) > depth


# ---- functions


def test_parameters() -> None:
    function = lower("def f(a, /, b, c=1, *, d, e=-2, g=True, h=name):\n    return a\n")
    assert [v.name for v in function.parameters] == list("abcdegh")
    kinds = [p.kind for p in function.signature]
    assert kinds == ["positional_only"] + ["positional_or_keyword"] * 2 + ["keyword_only"] * 4
    defaults = [p.default for p in function.signature]
    assert defaults[0] is defaults[1] is defaults[3] is None
    assert isinstance(defaults[2], expr.Static) and defaults[2].value == 1
    assert isinstance(defaults[4], expr.Static) and defaults[4].value == -2
    assert isinstance(defaults[5], expr.Constant)
    assert isinstance(defaults[6], expr.Global) and defaults[6].name == "name"


def test_documentation_is_kept() -> None:
    function = lower('def f(x):\n    """What f does.\n\n    More.\n    """\n    return x\n')
    assert function.documentation == "What f does.\n\nMore."
    assert function.body.bindings == ()


def test_end_without_return_gives_unit() -> None:
    for text in (
        "def f(x):\n    pass\n",
        "def f(x):\n    return\n",
        "def f(x):\n    return None\n",
        'def f():\n    """Nothing."""\n',
    ):
        function = lower(text)
        (unit,) = function.body.bindings
        assert isinstance(unit.value, expr.MakeTuple) and unit.value.items == ()
        assert function.body.terminator.values == unit.targets  # type: ignore[union-attr]


def test_captured_variables_are_the_same_objects() -> None:
    function = lower("def f(x):\n    y = x + 1\n    g = lambda v: v + y\n    return g(x)\n")
    y, g = function.body.bindings[:2]
    assert isinstance(g.value, expr.Lambda) and g.value.function.name == "g"
    assert g.value.function.body.bindings[0].value.arguments[1] is y.targets[0]  # type: ignore[union-attr]


def test_neighbouring_functions_see_each_other() -> None:
    function = lower(
        "def f(x):\n    def a(n):\n        return b(n)\n    def b(n):\n        return a(n)\n    return a(x)\n"
    )
    a, b = function.body.bindings[:2]
    assert a.value.function.body.bindings[0].value.function is b.targets[0]  # type: ignore[union-attr]
    assert b.value.function.body.bindings[0].value.function is a.targets[0]  # type: ignore[union-attr]


def test_default_that_uses_an_earlier_neighbour() -> None:
    function = lower(
        "def f(x):\n    def a(n):\n        return n\n    def b(n=a(1)):\n        return n\n    return b()\n"
    )
    kinds = [type(v).__name__ for v in values(function.body)]
    assert kinds == ["Lambda", "Apply", "Lambda", "Apply"]


def test_doubly_nested_capture() -> None:
    function = lower("def f(x):\n    def g(y):\n        return lambda z: x + y + z\n    return g(1)\n")
    inner = function.body.bindings[0].value.function.body.bindings[0].value.function  # type: ignore[union-attr]
    assert inner.body.bindings[0].value.arguments[0] is function.parameters[0]


def test_inner_locals_shadow() -> None:
    function = lower("def f(x):\n    def g():\n        x = 1\n        return x\n    return g() + x\n")
    inner = function.body.bindings[0].value.function  # type: ignore[union-attr]
    assert isinstance(inner.body.bindings[0].value, expr.Static)


def test_every_variable_is_bound_once() -> None:
    text = (
        "def f(x, ys):\n    s = 0\n    for y in ys:\n        if y > 0:\n            s += y\n        elif y < -3:\n            break\n"
        "        while s > 10:\n            s -= 1\n            g = lambda v: v + s\n            if g(s) > 3:\n                continue\n"
        "            s = s * 2\n    return s if x else (s, s)\n"
    )
    text = text.replace("            s = s * 2\n", "")
    function = lower(text)
    bound: list[Var] = list(function.parameters)
    for block in blocks(function.body):
        for binding in block.bindings:
            bound += binding.targets
            match binding.value:
                case expr.Loop(parameters=parameters):
                    bound += parameters
                case expr.ForEach(element=element, parameters=parameters):
                    bound += (element, *parameters)
                case expr.Lambda(inner):
                    bound += inner.parameters
    assert len(bound) == len(set(map(id, bound)))


def test_every_node_has_a_place() -> None:
    text = "def f(x, ys):\n    s = 0\n    for i, y in enumerate(ys):\n        s += y if y > 0 and i < 3 else -y\n        s[0] = y[1:2]\n    return s\n"
    function = lower(text)
    for block in blocks(function.body):
        for binding in block.bindings:
            assert getattr(binding.value, "span", None) is not None, binding
            assert all(target.span is not None for target in binding.targets), binding
        assert isinstance(block.terminator, expr.Dead) or block.terminator.span is not None, block


# ---- annotations


def test_annotations_of_text() -> None:
    names: dict[str, object] = {"Tensor": Tensor, "Fn": Fn, "Ref": Ref, "Any": ANY, "Float": FLOAT32, "n": n, "SIZE": 3}
    names |= {"s": shape_var("s"), "b": base_type_var("b"), "A": type_var("A")}
    text = (
        "def f(a: Tensor[Float, (n, 3)], b_: Tensor[Float, ()], c: Tensor[b, (Any, SIZE)], d: tuple[A, int],\n"
        "      e: Fn[[A, bool], float], g: Ref[A], h: Tensor[Float, s], i: Tensor[Float, (*s, 2 * SIZE)],\n"
        "      j: 'Tensor[Float, (n,)]', k: tuple[()], l) -> None:\n    pass\n"
    )
    function = lower(text, **names)
    found = {v.name: v.type for v in function.parameters}
    s, b, a = names["s"], names["b"], names["A"]
    assert found == {
        "a": TensorType(FLOAT32, (n, 3)),
        "b_": scalar(FLOAT32),
        "c": TensorType(b, (ANY, 3)),  # type: ignore[arg-type]
        "d": TupleType((a, scalar(INT32))),
        "e": ArrowType((a, scalar(BOOL)), scalar(FLOAT32)),
        "g": RefType(a),  # type: ignore[arg-type]
        "h": TensorType(FLOAT32, (s,)),
        "i": TensorType(FLOAT32, (s, 6)),
        "j": TensorType(FLOAT32, (n,)),
        "k": TupleType(()),
        "l": None,
    }
    assert function.result == types.UNIT


def test_annotations_are_objects_at_run_time() -> None:
    s = shape_var("s")
    assert Tensor[Float, (n, 3)] == TensorType(FLOAT32, (n, 3))
    assert Tensor[Float, s] == Tensor[Float, (*s,)] == TensorType(FLOAT32, (s,))
    assert Fn[[Matrix, int], Ref[Matrix]] == ArrowType((Matrix, scalar(INT32)), RefType(Matrix))
    assert Fn[[tuple[Matrix, int]], None].parameters == (TupleType((Matrix, scalar(INT32))),)
    assert Tensor[Float, (np.int64(3), ANY)] == TensorType(FLOAT32, (3, ANY))
    assert [v.kind for v in (*dims("a, b"), s, base_type_var("b"), type_var("A"))] == [
        types.Kind.Dim, types.Kind.Dim, types.Kind.Shape, types.Kind.BaseType, types.Kind.Type
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tensor[Float], "an element type and a shape"),
        (lambda: Tensor[Float, 3], r"write \(3,\)"),
        (lambda: Tensor[n, (3,)], "n is no element type"),
        (lambda: Tensor[Float, ("n",)], "'n' is no dimension"),
        (lambda: Tensor[Float, (True,)], "True is no dimension"),
        (lambda: Tensor[Float, (type_var("A"),)], "kind Type"),
        (lambda: Tensor(3), "not a function that makes tensors"),
        (lambda: Fn[int, int], "a list of parameter types"),
        (lambda: Ref[int, int], "one type"),
        (lambda: Ref[Float], r"write Tensor\[float32, \(\)\]"),
        (lambda: Ref[np.zeros(3)], "no type of Relay"),
        (lambda: dims(""), "no list of names"),
        (lambda: dims("n 3"), "no list of names"),
        (lambda: type_var("a b"), "no name"),
        (lambda: (*n, 3), "no shape variable"),
    ],
)
def test_malformed_types_at_run_time(make: Callable[[], object], message: str) -> None:
    with pytest.raises((FrontendError, TypeError), match=message):
        make()


def annotated(x: Tensor[Float, (n, SIZE)], y: Matrix) -> Matrix:
    return y


def test_annotations_of_a_module_with_future_import() -> None:
    function = lower_function(annotated).function
    assert [v.type for v in function.parameters] == [TensorType(FLOAT32, (n, 3)), Matrix]
    assert function.result == Matrix


def test_evaluated_annotations_with_local_names() -> None:
    text = "def outer():\n    (rows,) = dims('rows')\n    def f(x: Tensor[Float, (rows,)]):\n        return x\n    return f, rows\n"
    outer = defined(text, "outer", dims=dims, Tensor=Tensor, Float=Float)
    function, rows = outer()
    assert lower_function(function).function.parameters[0].type == TensorType(FLOAT32, (rows,))


def test_local_names_in_the_body() -> None:
    text = (
        "def outer():\n    (rows,) = dims('rows')\n    def f(x):\n        y: Tensor[Float, (rows,)] = x\n        return y\n"
        "    return f, rows\n"
    )
    function, rows = defined(text, "outer", dims=dims, Tensor=Tensor, Float=Float)()
    assert only(lower_function(function).function, expr.Annotated).annotation == TensorType(FLOAT32, (rows,))


# ---- sources


counter = iter(range(10**6))


def defined(text: str, name: str, **names: object) -> Any:
    """Execute a text as a notebook does: its lines are in `linecache`."""
    filename = f"<cell {next(counter)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec", dont_inherit=True), names)
    return names[name]


def decorator(function: Any) -> Any:
    return function


def wrapping(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    return wrapper


@decorator
@decorator
def decorated(x, y=SIZE * 2, z=4):  # type: ignore[no-untyped-def]
    return x + y


def line_of(text: str) -> int:
    """The line of this file that ends in a marker."""
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, start=1) if line.rstrip().endswith(text))


def test_positions_in_a_file() -> None:
    def inner(x, y):  # type: ignore[no-untyped-def]
        return x + y  # marker of the sum

    function = lower_function(inner).function
    (call,) = values(function.body)
    line = line_of("# marker of the sum")
    assert place(call.span) == (line - 1, 17, line, 18)  # type: ignore[union-attr]
    assert place(function.span) == (line - 2, 5, line - 2, 14)
    assert function.span is not None and function.span.source.filename == __file__
    assert place(function.parameters[1].span) == (line - 2, 18, line - 2, 19)


def test_decorated_function() -> None:
    function = lower_function(decorated).function
    assert function.name == "decorated" and source_of(function.span) == "def decorated"
    computed, literal = function.signature[1].default, function.signature[2].default
    assert isinstance(computed, expr.Static) and computed.value == 6
    assert isinstance(literal, expr.Static) and literal.value == 4 and source_of(literal.span) == "4"


def test_lambdas_are_told_apart() -> None:
    pair = (lambda x: x + 1, lambda x: x * 2)
    assert [source_of(values(lower_function(f).function.body)[0].span) for f in pair] == ["x + 1", "x * 2"]  # type: ignore[union-attr]


def test_nested_lambdas_are_told_apart() -> None:
    outer = lambda x: lambda y: x + y  # noqa: E731
    inner = outer(1)
    assert isinstance(values(lower_function(outer).function.body)[0], expr.Lambda)
    assert isinstance(values(lower_function(inner).function.body)[0], expr.OpCall)
    same = lambda x: (lambda x: x * 2)(x)  # noqa: E731
    assert isinstance(values(lower_function(same).function.body)[0], expr.Lambda)


def test_lambda_over_several_lines() -> None:
    function = lower_function(
        lambda x, y: (
            x
            - y
        )
    ).function  # fmt: skip
    assert values(function.body)[0].operator == "subtract"  # type: ignore[union-attr]


def test_lambdas_without_columns_are_ambiguous() -> None:
    text = (
        "from relay.frontend.lower import lower_function\n"
        "alone = lambda x: x\n"
        "f, g = lambda x: x + 1, lambda x: x * 2\n"
        "h, i = lambda y: y, lambda z: z\n"
        "lower_function(alone), lower_function(h), lower_function(i)\n"
        "try:\n    lower_function(g)\nexcept Exception as error:\n    print(error)\n"
    )
    code = f"import sys, linecache\nsys.path[:0] = {sys.path!r}\ntext = {text!r}\n"
    code += "linecache.cache['<t>'] = (1, None, text.splitlines(True), '<t>')\nexec(compile(text, '<t>', 'exec'))\n"
    done = subprocess.run(
        [sys.executable, "-X", "no_debug_ranges", "-c", code], capture_output=True, text=True, check=True
    )
    assert "<t>:3:8: error: line 3 has 2 lambdas that may be meant" in done.stdout


def test_text_given_to_exec() -> None:
    function = defined("\n\nif 1:\n    def f(x):\n        return x + missing\n", "f")
    (call,) = values(lower_function(function).function.body)
    assert place(call.span) == (5, 16, 5, 27)  # type: ignore[union-attr]


def test_columns_count_characters() -> None:
    function = defined("def f(größe):\n    return größe * größe + 'ä'\n", "f")
    total = lower_function(function).function.body.bindings[-1].value
    assert place(total.span) == (2, 12, 2, 31)  # type: ignore[union-attr]
    assert source_of(total.span) == "größe * größe + 'ä'"  # type: ignore[union-attr]


def test_strings_with_less_indentation_do_not_matter() -> None:
    function = defined('if 1:\n    def f(x):\n        """A\nB"""\n        return x + 1\n', "f")
    assert place(values(lower_function(function).function.body)[0].span) == (5, 16, 5, 21)  # type: ignore[union-attr]


def test_tabs_and_windows_lines() -> None:
    file = parse_text("def f(x):\r\n\treturn x + 1\r\n", "<tabs>")
    assert file.source.line(2) == "\treturn x + 1"
    (definition,) = lower_text("def f(x):\r\n\treturn x + 1\r\n", "<tabs>", {}).values()
    assert place(values(definition.function.body)[0].span) == (2, 9, 2, 14)  # type: ignore[union-attr]


def test_no_source() -> None:
    names: dict[str, Any] = {}
    exec("def f(x): return x", names)
    with pytest.raises(FrontendError, match=r"the source of `f` is not available(.|\n)*relay.from_source"):
        lower_function(names["f"])


def test_changed_source() -> None:
    function = defined("def f(x):\n    return x\n", "f")
    filename = function.__code__.co_filename
    linecache.cache[filename] = (1, None, ["# new\n", "def f(x):\n", "    return x\n"], filename)
    with pytest.raises(FrontendError, match="the file has changed"):
        lower_function(function)


@pytest.mark.parametrize("thing", [len, int, 3, functools.partial(print)])
def test_not_a_function(thing: Any) -> None:
    with pytest.raises(FrontendError, match="not a function written in Python"):
        lower_function(thing)


def test_same_line_definitions_of_one_name() -> None:
    text = "def make(c):\n    if c:\n        def f(x): return x + 1\n    else:\n        def f(x): return x * 2\n    return f\n"
    make = defined(text, "make")
    operators = [values(lower_function(make(c)).function.body)[0].operator for c in (True, False)]  # type: ignore[union-attr]
    assert operators == ["add", "multiply"]


def test_async_function() -> None:
    with pytest.raises(FrontendError, match="`async def` is not part of Relay"):
        lower_function(defined("async def f(x):\n    return x\n", "f"))


def test_files_are_parsed_once() -> None:
    assert find_function(decorated)[0] is find_function(annotated)[0]


# ---- scopes


later: object


def test_names_are_looked_up_late() -> None:
    def function(x):  # type: ignore[no-untyped-def]
        return later(x) + free + abs(x)  # type: ignore[operator]

    definition = lower_function(function)
    assert definition.scope.resolve("later") is MISSING
    assert definition.scope.resolve("free") is MISSING
    free = 3
    globals()["later"] = later_function = lambda x: x
    try:
        assert definition.scope.resolve("later") is later_function
    finally:
        del globals()["later"]
    assert definition.scope.resolve("free") == free
    assert definition.scope.resolve("abs") is abs
    assert definition.scope.resolve("nothing of this name") is MISSING
    assert {"free", "SIZE", "abs"} <= set(definition.scope.names())


def test_functions_of_a_text_see_each_other() -> None:
    definitions = lower_text("def f(x):\n    return g(x)\ndef g(x):\n    return a\n", "<test>", {"a": 3})
    scope = definitions["f"].scope
    assert scope.resolve("g") is definitions["g"] and isinstance(scope.resolve("g"), Definition)
    assert scope.resolve("a") == 3 and scope.resolve("len") is len and scope.resolve("b") is MISSING


# ---- errors


def message(text: str) -> str:
    with pytest.raises(RelayError) as caught:
        lower(text)
    return str(caught.value)


def test_error_of_a_partial_value_shows_both_paths() -> None:
    assert message("def f(c):\n    if c > 0:\n        y = 1\n    return y\n") == (
        "<test>:4:12: error: `y` may have no value here: one path assigns it and another one does not\n"
        "  |\n"
        "4 |     return y\n"
        "  |            ^\n"
        "  |\n"
        "3 |         y = 1\n"
        "  |         - assigned here\n"
        "  |\n"
        "2 |     if c > 0:\n"
        "  |        ----- not assigned if this does not hold\n"
        "  = help: give `y` a value on every path, or before the `if`"
    )


def test_error_of_a_capture_shows_it() -> None:
    assert message("def f(x):\n    g = lambda v: v + x\n    x = 2\n    return g(x)\n") == (
        "<test>:3:5: error: `x` is assigned after a function has captured it\n"
        "  |\n"
        "3 |     x = 2\n"
        "  |     ^\n"
        "  |\n"
        "2 |     g = lambda v: v + x\n"
        "  |                       - captured here\n"
        "  = help: make it a reference: `x = relay.ref(..)`, then read and assign `x.value`"
    )


def test_error_of_a_syntax_mistake() -> None:
    assert message("def f(x):\n    return x +\n").startswith(
        "<test>:2:15: error: this is not valid Python: invalid syntax"
    )


def test_deep_nesting_is_an_error_of_the_user() -> None:
    text = "def f(x):\n    return " + "not " * 1500 + "x\n"
    assert "nested too deeply" in message(text)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax came with Python 3.12")
def test_type_parameters_are_refused() -> None:
    assert "type parameters in brackets" in message("def f[T](x):\n    return x\n")
    assert "`TypeAlias` is not part of Relay" in message("def f(x):\n    type T = int\n    return x\n")


def test_all_statements_of_python_are_known() -> None:
    """A new statement or expression in Python must be looked at."""
    from relay.frontend import statements, unsupported

    lowered = {
        "Assign",
        "AugAssign",
        "AnnAssign",
        "Return",
        "If",
        "While",
        "For",
        "Expr",
        "Break",
        "Continue",
        "Assert",
        "Pass",
    }
    known = lowered | {"FunctionDef"} | {kind.__name__ for kind in unsupported.STATEMENTS}
    assert {kind.__name__ for kind in ast.stmt.__subclasses__()} - {"TypeAlias"} <= known
    assert statements.lower_statements is not None


def test_type_of_a_function_argument() -> None:
    assert isinstance(annotated, FunctionType)
