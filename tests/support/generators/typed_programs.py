"""Programs that are well typed by construction, for Hypothesis: every expression is made for a type that is wanted.

`programs()` draws the text of a module: data types' matches, recursion, local and polymorphic functions, closures,
references, loops of all kinds, lists that grow, records, symbolic sizes, data-dependent sizes, axes with names,
layouts, derivatives, effects. `CONTEXT` are the names that the texts need, `ARGUMENTS` what `program` is called with.

A type is a tuple: ("f", *dims) and ("i", *dims) tensors of floats and integers, ("tuple", T, ..), ("dict", T, T) with
keys "a" and "b", ("tree",), ("option",), ("ref", T), ("fn", T, T), ("list", T). Dims are texts.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st

import relay
from relay import Float, Tensor

Kind: TypeAlias = "tuple[Any, ...]"

N, M = 3, 2


@relay.data
class Tree:
    class Leaf:
        value: Tensor[Float, ()]

    class Node:
        left: Tree
        right: Tree


CONTEXT = {
    "relay": relay, "Tree": Tree, "Option": relay.Option, "Tensor": relay.Tensor, "Float": relay.Float,
    "Int": relay.Int, "Any": relay.Any, "Fn": relay.Fn, "Forall": relay.Forall, "NHWC": relay.NHWC,
    "s": relay.shape_var("s"), **dict(zip("nm", relay.dims("n m"), strict=True)),
}  # fmt: skip

ARGUMENTS = [
    np.linspace(-1, 1, N * M, dtype=np.float32).reshape(N, M), np.linspace(0.2, 1, N, dtype=np.float32),
    np.float32(0.7), np.int32(2), np.int32([2, 0, 1]),
    np.linspace(0, 1, N * 16 * 2, dtype=np.float32).reshape(N, 4, 4, 2),
    Tree.Node(Tree.Leaf(np.float32(0.5)), Tree.Leaf(np.float32(-0.25))),
]  # fmt: skip

HELPERS = """
def power(x: Tensor[Float, s], k: int) -> Tensor[Float, s]:
    return x if k <= 0 else x * power(x, k - 1)

def total(t: Tree):
    match t:
        case Tree.Leaf(v):
            return v
        case Tree.Node(left, right):
            return total(left) + 0.5 * total(right)

def grown(x, k):
    return Tree.Leaf(x) if k <= 0 else Tree.Node(Tree.Leaf(x), other(x * 0.5, k - 1))

def other(x, k):
    return grown(x + 0.1, k - 1)

