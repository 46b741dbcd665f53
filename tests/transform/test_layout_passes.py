"""Layouts of whole programs: a chain has one transpose in and one out, and the answers stay."""

from __future__ import annotations

import numpy as np
import pytest

import relay
from relay.codegen.runtime.cpu import compile_module
from relay.errors import ShapeError
from relay.eval import interpreter
from relay.ir.expr import Constant, Module, OpCall
from relay.ir.traverse import walk
from relay.text.printer import to_text
from relay.transform import choose_layouts, convert_layout
from relay.transform.layout.layouts import LayoutTarget
from relay.transform.pipeline import Pipeline


def calls(module: Module, name: str) -> list[OpCall]:
    found = [b.value for b in walk(module.main.body) if isinstance(b.value, OpCall)]
    return [c for c in found if c.operator == name]


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.normal(size=shape) for shape in shapes]


def core(function, *given):  # type: ignore[no-untyped-def]
    """Its program for these sizes alone."""
    function.reload()
    return function.core(*given)


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


def test_a_shape_among_the_attributes_is_in_the_layout() -> None:
    @relay
    def centerd(x, k):  # type: ignore[no-untyped-def]
        h = relay.conv2d(x, k, padding=1)
        means = h.mean(axis=(0, 2, 3), keepdims=True)
        return relay.relu(h - relay.broadcast_to(means, h.shape))

    given = arrays((2, 3, 5, 4), (4, 3, 3, 3))
    before = Pipeline("inline, simplify, dce")(core(centerd, *given))
    for layout in ("NHWC", "NCHW4c"):
        after = Pipeline(f"convert-layout{{layout={layout}}}", checked=True)(before)
        np.testing.assert_allclose(interpreter.run(after, given), interpreter.run(before, given), rtol=1e-12)


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
    one = 'conv2d(%x, %k, stride=1, padding=0, dilation=1, groups=1, layout="NCHW")'
    small = relay.parse(f"""
    entry fn f(%x: Tensor[float64, (1, 8, 9, 9)], %k: Tensor[float64, (1, 8, 1, 1)]) -> Tensor[float64, (1, 1, 9, 9)] {{
      let %y: Tensor[float64, (1, 1, 9, 9)] = {one};
      %y
    }}
    """)
    assert calls(choose_layouts(small), "conv2d")[0].attributes["layout"] == "NCHW"
    grouped = grouped_network.core(*arrays((8, 32, 16, 16), (32, 4, 3, 3)))
    assert calls(grouped, "conv2d")[0].attributes["layout"] == "NCHW"
    for weights in ((32, 1, 3, 3), (64, 16, 3, 3)):  # depthwise, and in two groups
        given = arrays((8, 32, 16, 16), (32, 32, 3, 3), weights)
        other = relay.relay(grouped_layers(32 // weights[1])).core(*given)
        assert {c.attributes["layout"] for c in calls(other, "conv2d")} == {"NHWC"}


@relay
def grouped_network(x, k):  # type: ignore[no-untyped-def]
    return relay.relu(relay.conv2d(x, k, groups=8))


def grouped_layers(groups: int):  # type: ignore[no-untyped-def]
    def layers(x, k, m):  # type: ignore[no-untyped-def]
        return relay.conv2d(relay.relu(relay.conv2d(x, k)), m, groups=groups)

    return layers


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


def test_blocks_of_channels_have_one_transform_in_and_one_out() -> None:
    given = arrays((2, 3, 8, 8), (20, 3, 3, 3), (20, 20, 3, 3), (20, 1, 1))
    before = Pipeline("inline, simplify, dce")(core(network, *given))
    after = Pipeline("convert-layout{layout=NCHW8c}, simplify, cse, dce", checked=True)(before)
    assert {c.attributes["layout"] for name in ("conv2d", "max_pool2d") for c in calls(after, name)} == {"NCHWc"}
    x, *weights, _ = after.main.parameters
    transforms = calls(after, "layout_transform")
    assert [c.attributes["target"] for c in transforms if c.arguments[0] is x] == ["ABCD3b"]
    assert [c.attributes["source"] for c in transforms if c.arguments[0] not in after.main.parameters] == ["ABCD5b"]
    assert [c.attributes["target"] for c in transforms if c.arguments[0] in weights] == ["ABCD3b5a", "ABCD5b5a"]
    assert not calls(after, "transpose")
    np.testing.assert_allclose(interpreter.run(after, given), interpreter.run(before, given), rtol=1e-12, atol=1e-12)
    assert to_text(Pipeline("convert-layout{layout=NCHW8c}")(after)) == to_text(after)


LAYOUTS = ["NHWC", "NCHW4c", "NCHW16c"]


@relay(opt_level=1)
def joined(x, k, m):  # type: ignore[no-untyped-def]
    h = relay.relu(relay.conv2d(x, k, padding=1))
    left, right = relay.split(h, 2, axis=1)
    h = relay.concatenate((right, left, relay.max_pool2d(h, 3, stride=1, padding=1)), axis=1)
    h = relay.conv2d(h, m, padding=1)
    h = h / (1.0 + relay.mean(h * h, axis=(2, 3), keepdims=True)) + relay.max(h, axis=0)
    return h.sum(axis=(2, 3)), relay.softmax(h, axis=-1).mean(), h.max(axis=1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_go_through_joins_splits_and_reductions(layout: str) -> None:
    given = arrays((2, 4, 6, 5), (8, 4, 3, 3), (16, 16, 3, 3))
    before = Pipeline("inline, simplify, dce")(core(joined, *given))
    after = Pipeline(f"convert-layout{{layout={layout}}}, simplify, cse, dce", checked=True)(before)
    parameters = after.main.parameters
    moved = [*calls(after, "transpose"), *calls(after, "layout_transform")]
    inner = [c for c in moved if c.arguments[0] not in parameters]
    # A slice of half of 8 channels cuts a block of 8; what is joined with such slices has to leave its blocks, too.
    assert len(inner) == {"NHWC": 0, "NCHW4c": 0, "NCHW16c": 3}[layout], to_text(after)
    for found, wanted in zip(interpreter.run(after, given), interpreter.run(before, given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@relay(opt_level=1)
def several(x, k, m, n):  # type: ignore[no-untyped-def]
    h = relay.conv2d(x, k, stride=2, padding=1)
    h = relay.conv2d(h, m, padding=(2, 1), dilation=(2, 1))
    h = relay.avg_pool2d(h, 2) + relay.conv2d(relay.max_pool2d(h, 2), n, groups=3, padding=1)
    return relay.transpose(h, (0, 2, 3, 1)) * 2.0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [3, 6, 34])
def test_layouts_of_many_numbers_of_channels_and_their_gradients(layout: str, channels: int) -> None:
    given = arrays((1, 5, 12, 11), (7, 5, 3, 3), (3 * channels, 7, 3, 2), (3 * channels, channels, 3, 3))
    change = Pipeline(f"convert-layout{{layout={layout}}}", checked=True)
    before = core(several, *given)
    after = change(before)
    blocked = [c for c in calls(after, "conv2d") if c.attributes["groups"] == 1]
    assert {c.attributes["layout"] for c in blocked} == {"NHWC" if layout == "NHWC" else "NCHWc"}
    wanted = interpreter.run(before, given)
    np.testing.assert_allclose(interpreter.run(after, given), wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(compile_module(after)(given), wanted, rtol=1e-10, atol=1e-10)

    @relay(opt_level=1)
    def loss(x, k, m, n):  # type: ignore[no-untyped-def]
        return relay.sum(relay.tanh(several(x, k, m, n)))

    derivative = relay.grad(loss, wrt=(0, 1, 2, 3)).core(*given)
    for found, right in zip(
        interpreter.run(change(derivative), given), interpreter.run(derivative, given), strict=True
    ):
        np.testing.assert_allclose(found, right, rtol=1e-10, atol=1e-10)


def test_a_target_may_prefer_blocks() -> None:
    large = core(network, *arrays((2, 8, 32, 32), (32, 8, 3, 3), (32, 32, 3, 3), (32, 1, 1)))
    chosen = choose_layouts(large, LayoutTarget(("NCHW8c",), 1.7, 4.0, 40))
    assert {c.attributes["layout"] for c in calls(chosen, "conv2d")} == {"NCHWc"}


@pytest.mark.parametrize("written", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_graphics_processor_prefers_channels_last_for_narrow_numbers(dtype: str, written: str) -> None:
    """Its units for products of small matrices read them so; what has more digits than these take is channels first."""
    x, k, m = "2, 64, 34, 34", "256, 64, 3, 3", "64, 256, 3, 3"
    h, y = "2, 256, 32, 32", "2, 64, 30, 30"
    if written == "NHWC":
        x, k, m, h, y = "2, 34, 34, 64", "3, 3, 64, 256", "3, 3, 256, 64", "2, 32, 32, 256", "2, 30, 30, 64"
    module = relay.parse(f"""
    entry fn f(
      %x: Tensor[{dtype}, ({x})], %k: Tensor[{dtype}, ({k})], %m: Tensor[{dtype}, ({m})]
    ) -> Tensor[{dtype}, ({y})] {{
      let %a: Tensor[{dtype}, ({h})] = conv2d(%x, %k, layout="{written}");
      let %b: Tensor[{dtype}, ({h})] = relu(%a);
      let %c: Tensor[{dtype}, ({y})] = conv2d(%b, %m, layout="{written}");
      %c
    }}
    """)
    wanted = "NHWC" if dtype.endswith("float16") else "NCHW"
    after = Pipeline("choose-layouts{target=cuda}, simplify, dce", checked=True)(module)
    assert {c.attributes["layout"] for c in calls(after, "conv2d")} == {wanted}
    assert len(calls(after, "transpose")) == (0 if wanted == written else 4)  # in, out, and two weights
    assert to_text(Pipeline("choose-layouts{target=cuda}")(after)) == to_text(after)


def test_each_precision_of_a_network_has_its_layout_on_a_graphics_processor() -> None:
    rng = np.random.default_rng(3)
    k, m = (0.05 * rng.normal(size=shape) for shape in ((128, 128, 3, 3), (8, 128, 3, 3)))
    k, m = k.astype(np.float16), m.astype(np.float32)

    @relay
    def mixed(x):  # type: ignore[no-untyped-def]
        h = relay.conv2d(relay.relu(relay.conv2d(relay.cast(x, relay.Float16), k, padding=1)), k, padding=1)
        return relay.conv2d(relay.tanh(relay.cast(h, relay.Float32)), m)

    given = [rng.normal(size=(1, 128, 8, 8)).astype(np.float32)]
    before = convert_layout(Pipeline("inline, simplify, dce")(core(mixed, *given)), "NCHW")
    after = Pipeline("choose-layouts{target=cuda}, simplify, cse, dce", checked=True)(before)
    assert [c.attributes["layout"] for c in calls(after, "conv2d")] == ["NHWC", "NHWC", "NCHW"]
    results = [c for c in calls(after, "transpose") if c.arguments[0] not in after.main.parameters]
    assert len(results) <= 2  # of x in half precision, and between the precisions
    found, right = interpreter.run(after, given), interpreter.run(before, given)
    np.testing.assert_allclose(found, right, rtol=2e-3, atol=2e-3)  # half precision has 11 bits


def test_constant_weights_are_packed_at_once() -> None:
    weight = np.random.default_rng(0).normal(size=(8, 4, 3, 3))

    @relay
    def convolution(x):  # type: ignore[no-untyped-def]
        return relay.conv2d(x, weight)

    given = arrays((1, 4, 5, 5))
    after = convert_layout(convolution.core(*given), "NCHW4c")
    (call,) = calls(after, "conv2d")
    assert isinstance(call.arguments[1], Constant) and call.arguments[1].type.shape == (2, 1, 3, 3, 4, 4)
    assert len(calls(after, "layout_transform")) == 2
    np.testing.assert_allclose(interpreter.run(after, given), convolution.interpret(*given), rtol=1e-12, atol=1e-12)


def test_what_is_no_layout() -> None:
    with pytest.raises(ValueError, match=r"NDHWC, .*; found 'HWCQ'"):
        convert_layout(network.core(*arrays(*SHAPES)), "HWCQ")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"'NCHW8c' is none of this operator[\s\S]*layout='NCHWc'"):
        relay.conv2d(*arrays((1, 1, 4, 4, 8), (1, 1, 3, 3, 8, 8)), layout="NCHW8c")
    with pytest.raises(ValueError, match="a target is cpu, cuda, vta; found 'tpu'"):
        choose_layouts(network.core(*arrays(*SHAPES)), "tpu")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the option 'layout' of 'convert-layout' is NCW or"):
        Pipeline("convert-layout{layout=HWCQ}")


def test_axes_of_a_transpose_may_be_counted_from_the_end() -> None:
    before = relay.parse("""
    entry fn f(%x: Tensor[float64, (2, 3, 5)]) -> Tensor[float64, (5, 2, 3)] {
      let %a: Tensor[float64, (5, 2, 3)] = transpose(%x, axes=(-1, 0, -2));
      let %b: Tensor[float64, (5, 2, 3)] = relu(%a);
      let %c: Tensor[float64, (2, 3, 5)] = transpose(%b, axes=(1, -1, 0));
      let %d: Tensor[float64, (2, 3, 5)] = exp(%c);
      let %e: Tensor[float64, (5, 2, 3)] = transpose(%d, axes=(-1, -3, -2));
      %e
    }
    """)
    given = arrays((2, 3, 5))
    after = Pipeline("convert-layout, dce", checked=True)(before)
    np.testing.assert_array_equal(interpreter.run(after, given), interpreter.run(before, given))
