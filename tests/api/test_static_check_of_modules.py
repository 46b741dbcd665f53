"""`relay check` over several files that import each other, which are read and never run."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import relay
from relay.api.static_check import Check
from relay.cli import main

Write = Callable[[dict[str, str]], None]

STOP = "\nimport sys\nsys.exit('the file was run')\n"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes files into an empty folder, which becomes the working directory."""
    monkeypatch.chdir(tmp_path)

    def files(texts: dict[str, str]) -> None:
        for name, text in texts.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text).lstrip("\n") + (STOP if name.endswith(".py") else ""))

    return files


def said(name: str, check: Check | None = None) -> list[str]:
    """What the check of a file says: file, line, severity and message."""
    found = (check or Check()).text(Path(name).read_text(), name)
    return [f"{d.span.source.filename}:{d.span.line} {d.severity}: {d.message}" for d in found if d.span]


LAYERS = """
    import relay
    from relay import Float, Tensor, dims
    from .config import WIDTH

    n, m, k = dims("n m k")
    Row = Tensor[Float, (WIDTH,)]

    @relay.data
    class Dense:
        weight: Tensor[Float, (n, m)]
        bias: Tensor[Float, (m,)]

        def apply(self, x):
            return x @ self.weight + self.bias

    @relay
    def dense(layer: Dense, x: Tensor[Float, (k, n)]):
        return layer.apply(x)

    @relay
    def product(x, w):
        return x @ w

    double = relay.relay(lambda x: x * 2.0)
    slope = relay.grad(double)
    """
PACKAGE = {
    "pkg/__init__.py": "from . import layers\nfrom .layers import dense as Dense_, Row\n",
    "pkg/config.py": "WIDTH, HEIGHT = 3, 2\nNAMES = tuple(str(i) for i in range(3))\n",
    "pkg/layers.py": LAYERS,
}


def test_names_of_other_modules(write: Write) -> None:
    uses = """
        import numpy as np
        import relay
        import pkg
        import pkg.layers
        import pkg.layers as L
        from pkg import Row, config, layers
        from pkg.layers import Dense, dense, double as twice, m, slope
        from relay import Float, Tensor

        TABLE = np.ones((config.HEIGHT, pkg.config.WIDTH), dtype=np.float32)

        @relay.data
        class Model:
            first: Dense[3, m]
            rows: tuple[L.Row, "layers.Row"]

        @relay
        def right(model: Model, r: Row, x: Tensor[Float, (2, 3)], w: Tensor[Float, (3, 3)]):
            a = layers.product(x, w) + TABLE + twice(pkg.layers.product(x, w))
            d = dense(model.first, a) + L.dense(model.first, a) + pkg.Dense_(model.first, a)
            return d.sum() + (r + model.rows[1]).sum() + slope(0.5) + config.HEIGHT

        @relay
        def annotated(model: Model, x: Tensor[Float, (2,)]):
            return dense(model.first, x)

        @relay
        def polymorphic(x: Tensor[Float, (2, 3)]):
            return L.product(x, x)

        @relay
        def record(model: Model):
            return model.first.wight

        @relay
        def number(r: Row):
            return r[config.WIDTH]

        @relay
        def constructed(w: Tensor[Float, (2, 3)], b: Tensor[Float, (4,)]):
            return Dense(w, b).apply(w)
        """
    write({**PACKAGE, "train.py": uses})
    assert said("train.py") == [
        "train.py:25 error: argument x of dense must be Tensor[float32, (k, n)], found Tensor[float32, (2,)]",
        "train.py:33 error: Dense has no field 'wight'",
        "train.py:37 error: index 3 is out of range for axis 0 of Tensor[float32, (3,)]",
        "train.py:41 error: the field bias of Dense must be Tensor[float32, (3,)], found Tensor[float32, (4,)]",
        "pkg/layers.py:22 error: the shapes (2, 3) and (2, 3) cannot be multiplied: the inner extents 3 and 2 differ",
    ]
    assert said("pkg/layers.py") == said("pkg/__init__.py") == []


def test_files_that_import_each_other(write: Write) -> None:
    write(
        {
            "one.py": """
                import relay
                from relay import Float, Tensor
                import two

                SIZE = 2
                Row = Tensor[Float, (SIZE,)]

                @relay
                def even(x: Row, n: int) -> Row:
                    return x if n == 0 else two.odd(x, n - 1)

                @relay
                def uses(p: two.Pair):
                    return p.left + p.other
                """,
            "two.py": """
                import relay
                from one import Row, even

                @relay.data
                class Pair:
                    left: Row
                    right: Row

                @relay
                def odd(x: Row, n: int) -> Row:
                    return x * 2.0 if n == 0 else even(x[0], n - 1)
                """,
        }
    )
    wrong = "two.py:11 error: argument x of even must be Tensor[float32, (2,)], found Tensor[float32, ()]"
    assert said("one.py") == ["one.py:14 error: Pair has no field 'other'", wrong]
    assert said("two.py") == [wrong]
    check = Check()
    assert said("two.py", check) == [wrong] and said("one.py", check) == said("one.py")


