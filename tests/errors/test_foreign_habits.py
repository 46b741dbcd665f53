"""What users of JAX, PyTorch and Keras write first: each message has the place, what was found, and what to write."""

from __future__ import annotations

import types
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.cli import main
from relay.errors import RelayError

X = np.ones(3, np.float32)

torch = types.ModuleType("torch")


def _torch_relu(x: object) -> object:
    return x


_torch_relu.__name__, _torch_relu.__module__ = "relu", "torch"
torch.relu = _torch_relu  # type: ignore[attr-defined]

PROGRAMS = [
    ("x.sum(dim=0)", "np.sum takes no argument 'dim'", "write axis=, not dim="),
    ("x.sum(axis=0, keepdim=True)", "np.sum takes no argument 'keepdim'", "write keepdims="),
    ("relay.softmax(x, dim=-1)", "softmax has no argument 'dim'", "write axis=, not dim="),
    ("relay.grad(lambda v: v.sum(), argnums=0)(x)", "grad has no argument 'argnums'", "write wrt=, not argnums="),
    ("x.size(0)", "a number is not a function", "x.shape[i]"),
    ("x.shape(0)", "a tuple is not a function", "write `[i]` for an item"),
    ("x.view(-1, 1)", "a tensor has no attribute 'view'", "use x.reshape(..)"),
    ("x.float()", "a tensor has no attribute 'float'", "use x.astype(relay.Float32)"),
    ("x.t()", "a tensor has no attribute 't'", "write x.T"),
    ("x.cuda()", "a tensor has no attribute 'cuda'", "leave it out"),
    ("x.mul_(2.0)", "a tensor has no attribute 'mul_'", "values never change"),
    ("x.sum().item()", "a tensor has no attribute 'item'", "use float(x)"),
    ("x.detach()", "a tensor has no attribute 'detach'", "use relay.stop_gradient(x)"),
    ("relay.pmap(lambda v: v)(x)", "relay has no 'pmap'", "one program runs on one machine"),
    ("relay.nn.relu(x)", "relay has no 'nn'", "its functions are operators: relay.relu"),
    ("relay.sofmax(x)", "relay has no 'sofmax'", "did you mean 'softmax'?"),
    ("torch.relu(x)", "'relu' is a Python function that Relay does not know", "write relay.relu"),
    ("np.random.randn(3)", "randn of Python's or NumPy's random numbers", "relay.random.normal(key, (3,))"),
    ("x.sum(axis=n)", "axis must be known at compile time, found a run-time number", "static_argnames"),
    ("(v for v in x)", "a generator expression outside of a call", "a list"),
    ("x if x else -x", "a condition must be Tensor[bool, ()], found Tensor[float32, (3,)]", "relay.any(x)"),
    ("relay.grad(lambda v: v * 2.0)(x)", "the gradient needs a result with one element", "sum the result"),
]


@pytest.mark.parametrize(("expression", "found", "instead"), PROGRAMS, ids=lambda part: part)
def test_in_programs(expression: str, found: str, instead: str) -> None:
    names = {"relay": relay, "np": np, "torch": torch}
    with pytest.raises(RelayError) as caught:
        relay.from_source(f"def f(x, n):\n    return {expression}\n", names).interpret(X, 0)  # type: ignore[union-attr]
    error = caught.value
    assert error.span is not None and error.span.line == 2, error
    assert found in str(error) and instead in (error.help or ""), error


@relay.relay
def loss(x):
    return (x * x).sum()


def undecorated(x):
    return (x * x).sum()


CALLS = [
    (lambda: relay.grad(loss(X)), "grad needs a function decorated with @relay, found a value", "relay.grad(f)(x)"),
    (lambda: relay.vjp(1.0, X), "vjp needs a function decorated with @relay, found a value", "relay.vjp(f, x)"),
    (lambda: relay.grad(undecorated), "found the Python function 'undecorated'", "write @relay above it"),
    (lambda: relay.jacobian(lambda x: x), "jacobian needs a function decorated with @relay, found a lambda", "relay("),
    (lambda: relay.grad(loss, argnums=0), "grad has no option 'argnums'; it has wrt", "write wrt=, not argnums="),
    (lambda: relay.hessian(loss, argnum=0), "hessian has no option 'argnum'; it has wrt", "write wrt=, not argnum="),
    (lambda: relay.relay(static_argnums=0), "@relay has no option 'static_argnums'", "did you mean 'static_argnames'?"),
]


@pytest.mark.parametrize(("call", "found", "instead"), CALLS, ids=lambda part: part if isinstance(part, str) else "")
def test_in_python(call, found: str, instead: str) -> None:
    with pytest.raises(RelayError) as caught:
        call()
    assert found in str(caught.value) and instead in (caught.value.help or ""), caught.value


def test_names_of_other_libraries() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'pmap': one program runs on one machine"):
        relay.pmap  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        relay.nonsense  # noqa: B018


CLASSES = """\
import relay

@relay.relay
class Model:
    def __call__(self, x):
        return x

def around():
    @relay.relay(dynamic=True)
    class Inner:
        pass

@relay.relay
def used(x):
    return Model()(x)
"""


def test_a_decorated_class_is_an_error_at_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In Python and in `relay check`, which reports nothing that follows from it."""
    with pytest.raises(RelayError, match="`@relay` decorates functions, and Decorated is a class") as caught:

        @relay.relay
        class Decorated:
            pass

    assert caught.value.span is not None
    assert caught.value.span.source.line(caught.value.span.line).strip() == "class Decorated:"
    assert "write @relay.data" in (caught.value.help or "")
    with pytest.raises(RelayError, match="and int is a class"):
        relay.relay(int)
    file = tmp_path / "model.py"
    file.write_text(CLASSES)
    assert main(["check", str(file)]) == 1
    printed = capsys.readouterr().out
    assert "model.py:4:1: error: `@relay` decorates functions, and Model is a class" in printed
    assert "model.py:10:5: error: `@relay` decorates functions, and Inner is a class" in printed
    assert "2 errors in 1 file" in printed
