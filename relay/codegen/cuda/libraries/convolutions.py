"""Convolutions for a library: groups that are one convolution, or one of its two derivatives, with what the library
computes behind it.

    forward      y = f(conv(x, w) + addend + bias)
    data         x = the cotangent of x, of that of y and w      (convNd_transpose)
    filter       w = the cotangent of w, of x and that of y      (convNd_weight_gradient)

Here bias goes along the channels, and f is nothing or relu. The library has two layouts: channels first, (n, c, *sizes)
and (o, c, *kernel), and channels last, (n, *sizes, c) and (o, *kernel, c). A tensor that lies otherwise is copied.
Nothing here needs TVM or the library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from relay.ir.dims import Dim, product
from relay.ir.expr import Atom, Binding, Constant, OpCall, Var
from relay.ir.types import BaseType, Shape, TensorType
from relay.operator import IndexKind, lookup
from relay.transform.fusion.fusion_groups import FusionGroup
from relay.typecheck import windows
from relay.typecheck.relations import permutation

LEAST_OPERATIONS = 1 << 24
"""Multiplications from which a library is faster than the group's own kernels."""

LEAST_SIZE = 32
"""Rows, columns and terms of the convolution as a product, each: a library's tiles would be empty for less."""

MOST_ELEMENTS = 1 << 31
"""Elements of a tensor that a library cannot count any more."""

Order: TypeAlias = "tuple[int, ...]"
"""The axes of a tensor as they lie in memory: 0 is the batch or the output channel, 1 the other channel."""

FORWARD, DATA, FILTER = "forward", "data", "filter"


@attrs.frozen
class LibraryConvolution:
    """A convolution, or a derivative of one, in one dtype. `parts` are the positions of its two factors among the
    group's operands; `bias` and `addend` are such positions, too. `x`, `weight` and `y` have channels first here; those
    of the memory that the library sees are last if `channels_last`. `orders`: how the factors, the addend and the
    result lie in the group's memory."""

    kind: str
    dtype: str
    parts: tuple[int, int]
    x: Shape
    weight: Shape
    y: Shape
    stride: tuple[int, ...]
    padding: tuple[tuple[Dim, Dim], ...]
    dilation: tuple[int, ...]
    groups: int
    orders: tuple[Order, ...]
    channels_last: bool = False
    bias: int | None = None
    addend: int | None = None
    relu: bool = False

    @property
    def has_epilogue(self) -> bool:
        """True if there is something behind the convolution."""
        return self.bias is not None or self.addend is not None or self.relu

    @property
    def order(self) -> Order:
        """The order of all tensors that the library sees."""
        return library_order(len(self.x), self.channels_last)

    @property
    def shapes(self) -> tuple[Shape, Shape, Shape, Shape]:
        """The shapes of the factors, the addend and the result, with channels first."""
        first, second, result = {
            FORWARD: (self.x, self.weight, self.y),
            DATA: (self.y, self.weight, self.x),
            FILTER: (self.x, self.y, self.weight),
        }[self.kind]
        return first, second, result, result

    @property
    def result_shape(self) -> Shape:
        """The shape of the result in the group."""
        return tuple(self.shapes[-1][axis] for axis in self.orders[-1])

    def at(self, size: Callable[[Dim], int]) -> LibraryConvolution:
        """The convolution of known sizes; `size` gives a dim's."""

        def numbers(shape: Sequence[Dim]) -> tuple[int, ...]:
            return tuple(map(size, shape))

        padding = tuple((size(low), size(high)) for low, high in self.padding)
        return attrs.evolve(self, x=numbers(self.x), weight=numbers(self.weight), y=numbers(self.y), padding=padding)

    def refusal(self) -> str | None:
        """The reason for which the library does not compute it; None if it does, as far as its sizes are known."""
        known = [pair for pair in self.padding if isinstance(pair[0], int) and isinstance(pair[1], int)]
        if any(low != high for low, high in known):
            return "its padding differs at the two ends of an axis"
        if any(isinstance(low, int) and low < 0 for low, _ in known):
            return "its padding is negative"
        counts = [product(shape) for shape in (self.x, self.weight, self.y)]
        if any(isinstance(count, int) and count >= MOST_ELEMENTS for count in counts):
            return "a tensor has 2^31 elements or more"
        rows = product((self.y[0], *self.y[2:]))
        channels, terms = self.weight[0], product(self.weight[1:])
        columns = channels // self.groups if isinstance(channels, int) else channels
        if self.kind == DATA:  # whose columns are the channels of x
            columns, terms = self.weight[1], product((columns, *self.weight[2:]))
        sizes = [size for size in (rows, columns, terms) if isinstance(size, int)]
        if min(sizes, default=LEAST_SIZE) < LEAST_SIZE:
            return f"as a product it has fewer than {LEAST_SIZE} rows, columns or terms"
        if len(sizes) == 3 and math.prod(sizes) * self.groups < LEAST_OPERATIONS:
            return f"it has fewer than 2^{LEAST_OPERATIONS.bit_length() - 1} multiplications"
        return None


