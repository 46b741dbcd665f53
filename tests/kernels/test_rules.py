"""Schedule rules: each that applies to a kernel makes loops that compute the same, and `relay show` tells which did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relay
from relay.codegen.kernels import schedules
from relay.codegen.kernels.rules import Plan, Rule, Table
from relay.codegen.lowering import module_builder
from relay.codegen.runtime import cpu
from relay.codegen.tiling import TilingChoice
from relay.errors import InternalError, RelayError

KERNEL_WEIGHTS = np.random.default_rng(1).standard_normal((3, 3, 64, 32))

KERNELS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "convolution": (lambda x: relay.conv2d(x, KERNEL_WEIGHTS, layout="NHWC", padding=1), [(1, 12, 12, 64)]),
    "product": (lambda x, y: relay.tanh(x @ y), [(33, 17), (17, 40)]),
    "product of any size": (lambda x, y: relay.tanh(x @ y), [(33, 17), (17, 40)]),
    "few columns in float32": (lambda x, y: x @ y, [(50, 80), (80, 4)]),
    "one row": (lambda x, y: x @ y, [(600,), (600, 700)]),
    "short rows": (lambda x: relay.softmax(x), [(37, 7)]),
    "short reductions": (lambda x: x.sum(axis=1), [(37, 7)]),
    "rows with a vector": (lambda x, y: x @ y, [(40, 300), (300,)]),
    "total": (lambda x: relay.sum(x * x), [(3000,)]),
    "nested": (lambda x: relay.tanh(relay.exp(x)), [(2000,)]),
    "columns": (lambda x: x.mean(axis=0), [(70, 45)]),
    "transposed": (lambda x: relay.transpose(x) * 2.0, [(50, 70)]),
    "pointwise": (lambda x, y: relay.tanh(x) + y, [(50, 70), (50, 70)]),
    "blocks by hand": (lambda x: relay.schedule(relay.tanh(x), tile=(8, 16), unroll=True), [(50, 70)]),
    "broadcast": (lambda x, y: x + y, [(50, 70), (70,)]),
    "normalized": (lambda x: (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True), [(20, 90)]),
    "two at once": (lambda x: (x.sum(), x.max(axis=1)), [(20, 90)]),
}


def compiled(name: str) -> tuple[Any, list[np.ndarray]]:
    body, shapes = KERNELS[name]
    random = np.random.default_rng(0)
    dtype = "float32" if name.endswith("float32") else "float64"  # half a vector of AVX2 has two columns in float64
    arguments = [random.standard_normal(shape).astype(dtype) for shape in shapes]
    return relay.relay(dynamic=name.endswith("of any size"))(body), arguments


def rules_of(module: Any, choices: Any = None) -> list[str]:
    return [d.rule for s in module_builder.schedules(module, 2, choices or {}) for d in s.decisions]


def test_products_of_any_size_have_few_polynomials_in_their_loops() -> None:
    """With more than two of them the elements are computed from the product in a loop of their own."""
    two = relay.relay(dynamic=True)(lambda x, y, z: relay.tanh(x @ y) * relay.exp(z))
    three = relay.relay(dynamic=True)(lambda x, y, z: relay.tanh(x @ y) * relay.exp(z) + relay.sin(z))
    random = np.random.default_rng(0)
    arguments = [random.standard_normal(shape).astype("float32") for shape in ((61, 17), (17, 40), (61, 40))]
    for function, rules in ((two, ["symbolic_gemm"]), (three, ["one_by_one", "symbolic_gemm", "pointwise"])):
        assert rules_of(function.core(*arguments)) == rules
        np.testing.assert_allclose(function(*arguments), function.interpret(*arguments), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", KERNELS)
def test_all_rules_that_apply_compute_the_same(name: str) -> None:
    function, arguments = compiled(name)
    expected = function.interpret(*arguments)
    core = function.core(*arguments)
    chosen = rules_of(core)
    for kernel, options in module_builder.options(core, 2).items():
        for rule in options.rules:
            choice = {kernel: TilingChoice(rule=rule)}
            assert rule in rules_of(core, choice)
            program = cpu.Program(cpu.compile_native(core, 2, choice), cpu.DataResult)
            found = program(tuple(arguments))
            pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
            for mine, other in pairs:  # sums of up to 3,000 numbers in another order
                tolerance = 5_000 * np.finfo(other.dtype).eps
                np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance, err_msg=rule)
        assert options.rules == () or set(chosen) & set(options.rules)


def test_every_rule_is_chosen_by_something() -> None:
    chosen = {rule for name in KERNELS for rule in rules_of(compiled(name)[0].core(*compiled(name)[1]))}
    tables = (schedules.KERNEL_RULES, schedules.CLUSTER_RULES)
    assert chosen == {rule.name for table in tables for rule in table.rules}


def test_the_highest_priority_wins_and_the_reason_is_kept() -> None:
    low = Rule[int]("low", 0, lambda e, n: Plan("always", list))
    high = Rule[int]("high", 1, lambda e, n: Plan("large", list) if n > 3 else None)
    table = Table((low, high))
    for number, expected in ((5, ("high", "5", "large")), (2, ("low", "2", "always"))):
        e = schedules.Emission(1, "int32")
        assert table.emit(e, number) == []
        assert [(d.rule, d.subject, d.reason) for d in e.decisions] == [expected]
    e = schedules.Emission(1, "int32", TilingChoice(rule="low"))
    table.emit(e, 5)
    assert e.decisions[0].rule == "low"
    with pytest.raises(InternalError, match="same name or priority"):
        Table((low, low))
    with pytest.raises(InternalError, match="no schedule rule applies to 2"):
        Table((high,)).emit(e, 2)


def test_show_tells_the_rule_of_each_kernel(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "net.py"
    file.write_text(
        "from relay import Float, Tensor, relay, softmax\n\n"
        "@relay\n"
        "def net(x: Tensor[Float, (64, 40)], w: Tensor[Float, (40, 10)]):\n"
        "    return softmax(x @ w)\n"
    )
    assert show_main(["show", f"{file}:net", "--stage", "kernels"]) == 0
    out = capsys.readouterr().out
    assert "kernel0_matmul -> Tensor[float32, (64, 10)]\n  computes matmul\n  gemm: 64 x 10 over 40, " in out
    assert "short_common_rows: 4 loops, rows of at most 10 elements: " in out


def test_schedules_by_hand_that_do_not_suit_are_refused() -> None:
    x = np.ones((8, 8))
    for options, message in (
        ({"tile": (4, 4)}, "a tile does not apply to this kernel, whose rule is"),
        ({"rule": "winograd"}, "the rule 'winograd' does not apply to this kernel"),
        ({"tile": (4,)}, "a tile has a length for each axis: 2"),
        ({"rows": 0}, "rows must be a number from 1 on"),
        ({"parallel": 1}, "parallel of schedule must be bool"),
    ):
        with pytest.raises(RelayError, match=message):
            relay.relay(lambda x, options=options: relay.schedule(x @ x, **options))(x)


def test_kernels_end_where_the_program_says() -> None:
    x = np.ones(600)
    whole = relay.relay(lambda x: relay.exp(x * 2.0) + 1.0)
    parts = relay.relay(lambda x: relay.stop_fusion(relay.exp(relay.stop_fusion(x * 2.0))) + 1.0)
    assert len(module_builder.schedules(whole.core(x), 2, {})) == 1
    assert [s.operators for s in module_builder.schedules(parts.core(x), 2, {})] == [
        ("multiply", "stop_fusion"), ("exp", "stop_fusion"), ("add",),
    ]  # fmt: skip
    np.testing.assert_array_equal(parts(x), whole(x))
    assert relay.grad(lambda x: parts(x).sum()).interpret(x)[0] == pytest.approx(2 * np.exp(2))


def show_main(arguments: list[str]) -> int:
    from relay.cli import main

    return main(arguments)
