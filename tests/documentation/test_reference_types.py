"""Sentences of the pages of types, of differentiation and of running that no block of the pages runs."""

# ruff: noqa: E501

from __future__ import annotations

import numpy as np
import pytest
from reference import Claim, Fails, check, says

import relay

X = np.array([1.0, 2.0, 4.0])


@relay.data
class Pair:
    left: relay.Tensor[relay.Float64, ()]
    count: relay.Tensor[relay.Int32, ()]


@relay.relay
def cube(x):
    return x * x * x


@relay.relay
def noisy(x):
    print("here")
    return x * x


NAMES = {"cube": cube, "noisy": noisy, "Pair": Pair, "F32": relay.Float32}

TYPES = [
    Claim(
        "without one, a float is float32 and an integer int32",
        "return (a * 1.5).dtype == relay.Float64, relay.full((2,), 1.5).dtype == relay.Float32",
        (X,),
        (True, True),
    ),
    Claim(
        "is typed separately at each use (let-polymorphism)",
        "g = lambda v: v * 2\nreturn g(a), g(b)",
        (X, 3),
        ([2.0, 4.0, 8.0], 6),
    ),
    Claim(
        "once it is in a tuple, a reference or a variable that a loop or a branch changes, it has one type",
        "r = relay.ref(lambda v: v)\nreturn r.value(a), r.value(b)",
        (X, np.int32(3)),
        Fails("float64|int32|type"),
    ),
    Claim(
        "Passed to a parameter without annotation, it is also typed separately at each use there, if one type does not suffice.",
        "def f(a, b):\n    return g(lambda v: v + v, a, b)\ndef g(h, a, b):\n    return h(a), h(b)",
        (X, 3),
        ([2.0, 4.0, 8.0], 6),
    ),
    Claim(
        "A relation that does not hold for all sizes is an error with a counterexample:",
        "n = 1\nx: relay.Tensor[relay.Float64, (4,)] = a\nreturn x",
        (X,),
        Fails("4"),
    ),
]

RULES = [
    Claim(
        "A static condition selects its branch, and the other one is not typed.",
        "if a.ndim == 1:\n    return a\nreturn a + 'text'",
        (X,),
        [1.0, 2.0, 4.0],
    ),
    Claim(
        "A condition is a bool of rank 0. The branches that reach the end have the same type; a branch that leaves by `return`, `break` or `continue` agrees with its target instead.",
        "if a[0] > 0.0:\n    return (a, 1)\nelse:\n    b = a * 2.0\nreturn b, 2",
        (X,),
        ([1.0, 2.0, 4.0], 1),
    ),
    Claim(
        "it has the type with which it enters, in every round",
        "b = a\nwhile b[0] < 10.0:\n    b = (b, b)\nreturn b",
        (X,),
        Fails("round|loop|type"),
    ),
    Claim(
        "**References.** The content keeps its type.",
        "r = relay.ref(a)\nr.value = a[0]\nreturn r.value",
        (X,),
        Fails("must be|type|found"),
    ),
    Claim(
        "must represent the number exactly (a float literal is rounded)",
        "return a * 0.1",
        (np.float16(1.0),),
        float(np.float16(0.1)),
    ),
    Claim(
        "must represent the number exactly (a float literal is rounded)", "return a + 300", (np.int8(1),), Fails("300")
    ),
    Claim(
        "Names of axes agree or are absent.",
        "x: relay.Tensor[relay.Float64, (3,), ('row',)] = a\ny: relay.Tensor[relay.Float64, (3,), ('column',)] = a\nreturn x + y",
        (X,),
        Fails("row|column"),
    ),
]

