"""mypy with the plugin over sample files, in which `# M: text` stands where mypy must say so, and nowhere else."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from mypy import api

Run = Callable[..., dict[str, list[tuple[int, str]]]]

CONFIGURATION = """
[mypy]
{plugins}
strict = True
cache_dir = {cache}
[mypy-numpy.*]
follow_imports = skip
ignore_missing_imports = True
[mypy-{internal}]
follow_imports = skip
[mypy-relay.ops.signatures]
follow_imports = normal
"""

INTERNAL = (
    *("ops.*", "ad.*", "codegen.*", "eval.*", "transform.*", "typecheck.*", "text.*", "prelude.*"),
    *("operator.definition", "operator.composition", "operator.relation", "operator.soundness", "operator.callback"),
    *("frontend.data.*", "frontend.library", "frontend.lower", "frontend.scope", "compilation.*", "support.*"),
    *("calling.arguments", "calling.marshalling", "calling.executable", "calling.data_marshalling"),
    *("calling.programs.shape_policy", "api.gradient_check", "api.quantization", "api.tuning", "random", "transform"),
)
"""Modules of Relay that have no part in the types that users see. Without them mypy is done sooner."""

SAMPLES = {
    "operators": """
        import relay as rl
        from relay import Float, Tensor, relay

        @relay
        def f(x: Tensor[Float, (3,)]):
            return rl.tanh(x) * 2.0

        reveal_type(rl.matmul)  # M: "def (x: Any, y: Any) -> Any"
        reveal_type(relay.sum)  # M: "def (x: Any, axis: Any =, keepdims: bool =) -> Any"
        rl.softmax(1.0, axes=1)  # M: Unexpected keyword argument "axes"
        relay.tanh()  # M: Missing positional argument "x"
        reveal_type(f.lower)  # M: "def (*arguments: Any, **keywords: Any) -> relay.calling.lowering.Lowering"
        reveal_type(f.programs())  # M: "relay.calling.programs.program_table.Programs"
        rl.vmap(f)([1.0], 2.0)  # M: Too many arguments
        rl.grad(f, wrtt=0)  # M: Unexpected keyword argument "wrtt"
        """,
    "signatures": """
        import typing
        from typing import Any, NamedTuple
        import relay
        from relay import Float, Fn, Ref, Tensor, dims, grad, jacobian
        from relay import relay as decorator

        n, m = dims("n m")
        Row = Tensor[Float, (3,)]
        A = relay.type_var("A")
        a: Any

        class Pair(NamedTuple):
            a: Tensor[Float, (n, n * 2)]
            b: float

        @decorator
        def f(x: Tensor[Float, (1, 1)], n: int, c: bool = True, *, k: float = 1.0) -> Tensor[Float, (1, 1)]:
            y = 0
            y = y + 0.5  # no mistake in Relay
            return x * k

        @relay
        def g(x, y):
            return x + y

        @relay(static_argnames="y")
        def h(x, y):
            return x * y

        @relay.relay
        def several(x: Row, r: Pair, t: tuple[Row, float]) -> tuple[Row, Row]:
            return x, t[0]

        @relay
        def generic(x: A) -> A:
            return x

        @relay
        def applied(f: relay.PureFn[[Row], Row], x: Row) -> Row:
            return f(x)

        @relay
        def layouts(x: Tensor[Float, dict(batch=n, feature=m)], y: Tensor[Float, (n, m), ("batch", "feature")]):
            z: Tensor[Float, (n, m), "NC"] = x  # M: z must be Tensor[float32, (n, m), NC]
            return (x + y).sum(axis="feature")

        class Model:
            @relay
            def call(self, x: Row) -> Row:
                return x

        double = relay.relay(lambda x: x * 2.0)

        @relay
        def biased(x: Row, bias: Tensor[Float, (3,)] | None = None, scale: typing.Optional[float] = None) -> Row:
            return x if bias is None else x + bias

        @relay
        def unbiased(x: Row):
            return biased(x, "none")  # M: argument bias of biased must be Tensor[float32, (3,)], found the string

        reveal_type(biased(a, None, 2.0))  # M: "Array"
        biased(a, a, scale=None)
        biased(a, "none")  # M: Argument 2 to "biased" has incompatible type "str"
        reveal_type(f(a, 2))  # M: "Array"
        f(a, 2, k=3.0)
        f()  # M: Missing positional arguments "x", "n" in call to "f"
        f(a, 2, True, 4)  # M: Too many positional arguments for "f"
        f("a", 2)  # M: Argument 1 to "f" has incompatible type "str"
        f(f(a, 2), 2)
        f(a, 2, z=3)  # M: Unexpected keyword argument "z"
        g(1, 2)
        g(1)  # M: Missing positional argument "y" in call to "g"
        h(a, 2)
        h()  # M: Missing positional arguments
        f.type
        f.interpret(a, 2)
        f.nothing  # M: has no attribute "nothing"
        grad(f, wrt=0)(a, 2)
        grad(f)(a)  # M: Missing positional argument "n"
        jacobian(g)(1.0)  # M: Missing positional argument "y"
        double(2.0)
        double()  # M: Too few arguments
        layouts(a, a)
        layouts(a)  # M: Missing positional argument "y"
        several(a, Pair(a, 2.0), (a, 2.0))
        Model().call(a)
        f(3.0, 2)  # M: Argument 1 to "f" has incompatible type "float"
        generic(a)
        """,
    "mistakes": """
        import os
        import relay as rl
        from relay import Float, Tensor

        @rl
        def product(x: Tensor[Float, (2, 3)]) -> Tensor[Float, (2, 3)]:
            y = x @ x  # M: cannot be multiplied: the inner extents 3 and 2 differ
            z = y.nothing()
            return y + missing  # M: the name 'missing' is not defined

        @rl
        def constructs(x):
            with x:  # M: `with` is not part of Relay
                return x

        @rl
        def declared(x: Tensor[Float, (2,)]) -> Tensor[Float, (3,)]:
            return x  # M: the result of declared must be Tensor[float32, (3,)]

        @rl
        def ignored(x: Tensor[Float, (2,)]):
            return x[5]  # type: ignore[relay]

        @rl
        def shape(x: Tensor[Float, 3]):  # M: the shape of a tensor is a tuple, found 3
            return x

        @rl.data
        class Point:
            x: Tensor[Float, ()]
            y: Tensor[Float, ()]

        @rl.data
        class Shape:
            class Circle:
                radius: Tensor[Float, ()]

            class Box:
                width: Tensor[Float, ()]
                height: Tensor[Float, ()]

            def area(self):
                match self:
                    case Shape.Circle(r):
                        return r * r
                    case Shape.Box(w, h):
                        return w * h + undefined  # M: the name 'undefined' is not defined

        @rl
        def area(shape: Shape):
            return shape.area()

        area(Shape.Box(1.0, 2.0))
        Point(1.0, 2.0)
        Point(1.0)  # M: Missing positional argument "y" in call to "Point"
        os()  # M: Module not callable
        x: int = "a"  # M: Incompatible types in assignment

        def plain(x: int) -> str:
            return x  # M: Incompatible return value type
        """,
    "nets/__init__": """
        from . import layers as layers
        from .layers import dense as dense
        """,
    "nets/layers": """
        from __future__ import annotations

        import relay
        from relay import Float, Tensor, dims

        from .config import WIDTH

        n, m, k = dims("n m k")
        Row = Tensor[Float, (WIDTH,)]
        Rows = tuple[Row, Row]

        @relay.data
        class Dense:
            weight: Tensor[Float, (n, m)]
            bias: Tensor[Float, (m,)]
            rate: float = 1.0

            def apply(self, x: Tensor[Float, (k, n)], scale=1.0):
                return x @ self.weight * scale

        @relay.data
        class Pair:
            first: Dense[3, 4]
            second: Dense[4, m]
            third: Tensor[Float, (4,)]

        @relay.data
        class Point:
            place: Row

            def moved(self, by: Tensor[Float, (4,)]):
                return self.place + by  # M: the shapes (3,) and (4,) cannot be broadcast together

        @relay
        def failing(x: Row) -> Row:
            return x.nothing()  # M: has no attribute 'nothing'

        @relay.data
        class Loss:
            class Square:
                pass

            class Huber:
                delta: Tensor[Float, ()]

        @relay
        def dense(layer: Dense, x: Tensor[Float, (k, n)]) -> Tensor[Float, (k, m)]:
            return x @ layer.weight + layer.bias

        @relay
        def product(x, w):
            return x @ w

        @relay
        def wrong(x: Row) -> Rows:
            return x[3:], x  # M: the result of wrong must be (Tensor[float32, (3,)], Tensor[float32, (3,)])
        """,
    "nets/config": """
        WIDTH = 3
        """,
    "nets/train": """
        import nets
        import nets.layers as L
        import relay
        from nets import layers
        from nets.layers import Dense, Loss, Row, dense
        from relay import Float, Tensor, grad
        from .layers import product

        @relay
        def annotated(layer: Dense, x: Tensor[Float, (2,)]) -> Tensor[Float, (2,)]:
            y = dense(layer, x)  # M: argument x of dense must be Tensor[float32, (k, n)], found Tensor[float32, (2,)]
            return nets.dense(layer, x)  # M: argument x of dense must be

        @relay
        def polymorphic(x: Tensor[Float, (2, 3)]) -> Tensor[Float, (2, 3)]:
            return L.product(x, product(x, x))  # M: the inner extents 3 and 2 differ

        @relay
        def row(x: Row) -> Row:
            return x[nets.layers.WIDTH]  # M: index 3 is out of range

        @relay
        def loss(kind: Loss, x: Row) -> Tensor[Float, ()]:
            match kind:
                case Loss.Square():
                    return (x * x).sum()
                case Loss.Huber(delta):
                    return x.sum() * delta

        @relay
        def follows(p: layers.Pair, x: Row, d: L.Dense[4, 5]):
            return layers.failing(x), L.dense(p.first, d.weight)  # M: the shapes (4, 5) and (3, 4)

        @relay
        def structure(x: Row, n: int, layer: Dense):
            return {"a": x.sum(), "b": x.mean()}, [x, x], (), (n, layer)

        @relay
        def energy(x: Row, y: Row, n: int):
            return (x * y).sum() if n > 0 else 0.0

        dense(3.0)  # M: Missing positional argument "x"
        loss(Loss.Huber(1.0), [1.0])  # M: Argument 2 to "loss" has incompatible type "list[float]"
        loss(Loss.Huber(), 1)  # M: Missing positional argument "delta"
        Loss.Square(1)  # M: Too many arguments for "Square"
        loss(3, dense(Dense(1, 2, 3), 1))  # M: Argument 1 to "loss" has incompatible type "int"; expected "Loss"
        x = dense(Dense(1, 2), layers.product(1, 2))
        reveal_type(x)  # M: "Array"
        reveal_type(layers.product(1, 2))  # M: "Array"
        made = structure(x, 1, Dense(1, 2))
        reveal_type(made)  # M: "tuple[dict[str, Array], list[Array], tuple[()], tuple[Array, nets.layers.Dense]]"
        reveal_type(grad(energy)(x, x, 1))  # M: "tuple[Array, Array, None]"
        reveal_type(grad(energy, wrt="x")(x, x, 1))  # M: "Array"
        reveal_type(relay.value_and_grad(energy, (0, 1))(x, x, 1))  # M: "tuple[Array, tuple[Array, Array]]"
        reveal_type(relay.grad(loss, wrt=0)(Loss.Square(), x))  # M: "nets.layers.Loss"
        reveal_type(relay.hessian(energy, wrt=(0, 1))(x, x, 1))  # M: tuple[tuple[Array, Array], tuple[Array, Array]]
        reveal_type(relay.jacobian(relay.grad(energy, wrt=0), wrt=1)(x, x, 1))  # M: "Array"
        reveal_type(relay.vjp(energy, x, x, 1))  # M: "tuple[Array, def (Any) -> tuple[Array, Array, None]]"
        reveal_type(relay.jvp(energy, (x, x, 1), (x, x, None)))  # M: "tuple[Array, Array]"
        reveal_type(relay.checkpoint(energy)(x, x, 2))  # M: "Array"
        relay.grad(energy, wrt=0, seedable=True)(x, x, 1)  # M: Missing positional argument "seed"
        relay.checkpoint(energy)(x)  # M: Missing positional argument

        def local() -> None:
            energy = L.product
            reveal_type(grad(energy)(x, x))  # M: "Any"
        """,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs mypy over files and returns what it says of each. All runs share a folder and a cache."""
    folder = tmp_path_factory.mktemp("mypy")
    root = str(Path(__file__).resolve().parents[2])

    def over(files: dict[str, str], plugin: bool = True) -> dict[str, list[tuple[int, str]]]:
        configuration = folder / f"{plugin}.ini"
        plugins = "plugins = relay.mypy" if plugin else ""
        internal = ",".join(f"relay.{name}" for name in INTERNAL)
        cache = folder / f"cache_{plugin}"
        configuration.write_text(CONFIGURATION.format(plugins=plugins, cache=cache, internal=internal))
        if not plugin:  # nothing of Relay but its face matters then
            skipped = ("function", "api.*", "compilation.*", "frontend.*", "ir.*", "calling.*")
            names = ",".join(f"mypy-relay.{name}" for name in skipped).removeprefix("mypy-")
            with configuration.open("a") as file:
                file.write(f"[mypy-{names}]\nfollow_imports = skip\n".replace(",mypy-", ","))
        for name, text in files.items():
            path = folder / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        before, os.environ["MYPYPATH"] = os.environ.get("MYPYPATH"), root
        depth = sys.getrecursionlimit()  # mypy raises it
        try:
            paths = [str(folder / f"{name}.py") for name in files]
            out, err, _ = api.run(["--config-file", str(configuration), "--hide-error-codes", *paths])
        finally:
            sys.setrecursionlimit(depth)
            os.environ.pop("MYPYPATH") if before is None else os.environ.update(MYPYPATH=before)
        assert not err, err
        said: dict[str, list[tuple[int, str]]] = {name: [] for name in files}
        for line in out.splitlines():
            found = re.match(r"(.*)\.py:(\d+): (?:error|note): (.*)", line.removeprefix(f"{folder}/"))
            if found is not None and found[1] in said:
                said[found[1]].append((int(found[2]), found[3].replace("relay.calling.array.", "")))
        return said

    return over


