"""What follows from the declaration of a node: its parts, copies, equality up to names, and its text."""

from __future__ import annotations

from typing import Any

import pytest

from relay.errors import InternalError, Span
from relay.ir.analysis.alpha import alpha_equal
from relay.ir.expr import Atom, Binding, Block, Exit, Function, LoopLabel, Module, StackPush, Var, Yield
from relay.ir.node import keywords, node, target_count
from relay.ir.rebuild import copy_expression, map_parts
from relay.ir.surface import CapturePattern, OrPattern, PatternCase, PatternMatch, ValuePattern, WildcardPattern
from relay.ir.traverse import blocks, bound_variables, free_variables, operands
from relay.ir.types import FLOAT32, Type, scalar
from relay.text.printer import to_text

FLOAT = scalar(FLOAT32)


@node(notation="retry {value} {times}, {kind}[{type}]", targets=0)
class Attempt:
    """A node that no other part of Relay knows."""

    value: Atom
    times: int
    kind: str
    type: Type
    others: tuple[Atom, ...] = ()
    found: tuple[Var, ...] = ()
    body: Block | None = None
    span: Span | None = None


def function(body: Any, parameter: Var) -> Function:
    label = LoopLabel("f")
    return Function("f", (parameter,), Block((Binding((), body),), Exit(label, (parameter,))), label, FLOAT)


def attempt(x: Var, y: Var, inner: Var, times: int = 2) -> Any:
    return Attempt(x, times, "kind", FLOAT, (y, x), (inner,), Block((), Yield((inner, y))))


def test_a_node_is_known_by_its_declaration() -> None:
    x, y, inner = Var("x", FLOAT), Var("y", FLOAT), Var("inner", FLOAT)
    made = attempt(x, y, inner)
    assert operands(made) == (x, y, x)
    assert bound_variables(made) == (inner,)
    assert blocks(made) == (made.body,)
    assert list(free_variables(function(made, x))) == [y]
    assert target_count(Attempt) == 0 and keywords()["retry"] is Attempt
    assert 'retry %x 2, "kind"[Tensor[float32, ()]];' in to_text_of(function(made, x))


def to_text_of(part: Function) -> str:
    return to_text(Module({part.name: part}, part.name))


def test_nodes_in_which_nothing_changes_are_the_same() -> None:
    x, y, z = Var("x"), Var("y"), Var("z")
    made: Any = attempt(x, y, Var("inner"))
    assert map_parts(made) is made
    changed: Any = map_parts(made, atom=lambda atom: z if atom is y else atom)
    assert changed.others == (z, x) and changed.body is made.body and made.others == (y, x)
    push = StackPush(x, y)
    assert map_parts(push, atom=lambda atom: atom) is push


def test_copies_bind_other_variables() -> None:
    x, y, inner = Var("x"), Var("y"), Var("inner")
    made: Any = attempt(x, y, inner)
    copied: Any = copy_expression(made, {y: x})
    (fresh,) = copied.found
    assert fresh is not inner and copied.body.terminator.values == (fresh, x) and copied.others == (x, x)


def test_nodes_are_equal_up_to_names() -> None:
    def with_attempt(name: str, times: int = 2, swapped: bool = False) -> Function:
        x, inner = Var(name, FLOAT), Var(name + "1", FLOAT)
        made: Any = attempt(x, x, inner, times)
        return function(made if not swapped else map_parts(made, block=lambda _: Block((), Yield((x, x)))), x)

    assert alpha_equal(with_attempt("a"), with_attempt("b"))
    assert not alpha_equal(with_attempt("a"), with_attempt("a", times=3))
    assert not alpha_equal(with_attempt("a"), with_attempt("a", swapped=True))


def test_alternatives_of_a_pattern_bind_one_variable() -> None:
    x, value, other = Var("x"), Var("value"), Var("other")
    pattern = OrPattern((CapturePattern(x, ValuePattern(other)), CapturePattern(x, WildcardPattern())))
    match = PatternMatch(value, (PatternCase(pattern, None, Block((), Yield((x,)))),))
    assert bound_variables(match) == (x,) and operands(match) == (value, other)
    copied: Any = copy_expression(match)
    (fresh,) = bound_variables(copied)
    assert fresh is not x and copied.cases[0].body.terminator.values == (fresh,)


def test_fields_without_a_role_are_a_mistake() -> None:
    @node
    class Strange:
        value: Atom
        what: list[int]

    strange: Any = Strange(Var("x"), [1])
    with pytest.raises(InternalError, match=r"Strange\.what has no role: list\[int\]"):
        operands(strange)