DIFFERENTIATION = [
    Claim(
        "integers and booleans have `None`",
        "return relay.grad(lambda x, n: x * x)(a, b)",
        (3.0, np.int32(2)),
        (6.0, None),
    ),
    Claim(
        "`relay.value_and_grad` returns the pair of value and gradients. Orders nest without limit.",
        "return relay.value_and_grad(lambda x: x * x * x)(a), relay.grad(relay.grad(relay.grad(lambda x: x * x * x)))(a)",
        (2.0,),
        ((8.0, 12.0), 6.0),
    ),
    Claim(
        "`relu` and `abs` have slope 0 at 0, `max` and `maximum` share the gradient among ties, integers and comparisons pass nothing",
        "return relay.grad(relay.relu)(a), relay.grad(lambda x: abs(x))(a), relay.grad(lambda x: relay.max(x))(b), relay.grad(lambda x: relay.maximum(x, a))(a), relay.grad(lambda x: x * float(x > -1.0))(a)",
        (0.0, np.array([2.0, 2.0])),
        (0.0, 0.0, [0.5, 0.5], 0.5, 1.0),
    ),
    Claim(
        "`relay.stop_gradient(x)` is `x` with gradient 0, also of a whole structure or tree.",
        "return relay.grad(lambda x: x * relay.stop_gradient((x, [x]))[1][0])(a)",
        (3.0,),
        3.0,
    ),
    Claim(
        "| `wrt` | parameters to differentiate with respect to: positions or names |",
        "g = lambda x, y: x * x * y\nreturn relay.grad(g, wrt=1)(a, 3.0), relay.grad(g, wrt='x')(a, 3.0), relay.grad(g, wrt=('y', 0))(a, 3.0)",
        (2.0,),
        (4.0, 12.0, (4.0, 12.0)),
    ),
    Claim(
        "| `output` | which component of a tuple result is differentiated; required for one |",
        "return relay.grad(lambda x: (x * x, x), output=1)(a), relay.grad(lambda x: (x * x, x))(a)",
        (2.0,),
        Fails("say which one is differentiated"),
    ),
    Claim(
        "| `seedable` | adds a last argument, the incoming cotangent, so that the output need not be a scalar |",
        "return relay.grad(lambda x: x * x, seedable=True)(a, b)",
        (X, X),
        [2.0, 8.0, 32.0],
    ),
    Claim(
        "Inside a program, `grad` takes any function, and the variables that it captures are constants of the differentiation.",
        "y = a * a\nreturn relay.grad(lambda x: x * y)(a)",
        (3.0,),
        9.0,
    ),
    Claim(
        "Derivatives pass through branches (of the branch taken), loops, recursion, closures, references and data types.",
        "def f(a):\n    return relay.grad(g)(a)\ndef g(x):\n    r = relay.ref(Pair(x, 1))\n    h = lambda v: v * r.value.left if v > 0.0 else relay.sqrt(v)\n    for i in range(2):\n        x = h(x)\n    return power(x, 2)\ndef power(x, n):\n    return 1.0 if n == 0 else x * power(x, n - 1)",
        (2.0,),
        6 * 2.0**5,
    ),
    Claim(
        "tensors, records, lists and values of data types; a reference is an error: pass `r.value`.",
        "return relay.grad(lambda p: p.left * p.left * float(p.count))(a).left, relay.grad(lambda d: d['k'] * d['k'])({'k': b})['k'], relay.grad(lambda xs: xs[0] * xs[1])([b, 3.0])",
        (Pair(np.float64(2.0), np.int32(3)), 2.0),
        (12.0, 4.0, [3.0, 2.0]),
    ),
    Claim(
        "a reference is an error: pass `r.value`",
        "return relay.grad(lambda r: r.value * 2.0)(relay.ref(a))",
        (1.0,),
        Fails("no gradient with respect to a reference"),
    ),
    Claim(
        "returns the value and the *pullback*, which maps a cotangent of the value to those of the arguments (bare for one argument).",
        "value, pull = relay.vjp(cube, a)\nreturn value, pull(1.0)",
        (2.0,),
        (8.0, 12.0),
    ),
    Claim(
        "`relay.jvp(f, primals, tangents)` returns the value and its derivative along the tangents.",
        "return relay.jvp(cube, (a,), (2.0,))",
        (2.0,),
        (8.0, 24.0),
    ),
    Claim(
        "It is `None` where there is none, as for integers and references.",
        "value, pull = relay.vjp(lambda x, n: x * float(n), a, b)\nreturn pull(1.0)",
        (2.0, np.int32(3)),
        (3.0, None),
    ),
    Claim(
        "For a result of shape `s` and an argument of shape `t`, `relay.jacobian(f)` returns a tensor of shape `(*s, *t)`.",
        "return relay.jacobian(lambda x: relay.reshape(relay.sum(x) * relay.ones((4,), relay.Float64), (2, 2)))(a).shape == (2, 2, 3)",
        (X,),
        True,
    ),
    Claim(
        "`relay.hessian(f)` is `jacobian(grad(f))`: for several arguments a tuple of tuples.",
        "return relay.hessian(lambda x, y: x * x * y)(a, b)",
        (2.0, 3.0),
        ((6.0, 4.0), (4.0, 0.0)),
    ),
    Claim(
        "With respect to a record it is a dict of its fields",
        "return relay.hessian(lambda p: p['u'] * p['v'])({'u': a, 'v': a})",
        (2.0,),
        {"u": {"u": 0.0, "v": 1.0}, "v": {"u": 1.0, "v": 0.0}},
    ),
    Claim(
        "Two of them may be the same cell. A derivative leaves in them what the function itself leaves there",
        "r = relay.ref(a)\ndef g(x):\n    r.value = r.value * x\n    return r.value * x\nd = relay.grad(g)(3.0)\nreturn d, r.value",
        (2.0,),
        (12.0, 6.0),
    ),
    Claim(
        "`relay.checkpoint(f)` is `f`, but its derivative keeps the arguments only, and computes `f` again in the backward pass.",
        "return relay.checkpoint(cube)(a), relay.grad(relay.checkpoint(cube))(a)",
        (2.0,),
        (8.0, 12.0),
    ),
    Claim(
        "Integers and booleans have none",
        "return relay.grad(lambda x: relay.argmax(x))(a)",
        (X,),
        Fails("only a float tensor can be differentiated"),
    ),
    Claim(
        "A branch of an `if` that is not taken does not contribute to the derivative.",
        "return relay.grad(lambda x: relay.sqrt(x) if x > 0.0 else x)(a)",
        (0.0,),
        1.0,
    ),
]

