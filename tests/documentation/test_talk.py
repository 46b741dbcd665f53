"""The programs of the 2018 talk, as its slides have them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from agreement import assert_modes_agree

import relay as relay_module
from relay import Float, Tensor, relay

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}


@relay
def linear_loss(
    a: Tensor[Float, (1, 1)], b: Tensor[Float, (1, 1)], x: Tensor[Float, (1, 1)], y: Tensor[Float, (1, 1)]
) -> Tensor[Float, (1, 1)]:
    y_hat = relay.broadcast_add(relay.broadcast_mul(a, x), b)
    diff = relay.broadcast_sub(y, y_hat)
    return relay.broadcast_mul(diff, diff)


@relay
def loss(a, b, x, y):
    y_hat = a * x + b
    return (y - y_hat) ** 2


@relay
def grad_of(a, b, x, y):
    return relay.grad(loss, wrt=(0, 1))(a, b, x, y)


ARGUMENTS = tuple(np.full((1, 1), v, np.float32) for v in (2.0, 1.0, 3.0, 5.0))
VALUE = (5.0 - 7.0) ** 2
GRADIENTS = (-2 * (5.0 - 7.0) * 3.0, -2 * (5.0 - 7.0))


def test_import_is_callable_and_the_same() -> None:
    assert relay_module is relay
    assert relay_module.relay is relay_module


@pytest.mark.parametrize("function", [linear_loss, loss], ids=["linear_loss", "loss"])
def test_value(function: relay_module.RelayFunction) -> None:
    result = assert_modes_agree(function, *ARGUMENTS)
    assert isinstance(result, relay_module.Array)
    assert result.dtype == np.float32 and result.shape == (1, 1)
    assert float(result) == VALUE


@pytest.mark.parametrize("function", [linear_loss, loss], ids=["linear_loss", "loss"])
def test_gradient(function: relay_module.RelayFunction) -> None:
    derivative = relay.grad(function, wrt=(0, 1))
    assert tuple(float(g) for g in assert_modes_agree(derivative, *ARGUMENTS)) == GRADIENTS
    assert tuple(float(g) for g in grad_of(*ARGUMENTS)) == GRADIENTS
    assert float(relay.grad(function, wrt="b")(*ARGUMENTS)) == GRADIENTS[1]


def test_print_shows_typed_text(capsys: pytest.CaptureFixture[str]) -> None:
    print(linear_loss)
    text = capsys.readouterr().out
    assert "Tensor[float32, (1, 1)]" in text and "multiply" in text
    assert str(linear_loss.type) == f"fn({', '.join(['Tensor[float32, (1, 1)]'] * 4)}) -> Tensor[float32, (1, 1)]"
    print(loss)
    text = capsys.readouterr().out
    assert "forall (bt: BaseType)" in text and "power" in text


def test_operator_types_of_the_slides() -> None:
    """relay.tensor_add : forall (bt : BaseType) (s : Shape), Tensor bt s -> Tensor bt s -> Tensor bt s"""
    from relay.ir import Kind, TensorType, TypeId, mk_arrow, mk_quant

    base, shape = TypeId("bt", Kind.BaseType), TypeId("s", Kind.Shape)
    tensor = TensorType(base, shape)
    type_ = mk_quant(base, mk_quant(shape, mk_arrow([tensor, tensor], tensor)))
    assert str(type_) == "forall (bt: BaseType) (s: Shape). fn(Tensor[bt, s], Tensor[bt, s]) -> Tensor[bt, s]"


def test_registration_of_the_slides(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """In a user's file, in a process of its own: the registration is process-wide."""
    program = tmp_path / "user.py"
    program.write_text(
        textwrap.dedent("""
        import numpy as np
        import tvm
        from tvm import te, topi

        from relay import Float, Tensor, ir, relay
        from relay.ir import FloatType, TensorType, TypeId, mk_arrow, mk_quant

        shape = TypeId("s", ir.Kind.Shape)
        in_out_type = TensorType(FloatType(32), shape)
        badd_type = mk_quant(shape, mk_arrow([in_out_type, in_out_type], in_out_type))

        def broadcast_add_compiler(func_ty):
            inputs, ret_ty = relay.func_ty_to_placeholders(func_ty)
            output = topi.add(*inputs)
            module = tvm.compile(te.create_prim_func([*inputs, output]), target="llvm")
            return module["main"]

        env = relay.get_env()
        relay.register_op(env, "broadcast_add", badd_type, broadcast_add_compiler)

        @relay
        def f(x, y):
            return relay.broadcast_add(x, y * 2.0)

        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for run in (f, f.interpret):
            np.testing.assert_allclose(run(x, x), 3 * x)
        np.testing.assert_allclose(f(x[0], x[1]), x[0] + 2 * x[1])
        try:
            f(x, x[0])
        except relay.TypeMismatch as error:
            assert "broadcast_add" in str(error) and "user.py" in str(error), error
        else:
            raise AssertionError("two shapes were accepted")
        try:
            relay.grad(lambda_ := f, wrt=0)(x, x)
        except relay.DifferentiationError as error:
            pass
        print("works")
    """)
    )
    done = subprocess.run([sys.executable, str(program)], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "works"


def test_registration_in_one_paragraph() -> None:
    import math

    from tvm import te, tirx

    def same(shape):  # type: ignore[no-untyped-def]
        return shape

    @relay.register_op(
        relation=relay.Relation("T:float -> T", same),
        pattern=relay.Pattern.ELEMENTWISE,
        compute=lambda x: te.compute(x.shape, lambda *i: x(*i) * tirx.const(2 * math.pi, x.dtype)),
        gradient=lambda x, out, dout: dout * (2 * math.pi),
    )
    def talk_turns(x: Tensor) -> Tensor:
        """Revolutions to radians. x: (T, s) -> (T, s)."""
        return x * np.asarray(2 * math.pi, x.dtype)

    @relay
    def wave(x):
        return relay.sin(relay.talk_turns(x)).sum()

    x = np.linspace(0, 0.2, 5)
    np.testing.assert_allclose(wave(x), np.sin(2 * np.pi * x).sum(), rtol=1e-12)
    np.testing.assert_allclose(wave.interpret(x), np.sin(2 * np.pi * x).sum(), rtol=1e-12)
    expected = 2 * np.pi * np.cos(2 * np.pi * x)
    assert_modes_agree(relay.grad(wave), x, expected=expected, rtol=1e-12)

    def again(x: Tensor) -> Tensor:
        """The same name once more."""
        return x

    with pytest.raises(relay.RegistrationError, match="registered already"):
        relay.register_op(
            relation=relay.Relation("T -> T", same), compute=lambda x: x, no_gradient="none", name="talk_turns"
        )(again)