def library_order(rank: int, channels_last: bool) -> Order:
    """The order of tensors of one of the library's layouts."""
    return (0, *range(2, rank), 1) if channels_last else tuple(range(rank))


def library_convolution(group: FusionGroup, operands: Sequence[Atom]) -> LibraryConvolution | str | None:
    """The convolution that a group is, or the reason for which the library does not compute it; None if the group has
    none."""
    kinds = [kind for b in group.bindings if isinstance(b.value, OpCall) and (kind := _kind(b.value.operator))]
    if not kinds:
        return None
    if len(kinds) > 1 or len(group.outputs) != 1 or group.kept or group.outputs[0] is not group.bindings[-1].targets[0]:
        return "its kernel has several results"
    places = {atom: number for number, atom in enumerate(operands)}
    views: dict[Var, _View] = {}
    found: LibraryConvolution | None = None
    last: Var | None = None
    for binding in group.bindings:
        call, (target,) = binding.value, binding.targets
        assert isinstance(call, OpCall)
        view = _view(call, target, views) if last not in call.arguments else None
        if view is not None:
            views[target] = view
            continue
        if found is None or last is None:
            made = _convolution(call, target, views, places)
        else:
            made = _with_call(found, call, last, views, places) or "what follows it is not bias, addend and relu"
        if isinstance(made, str):
            return made
        found, last = made, target
    assert found is not None
    found = attrs.evolve(found, channels_last=_is_last(found))
    return found.refusal() or found


def convolution_and_rest(group: FusionGroup) -> tuple[FusionGroup, FusionGroup] | None:
    """The convolution of a group, with what lays out its operands, and the rest, which reads its result; None if there
    is no rest, or not one convolution."""
    results = [b.targets[0] for b in group.bindings if isinstance(b.value, OpCall) and _kind(b.value.operator)]
    if len(results) != 1:
        return None
    (result,) = results
    before = _needed_bindings(group, (result,), ())
    outputs = tuple(variable for variable in group.outputs if variable is not result)
    after = _needed_bindings(group, outputs, (result,))
    if not after:
        return None
    made = {binding.targets[0] for binding in after}
    kept = tuple(variable for variable in group.kept if variable in made)
    return FusionGroup(before, (result,)), FusionGroup(after, outputs, kept)


def _needed_bindings(group: FusionGroup, results: Sequence[Var], known: Sequence[Var]) -> tuple[Binding, ...]:
    """The bindings of a group that results are computed from, without what they need of `known` ones."""
    needed, found = set(results) - set(known), []
    for binding in reversed(group.bindings):
        if binding.targets[0] in needed:
            found.append(binding)
            assert isinstance(binding.value, OpCall)
            needed |= {atom for atom in binding.value.arguments if isinstance(atom, Var)} - set(known)
    return tuple(reversed(found))


def _kind(operator: str) -> str | None:
    for rank in (1, 2, 3):
        kinds = {f"conv{rank}d": FORWARD, f"conv{rank}d_transpose": DATA, f"conv{rank}d_weight_gradient": FILTER}
        if operator in kinds:
            return kinds[operator]
    return None


@attrs.frozen(eq=False)
class _View:
    """A value in memory in another shape, whose axes are in this order then."""

    atom: Atom
    axes: tuple[int, ...]


def _type(atom: Atom) -> TensorType:
    type_ = atom.type if isinstance(atom, Var | Constant) else None
    assert isinstance(type_, TensorType)
    return type_


def _rank(atom: Atom) -> int:
    return len(_type(atom).shape)


def _seen(atom: Atom, views: Mapping[Var, _View]) -> _View:
    found = views.get(atom) if isinstance(atom, Var) else None
    return found or _View(atom, tuple(range(_rank(atom))))


def _view(call: OpCall, target: Var, views: Mapping[Var, _View]) -> _View | None:
    """The value in memory that an operator gives another shape; None for any other operator."""
    kind = lookup(call.operator).indexing.kind
    if kind not in (IndexKind.RESHAPE, IndexKind.PERMUTE):
        return None
    seen = _seen(call.arguments[0], views)
    is_vector = sum(dim != 1 for dim in _type(target).shape) <= 1
    if kind is IndexKind.RESHAPE or is_vector:
        in_order = seen.axes == tuple(range(len(seen.axes)))
        return _View(seen.atom, tuple(range(_rank(target)))) if in_order or is_vector else None
    axes: Any = call.attributes.get("axes")
    return _View(seen.atom, tuple(seen.axes[axis] for axis in permutation(axes, _rank(target))))


