"""Parameters that may be None, and arguments that are no values of the run: an annotation is never trusted."""

from collections.abc import Callable
from typing import Optional, Union

import numpy as np
import pytest

import relay as rl
from relay import Float, Fn, Ref, Tensor, Tree, TypeMismatch, dims, relay
from relay.api.static_check import check_text

(n,) = dims("n")
Row = Tensor[Float, (n,)]
ONES = np.ones(3, np.float32)


@relay
def layer(
    x: Row,
    bias: Tensor[Float, (n,)] | None = None,
    f: Optional[Fn[[float], float]] = None,  # noqa: UP045
    scale: Union[None, float] = None,  # noqa: RUF036, UP007
    tree: "Tree[float] | None" = None,
    cell: Ref[float] | None = None,
):
    if bias is not None:
        x = x + bias
    if f is not None:
        x = x * f(2.0)
    return x if scale is None else x * scale


@relay
def thrice(v):
    return v * 3.0


def test_what_is_not_given_is_none() -> None:
    assert np.array_equal(layer(ONES), ONES)
    assert np.array_equal(layer(ONES, ONES), 2 * ONES)
    assert np.array_equal(layer(ONES, None, thrice), 6 * ONES)
    assert np.array_equal(layer(ONES, scale=0.5, bias=None), 0.5 * ONES)
    (gradient, *_) = rl.grad(lambda_sum, wrt=("x", "bias"))(ONES, ONES)
    assert np.array_equal(gradient, ONES)


@relay
def lambda_sum(x: Row, bias: Row | None = None):
    return layer(x, bias).sum()


@relay
def takes_row(x: Row):
    return 1.0


@relay
def takes_function(f: Fn[[float], float]):
    return f(1.0)


@relay
def takes_number(x: float, k: int = 2):
    return x


@relay
def gives_none(x: Row):
    return takes_row(None)


@relay
def gives_function(x: float):
    return takes_number(thrice)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: takes_row(None), r"argument x of takes_row must be Tensor\[float32, \(n,\)\], found None"),
        (lambda: takes_row("one"), "argument x of takes_row must be .*, found the string 'one'"),
        (lambda: takes_number(thrice), r"argument x of takes_number must be Tensor\[float32, \(\)\], found a function"),
        (lambda: takes_number(1.0, None), "argument k of takes_number must be .*, found None"),
        (lambda: takes_function(None), "argument f of takes_function must be fn.*, found None"),
        (lambda: layer(ONES, "bias"), "argument bias of layer must be .*, found the string 'bias'"),
        (lambda: gives_none(ONES), "argument x of takes_row must be .*, found None"),
        (lambda: gives_function(1.0), "argument x of takes_number must be .*, found a function"),
    ],
)
def test_an_annotation_is_not_trusted(call: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeMismatch, match=said):
        call()


def test_static_arguments_and_defaults_fit_their_annotations() -> None:
    text = """
from relay import relay, Tensor, Float

@relay
def reshaped(
    x: Tensor[Float, (4,)],
    rows: int,  # relay: static
):
    return x.reshape(rows, -1)

@relay
def right(x: Tensor[Float, (4,)]):
    return reshaped(x, 2)

@relay
def of_pair(x: Tensor[Float, (4,)]):
    return reshaped(x, (2, 2))

@relay
def of_float(x: Tensor[Float, (4,)]):
    return reshaped(x, 2.5)

@relay
def with_default(x: float, k: int = 2.5, *, scale: Tensor[Float, (3,)] = "none"):
    return x
"""
    found = [(d.span.line if d.span else 0, d.message) for d in check_text(text, "program.py") if d.severity == "error"]
    assert found == [
        (17, "argument rows of reshaped must be Tensor[int32, ()], found a tuple"),
        (21, "argument rows of reshaped must be Tensor[int32, ()], found the number 2.5"),
        (24, "argument k of with_default must be Tensor[int32, ()], found the number 2.5"),
        (24, "argument scale of with_default must be Tensor[float32, (3,)], found the string 'none'"),
    ]
