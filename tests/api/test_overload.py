"""`relay.overload`: users say what Python callables mean in programs."""

from __future__ import annotations

import colorsys
import ctypes
import dataclasses
import statistics
import sys
import threading

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay
from relay import Float64, RegistrationError, RelayError, Tensor, TypeCheckError
from relay.typecheck.elaboration.library import overloads

VECTOR = np.array([1.0, 2.0, 4.0])


@relay.overload(statistics.harmonic_mean)
def harmonic_mean(data):
    return 1.0 / np.mean(1.0 / data)


@relay
def doubled_mean(x):
    return statistics.harmonic_mean(x) * 2.0


def test_a_function_of_another_library() -> None:
    assert_modes_agree(doubled_mean, VECTOR, expected=24.0 / 7.0)
    assert relay.check_gradient(doubled_mean, VECTOR) < 1e-6
    assert float(harmonic_mean(VECTOR)) == pytest.approx(12.0 / 7.0)  # it is a function of its own, too
    assert statistics.harmonic_mean([1.0, 4.0]) == pytest.approx(1.6)  # and Python's calls stay what they are


@dataclasses.dataclass
class Particle:
    mass: float
    speed: float

    def energy(self, scale: float = 1.0) -> float:
        return self.mass * self.speed**2 / 2 * scale


@relay.overload(Particle.energy)
def energy(self, scale=1.0):
    return self.mass * self.speed * self.speed / 2.0 * scale


@relay.overload(np.ndarray.tobytes)
def tobytes(
    x,
    order="C",  # relay: static
):
    return x * 2.0 if order == "C" else x


@relay.overload(np.sum)
def total(p: Particle):
    return p.mass + p.speed


@relay
def of_methods(p, x):
    sums = np.sum(p) + np.sum(x, initial=0.0)
    return p.energy(scale=2.0) + Particle.energy(p), x.tobytes(), x.tobytes(order="F"), sums


def test_methods_and_classes_of_users() -> None:
    x = np.float32([1, 2])
    assert_modes_agree(of_methods, Particle(2.0, 3.0), x, expected=(27.0, x * 2, x, np.float32(8)))
    assert Particle(2.0, 3.0).energy() == 9.0


@dataclasses.dataclass
class Grid:
    """Overloads of each kind of member: subscripts, operators, a property, what `len`, `in` and `if` call."""

    cells: np.ndarray
    scale: np.ndarray

    def __getitem__(self, i):
        return self.cells[i] * self.scale

    def __setitem__(self, i, v):
        self.cells[i] = v

    def __len__(self):
        return len(self.cells)

    def __bool__(self):
        return bool(self.scale > 0)

    def __contains__(self, v):
        return v in self.cells

    def __add__(self, v):
        return Grid(self.cells + v, self.scale)

    def __eq__(self, other):
        return bool(self.scale == other.scale)

    @property
    def total(self):
        return self.cells.sum()


@dataclasses.dataclass
class Region:
    low: np.ndarray
    count: int


@relay.overload(Grid.__getitem__)
def grid_item(self: Grid, i):
    return self.cells[i] * self.scale


@relay.overload(Grid.__setitem__)
def grid_with_item(self: Grid, i, v):
    return Grid(self.cells.at[i].set(v), self.scale)


@relay.overload(Grid.__len__)
def grid_length(self: Grid):
    return len(self.cells)


@relay.overload(Grid.__bool__)
def grid_truth(self: Grid):
    return self.scale > 0.0


@relay.overload(Grid.__contains__)
def grid_has(self: Grid, v):
    return v in self.cells


@relay.overload(Grid.__add__)
def grid_plus(self: Grid, v):
    return Grid(self.cells + v, self.scale)


@relay.overload(Grid.__eq__)
def grid_equals(self: Grid, other: Grid):
    return self.scale == other.scale


@relay.overload(Grid.total)
def grid_total(self: Grid):
    return self.cells.sum()


