"""The sentences of the page of the language that no block of the page runs: each is quoted and tried."""

# ruff: noqa: E501

from __future__ import annotations

import numpy as np
import pytest
from reference import Claim, Fails, check

import relay

X = np.array([1.0, 2.0, 4.0])
N = np.array([3, 1, 2], np.int32)
M = np.arange(6.0).reshape(2, 3)


@relay.data
class Layer:
    weight: relay.Tensor[relay.Float64, ()]

    def forward(self, x):
        return x * self.weight


CLAIMS = [
    # functions
    Claim("`None` is the result of a function without `return`", "print(a)", (1.0,), None),
    Claim("`x is None` is resolved at compile time.", "return 1 if a is None else 2", (None,), 1),
    Claim("A call may be a statement by itself.", "relay.tanh(a)\nreturn a", (2.0,), 2.0),
    Claim(
        "A function may call itself, and functions that are defined later",
        "def f(a):\n    return g(a)\ndef g(a):\n    return a if a < 1.0 else g(a - 1.0)",
        (2.5,),
        0.5,
    ),
    Claim("A local function is polymorphic.", "g = lambda v: v + v\nreturn g(a), g(b)", (X, 1), ([2.0, 4.0, 8.0], 2)),
    Claim(
        "`f(*items, **record)` unpacks tuples and dicts of static length.",
        "g = lambda u, v, w: u + v * w\nreturn g(*(a, b), **{'w': 3.0})",
        (1.0, 2.0),
        7.0,
    ),
    Claim(
        "As parameters, `*args` is a tuple and `**kwargs` a dict: another number of arguments is another program.",
        "g = lambda *v, **w: len(v) + sum(v) + w['k']\nreturn g(a, a, k=a) + g(k=a)",
        (1.0,),
        6.0,
    ),
    # numbers and tensors
    Claim("A scalar is a tensor of rank 0.", "return a.ndim", (2.0,), 0),
    Claim("comparisons (also chained) and `and or not`", "return a < b <= 2, not a < b", (1, 2), (True, False)),
    Claim(
        "`and` and `or` evaluate the right side only if needed, and give one of their operands, as in Python: two bools,"
        " numbers, strings or lists of one type, or a number and a bool, which is then 0 or 1.",
        "return a == 0 or 4 // a > 1, a or b, f'{a}' or 'x', a or b > 1, a and b > 1",
        (0, 2),
        (True, 2, "0", 1, 0),
    ),
    Claim(
        "In a condition, they and `not` take anything that has a truth value.",
        "xs = [i for i in range(b) if i != 7]\nreturn 1 if xs and b and not a else 2",
        (0, 2),
        1,
    ),
    Claim(
        "Elementwise, use `&`, `|` and `relay.logical_not(x)`.",
        "return (a > 1.0) & (a < 4.0), relay.logical_not(a > 1.0)",
        (X,),
        ([False, True, False], [True, False, False]),
    ),
    Claim(
        "Dtypes are Relay's: indices are `Int32`, and sums of integers keep their dtype",
        "return relay.argmax(a).dtype == relay.Int32, np.sum(a).dtype == relay.Int32",
        (N,),
        (True, True),
    ),
    Claim(
        "Results of `np.unique`, `np.nonzero`, `np.bincount` and the like have a",
        "return np.unique(a), np.nonzero(a > 1), np.bincount(a)",
        (np.int32([3, 1, 3]),),
        ([1, 3], ([0, 2],), [0, 1, 0, 2]),
    ),
    Claim("NaN where Python raises a `ValueError`", "return math.log(a)", (-1.0,), float("nan")),
    Claim(
        "`abs min max sum any all len round pow divmod float int bool tuple list range zip enumerate reversed` work",
        "return abs(-a), min(a, b), max(a, b), sum((a, b)), pow(a, 2), divmod(a, b), float(a), int(2.5), bool(a), tuple([a]), list((a,)), [i for i in range(2)], [x * y for x, y in zip((a,), (b,))], [i for i, x in enumerate((a, b))], [x for x in reversed((a, b))]",
        (7, 2),
        (7, 2, 7, 9, 49, (3, 1), 7.0, 2, True, (7,), [7], [0, 1], [14], [0, 1], [2, 7]),
    ),
    Claim(
        "`map` and `filter` return lists",
        "return list(map(lambda v: v + 1, (a, b))), map(lambda v: v, [a])",
        (1, 2),
        ([2, 3], [1]),
    ),
    Claim(
        "`any(c for x in xs)` and `all` stop at the first condition that decides",
        "return any(4 // v > 1 for v in a)",
        (np.array([1, 0], np.int32),),
        True,
    ),
    Claim(
        "`round(x)` of a scalar is `Int32`, half to even, and `relay.round(x)` keeps the dtype",
        "return round(a), round(b), relay.round(a), round(a).dtype == relay.Int32",
        (2.5, 3.5),
        (2, 4, 2.0, True),
    ),
    Claim(
        "Like `len(x)`, they are static, so they can size an array, select a branch of an `if` (the other branch is then not even type-checked) and index a tuple.",
        "if a.ndim == 1:\n    return relay.zeros((len(a),)), (1, 2.0)[a.ndim]\nreturn a.nonsense",
        (X,),
        ([0.0, 0.0, 0.0], 2.0),
    ),
    Claim(
        "alone, `zeros` is float32 and `arange(n)` int32.",
        "return relay.zeros(2).dtype == relay.Float32, relay.arange(2).dtype == relay.Int32",
        (),
        (True, True),
    ),
    Claim(
        "`np.full(shape, v)` is of v's kind: integers for `0`, floats for `0.0`, booleans for `True`",
        "return np.full(2, 0), np.full(2, 0.0), np.full(2, True)",
        (),
        ([0, 0], [0.0, 0.0], [True, True]),
    ),
    Claim(
        "a run-time v gives its dtype.",
        "return np.full(2, a).dtype == relay.Float64",
        (np.float64(1.0),),
        True,
    ),
    Claim(
        "`math.floor`, `ceil` and `trunc` of a scalar give an `Int32`, `np.floor` and `relay.floor` keep the dtype.",
        "return math.floor(a), math.ceil(a), math.trunc(-a), np.floor(a), relay.floor(a), math.floor(a).dtype == relay.Int32",
        (1.5,),
        (1, 2, -1, 1.0, 1.0, True),
    ),
    Claim(
        "`x.astype(dtype)`, `relay.cast(x, dtype)`, `np.float32(x)`, `int(x)` and `bool(x)` convert.",
        "return a.astype(relay.Int32), relay.cast(a, relay.Bool), np.float32(a).dtype == relay.Float32, int(a[1]), bool(a[1])",
        (X,),
        ([1, 2, 4], [True, True, True], True, 2, True),
    ),
    Claim(
        "Integers and booleans convert themselves where they meet floats; a float32 tensor and a float64 tensor do not add.",
        "return a + b",
        (X, np.float32(X)),
        Fails("float64.*float32|float32.*float64"),
    ),
    Claim(
        "a number or array whose dtype is still undetermined gets its default dtype at such a comparison",
        "x = relay.zeros(3)\nif x.dtype == relay.Float32:\n    return x + a\nreturn a",
        (X,),
        Fails("float32 and float64"),
    ),
    Claim(
        "a number or array whose dtype is still undetermined gets its default dtype at such a comparison",
        "n = 0\nfor v in a:\n    n += 1\nreturn a.dtype == relay.Float32, n.dtype == relay.Int32, n * b",
        (np.float32([1.0, 2.0]), 1.5),
        (True, True, 3.0),
    ),
    # indexing
    Claim(
        "Masks select elements.",
        "return a[[True, False, True]]",
        (X,),
        [1.0, 4.0],
    ),
    Claim("negative ones count from the end", "return a[b]", (X, -1), 4.0),
    Claim(
        "it must lie inside the array: a start that is negative or too large is a run-time error",
        "return a[b:b + 2]",
        (X, 2),
        Fails("slice|outside|range"),
    ),
    Claim(
        "also arrays of indices, masks, and slices with run-time bounds: `x[:, idx] = v`, `x[mask] = values`, `x[:n] = v`.",
        "a[[0, 2]] = 9.0\nreturn a",
        (X,),
        [9.0, 2.0, 9.0],
    ),
    Claim(
        "Where an index occurs twice, the last value stays; `relay.scatter_add`, or `x.at[i].add(v)`, adds all of them.",
        "b = a.copy()\na[[0, 0]] = 5.0\nreturn a, b.at[relay.argmax(b)[None]].add(1.0)",
        (X,),
        ([5.0, 2.0, 4.0], [1.0, 2.0, 5.0]),
    ),
    Claim(
        "`x.sort()` as a statement assigns the sorted tensor to the variable, and so does `np.add.at(x, i, v)` with the"
        " sums.",
        "a.sort()\nnp.add.at(a, [0, 0], 2)\nreturn a",
        (N,),
        [5, 2, 3],
    ),
    # statements
    Claim(
        "a later assignment may give it another type, except in loops", "b = a\nb = (a, 1)\nreturn b", (1.0,), (1.0, 1)
    ),
    Claim(
        "chains `a = b = e`, `:=` and annotated assignments work",
        "b = c = a\nd: relay.Tensor[relay.Float64, (3,)] = (e := a)\nreturn b[0] + c[1] + d[2] + e[0]",
        (X,),
        8.0,
    ),
    Claim(
        "needs a boolean scalar, a number, which is true if it is not 0, or a string, tuple, list or dict, which is true"
        " if it is not empty.",
        "return (1 if (a,) else 2), (1 if [] else 2), (1 if {'k': a} else 2), (1 if a else 2), (1 if f'{a}' else 2)",
        (0.0,),
        (1, 2, 1, 2, 1),
    ),
    Claim(
        "A variable that is read afterwards must be assigned on every path, with one type.",
        "if a > 0.0:\n    b = 1.0\nreturn b",
        (1.0,),
        Fails("value"),
    ),
    Claim(
        "Names that `:=` assigns in a condition `a and (b := ..)` are assigned where the condition is true.",
        "if a > 0.0 and (b := a * 2.0) > 1.0:\n    return b\nreturn 0.0",
        (1.0,),
        2.0,
    ),
    Claim("`del name` deletes a variable.", "b = a\ndel b\nreturn b", (1.0,), Fails("b")),
    Claim(
        "A name that is assigned before every `break` and in the `else` can be used after the loop, and so can one that only the body of a `for` assigns, if the loop is known to have at least one round.",
        "for i in range(5):\n    if i * i > a:\n        b = i\n        break\nelse:\n    b = -1\nreturn b",
        (5,),
        3,
    ),
    Claim(
        "A function may be called with a `range`, `zip` or `enumerate` and iterate over it; it cannot return one.",
        "def f(a):\n    return g(enumerate(a)) + g(zip(range(3), a))\ndef g(v):\n    return sum([i * c for i, c in v])",
        (M[0],),
        2 * sum(i * c for i, c in enumerate(M[0])),
    ),
    Claim(
        "A variable that a loop changes keeps its dtype and shape, with one exception: in the first round of a `for` a number may become an array, as `total = 0.0` does by `total = total + x` of arrays `x`.",
        "b = 0.0\nfor v in a:\n    b = b + v\nreturn b",
        (M,),
        M.sum(axis=0),
    ),
    Claim(
        "Where the number of rounds is known only at run time, start with an array: `total = np.zeros(3)`.",
        "b = 0.0\nfor v in a[a[:, 0] > 0.0]:\n    b = b + v\nreturn b",
        (M,),
        Fails("np.zeros"),
    ),
    Claim(
        "keeps its dtype and shape",
        "b = a\nfor i in range(b.shape[0] + 90):\n    b = relay.concatenate([b, a])\nreturn b",
        (X,),
        Fails("shape|round|type|Any"),
    ),
    Claim(
        "a `while` with a static condition, such as `while x.ndim > 1` or `while len(items) > 0` of a tuple, where its variables change their types, up to 64 rounds.",
        "while a.ndim > 0:\n    a = a.sum(axis=0)\nreturn a",
        (M,),
        15.0,
    ),
    Claim(
        "over a tuple or list, so the elements may differ in type",
        "b = 0.0\nfor v in (a, a[0], M):\n    b += relay.sum(v)\nreturn b",
        (X,),
        23.0,
    ),
    Claim(
        "**`return`** may be anywhere; all results have one type, or are None.",
        "for v in a:\n    if v > 1.0:\n        return v\nreturn 0.0",
        (X,),
        2.0,
    ),
    Claim(
        "**`return`** may be anywhere; all results have one type, or are None.",
        "if a[0] > 1.0:\n    return a\nreturn a[0]",
        (X,),
        Fails("returns|result"),
    ),
    Claim("**`pass`**, `...` and docstrings do nothing.", "'''Text.'''\npass\n...\nreturn a", (1.0,), 1.0),
    Claim(
        "stops the program with an `ExecutionError` at its line. The text may be an f-string, which is evaluated only then.",
        "assert a > 1.0, f'{a} is small'\nreturn a",
        (0.5,),
        Fails("0.5 is small"),
    ),
    Claim(
        "A false static condition, such as one on shapes, is a type-checking error.",
        "assert a.shape[0] == 2, 'two'\nreturn a",
        (X,),
        Fails("two"),
    ),
    Claim(
        '`raise ValueError(f"..")` is such an assertion that raises an `ExecutionError`',
        "if a > 1.0:\n    return a\nraise ValueError(f'{a:.1f} is too small')",
        (0.5,),
        Fails("too small"),
    ),
    Claim(
        "A string is static unless the program computes it: where paths meet with different strings, in a variable that a"
        " loop changes, and in an f-string with run-time values.",
        "s = 'x' if a > 2 else 'y'\nfor i in range(a):\n    s = s + f'{i}'\nreturn s, [s], f'{a}' < '4'",
        (np.int32(3),),
        ("x012", ["x012"], True),
    ),
    # records
    Claim(
        "Items of a list and values of a dict can be assigned, those of tuples cannot",
        "b, c = [a, a], {'k': a}\nb[0], c['k'] = 2.0, 3.0\nreturn b, c",
        (1.0,),
        ([2.0, 1.0], {"k": 3.0}),
    ),
    Claim(
        "Items of a list and values of a dict can be assigned, those of tuples cannot",
        "b = (a, a)\nb[0] = 2.0\nreturn b",
        (1.0,),
        Fails("tuple"),
    ),
    Claim(
        "Functions give the caller what they change in their arguments, and a name that is assigned once, to a variable or to a part of one (`row = grid[i]`), stands for it; so such programs run as they do in Python.",
        "rows = [[a], [b]]\ndef put(xs, v):\n    xs.append(v)\nfor i in range(2):\n    row = rows[i]\n    row[0] = c\n    put(row, a)\nreturn rows",
        (1.0, 2.0, 3.0),
        [[3.0, 1.0], [3.0, 1.0]],
    ),
    Claim(
        "Any other program in which it makes a difference is refused, at the line that reads what Python would have changed; give one of the names a copy.",
        "ys = a[1:]\nys[0] = 5.0\nreturn a.sum()",
        (X,),
        Fails("in Python, `a` sees the change of `ys`"),
    ),
    Claim(
        "In Python `ys = xs` is another name for one object",
        "xs = [a]\nys = xs\nxs.append(a)\nreturn len(ys)",
        (1.0,),
        2,
    ),
    Claim(
        "Numbers and strings do not change, so `i = j` and `i += 1` are as in Python.",
        "i = a\ni += 1\nreturn a, i",
        (1,),
        (1, 2),
    ),
    Claim(
        "`+` concatenates two tuples or two lists, `*` repeats one, `==` compares whole structures of numbers, and `in` searches tuples, lists, dicts, sets, ranges and tensors.",
        "return (a,) + (b,), [a] * 2, (a, b) == (1, 2), (a, [b]) == (1, [3]), b in (a, b), b in [a], 'k' in {'k': a}, b in range(2), b in np.array([1, 2])",
        (1, 2),
        ((1, 2), [1, 1], True, False, True, False, True, False, True),
    ),
    Claim(
        "Sets have no order: go through `sorted(s)`;",
        "s = {1, 2}\nreturn a in s, b not in {1, 3, *(2, 4)}, 'k' in {'j', 'k'}",
        (1, 2),
        (True, False, True),
    ),
    Claim(
        "Sets have no order: go through `sorted(s)`;",
        "s = {a, b}\nreturn a in s, 3 in s, sorted(s), len(s)",
        (2, 1),
        (True, False, [1, 2], 2),
    ),
    Claim(
        "Sets have no order: go through `sorted(s)`;",
        "s = set(a)\nreturn [v for v in s]",
        (np.array([2, 1, 2]),),
        Fails("a set has no order to go through it"),
    ),
    Claim(
        "`items`, `keys`, `values`, `get`, `pop`, `update`, `copy` and `|` of dicts",
        "d = {'u': a, 'v': b}\ne = d.copy()\np = e.pop('u')\ne.update({'w': 3})\nreturn len(d.keys()), sum([v for k, v in d.items()]), d.get('x', 9), p, e, {'u': 5} | d, sum(d.values())",
        (1, 2),
        (2, 3, 9, 1, {"v": 2, "w": 3}, {"u": 1, "v": 2}, 3),
    ),
    Claim("A run-time index, `xs[i]`, needs elements of one type.", "return (1.0, 2.0, 3.0)[a]", (2,), 3.0),
    Claim(
        "A run-time index, `xs[i]`, needs elements of one type.",
        "return (1.0, (2.0,))[a]",
        (np.int32(1),),
        Fails("type"),
    ),
    Claim(
        "`<`, `<=`, `>` and `>=` of two tuples or lists compare the first items that differ; `sorted`, `max` and `min` take a `key`, and order tuples, too; `index` and `count` search for a value.",
        "return (a, 2) < (a, 3), [2] >= [a], sorted([b, a], key=lambda v: -v), max((a, 5), (b, 1)), min([(b, 1), (a, 9)]), [a, b, b].index(b), (a, b, b).count(b)",
        (1, 2),
        (True, True, [2, 1], (2, 1), (1, 9), 1, 2),
    ),
    # dynamic lists
    Claim(
        "`append`, `extend`, `insert`, `pop`, `clear`, `reverse`, `+`, `*`, slices, `xs[i]`, `xs[i] = v`, `len`, `in`, `sum`, `min`, `max`, `any`, `all`, `reversed`, `zip`, `enumerate` and `for` work",
        "xs = []\nfor v in a:\n    if v > 0:\n        xs.append(v)\nxs.extend([7, 8])\nxs.insert(0, 9)\np = xs.pop()\nxs.reverse()\nxs[0] = 6\nys = xs + xs[1:3]\nzs = xs * 2\nt = 0\nfor i, v in enumerate(reversed(xs)):\n    t += i * v\nfor u, v in zip(xs, ys):\n    t += u - v\nc = xs[:]\nc.clear()\nreturn xs, p, ys, len(zs), 6 in xs, sum(xs), min(xs), max(xs), any(v > 8 for v in xs), all(v > 8 for v in xs), t, len(c)",
        (N,),
        ([6, 2, 1, 3, 9], 8, [6, 2, 1, 3, 9, 2, 1], 10, True, 21, 1, 9, True, False, 35, 0),
    ),
    Claim(
        "So do `remove`, `index`, `count`, `sort` and `sorted` (a stable merge sort), with `key` and `reverse`.",
        "xs = [v for v in a if v > 0]\nxs.remove(1)\nxs.append(3)\ni, c = xs.index(2), xs.count(3)\nys = sorted(xs, reverse=True)\nxs.sort(key=lambda v: v)\nreturn xs, ys, i, c",
        (N,),
        ([2, 3, 3], [3, 3, 2], 1, 2),
    ),
    Claim(
        "Inner functions may append to the lists of enclosing functions",
        "xs = []\ndef add(v):\n    xs.append(v)\nfor v in a:\n    if v > 1:\n        add(v)\nreturn xs",
        (N,),
        [3, 2],
    ),
    Claim(
        "differentiated through and with respect to: the gradient is a list of the same length",
        "return relay.grad(lambda xs: sum([x * x for x in xs]))([v for v in a if v > 1.0])",
        (X,),
        [4.0, 8.0],
    ),
    # data-dependent shapes
    Claim(
        "Two sizes that have to be equal are compared at run time, and the error points at the operation",
        "return a[a > 1.0] + a[a > 2.0]",
        (X,),
        Fails("must have the same number of elements"),
    ),
    Claim(
        "an axis of data-dependent size is never broadcast",
        "return a + a[a > 3.0]",
        (X,),
        Fails("must have 3 elements"),
    ),
    Claim(
        "The size itself, `y.shape[0]` or `len(y)`, is a run-time integer.",
        "y = a[a > 1.0]\nreturn y.shape[0], len(y), y.shape[0] + 1",
        (X,),
        (2, 2, 3),
    ),
    # data types
    Claim(
        "Inside a program, a bound method is a function value: `apply(layer.forward, x)`.",
        "apply = lambda g, v: g(v)\nreturn apply(a.forward, b), [apply(layer.forward, b) for layer in (a, a)]",
        (Layer(np.float64(2.0)), 3.0),
        (6.0, [6.0, 6.0]),
    ),
    # references
    Claim(
        "(also `relay.read(r)`, `relay.write(r, v)`). Copies of a reference are the same cell. The content keeps its type.",
        "r = relay.ref(a)\ns = r\nrelay.write(s, 2.0)\nr.value += 1.0\nreturn relay.read(s)",
        (1.0,),
        3.0,
    ),
    Claim(
        "The content keeps its type.",
        "r = relay.ref(a)\nr.value = (a, a)\nreturn r.value",
        (1.0,),
        Fails("type|must be|holds"),
    ),
    # captured variables
    Claim(
        "A default, `lambda v, y=y: ..`, keeps the current value.",
        "g = lambda v, y=a: v + y\na = 10.0\nreturn g(1.0)",
        (2.0,),
        3.0,
    ),
    Claim("the current value, at the time of the call", "g = lambda v: v + a\na = 10.0\nreturn g(1.0)", (2.0,), 11.0),
    Claim(
        "functions that are created in a loop or comprehension, and called later, all see its last value",
        "fs = [lambda: i + a for i in range(3)]\nreturn [g() for g in fs]",
        (1,),
        [3, 3, 3],
    ),
    # semantics
    Claim(
        "Operands, arguments and subscripts are evaluated from left to right, before the operation or call; a function before its arguments.",
        "r = relay.ref(1)\ndef two():\n    r.value *= 10\n    r.value += 2\n    return r.value\ndef three():\n    r.value *= 10\n    r.value += 3\n    return r.value\nreturn two() - three(), r.value",
        (),
        (-111, 123),
    ),
    Claim(
        "`Int` is `Int32`, `Float` is `Float32`.",
        "return relay.Int == relay.Int32, relay.Float == relay.Float32",
        (),
        (True, True),
    ),
    Claim(
        "A Python float as argument, like a float literal, takes the dtype of the floats that it is combined with; alone it is `Float32`.",
        "return (a * b).dtype == relay.Float64, (c * 2.0).dtype == relay.Float32",
        (1.5, X, 2.5),
        (True, True),
    ),
    Claim(
        "An integer literal combined with a float takes its dtype, if that can hold it: `x * 7`.",
        "return (a * 7).dtype == relay.Float64",
        (X,),
        True,
    ),
    Claim(
        "in `x.sum() / n, n` the second result is an integer",
        "n = 0\nfor v in a:\n    n += 1\nreturn a.sum() / n, n, n.dtype == relay.Int32",
        (X,),
        (7.0 / 3.0, 3, True),
    ),
    Claim("one to `Float16` may be infinite", "return a + b", (np.float16(1.0), 70000), float("inf")),
    Claim(
        "`i * 0.1`, `n / 2` and `np.sqrt(i)` are floats whose dtype their uses decide.",
        "for i in range(1, 2):\n    a = a + i * 0.5 + np.sqrt(i) + i / 2\nreturn a, a.dtype == relay.Float64",
        (X,),
        ([3.0, 4.0, 6.0], True),
    ),
    Claim(
        "Integers and booleans of NumPy's dtypes, and results computed from such data, are what they are until they meet floats, whose dtype they take: `x * mask`, `counts / total`.",
        "return a * relay.argmax(a), a * (a > 1.0)",
        (X,),
        ([2.0, 4.0, 8.0], [0.0, 2.0, 4.0]),
    ),
    Claim(
        "`/`, `mean`, `sqrt`, `exp` and similar functions of integers and booleans give floats whose dtype their uses decide.",
        "return a / 2 * b, np.sqrt(a), (a > 1).mean()",
        (np.int32([4, 16]), np.float64(0.5)),
        ([1.0, 4.0], [2.0, 4.0], 1.0),
    ),
    Claim(
        "Of two integer dtypes the result has the one that holds both, and so has a variable that is of the one or the other where paths meet.",
        "n = a if a > 5 else b\nreturn (a + b) << 40, n << 40",
        (np.int64(1), np.int32(1)),
        (2 << 40, 1 << 40),
    ),
    Claim(
        "So it is in the rounds of a loop, and with the elements of a list that grows.",
        "k = b\nxs = [b]\nfor v in c:\n    k = a if v > 2.0 else k\n    if v > 1.5:\n        xs.append(a)\n"
        "return (k << 40) + (b if k > 5 else a), xs[0] << 40",
        (np.int64(1), np.int32(1), X),
        (1 + (1 << 40), 1 << 40),
    ),
    Claim(
        "A list or tuple of numbers or arrays is an array there, also a list whose length is computed: `np.mean(waits)`.",
        "waits = []\nfor v in a:\n    if v > 1.5:\n        waits.append(v)\n"
        "return np.mean(waits), np.max((a[0], 1.5)), np.concatenate([[0.0], waits])",
        (X,),
        (3.0, 1.5, [0.0, 2.0, 4.0]),
    ),
    Claim(
        "A float is stored in an array of integers only after `x.astype(..)`.",
        "a[0] = b\nreturn a",
        (N, np.float64(1.5)),
        Fails("float"),
    ),
    Claim(
        "`x.at[items]` is JAX's: `set`, `add`, `multiply`, `divide`, `power`, `min`, `max` and `get`, which give a new "
        "tensor; of these, only `set` uses one value for an index that occurs twice.",
        "return a.at[0].set(5.0), a.at[1].divide(2.0), a.at[[2, 2]].power(2.0), a.at[1].min(0.5), a.at[:2].get()",
        (X,),
        ([5.0, 2.0, 4.0], [1.0, 1.0, 4.0], [1.0, 2.0, 256.0], [1.0, 0.5, 4.0], [1.0, 2.0]),
    ),
    Claim(
        "Integers wrap around, and static numbers are exact: `1 << 40` is an `Int64`.",
        "return a + 1, 1 << 40",
        (np.int8(127),),
        (-128, 1 << 40),
    ),
    Claim(
        "`//` floors and `%` has the divisor's sign, as in Python.",
        "return a // b, a % b, a // -b, a % -b",
        (-7, 2),
        (-4, 1, 3, -1),
    ),
    Claim("`/` of integers is a float.", "return a / b", (np.int32(1), np.int32(2)), 0.5),
    Claim(
        "`**` of integers needs a nonnegative exponent.",
        "return a ** b",
        (np.int32(2), np.int32(-1)),
        Fails("negative"),
    ),
    Claim(
        "The sum of booleans and `argmax` are `Int32`",
        "return relay.sum(a > 1.0), relay.sum(a > 1.0).dtype == relay.Int32",
        (X,),
        (2, True),
    ),
    Claim(
        "`1.0 / 0.0` is infinity. `max`, `min` and `relu` propagate NaN.",
        "return 1.0 / a, max(b, 1.0), min(1.0, b), relay.relu(b), relay.max(relay.stack([b, a]))",
        (0.0, float("nan")),
        (float("inf"), *[float("nan")] * 4),
    ),
    Claim(
        "`-0.0 % 1.0` is 0.0, and of two zeros `maximum(x, y)` and `minimum(x, y)` are the second.",
        "return 1.0 / (-a % 1.0), 1.0 / relay.maximum(a, -a), 1.0 / relay.minimum(-a, a)",
        (0.0,),
        (float("inf"), float("-inf"), float("inf")),
    ),
    Claim(
        "The sum of an empty axis is 0 and its product 1",
        "return relay.sum(a), relay.prod(a), relay.mean(a)",
        (np.zeros(0),),
        (0.0, 1.0, float("nan")),
    ),
    Claim(
        "its `max`, `min` and `argmax` are errors, and its mean is NaN.",
        "return relay.argmax(a)",
        (np.zeros(0),),
        Fails("empty|no element|nothing"),
    ),
    Claim(
        'An index outside `[-n, n)` is an error, at compile time if it is static. Slices clip, as in Python. `relay.take(.., mode="clip")` clips indices',
        "return a[1:99], relay.take(a, np.array([99, 0]), mode='clip')",
        (X,),
        ([2.0, 4.0], [4.0, 1.0]),
    ),
    Claim(
        "Beside integers booleans are 0 and 1; `+`, `*`, `max`, `min`, `maximum` and `minimum` of arrays of booleans are booleans, as in NumPy.",
        "b = a > 1.0\nreturn b + b, b * b, b.max(), np.minimum(b, b), b == 0, np.maximum(b, 2)",
        (X,),
        ([False, True, True], [False, True, True], True, [False, True, True], [True, False, False], [2, 2, 2]),
    ),
    Claim(
        "Python's `sum` counts them.",
        "return sum(v > 1.5 for v in a), sum([a[0] > 0.5, a[1] > 2.5])",
        (X,),
        (2, 1),
    ),
    Claim(
        "The sum and product of two single booleans, integers in Python and booleans in NumPy, are errors: `int(a > 0)`.",
        "return (a > 0) + (a > 1)",
        (1.0,),
        Fails("found bool"),
    ),
    Claim(
        "The sum and product of two single booleans, integers in Python and booleans in NumPy, are errors: `int(a > 0)`.",
        "return int(a > 0) + int(a > 1)",
        (1.0,),
        1,
    ),
    Claim(
        "Where an axis has no elements, an index of it, `max`, `min` and `argmax` are errors at run time if they may not run",
        "for i in range(b):\n    a = a + a[0] + a.max()\nreturn a",
        (np.zeros(0), 0),
        np.zeros(0),
    ),
    Claim(
        "An index outside `[-n, n)` is an error, at compile time if it is static.",
        "return a[-4]",
        (X,),
        Fails("index"),
    ),
]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.sentence[:50])
def test_sentences_of_the_language(claim: Claim) -> None:
    check("language.md", claim, {"M": M})
