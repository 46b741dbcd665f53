"""Random arguments for a function: planted mistakes are found, and shown by the smallest arguments."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import hypothesis.strategies as st
import numpy as np
import pytest

import relay
from relay import Any, Float, Float64, Tensor, dims
from relay.errors import FrontendError, TypeCheckError
from relay.operator.definition import Operator
from relay.testing import Disagreement, check
from relay.testing.arguments import without_an_index

n, m = dims("n m")


@pytest.fixture
def wrong_square() -> Iterator[Operator]:
    """x x, which is x + x in compiled code where x is over 2."""
    from tvm import te, tirx

    @relay.register_op(
        relation=relay.Relation("T:float -> T", lambda shape: shape),
        pattern=relay.Pattern.ELEMENTWISE,
        compute=lambda x: te.compute(
            x.shape, lambda *i: tirx.if_then_else(x(*i) > tirx.const(2.0, x.dtype), x(*i) + x(*i), x(*i) * x(*i))
        ),
        gradient=lambda x, out, dout: dout * x * 2.0,
    )
    def wrong_square(x: Tensor) -> Tensor:
        """x x. x: (T, s) -> (T, s)."""
        return x * x

    yield wrong_square
    del relay.get_env()._operators["wrong_square"]


def written(parameters: str, body: str, **names: object) -> relay.RelayFunction:
    """A function of this text."""
    source = f"def f({parameters}):\n    return {body}\n"
    found = relay.from_source(source, {"relay": relay, "Tensor": Tensor, "Float64": Float64, "n": n, "m": m, **names})
    assert isinstance(found, relay.RelayFunction)
    return found


def test_a_wrong_operator_is_found_and_its_arguments_shrink(
    wrong_square: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAY_VERIFY", "0")  # which would find it, too
    f = written("x: Tensor[Float64, (n,)], k: int", "(op(x + 1.0) + 1.0).sum(), k", op=wrong_square)
    with pytest.raises(Disagreement, match="compiled at level 0 is not as interpreted") as caught:
        check(f, levels=(0,))
    x, k = caught.value.arguments
    assert x.tolist() == [2.0] and k == 0  # 1 + 1 is not over 2
    assert caught.value.call == "f(np.array([2.0], np.float64), np.int32(0))"
    assert str(caught.value).startswith(caught.value.call)
    again = eval(caught.value.call, {"np": np, "f": f.interpret})
    assert float(again[0]) == 10.0  # interpreted


def test_a_gradient_of_its_own_is_compared_with_differences() -> None:
    f = written("x", "relay.maximum(x, 0.0).sum()")

    @f.def_gradient
    def twice(saved, seed):
        (x,) = saved
        return relay.where(x > 0.0, seed * 2.0, 0.0)

    with pytest.raises(Disagreement, match="finite differences give 1") as caught:
        check(f, Tensor[Float64, (n,)], runs=5, levels=(0,))
    assert caught.value.arguments[0].shape == (1,)
    assert check(f, Tensor[Float64, (n,)], runs=5, levels=(0,), differences=False) == 5


def test_kinks_and_ties_are_no_mistakes() -> None:
    f = written("x: Tensor[Float64, (n,)]", "relay.maximum(x, 0.0).max() + x.sum() * abs(x).sum()")
    assert check(f, runs=5, levels=()) > 2


def test_arguments_are_drawn_from_types_and_strategies() -> None:
    drawn = []

    def pair(k: int) -> tuple[np.float32, int]:
        drawn.append(k)
        return np.float32(k), k

    f = written("x, w, pair", "(x * w).sum(axis=1) * pair[0]")
    types = Tensor[Float, (n, m)], Tensor[Float, (m,)], st.integers(1, 3).map(pair)
    assert check(f, *types, runs=3, levels=(0,), gradient=False) == 3
    assert set(drawn) <= {1, 2, 3} and drawn


def test_inferred_types_have_sizes_that_fit() -> None:
    assert check(written("x, w", "relay.sum(x * w, axis=0)"), runs=6, levels=(), gradient=False) > 2


def test_errors_of_both_are_no_disagreement() -> None:
    f = written("x: Tensor[Float64, (n,)], i: int", "x[i]")
    assert check(f, runs=10, levels=(0,), gradient=False) > 3


@pytest.mark.parametrize("type_", [Tensor[Float, (Any, n - 1)], tuple[Tensor[Float, (n,)], float], list[float]])
def test_types_of_which_arguments_are_drawn(type_: object) -> None:
    assert check(written("x", "x"), type_, runs=2, levels=(), gradient=False) == 2


def test_what_cannot_be_checked_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeCheckError, match="cannot tell of which type p is"):
        check(written("p", "p[0]"))
    with pytest.raises(TypeCheckError, match="found no arguments that f takes") as caught:
        check(written("x", "x[7, 7, 7, 7]"), Tensor[Float, (n,)], runs=2)
    assert "refused" in caught.value.notes[0]
    with pytest.raises(TypeCheckError, match=r"draws arrays, numbers, tuples and lists of them; r: Ref"):
        check(written("r", "r.value"), relay.Ref[Tensor[Float, ()]])
    with pytest.raises(FrontendError, match="takes a decorated function, found function"):
        check(lambda x: x)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ModuleNotFoundError, match=r"^relay.testing.check needs hypothesis: pip install"):
        check(written("x", "x"))


def test_sizes_that_a_type_fixes_stay_in_smaller_arguments() -> None:
    given = np.arange(6.0).reshape(2, 3)
    found = list(without_an_index([Tensor[Float64, (n, 3)]], (given,)))
    assert [x.tolist() for (x,) in found] == [[[3.0, 4.0, 5.0]], [[0.0, 1.0, 2.0]]]
