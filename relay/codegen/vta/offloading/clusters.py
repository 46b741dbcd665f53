"""Clusters: the calls of a block that are one layer of the accelerator.

    s = quantized_conv2d(x, w); t = s + b; u = t + (cast(r) << 3); v = right_shift(u, 8); q = cast(minimum(..), int8)

A cluster ends where 32-bit numbers become 8-bit ones, or in a max pooling of these. It extends back through sums,
shifts and bounds, each read by the next one only, to a product of 8-bit numbers, or to the 8-bit numbers themselves
where something is added to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import attrs
import numpy as np

from relay.codegen.vta.config import DEFAULT, Config
from relay.codegen.vta.layers.layer import (
    AddBias,
    AddNumber,
    AddResidual,
    Layer,
    Maximum,
    MaxPool,
    Minimum,
    ShiftRight,
    Step,
    identity_weights,
)
from relay.codegen.vta.layers.packing import is_product
from relay.errors import CompileError, RelayError, Span
from relay.ir.expr import Atom, Binding, Constant, OpCall, Var
from relay.ir.types import INT8, INT32, TensorType
from relay.operator import lookup
from relay.typecheck.windows import per_axis, transposed_over, windows

MOST_BLOCKS = 64
"""The blocks of output channels whose biases are weights."""


@attrs.frozen
class Axes:
    """The axes of a tensor that are the image, the channel, the row and the column; None for missing ones."""

    image: int
    channel: int
    row: int | None = None
    column: int | None = None
    block: int | None = None  # the axis of the channels in a block

    def order(self) -> list[int]:
        """The axes in the order of NCHW, blocks of channels last."""
        axes = (self.image, self.channel, self.row, self.column, self.block)
        return [axis for axis in axes if axis is not None]

    def extents(self, shape: Sequence[int]) -> tuple[int, int, int, int]:
        """The images, channels, rows and columns of a tensor."""
        channels = shape[self.channel] * (1 if self.block is None else shape[self.block])
        if self.row is None or self.column is None:
            return shape[self.image], channels, 1, 1
        return shape[self.image], channels, shape[self.row], shape[self.column]


AXES: Mapping[str, Axes] = {
    "NCHW": Axes(0, 1, 2, 3),
    "NHWC": Axes(0, 3, 1, 2),
    "NC": Axes(0, 1),
    "NCHWc": Axes(0, 1, 2, 3, 4),
}


@attrs.frozen
class Residual:
    """8-bit numbers that are added, and the order of their axes (a key of AXES), which need not be the layer's."""

    value: Var
    axes: str


@attrs.frozen(eq=False)
class Cluster:
    """Calls that are one layer: its operands besides constants, and its constants, which are not packed.

    `calls` are its bindings, in order; those that make residuals 32 bits wide may have other readers.
    """

    layer: Layer
    calls: tuple[Binding, ...]
    operand: Var
    residuals: tuple[Residual, ...]
    weights: np.ndarray
    bias: np.ndarray | None
    axes: str  # of the operand; a key of AXES
    result: Var
    result_axes: str

    @property
    def operands(self) -> tuple[Residual, ...]:
        """The operands besides constants, with the orders of axes."""
        return Residual(self.operand, self.axes), *self.residuals

    @property
    def span(self) -> Span | None:
        """The place of the layer in the program."""
        return self.calls[0].value.span


_Added: TypeAlias = tuple[Var, str | None]
"""A residual, and its axes if they are not those of the layer."""


