"""Random sequences of kernels, as text: two to six calls of operators, chosen from all, without control flow.

`random_kernels(seed)` is the same program in every process. Its parameters have axes of a few unknown sizes, of 0 to
70 elements, and all dtypes; what operators give is an operand of the next ones: reductions, indices, views,
casts and broadcasting. Every step has been evaluated by the interpreter.

Where rounding may differ, nothing is chosen by it: what compares, sorts, rounds or gives places takes values that are
the same to the last bit in each mode (`Value.exact`). So integers and bools must agree, floats within the roundings.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from operator_samples import OF, Sample

import relay
from relay import RelayFunction
from relay.ir.types import BASE_TYPES
from relay.operator.definition import REQUIRED

Array = np.ndarray[Any, np.dtype[Any]]

FLOATS = ("float64", "float32", "float16", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
LIMIT = {"float64": 1e3, "float32": 1e3, "float16": 60.0, "bfloat16": 60.0}
"""The largest numbers that steps give: what follows should neither overflow nor cancel all digits."""

MOST = 5000
"""The most elements of a value."""


@attrs.frozen(eq=False)
class Value:
    """What a name of the program is at the sizes with which it is written."""

    name: str
    array: Array
    exact: bool

    @property
    def dtype(self) -> str:
        return self.array.dtype.name

    @property
    def rank(self) -> int:
        return self.array.ndim

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS


@attrs.frozen(eq=False)
class Parameter:
    """An argument: the names of its axes' sizes, or numbers. `below`: for indices, the bound."""

    name: str
    dims: tuple[str | int, ...]
    dtype: str
    below: int | None = None
    array: Array | None = None  # if it is the same at all sizes

    def value(self, sizes: Mapping[str, int], rng: np.random.Generator) -> Array:
        """An argument at some sizes."""
        if self.array is not None:
            return self.array
        shape = tuple(sizes[d] if isinstance(d, str) else d for d in self.dims)
        if self.below is not None:
            made: Any = rng.integers(0, self.below, shape)
        elif self.dtype == "bool":
            made = rng.integers(0, 2, shape)
        elif self.dtype in INTEGERS:
            made = rng.integers(0 if self.dtype[0] == "u" else -4, 8, shape)
        else:
            made = rng.uniform(-2, 2, shape)
            if rng.integers(3) == 0:
                made = np.round(made)  # with equal ones
        return np.asarray(made).astype(BASE_TYPES[self.dtype].dtype)


@attrs.frozen(eq=False)
class RandomKernels:
    """A program, its parameters, and the sizes that it runs at."""

    text: str
    parameters: tuple[Parameter, ...]
    sizes: tuple[Mapping[str, int], ...]
    dynamic: bool
    level: int
    given: Mapping[str, Any]  # constants by name

    @property
    def is_whole(self) -> bool:
        """Whether all that it computes are results."""
        *_, last = self.text.splitlines()
        made = [line.split(" = ")[0] for line in self.text.splitlines()[1:-1]]
        return all(name in _words(last) for names in made for name in names.split(", "))

    def function(self) -> RelayFunction:
        made = relay.from_source(self.text, {"relay": relay, **self.given})
        assert isinstance(made, RelayFunction)
        options = attrs.evolve(made._options, dynamic=self.dynamic, opt_level=self.level)
        return RelayFunction(made.__relay__, options)

    def arguments(self, number: int) -> list[Array]:
        """Arguments of the sizes of this number, some of them views of larger arrays or with another order of axes."""
        rng = np.random.default_rng(number)
        return [_seen(parameter.value(self.sizes[number], rng), rng) for parameter in self.parameters]


def _seen(array: Array, rng: np.random.Generator) -> Array:
    """The same elements, perhaps as a view."""
    kind = rng.integers(8)
    if array.ndim == 0 or kind > 2:
        return array
    if kind == 0:
        return array[..., ::-1].copy()[..., ::-1]
    return np.repeat(array, 2, axis=-1)[..., ::2] if kind == 1 else np.asarray(array, order="F")


def random_kernels(seed: int) -> RandomKernels:
    """The program of a seed."""
    return _Writer(seed).program()


