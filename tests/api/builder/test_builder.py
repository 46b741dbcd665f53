"""Programs that are built value by value: what they compute, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay import builder
from relay.errors import CompileError, ExecutionError, TypeMismatch
from relay.text.parser import parse
from relay.text.printer import to_text

V, B = "Tensor[float64, (3,)]", "Tensor[bool, ()]"


def test_control_flow_effects_and_calls(capsys: pytest.CaptureFixture[str]) -> None:
    inner = builder.FunctionBuilder("double")
    double = inner.module(inner.parameter("x", V) * 2.0)
    b = builder.FunctionBuilder("f")
    x, n = b.parameter("x", V), b.parameter("n", "Tensor[int32, ()]")
    total, last = b.loop(n, [x, b.constant(0)], lambda i, t, _: (b.call(double, t), i))
    b.print("last", last)
    b.check(last < 9, "too many rounds")
    large = b.branch(total.op("sum") > 20.0, lambda: total * 0.0, lambda: total + 1.0)
    module = b.module([large, last])
    assert to_text(parse(to_text(module))) == to_text(module)
    run = relay.compile(module)
    x3 = np.arange(3.0)
    found, rounds = run(x3, np.int32(2))
    np.testing.assert_array_equal(found, x3 * 4 + 1)
    assert rounds == 1 and capsys.readouterr().out == "last 1\n"
    np.testing.assert_array_equal(run(x3, np.int32(5))[0], [0, 0, 0])
    with pytest.raises(ExecutionError, match="too many rounds"):
        run(x3, np.int32(11))


def test_derivatives_go_through_loops() -> None:
    b = builder.FunctionBuilder("f")
    x = b.parameter("x", "Tensor[float64, ()]")
    y = b.while_loop(lambda y: y < 10.0, x, lambda y: y * x)
    f = relay.from_module(b.module(y))
    assert f.interpret(3.0) == 27 and relay.grad(f).interpret(3.0) == 27


def test_what_does_not_fit_is_refused() -> None:
    b = builder.FunctionBuilder("f")
    x = b.parameter("x", V)
    for wrong, message in (
        (lambda: b.branch(x, lambda: x, lambda: x), r"a condition must be Tensor\[bool, \(\)\]"),
        (lambda: b.loop(2, x, lambda i, y: y.op("sum")), "keeps its types: it begins with"),
        (lambda: b.loop(x, x, lambda i, y: y), "the count of a loop"),
        (lambda: b.branch(x.op("sum") > 0.0, lambda: x, lambda: x.op("sum")), "the arms have different types"),
        (lambda: b.while_loop(lambda y: y, x, lambda y: y), "a condition must be"),
        (lambda: b.constant("text"), "no constants"),
    ):
        with pytest.raises(TypeMismatch, match=message):
            wrong()
    other = builder.FunctionBuilder("g")
    foreign = other.parameter("y", V)
    with pytest.raises(CompileError, match="is not well formed"):
        b.module(foreign)
    g = other.module(foreign)
    with pytest.raises(TypeMismatch, match="argument 1 of g must be"):
        b.call(g, x.op("sum"))
    with pytest.raises(TypeMismatch, match="takes 1 arguments, found 2"):
        b.call(g, x, x)
    with pytest.raises(CompileError, match="two functions are named f"):
        b.call(b.module(x), x)


def test_calls_are_replaced_everywhere() -> None:
    b = builder.FunctionBuilder("f")
    x = b.parameter("x", V)
    module = b.module(b.loop(2, x, lambda i, y: relay.exp(y)))

    def half(call: builder.OpCall, operands: list[builder.Value]) -> builder.Value | None:
        return relay.exp(operands[0] * 0.5) if call.operator == "exp" else None

    changed = relay.from_module(builder.replace_calls(module, half))  # type: ignore[arg-type]
    np.testing.assert_allclose(changed.interpret(np.zeros(3)), np.exp(np.full(3, 0.5)))
    with pytest.raises(TypeMismatch, match="in its place is"):
        builder.replace_calls(module, lambda call, operands: operands[0].op("sum"))