def test_relative_imports_without_packages_and_stars(write: Write) -> None:
    body = "import relay\n@relay\ndef f(x):\n    return {}\n"
    write(
        {
            "space/inner/a.py": "from .b import *\nfrom ..c import SIZE\n" + body.format("shift(x) + SIZE + nothing"),
            "space/inner/b.py": "from ..c import *\n" + body.format("x").replace("f(", "shift("),
            "space/c.py": "SIZE = 3\n_hidden = 4\n",
            "d.py": "import space.c\nfrom space.inner import b as B\n" + body.format("B.shift(x) + space.c.SIZ"),
            "e.py": "from space.inner.b import *\n" + body.format("x + SIZE + _hidden"),
        }
    )
    assert said("space/inner/a.py") == ["space/inner/a.py:6 error: the name 'nothing' is not defined"]
    assert said("d.py") == ["d.py:6 error: space.c has no 'SIZ'"]
    assert said("e.py") == ["e.py:5 error: the name '_hidden' is not defined"]


def test_mistakes_in_other_files(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        {
            **PACKAGE,
            "broken.py": "def f(:\n",
            "bad.py": """
                import relay

                @relay
                def g(x):
                    with x:
                        return x

                @relay
                def h(x, y: relay.Tensor[relay.Float, 3]):
                    return x
                """,
            "train.py": """
                import relay
                from broken import f
                from bad import g
                from pkg.layers import dens, Dense
                import pkg.layers as layers

                @relay
                def a(x):
                    return f(x)

                @relay
                def b(x):
                    return g(x)

                @relay
                def c(x):
                    return dens(x)

                @relay
                def d(x):
                    return layers.prod(x)
                """,
        }
    )
    expected = [
        "train.py:4 error: pkg.layers has no 'dens'",
        "train.py:21 error: layers has no 'prod'",
        "bad.py:5 error: `with` is not part of Relay",
        "bad.py:9 error: the shape of a tensor is a tuple, found 3",
        "broken.py:1 error: this is not valid Python: invalid syntax",
    ]
    assert said("train.py") == expected
    assert main(["check", ".", "train.py"]) == 1
    out = capsys.readouterr().out
    assert out.count("error:") == len(expected) and out.endswith("5 errors in 7 files\n")  # each is told once
    assert "train.py:4:24" in out and "help: did you mean 'dense'?" in out


def test_what_cannot_be_known_without_running(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        {
            **PACKAGE,
            "site-packages/plain/__init__.py": "def h(x):\n    return x\n",
            "site-packages/nets/__init__.py": "from .parts import block\n",
            "site-packages/nets/parts.py": "import relay\n@relay\ndef block(x):\n    return x[:, 0]\n",
            "lazy.py": "def __getattr__(name):\n    return 1\n",
            "train.py": """
                import relay
                import plain
                import missing.part
                from pkg.config import NAMES, WIDTH
                from nets import block
                from lazy import anything
                import os

                @relay
                def a(x):
                    return x + len(NAMES)

                @relay
                def b(x):
                    return plain.h(x)

                @relay
                def c(x):
                    return missing.part.f(x)

                @relay
                def d(x):
                    return block(x) + WIDTH

                @relay
                def e(x):
                    return x + anything

                @relay
                def f(x):
                    return x + os.sep

                @relay
                def g(x: relay.Tensor[relay.Float, (2,)]):
                    return block(x)
                """,
        }
    )
    monkeypatch.syspath_prepend("site-packages")
    found = Check().text(Path("train.py").read_text(), "train.py")
    notes = {d.message.split(" was")[0]: d for d in found if d.severity == "note"}
    assert all(f"what '{name}' is" in notes[f].message for f, name in dict(
        a="NAMES", b="plain", c="missing", e="anything", f="os").items())  # fmt: skip
    assert len(notes) == 5
    assert str(notes["a"].labels[0].span) == "pkg/config.py:2:1"
    assert str(notes["c"].labels[0].span) == "train.py:3:8"
    assert notes["b"].notes == ("plain is an installed module that does not use relay",)
    assert notes["c"].notes == ("no source of the module missing was found",)
    assert notes["f"].notes == ("os is a module of Python's library",)
    (error,) = [d for d in found if d.severity == "error"]
    assert error.span is not None and error.span.source.filename.endswith("nets/parts.py")
    assert "in this call of block" in error.render()


