"""Pieces of hostile files: expressions that would run code or take much, and the places where they may stand.

`{0}` and `{1}` stand for expressions, `{2}` for a module beside the file.
"""
# ruff: noqa: E501 - tables of texts

from __future__ import annotations

import sys

HEAD = """
import collections, dataclasses, enum, functools, math, typing
import numpy as np
import relay
from relay import Tensor, Float, dims
from typing import NamedTuple, Generic, TypeVar
n, m = dims("n m")
T = TypeVar("T")
"""

RUNNING = (
    "canary()", "canary", '__import__("os").system("touch HOSTILE")', "(lambda: canary())()", "[canary() for _ in 'a']",
    "{canary(): 1}", "{k: canary() for k in 'a'}", "f'{canary()}'", "f'{1:{canary()}}'", "(y := canary())", "Evil()",
    "Evil[0]", "Evil[canary()]", "Evil.attribute", "Evil + 1", "-Evil", "Evil < Evil", "not Evil", "Evil @ Evil",
    "print(canary())", "max([1, 2], key=canary)", "sorted([2, 1], key=canary)", "relay.grad(canary)", "tuple(Evil)",
    "np.array([Evil])", "np.vectorize(canary)(1)", "np.fromfunction(canary, (2,))", "np.frompyfunc(canary, 0, 1)()",
    "np.apply_along_axis(canary, 0, np.ones(3))", "functools.reduce(canary, [1, 2])", "functools.partial(canary)()",
    "NamedTuple('P', [('x', canary())])", "collections.namedtuple('P', 'x')(canary())", "dict(a=canary())",
    "dataclasses.field(default_factory=canary)", "relay.vjp(f, 1.0)", "relay.jvp(f, (1.0,), (1.0,))", "f(1.0)",
    "f.compile(1.0)", "relay.api.function.os.system('touch HOSTILE')", "typing.sys.modules['os'].system('touch HOSTILE')",
    "'{0.__class__}'.format(Evil)", "Evil.__class__", "().__class__.__base__.__subclasses__()", "getattr(Evil, 'x')",
    "eval('canary()')", "exec('canary()')", "open('HOSTILE', 'w')", "compile('canary()', 'a', 'exec')", "(yield)",
    "typing.get_type_hints(Evil)", "typing.Optional['canary()']", "list['canary()']", "Generic[canary()]", "await canary",
    "functools.singledispatch(canary)()", "type('E', (Evil,), {})", "relay.from_source('def f(x): return x')",
    "np.load('HOSTILE')", "np.memmap('HOSTILE', mode='w+', shape=3)", "relay.load('HOSTILE')", "Evil if canary() else 1",
    "[*canary()]", "{**canary()}", "canary()[0]", "canary().x", "canary() + 1", "canary() or 1", "1 < canary()",
)  # fmt: skip

LARGE = (
    "10 ** 10 ** 10", "1 << 10 ** 10", "'a' * 10 ** 10", "[0] * 10 ** 9", "([0] * 1000) * 10 ** 6", "2 ** 4000 ** 3",
    "np.zeros(10 ** 12)", "np.zeros(3, 'S1000000000')", "np.zeros((10 ** 5,) * 5)", "np.arange(0, 1, 1e-12)", "9.0 ** 999",
    "math.factorial(10 ** 7)", "math.comb(10 ** 7, 10 ** 6)", "round(5, -10 ** 9)", "tuple(range(10 ** 12))", "0 ** -1",
    "sum(range(10 ** 11))", "np.eye(10 ** 7)", "np.linspace(0, 1, 10 ** 10)", "0x" + "f" * 9000, "1 // 0", "1 % 0",
    "np.ones((10 ** 4, 1)) + np.ones((1, 10 ** 4))", "np.ones((9 ** 4, 1)) @ np.ones((1, 9 ** 4))", "-1 << -1", "[][5]",
    "np.dtype('(9999999,9999)i4')", "np.power(2 ** 70, 10 ** 9)", "math.lcm(*[3 ** 2000, 5 ** 2000] * 9)", "'%99999999d' % 1",
    "max(range(10 ** 12))", "len(range(10 ** 30))", "list(zip(range(10 ** 12), range(10 ** 12)))", "np.full(10 ** 10, 1.0)",
    "((n + m + 1) ** 8) ** 8", "int('9' * 5000)", "float('1' * 10 ** 6)", "-" * 3000 + "1", "(" * 150 + ")" * 150,
    "+".join("1" * 3000), "[" * 90 + "]" * 90, "1" + ".real" * 900, "{2305843009213693951 * k: 1 for k in range(9)}",
)  # fmt: skip

