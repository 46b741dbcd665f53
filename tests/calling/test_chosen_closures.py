"""Functions that are selected at run time, in results of all kinds: Python calls them, and passes them on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relay
from relay import Float, Fn, Ref, Tensor
from relay.api.function import RelayFunction
from relay.calling.closures import ReturnedFunction
from relay.errors import CompileError, ExecutionError, TypeMismatch
from relay.ir.expr import Module

F = Tensor[Float, ()]
D = Tensor[relay.Float64, ()]
V = Tensor[Float, (3,)]
Way = Callable[[RelayFunction], Callable[..., Any]]
ways = pytest.mark.parametrize("way", [lambda f: f, lambda f: f.interpret], ids=["compiled", "interpreted"])


@relay.data
class Layer:
    width: F
    act: Fn[[F], F]


@relay.data
class Chain:
    class End:
        pass

    class More:
        head: Fn[[F], F]
        tail: Chain


@relay.data
class Machine:
    """A machine that gives an output and the next machine."""

    step: Fn[[F], tuple[F, Machine]]


@relay.relay
def twice(f, x):  # type: ignore[no-untyped-def]
    return f(f(x))


@ways
def test_effects_happen_once(way: Way, capsys: pytest.CaptureFixture[str]) -> None:
    @relay.relay
    def made(n: F, up: bool) -> Fn[[F], F]:
        print("made")
        return (lambda x: x + n) if up else (lambda x: x * n)

    f, g = way(made)(3.0, True), way(made)(3.0, False)
    assert isinstance(f, ReturnedFunction)
    assert capsys.readouterr().out == "made\nmade\n"
    assert [float(h(4.0)) for h in (f, g, f)] == [7.0, 12.0, 7.0]
    assert [float(way(twice)(h, 1.0)) for h in (f, g)] == [7.0, 9.0]
    assert capsys.readouterr().out == ""


@ways
def test_numbers_have_the_annotated_dtype_when_it_is_chosen_again(way: Way) -> None:
    @relay.relay
    def made(c: D, k: D) -> tuple[Fn[[D], D], D]:
        return (lambda x: x * k) if c > 0.0 else (lambda x: x + k), k

    f, k = way(made)(1.0, 3.0)
    assert float(f(2.0)) == 6.0 and float(k) == 3.0 and np.asarray(f(2.0)).dtype == np.float64
    assert float(relay.grad(f)(2.0)) == 3.0


@ways
def test_functions_in_data(way: Way) -> None:
    @relay.relay
    def layer(n: F, smooth: bool) -> Layer:
        def bent(x: F) -> F:
            return relay.maximum(x, n)

        return Layer(n, lambda x: relay.tanh(x) * n) if smooth else Layer(2.0 * n, bent)

    one, other = way(layer)(0.5, True), way(layer)(0.5, False)
    assert isinstance(one, Layer) and float(one.width) == 0.5 and float(other.width) == 1.0
    np.testing.assert_allclose(one.act(1.0), 0.5 * np.tanh(1.0), rtol=1e-6)
    assert [float(other.act(x)) for x in (-1.0, 2.0)] == [0.5, 2.0]


@ways
def test_functions_in_recursive_data(way: Way) -> None:
    @relay.relay
    def chain(n: F, k: relay.Tensor[relay.Int32, ()]) -> Chain:
        if k == 0:
            return Chain.End()
        return Chain.More((lambda x: x + n) if k % 2 == 0 else (lambda x: x * n), chain(n + 1.0, k - 1))

    found, values = way(chain)(1.0, 4), []
    while isinstance(found, Chain.More):
        values.append(float(found.head(10.0)))
        found = found.tail
    assert values == [11.0, 20.0, 13.0, 40.0]


@ways
def test_functions_in_growing_lists_and_references(way: Way) -> None:
    @relay.relay
    def scales(n: F, k: relay.Tensor[relay.Int32, ()]) -> tuple[list[Fn[[F], F]], Ref[Fn[[F], F]]]:
        fs = [lambda x: x]
        last = relay.ref(lambda x: -x)
        for i in range(k):
            m = n * i.astype(relay.Float32)
            f = made(m)
            fs.append(f)
            last.value = f
        return fs, last

    @relay.relay
    def made(m: F) -> Fn[[F], F]:
        return lambda x: x * m

    for count in (3, 0):
        fs, last = way(scales)(2.0, np.int32(count))
        assert [float(f(1.0)) for f in fs] == [1.0, *(2.0 * i for i in range(count))]
        assert float(last.value(1.0)) == (4.0 if count else -1.0)


@ways
def test_state_that_is_shared_with_python(way: Way) -> None:
    @relay.relay
    def counter(cell: Ref[F], up: bool) -> tuple[Fn[[F], F], Fn[[], F]]:
        own = relay.ref(100.0)

        def add(x: F) -> F:
            cell.value = cell.value + x
            own.value = own.value + 1.0
            return cell.value

        def remove(x: F) -> F:
            cell.value = cell.value - x
            own.value = own.value + 1.0
            return cell.value

        return (add if up else remove), lambda: own.value

    cell = relay.ref(np.float32(1.0))
    step, calls = way(counter)(cell, False)
    assert [float(step(2.0)), float(step(3.0)), float(cell.value)] == [-1.0, -4.0, -4.0]
    cell.value = np.float32(10.0)
    assert float(step(1.0)) == 9.0 and float(cell.value) == 9.0 and float(calls()) == 103.0


@ways
def test_machines_are_compiled_once(way: Way, caplog: pytest.LogCaptureFixture) -> None:
    @relay.relay
    def start(gain: F) -> Machine:
        return idle(gain, 0.0)

    @relay.relay
    def idle(gain: F, total: F) -> Machine:
        def step(x: F) -> tuple[F, Machine]:
            return (total, busy(gain, total + x)) if x > 0.0 else (-1.0, idle(gain, total))

        return Machine(step)

    @relay.relay
    def busy(gain: F, total: F) -> Machine:
        def step(x: F) -> tuple[F, Machine]:
            return total * gain, (busy(gain, total + x) if x > 0.0 else idle(gain, total))

        return Machine(step)

    machine, found = way(start)(2.0), []
    with caplog.at_level(logging.INFO, logger="relay.compile"):
        for x in (-1.0, 1.0, 2.0, -1.0, 5.0, 1.0):
            output, machine = machine.step(x)
            found.append(float(output))
    assert found == [-1.0, 0.0, 2.0, 6.0, 3.0, 16.0]
    assert sum(r.message.startswith("compiling") for r in caplog.records) <= 1


@ways
def test_curried_functions_with_effects(way: Way, capsys: pytest.CaptureFixture[str]) -> None:
    @relay.relay
    def curried(a: F, up: bool) -> Fn[[F], Fn[[F], F]]:
        def inner(b: F) -> Fn[[F], F]:
            print("inner")
            return (lambda c: a * 100.0 + b * 10.0 + c) if up else (lambda c: c - a - b)

        return inner

    for up, expected in ((True, 123.0), (False, 0.0)):
        f = way(curried)(1.0, up)(2.0)
        assert [float(f(3.0)), float(f(3.0))] == [expected, expected]
    assert capsys.readouterr().out == "inner\ninner\n"


@ways
def test_derivatives(way: Way) -> None:
    @relay.relay
    def layer(n: F, smooth: bool) -> Layer:
        def steep(x: F) -> F:
            return relay.grad(lambda y: y * y * y * n)(x)

        return Layer(n, lambda x: x * x * n) if smooth else Layer(n, steep)

    for smooth, value, slope, second in ((True, 8.0, 8.0, 4.0), (False, 24.0, 24.0, 12.0)):
        f = way(layer)(2.0, smooth).act
        assert float(f(2.0)) == value
        assert float(relay.grad(f)(2.0)) == slope
        assert float(relay.grad(relay.grad(f))(2.0)) == second
        assert float(way(relay.grad(twice, wrt="x"))(f, 1.0)) == pytest.approx(
            (lambda g: float(relay.grad(f)(g)) * float(relay.grad(f)(1.0)))(float(f(1.0)))
        )
        result, pulled = relay.vjp(f, 2.0)
        assert float(result) == value and float(pulled(1.0)) == slope


@ways
def test_several_functions_are_arguments(way: Way) -> None:
    @relay.relay
    def layers(n: F, k: relay.Tensor[relay.Int32, ()]) -> list[Layer]:
        found = []
        for i in range(k):
            found.append(one(n + i.astype(relay.Float32)))
        return found

    @relay.relay
    def one(n: F) -> Layer:
        return Layer(n, lambda x: x * n) if n > 2.0 else Layer(n, lambda x: x + n)

    @relay.relay
    def composed(f, g, x):  # type: ignore[no-untyped-def]
        return [f(g(x)), relay.grad(f)(x)]

    first, second, third = (layer.act for layer in way(layers)(1.0, np.int32(3)))
    for f, g, expected in ((first, second, [6.0, 1.0]), (third, first, [12.0, 3.0]), (third, third, [27.0, 3.0])):
        assert [float(x) for x in way(composed)(f, g, 3.0)] == expected

    @relay.relay
    def other(n: F) -> Layer:
        return Layer(n, lambda x: x - n)

    assert [float(x) for x in way(composed)(way(other)(1.0).act, third, 3.0)] == [8.0, 1.0]


@ways
def test_captured_arrays_structures_and_functions(way: Way) -> None:
    @relay.relay
    def made(xs: V, up: bool) -> Layer:
        parts = {"xs": xs, "pair": (xs.sum(), 2.0)}
        kept = xs[xs > 1.0]

        def inner(y: F) -> F:
            return y + parts["pair"][0] if up else y - parts["pair"][1]

        def outer(y: F) -> F:
            return inner(y) + parts["xs"][1] + kept.sum()

        return Layer(xs[0], outer) if xs[0] > 0.0 else Layer(xs[0], inner)

    xs = np.asarray([1, 2, 3], np.float32)
    f = way(made)(xs, True).act
    xs[:] = 0.0
    assert float(f(1.0)) == 1.0 + 6.0 + 2.0 + 5.0
    assert float(way(made)(xs, False).act(1.0)) == -1.0


@ways
def test_errors_of_chosen_functions(way: Way) -> None:
    @relay.relay
    def checked(n: F) -> Layer:
        def strict(x: F) -> F:
            assert x < n, "too large"
            return x

        return Layer(n, strict) if n > 0.0 else Layer(n, lambda x: x)

    assert float(way(checked)(-1.0).act(5.0)) == 5.0
    f = way(checked)(1.0).act
    with pytest.raises(ExecutionError, match="too large"):
        f(2.0)
    with pytest.raises(TypeMismatch):
        f(np.ones(3))

    @relay.relay
    def slot(n: F) -> tuple[Ref[Fn[[F], F]], Fn[[F], F]]:
        cell = relay.ref(lambda x: x + n)
        return cell, lambda x: cell.value(x)

    cell, call = way(slot)(1.0)
    assert float(call(2.0)) == 3.0
    cell.value = f
    with pytest.raises(TypeMismatch, match="found"):
        call(2.0)

    @relay.relay
    def higher(n: F, up: bool) -> Fn[[Fn[[F], F], F], F]:
        print("higher")
        return (lambda f, x: f(x) + n) if up else (lambda f, x: f(f(x)))

    with pytest.raises(CompileError, match="a function that is selected at run time and takes a function"):
        way(higher)(1.0, True)


def test_what_is_compiled_is_kept_on_disk(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("RELAY_CACHE_SIZE", str(1 << 28))

    def made() -> RelayFunction:
        @relay.relay
        def layer(n: F, smooth: bool) -> Layer:
            return Layer(n, lambda x: x * n) if smooth else Layer(n, lambda x: x + n)

        return layer

    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="relay.compile"):
            f = made()(3.0, True).act
            assert float(f(2.0)) == 6.0
    assert sum("found compiled code" in r.message for r in caplog.records) == 2, caplog.text


def test_constructors_of_equal_programs_may_have_another_order() -> None:
    """A file on disk is for all programs that are equal up to names, whatever the order of their data types is."""
    from relay.codegen.runtime import library

    @relay.relay
    def layer(n: F, smooth: bool) -> Layer:
        return Layer(n, lambda x: x * n) if smooth else Layer(n, lambda x: x + n)

    module = layer.typed(3.0, True)
    turned = Module(module.functions, module.entry, tuple(reversed(module.data)), module.where)
    assert len(module.data) > 1 and module.alpha_hash() == turned.alpha_hash()
    assert library.definitions_of(module) == library.definitions_of(turned)
