"""`relay check`: what reading a file without importing it tells."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import relay
from relay.api.static_check import Check, check_text
from relay.errors.diagnostic import Diagnostic


def checked(text: str) -> list[Diagnostic]:
    return check_text(textwrap.dedent(text).lstrip("\n"), "program.py")


def said(text: str) -> list[str]:
    """What is said of a program, each with its severity and line."""
    return [f"{d.span.line if d.span else 0} {d.severity}: {d.message}" for d in checked(text)]


HEAD = """
    import dataclasses
    from typing import NamedTuple
    import numpy as np
    import relay
    from relay import Tensor, Float, Int, Fn, dims
    import sys
    sys.exit("the file was run")
    """


def test_what_the_top_of_a_file_tells() -> None:
    text = f"""{HEAD}
    n, m = dims("n m")
    (k,) = relay.dims("k")
    SIZE, HALF = 4, 4 // 2
    TABLE = np.ones((SIZE, 3), dtype=np.float32)
    Row = Tensor[Float, (3,)]
    Rows: object = tuple[Row, Row]
    FACTOR = -2.5 * SIZE

    @relay.data
    class Pair:
        left: Row
        right: Row = None

        def total(self):
            return self.left + self.right

    @dataclasses.dataclass
    class Weights:
        w: Tensor[Float, (3, 3)]
        b: float = 1.0

    class Both(NamedTuple):
        a: Row
        b: int

    double = relay.relay(lambda x: x * 2.0)

    @relay
    def loss(x: Row, p: Weights):
        return relay.sum(TABLE @ (p.w @ x) * FACTOR) + p.b

    slope = relay.grad(loss, wrt=0)

    @relay
    def use(p: Pair, rows: Rows, both: Both, w: Weights):
        step = slope(both.a, w)
        return double(p.total()) + rows[0] + step * HALF
    """
    assert said(text) == []
    wrong = text.replace("step * HALF", "step @ TABLE")
    assert [line.partition(": ")[2][:16] for line in said(wrong)] == ["the shapes (3,) "]


def test_what_only_importing_tells() -> None:
    text = f"""{HEAD}
    from elsewhere import layer, Config
    from . import sibling
    import os
    WIDTH = int(os.environ["WIDTH"])
    OPTIONS = [w for w in range(3)]

    @relay
    def f(x: Tensor[Float, (2,)]):
        y = layer(x)
        return y + x[5]

    @relay
    def g(x: Tensor[Float, (WIDTH,)]):
        return x

    @relay
    def h(x: Tensor[Float, (2,)]):
        return sibling(x) + OPTIONS[0]

    @relay
    def i(x: Tensor[Float, (2,)], c: Config):
        return x
    """
    found = said(text)
    assert [line.partition(" ")[2] for line in found] == [
        "error: index 5 is out of range for axis 0 of Tensor[float32, (2,)]",  # all that can be checked is
        "note: g was not checked: only importing the file can tell what 'WIDTH' is; use --import",
        "note: h was not checked: only importing the file can tell what 'sibling' is; use --import",
        "note: i was not checked: only importing the file can tell what 'Config' is; use --import",
    ]


def test_stars() -> None:
    body = "@relay\ndef f(x: Tensor[Float, (2,)]):\n    return tanh(x) + helper(x)\n"
    assert "the name 'tanh' is not defined" in said(f"from relay import relay, Tensor, Float\n{body}")[0]
    (note,) = said(f"from somewhere import *\nfrom relay import relay, Tensor, Float\n{body}")
    assert "was not checked" in note
    assert "the name 'helper' is not defined" in said(f"from relay import *\n{body.replace('tanh(x)', 'x')}")[0]


def test_conditional_names() -> None:
    text = """
    from relay import relay, Tensor, Float
    SIZE = 2
    try:
        import fast
        SIZE = 3
    except ImportError:
        fast = None
    for SIDE in range(3):
        pass
    if SIZE:
        @relay
        def f(x: Tensor[Float, (2,)]):
            return x[9]
    if __name__ == "__main__":
        SIZE = 7

    @relay
    def g(x):
        return x[SIZE] + SIDE
    """
    found = said(text)
    assert "index 9 is out of range" in found[0] and "was not checked" in found[1] and len(found) == 2


def test_functions_in_functions_and_classes() -> None:
    text = """
    from relay import relay, Tensor, Float

    class Model:
        @relay
        def call(self, x: Tensor[Float, (2,)]):
            return x[3]

    def make(scale):
        @relay
        def inner(x: Tensor[Float, (2,)]):
            return x[4]

        @relay
        def scaled(x: Tensor[Float, (2,)]):
            return x * scale
        return inner, scaled
    """
    found = said(text)
    assert [line.split(":")[0] for line in found] == ["6 error", "11 error", "14 note"]
    assert "'scale'" in found[2]


def test_mistakes_at_the_top() -> None:
    text = """
    import relay
    from relay import Tensor, Float

    @relay.data
    class Bad:
        x: Tensor[Float, 3]

        def method(self):
            yield self.x

    Wrong = Tensor[Float, 3]

    @relay
    def f(x: Bad):
        return x.x + missing

    @relay
    def g(x: Wrong, y: Tensor[Float, (2,)]):
        return y
    """
    found = said(text)
    assert len(found) == 2, found
    assert found[0].startswith("6 error: the shape of a tensor is a tuple, found 3")
    assert found[1].startswith("11 error: the shape of a tensor is a tuple, found 3")


def test_what_decorators_do_not_take() -> None:
    text = f"""{HEAD}
    LEVEL = 9
    @relay
    async def later(x):
        return x
    @relay(static_argname=("k",), opt_level=LEVEL)
    def first(x, k):
        return x
    @relay(opt_level=9)
    def second(x):
        return x
    def outer():
        @relay.relay
        async def inner(x):
            return x
    class Layer:
        @relay(static_argnames=3)
        def method(self, x):
            return x
    """
    assert said(text) == [
        "11 error: `async def` is not part of Relay",
        "13 error: @relay has no option 'static_argname'",
        "16 error: there is no opt_level 9; they are 0 to 3",
        "21 error: `async def` is not part of Relay",
        "24 error: static_argnames are names of parameters, found 3",
    ]


def test_type_variables_of_python() -> None:
    text = """
    import typing
    from typing import TypeVar, TypeVarTuple
    from relay import relay, Tensor, Float

    T, B = TypeVar("T"), typing.TypeVar("B")
    Ts = TypeVarTuple("Ts")

    @relay
    def same(x: T) -> T:
        return x

    @relay
    def doubled(x: Tensor[B, (3,)], y: Tensor[Float, (*Ts, 3)]) -> tuple[Tensor[B, (3,)], Tensor[Float, (*Ts,)]]:
        return x, y.sum(axis=-1)

    @relay
    def other(x: T, y: T) -> T:
        return x + y
    """
    assert said(text) == ["18 error: operand 1 of `+` must be a tensor, and T is annotated as any type"]


def test_donations_of_what_is_no_parameter() -> None:
    text = """
    from relay import relay, Tensor, Float

    @relay(donate_argnames="y")
    def first(x: Tensor[Float, (3,)]):
        return x
    @relay(donate_argnums=3)
    def second(x: Tensor[Float, (3,)]):
        return x
    @relay(donate_argnames="x", static_argnames="x")
    def third(x):
        return x
    class Layer:
        @relay(donate_argnames=("self", "z"))
        def method(self, x):
            return x
    @relay(donate_argnames="x")
    def right(x: Tensor[Float, (3,)]):
        return x
    """
    assert said(text) == [
        "4 error: donate_argnames: first has no parameter 'y'",
        "7 error: donate_argnums: second has 1 parameter, and none at 3",
        "10 error: x is static, so it has no memory to donate",
        "14 error: donate_argnames: method has no parameter 'z'",
    ]


def test_callers_of_a_function_with_a_mistake_are_silent() -> None:
    text = """
    from relay import relay, Tensor, Float

    @relay
    def f(x: Tensor[Float, (2,)]):
        with x:
            return x

    @relay
    def g(x: Tensor[Float, (2,)]):
        return f(x) + x[7]
    """
    assert [line[:25] for line in said(text)] == ["5 error: `with` is not pa", "10 error: index 7 is out "]


def test_defaults_methods_gradients_and_operators() -> None:
    text = f"""{HEAD}
    AXES = (0, 1)

    @relay
    def total(x: Tensor[Float, (2, 3)], axes=(0, 1), factor=2 * 3, axis=AXES[1], f=relay.tanh):
        return f(x.sum(axis=axis) * factor)

    @dataclasses.dataclass
    class Weights:
        w: Tensor[Float, (3,)]

        @relay
        def add(self, x: Tensor[Float, (3,)]):
            return self.w + x

    @relay
    def softplus(x):
        return np.log(1.0 + np.exp(x))

    @softplus.def_gradient
    def backward(saved, seed):
        return seed * saved[0] + missing

    @relay(static_argnames="axis")
    def along(x: Tensor[Float, (2, 3)], axis):
        return x.sum(axis=axis)

    @relay.composite
    def scaled(x: Tensor, factor: float = 2.0) -> Tensor:
        "x times a factor. x: (T, s) -> (T, s)."
        return x * factor + absent

    @relay.register_op(relation=relay.Relation("T -> T", sys.exit), compute=sys.exit, no_gradient="none")
    def shown(x: Tensor) -> Tensor:
        "x. x: (T, s) -> (T, s)."
        sys.exit()

    @relay
    def right(p: Weights, x: Tensor[Float, (2, 3)]):
        return along(x, 1) + total(x) + softplus(p.add(x[0]))[1] + relay.scaled(x, factor=3.0)[0, 2]

    @relay
    def wrong(p: Weights, x: Tensor[Float, (2, 3)]):
        return p.add(x[:, 0]) + total(x)[2] + along(x, 0)[3]

    @relay
    def open(x):
        return relay.shown(x)
    """
    found = said(text)
    assert [line.partition(" ")[2] for line in found] == [
        "error: the name 'missing' is not defined",
        "error: the name 'absent' is not defined",
        "error: argument x of add must be Tensor[float32, (3,)], found Tensor[float32, (2,)]",
        "error: index 2 is out of range for axis 0 of Tensor[float32, (2,)]",
        "error: index 3 is out of range for axis 0 of Tensor[float32, (3,)]",
        "note: open was not checked: only importing the file can tell what 'shown' is; use --import",
    ]


def test_methods_of_data_types() -> None:
    text = f"""{HEAD}
    A = relay.type_var("A")

    @relay.data
    class Point:
        x: Tensor[Float, (2,)]

        def right(self, other):
            return self.x + other.x

        def wrong(self):
            return self.x[2]

    @relay.data
    class Box:
        content: A

        def open(self):
            return self.content * 2.0
    """
    assert said(text) == ["19 error: index 2 is out of range for axis 0 of Tensor[float32, (2,)]"]


def test_operators_of_unknown_names() -> None:
    text = """
    import relay

    def setup(name):
        relay.register_op(relation=None, compute=None)(name)

    @relay
    def f(x):
        return relay.nothing(x)
    """
    (note,) = said(text)
    assert note == "7 note: f was not checked: only importing the file can tell what 'nothing' is; use --import"


def test_what_an_attribute_lets_guess() -> None:
    text = """
    import relay
    from relay import Tensor, Float

    @relay.data
    class Node:
        value: Tensor[Float, ()]
        below: Tensor[Float, (3,)]

        def norm(self):
            return self.below.sum()

    @relay
    def named(node):
        return node.value + node.below

    @relay
    def method(node):
        return node.norm() + node.below

    @relay
    def use(n: Node):
        return named(n) + method(n)[4]
    """
    assert said(text) == ["22 error: index 4 is out of range for axis 0 of Tensor[float32, (3,)]"]


@pytest.mark.parametrize(
    "value",
    ["10 ** 10 ** 10", "1 << 10 ** 12", "np.ones((10**6, 10**6))", "[0] * 10 ** 12", "np.ones(3) / undefined", "1 / 0"],
)
def test_values_that_are_not_evaluated(value: str) -> None:
    text = f"import numpy as np\nfrom relay import relay\nX = {value}\n@relay\ndef f(x):\n    return x + X\n"
    (note,) = said(text)
    assert "only importing the file can tell what 'X' is" in note


def test_no_python() -> None:
    (found,) = checked("def f(:\n")
    assert found.severity == "error" and "not valid Python" in found.message


PROGRAMS = sorted((Path(__file__).parents[1] / "zoo").glob("**/*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_that_run_have_no_mistakes(path: Path) -> None:
    found = check_text(path.read_text(encoding="utf-8"), str(path))
    assert not [str(d) for d in found if d.severity == "error"]


def test_what_only_the_call_of_a_function_without_annotations_tells() -> None:
    text = """
    from relay import relay

    @relay
    def f(state, rows, axis=0):
        position, *rest = rows
        total = state.velocity * 2.0 + state["mass"]
        for row in rows:
            total = total + row
        return {**state, "sum": total.sum(axis=axis)}, (*rest, position), wrong
    """
    assert said(text) == ["9 error: the name 'wrong' is not defined"]


def test_lists_that_a_call_chooses_may_be_empty() -> None:
    text = """
    import relay

    @relay.relay(static_argnames="times")
    def from_nothing(x, times):
        for part in [x] * 0 if times is None else [x for _ in range(times)]:
            x = x + part
        return x

    @relay.relay(static_argnames="times")
    def from_none(x, times):
        parts = [] if times is None else [x]
        for part in parts:
            x = x + part
        return x

    @relay.data
    class Scale:
        factor: relay.Tensor[relay.Float64, ()]

        def by(self, x):
            return x * self.factor

    @relay.relay
    def applied(f, x):
        return f(x)

    @relay.relay
    def method(s: Scale, x):
        return applied(s.by, x) + wrong
    """
    assert said(text) == ["29 error: the name 'wrong' is not defined"]


def test_a_long_chain_of_calls() -> None:
    chain = "".join(f"@relay\ndef f{i}(x):\n    return {f'f{i - 1}(x)' if i else 'x'} * 2.0\n" for i in range(300))
    functions = relay.from_source(chain.replace("@relay\n", ""))
    with pytest.raises(relay.TypeCheckError, match="the calls of functions that begin with f299 are nested too deeply"):
        functions["f299"].type  # noqa: B018


# ---- programs that run


ROOT = Path(__file__).parents[2]


def test_loops_whose_rounds_an_argument_gives() -> None:
    text = """
    import numpy as np
    import relay

    @relay.relay
    def keyed(params, x, depth, config):
        layers = {}
        for i in range(depth):
            x = np.tanh(x @ params[f"w{i}"])
            layers[i] = last = x
        for i, _ in enumerate(range(config.rounds)):
            layers[f"second {i}"] = last
        return last, layers

    @relay.relay
    def mistaken(x, depth):
        layers = {}
        for i in range(depth):
            layers[i] = x + unknown
        return layers

    @relay.relay
    def computed(x: relay.Tensor[relay.Float, (3,)]):
        layers = {}
        for i in range(int(x[0])):
            layers[i] = x
        return layers  # keys of the run
    """
    assert said(text) == ["18 error: the name 'unknown' is not defined"]


RUNNING = sorted(
    path
    for pattern in (
        "tests/zoo/**/*.py",
        "tests/support/**/*programs*.py",
        "examples/**/*.py",
        "benchmarks/**/*.py",
        "ops/**/*.py",
    )
    for path in ROOT.glob(pattern)
)


def test_programs_that_run_have_no_errors_and_no_warnings() -> None:
    """The zoo, the examples and the benchmarks, all in one check."""
    files = Check([str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "support")])
    found = [d for path in RUNNING for d in files.text(path.read_text(encoding="utf-8"), str(path))]
    assert len(RUNNING) > 50
    assert [d.render(color=False) for d in found if d.severity != "note"] == []


def test_what_only_a_call_tells_is_no_error() -> None:
    text = f"""{HEAD}
    @relay
    def appended(xs, x, n):
        xs.append(x)
        for i in range(n):
            xs.append(x * i)
        xs.extend([x, x])
        xs.insert(0, x)
        xs.sort()
        xs.reverse()
        xs += [x]
        last = xs.pop()
        return [last] + xs, len(xs)

    @relay
    def emptied(xs):
        xs.clear()
        return xs

    @relay
    def in_its_dtype(f, x):
        return f.dtype(1.0) + x.dtype(2) * x

    @relay
    def reversed_things(xs, n, x):
        total = 0.0
        for v in reversed(xs):
            total = total + v
        for i in reversed(range(n)):
            x = x * i
        return total, x, list(reversed(xs))

    @relay
    def step(s):
        a, b = s
        return a + b, b

    @relay
    def changed_by_calls(state, f, model, p, xs, n):
        for _ in range(n):
            state = step(state)
        t = p["w"]
        while n > 0:
            t = f(t)
            n = n - 1
        for layer in model:
            t = relay.tanh(t @ layer["w"] + layer["b"])
        for x in xs:
            p = {{"w": p["w"] + x, "b": p["b"]}}
        return state, t, p

    @relay
    def looked_at(x, p):
        g = x @ p["w"]
        return g[..., :3]
    """
    assert said(text) == []


def test_integers_of_any_dtype_become_floats() -> None:
    """What is known to be an integer, and no more, is converted where it meets floats, as in a run."""
    text = f"""{HEAD}
    @relay
    def of_bits(x, k):
        low = k & 3
        return x.sum() * 0.1 + low * 0.1

    @relay
    def of_indices(x, places):
        return (x[places] * 0.5).sum() + (places // 2).sum() * 0.1 + relay.sqrt(places & 1).sum()
    """
    assert said(text) == []


def test_an_if_that_leaves_a_round_has_an_effect() -> None:
    text = f"""{HEAD}
    @relay
    def first(n, x):
        for a in (2, 3):
            y = x + a
            if y == 5:
                continue
            if y > n:
                return False
        return True

    @relay
    def second(n, x):
        for a in (2, 3):
            y = x + a
            if y == 1 or y == n:
                continue
            bad = True
            for _ in range(n):
                y = y * y
                if y == 7:
                    bad = False
                    break
            if bad:
                return False
        return True

    @relay
    def third(x):
        if x.sum() > 0:
            pass
        for _ in range(3):
            pass
        return x
    """
    assert [line.partition(": ")[2] for line in said(text)] == ["this `if` has no effect", "this loop has no effect"]


OVERLOADS = """
    import numpy as np
    from dataclasses import dataclass

    import relay as rl
    from relay import Float, Tensor, relay

    @dataclass
    class Particle:
        mass: Tensor[Float, ()]

        def energy(self, speed):
            return 0.5

    @rl.overload(Particle.energy)
    def energy(self, speed):
        return self.mass * (speed * speed).sum()

    @rl.overload(np.ndarray.dumps)
    def dumps(x, scale: int = 2):
        return x * 2.0

    @rl.overload(np.real_if_close)
    def bessel(x: Tensor[Float, (3,)]):
        return x + 1.0

    @relay
    def f(x: Tensor[Float, (3,)], p: Particle):
        return p.energy(x) + x.dumps() + np.real_if_close(x)
"""


def messages(text: str) -> list[str]:
    return [f"{d.severity}: {d.message}" for d in checked(text)]


def test_overloads_of_a_file_count_in_it_alone() -> None:
    assert messages(OVERLOADS) == []
    assert messages(OVERLOADS.replace("np.real_if_close(x)", "np.real_if_close(x) + rl.ones((4,))")) == [
        "error: the shapes (3,) and (4,) cannot be broadcast together"
    ]
    assert len(messages(OVERLOADS.replace("@rl.overload(np.real_if_close)\n", "@relay\n"))) == 1
    without = OVERLOADS.replace("@rl.overload(np.ndarray.dumps)\n", "@relay\n")
    assert messages(without) == ["error: a tensor has no attribute 'dumps'"]


def test_mistakes_in_overloads() -> None:
    taken = OVERLOADS.replace("np.real_if_close", "np.sinc")
    assert messages(taken) == ["error: np.sinc has a meaning in programs already"]
    assert messages(OVERLOADS.replace("x + 1.0\n", "x + rl.ones((4,))\n")) == [
        "error: the shapes (3,) and (4,) cannot be broadcast together"
    ]
