"""Type parameters in brackets and `type` aliases, Python 3.12's, and annotations that Python evaluates late or never.

What older versions can run of it are the objects that these stand for.
"""

from __future__ import annotations

import linecache
import sys
import textwrap
import typing
from typing import Any

import numpy as np
import pytest

import relay
from relay import Fn, Ref, Tensor
from relay.errors import FrontendError, ShapeError
from relay.frontend.lower import lower_text
from relay.ir.types import ANY, FLOAT32, DataType, Kind, RefType, TensorType, TupleType, TypeId

FROM_312 = pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax came with Python 3.12")
NAMES: dict[str, Any] = {"relay": relay, "Tensor": Tensor, "Float": FLOAT32, "Fn": Fn, "List": relay.List, "np": np}


def executed(text: str, filename: str, **names: Any) -> dict[str, Any]:
    """Run a text of a file of its own."""
    text = textwrap.dedent(text)
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    found = {**NAMES, **names}
    exec(compile(text, filename, "exec", dont_inherit=True), found)
    return found


def test_typing_variables_stand_for_what_their_place_says() -> None:
    n, b, a, s = typing.TypeVar("n"), typing.TypeVar("b"), typing.TypeVar("a"), typing.TypeVarTuple("s")
    found = Tensor[b, (*s, n, 3)]
    assert isinstance(found.base, TypeId) and found.base.kind is Kind.BaseType and found.base.name == "b"
    assert [d.kind for d in found.shape[:2]] == [Kind.Shape, Kind.Dim]
    assert Tensor[b, (n,)] == TensorType(found.base, (found.shape[1],))
    assert isinstance(Ref[a].content, TypeId) and Ref[a] == RefType(Ref[a].content)
    with pytest.raises(FrontendError, match="n is used as a variable of kind BaseType, and elsewhere of kind Dim"):
        Tensor[n, (3,)]
    with pytest.raises(FrontendError, match=r"\*s stands for the dims of a shape"):
        Ref[s]


@FROM_312
def test_functions_with_type_parameters() -> None:
    text = """
        @relay.relay
        def f[n, m, k](x: Tensor[Float, (n, m)], y: Tensor[Float, (m, k)]) -> Tensor[Float, (n, k)]:
            z: Tensor[Float, (n, k)] = x @ y
            return z

        @relay.relay
        def g[*S, b](x: Tensor[b, (*S, 2)], y: Tensor[b, (*S, 2)]) -> Tensor[b, S]:
            return relay.sum(x * y, axis=-1)

        @relay.relay
        def h[A](x: A, f: Fn[[A], A]) -> A:
            return f(f(x))
        """
    names = executed(text, "<parameters>")
    x, y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    assert names["f"](x, y).shape == (2, 4)
    with pytest.raises(relay.TypeMismatch, match="argument y of f"):
        names["f"](x, x)
    assert names["g"](np.ones((5, 6, 2)), np.ones((5, 6, 2))).shape == (5, 6)
    assert str(names["f"].type).startswith("forall (n: Dim) (m: Dim) (k: Dim). ")
    assert lower_text("def f[n](x: Tensor[Float, (n, n)]):\n    return x\n", "<t>", NAMES)["f"].function.parameters[0]


@FROM_312
def test_type_parameters_of_nested_functions() -> None:
    text = "def f(x):\n    def g[n](y: Tensor[Float, (n, n)]):\n        return y\n    return g(x)\n"
    assert lower_text(text, "<t>", NAMES)


@FROM_312
@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("[n: int](x: Tensor[Float, (n,)])", "the type parameter n has no bound"),
        ("[**P](x: Fn[P, int])", "`\\*\\*P` is not part of Relay"),
        ("[n](x: Tensor[Float, (n,)], y: n)", "n is a variable of kind Dim, not a type"),
        ("[n](x: Tensor[Float, (n,)], y: Tensor[n, ()])", "n is not an element type"),
        ("[*S](x: S)", r"\*S stands for the dims of a shape"),
    ],
)
def test_what_type_parameters_cannot_have(head: str, message: str) -> None:
    with pytest.raises(FrontendError, match=message) as caught:
        lower_text(f"def f{head}:\n    return x\n", "<t>", NAMES)
    assert caught.value.span is not None and caught.value.span.line == 1


@FROM_312
def test_type_parameters_of_what_is_around() -> None:
    found = executed(
        """
        from __future__ import annotations

        @relay.data
        class Box[A]:
            item: A
            more: list[Box[A]]

            def mapped[B](self, f: Fn[[A], B], other: A) -> B:
                return f(self.item)

        class Layer[T]:
            @staticmethod
            @relay.relay
            def same(x: T) -> T:
                return x

        def outer[U]():
            @relay.relay
            def inner[A](x: U, y: A) -> tuple[A, U]:
                return y, x
            return inner

        @relay.relay
        def opened(b: Box[float]):
            return b.mapped(lambda v: v + 1.0, 2.0)

        nested = outer()
        """,
        "<type parameters around>",
    )
    assert str(found["Layer"].same.type) == "forall (T: Type). fn(T) -> T"
    assert str(found["nested"].type) == "forall (U: Type) (A: Type). fn(U, A) -> (A, U)"
    assert float(found["opened"](found["Box"](1.0, []))) == 2.0


