"""What nodes of ONNX are as calls of one operator, for `test_onnx_nodes.py`.

A rule gets the node's attributes and inputs (None for one that is left out) and returns (operator's name, operands,
attributes); it raises `NoCall` with the reason where one call of an operator does not do it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relay.ir.types import base_of_dtype

Array = np.ndarray[Any, np.dtype[Any]]
Call = tuple[str, tuple[Array, ...], dict[str, Any]]
Inputs = list[Any]
Rule = Callable[[dict[str, Any], Inputs], Call]


class NoCall(Exception):
    """This node is not a call of one operator; the text says why."""


def _same(name: str) -> Rule:
    def rule(a: dict[str, Any], x: Inputs) -> Call:
        if a:
            raise NoCall(f"the attributes {', '.join(a)}")
        if len({e.dtype for e in x}) > 1:
            raise NoCall("operands of different dtypes")
        return name, tuple(x), {}

    return rule


def _with(name: str, **names: tuple[str, Any]) -> Rule:
    """Attributes by their ONNX name: our name and the default."""

    def rule(a: dict[str, Any], x: Inputs) -> Call:
        return name, tuple(x), {ours: a.get(theirs, default) for theirs, (ours, default) in names.items()}

    return rule


def _pair(name: str) -> Rule:
    def rule(a: dict[str, Any], x: Inputs) -> Call:
        if len(x) != 2:
            raise NoCall("another number of operands than two")
        return name, tuple(x), {}

    return rule


def _ints(value: Any) -> tuple[int, ...]:
    return tuple(int(v) for v in np.asarray(value).reshape(-1))


def _scalar(value: Any) -> Any:
    return np.asarray(value).reshape(-1)[0].item()


def _dtype(dtype: Any) -> Any:
    found = base_of_dtype(np.dtype(dtype))
    if found is None:
        raise NoCall(f"the dtype {dtype}")
    return found


def _div(a: dict[str, Any], x: Inputs) -> Call:
    if x[0].dtype.kind == "i" and min(x[0].min(), x[1].min()) < 0:
        raise NoCall("integer division towards zero")
    return ("divide" if x[0].dtype.kind == "f" else "floor_divide"), tuple(x), {}


def _mod(a: dict[str, Any], x: Inputs) -> Call:
    if a.get("fmod"):
        raise NoCall("fmod, with the sign of the dividend")
    return "mod", tuple(x), {}


def _shift(a: dict[str, Any], x: Inputs) -> Call:
    return {"LEFT": "left_shift", "RIGHT": "right_shift"}[a["direction"]], tuple(x), {}


def _clip(a: dict[str, Any], x: Inputs) -> Call:
    low, high = (None if v is None else _scalar(v) for v in (*x[1:], None, None)[:2])
    if low is not None and high is not None and low > high:
        raise NoCall("bounds in the wrong order")
    return "clip", (x[0],), {"low": low, "high": high}


def _cast(a: dict[str, Any], x: Inputs) -> Call:
    from onnx import helper

    return "cast", (x[0],), {"dtype": _dtype(helper.tensor_dtype_to_np_dtype(a["to"]))}


def _cast_like(a: dict[str, Any], x: Inputs) -> Call:
    return "cast", (x[0],), {"dtype": _dtype(x[1].dtype)}


def _concat(a: dict[str, Any], x: Inputs) -> Call:
    return "concatenate", tuple(x), {"axis": a["axis"]}


def _reshape(a: dict[str, Any], x: Inputs) -> Call:
    shape = _ints(x[1])
    if a.get("allowzero"):
        return "reshape", (x[0],), {"shape": shape}
    return "reshape_codes", (x[0],), {"codes": shape}


def _flatten(a: dict[str, Any], x: Inputs) -> Call:
    axis = a.get("axis", 1)
    axis += x[0].ndim if axis < 0 else 0
    shape = (math.prod(x[0].shape[:axis]), math.prod(x[0].shape[axis:]))
    return "reshape", (x[0],), {"shape": shape}


def _squeeze(a: dict[str, Any], x: Inputs) -> Call:
    return "squeeze", (x[0],), {"axis": _ints(x[1]) if len(x) > 1 else None}


def _unsqueeze(a: dict[str, Any], x: Inputs) -> Call:
    return "expand_dims", (x[0],), {"axis": _ints(x[1])}


def _expand(a: dict[str, Any], x: Inputs) -> Call:
    return "broadcast_to", (x[0],), {"shape": np.broadcast_shapes(x[0].shape, _ints(x[1]))}


def _slice(a: dict[str, Any], x: Inputs) -> Call:
    data, starts, ends = x[0], _ints(x[1]), _ints(x[2])
    axes = _ints(x[3]) if len(x) > 3 and x[3] is not None else tuple(range(len(starts)))
    steps = _ints(x[4]) if len(x) > 4 else (1,) * len(starts)
    bounds = [(0, d, 1) for d in data.shape]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        bounds[axis] = slice(start, end, step).indices(data.shape[axis])
    bounds = [(b, e, s) if len(range(b, e, s)) else (0, 0, 1) for b, e, s in bounds]
    begin, end_, strides = (tuple(b[i] for b in bounds) for i in range(3))
    return "strided_slice", (data,), {"begin": begin, "end": end_, "strides": strides}


def _split(a: dict[str, Any], x: Inputs) -> Call:
    axis, sizes = a.get("axis", 0), _ints(x[1]) if len(x) > 1 else a.get("split")
    if sizes is None:
        if "num_outputs" not in a:
            raise NoCall("as many equal parts as there are results")
        count, extent = a["num_outputs"], x[0].shape[axis]
        size = -(-extent // count)
        sizes = (*(size,) * (count - 1), extent - size * (count - 1))
    return "split", (x[0],), {"indices_or_sections": _ints(np.cumsum(sizes)[:-1]), "axis": axis}


def _pad(a: dict[str, Any], x: Inputs) -> Call:
    if len(x) > 3:
        raise NoCall("padding of chosen axes")
    mode, rank = a.get("mode", "constant"), x[0].ndim
    pads = _ints(x[1])
    if mode == "wrap" or min(pads) < 0:
        raise NoCall("padding by wrapping, or by cutting off")
    widths = tuple(zip(pads[:rank], pads[rank:], strict=True))
    value = _scalar(x[2]) if len(x) > 2 and x[2] is not None else 0
    return "pad", (x[0],), {"widths": widths, "mode": mode, "value": value}


def _triangle(a: dict[str, Any], x: Inputs) -> Call:
    return "triu" if a.get("upper", 1) else "tril", (x[0],), {"k": int(_scalar(x[1])) if len(x) > 1 else 0}


def _eye(a: dict[str, Any], x: Inputs) -> Call:
    from onnx import helper

    dtype = helper.tensor_dtype_to_np_dtype(a["dtype"]) if "dtype" in a else x[0].dtype
    rows, columns = x[0].shape
    return "eye", (), {"n": rows, "m": columns, "k": a.get("k", 0), "dtype": _dtype(dtype)}


def _range(a: dict[str, Any], x: Inputs) -> Call:
    start, stop, step = map(_scalar, x)
    return "arange", (), {"start": start, "stop": stop, "step": step, "dtype": _dtype(x[0].dtype)}


def _full(a: dict[str, Any], x: Inputs) -> Call:
    from onnx import numpy_helper

    value = numpy_helper.to_array(a["value"])
    return "full", (), {"shape": _ints(x[0]), "value": _scalar(value), "dtype": _dtype(value.dtype)}


def _scan(name: str) -> Rule:
    def rule(a: dict[str, Any], x: Inputs) -> Call:
        if a.get("exclusive"):
            raise NoCall("a running result without the element itself")
        attributes = {"axis": int(_scalar(x[1]))}
        if a.get("reverse"):
            attributes["reverse"] = True
        return name, (x[0],), attributes

    return rule


def _reduce(name: str, **more: Any) -> Rule:
    def rule(a: dict[str, Any], x: Inputs) -> Call:
        axes = _ints(x[1]) if len(x) > 1 and x[1] is not None else a.get("axes")
        if a.get("noop_with_empty_axes") and not axes:
            raise NoCall("no reduction at all")
        axis = tuple(axes) if axes else None
        own = {"max": "any", "min": "all"}.get(name, name) if x[0].dtype == np.bool_ else name
        return own, (x[0],), {"axis": axis, "keepdims": bool(a.get("keepdims", 1)), **more}

    return rule


def _arg(name: str) -> Rule:
    def rule(a: dict[str, Any], x: Inputs) -> Call:
        if a.get("select_last_index"):
            raise NoCall("the last of equal elements")
        return name, (x[0],), {"axis": a.get("axis", 0), "keepdims": bool(a.get("keepdims", 1))}

    return rule


def _topk(a: dict[str, Any], x: Inputs) -> Call:
    return "topk", (x[0],), {
        "k": int(_scalar(x[1])), "axis": a.get("axis", -1), "largest": bool(a.get("largest", 1))
    }  # fmt: skip


def _einsum(a: dict[str, Any], x: Inputs) -> Call:
    return "einsum", tuple(x), {"subscripts": a["equation"]}


def _gather_nd(a: dict[str, Any], x: Inputs) -> Call:
    if a.get("batch_dims"):
        raise NoCall("batch axes")
    return "gather_nd", tuple(x), {}


def _scatter_nd(a: dict[str, Any], x: Inputs) -> Call:
    reduction = a.get("reduction", "none")
    if reduction not in ("none", "add"):
        raise NoCall(f"the reduction {reduction}")
    return "scatter_nd", tuple(x), {"reduction": reduction}


def _scatter_elements(a: dict[str, Any], x: Inputs) -> Call:
    if a.get("reduction", "none") != "add":
        raise NoCall("elements that are replaced or combined otherwise than by addition")
    return "add_along_axis", tuple(x), {"axis": a.get("axis", 0)}


def _windows(a: dict[str, Any], rank: int) -> dict[str, Any]:
    pads = a.get("pads", [0] * 2 * rank)
    padding: Any = tuple(zip(pads[:rank], pads[rank:], strict=True))
    automatic = a.get("auto_pad", "NOTSET")
    if automatic != "NOTSET":
        padding = {"SAME_UPPER": "same", "SAME_LOWER": "same_lower", "VALID": "valid"}[automatic]
    return {
        "stride": tuple(a.get("strides", [1] * rank)),
        "padding": padding,
        "dilation": tuple(a.get("dilations", [1] * rank)),
    }


def _convolution(name: str) -> Rule:
    def rule(a: dict[str, Any], x: Inputs) -> Call:
        if len(x) > 2:
            raise NoCall("a bias")
        rank = x[0].ndim - 2
        return f"{name.format(rank)}", tuple(x), {**_windows(a, rank), "groups": a.get("group", 1)}

    return rule


def _transposed_convolution(a: dict[str, Any], x: Inputs) -> Call:
    if "output_shape" in a or a.get("auto_pad", "NOTSET") != "NOTSET":
        raise NoCall("padding by the shape of the result")
    rank = x[0].ndim - 2
    more = {"output_padding": tuple(a.get("output_padding", [0] * rank)), "groups": a.get("group", 1)}
    return f"conv{rank}d_transpose", tuple(x), {**_windows(a, rank), **more}


def _pool(name: str) -> Rule:
    def rule(a: dict[str, Any], x: Inputs) -> Call:
        rank = x[0].ndim - 2
        attributes = {"kernel": tuple(a["kernel_shape"]), **_windows(a, rank), "ceil_mode": bool(a.get("ceil_mode"))}
        if name == "avg":
            attributes["count_include_pad"] = bool(a.get("count_include_pad", 0))
        return f"{name}_pool{rank}d", (x[0],), attributes

    return rule


def _global_pool(name: str) -> Rule:
    def rule(a: dict[str, Any], x: Inputs) -> Call:
        rank = x[0].ndim - 2
        return f"global_{name}_pool{rank}d", (x[0],), {}

    return rule


def _batch_norm(a: dict[str, Any], x: Inputs) -> Call:
    if a.get("training_mode"):
        raise NoCall("running statistics as further results")
    return "batch_norm", tuple(x), {"epsilon": a.get("epsilon", 1e-5)}


def _group_norm(a: dict[str, Any], x: Inputs) -> Call:
    return "group_norm", tuple(x), {"groups": a["num_groups"], "epsilon": a.get("epsilon", 1e-5)}


def _last_axes_norm(name: str) -> Rule:
    def rule(a: dict[str, Any], x: Inputs) -> Call:
        axis = a.get("axis", -1) % x[0].ndim
        if any(e.shape != x[0].shape[axis:] for e in x[1:]):
            raise NoCall("weights of another shape than the normalized axes")
        return name, tuple(x), {"epsilon": a.get("epsilon", 1e-5)}

    return rule


def _lrn(a: dict[str, Any], x: Inputs) -> Call:
    names = {"size": None, "alpha": 1e-4, "beta": 0.75, "bias": 1.0}
    return "lrn", tuple(x), {n: a.get(n, default) for n, default in names.items()}


def _loss(name: str) -> Rule:
    def rule(a: dict[str, Any], x: Inputs) -> Call:
        if len(x) > 2:
            raise NoCall("weights of classes")
        attributes = {"axis": 1, "ignore_index": a.get("ignore_index"), "reduction": a.get("reduction", "mean")}
        return name, tuple(x), attributes

    return rule


def _quantize(a: dict[str, Any], x: Inputs) -> Call:
    dtype = x[2].dtype if len(x) > 2 else np.dtype(np.uint8)
    if dtype not in (np.int8, np.uint8) or a.get("block_size") or "output_dtype" in a or x[1].dtype != x[0].dtype:
        raise NoCall("other results than of 8 bits, in blocks, or scales of another dtype")
    zero = x[2].astype(np.int32) if len(x) > 2 else np.zeros(x[1].shape, np.int32)
    return "quantize", (x[0], x[1], zero), {"axis": a.get("axis", 1) if x[1].ndim else -1, "out_dtype": _dtype(dtype)}


def _dequantize(a: dict[str, Any], x: Inputs) -> Call:
    if x[0].dtype not in (np.int8, np.uint8) or a.get("block_size"):
        raise NoCall("other operands than of 8 bits, or in blocks")
    zero = x[2].astype(np.int32) if len(x) > 2 else np.zeros(x[1].shape, np.int32)
    return "dequantize", (x[0], x[1], zero), {"axis": a.get("axis", 1) if x[1].ndim else -1}


def _prelu(a: dict[str, Any], x: Inputs) -> Call:
    if x[1].ndim != 1:
        raise NoCall("slopes that are not those of one axis")
    return "prelu", tuple(x), {"axis": -1}


def _selu(a: dict[str, Any], x: Inputs) -> Call:
    if a:
        raise NoCall("other constants than those of the paper")
    return "selu", tuple(x), {}


def _swish(a: dict[str, Any], x: Inputs) -> Call:
    if a.get("alpha", 1.0) != 1.0:
        raise NoCall("another factor than 1")
    return "silu", tuple(x), {}


def _power(a: dict[str, Any], x: Inputs) -> Call:
    if x[0].dtype != x[1].dtype:
        raise NoCall("a base and an exponent of different dtypes")
    return "power", tuple(x), {}


def _grid_sample(a: dict[str, Any], x: Inputs) -> Call:
    method = {"linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest"}.get(a.get("mode", "linear"))
    if method is None or x[0].ndim != 4:
        raise NoCall("cubic interpolation, or volumes")
    attributes = {"method": method, "padding": a.get("padding_mode", "zeros")}
    return "grid_sample", tuple(x), {**attributes, "align_corners": bool(a.get("align_corners", 0))}


def _resize(a: dict[str, Any], x: Inputs) -> Call:
    places = a.get("coordinate_transformation_mode", "half_pixel")
    mode = a.get("mode", "nearest")
    rounding = a.get("nearest_mode", "round_prefer_floor")
    wanted = {"nearest": {"asymmetric": "floor", "half_pixel": "round_prefer_ceil"}, "linear": {}}
    fits = mode == "linear" or (mode == "nearest" and wanted["nearest"].get(places) == rounding)
    if not fits or places not in ("half_pixel", "asymmetric", "align_corners") or x[0].ndim != 4:
        raise NoCall("cubic interpolation, other places or another rounding of them")
    if a.get("antialias") or "axes" in a or a.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise NoCall("antialiasing, chosen axes or a policy for the sizes")
    if len(x) > 3:
        sizes = _ints(x[3])
    else:
        scales = np.asarray(x[2])
        sizes = _ints(np.floor(np.array(x[0].shape) * scales))
        if any(n * s != m for n, s, m in zip(x[0].shape, scales, sizes, strict=True)):
            raise NoCall("a scale that gives no whole size, by which places are found")
    if sizes[:2] != x[0].shape[:2] or x[0].dtype != np.float32:
        raise NoCall("another number of channels, or integers")
    method = "nearest" if mode == "nearest" else "bilinear"
    return "resize2d", (x[0],), {"size": sizes[2:], "method": method, "coordinates": places}


def _depth_to_space(a: dict[str, Any], x: Inputs) -> Call:
    return "depth_to_space", tuple(x), {"block": a["blocksize"], "mode": a.get("mode", "DCR")}


def _space_to_depth(a: dict[str, Any], x: Inputs) -> Call:
    if a.get("mode", "DCR") != "DCR":
        raise NoCall("the mode CRD")
    return "space_to_depth", tuple(x), {"block": a["blocksize"]}


def _reverse_sequence(a: dict[str, Any], x: Inputs) -> Call:
    return "reverse_sequence", tuple(x), {"axis": a.get("time_axis", 0), "batch_axis": a.get("batch_axis", 1)}


def _is_inf(a: dict[str, Any], x: Inputs) -> Call:
    if not all(a.get(n, 1) for n in ("detect_positive", "detect_negative")):
        raise NoCall("infinities of one sign")
    return "isinf", tuple(x), {}


def _attention(a: dict[str, Any], x: Inputs) -> Call:
    if len(x) > 3 or x[0].ndim != 4 or x[0].shape[1] != x[1].shape[1] or set(a) - {"scale", "is_causal"}:
        raise NoCall("masks, caches, heads in one axis, groups of heads, or a cap")
    return "scaled_dot_product_attention", tuple(x), {
        "causal": bool(a.get("is_causal")), "scale": a.get("scale")
    }  # fmt: skip


RULES: Mapping[str, Rule] = {
    **{theirs: _same(ours) for theirs, ours in {
        "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Add": "add", "And": "logical_and", "Asin": "asin",
        "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh", "BitwiseAnd": "bitwise_and", "BitwiseNot": "bitwise_not",
        "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh",
        "Equal": "equal", "Erf": "erf", "Exp": "exp", "Floor": "floor", "Greater": "greater",
        "GreaterOrEqual": "greater_equal", "HardSwish": "hardswish", "Identity": "copy", "IsNaN": "isnan",
        "Less": "less", "LessOrEqual": "less_equal", "Log": "log", "MatMul": "matmul", "Mish": "mish",
        "Mul": "multiply", "Neg": "negative", "Not": "logical_not", "Or": "logical_or", "Reciprocal": "reciprocal",
        "Relu": "relu", "Round": "round", "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh",
        "Softplus": "softplus", "Sqrt": "sqrt", "Sub": "subtract", "Tan": "tan", "Tanh": "tanh", "Xor": "not_equal",
    }.items()},
    "ArgMax": _arg("argmax"), "ArgMin": _arg("argmin"), "Attention": _attention, "AveragePool": _pool("avg"),
    "BatchNormalization": _batch_norm, "BitShift": _shift, "Cast": _cast, "CastLike": _cast_like, "Clip": _clip,
    "Concat": _concat, "ConstantOfShape": _full, "Conv": _convolution("conv{}d"), "ConvTranspose":
    _transposed_convolution, "CumProd": _scan("cumprod"), "CumSum": _scan("cumsum"),
    "DepthToSpace": _depth_to_space, "DequantizeLinear": _dequantize, "Div": _div, "Einsum": _einsum,
    "Elu": _with("elu", alpha=("alpha", 1.0)), "Expand": _expand, "EyeLike": _eye, "Flatten": _flatten,
    "Gather": _with("take", axis=("axis", 0)), "GatherElements": _with("take_along_axis", axis=("axis", 0)),
    "GatherND": _gather_nd, "Gelu": _with("gelu", approximate=("approximate", "none")),
    "GlobalAveragePool": _global_pool("avg"), "GlobalMaxPool": _global_pool("max"), "GridSample": _grid_sample,
    "GroupNormalization": _group_norm, "InstanceNormalization": _with("instance_norm", epsilon=("epsilon", 1e-5)),
    "IsInf": _is_inf, "LRN": _lrn, "LayerNormalization": _last_axes_norm("layer_norm"),
    "LeakyRelu": _with("leaky_relu", alpha=("alpha", 0.01)), "LogSoftmax": _with("log_softmax", axis=("axis", -1)),
    "Max": _pair("maximum"), "MaxPool": _pool("max"), "Min": _pair("minimum"), "Mod": _mod,
    "NegativeLogLikelihoodLoss": _loss("nll_loss"), "PRelu": _prelu, "Pad": _pad, "Pow": _power,
    "QuantizeLinear": _quantize, "RMSNormalization": _last_axes_norm("rms_norm"), "Range": _range,
    "ReduceL1": _reduce("norm", ord=1), "ReduceL2": _reduce("norm"), "ReduceLogSumExp": _reduce("logsumexp"),
    "ReduceMax": _reduce("max"), "ReduceMean": _reduce("mean"), "ReduceMin": _reduce("min"),
    "ReduceProd": _reduce("prod"), "ReduceSum": _reduce("sum"), "Reshape": _reshape, "Resize": _resize,
    "ReverseSequence": _reverse_sequence, "ScatterElements": _scatter_elements, "ScatterND": _scatter_nd,
    "Selu": _selu, "Slice": _slice, "Softmax": _with("softmax", axis=("axis", -1)),
    "SoftmaxCrossEntropyLoss": _loss("cross_entropy"), "SpaceToDepth": _space_to_depth, "Split": _split,
    "Squeeze": _squeeze, "Swish": _swish, "Tile": lambda a, x: ("tile", (x[0],), {"reps": _ints(x[1])}),
    "TopK": _topk, "Transpose": _with("transpose", perm=("axes", None)), "Trilu": _triangle,
    "Unsqueeze": _unsqueeze, "Where": lambda a, x: ("where", tuple(x), {}),
}  # fmt: skip
