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
[mypy-relay.ops.*,relay.ad.*,relay.codegen.*,relay.eval.*,relay.transform.*,relay.typecheck.*,relay.text.*,relay.operator.*]
follow_imports = skip
"""

SAMPLES = {
    "signatures": """
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

        reveal_type(f(a, 2))  # M: "relay.array.Array"
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
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs mypy over files and returns what it says of each. All runs share a folder and a cache."""
    folder = tmp_path_factory.mktemp("mypy")
    root = str(Path(__file__).resolve().parent.parent)

    def over(files: dict[str, str], plugin: bool = True) -> dict[str, list[tuple[int, str]]]:
        configuration = folder / f"{plugin}.ini"
        plugins = "plugins = relay.mypy" if plugin else ""
        configuration.write_text(CONFIGURATION.format(plugins=plugins, cache=folder / f"cache_{plugin}"))
        if not plugin:  # nothing of Relay but its face matters then
            skipped = ("compiler", "differentiation", "composites", "numerical", "frontend.*", "ir.*", "array")
            names = ",".join(f"mypy-relay.{name}" for name in skipped).removeprefix("mypy-")
            with configuration.open("a") as file:
                file.write(f"[mypy-{names}]\nfollow_imports = skip\n".replace(",mypy-", ","))
        for name, text in files.items():
            (folder / f"{name}.py").write_text(text)
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
            found = re.match(r".*?(\w+)\.py:(\d+): (?:error|note): (.*)", line)
            if found is not None:
                said[found[1]].append((int(found[2]), found[3]))
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


def test_without_the_plugin(run: Run) -> None:
    text = "from relay import Float, Tensor, relay\n\n@relay\ndef f(x: Tensor[Float, (1, 1)]):\n    return x\n"
    found = run({"plain": text + "\nf(1.0)\n"}, plugin=False)["plain"]
    assert {line for line, _ in found} <= {4, 5}, found  # the annotation is none of Python's; the decorator is fine
    assert any('"relay.Tensor" is not valid as a type' in message for _, message in found)
