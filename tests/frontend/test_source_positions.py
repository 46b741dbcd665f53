"""Where the front end finds sources, annotations and names."""

from __future__ import annotations

import datetime
import functools
import linecache
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from surface_programs import defined, lower, only, place, source_of, values

from relay import from_source, relay
from relay.errors import FrontendError, RelayError
from relay.frontend.lower import lower_function, lower_text
from relay.frontend.source import find_function, parse_text
from relay.ir import expr, surface, types
from relay.ir.annotations.annotation import Fn, Ref, Tensor, base_type_var, dims, shape_var, type_var
from relay.ir.definition import MISSING, Definition
from relay.ir.types import ANY, BOOL, FLOAT32, INT32, RefType, TensorType, TupleType, scalar
from relay.ir.types import FunctionType as ArrowType

(n, m) = dims("n m")
Float = FLOAT32
SIZE = 3
Matrix = Tensor[Float, (n, m)]


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
        "c": TensorType(b, (ANY, 3)),
        "d": TupleType((a, scalar(INT32))),
        "e": ArrowType((a, scalar(BOOL)), scalar(FLOAT32)),
        "g": RefType(a),
        "h": TensorType(FLOAT32, (s,)),
        "i": TensorType(FLOAT32, (s, 6)),
        "j": TensorType(FLOAT32, (n,)),
        "k": TupleType(()),
        "l": None,
    }
    assert function.result == types.NONE


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
        (lambda: Tensor[n, (3,)], "n is not an element type"),
        (lambda: Tensor[Float, ("n",)], "'n' is not a dimension"),
        (lambda: Tensor[Float, (True,)], "True is not a dimension"),
        (lambda: Tensor[Float, (type_var("A"),)], "kind Type"),
        (lambda: Tensor(3), "not a function that makes tensors"),
        (lambda: Fn[int, int], "a list of parameter types"),
        (lambda: Ref[int, int], "one type"),
        (lambda: Ref[Float], r"write Tensor\[float32, \(\)\]"),
        (lambda: Ref[np.zeros(3)], "not a type that Relay has"),
        (lambda: dims(""), "not a list of names"),
        (lambda: dims("n 3"), "not a list of names"),
        (lambda: type_var("a b"), "not a name"),
        (lambda: (*n, 3), "not a shape variable"),
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
    text = """
        def outer():
            (rows,) = dims('rows')
            def f(x: Tensor[Float, (rows,)]):
                return x
            return f, rows
        """
    outer = defined(text, "outer", dims=dims, Tensor=Tensor, Float=Float)
    function, rows = outer()
    assert lower_function(function).function.parameters[0].type == TensorType(FLOAT32, (rows,))


def test_local_names_in_the_body() -> None:
    text = """
        def outer():
            (rows,) = dims('rows')
            def f(x):
                y: Tensor[Float, (rows,)] = x
                return y
            return lower_function(f).function, rows
        """
    function, rows = defined(text, "outer", dims=dims, Tensor=Tensor, Float=Float, lower_function=lower_function)()
    assert only(function, surface.Annotated).annotation == TensorType(FLOAT32, (rows,))


# ---- sources


def decorator(function: Any) -> Any:
    return function


def wrapping(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    return wrapper


@decorator
@decorator
def decorated(x, y=SIZE * 2, z=4):
    return x + y


def line_of(text: str) -> int:
    """The line of this file that ends in a marker."""
    with open(__file__) as file:
        return next(i for i, line in enumerate(file, start=1) if line.rstrip().endswith(text))


def test_positions_in_a_file() -> None:
    def inner(x, y):
        # fmt: off
        return (x +
                y)  # marker of the sum
        # fmt: on

    function = lower_function(inner).function
    (call,) = values(function.body)
    line = line_of("# marker of the sum")
    assert place(call.span) == (line - 1, 17, line, 18)
    assert place(function.span) == (line - 3, 5, line - 3, 14)
    assert function.span is not None and function.span.source.filename == __file__
    assert place(function.parameters[1].span) == (line - 3, 18, line - 3, 19)


def test_decorated_function() -> None:
    function = lower_function(decorated).function
    assert function.name == "decorated" and source_of(function.span) == "def decorated"
    computed, literal = function.signature[1].default, function.signature[2].default
    assert isinstance(computed, expr.Static) and computed.value == 6
    assert isinstance(literal, expr.Static) and literal.value == 4 and source_of(literal.span) == "4"


def test_lambdas_are_told_apart() -> None:
    pair = (lambda x: x + 1, lambda x: x * 2)
    assert [source_of(values(lower_function(f).function.body)[0].span) for f in pair] == ["x + 1", "x * 2"]


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
    assert values(function.body)[0].operator == "subtract"


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
    function = defined("if 1:\n\n\n    def f(x):\n        return x + missing\n", "f")
    (call,) = values(lower_function(function).function.body)
    assert place(call.span) == (5, 16, 5, 27)


def test_columns_count_characters() -> None:
    function = defined("def f(größe):\n    return größe * größe + 'ä'\n", "f")
    total = lower_function(function).function.body.bindings[-1].value
    assert place(total.span) == (2, 12, 2, 31)
    assert source_of(total.span) == "größe * größe + 'ä'"


def test_strings_with_less_indentation_do_not_matter() -> None:
    function = defined('if 1:\n    def f(x):\n        """A\nB"""\n        return x + 1\n', "f")
    assert place(values(lower_function(function).function.body)[0].span) == (5, 16, 5, 21)


def test_tabs_and_windows_lines() -> None:
    file = parse_text("def f(x):\r\n\treturn x + 1\r\n", "<tabs>")
    assert file.source.line(2) == "\treturn x + 1"
    (definition,) = lower_text("def f(x):\r\n\treturn x + 1\r\n", "<tabs>", {}).values()
    assert place(values(definition.function.body)[0].span) == (2, 9, 2, 14)


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
    text = """
        def make(c):
            if c:
                def f(x): return x + 1
            else:
                def f(x): return x * 2
            return f
        """
    make = defined(text, "make")
    operators = [values(lower_function(make(c)).function.body)[0].operator for c in (True, False)]
    assert operators == ["add", "multiply"]


def test_async_function() -> None:
    with pytest.raises(FrontendError, match="`async def` is not part of Relay"):
        lower_function(defined("async def f(x):\n    return x\n", "f"))


def test_files_are_parsed_once() -> None:
    assert find_function(decorated)[0] is find_function(annotated)[0]


# ---- scopes


def test_names_are_looked_up_late() -> None:
    def function(x):
        return later(x) + free + abs(x)  # noqa: F821

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


class Plain:
    """A class that is not a data type."""


@pytest.mark.parametrize("value, help", [(Plain, "@relay.data"), (len, "relay(lambda x: f(x))")])
def test_what_is_no_function_is_told_apart(value: Any, help: str) -> None:
    with pytest.raises(FrontendError) as caught:
        relay(value)
    assert help in str(caught.value)


def test_an_instance_without_attributes_is_told_how_to_become_data() -> None:
    identity = from_source("def f(x):\n    return x\n")
    with pytest.raises(RelayError) as caught:
        identity(datetime.date(2000, 1, 1))
    assert "decorate the class with @relay.data or @dataclass" in str(caught.value)
