"""The translation of Python functions to surface IR: the structure and the positions of every construct."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from surface_programs import blocks, lower, only, place, source_of, values

from relay.errors import RelayError
from relay.frontend.analysis.unsupported import STATEMENTS
from relay.ir import expr, surface
from relay.ir.annotations.annotation import Tensor
from relay.ir.expr import Var
from relay.ir.intrinsic import Intrinsic
from relay.ir.types import FLOAT32

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
    assert function.body.terminator.values == function.parameters


@pytest.mark.parametrize(
    ("text", "value"), [("3", 3), ("2.5", 2.5), ("-3", -3), ("-0.0", -0.0), ("'a'", "a"), ("...", ...)]
)
def test_literals_are_static(text: str, value: object) -> None:
    function = lower(f"def f():\n    return {text}\n")
    assert function.body.bindings == ()
    (atom,) = function.body.terminator.values
    assert isinstance(atom, expr.Static)
    assert type(atom.value) is type(value) and repr(atom.value) == repr(value)
    assert source_of(atom.span) == text


@pytest.mark.parametrize("value", [True, False])
def test_truth_values_are_constants(value: bool) -> None:
    (atom,) = lower(f"def f():\n    return {value}\n").body.terminator.values
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
    names = [v.function.name for v in values(function.body) if isinstance(v, surface.Apply)]
    assert names == ["a", "b", "g", "c", "d"]


def test_calls() -> None:
    function = lower("def f(x):\n    return g(x, 1, k=x, flag=True)\n")
    call = only(function, surface.Apply)
    assert isinstance(call.function, expr.Global) and call.function.name == "g"
    assert call.arguments[0] is function.parameters[0]
    assert [name for name, _ in call.keywords] == ["k", "flag"]
    assert source_of(call.span) == "g(x, 1, k=x, flag=True)"
    assert source_of(call.function.span) == "g"


def test_attributes_and_methods() -> None:
    function = lower("def f(x):\n    return relay.nn.relu(x).sum(axis=0)\n")
    chain = [(v.name, v.value) for v in values(function.body) if isinstance(v, surface.Attribute)]
    assert [name for name, _ in chain] == ["nn", "relu", "sum"]
    assert isinstance(chain[0][1], expr.Global) and chain[0][1].name == "relay"
    applied = [v for v in values(function.body) if isinstance(v, surface.Apply)]
    assert len(applied) == 2 and applied[1].keywords[0][0] == "axis"


def test_indices() -> None:
    function = lower("def f(x, i):\n    return x[i, 1:i:2, None, ..., :]\n")
    index = only(function, surface.Index)
    first, part, axis, rest, everything = index.items
    assert first is function.parameters[1]
    assert isinstance(part, surface.Slice) and part.stop is function.parameters[1]
    assert isinstance(part.start, expr.Static) and isinstance(part.step, expr.Static)
    assert isinstance(axis, expr.Static) and axis.value is None
    assert isinstance(rest, expr.Static) and rest.value is ...
    assert isinstance(everything, surface.Slice) and (everything.start, everything.stop, everything.step) == (None,) * 3


def test_tuples_and_lists() -> None:
    function = lower("def f(x):\n    return (x, [x, 1], ())\n")
    inner, empty, outer = values(function.body)
    assert all(isinstance(v, expr.MakeTuple) for v in (empty, outer))
    assert isinstance(inner, surface.Apply) and isinstance(inner.function, expr.Static)
    assert inner.function.value == Intrinsic("list") and len(inner.arguments) == 2
    assert [len(v.items) for v in (empty, outer)] == [0, 3]


def test_and_computes_the_second_only_if_needed() -> None:
    function = lower("def f(x):\n    return g(x) and h(x)\n")
    first, chosen = function.body.bindings
    assert isinstance(first.value, surface.Apply) and isinstance(chosen.value, expr.If)
    (arm,) = chosen.value.arms
    assert arm.condition.bindings == () and isinstance(arm.body.bindings[0].value, surface.Apply)
    assert chosen.value.orelse.terminator.values == first.targets  # the value that decides


def test_or_computes_the_second_only_if_needed() -> None:
    function = lower("def f(x):\n    return g(x) or h(x)\n")
    chosen = only(function, expr.If)
    assert chosen.arms[0].body.terminator.values == function.body.bindings[0].targets
    assert isinstance(chosen.orelse.bindings[0].value, surface.Apply)


@pytest.mark.parametrize(("word", "decides"), [("and", False), ("or", True)])
def test_conditions_need_the_truth_of_what_decides(word: str, decides: bool) -> None:
    function = lower(f"def f(x):\n    return 1 if g(x) {word} h(x) else 2\n")
    chosen = next(v for v in values(function.body) if isinstance(v, expr.If))
    (known,) = (chosen.arms[0].body if decides else chosen.orelse).terminator.values
    assert isinstance(known, expr.Constant) and bool(known.value) is decides


@pytest.mark.parametrize("word", ["and", "or"])
def test_long_conditions_do_not_nest(word: str) -> None:
    operands = f" {word} ".join(f"g{i}(x)" for i in range(3000))
    function = lower(f"def f(x):\n    return 1 if {operands} else 2\n")
    chosen = next(v for v in values(function.body) if isinstance(v, expr.If))
    assert len(chosen.arms) == 2999
    assert len(chosen.arms[0].condition.bindings) == 0 and len(chosen.arms[1].condition.bindings) > 0


@pytest.mark.parametrize("word", ["and", "or"])
def test_long_values_of_operands_nest_to_a_logarithm(word: str) -> None:
    function = lower("def f(x):\n    return " + f" {word} ".join(f"g{i}(x)" for i in range(3000)) + "\n")
    calls = [v for block in blocks(function.body) for v in values(block) if isinstance(v, surface.Apply)]
    assert [call.function.name for call in calls] == [f"g{i}" for i in range(3000)]

    def depth(block: expr.Block) -> int:
        nested = [b for v in values(block) if isinstance(v, expr.If) for b in (*(a.body for a in v.arms), v.orelse)]
        return 1 + max(map(depth, nested), default=0)

    assert depth(function.body) <= 24  # two for each of the 9 halvings, and the last eight operands


def test_comparison_chains_compute_each_operand_once() -> None:
    function = lower("def f(x):\n    return a(x) < b(x) < c(x) <= d(x)\n")
    calls = [v for block in blocks(function.body) for v in values(block) if isinstance(v, surface.Apply)]
    assert [c.function.name for c in calls] == ["a", "b", "c", "d"]
    comparisons = [v for block in blocks(function.body) for v in values(block) if isinstance(v, expr.OpCall)]
    assert [c.operator for c in comparisons] == ["less", "less", "less_equal"]
    assert source_of(comparisons[1].span) == "b(x) < c(x)"


def test_conditional_expressions_are_one_chain() -> None:
    function = lower("def f(x):\n    y = g(x) if x > 0 else h(x) if x < 0 else 0\n    return y\n")
    binding = function.body.bindings[-1]
    assert isinstance(binding.value, expr.If) and binding.targets[0].name == "y"
    assert len(binding.value.arms) == 2 and len(binding.value.arms[1].condition.bindings) == 1
    assert source_of(binding.value.arms[0].body.terminator.span) == "g(x)"


def test_walrus_binds() -> None:
    function = lower("def f(x):\n    return (y := x + 1) * y\n")
    total, product = function.body.bindings
    assert total.targets[0].name == "y"
    assert product.value.arguments == (total.targets[0], total.targets[0])


def test_operand_before_walrus_keeps_its_value() -> None:
    function = lower("def f(x):\n    return x * (x := 2)\n")
    alias, product = function.body.bindings
    assert product.value.arguments == (function.parameters[0], alias.targets[0])


# ---- assignments


def test_each_assignment_is_a_new_variable() -> None:
    function = lower("def f(x):\n    x = x + 1\n    x = x + 2\n    return x\n")
    first, second = function.body.bindings
    assert first.targets[0] is not second.targets[0] is not function.parameters[0]
    assert [b.targets[0].name for b in (first, second)] == ["x", "x"]
    assert second.value.arguments[0] is first.targets[0]
    assert function.body.terminator.values == second.targets
    assert [place(b.targets[0].span) for b in (first, second)] == [(2, 5, 2, 6), (3, 5, 3, 6)]


def test_aliases_and_literals_have_bindings() -> None:
    function = lower("def f(x):\n    y = x\n    z = 3\n    return y + z\n")
    alias, number, _ = function.body.bindings
    assert alias.value is function.parameters[0] and alias.targets[0].name == "y"
    assert isinstance(number.value, expr.Static) and number.targets[0].name == "z"


def test_augmented_assignment() -> None:
    function = lower("def f(x):\n    x += 1\n    return x\n")
    (binding,) = function.body.bindings
    assert binding.targets[0].name == "x" and binding.value.operator == "add"
    assert binding.value.arguments[0] is function.parameters[0]


def test_swap_needs_no_tuple() -> None:
    function = lower("def f(a, b):\n    a, b = b, a\n    return a - b\n")
    first, second, difference = function.body.bindings
    assert (first.value, second.value) == (function.parameters[1], function.parameters[0])
    assert difference.value.arguments == (first.targets[0], second.targets[0])


def test_patterns_nest() -> None:
    function = lower("def f(x):\n    (a, (b, c)), d = x, 1\n    return a, b, c, d\n")
    outer, inner = [b for b in function.body.bindings if isinstance(b.value, surface.Unpack)]
    assert outer.value.count == 2 and inner.value.value is outer.targets[1]
    assert [v.name for v in (outer.targets[0], *inner.targets)] == ["a", "b", "c"]
    assert source_of(outer.value.span) == "(a, (b, c))"


def test_several_targets_share_one_value() -> None:
    function = lower("def f(x):\n    a = b = g(x)\n    return a, b\n")
    calls = [v for v in values(function.body) if isinstance(v, surface.Apply)]
    assert len(calls) == 1


def test_items_are_updated_by_rebinding() -> None:
    function = lower("def f(x, i):\n    x[i] = 3\n    return x\n")
    (binding,) = function.body.bindings
    assert isinstance(binding.value, surface.IndexUpdate) and binding.value.value is function.parameters[0]
    assert binding.value.items == (function.parameters[1],)
    assert function.body.terminator.values == binding.targets
    assert source_of(binding.value.span) == "x[i]"


def test_items_are_incremented() -> None:
    read, total, update = values(lower("def f(x, i):\n    x[g(i)] += 3\n    return x\n").body)[1:]
    assert isinstance(read, surface.Index) and isinstance(total, expr.OpCall)
    assert isinstance(update, surface.IndexUpdate)
    assert read.items == update.items  # the index is computed once


def test_items_of_items() -> None:
    function = lower("def f(x):\n    x[0][1] = 3\n    return x\n")
    read, inner, outer = function.body.bindings
    assert isinstance(read.value, surface.Index) and isinstance(inner.value, surface.IndexUpdate)
    assert inner.value.value is read.targets[0]
    assert isinstance(outer.value, surface.IndexUpdate) and outer.value.new is inner.targets[0]


def test_references_are_written() -> None:
    function = lower("def f(r):\n    r.value = 1\n    r.value += 2\n    r.value[0] = 3\n")
    kinds = [type(b.value).__name__ for b in function.body.bindings]
    assert kinds == [
        "SetAttribute",
        "Attribute", "OpCall", "SetAttribute",
        "Attribute", "IndexUpdate", "SetAttribute",
    ]  # fmt: skip
    assert all(b.targets == () for b in function.body.bindings if isinstance(b.value, surface.SetAttribute))


def test_annotated_assignment() -> None:
    function = lower("def f(x):\n    y: T = x\n    return y\n", T=Tensor[FLOAT32, (3,)])
    (binding,) = function.body.bindings
    assert isinstance(binding.value, surface.Annotated) and binding.value.annotation == Tensor[FLOAT32, (3,)]
    assert binding.targets[0].name == "y"


def test_assertions() -> None:
    function = lower('def f(x):\n    assert x > 0, "positive"\n    assert x < 3\n    return x\n')
    first, second = [b for b in function.body.bindings if isinstance(b.value, expr.Assert)]
    assert first.targets == () and first.value.message == "positive"
    assert second.value.message == "assertion failed: x < 3"
    assert source_of(second.value.span) == "x < 3"


def test_calls_as_statements_are_kept() -> None:
    function = lower("def f(x):\n    write(x)\n    return x\n")
    assert isinstance(function.body.bindings[0].value, surface.Apply)


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


def test_end_without_return_gives_none() -> None:
    for text in (
        "def f(x):\n    pass\n",
        "def f(x):\n    return\n",
        "def f(x):\n    return None\n",
        'def f():\n    """Nothing."""\n',
    ):
        function = lower(text)
        assert function.body.bindings == ()
        (nothing,) = function.body.terminator.values
        assert isinstance(nothing, expr.Static) and nothing.value is None


def test_captured_variables_are_the_same_objects() -> None:
    function = lower("def f(x):\n    y = x + 1\n    g = lambda v: v + y\n    return g(x)\n")
    y, g = function.body.bindings[:2]
    assert isinstance(g.value, expr.Lambda) and g.value.function.name == "g"
    assert g.value.function.body.bindings[0].value.arguments[1] is y.targets[0]


def test_neighboring_functions_see_each_other() -> None:
    function = lower(
        "def f(x):\n    def a(n):\n        return b(n)\n    def b(n):\n        return a(n)\n    return a(x)\n"
    )
    a, b = function.body.bindings[:2]
    assert a.value.function.body.bindings[0].value.function is b.targets[0]
    assert b.value.function.body.bindings[0].value.function is a.targets[0]


def test_default_that_uses_an_earlier_neighbor() -> None:
    function = lower(
        "def f(x):\n    def a(n):\n        return n\n    def b(n=a(1)):\n        return n\n    return b()\n"
    )
    kinds = [type(v).__name__ for v in values(function.body)]
    assert kinds == ["Lambda", "Apply", "Lambda", "Apply"]


def test_doubly_nested_capture() -> None:
    function = lower("def f(x):\n    def g(y):\n        return lambda z: x + y + z\n    return g(1)\n")
    inner = function.body.bindings[0].value.function.body.bindings[0].value.function
    assert inner.body.bindings[0].value.arguments[0] is function.parameters[0]


def test_inner_locals_shadow() -> None:
    function = lower("def f(x):\n    def g():\n        x = 1\n        return x\n    return g() + x\n")
    inner = function.body.bindings[0].value.function
    assert isinstance(inner.body.bindings[0].value, expr.Static)


def test_every_variable_is_bound_once() -> None:
    function = lower("""
        def f(x, ys):
            s = 0
            for y in ys:
                if y > 0:
                    s += y
                elif y < -3:
                    break
                while s > 10:
                    s -= 1
                    g = lambda v: v + s
                    if g(s) > 3:
                        continue
            return s if x else (s, s)
        """)
    bound: list[Var] = list(function.parameters)
    for block in blocks(function.body):
        for binding in block.bindings:
            bound += binding.targets
            match binding.value:
                case expr.Loop(parameters=parameters):
                    bound += parameters
                case surface.ForEach(element=element, parameters=parameters):
                    bound += (element, *parameters)
                case expr.Lambda(inner):
                    bound += inner.parameters
    assert len(bound) == len(set(map(id, bound)))


def test_every_node_has_a_place() -> None:
    text = """
        def f(x, ys):
            s = 0
            for i, y in enumerate(ys):
                s += y if y > 0 and i < 3 else -y
                s[0] = y[1:2]
            return s
        """
    function = lower(text)
    for block in blocks(function.body):
        for binding in block.bindings:
            assert getattr(binding.value, "span", None) is not None, binding
            assert all(target.span is not None for target in binding.targets), binding
        assert isinstance(block.terminator, expr.Dead) or block.terminator.span is not None, block


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


def test_reassigned_captured_variables_are_cells() -> None:
    function = lower("def f(x):\n    g = lambda v: v + x\n    x = x * 2\n    return g(x)\n")
    cell, inner, read, product, write, again, called = function.body.bindings
    assert isinstance(cell.value, expr.RefNew) and isinstance(write.value, expr.RefWrite)
    assert isinstance(inner.value, expr.Lambda) and isinstance(product.value, expr.OpCall)
    assert isinstance(called.value, surface.Apply)
    captured = inner.value.function.body.bindings[0].value
    for use in (captured, read.value, again.value):
        assert isinstance(use, expr.RefRead) and use.reference is cell.targets[0]


def test_error_of_a_syntax_mistake() -> None:
    assert message("def f(x):\n    return x +\n").startswith(
        "<test>:2:15: error: this is not valid Python: invalid syntax"
    )


def test_deep_nesting_is_an_error_of_the_user() -> None:
    text = "def f(x):\n    return " + "not " * 1500 + "x\n"
    assert "nested too deeply" in message(text)


def test_all_statements_of_python_are_known() -> None:
    """A new statement in Python must be looked at."""
    lowered = {"Assign", "AugAssign", "AnnAssign", "Return", "If", "While", "For", "Expr", "Break", "Continue"}
    known = lowered | {"Assert", "Delete", "Raise", "Match", "Nonlocal", "Pass", "FunctionDef", "Try", "TypeAlias"}
    known |= {kind.__name__ for kind in STATEMENTS}
    assert {kind.__name__ for kind in ast.stmt.__subclasses__()} <= known
