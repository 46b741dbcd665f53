"""None and `()` are two values, of two types, wherever they come from and go to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay as rl
from relay import TypeMismatch, relay

pytestmark = pytest.mark.usefixtures("low_effort")


@rl.data
class Labeled:
    weight: float
    count: int
    nothing: None


@relay
def nothing(x):
    return None


@relay
def loss(x, n, t):
    return x * x


@relay
def of_labeled(d: Labeled):
    return d.weight * 2.0


@relay
def told(v):
    return v is None, v == None, v != (), None in (v, 1.0), () in [v], isinstance(v, tuple)  # noqa: E711


@relay
def matched(v):
    match v:
        case ():
            return 1
        case None:
            return 2
        case _:
            return 3


@relay
def matched_none_first(v):
    match v:
        case None:
            return 2
        case ():
            return 1
        case _:
            return 3


@relay
def structures(x):
    printed = print("")
    appended = []
    for _ in range(2):
        appended.append(None)
    return {"a": None, "b": (), "c": x.shape, "d": nothing(x)}, [None, ()], printed, appended, appended[0] is None


@relay
def gradients(x):
    data = Labeled(x, 1, None)
    whole = rl.grad(loss)(x, 3, ())
    of_data = rl.grad(of_labeled)(data)
    return whole, whole[1] is None, whole[2] is None, of_data, of_data.count is None


@relay
def mapped(x):
    return rl.tree.map(lambda a, b: a + b, {"a": None, "b": (), "x": x}, {"a": None, "b": (), "x": x})


@relay
def chosen(x, y=None):
    return x if y is None else 2 * x


@relay
def kept(x: float, y: None, z: tuple[()]) -> None:
    return y


@relay
def both(x):
    y = None
    if x > 0.0:
        y = ()
    return y


@relay
def content(r):
    return r.value is None, r.value


X = np.float32(3)


def plain(value: Any) -> Any:
    """A result with Python's numbers."""
    if isinstance(value, tuple | list):
        return type(value)(map(plain, value))
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return value if value is None or isinstance(value, Labeled) else np.asarray(value).item()


@pytest.mark.parametrize(
    ("value", "answers", "case"),
    [
        (None, (True, True, True, True, False, False), 2),
        ((), (False, False, False, False, True, True), 1),
        (X, (False, False, True, False, False, False), 3),
        ((X,), (False, False, True, False, False, True), 3),
    ],
)
def test_they_are_told_apart(value: Any, answers: tuple[bool, ...], case: int) -> None:
    assert plain(assert_modes_agree(told, value)) == answers
    for function in (matched, matched_none_first):
        assert plain(assert_modes_agree(function, value)) == case


def test_they_come_back_as_what_they_are() -> None:
    assert plain(assert_modes_agree(structures, X)) == (
        {"a": None, "b": (), "c": (), "d": None},
        [None, ()],
        None,
        [None, None],
        True,
    )
    assert plain(assert_modes_agree(mapped, X)) == {"a": None, "b": (), "x": 6.0}
    for value, is_none in ((None, True), ((), False)):
        assert plain(assert_modes_agree(content, rl.Ref(value))) == (is_none, value)
    assert plain(
        [assert_modes_agree(chosen, X), assert_modes_agree(chosen, X, None), assert_modes_agree(chosen, X, ())]
    ) == [3.0, 3.0, 6.0]


def test_gradients_have_none_where_there_is_no_gradient() -> None:
    whole, first, second, of_data, is_none = assert_modes_agree(gradients, X)
    assert plain((whole, first, second, is_none)) == ((6.0, None, ()), True, False, True)
    assert (plain(of_data.weight), of_data.count, of_data.nothing) == (2.0, None, None)
    assert assert_modes_agree(rl.grad(of_labeled), Labeled(1.0, 2, None)).count is None


def test_their_types_print_and_differ() -> None:
    assert str(kept.type) == "fn(Tensor[float32, ()], None, ()) -> None"
    assert kept(1.0, None, ()) is None
    with pytest.raises(TypeMismatch, match=r"argument y of kept must be None, found \(\)"):
        kept(1.0, (), ())
    with pytest.raises(TypeMismatch, match=r"argument z of kept must be \(\), found None"):
        kept(1.0, None, None)
    assert assert_modes_agree(both, X) == ()
    assert assert_modes_agree(both, -X) is None