def expected(text: str) -> list[tuple[int, str]]:
    return [(i, line.split("# M: ")[1]) for i, line in enumerate(text.split("\n"), start=1) if "# M: " in line]


@pytest.fixture(scope="module")
def said(run: Run) -> dict[str, list[tuple[int, str]]]:
    return run({name: textwrap.dedent(text) for name, text in SAMPLES.items()})


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(name: str, said: dict[str, list[tuple[int, str]]]) -> None:
    wanted = expected(textwrap.dedent(SAMPLES[name]))
    told = "\n".join(f"{line}: {text}" for line, text in said[name])
    for line, text in wanted:
        assert any(at == line and text in message for at, message in said[name]), f"{line}: {text}\n---\n{told}"
    lines = {line for line, _ in wanted}
    assert not [(line, text) for line, text in said[name] if line not in lines], told


def test_an_edited_file_is_checked_again(run: Run, said: dict[str, list[tuple[int, str]]]) -> None:
    text = "from relay import Float, Tensor, relay\n\n@relay\ndef f(x: Tensor[Float, (2,)]):\n    return x[{}]\n"
    for index, messages in ((0, 0), (17, 1), (1, 0)):
        told = run({"edited": text.format(index)})["edited"]
        found = [(line, text_) for line, text_ in told if not text_.startswith("help")]
        assert len(found) == messages and all(line == 5 for line, _ in found), found


