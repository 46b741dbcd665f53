"""Models that `gpu_report.py` times: inference and training steps of ResNet-18 and ResNet-50, and a training step of a
GPT, in Relay, PyTorch and JAX, on the same weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np

import relay
from relay import relay as function

Structure = Any
"""Tuples of arrays, and tuples of these."""

RATE = 0.01


@attrs.frozen
class Network:
    """A residual network: blocks of each stage, channels, and whether blocks are bottlenecks of three convolutions."""

    depth: tuple[int, ...]
    width: tuple[int, ...]
    deep: bool
    size: int = 224
    classes: int = 1000

    def weights(self, random: np.random.Generator) -> Structure:
        """(first convolution, blocks, last layer): a block has its convolutions, and one more where the image or the
        channels change."""

        def convolution(outputs: int, inputs: int, kernel: int) -> Structure:
            weight = random.standard_normal((outputs, inputs, kernel, kernel)) / np.sqrt(inputs * kernel * kernel)
            scale, shift = np.full((outputs, 1, 1), 0.5), np.zeros((outputs, 1, 1))
            return tuple(array.astype(np.float32) for array in (weight, scale, shift))

        def block(inputs: int, width: int, outputs: int, down: bool) -> Structure:
            if self.deep:
                made = convolution(width, inputs, 1), convolution(width, width, 3), convolution(outputs, width, 1)
            else:
                made = convolution(width, inputs, 3), convolution(width, width, 3)
            return (*made, convolution(outputs, inputs, 1)) if down else made

        def blocks() -> Iterator[Structure]:
            channels = self.width[0]
            for stage, (depth, width) in enumerate(zip(self.depth, self.width, strict=True)):
                outputs = width * 4 if self.deep else width
                for number in range(depth):
                    yield block(channels, width, outputs, number == 0 and (stage > 0 or channels != outputs))
                    channels = outputs

        made = tuple(blocks())
        channels = self.width[-1] * (4 if self.deep else 1)
        last = random.standard_normal((channels, self.classes)).astype(np.float32) / np.float32(np.sqrt(channels))
        return convolution(self.width[0], 3, 7), made, (last, np.zeros(self.classes, np.float32))

    def examples(self, random: np.random.Generator, batch: int) -> tuple[np.ndarray, np.ndarray]:
        """Images, and their labels as rows with one 1."""
        images = random.standard_normal((batch, 3, self.size, self.size)).astype(np.float32)
        return images, np.eye(self.classes, dtype=np.float32)[random.integers(0, self.classes, batch)]


@attrs.frozen
class Transformer:
    """A GPT: layers of attention and a perceptron, with a table of words that is also the last layer."""

    layers: int
    width: int
    heads: int
    words: int
    length: int
    batch: int

    def weights(self, random: np.random.Generator) -> Structure:
        """(words, places, layers): a layer has its four matrices."""

        def matrix(*shape: int) -> np.ndarray:
            return (random.standard_normal(shape) * 0.02).astype(np.float32)

        w = self.width
        layers = tuple((matrix(w, 3 * w), matrix(w, w), matrix(w, 4 * w), matrix(4 * w, w)) for _ in range(self.layers))
        return matrix(self.words, w), matrix(self.length, w), layers

    def examples(self, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Words, and the words that follow."""
        text = random.integers(0, self.words, (self.batch, self.length + 1)).astype(np.int32)
        return text[:, :-1].copy(), text[:, 1:].copy()


# ---- Relay


@function
def relay_convolution(x, layer, stride, padding):
    weight, scale, shift = layer
    return relay.conv2d(x, weight, stride=stride, padding=padding) * scale + shift


@function
def relay_plain_block(x, block, stride):
    y = relay.relu(relay_convolution(x, block[0], stride, 1))
    y = relay_convolution(y, block[1], 1, 1)
    if len(block) > 2:
        x = relay_convolution(x, block[2], stride, 0)
    return relay.relu(x + y)


@function
def relay_bottleneck(x, block, stride):
    y = relay.relu(relay_convolution(x, block[0], 1, 0))
    y = relay.relu(relay_convolution(y, block[1], stride, 1))
    y = relay_convolution(y, block[2], 1, 0)
    if len(block) > 3:
        x = relay_convolution(x, block[3], stride, 0)
    return relay.relu(x + y)


def relay_network(network: Network) -> Any:
    """The logits of images in Relay."""
    strides = tuple(2 if n == 0 and stage else 1 for stage, depth in enumerate(network.depth) for n in range(depth))
    one_block = relay_bottleneck if network.deep else relay_plain_block

    @function
    def logits(params, x):
        first, blocks, last = params
        x = relay.max_pool2d(relay.relu(relay_convolution(x, first, 2, 3)), 3, stride=2, padding=1)
        for block, stride in zip(blocks, strides):  # noqa: B905
            x = one_block(x, block, stride)
        return x.mean(axis=(2, 3)) @ last[0] + last[1]

    return logits


