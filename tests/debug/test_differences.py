"""Compiled against interpreted: wrong passes and kernels are found, by line, and reproduced."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import relay
from relay import Float64, Ref, Tensor, debug, dims
from relay.cli import main
from relay.codegen.kernels import kernels
from relay.codegen.kernels.loops import loop
from relay.codegen.kernels.reduction import reductions
from relay.debug.differences import search
from relay.errors import FrontendError, InternalError
from relay.ir.expr import Binding, Block, Constant, Expr, Function, Loop, Module, OpCall
from relay.ir.rebuild import map_blocks
from relay.operator import lookup
from relay.transform import passes

pytestmark = pytest.mark.usefixtures("low_effort")

(n,) = dims("n")


@pytest.fixture(autouse=True)
def fresh_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wrong kernels are not kept, and not found before they run."""
    monkeypatch.setenv("RELAY_VERIFY", "0")
    kernels._made.clear()
    yield
    kernels._made.clear()


def plant(monkeypatch: pytest.MonkeyPatch, name: str, rewrite: Callable[[Expr], Expr]) -> None:
    """Let a pass also rewrite expressions."""
    right = passes.PASSES[name]

    def wrong(module: Module, **options: Any) -> Module:
        module = right(module, **options)
        functions = {
            n: attrs.evolve(f, body=block(f.body)) if isinstance(f, Function) else f
            for n, f in module.functions.items()
        }
        return attrs.evolve(module, functions=functions)

    def block(old: Block) -> Block:
        made = tuple(Binding(b.targets, rewrite(map_blocks(b.value, block))) for b in old.bindings)
        return Block(made, old.terminator)

    monkeypatch.setitem(passes.PASSES, name, wrong)


def line_of(function: Any, text: str) -> int:
    source = function.__relay__.function.span.source
    start = function.__relay__.function.span.line
    return next(n for n in range(start, start + 30) if text in source.line(n))


def reproduced(found: debug.Difference) -> int:
    """What the reproduction exits with, in this process, where the mistake is planted."""
    assert found.reproduction is not None
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(found.reproduction))
    assert isinstance(end.value.code, int)
    return end.value.code


# ---- passes


@relay
def scaled(x, rounds):
    total = 0.0
    for i in range(rounds):
        if x[i] > 1.5:
            total = total + relay.tanh(x[i]) * 0.5
    return total, relay.exp(x).sum()


def halves(value: Expr) -> Expr:
    """0.5 * x becomes 0.25 * x."""
    match value:
        case OpCall("multiply", (first, Constant(number)), attributes, span) if number.shape == () and number == 0.5:
            return OpCall("multiply", (first, Constant(np.array(0.25, number.dtype))), attributes, span)
    return value


def test_a_wrong_constant_in_a_loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plant(monkeypatch, "fold_constants", halves)
    found = debug.diff(scaled, np.array([1.0, 2.0, 3.0]), 3, directory=tmp_path)
    assert found.differs and found.cause is not None
    assert (found.cause.kind, found.cause.name) == ("pass", "fold_constants")
    assert found.line == line_of(scaled, "* 0.5") and found.function == "scaled"
    assert found.binding == "product" and found.operator == "multiply"
    assert found.found == found.expected / 2 == np.tanh(2.0) / 4
    assert found.way == (f"round 2 of the loop at line {line_of(scaled, 'for i')}",)
    text = str(found)
    assert "the first value that differs is product, by multiply, in scaled" in text
    assert re.search(r"introduced by the pass fold_constants, number 16 of \d+ at level 2", text)
    assert "(x[i]) * 0.5" in text  # the line
    assert found.reproduction is not None and found.reproduction.parent == tmp_path
    program = found.reproduction.read_text()
    assert "multiply(%tanh_result, 0.5f64)" in program and "loop" not in program
    assert reproduced(found) == 1
    monkeypatch.undo()
    assert reproduced(found) == 0  # where nothing is wrong


