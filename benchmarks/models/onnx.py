"""The networks as ONNX graphs, with constant weights, for ONNX Runtime."""

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from models.inputs import NETWORKS, inception_layers


class Graph:
    """An ONNX graph that is built from its input to its output."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, array):
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def node(self, operator, *inputs, outputs=1, **attributes):
        names = [f"{operator}{len(self.nodes)}_{n}" for n in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names[-1]

    def session(self, x, result, threads):
        shape = list(x.shape)
        given = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)]
        made = [helper.make_tensor_value_info(result, onnx.TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "network", given, made, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, {"x": x})[0]


def convolution(graph, x, layer, stride=1):
    """With the scale folded into the weight, as a deployed network has it."""
    weight, scale, shift = layer
    pad = weight.shape[2] // 2
    folded, bias = graph.weight(weight * scale[..., None]), graph.weight(shift.reshape(-1))
    return graph.node("Conv", x, folded, bias, strides=[stride, stride], pads=[pad] * 4)


def residual(x, params, threads):
    graph = Graph()
    large = params["first"][0].shape[2] == 7
    y = graph.node("Relu", convolution(graph, "x", params["first"], 2 if large else 1))
    if large:
        y = graph.node("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for block in params["blocks"]:
        stride = 1 if block["down"] is None else 2
        inside = graph.node("Relu", convolution(graph, y, block["one"], stride))
        inside = convolution(graph, inside, block["two"])
        if block["down"] is not None:
            y = convolution(graph, y, block["down"], 2)
        y = graph.node("Relu", graph.node("Add", y, inside))
    pooled = graph.node("Flatten", graph.node("GlobalAveragePool", y))
    weight, bias = params["last"]
    return graph.session(x, graph.node("Gemm", pooled, graph.weight(weight), graph.weight(bias)), threads)


def inception(x, *weights, threads):
    graph, layers = Graph(), inception_layers(weights)

    def biased(y, name):
        weight, bias = layers[name]
        given = y, graph.weight(weight), graph.weight(bias.reshape(-1))
        return graph.node("Relu", graph.node("Conv", *given, pads=[weight.shape[2] // 2] * 4))

    three, five = biased(biased("x", "narrow3"), "three"), biased(biased("x", "narrow5"), "five")
    pooled = biased(graph.node("MaxPool", "x", kernel_shape=[3, 3], pads=[1] * 4), "pooled")
    joined = graph.node("Concat", biased("x", "one"), three, five, pooled, axis=1)
    return graph.session(x, joined, threads)


def lstm(x, w, u, b, threads):
    """The operator for a whole LSTM: its gates are ordered i, o, f, c."""
    graph = Graph()
    units = u.shape[0]
    order = [0, 3, 1, 2]
    w, u = (np.concatenate([np.split(a.T, 4)[n] for n in order])[None] for a in (w, u))
    b = np.concatenate([np.split(b, 4)[n] for n in order] + [np.zeros(4 * units, np.float32)])[None]
    inputs = [graph.weight(a) for a in (w, u, b)]
    last = graph.node("LSTM", "x", *inputs, outputs=2, hidden_size=units)
    return graph.session(x, graph.node("Squeeze", last, graph.weight(np.array([0]))), threads)


FUNCTIONS = {
    "inception": inception,
    "lstm": lstm,
    **{
        name: lambda x, *weights, threads, n=network: residual(x, n.structure(weights), threads)
        for name, network in NETWORKS.items()
    },
}
"""What makes a call without arguments, given the arrays and the number of threads."""
