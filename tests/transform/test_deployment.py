"""Programs for inference: what is removed and selected, and that quantized programs are programs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.cli import main
from relay.errors import CompileError, TypeMismatch
from relay.ir.validation.check import check
from relay.transform.pipeline import Pipeline

TEXT = """
entry fn net(%x: Tensor[float32, (2, 4)], %key: Tensor[uint32, (2,)]) -> Tensor[float32, ()] {
  let %c: Tensor[float32, (2, 4)] = copy(%x);
  let %d: Tensor[float32, (2, 4)] = dropout(%c, %key);
  let %h: Tensor[float32, (2, 4)] = @twice(%d);
  print "h " %h "\\n";
  let %p: Tensor[float32, (2, 4)] = softmax(%h);
  let %s: Tensor[float32, ()] = sum(%p);
  %s
}

fn twice(%x: Tensor[float32, (2, 4)]) -> Tensor[float32, (2, 4)] {
  let %y: Tensor[float32, (2, 4)] = add(%x, %x);
  %y
}
"""


def test_the_part_between_inputs_and_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, made = tmp_path / "p.relay", tmp_path / "made.relay"
    program.write_text(TEXT)
    assert main(["transform", str(program), "--inputs", "x", "--outputs", "p,h", "-o", str(made)]) == 0
    assert "bindings" in capsys.readouterr().out
    module = relay.parse(made.read_text())
    assert [p.name for p in module.main.parameters] == ["x"]
    x = np.arange(8, dtype=np.float32).reshape(2, 4) / 4
    p, h = relay.from_module(module).interpret(x)
    np.testing.assert_allclose(h, 2 * x)
    np.testing.assert_allclose(p, relay.softmax(2 * x), rtol=1e-6)

    part = relay.transform.select_outputs(relay.parse(TEXT), ["h"], ["s"])
    check(part, "structured")
    assert [p.name for p in part.main.parameters] == ["h"]
    for wrong, message in ((["q"], "no variable 'q'"), (["hh"], "did you mean 'h'")):
        with pytest.raises(ValueError, match=message):
            relay.transform.select_outputs(relay.parse(TEXT), outputs=wrong)
    assert main(["transform", str(program), "--outputs", "q"]) == 2
    assert main(["transform", str(program), "--constants", "c.npz"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert errors == ["relay transform: the program has no variable 'q'", "relay transform: --constants needs -o"]


def test_identities_of_pending_derivatives_stay() -> None:
    text = TEXT + (
        "derivative slope: fn(Tensor[float32, (2, 4)], Tensor[uint32, (2,)]) -> Tensor[float32, (2, 4)] ="
        " grad{wrt=(0,)} @net\n"
    )
    module = relay.parse(text)
    assert relay.transform.remove_identities(module) is module


def test_rounded_and_merged_weights() -> None:
    random = np.random.default_rng(0)
    w = random.normal(size=(8, 8)).astype(np.float32)
    equal = w.copy()

    @relay.relay
    def f(x):  # type: ignore[no-untyped-def]
        return (x @ w) @ equal

    x = random.normal(size=(2, 8)).astype(np.float32)
    core = f.core(x)
    sizes = relay.transform.module_sizes
    rounded = relay.transform.round_weights(core, steps=5)
    values = {float(v) for b in rounded.main.body.bindings for a in b.value.arguments[1:] for v in a.value.flat}  # type: ignore[union-attr]
    assert len(values) == 5 and min(values) == w.min() and max(values) == w.max()
    assert sizes(core).constants == 2 and sizes(relay.transform.merge_constants(core)).constants == 1
    with pytest.raises(ValueError, match="at least 2 numbers"):
        relay.transform.round_weights(core, steps=1)
    infinite = relay.parse("entry fn f() -> Tensor[float32, (2,)] { [1.0, inf]f32 }")
    assert relay.transform.quantize_weights(infinite, min_size=1).main.body is infinite.main.body


def test_products_in_8_bits_without_samples() -> None:
    """The value is near the float program's, zeros included, and the derivative is there where asked for."""
    w = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)

    @relay.relay
    def f(x):  # type: ignore[no-untyped-def]
        for _ in range(2):
            x = relay.tanh(x @ w)
        return (x * x).sum()

    x = np.random.default_rng(1).normal(size=(2, 8)).astype(np.float32)
    core = Pipeline("quantize-nodes{straight_through}", checked=True)(f.core(x))
    quantized = relay.from_module(core)
    assert quantized.interpret(np.zeros_like(x)) == 0
    assert quantized.interpret(x) == pytest.approx(float(f.interpret(x)), rel=0.05)
    exact, found = relay.grad(f).interpret(x), relay.grad(quantized).interpret(x)
    assert np.abs(found - exact).max() < 0.1 * np.abs(exact).max()
    assert "matmul" not in relay.grad(quantized).lower(x).text.split("backward")[0]
    np.testing.assert_allclose(relay.grad(quantized)(x), found, rtol=1e-4, atol=1e-6)
    without = relay.to_int8(f, [[x]]).function
    assert not relay.grad(without).interpret(x).any()
    with pytest.raises(ValueError, match="integers has no derivatives"):
        relay.to_int8(f, [[x]], integer=True, straight_through=True)