AT_TOP = (
    "X = {0}", "X: {0} = {1}", "X: {0}", "X, Y = {0}, {1}", "X = [1, 2]\nX[{0}] = {1}", "X = [1]\nX.y = {0}", "del {0}",
    "X = 1\nX += {0}", "if {0}:\n    X = {1}\nelse:\n    X = 1", "while {0}:\n    X = 2", "for X in {0}:\n    pass",
    "with {0} as X:\n    pass", "try:\n    X = {0}\nexcept {1}:\n    X = 2\nfinally:\n    {0}", "assert {0}, {1}",
    "match {0}:\n    case 1 if {1}:\n        X = 1\n    case Evil(x=X):\n        pass", "raise {0}", "{0}", "{0} = {1}",
    "def X(a={0}, *, b: {1} = {0}) -> {1}:\n    return a", "@{0}\ndef X(a):\n    return a", "X = lambda a={0}: {1}",
    "async def X(a={0}):\n    return a", "@relay\n@{0}\ndef X(a):\n    return a", "@relay({0})\ndef X(a):\n    return a",
    "@relay(static_argnames={0}, opt_level={1})\ndef X(a):\n    return a", "@relay\ndef X(a={0}):\n    return a",
    "@relay\ndef X(a: {0}) -> {1}:\n    return a", "@relay\ndef X(a: 'list[{0}]'):\n    return a",
    "@relay\ndef X(a: Tensor[Float, ({0},)]):\n    return a", "@relay\ndef X(a):\n    b: {0} = a\n    return b",
    "@relay.composite\ndef X(a: Tensor, b={0}) -> Tensor:\n    'Text.'\n    return a",
    "@relay.register_op(relation={0})\ndef X(a: Tensor) -> Tensor:\n    'Text.'\n    return a",
    "relay.register_op(relay.get_env(), 'named', {0}, {1})", "@f.def_gradient(saving={0})\ndef X(a, b):\n    return a",
    "X = relay.relay(lambda a={0}: a)", "X = relay.grad(f, wrt={0})", "f = {0}", "relay = {0}", "Tensor = {0}",
    "X = Tensor[Float, ({0}, n)]", "X = typing.Union[{0}, {1}]", "X = relay.dims({0})", "from {2} import *", "import {2}",
    "from {2} import X", "import {2}.inner as X", "from . import {2} as X", "from relay import __main__",
    "import relay.__main__", "import numpy.f2py.__main__", "import antigravity", "import this",
    "from __future__ import annotations\nX: {0} = {1}",
)  # fmt: skip

IN_CLASSES = (
    "x: {0}", "x: {0} = {1}", "x: 'list[{0}]'", "x: '{0}'", "x = {0}", "{0}", "x, y = {0}", "x: list[{0}]", "x: Tensor[Float, ({0},)]",
    "def m(self, a={0}):\n    return a", "def m(self, a: {0}) -> {1}:\n    return a", "@{0}\ndef m(self):\n    return 1",
    "@property\ndef m(self):\n    return {0}", "@staticmethod\ndef m(a={0}):\n    return a", "def __post_init__(self, a={0}):\n    {1}",
    "@classmethod\ndef m(cls, a={0}):\n    return a", "def __init_subclass__(cls):\n    {0}", "__slots__ = {0}",
    "def __class_getitem__(cls, item):\n    {0}", "def __set_name__(self, a, b):\n    {0}", "def __new__(cls):\n    {0}",
    "def __len__(self):\n    {0}", "class B(metaclass={0}):\n    pass", "class B({0}):\n    x: {1}", "@{0}\nclass B:\n    x: int",
    "class B:\n    x: {0} = {1}\n    def m(self, a={0}):\n        return a", "@relay\ndef m(self, a={0}):\n    return a", "for i in {0}:\n    pass",
    "def __eq__(self, other={0}):\n    {1}", "def __getattr__(self, name):\n    {0}", "__class_getitem__ = {0}", "x: typing.ClassVar[{0}] = {1}",
    "if {0}:\n    x = 1", "lambda: {0}", "x = lambda a={0}: a", "def __hash__(self):\n    {0}", "__match_args__ = {0}", "import {2}",
)  # fmt: skip

HEADS = (
    "class X:", "class X({0}):", "class X(metaclass={0}):", "class X(Evil):", "class X(Evil, key={0}):", "@{0}\nclass X:", "class X(enum.Enum):",
    "@dataclasses.dataclass\nclass X:", "@dataclasses.dataclass(frozen={0})\nclass X:", "@dataclasses.dataclass(**{0})\nclass X:",
    "@relay.data\nclass X:", "@relay.data\n@{0}\nclass X:", "@relay.data\nclass X(metaclass={0}):", "@relay.data\nclass X(Evil):",
    "class X(NamedTuple):", "class X(Generic[T]):", "class X(Generic[{0}]):", "class X(typing.TypedDict):", "class X(typing.Protocol):",
    "@functools.total_ordering\nclass X:", "@dataclasses.dataclass\nclass X(Evil):", "class X(collections.namedtuple('P', {0})):",
)  # fmt: skip

EVIL = """
class Evil:
    attribute = property(lambda self: canary())
    def __init_subclass__(cls, **keywords):
        canary()
    def __class_getitem__(cls, item):
        canary()
    def __set_name__(self, owner, name):
        canary()
    def __getattr__(self, name):
        canary()
    def __call__(self):
        canary()
    def __eq__(self, other):
        canary()
    def __hash__(self):
        canary()
"""

USES = (
    "@relay\ndef used(a):\n    return a + X",
    "@relay\ndef used(a):\n    return X(a)",
    "@relay\ndef used(a: X):\n    return a.x",
    "@relay\ndef used(a: list[X], b: 'X'):\n    return a[{0}]",
    "@relay\ndef used(a):\n    match a:\n        case X(x=b):\n            return b\n    return {0}",
    "@relay\ndef used(a):\n    return f(a, {0}) + X.m(a)",
    "@relay\ndef used(a, b=X):\n    for c in X:\n        a = a + c\n    return a",
    "used = relay.grad(f)\nY = used(X)\nZ = X[0]\nW = X.x",
)

LATER = (
    "type X = {0}",
    "class X[A: {0}]:\n    x: A",
    "@relay\ndef X[A: {0}](a: A):\n    return a",
    "type X[A] = list[{0}]",
)
TOPS = AT_TOP + (LATER if sys.version_info >= (3, 12) else ())
