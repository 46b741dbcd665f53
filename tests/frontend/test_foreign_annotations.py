"""Annotations of Python's typing and of other libraries: what they say is checked, and what says nothing accepted."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple, NewType, Optional, Protocol, TypedDict

import numpy as np
import numpy.typing as npt
import pytest
from agreement import assert_modes_agree

import relay as rl
from relay import FrontendError, RelayError, RelayWarning, TypeCheckError, relay


def test_annotations_of_arrays_functions_and_structures() -> None:
    @relay
    def f(
        x: npt.NDArray[np.float64],
        d: dict[str, Any],
        items: list[np.ndarray],
        g: Callable[[np.ndarray], np.ndarray],
        y: Optional[np.ndarray] = None,  # noqa: UP045
        z: np.ndarray | None = None,
    ) -> "np.ndarray":  # noqa: UP037
        total: np.ndarray = x * d["a"] + items[0]
        assert y is None and z is None
        return g(total)

    found = assert_modes_agree(f, np.ones(2), {"a": 2.0}, [np.ones(2)], np.sin, rtol=1e-12)
    np.testing.assert_allclose(found, np.sin([3.0, 3.0]))


@dataclasses.dataclass
class Chain:
    weight: float
    rest: "Optional[Chain]" = None  # noqa: UP037, UP045


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_float_is_of_any_dtype_of_floats(dtype: type) -> None:
    @relay
    def scaled(x, rate: float) -> float:
        total: float = 0.0
        for i in range(len(x)):
            total += x[i] * rate
        return total

    @relay
    def f(x, rate: float, pair: tuple[float, float], rates: list[float], chain: Chain, start: float = 0.5):
        state = Pair(scaled(x, rate), start)
        return x * state.first + state.second + pair[0] * sum(rates) * pair[1] + chain.weight

    x = np.arange(3.0, dtype=dtype)
    for number in (float, dtype):
        a, b = number(2.0), number(3.0)
        found = assert_modes_agree(f, x, a, (a, b), [a, b, a], Chain(a, Chain(b)), rtol=1e-6)
        assert np.asarray(found).dtype == dtype
        np.testing.assert_allclose(found, x * 6.0 + 0.5 + 2.0 * 7.0 * 3.0 + 2.0, rtol=1e-6)
    slope = rl.grad(relay(lambda x, *rest: f(x, *rest).sum()), wrt=0)(x, 2.0, (2.0, 3.0), [2.0], Chain(1.0))
    assert slope.dtype == dtype
    with pytest.raises(TypeCheckError, match="argument rate of f must be"):
        f(x, x, (2.0, 3.0), [2.0], Chain(1.0))
    with pytest.raises(TypeCheckError, match="argument rate of f must be"):
        f(x, np.int32(2), (2.0, 3.0), [2.0], Chain(1.0))


def test_a_float_alone_is_a_float32() -> None:
    @relay
    def doubled(x: float):
        return x * 2.0

    assert str(doubled.type) == "fn(Tensor[float32, ()]) -> Tensor[float32, ()]"
    assert [doubled(x).dtype for x in (1.0, np.float32(1.0), np.float64(1.0))] == [np.float32, np.float32, np.float64]


def test_what_means_nothing_stays_an_error() -> None:
    with pytest.raises(FrontendError, match="is not a type that Relay has"):

        @relay
        def f(x: npt):
            return x


class Forward(Protocol):
    def forward(self, x: Any) -> Any: ...


class Settings(TypedDict):
    scale: float


class Pair(NamedTuple):
    first: float
    second: float


class Model:
    def __init__(self) -> None:
        self.w = 2.0

    def forward(self: typing.Self, x: np.ndarray | float) -> np.ndarray:
        return x * self.w


Index = NewType("Index", int)
Vector: typing.TypeAlias = "npt.NDArray[np.float64]"
T = typing.TypeVar("T")
X = np.ones(2)

ACCEPTED: tuple[tuple[str, Any], ...] = (
    *((text, X) for text in ("np.ndarray", "npt.NDArray[np.float64]", "npt.ArrayLike", "Vector", "T", "'np.ndarray'")),
    *((text, X) for text in ("Any", "object", "np.ndarray | float", "typing.Union[np.ndarray, int]")),
    *((text, X) for text in ("typing.Annotated[np.ndarray, 'a note']", "typing.Final", "Optional[np.ndarray]")),
    *((text, 2.0) for text in ("float | int", "Optional[float]", "float | None", "typing.Final[float]", "np.floating")),
    *((text, 2.0) for text in ("typing.Annotated[float, 'seconds']", "typing.Hashable", "float")),
    *((text, (1.0, 2.0)) for text in ("tuple", "tuple[float, ...]", "typing.Tuple[float, float]")),
    *((text, [1.0, 2.0]) for text in ("list", "list[float]", "typing.List[float]", "typing.Sequence[float]")),
    *((text, [1.0, 2.0]) for text in ("typing.Iterable[float]", "typing.Collection[float]")),
    *((text, {"scale": 2.0}) for text in ("dict", "dict[str, Any]", "typing.Mapping[str, float]", "Settings")),
    *(("Index", 3), ("int", 3), ("bool", True), ("str", "mean"), ("Pair", Pair(1.0, 2.0))),
    *((text, Model()) for text in ("Model", "Forward")),
    *((text, np.sin) for text in ("Callable[[float], float]", "Callable[..., Any]")),
    *(("typing.Literal['mean', 'sum']", "sum"), ("typing.Literal[1, 2]", 2)),
)


def test_what_is_accepted() -> None:
    for text, value in ACCEPTED:
        function = rl.from_source(f"def f(x: {text}, y: float = 1.0) -> float:\n    return y * 2.0\n", globals())
        assert function.interpret(value) == 2.0, text


REFUSED: tuple[tuple[str, Any, str], ...] = (
    ("int", 2.5, "argument x of f must be"),
    ("float", X, "argument x of f must be"),
    ("typing.Annotated[float, 'seconds']", X, "argument x of f must be"),
    ("typing.Final[int]", 2.5, "argument x of f must be"),
    ("Index", X, "argument x of f must be"),
    ("typing.Literal['mean', 'sum']", "max", "x must be one of 'mean', 'sum'"),
    ("'typing.Literal[1, 2]'", 3, "x must be one of 1, 2"),
)


def test_what_is_refused() -> None:
    for text, value, message in REFUSED:
        function = rl.from_source(f"def f(x: {text}, y: float = 1.0) -> float:\n    return y * 2.0\n", globals())
        for run in (function, function.interpret):
            with pytest.raises(RelayError, match=message):
                run(value)


def test_names_that_only_type_checkers_import() -> None:
    for text in ("Unheard", "unheard.of.Thing", "Unheard[int]"):
        with pytest.warns(RelayWarning, match="is ignored: the name [Uu]nheard is not defined"):
            function = rl.from_source(f"def f(x: {text}):\n    return x\n", {})
        assert function(2.0) == 2.0
    with pytest.raises(FrontendError, match="the name `Vectr` is not defined here"):
        rl.from_source("def f(x: Vectr):\n    return x\n", {"Vector": Vector})


class _Arrays(type):
    def __getitem__(cls, item: object) -> object:
        return cls


JAXTYPING = types.ModuleType("jaxtyping")
"""What Relay sees of jaxtyping: classes with names, of a module of its name."""

for _name in ("Float", "Float32", "Int", "Bool", "Num", "Shaped"):
    setattr(JAXTYPING, _name, _Arrays(_name, (), {"__module__": "jaxtyping"}))

ATTENTION = """
def attention(q: Float[Array, "*batch n d"], k: Float[Array, "*batch m d"]) -> Float[Array, "*batch n m"]:
    scores: Float[Array, "*batch n m"] = q @ np.swapaxes(k, -1, -2)
    return scores