@relay.overload(np.ndarray.__getitem__)
def part(x, region: Region):
    return relay.dynamic_slice(x, region.low[None], (2,))


@relay.overload(np.ndarray.__setitem__)
def with_part(x, region: Region, v):
    return relay.dynamic_update_slice(x, v, region.low[None])


@relay.overload(np.ndarray.__matmul__)
def moments(x, region: Region):
    return x[region] * 100.0


@relay.overload(np.ndarray.flat)
def flat(x):
    return x.reshape(-1)


@relay
def of_members(g):
    first = g[1] * g.total + (g + 2.0)[-1]
    g[0] = first
    return g[0] * float(len(g)) if g and first in g.cells else 0.0, g == Grid(g.cells, g.scale * 2.0), g != g


@relay
def of_regions(x, low):
    y = x.flat.copy()
    y[Region(low, 2)] = y[Region(low + 1, 2)] * 10.0
    return y, y @ Region(low, 2), x[0] @ x[1]


def test_subscripts_attributes_and_operators() -> None:
    cells, scale = np.array([1.0, 3.0]), np.float64(2.0)
    first = 6.0 * 4.0 + 5.0 * 2.0
    assert_modes_agree(of_members, Grid(cells, scale), expected=(first * scale * 2.0, False, False))
    assert relay.check_gradient(relay(lambda g: of_members(g)[0]), Grid(cells, scale)) < 1e-6
    x = np.arange(6.0).reshape(2, 3)
    expected = np.array([0.0, 20.0, 30.0, 3.0, 4.0, 5.0])
    assert_modes_agree(of_regions, x, np.int32(1), expected=(expected, expected[1:3] * 100.0, np.float64(14.0)))


@dataclasses.dataclass
class Plain:
    """What Python's syntax calls is read from the class; nothing stands in for it."""

    x: np.ndarray

    def __getitem__(self, i):
        return self.x[i] * 2.0

    def __len__(self):
        return 7

    def __bool__(self):
        return False

    def __eq__(self, other):
        return False


@relay
def of_plain(p):
    return p[1], len(p), 1.0 if p else 2.0, p == p, p != p


def test_methods_of_the_class_count() -> None:
    assert_modes_agree(of_plain, Plain(np.ones(3)), expected=(2.0, 7, 2.0, False, True))


@dataclasses.dataclass
class Bare:
    x: np.ndarray


@pytest.mark.parametrize(
    ("value", "function", "message"),
    [
        (Bare, lambda p: p[0], "a Bare cannot be indexed"),
        (Bare, lambda p: len(p), "a Bare has no length"),
        (Grid, lambda g: g[1:], r"Grid.__getitem__ takes no slices"),
    ],
)
def test_a_class_without_the_method(value, function, message) -> None:
    with pytest.raises(TypeCheckError, match=message):
        relay(function)(value(np.ones(3)) if value is not Grid else Grid(np.ones(3), np.ones(())))


@relay.overload(colorsys.rgb_to_yiq)
def of_vector(color: Tensor[Float64, (3,)]):
    return color.sum()


@relay.overload(colorsys.rgb_to_yiq)
def of_number(r: float, g: float = 1.0, b: float = 1.0):
    return r * g - b


@relay.overload(colorsys.rgb_to_yiq)
def of_pair(pair: tuple[float, float]):
    return pair[0]


@relay
def color(x):
    return colorsys.rgb_to_yiq(x)


@relay
def colors(x):
    return colorsys.rgb_to_yiq(x, b=3.0)


def test_kinds_of_arguments() -> None:
    assert float(color(VECTOR)) == 7.0
    assert float(color((5.0, 2.0))) == 5.0
    assert float(colors(2.0)) == -1.0
    with pytest.raises(TypeCheckError) as raised:
        color(np.ones((2, 2)))
    assert "return colorsys.rgb_to_yiq(x)\n" in str(raised.value)
    assert "no overload of colorsys.rgb_to_yiq takes (Tensor[float64, (2, 2)])" in str(raised.value)
    assert "(color: Tensor[float64, (3,)]) or (r: Tensor[float32, ()]," in str(raised.value)