def relay_classes_step(network: Network) -> Any:
    """The weights after a step of training in Relay."""
    logits = relay_network(network)

    @function
    def loss(params, x, y):
        return -(y * relay.log_softmax(logits(params, x))).sum() / x.shape[0]

    return _relay_step(loss)


def _relay_step(loss: Any) -> Any:
    @function
    def step(params, x, y):
        gradient = relay.grad(loss, argnums=0)(params, x, y)
        return relay.tree.map(lambda p, g: p - RATE * g, params, gradient)

    return step


def relay_words_step(model: Transformer) -> Any:
    """The weights after a step of training in Relay."""
    heads = model.heads

    @function
    def attention(x, mixed, back):
        batch, length, width = x.shape
        parts = (x @ mixed).reshape(batch, length, 3, heads, width // heads)
        parts = relay.transpose(parts, (2, 0, 3, 1, 4))
        made = relay.scaled_dot_product_attention(parts[0], parts[1], parts[2], causal=True)
        return relay.transpose(made, (0, 2, 1, 3)).reshape(batch, length, width) @ back

    @function
    def normal(x):
        return (x - x.mean(axis=-1, keepdims=True)) / relay.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)

    @function
    def loss(params, x, y):
        words, places, layers = params
        h = words[x] + places
        for mixed, back, up, down in layers:
            h = h + attention(normal(h), mixed, back)
            h = h + relay.gelu(normal(h) @ up) @ down
        scores = relay.log_softmax(normal(h) @ words.T)
        return -relay.take_along_axis(scores, relay.expand_dims(y, -1), axis=-1).mean()

    return _relay_step(loss)


# ---- PyTorch


def torch_network(network: Network) -> Callable[..., Any]:
    """The logits of images in PyTorch."""
    import torch
    from torch.nn import functional

    strides = [2 if n == 0 and stage else 1 for stage, depth in enumerate(network.depth) for n in range(depth)]

    def convolution(x: Any, layer: Any, stride: int, padding: int) -> Any:
        weight, scale, shift = layer
        return functional.conv2d(x, weight, stride=stride, padding=padding) * scale + shift

    def logits(params: Any, x: Any) -> Any:
        first, blocks, last = params
        x = functional.max_pool2d(torch.relu(convolution(x, first, 2, 3)), 3, 2, 1)
        for block, stride in zip(blocks, strides, strict=True):
            if network.deep:
                y = torch.relu(convolution(x, block[0], 1, 0))
                y = convolution(torch.relu(convolution(y, block[1], stride, 1)), block[2], 1, 0)
            else:
                y = convolution(torch.relu(convolution(x, block[0], stride, 1)), block[1], 1, 1)
            if len(block) > 2 + network.deep:
                x = convolution(x, block[-1], stride, 0)
            x = torch.relu(x + y)
        return x.mean(dim=(2, 3)) @ last[0] + last[1]

    return logits


