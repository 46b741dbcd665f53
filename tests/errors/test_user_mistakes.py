"""The user's mistakes: each at its line, with a caret, what was found, and the fix; none with our frames in the
traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import relay as relay_module
from relay import Float, Tensor, relay

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}


@relay
def clash(x: Tensor[Float, (3, 4)], y: Tensor[Float, (5,)]):
    doubled = x * 2.0
    return doubled + y


@relay
def unknown_name(x):
    return relay.tanh(x) * scael  # noqa: F821


scale = 2.0


@relay
def takes_matrix(x: Tensor[Float, (2, 2)]):
    return x @ x


@relay
def integer_division(n, m):
    return n // m


@relay
def picks(x, i):
    return x[i]


@relay
def checked(x):
    assert x > 0.0, "x must be positive"
    return relay.sqrt(x)


def test_shape_clash() -> None:
    with pytest.raises(relay_module.ShapeError) as caught:
        clash.type  # noqa: B018
    text = str(caught.value)
    assert "test_user_mistakes.py:" in text and "(3, 4)" in text and "(5,)" in text
    assert "return doubled + y" in text
    caret = text.splitlines()[text.splitlines().index(next(s for s in text.splitlines() if "doubled + y" in s)) + 1]
    assert caret.count("^") == len("doubled + y")
    with pytest.raises(relay_module.ShapeError):
        clash(np.zeros((3, 4), np.float32), np.zeros(5, np.float32))


def test_unknown_name_suggests_the_near_one() -> None:
    with pytest.raises(relay_module.FrontendError, match="scael") as caught:
        unknown_name(np.float32(1))
    assert "did you mean 'scale'" in str(caught.value)
    assert "^^^^^" in str(caught.value)


@relay
def too_large(x):
    return x * 1e300


@relay
def text_as_number(x):
    return x + "one"


def test_what_is_no_tensor_is_named() -> None:
    with pytest.raises(relay_module.TypeMismatch, match=r"`\+` joins a string to a string; its left operand is Tensor"):
        text_as_number(np.float32(1))


def test_numbers_that_do_not_fit() -> None:
    with pytest.raises(relay_module.TypeMismatch, match=r"1e\+300 is out of range for float32 \(-3\.4"):
        too_large(np.float32(1))
    assert float(too_large(np.float64(1))) == 1e300


def test_wrong_arguments() -> None:
    with pytest.raises(
        relay_module.TypeMismatch, match=r"argument x of takes_matrix must be Tensor\[float32, \(2, 2\)\]"
    ):
        takes_matrix(np.zeros((2, 3), np.float32))
    with pytest.raises(relay_module.TypeMismatch, match=r"found Tensor\[float64"):
        takes_matrix(np.zeros((2, 2)))
    with pytest.raises(relay_module.TypeMismatch, match="complex128"):
        takes_matrix(np.zeros((2, 2), complex))
    with pytest.raises(relay_module.TypeCheckError, match="expected 1, found 2"):
        takes_matrix(1.0, 2.0)
    with pytest.raises(relay_module.TypeCheckError, match="no parameter 'z'"):
        takes_matrix(z=1.0)
    with pytest.raises(relay_module.TypeMismatch, match="is a Python set"):
        takes_matrix({1})


@pytest.mark.parametrize("interpret", [False, True])
def test_execution_errors(interpret: bool) -> None:
    def run(function, *arguments):  # type: ignore[no-untyped-def]
        return (function.interpret if interpret else function)(*arguments)

    assert int(run(integer_division, -7, 2)) == -4
    with pytest.raises(relay_module.ExecutionError, match="division by zero") as caught:
        run(integer_division, 7, 0)
    assert "return n // m" in str(caught.value)
    x = np.arange(4.0)
    assert float(run(picks, x, -1)) == 3.0
    with pytest.raises(relay_module.ExecutionError, match="out of range") as caught:
        run(picks, x, 4)
    assert "return x[i]" in str(caught.value)
    with pytest.raises(relay_module.ExecutionError, match="x must be positive"):
        run(checked, -1.0)
    assert float(run(checked, 4.0)) == 2.0


USER = """
from relay import relay
import numpy as np

{program}
"""

MISTAKES = {
    "shape": (
        """
        @relay
        def f(x, y):
            return x + y          # here
        f(np.zeros((3, 4), np.float32), np.zeros((5,), np.float32))
        """,
        ["(3, 4)", "(5,)", "^^^^^"],
    ),
    "name": (
        """
        @relay
        def f(x):
            return relay.tanhh(x)          # here
        f(np.zeros(3))
        """,
        ["tanhh", "did you mean 'tanh'", "^"],
    ),
    "construct": (
        """
        @relay
        def f(x):
            with x as y:          # here
                return y
        """,
        ["`with`", "^"],
    ),
    "argument": (
        """
        @relay
        def f(x: relay.Tensor[relay.Float, (2,)]):          # here
            return x
        f(np.zeros(3, np.float32))
        """,
        ["argument x", "(2,)", "(3,)", "^"],
    ),
    "dtype": (
        """
        @relay
        def f(x, y):
            return x * y          # here
        f(np.zeros(3, np.float32), np.zeros(3))
        """,
        ["float32", "float64", "astype", "^"],
    ),
    "gradient": (
        """
        @relay
        def f(x):
            return x * 2.0
        g = relay.grad(f)
        g(np.zeros(3))
        """,
        ["one element", "sum"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_uncaught_errors_show_the_users_frames_only(mistake: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    program, wanted = MISTAKES[mistake]
    text = USER.format(program=textwrap.dedent(program))
    file = tmp_path / "user.py"
    file.write_text(text)
    done = subprocess.run([sys.executable, str(file)], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    for part in wanted:
        assert part in done.stderr, done.stderr
    lines = [i + 1 for i, line in enumerate(text.splitlines()) if "# here" in line]
    for line in lines:
        assert f"user.py:{line}:" in done.stderr, done.stderr
    frames = [line for line in done.stderr.splitlines() if line.startswith('  File "')]
    assert frames and all("user.py" in frame for frame in frames), done.stderr


@relay
def wrong_loss(parameters, x):
    return (x @ parameters["w"]).sum(dims=0)


@relay
def training_step(parameters, momentum, x, rate):
    value, gradient = relay_module.value_and_grad(wrong_loss, wrt=0)(parameters, x)
    momentum = relay_module.tree.map(lambda a, b: 0.9 * a + b, momentum, gradient)
    return relay_module.tree.map(lambda p, v: p - rate * v, parameters, momentum), momentum, value


def test_a_mistake_in_a_differentiated_function_is_told_once() -> None:
    """What the derivative would have been is not known then, and decides the dtype of no number."""
    parameters = {"w": np.ones(3), "b": np.ones(2)}
    with pytest.raises(relay_module.TypeCheckError, match="takes no argument 'dims'") as caught:
        training_step(parameters, parameters, np.ones((2, 3)), 0.1)
    assert str(caught.value).count("error:") == 1