def test_files_that_nothing_mentions_are_not_read(write: Write) -> None:
    write(
        {
            "broken.py": "def f(:\n",
            "train.py": "import relay\nimport broken\nfrom broken import g\n\n@relay\ndef f(x):\n    return x\n\ng()\n",
        }
    )
    assert said("train.py") == []


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax of type parameters")
def test_type_parameters_and_aliases_of_other_modules(write: Write) -> None:
    types = """
        import relay
        from relay import Float, Tensor

        type Matrix[n, m] = Tensor[Float, (n, m)]
        type Row = Tensor[Float, (3,)]
        type Rows = tuple[Row, Row]

        @relay.data
        class Pair[A, B]:
            left: A
            right: B

        @relay
        def product[n, m, k](a: Matrix[n, m], b: Matrix[m, k]) -> Matrix[n, k]:
            return a @ b
        """
    uses = """
        import relay
        import pkg.shapes as T
        from pkg.shapes import Matrix, Pair, Row, product

        @relay
        def wrong(a: Matrix[3, 4]) -> T.Matrix[3, 4]:
            return product(a, a)

        @relay
        def rows(r: Row, rs: T.Rows, p: Pair[Row, T.Row]) -> T.Row:
            return r + rs[0] + p.left + p.right[5]
        """
    write({"pkg/shapes.py": types, "use.py": uses})
    assert said("use.py") == [
        "use.py:7 error: argument b of product must be Tensor[float32, (4, k)], found Tensor[float32, (3, 4)]",
        "use.py:11 error: index 5 is out of range for axis 0 of Tensor[float32, (3,)]",
    ]
    path = Path("mypy.ini")
    root = Path(relay.__file__).parent.parent
    path.write_text("[mypy]\nplugins = relay.mypy\nfollow_imports = skip\nignore_missing_imports = True\n")
    # what mypy says of the types alone: the aliases are no mistakes, whatever stands in them
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "pkg/shapes.py"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True)
    assert "Success" in done.stdout, done.stdout + done.stderr


def test_folders(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write({**PACKAGE, ".hidden/a.py": "def f(:\n", "env/pyvenv.cfg": "", "env/b.py": "def f(:\n", "t.txt": ""})
    assert main(["check", "."]) == 0
    assert capsys.readouterr().out == "no errors in 3 files\n"


DOUBLE = """
    from relay import Float, Tensor, dims, relay

    (n,) = dims("n")

    @relay
    def double(x: Tensor[Float, (n,)]):
        return x * 2.0
"""

USE = """
    @relay
    def use(x: Tensor[Float, (3, 3)]):
        return double(x)
"""


@pytest.mark.parametrize(
    "imports",
    [
        "try:\n    from ops import double\nexcept ImportError:\n    double = None",
        "try:\n    from ops import double\nexcept ModuleNotFoundError:\n    pass\nelse:\n    found = True",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ops import double",
        "import typing\nif typing.TYPE_CHECKING:\n    from ops import double",
        "import sys\nif sys.version_info >= (3, 8):\n    from ops import double\nelse:\n    double = None",
    ],
)
def test_imports_that_are_chosen(imports: str, write: Write) -> None:
    write({"ops.py": DOUBLE, "main.py": "from relay import Float, Tensor, relay\n" + imports + "\n"})
    Path("main.py").write_text(Path("main.py").read_text() + textwrap.dedent(USE))
    (found,) = said("main.py")
    assert "error: argument x of double must be Tensor[float32, (n,)], found Tensor[float32, (3, 3)]" in found


def test_an_import_that_may_fail_is_no_mistake(write: Write) -> None:
    use = "try:\n    from ops import triple\nexcept ImportError:\n    triple = None\n"
    write({"ops.py": DOUBLE, "main.py": "from relay import Float, Tensor, relay\n" + use})
    text = Path("main.py").read_text() + textwrap.dedent(USE).replace("double", "triple")
    Path("main.py").write_text(text)
    (found,) = said("main.py")
    assert "note: use was not checked" in found


def test_decorated_functions_in_a_function_see_each_other(write: Write) -> None:
    write(
        {
            "main.py": """
                from relay import Float, Tensor, relay

                def made(scale):
                    @relay
                    def first(x: Tensor[Float, (3,)]):
                        return second(x)

                    @relay
                    def second(x: Tensor[Float, (2,)]):
                        return x + 1.0

                    @relay
                    def third(x: Tensor[Float, (2,)]):
                        return second(x) * scale

                    return first, third
            """
        }
    )
    assert said("main.py") == [
        "main.py:6 error: argument x of second must be Tensor[float32, (2,)], found Tensor[float32, (3,)]",
        "main.py:13 note: third was not checked: only importing the file can tell what 'scale' is; use --import",
    ]


def test_overloads_of_imported_modules_count(tmp_path: Path) -> None:
    meaning = (
        "import numpy as np\nimport relay as rl\n\n@rl.overload(np.real_if_close)\ndef bessel(x):\n    return x + 1.0\n"
    )
    (tmp_path / "meanings.py").write_text(meaning)
    (tmp_path / "more.py").write_text("import meanings\n")
    use = "import numpy as np\nfrom relay import Float, Tensor, relay\n\n@relay\ndef f(x: Tensor[Float, (3,)]):\n"
    use += "    return np.real_if_close(x)\n"
    for first, mistakes in (("", 1), ("import meanings\n", 0), ("from meanings import bessel\n", 0)):
        found = Check().text(first + use, str(tmp_path / "use.py"))
        assert len(found) == mistakes, [d.message for d in found]
