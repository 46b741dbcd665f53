"""Constructs that need more than one value to test: printing, static arguments, captured Python values, structures."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay
from relay import RelayFunction


@pytest.fixture(params=["interpreted", "compiled"])
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Calls a function in one of the executors."""

    def call(function: RelayFunction, *arguments: Any, **keywords: Any) -> Any:
        executor = function.interpret if request.param == "interpreted" else function
        return executor(*arguments, **keywords)

    return call


# ---- print


@relay.relay
def chatty(x, n):
    print("start", n, (x.shape, None, "a"), {"x": 1.5}, [True], sep="; ")
    total = x.sum()
    for i in range(n):
        total = total * 1.5
        print(f"{i}: {total:.3f} {i:>3}", end="|")
    if total > 1000.0:
        print("never")
    print()
    return total


def test_print(run: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    run(chatty, np.ones(2), 2)
    assert capsys.readouterr().out == "start; 2; ((2,), None, 'a'); {'x': 1.5}; [True]\n0: 3.000   0|1: 4.500   1|\n"


def test_print_once_under_grad(run: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    gradient, _ = run(relay.grad(chatty), np.ones(2), 1)
    np.testing.assert_allclose(gradient, [1.5, 1.5])
    assert capsys.readouterr().out == "start; 1; ((2,), None, 'a'); {'x': 1.5}; [True]\n0: 3.000   0|\n"


@relay.relay
def loud(x):
    print("loud", x)
    return x * 2.0


@relay.relay
def calls_loud(x):
    loud(x)
    return x


def test_print_in_a_call_without_use(run: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    run(calls_loud, np.float32(0.1))
    assert capsys.readouterr().out == "loud 0.1\n"


# ---- static arguments


@relay.relay(static_argnames=("n", "mode"))
def pooled(x, n, mode="sum", axes=(0,)):
    y = relay.zeros((n,), dtype=x.dtype) + x
    return y.sum(axis=axes) if mode == "sum" else y.max()


@relay.relay
def repeated(
    x,
    times=2,  # relay: static
):
    for part in [x] * 0 if times is None else [x for _ in range(times)]:
        x = x + part
    return x


def test_static_arguments(run: Callable[..., Any]) -> None:
    x = np.float64(2.0)
    assert float(run(pooled, x, 3)) == 6.0
    assert float(run(pooled, x, n=np.int64(4), mode="max")) == 2.0
    assert float(run(relay.grad(pooled), x, 5)[0]) == 5.0
    assert float(run(relay.grad(pooled), x, 5, mode="max")[0]) == 1.0


def test_static_arguments_must_be_known() -> None:
    with pytest.raises(relay.TypeMismatch, match="is static"):
        pooled(1.0, np.ones(2))
    with pytest.raises(relay.FrontendError, match="has no parameter 'm'"):
        relay.relay(static_argnames="m")(lambda x, n: x)


# ---- what is captured

SCALE = 2.0
WEIGHTS = np.ones(2)


@relay.relay
def uses_globals(x):
    return (x * SCALE * WEIGHTS).sum()


def test_captured_values_stay_until_reload(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    uses_globals.reload()
    assert float(run(uses_globals, 1.0)) == 4.0
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    WEIGHTS[0] = 3.0
    try:
        assert float(run(uses_globals, 1.0)) == 4.0
        assert float(run(uses_globals, np.ones(2, np.float64))) == 4.0
        uses_globals.reload()
        assert float(run(uses_globals, 1.0)) == 12.0
    finally:
        WEIGHTS[0] = 1.0
        uses_globals.reload()


# ---- signatures


@relay.relay
def every_kind(x, /, y=2.0, *, weights=WEIGHTS, pair=(1.0, 0.5), table={"a": 3.0}):  # noqa: B006
    return x * y * weights.sum() + pair[0] * pair[1] * table["a"]


def test_every_kind_of_parameter(run: Callable[..., Any]) -> None:
    assert float(run(every_kind, 1.0)) == 5.5
    assert float(run(every_kind, 1.0, y=3.0, pair=(2.0, 2.0))) == 18.0
    assert float(run(every_kind, 1.0, weights=np.ones(3), table={"a": 2.0})) == 7.0
    with pytest.raises(relay.TypeCheckError, match="no parameter 'x'"):
        run(every_kind, x=1.0)


def _logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    return wrapper


behind = _logged(loud)
partial = functools.partial(every_kind, y=3.0)
doubled = relay.relay(lambda x, k=2.0: x * k)


@relay.relay
def calls_behind(x):
    return behind(x)


@relay.relay
def calls_partial(x):
    return partial(x) + doubled(x) + doubled(x, k=3.0)


def test_functions_behind_decorators() -> None:
    with pytest.raises(relay.FrontendError, match="inside of another decorator"):
        calls_behind(1.0)


def test_partial_and_lambda(run: Callable[..., Any]) -> None:
    assert float(run(calls_partial, 1.0)) == 7.5 + 5.0


# ---- structures


class Pair(NamedTuple):
    first: Any
    second: Any


@relay.relay
def rebuilt(pair, table, items):
    return Pair(pair.second, {**table, "more": pair.first}), [*items, items[0]], items


def test_results_have_the_structure_of_their_values(run: Callable[..., Any]) -> None:
    pair, _, items = run(rebuilt, Pair(1.0, 2.0), {"a": 3.0}, [4.0, 5.0])
    assert isinstance(pair, Pair) and list(pair.second) == ["a", "more"]
    assert isinstance(items, list) and [float(i) for i in items] == [4.0, 5.0]


@relay.relay
def squares(params):
    return (params["w"] ** 2).sum() + params["rest"].first ** 2


def test_gradients_have_the_structure_of_the_arguments(run: Callable[..., Any]) -> None:
    params = {"w": np.arange(3.0), "rest": Pair(np.float64(2.0), 3)}
    gradient = run(relay.grad(squares), params)
    np.testing.assert_allclose(gradient["w"], [0.0, 2.0, 4.0])
    assert float(gradient["rest"].first) == 4.0 and gradient["rest"].second is None


def test_other_keys_are_refused() -> None:
    with pytest.raises(relay.RelayError, match=r"members of enumerations and tuples of these, found 1\.5"):
        squares({1.5: 2.0})
    with pytest.raises(relay.RelayError, match="the dict has no key 'w'"):
        squares({1: 2.0})


# ---- methods of dataclasses


@dataclasses.dataclass
class Undecorated:
    weight: Any

    def forward(self, x):
        return x @ self.weight

    def __call__(self, x):
        return x @ self.weight


def test_methods_that_are_not_decorated_are_read() -> None:
    @relay.relay
    def forward(layer, x):
        return layer.forward(x) + layer(x)

    assert_modes_agree(forward, Undecorated(np.eye(2)), np.ones(2), expected=np.full(2, 2.0))


# ---- assertions that never hold


@relay.relay
def activation(x, kind):
    if kind == "tanh":
        return relay.tanh(x)
    raise AssertionError(f"there is no {kind}")


@relay.relay
def signed(x):
    if x > 0.0:
        return 1
    elif x < 0.0:
        return -1
    assert False, "zero has no sign"  # noqa: B011


def test_a_path_may_end_in_an_assertion(run: Callable[..., Any]) -> None:
    assert float(run(activation, 0.0, "tanh")) == 0.0
    assert [int(run(signed, x)) for x in (2.0, -2.0)] == [1, -1]
    with pytest.raises(relay.ExecutionError, match="there is no sine"):
        run(activation, 0.0, "sine")
    with pytest.raises(relay.ExecutionError, match="zero has no sign"):
        run(signed, 0.0)


def test_a_number_that_its_type_does_not_hold_is_found_late() -> None:
    @relay.relay
    def counted(x, i):
        while i < 4000000000:
            i = i + 1
        return x

    with pytest.raises(relay.TypeMismatch, match="4000000000 is out of range for int32"):
        counted(1.0, np.int32(0))