def pairwise(x: Tensor[Float, (n,)]):
    if n <= 1:
        return x.sum()
    return pairwise(x[: n // 2]) + pairwise(x[n // 2 :])

def both(f: Forall[[s], Fn[[Tensor[Float, s]], Tensor[Float, s]]], x, y):
    return f(x), f(y)

def over_any(f: Fn[[Tensor[Float, (Any,)]], Tensor[Float, ()]], x: Tensor[Float, (n,)]):
    return f(x) + f(x[x > 0.3])

def nested(x):
    match x:
        case (first, *rest):
            return nested(first) + (nested(rest) if len(rest) > 0 else 0.0)
        case _:
            return x if x.ndim == 0 else nested(x.mean(axis=0))

def tally(r, x):
    r.value = r.value * 0.5 + x
    return r.value
"""

PARAMETERS: dict[str, tuple[str, Kind]] = {
    "a": ("Tensor[Float, dict(row=n, column=m)]", ("f", "n", "m")),
    "b": ("Tensor[Float, (n,)]", ("f", "n")),
    "c": ("Tensor[Float, ()]", ("f",)),
    "k": ("int", ("i",)),
    "p": ("Tensor[Int, (n,)]", ("i", "n")),
    "image": ("Tensor[Float, (n, 4, 4, 2), NHWC]", ("f", "n", "4", "4", "2")),
    "tree": ("Tree", ("tree",)),
}
SCALAR: Kind = ("f",)
TENSORS: list[Kind] = [
    SCALAR, ("f", "n"), ("f", "m"), ("f", "n", "m"), ("f", "m", "n"), ("f", "n", "2"), ("f", "2", "n"),
]  # fmt: skip
TYPES: list[Kind] = [
    *TENSORS, ("i",), ("i", "n"), ("tree",), ("option",), ("tuple", SCALAR, ("f", "n")),
    ("tuple", ("tuple", ("i",), ("f", "m")), ("tree",)),
    ("dict", ("f", "n"), SCALAR), ("dict", ("option",), ("i", "n")),
]  # fmt: skip
OTHERS = {"n": "m", "m": "2", "2": "n", "4": "m"}


class Writer:
    """Draws the statements of one function; `scope` has the variables in sight and their types."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.scope: dict[str, Kind] = {name: kind for name, (_, kind) in PARAMETERS.items()}
        self.count = 0
        self.budget = 12

    def one(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def name(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    # ---- expressions

    def expression(self, kind: Kind, depth: int = 2) -> str:
        known = [name for name, type_ in self.scope.items() if type_ == kind]
        if known and (depth <= 0 or self.one(True, False)):
            return str(self.one(*known))
        match kind:
            case ("f", *dims):
                return self.floats(tuple(dims), depth - 1)
            case ("i", *dims):
                return self.integers(tuple(dims), depth - 1)
            case ("tuple", *items):
                return f"({', '.join(self.expression(item, depth - 1) for item in items)})"
            case ("dict", first, second):
                return f"{{'a': {self.expression(first, depth - 1)}, 'b': {self.expression(second, depth - 1)}}}"
            case ("tree",):
                return str(self.one(*self.trees(depth - 1)))
            case ("option",):
                return str(self.one(f"Option.Some({self.expression(SCALAR, depth - 1)})", "Option.Nothing()"))
        raise AssertionError(kind)

    def trees(self, depth: int) -> list[str]:
        leaf = f"Tree.Leaf({self.expression(SCALAR, depth)})"
        if depth <= 0:
            return [leaf, "tree"]
        node = f"Tree.Node({self.expression(('tree',), depth)}, {leaf})"
        return [leaf, node, f"grown({self.expression(SCALAR, depth)}, k)"]

    def condition(self, depth: int) -> str:
        inner = self.expression(SCALAR, depth)
        plain = [f"{inner} > 0.2", "k > 1", "n > 2"]
        return str(self.one(*plain, f"not (0.0 < {inner} <= 1.0)", f"k == 2 and {inner} < 0.5"))

    def integers(self, dims: tuple[str, ...], depth: int) -> str:
        if not dims:
            plain = ["1", "k", "k % 2 + 1", "len(b) - 1", "int(c * 2.0)", "p[0]"]
            return str(self.one(*plain, "p.sum() // 2", "relay.argmax(b)"))
        return str(self.one("p", "p * 2", "relay.argsort(b)", "(b > 0.1).astype(Int)", "relay.arange(n)"))

    def floats(self, dims: tuple[str, ...], depth: int) -> str:
        kind: Kind = ("f", *dims)
        shape = f"({', '.join(dims)}{',' if len(dims) == 1 else ''})"
        if depth <= 0:
            return "0.5" if not dims else f"relay.full({shape}, 0.5)"
        of = self.expression
        choices = ["unary", "binary", "scalar", "conditional", "call", "sum", "first", "projected", "grad"]
        if dims:
            choices += ["where", "transposed" if len(dims) == 2 else "gathered", "cut", "added"]
        else:
            choices += ["total", "made", "option", "inner", "nested", "image"]
        if len(dims) == 2:
            choices += ["product"]
        other = OTHERS.get(dims[0], "m") if dims else "n"
        match self.one(*choices):
            case "unary":
                return f"relay.{self.one('sin', 'tanh', 'sigmoid')}({of(kind, depth)})"
            case "binary":
                return f"({of(kind, depth)} {self.one('+', '-', '*')} {of(kind, depth)})"
            case "scalar":
                if not dims:
                    return f"({of(kind, depth)} / 2)"
                return f"({of(kind, depth)} * {of(('f', *dims[self.one(0, 1) :]), depth)})"
            case "conditional":
                return f"({of(kind, depth)} if {self.condition(depth)} else {of(kind, depth)})"
            case "call":
                x = of(kind, depth)
                pair = of(("tuple", kind, SCALAR), depth)
                uses = [f"power({x}, k)", f"(lambda v: v * 0.5)({x})", f"both(lambda v: v + c, {x}, b)[0]"]
                return str(self.one(*uses, f"{pair}[0]"))
            case "sum":
                return f"{of(('f', other, *dims), depth)}.{self.one('sum', 'mean', 'max')}(axis=0)"
            case "first":
                return f"{of(('f', '2', *dims), depth)}[{self.one('0', '1', 'k % 2')}]"
            case "projected":
                return f"{of(('dict', kind, ('i',)), depth)}['a']"
            case "grad":
                body = f"(v * v).sum() * {of(SCALAR, 0)}" if dims else f"v * {of(SCALAR, 0)}"
                return f"relay.grad(lambda v: {body})({of(kind, depth)})"
            case "where":
                return f"relay.where({of(kind, depth)} > 0.0, {of(kind, depth)}, 0.5)"
            case "transposed":
                return f"{of(('f', *reversed(dims)), depth)}.T"
            case "gathered":
                return f"relay.take({of(('f', 'n'), depth)}, p)" if dims == ("n",) else f"relay.zeros({shape})"
            case "cut":
                return f"relay.concatenate(({of(kind, depth)}, {of(kind, 0)}))[: {dims[0]}]"
            case "added":
                return f"(relay.rename_axes({of(kind, depth)}, None) + relay.ones({shape}))"
            case "product":
                return f"({of(('f', dims[0], other), depth)} @ {of(('f', other, dims[1]), depth)})"
            case "total":
                return f"total({of(('tree',), depth)})"
            case "made":
                return str(self.one("b[b > 0.4].sum()", "over_any(lambda v: (v * c).sum(), b)", "pairwise(b)"))
            case "option":
                return f"{of(('option',), depth)}.get({of(SCALAR, depth)})"
            case "inner":
                return f"({of(('f', 'n'), depth)} @ {of(('f', 'n'), depth)})"
            case "nested":
                return f"nested(({of(('f', 'n'), depth)}, {of(SCALAR, depth)}, ({of(SCALAR, 0)},)))"
            case "image":
                return str(self.one("image.mean(axis='HW').sum()", "a.sum(axis='row').max()"))
        raise AssertionError(kind)

    # ---- statements

    def block(self, depth: int) -> list[str]:
        """Some statements. What they bind is out of sight behind them, if they are inside of another one."""
        before = dict(self.scope)
        lines = [line for _ in range(self.one(1, 2)) for line in self.statement(depth)]
        self.scope = before
        return ["    " + line for line in lines]

    def assigned(self) -> tuple[str, Kind] | None:
        """A variable that may get another value of its type."""
        names = [name for name, kind in self.scope.items() if name.startswith("v") and kind in TYPES]  # no counters
        return (name := self.one(*names), self.scope[name]) if names else None

    def statement(self, depth: int) -> list[str]:
        self.budget -= 1
        kinds = ["bind", "bind", "again", "reference", "print", "local", "growing", "any"]
        if depth > 0 and self.budget > 0:
            kinds += ["if", "for", "while", "rows", "match", "structure", "unrolled"]
        chosen = self.one(*kinds)
        target = self.assigned()
        if target is None and chosen in ("again", "if", "for", "while", "rows", "match", "unrolled"):
            chosen = "bind"
        match chosen:
            case "bind":
                return self.bind(self.one(*TYPES))
            case "again":
                assert target is not None
                return [f"{target[0]} = {self.expression(target[1])}"]
            case "reference":
                return self.reference()
            case "print":
                text = self.expression(SCALAR)
                return [str(self.one(f"print('at', {text})", f"assert {text} < 1000.0, 'too large'"))]
            case "local":
                return self.local()
            case "growing":
                return self.growing()
            case "any":
                return self.any_size()
            case "structure":
                return self.structure()
            case _:
                assert target is not None
                return self.nested(chosen, depth - 1, target)

    def bind(self, kind: Kind) -> list[str]:
        text, name = self.expression(kind), self.name()
        self.scope[name] = kind
        return [f"{name} = {text}"]

    def reference(self) -> list[str]:
        cell, name, kind = self.name("r"), self.name(), self.one(*TENSORS)
        lines = [f"{cell} = relay.ref({self.expression(kind)})", f"{cell}.value = {self.expression(kind)}"]
        lines += [self.one(f"{name} = {cell}.value", f"{name} = tally({cell}, {self.expression(kind)})")]
        self.scope[name] = kind
        return lines

    def local(self) -> list[str]:
        """A polymorphic function of two uses, and one that a branch chooses."""
        function, one, two = self.name("f"), self.name(), self.name()
        first, second = self.one(*TENSORS), self.one(*TENSORS)
        inner = self.expression(SCALAR, 1)
        lines = [f"def {function}(u):", f"    return u * {inner}", f"{one} = {function}({self.expression(first)})"]
        if self.one(True, False):
            lines += [f"{two} = {function}({self.expression(second)})"]
        else:
            chosen = f"(lambda u: u + {inner}) if {self.condition(1)} else (lambda u: u * u)"
            lines += [f"{function} = {chosen}", f"{two} = {function}({self.expression(second)})"]
        self.scope |= {one: first, two: second}
        return lines

    def growing(self) -> list[str]:
        xs, name, kind = self.name("xs"), self.name(), self.one(*TENSORS)
        item = self.expression(kind)
        self.scope[name] = kind
        if self.one(True, False):
            return [f"{xs} = [{item} for _ in range(k)]", f"{name} = {xs}[0] + relay.stack({xs}).sum(axis=0)"]
        return [f"{xs} = [{item}]", "for j in range(k):", f"    {xs}.append({xs}[j] * 0.5)", f"{name} = {xs}.pop()"]

    def any_size(self) -> list[str]:
        name, out, start = self.name("z"), self.name(), self.expression(("f", "n"))
        self.scope[out] = SCALAR
        return [
            f"{name}: Tensor[Float, (Any,)] = {start}", "for j in range(k):",
            f"    {name} = {name}[{name} > {self.one('0.1', 'c')}]", f"{out} = {name}.sum() + float(len({name}))",
        ]  # fmt: skip

    def structure(self) -> list[str]:
        one, two, name = self.name(), self.name(), self.name("t")
        kind = ("tuple", SCALAR, ("f", "n"))
        lines = [f"{name} = {self.expression(kind)}", f"{one}, {two} = {name}"]
        self.scope |= {one: SCALAR, two: ("f", "n")}
        return lines

    def nested(self, chosen: str, depth: int, target: tuple[str, Kind]) -> list[str]:
        name, kind = target
        again = f"    {name} = {self.expression(kind, 1)}"
        if chosen == "if":
            lines = [f"if {self.condition(1)}:", *self.block(depth), again]
            return [*lines, "else:", *self.block(depth)] if self.one(True, False) else lines
        if chosen == "match":
            q = self.name("q")
            lines = [f"match {self.expression(('tree',))}:", f"    case Tree.Leaf({q}):"]
            self.scope[q] = SCALAR
            inside = [*self.block(depth), f"    {name} = {self.expression(kind, 1)}"]
            self.scope[q] = ("tree",)
            lines += [*("    " + line for line in inside), f"    case Tree.Node(_, {q}):"]
            inside = [*self.block(depth), f"    {name} = {self.expression(kind, 1)}"]
            del self.scope[q]
            return [*lines, *("    " + line for line in inside)]
        counter = self.name("i")
        before = dict(self.scope)
        match chosen:
            case "for":
                head, element = f"for {counter} in range({self.one('k', '2', '1, k')}):", ("i",)
            case "rows":
                head, element = f"for {counter} in {self.expression(('f', 'n', 'm'))}:", ("f", "m")
            case "unrolled":
                head, element = f"for {counter} in ({self.expression(SCALAR)}, 1.5):", SCALAR
            case _:
                self.scope[counter] = ("i",)
                lines = [f"{counter} = 0", f"while {counter} < k:", f"    {counter} += 1", *self.block(depth), again]
                self.scope = before
                return lines
        self.scope[counter] = element
        leave = self.one("break", "continue", None)
        lines = [head, *self.block(depth), f"    {name} = {self.expression(kind, 1)}"]
        self.scope = before
        return [*lines, f"    if {self.condition(0)}:", f"        {leave}", again] if leave else lines


@st.composite
def programs(draw: Any) -> str:
    """The text of a module with a function `program`."""
    writer = Writer(draw)
    lines = [line for _ in range(writer.one(1, 2, 3, 4)) for line in writer.statement(2)]
    if writer.one(True, False, False):
        lines += [f"if {writer.condition(1)}:", "    print('left')"]
    kinds = [writer.one(*TYPES) for _ in range(writer.one(1, 2))]
    result = ", ".join(writer.expression(kind) for kind in kinds)
    head = ", ".join(f"{name}: {text}" for name, (text, _) in PARAMETERS.items())
    return "\n".join([HELPERS, f"def program({head}):", *("    " + line for line in lines), f"    return {result}", ""])