def torch_loss(model: Network | Transformer) -> Callable[..., Any]:
    """The loss in PyTorch."""
    import torch
    from torch.nn import functional

    if isinstance(model, Network):
        logits = torch_network(model)
        return lambda params, x, y: -(y * torch.log_softmax(logits(params, x), 1)).sum() / x.shape[0]
    heads = model.heads

    def loss(params: Any, x: Any, y: Any) -> Any:
        words, places, layers = params
        h = words[x] + places
        for mixed, back, up, down in layers:
            batch, length, width = h.shape
            parts = functional.layer_norm(h, (width,)) @ mixed
            q, k, v = parts.reshape(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            made = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            h = h + made.transpose(1, 2).reshape(batch, length, width) @ back
            h = h + functional.gelu(functional.layer_norm(h, (width,)) @ up) @ down
        scores = functional.layer_norm(h, (h.shape[-1],)) @ words.T
        return functional.cross_entropy(scores.flatten(0, 1), y.long().flatten())

    return loss


def torch_step(model: Network | Transformer, compiled: bool) -> Callable[..., Any]:
    """The weights after a step of training in PyTorch."""
    import torch
    from torch.utils import _pytree as pytree

    loss = torch_loss(model)
    fast = torch.compile(loss) if compiled else loss

    def step(params: Any, x: Any, y: Any) -> Any:
        leaves, structure = pytree.tree_flatten(params)
        fresh = [leaf.detach().requires_grad_() for leaf in leaves]
        gradients = torch.autograd.grad(fast(pytree.tree_unflatten(fresh, structure), x, y), fresh)
        with torch.no_grad():
            return pytree.tree_unflatten(torch._foreach_add(fresh, gradients, alpha=-RATE), structure)

    return step


# ---- JAX


def jax_network(network: Network) -> Callable[..., Any]:
    """The logits of images in JAX."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    strides = [2 if n == 0 and stage else 1 for stage, depth in enumerate(network.depth) for n in range(depth)]

    def convolution(x: Any, layer: Any, stride: int, padding: int) -> Any:
        weight, scale, shift = layer
        pads = [(padding, padding)] * 2
        made = lax.conv_general_dilated(x, weight, (stride, stride), pads, precision="highest")
        return made * scale + shift

    def logits(params: Any, x: Any) -> Any:
        first, blocks, last = params
        pads = ((0, 0), (0, 0), (1, 1), (1, 1))
        x = jax.nn.relu(convolution(x, first, 2, 3))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), pads)
        for block, stride in zip(blocks, strides, strict=True):
            if network.deep:
                y = jax.nn.relu(convolution(x, block[0], 1, 0))
                y = convolution(jax.nn.relu(convolution(y, block[1], stride, 1)), block[2], 1, 0)
            else:
                y = convolution(jax.nn.relu(convolution(x, block[0], stride, 1)), block[1], 1, 1)
            if len(block) > 2 + network.deep:
                x = convolution(x, block[-1], stride, 0)
            x = jax.nn.relu(x + y)
        return jnp.matmul(x.mean((2, 3)), last[0], precision="highest") + last[1]

    return logits


def jax_step(model: Network | Transformer) -> Callable[..., Any]:
    """The weights after a step of training in JAX."""
    import jax
    import jax.numpy as jnp

    def normal(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def words_loss(params: Any, x: Any, y: Any) -> Any:
        words, places, layers = params
        h = words[x] + places
        for mixed, back, up, down in layers:
            batch, length, width = h.shape
            heads = model.heads  # type: ignore[union-attr]
            q, k, v = jnp.moveaxis((normal(h) @ mixed).reshape(batch, length, 3, heads, width // heads), 2, 0)
            made = jax.nn.dot_product_attention(q, k, v, is_causal=True)
            h = h + made.reshape(batch, length, width) @ back
            h = h + jax.nn.gelu(normal(h) @ up, approximate=False) @ down
        scores = jax.nn.log_softmax(normal(h) @ words.T)
        return -jnp.take_along_axis(scores, y[..., None], -1).mean()

    def classes_loss(params: Any, x: Any, y: Any) -> Any:
        return -(y * jax.nn.log_softmax(jax_network(model)(params, x))).sum() / x.shape[0]  # type: ignore[arg-type]

    loss = classes_loss if isinstance(model, Network) else words_loss

    def step(params: Any, x: Any, y: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return jax.tree.map(lambda p, g: p - RATE * g, params, jax.grad(loss)(params, x, y))

    return jax.jit(step)


# ---- what is timed


@attrs.frozen
class Model:
    """A model, the examples of a call, and whether they train it; and the small one of a run without a GPU."""

    model: Network | Transformer
    small: Network | Transformer
    batch: int
    trains: bool

    def prepare(self, framework: str, dry: bool) -> Callable[[], Any]:
        """A call, on arrays that are on the GPU."""
        model, random = self.small if dry else self.model, np.random.default_rng(0)
        weights = model.weights(random)
        if isinstance(model, Network):
            x, y = model.examples(random, 2 if dry else self.batch)
        else:
            x, y = model.examples(random)
        given = (weights, x, y) if self.trains else (weights, x)
        call = self._function(framework, model)
        placed = _placed(framework, given)
        return lambda: call(*placed)

    def _function(self, framework: str, model: Network | Transformer) -> Callable[..., Any]:
        if framework == "relay":
            if isinstance(model, Transformer):
                return relay_words_step(model)  # type: ignore[no-any-return]
            return relay_classes_step(model) if self.trains else relay_network(model)  # type: ignore[no-any-return]
        if framework == "jax":
            import jax

            return jax_step(model) if self.trains else jax.jit(jax_network(model))  # type: ignore[arg-type, no-any-return]
        compiled = framework == "torch-compile"
        if self.trains:
            return torch_step(model, compiled)
        import torch

        plain = torch.no_grad()(torch_network(model))  # type: ignore[arg-type]
        return torch.compile(plain) if compiled else plain


def _placed(framework: str, given: Any) -> Any:
    """Arrays on the GPU of a framework."""
    if framework == "relay":
        return relay.device_put(given)
    if framework == "jax":
        import jax

        return jax.device_put(given)
    import torch
    from torch.utils import _pytree as pytree

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return pytree.tree_map(lambda array: torch.from_numpy(array).to(device), given)


_RESNET18 = Network((2, 2, 2, 2), (64, 128, 256, 512), False)
_RESNET50 = Network((3, 4, 6, 3), (64, 128, 256, 512), True)
_SMALL, _SMALL_DEEP = Network((1, 1), (4, 6), False, 16, 5), Network((1, 1), (2, 3), True, 16, 5)
_GPT, _SMALL_GPT = Transformer(6, 512, 8, 32_000, 512, 8), Transformer(1, 16, 2, 11, 8, 2)

MODELS = {
    "resnet18": Model(_RESNET18, _SMALL, 64, False),
    "resnet18_step": Model(_RESNET18, _SMALL, 64, True),
    "resnet50": Model(_RESNET50, _SMALL_DEEP, 64, False),
    "resnet50_step": Model(_RESNET50, _SMALL_DEEP, 64, True),
    "gpt_step": Model(_GPT, _SMALL_GPT, 8, True),
}

__all__ = ["MODELS", "Model", "Network", "Transformer"]