# ---- what steps are made of: x, y, z are values, the rest is filled in

SAME = (
    "relay.negative({x})",
    "relay.abs({x})",
    "relay.relu({x})",
    "relay.stop_gradient({x})",
    "relay.copy({x})",
    "-{x}",
)
SMOOTH = (
    *("relay.tanh({x})", "relay.sigmoid({x})", "relay.sin({x})", "relay.cos({x})", "relay.atan({x})", "relay.erf({x})"),
    *("relay.exp(relay.clip({x}, -3, 3))", "relay.exp2(relay.clip({x}, -3, 3))", "relay.expm1(relay.clip({x}, -3, 3))"),
    *("relay.log(relay.abs({x}) + 1)", "relay.log2(relay.abs({x}) + 1)", "relay.log10(relay.abs({x}) + 2)"),
    *("relay.log1p(relay.abs({x}))", "relay.sqrt(relay.abs({x}) + 1)", "relay.rsqrt(relay.abs({x}) + 1)"),
    *("relay.reciprocal(relay.abs({x}) + 1)", "relay.softplus({x})", "relay.silu({x})", "relay.mish({x})"),
    *("relay.gelu({x})", "relay.leaky_relu({x})", "relay.elu({x})", "relay.selu({x})", "relay.hardswish({x})"),
    *("relay.asinh({x})", "relay.acosh(relay.abs({x}) + 1.5)", "relay.atanh(relay.tanh({x}) * 0.5)", "relay.ndtr({x})"),
    *("relay.sinh(relay.clip({x}, -2, 2))", "relay.cosh(relay.clip({x}, -2, 2))", "relay.erfc({x})", "{x} * {x}"),
    *("relay.asin(relay.tanh({x}) * 0.5)", "relay.acos(relay.tanh({x}) * 0.5)", "relay.tan(relay.tanh({x}))"),
    *("{x} * 0.5", "{x} + 2", "1 - {x}", "{x} / 3", "(relay.abs({x}) + 1) ** 1.5", "{x} ** 2", "relay.square({x})"),
)
NUMBERS = ("{x} * 3", "{x} + 2", "5 - {x}", "{x} // 3", "{x} % 5", "relay.square({x})", "{x} ** 2")
CORNERS = ("relay.floor({x})", "relay.ceil({x})", "relay.round({x})", "relay.trunc({x})", "relay.sign({x})")
TRUTHS = ("{x} > 0", "{x} <= 1", "{x} == 0", "{x} != 1")
ENDS = ("relay.maximum({x}, {y})", "relay.minimum({x}, {y})", "relay.where({x} > {y}, {x}, {y})")
PAIRS = (
    *("{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} / (relay.abs({y}) + 1)", "relay.atan2({x}, relay.abs({y}) + 1)"),
    *("relay.logaddexp({x}, {y})", "(relay.abs({x}) + 1) ** relay.tanh({y})", "relay.fma({x}, {y}, {x})"),
    *("relay.add({x}, {y})", "relay.multiply({x}, {y})", "relay.subtract({x}, {y})"),
)
WHOLE_PAIRS = (
    *("{x} + {y}", "{x} - {y}", "{x} * {y}", "{x} // relay.maximum(relay.abs({y}), 1)", "{x} & {y}", "{x} | {y}"),
    *("{x} % relay.maximum(relay.abs({y}), 1)", "{x} ^ {y}", "{x} << ({y} & 3)", "{x} >> ({y} & 3)"),
)
BOOL_PAIRS = ("{x} & {y}", "{x} | {y}", "relay.logical_xor({x}, {y})", "relay.logical_and({x}, {y})")
COMPARED = ("{x} < {y}", "{x} >= {y}", "{x} == {y}", "relay.not_equal({x}, {y})")
PRODUCTS = (
    *("{x} @ {y}", "relay.dot({x}, {y})", "relay.outer({x}, {y})", "relay.dense({x}, {y})", "{x} @ {y}.T"),
    *("relay.einsum('ij,kj->ik', {x}, {y})", "relay.einsum('ij,ij->j', {x}, {y})", "relay.tensordot({x}, {y}, 1)"),
    *(
        "relay.einsum('i,j->ij', {x}, {y})",
        "relay.batch_matmul({x}, {y})",
        "{x}.T @ {y}",
        "relay.einsum('ij,ij->', {x}, {y})",
    ),
)
SUMS = ("sum", "mean", "prod", "max", "min", "var", "std", "logsumexp", "norm", "any", "all")
PLACES = ("argmax", "argmin")
SCANS = ("cumsum({x}, axis={axis})", "cumsum({x}, axis={axis}, reverse=True)", "cumprod({x}, axis={axis})")
NORMAL = ("softmax({x}, axis={axis})", "log_softmax({x}, axis={axis})")
ORDERS = (
    "sort({x}, axis={axis})", "argsort({x}, axis={axis})", "sort({x}, axis={axis}, descending=True)",
    "topk_values({x}, 1, axis={axis})", "topk_indices({x}, 1, axis={axis})",
)  # fmt: skip
VIEWS = (
    *("{x}[1:]", "{x}[:-1]", "{x}[::2]", "{x}[::-1]", "{x}[0]", "{x}[-1]", "{x}[..., None]", "{x}[None]", "{x}[:, 0]"),
    *("{x}[..., ::-1]", "{x}[..., 1::3]", "{x}[:, None]", "{x}[..., -1]", "{x}[1:-1]", "{x}[:3]", "{x}[:, 1:, ...]"),
    *("relay.reshape({x}, (-1,))", "relay.flatten({x})", "relay.flip({x}, axis={axis})", "relay.flip({x})", "{x}.T"),
    *(
        "relay.transpose({x})",
        "relay.swapaxes({x}, 0, -1)",
        "relay.moveaxis({x}, 0, -1)",
        "relay.expand_dims({x}, {axis})",
    ),
    *("relay.concatenate(({x}, {x}), axis={axis})", "relay.stack(({x}, {x}), axis={axis})", "relay.tile({x}, 2)"),
    *("relay.concatenate(({x}[1:], {x}[:1]))", "relay.repeat({x}, 2, axis={axis})", "relay.roll({x}, 1, axis={axis})"),
    *(
        "relay.roll({x}, -2, axis={axis})",
        "relay.diagonal({x})",
        "relay.tril({x})",
        "relay.triu({x}, 1)",
        "relay.diag({x})",
    ),
    *("relay.pad({x}, ((1, 2),) * {rank})", "relay.squeeze({x}[None])", "relay.broadcast_to({x}, (2, *{x}.shape))"),
    *("relay.reshape({x}, (1, *{x}.shape))", "relay.reshape({x}, ({x}.shape[0], -1))", "relay.split({x}, (2,))[0]"),
    *("relay.where({x} == {x}, {x}, {x} * 0)", "{x}[..., :2] * 1", "relay.zeros_like({x})", "relay.ones_like({x})"),
)
SHAPED = (
    *(
        "relay.ones({x}.shape)",
        "relay.arange(0, {x}.shape[0])",
        "relay.zeros(({x}.shape[0], 3))",
        "relay.eye({x}.shape[0])",
    ),
    *(
        "relay.linspace(0.0, 1.0, 7)",
        "relay.full({x}.shape, 0.25)",
        "relay.tri({x}.shape[0])",
        "relay.arange(5, 0, -1)",
    ),
    *("relay.eye(3) @ relay.ones((3,))", "relay.ones((3, 3)) @ relay.ones((3, 3))", "{x}.shape[0] + 1", "{x}.size * 2"),
)
INDEXED = (
    *("relay.take({x}, {i}, axis={axis}, mode='clip')", "relay.take({x}, {i}, axis={axis}, mode='wrap')"),
    *("{x}[{i} % {x}.shape[0]]", "relay.one_hot({i}, 7)", "relay.embedding({i} % {x}.shape[0], {x})"),
    *("relay.take_along_axis({x}, relay.argsort({x}, axis={axis}), axis={axis})", "{x}[relay.argmax({x}, axis=0)]"),
    *("relay.scatter_add({x}, {i} % {x}.shape[0], {x}[{i} % {x}.shape[0]])", "relay.take({x}, {i} % 3, mode='clip')"),
    *(
        "relay.searchsorted(relay.sort({x}), {x})",
        "relay.index_update({x}, {x}.shape[0] - 1, {x}[0])",
        "{x}[relay.argmin({x})]",
    ),
    *("relay.where({i} > 2, {i}, 0)", "relay.sum({x}[{x} > 0])", "relay.index_add({x}, 0, {x}[-1])"),
)
LOSSES = (
    *(
        "relay.mse_loss({x}, {y})",
        "relay.l1_loss({x}, {y})",
        "relay.huber_loss({x}, {y})",
        "relay.layer_norm({x}, {x}[0], {y}[0])",
    ),
    *("relay.rms_norm({x}, {y}[0])", "relay.kl_div(relay.log_softmax({x}), relay.softmax({y}))", "relay.trace({x})"),
    *(
        "relay.binary_cross_entropy_with_logits({x}, relay.sigmoid({y}))",
        "relay.cross_entropy({x}, relay.argmax({x}, axis=-1))",
    ),
)
SKIPPED = {"undef", "optimization_barrier"}  # whose results are anything, or no call of the language