def test_an_edited_import_is_checked_again(run: Run, said: dict[str, list[tuple[int, str]]]) -> None:
    sizes = "WIDTH = {}\n"
    layers = "import relay\nfrom .sizes import WIDTH\n\n@relay\ndef cut(x):\n    return x[:{}]\n"
    model = """
        import relay
        from relay import Float, Tensor
        from edited.layers import cut
        from edited.sizes import WIDTH

        @relay
        def model(x: Tensor[Float, (4,)]):
            return cut(x)[WIDTH]
        """
    files = {"edited/__init__": "", "edited/model": textwrap.dedent(model).lstrip("\n")}
    for width, end, wrong in ((2, 3, False), (3, 3, True), (3, 3, True), (3, 4, False), (4, 4, True)):
        texts = {"edited/sizes": sizes.format(width), "edited/layers": layers.format(end)}
        told = run({**files, **texts})["edited/model"]
        assert [line for line, text in told if not text.startswith("help")] == ([8] if wrong else []), told


def test_without_the_plugin(run: Run) -> None:
    text = "from relay import Float, Tensor, relay\n\n@relay\ndef f(x: Tensor[Float, (1, 1)]):\n    return x\n"
    found = run({"plain": text + "\nf(1.0)\n"}, plugin=False)["plain"]
    assert {line for line, _ in found} <= {4, 5}, found  # the annotation is none of Python's; the decorator is fine
    assert any('"relay.Tensor" is not valid as a type' in message for _, message in found)
