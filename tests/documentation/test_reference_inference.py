"""Sentences of the page of types: what `f.type` says, the table of layouts, effects, and one program for many sizes."""

# ruff: noqa: E501

from __future__ import annotations

import logging
import re

import numpy as np
import pytest
from reference import Fails, says

import relay
from relay import Float32, Float64, Tensor
from relay.errors import RelayError
from relay.ir.types import show
from relay.text.type_parser import parse_type

PAGE = "types.md"
X = np.array([1.0, 2.0, 4.0])

n, m, k = relay.dims("n m k")
A = relay.type_var("A")
Pixels = Tensor[Float32, (n, n), ("row", "column")]


@relay.data
class Box:
    content: A  # type: ignore[valid-type]


@relay.data
class Image:
    pixels: Pixels  # type: ignore[valid-type]


@relay.relay
def doubled(x):
    return x * 2.0


@relay.relay
def told(x):
    print(x)
    return x


@relay.composite
def expanded(x: Tensor) -> Tensor:
    """2 x + 1. x: (T float, s) -> (T, s)."""
    return x * 2.0 + 1.0


NAMES: dict[str, object] = {
    "relay": relay, "np": np, "n": n, "m": m, "k": k, "Tensor": Tensor, "Float": Float32, "Float64": Float64,
    "s": relay.shape_var("s"), "A": A, "T": relay.base_type_var("T"), "Fn": relay.Fn, "Ref": relay.Ref,
    "PureFn": relay.PureFn, "Forall": relay.Forall, "Any": relay.Any, "Box": Box, "doubled": doubled, "told": told,
    "Row": Tensor[Float32, (n,)], "Image": Image,
}  # fmt: skip

ROWS = "x: Tensor[Float, dict(batch=n, feature=m)]"
IMAGE = "x: Tensor[Float, (n, 4, 4, 3), 'NHWC']"

NOTATION = "In an annotation a type is written `Tensor[Float, (n, 3)]`, `tuple[A, B]`, `Fn[[A], B]`, `Ref[A]`, or by the name of a data type or a type alias."
PATHS = "What a condition says about sizes holds in its branches, also with `and`, `or`, `not`, under a name, after an early `return` and after an `assert`."
NAMED = "The names of combined axes must agree: axes aligned by broadcasting, axes that a product contracts, branches, a variable in all rounds of a loop, an argument and its parameter."
STATIC = "The branches of `if x.ndim == 0`, `isinstance(t, tuple)`, `len(xs) == 2`, `o is None` and of a `match` on tuples may have different types: a call takes one of them, and types only that one."
KEEP = "| arithmetic, `where`, reductions, `concatenate`, slices, softmax | stay with their axes; aligned at the last one |"
RESHAPES = "| `reshape`, `flatten`, `squeeze` | leading axes keep theirs as long as extents are equal, and so do trailing ones;"
EFFECTS = "`io` (it prints), `assert` (it may fail in an assertion), `ref` (it reads or writes references *that existed before the call*)."
OWN = "What a function does to references that it creates itself is invisible, as with `runST` in Haskell, so it is pure: also where it passes the reference to another function, or a local function changes a captured variable."