DIFFERENTIATION += [
    Claim(
        "Both work on structures and data types: the cotangent of a record, list or tree has the same structure.",
        "value, pull = relay.vjp(lambda p: {'k': p['u'] * p['v'][0]}, {'u': a, 'v': [b]})\nreturn value, pull({'k': 1.0}), relay.jvp(lambda p: p['u'] * p['v'][0], ({'u': a, 'v': [b]},), ({'u': 1.0, 'v': [0.0]},))[1]",
        (2.0, 3.0),
        ({"k": 6.0}, {"u": 3.0, "v": [2.0]}, 3.0),
    ),
    Claim("`wrt` is as for `grad`.", "return relay.jacobian(lambda x, y: x * y, wrt='y')(a, b)", (2.0, 3.0), 2.0),
    Claim(
        "A run-time order is an error that says so.",
        "g = lambda t: t * t\nfor i in range(a):\n    g = relay.grad(g)\nreturn g(1.0)",
        (np.int32(2),),
        Fails("order of differentiation depends on a run-time value"),
    ),
    Claim(
        "The order is static: that of a loop over a static range, as here, or over a static argument.",
        "def f(a):\n    return nth(cube, 2)(a)\ndef nth(\n    g,\n    n,  # relay: static\n):\n    for _ in range(n):\n        g = relay.grad(g)\n    return g",
        (2.0,),
        12.0,
    ),
    Claim(
        "The gradient of data that holds only floats has the type of the data itself, and can be used wherever that can. So can gradients with `None`, except where an annotation requires another type: `jvp` takes them as tangents, your own functions as arguments.",
        "def f(a):\n    g = relay.grad(lambda p: p.left * p.left * float(p.count))(a)\n    return relay.jvp(lambda p: p.left * 5.0, (a,), (g,))[1], first(g)\ndef first(p):\n    return p.left",
        (Pair(np.float64(2.0), np.int32(3)),),
        (60.0, 12.0),
    ),
    Claim(
        "its elements must be float tensors of one shape, or tuples and lists of them.",
        "def f(xs: list[tuple[relay.Tensor[relay.Float64, ()], relay.Tensor[relay.Float64, ()]]]):\n    return relay.grad(lambda ys: sum([u * v for u, v in ys]))(xs)",
        ([(1.0, 2.0), (3.0, 4.0)],),
        [(2.0, 1.0), (4.0, 3.0)],
    ),
]


@pytest.mark.parametrize("claim", TYPES, ids=lambda c: c.sentence[:50])
def test_sentences_of_types(claim: Claim) -> None:
    check("types.md", claim, NAMES)


@pytest.mark.parametrize("claim", RULES, ids=lambda c: c.sentence[:50])
def test_sentences_of_the_typing_rules(claim: Claim) -> None:
    check("typing-rules.md", claim, NAMES)


@pytest.mark.parametrize("claim", DIFFERENTIATION, ids=lambda c: c.sentence[:50])
def test_sentences_of_differentiation(claim: Claim) -> None:
    check("differentiation.md", claim, NAMES)


def test_a_pullback_computes_the_function_anew(capsys: pytest.CaptureFixture[str]) -> None:
    says(
        "differentiation.md",
        "A pullback re-evaluates `f` on every call, with prints suppressed and the current contents of references;",
    )

    @relay.relay
    def pulled(x):
        factor = relay.ref(2.0)

        def scaled(x):
            print("here")
            return x * x * factor.value

        _, pull = relay.vjp(scaled, x)
        first = pull(1.0)
        factor.value = 5.0
        return first, pull(1.0)

    assert [float(x) for x in pulled.interpret(3.0)] == [12.0, 30.0]
    assert capsys.readouterr().out == "here\n"


@relay.relay
def carried_and_dropped(x):
    root = relay.sqrt(x)
    for _ in range(20):
        root = root * 2.0
    return 3.0 * x if x < 1.0 else root


def test_an_infinite_slope_that_a_loop_carries() -> None:
    says(
        "differentiation.md",
        "the same holds for a variable that a loop carries and then drops. The interpreter's own derivative follows the executed path and omits what the result did not use, as PyTorch's does.",
    )
    slope = relay.grad(carried_and_dropped)
    assert np.isnan(slope(0.0)) and slope.interpret(0.0) == 3.0


def test_what_a_checkpoint_prints_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    check(
        "differentiation.md",
        Claim("What `f` prints is printed once", "return relay.grad(relay.checkpoint(noisy))(a)", (3.0,), 6.0),
        NAMES,
    )
    assert capsys.readouterr().out == "here\n"