class Matcher:
    """The clusters of one block. `uses` counts the readers of variables in the function, also in other blocks."""

    def __init__(self, bindings: Sequence[Binding], uses: Mapping[Var, int], config: Config = DEFAULT) -> None:
        self.uses = uses
        self.config = config
        self.refusal: CompileError | None = None  # of a product that the host computes
        self.calls = {b.targets[0]: b for b in bindings if isinstance(b.value, OpCall) and len(b.targets) == 1}
        self.readers: dict[Var, Binding] = {}
        for binding in self.calls.values():
            assert isinstance(binding.value, OpCall)
            for atom in binding.value.arguments:
                if isinstance(atom, Var):
                    self.readers[atom] = binding

    def match(self, binding: Binding) -> Cluster | None:
        """The cluster that ends in a call. Raises CompileError for a product that the accelerator does not have."""
        call = binding.value
        assert isinstance(call, OpCall)
        target = binding.targets[0]
        if call.operator == "cast" and call.attributes.get("dtype") == INT8 and _base(call.arguments[0]) == INT32:
            reader = self._only_reader(target)
            if reader is not None and transformed_axes(_call_of(reader), self.config.block) is not None:
                reader = self._only_reader(reader.targets[0])
            if reader is not None and _is_pool(reader) and self._pooling_layer(reader) is not None:
                return None  # the pooling is the end
            return self._chain(call.arguments[0], (binding,), ())
        if not _is_pool(binding) or _base(target) != INT8:
            return None
        return self._pooling_layer(binding) or self._pooling(binding, call)

    def _only_reader(self, target: Var) -> Binding | None:
        return self.readers.get(target) if self.uses[target] == 1 else None

    def _pooling_layer(self, binding: Binding) -> Cluster | None:
        """A layer that ends in a max pooling, perhaps in another layout."""
        call = _call_of(binding)
        layout = str(call.attributes.get("layout", "NCHW"))
        pool = _pool_step(call)
        if pool is None or not self._has_blocks(call.arguments[0], layout):
            return None
        end = [binding]
        for _ in range(2):
            value = _call_of(end[0]).arguments[0]
            before = self.calls.get(value) if isinstance(value, Var) and self.uses[value] == 1 else None
            if before is None:
                return None
            end.insert(0, before)
            if transformed_axes(_call_of(before), self.config.block) is None:
                break
        inner = _call_of(end[0])
        if inner.operator != "cast" or _base(inner.arguments[0]) != INT32 or not self._fits(inner.arguments[0]):
            return None
        found = self._chain(inner.arguments[0], tuple(end), (pool,))
        transform = transformed_axes(_call_of(end[1]), self.config.block)
        if found is None or found.axes != (layout if transform is None else transform[0]):
            return None
        return found

    def sums(self, binding: Binding) -> Cluster | None:
        """A product whose 32-bit sums are read, as a layer; None for one that the accelerator does not have, which the
        host computes."""
        call = binding.value
        if not isinstance(call, OpCall) or call.operator not in _PRODUCTS:
            return None
        try:
            found = self._product(call, [binding], [], [])
        except CompileError as error:
            self.refusal = self.refusal or error
            return None
        return None if found is None else attrs.evolve(found, layer=attrs.evolve(found.layer, wide=True))

    # ---- from the end to the product

    def _chain(self, value: Atom, end: tuple[Binding, ...], last: tuple[Step, ...]) -> Cluster | None:
        steps: list[tuple[Step, _Added | None]] = [(step, None) for step in last]
        biases: list[np.ndarray] = []
        calls: list[Binding] = list(end)
        while True:
            binding = self.calls.get(value) if isinstance(value, Var) else None
            if binding is None:
                return None
            call = binding.value
            assert isinstance(call, OpCall)
            if self.uses[binding.targets[0]] != 1 and call.operator != "cast":
                return None  # its 32 bits are read elsewhere, too
            calls.insert(0, binding)
            if call.operator in _PRODUCTS:
                return self._product(call, calls, steps, biases)
            if call.operator == "cast":
                return self._identity(call, calls, steps, biases)
            step = self._step(call, biases)
            if step is None:
                return None
            one, value, inside = step
            steps.insert(0, one)
            calls[:0] = inside

    def _step(
        self, call: OpCall, biases: list[np.ndarray]
    ) -> tuple[tuple[Step, _Added | None], Atom, list[Binding]] | None:
        """A call as a step, what it reads, and the calls that make a residual of 32 bits."""
        if len(call.arguments) != 2:
            return None
        one, other = call.arguments
        if isinstance(one, Constant) and call.operator in ("add", "maximum", "minimum"):
            one, other = other, one
        number = _number(other)
        if number is not None:
            made: Step | None = None
            match call.operator:
                case "add" if abs(number) < 1 << 15:
                    made = AddNumber(number)
                case "right_shift" if 0 <= number < 32:
                    made = ShiftRight(number)
                case "left_shift" if 0 <= number < 32:
                    made = ShiftRight(-number)
                case "maximum" if -(1 << 15) <= number < 1 << 15:
                    made = Maximum(number)
                case "minimum" if -(1 << 15) <= number < 1 << 15:
                    made = Minimum(number)
            if made is not None:
                return (made, None), one, []
        if call.operator != "add":
            return None
        if isinstance(other, Constant):
            biases.append(other.value)
            return (AddBias(), None), one, []
        for rest, added in ((one, other), (other, one)):
            residual = self._residual(added)
            if residual is not None and _shape(rest) == _shape(added):
                shift, added_value, inside = residual
                if self._residual(rest) is not None and not self._is_product(rest):
                    # both are 8-bit numbers: the layer's operand is the one that is not shifted
                    again = self._residual(rest)
                    assert again is not None
                    if shift < again[0]:
                        continue
                return (AddResidual(shift), added_value), rest, inside
        return None

    def _is_product(self, atom: Atom) -> bool:
        binding = self.calls.get(atom) if isinstance(atom, Var) else None
        return binding is not None and isinstance(binding.value, OpCall) and binding.value.operator in _PRODUCTS

    def _residual(self, atom: Atom) -> tuple[int, _Added, list[Binding]] | None:
        """8-bit numbers in 32 bits, perhaps shifted to the left, perhaps in another layout: how far, the 8-bit numbers
        with their axes if those are known, and the calls."""
        shift, axes = 0, None
        inside: list[Binding] = []
        for _ in range(4):
            binding = self.calls.get(atom) if isinstance(atom, Var) else None
            if binding is None or not isinstance(binding.value, OpCall):
                return None
            call = binding.value
            inside.insert(0, binding)
            atom = call.arguments[0]
            if call.operator == "cast":
                return (shift, (atom, axes), inside) if _base(atom) == INT8 and isinstance(atom, Var) else None
            number = _number(call.arguments[1]) if call.operator == "left_shift" else None
            transform = transformed_axes(call, self.config.block)
            if number is not None and 0 <= number <= 22 and not shift:
                shift = number
            elif transform is not None and axes is None:
                axes = transform[0]
            else:
                return None
        return None

    def _fits(self, value: Atom) -> bool:
        """True if 32-bit numbers fit in 8 bits, for bounds."""
        low = high = False
        for _ in range(2):
            binding = self.calls.get(value) if isinstance(value, Var) else None
            if binding is None or not isinstance(binding.value, OpCall) or len(binding.value.arguments) != 2:
                return False
            call = binding.value
            number = _number(call.arguments[1])
            if number is None:
                return False
            low |= call.operator == "maximum" and number >= -128
            high |= call.operator == "minimum" and number <= 127
            value = call.arguments[0]
        return low and high

    # ---- layers

    def _product(
        self,
        call: OpCall,
        calls: list[Binding],
        steps: list[tuple[Step, _Added | None]],
        biases: list[np.ndarray],
    ) -> Cluster | None:
        x, weights = call.arguments
        shape = _shape(x)
        if not isinstance(x, Var) or shape is None:
            return None
        is_dense = call.operator == "quantized_dense"
        batch, block = self.config.batch, self.config.block
        layout = "NC" if is_dense else str(call.attributes.get("layout", "NCHW"))
        if not self._has_blocks(x, layout):
            return None
        images, channels, _, _ = AXES[layout].extents(shape)
        if channels * 2 < self.config.block:
            return None  # most of a block would be zeros: the host computes it
        if _base(x) != INT8 or _base(weights) != INT8:
            raise _refusal_error(
                call, f"it multiplies {_base(x)} and {_base(weights)}", "the accelerator has int8 only"
            )
        if not isinstance(weights, Constant):
            why = "weights are packed when the program is compiled"
            how = "bind them before: relay(lambda x: f(WEIGHTS, x)), or compile the function for target='cpu'"
            raise _refusal_error(call, "its weights are computed at run time", why, how)
        if is_dense:
            kernel = np.asarray(weights.value)[:, :, None, None]
            draft = Layer(kernel.shape[1], kernel.shape[0], images=images, batch=batch, block=block)
        else:
            kernel, draft = _convolution(call, layout, shape, np.asarray(weights.value), self.config)
        return self._cluster(call, draft, kernel, x, calls, steps, biases, layout)

    def _identity(
        self,
        call: OpCall,
        calls: list[Binding],
        steps: list[tuple[Step, _Added | None]],
        biases: list[np.ndarray],
    ) -> Cluster | None:
        """8-bit numbers to which others are added."""
        (x,) = call.arguments
        shape = _shape(x)
        if not isinstance(x, Var) or shape is None or _base(x) != INT8:
            return None
        if not any(isinstance(step, AddResidual) for step, _ in steps):
            return None
        layout = self._layout_of(x)
        draft = self._identity_layer(x, layout)
        if draft is None:
            return None
        weights = identity_weights(draft.channels_in)
        return self._cluster(call, draft, weights, x, calls, steps, biases, layout)

    def _identity_layer(self, x: Var, layout: str) -> Layer | None:
        """A product of a tensor by the identity; None for a tensor that is not packed, or of few channels."""
        shape = _shape(x)
        if shape is None or not self._has_blocks(x, layout):
            return None
        images, channels, height, width = AXES[layout].extents(shape)
        if channels * 2 < self.config.block:
            return None
        batch, block = self.config.batch, self.config.block
        return Layer(channels, channels, height, width, groups=channels, images=images, batch=batch, block=block)

    def _has_blocks(self, x: Atom, layout: str) -> bool:
        """True if a tensor has elements, such axes, and blocks, if there are some, of the accelerator's size."""
        shape, axes = _shape(x), AXES.get(layout)
        if shape is None or 0 in shape or axes is None or len(shape) != len(axes.order()):
            return False
        return axes.block is None or shape[axes.block] == self.config.block

    def _pooling(self, binding: Binding, call: OpCall) -> Cluster | None:
        """A max pooling by itself."""
        (x,) = call.arguments
        layout = str(call.attributes.get("layout", "NCHW"))
        pool = _pool_step(call)
        draft = self._identity_layer(x, layout) if isinstance(x, Var) else None
        if pool is None or draft is None or not isinstance(x, Var):
            return None
        weights = identity_weights(draft.channels_in)
        return self._cluster(call, draft, weights, x, [binding], [(pool, None)], [], layout)

    def _layout_of(self, value: Var) -> str:
        """The layout of the operators that made a value."""
        shape = _shape(value)
        rank = 0 if shape is None else len(shape)
        for _ in range(50):
            binding = self.calls.get(value)
            if rank != 4 or binding is None or not isinstance(binding.value, OpCall):
                break
            if "layout" in binding.value.attributes:
                return str(binding.value.attributes["layout"])
            following = [a for a in binding.value.arguments if isinstance(a, Var) and len(_shape(a) or ()) == rank]
            if not following or not lookup(binding.value.operator).is_layout_agnostic:
                break
            value = following[0]
        return "NCHWc" if rank == 5 else "NCHW"

    def _cluster(
        self,
        call: OpCall,
        draft: Layer,
        weights: np.ndarray,
        x: Var,
        calls: list[Binding],
        steps: list[tuple[Step, _Added | None]],
        biases: list[np.ndarray],
        layout: str,
    ) -> Cluster | None:
        axes = AXES[layout]
        epilogue = [step for step, _ in steps]
        added = [one for _, one in steps if one is not None]
        residuals = tuple(Residual(value, layout if own is None else own) for value, own in added)
        bias: np.ndarray | None = None
        if biases:
            flat = [_per_channel(b, axes, draft.channels_out) for b in reversed(biases)]
            if len(flat) != 1 or flat[0] is None:
                return None
            bias = flat[0].astype(np.int64)
            bias, epilogue = _with_numbers(bias, epilogue)
            by_product = is_product(bias, draft.block) and draft.blocks_out <= MOST_BLOCKS
            epilogue = [AddBias(by_product) if isinstance(step, AddBias) else step for step in epilogue]
        result, end = calls[-1].targets[0], _call_of(calls[-1])
        result_axes = str(end.attributes.get("layout", "NCHW")) if end.operator == "max_pool2d" else layout
        try:
            layer = attrs.evolve(draft, epilogue=tuple(epilogue), name=call.operator)
        except ValueError as error:
            raise _refusal_error(call, str(error), None) from None
        shape = _shape(result)
        assert shape is not None
        if AXES[result_axes].extents(shape) != (layer.images, layer.channels_out, *layer.extents):
            return None  # a sum with something that is larger
        return Cluster(layer, tuple(calls), x, residuals, weights, bias, layout, result, result_axes)