@FROM_312
def test_data_types_with_type_parameters() -> None:
    found = executed(
        """
        @relay.data
        class Grown[A]:
            class Leaf:
                value: A

            class Node:
                left: "Grown"
                right: "Grown[A]"

            def total(self):
                match self:
                    case Grown.Leaf(value):
                        return value
                    case Grown.Node(left, right):
                        return left.total() + right.total()

        @relay.data
        class Pair[A, B]:
            a: A
            b: B

            def swapped(self):
                return Pair(self.b, self.a)

        @relay.relay
        def total(x):
            return Pair(x, Grown.Node(Grown.Leaf(x), Grown.Leaf(x * 2))).swapped().a.total()
        """,
        "<type parameters of classes>",
    )
    assert found["total"](2.0) == 6.0
    assert found["total"].interpret(np.ones(2)).numpy().tolist() == [3.0, 3.0]


@FROM_312
def test_aliases() -> None:
    text = """
        type Image = Tensor[Float, (3, 8, 8)]
        type Square[n] = Tensor[Float, (n, n)]
        type Rows[*S] = tuple[Tensor[Float, (*S, 2)], Later]
        type Later = Tensor[Float, (2,)]

        def f[k](x: Image, y: Square[k], z: Square[4], r: Rows[5, k]):
            return x
        """
    names = executed(text, "<aliases>")
    head = "def f[k](x: Image, y: Square[k], z: Square[4], r: Rows[5, k]):\n"
    (definition,) = lower_text(f"{head}    return x\n", "<t>", names).values()
    x, y, z, r = (p.type for p in definition.function.parameters)
    assert x == TensorType(FLOAT32, (3, 8, 8)) and z == TensorType(FLOAT32, (4, 4))
    assert isinstance(y, TensorType) and y.shape[0] is y.shape[1]
    k = y.shape[0]
    assert r == TupleType((TensorType(FLOAT32, (5, k, 2)), TensorType(FLOAT32, (2,))))
    with pytest.raises(FrontendError, match="Square takes 1 argument, found 2"):
        lower_text("def f(x: Square[3, 4]):\n    return x\n", "<t>", names)
    with pytest.raises(FrontendError, match="cannot be evaluated: name 'Missing'"):
        lower_text("def f(x: Bad):\n    return x\n", "<t>", executed("type Bad = Missing\n", "<bad>"))
    with pytest.raises(FrontendError, match="`type` in a function is not part of Relay"):
        lower_text("def f(x):\n    type T = int\n    return x\n", "<t>", names)


CELL = """
    {future}

    @relay.relay
    def f(x: Tensor[Float, (2, SIZE)], later: "Tensor[Float, (SIZE,)]") -> Tensor[Float, (2,)]:
        y: Tensor[Float, (2,)] = x @ later
        return y
    """


@pytest.mark.parametrize("future", ["", "from __future__ import annotations"])
def test_annotations_come_from_the_text(future: str) -> None:
    f = executed(CELL.format(future=future), f"<late {future}>", SIZE=3)["f"]
    assert f(np.ones((2, 3), np.float32), np.ones(3, np.float32)).shape == (2,)
    with pytest.raises(relay.TypeMismatch, match="argument later of f"):
        f(np.ones((2, 3), np.float32), np.ones(2, np.float32))


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated late from Python 3.14 on")
def test_annotations_that_python_cannot_evaluate_yet() -> None:
    text = """
        @relay.relay
        def f(x: Tensor[Float, (2, ROWS)]):
            return x
        """
    with pytest.raises(FrontendError, match="the name `ROWS` is not defined here"):
        executed(text, "<never>")


def test_local_names_of_annotations() -> None:
    text = """
        def outer(size):
            (rows,) = relay.dims("rows")
            Row = Tensor[Float, (size,)]

            @relay.relay
            def f(x: Tensor[Float, (rows, size)], w: Row) -> Tensor[Float, (rows,)]:
                y: Tensor[Float, (rows,)] = x @ w
                return y
            return f
        """
    f = executed(text, "<local>")["outer"](3)
    assert f(np.ones((2, 3), np.float32), np.ones(3, np.float32)).shape == (2,)
    with pytest.raises((ShapeError, relay.TypeMismatch)):
        f(np.ones((2, 4), np.float32), np.ones(3, np.float32))


def test_objects() -> None:
    assert isinstance(relay.List[Tensor[FLOAT32, (ANY,)]], DataType)