def shifted(x: Float[Array, "n"], y: Num[Array, "n+1"], z: Shaped[Array, "_ 3"], s: Float[Array, ""],
            i: Int[Array, "n"], w: Float[Array, "... 3"]):
    return x + y[1:] + z.sum() * s + i + w.sum()

def single(x: Float32[Array, "rows=2 cols"], m: Bool[Array, "rows=2"]):
    return x[m].sum()

def wrong(x: Float[Array, "n d"]):
    y: Float[Array, "n d"] = x.T
    return y
"""


def test_shapes_of_jaxtyping() -> None:
    names = {"np": np, "Array": np.ndarray, **vars(JAXTYPING)}
    functions = rl.from_source(ATTENTION, names)
    attention = functions["attention"]
    assert assert_modes_agree(attention, np.ones((2, 3, 4)), np.ones((2, 5, 4))).shape == (2, 3, 5)
    assert assert_modes_agree(attention, np.ones((3, 4)), np.ones((5, 4))).shape == (3, 5)
    assert "where float is float" in str(attention.type)
    good = [np.ones(2), np.ones(3), np.ones((4, 3)), 2.0, np.arange(2), np.ones((2, 2, 3))]
    assert_modes_agree(functions["shifted"], *good, expected=[38.0, 39.0])
    for place, value in (
        (1, np.ones(2)),
        (2, np.ones((4, 2))),
        (4, np.arange(3)),
        (4, np.ones(2)),
        (5, np.ones((2, 2))),
    ):
        with pytest.raises(RelayError, match=f"argument {'xyzsiw'[place]} of shifted must be"):
            functions["shifted"](*good[:place], value, *good[place + 1 :])
    assert functions["single"](np.ones((2, 3), np.float32), np.array([True, False])) == 3.0
    for x in (np.ones((2, 3)), np.ones((3, 3), np.float32)):
        with pytest.raises(RelayError, match="argument x of single must be"):
            functions["single"](x, np.array([True, False]))
    with pytest.raises(RelayError, match="y must be"):
        functions["wrong"](np.ones((2, 3)))
    for text in ("n @", "n n()", "n *n"):
        with pytest.raises(FrontendError, match=r"is not a dimension|in one place, and several in another"):
            rl.from_source(f'def f(x: Float[Array, "{text}"]):\n    return x\n', names)