def test_a_wrong_reduction(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @relay
    def centered(x):
        y = x * 2.0
        m = y.sum(axis=1, keepdims=True)
        return {"centered": y - m, "count": x.shape[0]}

    def rewrite(value: Expr) -> Expr:
        return OpCall("max", value.arguments, value.attributes, value.span) if is_sum(value) else value

    def is_sum(value: Expr) -> bool:
        return isinstance(value, OpCall) and value.operator == "sum"

    plant(monkeypatch, "reorder_products", rewrite)
    found = debug.diff(centered, np.arange(40.0).reshape(8, 5), directory=tmp_path)
    assert found.cause is not None and found.cause.name == "reorder_products"
    assert (found.operator, found.line) == ("sum", line_of(centered, "y.sum"))
    assert found.index == (7, 0) and found.largest == found.expected - found.found == 2 * (35 + 36 + 37 + 38)
    assert found.reproduction is not None
    assert "Tensor[float64, (1, 3)]" in found.reproduction.read_text()  # the smallest sizes
    assert reproduced(found) == 1


def test_a_wrong_transformation_of_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop itself is wrong, and nothing inside of it."""

    @relay
    def fibonacci(x, rounds):
        a, b = x, x + 1.0
        for _ in range(rounds):
            a, b = b, a + b
        return relay.sqrt(b) + a

    def rewrite(value: Expr) -> Expr:
        if isinstance(value, Loop) and len(value.initial) == 2:
            return attrs.evolve(value, initial=value.initial[:1] * 2)
        return value

    plant(monkeypatch, "hoist_invariants", rewrite)
    found = debug.diff(fibonacci, 1.0, 5)
    assert found.cause is not None and found.cause.name == "hoist_invariants"
    assert (found.operator, found.line) == ("a loop", line_of(fibonacci, "for _"))
    assert found.binding in ("a", "b", "a1", "b1")


def test_in_functions_of_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    @relay
    def depth(x, k):
        if k == 0:
            return relay.sin(x).sum()
        return depth(x * 0.75, k - 1)

    def rewrite(value: Expr) -> Expr:
        match value:
            case OpCall("cos", arguments, attributes, span):
                return OpCall("sin", arguments, attributes, span)
        return value

    plant(monkeypatch, "choose_layouts", rewrite)
    found = debug.diff(relay.grad(depth, wrt=0), np.array([1.0, 2.0]), 3)
    assert found.cause is not None and found.cause.name == "choose_layouts"
    assert (found.operator, found.line) == ("cos", line_of(depth, "relay.sin"))


def test_a_pass_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def rewrite(value: Expr) -> Expr:
        if isinstance(value, OpCall) and value.operator == "tanh":
            raise KeyError("tanh")
        return value

    plant(monkeypatch, "compose_indices", rewrite)

    @relay
    def f(x):
        y = x + 1.0
        return relay.tanh(y) * 2.0

    found = debug.diff(f, np.ones(3))
    assert found.differs and found.cause is not None and found.cause.name == "compose_indices"
    assert "the pass compose_indices fails: KeyError: 'tanh'" in str(found) and found.line == line_of(f, "tanh")
    with pytest.raises(InternalError):
        f(np.ones(3))


def test_the_last_rounds_of_a_long_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    @relay
    def late(x, rounds):
        for i in range(rounds):
            x = relay.tanh(x) * 0.5 if i == rounds - 1 else x + 1.0
        return x

    monkeypatch.setattr(search, "MOST_ROUNDS", 3)
    plant(monkeypatch, "fold_constants", halves)
    found = debug.diff(late, 0.5, 40)
    assert (found.binding, found.line) == ("product", line_of(late, "tanh"))
    assert found.way == (f"round 40 of the loop at line {line_of(late, 'for i')}",)


# ---- kernels


def test_a_kernel_that_leaves_out_an_element_at_some_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def wrong(extent: Any, dtype: str, body: Any, kind: str = "SERIAL") -> Any:
        return loop(2 if extent == 3 and kind == "SERIAL" else extent, dtype, body, kind)

    monkeypatch.setattr(reductions, "loop", wrong)

    @relay(dynamic=False)
    def spread(x, y):
        m = x.mean(axis=1)
        for _ in range(2):
            y = relay.tanh(y + m)
        return y

    assert not debug.diff(spread, np.ones((4, 70)), np.ones(4)).differs
    kernels._made.clear()
    found = debug.diff(spread, np.ones((4, 100)), np.ones(4), directory=tmp_path)
    assert found.differs and found.cause is not None
    assert found.cause.kind == "kernel" and found.cause.name == "mean" and found.cause.rule
    assert found.line == line_of(spread, "x.mean")
    kernels._made.clear()
    assert reproduced(found) == 1
    assert "%y" not in found.reproduction.read_text()


def test_a_wrong_operator_in_a_recursion(monkeypatch: pytest.MonkeyPatch) -> None:
    tanh = lookup("tanh")
    assert tanh.compute is not None
    right = tanh.compute
    monkeypatch.setattr(relay.get_env(), "_operators", {**relay.get_env()._operators})
    relay.get_env()._operators["tanh"] = attrs.evolve(tanh, compute=lambda *a, **k: right(*a, **k) * 1.001)

    @relay
    def down(x, k):
        if k == 0:
            return relay.tanh(x)
        return down(x * 0.5, k - 1) + 1.0

    found = debug.diff(down, np.array([1.0, 2.0]), 3)
    assert found.cause is not None and found.cause.kind == "kernel" and "tanh" in found.cause.name
    assert (found.operator, found.line) == ("tanh", line_of(down, "relay.tanh"))
    assert found.way[:2] == ("a call of down", "a call of down")


def test_a_program_that_was_wrong_when_it_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    operators = relay.get_env()._operators
    cosh = lookup("cosh")
    assert cosh.compute is not None
    right = cosh.compute
    monkeypatch.setitem(operators, "cosh", attrs.evolve(cosh, compute=lambda *a, **k: right(*a, **k) + 1.0))

    @relay
    def f(x):
        return relay.cosh(x)

    f(np.ones(2))
    monkeypatch.setitem(operators, "cosh", cosh)
    kernels._made.clear()
    found = debug.diff(f, np.ones(2))
    assert found.differs and found.cause is not None and found.cause.kind == "program"
    assert "a newly compiled one is right" in str(found)
    f.reload()
    assert not debug.diff(f, np.ones(2)).differs


# ---- gradients


def test_a_wrong_gradient_is_mentioned() -> None:
    @relay
    def cube(x: Tensor[Float64, (n,)]):
        return (x * x * x).sum()

    @cube.def_gradient
    def cube_backward(saved, seed):
        (x,) = saved
        return 2.0 * x * x * seed

    found = debug.diff(relay.grad(cube), np.array([1.0, 2.0]))
    assert not found.differs and found.gradient is not None
    assert "but the gradient is wrong: the gradient of cube with respect to x[" in str(found)


def test_a_wrong_rule_of_an_operator_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    tanh = lookup("tanh")
    assert tanh.gradient is not None
    right = tanh.gradient
    monkeypatch.setattr(relay.get_env(), "_operators", {**relay.get_env()._operators})
    relay.get_env()._operators["tanh"] = attrs.evolve(tanh, gradient=lambda *a, **k: right(*a, **k) * 1.5)

    @relay
    def f(x):
        for _ in range(2):
            x = relay.sin(x) * x
        return relay.tanh(x).sum()

    found = debug.diff(relay.grad(f), np.array([1.0, 0.5]))
    assert not found.differs and found.line == line_of(f, "relay.tanh")
    assert "the rule of tanh is wrong, by 0.33" in str(found)


def test_a_pass_between_two_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    @relay
    def f(x):
        return relay.sin(x) * x

    def rewrite(value: Expr) -> Expr:
        match value:
            case OpCall("cos", arguments, attributes, span):
                return OpCall("sin", arguments, attributes, span)
        return value

    plant(monkeypatch, "reduce_strength", rewrite)
    found = debug.diff(relay.grad(relay.grad(f)), 1.0)
    assert found.cause is not None and found.cause.name in ("differentiate", "reduce_strength")
    assert found.cause.inner == ("reduce_strength" if found.cause.name == "differentiate" else None)


def test_what_references_hold_is_written_by_the_later_line(monkeypatch: pytest.MonkeyPatch) -> None:
    @relay
    def updated(x, k):
        cell = relay.ref(x)
        for _ in range(k):
            cell.value = cell.value + relay.exp(cell.value * 0.5)
        return cell.value

    plant(monkeypatch, "fold_constants", halves)
    found = debug.diff(updated, 1.0, 2)
    assert (found.binding, found.line) == ("product", line_of(updated, "relay.exp"))


# ---- without a difference


def test_donated_arguments_are_not_overwritten() -> None:
    @relay(donate_argnames="x")
    def f(x):
        return x + 1.0

    x = np.zeros(3)
    assert not debug.diff(f, x).differs and not x.any()


@relay.data
class Leaf:
    value: Tensor[Float64, ()]


@relay
def many(x, key, cell):
    def scale(c):
        return lambda v: v * c

    f = scale(2.0) if x[0] > 0.0 else scale(3.0)
    items = []
    for v in x:
        items.append(f(v))
    cell.value = cell.value + relay.random.normal(key, (3,))
    print("printed", x[0])
    return items, {"leaf": Leaf(x[1]), "cell": cell.value, "pair": (x.sum(), x.shape[0])}


def test_structures_closures_lists_references_and_keys(capsys: pytest.CaptureFixture[str]) -> None:
    cell = Ref(np.zeros(3))
    found = debug.diff(many, np.array([1.0, 2.0]), relay.random.key(0), cell)
    assert not found.differs and found.cause is None and found.reproduction is None
    assert found.largest < 1e-12 and "many: compiled as interpreted" in str(found)
    assert capsys.readouterr().out == "" and not cell.value.any()  # it leaves no trace


def test_the_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "fold_constants", halves)

    @relay
    def f(x):
        return x * 0.5

    x = np.full(2, 1e-3)
    assert debug.diff(f, x).differs and not debug.diff(f, x, tolerance=1e-3).differs
    assert debug.diff(f, x, tolerance={"float32": 1.0}).largest == 2.5e-4
    for wrong in (-1.0, "much", {"int32": 1.0}, True):
        with pytest.raises(FrontendError, match="tolerance"):
            debug.diff(f, x, tolerance=wrong)  # type: ignore[arg-type]
    with pytest.raises(FrontendError, match="diff takes a decorated function, found function"):
        debug.diff(lambda x: x, x)  # type: ignore[arg-type]


def test_an_error_of_one_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    @relay
    def f(x, i):
        y = x * 2.0
        return y[i]

    assert "both end with an error: index out of range" in str(debug.diff(f, np.ones(3), 5))

    def rewrite(value: Expr) -> Expr:
        match value:
            case OpCall("less", (first, Constant()), attributes, span):
                return OpCall("less", (first, Constant(np.array(2, np.int32))), attributes, span)
        return value

    plant(monkeypatch, "sink_reads", rewrite)
    f.reload()
    found = debug.diff(f, np.ones(3), 2)
    assert found.differs and found.cause is not None and found.cause.name == "sink_reads"


def test_at_the_command_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "program.py"
    file.write_text("import relay\n\n@relay\ndef f(x):\n    return (x * 0.5).sum()\n")
    np.savez(tmp_path / "a.npz", x=np.ones(3))
    command = ["debug", f"{file}:f", "--args", str(tmp_path / "a.npz"), "--diff"]
    assert main(command) == 0
    assert "f: compiled as interpreted" in capsys.readouterr().out
    plant(monkeypatch, "fold_constants", halves)
    assert main([*command, "--output", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().out
    assert "introduced by the pass fold_constants" in said and "program.py:5" in said
    assert (tmp_path / "out" / "f.py").is_file() and (tmp_path / "out" / "f.npz").is_file()
