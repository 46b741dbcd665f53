"""The node tests of the ONNX standard, as a second opinion: those that are calls of one operator."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree
from matrix import SEED, everything
from onnx_nodes import RULES, Array, NoCall
from operator_samples import OPERATORS, Sample, compiled, reference

from relay.errors import ShapeError
from relay.ir.types import base_of_dtype

COMPILED = 10**9 if everything() else 2
"""How many of a node's tests are compiled; others each day. All run on the interpreter's side, the references."""

NOT_CALLS = {
    "a program of several operators": {
        "CausalConvWithState", "Celu", "Col2Im", "DynamicQuantizeLinear", "FlexAttention", "GRU", "Gemm", "HardSigmoid",
        "Hardmax", "LSTM", "LinearAttention", "LpNormalization", "LpPool", "MaxUnpool", "Mean",
        "MeanVarianceNormalization", "QLinearConv", "QLinearMatMul", "RNN", "ReduceLogSum", "ReduceSumSquare",
        "RoiAlign", "RotaryEmbedding", "Scatter", "Shrink", "Softsign", "Sum", "SwiGLU", "TensorScatter",
        "ThresholdedRelu", "Adagrad", "Adam", "Momentum", "AffineGrid", "CenterCropPad", "ConvInteger", "MatMulInteger",
        "BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix", "OneHot", "Upsample", "Binarizer",
        "ArrayFeatureExtractor", "DeformConv", "Det",
    },
    "the language's own: control flow, sequences, sizes, constants": {
        "Constant", "If", "Loop", "OptionalGetElement", "OptionalHasElement", "Scan", "SequenceInsert", "SequenceMap",
        "Shape", "Size", "SplitToSequence",
    },
    "a result whose size depends on numbers, or another form of it": {
        "Compress", "NonMaxSuppression", "NonZero",
        "Unique",
    },
    "random numbers of no certain generator": {"Bernoulli", "Dropout"},
    "no numbers of tensors: strings, pictures, tables": {
        "ImageDecoder", "LabelEncoder", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit",
        "TfIdfVectorizer", "TreeEnsemble",
    },
    "complex numbers, or bits in another dtype": {"BitCast", "DFT", "STFT"},
}  # fmt: skip
"""The nodes of which no test is a call of one operator, by reason."""

# Their float32 references are rounded differently: sums in another order, polynomials for exp and tanh.
RELATIVE = {"float64": 1e-7, "float32": 2e-5, "float16": 4e-3, "bfloat16": 4e-2}
ABSOLUTE = {"float64": 1e-9, "float32": 2e-6, "float16": 2e-3, "bfloat16": 2e-2}

DIGITS = {"test_averagepool_2d_ceil_last_window_starts_on_pad": 1e-4}
"""Published results that are rounded to some digits: their error."""


EXTREMA = ("ReduceMax", "ReduceMin")
"""Over no numbers these are errors, as NumPy's; in the standard they are infinite."""


class Node:
    """A published test of one node: what it is as a call, or why it is none."""

    def __init__(self, case: Any) -> None:
        from onnx import TensorProto, helper, numpy_helper

        def array(value: Any) -> Any:
            return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value

        (node,) = case.model.graph.node
        self.name: str = case.name
        self.kind: str = node.op_type
        inputs, outputs = case.data_sets[0]
        given = dict(zip((i.name for i in case.model.graph.input), map(array, inputs), strict=True))
        self.outputs: list[Array] = []
        self.sample: Sample | None = None
        self.reason = ""
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        attributes = {n: v.decode() if isinstance(v, bytes) else v for n, v in attributes.items()}
        attributes = {n: tuple(v) if isinstance(v, list) else v for n, v in attributes.items()}
        try:
            if not all(isinstance(array(v), np.ndarray | np.generic) for v in (*inputs, *outputs)):
                raise NoCall("sequences, or nothing at all")
            self.outputs = [np.asarray(array(o)) for o in outputs]
            operands = [given[n] if n else None for n in node.input]
            name, taken, named = RULES[self.kind](attributes, operands)
            operator = OPERATORS[name]
            arrays = tuple(np.asarray(o) for o in taken)
            if any(base_of_dtype(o.dtype) is None for o in arrays):
                raise NoCall("a dtype that is none here")
            filled = {**operator.attributes, **named}
            self.sample = Sample(operator, arrays, filled)
        except NoCall as error:
            self.reason = str(error)


@functools.cache
def nodes() -> dict[str, list[Node]]:
    """The published tests by node."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found: dict[str, list[Node]] = {}
        for case in collect_testcases(None):
            if len(case.model.graph.node) == 1:  # the others write a node as several
                kind = case.model.graph.node[0].op_type
                own = found.setdefault(kind, [])
                if kind in RULES:
                    own.append(Node(case))
    return found


def compare(found: Array, wanted: Array, what: str) -> None:
    if wanted.dtype.name not in RELATIVE:  # places are int32 with us and int64 there
        found = found.astype(wanted.dtype)
    absolute = DIGITS.get(what.split(" ")[0], ABSOLUTE.get(wanted.dtype.name))
    assert_agree(found, wanted, RELATIVE.get(wanted.dtype.name), absolute, what=what)


@pytest.mark.parametrize("kind", RULES)
def test_a_node_is_what_the_standard_says(kind: str) -> None:
    mapped = [node for node in nodes()[kind] if node.sample is not None]
    assert mapped, f"no test of {kind} is a call of one operator"
    if kind in EXTREMA:
        empty = [node for node in mapped if node.name.split(" ")[0].endswith("empty_set")]
        mapped = [node for node in mapped if node not in empty]
        for node in empty:
            assert node.sample is not None
            with pytest.raises(ShapeError, match="is empty"):
                compiled([node.sample])
    for node in mapped:
        assert node.sample is not None
        for found, wanted in zip(reference(node.sample), node.outputs, strict=False):
            compare(found, wanted, node.name)
    rng = np.random.default_rng(SEED)
    chosen = [mapped[i] for i in rng.permutation(len(mapped))[:COMPILED]]
    for start in range(0, len(chosen), 20):
        batch = chosen[start : start + 20]
        for node, results in zip(batch, compiled([n.sample for n in batch if n.sample is not None]), strict=True):
            for found, wanted in zip(results, node.outputs, strict=False):
                compare(found, wanted, f"{node.name} with seed {SEED}")


def test_every_published_node_has_a_rule_or_a_reason() -> None:
    listed = [name for names in NOT_CALLS.values() for name in names]
    assert not [name for name, count in Counter([*listed, *RULES]).items() if count > 1]
    assert set(nodes()) == {*listed, *RULES}
    total = [node for of_kind in nodes().values() for node in of_kind]
    calls = [node for node in total if node.sample is not None]
    assert len(calls) > 600
    assert all(node.reason for node in total if node.sample is None)