TRANSPOSED = "quantized_conv2d_transpose"
_PRODUCTS = ("quantized_conv2d", TRANSPOSED, "quantized_dense")


def _convolution(
    call: OpCall, layout: str, shape: tuple[int, ...], weights: np.ndarray, config: Config
) -> tuple[np.ndarray, Layer]:
    """The weights as OIHW, O being the channels of the result, and the layer."""
    layouts = lookup(call.operator).layouts
    assert layouts is not None
    images, channels, height, width = AXES[layout].extents(shape)
    names = str(layouts(**{**call.attributes, "layout": layout})[1])
    kernel = weights.transpose([names.index(letter) for letter in "OoIiHW" if letter in names])
    if "o" in names:
        kernel = kernel.reshape(kernel.shape[0] * kernel.shape[1], -1, *kernel.shape[-2:])
    groups = call.attributes.get("groups", 1)
    assert isinstance(groups, int)
    sizes = (kernel.shape[2], kernel.shape[3])
    transposed = call.operator == TRANSPOSED
    extra = (0, 0)
    steps = [call.attributes.get(name, default) for name, default in _WINDOW]
    if transposed:
        more = call.attributes.get("output_padding", 0)
        found, beyond = transposed_over(sizes, steps[0], steps[1], more, steps[2])
        extra = tuple(int(n) for n in beyond if isinstance(n, int))  # type: ignore[assignment]
        # its weights are (channels of the operand, channels of the result in a group, ..)
        own = kernel.reshape(groups, channels // groups, -1, *sizes)
        kernel = own.transpose(0, 2, 1, 3, 4).reshape(-1, channels // groups, *sizes)
    else:
        found = windows((height, width), sizes, *steps)
    (top, bottom), (left, right) = found.widths
    try:
        layer = Layer(
            channels,
            kernel.shape[0],
            height,
            width,
            kernel=sizes,
            stride=(found.stride[0], found.stride[1]),
            padding=(top, left, bottom, right),
            dilation=(found.dilation[0], found.dilation[1]),
            groups=groups,
            images=images,
            transposed=transposed,
            extra=(extra[0], extra[1]),
            batch=config.batch,
            block=config.block,
        )
    except ValueError as error:
        raise _refusal_error(call, str(error), None) from None
    return kernel, layer


_WINDOW = (("stride", 1), ("padding", 0), ("dilation", 1))


def transformed_axes(call: OpCall, block: int) -> tuple[str, str] | None:
    """The axes of a tensor that the layout pass packs or unpacks, and of what it becomes, as keys of AXES."""
    if call.operator != "layout_transform":
        return None
    return {
        ("ABCD", f"ABCD{block}b"): ("NCHW", "NCHWc"),
        ("ABCD", f"ADBC{block}d"): ("NHWC", "NCHWc"),
        (f"ABCD{block}b", "ABCD"): ("NCHWc", "NCHW"),
        (f"ABCD{block}b", "ACDB"): ("NCHWc", "NHWC"),
    }.get((str(call.attributes.get("source")), str(call.attributes.get("target"))))


def _call_of(binding: Binding) -> OpCall:
    """The call that a binding of a matcher is."""
    assert isinstance(binding.value, OpCall)
    return binding.value


def _is_pool(binding: Binding) -> bool:
    return isinstance(binding.value, OpCall) and binding.value.operator == "max_pool2d"


def _pool_step(call: OpCall) -> MaxPool | None:
    """A max pooling as a step; None for one that the accelerator does not have."""
    shape, layout = _shape(call.arguments[0]), str(call.attributes.get("layout", "NCHW"))
    if shape is None or layout not in AXES or call.attributes.get("ceil_mode"):
        return None
    axes = AXES[layout]
    assert axes.row is not None and axes.column is not None
    kernel = call.attributes["kernel"]
    stride = call.attributes.get("stride")
    pair = per_axis(kernel, 2, "kernel", 1)
    try:
        found = windows(
            (shape[axes.row], shape[axes.column]),
            pair,
            kernel if stride is None else stride,
            call.attributes.get("padding", 0),
            call.attributes.get("dilation", 1),
        )
    except RelayError:
        return None
    (top, bottom), (left, right) = found.widths
    kh, kw = found.kernel
    if found.dilation != (1, 1) or top + bottom >= kh or left + right >= kw:
        return None
    return MaxPool((kh, kw), (found.stride[0], found.stride[1]), (top, left, bottom, right))


def _with_numbers(bias: np.ndarray, epilogue: list[Step]) -> tuple[np.ndarray, list[Step]]:
    """The bias with numbers added that are added next to it."""
    at = next(n for n, step in enumerate(epilogue) if isinstance(step, AddBias))
    kept: list[Step] = []
    joins = True
    for number, step in enumerate(epilogue):
        if number > at:
            joins = joins and isinstance(step, AddNumber | AddResidual)
            if joins and isinstance(step, AddNumber):
                bias = bias + step.number
                continue
        kept.append(step)
    return bias.astype(np.int32), kept


def _per_channel(bias: np.ndarray, axes: Axes, channels: int) -> np.ndarray | None:
    """The numbers of a constant that has one for each channel; None if it has not."""
    rank = len(axes.order())
    per_block = 1 if axes.block is None else bias.shape[-1] if bias.ndim else 1
    whole = bias.reshape((1,) * (rank - bias.ndim) + bias.shape) if bias.ndim <= rank else bias
    if whole.size == 1:
        return np.full(channels, whole.reshape(()))
    if whole.ndim != rank or whole.size != channels or whole.shape[axes.channel] * per_block != channels:
        return None
    return whole.reshape(-1)


def _number(atom: Atom) -> int | None:
    """A constant of one number."""
    if isinstance(atom, Constant) and atom.value.size == 1 and atom.value.dtype.kind == "i":
        return int(atom.value.reshape(()))
    return None


def _base(atom: Atom) -> object:
    type_ = getattr(atom, "type", None)
    return type_.base if isinstance(type_, TensorType) else None


def _shape(atom: Atom) -> tuple[int, ...] | None:
    """A shape of numbers; None if one is symbolic."""
    type_ = getattr(atom, "type", None)
    if not isinstance(type_, TensorType) or not all(isinstance(d, int) for d in type_.shape):
        return None
    return tuple(d for d in type_.shape if isinstance(d, int))


def _refusal_error(
    call: OpCall,
    what: str,
    why: str | None,
    how: str = "compile the function for target='cpu', or write the layer otherwise",
) -> CompileError:
    """The error for something that is not a layer of the accelerator."""
    note = () if why is None else (why,)
    return CompileError(
        f"{call.operator} does not run on the target 'vta': {what}",
        call.span,
        notes=note,
        help=how,
    )