TYPES = [
    # annotations, variables
    (NOTATION, "def f(a: tuple[Row, int], b: Fn[[Row], float], c: Ref[float], d: Image, e: Box[float]):\n    return b(a[0]) + c.value + e.content", "fn((Tensor[float32, (n,)], Tensor[int32, ()]), fn(Tensor[float32, (n,)]) -> Tensor[float32, ()] ! {e}, Ref[Tensor[float32, ()]], Image[n2], Box[Tensor[float32, ()]])"),
    ("Variables come from `dims`, `shape_var`, `base_type_var` and `type_var`.", "def f(a: Tensor[T, (n, *s)], b: A) -> A:\n    return b", "forall (n: Dim) (T: BaseType) (s: Shape) (A: Type). fn(Tensor[T, (n, *s)], A) -> A"),
    ("A variable that only ever holds integers is an integer, and is converted where it is combined with a float.", "def f(x: Row):\n    i = 0\n    for v in x:\n        i += 1\n    return i, x * i", "-> (Tensor[int32, ()], Tensor[float32, (n,)])"),
    ("A shape rule whose operands are unknown is deferred, and if it is still unresolved at the end, it is part of the type", "def f(x, y):\n    return x @ y", "matmul(s1, s2)"),
    ("so is everything else that depends on the call, such as the meaning of `x[0]` for a tensor, tuple or dict.", "def f(x):\n    return x[0] + x[0]", "where index(A, 0) =="),
    ("`Forall[[A], Fn[[A], A]]`, with `type_var`, `shape_var`, `dims` or `base_type_var`.", "def f(g: Forall[[A], Fn[[A], A]], x: float, y: int):\n    return g(x), g(y)", "-> (Tensor[float32, ()], Tensor[int32, ()])"),
    ("Variables that are quantified inside a scheme, like `s` above, do not belong to the scheme itself.", "def f(g: Forall[[s], Fn[[Tensor[Float, s]], Tensor[Float, s]]], x: float):\n    return g(x)", "fn(forall (s: Shape). fn(Tensor[float32, s]) -> Tensor[float32, s], Tensor[float32, ()]) -> Tensor[float32, ()]"),
    ("Only a whole parameter can be a polymorphic function: tuples, data and results hold functions of one type.", "def f(g: tuple[Forall[[A], Fn[[A], A]], int], x: float):\n    return g[0](x)", Fails("a polymorphic function is a whole parameter")),
    ("A variable in an annotation stands for whatever the call passes: the body may not choose it.", "def f(a: Tensor[T, (2,)]) -> Tensor[T, (2,)]:\n    return relay.ones((2,), Float)", Fails("T is annotated as any")),
    # arithmetic on dims
    ("Dim variables in annotations stand for *all* sizes, and the body has to be right for all of them.", "def f(x: Row, y: Tensor[Float, (m,)]):\n    return x + y", Fails("cannot show that")),
    ("Arithmetic on dims is checked:", "def f(x: Row) -> Tensor[Float, (n + 1,)]:\n    return relay.concatenate((x, x))", Fails("it fails for n|n \\+ 1")),
    # static conditions
    (STATIC, "def f(x, t, o=None):\n    if x.ndim == 0:\n        return 1\n    if isinstance(t, tuple):\n        return (1, 2)\n    if o is None:\n        return x\n    match t:\n        case (a, b):\n            return a\n        case _:\n            return {'k': x}", "either("),
    ("In the function's own type their results are `either(T, ..)`, or `match(A)`, and so is the result of a recursion that such a condition ends.", "def f(x, y):\n    return x if y is None else (x, y)", "either(A, (A, "),
    # named axes
    ("The axes of a tensor may have names: a layout, whose letters name them, or words.", f"def f({IMAGE}, y: Tensor[Float, dict(row=n)]):\n    return x, y", "(Tensor[float32, (n, 4, 4, 3), NHWC], Tensor[float32, dict(row=n)])"),
    (NAMED, f"def f({ROWS}, y: Tensor[Float, dict(feature=n, batch=m)]):\n    return x + y", Fails("names")),
    (NAMED, f"def f({ROWS}, y: Tensor[Float, (m, k), ('batch', None)]):\n    return x @ y", Fails("names|batch")),
    (NAMED, "def f(x: Tensor[Float, (n,), ('a',)], y: Tensor[Float, (n,), ('b',)], c: bool):\n    return x if c else y", Fails("names|a|b")),
    (NAMED, f"def f({ROWS}):\n    return g(x)\ndef g(x: Tensor[Float, dict(feature=n, batch=m)]):\n    return x", Fails("feature|names")),
    ("Convolution, pooling and resizing depend on the meaning of the axes.", f"def f({IMAGE}):\n    return relay.max_pool2d(x, 2)", "-> Tensor[float32, (n, 2, 2, 3), NHWC]"),
    ("All other operators work in every layout.", "def f(x: Tensor[Float, (n, 3, 4, 4), 'NCHW']):\n    return relay.relu(x).sum(axis='C')", "-> Tensor[float32, (n, 4, 4), NHW]"),
    ("| annotations | `Tensor[B, S, NCHW]`, also", "def f(x: Tensor[Float, (n, 3), ('batch', None)], y: Tensor[Float, (n, 3), 'N_']):\n    return x, y", 'fn(Tensor[float32, (n, 3), ("batch", None)], Tensor[float32, (n, 3), N_])'),
    (KEEP, f"def f({ROWS}):\n    y = relay.where(x > 0.0, x, 0.0) * x[0]\n    return relay.softmax(y), relay.concatenate((x, x))[1:], x.max(axis=0)", "(Tensor[float32, dict(batch=n, feature=m)], Tensor[float32, dict(batch=2*n - 1, feature=m)], Tensor[float32, dict(feature=m)])"),
    ("| `transpose`, `moveaxis`, `x.T` | move with their axes;", f"def f({ROWS}, y: Tensor[Float, (n, 3, 4, 5), 'NCHW']):\n    return x.T, relay.moveaxis(x, 0, 1), relay.transpose(x, ('feature', 'batch')), relay.transpose(y, 'NHWC')", "(Tensor[float32, dict(feature=m, batch=n)], Tensor[float32, dict(feature=m, batch=n)], Tensor[float32, dict(feature=m, batch=n)], Tensor[float32, (n, 4, 5, 3), NHWC])"),
    ("| `@`, `einsum` | contracted axes agree, the others keep theirs |", f"def f({ROWS}, y: Tensor[Float, dict(feature=m, unit=k)]):\n    return x @ y, relay.einsum('bf,fu->ub', x, y)", "(Tensor[float32, dict(batch=n, unit=k)], Tensor[float32, dict(unit=k, batch=n)])"),
    ("| `x[i]`, `take`, rows of a loop | the axis is removed; new axes have no name |", f"def f({ROWS}, i: int):\n    for row in x:\n        pass\n    return x[i], x[:, None], relay.take(x, 0, axis=1), [r for r in x][0]", "(Tensor[float32, dict(feature=m)], "),
    (RESHAPES, f"def f({ROWS}):\n    return x.reshape(n, m, 1), x.reshape(-1), relay.squeeze(x[None], axis=0)", '(Tensor[float32, (n, m, 1), ("batch", "feature", None)], Tensor[float32, (m*n,)], Tensor[float32, dict(batch=n, feature=m)])'),
    ("| `axis=`, `axes=` | a name, several names, or letters of a layout: `x.sum(axis=\"HW\")` |", f"def f({IMAGE}, {ROWS.replace('x', 'y')}):\n    return x.sum(axis='HW'), y.sum(axis='batch'), y.sum(axis=('batch', 'feature'))", "(Tensor[float32, (n, 3), NC], Tensor[float32, dict(feature=m)], Tensor[float32, ()])"),
    ("| gradients, tangents | those of the tensor with respect to which they are taken, or of which they are the tangent |", f"def f({ROWS}):\n    g = lambda v: (v * v).sum()\n    return relay.grad(g)(x)", "-> Tensor[float32, dict(batch=n, feature=m)]"),
    ("| `jacobian`, `hessian` | those of the result, then those of the argument |", f"def f({ROWS}):\n    return relay.jacobian(lambda v: v.sum(axis='feature'))(x)", '-> Tensor[float32, (n, n, m), ("batch", "batch", "feature")]'),
    ("| composite and expanded operators | as in the operators of their body |", f"def f({ROWS}):\n    return relay.expanded(x), relay.gelu(x)", "(Tensor[float32, dict(batch=n, feature=m)], Tensor[float32, dict(batch=n, feature=m)])"),
    ('| `rename_axes(x, "NHWC")`, `rename_axes(x, None)` | other names; none |', f"def f({ROWS}):\n    return relay.rename_axes(x, 'NC'), relay.rename_axes(x, None)", "(Tensor[float32, (n, m), NC], Tensor[float32, (n, m)])"),
    ("| `overlap_add`, random numbers, operators of your own without `@carries` | dropped |", f"def f({ROWS}, key: Tensor[relay.UInt32, (2,)]):\n    return x.sum() + relay.random.normal(key, (n, m))", "-> Tensor[float32, (n, m)]"),
    ("| results whose rank depends on the call | unknown in the function's type, inferred at the call |", "def f(x: Tensor[Float, (n, *s)], y):\n    return x + y", "broadcast("),
    ("A tensor without names agrees with every tensor, and an unnamed one in an annotation takes the names of its argument.", f"def f({ROWS}, y: Tensor[Float, (n, m)]):\n    return x + y, g(x)\ndef g(x: Tensor[Float, (n, m)]):\n    return x", "(Tensor[float32, dict(batch=n, feature=m)], Tensor[float32, dict(batch=n, feature=m)])"),
    ("Names come from annotations of parameters, results, fields and assignments", "def f(x: Tensor[Float, (n * m,)], i: Image) -> Tensor[Float, (n, m), ('batch', 'feature')]:\n    y: Tensor[Float, (n, m), ('batch', 'feature')] = x.reshape(n, m)\n    z = i.pixels.sum(axis='row')\n    return y", "-> Tensor[float32, dict(batch=n, feature=m)]"),
    # type-level functions
    ("| arithmetic, `where` | aligned at the last axis; 1 broadcasts, other dims must be equal |", "def f(x: Tensor[Float, (n, 1)], y: Tensor[Float, (m,)]):\n    return x + y", "-> Tensor[float32, (n, m)]"),
    ("| `@` | `(*broadcast(a, c), m, k)` for `(*a, m, n)` and `(*c, n, k)` |", "def f(x: Tensor[Float, (3, 1, m, n)], y: Tensor[Float, (2, n, k)]):\n    return x @ y", "-> Tensor[float32, (3, 2, m, k)]"),
    ("| reductions | the shape without the axes, or with 1 for them |", "def f(x: Tensor[Float, (n, m)]):\n    return x.sum(axis=0), x.max(axis=1, keepdims=True)", "(Tensor[float32, (m,)], Tensor[float32, (n, 1)])"),
    ("| `reshape` | the given shape, whose product must be equal as a polynomial; a -1 is the quotient of the products |", "def f(x: Tensor[Float, (2 * n, m)]):\n    return x.reshape(m, n, 2), x.reshape(-1, m)", "(Tensor[float32, (m, n, 2)], Tensor[float32, (2*n, m)])"),
    ("| `reshape` | the given shape, whose product must be equal as a polynomial; a -1 is the quotient of the products |", "def f(x: Tensor[Float, (2 * n, m)]):\n    return x.reshape(m, n)", Fails("elements|reshape|cannot")),
    ("| `concatenate`, `stack` | the sum of the extents; a new axis whose extent is the number of tensors |", "def f(x: Row, y: Tensor[Float, (m,)]):\n    return relay.concatenate((x, y)), relay.stack((x, x, x))", "(Tensor[float32, (m + n,)], Tensor[float32, (3, n)])"),
    ("| slices | `(end - begin + step - 1) // step`, with bounds counted and clipped as in Python |", "def f(x: Tensor[Float, (n + 3,)]):\n    return x[1:-1], x[::2], x[1:3]", "(Tensor[float32, (n + 1,)], Tensor[float32, (n//2 + 2,)], Tensor[float32, (2,)])"),
    ("| `take`, `x[indices]` | the axis replaced by the indices' axes |", "def f(x: Tensor[Float, (n, m)], i: Tensor[relay.Int, (k, 2)]):\n    return x[i], relay.take(x, i, axis=1)", "(Tensor[float32, (k, 2, m)], Tensor[float32, (n, k, 2)])"),
    ("| `one_hot`, `arange`, `zeros` | sizes from the arguments |", "def f(x: Row, i: Tensor[relay.Int, (m,)]):\n    return relay.one_hot(i, n), relay.arange(n), relay.zeros((n, 2))", "(Tensor[bt, (m, n)], Tensor[int32, (n,)], Tensor[bt2, (n, 2)])"),
    # effects
    (EFFECTS, "def f(x: float):\n    print(x)\n    return x", "-> Tensor[float32, ()] ! {io}"),
    (EFFECTS, "def f(x: float):\n    assert x > 0.0\n    return x", "-> Tensor[float32, ()] ! {assert}"),
    (EFFECTS, "def f(r: Ref[float]):\n    return r.value", "-> Tensor[float32, ()] ! {ref}"),
    ("Everything else is pure, including random numbers, whose keys are arguments.", "def f(key: Tensor[relay.UInt32, (2,)]):\n    return relay.random.normal(key, (2,)) * relay.ones((), Float)", "-> Tensor[float32, (2,)]$"),
    (OWN, "def f(x: float):\n    r = relay.ref(x)\n    g(r)\n    t = 0.0\n    def add(v):\n        nonlocal t\n        t += v\n    add(r.value)\n    return t\ndef g(r: Ref[float]):\n    r.value = 2.0", "-> Tensor[float32, ()]$"),
    ("A reference that comes from a branch, a tuple or a result may belong to another function, and counts.", "def f(x: float, c: bool):\n    r = relay.ref(x) if c else relay.ref(0.0)\n    r.value = 1.0\n    return x", "! {ref}"),
    ("A function that is an argument, or in a field of one, has effects of its own, which become effects of its caller.", "def f(b: Box[Fn[[float], float]], x: float):\n    return b.content(x)", "Box[fn(Tensor[float32, ()]) -> Tensor[float32, ()] ! {e}], Tensor[float32, ()]) -> Tensor[float32, ()] ! {e}"),
    ("`PureFn[[A], B]`, which prints as `fn(A) -> B ! {}`, is the type of functions without effects.", "def f(g: PureFn[[float], float], x: float):\n    return g(x)", "fn(fn(Tensor[float32, ()]) -> Tensor[float32, ()] ! {}, Tensor[float32, ()]) -> Tensor[float32, ()]$"),
    ("A function whose `jacobian` is taken, which is evaluated once per result element, must not write references of enclosing functions.", "def f(x: Row):\n    r = relay.ref(0)\n    def g(v):\n        r.value += 1\n        return v * v\n    return relay.jacobian(g)(x), r.value", Fails("write|reference|pure")),
    (PATHS, "def f(x: Row):\n    if n > 3 and n < 9:\n        return x[3]\n    return 0.0", "forall (n: Dim). fn(Tensor[float32, (n,)]) -> Tensor[float32, ()]$"),
    (PATHS, "def f(x: Row):\n    small = not n > 3\n    if small or x[0] < 0.0:\n        return 0.0\n    return x[3]", "forall (n: Dim). fn(Tensor[float32, (n,)]) -> Tensor[float32, ()]$"),
    (PATHS, "def f(x: Row):\n    assert n > 3\n    return x[3]", "forall (n: Dim). fn(Tensor[float32, (n,)]) -> Tensor[float32, ()]"),
    ("If such a condition selects between different sizes, the result has `Any` for them in the function's own type; a call resolves them.", "def f(x: Row):\n    return x[1:] if n > 3 else x", "-> Tensor[float32, (Any,)]"),
    ("At a call the dims are found by solving the annotations for the sizes of the arguments", "def f(x: Tensor[Float, (2 * n, 3)]):\n    return x.reshape((-1, 6))", "fn(Tensor[float32, (2*n, 3)]) -> Tensor[float32, (n, 6)]"),
    ("In the type of a result, `Any` is a", "def f(x: Tensor[Float, (n, 2)]):\n    return x[x[:, 0] > 0.0]", "-> Tensor[float32, (Any, 2)]"),
    ("a call checks that the argument has the type for all of them", "def f(x: Row, y: Tensor[Float, (n, m)]):\n    return g(lambda v: v.sum(), x, y)\ndef g(h: Forall[[s], Fn[[Tensor[Float, s]], Tensor[Float, s]]], x, y):\n    return h(x).sum() + h(y).sum()", Fails("the result of lambda must be Tensor.float32, s., found")),
    ("a call without `layout=` follows its first argument", f"def f({IMAGE}, y: Tensor[Float, (4, 3, 3, 3)]):\n    return relay.conv2d(x, y, layout='NCHW')", Fails("x is NHWC, conv2d wants NCHW")),
    (EFFECTS, "def f(x: float, r: Ref[float]):\n    r.value = x\n    print(x)\n    return x", "! {io, ref}"),
]  # fmt: skip

