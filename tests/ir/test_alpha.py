"""Equality up to names, and its hash."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from zoo import programs

import relay
from relay.errors import InternalError
from relay.ir.analysis.alpha import alpha_equal, alpha_hash
from relay.ir.expr import Block, Function, LoopLabel, Module, Static, Yield
from relay.text.parser import parse

TEXT = """
data List { Nil, Cons(Tensor[float32, ()], List) }

entry fn total(%xs: List, %c: Tensor[bool, ()]) -> Tensor[float32, ()] {
  assert %c "holds";
  print "c " %c as "d" "";
  let %sum: Tensor[float32, ()] = loop 'rest (%xs1: List = %xs, %sum1: Tensor[float32, ()] = 0.0f32) {
    match %xs1 {
      Nil -> { exit 'rest(%sum1) }
      Cons(%head: Tensor[float32, ()], %tail: List) -> {
        let %sum2: Tensor[float32, ()] = add(%sum1, %head);
        next 'rest(%tail, %sum2)
      }
    };
    dead
  };
  let %rows: Tensor[float32, ()] = loop 'rows for %i: Tensor[int32, ()] < 3i32 (%y: Tensor[float32, ()] = %sum) {
    let %z: Tensor[float32, ()] = @scaled(%y, %sum);
    next 'rows(%z)
  };
  let %reduced: Tensor[float32, ()] = sum(%rows, axis=none, keepdims=false);
  %reduced
}

fn scaled(%a: Tensor[float32, ()], %b: Tensor[float32, ()]) -> Tensor[float32, ()] {
  let %z: Tensor[float32, ()] = subtract(%a, %b);
  %z
}

