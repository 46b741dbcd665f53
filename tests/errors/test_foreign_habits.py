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
    ("np.sum(x, dim=0)", "np.sum takes no argument 'dim'", "write axis=, not dim="),
    ("relay.cumsum(x, dims=0)", "cumsum has no argument 'dims'", "write axis=, not dims="),
    ("x.size(0)", "a number is not a function", "x.shape[i]"),
    ("x.shape(0)", "a tuple is not a function", "write `[i]` for an item"),
    ("relay.grad(3)(x)", "a number is not a function", "pass a function"),
    ("x.float()", "a tensor has no attribute 'float'", "use x.astype(relay.Float32)"),
    ("x.t()", "a tensor has no attribute 't'", "write x.T"),
    ("x.cuda()", "a tensor has no attribute 'cuda'", "leave it out"),
    ("x.mul_(2.0)", "a tensor has no attribute 'mul_'", "values never change"),
    ("x.detach()", "a tensor has no attribute 'detach'", "use relay.stop_gradient(x)"),
    ("x.gather(0, n)", "a tensor has no attribute 'gather'", "use relay.take_along_axis(x, indices, axis=dim)"),
    ("x.clamp(0.0, 1.0)", "a tensor has no attribute 'clamp'", "use relay.clip(x, low, high)"),
    ("np.put_along_axis(x, n, 1.0, 0)", "`put_along_axis` is not part of Relay", "x[np.arange(n)[:, None], i] = v"),
    ("relay.pmap(lambda v: v)(x)", "relay has no 'pmap'", "one program runs on one machine"),
    ("relay.nn.rrelu(x)", "nn has no 'rrelu'", "did you mean 'relu'?"),
    ("relay.sofmax(x)", "relay has no 'sofmax'", "did you mean 'softmax'?"),
    ("torch.relu(x)", "'relu' is a Python function that Relay does not know", "write relay.relu"),
    ("np.random.randn(3)", "randn of Python's or NumPy's random numbers", "relay.random.normal(key, (3,))"),
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


CALLS = [
    (lambda: relay.grad(loss(X)), "grad needs a function decorated with @relay, found a value", "relay.grad(f)(x)"),
    (lambda: relay.vjp(1.0, X), "vjp needs a function decorated with @relay, found a value", "relay.vjp(f, x)"),
    (lambda: relay.hessian(loss, argnum=0), "hessian has no option 'argnum'; it has wrt", "write wrt=, not argnum="),
    (lambda: relay.relay(static_argnums=0), "@relay has no option 'static_argnums'", "did you mean 'static_argnames'?"),
]


@pytest.mark.parametrize(("call", "found", "instead"), CALLS, ids=lambda part: part if isinstance(part, str) else "")
def test_in_python(call, found: str, instead: str) -> None:
    with pytest.raises(RelayError) as caught:
        call()
    assert found in str(caught.value) and instead in (caught.value.help or ""), caught.value


MEANT = [
    ("x.sum(dim=0)", 10.0),
    ("x.sum(dim=0, keepdim=True)", [10.0]),
    ("relay.softmax(x, dim=-1).sum()", 1.0),
    ("relay.grad(lambda v: (v * v).sum(), argnums=0)(x)", [2.0, 4.0, 6.0, 8.0]),
    ("x.view(2, 2)", [[1.0, 2.0], [3.0, 4.0]]),
    ("x.view(-1, 1).permute(1, 0)", [[1.0, 2.0, 3.0, 4.0]]),
    ("x.max().item()", 4.0),
    ("relay.cat((x, x), dim=0)", [1.0, 2.0, 3.0, 4.0] * 2),
    ("x.clone().contiguous()", [1.0, 2.0, 3.0, 4.0]),
    ("relay.jit(lambda v: v + 1.0)(x)", [2.0, 3.0, 4.0, 5.0]),
    ("relay.lax.fori_loop(0, 3, lambda i, v: v * 2.0, x)", [8.0, 16.0, 24.0, 32.0]),
    ("relay.lax.while_loop(lambda v: v.sum() < 50.0, lambda v: v * 2.0, x)", [8.0, 16.0, 24.0, 32.0]),
    ("relay.lax.cond(x[0] > 0.0, lambda v: v, lambda v: -v, x)", [1.0, 2.0, 3.0, 4.0]),
    ("relay.lax.scan(lambda c, v: (c + v, c * v), 0.0, x)[1]", [0.0, 2.0, 9.0, 24.0]),
    ("relay.lax.map(lambda v: v * v, x)", [1.0, 4.0, 9.0, 16.0]),
]


@pytest.mark.parametrize(("expression", "expected"), MEANT, ids=[expression for expression, _ in MEANT])
def test_names_that_mean_the_same(expression: str, expected: object) -> None:
    names = {"relay": relay, "np": np}
    x = np.array([1.0, 2.0, 3.0, 4.0])
    found = relay.from_source(f"def f(x):\n    return {expression}\n", names).interpret(x)  # type: ignore[union-attr]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_plain_functions_are_taken_for_decorated_ones() -> None:
    """As in JAX: `grad(lambda ..)`; of one function there is one derivative."""
    assert relay.grad(lambda x: x * x)(3.0) == 6.0
    assert relay.vmap(lambda row: row.sum())(np.ones((2, 3))).tolist() == [3.0, 3.0]
    assert relay.jit(lambda x, n: x * n, static_argnums=1)(2.0, 3) == 6.0
    assert relay.jit(loss) is loss

    def square(x):
        return x * x

    assert relay.grad(square) is relay.grad(square)


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