def test_what_modules_are_no_functions() -> None:
    with pytest.raises(TypeMismatch, match="found str"):
        relay.from_module("fn f")  # type: ignore[arg-type]
    with pytest.raises(CompileError, match="no function 'g'"):
        relay.from_module(relay.parse(TEXT), "g")
    with pytest.raises(CompileError, match="the expression Print"):
        relay.from_module(relay.parse(TEXT))


def test_functions_of_modules_have_symbolic_sizes_and_derivatives() -> None:
    text = """dims n;
entry fn f(%x: Tensor[float64, (n, 3)]) -> Tensor[float64, ()] {
  let %s: Tensor[float64, (n, 3)] = multiply(%x, %x);
  let %t: Tensor[float64, ()] = sum(%s);
  %t
}
derivative slope: fn(Tensor[float64, (n, 3)]) -> Tensor[float64, (n, 3)] = grad{wrt=(0,)} @f
"""
    module = relay.parse(text)
    f, slope = relay.from_module(module), relay.from_module(module, "slope")
    for n in (2, 3):
        x = np.arange(3.0 * n).reshape(n, 3)
        assert f.interpret(x) == (x * x).sum()
        np.testing.assert_array_equal(slope.interpret(x), 2 * x)
    with pytest.raises(relay.TypeCheckError, match="3"):
        f.interpret(np.ones((2, 4)))


def test_products_in_8_bits_with_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(0)
    w = random.normal(size=(8, 4)).astype(np.float32)

    @relay.relay
    def net(x, y):  # type: ignore[no-untyped-def]
        return relay.softmax(x @ w + y)

    xs, ys = random.normal(size=(5, 2, 8)).astype(np.float32), random.normal(size=(5, 2, 4)).astype(np.float32)
    program, made = tmp_path / "p.relay", tmp_path / "made.relay"
    program.write_text(relay.to_text(net.lower(xs[0], ys[0]).typed))
    np.savez(tmp_path / "s.npz", x=xs, y=ys)
    command = ["transform", str(program), "--samples", str(tmp_path / "s.npz"), "--method", "max", "-o", str(made)]
    assert main(command) == 0
    assert "matmul: error" in capsys.readouterr().out
    module = relay.parse(made.read_text())
    scales = [b.value.arguments[1] for b in module.main.body.bindings if getattr(b.value, "operator", "") == "quantize"]
    assert [float(s.value) for s in scales] == pytest.approx([np.abs(xs).max() / 127])  # type: ignore[union-attr]
    found = relay.from_module(module).interpret(xs[0], ys[0])
    np.testing.assert_allclose(found, net.interpret(xs[0], ys[0]), atol=0.03)

    for arrays, message in (
        ({"x": xs}, "has no samples of y; it has x"),
        ({"x": xs, "y": ys[:3]}, "there are as many of each; found x: 5, y: 3"),
        ({"x": xs, "y": ys.astype(np.float64)}, r"a sample of y is Tensor\[float32, \(2, 4\)\], found float64"),
    ):
        np.savez(tmp_path / "s.npz", **arrays)
        assert main(command) == 2
        assert re.search(message, capsys.readouterr().err)


def test_precisions_with_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    @relay.relay
    def average(x):  # type: ignore[no-untyped-def]
        shifted = x + 1.0
        return shifted.sum(axis=1)

    xs = np.random.default_rng(0).uniform(50, 100, size=(3, 2, 1000)).astype(np.float32)
    program, made = tmp_path / "p.relay", tmp_path / "made.relay"
    program.write_text(relay.to_text(average.lower(xs[0]).typed))
    np.savez(tmp_path / "s.npz", x=xs)
    command = ["transform", str(program), "-o", str(made), "--error"]
    assert main([*command, "1e-4", "--samples", str(tmp_path / "s.npz")]) == 0
    assert "bits on average instead of 32.0" in capsys.readouterr().out
    module = relay.parse(made.read_text())
    computed = {b.value.operator: str(b.targets[0].type) for b in module.main.body.bindings}  # type: ignore[union-attr]
    assert "float16" in computed["add"] and "float32" in computed["sum"]
    np.testing.assert_allclose(relay.from_module(module)(xs[0]), average(xs[0]), rtol=1e-3)
    assert main([*command, "1e-4"]) == 2
    assert main([*command, "0", "--samples", str(tmp_path / "s.npz")]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert "--error needs --samples" in errors[0] and "an error above 0" in errors[1]