RULES = [
    ("The bracketed constraint prints as `where b is float`.", "def f(x):\n    return x + 0.5", "where bt is float"),
    ("a use converts it, and never determines it.", "def f(x: Row):\n    i = 2\n    return x * i, i", "(Tensor[float32, (n,)], Tensor[int32, ()])"),
    ("if `w` becomes a float, so does `c`.", "def f(x: Row):\n    i = 0\n    for v in x:\n        i += v\n    j = i\n    for v in x:\n        j += 1\n    return j", "-> Tensor[float32, ()]"),
    ("In its own body a recursive function is polymorphic in the variables of its parameters' annotations, and monomorphic in what is not annotated.", "def f(x: Row) -> float:\n    return x.sum() if n < 2 else f(x[1:])", "forall (n: Dim). fn(Tensor[float32, (n,)]) -> Tensor[float32, ()]"),
    ("Only a `while` with a static number of rounds, such as `while x.ndim > 1`, is typed round by round if the types differ, and the function's own type says `loop(..)`.", "def f(x):\n    while x.ndim > 1:\n        x = x.sum(axis=0)\n    return x", "loop("),
    ("A constructor of a data type is a polymorphic function, and a pattern takes apart what it has constructed.", "def f(x: float, y: int):\n    match Box((Box(x), Box(y))):\n        case Box((Box(a), Box(b))):\n            return a, b", "-> (Tensor[float32, ()], Tensor[int32, ()])"),
    ("Reading and writing are effects, unless the function created the reference itself.", "def f(x: float):\n    r = relay.ref(x)\n    r.value += 1.0\n    return r.value", "-> Tensor[float32, ()]$"),
    ("The gradient of a function has its parameters, and one result for each float among them.", "def f(x: float, i: int, y: float):\n    return relay.grad(lambda x, i, y: x * y * float(i))(x, i, y)", "-> (Tensor[float32, ()], None, Tensor[float32, ()])"),
    ("variables of a parameter's annotation are chosen by the caller, so the body may not assign them; a variable in the result only is determined by the body.", "def f(x: Row) -> Tensor[Float, (m,)]:\n    return relay.concatenate((x, x))", "-> Tensor[float32, (2*n,)]"),
    ("variables of a parameter's annotation are chosen by the caller, so the body may not assign them; a variable in the result only is determined by the body.", "def f(x: Row) -> Row:\n    return x[1:]", Fails("n - 1 is not n: it fails for n = 2")),
    ("A variable that nothing determines is ambiguous, and reported where it arose: no call could determine it either.", "def f(x: float):\n    g = relay.ref([])\n    return len(g.value), f(x)", Fails("ambiguous|needs|type")),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _unregistered():
    """The operator of this file is gone afterwards."""
    yield
    del relay.get_env()._operators["expanded"]


@pytest.mark.parametrize(
    ("page", "sentence", "program", "expected"),
    [(PAGE, *rest) for rest in TYPES] + [("typing-rules.md", *rest) for rest in RULES],
    ids=lambda part: part[:40] if isinstance(part, str) else "",
)
def test_types_of_functions(page: str, sentence: str, program: str, expected: str | Fails) -> None:
    says(page, sentence)
    if isinstance(expected, Fails):
        with pytest.raises(RelayError) as caught:
            str(_first(program).type)
        assert re.search(expected.pattern, str(caught.value)), str(caught.value)
    else:
        found = str(_first(program).type)
        assert expected.removesuffix("$") in found
        assert not expected.endswith("$") or found.endswith(expected[:-1])


def _first(program: str) -> relay.RelayFunction:
    made = relay.from_source(program + "\n", NAMES)
    return next(iter(made.values())) if isinstance(made, dict) else made


def test_printed_types_are_read_back() -> None:
    says(PAGE, "Every printed type can be read back in the same notation (`relay.text.type_parser.parse_type`).")
    for _, program, expected in TYPES:
        if not isinstance(expected, Fails) and "Image" not in program and "Box" not in program:
            printed = str(_first(program).type)
            assert show(parse_type(printed)) == printed


def test_purity() -> None:
    says(PAGE, "`@relay(pure=True)` makes an effect an error")
    says(PAGE, "The body of a composite operator, which may be evaluated once or not at all, must not print.")
    with pytest.raises(RelayError, match="must be pure, but it prints"):
        relay.relay(pure=True)(lambda x: told(x)).interpret(1.0)
    with pytest.raises(RelayError, match="print"):

        @relay.composite
        def printing(x: Tensor) -> Tensor:
            """x, and its text. x: (T, s) -> (T, s)."""
            print(x)
            return x

        relay.relay(lambda x: relay.printing(x)).interpret(X)


def test_names_are_erased() -> None:
    says(
        PAGE,
        "They are checked during type inference and erased afterwards: types with and without names are equal, and so are the programs.",
    )
    texts = [
        str(
            relay.from_source(f"def f(x: Tensor[Float, (n, 3){names}]):\n    return x.sum(axis=0)\n", NAMES).core(
                np.float32(np.ones((2, 3)))
            )
        )
        for names in ("", ", 'NC'")
    ]
    assert texts[0] == texts[1] and "batch" not in texts[0]


# ---- one program for many sizes


def _programs(
    function: relay.RelayFunction, calls: list[tuple[object, ...]], caplog: pytest.LogCaptureFixture
) -> list[bool]:
    """For each call whether it needed a program of its own."""
    found = []
    with caplog.at_level(logging.INFO, "relay.compile"):
        for arguments in calls:
            caplog.clear()
            function.interpret(*arguments)
            found.append(any(record.message.startswith("compiling") for record in caplog.records))
    return found


def test_one_program_for_many_sizes(caplog: pytest.LogCaptureFixture) -> None:
    says(
        PAGE,
        "When the same function is called with other sizes, it is elaborated once more, with those axes symbolic that differed.",
    )
    says(
        PAGE, "A later call whose sizes satisfy the types and guards of a program reuses it; any other call recompiles."
    )
    says(PAGE, '`logging.getLogger("relay.compile")` logs which program is compiled or not reused, and why.')

    def ones(*sizes: tuple[int, ...]) -> tuple[object, ...]:
        return tuple(np.ones(size) for size in sizes)

    says(PAGE, "| are these two sizes equal, and they are | one of them is the other in the program's type |")
    says(PAGE, "| are they equal, and they are not | `n != m` |")
    compared = relay.from_source("def f(x, y):\n    return x.sum() if x.shape == y.shape else y.sum()\n")
    equal, unequal = (
        [ones((3,), (3,)), ones((5,), (5,)), ones((7,), (7,))],
        [ones((3,), (4,)), ones((5,), (6,)), ones((7,), (9,))],
    )
    assert _programs(compared, equal, caplog) == [True, True, False]
    assert _programs(compared, unequal, caplog) == [True, False, False]

    says(PAGE, "| is this at least that, also `if x.shape[0] > 3` | `n >= 4` |")
    guarded = relay.from_source("def f(x):\n    return x[0] if x.shape[0] > 3 else x.sum()\n")
    assert _programs(guarded, [ones((6,)), ones((8,)), ones((4,)), ones((3,))], caplog) == [True, True, False, True]

    says(PAGE, "| a number is needed: a list of an axis's rows, a static argument | the axis is that number |")
    listed = relay.from_source("def f(x):\n    a = list(x)\n    return (a[0], a[1], len(a) * (1.0,))[2][-1]\n")
    assert _programs(listed, [ones((3,)), ones((4,)), ones((5,))], caplog) == [True, True, True]

    says(PAGE, "Axes of size 0 and 1 stay numbers, since 1 broadcasts.")
    says(PAGE, "`@relay(dynamic=True)` makes all axes symbolic from the first call on.")
    dynamic = relay.relay(dynamic=True)(doubled_plus)
    assert _programs(dynamic, [ones((3,)), ones((9,)), ones((1,)), ones((0,))], caplog) == [True, False, True, True]


def doubled_plus(x):
    return x * 2.0 + 1.0
