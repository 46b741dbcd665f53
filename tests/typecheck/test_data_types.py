"""Data types and `match`: how classes are read, what their values are in Python, and what programs do with them."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree
from error_cases import NAMES, Case, all_cases, verify
from surface_programs import defined

import relay
from relay import List, Option, Tree
from relay.errors import FrontendError, TypeCheckError
from relay.frontend.lower import lower_text
from relay.ir.expr import Loop, Match
from relay.ir.traverse import walk
from relay.ir.validation.check import check
from relay.prelude import from_sequence, to_sequence
from relay.typecheck.elaboration import scheme
from relay.typecheck.elaboration.diagnostics.mistakes import SchemeOnly

A = relay.type_var("A")
b = relay.base_type_var("b")
s = relay.shape_var("s")
(n, m) = relay.dims("n m")
Scalar = relay.Tensor[relay.Float, ()]


@relay.data
class Point:
    x: Scalar
    y: Scalar

    def dot(self, other: Point):
        return self.x * other.x + self.y * other.y


@relay.data
class Pair:
    """Two values of one type."""

    first: A
    second: A

    SIZE = 2

    @staticmethod
    def twice(value):
        return Pair(value, value)

    def swapped(self):
        return Pair(self.second, self.first)

    def __len__(self) -> int:
        return 2


@relay.data
class Layer:
    weight: relay.Tensor[b, (n, m)]
    bias: relay.Tensor[b, (n,)]

    def __call__(self, x: Any) -> Any:
        return self.apply(x)

    def apply(self, x):
        return self.weight @ x + self.bias


@relay.data
class Rose:
    value: A
    children: Forest[A]

    def total(self):
        return self.value + self.children.total()


@relay.data
class Forest:
    class Empty:
        pass

    class More:
        first: Rose[A]
        rest: Forest

    def total(self):
        match self:
            case Forest.Empty():
                return 0.0
            case Forest.More(first, rest):
                return first.total() + rest.total()


# ---- values in Python


def test_values_are_immutable_and_compare_by_parts() -> None:
    p = Pair(1.0, np.arange(3))
    assert p == Pair(1.0, np.arange(3))
    assert p != Pair(1.0, np.arange(4))
    assert p != (1.0, 2.0)
    assert Tree.Leaf(1) != Tree.Node(1, 1)
    assert len(p) == 2 and Pair.SIZE == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.first = 2.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        del p.first
    assert hash(Pair(1, 2)) == hash(Pair(1, 2))
    assert repr(Tree.Node(Tree.Leaf(1), right=Tree.Leaf((2, 3)))) == (
        "Tree.Node(left=Tree.Leaf(value=1), right=Tree.Leaf(value=(2, 3)))"
    )
    assert relay.replace(p, first=3.0) == Pair(3.0, np.arange(3))


def test_constructors_are_classes() -> None:
    leaf = Tree.Leaf(1.0)
    assert isinstance(leaf, Tree) and isinstance(leaf, Tree.Leaf) and not isinstance(leaf, Tree.Node)
    match leaf:
        case Tree.Leaf(value):
            assert value == 1.0
        case _:
            raise AssertionError
    assert Tree.Leaf.__doc__ == "One value."
    for wrong in (lambda: Tree(1.0), lambda: Pair(1.0), lambda: Pair(1.0, 2.0, 3.0), lambda: Pair(1.0, third=2.0)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="no field 'third'"):
        relay.replace(Pair(1, 2), third=3)


def test_long_lists_need_no_recursion() -> None:
    xs = from_sequence(range(5000))
    assert xs == from_sequence(range(5000))
    assert xs != from_sequence(range(5001))
    assert len(repr(xs)) > 5000
    assert to_sequence(xs) == list(range(5000))


def test_defaults() -> None:
    @relay.data
    class Options:
        rate: Scalar = 0.5
        steps: relay.Tensor[relay.Int, ()] = 3

    @relay
    def f(x):
        options = Options(steps=4)
        return x * options.rate * float(options.steps)

    assert Options() == Options(0.5, 3)
    assert float(f.interpret(2.0)) == 4.0


# ---- to programs and back


def test_values_go_in_and_out() -> None:
    @relay
    def f(pair: Pair, layer: Layer):
        return (pair.swapped(), (layer, Option.Some(layer.bias)), List.Cons(1, List.Nil()))

    layer = Layer(np.ones((2, 3)), np.zeros(2))
    pair, (same, some), ones = f.interpret(Pair(1.0, 2), layer)
    assert pair == Pair(2.0, 1.0) and pair.first.dtype == np.float32
    assert same == layer and some == Option.Some(np.zeros(2)) and ones == from_sequence([1])


def test_one_program_serves_all_sizes() -> None:
    @relay
    def total(xs: List):
        return xs.sum(0.0)

    assert float(total.interpret(from_sequence([1.0, 2.0]))) == 3.0
    assert float(total.interpret(from_sequence([1.0] * 3000))) == 3000.0
    assert len(total._programs.exact) == 1


def test_values_go_in_and_out_of_compiled_programs() -> None:
    @relay
    def f(xs: List, t: Tree, o: Option, p: Pair, k):
        return xs.map(lambda v: v * k), (t.map(lambda v: v + k), o.map(lambda v: v * k), p.swapped())

    tree = Tree.Node(Tree.Leaf(np.ones(2)), Tree.Node(Tree.Leaf(np.zeros(2)), Tree.Leaf(np.arange(2.0))))
    one = Option.Some(np.float64(2.0))
    for length, option in ((3, one), (0, Option.Nothing()), (5000, one)):
        xs = from_sequence(np.arange(float(length)))
        arguments = (xs, tree, option, Pair(1, 2), np.float64(3.0))
        mapped, (tree_result, option_result, pair) = f(*arguments)
        wanted, (tree_wanted, option_wanted, pair_wanted) = f.interpret(*arguments)
        assert mapped == wanted and len(to_sequence(mapped)) == length
        assert tree_result == tree_wanted and option_result == option_wanted and pair == pair_wanted
    np.testing.assert_array_equal(Layer(np.ones((2, 3)), np.zeros(2)).apply(np.ones(3)), [3.0, 3.0])
    assert len(f._programs.exact) <= 4  # not one for each length


def test_methods_run_from_python() -> None:
    layer = Layer(np.ones((2, 3)), np.zeros(2))
    np.testing.assert_array_equal(layer.apply.interpret(np.ones(3)), [3.0, 3.0])
    assert Pair.twice.interpret(2.0) == Pair(2.0, 2.0)
    assert layer.apply.__name__ == "apply"


def test_an_argument_must_be_of_the_annotated_type() -> None:
    @relay
    def f(p: Point):
        return p.x

    assert float(f.interpret(Point(1.0, 2.0))) == 1.0
    with pytest.raises(TypeCheckError, match="must be Tensor"):
        f.interpret(Point(np.float64(1.0), 2.0))
    with pytest.raises(TypeCheckError, match="must be Point"):
        f.interpret(Pair(1.0, 2.0))
    with pytest.raises(TypeCheckError, match="is a Python object"):
        f.interpret(Pair(object(), 2.0))


def test_elements_have_one_type() -> None:
    @relay
    def f(t: Tree):
        return t.size()

    with pytest.raises(TypeCheckError, match="must be"):
        f.interpret(Tree.Node(Tree.Leaf(np.ones(2)), Tree.Leaf(np.ones(3))))


# ---- types


def test_types_are_inferred_by_use() -> None:
    @relay
    def f(x):
        xs = List.Nil()
        ys = xs
        zs = List.Cons(x, ys)
        return zs.length(), List.Nil()

    module = f.typed(np.float64(1.0))
    check(module, "typed")
    assert len([d for d in module.data if d.name.startswith("List")]) == 2
    assert int(f.interpret(np.float64(1.0))[0]) == 1


def test_definitions_are_monomorphic_once_for_each_choice() -> None:
    @relay
    def f(x, n):
        a, b = Tree.Leaf(x), Tree.Leaf(n)
        c = Tree.Node(a, a)
        return c.size() + Tree.Node(b, b).size()

    module = f.typed(np.float64(1.0), 1)
    assert sorted(d.name for d in module.data) == ["Tree", "Tree2"]
    assert all(not d.parameters for d in module.data)


def test_types_print() -> None:
    @relay
    def f(t: Tree, p: Pair[Scalar]):
        return t, Tree.Leaf(p.swapped().first)

    assert (
        str(f.type)
        == "forall (A: Type). fn(Tree[A], Pair[Tensor[float32, ()]]) -> (Tree[A], Tree[Tensor[float32, ()]])"
    )
    assert str(Layer[relay.Float, 2, 3]) == "Layer[float32, 2, 3]"


def test_mutually_recursive_types() -> None:
    @relay
    def f(x):
        inner = Rose(x * x, Forest.Empty())
        return Rose(x, Forest.More(inner, Forest.More(inner, Forest.Empty()))).total()

    assert float(f.interpret(3.0)) == 21.0
    assert float(relay.grad(f).interpret(3.0)) == 13.0


def test_a_class_in_a_function() -> None:
    @relay.data
    class Local:
        x: A
        rest: Option[Local]

        def depth(self):
            match self.rest:
                case Option.Nothing():
                    return 1
                case Option.Some(rest):
                    return 1 + rest.depth()

    @relay
    def f(x):
        return Local(x, Option.Some(Local(x, Option.Nothing()))).depth()

    assert int(f.interpret(1.0)) == 2


def test_a_class_without_source() -> None:
    names: dict[str, Any] = {"relay": relay, "A": A, "__name__": "nowhere"}
    exec(
        "@relay.data\nclass P:\n    x: A\n    y: 'Q[A]'\n\n"
        "@relay.data\nclass Q:\n    z: A\n    p: 'relay.Option[P[A]]'",
        names,
    )
    assert str(names["P"].__relay_data__.definition.parameters[0]) == "A"
    value = names["P"](1.0, names["Q"](2.0, Option.Nothing()))

    @relay
    def f(p):
        return p.x + p.y.z

    assert float(f.interpret(value)) == 3.0


# ---- match


def test_one_test_is_one_branch() -> None:
    @relay
    def f(t: Tree):
        match t:
            case Tree.Leaf(value):
                y = value
            case Tree.Node():
                y = 0.0
        return y

    module = f.typed(Tree.Leaf(1.0))
    kinds = [type(binding.value) for binding in walk(module.main.body)]
    assert kinds.count(Match) == 1 and Loop not in kinds


def test_a_shared_body_is_elaborated_once() -> None:
    @relay
    def f(a: Option, b: Option):
        match a, b:
            case Option.Some(x), Option.Some(y):
                return x * y
            case _:
                return relay.exp(relay.cos(2.0))

    module = f.typed(Option.Some(1.0), Option.Some(1.0))
    calls = [b.value.operator for b in walk(module.main.body) if hasattr(b.value, "operator")]
    assert calls.count("cos") == 1
    assert float(f.interpret(Option.Some(2.0), Option.Some(3.0))) == 6.0
    assert float(f.interpret(Option.Some(2.0), Option.Nothing())) == pytest.approx(np.exp(np.cos(2.0)))


def test_what_the_checker_knows_is_decided() -> None:
    @relay
    def f(x, mode):
        match mode:
            case "double":
                return x * 2.0
            case None:
                return x
            case _:
                return x.shape  # has no meaning for a scalar's caller below

    assert float(f.interpret(3.0, "double")) == 6.0
    assert float(f.interpret(3.0, None)) == 3.0


def test_names_after_a_match() -> None:
    @relay
    def f(o: Option, y):
        match o:
            case Option.Some(x):
                y = y + x
            case Option.Nothing():
                x = y
        return x * y

    assert float(f.interpret(Option.Some(2.0), 3.0)) == 10.0
    assert float(f.interpret(Option.Nothing(), np.float32(3.0))) == 9.0


# ---- refused classes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class P:\n    x: relay.Float", "is an element type, not a type"),
        ("class P:\n    x: 'List'", "takes 1 argument"),
        ("class P:\n    x: A\n    y: 'P[tuple[A, A]]'", "contains itself at other arguments"),
        ("class P:\n    x: int\n    class Q:\n        y: int", "has constructors"),
        ("class P:\n    class Q:\n        y: int\n        def f(self): return 1", "is defined in a constructor"),
        ("class P(int):\n    x: int", "has a base class"),
        ("class P:\n    x: int\n    def __init__(self): pass", "brings its own"),
        ("class P:\n    x: int\n    def f(): return 1", "has no parameter for the value"),
        ("class P:\n    x: int\n    def f(self): return (yield 1)", "is not part of Relay"),
    ],
)
def test_refused_classes(text: str, message: str) -> None:
    with pytest.raises(FrontendError) as caught:
        defined(f"@relay.data\n{text}\n", "P", relay=relay, A=A, List=List)
    assert message in str(caught.value)
    assert caught.value.span is not None and caught.value.span.line >= 2


DATA_NAMES: dict[str, object] = NAMES | {
    "relay": relay, "Tree": Tree, "Option": Option, "List": List, "Point": Point, "Scalar": Scalar
}  # fmt: skip


def check_types(text: str, filename: str) -> None:
    """Type-check all functions of a text at their annotations. Raises the first error."""
    for definition in lower_text(text, filename, DATA_NAMES).values():
        with contextlib.suppress(SchemeOnly):  # only a call's shapes can tell the rest
            scheme(definition)


@pytest.mark.parametrize("case", all_cases("data*.test"))
def test_errors(case: Case) -> None:
    verify(case, check_types)


SCALED = relay.type_var("SCALED")


@relay.data
class Scaled:
    x: SCALED
    y: SCALED

    @staticmethod
    def unit():
        return Scaled(1.0, 0.0)

    @classmethod
    def of(cls, a, factor=2.0):
        return cls(a, a * factor)

    @classmethod
    def sum_of(cls, a):
        return cls.of(a).plus(Scaled.of(a, factor=3.0))

    def plus(self, other):
        return Scaled(self.x + other.x, self.y + other.y)


@relay.relay
def of_the_class(a):
    v = Scaled.sum_of(a).plus(Scaled.unit())
    return v.x, v.y, v.unit().x, v.of(a).y


def test_static_methods_and_methods_of_the_class() -> None:
    assert_modes_agree(of_the_class, 3.0, expected=[7.0, 15.0, 1.0, 6.0])
    outside = Scaled.sum_of(1.0)
    assert (float(outside.x), float(outside.y), float(outside.of(2.0).y)) == (2.0, 5.0, 4.0)
