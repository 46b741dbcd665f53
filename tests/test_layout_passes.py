"""Layouts of whole programs: a chain has one transpose in and one out, and the answers stay."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.eval import interpreter
from relay.ir.expr import Module, OpCall
from relay.ir.traverse import walk
from relay.transform import choose_layouts, convert_layout
from relay.transform.pipeline import Pipeline


def calls(module: Module, name: str) -> list[OpCall]:
    found = [b.value for b in walk(module.main.body) if isinstance(b.value, OpCall)]
    return [c for c in found if c.operator == name]


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.normal(size=shape) for shape in shapes]


@relay
def network(x, k, m, b):  # type: ignore[no-untyped-def]
    h = relay.relu(relay.conv2d(x, k, padding=1) + b)
    h = h + relay.tanh(relay.conv2d(h, m, padding=1))
    return relay.max_pool2d(h, 2)


SHAPES = (2, 3, 8, 8), (4, 3, 3, 3), (4, 4, 3, 3), (4, 1, 1)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_a_chain_has_one_transpose_in_and_one_out(layout: str) -> None:
    given = arrays(*SHAPES)
    before = Pipeline("inline, simplify, dce")(network.core(*given))
    first = convert_layout(before, "NCHW" if layout == "NHWC" else "NHWC")
    after = Pipeline(f"convert-layout{{layout={layout}}}, simplify, cse, dce", checked=True)(first)
    assert {c.attributes["layout"] for name in ("conv2d", "max_pool2d") for c in calls(after, name)} == {layout}
    activations = [c for c in calls(after, "transpose") if c.arguments[0] is after.main.parameters[0]]
    assert len(activations) == (layout == "NHWC")
    weights = after.main.parameters[1:3]
    results = [c for c in calls(after, "transpose") if c.arguments[0] not in after.main.parameters]
    assert len(results) == (layout == "NHWC") and len(calls(after, "transpose")) <= 2 + len(weights)
    np.testing.assert_allclose(interpreter.run(after, given), interpreter.run(before, given), rtol=1e-12, atol=1e-12)


def test_constant_weights_are_transposed_at_once() -> None:
    module = relay.parse("""
    entry fn f(%x: Tensor[float64, (1, 2, 3, 3)]) -> Tensor[float64, (1, 1, 3, 3)] {
      let %y: Tensor[float64, (1, 1, 3, 3)] = conv2d(%x, [[[[1.0]], [[2.0]]]]f64, layout="NCHW", stride=1, padding=0,
        dilation=1, groups=1);
      %y
    }
    """)
    after = convert_layout(module)
    assert len(calls(after, "transpose")) + len(calls(after, "reshape")) == 2
    (x,) = arrays((1, 2, 3, 3))
    np.testing.assert_allclose(interpreter.run(after, [x]), interpreter.run(module, [x]), rtol=1e-12)


def test_layouts_are_chosen_where_that_pays() -> None:
    large = network.core(*arrays((2, 8, 32, 32), (32, 8, 3, 3), (32, 32, 3, 3), (32, 1, 1)))
    assert {c.attributes["layout"] for c in calls(large, "conv2d")} == {"NHWC"}
    derivative = relay.grad(lambda_loss).core(*arrays((4, 8, 16, 16), (16, 8, 3, 3)))
    assert {c.attributes["layout"] for c in calls(derivative, "conv2d_weight_gradient")} == {"NHWC"}
    one = "conv2d(%x, %k, stride=1, padding=0, dilation=1, groups=1, layout=\"NCHW\")"
    small = relay.parse(f"""
    entry fn f(%x: Tensor[float64, (1, 8, 9, 9)], %k: Tensor[float64, (1, 8, 1, 1)]) -> Tensor[float64, (1, 1, 9, 9)] {{
      let %y: Tensor[float64, (1, 1, 9, 9)] = {one};
      %y
    }}
    """)
    assert calls(choose_layouts(small), "conv2d")[0].attributes["layout"] == "NCHW"
    grouped = grouped_network.core(*arrays((8, 32, 16, 16), (32, 4, 3, 3)))
    assert calls(grouped, "conv2d")[0].attributes["layout"] == "NCHW"


@relay
def grouped_network(x, k):  # type: ignore[no-untyped-def]
    return relay.relu(relay.conv2d(x, k, groups=8))


@relay
def lambda_loss(x, k):  # type: ignore[no-untyped-def]
    return relay.sum(relay.relu(relay.conv2d(x, k)))


def test_transposes_of_the_program_are_absorbed() -> None:
    @relay
    def last(x, k):  # type: ignore[no-untyped-def]
        y = relay.conv2d(relay.transpose(x, (0, 3, 1, 2)), k)
        return relay.transpose(relay.relu(y), (0, 2, 3, 1))

    given = arrays((2, 8, 8, 3), (4, 3, 3, 3))
    after = Pipeline("convert-layout, simplify, dce")(last.core(*given))
    assert len(calls(after, "transpose")) == 1  # of the weights
    np.testing.assert_allclose(interpreter.run(after, given), last.interpret(*given), rtol=1e-12, atol=1e-12)


def test_what_is_no_layout() -> None:
    with pytest.raises(ValueError, match="NDHWC; found 'HWCQ'"):
        convert_layout(network.core(*arrays(*SHAPES)), "HWCQ")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the option 'layout' of 'convert-layout' is NCW or"):
        Pipeline("convert-layout{layout=HWCQ}")
