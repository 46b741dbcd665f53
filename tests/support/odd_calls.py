"""Calls, operators and statements with operands that their authors did not mean."""

from __future__ import annotations

import builtins
import random

import numpy as np

import relay

ARGUMENTS = (
    *(np.arange(6.0).reshape(2, 3), np.float64(1.5), np.int32(2), True, (np.ones(3), np.float64(2.0))),
    *({"a": np.ones(3)}, [np.float64(1.0), np.float64(2.0)]),
)

VALUES = (
    *("0", "1", "-1", "2.5", "True", "None", "'a'", "''", "x", "s", "n", "b", "p", "d", "xs", "(x, s)"),
    *("()", "[]", "[x]", "{}", "{'a': x}", "relay", "np", "relay.sin", "len", "lambda q: q", "lambda: 1"),
    *("helper", "range(3)", "range(n)", "zip(xs, xs)", "enumerate(x)", "f'{s}'", "x.shape", "x.shape[0]"),
    *("relay.Float32", "np.float64", "grown", "ref", "x[x > 0]", "slice(1)", "relay.grad(helper)"),
    *("(q for q in x)", "10**12", "1e300", "x > 0", "-n", "x.T", "type(x)", "Ellipsis", "relay.grad"),
    *("float", "[1, 2]", "(2, 3)", "(-1,)", "xs[0]"),
)

FORMS = (
    *("return A[B]", "return A[B, C]", "return A[B:C]", "x[A] = B\n    return x"),
    *("xs[A] = B\n    return xs", "d[A] = B\n    return d", "for q in A: pass\n    return q"),
    *("for q, r in A: s = s + q\n    return s", "a, b2 = A\n    return a", "a, *b2 = A\n    return b2"),
    *("return A if B else C", "while A: s = s + 1\n    return s", "assert A, B\n    return x"),
    *("print(A, B)\n    return x", "return A + B", "return A @ B", "return A in B", "return A == B"),
    *("return A is B", "return not A", "return -A", "x += A\n    return x", "x[A] += B\n    return x"),
    *("return [q for q in A if B]", "return {q: A for q in B}", "return (A)(B)", "return (A)(B, C)"),
    *("return f'{A:B}'", "return A.B", "ref.value = A\n    return ref.value", "return A < B < C"),
    *("return A and B", "return A or B", "match A:\n        case B: return x\n    return s"),
    *("match A:\n        case (q, r): return q\n        case {'a': z}: return z\n        case _: return x",),
    *("grown.append(A)\n    return grown[B]", "return isinstance(A, B)", "del A\n    return x"),
    *("return sorted(A, key=B)", "return max(A, key=B)", "return sum(A, B)", "return relay.grad(A)(B)"),
    *("return relay.value_and_grad(A, wrt=B)(C)", "return relay.grad(A, wrt=B, has_aux=True)(C)"),
    *("return relay.vmap(A)(B)", "return relay.jacobian(A)(B)", "return relay.vjp(A, B)[1](C)"),
    *("return relay.jvp(A, (B,), (C,))", "return relay.checkpoint(A)(B)", "return list(map(A, B))"),
    *("return reduce(A, B, C)", "return dict(A, a=B)", "return print(A)", "global x\n    return A"),
    *("return {**A, 'b': B}", "return [*A, *B]", "return (A).shape[B]", "y: A = B\n    return y"),
    *("return np.array([A, B])", "return np.concatenate([A, B], axis=C)", "return np.where(A, B, C)"),
    *("return np.einsum(A, B, C)", "return np.zeros(A, dtype=B)", "return x.astype(A)"),
    *("return x.reshape(A, B)", "return np.full(A, B)", "return np.arange(A, B, C)"),
    *("return np.linspace(A, B, C)",),
)
"""Statements, with places A, B and C for operands."""

_METHODS = (
    *("sum", "reshape", "append", "pop", "items", "get", "keys", "index", "count", "insert", "sort"),
    *("copy", "astype", "T", "value", "max", "at", "extend", "mean", "transpose", "join", "format", "dot"),
    *("take", "clip", "argmax", "_replace", "setdefault", "update", "fill", "tolist", "item", "remove"),
    *("reverse", "clear", "flatten", "swapaxes", "cumsum", "std", "squeeze", "repeat", "round", "any"),
    *("all",),
)

_OF = ("x", "s", "xs", "grown", "p", "d", "ref", "'a'", "0", "None", "relay.sin", "x.shape")

_KEYWORDS = ("axis", "dtype", "keepdims", "shape", "key", "wrt", "start", "initial")

_OUTSIDE = ("exit", "quit", "input", "help", "breakpoint")


def _functions(module: object, prefix: str) -> list[str]:
    """The public functions of a module, as a program writes them."""
    found = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return [prefix + n for n, f in found.items() if callable(f) and not isinstance(f, type) and n not in _OUTSIDE]


CALLED = (
    _functions(relay, "relay."),
    _functions(np, "np."),
    [*_functions(builtins, ""), "int", "float", "bool", "list", "tuple", "dict", "range", "zip", "enumerate", "map"],
    [f"({value}).{method}" for value in _OF for method in _METHODS],
)

TEXT = """\
def helper(v): return v * 2.0

def f(x, s, n, b, p, d, xs):
    grown = []
    for q in range(n): grown.append(s)
    ref = relay.ref(s)
    {body}
"""


def odd_call(chosen: random.Random) -> str | None:
    """A program; None for one that Python does not read."""
    if chosen.random() < 0.45:
        form = chosen.choice(FORMS)
        places = {letter: chosen.choice(VALUES) for letter in "ABC"}
        body = "".join(places.get(character, character) for character in form)
    else:
        arguments = [chosen.choice(VALUES) for _ in range(chosen.choice((0, 1, 1, 1, 2, 2, 3, 4)))]
        if chosen.random() < 0.3:
            arguments.append(f"{chosen.choice(_KEYWORDS)}={chosen.choice(VALUES)}")
        body = f"return {chosen.choice(chosen.choice(CALLED))}({', '.join(arguments)})"
    text = TEXT.format(body=body)
    try:
        compile(text, "<odd>", "exec")
    except (SyntaxError, ValueError):
        return None
    return text