fn other(%a: Tensor[float32, ()]) -> Tensor[float32, ()] {
  %a
}
"""
ORIGINAL = parse(TEXT)


def changed(*changes: tuple[str, str]) -> Module:
    """The program with other words."""
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse(text)


@pytest.mark.parametrize(
    "changes",
    [
        [("%sum", "%partial")],
        [("'rest", "'l"), ("'rows", "'m")],
        [("List", "Sequence")],
        [("total", "main"), ("scaled", "scale_by"), ("other", "another")],
        [("\n", "\n\n    # a comment\n")],
        [("axis=none, keepdims=false", "keepdims=false, axis=none")],
    ],
)  # fmt: skip
def test_names_do_not_matter(changes: list[tuple[str, str]]) -> None:
    other = changed(*changes)
    assert alpha_equal(ORIGINAL, other)
    assert alpha_hash(ORIGINAL) == alpha_hash(other)


@pytest.mark.parametrize(
    "changes",
    [
        [("subtract(%a, %b)", "subtract(%b, %a)")],
        [("subtract", "add")],
        [("next 'rest(%tail, %sum2)", "next 'rest(%tail, %sum1)")],
        [("exit 'rest(%sum1)", "return %sum1")],
        [("0.0f32", "-0.0f32")],
        [("3i32", "4i32")],
        [("3i32", "3i64"), ("%i: Tensor[int32, ()]", "%i: Tensor[int64, ()]")],
        [("Nil", "Empty")],
        [("List) }", "List), More }"), ("Nil ->", "More -> { exit 'rest(%sum1) } Nil ->")],
        [("keepdims=false", "keepdims=true")],
        [("holds", "fails")],
        [('"c "', '"d "')],
        [(' as "d"', "")],
        [("float32", "float64"), ("0.0f32", "0.0f64")],
        [("(%y, %sum)", "(%sum, %y)")],
        [("  %z\n}\n\nfn other", "  %b\n}\n\nfn other")],
        [("fn other(%a: Tensor[float32, ()]) -> Tensor[float32, ()]", "fn other(%a: ()) -> ()")],
        [("entry fn total", "fn total"), ("fn other", "entry fn other")],
    ],
)  # fmt: skip
def test_all_else_matters(changes: list[tuple[str, str]]) -> None:
    other = changed(*changes)
    assert not alpha_equal(ORIGINAL, other)
    assert alpha_hash(ORIGINAL) != alpha_hash(other)


def test_the_order_of_functions_that_the_entry_reaches_does_not_matter() -> None:
    data, total, scaled, other = TEXT.strip().split("\n\n")
    assert alpha_equal(ORIGINAL, parse("\n".join((scaled, total, data, other))))


def test_a_variable_is_no_other_of_the_same_name() -> None:
    first = parse("fn f(%x: (), %y: ()) -> () { %x }")
    assert not alpha_equal(first, parse("fn f(%x: (), %y: ()) -> () { %y }"))
    assert alpha_equal(first, parse("fn f(%y: (), %x: ()) -> () { %y }"))


def test_lone_functions_mention_others_by_name() -> None:
    first, second = (
        parse(
            f"entry fn f(%y: ()) -> () {{ let %x: () = @{g}(%y); %x }} fn g(%y: ()) -> () {{ %y }}"
            " fn h(%y: ()) -> () { %y }"
        ).main
        for g in "gh"
    )
    assert not alpha_equal(first, second)
    assert alpha_equal(first, first)


def test_different_programs_differ() -> None:
    """Programs of the zoo with one hash have one text but for names."""
    found: dict[str, list[str]] = {}
    for program in programs():
        if program.differentiable:
            module = relay.grad(program.function).typed(*program.arguments)
            found.setdefault(alpha_hash(module), []).append(program.name)
    assert len(found) > 0.9 * sum(map(len, found.values()))


def test_the_hash_is_the_same_in_another_process() -> None:
    code = "import sys; from relay import parse, ir; print(ir.alpha_hash(parse(sys.stdin.read())))"
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    result = subprocess.run(
        [sys.executable, "-c", code], input=TEXT, env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == alpha_hash(ORIGINAL)


def test_the_hash_does_not_change_by_accident() -> None:
    """Whoever changes what the hash depends on changes `VERSION` and this line."""
    assert alpha_hash(parse("fn f(%x: ()) -> () { %x }")).startswith("a8c0284fe35b947f9d952f9582cd3c1c")


UNTYPED = """surface;
entry fn f(%x, keyword_only %k = 2) {
  let %items = apply $list(%x, 3);
  let %y = loop 'l for %v in %items (%t = 0.0) {
    let %s = %v.shape;
    let %u = %s[0, 1:, none, ...];
    let %w = apply @relay_sum(%u, axis=0);
    let %m = match %w { (%a, 0) | (0, %a) if { yield %a } -> { yield %a } _ -> { yield %t } };
    next 'l(%m)
  };
  %y
}
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("%items", "%things", True),
        ("'l", "'loop", True),
        ("%a", "%b", True),
        ("%x", "%y1", False),  # callers may name it
        ("keyword_only ", "", False),
        ("= 2", "= 2.0", False),
        ("$list", "$spread", False),
        ("@relay_sum", "@relay_max", False),
        ("axis", "keepdims", False),
        (".shape", ".T", False),
        ("1:", ":1", False),
        ("1:,", "1,", False),
        ("none", "1", False),
        ("(0, %a)", "(1, %a)", False),
        (" if { yield %a }", "", False),
    ],
)
def test_untyped_programs(old: str, new: str, same: bool) -> None:
    assert old in UNTYPED
    one, other = parse(UNTYPED), parse(UNTYPED.replace(old, new))
    assert alpha_equal(one, other) == same == (alpha_hash(one) == alpha_hash(other))


def test_objects_without_a_place_are_outside() -> None:
    with pytest.raises(InternalError, match="has no place in a module"):
        alpha_hash(function_of(object()))
    assert alpha_hash(function_of(dict)) != alpha_hash(function_of(list))


def function_of(item: object) -> Function:
    return Function("f", (), Block((), Yield((Static(item),))), LoopLabel("f"))