@pytest.mark.skipif(sys.platform != "linux", reason="the name of the C library")
def test_a_function_of_a_library_in_c() -> None:
    square_root = ctypes.CDLL("libm.so.6").sqrt

    @relay.overload(square_root)
    def _(x):
        return np.sqrt(x)

    @relay
    def f(x):
        return square_root(x) + 1.0

    assert float(f.interpret(4.0)) == 3.0
    assert float(relay.grad(f).interpret(4.0)) == 0.25


def test_what_is_refused() -> None:
    with pytest.raises(RegistrationError, match=r"np\.cumsum has a meaning in programs already"):

        @relay.overload(np.cumsum)
        def f(x):
            return x

    with pytest.raises(RegistrationError, match=r"np\.hypot has a meaning"):

        @relay.overload(np.hypot)
        def g(x, y):
            return x + y

    with pytest.raises(RegistrationError, match=r"ndarray\.mean has a meaning"):

        @relay.overload(np.ndarray.mean)
        def h(x):
            return x

    with pytest.raises(RegistrationError, match=r"has an overload for these arguments already\n") as raised:

        @relay.overload(colorsys.rgb_to_yiq)
        def another(pair: tuple[float, float]):
            return pair[1]

    assert "it is here" in str(raised.value)
    with pytest.raises(RegistrationError, match="overload takes a callable, found 3"):
        relay.overload(3)  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match="color is a function of the language already"):
        relay.overload(color)


def test_an_error_is_where_the_user_wrote_it() -> None:
    @relay.overload(statistics.pstdev)
    def mean(x):
        return x.nothing

    @relay
    def f(x):
        return statistics.pstdev(x)

    with pytest.raises(RelayError, match="has no attribute 'nothing'") as raised:
        f.interpret(VECTOR)
    assert "return x.nothing" in str(raised.value) and "in this call of mean" in str(raised.value)


def test_a_definition_is_replaced_by_the_same_one() -> None:
    """As when a cell of a notebook is run again."""
    for factor in (2.0, 3.0):

        @relay.overload(statistics.median_low)
        def median(x):
            return x * factor  # noqa: B023  (it is called in this round)

        @relay
        def f(x):
            return statistics.median_low(x)

        assert float(f.interpret(1.0)) == factor


def test_threads_register_at_once() -> None:
    functions = [eval(f"lambda x: x + {n}.0") for n in range(40)]
    meaning = relay.from_source("def f(x):\n    return -x\n")

    def register(part: list[object]) -> None:
        for function in part:
            relay.overload(function)(meaning)  # type: ignore[arg-type]

    threads = [threading.Thread(target=register, args=(functions[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len(overloads.find(function)) == 1 for function in functions)


def test_the_table() -> None:
    table = relay.overload.table()
    rows = {row.name: row for row in table}
    assert rows["np.hstack"].place == "relay.library.arrays.hstack"
    assert "np.interp(x, xp, fp, left, right, period)  relay.library.statistics.interp" in str(table)
    assert "colorsys.rgb_to_yiq(pair: (Tensor[float32, ()], Tensor[float32, ()]))" in str(table)
    assert str(rows["np.logaddexp"]) == "np.logaddexp(x, y)  relay.logaddexp"
    assert rows["np.add"].place == rows["+"].place == "relay.add" and rows["math.tanh"].place == "relay.tanh"
    assert rows["@"].place == "relay.matmul" and "math.remainder" not in rows
    assert rows["np.ndarray.T"].is_rule and rows["relay.Ref.value"].is_rule and rows["list.__getitem__"].is_rule
    assert rows[f"{__name__}.Grid.total"].place == f"{__name__}.grid_total"
    assert [row.is_rule for row in table if row.name == "np.ndarray.__getitem__"] == [False, True]
    assert len({str(row) for row in table}) == len(table)
    assert len(table) == len(list(table)) and table[0].name in rows
