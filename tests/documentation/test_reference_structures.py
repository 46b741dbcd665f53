"""Sentences of the page of the language about structures, lists, sizes, data, references and results in Python."""

# ruff: noqa: E501, E731

from __future__ import annotations

import functools
import logging
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from reference import Claim, Fails, check, plain, says

import relay
from relay import Float64, Int32, List, Option, Tensor, Tree

PAGE = "language.md"
X = np.array([1.0, 2.0, 4.0])
M = np.arange(6.0).reshape(2, 3)


class Lent:
    """An array of another library."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> object:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


@dataclass
class Layer:
    weight: Any

    @relay.relay
    def forward(self, x):
        return self.weight * x

    @relay.relay
    def __call__(self, x):
        return self.forward(x) + 1.0

    @relay.relay
    def __add__(self, other):
        return self.weight + other.weight


@dataclass
class Wide(Layer):
    @relay.relay
    def forward(self, x):
        return Layer.forward(self, x) * 10.0


Named = namedtuple("Named", "u v")

A = relay.type_var("A")
(n, m) = relay.dims("n m")


@relay.data
class Pair:
    first: A
    second: A

    @property
    def both(self):
        return self.first + self.second

    @staticmethod
    def of(v):
        return Pair(v, v)

    @classmethod
    def twice(cls, v):
        return cls(v, v * 2.0)

    def __add__(self, other):
        return Pair(self.first + other.first, self.second + other.second)

    def __rmul__(self, k):
        return Pair(k * self.first, k * self.second)

    def __getitem__(self, i):
        return self.first if i == 0 else self.second

    def __call__(self, x):
        return self.first * x

    def __lt__(self, other):
        return self.first < other.first


@relay.data
class Shape:
    class Circle:
        radius: Tensor[Float64, ()]

    class Square:
        side: Tensor[Float64, ()]


@relay.relay
def doubled(x):
    return x * 2.0


NAMES: dict[str, object] = {
    "Layer": Layer, "Wide": Wide, "Named": Named, "Pair": Pair, "Shape": Shape, "List": List, "Option": Option,
    "Tree": Tree, "doubled": doubled, "Any": relay.Any, "M": M, "Float64": Float64, "Tensor": Tensor,
    "fixed": functools.partial(doubled), "A": A, "T": relay.base_type_var("T"), "s": relay.shape_var("s"), "n": n, "m": m,
}  # fmt: skip

OF_BOTH = "`append`, `extend`, `insert`, `pop`, `clear`, `reverse`, `+`, `*`, slices, `xs[i]`, `xs[i] = v`"
SIZES = "The size of an axis may be computed by the program:"
OPERATORS = "operator methods (`__add__`, `__rmul__`, `__getitem__`, `__call__`, `__lt__`, ..) work as in Python"
PATTERNS = "Patterns: constructors and classes with positional and named fields"
GROWN = "xs = []\nfor v in a:\n    if v > 1.0:\n        xs.append(v)\n"

CLAIMS = [
    # arguments, annotations
    Claim(
        "Arguments are NumPy arrays, anything that supports DLPack, numbers, results of earlier calls, functions, and tuples, lists, dicts, dataclasses, plain objects, named tuples and data types of these.",
        "def f(a, b, c, d, e, g, h, i, j, k):\n    return a[0] + b[1] + c + d[2] + e(1.0) + g[0] + h[0] + i['k'] + j.weight + k[0].u.first",
        (X, Lent(X), 1.0, relay.Array(X), doubled, (1.0, X), [1.0], {"k": 1.0}, Layer(1.0), (Named(Pair(1.0, 2.0), 2.0),)),
        1.0 + 2.0 + 1.0 + 4.0 + 2.0 + 1.0 + 1.0 + 1.0 + 1.0 + 1.0,
    ),
    Claim("As an argument, or inside a structure, `None` is static:", "return 1 if a['k'] is None else 2", ({"k": None},), 1),
    Claim("| `int`, `bool` | scalars |", "def f(a: int, c: bool):\n    return a + 1, 2.0 if c else 0.0", (1, True), (2, 2.0)),
    Claim("| `float` | a scalar of any dtype of floats, in tuples, lists and records, too |", "def f(b: float, c: tuple[float, float]):\n    return b * c[0] + c[1]", (2.0, (3.0, 1.0)), 7.0),
    Claim("| `int`, `bool` | scalars |", "def f(a: int):\n    return a", (X,), Fails("must be|int")),
    Claim(
        "| `tuple[A, B]`, `Fn[[A], B]`, `Ref[A]` |",
        "def f(a: tuple[float, int], b: relay.Fn[[float], float], c: relay.Ref[int]):\n    c.value += a[1]\n    return b(a[0]), c.value",
        ((1.0, 2), doubled, relay.ref(3)),
        (2.0, 5),
    ),
    Claim(
        '| `relay.base_type_var("T")`, `relay.shape_var("s")`, `relay.type_var("A")` |',
        "def f(a: Tensor[T, s], b: A) -> A:\n    return b",
        (X, 1),
        1,
    ),
    Claim(
        "| `b: A \\| None = None`, `Optional[A]` | type A where an argument is passed |",
        "def f(a, b: float | None = None):\n    return a if b is None else a + b",
        (1.0, 2.0),
        3.0,
    ),
    Claim("| `b: A \\| None = None`, `Optional[A]` |", "def f(a, b: float | None = None):\n    return a if b is None else a + b", (1.0,), 1.0),
    Claim("and `functools.partial(f, 2.0)` are functions, too;", "return fixed(a)", (2.0,), 4.0),
    # numbers, names of libraries
    Claim("Integers are `Int32` and floats `Float32` unless their [context](#dtypes-of-numbers) says otherwise.", "return relay.full((), 1).dtype == relay.Int32, relay.full((), 1.0).dtype == relay.Float32, (a * 1.0).dtype == Float64", (X,), (True, True, True)),
    Claim("Every library operator is `relay.name(x, ..)`, most also a method `x.name(..)`.", "return relay.tanh(a) - a.tanh(), relay.cumsum(a) - a.cumsum()", (X,), ([0.0] * 3, [0.0] * 3)),
    Claim("without an axis, `np.cumsum(x)` and `x.take(i)` work on the flattened array, while the axis of `relay.cumsum` and `relay.take` is 0 by default.", "return np.cumsum(a), a.take(4), relay.cumsum(a), relay.take(a, 1)", (M,), ([0.0, 1.0, 3.0, 6.0, 10.0, 15.0], 4.0, [[0.0, 1.0, 2.0], [3.0, 5.0, 7.0]], [3.0, 4.0, 5.0])),
    Claim("Unsupported arguments, such as `out=`, and the `where=` of elementwise functions, are errors.", "return np.exp(a, out=a)", (X,), Fails("np.exp takes no argument 'out'|'out'")),
    Claim("A tensor has `shape`, `ndim`, `size`, `dtype` and `T`.", "return a.shape, a.ndim, a.size, a.dtype == Float64, a.T.shape", (M,), ((2, 3), 2, 6, True, (3, 2))),
    Claim("The same holds for a function's result that is computed from them, and for a dim variable of the function's annotations:", "def f(a: Tensor[Float64, (n, m)]):\n    return relay.zeros((half(a) * m,)), [i for i in range(n)], a[n - 1, 0] / m\ndef half(v):\n    return v.shape[0] // 2", (M,), ([0.0] * 3, [0, 1], 1.0)),
    Claim("`np.linalg.solve`, `inv`, `det` and `slogdet` take a square matrix, or a batch of them; the vectors of `eigh`, `svd` may have other signs than NumPy's.", "b = np.array([[2.0, 0.0], [0.0, 4.0]])\nreturn np.linalg.solve(b, a), np.linalg.inv(b), np.linalg.det(np.stack([b, b])), np.linalg.slogdet(b)[0], np.abs(np.linalg.eigh(b)[1])", (np.ones(2),), ([0.5, 0.25], [[0.5, 0.0], [0.0, 0.25]], [8.0, 8.0], 1.0, np.eye(2))),
    Claim("`np.name` and the methods of arrays have NumPy's signatures and semantics:", "return np.hstack((a, a)).shape, np.vstack((a, a)).shape, np.column_stack((a, a)).shape, np.array_equal(a, a), np.isclose(a, a + 1e-9), np.allclose(a, 2.0 * a)", (X,), ((6,), (2, 3), (3, 2), True, [True] * 3, False)),
    # indexing, statements
    Claim("Subscripts are NumPy's: integers, slices with constant bounds and any nonzero step, `None`, `...`, and integer tensors or lists; several of them select elements pairwise: `logp[np.arange(n), y]`. Masks select elements.", "return a[1, 0], a[:, ::-2], a[None, ..., 1], a[[1, 0], 1:], a[[True, False]]", (M,), (3.0, [[2.0, 0.0], [5.0, 3.0]], [[1.0, 4.0]], [[4.0, 5.0], [1.0, 2.0]], [[0.0, 1.0, 2.0]])),
    Claim("The augmented forms read, compute and assign.", "a[0] += 2.0\na[1:] *= 3.0\nreturn a", (X,), [3.0, 6.0, 12.0]),
    Claim("`for` iterates over `range`, the rows of a tensor, a `relay.List`, tuples, lists, dicts, `zip` and `enumerate` of these, and `reversed` of anything of static length.", "t = 0.0\nfor i in range(2):\n    t += 1.0\nfor row in a:\n    t += row.sum()\nfor v in List.Cons(1.0, List.Nil()):\n    t += v\nfor v in (1.0, 2.0):\n    t += v\nfor v in [1.0]:\n    t += v\nfor key in {'k': 1.0}:\n    t += 1.0 if key == 'k' else 9.0\nfor u, (i, v) in zip((0.0, 1.0, 2.0), enumerate(a[1])):\n    t += u * v * i\nfor v in reversed(a[0]):\n    t = t * 0.5 + v\nreturn t", (M,), ((2 + 15 + 1 + 3 + 1 + 1 + 24.0) * 0.125 + 2 * 0.25 + 1 * 0.5)),
    Claim("over a static range of up to 16 numbers, where a variable gets a new function in each round", "g = lambda v: v\nfor i in range(16):\n    g = (lambda h: lambda v: h(v) + 1.0)(g)\nreturn g(a)", (1.0,), 17.0),
    Claim("`+`, `*`, comparisons, `in`, `len`, indices, slices, `for`, `match`, `ord`, `int`, `float` and the formats of f-strings work on it, as do the methods that search, test, strip, split, replace, pad and change case, for all of Unicode.", "s = f'{a}bc'\nt = ''\nfor c in s:\n    t = c + t\nmatch s:\n    case '3bc':\n        u = ord(s[1])\n    case _:\n        u = 0\nreturn s * 2, s < '4', 'b' in s, len(s), s[0], s[-2:], t, u, int(s[0]) + float(s[:1]), f'{s:>5}|', s.startswith('3'), s.find('c'), s.isalpha(), f' {s} '.strip(), s.split('b'), s.replace('b', 'x'), s.rjust(5, '.'), f'{s}ß'.upper(), '-'.join([s, t])", (np.int32(3),), ("3bc3bc", True, True, 3, "3", "bc", "cb3", 98, 6.0, "  3bc|", True, 2, False, "3bc", ["3", "c"], "3xc", "..3bc", "3BCSS", "3bc-cb3")),
    Claim("Numbers in it are written as Python writes them;", "return f'{a}', f'{b:.2f}', f'{b > 0.5}'", (3, 0.125), ("3", "0.12", "False")),
    # records
    Claim("All of them are values, as tensors are, without", "b = {'k': a}\nc = b.copy()\nc['k'] = 2.0\nreturn b, c", (1.0,), ({"k": 1.0}, {"k": 2.0})),
    Claim("`Class.method(self, x)` calls that of a certain class.", "return a(2.0), b(2.0), a + b", (Layer(3.0), Wide(3.0)), (7.0, 61.0, 6.0)),
    Claim("`isinstance` tests for the class of a structure, or for a constructor.", "return isinstance(a, Layer), isinstance(a, Wide), isinstance(b, Shape.Circle)", (Layer(1.0), Shape.Square(1.0)), (True, False, False)),
    Claim("Where two paths join, records must have the same class and fields.", "if b > 0.0:\n    c = a\nelse:\n    c = Wide(b)\nreturn c.weight", (Layer(1.0), 1.0), Fails("class|type|Layer")),
    Claim("`index` and `count` search for a value.", "return (3, a, 3).index(a), [3, a, 3].count(3)", (1,), (1, 2)),
    # dynamic lists
    Claim("From then on it is a dynamic list with one element type", "xs = [a, 1.0]\nfor i in range(b):\n    xs.append((a,))\nreturn xs", (1.0, np.int32(2)), Fails("type|element|list")),
    Claim("Its length is computed at run time; it stays static where every round of a loop with a static or symbolic number of rounds changes it by the same amount.", "xs = []\nfor v in a:\n    xs.append(v)\n    xs.append(v)\nreturn relay.zeros((len(xs),))", (X,), [0.0] * 6),
    Claim(OF_BOTH, GROWN + "xs.extend([3.0])\nxs.insert(0, 9.0)\np = xs.pop()\nxs.reverse()\nys = xs + [1.0]\nys[0] = 5.0\nzs = [1.0] * len(xs)\nxs.clear()\nreturn ys, ys[1:3], p, zs, len(xs), 2.0 in ys, sum(ys), min(ys), max(ys)", (X,), ([5.0, 2.0, 9.0, 1.0], [2.0, 9.0], 3.0, [1.0] * 3, 0, True, 17.0, 1.0, 9.0)),
    Claim("`any`, `all`, `reversed`, `zip`, `enumerate` and `for` work, and comprehensions over anything and with any condition.", GROWN + "t = 0.0\nfor v in reversed(xs):\n    t = t * 10.0 + v\nreturn any(v > 3.0 for v in xs), all(v > 3.0 for v in xs), t, [u * v for u, v in zip(xs, a)], [v * i for i, v in enumerate(xs) if v > 2.0]", (X,), (True, False, 42.0, [2.0, 8.0], [4.0])),
    Claim("`del xs[i]`, `del xs[i:j]`, `xs[i:j] = ys`, `xs.copy()`, `==` and `a, *rest = xs` work, and `list(..)` and `sorted(..)` of ranges, `zip` and `enumerate`.", "xs = list(range(b))\nys = xs.copy()\ndel xs[0]\ndel xs[1:3]\nys[1:3] = [7]\nu, *rest = xs\nreturn xs, ys, xs == ys, u, rest, sorted(zip(range(b), range(b)), reverse=True)[0]", (0, 5), ([1, 4], [0, 7, 3, 4], False, 1, [4], (4, 4))),
    Claim("So do `remove`, `index`, `count`, `sort` and `sorted` (a stable merge sort), with `key` and `reverse`.", GROWN + "xs += [3.0, 2.0]\nxs.remove(4.0)\nplace, times = xs.index(3.0), xs.count(2.0)\nxs.sort(key=lambda v: -v)\nreturn xs, place, times, sorted(xs, reverse=True)", (X,), ([3.0, 2.0, 2.0], 1, 2, [3.0, 2.0, 2.0])),
    Claim("Inner functions may append to the lists of enclosing functions, and assign their items.", "xs = []\ndef note(v):\n    xs.append(v)\n    xs[0] = v\nfor v in a:\n    note(v)\nreturn xs", (X,), [4.0, 2.0, 4.0]),
    Claim("`relay.stack`, `relay.concatenate` and `np.array` return a tensor whose size is static if the length is", GROWN.replace("if v > 1.0:\n        ", "") + "return relay.zeros((np.array(xs).shape[0],)), relay.stack(xs)", (X,), ([0.0] * 3, [1.0, 2.0, 4.0])),
    # data-dependent sizes
    Claim(SIZES, "xs = [v for v in a if v > 1.0]\nreturn relay.stack(xs), relay.concatenate([v[None] for v in xs]), a[a > 1.0], a[b:], relay.zeros((b, 2)).shape, relay.arange(b), a.reshape(b, -1)", (X, 1), ([2.0, 4.0], [2.0, 4.0], [2.0, 4.0], [2.0, 4.0], (1, 2), [0], [[1.0, 2.0, 4.0]])),
    Claim("All other operators take such tensors; derivatives and compiled programs do, too.", "y = a[a > 1.0]\nreturn relay.softmax(y * 0.0), relay.sort(-y), y @ y, relay.grad(lambda v: (v[v > 1.0] ** 2).sum())(a)", (X,), ([0.5, 0.5], [-4.0, -2.0], 20.0, [0.0, 4.0, 8.0])),
    Claim(SIZES, "return relay.arange(a, b), relay.arange(b, a)", (-1, 2), ([-1, 0, 1], [])),
    Claim("`y * y` needs no check.", "y = a[a > 1.0]\nreturn y * y", (X,), [4.0, 16.0]),
    Claim("A variable may hold tensors of several sizes, in a loop or on several paths, if one of the sizes is data-dependent.", "y = a[a > 0.0]\nif b > 0.0:\n    y = y[1:]\nwhile y.shape[0] > 1:\n    y = y[1:]\nreturn y", (X, 1.0), [4.0]),
    Claim("Not supported yet: `relay.stack` of elements whose sizes differ", "xs = []\nfor v in a:\n    xs.append(a[a > v])\nreturn relay.stack(xs)", (X,), Fails("size|number of elements|differ")),
    Claim("and unrolled loops (over tuples and zips of them) over such an axis.", "t = 0.0\nfor u, v in zip(a[a > 1.0], (1.0, 2.0)):\n    t += u * v\nreturn t", (X,), Fails("compile time|length|size")),
    # data types and patterns
    Claim("`@relay.data` on a class makes an immutable data type, for programs and for Python.", "a.first = 2.0\nreturn a", (Pair(1.0, 2.0),), Fails("assign")),
    Claim("Annotated fields make a record; nested classes are the constructors of a sum type.", "match b:\n    case Shape.Circle(r):\n        return r\n    case Shape.Square(s):\n        return s * s + a.first", (Pair(1.0, 2.0), Shape.Square(3.0)), 10.0),
    Claim(OPERATORS, "p = a + Pair.of(1.0)\nq = 2.0 * p\nreturn q.both, Pair.twice(1.0).second, q[1], p(3.0), p < q", (Pair(1.0, 2.0),), (10.0, 2.0, 6.0, 6.0, True)),
    Claim("`relay.replace(value, field=..)` is a copy of the value with other fields.", "return relay.replace(a, first=9.0).both, a.both", (Pair(1.0, 2.0),), (11.0, 3.0)),
    Claim("`match` takes data types, dataclasses, named tuples, tuples, numbers, booleans and strings.", "def f(a, b, c, d, e, g, mode='x'):\n    match a:\n        case Pair(first, _):\n            t = first\n    match b:\n        case Layer(weight=w):\n            t += w\n    match c:\n        case Named(u, v):\n            t += u\n    match d:\n        case (u, v):\n            t += v\n    match e:\n        case 1:\n            t += 10.0\n        case _:\n            t += 20.0\n    match g:\n        case True:\n            t += 100.0\n        case False:\n            t += 200.0\n    match mode:\n        case 'x':\n            t += 1000.0\n    return t", (Pair(1.0, 2.0), Layer(2.0), Named(3.0, 0.0), (0.0, 4.0), 1, False), 1220.0),
    Claim(PATTERNS, "match a:\n    case {'k': Pair(u, second=v), **rest} if rest['n'] > 5:\n        return -u\n    case {'k': Pair(u, _) as p, 'n': 1 | 2}:\n        return u + p.second\n    case _:\n        return 0.0", ({"k": Pair(1.0, 2.0), "n": 2},), 3.0),
    Claim("mappings `{\"key\": x, **rest}`, tuples and lists with one star, literals and dotted constants, names, `_`, `|`, `as`, and guards.", "match a:\n    case [first, *rest]:\n        t = first + len(rest)\n    case []:\n        t = -1.0\nmatch b:\n    case np.pi:\n        t += 100.0\n    case _:\n        pass\nreturn t", ([1.0, 2.0, 3.0], np.float64(np.pi)), 103.0),
    Claim("The first matching case is taken.", "match a:\n    case k if k > 1:\n        return 1\n    case k if k > 0:\n        return 2\n    case _:\n        return 3", (2,), 1),
    Claim("The cases must cover every value, and an unreachable case is an error, at its own line.", "match a:\n    case Shape.Circle(r):\n        return r\n    case _:\n        return 0.0\n    case Shape.Square(s):\n        return s", (Shape.Circle(1.0),), Fails("never reached")),
    Claim("The cases must cover every value", "match a:\n    case Shape.Circle(r):\n        return r", (Shape.Circle(1.0),), Fails("no case covers Shape.Square")),
    Claim("Matches of `None` and of static strings are resolved at compile time; cases for other values are then allowed, and unused.", "def f(a, mode='sum'):\n    match mode:\n        case 'sum':\n            return a.sum()\n        case 'other':\n            return a.nonsense", (X,), 7.0),
    Claim("| `List[A]` | `Nil()`, `Cons(head, tail)` |", "xs = List.Cons(1.0, List.Cons(2.0, List.Nil()))\nys = xs.append(xs).reverse()\nreturn xs.is_empty(), ys.fold(lambda s, v: s * 2.0 + v, 0.0), xs.fold_right(lambda v, s: s * 2.0 + v, 0.0), xs.map(lambda v: v * 3.0).sum(0.0), xs.filter(lambda v: v > 1.0).length(), xs.zip_with(lambda u, v: u * v, xs).sum(0.0)", (), (False, 25.0, 5.0, 9.0, 1, 5.0)),
    Claim("| `Option[A]` | `Nothing()`, `Some(value)` |", "o = Option.Some(a)\nreturn o.is_some(), o.map(lambda v: v + 1.0).get(0.0), o.bind(lambda v: Option.Nothing()).get(9.0)", (1.0,), (True, 2.0, 9.0)),
    Claim("| `Tree[A]` | `Leaf(value)`, `Node(left, right)` |", "t = Tree.Node(Tree.Leaf(a), Tree.Node(Tree.Leaf(2.0), Tree.Leaf(3.0)))\nreturn t.fold(lambda v: v, lambda u, v: u - v), t.map(lambda v: v * 2.0).fold(lambda v: v, lambda u, v: u + v), t.size(), t.depth()", (1.0,), (2.0, 12.0, 3, 2)),
    # references, captured variables
    Claim("`r.value` reads it, `r.value = v` and `r.value += v` write it (also `relay.read(r)`, `relay.write(r, v)`).", "r = relay.ref(a)\nr.value += 1.0\nrelay.write(r, relay.read(r) * 2.0)\ns = r\ns.value += 1.0\nreturn r.value", (1.0,), 5.0),
    Claim("One case is refused: a function that a call, or a reference, carries to the next round of a loop that assigns a captured variable of it again.", "def f(a):\n    g = lambda v: v\n    for i in range(a):\n        s = i * 2.0\n        g = composed(g, lambda v: v + s)\n    return g(1.0)\ndef composed(g, h):\n    return lambda v: g(h(v))", (2,), Fails("carries a function to the next round of the loop, which assigns `s` again")),
    # static arguments and global variables
    Claim("Inside a program, where a function needs a static number, a call with a literal number specializes it;", "def f(a):\n    return g(a, 1), h(2), relay.sum(k(a, 2))\ndef g(v, axis):\n    return v.sum(axis=axis)\ndef h(i):\n    return (1, 2.0, (3, 4))[i]\ndef k(v, step):\n    return v[0, ::2] * step", (M,), ([3.0, 12.0], (3, 4), 4.0)),
    Claim("A static argument is a Python value that is part of the program: a number, string, None, dtype, function, or tuple of them.", "def f(\n    a,\n    mode,  # relay: static\n    none,\n    dtype,\n    g,\n):\n    return g(a.astype(dtype)) if mode[0] == 'x' and none is None else a", (X, ("x", 1), None, relay.Float32, doubled), [2.0, 4.0, 8.0]),
    # semantics
    Claim("Writes to references, `assert` and `print` happen in that order.", "r = relay.ref(0)\ndef fails(v):\n    r.value = v\n    assert v < 2, f'second: {r.value}'\n    return v\nreturn fails(1) + fails(2) + fails(3)", (), Fails("second: 2")),
    Claim("A computation whose result is not used may be removed, with its run-time check, unless it has such an effect.", "b = a[5]\nreturn a[0]", (X,), Fails("index")),
    Claim("It is an `Int32`, or an `Int64` where a literal, a size or a bound of the range needs one; where such a literal meets integers of the program, all of these whose dtype nothing else decides are `Int64`.", "n = 1\nm = 3000000000\nreturn n.dtype == relay.Int32, m.dtype == relay.Int64, [i.dtype == relay.Int64 for i in range(2999999999, m)][0]", (), (True, True, True)),
    Claim("A value that only ever holds integers is an integer everywhere:", "n = 0\nfor i, v in enumerate(a):\n    n += i\nxs = [v for v in a if v > 1.0]\nreturn n / 2 + b / 2 + len(xs) / 2 + a.shape[0] / 2, n, b, len(xs)", (X, 3), (5.5, 3, 3, 2)),
    Claim("A variable that is assigned a float on some path is a float:", "total = 0\nfor v in a:\n    total += v\ny = 0 if total > 99.0 else a[0]\nr, n = relay.ref(0), 1\nr.value = n\nr.value += 0.5\nreturn total, y, r.value, n", (X,), (7.0, 1.0, 1.5, 1)),
    Claim("Differentiating with respect to a Python integer makes it a float where it is combined with one.", "return relay.grad(lambda n: n * n * 1.5)(2)", (), 6.0),
    Claim("A loop over a `range` has as many rounds as in Python, also where `stop - start` overflows the dtype.", "n = 0\nfor i in range(a, b, 2**30):\n    n += 1\nreturn n", (np.int32(-(2**31)), np.int32(2**31 - 1)), 4),
    Claim("`relay.take(.., mode=\"clip\")` clips indices, and `mode=\"wrap\"` takes them modulo n.", "return relay.take(a, b, mode='clip'), relay.take(a, b, mode='wrap')", (X, np.int32([5, -1])), ([4.0, 1.0], [4.0, 4.0])),
]  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.sentence[:50])
def test_sentences_of_the_language(claim: Claim) -> None:
    check(PAGE, claim, NAMES)


# ---- in Python


def test_results_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    says(
        PAGE,
        "`float(y)`, `y.numpy()`, `np.asarray(y)`, indexing, operators, NumPy's functions and the methods of NumPy arrays work on them.",
    )
    says(PAGE, "`y += 1` makes a new array, and `y[0] = 1` is a `TypeError`.")
    says(
        PAGE,
        "`f.type` is the function's general type, `print(f)` prints its typed program, and `f.core(..)` is the first-order program that a call runs.",
    )
    says(PAGE, "Results never share memory with arguments that the caller can change, unless these are donated.")
    given = X.copy()
    y = relay.relay(lambda x: x).interpret(given)
    assert isinstance(y, relay.Array) and float(y[0]) == 1.0
    given[0] = 9.0
    assert y.numpy().tolist() == np.asarray(y).tolist() == [1.0, 2.0, 4.0]
    assert (y * 2 - 1).tolist() == [1.0, 3.0, 7.0] and np.sqrt(y)[2] == 2.0 and y.mean() == 7.0 / 3.0
    before = y
    y += 1
    assert before.tolist() == [1.0, 2.0, 4.0] and y.tolist() == [2.0, 3.0, 5.0]
    with pytest.raises(TypeError, match="never changes"):
        y[0] = 1
    print(relay.relay(half_squares))
    assert "fn half_squares(" in capsys.readouterr().out
    assert "lambda" not in str(relay.relay(half_squares).core(X)) and "sin" in str(relay.relay(half_squares).core(X))


def half_squares(x):
    square = lambda v: v * relay.sin(v)
    return square(x) / 2.0


def test_compiled_once_for_each_combination(caplog: pytest.LogCaptureFixture) -> None:
    says(
        PAGE,
        "A function is type-checked and compiled once for each combination of dtypes, shapes and structures, and cached.",
    )
    says(PAGE, "The function is recompiled for each value.")

    @relay.relay(static_argnames="n")
    def scaled(x, n):
        return x["k"] * n

    with caplog.at_level(logging.INFO, "relay.compile"):
        for x, n in ((1.0, 2), (3.0, 2), (np.float64(1.0), 2), (1.0, 3)):
            before = len(caplog.records)
            assert float(scaled.interpret({"k": x}, n)) == x * n
            assert (len(caplog.records) > before) is bool(x != 3.0)


def test_functions_in_results() -> None:
    says(PAGE, "Functions can also be returned to Python, alone or in tuples, lists, dicts and records.")
    says(PAGE, "They may be called at every type that they support, passed to decorated functions, and differentiated.")
    says(
        PAGE,
        "A function that is selected at run time can be returned, too, at the types of an annotation, `-> Fn[[A], B]`;",
    )

    @relay.relay
    def made(a):
        f = lambda v: v * a
        return f, [f], {"k": f}, Layer(f)

    @relay.relay
    def applied(f, x):
        return f(x)

    first, (second,), third, record = made.interpret(2.0)
    assert [float(f.interpret(3.0)) for f in (first, second, third["k"], record.weight)] == [6.0] * 4
    assert first.interpret(np.float32([1.0])).tolist() == [2.0]
    assert float(applied.interpret(first, 4.0)) == 8.0 and float(relay.grad(first).interpret(1.0)) == 2.0

    @relay.relay
    def selected(c) -> relay.Fn[[float], float]:
        return relay.sin if c > 0.0 else relay.cos

    assert float(selected.interpret(-1.0).interpret(0.0)) == 1.0


def test_references_in_python() -> None:
    says(
        PAGE,
        "after the call `r.value` is what the call left there, also if it ended with an error; a content that the call did not write stays the same object.",
    )
    says(PAGE, "`Ref[list[A]]` may hold a list of any length, `Ref[Tensor[Float, (Any,)]]` a tensor of any size.")

    @relay.relay
    def noted(counts, kept, many: relay.Ref[list[float]], sized: relay.Ref[Tensor[Float64, (relay.Any,)]], x):
        counts[0].value += 1
        many.value += [x, x]
        sized.value = sized.value[1:]
        assert x > 0.0
        return kept

    array = np.ones(2)
    count, kept, many, sized = relay.ref(0), relay.ref(array), relay.ref([]), relay.ref(np.ones(3))
    assert noted.interpret((count,), kept, many, sized, 1.0) is kept and kept.value is array
    with pytest.raises(relay.ExecutionError):
        noted.interpret((count,), kept, many, sized, -1.0)
    assert plain((count.value, many.value, sized.value)) == (2, [1.0, 1.0, -1.0, -1.0], [1.0])


NUMBER = 2.0


@relay.relay
def uses_globals(x):
    return defined_later(x) * NUMBER


@relay.relay
def defined_later(x):
    return x * 2.0


def test_global_names(monkeypatch: pytest.MonkeyPatch) -> None:
    says(
        PAGE,
        "Global functions are looked up late. Global numbers, arrays and structures are read at the first type check and kept as constants; `f.reload()` drops them and the compiled programs.",
    )
    assert float(uses_globals.interpret(1.0)) == 4.0
    monkeypatch.setitem(globals(), "NUMBER", 5.0)
    assert float(uses_globals.interpret(1.0)) == 4.0
    uses_globals.reload()
    assert float(uses_globals.interpret(1.0)) == 10.0


def test_lists_of_any_length(caplog: pytest.LogCaptureFixture) -> None:
    says(
        PAGE,
        "With the annotation `list[A]`, one program takes lists of any length. So does a parameter without annotation from the second length on",
    )

    @relay.relay
    def annotated(xs: list[float]):
        return sum(xs)

    @relay.relay
    def inferred(xs):
        return sum(xs)

    with caplog.at_level(logging.INFO, "relay.compile"):
        for function, compiled in ((annotated, [True, False, False, False]), (inferred, [True, True, False, False])):
            for length, expected in zip((2, 3, 5, 9), compiled, strict=True):
                before = len(caplog.records)
                assert float(function.interpret([1.0] * length)) == length
                assert (len(caplog.records) > before) is expected, (function, length)


def test_prelude_and_lists_of_python() -> None:
    says(PAGE, "`relay.prelude.from_sequence` and `to_sequence` convert from and to Python lists.")
    assert plain(relay.prelude.to_sequence(relay.prelude.from_sequence([1.0, 2.0]))) == [1.0, 2.0]
    assert Int32 is relay.Int32 and Option.Some(1.0).value == 1.0 and Tree.Leaf(1.0).value == 1.0
