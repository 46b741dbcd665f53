"""A file with decorated functions, for the commands."""

from pathlib import Path

import pytest

PYTHON = """
from relay import relay, Float64, Tensor


@relay
def layer(x, w):
    return relay.tanh(x @ w)


@relay
def f(x: Tensor[Float64, (3, 4)], w: Tensor[Float64, (4, 5)]):
    y = layer(x, w)
    unused = y + 1.0
    return (y * y).sum()


g = relay.grad(f)
"""


@pytest.fixture
def python(tmp_path: Path) -> str:
    path = tmp_path / "model.py"
    path.write_text(PYTHON)
    return str(path)