def _sampled() -> dict[str, list[Sample]]:
    """Samples of the operators, without those at the ends of a dtype's range."""
    found = {name: [s for s in of if not s.extreme and _is_calm(s)] for name, of in OF.items() if name not in SKIPPED}
    return {name: of for name, of in found.items() if of}


def _is_calm(sample: Sample) -> bool:
    return all(np.isfinite(o.astype(np.float64)).all() and o.size < MOST for o in sample.operands)


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.parameters: list[Parameter] = []
        self.values: list[Value] = []
        self.lines: list[str] = []
        self.given: dict[str, Any] = {}
        base = self.random.sample((11, 13, 17, 19, 23, 8, 16, 32), 3)
        self.sizes = dict(zip("nmk", base, strict=True))
        dtype = self.random.choice((*FLOATS, "float64", "float32", "float64", "float32", *INTEGERS, "bool"))
        self.dtypes = (dtype, dtype, dtype, self.random.choice((*FLOATS, *INTEGERS, "bool")))

    def program(self) -> RandomKernels:
        for _ in range(self.random.randint(1, 3)):
            self.parameter(self.random.choice(self.dtypes))
        wanted, steps = self.random.randint(2, 6), 0
        for _ in range(60):
            if steps == wanted:
                break
            steps += self.step()
        made = [v for v in self.values if v.name[0] == "r"] or self.values
        chosen = [v for v in made if self.random.random() < 0.7]
        if made[-1] not in chosen:
            chosen.append(made[-1])
        names = ", ".join(v.name for v in chosen)
        header = f"def f({', '.join(p.name for p in self.parameters)}):"
        text = "\n".join([header, *(f"    {line}" for line in self.lines), f"    return {names}\n"])
        level = self.random.choice((2, 2, 2, 2, 0, 1, 3))
        dynamic = self.random.random() < 0.6
        return RandomKernels(text, tuple(self.parameters), self.all_sizes(), dynamic, level, self.given)

    def all_sizes(self) -> tuple[Mapping[str, int], ...]:
        """The sizes with which it is written first, then others, the last of which may be 0."""
        rank = max([sum(isinstance(d, str) for d in p.dims) for p in self.parameters], default=0)
        most = {0: 70, 1: 70, 2: 70, 3: 20}.get(rank, 9)
        found = [self.sizes]
        for _ in range(5):
            found.append({name: self.random.randint(1, most) for name in self.sizes})
        if self.random.random() < 0.2:
            found.append({name: self.random.choice((0, 1, 5)) for name in self.sizes})
        return tuple(found)

    # ---- values

    def parameter(self, dtype: str, dims: Sequence[str | int] | None = None, below: int | None = None) -> Value:
        if dims is None:
            rank = self.random.choice((0, 1, 1, 1, 2, 2, 2, 3, 4))
            few = rank > 2
            dims = [self.random.choice((*"nmk", 1, 2, 3) if not few else ("n", 1, 2, 3, 4)) for _ in range(rank)]
        made = Parameter(f"x{len(self.parameters)}", tuple(dims), dtype, below)
        self.parameters.append(made)
        value = Value(made.name, made.value(self.sizes, self.rng), exact=True)
        self.values.append(value)
        return value

    def pick(self, fits: Callable[[Value], bool] = lambda v: True) -> Value | None:
        """A value, rather a late one."""
        found = [v for v in self.values if fits(v)]
        if not found:
            return None
        return found[-1] if self.random.random() < 0.5 else self.random.choice(found)

    def beside(self, x: Value) -> Value:
        """A value of the same dtype that may be broadcast with another one; a new parameter if there is none."""

        def fits(v: Value) -> bool:
            pairs = zip(reversed(v.array.shape), reversed(x.array.shape), strict=False)
            return v.dtype == x.dtype and all(a == b or 1 in (a, b) for a, b in pairs)

        found = self.pick(lambda v: v is not x and fits(v))
        if found is not None and self.random.random() < 0.7:
            return found
        names: dict[int, str | int] = {size: name for name, size in self.sizes.items()}
        shape = x.array.shape[self.random.choice((0, 0, 0, 1)) :]
        if any(d not in names and d > 6 for d in shape) or self.random.random() < 0.1:
            return x
        dims = [1 if self.random.random() < 0.1 else names.get(d, d) for d in shape]
        return self.parameter(x.dtype, dims)

    # ---- steps

    def step(self) -> bool:
        kinds: tuple[Callable[[], bool], ...] = (
            *(self.unary, self.unary, self.binary, self.binary, self.binary, self.reduction, self.reduction, self.view),
            *(self.view, self.view, self.cast, self.places, self.order, self.scan, self.product, self.product),
            *(self.indexed, self.indexed, self.shaped, self.loss, self.sampled, self.sampled, self.chosen),
        )
        return self.random.choice(kinds)()

    def unary(self) -> bool:
        x = self.pick()
        if x is None:
            return False
        if x.dtype == "bool":
            return self.add("~{x}", x, exact=True)
        if not x.is_float:
            return self.add(self.random.choice(SAME[:5] + NUMBERS + TRUTHS), x, exact=True)
        if x.exact and self.random.random() < 0.3:
            return self.add(self.random.choice(SAME + CORNERS + TRUTHS), x, exact=True)
        return self.add(self.random.choice(SMOOTH), x)

    def binary(self) -> bool:
        x = self.pick()
        if x is None:
            return False
        y = self.beside(x)
        if not x.is_float:
            forms = BOOL_PAIRS if x.dtype == "bool" else WHOLE_PAIRS + ENDS + COMPARED
            return self.add(self.random.choice(forms), x, y, exact=True)
        exact = x.exact and y.exact
        if exact and self.random.random() < 0.4:
            return self.add(self.random.choice(ENDS + COMPARED), x, y, exact=True)
        return self.add(self.random.choice(PAIRS + ENDS[:2]), x, y)

    def chosen(self) -> bool:
        c = self.pick(lambda v: v.dtype == "bool")
        x = self.pick()
        if c is None or x is None:
            return False
        y = self.beside(x)
        return self.add("relay.where({c}, {x}, {y})", x, y, exact=x.exact and y.exact, c=c)

    def axis(self, x: Value) -> int:
        return self.random.randrange(-x.rank, x.rank) if x.rank else 0

    def axes(self, x: Value) -> str:
        """The axes of a reduction, and whether they are kept."""
        kind = self.random.choice(("all", "one", "one", "several"))
        axis = f", axis={self.axis(x)}" if kind == "one" and x.rank else ""
        if kind == "several" and x.rank > 1:
            axis = f", axis={tuple(sorted(self.random.sample(range(x.rank), 2)))}"
        return axis + self.random.choice(("", "", ", keepdims=True"))

    def reduction(self) -> bool:
        x = self.pick()
        if x is None:
            return False
        name = self.random.choice(SUMS)
        if x.is_float and name == "prod" and x.dtype in ("float16", "bfloat16"):
            name = "max"
        exact = not x.is_float or (x.exact and name in ("max", "min"))
        # products in another order may overflow where these do not, unless the factors are about 1
        of = "1 + relay.clip({x}, -2, 2) / 1024" if x.is_float and name == "prod" else "{x}"
        return self.add(f"relay.{name}({of}{self.axes(x)})", x, exact=exact)

    def places(self) -> bool:
        x = self.pick(lambda v: v.exact and v.dtype != "bool")
        if x is None:
            return False
        axis = f", axis={self.axis(x)}" if x.rank and self.random.random() < 0.5 else ""
        keep = self.random.choice(("", ", keepdims=True"))
        return self.add(f"relay.{self.random.choice(PLACES)}({{x}}{axis}{keep})", x, exact=True)

    def order(self) -> bool:
        x = self.pick(lambda v: v.exact and v.rank > 0)
        return x is not None and self.add(f"relay.{self.random.choice(ORDERS)}", x, exact=True)

    def scan(self) -> bool:
        x = self.pick(lambda v: v.rank > 0)
        if x is None:
            return False
        forms = SCANS + NORMAL if x.is_float else SCANS
        return self.add(f"relay.{self.random.choice(forms)}", x, exact=not x.is_float)

    def view(self) -> bool:
        x = self.pick()
        return x is not None and self.add(self.random.choice(VIEWS), x, exact=x.exact)

    def shaped(self) -> bool:
        x = self.pick(lambda v: v.rank > 0)
        return x is not None and self.add(self.random.choice(SHAPED), x, exact=not x.is_float)

    def cast(self) -> bool:
        x = self.pick()
        if x is None:
            return False
        targets = [d for d in BASE_TYPES if d != x.dtype and (x.exact or d in FLOATS)]
        target = self.random.choice(targets)
        form = self.random.choice(("relay.cast({x}, relay.{t})", "{x}.astype(relay.{t})"))
        if x.is_float and target[0] == "u":
            form = form.replace("{x}", "relay.abs({x})")
        name = "BFloat16" if target == "bfloat16" else "UInt" + target[4:] if target[0] == "u" else target.capitalize()
        return self.add(form.replace("{t}", name), x, exact=x.exact)

    def product(self) -> bool:
        x = self.pick(lambda v: v.rank > 0)
        if x is None:
            return False
        y = self.pick(lambda v: v.rank > 0 and v.dtype == x.dtype) if self.random.random() < 0.3 else None
        form = self.random.choice(PRODUCTS)
        if y is None:
            names: dict[int, str | int] = {size: name for name, size in self.sizes.items()}
            if x.array.shape[-1] not in names and x.array.shape[-1] > 6:
                return False
            inner, free = names.get(x.array.shape[-1], x.array.shape[-1]), self.random.choice(("n", "m", "k", 1, 3, 9))
            forms: tuple[tuple[str, tuple[str | int, ...]], ...] = (
                *(("{x} @ {y}", (inner, free)), ("{x} @ {y}", (inner,)), ("relay.dot({x}, {y})", (inner,))),
                *(("relay.dense({x}, {y})", (free, inner)), ("{x} @ {y}.T", (free, inner))),
                ("relay.einsum('...j,kj->...k', {x}, {y})", (free, inner)),
            )
            form, dims = self.random.choice(forms)
            y = self.parameter(x.dtype, dims)
        return self.add(form, x, y, exact=not x.is_float)

    def indexed(self) -> bool:
        form = self.random.choice(INDEXED)
        i = self.pick(lambda v: v.dtype in ("int32", "int64") and v.array.size < 200 and v.exact)
        if i is None or self.random.random() < 0.3:
            dims = self.random.choice(((), ("n",), ("k",), (3,), (2, 2)))
            i = self.parameter(self.random.choice(("int32", "int64")), dims, self.random.choice((1, 3, 7)))
        x = self.pick(lambda v: v.exact and v.rank > 0 and v is not i)
        return x is not None and self.add(
            form, x, exact=not x.is_float or ("add" not in form and "sum" not in form), i=i
        )

    def loss(self) -> bool:
        x = self.pick(lambda v: v.is_float and v.rank > 0 and v.exact)
        if x is None:
            return False
        return self.add(self.random.choice(LOSSES), x, self.beside(x))

    def sampled(self) -> bool:
        """A call of any operator, as its samples have it; an operand may be an earlier value of its type."""
        samples = _samples()
        sample = self.random.choice(samples[self.random.choice(sorted(samples))])
        operator, names = sample.operator, []
        exact = not any(o.dtype.name in FLOATS for o in sample.operands)
        free = not operator.requirements and all(o.dtype.name in FLOATS for o in sample.operands)
        for operand in sample.operands:
            known = self.pick(lambda v, o=operand: v.dtype == o.dtype.name and v.array.shape == o.shape)  # type: ignore[misc]
            if known is not None and free and known.exact:
                names.append(known.name)
                continue
            made = Parameter(f"x{len(self.parameters)}", (), operand.dtype.name, array=operand)
            self.parameters.append(made)
            names.append(made.name)
        given = {f"given{len(self.given) + n}": value for n, value in enumerate(sample.attributes.values())}
        self.given |= given
        self.given[f"operator{len(self.given)}"] = operator
        name = f"operator{len(self.given) - 1}"
        keywords = [f"{a}={g}" for a, g in zip(sample.attributes, given, strict=True)]
        if operator.spread:
            required = [a for a, default in operator.attributes.items() if default is REQUIRED]
            pairs = dict(zip(sample.attributes, given, strict=True))
            keywords = [f"{a}={g}" for a, g in pairs.items() if a not in required]
            parts = [*(pairs[a] for a in required), *names, *keywords]
        else:
            operands = [f"({', '.join(names)},)"] if operator.variadic else names
            parts = [*operands, *keywords]
        return self.add(f"{name}({', '.join(parts)})", exact=exact)

    def add(
        self, form: str, x: Value | None = None, y: Value | None = None, exact: bool = False, **more: Value
    ) -> bool:
        """One more line, if the interpreter runs it and its numbers are moderate; whether there is one."""
        names = {name: value.name for name, value in more.items()}
        if x is not None:
            names |= {"x": x.name, "y": (y or x).name, "axis": str(self.axis(x)), "rank": str(x.rank)}
        line = form
        for name, value in names.items():
            line = line.replace("{" + name + "}", value)
        result = self.evaluated(line)
        several = result if isinstance(result, tuple) else (result,)
        if result is None or not all(map(_moderate, several)):
            return False
        made = [f"r{len(self.lines)}" + (f"_{n}" if len(several) > 1 else "") for n in range(len(several))]
        self.lines.append(f"{', '.join(made)} = {line}")
        operands = [v for v in (x, y, *more.values()) if v is not None]
        exact = exact and all(v.exact for v in operands)
        self.values += [
            Value(name, array, exact or (array.dtype.name not in FLOATS and all(v.exact for v in operands)))
            for name, array in zip(made, several, strict=True)
        ]
        return True

    def evaluated(self, line: str) -> Any:
        """What the interpreter makes of an expression: an array, or a tuple of them; None if it has no value."""
        known = {v.name: v.array for v in self.values} | {
            p.name: p.array for p in self.parameters if p.array is not None
        }
        used = [name for name in known if name in _words(line)]
        text = f"def f({', '.join(used)}):\n    return {line}\n"
        try:
            made = relay.from_source(text, {"relay": relay, **self.given})
            assert isinstance(made, RelayFunction)
            with np.errstate(all="ignore"):
                result = made.interpret(*(known[name] for name in used))
        except relay.RelayError:
            return None
        if isinstance(result, tuple):
            return tuple(map(np.asarray, result)) if all(hasattr(r, "dtype") for r in result) else None
        return np.asarray(result)


@functools.cache
def _samples() -> dict[str, list[Sample]]:
    return _sampled()


def _words(line: str) -> set[str]:
    return set("".join(c if c.isalnum() or c == "_" else " " for c in line).split())


def _moderate(array: Array) -> bool:
    """Whether what follows can compute with it and neither overflow nor cancel all its digits."""
    if array.size > MOST or array.dtype.name not in BASE_TYPES or array.ndim > 5:
        return False
    if array.dtype.name not in FLOATS:
        return True
    wide = array.astype(np.float64)
    return bool(np.isfinite(wide).all() and (np.abs(wide) <= LIMIT[array.dtype.name]).all())