def _in_memory(logical: Order, seen: _View) -> Order:
    """The order in memory of a tensor whose axes are in this order where it is used."""
    return tuple(logical[seen.axes.index(axis)] for axis in range(len(logical)))


def _convolution(
    call: OpCall, target: Var, views: Mapping[Var, _View], places: Mapping[Atom, int]
) -> LibraryConvolution | str:
    kind, base = _kind(call.operator), _type(target).base
    if kind is None or not isinstance(base, BaseType):
        return "other operators come before it"
    if base.name not in ("float16", "bfloat16", "float32", "float64"):
        return f"it is of {base.name}"
    attributes: dict[str, Any] = dict(call.attributes)
    rank = int(call.operator[len("conv")])
    if windows.in_blocks(attributes["layout"], rank):
        return "its channels are in blocks"
    parts = [_seen(factor, views) for factor in call.arguments]
    if any(seen.atom not in places or _type(seen.atom).base != base for seen in parts):
        return "its operands are computed in its kernel"
    last = windows.channels_last(attributes["layout"], rank)
    activation = library_order(rank + 2, last)
    weight = (*range(2, rank + 2), 1, 0) if last else tuple(range(rank + 2))
    logical = {FORWARD: (activation, weight, activation), DATA: (activation, weight, activation)}.get(
        kind, (activation, activation, weight)
    )
    first, second, result = (
        _channels_first(_type(atom).shape, order)
        for atom, order in zip((*call.arguments, target), logical, strict=True)
    )
    x, w, y = {FORWARD: (first, second, result), DATA: (result, second, first), FILTER: (first, result, second)}[kind]
    over = windows.windows(x[2:], w[2:], attributes["stride"], 0, attributes["dilation"])
    padding = attributes["padding"]
    if kind == DATA:
        wanted = windows.transposed_over(w[2:], over.stride, padding, attributes["output_padding"], over.dilation)[
            0
        ].padding
    else:
        wanted = windows.windows(x[2:], w[2:], over.stride, padding, over.dilation).padding
    orders = *(_in_memory(order, seen) for order, seen in zip(logical, parts, strict=False)), logical[2], logical[2]
    return LibraryConvolution(
        *(kind, base.name, (places[parts[0].atom], places[parts[1].atom]), x, w, y),
        *(over.stride, wanted, over.dilation, attributes["groups"], orders),
    )


def _channels_first(shape: Shape, order: Order) -> Shape:
    return tuple(shape[order.index(axis)] for axis in range(len(order)))


def _with_call(
    found: LibraryConvolution, call: OpCall, last: Var, views: Mapping[Var, _View], places: Mapping[Atom, int]
) -> LibraryConvolution | None:
    """The convolution with an operator more, of the last result."""
    if found.kind != FORWARD or found.relu or sum(atom is last for atom in call.arguments) != 1:
        return None
    others = [atom for atom in call.arguments if atom is not last]
    if call.operator == "relu" and not others:
        return attrs.evolve(found, relu=True)
    if call.operator != "add" or len(others) != 1:
        return None
    seen = _seen(others[0], views)
    if seen.atom not in places or str(_type(seen.atom).base) != found.dtype:
        return None
    shape, logical = _type(others[0]).shape, found.orders[-1]
    if shape == _type(last).shape and found.addend is None:
        orders = *found.orders[:2], _in_memory(logical, seen), logical
        return attrs.evolve(found, addend=places[seen.atom], orders=orders)
    channel = len(shape) - len(logical) + logical.index(1)
    is_vector = channel >= 0 and all(dim == (found.y[1] if n == channel else 1) for n, dim in enumerate(shape))
    return attrs.evolve(found, bias=places[seen.atom]) if is_vector and found.bias is None else None


def _is_last(found: LibraryConvolution) -> bool:
    """True if with the channels last fewer activations are copied, and fewer elements where these are known; or as
    many, and tensor cores want it."""
    rank = len(found.x)

    def copies(last: bool) -> tuple[int, int]:
        order = library_order(rank, last)
        parts = zip(found.shapes, found.orders, strict=True)
        wanted = [
            shape for n, (shape, given) in enumerate(parts) if given != order and (n != 2 or found.addend is not None)
        ]
        elements = [count for shape in wanted if isinstance(count := product(shape), int)]
        return sum(shape is not found.weight for shape in wanted), sum(elements)

    first, last = copies(False), copies(True)
    return last < first or (last == first and found.dtype in ("float16", "bfloat16"))


__all__ = [
    "DATA",
    "FILTER",
    "FORWARD",
    "LEAST_OPERATIONS",
    "LEAST_SIZE",
    "LibraryConvolution",
    "convolution_and_rest",
    "library_convolution",
]
